// One bit of a comparator, as in the thesis's Figure 4-7: what the bits so far say, unless this bit says otherwise.
module oc_comparator (
  input  logic a_i,
  input  logic b_i,
  input  logic above_i,
  output logic above_o
);
  assign above_o = (a_i == b_i) ? above_i : a_i;
endmodule
