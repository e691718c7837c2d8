// Where the handshake is asserted: every ready/valid pair. One file, so that the RTL itself carries no assertion.
//
// A chip that meets an error withdraws its own offers; its modules are in reset then, and so are their assertions.
bind bc_fifo bc_handshake_assert #(.WIDTH(WIDTH)) u_assert_in (
  .clk_i, .rst_ni, .valid_i(valid_i), .ready_i(ready_o), .data_i(data_i)
);
bind bc_fifo bc_handshake_assert #(.WIDTH(WIDTH)) u_assert_out (
  .clk_i, .rst_ni, .valid_i(valid_o), .ready_i(ready_i), .data_i(data_o)
);
bind bc_arbiter bc_handshake_assert #(.WIDTH(WIDTH)) u_assert_in[REQUESTS-1:0] (
  .clk_i, .rst_ni, .valid_i(valid_i), .ready_i(ready_o), .data_i(data_i)
);
bind bc_arbiter bc_handshake_assert #(.WIDTH(REQUESTS + WIDTH)) u_assert_out (
  .clk_i, .rst_ni, .valid_i(valid_o), .ready_i(ready_i), .data_i({grant_o, data_o})
);

bind oc_ssd_loader bc_handshake_assert #(.WIDTH(64)) u_assert_ssd (
  .clk_i, .rst_ni, .valid_i(ssd_valid_i), .ready_i(ssd_ready_o), .data_i(ssd_data_i)
);
bind oc_ssd_loader bc_handshake_assert #(.WIDTH(DRAM_ADDRESS + BEAT)) u_assert_dram (
  .clk_i, .rst_ni, .valid_i(dram_valid_o), .ready_i(dram_ready_i), .data_i({dram_address_o, dram_data_o})
);
bind oc_tile_loader bc_handshake_assert #(.WIDTH(DRAM_ADDRESS)) u_assert_request (
  .clk_i, .rst_ni, .valid_i(dram_valid_o), .ready_i(dram_ready_i), .data_i(dram_address_o)
);
bind oc_tile_loader bc_handshake_assert u_assert_answer (
  .clk_i, .rst_ni, .valid_i(dram_valid_i), .ready_i(dram_ready_o), .data_i(1'b0)
);
bind oc_tile_loader bc_handshake_assert #(.WIDTH($bits(tile_t))) u_assert_tile (
  .clk_i, .rst_ni, .valid_i(tile_valid_o), .ready_i(tile_ready_i), .data_i(tile_o)
);
bind oc_sequencer bc_handshake_assert #(.WIDTH($bits(tile_t))) u_assert_tile (
  .clk_i, .rst_ni, .valid_i(tile_valid_i), .ready_i(tile_ready_o), .data_i(tile_i)
);
bind oc_sequencer bc_handshake_assert #(.WIDTH($bits(tile_t))) u_assert_drain (
  .clk_i, .rst_ni, .valid_i(drain_valid_o), .ready_i(drain_ready_i), .data_i(drain_o)
);
bind oc_drain bc_handshake_assert #(.WIDTH($bits(tile_t))) u_assert_tile (
  .clk_i, .rst_ni, .valid_i(tile_valid_i), .ready_i(tile_ready_o), .data_i(tile_i)
);
bind oc_drain bc_handshake_assert #(.WIDTH(SRAM_ADDRESS)) u_assert_read (
  .clk_i, .rst_ni, .valid_i(read_valid_o), .ready_i(read_ready_i), .data_i(read_row_o)
);
bind oc_drain bc_handshake_assert #(.WIDTH(DRAM_ADDRESS + BEAT)) u_assert_dram (
  .clk_i, .rst_ni, .valid_i(dram_valid_o), .ready_i(dram_ready_i), .data_i({dram_address_o, data_o})
);
bind oc_drain bc_handshake_assert #(.WIDTH(BEAT)) u_assert_out (
  .clk_i, .rst_ni, .valid_i(out_valid_o), .ready_i(out_ready_i), .data_i(data_o)
);

bind onionchopper bc_handshake_assert #(.WIDTH(64)) u_assert_ssd (
  .clk_i, .rst_ni, .valid_i(ssd_valid_i), .ready_i(ssd_ready_o), .data_i(ssd_data_i)
);
bind onionchopper bc_handshake_assert #(.WIDTH(1 + DRAM_ADDRESS + BEAT)) u_assert_request (
  .clk_i, .rst_ni(run_rst_n), .valid_i(dram_valid_o), .ready_i(dram_ready_i),
  .data_i({dram_write_o, dram_address_o, dram_data_o})
);
bind onionchopper bc_handshake_assert #(.WIDTH(BEAT)) u_assert_answer (
  .clk_i, .rst_ni, .valid_i(dram_valid_i), .ready_i(dram_ready_o), .data_i(dram_data_i)
);
bind onionchopper bc_handshake_assert #(.WIDTH(BEAT)) u_assert_out (
  .clk_i, .rst_ni(run_rst_n), .valid_i(out_valid_o), .ready_i(out_ready_i), .data_i(out_data_o)
);

