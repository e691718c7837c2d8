// A bandwidth that several ways share, each by words of 256 bits: so many bits a clock, to whoever asks next. What was earned
// while nobody asked stays below a word and a clock.
module bandwidth_model #(
  parameter int unsigned WAYS = 1
) (
  input  logic            clk_i,
  input  logic            rst_ni,
  input  logic [15:0]     rate_i, // bits a clock; 0: any number of words
  input  logic [WAYS-1:0] request_i,
  output logic [WAYS-1:0] grant_o // the word moves in this clock
);
  localparam int unsigned WAY = (WAYS > 1) ? $clog2(WAYS) : 1;
  localparam logic [16:0] WORD = 17'd256;
  logic [16:0] earned_q, left;
  logic [WAY-1:0] first_q, next;
  always_comb begin
    logic [WAY:0] way;
    grant_o = '0;
    left    = earned_q;
    next    = first_q;
    way     = '0;
    if (rate_i == '0) grant_o = request_i;
    else if (request_i != '0) begin
      // Who was served last is the last to be served again.
      for (int unsigned i = 0; i < WAYS; i++) begin
        way = (WAY + 1)'(first_q) + (WAY + 1)'(i);
        if (way >= (WAY + 1)'(WAYS)) way -= (WAY + 1)'(WAYS);
        if (request_i[WAY'(way)] && left >= WORD) begin
          grant_o[WAY'(way)] = 1'b1;
          left               -= WORD;
          next               = (way == (WAY + 1)'(WAYS - 1)) ? '0 : WAY'(way + 1'b1);
        end
      end
    end
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      earned_q <= '0;
      first_q  <= '0;
    end else begin
      earned_q <= ((left >= WORD) ? WORD - 1'b1 : left) + 17'(rate_i);
      first_q  <= next;
    end
  end
endmodule
