// Today's AND: one gate a clock by half gates (Zahur, Rosulek and Evans 2015, figure 2), CELL_LATENCY clocks each.
//
// A gate's hash is TMMO, pi(pi(x) ^ t) ^ pi(x), with pi = AES-128 under a public key (Guo, Katz, Wang and Yu 2020, section
// 7.4); tweak t is twice the gate's number for a, and one more for b. Garbling hashes both labels of both wires, evaluating
// only those that are held: with two passes of AES each, eight pipes or, in a cell of GARBLES = 0, four.
//
// In: garbling, labels of 0; evaluating (`evaluate_i`), active labels and the gate's table. Both may follow each other clock by
// clock. Out: the output's label of 0, or active label; the table (garbler's half in the low bits), which evaluating is
// the one that was given. A tag travels along. Bit 0 of a label is its colour.
module hg_cell
  import hg_pkg::*;
#(
  parameter int unsigned TAG     = 1,
  parameter bit          GARBLES = 1'b1
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  planes_t [ROUNDS:0]    round_keys_i, // of hg_aes_keys; stay while gates are in the cell
  input  logic [BLOCK-1:0]      offset_i,     // R, whose bit 0 is 1; stays as the keys do
  input  logic                  valid_i,
  input  logic                  evaluate_i,   // without meaning where GARBLES = 0, which always evaluates
  input  logic [BLOCK-1:0]      a_i,
  input  logic [BLOCK-1:0]      b_i,
  input  logic [63:0]           gate_i,
  input  logic [2*BLOCK-1:0]    table_i,
  input  logic [TAG-1:0]        tag_i,
  output logic                  valid_o,
  output logic [BLOCK-1:0]      label_o,
  output logic [2*BLOCK-1:0]    table_o,
  output logic [TAG-1:0]        tag_o
);
  // Blocks of a pass: labels a and b as they came; garbling, the others of their pairs.
  localparam int unsigned BLOCKS = GARBLES ? 4 : 2;
  typedef logic [7:0][BYTES*BLOCKS-1:0] pass_t;

  logic [CELL_LATENCY-1:0] valid_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) valid_q <= '0;
    else valid_q <= {valid_q[CELL_LATENCY-2:0], valid_i};
  end
  assign valid_o = valid_q[CELL_LATENCY-1];

  // First pass: pi(x).
  planes_t a, b, offset;
  assign a      = to_planes(a_i);
  assign b      = to_planes(b_i);
  assign offset = to_planes(offset_i);
  pass_t labels, once, tweaked, twice, once_later;
  for (genvar j = 0; j < 8; j++) begin : gen_labels
    if (GARBLES) begin : gen_pairs
      assign labels[j] = {b[j] ^ offset[j], a[j] ^ offset[j], b[j], a[j]};
    end else begin : gen_active
      assign labels[j] = {b[j], a[j]};
    end
  end
  hg_aes #(.BLOCKS(BLOCKS)) u_once (.clk_i, .round_keys_i, .state_i(labels), .state_o(once));

  // Second pass: pi(pi(x) ^ t). The tweaks of a and b differ in bit 0 alone.
  logic [63:0] gate;
  hg_delay #(.WIDTH(64), .CYCLES(AES_LATENCY)) u_gate (.clk_i, .rst_ni, .d_i(gate_i), .q_o(gate));
  planes_t tweak_a, tweak_b;
  assign tweak_a = to_planes(BLOCK'({gate, 1'b0}));
  for (genvar j = 0; j < 8; j++) begin : gen_tweaks
    assign tweak_b[j] = tweak_a[j] ^ BYTES'(j == 0);
    assign tweaked[j] = once[j] ^ {BLOCKS / 2{tweak_b[j], tweak_a[j]}};
  end
  hg_aes #(.BLOCKS(BLOCKS)) u_twice (.clk_i, .round_keys_i, .state_i(tweaked), .state_o(twice));
  hg_delay #(.WIDTH($bits(pass_t)), .CYCLES(AES_LATENCY)) u_once_later (.clk_i, .rst_ni, .d_i(once), .q_o(once_later));

  // What came with the gate.
  logic evaluate, color_b;
  logic [BLOCK-1:0] label_a;
  logic [2*BLOCK-1:0] given;
  logic [TAG-1:0] tag;
  hg_delay #(.WIDTH(2 + 3 * BLOCK + TAG), .CYCLES(2 * AES_LATENCY)) u_gate_later (
    .clk_i, .rst_ni, .d_i({evaluate_i, b_i[0], a_i, table_i, tag_i}), .q_o({evaluate, color_b, label_a, given, tag})
  );

  // Sums of hashes: of the labels as they came, of a's pair, of b's.
  pass_t hashes;
  planes_t sum, pair_a, pair_b;
  assign hashes = twice ^ once_later;
  for (genvar j = 0; j < 8; j++) begin : gen_sums
    assign sum[j] = hashes[j][0+:BYTES] ^ hashes[j][BYTES+:BYTES];
    if (GARBLES) begin : gen_pairs
      assign pair_a[j] = hashes[j][0+:BYTES] ^ hashes[j][2*BYTES+:BYTES];
      assign pair_b[j] = hashes[j][BYTES+:BYTES] ^ hashes[j][3*BYTES+:BYTES];
    end else begin : gen_none
      assign pair_a[j] = '0;
      assign pair_b[j] = '0;
    end
  end

  // Garbling, the garbler's half hides b's colour and the evaluator's a's label of 0; either side adds them by its colours.
  logic [BLOCK-1:0] sum_q, garblers_q, mid_q, a_q; // mid: the evaluator's half without a
  logic color_b_q;
  logic [TAG-1:0] tag_q;
  always_ff @(posedge clk_i) begin
    sum_q      <= from_planes(sum);
    garblers_q <= (evaluate || !GARBLES) ? given[0+:BLOCK] : from_planes(pair_a) ^ (color_b ? offset_i : '0);
    mid_q      <= (evaluate || !GARBLES) ? given[BLOCK+:BLOCK] ^ label_a : from_planes(pair_b);
    a_q        <= label_a;
    color_b_q  <= color_b;
    tag_q      <= tag;
    label_o    <= sum_q ^ (a_q[0] ? garblers_q : '0) ^ (color_b_q ? mid_q : '0);
    table_o    <= {mid_q ^ a_q, garblers_q};
    tag_o      <= tag_q;
  end
endmodule
