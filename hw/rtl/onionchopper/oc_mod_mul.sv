// r = a * b mod n by Barrett's reduction with k = 128 (thesis, section 4.2.1): one product a clock.
//
// In: a, b below n; n from 2 to 2^64; m = floor(2^128 / n). Out: r below n, mul_latency(BITS) clocks later.
//
// p = a * b is below n^2, so q = floor(p * m / 2^128) is below n and one short of p / n at most: 64 bits of q and 66 of
// q * n are enough, where the thesis keeps 128 of both.
module oc_mod_mul
  import oc_pkg::*;
#(
  parameter int unsigned BITS = 0
) (
  input  logic        clk_i,
  input  logic [63:0] a_i,
  input  logic [63:0] b_i,
  input  modulus_t    modulus_i,
  output logic [63:0] r_o
);
  if (BITS == 0) begin : gen_six
    logic [127:0] p1_q, ll_q, lh_q, hl_q, hh_q;
    logic [65:0] p2_q, p3_q, p4_q, qn_q;
    logic [63:0] q_q;
    modulus_t modulus1_q;
    logic [64:0] n2_q, n3_q, n4_q;
    logic [191:0] pm;
    logic [65:0] r, not_qn, not_n, less;

    assign pm      = {hh_q[63:0], ll_q} + {lh_q, 64'b0} + {hl_q, 64'b0};
    // p - q n and p - q n - n at once: a row of full adders and one addition, not two.
    assign r       = p4_q - qn_q;
    assign not_qn  = ~qn_q;
    assign not_n   = ~{1'b0, n4_q};
    assign less    = (p4_q ^ not_qn ^ not_n) +
      {((p4_q[64:0] & not_qn[64:0]) | (p4_q[64:0] & not_n[64:0]) | (not_qn[64:0] & not_n[64:0])), 1'b1} + 66'd1;

    always_ff @(posedge clk_i) begin
      p1_q       <= {64'b0, a_i} * {64'b0, b_i};
      modulus1_q <= modulus_i;
      ll_q       <= {64'b0, p1_q[63:0]} * {64'b0, modulus1_q.m[63:0]};
      lh_q       <= {64'b0, p1_q[63:0]} * {64'b0, modulus1_q.m[127:64]};
      hl_q       <= {64'b0, p1_q[127:64]} * {64'b0, modulus1_q.m[63:0]};
      hh_q       <= {64'b0, p1_q[127:64]} * {64'b0, modulus1_q.m[127:64]};
      p2_q       <= p1_q[65:0];
      n2_q       <= modulus1_q.n;
      q_q        <= pm[191:128];
      p3_q       <= p2_q;
      n3_q       <= n2_q;
      qn_q       <= {2'b0, q_q} * {1'b0, n3_q};
      p4_q       <= p3_q;
      n4_q       <= n3_q;
      r_o        <= less[65] ? r[63:0] : less[63:0];
    end
  end else begin : gen_deep
    localparam int unsigned MUL = stages(64, BITS) + stages(128, BITS);
    localparam int unsigned SUM = 1 + stages(128, BITS);
    localparam int unsigned LOW = stages(64, BITS) + stages(66, BITS);
    localparam int unsigned SUB = stages(66, BITS);

    logic [127:0] p, m, ll, lh, hl, hh, x_q, y_q;
    logic [191:64] pm;
    logic [64:0] n3, n5;
    logic [63:0] q;
    logic [65:0] p4, qn, r, r6, less;
    logic below;

    oc_multiplier #(.A(64), .B(64), .BITS(BITS)) u_p (.clk_i, .a_i, .b_i, .product_o(p));
    oc_pipe #(.WIDTH(128), .CYCLES(MUL)) u_m (.clk_i, .d_i(modulus_i.m), .q_o(m));
    oc_multiplier #(.A(64), .B(64), .BITS(BITS)) u_ll (.clk_i, .a_i(p[63:0]), .b_i(m[63:0]), .product_o(ll));
    oc_multiplier #(.A(64), .B(64), .BITS(BITS)) u_lh (.clk_i, .a_i(p[63:0]), .b_i(m[127:64]), .product_o(lh));
    oc_multiplier #(.A(64), .B(64), .BITS(BITS)) u_hl (.clk_i, .a_i(p[127:64]), .b_i(m[63:0]), .product_o(hl));
    oc_multiplier #(.A(64), .B(64), .BITS(BITS)) u_hh (.clk_i, .a_i(p[127:64]), .b_i(m[127:64]), .product_o(hh));
    // Three words to two, then one.
    logic [127:0] top, majority;
    assign top      = {hh[63:0], ll[127:64]};
    assign majority = (top & lh) | (top & hl) | (lh & hl);
    always_ff @(posedge clk_i) begin
      x_q <= top ^ lh ^ hl;
      y_q <= majority << 1;
    end
    oc_adder #(.WIDTH(128), .BITS(BITS)) u_pm (
      .clk_i, .a_i(x_q), .b_i(y_q), .carry_i(1'b0), .sum_o(pm), .carry_o()
    );
    assign q = pm[191:128];
    oc_pipe #(.WIDTH(65), .CYCLES(2 * MUL + SUM)) u_n3 (.clk_i, .d_i(modulus_i.n), .q_o(n3));
    oc_multiplier #(.A(65), .B(64), .OUT(66), .BITS(BITS)) u_qn (.clk_i, .a_i(n3), .b_i(q), .product_o(qn));
    oc_pipe #(.WIDTH(66), .CYCLES(MUL + SUM + LOW)) u_p4 (.clk_i, .d_i(p[65:0]), .q_o(p4));
    oc_adder #(.WIDTH(66), .BITS(BITS)) u_r (
      .clk_i, .a_i(p4), .b_i(~qn), .carry_i(1'b1), .sum_o(r), .carry_o()
    );
    oc_pipe #(.WIDTH(65), .CYCLES(LOW + SUB)) u_n5 (.clk_i, .d_i(n3), .q_o(n5));
    oc_adder #(.WIDTH(66), .BITS(BITS)) u_less (
      .clk_i, .a_i(r), .b_i(~{1'b0, n5}), .carry_i(1'b1), .sum_o(less), .carry_o(below)
    );
    oc_pipe #(.WIDTH(66), .CYCLES(SUB)) u_r6 (.clk_i, .d_i(r), .q_o(r6));
    assign r_o = below ? less[63:0] : r6[63:0]; // no borrow: r was n or more
  end
endmodule
