// A compute unit for lookups by learning with errors: 32-bit words modulo 2^32, where reduction is nothing.
//
// The same runs as oc_compute_unit, two clocks from the last product to the sum. A variant of our own.
module oc_compute_unit_lwe (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic        valid_i,
  input  logic        refresh_i,
  input  logic        last_i,
  input  logic [31:0] a_i,
  input  logic [31:0] b_i,
  input  logic [31:0] c_i,
  output logic        valid_o,
  output logic [31:0] sum_o
);
  logic [31:0] product_q, c_q;
  logic valid_q, refresh_q, last_q;
  always_ff @(posedge clk_i) begin
    product_q <= a_i * b_i;
    c_q       <= c_i;
    refresh_q <= refresh_i;
    last_q    <= last_i;
    if (valid_q) sum_o <= product_q + (refresh_q ? c_q : sum_o);
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {valid_q, valid_o} <= '0;
    else {valid_q, valid_o} <= {valid_i, valid_q && last_q};
  end
endmodule
