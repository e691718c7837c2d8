// AES-128's key expansion, a round key a clock (FIPS 197, section 5.2). A key that is started is expanded after 11 clocks,
// and its round keys stay until the next is started; a start in the middle begins anew.
module hg_aes_keys
  import hg_pkg::*;
(
  input  logic               clk_i,
  input  logic               rst_ni,
  input  logic               start_i,
  input  logic [BLOCK-1:0]   key_i,        // bits 7:0 are byte 0
  output logic               done_o,       // the round keys are those of the last key
  output planes_t [ROUNDS:0] round_keys_o  // in bit planes, the first in the low bits
);
  logic [3:0] left_q;    // round keys that are still to come
  logic [7:0] constant_q;
  planes_t last, next;
  logic [7:0][3:0] turned, substituted; // the last column, by rows
  assign last = round_keys_o[ROUNDS];
  always_comb begin
    for (int unsigned j = 0; j < 8; j++) begin
      turned[j] = {last[j][3], last[j][15], last[j][11], last[j][7]};
    end
  end
  hg_aes_sbox #(.PLACES(4)) u_sbox (.d_i(turned), .q_o(substituted));

  // Each column is the one before plus that of the last key; before the first stands the last, substituted.
  always_comb begin
    for (int unsigned j = 0; j < 8; j++) begin
      for (int unsigned r = 0; r < 4; r++) begin
        next[j][4*r] = last[j][4*r] ^ substituted[j][r] ^ (r == 0 && constant_q[j]);
        for (int unsigned c = 1; c < 4; c++) next[j][4*r+c] = last[j][4*r+c] ^ next[j][4*r+c-1];
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      round_keys_o <= {to_planes(key_i), round_keys_o[ROUNDS:1]};
      constant_q   <= 8'h01;
    end else if (left_q != '0) begin
      round_keys_o <= {next, round_keys_o[ROUNDS:1]};
      constant_q   <= {constant_q[6:0], 1'b0} ^ (constant_q[7] ? 8'h1b : 8'h00);
    end
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      left_q <= '0;
      done_o <= 1'b0;
    end else if (start_i) begin
      left_q <= 4'(ROUNDS);
      done_o <= 1'b0;
    end else if (left_q != '0) begin
      left_q <= left_q - 1'b1;
      done_o <= left_q == 4'd1;
    end
  end
endmodule
