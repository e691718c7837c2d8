// A delay of CYCLES clocks for a word that travels beside a pipeline. CYCLES = 0 is a wire.
module oc_pipe #(
  parameter int unsigned WIDTH  = 1,
  parameter int unsigned CYCLES = 1
) (
  input  logic             clk_i,
  input  logic [WIDTH-1:0] d_i,
  output logic [WIDTH-1:0] q_o
);
  if (CYCLES == 0) begin : gen_wire
    assign q_o = d_i;
  end else begin : gen_delay
    logic [CYCLES-1:0][WIDTH-1:0] stages_q;
    always_ff @(posedge clk_i) begin
      stages_q[0] <= d_i;
      for (int unsigned i = 1; i < CYCLES; i++) stages_q[i] <= stages_q[i-1];
    end
    assign q_o = stages_q[CYCLES-1];
  end
endmodule
