// Carries the SSD's stream into the DRAM: tile after tile into its two halves, two 64-bit words a beat.
//
// A half is filled again once the tile that lay in it has been used. `loaded_o` says how many beats of the tile that
// the lanes work on are there, so work follows the stream closely.
module oc_ssd_loader
  import oc_pkg::*;
#(
  parameter int unsigned HALF_BEATS = 1 << 16
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,
  input  logic                    start_i,
  input  config_t                 config_i,
  input  logic [31:0]             used_i,   // tiles that are done with
  output logic [DRAM_ADDRESS-1:0] loaded_o, // beats of tile `used_i`
  input  logic                    ssd_valid_i,
  output logic                    ssd_ready_o,
  input  logic [63:0]             ssd_data_i,
  output logic                    dram_valid_o,
  input  logic                    dram_ready_i,
  output logic [DRAM_ADDRESS-1:0] dram_address_o,
  output logic [BEAT-1:0]         dram_data_o
);
  logic active_q, full_q, low_valid_q;
  logic [31:0] tile_q;
  logic [DRAM_ADDRESS-1:0] beat_q, address_q;
  logic [63:0] low_q;
  logic may_fill, take, last_beat;

  // At most the tile in use and the next one are in the DRAM.
  assign may_fill       = active_q && tile_q != config_i.tiles && tile_q - used_i < 32'd2;
  assign ssd_ready_o    = may_fill && (!full_q || dram_ready_i);
  assign take           = ssd_valid_i && ssd_ready_o;
  assign last_beat      = beat_q + 1'b1 == config_i.tile_beats;
  assign dram_valid_o   = full_q;
  assign dram_address_o = address_q;

  // Beats count from when their write is in the DRAM's queue, which is in order.
  logic [31:0] written_tile_q;
  logic [DRAM_ADDRESS-1:0] written_q;
  always_comb begin
    if (config_i.resident || written_tile_q != used_i) loaded_o = config_i.tile_beats;
    else loaded_o = written_q;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {active_q, full_q, low_valid_q} <= '0;
      tile_q         <= '0;
      beat_q         <= '0;
      address_q      <= '0;
      low_q          <= '0;
      dram_data_o    <= '0;
      written_q      <= '0;
      written_tile_q <= '0;
    end else if (start_i) begin
      active_q       <= !config_i.resident;
      full_q         <= 1'b0;
      low_valid_q    <= 1'b0;
      tile_q         <= '0;
      beat_q         <= '0;
      written_q      <= '0;
      written_tile_q <= '0;
    end else begin
      if (full_q && dram_ready_i) begin
        full_q <= 1'b0;
        if (written_q + 1'b1 == config_i.tile_beats) begin
          written_q      <= '0;
          written_tile_q <= written_tile_q + 1'b1;
        end else begin
          written_q <= written_q + 1'b1;
        end
      end
      if (take) begin
        low_valid_q <= !low_valid_q;
        if (!low_valid_q) begin
          low_q <= ssd_data_i;
        end else begin
          full_q      <= 1'b1;
          dram_data_o <= {ssd_data_i, low_q};
          address_q   <= beat_q + (tile_q[0] ? DRAM_ADDRESS'(HALF_BEATS) : '0);
          beat_q      <= last_beat ? '0 : beat_q + 1'b1;
          if (last_beat) tile_q <= tile_q + 1'b1;
        end
      end
    end
  end
endmodule
