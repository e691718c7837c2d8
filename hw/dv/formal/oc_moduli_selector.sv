// oc_moduli_selector at its full width: the index stays below the count and moves on exactly where a period is full.
//
// Assumed: what a descriptor gives stays while it runs, 1 to 16 moduli, a period of 1 to 2^64 - 256 steps.
module f_oc_moduli_selector (
  input logic        clk_i,
  input logic        rst_ni,
  input logic        start_i,
  input logic        advance_i,
  input logic [7:0]  step_i,
  input logic [63:0] period_i,
  input logic [4:0]  count_i,
  input logic [3:0]  index_o,
  input logic [63:0] counter_q
);
  f_reset u_reset (.clk_i, .rst_ni);

  logic running_q;
  initial running_q = 1'b0;
  logic [63:0] period_q, steps_q; // steps since the index last moved, counted here once more
  logic [4:0] count_q;
  logic [3:0] index_q;
  logic advanced_q, started_q;
  logic [63:0] total_q;
  always_ff @(posedge clk_i) begin
    running_q  <= rst_ni && (running_q || start_i);
    period_q   <= period_i;
    count_q    <= count_i;
    index_q    <= index_o;
    advanced_q <= rst_ni && advance_i && !start_i;
    started_q  <= !rst_ni || start_i;
    total_q    <= steps_q + 64'(step_i);
    if (!rst_ni || start_i) steps_q <= '0;
    else if (advance_i) steps_q <= (steps_q + 64'(step_i) >= period_i) ? '0 : steps_q + 64'(step_i);
  end
  always_comb begin
    m_count : assume (count_i >= 5'd1 && count_i <= 5'd16);
    m_period : assume (period_i >= 64'd1 && period_i <= 64'hffff_ffff_ffff_ff00);
    m_step : assume (step_i >= 8'd1);
    // Descriptors change before a start, not behind it; the first start comes first.
    if (running_q && !start_i) m_stays : assume (period_i == period_q && count_i == count_q);
    if (!running_q) m_start_first : assume (!advance_i || start_i);
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      if (running_q) begin
        a_below : assert (5'(index_o) < count_q);
`ifdef INDUCTION
        a_within : assert (steps_q < period_q && counter_q == steps_q);
`endif
      end
      if (started_q) a_begins : assert (index_o == '0);
      if (running_q && !started_q && !advanced_q) a_rests : assert (index_o == index_q);
      if (running_q && !started_q && advanced_q) begin
        // It moves on where the steps reach the period and nowhere else, to the next or, behind the last, the first.
        if (total_q < period_q) a_not_yet : assert (index_o == index_q);
        else a_moves_on : assert (5'(index_o) == ((5'(index_q) + 5'd1 == count_q) ? 5'd0 : 5'(index_q) + 5'd1));
      end
    end
  end
endmodule

bind oc_moduli_selector f_oc_moduli_selector u_proof (.*);
