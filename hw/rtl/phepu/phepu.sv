// PH-EPU: elements that compute on Paillier ciphertexts, three global buffers, a bus, and a controller that runs instructions.
// The link in brings packets (ph_link), the link out takes results and reports (hw/doc/phepu.md).
// Source: PH-EPU 2023, Fig. 15.4.2.
module phepu
  import ph_pkg::*;
#(
  parameter int unsigned ELEMENTS     = 16,
  parameter int unsigned INPUTS       = 1 << 16, // words of the global input buffer
  parameter int unsigned WEIGHTS      = 1 << 14, // of weights and contexts
  parameter int unsigned OUTPUTS      = 512,     // of the output FIFO
  parameter int unsigned INSTRUCTIONS = 512      // of the instruction FIFO, four in a word
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic [31:0]      watchdog_i,
  input  logic             in_valid_i,
  output logic             in_ready_o,
  input  logic [DIGIT-1:0] in_word_i,
  output logic             out_valid_o,
  input  logic             out_ready_i,
  output logic [DIGIT-1:0] out_word_o,
  output logic             idle_o
);
  localparam int unsigned ELEMENT = (ELEMENTS > 1) ? $clog2(ELEMENTS) : 1;

  // From the link, through a queue: nothing that the chip offers or takes depends on what it is offered in the same clock.
  logic link_valid, link_ready;
  logic [DIGIT-1:0] link_word;
  bc_fifo #(.WIDTH(DIGIT), .DEPTH(2)) u_receive (
    .clk_i, .rst_ni, .valid_i(in_valid_i), .ready_o(in_ready_o), .data_i(in_word_i), .valid_o(link_valid), .ready_i(link_ready),
    .data_o(link_word), .count_o()
  );
  logic instruction_valid, instruction_ready, write_inputs, write_weights, waits, dropped, give_up, link_idle;
  logic [15:0] write_address;
  logic [31:0] executed;
  ph_link #(.INPUTS(INPUTS), .WEIGHTS(WEIGHTS)) u_link (
    .clk_i, .rst_ni, .valid_i(link_valid), .ready_o(link_ready), .word_i(link_word), .executed_i(executed), .give_up_i(give_up),
    .instruction_valid_o(instruction_valid), .instruction_ready_i(instruction_ready), .write_inputs_o(write_inputs),
    .write_weights_o(write_weights), .write_address_o(write_address), .waits_o(waits), .error_o(dropped), .idle_o(link_idle)
  );
  logic fetch_valid, fetch_ready;
  logic [DIGIT-1:0] fetch_word;
  bc_fifo #(.WIDTH(DIGIT), .DEPTH(INSTRUCTIONS)) u_instructions (
    .clk_i, .rst_ni, .valid_i(instruction_valid), .ready_o(instruction_ready), .data_i(link_word), .valid_o(fetch_valid),
    .ready_i(fetch_ready), .data_o(fetch_word), .count_o()
  );
  logic read_inputs, read_weights;
  logic [15:0] read_address;
  logic [DIGIT-1:0] input_word, weight_word, bus_word;
  ph_buffer #(.WORDS(INPUTS)) u_inputs (
    .clk_i, .write_i(write_inputs), .write_address_i($clog2(INPUTS)'(write_address)), .write_word_i(link_word),
    .read_i(read_inputs), .read_address_i($clog2(INPUTS)'(read_address)), .read_word_o(input_word)
  );
  ph_buffer #(.WORDS(WEIGHTS)) u_weights (
    .clk_i, .write_i(write_weights), .write_address_i($clog2(WEIGHTS)'(write_address)), .write_word_i(link_word),
    .read_i(read_weights), .read_address_i($clog2(WEIGHTS)'(read_address)), .read_word_o(weight_word)
  );

  // Controller.
  bus_e bus_kind;
  logic [8:0] bus_address;
  logic [ELEMENTS-1:0] bus_valid, contexts, claim, fail, issue, ready, idle, progress, failed, store_read, store_done;
  logic [1:0] digits, width, claim_regions;
  logic [15:0] claim_slots;
  logic [7:0] fail_code;
  logic [47:0] instruction;
  logic [ELEMENTS-1:0][15:0] slots_busy;
  logic [ELEMENTS-1:0][1:0] regions_busy, full;
  logic [ELEMENTS-1:0][7:0] error;
  logic bus_last, store_slot, push, stored, zero, room, empty, controller_idle;
  logic [3:0] store_index;
  logic [ELEMENT-1:0] element;
  logic [DIGIT-1:0] pushed;
  logic [DIGIT-1:0] stores[ELEMENTS];
  logic [2*DIGIT-1:0] counters[ELEMENTS];
  ph_controller #(.ELEMENTS(ELEMENTS), .INPUTS(INPUTS), .WEIGHTS(WEIGHTS)) u_controller (
    .clk_i, .rst_ni, .watchdog_i, .valid_i(fetch_valid), .ready_o(fetch_ready), .word_i(fetch_word), .read_inputs_o(read_inputs),
    .read_weights_o(read_weights), .read_address_o(read_address), .bus_valid_o(bus_valid), .bus_kind_o(bus_kind),
    .bus_address_o(bus_address), .bus_last_o(bus_last), .context_o(contexts), .digits_o(digits), .width_o(width),
    .claim_o(claim), .claim_slots_o(claim_slots), .claim_regions_o(claim_regions), .fail_o(fail), .fail_code_o(fail_code),
    .issue_o(issue), .ready_i(ready), .instruction_o(instruction), .slots_busy_i(slots_busy), .regions_busy_i(regions_busy),
    .full_i(full), .idle_i(idle), .progress_i(progress), .failed_i(failed), .error_i(error), .store_read_o(store_read),
    .store_slot_o(store_slot), .store_index_o(store_index), .store_done_o(store_done), .push_o(push), .stored_o(stored),
    .zero_o(zero), .element_o(element), .word_o(pushed), .counters_i(counters[element]), .room_i(room), .empty_i(empty),
    .moved_i((link_valid && link_ready) || (out_valid_o && out_ready_i)), .blocked_i(out_valid_o && !out_ready_i),
    .waits_i(waits), .dropped_i(dropped), .give_up_o(give_up), .executed_o(executed), .idle_o(controller_idle)
  );

  // Elements, on one bus.
  assign bus_word = (bus_kind == BUS_INPUT) ? input_word : weight_word;
  for (genvar e = 0; e < ELEMENTS; e++) begin : gen_element
    ph_element u_element (
      .clk_i, .rst_ni, .context_i(contexts[e]), .digits_i(digits), .width_i(width), .bus_valid_i(bus_valid[e]),
      .bus_kind_i(bus_kind), .bus_address_i(bus_address), .bus_last_i(bus_last), .bus_word_i(bus_word),
      .claim_slots_i(claim[e] ? claim_slots : '0), .claim_regions_i(claim[e] ? claim_regions : '0), .fail_i(fail[e]),
      .fail_code_i(fail_code), .valid_i(issue[e]), .ready_o(ready[e]), .instruction_i(instruction),
      .slots_busy_o(slots_busy[e]), .regions_busy_o(regions_busy[e]), .full_o(full[e]), .idle_o(idle[e]),
      .progress_o(progress[e]), .failed_o(failed[e]), .error_o(error[e]), .error_at_o(), .store_read_i(store_read[e]),
      .store_slot_i(store_slot), .store_index_i(store_index), .store_word_o(stores[e]), .store_done_i(store_done[e]),
      .counters_o(counters[e])
    );
  end
  ph_output #(.ELEMENTS(ELEMENTS), .DEPTH(OUTPUTS)) u_output (
    .clk_i, .rst_ni, .push_i(push), .stored_i(stored), .zero_i(zero), .element_i(element), .word_i(pushed), .stores_i(stores),
    .room_o(room), .empty_o(empty), .valid_o(out_valid_o), .ready_i(out_ready_i), .word_o(out_word_o)
  );
  assign idle_o = link_idle && controller_idle && idle == '1 && empty;
endmodule
