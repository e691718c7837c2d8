// SIFO's overlay with models of the host's link and of the DDR memory around it: what is simulated.
module sifo_board #(
  parameter int unsigned ANDS     = 15,
  parameter int unsigned XORS     = 15,
  parameter int unsigned LABEL    = 80,
  parameter int unsigned PLACES   = 1 << 16,
  parameter int unsigned WORDS    = 1 << 18,
  parameter int unsigned WATCHDOG = 1 << 20
) (
  input  logic               clk_i,
  input  logic               rst_ni,
  input  logic [15:0]        period_i,
  input  logic [15:0]        sync_i,
  input  logic [15:0]        latency_i,
  input  logic               link_valid_i,
  output logic               link_ready_o,
  input  logic [36:0]        link_item_i,
  output logic               table_valid_o,
  input  logic               table_ready_i,
  output logic [3*LABEL-1:0] table_o,
  // A label in or out while nothing runs; the place's last bit says which memory, as in an address.
  input  logic               poke_i,
  input  logic [20:0]        poke_address_i,
  input  logic [127:0]       poke_label_i,
  output logic [127:0]       peek_label_o,
  output logic               idle_o,
  output logic [1:0]         error_o,
  output logic [31:0]        done_o,
  output logic               gate_o,
  output logic [1:0]         access_o,
  output logic               waits_ddr_o,
  output logic               waits_cell_o,
  output logic               waits_host_o,
  // What this build has, for its host.
  output logic [31:0]        ands_o,
  output logic [31:0]        xors_o,
  output logic [31:0]        label_o,
  output logic [31:0]        places_o,
  output logic [31:0]        words_o,
  output logic [31:0]        table_bytes_o,
  output logic [31:0]        lanes_o
);
  localparam int unsigned INDEX = $clog2(WORDS);
  logic host_valid, host_ready, chip_idle;
  logic [3:0] host_address;
  logic [31:0] host_data;
  logic [1:0] ddr_valid, ddr_write, ddr_complete;
  logic [1:0][17:0] ddr_word;
  logic [1:0][INDEX-1:0] ddr_index;
  logic [1:0][3:0] ddr_mask;
  logic [1:0][511:0] ddr_data, ddr_read;
  logic [LABEL-1:0] ram_label;
  logic [127:0] ddr_label;
  host_link u_link (
    .clk_i, .rst_ni, .period_i, .sync_i, .valid_i(link_valid_i), .ready_o(link_ready_o), .item_i(link_item_i),
    .valid_o(host_valid), .ready_i(host_ready), .address_o(host_address), .data_o(host_data), .done_i(done_o),
    .waits_o(waits_host_o)
  );
  sifo #(.ANDS(ANDS), .XORS(XORS), .LABEL(LABEL), .PLACES(PLACES), .WATCHDOG(WATCHDOG)) u_chip (
    .clk_i, .rst_ni, .host_valid_i(host_valid), .host_ready_o(host_ready), .host_address_i(host_address),
    .host_data_i(host_data), .done_o, .idle_o(chip_idle), .error_o, .table_valid_o, .table_ready_i, .table_o,
    .ddr_valid_o(ddr_valid), .ddr_write_o(ddr_write), .ddr_word_o(ddr_word), .ddr_mask_o(ddr_mask), .ddr_data_o(ddr_data),
    .ddr_complete_i(ddr_complete), .ddr_data_i(ddr_read),
    .poke_i(poke_i && poke_address_i[0]), .poke_place_i(poke_address_i[$clog2(PLACES):1]),
    .poke_label_i(poke_label_i[LABEL-1:0]), .peek_label_o(ram_label), .gate_o, .access_o, .waits_ddr_o, .waits_cell_o
  );
  for (genvar p = 0; p < 2; p++) begin : words
    assign ddr_index[p] = ddr_word[p][INDEX-1:0];
  end
  ddr_model #(.WORDS(WORDS)) u_ddr (
    .clk_i, .rst_ni, .latency_i, .valid_i(ddr_valid), .write_i(ddr_write), .word_i(ddr_index), .mask_i(ddr_mask),
    .data_i(ddr_data), .complete_o(ddr_complete), .data_o(ddr_read), .poke_i(poke_i && !poke_address_i[0]),
    .poke_place_i(poke_address_i[INDEX+2:1]), .poke_label_i, .peek_label_o(ddr_label)
  );
  assign idle_o       = chip_idle && !waits_host_o;
  assign peek_label_o = poke_address_i[0] ? 128'(ram_label) : ddr_label;
  assign ands_o       = ANDS;
  assign xors_o       = XORS;
  assign label_o      = LABEL;
  assign places_o     = PLACES;
  assign words_o      = 4 * WORDS; // labels
  assign table_bytes_o = 3 * LABEL / 8;
  assign lanes_o      = 1;
endmodule
