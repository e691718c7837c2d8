// An element's units, Montgomery and Stein, and what moves words between them and the memories: does one step after the other.
//
// A multiplication's next step begins when the first word of its result is there: it reads the words in the order in which they
// are written. A copy takes a clock a word, and waits until the result before it is written.
//
// Source: PH-EPU 2023, Fig. 15.4.4 (both modes drive the same units).
module ph_execute
  import ph_pkg::*;
(
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic [4:0]       digits_i,
  // The Montgomery unit's constants: digit 0 to 15 of the modulus, 16: n'.
  input  logic             load_i,
  input  logic [4:0]       load_index_i,
  input  logic [DIGIT-1:0] load_word_i,
  // Steps: dst = x y / R; dst = x; dst = x^-1 2^k mod m, of which POWER is 2^(2n - k), n = 256 d.
  input  logic             valid_i,
  output logic             ready_o,
  input  step_e            step_i,
  input  logic [5:0]       dst_i,
  input  logic [5:0]       x_i,
  input  logic [5:0]       y_i,
  input  logic             keep_i,       // a product that is not kept takes its time all the same
  output logic             idle_o,       // the last step's result is there, or comes word by word
  output logic             written_o,    // of a result that has begun to come all is there
  output logic             no_inverse_o,
  // Memories.
  output logic             read_o,
  output logic [5:0]       read_place_o,
  output logic [3:0]       read_index_o,
  output logic [11:0]      power_o,
  input  logic [DIGIT-1:0] read_word_i,
  input  logic             modulus_taken_i, // the modulus can't be read in this clock
  output logic             write_o,
  output logic [5:0]       write_place_o,
  output logic [3:0]       write_index_o,
  output logic [DIGIT-1:0] write_word_o,
  // What is counted.
  output logic             multiply_o,      // a multiplication begins
  output logic             copying_o,
  output logic             montgomery_busy_o,
  output logic             stein_busy_o,
  output logic             progress_o
);
  typedef enum logic [2:0] {IDLE, MULTIPLY, COPY, FEED_MODULUS, FEED, INVERT} state_e;
  state_e state_q;
  logic [5:0] dst_q, x_q, y_q, written_dst_q;
  logic keep_q, written_keep_q;
  logic [3:0] index_q;
  logic last;
  assign last = 5'(index_q) + 1'b1 == digits_i;

  logic montgomery_ready, montgomery_start, montgomery_read, montgomery_x, montgomery_valid;
  logic [3:0] montgomery_read_index, montgomery_index;
  logic [DIGIT-1:0] montgomery_word;
  ph_montgomery u_montgomery (
    .clk_i, .rst_ni, .digits_i, .load_i, .load_index_i, .load_word_i, .start_i(montgomery_start), .square_i(x_i == y_i),
    .read_valid_o(montgomery_read), .read_x_o(montgomery_x), .read_index_o(montgomery_read_index), .read_word_i,
    .out_valid_o(montgomery_valid), .out_index_o(montgomery_index), .out_word_o(montgomery_word),
    .ready_o(montgomery_ready), .busy_o(montgomery_busy_o)
  );

  logic stein_start, stein_in_q, stein_valid, stein_done, stein_progress;
  logic [3:0] stein_index;
  logic [13:0] k;
  logic [DIGIT-1:0] stein_word;
  ph_stein u_stein (
    .clk_i, .rst_ni, .digits_i, .start_i(stein_start), .busy_o(stein_busy_o), .in_valid_i(stein_in_q), .in_ready_o(),
    .in_word_i(read_word_i), .out_valid_o(stein_valid), .out_ready_i(1'b1), .out_index_o(stein_index), .out_word_o(stein_word),
    .no_inverse_o, .k_o(k), .done_o(stein_done), .branches_o(), .progress_o(stein_progress)
  );

  // A step begins.
  logic start;
  always_comb begin
    ready_o = state_q == IDLE;
    if (step_i == STEP_MULTIPLY) ready_o &= montgomery_ready;
    else ready_o &= !montgomery_valid;
  end
  assign start            = valid_i && ready_o;
  assign multiply_o       = start && step_i == STEP_MULTIPLY;
  assign montgomery_start = multiply_o;
  assign stein_start      = start && step_i == STEP_INVERT;

  // Reads: the Montgomery unit's own, from the clock in which it starts; a copy's; the Stein unit's words.
  // 2n - k: R itself, which is n's, is 1 in Montgomery form.
  logic [13:0] power;
  logic [5:0] operand;
  logic copy_read, feed_read;
  assign power     = {digits_i, 9'd0} - k;
  assign power_o   = power[11:0];
  assign copy_read = state_q == COPY;
  assign feed_read = state_q == FEED || (state_q == FEED_MODULUS && !modulus_taken_i);
  always_comb begin
    if (state_q == FEED_MODULUS) operand = MODULUS;
    else if (montgomery_read && !montgomery_x) operand = montgomery_start ? y_i : y_q;
    else operand = montgomery_start ? x_i : x_q;
    if (operand == POWER && power == {1'b0, digits_i, 8'd0}) operand = ONE;
  end
  assign read_o       = montgomery_read || copy_read || feed_read;
  assign read_place_o = operand;
  assign read_index_o = montgomery_read ? montgomery_read_index : index_q;

  // Writes. A result's words may still come when the next multiplication has begun.
  logic copy_q;
  logic [3:0] copy_index_q;
  logic first_word;
  assign first_word = montgomery_index == '0;
  always_comb begin
    write_o       = copy_q || stein_valid;
    write_place_o = dst_q;
    write_index_o = stein_valid ? stein_index : copy_index_q;
    write_word_o  = '0;
    if (montgomery_valid) begin
      write_o       = first_word ? keep_q : written_keep_q;
      write_place_o = first_word ? dst_q : written_dst_q;
      write_index_o = montgomery_index;
    end
    if (write_o) begin
      if (montgomery_valid) write_word_o = montgomery_word;
      else write_word_o = copy_q ? read_word_i : stein_word;
    end
  end
  assign idle_o     = state_q == IDLE;
  assign written_o  = !montgomery_valid && !copy_q;
  assign copying_o  = copy_read;
  assign progress_o = montgomery_valid || copy_q || stein_progress;

  always_ff @(posedge clk_i) begin
    if (start) begin
      dst_q  <= dst_i;
      x_q    <= x_i;
      y_q    <= y_i;
      keep_q <= keep_i;
    end
    if (montgomery_valid && first_word) begin
      written_dst_q  <= dst_q;
      written_keep_q <= keep_q;
    end
    copy_index_q <= index_q;
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q    <= IDLE;
      index_q    <= '0;
      copy_q     <= 1'b0;
      stein_in_q <= 1'b0;
    end else begin
      copy_q     <= copy_read;
      stein_in_q <= feed_read;
      if (copy_read || feed_read) index_q <= last ? '0 : index_q + 1'b1;
      unique case (state_q)
        IDLE: if (start) begin
          unique case (step_i)
            STEP_MULTIPLY: state_q <= MULTIPLY;
            STEP_COPY:     state_q <= COPY;
            default:       state_q <= FEED_MODULUS;
          endcase
        end
        MULTIPLY:     if (montgomery_valid && first_word) state_q <= IDLE;
        COPY:         if (last) state_q <= IDLE;
        FEED_MODULUS: if (feed_read && last) state_q <= FEED;
        FEED:         if (last) state_q <= INVERT;
        default:      if (stein_done) state_q <= IDLE;
      endcase
    end
  end
endmodule
