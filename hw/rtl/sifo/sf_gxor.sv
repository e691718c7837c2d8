// The paper's gXOR: free XOR, so no table, no clock and no R (Kolesnikov and Schneider 2008; SIFO 2019, section 3.1.1).
module sf_gxor #(
  parameter int unsigned LABEL = 80
) (
  input  logic [LABEL-1:0] a_i,
  input  logic [LABEL-1:0] b_i,
  output logic [LABEL-1:0] label_o
);
  assign label_o = a_i ^ b_i;
endmodule
