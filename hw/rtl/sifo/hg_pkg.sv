// What the modules of half gates share: AES's state in bit planes, and how many clocks things take.
//
// A *plane* holds one bit of every byte: bit 4 * row + column of plane j is bit j of the state's byte row + 4 * column
// (FIPS 197, section 3.4). The same logic then works on all bytes as on words of 16 bits, and on several blocks as on
// longer words; in gates it is the same, in simulation it takes an operation for what would take one a byte.
package hg_pkg;
  localparam int unsigned BLOCK  = 128; // bits of a block, a key and a label
  localparam int unsigned BYTES  = 16;
  localparam int unsigned ROUNDS = 10;
  localparam int unsigned KEYS   = (ROUNDS + 1) * BLOCK; // bits of all round keys

  typedef logic [7:0][BYTES-1:0] planes_t;

  // Bits 7:0 of a block are its byte 0.
  function automatic planes_t to_planes(logic [BLOCK-1:0] block);
    for (int unsigned i = 0; i < BYTES; i++) begin
      for (int unsigned j = 0; j < 8; j++) to_planes[j][i] = block[8 * (i / 4 + 4 * (i % 4)) + j];
    end
  endfunction

  function automatic logic [BLOCK-1:0] from_planes(planes_t planes);
    for (int unsigned i = 0; i < BYTES; i++) begin
      for (int unsigned j = 0; j < 8; j++) from_planes[8 * (i / 4 + 4 * (i % 4)) + j] = planes[j][i];
    end
  endfunction

  // Clocks from an input to its output.
  localparam int unsigned ROUND_LATENCY = 2;
  localparam int unsigned AES_LATENCY   = 1 + ROUNDS * ROUND_LATENCY;
  localparam int unsigned CELL_LATENCY  = 2 * AES_LATENCY + 2;
endpackage
