// Stand-ins for modules that have proofs of their own: their outputs are anything at all, in each clock. What they promise is
// assumed where they stand in.
module bc_loop_nest #(
  parameter int unsigned LOOPS    = 4,
  parameter int unsigned OPERANDS = 3,
  parameter int unsigned BOUND    = 16,
  parameter int unsigned ADDRESS  = 24
) (
  input  logic                                         clk_i,
  input  logic                                         rst_ni,
  input  logic                                         start_i,
  input  logic                                         advance_i,
  input  logic [LOOPS-1:0][BOUND-1:0]                  bounds_i,
  input  logic [LOOPS-1:0][OPERANDS-1:0][ADDRESS-1:0]  strides_i,
  output logic [OPERANDS-1:0][ADDRESS-1:0]             address_o,
  output logic                                         last_o,
  output logic [OPERANDS-1:0]                          first_o,
  output logic [OPERANDS-1:0]                          final_o,
  output logic [OPERANDS-1:0]                          run_first_o,
  output logic [OPERANDS-1:0]                          run_last_o
);
endmodule

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
endmodule

// What a queue promises: room for DEPTH, and what went in first comes out first.
module f_queue #(
  parameter int unsigned WIDTH = 8,
  parameter int unsigned DEPTH = 4,
  localparam int unsigned COUNT = $clog2(DEPTH + 1)
) (
  input  logic                        clk_i,
  input  logic                        rst_ni,
  input  logic                        valid_i,
  input  logic                        ready_o,
  input  logic [WIDTH-1:0]            data_i,
  input  logic                        ready_i,
  input  logic [WIDTH-1:0]            data_o,
  output logic [COUNT-1:0]            count_q,
  output logic [DEPTH-1:0][WIDTH-1:0] queue_q // the first lowest
);
  logic push, pop;
  logic [COUNT-1:0] after;
  assign push  = valid_i && ready_o;
  assign pop   = ready_i && count_q != '0;
  assign after = count_q - COUNT'(pop);
  always_comb begin
    m_room : assume (ready_o == (count_q != COUNT'(DEPTH)));
    if (count_q != '0) m_first : assume (data_o == queue_q[0]);
  end
  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < DEPTH; i++) begin
      if (push && after == COUNT'(i)) queue_q[i] <= data_i;
      else if (pop) queue_q[i] <= (i + 1 < DEPTH) ? queue_q[(i + 1) % DEPTH] : '0;
    end
    count_q <= rst_ni ? after + COUNT'(push) : '0;
  end
endmodule
