// Runs the chip's instructions, in order: loads elements from the global buffers over the bus, the same words for all of a
// mask, a word a clock; sends what elements have finished; hands what they do themselves to their queues.
//
// An instruction waits for what it says and for nothing else: for slots or regions that are still used, for a place in the
// queues, for a finished output, for the end of all. None of that comes of a later instruction but in a program that is
// wrong, and then the watchdog fails those who are waited for. Elements that have failed never hold anything up.
// Source: PH-EPU 2023, Fig. 15.4.2 (top controller and bus); the instructions are ours.
module ph_controller
  import ph_pkg::*;
#(
  parameter int unsigned ELEMENTS = 16,
  parameter int unsigned INPUTS   = 1 << 16, // words of the global buffers
  parameter int unsigned WEIGHTS  = 1 << 14,
  localparam int unsigned ELEMENT = (ELEMENTS > 1) ? $clog2(ELEMENTS) : 1
) (
  input  logic                      clk_i,
  input  logic                      rst_ni,
  input  logic [31:0]               watchdog_i, // clocks without progress; 0: never
  // Four instructions, the lowest first.
  input  logic                      valid_i,
  output logic                      ready_o,
  input  logic [DIGIT-1:0]          word_i,
  // A word of a global buffer, which goes over the bus a clock later.
  output logic                      read_inputs_o,
  output logic                      read_weights_o,
  output logic [15:0]               read_address_o,
  // Bus: who takes its word, and what it is.
  output logic [ELEMENTS-1:0]       bus_valid_o,
  output bus_e                      bus_kind_o,
  output logic [8:0]                bus_address_o,
  output logic                      bus_last_o,
  // Elements.
  output logic [ELEMENTS-1:0]       context_o,
  output logic [1:0]                digits_o,
  output logic [1:0]                width_o,
  output logic [ELEMENTS-1:0]       claim_o,
  output logic [15:0]               claim_slots_o,
  output logic [1:0]                claim_regions_o,
  output logic [ELEMENTS-1:0]       fail_o,
  output logic [7:0]                fail_code_o,
  output logic [ELEMENTS-1:0]       issue_o,
  input  logic [ELEMENTS-1:0]       ready_i,
  output logic [47:0]               instruction_o,
  input  logic [ELEMENTS-1:0][15:0] slots_busy_i,
  input  logic [ELEMENTS-1:0][1:0]  regions_busy_i,
  input  logic [ELEMENTS-1:0][1:0]  full_i,
  input  logic [ELEMENTS-1:0]       idle_i,
  input  logic [ELEMENTS-1:0]       progress_i,
  input  logic [ELEMENTS-1:0]       failed_i,
  input  logic [ELEMENTS-1:0][7:0]  error_i,
  output logic [ELEMENTS-1:0]       store_read_o,
  output logic                      store_slot_o,
  output logic [3:0]                store_index_o,
  output logic [ELEMENTS-1:0]       store_done_o,
  // Words out: of an element's slot (`stored_o`), or `word_o`; for a report that is half of `counters_i`, of `element_o`.
  output logic                      push_o,
  output logic                      stored_o,
  output logic                      zero_o,
  output logic [ELEMENT-1:0]        element_o,
  output logic [DIGIT-1:0]          word_o,
  input  logic [2*DIGIT-1:0]        counters_i,
  input  logic                      room_i,
  input  logic                      empty_i,
  // Link.
  input  logic                      moved_i,   // a word came in or went out
  input  logic                      blocked_i, // a word can't go out
  input  logic                      waits_i,   // a packet waits for instructions
  input  logic                      dropped_i, // a packet was dropped
  output logic                      give_up_o,
  output logic [31:0]               executed_o,
  output logic                      idle_o
);
  typedef enum logic [1:0] {
    DECODE,
    MOVE,
    STORE,
    REPORT
  } state_e;
  state_e state_q;

  // The instruction, and where the next one is in its word.
  logic [63:0] inst_q;
  logic [1:0] next_q;
  logic there_q, take, done;
  opcode_e op;
  logic [ELEMENTS-1:0] mask, live;
  assign op      = opcode_e'(inst_q[63:60]);
  assign mask    = inst_q[44+:ELEMENTS];
  assign live    = mask & ~failed_i;
  assign take    = valid_i && (!there_q || done);
  assign ready_o = take && next_q == 2'd3;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      there_q <= 1'b0;
      next_q  <= '0;
    end else begin
      there_q <= take || (there_q && !done);
      if (take) next_q <= next_q + 1'b1;
    end
  end
  always_ff @(posedge clk_i) if (take) inst_q <= word_i[64*next_q+:64];

  // What each element's CONTEXT said.
  logic [ELEMENTS-1:0] known_q;
  logic [ELEMENTS-1:0][1:0] digits_q;

  // The lowest element that the instruction is for. Its digits count; one that knows others fails.
  logic [ELEMENT-1:0] element;
  logic [1:0] digits;
  logic [ELEMENTS-1:0] unlike;
  logic one;
  always_comb begin
    logic [ELEMENTS-1:0] chosen;
    chosen  = (op == OP_STORE) ? mask : live;
    element = '0;
    for (int unsigned e = ELEMENTS; e > 0; e--) if (chosen[e-1]) element = ELEMENT'(e - 1);
    digits = digits_q[element];
    for (int unsigned e = 0; e < ELEMENTS; e++) unlike[e] = live[e] && digits_q[e] != digits;
  end
  assign one = mask != '0 && (mask & (mask - 1'b1)) == '0;

  // Words, and whether they lie in their buffers.
  logic [8:0] words;
  logic [15:0] from;
  logic [15:0] slots;
  logic [1:0] regions;
  logic outside;
  always_comb begin
    words   = '0;
    from    = '0;
    outside = 1'b0;
    unique case (op)
      OP_LOAD_INPUT: begin
        words   = 9'(inst_q[8:4]) << (3'd2 + 3'(digits));
        from    = inst_q[24:9];
        outside = inst_q[8:4] == '0 || 6'(inst_q[3:0]) + 6'(inst_q[8:4]) > 6'(INPUT_SLOTS) || 17'(from) + 17'(words) > 17'(INPUTS);
      end
      OP_LOAD_WEIGHTS: begin
        words   = inst_q[17:9];
        from    = inst_q[33:18];
        outside = words == '0 || 10'(inst_q[8:0]) + 10'(words) > 10'(WEIGHT_WORDS) || 17'(from) + 17'(words) > 17'(WEIGHTS);
      end
      OP_CONTEXT: begin
        words   = 9'(3 * 6'(digits_of(inst_q[1:0]))) + 9'd1;
        from    = inst_q[19:4];
        outside = inst_q[1:0] == 2'd3 || inst_q[3:2] == 2'd3 || 17'(from) + 17'(words) > 17'(WEIGHTS);
      end
      default: ;
    endcase
    slots   = (op == OP_LOAD_INPUT) ? ~(16'hffff << inst_q[8:4]) << inst_q[3:0] : '0;
    regions = (op == OP_LOAD_WEIGHTS) ? inst_q[35:34] : '0;
  end

  // Whom the instruction makes fail, whom it waits for, and whether it is over without a word.
  logic [ELEMENTS-1:0] bad, waits;
  logic [7:0] bad_code;
  logic held, nothing, begins;
  always_comb begin
    bad      = '0;
    bad_code = ERROR_RANGE;
    waits    = '0;
    held     = 1'b0;
    nothing  = live == '0;
    unique case (op)
      OP_END: begin
        nothing = 1'b0;
        waits   = ~idle_i;
        held    = !empty_i;
      end
      OP_LOAD_INPUT: begin
        bad = outside ? live : unlike;
        if ((live & ~known_q) != '0) begin
          bad      = live & ~known_q;
          bad_code = ERROR_NO_CONTEXT;
        end
        for (int unsigned e = 0; e < ELEMENTS; e++) waits[e] = live[e] && (slots_busy_i[e] & slots) != '0;
      end
      OP_LOAD_WEIGHTS: begin
        bad = outside ? live : '0;
        for (int unsigned e = 0; e < ELEMENTS; e++) waits[e] = live[e] && (regions_busy_i[e] & regions) != '0;
      end
      OP_CONTEXT: begin
        bad   = outside ? live : '0;
        waits = live & ~idle_i;
      end
      OP_STORE: begin
        nothing = !one;
        held    = !room_i;
        if (!one) bad = live;
        else if ((live & ~known_q) != '0) begin
          bad      = live;
          bad_code = ERROR_NO_CONTEXT;
        end
        for (int unsigned e = 0; e < ELEMENTS; e++) waits[e] = one && mask[e] && !full_i[e][inst_q[0]];
      end
      OP_FREE, OP_CLEAR, OP_ACCUMULATE, OP_ALIGN, OP_INVERT, OP_REDUCE, OP_BASIC: begin
        nothing = 1'b0;
        waits   = mask & ~ready_i;
      end
      OP_NOP: nothing = 1'b1;
      default: begin
        bad      = live;
        bad_code = ERROR_UNKNOWN;
      end
    endcase
    if (!there_q || state_q != DECODE) bad = '0;
    begins = there_q && state_q == DECODE && bad == '0 && (nothing || (waits == '0 && !held));
  end

  // What the instruction moves.
  logic move, store, issue, last;
  logic [8:0] left_q;
  logic [ELEMENTS-1:0] to_q;
  logic [ELEMENT-1:0] element_q;
  assign move          = begins && !nothing && (op == OP_LOAD_INPUT || op == OP_LOAD_WEIGHTS || op == OP_CONTEXT);
  assign store         = begins && !nothing && op == OP_STORE;
  assign issue         = begins && inst_q[63] && op != OP_NOP;
  assign last          = left_q == '0;
  assign done          = (state_q == DECODE) ? begins && !move && !store && op != OP_END : last;
  assign issue_o       = issue ? mask : '0;
  assign instruction_o = {inst_q[63:60], inst_q[43:0]};
  assign claim_o       = (move && op != OP_CONTEXT) ? live : '0;
  assign context_o     = (move && op == OP_CONTEXT) ? live : '0;
  assign claim_slots_o   = slots;
  assign claim_regions_o = regions;
  assign digits_o        = inst_q[1:0];
  assign width_o         = inst_q[3:2];
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q  <= DECODE;
      known_q  <= '0;
      digits_q <= '0;
    end else begin
      if (move) state_q <= MOVE;
      else if (store) state_q <= STORE;
      else if (begins && op == OP_END) state_q <= REPORT;
      else if (state_q != DECODE && last) state_q <= DECODE;
      for (int unsigned e = 0; e < ELEMENTS; e++) begin
        if (context_o[e]) begin
          known_q[e]  <= 1'b1;
          digits_q[e] <= inst_q[1:0];
        end
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (begins) begin
      to_q <= live;
      if (op == OP_END) left_q <= 9'(2 * ELEMENTS - 1);
      else if (op == OP_STORE) left_q <= 9'(digits_of(digits)) - 9'd1;
      else left_q <= words - 9'd1;
    end else if (state_q != DECODE) left_q <= left_q - 9'd1;
  end

  // Words of a global buffer, and a clock later over the bus.
  logic [15:0] address_q;
  logic [8:0] place_q;
  logic end_of_input;
  assign read_inputs_o  = state_q == MOVE && op == OP_LOAD_INPUT;
  assign read_weights_o = state_q == MOVE && op != OP_LOAD_INPUT;
  assign read_address_o = address_q;
  always_comb begin
    logic [3:0] top;
    top          = 4'(digits_of(digits_q[element_q]) - 5'd1);
    end_of_input = op == OP_LOAD_INPUT && place_q[3:0] == top;
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) bus_valid_o <= '0;
    else bus_valid_o <= (state_q == MOVE) ? to_q : '0;
  end
  always_ff @(posedge clk_i) begin
    if (begins) begin
      address_q <= from;
      place_q   <= '0;
      if (op == OP_LOAD_INPUT) place_q[7:4] <= inst_q[3:0];
      if (op == OP_LOAD_WEIGHTS) place_q <= inst_q[8:0];
    end else if (state_q == MOVE) begin
      address_q     <= address_q + 1'b1;
      place_q       <= end_of_input ? {place_q[8:4] + 1'b1, 4'd0} : place_q + 1'b1;
      bus_kind_o    <= (op == OP_LOAD_INPUT) ? BUS_INPUT : (op == OP_LOAD_WEIGHTS) ? BUS_WEIGHTS : BUS_CONTEXT;
      bus_address_o <= place_q;
      bus_last_o    <= end_of_input;
    end
  end

  // Words out.
  logic [3:0] digit_q;
  logic [ELEMENT:0] report_q; // {element, half}
  logic zero_q;
  logic [7:0] error_q;
  logic [63:0] clocks_q;
  logic [31:0] bus_q, wait_bus_q, wait_output_q, wait_link_q;
  assign store_slot_o  = inst_q[0];
  assign store_index_o = digit_q;
  always_comb begin
    logic [ELEMENTS-1:0] hot;
    hot          = ELEMENTS'(1) << element_q;
    store_read_o = (state_q == STORE) ? hot : '0;
    store_done_o = (state_q == STORE && last) ? hot : '0;
  end
  assign push_o    = store || (begins && op == OP_END) || state_q == STORE || state_q == REPORT;
  assign stored_o  = state_q == STORE;
  assign zero_o    = zero_q;
  assign element_o = (state_q == STORE) ? element_q : report_q[ELEMENT:1];
  always_comb begin
    word_o = '0;
    if (store) begin
      word_o = DIGIT'({8'(digits_of(digits)), inst_q[32:1], failed_i[element] ? error_i[element] : 8'd0, 8'(element), 8'd1});
    end else if (state_q == REPORT) begin
      word_o = report_q[0] ? counters_i[2*DIGIT-1:DIGIT] : counters_i[DIGIT-1:0];
    end else if (push_o) begin
      word_o = {wait_link_q, wait_output_q, wait_bus_q, bus_q, executed_o, clocks_q, 8'd0, 8'(ELEMENTS), error_q, 8'd2};
    end
  end
  always_ff @(posedge clk_i) begin
    if (begins) begin
      element_q <= element;
      zero_q    <= failed_i[element];
      digit_q   <= '0;
      report_q  <= '0;
    end else if (push_o) begin
      digit_q  <= digit_q + 1'b1;
      report_q <= report_q + 1'b1;
    end
  end

  // The watchdog: whoever has work, or is waited for, when nothing has moved for too long.
  logic [31:0] still_q;
  logic moves, barks;
  logic [ELEMENTS-1:0] late;
  assign late  = ~idle_i | ((there_q && state_q == DECODE) ? waits : '0);
  assign moves = moved_i || progress_i != '0 || begins || bad != '0 || state_q != DECODE;
  assign barks = watchdog_i != '0 && still_q >= watchdog_i && !moves && !blocked_i;
  always_comb begin
    fail_o      = bad;
    fail_code_o = bad_code;
    if (barks) begin
      fail_o      = late;
      fail_code_o = ERROR_WATCHDOG;
    end
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      still_q   <= '0;
      give_up_o <= 1'b0;
    end else begin
      if (moves || barks) still_q <= '0;
      else if (!blocked_i) still_q <= still_q + 1'b1;
      give_up_o <= barks && late == '0 && !there_q && waits_i;
    end
  end

  // The chip's error, the first one, and counters.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      error_q       <= ERROR_NONE;
      executed_o    <= '0;
      clocks_q      <= '0;
      bus_q         <= '0;
      wait_bus_q    <= '0;
      wait_output_q <= '0;
      wait_link_q   <= '0;
    end else begin
      if (error_q == ERROR_NONE) begin
        if (dropped_i) error_q <= ERROR_LINK;
        else if (give_up_o) error_q <= ERROR_WATCHDOG;
        else if (begins && op == OP_STORE && mask == '0) error_q <= ERROR_RANGE;
      end
      executed_o <= executed_o + 32'(done);
      clocks_q   <= clocks_q + 1'b1;
      bus_q      <= bus_q + 32'(state_q == MOVE || state_q == STORE);
      if (!there_q) wait_link_q <= wait_link_q + 1'b1;
      else if (state_q == DECODE && !begins && bad == '0) begin
        if (op == OP_STORE || op == OP_END) wait_output_q <= wait_output_q + 1'b1;
        else wait_bus_q <= wait_bus_q + 1'b1;
      end
    end
  end
  assign idle_o = !there_q && !valid_i && bus_valid_o == '0;
endmodule
