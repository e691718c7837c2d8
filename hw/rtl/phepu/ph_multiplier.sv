// A product a clock, three clocks later. Nothing moves behind a clock without one.
//
// In: a, b of WIDTH bits where valid. Out: a b, all 2 WIDTH bits.
//
// Limbs of 29 bits: the products of a column, 16 at most, add up in 62 bits, so a column is one tree of adders (and 64-bit
// arithmetic in a simulator). A column reaches into two others at most: every third lies in one number, and the product is the sum
// of three numbers.
//
// Source: the 256-bit multipliers of PH-EPU 2023, Fig. 15.4.3; how they are made is ours.
module ph_multiplier #(
  parameter int unsigned WIDTH = 256 // at most 464
) (
  input  logic               clk_i,
  input  logic               rst_ni,
  input  logic               valid_i,
  input  logic [WIDTH-1:0]   a_i,
  input  logic [WIDTH-1:0]   b_i,
  output logic               valid_o,
  output logic [2*WIDTH-1:0] product_o
);
  localparam int unsigned LIMB    = 29;
  localparam int unsigned LIMBS   = (WIDTH + LIMB - 1) / LIMB;
  localparam int unsigned COLUMNS = 2 * LIMBS - 1;
  localparam int unsigned COLUMN  = 62;
  localparam int unsigned SUM     = LIMB * (COLUMNS + 2); // more than every product and every column

  logic valid1_q, valid2_q;
  logic [LIMB*LIMBS-1:0] a_q, b_q;
  logic [COLUMN-1:0] column_q[COLUMNS];

  // What is wide is worked out only behind a valid bit, which is what a simulator's time hangs on.
  always_ff @(posedge clk_i) begin
    if (valid_i) begin
      a_q <= (LIMB * LIMBS)'(a_i);
      b_q <= (LIMB * LIMBS)'(b_i);
    end
    if (valid2_q) begin
      automatic logic [2:0][SUM-1:0] part = '0;
      for (int unsigned c = 0; c < COLUMNS; c++) part[c%3][LIMB*c+:COLUMN] = column_q[c];
      product_o <= part[0][2*WIDTH-1:0] + part[1][2*WIDTH-1:0] + part[2][2*WIDTH-1:0];
    end
  end

  for (genvar c = 0; c < COLUMNS; c++) begin : gen_column
    localparam int unsigned FIRST = (c < LIMBS) ? 0 : c - LIMBS + 1;
    localparam int unsigned LAST  = (c < LIMBS) ? c : LIMBS - 1;
    always_ff @(posedge clk_i) begin
      if (valid1_q) begin
        automatic logic [COLUMN-1:0] total = '0;
        for (int unsigned i = FIRST; i <= LAST; i++) begin
          total += COLUMN'(a_q[LIMB*i+:LIMB]) * COLUMN'(b_q[LIMB*(c-i)+:LIMB]);
        end
        column_q[c] <= total;
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid1_q <= 1'b0;
      valid2_q <= 1'b0;
      valid_o  <= 1'b0;
    end else begin
      valid1_q <= valid_i;
      valid2_q <= valid1_q;
      valid_o  <= valid2_q;
    end
  end
endmodule
