// OnionChopper with models of the SSD and the DRAM around it: what is simulated.
module onionchopper_board #(
  parameter int unsigned LANES      = 2,
  parameter int unsigned WORD       = 64,
  parameter int unsigned BITS       = 0,
  parameter int unsigned SRAM_ROWS  = 128,
  parameter int unsigned RF_ROWS    = 16,
  parameter int unsigned HALF_BEATS = 9 << 16, // 9 MiB: a coefficient of the thesis's database and its query
  parameter int unsigned C_BEATS    = 1 << 17,
  parameter int unsigned DRAM_PAGES = 0        // of 4 KiB that the DRAM's model holds; 0: all
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic         host_write_i,
  input  logic [8:0]   host_address_i,
  input  logic [63:0]  host_data_i,
  output logic [63:0]  host_data_o,
  output logic         busy_o,
  input  logic [15:0]  ssd_numerator_i,
  input  logic [15:0]  ssd_denominator_i,
  input  logic         ssd_valid_i,
  output logic         ssd_ready_o,
  input  logic [63:0]  ssd_data_i,
  output logic         out_valid_o,
  input  logic         out_ready_i,
  output logic [127:0] out_data_o,
  input  logic         poke_i,
  input  logic [27:0]  poke_address_i,
  input  logic [127:0] poke_data_i,
  // What this build has, for its host.
  output logic [31:0]  lanes_o,
  output logic [31:0]  word_o,
  output logic [31:0]  bits_o,
  output logic [31:0]  latency_o,
  output logic [31:0]  sram_rows_o,
  output logic [31:0]  rf_rows_o,
  output logic [31:0]  half_beats_o,
  output logic [31:0]  c_beats_o
);
  logic ssd_valid, ssd_ready, dram_valid, dram_ready, dram_write, dram_rsp_valid, dram_rsp_ready;
  logic [63:0] ssd_data;
  logic [oc_pkg::DRAM_ADDRESS-1:0] dram_address;
  logic [127:0] dram_data, dram_rsp_data;
  ssd_model u_ssd (
    .clk_i, .rst_ni, .numerator_i(ssd_numerator_i), .denominator_i(ssd_denominator_i), .valid_i(ssd_valid_i),
    .ready_o(ssd_ready_o), .data_i(ssd_data_i), .valid_o(ssd_valid), .ready_i(ssd_ready), .data_o(ssd_data)
  );
  dram_model #(.BEATS(2 * HALF_BEATS + C_BEATS), .PAGES(DRAM_PAGES)) u_dram (
    .clk_i, .rst_ni, .valid_i(dram_valid), .ready_o(dram_ready), .write_i(dram_write), .address_i(dram_address),
    .data_i(dram_data), .valid_o(dram_rsp_valid), .ready_i(dram_rsp_ready), .data_o(dram_rsp_data),
    .poke_i, .poke_address_i, .poke_data_i
  );
  onionchopper #(
    .LANES(LANES), .WORD(WORD), .BITS(BITS), .SRAM_ROWS(SRAM_ROWS), .RF_ROWS(RF_ROWS), .HALF_BEATS(HALF_BEATS),
    .C_BEATS(C_BEATS)
  ) u_chip (
    .clk_i, .rst_ni, .host_write_i, .host_address_i, .host_data_i, .host_data_o, .busy_o,
    .ssd_valid_i(ssd_valid), .ssd_ready_o(ssd_ready), .ssd_data_i(ssd_data),
    .dram_valid_o(dram_valid), .dram_ready_i(dram_ready), .dram_write_o(dram_write), .dram_address_o(dram_address),
    .dram_data_o(dram_data), .dram_valid_i(dram_rsp_valid), .dram_ready_o(dram_rsp_ready), .dram_data_i(dram_rsp_data),
    .out_valid_o, .out_ready_i, .out_data_o
  );
  assign lanes_o      = LANES;
  assign word_o       = WORD;
  assign bits_o       = BITS;
  assign latency_o    = WORD == 64 ? oc_pkg::latency(BITS) : 2;
  assign sram_rows_o  = SRAM_ROWS;
  assign rf_rows_o    = RF_ROWS;
  assign half_beats_o = HALF_BEATS;
  assign c_beats_o    = C_BEATS;
endmodule
