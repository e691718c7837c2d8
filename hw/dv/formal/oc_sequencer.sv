// oc_sequencer: each row of a tile that a step moved is read once and in order, into a bank that nothing uses any more; a tile is
// issued when it is whole in the register files. A sum begins only on a word of which no sum is in flight, and goes on where the
// tile before ended. A row of sums goes back once, when nothing is left to be summed to it, to where it came from; until then its
// place in the SRAM is not read. Tiles are counted, counted as open and handed to the drain as they are. By induction, at any pace
// of loader and drain, for loops that go anywhere.
//
// Assumed: a descriptor that stays, of tiles of 1 or 2 rows that fit (`oc_config`), 1 to 3 banks of C; a start comes when all is
// done, and no overrun was met (`onionchopper` stops at the first). A lane's sum comes after as many clocks as it is said to take
// (the compute units' benches). Of the loop nests: their outputs stay between steps, a run keeps its word (proved of
// `bc_loop_nest`), and the queue keeps order (of `bc_fifo`); `stand_ins.sv` stands in for both. A row has two words.
module f_oc_sequencer
  import oc_pkg::*;
#(
  parameter int unsigned LANES   = 2,
  parameter int unsigned RF_ROWS = 8,
  localparam int unsigned ROWS   = 2, // of a bank, at most
  localparam int unsigned BANKS  = 3,
  localparam int unsigned FLIGHT = 3, // clocks from a product to the sum
  localparam int unsigned RF_ROW = $clog2(RF_ROWS)
) (
  input logic                                  clk_i,
  input logic                                  rst_ni,
  input logic                                  start_i,
  input config_t                               config_i,
  input logic                                  idle_o,
  input logic                                  sram_overrun_o,
  input logic                                  rf_overrun_o,
  input logic                                  tile_valid_i,
  input logic                                  tile_ready_o,
  input tile_t                                 tile_i,
  input logic                                  drain_valid_o,
  input logic                                  drain_ready_i,
  input tile_t                                 drain_o,
  input logic [31:0]                           filled_o,
  input logic [1:0][7:0]                       open_o,
  input logic                                  read_o,
  input logic [SRAM_ADDRESS-1:0]               read_row_o,
  input logic                                  store_o,
  input logic [SRAM_ADDRESS-1:0]               store_row_o,
  input logic                                  fill_o,
  input logic [LANES-1:0]                      fill_zero_o,
  input logic [RF_ROW-1:0]                     fill_row_o,
  input logic                                  issue_o,
  input logic                                  refresh_o,
  input logic                                  last_o,
  input logic [RF_ADDRESS-1:0]                 a_word_o,
  input logic [RF_ADDRESS-1:0]                 b_word_o,
  input logic [RF_ADDRESS-1:0]                 c_word_o,
  input logic [RF_ADDRESS-1:0]                 sum_word_o,
  input logic                                  sum_i,
  // The loop nests: of the SRAM, of the register files.
  input logic                                  nest_start,
  input logic                                  nest_advance,
  input logic [OPERANDS-1:0][SRAM_ADDRESS-1:0] at,
  input logic [OPERANDS-1:0]                   first,
  input logic [OPERANDS-1:0]                   run_last,
  input logic                                  last,
  input logic [OPERANDS-1:0][RF_ADDRESS-1:0]   word,
  input logic [OPERANDS-1:0]                   rf_run_first,
  input logic [OPERANDS-1:0]                   rf_run_last,
  input logic                                  rf_last,
  // The queue between filling and issuing.
  input logic                                  push,
  input logic                                  rf_ready,
  input rf_tile_t                              rf_in,
  input logic                                  rf_valid,
  input logic                                  rf_pop,
  input rf_tile_t                              rf_out,
  // For induction.
  input logic [2:0]                            state_q,
  input tile_t                                 tile_q,
  input logic [OPERANDS-1:0]                   changed_q,
  input logic [3:0]                            row_q,
  input logic                                  a_bank_q,
  input logic                                  b_bank_q,
  input logic [3:0]                            c_bank_q,
  input logic [1:0]                            a_busy_q,
  input logic [1:0]                            b_busy_q,
  input logic [15:0]                           c_busy_q,
  input logic [15:0]                           c_closed_q,
  input logic [15:0]                           c_half_q,
  input logic [15:0][SRAM_ADDRESS-1:0]         c_row_q,
  input logic [(1<<SRAM_ADDRESS)-1:0]          row_busy_q,
  input logic [2*RF_ROWS-1:0]                  pending_q,
  input logic [3:0]                            store_bank_q,
  input logic [3:0]                            store_row_count_q
);
  f_reset u_reset (.clk_i, .rst_ni);
  logic [1:0] tiles_g;
  rf_tile_t [1:0] tile_g;
  f_queue #(.WIDTH($bits(rf_tile_t)), .DEPTH(2)) u_tiles (
    .clk_i, .rst_ni, .valid_i(push), .ready_o(rf_ready), .data_i(rf_in), .ready_i(rf_pop), .data_o(rf_out),
    .count_q(tiles_g), .queue_q(tile_g)
  );

  // ---------------------------------------------------------------------------------------------- what is assumed
  logic begun_q, stepped_q, rf_stepped_q;
  initial begun_q = 1'b0;
  config_t config_q;
  logic [OPERANDS-1:0][SRAM_ADDRESS-1:0] at_q;
  logic [2*OPERANDS:0] marks_q;
  logic [OPERANDS-1:0][RF_ADDRESS-1:0] word_q;
  logic [2:0] rf_marks_q;
  logic one_c, begins_g; // a tile of the register files has one C; its first product
  always_ff @(posedge clk_i) begin
    begun_q      <= 1'b1;
    config_q     <= config_i;
    stepped_q    <= nest_start || nest_advance;
    at_q         <= at;
    marks_q      <= {first, run_last, last};
    rf_stepped_q <= !rst_ni || start_i || issue_o;
    begins_g     <= !rst_ni || start_i || (issue_o ? rf_last : begins_g);
    word_q       <= word;
    rf_marks_q   <= {rf_run_first[C], rf_run_last[C], rf_last};
  end
  logic [FLIGHT-1:0] flight_g; // sums in flight, the latest lowest
  logic [2:0] a_rows, b_rows, c_rows;
  assign a_rows = config_i.rf_rows[A][2:0];
  assign b_rows = config_i.rf_rows[B][2:0];
  assign c_rows = config_i.rf_rows[C][2:0];
  always_comb begin
    one_c = 1'b1;
    for (int unsigned l = 0; l < RF_LOOPS; l++) one_c &= config_i.rf_strides[l][C] == '0 || config_i.rf_bounds[l] == BOUND'(1);
    for (int unsigned x = 0; x < OPERANDS; x++) begin
      assume (config_i.rf_rows[x] != '0 && 32'(config_i.rf_rows[x]) <= ROWS && config_i.sram_rows[x] != '0);
    end
    m_banks : assume (config_i.c_banks != '0 && 32'(config_i.c_banks) <= BANKS);
    m_fits : assume (2 * 32'(a_rows) + 2 * 32'(b_rows) + 32'(c_rows) * 32'(config_i.c_banks) <= RF_ROWS);
    if (begun_q) m_stays : assume (config_i == config_q);
    if (start_i) m_start : assume (idle_o && !tile_valid_i);
    m_overrun : assume (!sram_overrun_o && !rf_overrun_o);
    m_valid : assume (rf_valid == (tiles_g != '0));
    m_sum : assume (sum_i == flight_g[FLIGHT-1]);
    if (begun_q && !stepped_q) m_nest : assume (at == at_q && {first, run_last, last} == marks_q);
    if (begun_q && !rf_stepped_q) m_rf_nest : assume (word == word_q && {rf_run_first[C], rf_run_last[C], rf_last} == rf_marks_q);
    if (begins_g) m_begins : assume (rf_run_first[C]);
    else if (rf_stepped_q) m_run : assume (rf_run_first[C] == rf_marks_q[1] && (rf_marks_q[1] || word[C] == word_q[C]));
    if (rf_last) m_ends : assume (rf_run_last[C]);
    if (one_c) m_one : assume (word[C] == '0 && rf_run_first[C] == begins_g && rf_run_last[C] == rf_last);
  end

  // ---------------------------------------------------------------------------------------------- filling
  logic active_g;
  tile_t of_g;                       // the tile that is filled
  logic [OPERANDS-1:0] done_g;       // rows that did not move, or are read
  logic row_g;
  logic a_bank_g, b_bank_g;
  logic [3:0] c_bank_g;
  logic [31:0] filled_g;
  logic [1:0] x;
  logic moved_c_g;
  logic [SRAM_ADDRESS-1:0] row;
  logic [RF_ROW-1:0] to_row;
  logic row_last, takes;
  function automatic logic [RF_ROW-1:0] c_begin(logic [3:0] bank);
    return RF_ROW'({a_rows, 1'b0} + {b_rows, 1'b0}) + (bank == 4'd1 ? RF_ROW'(c_rows) : bank == 4'd2 ? RF_ROW'({c_rows, 1'b0}) : '0);
  endfunction
  function automatic logic [3:0] next_bank(logic [3:0] bank);
    return bank + 1'b1 == config_i.c_banks ? '0 : bank + 1'b1;
  endfunction
  always_comb begin
    x = !done_g[A] ? 2'(A) : !done_g[B] ? 2'(B) : 2'(C);
    unique case (x)
      2'(A):   row = of_g.a_row;
      2'(B):   row = of_g.b_row;
      default: row = of_g.c_row;
    endcase
    row += at[x] + SRAM_ADDRESS'(row_g);
    unique case (x)
      2'(A):   to_row = a_bank_g ? RF_ROW'(a_rows) : '0;
      2'(B):   to_row = RF_ROW'({a_rows, 1'b0}) + (b_bank_g ? RF_ROW'(b_rows) : '0);
      default: to_row = c_begin(c_bank_g);
    endcase
    to_row += RF_ROW'(row_g);
  end
  assign row_last = 4'(row_g) + 4'd1 == config_i.rf_rows[x];
  assign takes    = tile_valid_i && tile_ready_o;
  // What goes into the register files a clock later.
  logic read_g;
  logic [RF_ROW-1:0] to_row_g;
  logic [LANES-1:0] zero_g;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      {active_g, done_g, row_g, a_bank_g, b_bank_g, c_bank_g, filled_g, read_g, moved_c_g} <= '0;
    end else begin
      read_g   <= read_o;
      to_row_g <= to_row;
      for (int unsigned i = 0; i < LANES; i++) begin
        zero_g[i] <= x == 2'(C) && of_g.c_new && first[C] && (of_g.c_zero ||
          (config_i.reduce && (i & ((32'd1 << config_i.inner_log2) - 1)) != 0));
      end
      if (start_i) {a_bank_g, b_bank_g, c_bank_g, filled_g} <= '0;
      if (takes) begin
        active_g  <= 1'b1;
        of_g      <= tile_i;
        done_g    <= '0;
        row_g     <= 1'b0;
        moved_c_g <= 1'b1;
      end
      if (read_o) begin
        row_g <= !row_last;
        if (row_last) done_g[x] <= 1'b1;
      end
      if (push) begin
        if (run_last[A] || last) a_bank_g <= !a_bank_g;
        if (run_last[B] || last) b_bank_g <= !b_bank_g;
        if (run_last[C] || last) c_bank_g <= next_bank(c_bank_g);
        done_g    <= ~run_last;
        moved_c_g <= run_last[C];
        active_g  <= !last;
        if (last) filled_g <= filled_g + 1'b1;
      end
    end
  end

  // ---------------------------------------------------------------------------------------------- sums
  // Rows of C in the register files, by bank: which hold what is not stored, where from, and of which half.
  logic [BANKS-1:0][ROWS-1:0] in_g;
  logic [BANKS-1:0][ROWS-1:0][SRAM_ADDRESS-1:0] from_g;
  logic [BANKS-1:0] half_g;
  logic [3:0] bank_g;     // the next to be stored
  logic stored_g;         // its first row is stored
  logic run_g, goes_on_g; // a sum under way; the tile before went on with its C
  logic [3:0] run_word_g;
  logic [FLIGHT-1:0][3:0] flight_word_g;
  logic [3:0] c_word;     // of the product
  assign c_word = 4'(rf_out.c + word[C]);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      {in_g, bank_g, stored_g, run_g, flight_g, goes_on_g} <= '0;
    end else begin
      if (start_i) {bank_g, stored_g} <= '0;
      if (read_o && x == 2'(C)) begin
        in_g[c_bank_g][row_g]   <= 1'b1;
        from_g[c_bank_g][row_g] <= row;
        half_g[c_bank_g]        <= of_g.c_half;
      end
      if (store_o) begin
        in_g[bank_g][stored_g] <= 1'b0;
        stored_g               <= 3'(stored_g) + 3'd1 != c_rows;
        if (3'(stored_g) + 3'd1 == c_rows) bank_g <= next_bank(bank_g);
      end
      if (issue_o) begin
        run_g <= !last_o;
        if (refresh_o) run_word_g <= c_word;
        if (rf_last) goes_on_g <= !rf_out.c_ends;
      end
      flight_g <= {flight_g[FLIGHT-2:0], issue_o && last_o};
    end
    flight_word_g <= {flight_word_g[FLIGHT-2:0], c_word};
  end

  // Banks of tiles that wait to be issued.
  logic [1:0] a_used, b_used;
  logic [BANKS-1:0] c_used, alive, in_flight; // of C: used, not stored yet, with a sum in flight
  logic [BANKS-1:0][ROWS-1:0] row_in_flight;
  logic [1:0][7:0] open;
  logic summed, on_its_way; // the row that is read is still to be stored to; a sum in flight goes to the product's word
  always_comb begin
    {a_used, b_used, c_used, open, summed, on_its_way} = '0;
    for (int unsigned i = 0; i < 2; i++) begin
      if (32'(tiles_g) > i) begin
        a_used[tile_g[i].a_bank] = 1'b1;
        b_used[tile_g[i].b_bank] = 1'b1;
        for (int unsigned k = 0; k < BANKS; k++) c_used[k] |= tile_g[i].c_bank == 4'(k);
      end
    end
    for (int unsigned k = 0; k < BANKS; k++) begin
      alive[k] = in_g[k] != '0;
      for (int unsigned j = 0; j < ROWS; j++) begin
        summed |= in_g[k][j] && from_g[k][j] == row;
        row_in_flight[k][j] = run_g && run_word_g[3:1] == c_begin(4'(k)) + 3'(j);
        for (int unsigned i = 0; i < FLIGHT; i++) begin
          row_in_flight[k][j] |= flight_g[i] && flight_word_g[i][3:1] == c_begin(4'(k)) + 3'(j);
        end
      end
      in_flight[k] = |(row_in_flight[k] & {c_rows == 3'd2, 1'b1});
      if (alive[k]) open[half_g[k]] += 8'd1;
    end
    for (int unsigned i = 0; i < FLIGHT; i++) on_its_way |= flight_g[i] && flight_word_g[i] == c_word;
  end

  always_comb begin
    if (rst_ni) begin
      // Filling.
      if (read_o) begin
        a_order : assert (active_g && done_g != '1);
        a_row : assert (read_row_o == row && 9'(at[x]) + 9'(row_g) < 9'(config_i.sram_rows[x]));
        if (x == 2'(A)) a_free_a : assert (!a_used[a_bank_g]);
        if (x == 2'(B)) a_free_b : assert (!b_used[b_bank_g]);
        if (x == 2'(C)) begin
          a_free_c : assert (!c_used[c_bank_g] && !in_g[c_bank_g][row_g] && !(row_g == 1'b0 && alive[c_bank_g]));
          a_no_sum : assert (!in_flight[c_bank_g]);
          a_stored : assert (!summed);
        end
      end
      a_fill : assert (fill_o == read_g && (!read_g || (fill_row_o == to_row_g && fill_zero_o == zero_g)));
      if (push) begin
        a_whole : assert (active_g && done_g == '1 && rf_ready);
        a_tile : assert (rf_in == rf_tile_t'{a: RF_ADDRESS'({a_bank_g ? RF_ROW'(a_rows) : RF_ROW'(0), 1'b0}),
          b: RF_ADDRESS'({RF_ROW'({a_rows, 1'b0}) + (b_bank_g ? RF_ROW'(b_rows) : RF_ROW'(0)), 1'b0}),
          c: RF_ADDRESS'({c_begin(c_bank_g), 1'b0}), a_bank: a_bank_g, b_bank: b_bank_g, c_bank: c_bank_g,
          a_ends: run_last[A] || last, b_ends: run_last[B] || last, c_new: moved_c_g, c_ends: run_last[C] || last});
      end
      a_taken : assert (tile_ready_o == !active_g);
      a_drain : assert (drain_valid_o == (push && last && of_g.c_ends));
      if (drain_valid_o) a_drained : assert (drain_ready_i && drain_o == of_g);
      a_filled : assert (filled_o == filled_g && open_o == open);
      // Issuing.
      if (issue_o) begin
        a_issue : assert (tiles_g != '0 && rf_pop == rf_last);
        a_words : assert (a_word_o == rf_out.a + word[A] && b_word_o == rf_out.b + word[B]);
        a_bank : assert (32'(word[A]) < 2 * 32'(a_rows) && 32'(word[B]) < 2 * 32'(b_rows) && 32'(word[C]) < 2 * 32'(c_rows));
        if (refresh_o) begin
          a_begins : assert (!run_g && c_word_o == rf_out.c + word[C] && !store_o);
          a_alone : assert (!on_its_way);
        end else begin
          a_goes_on : assert (run_g && run_word_g == c_word);
        end
        if (rf_last && rf_out.c_ends) a_run_ends : assert (last_o);
      end else begin
        a_pop : assert (!rf_pop);
      end
      if (sum_i) a_sum : assert (sum_word_o[3:0] == flight_word_g[FLIGHT-1]);
      // Storing.
      if (store_o) begin
        a_store : assert (in_g[bank_g][stored_g] && store_row_o == from_g[bank_g][stored_g] &&
          c_word_o == RF_ADDRESS'({c_begin(bank_g) + RF_ROW'(stored_g), 1'b0}));
        a_summed : assert (!c_used[bank_g] && !in_flight[bank_g]);
        a_not_filled : assert (!(active_g && bank_g == c_bank_g && (done_g[C] || (x == 2'(C) && row_g))));
      end
      if (idle_o) a_idle : assert (!active_g && tiles_g == '0 && alive == '0 && flight_g == '0 && !run_g);
`ifdef INDUCTION
      a_state : assert (state_q <= 3'd4 && (state_q != 3'd0) == active_g);
      a_same : assert (a_bank_q == a_bank_g && b_bank_q == b_bank_g && c_bank_q == c_bank_g && c_bank_g < config_i.c_banks &&
        store_bank_q == bank_g && bank_g < config_i.c_banks && store_row_count_q == 4'(stored_g) && 3'(stored_g) < c_rows);
      if (active_g) begin
        a_at : assert (tile_q == of_g && row_q == 4'(row_g) && 4'(row_g) < config_i.rf_rows[x] && changed_q[C] == moved_c_g &&
          (changed_q | done_g) == '1);
        a_step : assert ((state_q == 3'd4) == (done_g == '1) && (state_q == 3'd4 || state_q == 3'd1 + 3'(x)));
        if (row_g) a_second : assert (done_g != '1 && at[x] < config_i.sram_rows[x]);
        // What moved is still to be read unless it is behind.
        for (int unsigned i = 0; i < OPERANDS; i++) assert (2'(i) < x || done_g == '1 || done_g[i] == !changed_q[i]);
      end
      a_next : assert (goes_on_g == !(tiles_g != '0 ? tile_g[0].c_new : active_g ? moved_c_g : 1'b1));
`endif
    end
  end

`ifdef INDUCTION
  // Who holds a bank: a tile in the queue, or the one that is filled.
  logic a_held, b_held, c_held, c_part;
  rf_tile_t tail;
  logic [BANKS-1:0][ROWS-1:0] expected;
  logic [1:0] rows_mask;
  always_comb begin
    a_held    = active_g && (done_g[A] || (x == 2'(A) && row_g));
    b_held    = active_g && (done_g[B] || (x == 2'(B) && row_g));
    c_part    = active_g && x == 2'(C) && !done_g[C] && row_g;
    c_held    = (active_g && done_g[C]) || c_part;
    tail      = tile_g[tiles_g == 2'd2];
    rows_mask = {c_rows == 3'd2, 1'b1};
    for (int unsigned k = 0; k < BANKS; k++) begin
      expected[k] = '0;
      if (c_closed_q[k]) expected[k] = rows_mask & ~{1'b0, bank_g == 4'(k) && stored_g};
      else if (c_used[k]) expected[k] = rows_mask;
      else if (c_held && c_bank_g == 4'(k)) expected[k] = c_part ? 2'b01 : rows_mask;
    end
  end
  logic belongs;
  // Each word with a sum in flight lies in a row that is read and not stored yet.
  always_comb begin
    belongs = 1'b1;
    for (int unsigned i = 0; i <= FLIGHT; i++) begin
      automatic logic found = 1'b0;
      for (int unsigned k = 0; k < BANKS; k++) begin
        for (int unsigned j = 0; j < ROWS; j++) begin
          found |= in_g[k][j] && !(c_part && c_bank_g == 4'(k)) && c_begin(4'(k)) + 3'(j) == (i == FLIGHT ? run_word_g[3:1] : flight_word_g[i % FLIGHT][3:1]);
        end
      end
      belongs &= found || !(i == FLIGHT ? run_g : flight_g[i % FLIGHT]);
    end
  end
  always_comb begin
    if (rst_ni) begin
      for (int unsigned k = 0; k < 2; k++) begin
        assert (a_busy_q[k] == (a_used[k] || (a_held && a_bank_g == k[0])));
        assert (b_busy_q[k] == (b_used[k] || (b_held && b_bank_g == k[0])));
      end
      for (int unsigned k = 0; k < 16; k++) begin
        if (k >= BANKS || 32'(config_i.c_banks) <= k) assert (!c_busy_q[k] && !c_closed_q[k]);
      end
      for (int unsigned k = 0; k < BANKS; k++) begin
        assert (in_g[k] == expected[k] && c_busy_q[k] == alive[k]);
        if (c_closed_q[k]) assert (!c_used[k] && !(c_held && c_bank_g == 4'(k)));
        if (stored_g && bank_g == 4'(k)) assert (c_closed_q[k]);
        if (alive[k]) assert (c_half_q[k] == half_g[k]);
        for (int unsigned j = 0; j < ROWS; j++) begin
          if (in_g[k][j]) begin
            assert (from_g[k][j] == c_row_q[k] + SRAM_ADDRESS'(j) && row_busy_q[from_g[k][j]]);
            for (int unsigned m = 0; m < BANKS * ROWS; m++) begin
              if (m > k * ROWS + j) assert (!in_g[m/ROWS][m%ROWS] || from_g[m/ROWS][m%ROWS] != from_g[k][j]);
            end
          end
        end
      end
      if (c_part) assert (from_g[c_bank_g][0] == of_g.c_row + at[C] && half_g[c_bank_g] == of_g.c_half);
      // The queue's tiles, one behind the other.
      if (tiles_g != '0) begin
        assert (tiles_g <= 2'd2);
        assert (a_bank_g == tail.a_bank ^ tail.a_ends && b_bank_g == tail.b_bank ^ tail.b_ends);
        assert (c_bank_g == (tail.c_ends ? next_bank(tail.c_bank) : tail.c_bank));
        if (active_g) assert (changed_q == {tail.c_ends, tail.b_ends, tail.a_ends});
        else assert (tail.a_ends && tail.b_ends && tail.c_ends);
      end
      if (tiles_g == 2'd2) begin
        assert (tile_g[1].a_bank == tile_g[0].a_bank ^ tile_g[0].a_ends && tile_g[1].b_bank == tile_g[0].b_bank ^ tile_g[0].b_ends);
        assert (tile_g[1].c_bank == (tile_g[0].c_ends ? next_bank(tile_g[0].c_bank) : tile_g[0].c_bank));
        assert (tile_g[1].c_new == tile_g[0].c_ends);
        if (tile_g[0].c_ends) assert (tile_g[1].c_bank != tile_g[0].c_bank);
      end
      for (int unsigned i = 0; i < 2; i++) begin
        if (32'(tiles_g) > i) begin
          assert (tile_g[i].c_bank < config_i.c_banks && tile_g[i].c == RF_ADDRESS'({c_begin(tile_g[i].c_bank), 1'b0}));
          if (tile_g[i].a_ends) assert (!(a_held && a_bank_g == tile_g[i].a_bank));
          if (tile_g[i].b_ends) assert (!(b_held && b_bank_g == tile_g[i].b_bank));
          if (tile_g[i].c_ends) assert (!(c_held && c_bank_g == tile_g[i].c_bank));
        end
      end
      // Sums: each in flight has its word to itself, in a bank that is not stored.
      if (run_g) assert (pending_q[run_word_g]);
      for (int unsigned i = 0; i < FLIGHT; i++) begin
        if (flight_g[i]) begin
          assert (pending_q[flight_word_g[i]] && !(run_g && run_word_g == flight_word_g[i]));
          for (int unsigned m = i + 1; m < FLIGHT; m++) assert (!flight_g[m] || flight_word_g[m] != flight_word_g[i]);
        end
      end
      a_belongs : assert (belongs);
      // A sum under way.
      assert (run_g == (one_c ? !begins_g || goes_on_g : !rf_run_first[C]));
      if (!begins_g) assert (tiles_g != '0);
      if (run_g) assert (run_word_g == (tiles_g != '0 ? c_word : {c_begin(c_bank_g), 1'b0}));
    end
  end
`endif
`ifdef COVER
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      c_stored : cover (store_o && bank_g == 4'd1);
      c_two : cover (issue_o && filled_g == 32'd1 && tiles_g == 2'd2);
      c_waits : cover (rf_valid && !issue_o);
      c_goes_on : cover (issue_o && !refresh_o && begins_g);
    end
  end
`endif
endmodule

bind oc_sequencer f_oc_sequencer #(.LANES(LANES), .RF_ROWS(RF_ROWS)) u_proof (.state_q(3'(state_q)), .*);
bind oc_sequencer bc_handshake_assert #(.WIDTH($bits(oc_pkg::tile_t)), .ASSUME(1'b1)) u_assume_tile (
  .clk_i, .rst_ni, .valid_i(tile_valid_i), .ready_i(tile_ready_o), .data_i(tile_i)
);
