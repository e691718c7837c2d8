// Today's garbling overlay, behind SIFO's dispatcher (Fang, Ioannidis and Leeser 2019, section 3.1): LANES lanes do the same
// gates on labels of their own, each lane an AND a clock by half gates over AES. Commands come by DMA, with places that
// reach further than the paper's million wires; a FULL adder takes sum and carry in one command, which is two levels of
// gates (the paper's future work, section 5); the host knows how long each label lives, and moves those that don't fit.
module hg_overlay
  import hg_pkg::*;
#(
  parameter int unsigned LANES    = 4,
  parameter int unsigned PLACES   = 1 << 14,
  parameter int unsigned WORDS    = 1 << 16, // DDR places
  parameter int unsigned WATCHDOG = 1 << 20,
  localparam int unsigned COMMAND = 96,
  localparam int unsigned LABELS  = LANES * BLOCK,
  localparam int unsigned INDEX   = $clog2(PLACES),
  localparam int unsigned WORD    = $clog2(WORDS)
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  // Items of the host: 0 a gate, 1 a batch's header (sf_dispatcher), 2 a register: its number at 67:64, then its value.
  input  logic                host_valid_i,
  output logic                host_ready_o,
  input  logic [1:0]          host_kind_i,
  input  logic [COMMAND-1:0]  host_payload_i,
  output logic [31:0]         done_o,
  output logic                idle_o,
  // 0; or why nothing goes on: 1 an item out of place or of no known kind, 2 a place past its memory, 3 no progress.
  output logic [1:0]          error_o,
  output logic                table_valid_o,
  input  logic                table_ready_i,
  output logic [2*LABELS-1:0] table_o,
  input  logic                feed_valid_i,
  output logic                feed_ready_o,
  input  logic [2*LABELS-1:0] feed_i,
  output logic                load_valid_o,
  input  logic                load_ready_i,
  output logic [WORD-1:0]     load_word_o,
  input  logic                loaded_valid_i,
  output logic                loaded_ready_o,
  input  logic [LABELS-1:0]   loaded_i,
  output logic                store_valid_o,
  input  logic                store_ready_i,
  output logic [WORD-1:0]     store_word_o,
  output logic [LABELS-1:0]   store_o,
  input  logic                stored_i,
  // A way into the block RAM while the chip is idle.
  input  logic                poke_i,
  input  logic [INDEX-1:0]    poke_place_i,
  input  logic [LABELS-1:0]   poke_labels_i,
  output logic [LABELS-1:0]   peek_labels_o,
  // What happens in a clock: a gate begins, a DDR access ended; no gate begins while DDR accesses, else while ANDs are under way.
  output logic                gate_o,
  output logic [1:0]          access_o,
  output logic                waits_ddr_o,
  output logic                waits_cell_o
);
  localparam logic [1:0] GATE = 2'd0, HEADER = 2'd1, REGISTER = 2'd2;
  localparam logic [2:0] LAST_OPERATION = 3'd4;
  localparam logic [3:0] LAST_REGISTER  = 4'd6;
  // A register waits, as a batch with a fence does, until no gate is under way: it goes as an empty one.
  localparam logic [COMMAND-1:0] FENCE = COMMAND'(1) << 27;

  logic item_valid, item_ready, unknown, misplaced, outside, stopped, write;
  logic [1:0] item_kind;
  logic [COMMAND-1:0] item, gate;
  bc_fifo #(.WIDTH(2 + COMMAND), .DEPTH(64)) u_queue (
    .clk_i, .rst_ni, .valid_i(host_valid_i), .ready_o(host_ready_o), .data_i({host_kind_i, host_payload_i}),
    .valid_o(item_valid), .ready_i(item_ready), .data_o({item_kind, item}), .count_o()
  );
  assign unknown = item_valid && (item_kind == HEADER ? item[26:24] > LAST_OPERATION :
    item_kind == REGISTER ? item[67:64] > LAST_REGISTER : item_kind != GATE);

  logic valid, ready, quiet;
  logic [2:0] operation;
  logic [1:0] retired;
  sf_dispatcher #(.COMMAND(COMMAND)) u_dispatcher (
    .clk_i, .rst_ni, .valid_i(item_valid && !unknown && !stopped), .ready_o(item_ready), .header_i(item_kind != GATE),
    .command_i(item_kind == REGISTER ? FENCE : item), .queued_i('0), .valid_o(valid), .ready_i(ready), .operation_o(operation), .gate_o(gate),
    .retired_i(retired), .done_o, .idle_o(quiet), .misplaced_o(misplaced)
  );
  assign write  = item_valid && item_kind == REGISTER && item_ready;
  assign idle_o = quiet && !item_valid;

  logic [BLOCK-1:0] offset;
  logic evaluate, keys_ready, next_number, ands, accesses;
  planes_t [ROUNDS:0] round_keys;
  logic [LANES-1:0][63:0] numbers;
  hg_registers #(.LANES(LANES)) u_registers (
    .clk_i, .rst_ni, .write_i(write), .register_i(item[67:64]), .data_i(item[63:0]), .offset_o(offset), .evaluate_o(evaluate),
    .round_keys_o(round_keys), .ready_o(keys_ready), .numbers_o(numbers), .next_i(next_number)
  );
  hg_pipeline #(.LANES(LANES), .PLACES(PLACES), .WORDS(WORDS)) u_pipeline (
    .clk_i, .rst_ni, .valid_i(valid), .ready_o(ready), .operation_i(operation), .gate_i(gate), .retired_o(retired),
    .outside_o(outside), .offset_i(offset), .evaluate_i(evaluate), .round_keys_i(round_keys), .keys_ready_i(keys_ready),
    .numbers_i(numbers), .next_number_o(next_number), .table_valid_o, .table_ready_i, .table_o, .feed_valid_i, .feed_ready_o,
    .feed_i, .load_valid_o, .load_ready_i, .load_word_o, .loaded_valid_i, .loaded_ready_o, .loaded_i, .store_valid_o,
    .store_ready_i, .store_word_o, .store_o, .stored_i, .idle_i(idle_o), .poke_i, .poke_place_i, .poke_labels_i,
    .peek_labels_o, .ands_o(ands), .accesses_o(accesses)
  );

  // What happens, and what stops the chip.
  logic [31:0] still_q;
  assign gate_o       = valid && ready;
  assign access_o     = {stored_i, loaded_valid_i && loaded_ready_o};
  assign waits_ddr_o  = !gate_o && accesses;
  assign waits_cell_o = !gate_o && !accesses && ands;
  assign stopped      = error_o != '0;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      still_q <= '0;
      error_o <= '0;
    end else begin
      still_q <= idle_o || item_ready || retired != '0 ? '0 : still_q + 1'b1;
      if (!stopped) begin
        if (misplaced || unknown) error_o <= 2'd1;
        else if (outside) error_o <= 2'd2;
        else if (still_q == 32'(WATCHDOG)) error_o <= 2'd3;
      end
    end
  end
endmodule
