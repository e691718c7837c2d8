// Product of two words, its low OUT bits, with at most BITS full adders in a row between two registers.
//
// Rows of partial products are added in carry-save form, BITS rows a stage, and the two words that are left by an
// oc_adder (thesis, Figure 4-6, for BITS = 1). One product enters every clock and leaves STAGES clocks later.
module oc_multiplier #(
  parameter int unsigned A    = 64,
  parameter int unsigned B    = 64,
  parameter int unsigned OUT  = A + B,
  parameter int unsigned BITS = 8,
  localparam int unsigned ROW_STAGES = (B + BITS - 1) / BITS,
  localparam int unsigned STAGES = ROW_STAGES + (OUT + BITS - 1) / BITS
) (
  input  logic           clk_i,
  input  logic [A-1:0]   a_i,
  input  logic [B-1:0]   b_i,
  output logic [OUT-1:0] product_o
);
  // Between stages: the multiplicand, what is left of the multiplier, and the sum in two words.
  logic [ROW_STAGES:0][A-1:0]   a_q;
  logic [ROW_STAGES:0][B-1:0]   b_q;
  logic [ROW_STAGES:0][OUT-1:0] sum_q, carry_q;
  assign a_q[0]     = a_i;
  assign b_q[0]     = b_i;
  assign sum_q[0]   = '0;
  assign carry_q[0] = '0;
  for (genvar s = 0; s < ROW_STAGES; s++) begin : gen_rows
    localparam int unsigned FIRST = s * BITS;
    localparam int unsigned ROWS = (FIRST + BITS > B) ? B - FIRST : BITS;
    logic [ROWS:0][OUT-1:0] sum, carry;
    assign sum[0]   = sum_q[s];
    assign carry[0] = carry_q[s];
    for (genvar r = 0; r < ROWS; r++) begin : gen_row
      logic [OUT-1:0] row, majority;
      assign row      = b_q[s][r] ? OUT'(a_q[s]) << (FIRST + r) : '0;
      assign sum[r+1] = sum[r] ^ carry[r] ^ row;
      assign majority = (sum[r] & carry[r]) | (sum[r] & row) | (carry[r] & row);
      assign carry[r+1] = majority << 1;
    end
    always_ff @(posedge clk_i) begin
      a_q[s+1]     <= a_q[s];
      b_q[s+1]     <= b_q[s] >> ROWS;
      sum_q[s+1]   <= sum[ROWS];
      carry_q[s+1] <= carry[ROWS];
    end
  end
  oc_adder #(.WIDTH(OUT), .BITS(BITS)) u_final (
    .clk_i, .a_i(sum_q[ROW_STAGES]), .b_i(carry_q[ROW_STAGES]), .carry_i(1'b0), .sum_o(product_o), .carry_o()
  );
endmodule
