// Two flip-flops in a row: the shortest clock a library has at all, with no logic between registers.
module oc_registers (
  input  logic clk_i,
  input  logic d_i,
  output logic q_o
);
  logic between_q;
  always_ff @(posedge clk_i) {q_o, between_q} <= {between_q, d_i};
endmodule
