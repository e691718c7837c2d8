// The halves of the block RAM, dispatcher and controller together: where the host sends each layer behind a fence or a batch with
// sync, and lets a layer read one half only and write the other only, no read of a half is issued while a write to it is still to
// come, nor in the clock of one. Unbounded, by induction.
//
// Cells, DDR memory and host are free: a cell answers when it likes and in any order, with an address of the half, or of the
// memory, that a gate in it has; DDR memory completes when it likes. Assumed: cells hold 7 gates at most.
module sf_ping_pong #(
  parameter int unsigned COMMAND = 29,
  parameter int unsigned LABEL   = 1,
  parameter int unsigned ADDRESS = 4,
  parameter int unsigned PLACES  = 4
) (
  input logic                    clk_i,
  input logic                    rst_ni,
  input logic                    valid_i,
  input logic                    header_i,
  input logic [COMMAND-1:0]      command_i,
  input logic                    swap_i,      // a layer begins here
  input logic                    cell_ready_i,
  input logic [1:0]              result_valid_i,
  input logic [1:0][ADDRESS-1:0] result_out_i,
  input logic [1:0]              ddr_complete_i
);
  localparam int unsigned INDEX = $clog2(PLACES);
  localparam int unsigned CELLS = 7;
  f_reset u_reset (.clk_i, .rst_ni);

  logic ready, gate_valid, gate_ready, cell_valid, ram_write, outside;
  logic [2:0] operation;
  logic [COMMAND-1:0] gate;
  logic [1:0] retired, result_ready, ram_read, ddr_valid, ddr_write;
  logic [INDEX-1:0] write_place;
  logic [1:0][INDEX-1:0] read_place;
  logic cell_and;
  logic [ADDRESS-1:0] cell_out;
  sf_dispatcher #(.COMMAND(COMMAND)) u_dispatcher (
    .clk_i, .rst_ni, .valid_i, .ready_o(ready), .header_i, .command_i, .queued_i('0), .valid_o(gate_valid), .ready_i(gate_ready),
    .operation_o(operation), .gate_o(gate), .retired_i(retired), .done_o(), .idle_o(), .misplaced_o()
  );
  sf_controller #(.LABEL(LABEL), .ADDRESS(ADDRESS), .PLACES(PLACES)) u_controller (
    .clk_i, .rst_ni, .valid_i(gate_valid), .ready_o(gate_ready), .and_i(operation[0]), .gate_i(gate[3*ADDRESS-1:0]),
    .cell_valid_o(cell_valid), .cell_ready_i, .cell_and_o(cell_and), .cell_a_o(), .cell_b_o(), .cell_out_o(cell_out),
    .result_valid_i, .result_ready_o(result_ready), .result_label_i('0), .result_out_i,
    .ram_write_o(ram_write), .ram_write_place_o(write_place), .ram_data_o(), .ram_read_o(ram_read),
    .ram_read_place_o(read_place), .ram_data_i('0),
    .ddr_valid_o(ddr_valid), .ddr_write_o(ddr_write), .ddr_word_o(), .ddr_mask_o(), .ddr_data_o(), .ddr_complete_i,
    .ddr_data_i('0), .retired_o(retired), .outside_o(outside)
  );

  // Where a label lies: in a half of the block RAM, 0 or 1, or in DDR memory, 2.
  function automatic logic [1:0] region(logic [ADDRESS-1:0] address);
    return address[0] ? {1'b0, address[INDEX]} : 2'd2;
  endfunction

  // The host: which half the layer reads.
  logic half_q, synced_q, header;
  logic [2:0][ADDRESS-1:0] offered;
  assign header  = valid_i && ready && header_i;
  assign offered = command_i[3*ADDRESS-1:0];
  always_ff @(posedge clk_i) begin
    if (!rst_ni) synced_q <= 1'b0;
    else if (header) synced_q <= command_i[28];
    if (header && (command_i[27] || synced_q)) half_q <= half_q ^ swap_i;
  end
  always_comb begin
    if (valid_i && !header_i) begin
      m_reads_one : assume (region(offered[0]) != {1'b0, !half_q} && region(offered[1]) != {1'b0, !half_q});
      m_writes_other : assume (region(offered[2]) != {1'b0, half_q});
      m_inside : assume (!outside);
    end
  end
  bc_handshake_assert #(.WIDTH(1 + COMMAND), .ASSUME(1'b1)) u_assume_host (
    .clk_i, .rst_ni, .valid_i, .ready_i(ready), .data_i({header_i, command_i})
  );

  // The cells: how many gates they hold, by where the result goes.
  logic [2:0][3:0] cells_q;
  logic [5:0] held;
  logic handed;
  logic [2:0] offers_0, offers_1;
  assign handed = cell_valid && cell_ready_i;
  assign held   = 6'(cells_q[0]) + 6'(cells_q[1]) + 6'(cells_q[2]);
  for (genvar r = 0; r < 3; r++) begin : where
    assign offers_0[r] = result_valid_i[0] && region(result_out_i[0]) == 2'(r);
    assign offers_1[r] = result_valid_i[1] && region(result_out_i[1]) == 2'(r);
    always_comb m_has_them : assume (cells_q[r] >= 4'(offers_0[r]) + 4'(offers_1[r]));
    always_ff @(posedge clk_i) begin
      if (!rst_ni) cells_q[r] <= '0;
      else begin
        cells_q[r] <= cells_q[r] + 4'(handed && region(cell_out) == 2'(r)) - 4'(offers_0[r] && result_ready[0])
                      - 4'(offers_1[r] && result_ready[1]);
      end
    end
  end
  always_comb if (held >= 6'(CELLS)) m_room : assume (!cell_ready_i);
  for (genvar k = 0; k < 2; k++) begin : kind
    bc_handshake_assert #(.WIDTH(ADDRESS), .ASSUME(1'b1)) u_assume_result (
      .clk_i, .rst_ni, .valid_i(result_valid_i[k]), .ready_i(result_ready[k]), .data_i(result_out_i[k])
    );
    always_comb if (!ddr_valid[k]) m_completes : assume (!ddr_complete_i[k]);
  end

  // Writes to a half that are still to come: of gates that the controller took.
  logic [1:0][4:0] to_come_q;
  logic taken;
  logic [2:0][ADDRESS-1:0] entering;
  assign taken    = gate_valid && gate_ready;
  assign entering = gate[3*ADDRESS-1:0];
  always_ff @(posedge clk_i) begin
    for (int unsigned h = 0; h < 2; h++) begin
      if (!rst_ni) to_come_q[h] <= '0;
      else begin
        to_come_q[h] <= to_come_q[h] + 5'(taken && region(entering[2]) == 2'(h))
                        - 5'(ram_write && write_place[INDEX-1] == (h == 1));
      end
    end
  end
  for (genvar i = 0; i < 2; i++) begin : port
    always_comb begin
      if (rst_ni && ram_read[i]) begin
        a_read_of_own_half : assert (read_place[i][INDEX-1] == half_q);
        a_no_write_to_come : assert (to_come_q[read_place[i][INDEX-1]] == '0);
        a_no_write_now : assert (!ram_write || write_place[INDEX-1] != read_place[i][INDEX-1]);
      end
    end
  end
  always_comb begin
    if (rst_ni) begin
      if (ram_write) a_write_to_other_half : assert (write_place[INDEX-1] != half_q);
`ifdef INDUCTION
      // Every gate that the dispatcher counts is being fetched, in a cell, or on its way to DDR memory.
      assert (u_dispatcher.flight_q == 32'(u_controller.fetch_q) + 32'(held) + 32'(ddr_write[0]) + 32'(ddr_write[1]));
      assert (held <= 6'(CELLS));
      for (int unsigned h = 0; h < 2; h++) begin
        assert (to_come_q[h] == 5'(cells_q[h]) + 5'(u_controller.fetch_q && region(u_controller.gate_q[2]) == 2'(h)));
      end
      // None of the half that the layer reads; nothing at all where a batch with sync has ended.
      assert (to_come_q[half_q] == '0);
      assert (u_dispatcher.sync_q == synced_q);
      if (synced_q && u_dispatcher.left_q == '0 && !u_dispatcher.closing_q) assert (u_dispatcher.flight_q == '0);
      if (u_dispatcher.closing_q) assert (synced_q && u_dispatcher.left_q == '0);
      for (int unsigned r = 0; r < 3; r++) assert (cells_q[r] <= 4'(CELLS));
`endif
    end
  end
endmodule
