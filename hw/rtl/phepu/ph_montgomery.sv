// Montgomery unit: x y / R mod m with three 256-bit multipliers, R = 2^(256 d), d = 4, 8 or 16 digits.
//
// Row i adds x_i y and q_i m to the sum, where q_i makes the sum's digit i vanish. Multiplier A takes x_i y, B takes q_i m,
// C takes q_i and, of 16 digits, each row's last five products. Sums of columns stay apart (carry-save by digits): a product's low
// word goes to its column, its high word with the next product's low word to the next one. Column c + 16 begins after column c has
// been read, so there are 16. A row takes 11 clocks of 16 digits, else 9; the clock of each product is in
// hw/doc/ph_montgomery.md.
//
// m's digits and n' = -1/m mod 2^256 are loaded while the unit is not busy. x and y come through one read port, the word a
// clock after its index; a square reads y only. The result's digits leave in order, from the clock in which ready_o rises.
// No clock depends on a value.
//
// Source: PH-EPU 2023, Fig. 15.4.3 (the two stages, three multipliers); the schedule is ours.
module ph_montgomery
  import ph_pkg::*;
(
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic [4:0]       digits_i, // 4, 8 or 16; stays while busy
  input  logic             load_i,
  input  logic [4:0]       load_index_i, // m's digit, or 16: n'
  input  logic [DIGIT-1:0] load_word_i,
  input  logic             start_i,
  input  logic             square_i,
  output logic             ready_o,
  output logic             busy_o,
  output logic             read_valid_o,
  output logic             read_x_o,
  output logic [3:0]       read_index_o,
  input  logic [DIGIT-1:0] read_word_i,
  output logic             out_valid_o,
  output logic [3:0]       out_index_o,
  output logic [DIGIT-1:0] out_word_o
);
  localparam int unsigned A = 0;
  localparam int unsigned B = 1;
  localparam int unsigned C = 2;
  localparam int unsigned COLUMN = DIGIT + 8; // 32 low and 32 high words and a carry
  localparam logic [4:0] LONG = 5'd11; // products of a row that A and B take at most

  // What becomes of a product, which goes along with it.
  typedef struct packed {
    logic       write;  // to a column's sum
    logic       low;    // the product's low word ...
    logic       carry;  // ... and a high word: that of the last product of
    logic [1:0] from;   // this multiplier
    logic       first;  // nothing is in this column yet
    logic       spill;  // the high word starts the next column
    logic       q;      // the product's low word is q
    logic       tail;   // after this, the first column of the result is whole
    logic [3:0] column; // modulo 16
  } tag_t;

  logic wide; // 16 digits
  logic [4:0] period, end_slot, end_row;
  assign wide     = digits_i[4];
  assign period   = wide ? 5'd11 : 5'd9;
  assign end_slot = period - 5'd1;
  assign end_row  = wide ? 5'd17 : digits_i - 5'd1;

  logic [DIGIT-1:0] m_q[DIGITS];
  logic [DIGIT-1:0] y_q[DIGITS]; // y; when its last product is under way, the result
  logic [DIGIT-1:0] n_q, x_q, x_c_q, q_q, q_b_q, q_c_q;
  logic [COLUMN-1:0] t_q[DIGITS];
  logic [8:0] carry_q;
  logic borrow_q, subtract_q;

  // Operands: x_0, x_1, then y; run_q begins as y_0 comes.
  logic active_q, square_q;
  logic [4:0] fetch_q; // clocks since the start; 0 when all of y has come
  logic last_fetch;
  assign last_fetch = fetch_q == digits_i + 5'd2;

  // A's row and its place in it, which C goes by too; B's, which come later.
  logic run_q, b_q;
  logic [4:0] row_q, slot_q, b_row_q, b_slot_q;
  logic end_of_row, b_end_of_row, b_begin;
  assign end_of_row   = run_q && slot_q == end_slot;
  assign b_end_of_row = b_q && b_slot_q == end_slot;
  assign b_begin      = run_q && (wide ? row_q == 5'd1 && slot_q == 5'd4 : row_q == '0 && slot_q == 5'd8);

  // The result: its columns are added up one a clock and compared with m, then they leave.
  logic tail_q, out_q;
  logic [3:0] digit_q, last_digit;
  assign last_digit = 4'(digits_i - 5'd1);

  tag_t now[3], tag1_q[3], tag2_q[3], tag_q[3];
  logic [2:0] valid, done;
  logic take_u, x_run, q_run;
  logic [2*DIGIT-1:0] product[3];
  logic [DIGIT-1:0] high_q[3];

  assign take_u = run_q && row_q < digits_i && slot_q == (wide ? 5'd10 : 5'd5);
  assign x_run  = run_q && wide && row_q >= 5'd1 && row_q <= 5'd16 && slot_q <= 5'd4;
  assign q_run  = run_q && wide && row_q >= 5'd2 && slot_q >= 5'd5 && slot_q <= 5'd9;

  always_comb begin
    now   = '{default: '0};
    valid = '0;

    valid[A]      = run_q && row_q < digits_i && slot_q < (wide ? LONG : digits_i);
    now[A].write  = valid[A] || (run_q && row_q < digits_i && slot_q == digits_i);
    now[A].low    = valid[A];
    now[A].carry  = slot_q != '0;
    now[A].from   = 2'(A);
    now[A].first  = row_q == '0 || slot_q == digits_i;
    now[A].column = 4'(row_q + slot_q);

    valid[B]      = b_q && b_slot_q < (wide ? LONG : digits_i);
    now[B].write  = b_q && b_slot_q != '0 && b_slot_q <= digits_i; // the low word of q m_0 is known: what makes u vanish
    now[B].low    = valid[B];
    now[B].carry  = 1'b1;
    now[B].from   = 2'(B);
    now[B].tail   = b_q && b_slot_q == 5'd1 && b_row_q == digits_i - 5'd1;
    now[B].column = 4'(b_row_q + b_slot_q);

    valid[C]      = x_run || q_run || take_u;
    now[C].q      = take_u;
    now[C].carry  = 1'b1;
    now[C].from   = 2'(C);
    now[C].low    = x_run || q_run;
    now[C].write  = x_run || q_run || (run_q && wide && row_q >= 5'd2 && slot_q == 5'd10);
    now[C].column = 4'(row_q + slot_q) + (x_run ? 4'd10 : 4'd4);
    if (x_run && slot_q == '0) now[C].from = 2'(A);
    if (q_run && slot_q == 5'd5) now[C].from = 2'(B);
    now[C].first  = x_run && row_q == 5'd1;
    now[C].spill  = x_run && slot_q == 5'd4;
  end

  // A column's sum with the carry from below: u_i, and then the result's digits.
  logic [COLUMN-1:0] u;
  always_comb begin
    u = '0;
    if (take_u || tail_q) u = t_q[take_u ? row_q[3:0] : digits_i[3:0] + digit_q] + COLUMN'(carry_q);
  end

  logic [DIGIT-1:0] left[3], right[3];
  always_comb begin
    left  = '{default: '0};
    right = '{default: '0};
    if (valid[A]) begin
      left[A]  = x_q;
      right[A] = (row_q == '0) ? read_word_i : y_q[slot_q[3:0]];
    end
    if (valid[B]) begin
      left[B]  = (b_slot_q == '0) ? q_q : q_b_q;
      right[B] = m_q[b_slot_q[3:0]];
    end
    if (take_u) begin
      left[C]  = u[DIGIT-1:0];
      right[C] = n_q;
    end else if (x_run) begin
      left[C]  = x_c_q;
      right[C] = (row_q == 5'd1) ? read_word_i : y_q[4'd11+slot_q[3:0]];
    end else if (q_run) begin
      left[C]  = q_c_q;
      right[C] = m_q[4'd6+slot_q[3:0]];
    end
  end

  for (genvar unit = 0; unit < 3; unit++) begin : gen_unit
    ph_multiplier #(.WIDTH(DIGIT)) u_multiplier (
      .clk_i, .rst_ni, .valid_i(valid[unit]), .a_i(left[unit]), .b_i(right[unit]), .valid_o(done[unit]), .product_o(product[unit])
    );
  end

  // v or v - m, digit by digit: for the comparison, and for the result.
  logic [DIGIT:0] difference;
  always_comb begin
    difference = '0;
    if (tail_q) difference = {1'b0, u[DIGIT-1:0]} - {1'b0, m_q[digit_q]} - (DIGIT + 1)'(borrow_q);
    else if (out_q) begin
      difference = {1'b0, y_q[digit_q]};
      if (subtract_q) difference = difference - {1'b0, m_q[digit_q]} - (DIGIT + 1)'(borrow_q);
    end
  end

  assign ready_o     = !active_q;
  assign busy_o      = active_q || out_q;
  assign out_valid_o = out_q;
  assign out_index_o = digit_q;
  assign out_word_o  = difference[DIGIT-1:0];

  // x_k is asked for two clocks before its row, x_1 ahead of y.
  logic next_x;
  assign next_x       = run_q && row_q != '0 && row_q < digits_i - 5'd1 && slot_q == end_slot - 5'd1;
  assign read_valid_o = (start_i && ready_o) || (fetch_q != '0 && fetch_q < digits_i + 5'd2) || next_x;
  always_comb begin
    read_x_o     = !(active_q ? square_q : square_i);
    read_index_o = 4'd0;
    if (fetch_q == 5'd1) read_index_o = 4'd1;
    else if (fetch_q != '0 && !last_fetch) begin
      read_x_o     = 1'b0;
      read_index_o = 4'(fetch_q - 5'd2);
    end else if (active_q) read_index_o = 4'(row_q + 5'd1);
  end

  always_ff @(posedge clk_i) begin
    if (load_i) begin
      if (load_index_i[4]) n_q <= load_word_i;
      else m_q[load_index_i[3:0]] <= load_word_i;
    end
    if (fetch_q == 5'd1) x_q <= read_word_i;
    if (fetch_q == 5'd2) x_c_q <= read_word_i;
    if (tail_q || fetch_q >= 5'd3) y_q[tail_q ? digit_q : 4'(fetch_q-5'd3)] <= tail_q ? u[DIGIT-1:0] : read_word_i;
    if (end_of_row) begin
      x_q   <= (row_q == '0) ? x_c_q : read_word_i;
      x_c_q <= x_q;
    end
    if (b_q && b_slot_q == '0) q_b_q <= q_q;
    if (b_end_of_row) q_c_q <= q_b_q;
    if (start_i && ready_o) square_q <= square_i;

    for (int unsigned unit = 0; unit < 3; unit++) begin
      if (tag_q[unit].write) begin
        automatic logic [COLUMN-1:0] sum = '0;
        if (!tag_q[unit].first) sum = t_q[tag_q[unit].column];
        if (tag_q[unit].low) sum += COLUMN'(product[unit][DIGIT-1:0]);
        if (tag_q[unit].carry) sum += COLUMN'(high_q[tag_q[unit].from]);
        t_q[tag_q[unit].column] <= sum;
      end
      if (done[unit]) high_q[unit] <= product[unit][2*DIGIT-1:DIGIT];
    end
    if (tag_q[C].spill) t_q[tag_q[C].column+4'd1] <= COLUMN'(product[C][2*DIGIT-1:DIGIT]);
    if (tag_q[C].q) q_q <= product[C][DIGIT-1:0];
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      active_q   <= 1'b0;
      fetch_q    <= '0;
      run_q      <= 1'b0;
      b_q        <= 1'b0;
      row_q      <= '0;
      slot_q     <= '0;
      b_row_q    <= '0;
      b_slot_q   <= '0;
      tail_q     <= 1'b0;
      out_q      <= 1'b0;
      digit_q    <= '0;
      carry_q    <= '0;
      borrow_q   <= 1'b0;
      subtract_q <= 1'b0;
      tag1_q     <= '{default: '0};
      tag2_q     <= '{default: '0};
      tag_q      <= '{default: '0};
    end else begin
      tag1_q <= now;
      tag2_q <= tag1_q;
      tag_q  <= tag2_q;

      if (start_i && ready_o) begin
        active_q <= 1'b1;
        fetch_q  <= 5'd1;
      end else if (fetch_q != '0) fetch_q <= last_fetch ? '0 : fetch_q + 5'd1;

      if (fetch_q == 5'd2) begin
        run_q  <= 1'b1;
        row_q  <= '0;
        slot_q <= '0;
      end else if (end_of_row) begin
        run_q  <= row_q != end_row;
        row_q  <= row_q + 5'd1;
        slot_q <= '0;
      end else if (run_q) slot_q <= slot_q + 5'd1;

      if (b_begin) begin
        b_q      <= 1'b1;
        b_row_q  <= '0;
        b_slot_q <= '0;
      end else if (b_end_of_row) begin
        b_q      <= b_row_q != digits_i - 5'd1;
        b_row_q  <= b_row_q + 5'd1;
        b_slot_q <= '0;
      end else if (b_q) b_slot_q <= b_slot_q + 5'd1;

      // q m_0 makes the low word vanish, with a carry unless it is 0.
      if (take_u) carry_q <= {1'b0, u[COLUMN-1:DIGIT]} + 9'(u[DIGIT-1:0] != '0);

      if (tag_q[B].tail) begin
        tail_q  <= 1'b1;
        digit_q <= '0;
      end else if (tail_q) begin
        carry_q  <= {1'b0, u[COLUMN-1:DIGIT]};
        borrow_q <= difference[DIGIT];
        digit_q  <= digit_q + 4'd1;
        if (digit_q == last_digit) begin
          tail_q     <= 1'b0;
          active_q   <= 1'b0;
          out_q      <= 1'b1;
          digit_q    <= '0;
          carry_q    <= '0;
          borrow_q   <= 1'b0;
          subtract_q <= u[DIGIT] || !difference[DIGIT];
        end
      end else if (out_q) begin
        borrow_q <= difference[DIGIT];
        digit_q  <= digit_q + 4'd1;
        if (digit_q == last_digit) begin
          out_q    <= 1'b0;
          borrow_q <= 1'b0;
        end
      end
    end
  end
endmodule
