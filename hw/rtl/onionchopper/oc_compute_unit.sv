// OnionChopper's compute unit: one modular multiply-accumulate a clock (thesis, section 4.2, Figure 4-2).
//
// In, each clock: a, b below n, the modulus, `refresh_i` at the first product of a run, with c, and `last_i` at its last.
// Out: the run's sum, latency(BITS) clocks after its last product. `unreduced_o` rises where an operand was not below n.
// BITS: full adders in a row between two registers; 0 is the thesis's six stages.
module oc_compute_unit
  import oc_pkg::*;
#(
  parameter int unsigned BITS = 0
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic        valid_i,
  input  logic        refresh_i,
  input  logic        last_i,
  input  logic [63:0] a_i,
  input  logic [63:0] b_i,
  input  logic [63:0] c_i,
  input  modulus_t    modulus_i,
  output logic        valid_o,
  output logic [63:0] sum_o,
  output logic        unreduced_o
);
  localparam int unsigned MUL = mul_latency(BITS);
  logic [63:0] product, c;
  logic [64:0] n;
  logic [2:0] flags;
  logic [MUL:0][2:0] flags_q;

  oc_mod_mul #(.BITS(BITS)) u_mul (.clk_i, .a_i, .b_i, .modulus_i, .r_o(product));
  oc_pipe #(.WIDTH(64), .CYCLES(MUL)) u_c (.clk_i, .d_i(c_i), .q_o(c));
  oc_pipe #(.WIDTH(65), .CYCLES(MUL)) u_n (.clk_i, .d_i(modulus_i.n), .q_o(n));
  assign flags_q[0] = valid_i ? {1'b1, refresh_i, last_i} : 3'b0;
  for (genvar i = 0; i < MUL; i++) begin : gen_flags
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) flags_q[i+1] <= '0;
      else flags_q[i+1] <= flags_q[i];
    end
  end
  assign flags = flags_q[MUL];
  oc_mod_acc #(.BITS(BITS)) u_acc (
    .clk_i, .rst_ni, .valid_i(flags[2]), .refresh_i(flags[1]), .last_i(flags[0]), .product_i(product), .c_i(c), .n_i(n),
    .valid_o, .sum_o
  );

  // An operand is below n where subtracting n borrows.
  localparam int unsigned CHECK = (BITS == 0) ? 65 : BITS;
  localparam int unsigned CHECK_STAGES = stages(65, CHECK);
  logic [2:0] above;
  logic [2:0][63:0] operands;
  logic [CHECK_STAGES:0][2:0] check_q;
  assign operands   = {c_i, b_i, a_i};
  assign check_q[0] = {valid_i && refresh_i, valid_i, valid_i};
  for (genvar i = 0; i < 3; i++) begin : gen_check
    oc_adder #(.WIDTH(65), .BITS(CHECK)) u_check (
      .clk_i, .a_i({1'b0, operands[i]}), .b_i(~modulus_i.n), .carry_i(1'b1), .sum_o(), .carry_o(above[i])
    );
  end
  for (genvar i = 0; i < CHECK_STAGES; i++) begin : gen_check_valid
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) check_q[i+1] <= '0;
      else check_q[i+1] <= check_q[i];
    end
  end
  assign unreduced_o = |(above & check_q[CHECK_STAGES]);
endmodule
