// OnionChopper: a near-storage accelerator for the contract operation (thesis, chapters 4 to 6).
//
//   SSD stream -> ssd_loader -> DRAM -> tile_loader -> SRAM -> sequencer -> register file -> compute unit
//                                ^                      |                        |
//                                +------- drain <-------+------- stored sums <---+        drain -> out
//
// Lanes (SRAM, register file, compute unit) do the same at the same time on their own data. WORD = 64 computes modulo
// anything from 2 to 2^64, WORD = 32 modulo 2^32.
module onionchopper
  import oc_pkg::*;
#(
  parameter int unsigned LANES      = 2,
  parameter int unsigned WORD       = 64,
  parameter int unsigned BITS       = 0,       // full adders in a row between two registers; 0: the thesis's six stages
  parameter int unsigned SRAM_ROWS  = 128,     // 4 KiB a lane
  parameter int unsigned RF_ROWS    = 16,      // 64 words of 64 bits: the thesis's 32, twice
  parameter int unsigned HALF_BEATS = 1 << 16, // of the DRAM, for tiles of A and B
  parameter int unsigned C_BEATS    = 1 << 14  // of the DRAM, for sums that go on
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,
  // Host registers
  input  logic                    host_write_i,
  input  logic [8:0]              host_address_i,
  input  logic [63:0]             host_data_i,
  output logic [63:0]             host_data_o,
  output logic                    busy_o,
  // SSD
  input  logic                    ssd_valid_i,
  output logic                    ssd_ready_o,
  input  logic [63:0]             ssd_data_i,
  // DRAM: requests in order, read data in order
  output logic                    dram_valid_o,
  input  logic                    dram_ready_i,
  output logic                    dram_write_o,
  output logic [DRAM_ADDRESS-1:0] dram_address_o,
  output logic [BEAT-1:0]         dram_data_o,
  input  logic                    dram_valid_i,
  output logic                    dram_ready_o,
  input  logic [BEAT-1:0]         dram_data_i,
  // Finished sums
  output logic                    out_valid_o,
  input  logic                    out_ready_i,
  output logic [BEAT-1:0]         out_data_o
);
  if (64'd2 * 64'(HALF_BEATS) + 64'(C_BEATS) > 64'd1 << DRAM_ADDRESS) begin : gen_too_large
    $error("HALF_BEATS and C_BEATS: a DRAM of more beats than an address names, 2 to the %0d", DRAM_ADDRESS);
  end

  // ------------------------------------------------------------------------------------------------ control
  localparam int unsigned COUNTERS = 15;
  config_t cfg;
  modulus_t [MODULI-1:0] moduli;
  logic start, clear, go, busy_q, done_q, run_rst_n;
  error_e shape, error_q, error;
  logic [COUNTERS-1:0][63:0] counters_q;
  logic [COUNTERS-1:0] count;
  oc_config #(
    .LANES(LANES), .HALF_BEATS(HALF_BEATS), .SRAM_ROWS(SRAM_ROWS), .RF_ROWS(RF_ROWS), .COUNTERS(COUNTERS)
  ) u_config (
    .clk_i, .rst_ni, .write_i(host_write_i), .address_i(host_address_i), .data_i(host_data_i), .data_o(host_data_o),
    .config_o(cfg), .moduli_o(moduli), .start_o(start), .clear_o(clear), .shape_o(shape), .busy_i(busy_q), .done_i(done_q),
    .error_i(error_q), .counters_i(counters_q)
  );
  assign go     = start && !clear && !busy_q && shape == OK && error_q == OK;
  assign busy_o = busy_q || start;
  // An error stops everything at once: the modules behind are held in reset until the host clears it.
  assign run_rst_n = rst_ni && error_q == OK;

  // ------------------------------------------------------------------------------------------------ modules
  logic ssd_dram_valid, ssd_dram_ready, load_valid, load_ready, drain_dram_valid, drain_dram_ready;
  logic [DRAM_ADDRESS-1:0] ssd_address, load_address, drain_address, loaded;
  logic [BEAT-1:0] ssd_beat, drain_beat;
  logic [31:0] used, filled, drained;
  // What was asked for before an error is taken and forgotten: words that the SSD had begun to send, and the DRAM's answers.
  logic loader_ssd_ready;
  logic [15:0] asked_q, stale_q;
  assign ssd_ready_o = loader_ssd_ready || error_q != OK;
  oc_ssd_loader #(.HALF_BEATS(HALF_BEATS)) u_ssd (
    .clk_i, .rst_ni(run_rst_n), .start_i(go), .config_i(cfg), .used_i(used), .loaded_o(loaded),
    .ssd_valid_i, .ssd_ready_o(loader_ssd_ready), .ssd_data_i,
    .dram_valid_o(ssd_dram_valid), .dram_ready_i(ssd_dram_ready), .dram_address_o(ssd_address), .dram_data_o(ssd_beat)
  );

  logic loader_done, loader_overrun, waits_ssd, waits_free, load_rsp_ready;
  logic [LANES-1:0] beat_lanes;
  logic [1:0] beat_half;
  logic [SRAM_ADDRESS-1:0] beat_row;
  logic tile_valid, tile_ready, store;
  tile_t tile;
  oc_tile_loader #(.LANES(LANES), .HALF_BEATS(HALF_BEATS), .C_BEATS(C_BEATS)) u_loader (
    .clk_i, .rst_ni(run_rst_n), .start_i(go), .config_i(cfg), .done_o(loader_done), .overrun_o(loader_overrun),
    .waits_ssd_o(waits_ssd), .waits_free_o(waits_free), .loaded_i(loaded), .used_o(used), .filled_i(filled),
    .drained_i(drained), .dram_valid_o(load_valid), .dram_ready_i(load_ready), .dram_address_o(load_address),
    .dram_valid_i(dram_valid_i && stale_q == '0), .dram_ready_o(load_rsp_ready), .write_o(beat_lanes),
    .write_half_o(beat_half), .write_row_o(beat_row), .write_ready_i(!store), .tile_valid_o(tile_valid), .tile_ready_i(tile_ready), .tile_o(tile)
  );
  assign dram_ready_o = load_rsp_ready || stale_q != '0;
  logic [15:0] asked;
  assign asked = asked_q + 16'(dram_valid_o && dram_ready_i && !dram_write_o) - 16'(dram_valid_i && dram_ready_o);
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      asked_q <= '0;
      stale_q <= '0;
    end else begin
      asked_q <= asked;
      if (busy_q && error != OK) stale_q <= asked;
      else if (stale_q != '0 && dram_valid_i) stale_q <= stale_q - 1'b1;
    end
  end

  logic sequencer_idle, sram_overrun, rf_overrun, run_long, hazard, drain_push, drain_ready, fill_read, fill, issue, refresh, last;
  logic [LANES-1:0] fill_zero, sum_valid, unreduced;
  logic [SRAM_ADDRESS-1:0] fill_sram_row, store_row;
  logic [$clog2(RF_ROWS)-1:0] fill_row;
  logic [RF_ADDRESS-1:0] a_word, b_word, c_word, sum_word;
  logic [1:0][7:0] open;
  tile_t drain_in, drain_tile;
  oc_sequencer #(.LANES(LANES), .WORD(WORD), .BITS(BITS), .SRAM_ROWS(SRAM_ROWS), .RF_ROWS(RF_ROWS)) u_sequencer (
    .clk_i, .rst_ni(run_rst_n), .start_i(go), .config_i(cfg), .idle_o(sequencer_idle), .sram_overrun_o(sram_overrun),
    .rf_overrun_o(rf_overrun), .run_long_o(run_long), .hazard_o(hazard), .tile_valid_i(tile_valid), .tile_ready_o(tile_ready), .tile_i(tile),
    .drain_valid_o(drain_push), .drain_ready_i(drain_ready), .drain_o(drain_in), .filled_o(filled), .open_o(open),
    .read_o(fill_read), .read_row_o(fill_sram_row), .store_o(store), .store_row_o(store_row), .fill_o(fill),
    .fill_zero_o(fill_zero), .fill_row_o(fill_row), .issue_o(issue), .refresh_o(refresh), .last_o(last),
    .a_word_o(a_word), .b_word_o(b_word), .c_word_o(c_word), .sum_word_o(sum_word), .sum_i(sum_valid[0])
  );

  logic drain_valid, drain_taken, drain_idle, drain_overrun, drain_read;
  logic [SRAM_ADDRESS-1:0] drain_row;
  logic [LANES-1:0][ROW-1:0] rows;
  bc_fifo #(.WIDTH($bits(tile_t)), .DEPTH(2)) u_drain_tiles (
    .clk_i, .rst_ni(run_rst_n), .valid_i(drain_push), .ready_o(drain_ready), .data_i(drain_in),
    .valid_o(drain_valid), .ready_i(drain_taken), .data_o(drain_tile), .count_o()
  );
  oc_drain #(.LANES(LANES), .WORD(WORD), .HALF_BEATS(HALF_BEATS), .C_BEATS(C_BEATS)) u_drain (
    .clk_i, .rst_ni(run_rst_n), .start_i(go), .config_i(cfg), .moduli_i(moduli), .idle_o(drain_idle),
    .overrun_o(drain_overrun), .drained_o(drained), .tile_valid_i(drain_valid), .tile_ready_o(drain_taken),
    .tile_i(drain_tile), .open_i(open), .read_valid_o(drain_read), .read_ready_i(!fill_read), .read_row_o(drain_row),
    .rows_i(rows), .dram_valid_o(drain_dram_valid), .dram_ready_i(drain_dram_ready), .dram_address_o(drain_address),
    .out_valid_o, .out_ready_i, .data_o(drain_beat)
  );
  assign out_data_o = drain_beat;

  // One modulus for all lanes, in step with what they issue.
  logic [$clog2(MODULI)-1:0] modulus;
  oc_moduli_selector u_selector (
    .clk_i, .rst_ni(run_rst_n), .start_i(go), .advance_i(issue), .step_i(8'd1), .period_i(cfg.mac_period),
    .count_i(cfg.moduli), .index_o(modulus)
  );
  for (genvar i = 0; i < LANES; i++) begin : gen_lane
    oc_lane #(.WORD(WORD), .BITS(BITS), .SRAM_ROWS(SRAM_ROWS), .RF_ROWS(RF_ROWS)) u_lane (
      .clk_i, .rst_ni(run_rst_n), .read_i(fill_read || drain_read), .read_row_i(fill_read ? fill_sram_row : drain_row),
      .row_o(rows[i]), .write_i(store ? 2'b11 : (beat_lanes[i] ? beat_half : 2'b00)),
      .write_row_i(store ? store_row : beat_row), .beat_i(dram_data_i), .store_i(store), .fill_i(fill),
      .fill_zero_i(fill_zero[i]), .fill_row_i(fill_row), .issue_i(issue), .refresh_i(refresh), .last_i(last),
      .a_word_i(a_word), .b_word_i(b_word), .c_word_i(c_word), .modulus_i(moduli[modulus]), .sum_word_i(sum_word),
      .sum_o(sum_valid[i]), .unreduced_o(unreduced[i])
    );
  end

  // The DRAM's one port: sums, tiles, stream.
  localparam int unsigned REQUEST = 1 + DRAM_ADDRESS + BEAT;
  logic [REQUEST-1:0] request;
  logic dram_valid;
  bc_arbiter #(.REQUESTS(3), .WIDTH(REQUEST)) u_dram (
    .clk_i, .rst_ni(run_rst_n), .valid_i({ssd_dram_valid, load_valid, drain_dram_valid}),
    .ready_o({ssd_dram_ready, load_ready, drain_dram_ready}),
    .data_i({{1'b1, ssd_address, ssd_beat}, {1'b0, load_address, BEAT'(0)}, {1'b1, drain_address, drain_beat}}),
    .valid_o(dram_valid), .ready_i(dram_ready_i), .data_o(request), .grant_o()
  );
  assign dram_valid_o = dram_valid;
  assign {dram_write_o, dram_address_o, dram_data_o} = request;

  // ------------------------------------------------------------------------------------------------ end and errors
  logic [31:0] quiet_q;
  logic moves, ends;
  assign moves = (ssd_valid_i && ssd_ready_o) || (dram_valid_o && dram_ready_i) || issue || (out_valid_o && out_ready_i);
  assign ends  = busy_q && loader_done && !tile_valid && sequencer_idle && drain_idle && !drain_push;
  always_comb begin
    error = OK;
    if (loader_overrun || drain_overrun) error = DRAM_OVERRUN;
    else if (sram_overrun) error = SRAM_OVERRUN;
    else if (rf_overrun) error = RF_OVERRUN;
    else if (run_long) error = BAD_SHAPE;
    else if (|unreduced) error = UNREDUCED;
    else if (quiet_q == cfg.watchdog) error = STUCK;
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      busy_q  <= 1'b0;
      done_q  <= 1'b0;
      error_q <= OK;
      quiet_q <= '0;
    end else if (clear && !busy_q) begin
      done_q  <= 1'b0;
      error_q <= OK;
    end else if (start && !busy_q && error_q == OK) begin
      busy_q  <= shape == OK;
      done_q  <= shape != OK;
      error_q <= shape;
      quiet_q <= '0;
    end else if (busy_q) begin
      quiet_q <= moves ? '0 : quiet_q + 1'b1;
      if (error != OK) begin
        error_q <= error;
        busy_q  <= 1'b0;
        done_q  <= 1'b1;
      end else if (ends) begin
        busy_q <= 1'b0;
        done_q <= 1'b1;
      end
    end
  end

  // ------------------------------------------------------------------------------------------------ counters
  // A clock without a multiply-accumulate has one cause, the first that fits.
  logic idle_clock;
  assign idle_clock = busy_q && !issue;
  always_comb begin
    count     = '0;
    count[0]  = busy_q;
    count[1]  = issue;
    count[2]  = idle_clock && hazard;                                      // a sum in flight
    count[3]  = idle_clock && !hazard && loader_done && sequencer_idle;    // the last sums leave
    count[4]  = idle_clock && !hazard && !count[3] && (!sequencer_idle || tile_valid); // register files fill, or empty
    count[5]  = idle_clock && !hazard && sequencer_idle && !tile_valid && !loader_done && waits_ssd;
    count[6]  = idle_clock && !hazard && sequencer_idle && !tile_valid && !loader_done && waits_free && !waits_ssd;
    count[7]  = idle_clock && !hazard && sequencer_idle && !tile_valid && !loader_done && !waits_ssd && !waits_free; // DRAM
    count[8]  = ssd_valid_i && ssd_ready_o;
    count[9]  = dram_valid_o && dram_ready_i && !dram_write_o;
    count[10] = dram_valid_o && dram_ready_i && dram_write_o;
    count[11] = fill_read || (drain_read && !fill_read); // rows of every lane's SRAM that were read
    count[12] = store;                                  // rows of every lane's that sums were stored to
    count[13] = issue && refresh;                       // sums that were begun, a lane
    count[14] = out_valid_o && out_ready_i;
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) counters_q <= '0;
    else if (go) counters_q <= '0;
    else for (int unsigned i = 0; i < COUNTERS; i++) counters_q[i] <= counters_q[i] + 64'(count[i]);
  end
endmodule
