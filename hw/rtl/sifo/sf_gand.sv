// The paper's gAND: garbles one AND gate with four SHA-1 cores, free XOR's global R and row reduction (SIFO 2019, section 3.1.1
// and Fig. 3). In: both wires' labels of 0. Out: the output's label of 0 and three rows of the table.
//
// A row is the first LABEL bits of SHA-1(a | b | gate), XORed with the label that it hides. Latency is the cores' 82 clocks:
// the arbiters are multiplexers behind them. A result stays until it is taken, and the next gate comes behind that.
module sf_gand #(
  parameter int unsigned LABEL = 80 // 80 or 128: whole bytes, and a block holds both labels, the gate's number and the padding
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic [LABEL-1:0]      offset_i, // R, whose bit 0 is 1; stays while a gate is offered or in the cell
  input  logic                  valid_i,
  output logic                  ready_o,
  input  logic [LABEL-1:0]      a_i,
  input  logic [LABEL-1:0]      b_i,
  input  logic [63:0]           gate_i,
  output logic                  valid_o,
  input  logic                  ready_i,
  output logic [LABEL-1:0]      label_o,
  output logic [2:0][LABEL-1:0] table_o   // rows of the colours 01, 10, 11 of a and b
);
  localparam int unsigned MESSAGE = 2 * LABEL + 64;
  // SHA-1's padding: a bit, zeros, the message's length in the last eight bytes, the highest first.
  localparam logic [15:0] LENGTH = 16'(MESSAGE);
  localparam logic [511:MESSAGE] PADDING = {LENGTH[7:0], LENGTH[15:8], {(512 - 16 - 8 - MESSAGE){1'b0}}, 8'h80};

  // A core for each pair of values, a's in bit 1 and b's in bit 0: they work in step, so the first speaks for all.
  logic [3:0] cores_ready, cores_valid;
  logic [3:0][LABEL-1:0] rows; // what each pair's labels hide: the output's label of (value of a AND value of b) is XORed in
  assign ready_o = cores_ready[0];
  assign valid_o = cores_valid[0];
  for (genvar values = 0; values < 4; values++) begin : gen_core
    logic [LABEL-1:0] a, b;
    logic [159:0] digest;
    assign a = (values & 2) != 0 ? a_i ^ offset_i : a_i;
    assign b = (values & 1) != 0 ? b_i ^ offset_i : b_i;
    sf_sha1 u_sha1 (
      .clk_i, .rst_ni, .valid_i, .ready_o(cores_ready[values]), .block_i({PADDING, gate_i, b, a}),
      .valid_o(cores_valid[values]), .ready_i, .digest_o(digest)
    );
    assign rows[values] = values == 3 ? digest[LABEL-1:0] ^ offset_i : digest[LABEL-1:0];
  end

  // First arbiter: of the four, the one whose labels both have colour 0. It is the output's label of 0 and is not sent. A
  // wire's label of 0 has that colour where its bit 0 is 0, and its label of 1 where it is 1.
  logic [1:0] zero_q;
  always_ff @(posedge clk_i) begin
    if (valid_i && ready_o) zero_q <= {a_i[0], b_i[0]};
  end
  assign label_o = rows[zero_q];

  // Second arbiter: the other three in order of their colours, which differ from the first's values where they are 1.
  for (genvar colours = 1; colours < 4; colours++) begin : gen_row
    assign table_o[colours-1] = rows[zero_q ^ 2'(colours)] ^ label_o;
  end
endmodule
