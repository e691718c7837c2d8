// A round of AES on BLOCKS blocks at once, two clocks: half of SubBytes; its other half, ShiftRows, MixColumns and AddRoundKey
// (FIPS 197, section 5.1). LAST leaves MixColumns out. States are bit planes, block 0's bytes in their low bits (see hg_pkg).
module hg_aes_round
  import hg_pkg::*;
#(
  parameter int unsigned BLOCKS = 1,
  parameter bit          LAST   = 1'b0
) (
  input  logic                           clk_i,
  input  logic [7:0][BYTES*BLOCKS-1:0]   state_i,
  input  planes_t                        key_i,
  output logic [7:0][BYTES*BLOCKS-1:0]   state_o
);
  // verilator no_inline_module
  typedef logic [BYTES*BLOCKS-1:0] plane_t;

  logic [7:0][BYTES*BLOCKS-1:0] bytes;
  hg_aes_sbox #(.BYTES(BYTES * BLOCKS), .REGISTER(1'b1)) u_sbox (.clk_i, .d_i(state_i), .q_o(bytes));

  // Byte (row, column) is bit 4 * row + column of a block's 16. Row r turns by r columns: its columns that stay inside it
  // move down by r bits, the others up by 4 - r.
  function automatic plane_t shift_rows(plane_t x);
    return (x & {BLOCKS{16'h000f}}) | ((x >> 1) & {BLOCKS{16'h0070}}) | ((x << 3) & {BLOCKS{16'h0080}}) |
      ((x >> 2) & {BLOCKS{16'h0300}}) | ((x << 2) & {BLOCKS{16'h0c00}}) |
      ((x >> 3) & {BLOCKS{16'h1000}}) | ((x << 1) & {BLOCKS{16'he000}});
  endfunction

  // In the place of each row the one that comes `by` rows behind it.
  function automatic plane_t rows_behind(plane_t x, int unsigned by);
    plane_t last; // the rows behind which the first come
    last = {BLOCKS{16'(16'hffff << (16 - 4 * by))}};
    return ((x >> (4 * by)) & ~last) | ((x << (16 - 4 * by)) & last);
  endfunction

  logic [7:0][BYTES*BLOCKS-1:0] shifted, pairs, mixed;
  always_comb begin
    for (int unsigned j = 0; j < 8; j++) shifted[j] = shift_rows(bytes[j]);
  end
  // A column's byte becomes 2 a + 3 b + c + d with the bytes behind it: 2 (a + b) + b + (c + d).
  always_comb begin
    for (int unsigned j = 0; j < 8; j++) pairs[j] = shifted[j] ^ rows_behind(shifted[j], 1);
    for (int unsigned j = 0; j < 8; j++) begin
      mixed[j] = rows_behind(shifted[j], 1) ^ rows_behind(pairs[j], 2);
      if (j > 0) mixed[j] ^= pairs[j-1];
      if (j == 0 || j == 1 || j == 3 || j == 4) mixed[j] ^= pairs[7]; // x^8 = x^4 + x^3 + x + 1
    end
  end
  always_ff @(posedge clk_i) begin
    for (int unsigned j = 0; j < 8; j++) state_o[j] <= (LAST ? shifted[j] : mixed[j]) ^ {BLOCKS{key_i[j]}};
  end
endmodule
