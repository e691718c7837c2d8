// Every proof begins with one clock of reset, and has none behind it.
module f_reset (
  input logic clk_i,
  input logic rst_ni
);
  logic begun_q;
  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begun_q <= 1'b1;
  always_comb m_reset : assume (rst_ni == begun_q);
endmodule
