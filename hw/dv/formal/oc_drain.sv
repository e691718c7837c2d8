// oc_drain: every row of a tile is read once, in order and only when no sum of its half is open; each of its beats leaves once, to
// its place, out of the chip where the tile is final and to the DRAM elsewhere; it holds the lane's word, or the sum of those of
// the lanes that share a C. By induction, at any pace of SRAM, DRAM and taker.
//
// Assumed: a descriptor that stays, of two lanes of 32-bit words and tiles of 1 to 4 rows; a tile stays until it is taken; a start
// comes while there is none. Of a row's words one is looked at: in the lower half of rows of one beat, in the upper half of the
// others.
module f_oc_drain
  import oc_pkg::*;
#(
  parameter int unsigned LANES      = 2,
  parameter int unsigned WORD       = 32,
  parameter int unsigned HALF_BEATS = 1 << 16
) (
  input logic                      clk_i,
  input logic                      rst_ni,
  input logic                      start_i,
  input config_t                   config_i,
  input logic                      idle_o,
  input logic                      overrun_o,
  input logic [31:0]               drained_o,
  input logic                      tile_valid_i,
  input logic                      tile_ready_o,
  input tile_t                     tile_i,
  input logic [1:0][7:0]           open_i,
  input logic                      read_valid_o,
  input logic                      read_ready_i,
  input logic [SRAM_ADDRESS-1:0]   read_row_o,
  input logic [LANES-1:0][ROW-1:0] rows_i,
  input logic                      dram_valid_o,
  input logic                      dram_ready_i,
  input logic [DRAM_ADDRESS-1:0]   dram_address_o,
  input logic                      out_valid_o,
  input logic                      out_ready_i,
  input logic [BEAT-1:0]           data_o,
  // For induction.
  input logic [2:0]                state_q,
  input logic [SRAM_ADDRESS-1:0]   row_q,
  input logic [4:0]                group_q,
  input logic [4:0]                inner_q,
  input logic [4:0]                step_q,
  input logic [3:0]                word_q,
  input logic                      upper_q,
  input logic [DRAM_ADDRESS-1:0]   group_base_q,
  input logic [DRAM_ADDRESS-1:0]   inner_base_q,
  input logic [DRAM_ADDRESS-1:0]   beat_q,
  input logic [LANES-1:0][ROW-1:0] rows_q,
  input logic [7:0][31:0]          sum_q
);
  f_reset u_reset (.clk_i, .rst_ni);
  localparam int unsigned HALF = ROW / WORD / 2; // words of a beat

  config_t config_q;
  logic begun_q;
  initial begun_q = 1'b0;

  always_ff @(posedge clk_i) begin
    config_q <= config_i;
    begun_q  <= 1'b1;
  end
  logic two, reduce, one_beat;
  logic [2:0] rows;
  assign two      = config_i.inner_log2 == 4'd1;
  assign reduce   = config_i.reduce;
  assign one_beat = config_i.one_beat[C];
  assign rows     = config_i.sram_rows[C][2:0];
  always_comb begin
    m_lanes : assume ((config_i.inner_log2 == 4'd0 && config_i.groups == 5'd2) || (two && config_i.groups == 5'd1));
    m_rows : assume (config_i.sram_rows[C] >= 8'd1 && config_i.sram_rows[C] <= 8'd4);
    if (begun_q) m_stays : assume (config_i == config_q);
    if (start_i) m_start : assume (idle_o);
  end

  // Where the next beat belongs, counted here once more.
  logic upper_g, has_g, take_g, begun_g, closed_g, last, moves;
  logic [2:0] row_g;
  logic group_g, inner_g;
  logic [31:0] own_g, other_g, sum_g, number_g; // of the lane, and of the one that it shares a C with
  logic [LANES-1:0][7:0][31:0] lanes;
  assign lanes = rows_i;
  logic row_last, inner_last, group_last;
  assign row_last   = row_g + 3'd1 == rows;
  assign inner_last = reduce || !two || inner_g;
  assign group_last = two || group_g;
  assign moves      = (out_valid_o && out_ready_i) || (dram_valid_o && dram_ready_i);
  assign last       = (one_beat || upper_g) && row_last && inner_last && group_last;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      {upper_g, row_g, inner_g, group_g, has_g, take_g, begun_g} <= '0;
      number_g <= '0;
    end else begin
      take_g   <= read_valid_o && read_ready_i;
      closed_g <= open_i[tile_i.c_half] == '0;
      if (read_valid_o) begun_g <= 1'b1;
      if (read_valid_o && read_ready_i) has_g <= 1'b1;
      if (take_g) begin
        own_g   <= one_beat ? lanes[group_g | inner_g][1] : lanes[group_g | inner_g][6];
        other_g <= one_beat ? lanes[1][1] : lanes[1][6];
      end
      if (start_i) number_g <= '0;
      if (moves) begin
        upper_g <= !one_beat && !upper_g;
        if (one_beat || upper_g) begin
          has_g <= 1'b0;
          row_g <= row_last ? '0 : row_g + 1'b1;
          if (row_last) begin
            inner_g <= !inner_last;
            if (inner_last) begin
              group_g <= !group_last;
              if (group_last) begin
                begun_g  <= 1'b0;
                number_g <= tile_i.number + 1'b1;
              end
            end
          end
        end
      end
    end
  end

  assign sum_g = reduce && two ? own_g + other_g : own_g;
  logic [DRAM_ADDRESS-1:0] place;
  assign place = tile_i.c_beat + (group_g ? config_i.group_stride[C] : '0) + (inner_g ? config_i.inner_stride[C] : '0) +
    DRAM_ADDRESS'(one_beat ? {1'b0, row_g} : {row_g, upper_g});
  logic [HALF-1:0][31:0] beat;
  assign beat = data_o;
