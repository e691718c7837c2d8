// Labels on the chip: one write a clock and READS reads, each from a copy of its own, a clock later (SIFO 2019, section
// 3.1.3: one read port and one write port a block RAM, several of which are read at once).
module sf_block_ram #(
  parameter int unsigned WIDTH  = 108,
  parameter int unsigned PLACES = 1 << 16,
  parameter int unsigned READS  = 2,
  localparam int unsigned INDEX = $clog2(PLACES)
) (
  input  logic                         clk_i,
  input  logic                         write_i,
  input  logic [INDEX-1:0]             write_place_i,
  input  logic [WIDTH-1:0]             data_i,
  input  logic [READS-1:0]             read_i,
  input  logic [READS-1:0][INDEX-1:0]  read_place_i,
  output logic [READS-1:0][WIDTH-1:0]  data_o
);
  for (genvar r = 0; r < READS; r++) begin : copies
    logic [WIDTH-1:0] memory_q[PLACES];
    always_ff @(posedge clk_i) begin
      if (write_i) memory_q[write_place_i] <= data_i;
      if (read_i[r]) data_o[r] <= memory_q[read_place_i[r]];
    end
  end
endmodule
