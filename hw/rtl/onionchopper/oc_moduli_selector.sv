// The moduli selector: an index, and a counter that rolls it over (thesis, section 4.4).
//
// Each modulus lasts `period_i` steps, then comes the next of `count_i`, then the first again. `advance_i` may step by
// more than one; a period ends at a step, never within one.
module oc_moduli_selector
  import oc_pkg::*;
(
  input  logic                      clk_i,
  input  logic                      rst_ni,
  input  logic                      start_i,
  input  logic                      advance_i,
  input  logic [7:0]                step_i,
  input  logic [63:0]               period_i,
  input  logic [4:0]                count_i,
  output logic [$clog2(MODULI)-1:0] index_o
);
  logic [63:0] counter_q, next;
  assign next = counter_q + 64'(step_i);
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      counter_q <= '0;
      index_o   <= '0;
    end else if (start_i) begin
      counter_q <= '0;
      index_o   <= '0;
    end else if (advance_i) begin
      if (next >= period_i) begin
        counter_q <= '0;
        index_o   <= (5'(index_o) + 1'b1 >= count_i) ? '0 : index_o + 1'b1;
      end else begin
        counter_q <= next;
      end
    end
  end
endmodule
