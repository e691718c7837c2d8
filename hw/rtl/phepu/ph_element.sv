// Processing element (BSRD-PE): a queue of instructions, the memories, and the two units that multiply and invert.
//
// Mode 1, bit-serial: weighted sums (products of powers) of ciphertexts, in four steps; zero bits of weights take no time. Mode 2:
// multiplications, squarings, powers, inverses. The controller writes inputs, weights and constants over the bus and fetches
// outputs; an element marks what is in use (busy slots and regions, full outputs) and never looks at the bus itself.
//
// The first error stays until the reset. From the clock behind it the element takes and drops instructions, is idle, nothing of it
// is busy and both outputs are full, so that nobody waits for it; a multiplication under way ends and is not written.
//
// No output depends on an input of the same clock.
//
// Source: PH-EPU 2023, Fig. 15.4.2 and 15.4.4.
module ph_element
  import ph_pkg::*;
(
  input  logic             clk_i,
  input  logic             rst_ni,
  // Context: a pulse when its words begin to come, and what it says of sizes.
  input  logic             context_i,
  input  logic [1:0]       digits_i,     // 4, 8, 16
  input  logic [1:0]       width_i,      // weights of 2, 4, 8 bits
  // Bus.
  input  logic             bus_valid_i,
  input  logic [1:0]       bus_kind_i,
  input  logic [8:0]       bus_address_i,
  input  logic             bus_last_i,   // the highest digit of an input
  input  logic [DIGIT-1:0] bus_word_i,
  input  logic [15:0]      claim_slots_i,
  input  logic [1:0]       claim_regions_i,
  input  logic             fail_i,
  input  logic [7:0]       fail_code_i,
  // Instructions: opcode and operands.
  input  logic             valid_i,
  output logic             ready_o,
  input  logic [47:0]      instruction_i,
  // What the controller waits for.
  output logic [15:0]      slots_busy_o,
  output logic [1:0]       regions_busy_o,
  output logic [1:0]       full_o,
  output logic             idle_o,
  output logic             progress_o,
  output logic             failed_o,
  output logic [7:0]       error_o,
  output logic [23:0]      error_at_o,   // instructions before it
  // Outputs: a word a clock later.
  input  logic             store_read_i,
  input  logic             store_slot_i,
  input  logic [3:0]       store_index_i,
  output logic [DIGIT-1:0] store_word_o,
  input  logic             store_done_i, // that slot is empty again
  output logic [511:0]     counters_o    // 16 of 32 bits
);
  /* verilator no_inline_module */ // sixteen of them share their code
  logic failed_q, context_q;
  logic [1:0] digits_q, width_q;
  logic [4:0] digits;
  assign digits = digits_of(digits_q);

  // Queue. What is offered to a failed element goes to nowhere.
  logic queue_ready, valid, ready, take;
  logic [47:0] instruction;
  bc_fifo #(.WIDTH(48), .DEPTH(16)) u_queue (
    .clk_i, .rst_ni, .valid_i(valid_i && queue_ready && !failed_q), .ready_o(queue_ready), .data_i(instruction_i),
    .valid_o(valid), .ready_i(ready), .data_o(instruction), .count_o()
  );
  assign ready_o = queue_ready || failed_q;
  assign take    = valid && ready && !failed_q;

  // The bus: a context's words are m, R^2, R, n'.
  logic bus_input, bus_weights, bus_context, bus_constant, bus_inverse;
  logic [2:0] part;
  logic [3:0] bus_index;
  logic [5:0] bus_place;
  assign bus_input    = bus_valid_i && !failed_q && bus_kind_i == BUS_INPUT;
  assign bus_weights  = bus_valid_i && !failed_q && bus_kind_i == BUS_WEIGHTS;
  assign bus_context  = bus_valid_i && !failed_q && bus_kind_i == BUS_CONTEXT;
  assign part         = 3'(bus_address_i >> digits_q >> 2);
  assign bus_index    = bus_address_i[3:0] & (bus_input ? 4'd15 : 4'(digits - 5'd1));
  assign bus_inverse  = bus_context && part == 3'd3;
  assign bus_constant = bus_context && part < 3'd3;
  always_comb begin
    unique case (part)
      3'd0:    bus_place = MODULUS;
      3'd1:    bus_place = SQUARED;
      default: bus_place = ONE;
    endcase
    if (bus_input) bus_place = INPUT + 6'(bus_address_i[7:4]);
  end

  // Weights and the bits in them.
  logic select, select_down, select_every, select_whole, select_valid, select_set, select_take, select_end;
  logic [16:0] select_first;
  logic [12:0] select_count;
  logic [11:0] select_position;
  logic [7:0] select_weight;
  logic weight_read;
  logic [8:0] weight_address;
  logic [DIGIT-1:0] weight_word;
  ph_buffer #(.WORDS(WEIGHT_WORDS)) u_weights (
    .clk_i, .write_i(bus_weights && bus_address_i < 9'(WEIGHT_WORDS)), .write_address_i(bus_address_i), .write_word_i(bus_word_i),
    .read_i(weight_read), .read_address_i(weight_address), .read_word_o(weight_word)
  );
  ph_selector u_selector (
    .clk_i, .rst_ni, .start_i(select), .first_i(select_first), .count_i(select_count), .down_i(select_down),
    .every_i(select_every), .whole_i(select_whole), .width_i(width_q), .read_o(weight_read), .address_o(weight_address),
    .word_i(weight_word), .valid_o(select_valid), .position_o(select_position), .set_o(select_set), .weight_o(select_weight),
    .take_i(select_take), .end_o(select_end)
  );

  // Ciphertexts.
  logic read, write, write_enable, not_reduced;
  logic [5:0] read_place, write_place;
  logic [3:0] read_index, write_index;
  logic [11:0] power;
  logic [DIGIT-1:0] read_word, write_word;
  assign write_enable = write && !failed_q;
  ph_ciphertexts u_ciphertexts (
    .clk_i, .rst_ni, .read_i(read), .read_place_i(read_place), .read_index_i(read_index), .power_i(power),
    .read_word_o(read_word), .write_i(write_enable), .write_place_i(write_place), .write_index_i(write_index),
    .write_word_i(write_word), .bus_valid_i(bus_input || bus_constant), .bus_place_i(bus_place), .bus_index_i(bus_index),
    .bus_last_i(bus_input ? bus_last_i : 5'(bus_index) + 1'b1 == digits), .bus_word_i, .not_reduced_o(not_reduced),
    .store_read_i, .store_slot_i, .store_index_i, .store_word_o
  );

  // Instructions become steps, and these are done.
  logic step_valid, step_ready, keep, units_idle, written, no_inverse, sequence_idle, sequence_error;
  step_e step;
  logic [5:0] dst, x, y;
  logic [7:0] sequence_code;
  logic [1:0] fill, fill_q, full_q, free_regions;
  logic [15:0] free_slots;
  logic [3:0] clock, taken;
  logic [12:0] bits;
  ph_sequence u_sequence (
    .clk_i, .rst_ni, .failed_i(failed_q), .emptied_i(context_i), .context_i(context_q), .width_i(width_q), .valid_i(valid),
    .ready_o(ready), .instruction_i(instruction), .full_i(full_q | fill_q), .step_valid_o(step_valid), .step_ready_i(step_ready),
    .step_o(step), .dst_o(dst), .x_o(x), .y_o(y), .keep_o(keep), .idle_i(units_idle), .select_o(select),
    .select_first_o(select_first), .select_count_o(select_count), .select_down_o(select_down), .select_every_o(select_every),
    .select_whole_o(select_whole), .select_valid_i(select_valid), .select_position_i(select_position),
    .select_set_i(select_set), .select_weight_i(select_weight), .select_take_o(select_take), .select_end_i(select_end),
    .idle_o(sequence_idle), .fill_o(fill), .free_slots_o(free_slots), .free_regions_o(free_regions), .error_o(sequence_error),
    .error_code_o(sequence_code), .clock_o(clock), .bits_o(bits), .taken_o(taken)
  );
  logic multiply, copying, montgomery_busy, stein_busy, progress;
  ph_execute u_execute (
    .clk_i, .rst_ni, .digits_i(digits), .load_i(bus_inverse || (bus_constant && bus_place == MODULUS)),
    .load_index_i({bus_inverse, bus_index}), .load_word_i(bus_word_i), .valid_i(step_valid), .ready_o(step_ready), .step_i(step),
    .dst_i(dst), .x_i(x), .y_i(y), .keep_i(keep), .idle_o(units_idle), .written_o(written), .no_inverse_o(no_inverse),
    .read_o(read), .read_place_o(read_place), .read_index_o(read_index), .power_o(power), .read_word_i(read_word),
    .modulus_taken_i(bus_input || bus_constant), .write_o(write), .write_place_o(write_place), .write_index_o(write_index),
    .write_word_o(write_word), .multiply_o(multiply), .copying_o(copying), .montgomery_busy_o(montgomery_busy),
    .stein_busy_o(stein_busy), .progress_o(progress)
  );

  // Errors.
  logic error;
  logic [7:0] code;
  always_comb begin
    error = 1'b1;
    if (fail_i) code = fail_code_i;
    else if (sequence_error) code = sequence_code;
    else if (no_inverse) code = ERROR_NO_INVERSE;
    else if (not_reduced) code = ERROR_NOT_REDUCED;
    else if (bus_constant && bus_place == MODULUS && bus_index == '0 && !bus_word_i[0]) code = ERROR_EVEN;
    else if (bus_input && !context_q) code = ERROR_NO_CONTEXT;
    else if (bus_weights && bus_address_i >= 9'(WEIGHT_WORDS)) code = ERROR_RANGE;
    else begin
      error = 1'b0;
      code  = ERROR_NONE;
    end
  end

  // Counters, until the element fails.
  logic [31:0] counter_q[16];
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      for (int unsigned i = 0; i < 16; i++) counter_q[i] <= '0;
    end else if (!failed_q) begin
      counter_q[clock] <= counter_q[clock] + 1'b1;
      if (montgomery_busy) counter_q[1] <= counter_q[1] + 1'b1;
      if (stein_busy) counter_q[2] <= counter_q[2] + 1'b1;
      if (take) counter_q[8] <= counter_q[8] + 1'b1;
      if (multiply) counter_q[9] <= counter_q[9] + 1'b1;
      if (step_valid && step_ready && step == STEP_INVERT) counter_q[10] <= counter_q[10] + 1'b1;
      if (copying) counter_q[13] <= counter_q[13] + 1'b1;
      if (bits != '0 || taken != '0) counter_q[14] <= counter_q[14] + 32'(bits) - 32'(taken);
    end
  end
  always_comb begin
    for (int unsigned i = 1; i < 16; i++) counters_o[32*i+:32] = counter_q[i];
    counters_o[31:0] = {error_at_o, error_o};
  end

  logic [15:0] slots_q;
  logic [1:0] regions_q;
  assign slots_busy_o   = failed_q ? '0 : slots_q;
  assign regions_busy_o = failed_q ? '0 : regions_q;
  assign full_o         = failed_q ? '1 : full_q;
  assign idle_o         = failed_q || (!valid && sequence_idle && units_idle && written && fill_q == '0);
  assign progress_o     = take || progress;
  assign failed_o       = failed_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      failed_q   <= 1'b0;
      error_o    <= ERROR_NONE;
      error_at_o <= '0;
      context_q  <= 1'b0;
      digits_q   <= '0;
      width_q    <= '0;
      slots_q    <= '0;
      regions_q  <= '0;
      full_q     <= '0;
      fill_q     <= '0;
    end else begin
      if (error && !failed_q) begin
        failed_q   <= 1'b1;
        error_o    <= code;
        error_at_o <= 24'(counter_q[8] - 32'(!sequence_idle));
      end
      if (context_i && !failed_q) begin
        context_q <= 1'b0;
        digits_q  <= digits_i;
        width_q   <= width_i;
      end else if (bus_inverse) context_q <= 1'b1;
      slots_q   <= (slots_q & ~free_slots) | claim_slots_i;
      regions_q <= (regions_q & ~free_regions) | claim_regions_i;
      // A slot is full when the last word of its result is written.
      fill_q <= written ? fill : fill_q | fill;
      full_q <= (full_q & ~({2{store_done_i}} & {store_slot_i, !store_slot_i})) | (written ? fill_q : 2'b0);
    end
  end
endmodule
