// SHA-1's compression of one padded block, a round a clock (FIPS 180-4, section 6.1; SIFO 2019, section 3.1.1). The hash of a
// message that fits one block: the state begins at the standard's initial value.
//
// A result can be taken 82 clocks after its block: one to load it, eighty rounds, one to add the initial value. It stays
// until it is taken; the next block is taken behind that. Byte 0 of block and digest is bits 7:0.
module sf_sha1 (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic         valid_i,
  output logic         ready_o,
  input  logic [511:0] block_i,
  output logic         valid_o,
  input  logic         ready_i,
  output logic [159:0] digest_o
);
  localparam logic [4:0][31:0] INITIAL = {32'hc3d2e1f0, 32'h10325476, 32'h98badcfe, 32'hefcdab89, 32'h67452301};
  localparam logic [6:0] LAST = 7'd80, ADD = 7'd81, DONE = 7'd82;

  // Words are big-endian: a word with its bytes the other way round.
  function automatic logic [31:0] swapped(input logic [31:0] word);
    return {word[7:0], word[15:8], word[23:16], word[31:24]};
  endfunction
  function automatic logic [31:0] constant(input logic [6:0] round);
    return round < 7'd20 ? 32'h5a827999 : round < 7'd40 ? 32'h6ed9eba1 : round < 7'd60 ? 32'h8f1bbcdc : 32'hca62c1d6;
  endfunction

  logic [6:0] count_q; // 0: free; 1 to 80: that round, the first being 1; then ADD, DONE
  logic [31:0] a_q, b_q, c_q, d_q, e_q;
  logic [31:0] sum_q; // e, the round's constant and its word, added up a clock ahead
  logic [15:0][31:0] words_q; // the schedule's next sixteen, of which 0 is in sum_q
  logic load, round;
  assign ready_o = count_q == '0;
  assign valid_o = count_q == DONE;
  assign load    = valid_i && ready_o;
  assign round   = count_q != '0 && count_q <= LAST;

  logic [15:0][31:0] block;
  logic [31:0] word, mixed;
  assign word = words_q[13] ^ words_q[8] ^ words_q[2] ^ words_q[0];
  always_comb begin
    for (int unsigned i = 0; i < 16; i++) block[i] = swapped(block_i[32*i +: 32]);
    if (count_q <= 7'd20) mixed = (b_q & c_q) | (~b_q & d_q);
    else if (count_q <= 7'd40 || count_q > 7'd60) mixed = b_q ^ c_q ^ d_q;
    else mixed = (b_q & c_q) | (b_q & d_q) | (c_q & d_q);
  end

  always_ff @(posedge clk_i) begin
    if (load) begin
      {e_q, d_q, c_q, b_q, a_q} <= INITIAL;
      sum_q   <= INITIAL[4] + constant(7'd0) + block[0];
      words_q <= block;
    end else if (round) begin
      a_q     <= {a_q[26:0], a_q[31:27]} + mixed + sum_q;
      b_q     <= a_q;
      c_q     <= {b_q[1:0], b_q[31:2]};
      d_q     <= c_q;
      e_q     <= d_q;
      sum_q   <= d_q + constant(count_q) + words_q[1];
      words_q <= {{word[30:0], word[31]}, words_q[15:1]};
    end else if (count_q == ADD) begin
      a_q <= a_q + INITIAL[0];
      b_q <= b_q + INITIAL[1];
      c_q <= c_q + INITIAL[2];
      d_q <= d_q + INITIAL[3];
      e_q <= e_q + INITIAL[4];
    end
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) count_q <= '0;
    else if (load) count_q <= 7'd1;
    else if (valid_o) count_q <= ready_i ? '0 : DONE;
    else if (!ready_o) count_q <= count_q + 1'b1;
  end
  assign digest_o = {swapped(e_q), swapped(d_q), swapped(c_q), swapped(b_q), swapped(a_q)};
endmodule
