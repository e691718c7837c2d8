// What today's overlay relies on: queues whose handshake is left out have room for what comes, and hold what is taken.
module hg_pipeline_assert (
  input logic       clk_i,
  input logic       rst_ni,
  input logic [3:0] pushes_i,
  input logic [3:0] room_i,
  input logic [1:0] pops_i,
  input logic [1:0] there_i
);
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      a_room : assert ((pushes_i & ~room_i) == '0);
      a_there : assert ((pops_i & ~there_i) == '0);
    end
  end
endmodule
