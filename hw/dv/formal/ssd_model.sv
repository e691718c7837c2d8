// ssd_model: an offer stays, words leave as they came, none lost; and in a window of 255 clocks never more of them than
// the bandwidth gives and the credit that an idle stream has.
//
// Assumed: a numerator and a denominator of 1 or more that stay.
module f_ssd_model (
  input logic        clk_i,
  input logic        rst_ni,
  input logic [15:0] numerator_i,
  input logic [15:0] denominator_i,
  input logic        valid_i,
  input logic        ready_o,
  input logic [63:0] data_i,
  input logic        valid_o,
  input logic        ready_i,
  input logic [63:0] data_o,
  input logic [16:0] credit_q
);
  f_reset u_reset (.clk_i, .rst_ni);

  logic [15:0] numerator_q, denominator_q;
  logic began_q;
  initial began_q = 1'b0;
  logic [63:0] word_q;   // the last that went in
  logic [7:0] held_q;    // in less out
  // What the bandwidth has given in a window and no word has taken yet: clocks * numerator - words * denominator.
  logic signed [26:0] left_q, most;
  logic [7:0] window_q;
  assign most = 27'(numerator_i) + 27'(denominator_i);
  always_ff @(posedge clk_i) begin
    began_q       <= 1'b1;
    numerator_q   <= numerator_i;
    denominator_q <= denominator_i;
    if (valid_i && ready_o) word_q <= data_i;
    if (!rst_ni) held_q <= '0;
    else held_q <= held_q + 8'(valid_i && ready_o) - 8'(valid_o && ready_i);
    if (!rst_ni || window_q == '1) begin
      window_q <= '0;
      left_q   <= most;
    end else begin
      window_q <= window_q + 1'b1;
      left_q   <= left_q + 27'(numerator_i) - ((valid_i && ready_o) ? 27'(denominator_i) : 27'd0);
    end
  end
  always_comb begin
    m_rate : assume (numerator_i != '0 && denominator_i != '0);
    if (began_q) m_stays : assume (numerator_i == numerator_q && denominator_i == denominator_q);
  end
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      a_one_word : assert (held_q == 8'(valid_o));
      if (valid_o) a_order : assert (data_o == word_q);
      a_bandwidth : assert (left_q >= 0);
`ifdef INDUCTION
      a_credit : assert (27'(credit_q) <= most);
      a_left : assert (27'(credit_q) <= left_q && left_q <= (27'(window_q) + 27'sd2) <<< 16);
`endif
      // Never slower than it must be: with the credit of an idle stream a word can go in.
      if (27'(credit_q) + 27'(numerator_i) >= 27'(denominator_i)) begin
        a_not_slower : assert (ready_o == (!valid_o || ready_i));
      end
    end
  end
endmodule

bind ssd_model f_ssd_model u_proof (.*);
bind ssd_model bc_handshake_assert #(.WIDTH(64), .ASSUME(1'b1)) u_assume_in (
  .clk_i, .rst_ni, .valid_i(valid_i), .ready_i(ready_o), .data_i(data_i)
);
bind ssd_model bc_handshake_assert #(.WIDTH(64)) u_assert_out (
  .clk_i, .rst_ni, .valid_i(valid_o), .ready_i(ready_i), .data_i(data_o)
);
