// Runs the tiles that are in the SRAMs: fills register files, issues one multiply-accumulate a clock, and brings finished
// sums back. One for all lanes, which do the same at the same time.
//
// Filling walks the SRAM's loop nest, issuing the register file's; between them are two banks each for A and B and
// `c_banks` for C. A sum in flight is waited for where it is needed: by word in the register file, by row in the SRAM.
module oc_sequencer
  import oc_pkg::*;
#(
  parameter int unsigned LANES     = 2,
  parameter int unsigned WORD      = 64,
  parameter int unsigned BITS      = 0,
  parameter int unsigned SRAM_ROWS = 128,
  parameter int unsigned RF_ROWS   = 16
) (
  input  logic                       clk_i,
  input  logic                       rst_ni,
  input  logic                       start_i,
  input  config_t                    config_i,
  output logic                       idle_o,
  output logic                       sram_overrun_o,
  output logic                       rf_overrun_o,
  output logic                       run_long_o,   // more products than the accumulator sums before it reduces
  output logic                       hazard_o,     // issuing or filling waits for a sum in flight
  // Tiles from the loader; those that are filled go on to the drain
  input  logic                       tile_valid_i,
  output logic                       tile_ready_o,
  input  tile_t                      tile_i,
  output logic                       drain_valid_o,
  input  logic                       drain_ready_i,
  output tile_t                      drain_o,
  output logic [31:0]                filled_o,
  output logic [1:0][7:0]            open_o,       // tiles of C in register files, by half of the SRAM
  // Lanes
  output logic                       read_o,
  output logic [SRAM_ADDRESS-1:0]    read_row_o,
  output logic                       store_o,
  output logic [SRAM_ADDRESS-1:0]    store_row_o,
  output logic                       fill_o,
  output logic [LANES-1:0]           fill_zero_o,
  output logic [$clog2(RF_ROWS)-1:0] fill_row_o,
  output logic                       issue_o,
  output logic                       refresh_o,
  output logic                       last_o,
  output logic [RF_ADDRESS-1:0]      a_word_o,
  output logic [RF_ADDRESS-1:0]      b_word_o,
  output logic [RF_ADDRESS-1:0]      c_word_o,
  output logic [RF_ADDRESS-1:0]      sum_word_o,
  input  logic                       sum_i
);
  localparam int unsigned WORDS = ROW / WORD;
  localparam int unsigned COLUMN = $clog2(WORDS);
  localparam int unsigned RF_ROW = $clog2(RF_ROWS);
  localparam int unsigned BANKS = 16;
  // From issue to the sum at the register file's port.
  localparam int unsigned LATENCY = 1 + ((WORD == 64) ? latency(BITS) : 2);

  // ------------------------------------------------------------------------------------------------ filling
  typedef enum logic [2:0] {IDLE, FILL_A, FILL_B, FILL_C, PUSH} state_e;
  state_e state_q;
  logic [OPERANDS-1:0][SRAM_ADDRESS-1:0] at;
  logic [OPERANDS-1:0] first, run_last;
  logic last, nest_start, nest_advance;
  bc_loop_nest #(.LOOPS(SRAM_LOOPS), .OPERANDS(OPERANDS), .BOUND(BOUND), .ADDRESS(SRAM_ADDRESS)) u_nest (
    .clk_i, .rst_ni, .start_i(nest_start), .advance_i(nest_advance), .bounds_i(config_i.sram_bounds),
    .strides_i(config_i.sram_strides), .address_o(at), .last_o(last), .first_o(first), .final_o(),
    .run_first_o(), .run_last_o(run_last)
  );
  tile_t tile_q;
  logic [OPERANDS-1:0] changed_q;
  logic [3:0] row_q;
  logic a_bank_q, b_bank_q;
  logic [3:0] c_bank_q;
  logic [1:0] a_busy_q, b_busy_q;
  logic [BANKS-1:0] c_busy_q, c_closed_q;
  logic [BANKS-1:0] c_half_q;
  logic [BANKS-1:0][SRAM_ADDRESS-1:0] c_row_q;
  logic [(1<<SRAM_ADDRESS)-1:0] row_busy_q;

  function automatic logic [RF_ROW-1:0] bank_row(logic [RF_ROW-1:0] base, logic [3:0] rows, logic [3:0] bank);
    return base + RF_ROW'(8'(rows) * 8'(bank));
  endfunction
  logic [RF_ROW-1:0] b_begin, c_begin, a_row, b_row, c_row;
  assign b_begin = RF_ROW'(8'(config_i.rf_rows[A]) << 1);
  assign c_begin = b_begin + RF_ROW'(8'(config_i.rf_rows[B]) << 1);
  assign a_row   = bank_row('0, config_i.rf_rows[A], 4'(a_bank_q));
  assign b_row   = bank_row(b_begin, config_i.rf_rows[B], 4'(b_bank_q));
  assign c_row   = bank_row(c_begin, config_i.rf_rows[C], c_bank_q);
  logic [3:0] next_c_bank;
  assign next_c_bank = c_bank_q + 1'b1 == config_i.c_banks ? '0 : c_bank_q + 1'b1;

  logic reading, c_waits, row_last;
  logic [1:0] operand;
  logic [RF_ROW-1:0] to_row;
  always_comb begin
    unique case (state_q)
      FILL_B:  operand = 2'(B);
      FILL_C:  operand = 2'(C);
      default: operand = 2'(A);
    endcase
    unique case (state_q)
      FILL_B:  read_row_o = tile_q.b_row + at[B] + SRAM_ADDRESS'(row_q);
      FILL_C:  read_row_o = tile_q.c_row + at[C] + SRAM_ADDRESS'(row_q);
      default: read_row_o = tile_q.a_row + at[A] + SRAM_ADDRESS'(row_q);
    endcase
    unique case (state_q)
      FILL_B:  to_row = b_row + RF_ROW'(row_q);
      FILL_C:  to_row = c_row + RF_ROW'(row_q);
      default: to_row = a_row + RF_ROW'(row_q);
    endcase
  end
  assign row_last = row_q + 1'b1 == config_i.rf_rows[operand];
  assign c_waits  = row_q == '0 ? c_busy_q[c_bank_q] || row_busy_q[read_row_o] : row_busy_q[read_row_o];
  always_comb begin
    unique case (state_q)
      FILL_A:  reading = row_q != '0 || !a_busy_q[a_bank_q];
      FILL_B:  reading = row_q != '0 || !b_busy_q[b_bank_q];
      FILL_C:  reading = !c_waits;
      default: reading = 1'b0;
    endcase
  end
  assign read_o = reading;
  assign sram_overrun_o = reading && (at[operand] + SRAM_ADDRESS'(row_q) >= config_i.sram_rows[operand] ||
    32'(read_row_o) >= SRAM_ROWS);

  // The row arrives a clock after it was asked for.
  logic fresh;
  assign fresh = tile_q.c_new && first[C];
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      fill_o      <= 1'b0;
      fill_row_o  <= '0;
      fill_zero_o <= '0;
    end else begin
      fill_o     <= reading;
      fill_row_o <= to_row;
      for (int unsigned i = 0; i < LANES; i++) begin
        fill_zero_o[i] <= state_q == FILL_C && fresh && (tile_q.c_zero ||
          (config_i.reduce && (32'(i) & ((32'd1 << config_i.inner_log2) - 1)) != 0));
      end
    end
  end

  rf_tile_t rf_in, rf_out;
  logic rf_ready, rf_valid, rf_pop, push;
  assign push  = state_q == PUSH && rf_ready && (!last || !tile_q.c_ends || drain_ready_i);
  assign rf_in = '{
    a: RF_ADDRESS'({a_row, COLUMN'(0)}), b: RF_ADDRESS'({b_row, COLUMN'(0)}), c: RF_ADDRESS'({c_row, COLUMN'(0)}),
    a_bank: a_bank_q, b_bank: b_bank_q, c_bank: c_bank_q, a_ends: run_last[A] || last, b_ends: run_last[B] || last,
    c_new: changed_q[C], c_ends: run_last[C] || last
  };
  bc_fifo #(.WIDTH($bits(rf_tile_t)), .DEPTH(2)) u_rf_tiles (
    .clk_i, .rst_ni, .valid_i(push), .ready_o(rf_ready), .data_i(rf_in),
    .valid_o(rf_valid), .ready_i(rf_pop), .data_o(rf_out), .count_o()
  );
  assign nest_start    = state_q == IDLE;
  assign nest_advance  = push && !last;
  assign tile_ready_o  = state_q == IDLE;
  assign drain_valid_o = push && last && tile_q.c_ends;
  assign drain_o       = tile_q;

  // Where filling goes on: to the first operand that changes.
  function automatic state_e from(state_e state, logic [OPERANDS-1:0] changed);
    if (state == FILL_A && changed[A]) return FILL_A;
    if (state != FILL_C && changed[B]) return FILL_B;
    if (changed[C]) return FILL_C;
    return PUSH;
  endfunction

  logic a_frees, b_frees, c_frees;
  logic [3:0] c_frees_bank, store_row_count_q;
  logic issue_last; // of a tile in the register files
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q   <= IDLE;
      tile_q    <= '0;
      changed_q <= '0;
      row_q     <= '0;
      a_bank_q  <= 1'b0;
      b_bank_q  <= 1'b0;
      c_bank_q  <= '0;
      filled_o  <= '0;
    end else if (start_i) begin
      filled_o <= '0;
      a_bank_q <= 1'b0;
      b_bank_q <= 1'b0;
      c_bank_q <= '0;
    end else begin
      unique case (state_q)
        IDLE: if (tile_valid_i) begin
          tile_q    <= tile_i;
          changed_q <= '1;
          row_q     <= '0;
          state_q   <= FILL_A;
        end
        FILL_A, FILL_B, FILL_C: if (reading) begin
          row_q <= row_last ? '0 : row_q + 1'b1;
          if (row_last) begin
            state_q <= state_q == FILL_A ? from(FILL_B, changed_q) : state_q == FILL_B ? from(FILL_C, changed_q) : PUSH;
          end
        end
        PUSH: if (push) begin
          if (run_last[A] || last) a_bank_q <= !a_bank_q;
          if (run_last[B] || last) b_bank_q <= !b_bank_q;
          if (run_last[C] || last) c_bank_q <= next_c_bank;
          changed_q <= run_last;
          state_q   <= last ? IDLE : from(FILL_A, run_last);
          if (last) filled_o <= filled_o + 1'b1;
        end
        default: state_q <= IDLE;
      endcase
    end
  end

  // ------------------------------------------------------------------------------------------------ issuing
  logic [OPERANDS-1:0][RF_ADDRESS-1:0] word;
  logic [OPERANDS-1:0] rf_run_first, rf_run_last;
  logic rf_last, stalled, starts, one_c;
  bc_loop_nest #(.LOOPS(RF_LOOPS), .OPERANDS(OPERANDS), .BOUND(BOUND), .ADDRESS(RF_ADDRESS)) u_rf_nest (
    .clk_i, .rst_ni, .start_i(start_i), .advance_i(issue_o), .bounds_i(config_i.rf_bounds),
    .strides_i(config_i.rf_strides), .address_o(word), .last_o(rf_last), .first_o(), .final_o(),
    .run_first_o(rf_run_first), .run_last_o(rf_run_last)
  );
  // A tile with a single C goes on with the accumulator's sum where the tile before had the same.
  always_comb begin
    one_c = 1'b1;
    for (int unsigned l = 0; l < RF_LOOPS; l++) begin
      one_c &= config_i.rf_strides[l][C] == '0 || config_i.rf_bounds[l] == BOUND'(1);
    end
  end
  logic [RF_ROWS*WORDS-1:0] pending_q;
  assign starts       = rf_run_first[C] && (rf_out.c_new || !one_c);
  assign stalled      = starts && pending_q[c_issue];
  assign issue_o      = rf_valid && !stalled;
  assign refresh_o    = starts;
  assign last_o       = rf_run_last[C] && (rf_out.c_ends || !one_c);
  assign issue_last   = issue_o && rf_last;
  assign rf_pop       = issue_last;
  logic [RF_ADDRESS-1:0] c_issue_word;
  logic [RF_ROW+COLUMN-1:0] c_issue;
  assign a_word_o     = rf_out.a + word[A];
  assign b_word_o     = rf_out.b + word[B];
  assign c_issue_word = rf_out.c + word[C];
  assign c_issue      = c_issue_word[RF_ROW+COLUMN-1:0];
  assign a_frees      = issue_last && rf_out.a_ends;
  assign b_frees      = issue_last && rf_out.b_ends;
  assign rf_overrun_o = issue_o && (32'(word[A]) >= 32'(config_i.rf_rows[A]) * WORDS ||
    32'(word[B]) >= 32'(config_i.rf_rows[B]) * WORDS || 32'(word[C]) >= 32'(config_i.rf_rows[C]) * WORDS);

  // A pipelined accumulator's guard bits hold so many products.
  logic [GUARD-1:0] run_q;
  assign run_long_o = BITS != 0 && WORD == 64 && issue_o && !starts && run_q == '1;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) run_q <= '0;
    else if (issue_o) run_q <= starts ? GUARD'(1) : run_q + 1'b1;
  end

  // The word that a sum goes to travels with it.
  oc_pipe #(.WIDTH(RF_ADDRESS), .CYCLES(LATENCY)) u_sum_word (.clk_i, .d_i(c_issue_word), .q_o(sum_word_o));

  // ------------------------------------------------------------------------------------------------ storing
  // Banks close in the order in which they were filled; a closed bank without a sum in flight goes back by rows.
  logic [3:0] store_bank_q;
  logic [RF_ROW-1:0] store_rf_row;
  logic bank_pending, storable;
  always_comb begin
    bank_pending = 1'b0;
    for (int unsigned r = 0; r < RF_ROWS; r++) begin
      if (r >= 32'(bank_row(c_begin, config_i.rf_rows[C], store_bank_q)) &&
          r < 32'(bank_row(c_begin, config_i.rf_rows[C], store_bank_q)) + 32'(config_i.rf_rows[C])) begin
        bank_pending |= |pending_q[r*WORDS+:WORDS];
      end
    end
  end
  assign storable     = c_closed_q[store_bank_q] && !bank_pending;
  assign store_o      = storable && !(issue_o && starts); // the port reads a first sum then
  assign store_rf_row = bank_row(c_begin, config_i.rf_rows[C], store_bank_q) + RF_ROW'(store_row_count_q);
  assign store_row_o  = c_row_q[store_bank_q] + SRAM_ADDRESS'(store_row_count_q);
  assign c_word_o     = store_o ? RF_ADDRESS'({store_rf_row, COLUMN'(0)}) : c_issue_word;
  assign c_frees      = store_o && store_row_count_q + 1'b1 == config_i.rf_rows[C];
  assign c_frees_bank = store_bank_q;
  assign hazard_o     = (rf_valid && stalled) || (!rf_valid && state_q == FILL_C && c_waits);
  assign idle_o       = state_q == IDLE && !rf_valid && c_busy_q == '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      a_busy_q          <= '0;
      b_busy_q          <= '0;
      c_busy_q          <= '0;
      c_closed_q        <= '0;
      c_half_q          <= '0;
      c_row_q           <= '0;
      row_busy_q        <= '0;
      pending_q         <= '0;
      store_bank_q      <= '0;
      store_row_count_q <= '0;
      open_o            <= '0;
    end else if (start_i) begin
      store_bank_q      <= '0;
      store_row_count_q <= '0;
    end else begin
      if (reading && row_q == '0) begin
        if (state_q == FILL_A) a_busy_q[a_bank_q] <= 1'b1;
        if (state_q == FILL_B) b_busy_q[b_bank_q] <= 1'b1;
        if (state_q == FILL_C) begin
          c_busy_q[c_bank_q] <= 1'b1;
          c_half_q[c_bank_q] <= tile_q.c_half;
          c_row_q[c_bank_q]  <= read_row_o;
        end
      end
      if (reading && state_q == FILL_C) row_busy_q[read_row_o] <= 1'b1;
      if (store_o) begin
        row_busy_q[store_row_o] <= 1'b0;
        store_row_count_q       <= c_frees ? '0 : store_row_count_q + 1'b1;
      end
      if (a_frees) a_busy_q[rf_out.a_bank] <= 1'b0;
      if (b_frees) b_busy_q[rf_out.b_bank] <= 1'b0;
      if (issue_last && rf_out.c_ends) c_closed_q[rf_out.c_bank] <= 1'b1;
      if (c_frees) begin
        c_busy_q[c_frees_bank]   <= 1'b0;
        c_closed_q[c_frees_bank] <= 1'b0;
        store_bank_q <= store_bank_q + 1'b1 == config_i.c_banks ? '0 : store_bank_q + 1'b1;
      end
      for (int unsigned h = 0; h < 2; h++) begin
        open_o[h] <= open_o[h] + 8'(reading && state_q == FILL_C && row_q == '0 && tile_q.c_half == h[0])
          - 8'(c_frees && c_half_q[c_frees_bank] == h[0]);
      end
      if (issue_o && starts) pending_q[c_issue] <= 1'b1;
      if (sum_i) pending_q[sum_word_o[RF_ROW+COLUMN-1:0]] <= 1'b0;
    end
  end
endmodule
