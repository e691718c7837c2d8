// Stein unit: a^-1 2^k mod m, with n <= k <= 2n for n = DIGIT * digits_i, by Kaliski's almost inverse, a branch a clock.
//
// In: m's digits, then a's, the lowest first; m odd and at least 3, a < m. Then, while v is not 0 (u = m, v = a, r = 0, s = 1):
//   u even: u = u / 2, s = 2s              v even: v = v / 2, r = 2r
//   u > v:  u = (u - v) / 2, r = r + s, s = 2s    else: v = (v - u) / 2, s = r + s, r = 2r
// Afterwards u = gcd(a, m), s = m / u, r < 2s and, if u = 1, r = -a^-1 2^k mod m. Doublings modulo m bring k up to n where m is
// short; m - r goes out. m = us + vr throughout, so that r + s <= m while both u and v are there: s and the sum have WIDTH
// bits, r, doubled once more by the last branch, one more.
//
// Whatever the numbers, the loop ends: a branch takes a bit from u or from v.
//
// Source: PH-EPU 2023, Fig. 15.4.3 (three adders of 4102 bits, one shifter, branch detector); the algorithm: Kaliski 1995, "The
// Montgomery inverse and its applications", phase I.
module ph_stein #(
  parameter int unsigned WIDTH   = 4096,
  parameter int unsigned DIGIT   = 256, // WIDTH is at most 16 of them
  parameter bit          FORWARD = 1'b1 // 0: two clocks a branch, see ph_branch
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic [4:0]       digits_i,     // of m and a; stays while busy
  input  logic             start_i,      // while not busy
  output logic             busy_o,
  input  logic             in_valid_i,
  output logic             in_ready_o,
  input  logic [DIGIT-1:0] in_word_i,
  output logic             out_valid_o,
  input  logic             out_ready_i,
  output logic [3:0]       out_index_o,
  output logic [DIGIT-1:0] out_word_o,
  output logic             no_inverse_o, // a pulse: a and m have a common divisor, and no words follow
  output logic [13:0]      k_o,          // stays from the first word out to the next start
  output logic             done_o,       // a pulse with the last word that is taken, or with no_inverse_o
  output logic [13:0]      branches_o,   // since the start; stays to the next one
  output logic             progress_o    // a word or a branch (or a doubling) in this clock
);
  localparam int unsigned WORDS = WIDTH / DIGIT;

  typedef enum logic [2:0] {IDLE, MODULUS, NUMBER, LOOP, FINISH, DOUBLE, NEGATE, OUT} state_e;
  state_e state_q;
  logic [3:0] index_q;
  logic empty_q, zero_q; // this number's words were 0 so far; the modulus was 0
  logic [WIDTH-1:0] u_q, s_q;
  logic [WIDTH:0] v_q, r_q; // v is below 2m while doubling, else as wide as u

  logic last_word, no_words, take, give;
  assign last_word  = 5'(index_q) + 1'b1 == digits_i;
  assign in_ready_o = state_q == MODULUS || state_q == NUMBER;
  assign take       = in_ready_o && in_valid_i;
  assign no_words   = empty_q && in_word_i == '0;
  assign give       = out_valid_o && out_ready_i;

  // What is to be done in this clock.
  logic looping, computing, execute, subtract, halve_u, last, short_k, doubling;
  assign looping   = state_q == LOOP;
  assign doubling  = state_q == DOUBLE;
  assign computing = execute || doubling || state_q == NEGATE;
  assign short_k   = k_o < 14'(digits_i) * 14'(DIGIT);

  // The three adders. Of the subtractions, what is not asked for stays 0, and so in an idle unit all of it.
  logic [WIDTH:0] u_minus_v, v_minus_u; // adders 1 and 2: difference
  logic u_less, v_less;                 //   and borrow: u < v, v < u
  logic [WIDTH-1:0] sum;                // adder 3
  always_comb begin
    {u_less, u_minus_v} = '0;
    {v_less, v_minus_u} = '0;
    sum = '0;
    if (computing && (!looping || subtract)) begin
      {u_less, u_minus_v} = {2'b0, u_q} - {1'b0, v_q};
      {v_less, v_minus_u} = {1'b0, v_q} - {2'b0, u_q};
      sum = r_q[WIDTH-1:0] + s_q;
    end
  end

  // The shifter: one bit to the right for a branch, one to the left for a doubling, none for the last two steps. What it shifts:
  // the number that changes; v modulo m; m - v.
  logic [WIDTH:0] chosen, shifted;
  always_comb begin
    chosen  = '0;
    shifted = '0;
    if (computing) begin
      if (looping) begin
        if (halve_u) chosen = subtract ? u_minus_v : {1'b0, u_q};
        else chosen = subtract ? v_minus_u : v_q;
      end else if (doubling) chosen = v_less ? v_q : v_minus_u;
      else chosen = u_minus_v;
      if (looping) shifted = chosen >> 1;
      else if (doubling && short_k) shifted = chosen << 1;
      else shifted = chosen;
    end
  end

  // The branch detector sees four bits: those written, or, without forwarding, those that are there.
  logic u_next, v_next;
  always_comb begin
    u_next = u_q[0];
    v_next = v_q[0];
    if (take && index_q == '0) begin
      if (state_q == MODULUS) u_next = in_word_i[0];
      else v_next = in_word_i[0];
    end
    if (execute && halve_u) u_next = chosen[1];
    if (execute && !halve_u) v_next = chosen[1];
  end
  ph_branch #(.FORWARD(FORWARD)) u_branch (
    .clk_i, .rst_ni, .loop_i(looping), .u_next_i(u_next), .v_next_i(v_next), .u_i(u_q[0]), .v_i(v_q[0]),
    .u_less_i(u_less), .v_less_i(v_less), .execute_o(execute), .subtract_o(subtract), .halve_u_o(halve_u), .last_o(last)
  );

  // Numbers: no reset.
  always_ff @(posedge clk_i) begin
    if (state_q == IDLE) begin
      if (start_i) u_q <= '0;
    end else if (state_q == MODULUS) begin
      if (in_valid_i) u_q[32'(index_q)*DIGIT+:DIGIT] <= in_word_i;
    end else if (execute) begin
      if (halve_u) u_q <= shifted[WIDTH-1:0];
    end else if (state_q == FINISH) u_q <= s_q;
  end
  always_ff @(posedge clk_i) begin
    if (state_q == IDLE) begin
      if (start_i) v_q <= '0;
    end else if (state_q == NUMBER) begin
      if (in_valid_i) v_q[32'(index_q)*DIGIT+:DIGIT] <= in_word_i;
    end else if (computing) begin
      if (!looping || !halve_u) v_q <= shifted;
    end else if (state_q == FINISH) v_q <= r_q;
  end
  always_ff @(posedge clk_i) begin
    if (state_q == IDLE) begin
      if (start_i) r_q <= '0;
    end else if (execute) begin
      if (!halve_u) r_q <= r_q << 1;
      else if (subtract) r_q <= {1'b0, sum};
    end
  end
  always_ff @(posedge clk_i) begin
    if (state_q == IDLE) begin
      if (start_i) s_q <= WIDTH'(1);
    end else if (execute) begin
      if (halve_u) s_q <= s_q << 1;
      else if (subtract) s_q <= sum;
    end
  end

  // Outputs.
  assign busy_o      = state_q != IDLE;
  assign out_valid_o = state_q == OUT;
  assign out_index_o = index_q;
  always_comb begin
    out_word_o = '0;
    if (out_valid_o) out_word_o = v_q[32'(index_q)*DIGIT+:DIGIT];
  end
  always_comb begin
    no_inverse_o = 1'b0;
    if (state_q == FINISH) no_inverse_o = u_q != WIDTH'(1);
  end
  assign done_o     = no_inverse_o || (give && last_word);
  assign progress_o = take || give || computing || state_q == FINISH;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q    <= IDLE;
      index_q    <= '0;
      empty_q    <= 1'b1;
      zero_q     <= 1'b0;
      k_o        <= '0;
      branches_o <= '0;
    end else begin
      if (take || give) index_q <= last_word ? '0 : index_q + 1'b1;
      if (take) empty_q <= last_word || no_words;
      unique case (state_q)
        IDLE: if (start_i) begin
          state_q    <= MODULUS;
          k_o        <= '0;
          branches_o <= '0;
        end
        MODULUS: if (take && last_word) begin
          state_q <= NUMBER;
          zero_q  <= no_words;
        end
        // With a zero among them there is nothing to be halved: u = m says that there is no inverse.
        NUMBER: if (take && last_word) state_q <= (zero_q || no_words) ? FINISH : LOOP;
        LOOP: if (execute) begin
          k_o        <= k_o + 1'b1;
          branches_o <= branches_o + 1'b1;
          if (last) state_q <= FINISH;
        end
        FINISH: state_q <= no_inverse_o ? IDLE : DOUBLE;
        DOUBLE: begin
          if (short_k) k_o <= k_o + 1'b1;
          else state_q <= NEGATE;
        end
        NEGATE: state_q <= OUT;
        default: if (give && last_word) state_q <= IDLE;
      endcase
    end
  end
endmodule
