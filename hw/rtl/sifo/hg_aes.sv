// AES-128 encryption of BLOCKS blocks a clock under one key, each AES_LATENCY clocks behind its input (FIPS 197, section
// 5.1): the first round key in one clock, then ten rounds of two. Nothing waits, and what isn't valid is encrypted too.
// States are bit planes, block 0's bytes in their low bits (see hg_pkg). Keys stay while blocks are under way.
module hg_aes
  import hg_pkg::*;
#(
  parameter int unsigned BLOCKS = 1
) (
  input  logic                         clk_i,
  input  planes_t [ROUNDS:0]           round_keys_i, // of hg_aes_keys
  input  logic [7:0][BYTES*BLOCKS-1:0] state_i,
  output logic [7:0][BYTES*BLOCKS-1:0] state_o
);
  logic [ROUNDS:0][7:0][BYTES*BLOCKS-1:0] state;
  logic [7:0][BYTES*BLOCKS-1:0] first_q;
  always_ff @(posedge clk_i) begin
    for (int unsigned j = 0; j < 8; j++) first_q[j] <= state_i[j] ^ {BLOCKS{round_keys_i[0][j]}};
  end
  assign state[0] = first_q;
  for (genvar r = 1; r <= ROUNDS; r++) begin : gen_round
    hg_aes_round #(.BLOCKS(BLOCKS), .LAST(r == ROUNDS)) u_round (
      .clk_i, .state_i(state[r-1]), .key_i(round_keys_i[r]), .state_o(state[r])
    );
  end
  assign state_o = state[ROUNDS];
endmodule
