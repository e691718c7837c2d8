//! Arrays of numbers from and to CSV, NPY and Parquet.
