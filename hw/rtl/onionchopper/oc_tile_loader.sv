// Walks the DRAM's loop nest and brings each step's tile into the SRAMs, half of each while the lanes use the other.
//
// An operand is loaded when its address changes. A beat whose address is the same for several lanes (their stride is
// zero) is read once and written to all of them. C is loaded where sums are to go on; lanes that share a C get it once,
// in the first of them.
module oc_tile_loader
  import oc_pkg::*;
#(
  parameter int unsigned LANES      = 2,
  parameter int unsigned HALF_BEATS = 1 << 16,
  parameter int unsigned C_BEATS    = 1 << 14,
  parameter int unsigned FLIGHT     = 64       // reads under way at most
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,
  input  logic                    start_i,
  input  config_t                 config_i,
  output logic                    done_o,
  output logic                    overrun_o,
  output logic                    waits_ssd_o,  // the tile under way waits, or has waited, for the stream
  output logic                    waits_free_o, // for half of an SRAM
  // SSD tiles that are loaded for the last time
  input  logic [DRAM_ADDRESS-1:0] loaded_i,
  output logic [31:0]             used_o,
  // Tiles that left the SRAMs: A and B when the register files have them, C when it is drained
  input  logic [31:0]             filled_i,
  input  logic [31:0]             drained_i,
  // DRAM reads
  output logic                    dram_valid_o,
  input  logic                    dram_ready_i,
  output logic [DRAM_ADDRESS-1:0] dram_address_o,
  input  logic                    dram_valid_i,
  output logic                    dram_ready_o,
  // SRAM writes: the beat itself goes to the lanes beside this module
  output logic [LANES-1:0]        write_o,
  output logic [1:0]              write_half_o,
  output logic [SRAM_ADDRESS-1:0] write_row_o,
  input  logic                    write_ready_i,
  // Tiles that are whole
  output logic                    tile_valid_o,
  input  logic                    tile_ready_i,
  output tile_t                   tile_o
);
  typedef enum logic [2:0] {IDLE, BEGIN, SELECT, READ, CLOSE} state_e;
  state_e state_q;
  logic [1:0] operand_q;
  logic [31:0] ssd_tile_q, number_q;
  logic [OPERANDS-1:0] changed_q, half_q;
  logic [OPERANDS-1:0][1:0][31:0] used_until_q; // halves of the SRAMs: free from this many tiles on

  // The nest.
  logic [OPERANDS-1:0][DRAM_ADDRESS-1:0] address;
  logic [OPERANDS-1:0] first, final_visit, run_last;
  logic last, nest_start, nest_advance;
  bc_loop_nest #(.LOOPS(DRAM_LOOPS), .OPERANDS(OPERANDS), .BOUND(BOUND), .ADDRESS(DRAM_ADDRESS)) u_nest (
    .clk_i, .rst_ni, .start_i(nest_start), .advance_i(nest_advance), .bounds_i(config_i.dram_bounds),
    .strides_i(config_i.dram_strides), .address_o(address), .last_o(last), .first_o(first), .final_o(final_visit),
    .run_first_o(), .run_last_o(run_last)
  );

  // Positions of lanes and beats of one operand.
  logic [4:0] group_q, inner_q, inner_count;
  logic [DRAM_ADDRESS-1:0] group_base_q, inner_base_q, beat_q, beats;
  logic [OPERANDS-1:0][SRAM_ADDRESS-1:0] row_base;
  logic by_group, by_inner, beat_last, inner_last, group_last;
  assign inner_count = 5'd1 << config_i.inner_log2;
  assign by_group    = config_i.group_stride[operand_q] != '0;
  assign by_inner    = config_i.inner_stride[operand_q] != '0 && !(operand_q == 2'(C) && config_i.reduce);
  assign beats       = config_i.one_beat[operand_q] ? DRAM_ADDRESS'(config_i.sram_rows[operand_q])
                                                    : DRAM_ADDRESS'(config_i.sram_rows[operand_q]) << 1;
  assign beat_last   = beat_q + 1'b1 == beats;
  assign inner_last  = !by_inner || inner_q + 1'b1 == inner_count;
  assign group_last  = !by_group || group_q + 1'b1 == config_i.groups;

  // SRAM: both halves of A, of B, of C.
  logic [SRAM_ADDRESS-1:0] b_begin, c_begin;
  assign b_begin     = config_i.sram_rows[A] << 1;
  assign c_begin     = b_begin + (config_i.sram_rows[B] << 1);
  assign row_base[A] = half_q[A] ? config_i.sram_rows[A] : '0;
  assign row_base[B] = b_begin + (half_q[B] ? config_i.sram_rows[B] : '0);
  assign row_base[C] = c_begin + (half_q[C] ? config_i.sram_rows[C] : '0);

  // The beat that is to be read, and whether it is there.
  logic [DRAM_ADDRESS-1:0] offset;
  logic there;
  assign offset = address[operand_q] + (operand_q == 2'(B) ? config_i.b_base : '0) + group_base_q + inner_base_q + beat_q;
  assign there  = operand_q == 2'(C) || offset < loaded_i;
  always_comb begin
    dram_address_o = offset;
    if (operand_q == 2'(C)) dram_address_o = offset + DRAM_ADDRESS'(2 * HALF_BEATS);
    else if (ssd_tile_q[0]) dram_address_o = offset + DRAM_ADDRESS'(HALF_BEATS);
  end
  assign overrun_o = state_q == READ &&
    (operand_q == 2'(C) ? offset >= DRAM_ADDRESS'(C_BEATS) : offset >= config_i.tile_beats);

  // What comes back goes where this says; a mark follows the last beat of a tile.
  typedef struct packed {
    logic                    mark;
    logic [LANES-1:0]        lanes;
    logic [1:0]              half;
    logic [SRAM_ADDRESS-1:0] row;
  } flight_t;
  flight_t flight_in, flight_out;
  logic flight_valid, flight_ready, flight_out_valid, flight_pop;
  logic [LANES-1:0] lanes;
  always_comb begin
    for (int unsigned i = 0; i < LANES; i++) begin
      lanes[i] = (!by_group || 5'(i >> config_i.inner_log2) == group_q) &&
        ((by_inner || (operand_q == 2'(C) && config_i.reduce))
          ? (5'(i) & (inner_count - 1'b1)) == inner_q : 1'b1);
    end
  end
  always_comb begin
    flight_in.mark  = state_q == CLOSE;
    flight_in.lanes = lanes;
    flight_in.half  = config_i.one_beat[operand_q] ? 2'b01 : (beat_q[0] ? 2'b10 : 2'b01);
    flight_in.row   = row_base[operand_q] +
      SRAM_ADDRESS'(config_i.one_beat[operand_q] ? beat_q : beat_q >> 1);
  end
  bc_fifo #(.WIDTH($bits(flight_t)), .DEPTH(FLIGHT)) u_flight (
    .clk_i, .rst_ni, .valid_i(flight_valid), .ready_o(flight_ready), .data_i(flight_in),
    .valid_o(flight_out_valid), .ready_i(flight_pop), .data_o(flight_out), .count_o()
  );
  logic tiles_ready, tiles_valid, tile_pop;
  tile_t tile_in, tile_out;
  bc_fifo #(.WIDTH($bits(tile_t)), .DEPTH(4)) u_tiles (
    .clk_i, .rst_ni, .valid_i(tiles_valid), .ready_o(tiles_ready), .data_i(tile_in),
    .valid_o(), .ready_i(tile_pop), .data_o(tile_out), .count_o()
  );
  assign tile_o       = tile_out;
  assign tile_valid_o = flight_out_valid && flight_out.mark;
  assign tile_pop     = tile_valid_o && tile_ready_i;
  assign write_o      = (flight_out_valid && !flight_out.mark && dram_valid_i) ? flight_out.lanes : '0;
  assign write_half_o = flight_out.half;
  assign write_row_o  = flight_out.row;
  assign dram_ready_o = flight_out_valid && !flight_out.mark && write_ready_i;
  assign flight_pop   = flight_out.mark ? tile_ready_i : dram_valid_i && write_ready_i;

  assign dram_valid_o = state_q == READ && there && flight_ready && !overrun_o;
  // A tile of the SSD is left when all of it has come, however little of it is read.
  logic closes;
  assign closes       = state_q == CLOSE && (!last || loaded_i == config_i.tile_beats);
  assign flight_valid = closes ? tiles_ready : dram_valid_o && dram_ready_i;
  assign tiles_valid  = closes && flight_ready;
  assign tile_in = '{
    a_row: row_base[A], b_row: row_base[B], c_row: row_base[C], c_half: half_q[C], c_new: changed_q[C],
    c_zero: first[C], c_ends: run_last[C] || last, c_final: final_visit[C], c_beat: address[C], number: number_q
  };
  assign nest_start   = state_q == BEGIN;
  assign nest_advance = tiles_valid && tiles_ready && !last;

  logic wanted, half_free;
  assign wanted    = changed_q[operand_q];
  assign half_free = (operand_q == 2'(C) ? drained_i : filled_i) >= used_until_q[operand_q][!half_q[operand_q]];
  assign waits_free_o = state_q == SELECT && wanted && !half_free;
  logic starves, starved_q;
  assign starves      = (state_q == READ && !there) || (state_q == CLOSE && !closes);
  assign waits_ssd_o  = starves || starved_q;
  assign done_o       = state_q == IDLE && !flight_out_valid;
  // The tile in the DRAM is done with when its last step was read: what is read comes before what is written later.
  assign used_o = ssd_tile_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q      <= IDLE;
      operand_q    <= '0;
      ssd_tile_q   <= '0;
      number_q     <= '0;
      changed_q    <= '0;
      half_q       <= '0;
      used_until_q <= '0;
      group_q      <= '0;
      inner_q      <= '0;
      group_base_q <= '0;
      inner_base_q <= '0;
      beat_q       <= '0;
      starved_q    <= 1'b0;
    end else begin
      if (starves) starved_q <= 1'b1;
      else if (tile_pop) starved_q <= 1'b0;
      unique case (state_q)
        IDLE: if (start_i) begin
          state_q      <= BEGIN;
          ssd_tile_q   <= '0;
          number_q     <= '0;
          half_q       <= '0;
          used_until_q <= '0;
        end
        BEGIN: begin
          state_q   <= SELECT;
          operand_q <= '0;
          changed_q <= '1;
        end
        SELECT: begin
          group_q      <= '0;
          inner_q      <= '0;
          group_base_q <= '0;
          inner_base_q <= '0;
          beat_q       <= '0;
          if (wanted && half_free) half_q[operand_q] <= !half_q[operand_q];
          if (wanted && half_free && !(operand_q == 2'(C) && first[C])) begin
            state_q <= READ;
          end else if (!wanted || half_free) begin
            if (operand_q == 2'(C)) state_q <= CLOSE;
            else operand_q <= operand_q + 1'b1;
          end
        end
        READ: if (dram_valid_o && dram_ready_i) begin
          beat_q <= beat_q + 1'b1;
          if (beat_last) begin
            beat_q       <= '0;
            inner_q      <= inner_q + 1'b1;
            inner_base_q <= inner_base_q + config_i.inner_stride[operand_q];
            if (inner_last) begin
              inner_q      <= '0;
              inner_base_q <= '0;
              group_q      <= group_q + 1'b1;
              group_base_q <= group_base_q + config_i.group_stride[operand_q];
              if (group_last) begin
                state_q   <= operand_q == 2'(C) ? CLOSE : SELECT;
                operand_q <= operand_q == 2'(C) ? operand_q : operand_q + 1'b1;
              end
            end
          end
        end
        CLOSE: if (tiles_valid && tiles_ready) begin
          operand_q <= '0;
          number_q  <= number_q + 1'b1;
          changed_q <= run_last;
          for (int unsigned x = 0; x < OPERANDS; x++) used_until_q[x][half_q[x]] <= number_q + 1'b1;
          state_q <= SELECT;
          if (last) begin
            ssd_tile_q <= ssd_tile_q + 1'b1;
            state_q    <= ssd_tile_q + 1'b1 == config_i.tiles ? IDLE : BEGIN;
          end
        end
        default: state_q <= IDLE;
      endcase
    end
  end
endmodule
