// One full adder and nothing else: the least a pipeline stage of the deepest compute unit must do (thesis, 4.2.5).
module oc_full_adder (
  input  logic a_i,
  input  logic b_i,
  input  logic carry_i,
  output logic sum_o,
  output logic carry_o
);
  assign {carry_o, sum_o} = {1'b0, a_i} + {1'b0, b_i} + {1'b0, carry_i};
endmodule
