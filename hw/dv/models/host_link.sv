// The host that writes registers over PCIe (SIFO 2019, section 3.4.1): a write every `period_i` / 64 clocks (50 ns are 640
// at 200 MHz), and after a write that asks for it a wait until the chip is done, and `sync_i` clocks for the host to see it.
module host_link (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic [15:0] period_i,
  input  logic [15:0] sync_i,
  // {wait, address, data}
  input  logic        valid_i,
  output logic        ready_o,
  input  logic [36:0] item_i,
  output logic        valid_o,
  input  logic        ready_i,
  output logic [3:0]  address_o,
  output logic [31:0] data_o,
  input  logic [31:0] done_i,
  // The host waits for the chip.
  output logic        waits_o
);
  logic [16:0] credit_q, credit;
  logic [31:0] expected_q;
  logic [15:0] slept_q;
  logic waiting_q, sent, seen;

  assign credit    = credit_q >= 17'(period_i) ? 17'(period_i) + 17'd63 : credit_q + 17'd64;
  assign valid_o   = valid_i && !waiting_q && credit >= 17'(period_i);
  assign ready_o   = valid_o && ready_i;
  assign sent      = ready_o;
  assign address_o = item_i[35:32];
  assign data_o    = item_i[31:0];
  assign seen      = waiting_q && done_i == expected_q && slept_q >= sync_i;
  assign waits_o   = waiting_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      credit_q   <= '0;
      expected_q <= '0;
      slept_q    <= '0;
      waiting_q  <= 1'b0;
    end else begin
      credit_q <= sent ? credit - 17'(period_i) : credit;
      if (sent && item_i[36]) begin
        waiting_q  <= 1'b1;
        expected_q <= expected_q + 1'b1;
        slept_q    <= '0;
      end else if (seen) begin
        waiting_q <= 1'b0;
      end else if (waiting_q && done_i == expected_q) begin
        slept_q <= slept_q + 1'b1;
      end
    end
  end
endmodule
