// The accumulator: sums products modulo n, one a clock, a run at a time (thesis, sections 4.2.2 and 4.2.3).
//
// In: product below n; where `refresh_i`, the run starts from c (below n) and not from the sum so far; where `last_i`,
// the run ends. Out: `valid_o` and the sum below n, add_latency(BITS) clocks after the last product.
//
// With BITS = 0 it is the thesis's: sum, compare and subtract in one clock. That loop can't be cut by registers, so
// with BITS > 0 the sum is not reduced while it grows: each chunk of BITS adds to itself and hands its carry on a clock
// later, GUARD bits hold what is over n, and when a run ends they are taken off by GUARD conditional subtractions.
// A run then has at most 2^GUARD - 1 products.
module oc_mod_acc
  import oc_pkg::*;
#(
  parameter int unsigned BITS = 0
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic        valid_i,
  input  logic        refresh_i,
  input  logic        last_i,
  input  logic [63:0] product_i,
  input  logic [63:0] c_i,
  input  logic [64:0] n_i,
  output logic        valid_o,
  output logic [63:0] sum_o
);
  if (BITS == 0) begin : gen_one
    // Both sums at once, the one less n by a row of full adders before its adder: the clock is as short as one
    // addition, not two.
    logic [64:0] sum;
    logic [65:0] product, base, minus, less;
    assign product = {2'b0, product_i};
    assign base    = {2'b0, refresh_i ? c_i : sum_o};
    assign minus   = ~{1'b0, n_i};
    assign sum     = product[64:0] + base[64:0];
    assign less    = (product ^ base ^ minus) +
      {((product[64:0] & base[64:0]) | (product[64:0] & minus[64:0]) | (base[64:0] & minus[64:0])), 1'b1};
    always_ff @(posedge clk_i) begin
      if (valid_i) sum_o <= less[65] ? sum[63:0] : less[63:0];
    end
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) valid_o <= 1'b0;
      else valid_o <= valid_i && last_i;
    end
  end else begin : gen_deep
    localparam int unsigned WIDTH = 64 + GUARD;
    localparam int unsigned STAGES = stages(WIDTH, BITS);
    logic [WIDTH-1:0] product, c;
    assign product = WIDTH'(product_i);
    assign c       = WIDTH'(c_i);

    logic [STAGES:0] carry_q, valid_q, refresh_q;
    logic [GUARD:0][WIDTH-1:0] sum;
    assign carry_q[0]   = 1'b0;
    assign valid_q[0]   = valid_i;
    assign refresh_q[0] = refresh_i;
    for (genvar g = 0; g < STAGES; g++) begin : gen_chunk
      localparam int unsigned LOW = g * BITS;
      localparam int unsigned W = (LOW + BITS > WIDTH) ? WIDTH - LOW : BITS;
      logic [W-1:0] product_g, c_g, sum_q;
      oc_pipe #(.WIDTH(W), .CYCLES(g)) u_p (.clk_i, .d_i(product[LOW+:W]), .q_o(product_g));
      oc_pipe #(.WIDTH(W), .CYCLES(g)) u_c (.clk_i, .d_i(c[LOW+:W]), .q_o(c_g));
      always_ff @(posedge clk_i) begin
        if (valid_q[g]) begin
          {carry_q[g+1], sum_q} <= {1'b0, refresh_q[g] ? c_g : sum_q} + {1'b0, product_g} + (W + 1)'(carry_q[g]);
        end else begin
          carry_q[g+1] <= 1'b0;
        end
        refresh_q[g+1] <= refresh_q[g];
      end
      always_ff @(posedge clk_i or negedge rst_ni) begin
        if (!rst_ni) valid_q[g+1] <= 1'b0;
        else valid_q[g+1] <= valid_q[g];
      end
      oc_pipe #(.WIDTH(W), .CYCLES(STAGES - 1 - g)) u_s (.clk_i, .d_i(sum_q), .q_o(sum[0][LOW+:W]));
    end

    logic [GUARD:0][64:0] n;
    oc_pipe #(.WIDTH(65), .CYCLES(STAGES)) u_n0 (.clk_i, .d_i(n_i), .q_o(n[0]));
    for (genvar s = 0; s < GUARD; s++) begin : gen_subtract
      logic [WIDTH-1:0] less, same;
      logic above;
      oc_adder #(.WIDTH(WIDTH), .BITS(BITS)) u_less (
        .clk_i, .a_i(sum[s]), .b_i(~(WIDTH'(n[s]) << (GUARD - 1 - s))), .carry_i(1'b1), .sum_o(less), .carry_o(above)
      );
      oc_pipe #(.WIDTH(WIDTH), .CYCLES(STAGES)) u_same (.clk_i, .d_i(sum[s]), .q_o(same));
      oc_pipe #(.WIDTH(65), .CYCLES(STAGES)) u_n (.clk_i, .d_i(n[s]), .q_o(n[s+1]));
      assign sum[s+1] = above ? less : same;
    end
    assign sum_o = sum[GUARD][63:0];
    logic [(1 + GUARD) * STAGES:0] last_q;
    assign last_q[0] = valid_i && last_i;
    for (genvar i = 0; i < (1 + GUARD) * STAGES; i++) begin : gen_last
      always_ff @(posedge clk_i or negedge rst_ni) begin
        if (!rst_ni) last_q[i+1] <= 1'b0;
        else last_q[i+1] <= last_q[i];
      end
    end
    assign valid_o = last_q[(1 + GUARD) * STAGES];
  end
endmodule
