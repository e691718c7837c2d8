// The host's items as DMA brings them, in order: one every `period_i` / 64 clocks and at most one a clock (12 bytes at PCIe
// Gen3 x8's 7 GB/s, or 35 bytes a clock at 200 MHz, would be 22), and behind an item that asks for it a wait until the chip
// is done, and `sync_i` clocks for the host to see it.
module dma_link #(
  parameter int unsigned WIDTH = 98
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic [15:0]      period_i,
  input  logic [15:0]      sync_i,
  // {wait, item}
  input  logic             valid_i,
  output logic             ready_o,
  input  logic [WIDTH:0]   item_i,
  output logic             valid_o,
  input  logic             ready_i,
  output logic [WIDTH-1:0] item_o,
  input  logic [31:0]      done_i,
  // The host waits for the chip.
  output logic             waits_o
);
  // Clocks / 64 that were earned; what was earned while there was nothing to send stays below an item and a clock.
  logic [16:0] earned_q, earned;
  logic [31:0] expected_q;
  logic [15:0] slept_q;
  logic there;

  assign earned  = earned_q >= 17'(period_i) ? 17'(period_i) + 17'd63 : earned_q + 17'd64;
  assign valid_o = valid_i && !waits_o && earned >= 17'(period_i);
  assign ready_o = valid_o && ready_i;
  assign item_o  = item_i[WIDTH-1:0];
  assign there   = waits_o && done_i == expected_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      earned_q   <= '0;
      expected_q <= '0;
      slept_q    <= '0;
      waits_o    <= 1'b0;
    end else begin
      earned_q <= ready_o ? earned - 17'(period_i) : earned;
      if (ready_o && item_i[WIDTH]) begin
        waits_o    <= 1'b1;
        expected_q <= expected_q + 1'b1;
        slept_q    <= '0;
      end else if (there) begin
        waits_o <= slept_q < sync_i;
        slept_q <= slept_q + 1'b1;
      end
    end
  end
endmodule
