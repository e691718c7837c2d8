// A chip for the simulated card: phepu's ports, behind which the library clocks a phepu that was compiled once for all chips.
// Right only since what a chip gives comes of registers alone.
module phepu
  import ph_pkg::*;
#(
  parameter int unsigned ELEMENTS     = 16,
  parameter int unsigned INPUTS       = 1 << 16,
  parameter int unsigned WEIGHTS      = 1 << 14,
  parameter int unsigned OUTPUTS      = 512,
  parameter int unsigned INSTRUCTIONS = 512
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic [31:0]      watchdog_i,
  input  logic             in_valid_i,
  output logic             in_ready_o,
  input  logic [DIGIT-1:0] in_word_i,
  output logic             out_valid_o,
  input  logic             out_ready_i,
  output logic [DIGIT-1:0] out_word_o,
  output logic             idle_o
);
  import "DPI-C" function chandle phepu_chip_new();
  import "DPI-C" function int unsigned phepu_chip_clock(
    input chandle chip, input int unsigned inputs, input int unsigned watchdog, input bit [255:0] word, output bit [255:0] out
  );
  import "DPI-C" function void phepu_chip_free(input chandle chip);
  chandle chip;
  initial chip = phepu_chip_new();
  final phepu_chip_free(chip);

  bit [255:0] out;
  always_ff @(posedge clk_i) begin
    {in_ready_o, out_valid_o, idle_o} <= 3'(phepu_chip_clock(
      chip, 32'({rst_ni, in_valid_i, out_ready_i}), watchdog_i, in_word_i, out));
    out_word_o <= out;
  end
endmodule
