// SIFO's garbling overlay (Fang, Ioannidis and Leeser 2019, section 3.1, figure 4): gates come as addresses, labels stay in
// block RAM and DDR memory, tables of ANDs leave. Any circuit is garbled without the chip being built again.
module sifo #(
  parameter int unsigned ANDS     = 15,
  parameter int unsigned XORS     = 15,
  parameter int unsigned LABEL    = 80,
  parameter int unsigned PLACES   = 1 << 16, // 6.75 Mbit in words of 108 bits
  parameter int unsigned WATCHDOG = 1 << 20,
  localparam int unsigned ADDRESS = 21
) (
  input  logic                       clk_i,
  input  logic                       rst_ni,
  // Register writes of the host.
  input  logic                       host_valid_i,
  output logic                       host_ready_o,
  input  logic [3:0]                 host_address_i,
  input  logic [31:0]                host_data_i,
  output logic [31:0]                done_o,
  output logic                       idle_o,
  // 0; or why nothing goes on: 1 a command out of place, 2 a place past the block RAM, 3 no progress.
  output logic [1:0]                 error_o,
  // Tables, in the order of the ANDs: rows of colours 01, 10 and 11 from the lowest bit on.
  output logic                       table_valid_o,
  input  logic                       table_ready_i,
  output logic [3*LABEL-1:0]         table_o,
  output logic [1:0]                 ddr_valid_o,
  output logic [1:0]                 ddr_write_o,
  output logic [1:0][ADDRESS-4:0]    ddr_word_o,
  output logic [1:0][3:0]            ddr_mask_o,
  output logic [1:0][511:0]          ddr_data_o,
  input  logic [1:0]                 ddr_complete_i,
  input  logic [1:0][511:0]          ddr_data_i,
  // A way into the block RAM while the chip is idle, for whoever looks at labels.
  input  logic                       poke_i,
  input  logic [$clog2(PLACES)-1:0]  poke_place_i,
  input  logic [LABEL-1:0]           poke_label_i,
  output logic [LABEL-1:0]           peek_label_o,
  // What happens in a clock: a gate handed to a cell, a DDR port's access ended, the fetch waits for DDR, for a cell.
  output logic                       gate_o,
  output logic [1:0]                 access_o,
  output logic                       waits_ddr_o,
  output logic                       waits_cell_o
);
  localparam int unsigned INDEX = $clog2(PLACES);
  localparam int unsigned WIDTH = LABEL == 80 ? 108 : LABEL;
  localparam int unsigned QUEUE = 64;

  logic link_valid, link_ready, link_header, queue_valid, queue_ready, queue_header, renumber;
  logic [62:0] link_command, queue_command, gate;
  logic [LABEL-1:0] offset;
  logic [63:0] first_gate, number_q;
  logic valid, ready, misplaced, outside, stopped, finished;
  logic [2:0] operation;
  logic [1:0] retired;
  logic [$clog2(QUEUE+1)-1:0] queued;
  sf_registers #(.LABEL(LABEL)) u_registers (
    .clk_i, .rst_ni, .valid_i(host_valid_i), .ready_o(host_ready_o), .address_i(host_address_i), .data_i(host_data_i),
    .valid_o(link_valid), .ready_i(link_ready), .header_o(link_header), .command_o(link_command), .offset_o(offset),
    .first_gate_o(first_gate), .renumber_o(renumber)
  );
  bc_fifo #(.WIDTH(64), .DEPTH(QUEUE)) u_queue (
    .clk_i, .rst_ni, .valid_i(link_valid), .ready_o(link_ready), .data_i({link_header, link_command}),
    .valid_o(queue_valid), .ready_i(queue_ready), .data_o({queue_header, queue_command}), .count_o(queued)
  );
  sf_dispatcher #(.COMMAND(63), .QUEUE(QUEUE)) u_dispatcher (
    .clk_i, .rst_ni, .valid_i(queue_valid && !stopped), .ready_o(queue_ready), .header_i(queue_header),
    .command_i(queue_command), .queued_i(queued), .valid_o(valid), .ready_i(ready), .operation_o(operation), .gate_o(gate),
    .retired_i(retired), .done_o, .idle_o(finished), .misplaced_o(misplaced)
  );

  logic cell_valid, cell_ready, cell_and;
  logic [LABEL-1:0] cell_a, cell_b;
  logic [ADDRESS-1:0] cell_out;
  logic [1:0] bank_ready, result_valid, result_ready, ram_read;
  logic [1:0][LABEL-1:0] result_label, ram_label;
  logic [1:0][ADDRESS-1:0] result_out;
  logic [1:0][INDEX-1:0] ram_read_place;
  logic [1:0][WIDTH-1:0] ram_data;
  logic ram_write;
  logic [INDEX-1:0] ram_write_place;
  logic [LABEL-1:0] ram_write_label;
  sf_controller #(.LABEL(LABEL), .ADDRESS(ADDRESS), .PLACES(PLACES)) u_controller (
    .clk_i, .rst_ni, .valid_i(valid), .ready_o(ready), .and_i(operation[0]), .gate_i(gate),
    .cell_valid_o(cell_valid), .cell_ready_i(cell_ready), .cell_and_o(cell_and), .cell_a_o(cell_a), .cell_b_o(cell_b),
    .cell_out_o(cell_out),
    .result_valid_i(result_valid), .result_ready_o(result_ready), .result_label_i(result_label), .result_out_i(result_out),
    .ram_write_o(ram_write), .ram_write_place_o(ram_write_place), .ram_data_o(ram_write_label), .ram_read_o(ram_read),
    .ram_read_place_o(ram_read_place), .ram_data_i(ram_label),
    .ddr_valid_o, .ddr_write_o, .ddr_word_o, .ddr_mask_o, .ddr_data_o, .ddr_complete_i, .ddr_data_i,
    .retired_o(retired), .outside_o(outside)
  );
  assign cell_ready = bank_ready[cell_and];

  // XOR cells: an XOR and a register each, used in turn.
  logic [LABEL-1:0] xor_label;
  sf_gxor #(.LABEL(LABEL)) u_gxor (.a_i(cell_a), .b_i(cell_b), .label_o(xor_label));
  bc_fifo #(.WIDTH(ADDRESS + LABEL), .DEPTH(XORS)) u_xors (
    .clk_i, .rst_ni, .valid_i(cell_valid && !cell_and), .ready_o(bank_ready[0]), .data_i({cell_out, xor_label}),
    .valid_o(result_valid[0]), .ready_i(result_ready[0]), .data_o({result_out[0], result_label[0]}), .count_o()
  );
  logic and_valid, and_ready, table_ready;
  logic [3*LABEL-1:0] rows;
  sf_cells #(.CELLS(ANDS), .LABEL(LABEL), .TAG(ADDRESS)) u_ands (
    .clk_i, .rst_ni, .offset_i(offset), .valid_i(cell_valid && cell_and), .ready_o(bank_ready[1]), .a_i(cell_a), .b_i(cell_b),
    .gate_i(number_q), .tag_i(cell_out), .valid_o(and_valid), .ready_i(and_ready), .label_o(result_label[1]),
    .tag_o(result_out[1]), .table_o(rows)
  );
  // A result goes to memory when its table goes to the host's queue.
  assign result_valid[1] = and_valid && table_ready;
  assign and_ready       = result_ready[1];
  bc_fifo #(.WIDTH(3 * LABEL), .DEPTH(16)) u_tables (
    .clk_i, .rst_ni, .valid_i(and_valid && and_ready), .ready_o(table_ready), .data_i(rows),
    .valid_o(table_valid_o), .ready_i(table_ready_i), .data_o(table_o), .count_o()
  );

  sf_block_ram #(.WIDTH(WIDTH), .PLACES(PLACES), .READS(2)) u_ram (
    .clk_i, .write_i(ram_write || poke_i), .write_place_i(poke_i ? poke_place_i : ram_write_place),
    .data_i(WIDTH'(poke_i ? poke_label_i : ram_write_label)),
    .read_i(ram_read | {1'b0, idle_o}), .read_place_i({ram_read_place[1], idle_o && !ram_read[0] ? poke_place_i : ram_read_place[0]}),
    .data_o(ram_data)
  );
  assign ram_label[0] = ram_data[0][LABEL-1:0];
  assign ram_label[1] = ram_data[1][LABEL-1:0];
  assign peek_label_o = ram_label[0];

  // What happens, and what stops the chip.
  logic [31:0] still_q;
  assign idle_o       = finished && !queue_valid;
  assign gate_o       = cell_valid && cell_ready;
  assign access_o     = ddr_complete_i;
  assign waits_ddr_o  = ddr_valid_o != '0 && !cell_valid;
  assign waits_cell_o = cell_valid && !cell_ready;
  assign stopped      = error_o != '0;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      number_q <= '0;
      still_q  <= '0;
      error_o  <= '0;
    end else begin
      if (renumber) number_q <= first_gate;
      else if (gate_o && cell_and) number_q <= number_q + 1'b1;
      still_q <= idle_o || gate_o || retired != '0 || (valid && ready) ? '0 : still_q + 1'b1;
      if (!stopped) begin
        if (misplaced) error_o <= 2'd1;
        else if (outside) error_o <= 2'd2;
        else if (still_q == 32'(WATCHDOG)) error_o <= 2'd3;
      end
    end
  end
endmodule
