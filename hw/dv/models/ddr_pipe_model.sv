// DDR memory with a port for reads and one for writes, each one access a clock, `latency_i` clocks long and up to FLIGHT of
// them under way, in order. A read sees the writes that were done when it began.
module ddr_pipe_model #(
  parameter int unsigned WIDTH  = 512,
  parameter int unsigned WORDS  = 1 << 16,
  parameter int unsigned FLIGHT = 64,
  localparam int unsigned INDEX = $clog2(WORDS)
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic [15:0]      latency_i,
  input  logic             load_valid_i,
  output logic             load_ready_o,
  input  logic [INDEX-1:0] load_word_i,
  output logic             loaded_valid_o,
  input  logic             loaded_ready_i,
  output logic [WIDTH-1:0] loaded_o,
  input  logic             store_valid_i,
  output logic             store_ready_o,
  input  logic [INDEX-1:0] store_word_i,
  input  logic [WIDTH-1:0] store_i,
  output logic             stored_o,
  // The host's DMA, at no cost in time here.
  input  logic             poke_i,
  input  logic [INDEX-1:0] poke_word_i,
  input  logic [WIDTH-1:0] poke_data_i,
  output logic [WIDTH-1:0] peek_data_o
);
  logic [WIDTH-1:0] memory_q[WORDS];
  logic [31:0] now_q, load_due, store_due;
  logic loaded, load_waits, store_waits;
  logic [INDEX-1:0] store_word;
  logic [WIDTH-1:0] store_data;

  // What is offered stays, but not the time at which it would end: the queues see it when they take it.
  bc_fifo #(.WIDTH(32 + WIDTH), .DEPTH(FLIGHT)) u_loads (
    .clk_i, .rst_ni, .valid_i(load_valid_i && load_ready_o), .ready_o(load_ready_o),
    .data_i({now_q + 32'(latency_i), memory_q[load_word_i]}), .valid_o(load_waits), .ready_i(loaded),
    .data_o({load_due, loaded_o}), .count_o()
  );
  bc_fifo #(.WIDTH(32 + INDEX + WIDTH), .DEPTH(FLIGHT)) u_stores (
    .clk_i, .rst_ni, .valid_i(store_valid_i && store_ready_o), .ready_o(store_ready_o),
    .data_i({now_q + 32'(latency_i), store_word_i, store_i}), .valid_o(store_waits), .ready_i(stored_o),
    .data_o({store_due, store_word, store_data}), .count_o()
  );
  // Whether a time is over; times wrap.
  assign loaded_valid_o = load_waits && !(1'(now_q - load_due >> 31));
  assign loaded         = loaded_valid_o && loaded_ready_i;
  assign stored_o       = store_waits && !(1'(now_q - store_due >> 31));
  assign peek_data_o    = memory_q[poke_word_i];
  always_ff @(posedge clk_i) begin
    if (stored_o) memory_q[store_word] <= store_data;
    if (poke_i) memory_q[poke_word_i] <= poke_data_i;
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) now_q <= '0;
    else now_q <= now_q + 1'b1;
  end
endmodule