bind sf_sha1 bc_handshake_assert #(.WIDTH(512)) u_assert_in (
  .clk_i, .rst_ni, .valid_i(valid_i), .ready_i(ready_o), .data_i(block_i)
);
bind sf_sha1 bc_handshake_assert #(.WIDTH(160)) u_assert_out (
  .clk_i, .rst_ni, .valid_i(valid_o), .ready_i(ready_i), .data_i(digest_o)
);
bind sf_gand bc_handshake_assert #(.WIDTH(2 * LABEL + 64)) u_assert_in (
  .clk_i, .rst_ni, .valid_i(valid_i), .ready_i(ready_o), .data_i({a_i, b_i, gate_i})
);
bind sf_gand bc_handshake_assert #(.WIDTH(4 * LABEL)) u_assert_out (
  .clk_i, .rst_ni, .valid_i(valid_o), .ready_i(ready_i), .data_i({label_o, table_o})
);
bind sf_cells bc_handshake_assert #(.WIDTH(2 * LABEL + 64 + TAG)) u_assert_in (
  .clk_i, .rst_ni, .valid_i(valid_i), .ready_i(ready_o), .data_i({a_i, b_i, gate_i, tag_i})
);
bind sf_cells bc_handshake_assert #(.WIDTH(4 * LABEL + TAG)) u_assert_out (
  .clk_i, .rst_ni, .valid_i(valid_o), .ready_i(ready_i), .data_i({label_o, table_o, tag_o})
);

// The dispatcher's offers, and what it is offered, are withdrawn by an error: they are asserted in the chip that has one.
bind sf_registers bc_handshake_assert #(.WIDTH(36)) u_assert_in (
  .clk_i, .rst_ni, .valid_i(valid_i), .ready_i(ready_o), .data_i({address_i, data_i})
);
bind sf_registers bc_handshake_assert #(.WIDTH(64)) u_assert_out (
  .clk_i, .rst_ni, .valid_i(valid_o), .ready_i(ready_i), .data_i({header_o, command_o})
);
bind sf_controller bc_handshake_assert #(.WIDTH(1 + 2 * LABEL + ADDRESS)) u_assert_cell (
  .clk_i, .rst_ni, .valid_i(cell_valid_o), .ready_i(cell_ready_i), .data_i({cell_and_o, cell_a_o, cell_b_o, cell_out_o})
);
bind sf_controller bc_handshake_assert #(.WIDTH(LABEL)) u_assert_label[1:0] (
  .clk_i, .rst_ni, .valid_i(result_valid_i), .ready_i(result_ready_o), .data_i(result_label_i)
);
bind sf_controller bc_handshake_assert #(.WIDTH(ADDRESS)) u_assert_out[1:0] (
  .clk_i, .rst_ni, .valid_i(result_valid_i), .ready_i(result_ready_o), .data_i(result_out_i)
);
bind sf_controller bc_handshake_assert #(.WIDTH(WORD)) u_assert_word[1:0] (
  .clk_i, .rst_ni, .valid_i(ddr_valid_o), .ready_i(ddr_complete_i), .data_i(ddr_word_o)
);
bind sf_controller bc_handshake_assert #(.WIDTH(4)) u_assert_mask[1:0] (
  .clk_i, .rst_ni, .valid_i(ddr_valid_o & ddr_write_o), .ready_i(ddr_complete_i), .data_i(ddr_mask_o)
);
bind sf_controller bc_handshake_assert #(.WIDTH(512)) u_assert_data[1:0] (
  .clk_i, .rst_ni, .valid_i(ddr_valid_o & ddr_write_o), .ready_i(ddr_complete_i), .data_i(ddr_data_o)
);
bind sf_controller bc_handshake_assert #(.WIDTH(1)) u_assert_write[1:0] (
  .clk_i, .rst_ni, .valid_i(ddr_valid_o), .ready_i(ddr_complete_i), .data_i(ddr_write_o)
);
bind sifo bc_handshake_assert #(.WIDTH(64)) u_assert_command (
  .clk_i, .rst_ni(rst_ni && !stopped), .valid_i(queue_valid && !stopped), .ready_i(queue_ready),
  .data_i({queue_header, queue_command})
);
bind sifo bc_handshake_assert #(.WIDTH(66)) u_assert_gate (
  .clk_i, .rst_ni(rst_ni && !stopped), .valid_i(valid), .ready_i(ready), .data_i({operation, gate})
);
bind sifo bc_handshake_assert #(.WIDTH(3 * LABEL)) u_assert_table (
  .clk_i, .rst_ni, .valid_i(table_valid_o), .ready_i(table_ready_i), .data_i(table_o)
);

