// oc_ssd_loader: offers to the DRAM stay, each beat holds the words that came, goes to its place, and no tile that is in
// use is written over. By induction.
//
// Assumed: a descriptor that stays while it runs, a tile that fits; tiles are used up in order, each when all of it is there
// (proved of `oc_tile_loader`).
module f_oc_ssd_loader
  import oc_pkg::*;
#(
  parameter int unsigned HALF_BEATS = 4
) (
  input logic                    clk_i,
  input logic                    rst_ni,
  input logic                    start_i,
  input config_t                 config_i,
  input logic [31:0]             used_i,
  input logic [DRAM_ADDRESS-1:0] loaded_o,
  input logic                    ssd_valid_i,
  input logic                    ssd_ready_o,
  input logic [63:0]             ssd_data_i,
  input logic                    dram_valid_o,
  input logic                    dram_ready_i,
  input logic [DRAM_ADDRESS-1:0] dram_address_o,
  input logic [BEAT-1:0]         dram_data_o,
  input logic                    active_q,
  input logic                    full_q,
  input logic                    low_valid_q,
  input logic [31:0]             tile_q,
  input logic [DRAM_ADDRESS-1:0] beat_q,
  input logic [63:0]             low_q,
  input logic [31:0]             written_tile_q,
  input logic [DRAM_ADDRESS-1:0] written_q
);
  f_reset u_reset (.clk_i, .rst_ni);

  logic running_q;
  initial running_q = 1'b0;
  config_t config_q;
  logic [31:0] used_q;
  logic [DRAM_ADDRESS-1:0] loaded_q;
  logic started_q;
  logic [1:0][63:0] words_q; // the last two of the stream, the latest above
  always_ff @(posedge clk_i) begin
    running_q <= rst_ni && (running_q || start_i);
    config_q  <= config_i;
    used_q    <= used_i;
    loaded_q  <= loaded_o;
    started_q <= start_i;
    if (ssd_valid_i && ssd_ready_o) words_q <= {ssd_data_i, words_q[1]};
  end
  logic [DRAM_ADDRESS-1:0] beats;
  assign beats = config_i.tile_beats;
  always_comb begin
    m_fits : assume (beats != '0 && 32'(beats) <= HALF_BEATS && config_i.tiles != '0);
    if (running_q && !start_i) m_stays : assume (config_i == config_q);
    // One start: the next comes behind a run, with nothing under way.
    if (running_q) m_one_start : assume (!start_i);
    if (!running_q || start_i || started_q) m_none_used : assume (used_i == '0);
    else m_in_order : assume (used_i == used_q || (used_i == used_q + 1'b1 && loaded_q == beats && used_q != config_i.tiles));
  end

  logic [31:0] ahead;
  assign ahead = tile_q - used_i;
  always_comb begin
    if (rst_ni && running_q && !config_i.resident) begin
      // The tile that is written is never the one two before, which lies in the same half.
      a_two_tiles : assert (ahead <= 32'd2 && tile_q <= config_i.tiles && used_i <= config_i.tiles);
      if (ssd_ready_o) a_room : assert (ahead < 32'd2);
`ifdef INDUCTION
      a_beat : assert (beat_q < beats && written_q < beats);
      // Written is what was taken, less the beat that waits.
      a_written : assert (
        full_q ? ((beat_q == '0) ? tile_q == written_tile_q + 1'b1 && written_q + 1'b1 == beats
                                 : tile_q == written_tile_q && written_q + 1'b1 == beat_q)
               : tile_q == written_tile_q && written_q == beat_q);
      a_used_is_written : assert (used_i <= written_tile_q && written_tile_q <= tile_q);
      if (low_valid_q) a_low : assert (low_q == words_q[1]);
`endif
      if (dram_valid_o) begin
        a_place : assert (dram_address_o == written_q + (written_tile_q[0] ? DRAM_ADDRESS'(HALF_BEATS) : '0));
        a_behind_no_one : assert (written_tile_q - used_i < 32'd2);
        a_words : assert (dram_data_o == (low_valid_q ? {words_q[0], dram_data_o[63:0]} : {words_q[1], words_q[0]}));
      end
      // What is said to be there has been written.
      a_loaded : assert (loaded_o <= beats && (written_tile_q != used_i || loaded_o == written_q));
      if (!started_q && used_i == used_q) a_grows : assert (loaded_o >= loaded_q);
    end
    if (rst_ni && running_q && config_i.resident) a_resident : assert (!ssd_ready_o && !dram_valid_o && loaded_o == beats);
`ifdef INDUCTION
    if (rst_ni && !running_q) a_rests : assert (!active_q && !full_q && !low_valid_q && tile_q == '0 && written_tile_q == '0);
    if (rst_ni && running_q) a_active : assert (active_q == !config_i.resident);
`endif
  end
endmodule

bind oc_ssd_loader f_oc_ssd_loader #(.HALF_BEATS(HALF_BEATS)) u_proof (.*);
bind oc_ssd_loader bc_handshake_assert #(.WIDTH(64), .ASSUME(1'b1)) u_assume_ssd (
  .clk_i, .rst_ni, .valid_i(ssd_valid_i), .ready_i(ssd_ready_o), .data_i(ssd_data_i)
);
bind oc_ssd_loader bc_handshake_assert #(.WIDTH(oc_pkg::DRAM_ADDRESS + oc_pkg::BEAT)) u_assert_dram (
  .clk_i, .rst_ni, .valid_i(dram_valid_o), .ready_i(dram_ready_i), .data_i({dram_address_o, dram_data_o})
);
