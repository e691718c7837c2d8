// A register file with three read ports (a, b and c) and two write ports: rows from the SRAM, words from the compute
// unit (thesis, section 4.3). The c port gives the whole row that holds the word, so that finished sums leave by rows.
//
// The thesis has 32 words and counts no double buffering (its chapter 7); ROWS = 16 holds 64 words of 64 bits.
module oc_register_file
  import oc_pkg::*;
#(
  parameter int unsigned WORD = 64,
  parameter int unsigned ROWS = 16,
  localparam int unsigned WORDS = ROW / WORD
) (
  input  logic                        clk_i,
  input  logic [RF_ADDRESS-1:0]       a_word_i,
  input  logic [RF_ADDRESS-1:0]       b_word_i,
  input  logic [RF_ADDRESS-1:0]       c_word_i,
  output logic [WORD-1:0]             a_o,
  output logic [WORD-1:0]             b_o,
  output logic [WORD-1:0]             c_o,
  output logic [ROW-1:0]              c_row_o,
  input  logic                        fill_i,
  input  logic [$clog2(ROWS)-1:0]     fill_row_i,
  input  logic [ROW-1:0]              fill_data_i,
  input  logic                        sum_i,
  input  logic [RF_ADDRESS-1:0]       sum_word_i,
  input  logic [WORD-1:0]             sum_data_i
);
  localparam int unsigned COLUMN = $clog2(WORDS);
  localparam int unsigned INDEX = $clog2(ROWS) + COLUMN;
  logic [ROWS-1:0][WORDS-1:0][WORD-1:0] words_q;

  assign a_o     = words_q[a_word_i[INDEX-1:COLUMN]][a_word_i[COLUMN-1:0]];
  assign b_o     = words_q[b_word_i[INDEX-1:COLUMN]][b_word_i[COLUMN-1:0]];
  assign c_row_o = words_q[c_word_i[INDEX-1:COLUMN]];
  assign c_o     = c_row_o[c_word_i[COLUMN-1:0]*WORD+:WORD];
  always_ff @(posedge clk_i) begin
    if (fill_i) words_q[fill_row_i] <= fill_data_i;
    if (sum_i) words_q[sum_word_i[INDEX-1:COLUMN]][sum_word_i[COLUMN-1:0]] <= sum_data_i;
  end
endmodule
