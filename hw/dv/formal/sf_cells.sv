// sf_cells beside a queue that shifts: a result for every gate, once, in order, from its own cell, and a cell that is free is
// used. Unbounded, by induction.
//
// The cells are stand-ins: each hands out what it was given, after any number of clocks.

// A result is there from the clock behind one in which R and b share a bit. R is any in each clock, so cells finish in any
// order.
module sf_gand #(
  parameter int unsigned LABEL = 3
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic [LABEL-1:0]      offset_i,
  input  logic                  valid_i,
  output logic                  ready_o,
  input  logic [LABEL-1:0]      a_i,
  input  logic [LABEL-1:0]      b_i,
  input  logic [63:0]           gate_i,
  output logic                  valid_o,
  input  logic                  ready_i,
  output logic [LABEL-1:0]      label_o,
  output logic [2:0][LABEL-1:0] table_o
);
  logic full_q, done_q;
  logic [LABEL-1:0] a_q, b_q, gate_q;
  assign ready_o = !full_q;
  assign valid_o = full_q && done_q;
  assign label_o = a_q;
  assign table_o = {~a_q, gate_q, b_q};
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      full_q <= 1'b0;
      done_q <= 1'b0;
    end else if (valid_i && ready_o) begin
      full_q <= 1'b1;
      done_q <= 1'b0;
    end else begin
      if (valid_o && ready_i) full_q <= 1'b0;
      done_q <= done_q || (offset_i & b_q) != '0;
    end
  end
  always_ff @(posedge clk_i) begin
    if (valid_i && ready_o) {gate_q, b_q, a_q} <= {gate_i[LABEL-1:0], b_i, a_i};
  end
endmodule

module f_sf_cells #(
  parameter int unsigned CELLS = 3,
  parameter int unsigned LABEL = 3,
  parameter int unsigned TAG   = 2,
  parameter int unsigned INDEX = 2
) (
  input logic                          clk_i,
  input logic                          rst_ni,
  input logic [LABEL-1:0]              offset_i,
  input logic                          valid_i,
  input logic                          ready_o,
  input logic [LABEL-1:0]              a_i,
  input logic [LABEL-1:0]              b_i,
  input logic [63:0]                   gate_i,
  input logic [TAG-1:0]                tag_i,
  input logic                          valid_o,
  input logic                          ready_i,
  input logic [LABEL-1:0]              label_o,
  input logic [TAG-1:0]                tag_o,
  input logic [3*LABEL-1:0]            table_o,
  input logic [INDEX-1:0]              in_q,
  input logic [INDEX-1:0]              out_q,
  input logic [CELLS-1:0]              ready,
  input logic [CELLS-1:0]              valid,
  input logic [CELLS-1:0][LABEL-1:0]   labels,
  input logic [CELLS-1:0][3*LABEL-1:0] tables,
  input logic [CELLS-1:0][TAG-1:0]     tags_q
);
  f_reset u_reset (.clk_i, .rst_ni);

  typedef struct packed {
    logic             done;
    logic [TAG-1:0]   tag;
    logic [LABEL-1:0] gate, b, a;
  } item_t;
  item_t queue_q[CELLS]; // the gates in the bank, the eldest first
  item_t aged[CELLS];
  int unsigned held_q;
  always_comb begin
    for (int unsigned i = 0; i < CELLS; i++) begin
      aged[i]      = queue_q[i];
      aged[i].done = queue_q[i].done || (offset_i & queue_q[i].b) != '0;
    end
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      held_q <= 0;
    end else begin
      held_q <= held_q + 32'(valid_i && ready_o) - 32'(valid_o && ready_i);
      for (int unsigned i = 0; i < CELLS; i++) begin
        queue_q[i] <= aged[i];
        if (valid_o && ready_i && i + 1 < CELLS) queue_q[i] <= aged[i+1];
        if (valid_i && ready_o && i == held_q - 32'(valid_o && ready_i)) begin
          queue_q[i] <= {1'b0, tag_i, gate_i[LABEL-1:0], b_i, a_i};
        end
      end
    end
  end

  always_comb begin
    if (rst_ni) begin
      a_free_is_used : assert (ready_o == (held_q != CELLS));
      if (valid_i && ready_o) a_into_the_free : assert (ready[in_q] && !valid[in_q]);
      a_offers : assert (valid_o == (held_q != 0 && queue_q[0].done));
      if (valid_o && ready_i) begin
        a_label : assert (label_o == queue_q[0].a);
        a_table : assert (table_o == {~queue_q[0].a, queue_q[0].gate, queue_q[0].b});
        a_tag : assert (tag_o == queue_q[0].tag);
      end
`ifdef INDUCTION // what else holds, which the step from clock to clock needs
      assert (held_q <= CELLS);
      assert (32'(out_q) < CELLS);
      assert (32'(in_q) == (32'(out_q) + held_q) % CELLS);
      for (int unsigned i = 0; i < CELLS; i++) begin
        assert (ready[(32'(out_q) + i) % CELLS] == (i >= held_q));
        assert (valid[(32'(out_q) + i) % CELLS] == (i < held_q && queue_q[i].done));
        if (i < held_q) begin
          assert (labels[(32'(out_q) + i) % CELLS] == queue_q[i].a);
          assert (tables[(32'(out_q) + i) % CELLS] == {~queue_q[i].a, queue_q[i].gate, queue_q[i].b});
          assert (tags_q[(32'(out_q) + i) % CELLS] == queue_q[i].tag);
        end
      end
`endif
    end
  end
endmodule

bind sf_cells f_sf_cells #(.CELLS(CELLS), .LABEL(LABEL), .TAG(TAG), .INDEX(INDEX)) u_proof (.*);
bind sf_cells bc_handshake_assert #(.WIDTH(TAG + 3 * LABEL), .ASSUME(1'b1)) u_assume_in (
  .clk_i, .rst_ni, .valid_i(valid_i), .ready_i(ready_o), .data_i({tag_i, gate_i[LABEL-1:0], b_i, a_i})
);
bind sf_cells bc_handshake_assert #(.WIDTH(TAG + 4 * LABEL)) u_assert_out (
  .clk_i, .rst_ni, .valid_i(valid_o), .ready_i(ready_i), .data_i({tag_o, table_o, label_o})
);