bind hg_overlay bc_handshake_assert #(.WIDTH(2 + COMMAND)) u_assert_host (
  .clk_i, .rst_ni, .valid_i(host_valid_i), .ready_i(host_ready_o), .data_i({host_kind_i, host_payload_i})
);
bind hg_overlay bc_handshake_assert #(.WIDTH(2 * LABELS)) u_assert_table (
  .clk_i, .rst_ni, .valid_i(table_valid_o), .ready_i(table_ready_i), .data_i(table_o)
);
bind hg_overlay bc_handshake_assert #(.WIDTH(2 * LABELS)) u_assert_feed (
  .clk_i, .rst_ni, .valid_i(feed_valid_i), .ready_i(feed_ready_o), .data_i(feed_i)
);
bind hg_overlay bc_handshake_assert #(.WIDTH(WORD)) u_assert_load (
  .clk_i, .rst_ni, .valid_i(load_valid_o), .ready_i(load_ready_i), .data_i(load_word_o)
);
bind hg_overlay bc_handshake_assert #(.WIDTH(LABELS)) u_assert_loaded (
  .clk_i, .rst_ni, .valid_i(loaded_valid_i), .ready_i(loaded_ready_o), .data_i(loaded_i)
);
bind hg_overlay bc_handshake_assert #(.WIDTH(WORD + LABELS)) u_assert_store (
  .clk_i, .rst_ni, .valid_i(store_valid_o), .ready_i(store_ready_i), .data_i({store_word_o, store_o})
);
// A gate that has begun never waits: the queues behind have room, and what a result needs beside its cells is there.
bind hg_pipeline hg_pipeline_assert u_assert (
  .clk_i, .rst_ni, .pushes_i({store_q, and_valid && !evaluate_i, and_q, sum_q}),
  .room_i({u_stores.ready_o, u_tables.ready_o, u_marks.ready_o, u_sums.ready_o}),
  .pops_i({loaded, and_valid}), .there_i({target_valid, u_marks.valid_o})
);

bind ph_stein bc_handshake_assert #(.WIDTH(4 + DIGIT)) u_assert_out (
  .clk_i, .rst_ni, .valid_i(out_valid_o), .ready_i(out_ready_i), .data_i({out_index_o, out_word_o})
);

bind ph_montgomery ph_montgomery_assert u_assert (
  .clk_i, .rst_ni, .digits_i, .load_i, .start_i, .ready_i(ready_o), .busy_i(busy_o),
  .product_i(valid), .last_i(tail_q && digit_q == last_digit), .write_i({tag_q[2].write, tag_q[1].write, tag_q[0].write}),
  .first_i({tag_q[2].first, tag_q[1].first, tag_q[0].first}), .column_i('{tag_q[0].column, tag_q[1].column, tag_q[2].column}),
  .spill_i(tag_q[2].spill), .spill_column_i(tag_q[2].column + 4'd1), .read_i(take_u || tail_q),
  .read_column_i(take_u ? row_q[3:0] : digits_i[3:0] + digit_q)
);

bind ph_element bc_handshake_assert #(.WIDTH(48)) u_assert_instruction (
  .clk_i, .rst_ni, .valid_i, .ready_i(ready_o), .data_i(instruction_i)
);
// An element that has failed withdraws its steps.
bind ph_sequence bc_handshake_assert #(.WIDTH(21)) u_assert_step (
  .clk_i, .rst_ni(rst_ni && !failed_i), .valid_i(step_valid_o), .ready_i(step_ready_i), .data_i({step_o, dst_o, x_o, y_o, keep_o})
);

// Models: what they offer. What a host offers them it may withdraw when a run has ended.
bind ssd_model bc_handshake_assert #(.WIDTH(64)) u_assert_out (
  .clk_i, .rst_ni, .valid_i(valid_o), .ready_i(ready_i), .data_i(data_o)
);
bind dram_model bc_handshake_assert #(.WIDTH(128)) u_assert_out (
  .clk_i, .rst_ni, .valid_i(valid_o), .ready_i(ready_i), .data_i(data_o)
);
bind host_link bc_handshake_assert #(.WIDTH(36)) u_assert_out (
  .clk_i, .rst_ni, .valid_i(valid_o), .ready_i(ready_i), .data_i({address_o, data_o})
);
bind ddr_model bc_handshake_assert #(.WIDTH(1)) u_assert_write[1:0] (
  .clk_i, .rst_ni, .valid_i(valid_i), .ready_i(complete_o), .data_i(write_i)
);
bind ddr_model bc_handshake_assert #(.WIDTH(INDEX)) u_assert_word[1:0] (
  .clk_i, .rst_ni, .valid_i(valid_i), .ready_i(complete_o), .data_i(word_i)
);
