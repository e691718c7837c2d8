// The workload dispatcher (SIFO 2019, section 3.1.3): batches of one operation each, gates in the order in which the host
// sends them, none before what it must wait for.
//
// A batch is a header and as many gates as it counts. Header: 23:0 gates, 26:24 operation, 27 fence (wait until every gate
// before is finished), 28 sync (nothing after the batch begins before all of it is finished; then `done_o` goes up); behind a
// queue of QUEUE commands also 29 whole (wait until the queue holds all of the batch), 30 in turn (each gate waits until the one
// before is finished).
module sf_dispatcher #(
  parameter int unsigned COMMAND = 63,
  parameter int unsigned QUEUE   = 0, // 0: bits 29 and 30 mean nothing
  localparam int unsigned COUNT  = (QUEUE > 0) ? $clog2(QUEUE + 1) : 1
) (
  input  logic               clk_i,
  input  logic               rst_ni,
  input  logic               valid_i,
  output logic               ready_o,
  input  logic               header_i,
  input  logic [COMMAND-1:0] command_i,
  // Commands in the queue, with the one that is offered.
  input  logic [COUNT-1:0]   queued_i,
  output logic               valid_o,
  input  logic               ready_i,
  output logic [2:0]         operation_o,
  output logic [COMMAND-1:0] gate_o,
  // Gates that were finished in this clock.
  input  logic [1:0]         retired_i,
  output logic [31:0]        done_o,
  output logic               idle_o,
  // A gate without a batch, a header where the batch before lacks gates, or a whole batch that is longer than the queue; nothing
  // goes on then.
  output logic               misplaced_o
);
  logic [23:0] left_q;
  logic [31:0] flight_q;
  logic sync_q, turn_q, closing_q, empty, arrived, too_long, in_turn, begin_batch, end_batch, gate;

  if (QUEUE > 0) begin : gen_whole
    assign arrived  = !command_i[29] || 32'(queued_i) > 32'(command_i[23:0]);
    assign in_turn  = command_i[30];
    assign too_long = header_i && command_i[29] && 32'(command_i[23:0]) >= QUEUE;
  end else begin : gen_plain
    logic unused;
    assign {arrived, too_long, in_turn} = 3'b100;
    assign unused = ^queued_i;
  end
  assign empty       = flight_q == '0;
  assign misplaced_o = valid_i && (header_i != (left_q == '0) || too_long);
  assign begin_batch = valid_i && header_i && left_q == '0 && !closing_q && (!command_i[27] || empty) && arrived;
  assign valid_o     = valid_i && !header_i && left_q != '0 && (!turn_q || empty);
  assign gate        = valid_o && ready_i;
  assign ready_o     = begin_batch || gate;
  assign gate_o      = command_i;
  assign end_batch   = closing_q && empty;
  assign idle_o      = left_q == '0 && empty && !closing_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      left_q      <= '0;
      flight_q    <= '0;
      sync_q      <= 1'b0;
      turn_q      <= 1'b0;
      closing_q   <= 1'b0;
      done_o      <= '0;
      operation_o <= '0;
    end else begin
      flight_q <= flight_q + 32'(gate) - 32'(retired_i);
      if (begin_batch) begin
        left_q      <= command_i[23:0];
        operation_o <= command_i[26:24];
        sync_q      <= command_i[28];
        turn_q      <= in_turn;
        closing_q   <= command_i[28] && command_i[23:0] == '0;
      end else if (gate) begin
        left_q    <= left_q - 1'b1;
        closing_q <= sync_q && left_q == 24'd1;
      end else if (end_batch) begin
        closing_q <= 1'b0;
      end
      if (end_batch) done_o <= done_o + 1'b1;
    end
  end
endmodule
