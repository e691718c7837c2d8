// What the modules of OnionChopper agree on.
package oc_pkg;
  // A modulus and its Barrett constant. n is 2 to 2^64; m is floor(2^128 / n), so below 2^128.
  // The thesis keeps 64 + 128 bits; 2^64 takes one more.
  typedef struct packed {
    logic [64:0]  n;
    logic [127:0] m;
  } modulus_t;

  // Products that a pipelined accumulator adds before it reduces: a run has at most 2^GUARD - 1.
  localparam int unsigned GUARD = 8;

  function automatic int unsigned stages(int unsigned width, int unsigned bits);
    return (width + bits - 1) / bits;
  endfunction

  // Clocks of the modular multiplication, by full adders in a row between two registers; 0 is the thesis's stages:
  // product; four half products; their sum; q * n; p - q * n and correction.
  function automatic int unsigned mul_latency(int unsigned bits);
    if (bits == 0) return 5;
    return 2 * (stages(64, bits) + stages(128, bits)) // a * b, halves of p * m
      + 1 + stages(128, bits)                         // their sum
      + stages(64, bits) + stages(66, bits)           // q * n
      + 2 * stages(66, bits);                         // p - q * n, less n
  endfunction

  // Clocks from a product to the sum.
  function automatic int unsigned add_latency(int unsigned bits);
    if (bits == 0) return 1;
    return (1 + GUARD) * stages(64 + GUARD, bits);
  endfunction

  // Clocks from an input of the compute unit to its output; 6 for the thesis's.
  function automatic int unsigned latency(int unsigned bits);
    return mul_latency(bits) + add_latency(bits);
  endfunction
endpackage
