// oc_tile_loader: in each step, every beat of the operands that moved is asked for, once and in order, from its place in the DRAM
// when it is there, into a half of the SRAMs that no tile uses any more, for the lanes that it belongs to; then the tile's record
// goes behind them, and so out behind the last of its beats. A tile of the SSD is used up when all of it has come. By induction, at
// any pace of stream, DRAM, SRAMs and sequencer, for loops that go anywhere.
//
// Assumed: a descriptor that stays, of all lanes and of tiles of 1 to 3 rows (`oc_config`); a start comes when all is done
// (`onionchopper`). What is there of a tile of the stream grows to `tile_beats` (proved of `oc_ssd_loader`). Counts of tiles that
// left never fall, and are 0 behind a start. The loop nest's outputs stay between its steps, the queues keep order (proved of
// `bc_loop_nest`, `bc_fifo`, for which `stand_ins.sv` stands in). Fewer than 2^32 tiles.
module f_oc_tile_loader
  import oc_pkg::*;
#(
  parameter int unsigned LANES      = 4,
  parameter int unsigned HALF_BEATS = 8,
  parameter int unsigned C_BEATS    = 4,
  parameter int unsigned FLIGHT     = 3,
  localparam int unsigned WHERE     = 1 + LANES + 2 + SRAM_ADDRESS
) (
  input logic                                   clk_i,
  input logic                                   rst_ni,
  input logic                                   start_i,
  input config_t                                config_i,
  input logic                                   done_o,
  input logic                                   overrun_o,
  input logic [DRAM_ADDRESS-1:0]                loaded_i,
  input logic [31:0]                            used_o,
  input logic [31:0]                            filled_i,
  input logic [31:0]                            drained_i,
  input logic                                   dram_valid_o,
  input logic                                   dram_ready_i,
  input logic [DRAM_ADDRESS-1:0]                dram_address_o,
  input logic                                   dram_valid_i,
  input logic                                   dram_ready_o,
  input logic [LANES-1:0]                       write_o,
  input logic [1:0]                             write_half_o,
  input logic [SRAM_ADDRESS-1:0]                write_row_o,
  input logic                                   write_ready_i,
  input logic                                   tile_valid_o,
  input logic                                   tile_ready_i,
  input tile_t                                  tile_o,
  // The loop nest.
  input logic                                   nest_start,
  input logic                                   nest_advance,
  input logic [OPERANDS-1:0][DRAM_ADDRESS-1:0]  address,
  input logic                                   last,
  input logic [OPERANDS-1:0]                    first,
  input logic [OPERANDS-1:0]                    final_visit,
  input logic [OPERANDS-1:0]                    run_last,
  // The queues: where beats go, or behind a tile's last one a mark; and tiles' records.
  input logic                                   flight_valid,
  input logic                                   flight_ready,
  input logic [WHERE-1:0]                       flight_in,
  input logic                                   flight_out_valid,
  input logic                                   flight_pop,
  input logic [WHERE-1:0]                       flight_out,
  input logic                                   tiles_valid,
  input logic                                   tiles_ready,
  input tile_t                                  tile_in,
  input logic                                   tile_pop,
  input tile_t                                  tile_out,
  // For induction.
  input logic [2:0]                             state_q,
  input logic [1:0]                             operand_q,
  input logic [OPERANDS-1:0]                    changed_q,
  input logic [OPERANDS-1:0]                    half_q,
  input logic [31:0]                            number_q,
  input logic [4:0]                             group_q,
  input logic [4:0]                             inner_q,
  input logic [DRAM_ADDRESS-1:0]                group_base_q,
  input logic [DRAM_ADDRESS-1:0]                inner_base_q,
  input logic [DRAM_ADDRESS-1:0]                beat_q,
  input logic [OPERANDS-1:0][1:0][31:0]         used_until_q
);
  f_reset u_reset (.clk_i, .rst_ni);
  localparam int unsigned INDEX = $clog2(LANES);
  localparam int unsigned FLIGHTS = $clog2(FLIGHT + 1);
  typedef struct packed {
    logic                    mark;
    logic [LANES-1:0]        lanes;
    logic [1:0]              half;
    logic [SRAM_ADDRESS-1:0] row;
  } where_t;
  where_t in, out;
  assign in  = flight_in;
  assign out = flight_out;

  // The queues.
  logic [FLIGHTS-1:0] flights_g;
  where_t [FLIGHT-1:0] flight_g;
  logic [2:0] records_g;
  tile_t [3:0] record_g;
  f_queue #(.WIDTH(WHERE), .DEPTH(FLIGHT)) u_flight (
    .clk_i, .rst_ni, .valid_i(flight_valid), .ready_o(flight_ready), .data_i(flight_in), .ready_i(flight_pop),
    .data_o(flight_out), .count_q(flights_g), .queue_q(flight_g)
  );
  f_queue #(.WIDTH($bits(tile_t)), .DEPTH(4)) u_tiles (
    .clk_i, .rst_ni, .valid_i(tiles_valid), .ready_o(tiles_ready), .data_i(tile_in), .ready_i(tile_pop),
    .data_o(tile_out), .count_q(records_g), .queue_q(record_g)
  );

  // What is assumed.
  logic begun_q, started_q, stepped_q;
  initial begun_q = 1'b0;
  config_t config_q;
  logic [31:0] filled_q, drained_q, used_q;
  logic [DRAM_ADDRESS-1:0] loaded_q;
  logic [OPERANDS-1:0][DRAM_ADDRESS-1:0] address_q;
  logic [3*OPERANDS:0] marks_q;
  always_ff @(posedge clk_i) begin
    begun_q   <= 1'b1;
    started_q <= start_i;
    stepped_q <= nest_start || nest_advance;
    config_q  <= config_i;
    filled_q  <= filled_i;
    drained_q <= drained_i;
    used_q    <= used_o;
    loaded_q  <= loaded_i;
    address_q <= address;
    marks_q   <= {last, first, final_visit, run_last};
  end
  always_comb begin
    m_valid : assume (flight_out_valid == (flights_g != '0));
    m_beats : assume (config_i.tile_beats != '0 && 32'(config_i.tile_beats) <= HALF_BEATS && config_i.tiles != '0);
    m_lanes : assume (config_i.inner_log2 <= 4'(INDEX) && 32'(config_i.groups) << config_i.inner_log2 == LANES);
    for (int unsigned x = 0; x < OPERANDS; x++) assume (config_i.sram_rows[x] != '0 && config_i.sram_rows[x] < 8'd4);
    if (begun_q) m_stays : assume (config_i == config_q);
    if (start_i) m_start : assume (done_o);
    m_there : assume (loaded_i <= config_i.tile_beats);
    if (begun_q && used_o == used_q) m_grows : assume (loaded_i >= loaded_q);
    if (begun_q && started_q) m_none : assume (filled_i == '0 && drained_i == '0);
    else if (begun_q) m_in_order : assume (filled_i >= filled_q && drained_i >= drained_q);
    if (begun_q && !stepped_q) m_nest : assume (address == address_q && {last, first, final_visit, run_last} == marks_q);
  end

  // What is to be asked for next, counted here once more.
  logic running_g;
  logic [31:0] tile_g, number_g;                  // tiles of the SSD used up, tiles of the SRAMs closed
  logic [OPERANDS-1:0] moved_g, asked_g, was_g;   // in this step; the half in the step before
  logic [OPERANDS-1:0][1:0][31:0] until_g;        // by operand and half: tiles up to the last one that used it
  logic [INDEX-1:0] group_g, inner_g;
  logic [2:0] beat_g;
  logic [OPERANDS-1:0] done, half, free;
  logic [1:0] x;
  always_comb begin
    done = ~moved_g | asked_g;
    if (first[C]) done[C] = 1'b1; // begins at zero
    x = !done[A] ? 2'(A) : !done[B] ? 2'(B) : 2'(C);
    half = was_g ^ moved_g;
    for (int unsigned i = 0; i < OPERANDS; i++) free[i] = (i == C ? drained_i : filled_i) >= until_g[i][half[i]];
  end
  logic in_c, one_beat, by_group, by_inner, one_c;
  logic [2:0] beats;
  logic [2:0] inners;
  logic asks, closes, beat_last, inner_last, group_last;
  assign in_c       = x == 2'(C);
  assign one_beat   = config_i.one_beat[x];
  assign beats      = one_beat ? config_i.sram_rows[x][2:0] : {config_i.sram_rows[x][1:0], 1'b0};
  assign one_c      = in_c && config_i.reduce; // of lanes that share a C the first begins with it
  assign by_group   = config_i.group_stride[x] != '0;
  assign by_inner   = config_i.inner_stride[x] != '0 && !one_c;
  assign inners     = 3'd1 << config_i.inner_log2;
  assign beat_last  = beat_g + 1'b1 == beats;
  assign inner_last = !by_inner || 3'(inner_g) + 3'd1 == inners;
  assign group_last = !by_group || 5'(group_g) + 5'd1 == config_i.groups;
  assign asks       = dram_valid_o && dram_ready_i;
  assign closes     = tiles_valid && tiles_ready;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      {running_g, tile_g, number_g, moved_g, asked_g, was_g, until_g, group_g, inner_g, beat_g} <= '0;
    end else begin
      if (start_i) begin
        running_g <= 1'b1;
        moved_g   <= '1;
        {tile_g, number_g, asked_g, was_g, until_g} <= '0;
      end
      if (asks) begin
        beat_g <= beat_last ? '0 : beat_g + 1'b1;
        if (beat_last) begin
          inner_g <= inner_last ? '0 : inner_g + 1'b1;
          if (inner_last) begin
            group_g <= group_last ? '0 : group_g + 1'b1;
            if (group_last) asked_g[x] <= 1'b1;
          end
        end
      end
      if (closes) begin
        number_g <= number_g + 1'b1;
        was_g    <= half;
        asked_g  <= '0;
        moved_g  <= last ? '1 : run_last;
        for (int unsigned i = 0; i < OPERANDS; i++) until_g[i][half[i]] <= number_g + 1'b1;
        if (last) begin
          tile_g    <= tile_g + 1'b1;
          running_g <= tile_g + 1'b1 != config_i.tiles;
        end
      end
    end
  end

  // Where it lies, and where it goes.
  function automatic logic [DRAM_ADDRESS-1:0] times(logic [DRAM_ADDRESS-1:0] stride, logic [INDEX-1:0] count);
    times = '0;
    for (int unsigned i = 0; i < INDEX; i++) if (count[i]) times += stride << i;
  endfunction
  logic [DRAM_ADDRESS-1:0] offset, place, group_base, inner_base;
  logic [OPERANDS-1:0][SRAM_ADDRESS-1:0] base;
  logic [LANES-1:0] lanes;
  logic over;
  always_comb begin
    group_base = times(config_i.group_stride[x], group_g);
    inner_base = times(config_i.inner_stride[x], inner_g);
    offset = address[x] + (x == 2'(B) ? config_i.b_base : '0) + group_base + inner_base + DRAM_ADDRESS'(beat_g);
    place  = offset + (in_c ? DRAM_ADDRESS'(2 * HALF_BEATS) : tile_g[0] ? DRAM_ADDRESS'(HALF_BEATS) : '0);
    over   = offset >= (in_c ? DRAM_ADDRESS'(C_BEATS) : config_i.tile_beats);
    base[A] = half[A] ? config_i.sram_rows[A] : '0;
    base[B] = (config_i.sram_rows[A] << 1) + (half[B] ? config_i.sram_rows[B] : '0);
    base[C] = (config_i.sram_rows[A] << 1) + (config_i.sram_rows[B] << 1) + (half[C] ? config_i.sram_rows[C] : '0);
    for (int unsigned i = 0; i < LANES; i++) begin
      lanes[i] = (!by_group || INDEX'(i >> config_i.inner_log2) == group_g) &&
        (one_c ? (i & (32'(inners) - 1)) == 0 : !by_inner || (i & (32'(inners) - 1)) == 32'(inner_g));
    end
  end

  logic [2:0] marks;
  always_comb begin
    marks = '0;
    for (int unsigned i = 0; i < FLIGHT; i++) marks += 3'(32'(flights_g) > i && flight_g[i].mark);
  end
  always_comb begin
    if (rst_ni) begin
      if (dram_valid_o) begin
        a_operand : assert (running_g && done != '1 && !start_i);
        a_place : assert (dram_address_o == place);
        a_region : assert (!over);
        if (!in_c) a_there : assert (offset < loaded_i);
        a_free : assert (free[x]);
        a_goes : assert (in == where_t'{mark: 1'b0, lanes: lanes, half: one_beat || !beat_g[0] ? 2'b01 : 2'b10,
          row: base[x] + SRAM_ADDRESS'(one_beat ? beat_g : beat_g >> 1)});
`ifdef INDUCTION // whatever the module does: both are counted here
        a_within : assert (beat_g < beats);
`endif
      end
      if (overrun_o) a_overrun : assert (running_g && done != '1 && over);
      if (tiles_valid) begin
        a_all : assert (running_g && done == '1 && {group_g, inner_g, beat_g} == '0 && !start_i);
        a_all_free : assert ((free | ~moved_g) == '1);
        a_record : assert (tile_in == tile_t'{a_row: base[A], b_row: base[B], c_row: base[C], c_half: half[C], c_new: moved_g[C],
          c_zero: first[C], c_ends: run_last[C] || last, c_final: final_visit[C], c_beat: address[C], number: number_g});
        a_mark : assert (in.mark);
        if (last) a_left : assert (loaded_i == config_i.tile_beats && tile_g < config_i.tiles);
      end
      a_queued : assert ((flight_valid && flight_ready) == (asks || closes));
      a_used : assert (used_o == tile_g && tile_g <= config_i.tiles);
      a_done : assert (done_o == (!running_g && flights_g == '0));
      // What comes back.
      a_marks : assert (marks == records_g);
      if (dram_valid_i && dram_ready_o) begin
        a_answer : assert (flights_g != '0 && !out.mark && write_ready_i && flight_pop);
        a_written : assert (write_o == out.lanes && write_half_o == out.half && write_row_o == out.row);
      end
      if (write_o != '0) a_write : assert (dram_valid_i && flights_g != '0 && !out.mark);
      if (flights_g != '0) a_pop : assert (flight_pop == ((dram_valid_i && dram_ready_o) || (tile_valid_o && tile_ready_i)));
      a_whole : assert (tile_valid_o == (flights_g != '0 && out.mark) && tile_pop == (tile_valid_o && tile_ready_i));
      if (tile_valid_o) a_tile : assert (records_g != '0 && tile_o == record_g[0]);
`ifdef INDUCTION
      a_state : assert (state_q <= 3'd4 && (state_q != 3'd0) == running_g);
      a_same : assert (until_g == used_until_q && number_q == number_g);
      if (running_g) a_tiles : assert (tile_g < config_i.tiles);
      if (state_q <= 3'd2 || state_q == 3'd4) a_begins : assert ({group_g, inner_g, beat_g} == '0);
      if (state_q == 3'd0) a_idle : assert (asked_g == '0);
      if (state_q == 3'd1) a_begin : assert (moved_g == '1 && asked_g == '0 && half_q == was_g);
      if (state_q >= 3'd2) begin
        a_moved : assert (changed_q == moved_g && operand_q <= 2'(C));
        for (int unsigned i = 0; i < OPERANDS; i++) begin
          if (2'(i) < operand_q || state_q == 3'd4) assert (done[i] && half_q[i] == half[i] && (free[i] || !moved_g[i]));
          else if (2'(i) > operand_q || state_q == 3'd2) assert (!asked_g[i] && half_q[i] == was_g[i]);
        end
      end
      if (state_q == 3'd3) begin
        a_reads : assert (!done[operand_q] && !asked_g[operand_q] && half_q[operand_q] == half[operand_q] && free[operand_q]);
        a_at : assert (group_q == 5'(group_g) && inner_q == 5'(inner_g) && beat_q == DRAM_ADDRESS'(beat_g));
        a_bases : assert (group_base_q == group_base && inner_base_q == inner_base);
        a_counts : assert (beat_g < beats && (by_inner ? 3'(inner_g) < inners : inner_g == '0) &&
          (by_group ? 5'(group_g) < config_i.groups : group_g == '0));
      end
      if (state_q == 3'd4) a_last : assert (operand_q == 2'(C));
`endif
`ifdef COVER
      c_second : cover (asks && tile_g == 32'd1);
      c_sums : cover (asks && in_c && group_g != '0);
      c_halves : cover (asks && number_g == 32'd2 && x == 2'(B) && moved_g[A]);
      c_done : cover (done_o && tile_g == 32'd2);
`endif
    end
  end
endmodule

bind oc_tile_loader f_oc_tile_loader #(.LANES(LANES), .HALF_BEATS(HALF_BEATS), .C_BEATS(C_BEATS), .FLIGHT(FLIGHT)) u_proof (
  .state_q(3'(state_q)), .flight_in(flight_in), .flight_out(flight_out), .*
);
bind oc_tile_loader bc_handshake_assert #(.WIDTH(oc_pkg::DRAM_ADDRESS)) u_assert_request (
  .clk_i, .rst_ni, .valid_i(dram_valid_o), .ready_i(dram_ready_i), .data_i(dram_address_o)
);
bind oc_tile_loader bc_handshake_assert #(.WIDTH($bits(oc_pkg::tile_t))) u_assert_tile (
  .clk_i, .rst_ni, .valid_i(tile_valid_o), .ready_i(tile_ready_i), .data_i(tile_o)
);
