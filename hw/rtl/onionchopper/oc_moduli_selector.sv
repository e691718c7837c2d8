// The moduli selector: an index, and a counter that rolls it over (thesis, section 4.4).
//
// Each modulus lasts `period_i` steps, then comes the next of `count_i`, then the first again. `advance_i` may step by
// more than one; a period ends at a step, never within one. What a descriptor gives stays while it runs, and no step comes
// in the two clocks behind `start_i`, in which the first period is made ready.
//
// What remains of a period counts down, less one, so that a period ends where a step borrows. Only its low part subtracts
// a step; the upper part loses one where that borrows. The upper part less one and whether it is zero are kept beside it,
// a step ahead, so no clock carries through 64 bits, compares them and selects by what comes out.
module oc_moduli_selector
  import oc_pkg::*;
#(
  parameter int unsigned LOW = 16 // bits that a step is subtracted from: 8 or more
) (
  input  logic                      clk_i,
  input  logic                      rst_ni,
  input  logic                      start_i,
  input  logic                      advance_i,
  input  logic [7:0]                step_i,
  input  logic [63:0]               period_i,
  input  logic [4:0]                count_i,
  output logic [$clog2(MODULI)-1:0] index_o
);
  typedef struct packed {
    logic [63-LOW:0] less; // the upper part less one
    logic            zero; // the upper part is zero
    logic [LOW-1:0]  low;
  } rest_t;

  // A whole period, in two stages that follow the descriptor.
  logic [63:0] whole_q;
  rest_t first_q, rest_q;
  always_ff @(posedge clk_i) begin
    whole_q <= period_i - 1'b1;
    first_q <= '{less: whole_q[63:LOW] - 1'b1, zero: whole_q[63:LOW] == '0, low: whole_q[LOW-1:0]};
  end

  logic borrow, ends;
  logic [LOW-1:0] low;
  logic [1:0] started_q;
  assign {borrow, low} = {1'b0, rest_q.low} - (LOW + 1)'(step_i);
  assign ends = borrow && rest_q.zero;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      started_q <= '0;
      rest_q    <= '0;
      index_o   <= '0;
    end else begin
      started_q <= {started_q[0], start_i};
      if (started_q[1] || (advance_i && ends)) begin
        rest_q <= first_q;
      end else if (advance_i) begin
        rest_q.low <= low;
        if (borrow) begin
          rest_q.less <= rest_q.less - 1'b1;
          rest_q.zero <= rest_q.less == '0;
        end
      end
      if (start_i) index_o <= '0;
      else if (advance_i && ends) index_o <= (5'(index_o) + 1'b1 >= count_i) ? '0 : index_o + 1'b1;
    end
  end
endmodule
