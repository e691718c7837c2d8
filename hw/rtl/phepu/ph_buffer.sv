// A memory with a port to write and one to read: a word is there the clock after it was asked for, and stays until the next.
module ph_buffer #(
  parameter int unsigned WORDS    = 512,
  parameter int unsigned WIDTH    = 256,
  localparam int unsigned ADDRESS = $clog2(WORDS)
) (
  input  logic               clk_i,
  input  logic               write_i,
  input  logic [ADDRESS-1:0] write_address_i,
  input  logic [WIDTH-1:0]   write_word_i,
  input  logic               read_i,
  input  logic [ADDRESS-1:0] read_address_i,
  output logic [WIDTH-1:0]   read_word_o
);
  logic [WIDTH-1:0] memory_q[WORDS];
  always_ff @(posedge clk_i) begin
    if (write_i) memory_q[write_address_i] <= write_word_i;
    if (read_i) read_word_o <= memory_q[read_address_i];
  end
endmodule
