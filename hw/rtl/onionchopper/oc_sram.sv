// An SRAM of rows: one read and one write a clock, the read a clock later (thesis, section 4.3). A write covers the
// row's lower beat, its upper one, or both. A row that is written and read in one clock reads as it was.
module oc_sram
  import oc_pkg::*;
#(
  parameter int unsigned ROWS = 128
) (
  input  logic                    clk_i,
  input  logic                    read_i,
  input  logic [SRAM_ADDRESS-1:0] read_row_i,
  output logic [ROW-1:0]          data_o,
  input  logic [1:0]              write_i,
  input  logic [SRAM_ADDRESS-1:0] write_row_i,
  input  logic [ROW-1:0]          data_i
);
  localparam int unsigned INDEX = $clog2(ROWS);
  logic [1:0][BEAT-1:0] memory_q[ROWS];
  always_ff @(posedge clk_i) begin
    if (read_i) data_o <= memory_q[read_row_i[INDEX-1:0]];
    for (int unsigned i = 0; i < 2; i++) begin
      if (write_i[i]) memory_q[write_row_i[INDEX-1:0]][i] <= data_i[i*BEAT+:BEAT];
    end
  end
endmodule
