//! Gadgets on words of bits: arithmetic, comparisons, sorting, ciphers.
