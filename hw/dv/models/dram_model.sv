// A DRAM that takes one request of 128 bits a clock, read or write, in order; a read answers LATENCY clocks later.
// The thesis's bandwidth (section 4.3) with neither banks nor refresh.
//
// With PAGES, only pages that have been written take memory of the simulation: gigabytes of which little is used. What was
// not written reads as zeros then.
module dram_model #(
  parameter int unsigned BEATS   = 1 << 10,
  parameter int unsigned LATENCY = 30,
  parameter int unsigned PAGES   = 0        // of 256 beats that can be held at most; 0: all of BEATS
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic         valid_i,
  output logic         ready_o,
  input  logic         write_i,
  input  logic [27:0]  address_i,
  input  logic [127:0] data_i,
  output logic         valid_o,
  input  logic         ready_i,
  output logic [127:0] data_o,
  // A way in that costs no time, to begin with a database in place.
  input  logic         poke_i,
  input  logic [27:0]  poke_address_i,
  input  logic [127:0] poke_data_i
);
  localparam int unsigned INDEX = $clog2(BEATS);
  localparam int unsigned QUEUE = 128;
  logic [127:0] queue_q[QUEUE];
  logic [31:0] due_q[QUEUE];
  logic [$clog2(QUEUE)-1:0] head_q, tail_q;
  logic [$clog2(QUEUE):0] count_q;
  logic [31:0] now_q;
  logic read, write, answered;
  logic [INDEX-1:0] read_at, write_at;
  logic [127:0] stored;

  assign ready_o  = count_q != ($clog2(QUEUE) + 1)'(QUEUE);
  assign read     = valid_i && ready_o && !write_i;
  assign write    = poke_i || (valid_i && ready_o && write_i);
  assign read_at  = address_i[INDEX-1:0];
  assign write_at = poke_i ? poke_address_i[INDEX-1:0] : address_i[INDEX-1:0];
  assign valid_o  = count_q != '0 && now_q - due_q[head_q] < 32'h8000_0000;
  assign data_o   = queue_q[head_q];
  assign answered = valid_o && ready_i;

  if (PAGES == 0) begin : gen_whole
    logic [127:0] memory_q[BEATS];
    assign stored = memory_q[read_at];
    always_ff @(posedge clk_i) begin
      if (write) memory_q[write_at] <= poke_i ? poke_data_i : data_i;
    end
  end else begin : gen_pages
    localparam int unsigned PAGE = 8;
    localparam int unsigned HELD = $clog2(PAGES + 1);
    // By page of the DRAM, which of those held it is, from 1 on; 0: none yet.
    logic [HELD-1:0] table_q[1 << (INDEX - PAGE)];
    logic [127:0] memory_q[(PAGES + 1) << PAGE];
    logic [HELD-1:0] held_q, from, to;
    logic fresh;
    initial begin
      held_q = '0;
      for (int unsigned i = 0; i < 1 << (INDEX - PAGE); i++) table_q[i] = '0;
      for (int unsigned i = 0; i < (PAGES + 1) << PAGE; i++) memory_q[i] = '0;
    end
    assign from   = table_q[read_at[INDEX-1:PAGE]];
    assign fresh  = table_q[write_at[INDEX-1:PAGE]] == '0;
    assign to     = fresh ? held_q + 1'b1 : table_q[write_at[INDEX-1:PAGE]];
    assign stored = memory_q[{from, read_at[PAGE-1:0]}];
    always_ff @(posedge clk_i) begin
      if (write) begin
        if (fresh && held_q == HELD'(PAGES)) $fatal(1, "over %0d pages of the DRAM are in use: raise PAGES", PAGES);
        memory_q[{to, write_at[PAGE-1:0]}] <= poke_i ? poke_data_i : data_i;
        if (fresh) begin
          table_q[write_at[INDEX-1:PAGE]] <= to;
          held_q <= to;
        end
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (read) begin
      queue_q[tail_q] <= stored;
      due_q[tail_q]   <= now_q + LATENCY;
    end
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      head_q  <= '0;
      tail_q  <= '0;
      count_q <= '0;
      now_q   <= '0;
    end else begin
      now_q   <= now_q + 1'b1;
      if (read) tail_q <= tail_q + 1'b1;
      if (answered) head_q <= head_q + 1'b1;
      count_q <= count_q + ($clog2(QUEUE) + 1)'(read) - ($clog2(QUEUE) + 1)'(answered);
    end
  end
endmodule
