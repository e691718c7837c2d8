// ph_stein beside Kaliski's algorithm as it is written down, unforwarded: the same u, v, r, s behind every branch, a branch in every
// clock (every second one without forwarding), and none lost or added; it ends within 2n branches, whatever is given, and within
// 2 bits(m) - 1 where it should; what comes out is a^-1 2^k mod m, or that there is none. By induction, at small widths.
//
// The algorithm looks at whole numbers, with `>` and `==`, has room for numbers of any size, and keeps 2^k mod m beside them.
// Assumed: the number of digits stays while the unit is busy, and a start comes when it isn't. Of m and a nothing is assumed; what
// comes out is looked at where m is odd and at least 3, and a < m.
module f_ph_stein #(
  parameter int unsigned WIDTH   = 4,
  parameter int unsigned DIGIT   = 1,
  parameter bit          FORWARD = 1'b1
) (
  input logic             clk_i,
  input logic             rst_ni,
  input logic [4:0]       digits_i,
  input logic             start_i,
  input logic             busy_o,
  input logic             in_valid_i,
  input logic             in_ready_o,
  input logic [DIGIT-1:0] in_word_i,
  input logic             out_valid_o,
  input logic             out_ready_i,
  input logic [3:0]       out_index_o,
  input logic [DIGIT-1:0] out_word_o,
  input logic             no_inverse_o,
  input logic [13:0]      k_o,
  input logic             done_o,
  input logic [13:0]      branches_o,
  input logic             progress_o,
  input logic [2:0]       state_q,
  input logic [1:0]       branch_q,
  input logic             ended_q,
  input logic             one_q,
  input logic             zero_q,
  input logic             empty_q,
  input logic             detected_q,
  input logic [3:0]       index_q,
  input logic [WIDTH:0] u_q,
  input logic [WIDTH:0] v_q,
  input logic [WIDTH:0] r_q,
  input logic [WIDTH:0] s_q
);
  f_reset u_reset (.clk_i, .rst_ni);
  localparam int unsigned ROOM = 2 * WIDTH + 2;
  // Products are hard for the solver: at greater widths r and s are compared as far as the registers go, and words are not.
  localparam bit PRODUCTS = WIDTH <= 4;
  typedef logic [ROOM-1:0] wide_t;
  typedef enum logic [2:0] {REST, MODULUS, NUMBER, LOOP, BEHIND, NEGATE, WORDS} phase_e;

  function automatic wide_t modulo(wide_t x, wide_t modulus); // of numbers below twice the modulus
    return (x >= modulus) ? x - modulus : x;
  endfunction
  function automatic int unsigned bits(wide_t x);
    bits = 0;
    for (int unsigned i = 0; i < ROOM; i++) if (x[i]) bits = i + 1;
  endfunction

  phase_e phase_q;
  logic [3:0] count_q;
  logic wait_q; // this clock of the loop only detects
  wide_t m_q, a_q, u, v, r, s, x, power; // power: 2^k mod m
  logic [13:0] k, branches;
  wide_t full;
  assign full = wide_t'(digits_i) * DIGIT;
  logic proper;
  assign proper = m_q[0] && m_q >= 3 && a_q < m_q;
  logic last;
  assign last = 5'(count_q) + 1'b1 == digits_i;
  wide_t word;
  assign word = wide_t'(in_word_i) << (count_q * DIGIT);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) phase_q <= REST;
    else begin
      unique case (phase_q)
        REST: if (start_i) begin
          phase_q <= MODULUS;
          {count_q, m_q, a_q} <= '0;
        end
        MODULUS, NUMBER: if (in_valid_i) begin
          if (phase_q == MODULUS) m_q <= m_q | word;
          else a_q <= a_q | word;
          count_q <= last ? '0 : count_q + 1'b1;
          if (last) phase_q <= (phase_q == MODULUS) ? NUMBER : LOOP;
          u <= m_q;
          v <= a_q | word;
          r <= '0;
          s <= 1;
          {k, branches} <= '0;
          power <= 1;
          wait_q <= !FORWARD;
        end
        LOOP: begin
          wait_q <= !FORWARD && !wait_q;
          if (!wait_q) begin
            if (u == 0 || v == 0) phase_q <= BEHIND;
            else begin
              k <= k + 1'b1;
              branches <= branches + 1'b1;
              power <= modulo(2 * power, m_q);
              if (!u[0]) begin
                u <= u / 2;
                s <= 2 * s;
              end else if (!v[0]) begin
                v <= v / 2;
                r <= 2 * r;
              end else if (u > v) begin
                u <= (u - v) / 2;
                r <= r + s;
                s <= 2 * s;
              end else begin
                v <= (v - u) / 2;
                s <= r + s;
                r <= 2 * r;
              end
            end
          end
          x <= m_q - modulo(r, m_q);
        end
        BEHIND: begin
          if (u != 1) phase_q <= REST;
          else if (wide_t'(k) < full) begin
            k <= k + 1'b1;
            x <= modulo(2 * x, m_q);
            power <= modulo(2 * power, m_q);
          end else phase_q <= NEGATE;
        end
        NEGATE: phase_q <= WORDS;
        default: if (out_ready_i) begin
          count_q <= last ? '0 : count_q + 1'b1;
          if (last) phase_q <= REST;
        end
      endcase
    end
  end

  logic [4:0] digits_q;
  always_ff @(posedge clk_i) digits_q <= digits_i;
  always_comb begin
    m_digits : assume (digits_i != '0 && digits_i <= WIDTH / DIGIT);
    if (rst_ni) begin
      if (phase_q != REST) m_digits_stay : assume (digits_i == digits_q);
      if (phase_q != REST) m_no_start : assume (!start_i);
`ifndef INDUCTION
      // What is wrong with a mutant is looked for where no stream waits.
      m_no_waits : assume (in_valid_i && out_ready_i && (start_i || phase_q != REST));
`endif

      // When: nothing depends on anything but the algorithm's branches.
      a_busy : assert (busy_o == (phase_q != REST));
      a_takes : assert (in_ready_o == (phase_q == MODULUS || phase_q == NUMBER));
      a_none : assert (no_inverse_o == (phase_q == BEHIND && u != 1));
      a_gives : assert (out_valid_o == (phase_q == WORDS));
      a_done : assert (done_o == (no_inverse_o || (phase_q == WORDS && out_ready_i && last)));
      if (phase_q == LOOP) a_branch : assert (progress_o == !wait_q);
      // What.
      if (phase_q == LOOP) begin
        a_u : assert (u_q == u);
        a_v : assert (v_q == v);
        a_r : assert (r_q == (PRODUCTS ? r : wide_t'(r[WIDTH:0])));
        a_s : assert (s_q == (PRODUCTS ? s : wide_t'(s[WIDTH:0])));
      end
      if (phase_q == WORDS || phase_q == BEHIND) a_branches : assert (branches_o == branches);
      if (phase_q == WORDS) a_k : assert (k_o == k);
      if (PRODUCTS && phase_q == WORDS && proper) a_word : assert (out_index_o == count_q && out_word_o == DIGIT'(x >> (count_q * DIGIT)));
`ifdef INDUCTION
      // Of the algorithm itself, and so no mutant's matter: it ends, and gives the inverse.
      if (phase_q inside {LOOP, BEHIND, NEGATE, WORDS}) a_ends : assert (branches <= 2 * full);
      if (phase_q == BEHIND && proper) a_ends_sooner : assert (branches == 0 || branches <= 2 * bits(m_q) - 1);
      if (phase_q == WORDS && proper) begin
        a_k_range : assert (wide_t'(k) >= full && wide_t'(k) < 2 * full);
        if (PRODUCTS) a_inverse : assert (x < m_q && power < m_q && (a_q * x) % m_q == power);
      end
      assert (state_q == phase_q && phase_q != 3'd7);
      if (phase_q != REST) assert (5'(count_q) < digits_i);
      if (phase_q == REST) assert (empty_q && index_q == 0);
      else assert (index_q == count_q);
      if (phase_q inside {LOOP, BEHIND, NEGATE}) assert (count_q == 0);
      if (phase_q == MODULUS || phase_q == NUMBER) begin
        assert (u_q == m_q && v_q == a_q && r_q == 0 && s_q == 1 && k_o == 0 && branches_o == 0);
        assert (m_q >> (phase_q == NUMBER ? full : wide_t'(count_q * DIGIT)) == 0);
        assert (a_q >> (phase_q == NUMBER ? wide_t'(count_q * DIGIT) : '0) == 0);
        assert (empty_q == ((phase_q == MODULUS ? m_q : a_q) == 0));
        assert (zero_q == (phase_q == NUMBER && m_q == 0));
        assert (!detected_q);
      end
      if (phase_q inside {LOOP, BEHIND, NEGATE, WORDS}) begin
        assert (m_q >> full == 0 && a_q >> full == 0);
        assert (empty_q && branches_o == branches && k_o == k);
      end
      if (phase_q == LOOP) begin
        assert (k == branches);
        assert (wait_q == (!FORWARD && !detected_q));
        assert (ended_q == (u == 0 || v == 0));
        if (!wait_q) assert (branch_q == (ended_q ? 3 : !u[0] ? 0 : !v[0] ? 1 : 2));
        assert ((u == 0) == (m_q == 0));
        assert (u <= m_q && v <= a_q);
        assert ((v == 0) || branches == 0 || a_q != 0);
        if (PRODUCTS && m_q != 0) begin
          assert (m_q == u * s + v * r);
          assert (s != 0 && s <= m_q && r <= 2 * m_q && (v == 0 || r <= m_q));
          if (v == 0) assert (r < 2 * s);
        end
        if (m_q == 0) assert (branches == 0);
        if (a_q == 0) assert (branches == 0 && v == 0);
        assert (branches + bits(u) + bits(v) <= bits(m_q) + bits(a_q));
        if (branches == 0) assert (u == m_q && v == a_q && r == 0 && s == 1);
      end
      if (phase_q == LOOP && proper) begin
        assert (u[0] || v[0]);
        if (PRODUCTS) begin
          assert (power < m_q && power != 0);
          assert ((a_q * r + u * power) % m_q == 0);
          assert ((a_q * s) % m_q == (v * power) % m_q);
        end
        if (v != 0) assert (branches + bits(u) + bits(v) <= 2 * bits(m_q));
        else assert (branches == 0 || branches + bits(u) <= 2 * bits(m_q));
      end
      if (phase_q inside {BEHIND, NEGATE, WORDS}) begin
        assert (k >= branches && (k == branches || wide_t'(k) <= full));
        assert (phase_q == BEHIND || wide_t'(k) >= full);
      end
      if (phase_q == BEHIND) assert (one_q == (u == 1));
      if (phase_q == BEHIND && u != 1) assert (!proper || branches == 0 || branches <= 2 * bits(m_q) - 1);
      if (proper && (phase_q inside {NEGATE, WORDS} || (phase_q == BEHIND && u == 1))) begin
        assert (branches != 0 && branches <= 2 * bits(m_q) - 1);
        if (PRODUCTS) begin
          assert (u_q == m_q);
          assert (x != 0 && x < m_q && power != 0 && power < m_q && (a_q * x) % m_q == power);
          if (phase_q == BEHIND) assert (v_q < 2 * m_q && x == m_q - modulo(v_q, m_q));
          if (phase_q == NEGATE) assert (v_q == m_q - x);
          if (phase_q == WORDS) assert (v_q == x);
        end
      end
`endif
    end
  end
endmodule

bind ph_stein f_ph_stein #(.WIDTH(WIDTH), .DIGIT(DIGIT), .FORWARD(FORWARD)) u_proof (.state_q(3'(state_q)), .branch_q(2'(branch_q)), .*);
