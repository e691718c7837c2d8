// Sum of two words and a carry, modulo 2^WIDTH, with at most BITS full adders in a row between two registers.
//
// One sum enters every clock and leaves ceil(WIDTH / BITS) clocks later: chunk g of the operands waits g clocks for
// the carry of the chunk before it (thesis, Figure 4-5, for BITS = 1).
module oc_adder #(
  parameter int unsigned WIDTH = 64,
  parameter int unsigned BITS  = 8,
  localparam int unsigned STAGES = (WIDTH + BITS - 1) / BITS
) (
  input  logic             clk_i,
  input  logic [WIDTH-1:0] a_i,
  input  logic [WIDTH-1:0] b_i,
  input  logic             carry_i,
  output logic [WIDTH-1:0] sum_o,
  output logic             carry_o
);
  logic [STAGES:0] carry_q;
  assign carry_q[0] = carry_i;
  for (genvar g = 0; g < STAGES; g++) begin : gen_chunk
    localparam int unsigned LOW = g * BITS;
    localparam int unsigned W = (LOW + BITS > WIDTH) ? WIDTH - LOW : BITS;
    logic [W-1:0] a, b, sum_q;
    oc_pipe #(.WIDTH(W), .CYCLES(g)) u_a (.clk_i, .d_i(a_i[LOW+:W]), .q_o(a));
    oc_pipe #(.WIDTH(W), .CYCLES(g)) u_b (.clk_i, .d_i(b_i[LOW+:W]), .q_o(b));
    always_ff @(posedge clk_i) {carry_q[g+1], sum_q} <= {1'b0, a} + {1'b0, b} + (W + 1)'(carry_q[g]);
    oc_pipe #(.WIDTH(W), .CYCLES(STAGES - 1 - g)) u_sum (.clk_i, .d_i(sum_q), .q_o(sum_o[LOW+:W]));
  end
  assign carry_o = carry_q[STAGES];
endmodule
