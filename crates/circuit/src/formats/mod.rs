//! Netlists in files: Bristol Fashion, the older Bristol format, and structural Verilog.
