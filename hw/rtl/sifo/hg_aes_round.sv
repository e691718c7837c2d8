// A round of AES on BLOCKS blocks at once, four at most, two clocks: half of SubBytes; its other half, ShiftRows, MixColumns and
// AddRoundKey (FIPS 197, section 5.1). LAST leaves MixColumns out. States are bit planes, block 0's bytes in their low bits
// (see hg_pkg).
module hg_aes_round
  import hg_pkg::*;
#(
  parameter int unsigned BLOCKS = 1,
  parameter bit          LAST   = 1'b0
) (
  input  logic                         clk_i,
  input  logic [7:0][BYTES*BLOCKS-1:0] state_i,
  input  planes_t                      key_i,
  output logic [7:0][BYTES*BLOCKS-1:0] state_o
);
  state_t bytes, sum;
  halfway_t halfway, halfway_q;
  for (genvar j = 0; j < 8; j++) begin : gen_plane
    assign bytes[j] = WIDE'(state_i[j]);
  end
  assign halfway = substitute_first(bytes);
  assign sum     = LAST ? add_last(substitute_second(halfway_q), key_i) : mix_and_add(substitute_second(halfway_q), key_i);
  always_ff @(posedge clk_i) begin
    halfway_q <= halfway;
    for (int unsigned j = 0; j < 8; j++) state_o[j] <= sum[j][BYTES*BLOCKS-1:0];
  end
endmodule
