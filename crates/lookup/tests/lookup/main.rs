//! The schemes, whole. One program: each program is linked by itself. `constant_work` runs itself under
//! valgrind and stays alone.

mod registration;
mod schemes;
