// An SSD's stream at a bandwidth: `numerator_i` words in `denominator_i` clocks, never more than one behind.
module ssd_model (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic [15:0] numerator_i,
  input  logic [15:0] denominator_i,
  input  logic        valid_i,
  output logic        ready_o,
  input  logic [63:0] data_i,
  output logic        valid_o,
  input  logic        ready_i,
  output logic [63:0] data_o
);
  // Credit for a word and a half at most: an idle stream does not save up.
  logic [16:0] credit_q;
  logic [17:0] credit, most;
  logic word_q;
  logic [63:0] data_q;
  assign most    = 18'(denominator_i) + 18'(numerator_i);
  assign credit  = (18'(credit_q) + 18'(numerator_i) > most) ? most : 18'(credit_q) + 18'(numerator_i);
  assign ready_o = credit >= 18'(denominator_i) && (!word_q || ready_i);
  assign valid_o = word_q;
  assign data_o  = data_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      credit_q <= '0;
      word_q   <= 1'b0;
      data_q   <= '0;
    end else begin
      credit_q <= 17'((valid_i && ready_o) ? credit - 18'(denominator_i) : credit);
      if (ready_i) word_q <= 1'b0;
      if (valid_i && ready_o) begin
        word_q <= 1'b1;
        data_q <= data_i;
      end
    end
  end
endmodule