`ifdef INDUCTION
  logic [31:0] word;
  assign word = one_beat ? sum_q[1] : sum_q[6];
`endif
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      a_one : assert (32'(read_valid_o) + 32'(out_valid_o) + 32'(dram_valid_o) <= 32'd1);
      a_taken : assert (tile_ready_o == (moves && last));
      a_drained : assert (drained_o == number_g);
      if (read_valid_o) begin
        a_tile : assert (tile_valid_i && !upper_g && !has_g);
        a_row : assert (read_row_o == tile_i.c_row + 8'(row_g));
        if (!begun_g) a_closed : assert (closed_g);
      end
      if (out_valid_o || dram_valid_o) begin
        a_read : assert (tile_valid_i && has_g && !take_g);
        a_way : assert (out_valid_o == tile_i.c_final);
        if (one_beat) a_sum_lower : assert (beat[1] == sum_g);
        else if (upper_g) a_sum_upper : assert (beat[2] == sum_g);
      end
      if (dram_valid_o) a_place : assert (dram_address_o == place + DRAM_ADDRESS'(2 * HALF_BEATS));
      if (idle_o) a_idle : assert (!tile_valid_i && !begun_g);
      if (overrun_o) a_overrun : assert (dram_valid_o);
`ifdef INDUCTION
      a_state : assert (state_q <= 3'd4 && (state_q == 3'd2) == take_g && (state_q == 3'd1) == read_valid_o);
      a_has : assert (has_g == (state_q >= 3'd2) && row_g < rows);
      if (state_q != 3'd0) begin
        a_same : assert (tile_valid_i && row_q == 8'(row_g) && group_q == 5'(group_g) && inner_q == 5'(inner_g) && upper_q == upper_g);
        a_base : assert (group_base_q == (group_g ? config_i.group_stride[C] : '0) &&
          inner_base_q == (inner_g ? config_i.inner_stride[C] : '0) &&
          beat_q == DRAM_ADDRESS'(one_beat ? {1'b0, row_g} : {row_g, upper_g}));
        if (state_q != 3'd1) a_begun : assert (begun_g);
      end else begin
        a_none : assert ({upper_g, row_g, inner_g, group_g, begun_g} == '0);
      end
      a_within : assert ((!inner_g || (two && !reduce)) && (!group_g || !two) && (!one_beat || !upper_g));
      if (upper_g) a_upper : assert (state_q == 3'd4);
      if (state_q == 3'd1 && !begun_g) a_first : assert (closed_g);
      if (state_q == 3'd3) begin
        a_sums : assert (reduce && two && step_q == 5'd1 && word_q < (one_beat ? 4'd4 : 4'd8));
        a_other : assert ((one_beat ? rows_q[1][32+:32] : rows_q[1][192+:32]) == other_g);
        a_so_far : assert (word == (word_q > (one_beat ? 4'd1 : 4'd6) ? sum_g : own_g));
      end
      if (state_q == 3'd4) a_done : assert (word == sum_g);
`endif
    end
  end
endmodule

bind oc_drain f_oc_drain #(.LANES(LANES), .WORD(WORD), .HALF_BEATS(HALF_BEATS)) u_proof (.state_q(3'(state_q)), .*);
bind oc_drain bc_handshake_assert #(.WIDTH($bits(oc_pkg::tile_t)), .ASSUME(1'b1)) u_assume_tile (
  .clk_i, .rst_ni, .valid_i(tile_valid_i), .ready_i(tile_ready_o), .data_i(tile_i)
);
bind oc_drain bc_handshake_assert #(.WIDTH(oc_pkg::SRAM_ADDRESS)) u_assert_read (
  .clk_i, .rst_ni, .valid_i(read_valid_o), .ready_i(read_ready_i), .data_i(read_row_o)
);
bind oc_drain bc_handshake_assert #(.WIDTH(oc_pkg::DRAM_ADDRESS + oc_pkg::BEAT)) u_assert_dram (
  .clk_i, .rst_ni, .valid_i(dram_valid_o), .ready_i(dram_ready_i), .data_i({dram_address_o, data_o})
);
bind oc_drain bc_handshake_assert #(.WIDTH(oc_pkg::BEAT)) u_assert_out (
  .clk_i, .rst_ni, .valid_i(out_valid_o), .ready_i(out_ready_i), .data_i(data_o)
);
