// A first-in first-out queue with ready/valid on both sides. What is pushed can be popped from the next clock on.
module bc_fifo #(
  parameter int unsigned WIDTH = 8,
  parameter int unsigned DEPTH = 4,
  localparam int unsigned COUNT = $clog2(DEPTH + 1)
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             valid_i,
  output logic             ready_o,
  input  logic [WIDTH-1:0] data_i,
  output logic             valid_o,
  input  logic             ready_i,
  output logic [WIDTH-1:0] data_o,
  output logic [COUNT-1:0] count_o
);
  localparam int unsigned INDEX = (DEPTH > 1) ? $clog2(DEPTH) : 1;
  localparam logic [INDEX-1:0] LAST = INDEX'(DEPTH - 1);
  logic [WIDTH-1:0] memory_q[DEPTH];
  logic [INDEX-1:0] read_q, write_q;
  logic [COUNT-1:0] count_q;
  logic push, pop;

  assign ready_o = count_q != COUNT'(DEPTH);
  assign valid_o = count_q != '0;
  assign data_o  = memory_q[read_q];
  assign count_o = count_q;
  assign push    = valid_i && ready_o;
  assign pop     = valid_o && ready_i;

  always_ff @(posedge clk_i) begin
    if (push) memory_q[write_q] <= data_i;
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      read_q  <= '0;
      write_q <= '0;
      count_q <= '0;
    end else begin
      if (push) write_q <= (write_q == LAST) ? '0 : write_q + 1'b1;
      if (pop) read_q <= (read_q == LAST) ? '0 : read_q + 1'b1;
      count_q <= count_q + COUNT'(push) - COUNT'(pop);
    end
  end
endmodule
