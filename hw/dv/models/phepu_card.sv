// The card: chips behind a host's PCIe and a DDR memory, which all of them share, and a link each way for each chip
// (PH-EPU 2023, Fig. 15.4.5 and 15.4.7). What is simulated.
//
// A word goes over PCIe, is written to DDR once, read once for each chip of its mask, and goes over that chip's link, in order
// for each chip; what a chip sends goes the same way back. Only bandwidths are modelled, and queues between them.
module phepu_card
  import ph_pkg::*;
#(
  parameter int unsigned CHIPS        = 1,
  parameter int unsigned ELEMENTS     = 16,
  parameter int unsigned INPUTS       = 1 << 16, // words of each chip's buffers
  parameter int unsigned WEIGHTS      = 1 << 14,
  parameter int unsigned OUTPUTS      = 512,
  parameter int unsigned INSTRUCTIONS = 512,
  parameter int unsigned DDR          = 1 << 14, // words in DDR for each chip, and as many that come back
  localparam int unsigned CHIP        = (CHIPS > 1) ? $clog2(CHIPS) : 1
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  // Bits a clock, 0: any. PCIe's are for both directions together, a link's for each.
  input  logic [15:0]      pcie_rate_i,
  input  logic [15:0]      ddr_rate_i,
  input  logic [15:0]      link_rate_i,
  input  logic [31:0]      watchdog_i,
  // Words for the chips of a mask.
  input  logic             in_valid_i,
  output logic             in_ready_o,
  input  logic [CHIPS-1:0] in_chips_i,
  input  logic [DIGIT-1:0] in_word_i,
  output logic             out_valid_o,
  input  logic             out_ready_i,
  output logic [CHIP-1:0]  out_chip_o,
  output logic [DIGIT-1:0] out_word_o,
  output logic             idle_o,
  // In this clock: PCIe, DDR moved something; words over the links to the chips, from them.
  output logic             pcie_o,
  output logic             ddr_o,
  output logic [7:0]       links_in_o,
  output logic [7:0]       links_out_o,
  // What this build has, for its host.
  output logic [31:0]      chips_o,
  output logic [31:0]      elements_o,
  output logic [31:0]      inputs_o,
  output logic [31:0]      weights_o,
  output logic [31:0]      outputs_o,
  output logic [31:0]      instructions_o
);
  logic host_valid, up_valid, up_ready, back_valid, back_ready, down_valid, down_ready;
  logic [CHIPS-1:0] host_chips, write_chips, queue_ready, chip_idle;
  logic [DIGIT-1:0] host_word, write_word;
  logic [1:0] pcie_request, pcie_grant;
  logic [CHIPS+2:0] ddr_request, ddr_grant;

  // Over PCIe, and into DDR.
  bc_fifo #(.WIDTH(CHIPS + DIGIT), .DEPTH(2)) u_host (
    .clk_i, .rst_ni, .valid_i(in_valid_i), .ready_o(in_ready_o), .data_i({in_chips_i, in_word_i}), .valid_o(host_valid),
    .ready_i(pcie_grant[0]), .data_o({host_chips, host_word}), .count_o()
  );
  assign pcie_request = {down_valid && down_ready, host_valid && up_ready};
  bandwidth_model #(.WAYS(2)) u_pcie (.clk_i, .rst_ni, .rate_i(pcie_rate_i), .request_i(pcie_request), .grant_o(pcie_grant));
  bc_fifo #(.WIDTH(CHIPS + DIGIT), .DEPTH(8)) u_up (
    .clk_i, .rst_ni, .valid_i(pcie_grant[0]), .ready_o(up_ready), .data_i({host_chips, host_word}), .valid_o(up_valid),
    .ready_i(ddr_grant[0]), .data_o({write_chips, write_word}), .count_o()
  );
  bandwidth_model #(.WAYS(CHIPS + 3)) u_ddr (
    .clk_i, .rst_ni, .rate_i(ddr_rate_i), .request_i(ddr_request), .grant_o(ddr_grant)
  );
  assign ddr_request[0] = up_valid && (write_chips & ~queue_ready) == '0;

  // Each chip: its words in DDR, read ahead a little; its link; what it sends.
  logic [CHIPS-1:0] sent_valid, sent_ready, in_link, out_link;
  logic [CHIPS-1:0][CHIP+DIGIT-1:0] sent;
  for (genvar c = 0; c < CHIPS; c++) begin : gen_chip
    logic queue_valid, ahead_valid, ahead_ready, chip_ready, idle, out_valid, out_ready;
    logic [DIGIT-1:0] queue_word, ahead_word, out_word;
    bc_fifo #(.WIDTH(DIGIT), .DEPTH(DDR)) u_queue (
      .clk_i, .rst_ni, .valid_i(ddr_grant[0] && write_chips[c]), .ready_o(queue_ready[c]), .data_i(write_word),
      .valid_o(queue_valid), .ready_i(ddr_grant[1+c]), .data_o(queue_word), .count_o()
    );
    assign ddr_request[1+c] = queue_valid && ahead_ready;
    bc_fifo #(.WIDTH(DIGIT), .DEPTH(4)) u_ahead (
      .clk_i, .rst_ni, .valid_i(ddr_grant[1+c]), .ready_o(ahead_ready), .data_i(queue_word), .valid_o(ahead_valid),
      .ready_i(in_link[c]), .data_o(ahead_word), .count_o()
    );
    bandwidth_model u_in (
      .clk_i, .rst_ni, .rate_i(link_rate_i), .request_i(ahead_valid && chip_ready), .grant_o(in_link[c])
    );
    phepu #(
      .ELEMENTS(ELEMENTS), .INPUTS(INPUTS), .WEIGHTS(WEIGHTS), .OUTPUTS(OUTPUTS), .INSTRUCTIONS(INSTRUCTIONS)
    ) u_chip (
      .clk_i, .rst_ni, .watchdog_i, .in_valid_i(in_link[c]), .in_ready_o(chip_ready), .in_word_i(ahead_word),
      .out_valid_o(out_valid), .out_ready_i(out_link[c]), .out_word_o(out_word), .idle_o(idle)
    );
    assign chip_idle[c] = idle && !queue_valid && !ahead_valid && !sent_valid[c];
    bandwidth_model u_out (
      .clk_i, .rst_ni, .rate_i(link_rate_i), .request_i(out_valid && out_ready), .grant_o(out_link[c])
    );
    bc_fifo #(.WIDTH(CHIP + DIGIT), .DEPTH(4)) u_sent (
      .clk_i, .rst_ni, .valid_i(out_link[c]), .ready_o(out_ready), .data_i({CHIP'(c), out_word}), .valid_o(sent_valid[c]),
      .ready_i(sent_ready[c]), .data_o(sent[c]), .count_o()
    );
  end

  // Through DDR, and over PCIe.
  logic merged_valid, read_ready;
  logic [CHIP+DIGIT-1:0] merged, stored, down;
  bc_arbiter #(.REQUESTS(CHIPS), .WIDTH(CHIP + DIGIT)) u_merge (
    .clk_i, .rst_ni, .valid_i(sent_valid), .ready_o(sent_ready), .data_i(sent), .valid_o(merged_valid),
    .ready_i(ddr_grant[CHIPS+1]), .data_o(merged), .grant_o()
  );
  assign ddr_request[CHIPS+1] = merged_valid && back_ready;
  bc_fifo #(.WIDTH(CHIP + DIGIT), .DEPTH(DDR)) u_back (
    .clk_i, .rst_ni, .valid_i(ddr_grant[CHIPS+1]), .ready_o(back_ready), .data_i(merged), .valid_o(back_valid),
    .ready_i(ddr_grant[CHIPS+2]), .data_o(stored), .count_o()
  );
  assign ddr_request[CHIPS+2] = back_valid && read_ready;
  bc_fifo #(.WIDTH(CHIP + DIGIT), .DEPTH(4)) u_down (
    .clk_i, .rst_ni, .valid_i(ddr_grant[CHIPS+2]), .ready_o(read_ready), .data_i(stored), .valid_o(down_valid),
    .ready_i(pcie_grant[1]), .data_o(down), .count_o()
  );
  bc_fifo #(.WIDTH(CHIP + DIGIT), .DEPTH(2)) u_out (
    .clk_i, .rst_ni, .valid_i(pcie_grant[1]), .ready_o(down_ready), .data_i(down), .valid_o(out_valid_o),
    .ready_i(out_ready_i), .data_o({out_chip_o, out_word_o}), .count_o()
  );

  assign idle_o = !host_valid && !up_valid && chip_idle == '1 && !back_valid && !down_valid && !out_valid_o;
  assign pcie_o = pcie_grant != '0;
  assign ddr_o  = ddr_grant != '0;
  always_comb begin
    links_in_o  = '0;
    links_out_o = '0;
    for (int unsigned c = 0; c < CHIPS; c++) begin
      links_in_o  += 8'(in_link[c]);
      links_out_o += 8'(out_link[c]);
    end
  end
  assign chips_o        = CHIPS;
  assign elements_o     = ELEMENTS;
  assign inputs_o       = INPUTS;
  assign weights_o      = WEIGHTS;
  assign outputs_o      = OUTPUTS;
  assign instructions_o = INSTRUCTIONS;
endmodule
