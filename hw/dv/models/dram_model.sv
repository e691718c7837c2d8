// A DRAM that takes one request of 128 bits a clock, read or write, in order; a read answers LATENCY clocks later.
// The thesis's bandwidth (section 4.3) with neither banks nor refresh.
module dram_model #(
  parameter int unsigned BEATS   = 1 << 10,
  parameter int unsigned LATENCY = 30
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic         valid_i,
  output logic         ready_o,
  input  logic         write_i,
  input  logic [23:0]  address_i,
  input  logic [127:0] data_i,
  output logic         valid_o,
  input  logic         ready_i,
  output logic [127:0] data_o,
  // A way in that costs no time, to begin with a database in place.
  input  logic         poke_i,
  input  logic [23:0]  poke_address_i,
  input  logic [127:0] poke_data_i
);
  localparam int unsigned INDEX = $clog2(BEATS);
  localparam int unsigned QUEUE = 128;
  logic [127:0] memory_q[BEATS];
  logic [127:0] queue_q[QUEUE];
  logic [31:0] due_q[QUEUE];
  logic [$clog2(QUEUE)-1:0] head_q, tail_q;
  logic [$clog2(QUEUE):0] count_q;
  logic [31:0] now_q;
  logic read, answered;

  assign ready_o  = count_q != ($clog2(QUEUE) + 1)'(QUEUE);
  assign read     = valid_i && ready_o && !write_i;
  assign valid_o  = count_q != '0 && now_q - due_q[head_q] < 32'h8000_0000;
  assign data_o   = queue_q[head_q];
  assign answered = valid_o && ready_i;
  always_ff @(posedge clk_i) begin
    if (poke_i) memory_q[poke_address_i[INDEX-1:0]] <= poke_data_i;
    else if (valid_i && ready_o && write_i) memory_q[address_i[INDEX-1:0]] <= data_i;
    if (read) begin
      queue_q[tail_q] <= memory_q[address_i[INDEX-1:0]];
      due_q[tail_q]   <= now_q + LATENCY;
    end
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      head_q  <= '0;
      tail_q  <= '0;
      count_q <= '0;
      now_q   <= '0;
    end else begin
      now_q   <= now_q + 1'b1;
      if (read) tail_q <= tail_q + 1'b1;
      if (answered) head_q <= head_q + 1'b1;
      count_q <= count_q + ($clog2(QUEUE) + 1)'(read) - ($clog2(QUEUE) + 1)'(answered);
    end
  end
endmodule
