// Today's overlay with models of the host's DMA and of the DDR memory around it: what is simulated. A DDR place holds the
// labels of all lanes, one word.
module hg_board #(
  parameter int unsigned LANES    = 4,
  parameter int unsigned PLACES   = 1 << 14,
  parameter int unsigned WORDS    = 1 << 16,
  parameter int unsigned WATCHDOG = 1 << 20,
  localparam int unsigned LABELS  = 128 * LANES
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic [15:0]         period_i,
  input  logic [15:0]         sync_i,
  input  logic [15:0]         latency_i,
  // 95:0 payload, 97:96 kind, 98 wait
  input  logic                link_valid_i,
  output logic                link_ready_o,
  input  logic [127:0]        link_item_i,
  output logic                table_valid_o,
  input  logic                table_ready_i,
  output logic [2*LABELS-1:0] table_o,
  input  logic                feed_valid_i,
  output logic                feed_ready_o,
  input  logic [2*LABELS-1:0] feed_i,
  // The lanes' labels in or out while nothing runs; the place's last bit says which memory: 1 is block RAM.
  input  logic                poke_i,
  input  logic [31:0]         poke_address_i,
  input  logic [LABELS-1:0]   poke_label_i,
  output logic [LABELS-1:0]   peek_label_o,
  output logic                idle_o,
  output logic [1:0]          error_o,
  output logic [31:0]         done_o,
  output logic                gate_o,
  output logic [1:0]          access_o,
  output logic                waits_ddr_o,
  output logic                waits_cell_o,
  output logic                waits_host_o,
  // What this build has, for its host.
  output logic [31:0]         ands_o,
  output logic [31:0]         xors_o,
  output logic [31:0]         label_o,
  output logic [31:0]         places_o,
  output logic [31:0]         words_o,
  output logic [31:0]         table_bytes_o,
  output logic [31:0]         lanes_o
);
  localparam int unsigned INDEX = $clog2(PLACES);
  localparam int unsigned WORD  = $clog2(WORDS);
  logic host_valid, host_ready, load_valid, load_ready, loaded_valid, loaded_ready, store_valid, store_ready, stored;
  logic [97:0] host_item;
  logic [WORD-1:0] load_word, store_word;
  logic [LABELS-1:0] loaded, store, ram_labels, ddr_labels;
  dma_link #(.WIDTH(98)) u_link (
    .clk_i, .rst_ni, .period_i, .sync_i, .valid_i(link_valid_i), .ready_o(link_ready_o), .item_i(link_item_i[98:0]),
    .valid_o(host_valid), .ready_i(host_ready), .item_o(host_item), .done_i(done_o), .waits_o(waits_host_o)
  );
  hg_overlay #(.LANES(LANES), .PLACES(PLACES), .WORDS(WORDS), .WATCHDOG(WATCHDOG)) u_chip (
    .clk_i, .rst_ni, .host_valid_i(host_valid), .host_ready_o(host_ready), .host_kind_i(host_item[97:96]),
    .host_payload_i(host_item[95:0]), .done_o, .idle_o, .error_o, .table_valid_o, .table_ready_i, .table_o, .feed_valid_i,
    .feed_ready_o, .feed_i, .load_valid_o(load_valid), .load_ready_i(load_ready), .load_word_o(load_word),
    .loaded_valid_i(loaded_valid), .loaded_ready_o(loaded_ready), .loaded_i(loaded), .store_valid_o(store_valid),
    .store_ready_i(store_ready), .store_word_o(store_word), .store_o(store), .stored_i(stored),
    .poke_i(poke_i && poke_address_i[0]), .poke_place_i(poke_address_i[INDEX:1]), .poke_labels_i(poke_label_i),
    .peek_labels_o(ram_labels), .gate_o, .access_o, .waits_ddr_o, .waits_cell_o
  );
  ddr_pipe_model #(.WIDTH(LABELS), .WORDS(WORDS)) u_ddr (
    .clk_i, .rst_ni, .latency_i, .load_valid_i(load_valid), .load_ready_o(load_ready), .load_word_i(load_word),
    .loaded_valid_o(loaded_valid), .loaded_ready_i(loaded_ready), .loaded_o(loaded), .store_valid_i(store_valid),
    .store_ready_o(store_ready), .store_word_i(store_word), .store_i(store), .stored_o(stored),
    .poke_i(poke_i && !poke_address_i[0]), .poke_word_i(poke_address_i[WORD:1]), .poke_data_i(poke_label_i),
    .peek_data_o(ddr_labels)
  );
  assign peek_label_o  = poke_address_i[0] ? ram_labels : ddr_labels;
  assign ands_o        = LANES;
  assign xors_o        = LANES;
  assign label_o       = 128;
  assign places_o      = PLACES;
  assign words_o       = WORDS;
  assign table_bytes_o = 32 * LANES;
  assign lanes_o       = LANES;
endmodule
