// sf_dispatcher: a gate is handed over in the clock in which it is taken, as it came and with its batch's operation, so none
// is lost, doubled or out of order; none past a fence while a gate before it is not finished, none past an open sync, none that
// has a turn beside another, none of a whole batch before the queue holds all of it; `done_o` counts what has ended. Unbounded,
// by induction, at full width.
//
// Assumed: no more gates are finished than were handed over before, and fewer than 2^31 are under way at once.
module f_sf_dispatcher #(
  parameter int unsigned COMMAND = 31,
  parameter int unsigned QUEUE   = 4,
  localparam int unsigned COUNT  = (QUEUE > 0) ? $clog2(QUEUE + 1) : 1
) (
  input logic               clk_i,
  input logic               rst_ni,
  input logic               valid_i,
  input logic               ready_o,
  input logic               header_i,
  input logic [COMMAND-1:0] command_i,
  input logic [COUNT-1:0]   queued_i,
  input logic               valid_o,
  input logic               ready_i,
  input logic [2:0]         operation_o,
  input logic [COMMAND-1:0] gate_o,
  input logic [1:0]         retired_i,
  input logic [31:0]        done_o,
  input logic               idle_o,
  input logic               misplaced_o,
  input logic [23:0]        left_q,
  input logic [31:0]        flight_q,
  input logic               sync_q,
  input logic               turn_q,
  input logic               closing_q
);
  f_reset u_reset (.clk_i, .rst_ni);

  logic [23:0] lacks_q;                // gates that the batch still needs
  logic [2:0] operation_q;
  logic [31:0] out_q, begun_q;         // gates that are handed over and not finished; batches with sync whose header was taken
  logic open_q;                        // such a batch is not finished
  logic syncs_q;                       // the batch is one
  logic turns_q;                       // its gates have turns
  logic header, gate, handed, whole, arrived, too_long, turn;
  assign header = valid_i && ready_o && header_i;
  assign gate   = valid_i && ready_o && !header_i;
  assign handed = valid_o && ready_i;
  assign whole  = open_q && lacks_q == '0 && out_q == '0; // all of it is finished
  assign arrived  = QUEUE == 0 || !command_i[29] || 32'(queued_i) > 32'(command_i[23:0]);
  assign too_long = QUEUE > 0 && header_i && command_i[29] && 32'(command_i[23:0]) >= QUEUE;
  assign turn     = !turns_q || out_q == '0;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      {lacks_q, operation_q, out_q, begun_q, open_q, syncs_q, turns_q} <= '0;
    end else begin
      out_q <= out_q + 32'(handed) - 32'(retired_i);
      if (header) begin
        lacks_q     <= command_i[23:0];
        operation_q <= command_i[26:24];
        syncs_q     <= command_i[28];
        turns_q     <= QUEUE > 0 && command_i[30];
      end else if (gate) lacks_q <= lacks_q - 1'b1;
      if (header && command_i[28]) begin
        begun_q <= begun_q + 1'b1;
        open_q  <= 1'b1;
      end else if (whole) open_q <= 1'b0;
    end
  end

  always_comb begin
    m_finished : assume (32'(retired_i) <= out_q);
    m_queue : assume (32'(queued_i) <= QUEUE);
    m_under_way : assume (out_q < 32'h8000_0000);
    if (rst_ni) begin
      a_each_once : assert (gate == handed);
      if (handed) begin
        a_belongs : assert (lacks_q != '0);
        a_turn : assert (!turns_q || out_q == '0);
        a_as_it_came : assert (gate_o == command_i && operation_o == operation_q);
      end
      if (header) begin
        a_header_in_turn : assert (lacks_q == '0);
        if (command_i[27]) a_fence : assert (out_q == '0);
        a_no_open_sync : assert (!open_q);
        a_whole : assert (arrived);
      end
      a_done : assert (done_o == begun_q - 32'(open_q));
      a_idle : assert (idle_o == (lacks_q == '0 && out_q == '0 && !open_q));
      // What has no place goes nowhere; what may go isn't held, so an offer stays as long as the one to the dispatcher does.
      a_misplaced : assert (misplaced_o == (valid_i && (header_i != (lacks_q == '0) || too_long)));
      if (misplaced_o) a_stays : assert (!ready_o && !valid_o);
      if (valid_i && !misplaced_o) begin
        if (header_i) a_header_goes : assert (ready_o == (!open_q && (!command_i[27] || out_q == '0) && arrived));
        else a_gate_goes : assert (valid_o == turn && ready_o == (ready_i && turn));
      end
`ifdef INDUCTION
      assert (left_q == lacks_q && flight_q == out_q && operation_o == operation_q);
      assert (closing_q == (open_q && lacks_q == '0));
      assert (sync_q == syncs_q && turn_q == turns_q);
      assert (!open_q || syncs_q);
      assert (lacks_q == '0 || open_q == syncs_q);
`endif
    end
  end
endmodule

bind sf_dispatcher f_sf_dispatcher #(.COMMAND(COMMAND), .QUEUE(QUEUE)) u_proof (.*);
