// Branch detector of the Stein unit: which of the four branches is done in this clock, from the critical bits alone: bit 0 of u
// and of v, and the borrows of the two subtractions. The parities are a register's, so that what they drive, two numbers wide,
// does not wait for them.
//
// FORWARD: they are taken from what is being written into u and v, before these registers: a branch a clock. Without, they are
// taken from u and v themselves, in a clock in which nothing else happens: two clocks a branch.
//
// Source: PH-EPU 2023, Fig. 15.4.3 (BD, and results forwarded "before the pipeline registers").
module ph_branch #(
  parameter bit FORWARD = 1'b1
) (
  input  logic clk_i,
  input  logic rst_ni,
  input  logic loop_i,     // branches are to be done
  input  logic u_next_i,   // bit 0 of what u and v hold from the next clock on
  input  logic v_next_i,
  input  logic u_i,        // bit 0 of what they hold
  input  logic v_i,
  input  logic u_less_i,   // u < v: the borrow of u - v; looked at where both are odd
  input  logic v_less_i,   // v < u: the borrow of v - u
  output logic execute_o,  // a branch is done in this clock
  output logic subtract_o, // both are odd: the greater one's difference is halved, and r + s taken
  output logic halve_u_o,  // u changes, and v stays; or else v changes
  output logic last_o      // u = v: v becomes 0
);
  logic u_even_q, v_even_q;
  if (FORWARD) begin : gen_forward
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) {u_even_q, v_even_q} <= '0;
      else {u_even_q, v_even_q} <= {!u_next_i, !v_next_i};
    end
    assign execute_o = loop_i;
  end else begin : gen_wait
    logic detected_q;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) {u_even_q, v_even_q, detected_q} <= '0;
      else {u_even_q, v_even_q, detected_q} <= {!u_i, !v_i, loop_i && !detected_q};
    end
    assign execute_o = loop_i && detected_q;
  end
  assign subtract_o = !u_even_q && !v_even_q;
  assign halve_u_o  = u_even_q || (!v_even_q && v_less_i);
  assign last_o     = subtract_o && !u_less_i && !v_less_i;
endmodule
