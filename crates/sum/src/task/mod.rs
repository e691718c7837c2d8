//! The task compiler of PH-EPU (Fig. 15.4.5).
