// Takes finished tiles of C out of the SRAMs. Lanes that share a C are summed on the way, one word a clock and lane; a
// tile that nothing will be summed to again leaves the chip, another goes back to the DRAM.
module oc_drain
  import oc_pkg::*;
#(
  parameter int unsigned LANES      = 2,
  parameter int unsigned WORD       = 64,
  parameter int unsigned HALF_BEATS = 1 << 16,
  parameter int unsigned C_BEATS    = 1 << 14
) (
  input  logic                      clk_i,
  input  logic                      rst_ni,
  input  logic                      start_i,
  input  config_t                   config_i,
  input  modulus_t [MODULI-1:0]     moduli_i,
  output logic                      idle_o,
  output logic                      overrun_o,
  output logic [31:0]               drained_o,
  // Tiles, in order
  input  logic                      tile_valid_i,
  output logic                      tile_ready_o,
  input  tile_t                     tile_i,
  input  logic [1:0][7:0]           open_i,
  // SRAM reads
  output logic                      read_valid_o,
  input  logic                      read_ready_i,
  output logic [SRAM_ADDRESS-1:0]   read_row_o,
  input  logic [LANES-1:0][ROW-1:0] rows_i,
  // To DRAM
  output logic                      dram_valid_o,
  input  logic                      dram_ready_i,
  output logic [DRAM_ADDRESS-1:0]   dram_address_o,
  // Out of the chip
  output logic                      out_valid_o,
  input  logic                      out_ready_i,
  output logic [BEAT-1:0]           data_o
);
  localparam int unsigned WORDS = ROW / WORD;
  localparam int unsigned LANE = (LANES > 1) ? $clog2(LANES) : 1;

  typedef enum logic [2:0] {IDLE, READ, TAKE, SUM, WRITE} state_e;
  state_e state_q;
  logic [SRAM_ADDRESS-1:0] row_q;
  logic [4:0] group_q, inner_q, step_q, sharers, positions;
  logic [$clog2(WORDS):0] word_q, words;
  logic upper_q;
  logic [DRAM_ADDRESS-1:0] group_base_q, inner_base_q, beat_q;
  logic [LANES-1:0][ROW-1:0] rows_q; // of the group's lanes, the first of them first
  logic [WORDS-1:0][WORD-1:0] sum_q;
  logic [LANE-1:0] first_lane;

  assign sharers    = config_i.reduce ? 5'd1 << config_i.inner_log2 : 5'd1;
  assign positions  = config_i.reduce ? 5'd1 : 5'd1 << config_i.inner_log2;
  assign words      = config_i.one_beat[C] ? ($clog2(WORDS) + 1)'(WORDS / 2) : ($clog2(WORDS) + 1)'(WORDS);
  assign first_lane = LANE'((group_q << config_i.inner_log2) + inner_q);

  // The sum so far and the next lane's word.
  logic [$clog2(MODULI)-1:0] modulus;
  logic [WORD-1:0] next;
  logic [LANES-1:0][WORDS-1:0][WORD-1:0] lane_words;
  assign lane_words = rows_q;
  oc_mod_add #(.WORD(WORD)) u_add (
    .a_i(sum_q[word_q[$clog2(WORDS)-1:0]]), .b_i(lane_words[step_q[LANE-1:0]][word_q[$clog2(WORDS)-1:0]]),
    .n_i(WORD == 64 ? moduli_i[modulus].n : 65'h1_0000_0000), .r_o(next)
  );

  logic tile_done, row_done, word_done, beat_done, write_ready;
  assign write_ready = tile_i.c_final ? out_ready_i : dram_ready_i;
  assign beat_done   = state_q == WRITE && write_ready;
  assign row_done    = beat_done && (config_i.one_beat[C] || upper_q);
  assign word_done   = word_q + 1'b1 == words;
  assign tile_done   = row_done && row_q + 1'b1 == config_i.sram_rows[C] && inner_q + 1'b1 == positions &&
    group_q + 1'b1 == config_i.groups;
  // A period counts the words of all lanes that drain them; it ends with a row.
  oc_moduli_selector u_selector (
    .clk_i, .rst_ni, .start_i, .advance_i(row_done), .step_i(8'(words)), .period_i(config_i.drain_period),
    .count_i(config_i.moduli), .index_o(modulus)
  );

  assign read_valid_o   = state_q == READ;
  assign read_row_o     = tile_i.c_row + row_q;
  assign out_valid_o    = state_q == WRITE && tile_i.c_final;
  assign dram_valid_o   = state_q == WRITE && !tile_i.c_final;
  assign data_o         = upper_q ? sum_q[WORDS-1:WORDS/2] : sum_q[WORDS/2-1:0];
  logic [DRAM_ADDRESS-1:0] offset;
  assign offset         = tile_i.c_beat + group_base_q + inner_base_q + beat_q;
  assign dram_address_o = offset + DRAM_ADDRESS'(2 * HALF_BEATS);
  assign overrun_o      = dram_valid_o && offset >= DRAM_ADDRESS'(C_BEATS);
  assign tile_ready_o   = tile_done;
  assign idle_o         = state_q == IDLE && !tile_valid_i;

  always_ff @(posedge clk_i) begin
    if (state_q == TAKE) begin
      for (int unsigned s = 0; s < LANES; s++) begin
        rows_q[s] <= rows_i[LANE'(32'(first_lane) + s)];
      end
      sum_q <= rows_i[first_lane];
    end
    if (state_q == SUM) sum_q[word_q[$clog2(WORDS)-1:0]] <= next;
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q      <= IDLE;
      row_q        <= '0;
      group_q      <= '0;
      inner_q      <= '0;
      step_q       <= '0;
      word_q       <= '0;
      upper_q      <= 1'b0;
      group_base_q <= '0;
      inner_base_q <= '0;
      beat_q       <= '0;
      drained_o    <= '0;
    end else if (start_i) begin
      drained_o <= '0;
    end else begin
      unique case (state_q)
        IDLE: if (tile_valid_i && open_i[tile_i.c_half] == '0) begin
          state_q      <= READ;
          row_q        <= '0;
          group_q      <= '0;
          inner_q      <= '0;
          upper_q      <= 1'b0;
          group_base_q <= '0;
          inner_base_q <= '0;
          beat_q       <= '0;
        end
        READ: if (read_ready_i) state_q <= TAKE;
        TAKE: begin
          step_q  <= 5'd1;
          word_q  <= '0;
          state_q <= sharers == 5'd1 ? WRITE : SUM;
        end
        SUM: begin
          step_q <= step_q + 1'b1;
          if (step_q + 1'b1 == sharers) begin
            step_q <= 5'd1;
            word_q <= word_q + 1'b1;
            if (word_done) state_q <= WRITE;
          end
        end
        WRITE: if (write_ready) begin
          upper_q <= !config_i.one_beat[C] && !upper_q;
          beat_q  <= beat_q + 1'b1;
          if (row_done) begin
            state_q <= READ;
            row_q   <= row_q + 1'b1;
            if (row_q + 1'b1 == config_i.sram_rows[C]) begin
              row_q        <= '0;
              beat_q       <= '0;
              inner_q      <= inner_q + 1'b1;
              inner_base_q <= inner_base_q + config_i.inner_stride[C];
              if (inner_q + 1'b1 == positions) begin
                inner_q      <= '0;
                inner_base_q <= '0;
                group_q      <= group_q + 1'b1;
                group_base_q <= group_base_q + config_i.group_stride[C];
                if (group_q + 1'b1 == config_i.groups) begin
                  state_q   <= IDLE;
                  drained_o <= tile_i.number + 1'b1;
                end
              end
            end
          end
        end
        default: state_q <= IDLE;
      endcase
    end
  end
endmodule
