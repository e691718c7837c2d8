//! Sums, products with plaintexts, dot products, matrices and convolutions of encrypted numbers.
