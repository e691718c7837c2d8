// bc_fifo beside a queue that shifts: order, nothing lost, nothing doubled, no overflow. Unbounded, by induction.
module f_bc_fifo #(
  parameter int unsigned WIDTH = 8,
  parameter int unsigned DEPTH = 4,
  parameter int unsigned INDEX = 2,
  parameter int unsigned COUNT = 3
) (
  input logic             clk_i,
  input logic             rst_ni,
  input logic             valid_i,
  input logic             ready_o,
  input logic [WIDTH-1:0] data_i,
  input logic             valid_o,
  input logic             ready_i,
  input logic [WIDTH-1:0] data_o,
  input logic [COUNT-1:0] count_o,
  input logic [WIDTH-1:0] memory_q[DEPTH],
  input logic [INDEX-1:0] read_q,
  input logic [INDEX-1:0] write_q
);
  f_reset u_reset (.clk_i, .rst_ni);

  logic [WIDTH-1:0] queue_q[DEPTH];
  int unsigned held_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      held_q <= 0;
    end else begin
      held_q <= held_q + 32'(valid_i && ready_o) - 32'(valid_o && ready_i);
      for (int unsigned i = 0; i < DEPTH; i++) begin
        if (valid_o && ready_i && i + 1 < DEPTH) queue_q[i] <= queue_q[i+1];
        if (valid_i && ready_o && i == held_q - 32'(valid_o && ready_i)) queue_q[i] <= data_i;
      end
    end
  end

  always_comb begin
    if (rst_ni) begin
      a_count : assert (32'(count_o) == held_q);
      a_no_overflow : assert (held_q <= DEPTH);
      a_room : assert (ready_o == (held_q != DEPTH));
      a_offers : assert (valid_o == (held_q != 0));
      if (valid_o) a_order : assert (data_o == queue_q[0]);
`ifdef INDUCTION // what else holds, which the step from clock to clock needs
      a_read : assert (32'(read_q) < DEPTH);
      a_write : assert (32'(write_q) == (32'(read_q) + held_q) % DEPTH);
      for (int unsigned i = 0; i < DEPTH; i++) begin
        if (i < held_q) assert (memory_q[(32'(read_q) + i) % DEPTH] == queue_q[i]);
      end
`endif
    end
  end
endmodule

bind bc_fifo f_bc_fifo #(.WIDTH(WIDTH), .DEPTH(DEPTH), .INDEX(INDEX), .COUNT(COUNT)) u_proof (.*);
bind bc_fifo bc_handshake_assert #(.WIDTH(WIDTH), .ASSUME(1'b1)) u_assume_in (
  .clk_i, .rst_ni, .valid_i(valid_i), .ready_i(ready_o), .data_i(data_i)
);
bind bc_fifo bc_handshake_assert #(.WIDTH(WIDTH)) u_assert_out (
  .clk_i, .rst_ni, .valid_i(valid_o), .ready_i(ready_i), .data_i(data_o)
);
