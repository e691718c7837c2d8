// oc_moduli_selector at its full width: the index stays below the count and moves on exactly where a period is full.
//
// Assumed: what a descriptor gives stays while it runs, 1 to 16 moduli, a period of 1 to 2^64 - 256 steps, none of them in
// the two clocks behind a start.
module f_oc_moduli_selector #(
  parameter int unsigned LOW = 16
) (
  input logic        clk_i,
  input logic        rst_ni,
  input logic        start_i,
  input logic        advance_i,
  input logic [7:0]  step_i,
  input logic [63:0] period_i,
  input logic [4:0]  count_i,
  input logic [3:0]  index_o,
  input logic [63:0] whole_q,
  input logic [64:0] first_q, // upper part less one, upper part is zero, low part
  input logic [64:0] rest_q,
  input logic [1:0]  started_q
);
  f_reset u_reset (.clk_i, .rst_ni);

  logic running_q;
  initial running_q = 1'b0;
  logic [63:0] period_q, left_q; // steps until the index moves, counted here once more
  logic [4:0] count_q;
  logic [3:0] index_q;
  logic advanced_q, began_q;
  logic full_q;
  always_ff @(posedge clk_i) begin
    running_q  <= rst_ni && (running_q || start_i);
    period_q   <= period_i;
    count_q    <= count_i;
    index_q    <= index_o;
    advanced_q <= rst_ni && advance_i && !start_i;
    began_q    <= !rst_ni || start_i;
    full_q     <= 64'(step_i) >= left_q;
    if (!rst_ni || start_i) left_q <= period_i;
    else if (advance_i) left_q <= (64'(step_i) >= left_q) ? period_i : left_q - 64'(step_i);
  end
  always_comb begin
    m_count : assume (count_i >= 5'd1 && count_i <= 5'd16);
    m_period : assume (period_i >= 64'd1 && period_i <= 64'hffff_ffff_ffff_ff00);
    m_step : assume (step_i >= 8'd1);
    // Descriptors change before a start, not behind it; the first start comes first.
    if (running_q && !start_i) m_stays : assume (period_i == period_q && count_i == count_q);
    if (!running_q) m_start_first : assume (!advance_i || start_i);
    if (started_q != '0) m_made_ready : assume (!advance_i || start_i);
  end

`ifdef INDUCTION
  // What remains, less one, as its parts say it.
  function automatic logic [63:0] whole(logic [64:0] parts);
    return {(64 - LOW)'(parts[64:LOW+1] + 1'b1), parts[LOW-1:0]};
  endfunction
  function automatic logic marked(logic [64:0] parts);
    return parts[LOW] == (&parts[64:LOW+1]);
  endfunction
`endif

  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      if (running_q) begin
        a_below : assert (5'(index_o) < count_q);
`ifdef INDUCTION
        a_start : assert (started_q[0] == began_q);
        if (started_q != '0) a_none_yet : assert (left_q == period_q);
        a_whole : assert (whole_q == period_q - 1'b1);
        if (!started_q[0]) a_first : assert (whole(first_q) == whole_q && marked(first_q));
        if (started_q == '0) a_rest : assert (whole(rest_q) == left_q - 1'b1 && marked(rest_q));
        a_within : assert (left_q != '0);
`endif
      end
      if (began_q) a_begins : assert (index_o == '0);
      if (running_q && !began_q && !advanced_q) a_rests : assert (index_o == index_q);
      if (running_q && !began_q && advanced_q) begin
        // It moves on where the steps reach the period and nowhere else, to the next or, behind the last, the first.
        if (!full_q) a_not_yet : assert (index_o == index_q);
        else a_moves_on : assert (5'(index_o) == ((5'(index_q) + 5'd1 == count_q) ? 5'd0 : 5'(index_q) + 5'd1));
      end
    end
  end
endmodule

bind oc_moduli_selector f_oc_moduli_selector #(.LOW(LOW)) u_proof (.*);
