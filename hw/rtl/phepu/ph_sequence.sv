// Takes an element's instructions apart into steps of its units (ph_execute): multiplications, copies, inversions.
//
// An instruction is taken in one clock and looked at in the next, where it may wait for output slots to be empty. A step is offered
// while the units still work on the one before. FREE, CLEAR and NOP are done when they have been looked at.
//
// Source: PH-EPU 2023, Fig. 15.4.4: mode 1's four steps (ACCUMULATE, ALIGN, INVERT, REDUCE), mode 2 (BASIC). Buckets and steady
// powers are ours.
module ph_sequence
  import ph_pkg::*;
(
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic        failed_i,     // instructions are dropped
  input  logic        emptied_i,    // a new context: all terms become empty
  input  logic        context_i,    // there is one
  input  logic [1:0]  width_i,      // weights of 2, 4, 8 bits
  input  logic        valid_i,
  output logic        ready_o,
  input  logic [47:0] instruction_i,
  input  logic [1:0]  full_i,       // output slots that are full
  // Steps.
  output logic        step_valid_o,
  input  logic        step_ready_i,
  output step_e       step_o,
  output logic [5:0]  dst_o,
  output logic [5:0]  x_o,
  output logic [5:0]  y_o,
  output logic        keep_o,
  input  logic        idle_i,       // the last step's result is there or on its way
  // Selector.
  output logic        select_o,
  output logic [16:0] select_first_o,
  output logic [12:0] select_count_o,
  output logic        select_down_o,
  output logic        select_every_o,
  output logic        select_whole_o,
  input  logic        select_valid_i,
  input  logic [11:0] select_position_i,
  input  logic        select_set_i,
  input  logic [7:0]  select_weight_i,
  output logic        select_take_o,
  input  logic        select_end_i,
  // Results.
  output logic        idle_o,       // no instruction is under way
  output logic [1:0]  fill_o,       // an instruction has ended that fills this output slot
  output logic [15:0] free_slots_o,
  output logic [1:0]  free_regions_o,
  output logic        error_o,
  output logic [7:0]  error_code_o,
  output logic [3:0]  clock_o,      // the counter to which this clock belongs
  output logic [12:0] bits_o,       // bits to be looked at, where zeros are skipped
  output logic [3:0]  taken_o       // of which so many are not skipped
);
  typedef enum logic [3:0] {
    IDLE, DECODE, ACCUMULATE, ALIGN, INVERT, SUFFIX, CHAIN, FACTORS, MULTIPLY, SQUARE, POWERS, STEADY, FINISH
  } state_e;
  state_e state_q;
  logic [43:0] op_q;
  logic [3:0] opcode_q;
  logic [TERMS-1:0] terms_q; // which are not empty
  logic [12:0] count_q;      // of squarings, terms, bits
  logic [2:0] bit_q;         // of the sum, while aligning
  logic begun_q;             // there is a first factor

  // Operands.
  logic [1:0] sum;
  logic [2:0] kind;
  logic [5:0] dst, x, y;
  logic buckets, output_slot;
  logic [3:0] weight_bits, places;
  logic [2:0] first_term, last_term;
  assign sum         = op_q[1:0];
  assign kind        = op_q[43:41];
  assign weight_bits = 4'd2 << width_i;
  always_comb begin
    unique case (opcode_q)
      OP_CLEAR:      buckets = op_q[2];
      OP_ACCUMULATE: buckets = op_q[27];
      OP_REDUCE:     buckets = op_q[3];
      default:       buckets = 1'b0;
    endcase
  end
  assign places      = buckets ? 4'(TERMS) : weight_bits;
  assign first_term  = buckets ? 3'd0 : 3'(sum) << width_i << 1;
  assign last_term   = 3'(4'(first_term) + places - 4'd1);
  assign output_slot = op_q[2];
  assign x           = op_q[11:6];
  assign y           = op_q[17:12];
  assign dst         = op_q[5:0];

  // Looking at it.
  logic sum_good, range_good, unknown;
  logic [1:0] slots;
  logic [18:0] weights_end;
  logic [12:0] exponent_bits;
  logic [9:0] exponent_end;
  function automatic logic is_output(logic [5:0] place, logic slot);
    return place == (OUTPUT | 6'(slot));
  endfunction
  function automatic logic operand(logic [5:0] place);
    return place < OUTPUT + 6'd2 || (place >= SQUARED && place <= LITERAL);
  endfunction
  assign weights_end   = (19'(op_q[26:11]) + 19'(op_q[10:6])) << width_i;
  assign exponent_bits = op_q[39:27];
  assign exponent_end  = 10'(op_q[26:18]) + 10'((exponent_bits + 13'd255) >> 8);
  assign sum_good      = buckets || (5'(sum) + 5'd1) << width_i <= 5'(TERMS / 2);
  always_comb begin
    unknown    = 1'b0;
    range_good = 1'b1;
    slots      = '0;
    if (state_q == DECODE) unique case (opcode_q)
      OP_FREE, OP_NOP: ;
      OP_CLEAR, OP_ALIGN, OP_INVERT: range_good = sum_good;
      OP_ACCUMULATE: range_good = sum_good && op_q[10:6] != '0 && 6'(op_q[5:2]) + 6'(op_q[10:6]) <= 6'(INPUT_SLOTS) &&
                                  weights_end <= 19'(WEIGHT_WORDS * DIGIT / 2);
      OP_REDUCE: begin
        range_good = sum_good;
        slots[output_slot] = 1'b1;
      end
      OP_BASIC: begin
        range_good = operand(x) && dst >= TERM && dst < OUTPUT + 6'd2;
        if (kind == BASIC_MULTIPLY && !operand(y)) range_good = 1'b0;
        if (kind == BASIC_SQUARE && op_q[30:18] == '0) range_good = 1'b0;
        if (kind == BASIC_POWER && (dst == x || exponent_bits == '0 || exponent_bits > 13'(DIGIT * DIGITS) ||
            exponent_end > 10'(WEIGHT_WORDS))) range_good = 1'b0;
        unknown = kind > BASIC_INVERT;
        for (int i = 0; i < 2; i++) begin
          slots[i] = is_output(dst, 1'(i)) || is_output(x, 1'(i)) || (kind == BASIC_MULTIPLY && is_output(y, 1'(i)));
        end
      end
      default: unknown = 1'b1;
    endcase
  end
  logic waits, decoded, plain;
  assign plain   = opcode_q == OP_FREE || opcode_q == OP_NOP;
  assign waits   = state_q == DECODE && !error_o && (slots & full_i) != '0;
  assign decoded = state_q == DECODE && !error_o && !waits;

  // A weight's term and input.
  logic [3:0] weight_index, weight_slot;
  logic [2:0] weight_bit, weight_term;
  logic [7:0] magnitude;
  logic negative, too_great;
  always_comb begin
    weight_index = 4'(select_position_i >> width_i >> 1);
    weight_bit   = select_position_i[2:0] & 3'(weight_bits - 4'd1);
    negative     = buckets && select_weight_i[7];
    magnitude    = negative ? -select_weight_i : select_weight_i;
    too_great    = buckets && magnitude > 8'(TERMS);
    weight_term  = buckets ? 3'(magnitude - 1'b1) : first_term + weight_bit;
    weight_slot  = op_q[5:2] + weight_index + (negative ? op_q[31:28] : 4'd0);
  end

  // The next step.
  logic [2:0] term;   // that is looked at
  logic [12:0] target; // the exponent's next bit that is set, or its lowest
  logic more;         // there is something to do in this state
  logic accepted, last_place;
  assign accepted   = step_valid_o && step_ready_i;
  assign last_place = count_q[3:0] == places - 1'b1;
  assign target     = select_valid_i ? 13'(select_position_i) : 13'd0;
  always_comb begin
    step_valid_o  = 1'b0;
    step_o        = STEP_MULTIPLY;
    dst_o         = dst;
    x_o           = dst;
    y_o           = dst;
    keep_o        = 1'b1;
    select_take_o = 1'b0;
    term          = '0;
    more          = 1'b1;
    unique case (state_q)
      ACCUMULATE: begin
        step_valid_o  = select_valid_i && !too_great;
        select_take_o = accepted;
        more          = !select_end_i;
        dst_o         = TERM + 6'(weight_term);
        x_o           = INPUT + 6'(weight_slot);
        y_o           = dst_o;
        if (!terms_q[weight_term]) step_o = STEP_COPY;
      end
      ALIGN: begin
        term         = first_term + bit_q;
        step_valid_o = terms_q[term] && count_q[2:0] != bit_q;
        dst_o        = TERM + 6'(term);
        x_o          = dst_o;
        y_o          = dst_o;
        more         = step_valid_o || term != last_term;
      end
      INVERT: begin
        term         = last_term;
        more         = count_q != 13'd3 && (opcode_q == OP_BASIC || terms_q[term]);
        step_valid_o = more;
        if (opcode_q == OP_INVERT) dst_o = TERM + 6'(term);
        x_o = dst_o;
        y_o = count_q[0] ? SQUARED : POWER;
        if (count_q == '0) begin
          step_o = STEP_INVERT;
          if (opcode_q == OP_BASIC) x_o = x;
        end
      end
      SUFFIX: begin
        term         = count_q[2:0];
        step_valid_o = terms_q[term+1'b1];
        dst_o        = TERM + 6'(term);
        x_o          = dst_o + 1'b1;
        y_o          = dst_o;
        if (!terms_q[term]) step_o = STEP_COPY;
      end
      CHAIN: begin
        more         = count_q[3:0] != op_q[8:5];
        step_valid_o = more;
        dst_o        = OUTPUT | 6'(output_slot);
        x_o          = dst_o;
        y_o          = dst_o;
      end
      FACTORS: begin
        term         = first_term + count_q[2:0];
        more         = count_q[3:0] != places || !begun_q;
        step_valid_o = (count_q[3:0] == places) ? !begun_q : terms_q[term];
        dst_o        = OUTPUT | 6'(output_slot);
        x_o          = (count_q[3:0] == places) ? ONE : TERM + 6'(term);
        y_o          = dst_o;
        if (!begun_q) step_o = STEP_COPY;
      end
      MULTIPLY: begin
        step_valid_o = 1'b1;
        x_o          = x;
        y_o          = y;
      end
      SQUARE: begin
        step_valid_o = 1'b1;
        if (!begun_q) begin
          x_o = x;
          y_o = x;
        end
      end
      POWERS: begin
        step_valid_o = select_valid_i || (select_end_i && (!begun_q || count_q != '0));
        more         = !select_end_i || step_valid_o;
        if (!begun_q) begin
          step_o        = STEP_COPY;
          x_o           = select_end_i ? ONE : x;
          select_take_o = accepted && select_valid_i;
        end else if (count_q == target) begin
          y_o           = x;
          select_take_o = accepted && select_valid_i;
        end
      end
      STEADY: begin
        step_valid_o = !begun_q || select_valid_i;
        more         = !begun_q || !select_end_i;
        if (!begun_q) begin
          step_o = STEP_COPY;
          x_o    = ONE;
        end else if (count_q[0]) begin
          y_o           = x;
          keep_o        = select_set_i;
          select_take_o = accepted;
        end
      end
      default: ;
    endcase
  end

  // The selector begins when the instruction has been looked at.
  logic power;
  assign power          = opcode_q == OP_BASIC;
  assign select_o       = decoded && (opcode_q == OP_ACCUMULATE || (power && kind == BASIC_POWER));
  assign select_first_o = power ? {op_q[26:18], 8'd0} : 17'(op_q[26:11]) << width_i << 1;
  assign select_count_o = power ? exponent_bits : 13'(op_q[10:6]) << width_i << 1;
  assign select_down_o  = power;
  assign select_every_o = power && op_q[40];
  assign select_whole_o = buckets;

  // What comes of it.
  assign ready_o        = state_q == IDLE || failed_i;
  assign idle_o         = state_q == IDLE;
  assign free_slots_o   = (decoded && opcode_q == OP_FREE) ? op_q[15:0] : '0;
  assign free_regions_o = (decoded && opcode_q == OP_FREE) ? op_q[17:16] : '0;
  assign bits_o         = (select_o && !select_every_o) ? select_count_o : '0;
  assign taken_o        = (select_take_o && !select_every_o && select_valid_i) ? (buckets ? weight_bits : 4'd1) : '0;
  always_comb begin
    fill_o = '0;
    if (state_q == FINISH && idle_i) begin
      if (opcode_q == OP_REDUCE) fill_o[output_slot] = op_q[9];
      else if (opcode_q == OP_BASIC && dst >= OUTPUT) fill_o[dst[0]] = 1'b1;
    end
  end
  always_comb begin
    error_o      = 1'b0;
    error_code_o = ERROR_NONE;
    if (state_q == DECODE) begin
      error_o = unknown || (!plain && (!context_i || !range_good));
      if (unknown) error_code_o = ERROR_UNKNOWN;
      else error_code_o = context_i ? ERROR_RANGE : ERROR_NO_CONTEXT;
    end else if (state_q == ACCUMULATE && select_valid_i && too_great) begin
      error_o      = 1'b1;
      error_code_o = ERROR_RANGE;
    end
  end
  always_comb begin
    if (state_q == IDLE) clock_o = 4'd11;
    else if (waits) clock_o = 4'd12;
    else begin
      unique case (opcode_q)
        OP_ACCUMULATE: clock_o = 4'd3;
        OP_ALIGN:      clock_o = 4'd4;
        OP_INVERT:     clock_o = 4'd5;
        OP_REDUCE:     clock_o = 4'd6;
        OP_BASIC:      clock_o = 4'd7;
        default:       clock_o = 4'd15;
      endcase
    end
  end

  // Terms: not empty once something is written there.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) terms_q <= '0;
    else if (emptied_i) terms_q <= '0;
    else if (decoded && opcode_q == OP_CLEAR) begin
      for (int unsigned t = 0; t < TERMS; t++) if (3'(t) >= first_term && 3'(t) <= last_term) terms_q[t] <= 1'b0;
    end else if (state_q == FACTORS) begin
      if (accepted && count_q[3:0] != places) terms_q[term] <= 1'b0;
    end else if (accepted && dst_o[5:3] == TERM[5:3]) terms_q[dst_o[2:0]] <= 1'b1;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q  <= IDLE;
      op_q     <= '0;
      opcode_q <= '0;
      count_q  <= '0;
      bit_q    <= '0;
      begun_q  <= 1'b0;
    end else if (failed_i || error_o) state_q <= IDLE;
    else begin
      unique case (state_q)
        IDLE: if (valid_i) begin
          state_q          <= DECODE;
          {opcode_q, op_q} <= instruction_i;
        end
        DECODE: if (decoded) begin
          count_q <= '0;
          bit_q   <= '0;
          begun_q <= 1'b0;
          unique case (opcode_q)
            OP_ACCUMULATE: state_q <= ACCUMULATE;
            OP_ALIGN:      state_q <= ALIGN;
            OP_INVERT:     state_q <= INVERT;
            OP_REDUCE: begin
              begun_q <= op_q[4];
              count_q <= buckets ? 13'(TERMS - 2) : '0;
              if (buckets) state_q <= SUFFIX;
              else state_q <= op_q[4] ? CHAIN : FACTORS;
            end
            OP_BASIC: begin
              unique case (kind)
                BASIC_MULTIPLY: state_q <= MULTIPLY;
                BASIC_SQUARE:   state_q <= SQUARE;
                BASIC_POWER:    state_q <= op_q[40] ? STEADY : POWERS;
                default:        state_q <= INVERT;
              endcase
            end
            default: state_q <= IDLE;
          endcase
        end
        ACCUMULATE: if (!more) state_q <= FINISH;
        ALIGN: begin
          if (!more) state_q <= FINISH;
          else if (accepted) count_q <= count_q + 1'b1;
          else if (!step_valid_o) begin
            bit_q   <= bit_q + 1'b1;
            count_q <= '0;
          end
        end
        INVERT: begin
          if (!more) state_q <= FINISH;
          else if (accepted) count_q <= count_q + 1'b1;
        end
        SUFFIX: if (accepted || !step_valid_o) begin
          count_q <= count_q - 1'b1;
          if (count_q == '0) state_q <= begun_q ? CHAIN : FACTORS;
          if (count_q == '0) count_q <= '0;
        end
        CHAIN: begin
          if (accepted) count_q <= count_q + 1'b1;
          else if (!more) begin
            state_q <= FACTORS;
            count_q <= '0;
          end
        end
        FACTORS: begin
          if (!more) state_q <= FINISH;
          else if (accepted || !step_valid_o) begin
            if (count_q[3:0] != places) count_q <= count_q + 1'b1;
            if (accepted) begun_q <= 1'b1;
          end
        end
        MULTIPLY: if (accepted) state_q <= FINISH;
        SQUARE: if (accepted) begin
          begun_q <= 1'b1;
          count_q <= count_q + 1'b1;
          if (count_q + 1'b1 == op_q[30:18]) state_q <= FINISH;
        end
        POWERS: begin
          if (!more) state_q <= FINISH;
          else if (accepted) begin
            begun_q <= 1'b1;
            if (!begun_q) count_q <= target;
            else if (count_q != target) count_q <= count_q - 1'b1;
          end
        end
        STEADY: begin
          if (!more) state_q <= FINISH;
          else if (accepted) begin
            begun_q <= 1'b1;
            if (begun_q) count_q[0] <= !count_q[0];
          end
        end
        default: if (idle_i) state_q <= IDLE; // FINISH
      endcase
    end
  end
endmodule
