// A delay of CYCLES clocks, two or more, for a wide word that travels beside a pipeline: a memory that is written and read
// round and round, where oc_pipe would move every bit at every clock.
module hg_delay #(
  parameter int unsigned WIDTH  = 1,
  parameter int unsigned CYCLES = 2
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic [WIDTH-1:0] d_i,
  output logic [WIDTH-1:0] q_o
);
  localparam int unsigned INDEX = $clog2(CYCLES);
  logic [WIDTH-1:0] memory_q[CYCLES];
  logic [INDEX-1:0] write_q, read_q; // the oldest word lies behind the newest: never both on one place

  always_ff @(posedge clk_i) begin
    memory_q[write_q] <= d_i;
    q_o               <= memory_q[read_q];
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      write_q <= '0;
      read_q  <= INDEX'(1);
    end else begin
      write_q <= read_q;
      read_q  <= (read_q == INDEX'(CYCLES - 1)) ? '0 : read_q + 1'b1;
    end
  end
endmodule
