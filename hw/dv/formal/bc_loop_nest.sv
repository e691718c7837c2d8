// bc_loop_nest, small: every place of the nest once and in order, each address what the indices say, and the marks.
//
// Assumed: bounds and strides stay from a start on, bounds of 1 or more.
module f_bc_loop_nest #(
  parameter int unsigned LOOPS    = 3,
  parameter int unsigned OPERANDS = 2,
  parameter int unsigned BOUND    = 2,
  parameter int unsigned ADDRESS  = 4
) (
  input logic                                        clk_i,
  input logic                                        rst_ni,
  input logic                                        start_i,
  input logic                                        advance_i,
  input logic [LOOPS-1:0][BOUND-1:0]                 bounds_i,
  input logic [LOOPS-1:0][OPERANDS-1:0][ADDRESS-1:0] strides_i,
  input logic [OPERANDS-1:0][ADDRESS-1:0]            address_o,
  input logic                                        last_o,
  input logic [OPERANDS-1:0]                         first_o,
  input logic [OPERANDS-1:0]                         final_o,
  input logic [OPERANDS-1:0]                         run_first_o,
  input logic [OPERANDS-1:0]                         run_last_o,
  input logic [LOOPS-1:0][BOUND-1:0]                 index_q,
  input logic [LOOPS-1:0][OPERANDS-1:0][ADDRESS-1:0] base_q
);
  f_reset u_reset (.clk_i, .rst_ni);
  localparam int unsigned PLACES = LOOPS * BOUND;

  logic running_q, restarted_q, advanced_q;
  initial running_q = 1'b0;
  logic [LOOPS-1:0][BOUND-1:0] bounds_q, was_q;
  logic [LOOPS-1:0][OPERANDS-1:0][ADDRESS-1:0] strides_q;
  logic [OPERANDS-1:0] run_last_q;
  logic last_q;
  logic [OPERANDS-1:0][ADDRESS-1:0] address_q;
  logic [PLACES-1:0] place_q; // steps since the beginning, counted here
  always_ff @(posedge clk_i) begin
    running_q   <= rst_ni && (running_q || start_i);
    restarted_q <= !rst_ni || start_i;
    advanced_q  <= advance_i;
    bounds_q    <= bounds_i;
    strides_q   <= strides_i;
    was_q       <= index_q;
    run_last_q  <= run_last_o;
    last_q      <= last_o;
    address_q   <= address_o;
    if (!rst_ni || start_i || (advance_i && last_o)) place_q <= '0;
    else if (advance_i) place_q <= place_q + 1'b1;
  end
  always_comb begin
    for (int unsigned l = 0; l < LOOPS; l++) assume (bounds_i[l] != '0);
    if (running_q && !start_i) m_stays : assume (bounds_i == bounds_q && strides_i == strides_q);
    if (!running_q) m_start_first : assume (!advance_i || start_i);
  end

  // What the indices say.
  logic [PLACES-1:0] place, places;
  logic [LOOPS-1:0][OPERANDS-1:0][ADDRESS-1:0] base;
  logic [OPERANDS-1:0][LOOPS-1:0] moves;
  always_comb begin
    place  = '0;
    places = PLACES'(1);
    for (int unsigned l = 0; l < LOOPS; l++) begin
      place  = place * PLACES'(bounds_i[l]) + PLACES'(index_q[l]);
      places = places * PLACES'(bounds_i[l]);
      for (int unsigned x = 0; x < OPERANDS; x++) begin
        base[l][x]  = ((l == 0) ? '0 : base[l == 0 ? 0 : l - 1][x]) + ADDRESS'(index_q[l]) * strides_i[l][x];
        moves[x][l] = strides_i[l][x] != '0 && bounds_i[l] != BOUND'(1);
      end
    end
  end
  logic [OPERANDS-1:0] same, at_begin, at_end;
  always_comb begin
    same     = '1;
    at_begin = '1;
    at_end   = '1;
    for (int unsigned x = 0; x < OPERANDS; x++) begin
      for (int unsigned l = 0; l < LOOPS; l++) begin
        if (moves[x][l]) begin
          same[x] &= index_q[l] == was_q[l];
        end else begin // the visits of one place are told apart by the others
          at_begin[x] &= index_q[l] == '0;
          at_end[x]   &= index_q[l] + 1'b1 == bounds_i[l];
        end
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni && running_q && !start_i) begin
`ifdef INDUCTION
      for (int unsigned l = 0; l < LOOPS; l++) assert (index_q[l] < bounds_i[l]);
      a_base : assert (base_q == base);
`endif
      a_in_order : assert (place_q == place && place < places);
      a_last : assert (last_o == (place + 1'b1 == places));
      a_address : assert (address_o == base[LOOPS-1]);
      a_first : assert (first_o == at_begin);
      a_final : assert (final_o == at_end);
      if (last_o) a_last_ends : assert (run_last_o == '1);
      if (!restarted_q && !advanced_q) a_stays : assert (index_q == was_q && address_o == address_q);
      if (restarted_q || (advanced_q && last_q)) begin
        a_begins : assert (run_first_o == '1);
      end else if (advanced_q) begin
        // A run ends where the next step is elsewhere, and begins there.
        a_run_last : assert (run_last_q == ~same);
        a_run_first : assert (run_first_o == ~same);
      end
    end
  end
endmodule

bind bc_loop_nest f_bc_loop_nest #(.LOOPS(LOOPS), .OPERANDS(OPERANDS), .BOUND(BOUND), .ADDRESS(ADDRESS)) u_proof (.*);
