// The gates' way through today's overlay, a gate a clock: operands out of block RAM, LANES labels at once; XORs, and ANDs
// through a cell a lane; results back. Where SIFO fetches one gate at a time (2019, section 3.1.3), here a gate begins each
// clock, and waits only before it begins: what has begun has a place for its results.
//
// Operations: 0 XOR, out = a ^ b; 1 AND, out = a & b; 2 FULL adder, out = a ^ b ^ c and out2 = their carry, which takes one
// AND; 3 LOAD, out from a DDR place; 4 STORE, a to one. Gates may overtake: a result is there for those behind a fence.
module hg_pipeline
  import hg_pkg::*;
#(
  parameter int unsigned LANES  = 4,
  parameter int unsigned PLACES = 1 << 14,
  parameter int unsigned WORDS  = 1 << 16,
  localparam int unsigned ADDRESS = 19,
  localparam int unsigned COMMAND = 96,
  localparam int unsigned LABELS  = LANES * BLOCK,
  localparam int unsigned INDEX   = $clog2(PLACES),
  localparam int unsigned WORD    = $clog2(WORDS)
) (
  input  logic                       clk_i,
  input  logic                       rst_ni,
  // Gates: places {1 bit, out2, out, c, b, a}; a DDR place is {c, b}.
  input  logic                       valid_i,
  output logic                       ready_o,
  input  logic [2:0]                 operation_i,
  input  logic [COMMAND-1:0]         gate_i,
  output logic [1:0]                 retired_o,
  // A place past the end of its memory: the gate doesn't begin.
  output logic                       outside_o,
  // Of hg_registers.
  input  logic [BLOCK-1:0]           offset_i,
  input  logic                       evaluate_i,
  input  planes_t [ROUNDS:0]         round_keys_i,
  input  logic                       keys_ready_i,
  input  logic [LANES-1:0][63:0]     numbers_i,
  output logic                       next_number_o,
  // Tables in the order of the ANDs, lane 0's in the low bits: out in garbling, in in evaluation.
  output logic                       table_valid_o,
  input  logic                       table_ready_i,
  output logic [2*LABELS-1:0]        table_o,
  input  logic                       feed_valid_i,
  output logic                       feed_ready_o,
  input  logic [2*LABELS-1:0]        feed_i,
  // DDR memory: reads are answered in order, writes are done in order.
  output logic                       load_valid_o,
  input  logic                       load_ready_i,
  output logic [WORD-1:0]            load_word_o,
  input  logic                       loaded_valid_i,
  output logic                       loaded_ready_o,
  input  logic [LABELS-1:0]          loaded_i,
  output logic                       store_valid_o,
  input  logic                       store_ready_i,
  output logic [WORD-1:0]            store_word_o,
  output logic [LABELS-1:0]          store_o,
  input  logic                       stored_i,
  // A way into the block RAM while nothing is under way.
  input  logic                       idle_i,
  input  logic                       poke_i,
  input  logic [INDEX-1:0]           poke_place_i,
  input  logic [LABELS-1:0]          poke_labels_i,
  output logic [LABELS-1:0]          peek_labels_o,
  // ANDs and DDR accesses are under way.
  output logic                       ands_o,
  output logic                       accesses_o
);
  localparam logic [2:0] XOR = 3'd0, AND = 3'd1, FULL = 3'd2, LOAD = 3'd3, STORE = 3'd4;
  // What each queue holds: more than the clocks that a result takes, so that a gate can begin at every clock.
  localparam int unsigned FLIGHT = 64;
  localparam int unsigned STORES = 4;
  localparam int unsigned COUNT  = $clog2(FLIGHT + 1);

  // A gate begins: its operands are read.
  logic [ADDRESS-1:0] a, b, c, out, out2;
  logic [2*ADDRESS-1:0] word;
  logic is_and, is_sum, uses_a, uses_b, room, begins;
  assign {out2, out, c, b, a} = gate_i[5*ADDRESS-1:0];
  assign word      = {c, b};
  assign is_and    = operation_i == AND || operation_i == FULL;
  assign is_sum    = operation_i == XOR || operation_i == FULL;
  assign uses_b    = is_and || is_sum;
  assign uses_a    = uses_b || operation_i == STORE;
  function automatic logic past(logic [ADDRESS-1:0] place);
    return 32'(place) >= PLACES;
  endfunction
  assign outside_o = valid_i && ((uses_a && past(a)) || (uses_b && past(b)) || (operation_i == FULL && (past(c) || past(out2))) ||
    (operation_i != STORE && past(out)) || (!uses_b && word >= (2 * ADDRESS)'(WORDS)));

  logic [COUNT-1:0] sums_count, marks_count, tables_q;
  logic [$clog2(STORES+1)-1:0] stores_count;
  logic sum_q, and_q, full_q, store_q, load_room, target_room;
  logic sum_room, and_room;
  assign sum_room     = sums_count + COUNT'(sum_q) < COUNT'(FLIGHT);
  assign and_room     = keys_ready_i && marks_count + COUNT'(and_q) < COUNT'(FLIGHT) &&
    (evaluate_i || tables_q != COUNT'(FLIGHT));
  always_comb begin
    unique case (operation_i)
      XOR: room = sum_room;
      AND: room = and_room;
      FULL: room = sum_room && and_room;
      LOAD: room = load_room && target_room;
      default: room = 32'(stores_count) + 32'(store_q) < STORES;
    endcase
  end
  assign feed_ready_o = valid_i && is_and && evaluate_i && room && !outside_o;
  assign ready_o      = room && !outside_o && (!is_and || !evaluate_i || feed_valid_i);
  assign begins       = valid_i && ready_o;

  logic write, poke_read;
  logic [INDEX-1:0] write_place;
  logic [LABELS-1:0] write_labels;
  logic [2:0][LABELS-1:0] operands;
  assign poke_read = idle_i;
  sf_block_ram #(.WIDTH(LABELS), .PLACES(PLACES), .READS(3)) u_ram (
    .clk_i, .write_i(write || poke_i), .write_place_i(poke_i ? poke_place_i : write_place),
    .data_i(poke_i ? poke_labels_i : write_labels),
    .read_i({begins && operation_i == FULL, begins && uses_b, (begins && uses_a) || poke_read}),
    .read_place_i({c[INDEX-1:0], b[INDEX-1:0], poke_read ? poke_place_i : a[INDEX-1:0]}), .data_o(operands)
  );
  assign peek_labels_o = operands[0];

  // A clock later the operands are there.
  logic [INDEX-1:0] out_q, out2_q;
  logic [WORD-1:0] word_q;
  logic [2*LABELS-1:0] feed_q;
  logic [LABELS-1:0] label_a, label_b, label_c;
  assign label_a       = operands[0];
  assign label_b       = operands[1];
  assign label_c       = full_q ? operands[2] : '0;
  assign next_number_o = and_q;
  always_ff @(posedge clk_i) begin
    if (begins) begin
      full_q <= operation_i == FULL;
      out_q  <= out[INDEX-1:0];
      out2_q <= out2[INDEX-1:0];
      word_q <= word[WORD-1:0];
    end
    if (begins && is_and && evaluate_i) feed_q <= feed_i;
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      sum_q   <= 1'b0;
      and_q   <= 1'b0;
      store_q <= 1'b0;
    end else begin
      sum_q   <= begins && is_sum;
      and_q   <= begins && is_and;
      store_q <= begins && operation_i == STORE;
    end
  end

  // Sums wait for the block RAM's one write a clock.
  logic sum_valid, sum_ready, sum_full;
  logic [INDEX-1:0] sum_place;
  logic [LABELS-1:0] sum_labels;
  bc_fifo #(.WIDTH(1 + INDEX + LABELS), .DEPTH(FLIGHT)) u_sums (
    .clk_i, .rst_ni, .valid_i(sum_q), .ready_o(), .data_i({full_q, out_q, label_a ^ label_b ^ label_c}),
    .valid_o(sum_valid), .ready_i(sum_ready), .data_o({sum_full, sum_place, sum_labels}), .count_o(sums_count)
  );

  // ANDs: a carry is c ^ ((a ^ c) & (b ^ c)). What a result needs beside its cells waits in a queue.
  logic [LANES-1:0] cell_valid;
  logic [LABELS-1:0] cell_labels, mark_labels;
  logic [2*LABELS-1:0] cell_tables;
  logic and_valid, mark_full;
  logic [INDEX-1:0] mark_place;
  for (genvar l = 0; l < LANES; l++) begin : gen_lanes
    hg_cell u_cell (
      .clk_i, .rst_ni, .round_keys_i, .offset_i, .valid_i(and_q), .evaluate_i, .a_i(label_a[BLOCK*l+:BLOCK] ^ label_c[BLOCK*l+:BLOCK]),
      .b_i(label_b[BLOCK*l+:BLOCK] ^ label_c[BLOCK*l+:BLOCK]), .gate_i(numbers_i[l]), .table_i(feed_q[2*BLOCK*l+:2*BLOCK]),
      .tag_i(1'b0), .valid_o(cell_valid[l]), .label_o(cell_labels[BLOCK*l+:BLOCK]),
      .table_o(cell_tables[2*BLOCK*l+:2*BLOCK]), .tag_o()
    );
  end
  assign and_valid = cell_valid[0];
  bc_fifo #(.WIDTH(1 + INDEX + LABELS), .DEPTH(FLIGHT)) u_marks (
    .clk_i, .rst_ni, .valid_i(and_q), .ready_o(), .data_i({full_q, full_q ? out2_q : out_q, label_c}),
    .valid_o(), .ready_i(and_valid), .data_o({mark_full, mark_place, mark_labels}), .count_o(marks_count)
  );
  bc_fifo #(.WIDTH(2 * LABELS), .DEPTH(FLIGHT)) u_tables (
    .clk_i, .rst_ni, .valid_i(and_valid && !evaluate_i), .ready_o(), .data_i(cell_tables),
    .valid_o(table_valid_o), .ready_i(table_ready_i), .data_o(table_o), .count_o()
  );

  // DDR memory. Which places wait for what was asked for is known in the order of the requests.
  logic target_valid;
  logic [INDEX-1:0] target_place;
  bc_fifo #(.WIDTH(WORD), .DEPTH(STORES)) u_requests (
    .clk_i, .rst_ni, .valid_i(begins && operation_i == LOAD), .ready_o(load_room), .data_i(word[WORD-1:0]),
    .valid_o(load_valid_o), .ready_i(load_ready_i), .data_o(load_word_o), .count_o()
  );
  bc_fifo #(.WIDTH(INDEX), .DEPTH(FLIGHT)) u_targets (
    .clk_i, .rst_ni, .valid_i(begins && operation_i == LOAD), .ready_o(target_room), .data_i(out[INDEX-1:0]),
    .valid_o(target_valid), .ready_i(loaded_valid_i && loaded_ready_o), .data_o(target_place), .count_o()
  );
  bc_fifo #(.WIDTH(WORD + LABELS), .DEPTH(STORES)) u_stores (
    .clk_i, .rst_ni, .valid_i(store_q), .ready_o(), .data_i({word_q, label_a}),
    .valid_o(store_valid_o), .ready_i(store_ready_i), .data_o({store_word_o, store_o}), .count_o(stores_count)
  );

  // One write a clock: an AND can't wait, and a LOAD waits for sums.
  logic loaded;
  assign sum_ready      = !and_valid;
  assign loaded_ready_o = !and_valid && !sum_valid;
  assign loaded         = loaded_valid_i && loaded_ready_o;
  assign write          = and_valid || sum_valid || loaded;
  assign write_place    = and_valid ? mark_place : sum_valid ? sum_place : target_place;
  assign write_labels   = and_valid ? cell_labels ^ mark_labels : sum_valid ? sum_labels : loaded_i;

  // A gate is finished with its last write. A FULL adder has two, each kind in order: by how many carries were written more
  // than sums?
  logic signed [COUNT:0] ahead_q;
  logic carry, sum_done, written;
  logic [31:0] stores_q;
  assign carry     = and_valid && mark_full;
  assign sum_done  = sum_valid && sum_ready;
  assign written   = carry ? ahead_q < 0 : sum_done && sum_full ? ahead_q > 0 : write;
  assign retired_o = 2'(written) + 2'(stored_i);
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      ahead_q  <= '0;
      tables_q <= '0;
      stores_q <= '0;
    end else begin
      if (carry) ahead_q <= ahead_q + 1'b1;
      else if (sum_done && sum_full) ahead_q <= ahead_q - 1'b1;
      // Tables that are owed: on their way through the cells, or waiting for the host.
      tables_q <= tables_q + COUNT'(begins && is_and && !evaluate_i) - COUNT'(table_valid_o && table_ready_i);
      stores_q <= stores_q + 32'(begins && operation_i == STORE) - 32'(stored_i);
    end
  end
  assign ands_o     = and_q || marks_count != '0;
  assign accesses_o = target_valid || stores_q != '0;
endmodule
