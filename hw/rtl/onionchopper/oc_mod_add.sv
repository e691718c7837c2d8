// r = a + b mod n for a, b below n (thesis, section 4.2.2, Figure 4-4).
module oc_mod_add #(
  parameter int unsigned WORD = 64
) (
  input  logic [WORD-1:0] a_i,
  input  logic [WORD-1:0] b_i,
  input  logic [64:0]     n_i,
  output logic [WORD-1:0] r_o
);
  logic [65:0] sum, less;
  assign sum  = 66'(a_i) + 66'(b_i);
  assign less = sum - 66'(n_i);
  assign r_o  = less[65] ? sum[WORD-1:0] : less[WORD-1:0];
endmodule
