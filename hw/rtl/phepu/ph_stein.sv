// Stein unit: a^-1 2^k mod m, with n <= k < 2n for n = DIGIT * digits_i, by Kaliski's almost inverse, a branch a clock.
//
// In: m's digits, then a's, the lowest first; m odd and at least 3, a < m. Then, while v is not 0 (u = m, v = a, r = 0, s = 1):
//   u even: u = u / 2, s = 2s                     v even: v = v / 2, r = 2r
//   u > v:  u = (u - v) / 2, r = r + s, s = 2s    else:   v = (v - u) / 2, s = r + s, r = 2r
// Afterwards u = gcd(a, m), s = m / u, r < 2s and, if u = 1, r = -a^-1 2^k mod m. Doublings modulo m bring k up to n where m is
// short, and m - r goes out. Out: that number's digits, the lowest first.
//
// m = us + vr throughout, so r + s <= m while v is not 0. The last branch doubles r once more: r < 2m, and a number has one bit more
// than m. A difference lies between -m and m, so that this bit is its borrow.
//
// Whatever is given, also what must not be, it ends: each branch takes a bit from u or v, and a zero is seen as it comes in.
//
// Numbers are worked on in one block, by its own variables, which read all registers before they write one: so an idle unit costs
// a simulator nothing, and one at work no copies.
//
// Source: PH-EPU 2023, Fig. 15.4.3 (three adders of 4102 bits, one shifter, the branch detector); the algorithm: Kaliski 1995, "The
// Montgomery inverse and its applications", phase I.
module ph_stein #(
  parameter int unsigned WIDTH   = 4096,
  parameter int unsigned DIGIT   = 256, // WIDTH is at most 16 of them
  parameter bit          FORWARD = 1'b1 // 0: the branch detector waits for u and v, and a branch takes two clocks
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
  output logic             progress_o    // a word, a branch or a step behind the loop in this clock
);
  typedef enum logic [2:0] {IDLE, MODULUS, NUMBER, LOOP, DOUBLE, NEGATE, OUT} state_e;
  state_e state_q;
  logic [3:0] index_q;
  logic empty_q, zero_q; // this number's words were 0 so far; the modulus was 0

  logic last_word, all_zero, take, give;
  assign last_word  = 5'(index_q) + 1'b1 == digits_i;
  assign in_ready_o = state_q == MODULUS || state_q == NUMBER;
  assign take       = in_ready_o && in_valid_i;
  assign all_zero   = empty_q && in_word_i == '0;
  assign give       = out_valid_o && out_ready_i;

  // Branch detector. It is fed with bit 0 of u and of v, and with the borrows, which say that v becomes 0 (u = v). Which of u and v
  // changes when both are odd, a borrow says in the branch itself.
  typedef enum logic [1:0] {HALVE_U, HALVE_V, SUBTRACT, END} branch_e;
  function automatic branch_e detect(logic u_0, logic v_0, logic ended);
    if (ended) return END;
    if (!u_0) return HALVE_U;
    if (!v_0) return HALVE_V;
    return SUBTRACT;
  endfunction
  branch_e branch_q; // what the next clock does; a register, because four numbers' selectors hang on it
  logic ended_q;     // v is 0

  // Without forwarding, one clock detects and the next one branches.
  logic detected_q, looping, execute, finish;
  assign looping = state_q == LOOP && (FORWARD || detected_q);
  assign execute = looping && branch_q != END;
  assign finish  = looping && branch_q == END;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) detected_q <= 1'b0;
    else detected_q <= !FORWARD && state_q == LOOP && !detected_q;
  end

  // Execution unit. No reset: a start sets what counts.
  localparam int unsigned SIGN = WIDTH;
  typedef logic [SIGN:0] number_t;
  number_t u_q, v_q, r_q, s_q;
  logic one_q;   // u was 1: there is an inverse
  logic short_k; // k < n
  assign short_k = k_o < 14'(digits_i) * 14'(DIGIT);
  always_ff @(posedge clk_i) begin : execution
    number_t u_minus_v, v_minus_u, sum, value, doubled;
    logic u_0, v_0, borrow, ended, on_u;
    u_0 = u_q[0];
    v_0 = v_q[0];
    if (looping || state_q == DOUBLE || state_q == NEGATE) begin
      // The number that changes, and whether it is u.
      sum   = '0;
      ended = 1'b0;
      if (execute && branch_q == HALVE_U) begin
        on_u  = 1'b1;
        value = u_q;
      end else if (execute && branch_q == HALVE_V) begin
        on_u  = 1'b0;
        value = v_q;
      end else begin
        // The three adders.
        u_minus_v = u_q - v_q;
        v_minus_u = v_q - u_q;
        sum       = r_q + s_q;
        borrow = v_minus_u[SIGN];
        ended  = !borrow && !u_minus_v[SIGN];
        on_u   = borrow;
        // In the loop, the difference that is not negative. Behind it, u = m: v modulo m and at last m - v.
        if (state_q == NEGATE || (execute && borrow)) value = u_minus_v;
        else if (borrow) value = v_q;
        else value = v_minus_u;
      end
      // The shifter: one bit to the right in a branch, to the left in a doubling. (Written bit by bit: simulators are quicker so.)
      if (execute) value = {1'b0, value[SIGN:1]};
      else if (state_q == DOUBLE && short_k) value = {value[SIGN-1:0], 1'b0};
      // The number beside it; wires.
      if (on_u) doubled = {s_q[SIGN-1:0], 1'b0};
      else doubled = {r_q[SIGN-1:0], 1'b0};
      if (finish) begin
        one_q <= u_q == number_t'(1);
        value   = r_q;
        doubled = s_q; // m, if there is an inverse
      end
      if (execute) begin
        ended_q <= ended;
        // Forwarding: the detector looks at what is being written, in front of the registers.
        if (FORWARD) branch_q <= detect(on_u ? value[0] : u_0, on_u ? v_0 : value[0], ended);
      end
      if (execute && on_u) begin
        u_q <= value;
        s_q <= doubled;
        if (branch_q == SUBTRACT) r_q <= sum;
      end else begin
        v_q <= value;
        if (finish) u_q <= doubled;
        if (execute) r_q <= doubled;
        if (execute && branch_q == SUBTRACT) s_q <= sum;
      end
    end else if (state_q == LOOP) begin
      branch_q <= detect(u_0, v_0, ended_q);
    end else if (take) begin
      // A zero ends the loop before it begins, and u = m says that there is no inverse.
      ended_q <= zero_q || all_zero;
      if (FORWARD) branch_q <= detect(u_0, (index_q == '0) ? in_word_i[0] : v_0, zero_q || all_zero);
      if (state_q == MODULUS) u_q[32'(index_q)*DIGIT+:DIGIT] <= in_word_i;
      else v_q[32'(index_q)*DIGIT+:DIGIT] <= in_word_i;
    end else if (state_q == IDLE && start_i) begin
      u_q <= '0;
      v_q <= '0;
      r_q <= '0;
      s_q <= number_t'(1);
    end
  end

  assign busy_o       = state_q != IDLE;
  assign out_valid_o  = state_q == OUT;
  assign out_index_o  = index_q;
  assign no_inverse_o = state_q == DOUBLE && !one_q;
  assign done_o       = no_inverse_o || (give && last_word);
  assign progress_o   = take || give || looping || state_q == DOUBLE || state_q == NEGATE;
  always_comb begin
    out_word_o = '0;
    if (out_valid_o) out_word_o = v_q[32'(index_q)*DIGIT+:DIGIT];
  end

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
      if (take) empty_q <= last_word || all_zero;
      unique case (state_q)
        IDLE: if (start_i) begin
          state_q    <= MODULUS;
          zero_q     <= 1'b0;
          k_o        <= '0;
          branches_o <= '0;
        end
        MODULUS: if (take && last_word) begin
          state_q <= NUMBER;
          zero_q  <= all_zero;
        end
        NUMBER: if (take && last_word) state_q <= LOOP;
        LOOP: begin
          if (execute) begin
            k_o        <= k_o + 1'b1;
            branches_o <= branches_o + 1'b1;
          end
          if (finish) state_q <= DOUBLE;
        end
        // At least a clock, which takes v, up to here below 2m, modulo m.
        DOUBLE: begin
          if (!one_q) state_q <= IDLE;
          else if (short_k) k_o <= k_o + 1'b1;
          else state_q <= NEGATE;
        end
        NEGATE: state_q <= OUT;
        default: if (give && last_word) state_q <= IDLE;
      endcase
    end
  end
endmodule
