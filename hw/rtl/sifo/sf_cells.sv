// A bank of gANDs, used in turn, so that results come in the order of the gates. It takes a gate a clock while a cell is free;
// a result waits in its cell until it is taken, and a tag goes along with each gate.
module sf_cells #(
  parameter int unsigned CELLS = 15, // the paper's largest (section 4.2.2)
  parameter int unsigned LABEL = 80,
  parameter int unsigned TAG   = 1
) (
  input  logic               clk_i,
  input  logic               rst_ni,
  input  logic [LABEL-1:0]   offset_i, // R, whose bit 0 is 1; stays while gates are offered or in the bank
  input  logic               valid_i,
  output logic               ready_o,
  input  logic [LABEL-1:0]   a_i,
  input  logic [LABEL-1:0]   b_i,
  input  logic [63:0]        gate_i,
  input  logic [TAG-1:0]     tag_i,
  output logic               valid_o,
  input  logic               ready_i,
  output logic [LABEL-1:0]   label_o,
  output logic [TAG-1:0]     tag_o,
  output logic [3*LABEL-1:0] table_o   // rows of the colours 01, 10, 11, the first in the low bits
);
  localparam int unsigned INDEX = (CELLS > 1) ? $clog2(CELLS) : 1;
  localparam logic [INDEX-1:0] LAST = INDEX'(CELLS - 1);
  // The next gate's cell, and the cell of the next result. Between them, in turn, all are taken: those behind are free.
  logic [INDEX-1:0] in_q, out_q;
  logic [CELLS-1:0] ready, valid;
  logic [CELLS-1:0][LABEL-1:0] labels;
  logic [CELLS-1:0][3*LABEL-1:0] tables;
  logic [CELLS-1:0][TAG-1:0] tags_q;

  assign ready_o = ready[in_q];
  assign valid_o = valid[out_q];
  assign label_o = labels[out_q];
  assign table_o = tables[out_q];
  assign tag_o   = tags_q[out_q];
  for (genvar i = 0; i < CELLS; i++) begin : gen_cell
    sf_gand #(.LABEL(LABEL)) u_gand (
      .clk_i, .rst_ni, .offset_i, .valid_i(valid_i && in_q == INDEX'(i)), .ready_o(ready[i]), .a_i, .b_i, .gate_i,
      .valid_o(valid[i]), .ready_i(ready_i && out_q == INDEX'(i)), .label_o(labels[i]), .table_o(tables[i])
    );
  end

  always_ff @(posedge clk_i) begin
    if (valid_i && ready_o) tags_q[in_q] <= tag_i;
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      in_q  <= '0;
      out_q <= '0;
    end else begin
      if (valid_i && ready_o) in_q <= (in_q == LAST) ? '0 : in_q + 1'b1;
      if (valid_o && ready_i) out_q <= (out_q == LAST) ? '0 : out_q + 1'b1;
    end
  end
endmodule
