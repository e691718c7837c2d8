// A lane: one SRAM, one register file and one compute unit (thesis, Figure 6-6). All lanes do the same at the same time.
module oc_lane
  import oc_pkg::*;
#(
  parameter int unsigned WORD      = 64,
  parameter int unsigned BITS      = 0,
  parameter int unsigned SRAM_ROWS = 128,
  parameter int unsigned RF_ROWS   = 16
) (
  input  logic                       clk_i,
  input  logic                       rst_ni,
  // SRAM: reads for the register file and the drain, writes of beats from DRAM or of rows from the register file.
  input  logic                       read_i,
  input  logic [SRAM_ADDRESS-1:0]    read_row_i,
  output logic [ROW-1:0]             row_o,
  input  logic [1:0]                 write_i,
  input  logic [SRAM_ADDRESS-1:0]    write_row_i,
  input  logic [BEAT-1:0]            beat_i,
  input  logic                       store_i, // the row of `c_word_i`, before any beat
  // Register file: a row comes from the SRAM a clock after it was read, or is zero.
  input  logic                       fill_i,
  input  logic                       fill_zero_i,
  input  logic [$clog2(RF_ROWS)-1:0] fill_row_i,
  // Compute unit.
  input  logic                       issue_i,
  input  logic                       refresh_i,
  input  logic                       last_i,
  input  logic [RF_ADDRESS-1:0]      a_word_i,
  input  logic [RF_ADDRESS-1:0]      b_word_i,
  input  logic [RF_ADDRESS-1:0]      c_word_i,
  input  modulus_t                   modulus_i,
  input  logic [RF_ADDRESS-1:0]      sum_word_i, // where the sum that is ready now goes
  output logic                       sum_o,
  output logic                       unreduced_o
);
  logic [WORD-1:0] a, b, c, a_q, b_q, c_q, sum;
  logic [ROW-1:0] c_row, write_data;
  modulus_t modulus_q;
  logic issue_q, refresh_q, last_q;

  assign write_data = store_i ? c_row : {beat_i, beat_i};
  oc_sram #(.ROWS(SRAM_ROWS)) u_sram (
    .clk_i, .read_i, .read_row_i, .data_o(row_o), .write_i, .write_row_i, .data_i(write_data)
  );
  oc_register_file #(.WORD(WORD), .ROWS(RF_ROWS)) u_rf (
    .clk_i, .a_word_i, .b_word_i, .c_word_i, .a_o(a), .b_o(b), .c_o(c), .c_row_o(c_row),
    .fill_i, .fill_row_i, .fill_data_i(fill_zero_i ? '0 : row_o),
    .sum_i(sum_o), .sum_word_i, .sum_data_i(sum)
  );
  always_ff @(posedge clk_i) begin
    a_q       <= a;
    b_q       <= b;
    c_q       <= c;
    modulus_q <= modulus_i;
    refresh_q <= refresh_i;
    last_q    <= last_i;
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) issue_q <= 1'b0;
    else issue_q <= issue_i;
  end
  if (WORD == 64) begin : gen_barrett
    oc_compute_unit #(.BITS(BITS)) u_cu (
      .clk_i, .rst_ni, .valid_i(issue_q), .refresh_i(refresh_q), .last_i(last_q), .a_i(a_q), .b_i(b_q), .c_i(c_q),
      .modulus_i(modulus_q), .valid_o(sum_o), .sum_o(sum), .unreduced_o
    );
  end else begin : gen_lwe
    oc_compute_unit_lwe u_cu (
      .clk_i, .rst_ni, .valid_i(issue_q), .refresh_i(refresh_q), .last_i(last_q), .a_i(a_q), .b_i(b_q), .c_i(c_q),
      .valid_o(sum_o), .sum_o(sum)
    );
    assign unreduced_o = 1'b0;
  end
endmodule
