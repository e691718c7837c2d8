// ph_controller never deadlocks, and moves words only where they belong. Elements are anything that keeps to what is assumed.
//
// Always: what is loaded is not in use, and every word of it goes to a slot that was claimed for it; what is stored is full from
// the first word to the last; nothing is issued without room; a context comes to idle elements; once begun, an instruction moves a
// word a clock and ends. An element that has failed is neither waited for nor made to fail again.
// With no watchdog (watchdog_i = 0): every instruction of a right program begins within SOON + ELEMENTS clocks.
// With one, whatever the program and the elements: nobody is waited for longer than that many clocks without progress, and
// behind them nobody is waited for any more.
//
// Assumed of elements: from the clock behind its failure one is ready, idle, not in use, and its outputs are full; a full output
// stays full until it is stored; what is free, idle or ready stays so until it is claimed or given something. Without a watchdog also: SOON clocks after the last instruction or store an element has done
// all that it was given: it is ready and idle, what it was to free is free, what it was to fill is full; words out leave as soon;
// and the program frees what it loads again and fills what it stores before it says so.
module f_ph_controller #(
  parameter int unsigned ELEMENTS = 2,
  localparam int unsigned ELEMENT = (ELEMENTS > 1) ? $clog2(ELEMENTS) : 1
) (
  input logic                      clk_i,
  input logic                      rst_ni,
  input logic [31:0]               watchdog_i,
  input logic [ELEMENTS-1:0]       bus_valid_o,
  input ph_pkg::bus_e              bus_kind_o,
  input logic [8:0]                bus_address_o,
  input logic [ELEMENTS-1:0]       context_o,
  input logic [ELEMENTS-1:0]       claim_o,
  input logic [15:0]               claim_slots_o,
  input logic [1:0]                claim_regions_o,
  input logic [ELEMENTS-1:0]       fail_o,
  input logic [7:0]                fail_code_o,
  input logic [ELEMENTS-1:0]       issue_o,
  input logic [ELEMENTS-1:0]       ready_i,
  input logic [47:0]               instruction_o,
  input logic [ELEMENTS-1:0][15:0] slots_busy_i,
  input logic [ELEMENTS-1:0][1:0]  regions_busy_i,
  input logic [ELEMENTS-1:0][1:0]  full_i,
  input logic [ELEMENTS-1:0]       idle_i,
  input logic [ELEMENTS-1:0]       progress_i,
  input logic [ELEMENTS-1:0]       failed_i,
  input logic [ELEMENTS-1:0]       store_read_o,
  input logic                      store_slot_o,
  input logic [3:0]                store_index_o,
  input logic [ELEMENTS-1:0]       store_done_o,
  input logic                      push_o,
  input logic                      stored_o,
  input logic                      room_i,
  input logic                      empty_i,
  input logic                      moved_i,
  input logic                      blocked_i,
  // The instruction: it is there, begins, ends.
  input logic [63:0]               inst_q,
  input logic                      there_q,
  input logic                      begins,
  input logic                      done,
  // For induction.
  input logic [1:0]                state_q,
  input logic [8:0]                left_q,
  input logic [8:0]                place_q,
  input logic [ELEMENTS-1:0]       to_q,
  input logic [ELEMENT-1:0]        element_q,
  input logic [ELEMENTS-1:0][1:0]  digits_q,
  input logic [31:0]               still_q
);
  import ph_pkg::*;
  localparam logic [2:0] SOON = 3'd3;
  f_reset u_reset (.clk_i, .rst_ni);

  opcode_e op;
  logic [ELEMENTS-1:0] mask, live;
  logic one, runs_q, waits;
  assign op    = opcode_e'(inst_q[63:60]);
  assign mask  = inst_q[44+:ELEMENTS];
  assign live  = mask & ~failed_i;
  assign one   = $countones(mask) == 1;
  assign waits = there_q && !runs_q && !begins;

  logic [31:0] watchdog_q, stuck_q;
  logic [2:0] age_q, out_q;
  logic [8:0] run_q, length_q, length;
  logic [ELEMENTS-1:0][1:0] known_q; // digits of each element's context
  logic [ELEMENTS-1:0] failed_q, idle_q, ready_q;
  logic barked_q;
  logic [ELEMENTS-1:0][2:0] quiet_q;
  logic [ELEMENTS-1:0][15:0] owed_slots_q, claimed_q, free_q;
  logic [ELEMENTS-1:0][1:0] owed_regions_q, owed_full_q, full_q, free_regions_q;
  logic [15:0] slots;
  // What an instruction of the queue frees, and what it fills.
  function automatic logic [15:0] frees(logic [47:0] instruction);
    return (instruction[47:44] == OP_FREE) ? instruction[15:0] : '0;
  endfunction
  function automatic logic [1:0] frees_regions(logic [47:0] instruction);
    return (instruction[47:44] == OP_FREE) ? instruction[17:16] : '0;
  endfunction
  function automatic logic [1:0] fills(logic [47:0] instruction);
    if (instruction[47:44] == OP_REDUCE && instruction[9]) return 2'b01 << instruction[2];
    if (instruction[47:44] == OP_BASIC && instruction[5:1] == 5'd12) return 2'b01 << instruction[0];
    return '0;
  endfunction
  assign slots = (op == OP_LOAD_INPUT) ? ~(16'hffff << inst_q[8:4]) << inst_q[3:0] : '0;

  // Words of the instruction that begins.
  always_comb begin
    logic [1:0] digits;
    digits = '0;
    for (int unsigned e = ELEMENTS; e > 0; e--) if ((op == OP_STORE) ? mask[e-1] : live[e-1]) digits = known_q[e-1];
    unique case (op)
      OP_END: length = 9'(2 * ELEMENTS);
      OP_STORE: length = 9'd4 << digits;
      OP_LOAD_INPUT: length = 9'(inst_q[8:4]) << (3'd2 + 3'(digits));
      OP_LOAD_WEIGHTS: length = inst_q[17:9];
      default: length = 9'(7'd3 * (7'd4 << inst_q[1:0])) + 9'd1;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      watchdog_q <= watchdog_i;
      known_q    <= '0;
      {stuck_q, age_q, out_q, run_q, failed_q, idle_q, ready_q, barked_q, quiet_q, free_q, free_regions_q} <= '0;
      {owed_slots_q, claimed_q, owed_regions_q, owed_full_q, full_q, runs_q} <= '0;
    end else begin
      // In a decoded instruction's way; in a begun one.
      age_q  <= waits ? age_q + 1'b1 : '0;
      runs_q <= (runs_q || begins) && !done;
      run_q  <= (runs_q && !done) ? run_q + 1'b1 : '0;
      if (begins) length_q <= length;
      out_q  <= push_o ? '0 : (out_q < SOON) ? out_q + 1'b1 : out_q;
      for (int unsigned e = 0; e < ELEMENTS; e++) begin
        failed_q[e] <= failed_i[e] || fail_o[e];
        quiet_q[e]  <= (issue_o[e] || store_done_o[e]) ? '0 : (quiet_q[e] < SOON) ? quiet_q[e] + 1'b1 : quiet_q[e];
        if (issue_o[e]) begin
          owed_slots_q[e]   <= owed_slots_q[e] | frees(instruction_o);
          owed_regions_q[e] <= owed_regions_q[e] | frees_regions(instruction_o);
          owed_full_q[e]    <= owed_full_q[e] | fills(instruction_o);
        end
        if (context_o[e]) known_q[e] <= inst_q[1:0];
        if (claim_o[e]) begin
          owed_slots_q[e]   <= owed_slots_q[e] & ~claim_slots_o;
          owed_regions_q[e] <= owed_regions_q[e] & ~claim_regions_o;
          claimed_q[e]      <= claim_slots_o;
        end
        full_q[e]  <= full_i[e];
        idle_q[e]  <= idle_i[e] && !issue_o[e];
        ready_q[e] <= ready_i[e] && !issue_o[e];
        free_q[e]  <= ~slots_busy_i[e] & ~(claim_o[e] ? claim_slots_o : '0);
        free_regions_q[e] <= ~regions_busy_i[e] & ~(claim_o[e] ? claim_regions_o : '0);
        if (store_done_o[e]) begin
          owed_full_q[e][store_slot_o] <= 1'b0;
          full_q[e][store_slot_o]      <= 1'b0;
        end
      end
      // Waiting for elements, while nothing moves that a watchdog looks at.
      stuck_q  <= (waits && fail_o == '0 && progress_i == '0 && !moved_i && (op == OP_STORE || op == OP_END ? room_i && empty_i : 1'b1))
                     ? stuck_q + 32'(!blocked_i) : '0;
      barked_q <= waits && fail_o != '0 && fail_code_o == ERROR_WATCHDOG;
    end
  end

  for (genvar e = 0; e < ELEMENTS; e++) begin : gen_element
    always_comb begin
      if (rst_ni) begin
        m_fails : assume (failed_i[e] || !failed_q[e]);
        if (failed_i[e]) m_failed : assume (ready_i[e] && idle_i[e] && full_i[e] == '1 && slots_busy_i[e] == '0 && regions_busy_i[e] == '0);
        m_stays : assume ((idle_i[e] || !idle_q[e]) && (ready_i[e] || !ready_q[e]));
        m_stays_free : assume ((slots_busy_i[e] & free_q[e]) == '0 && (regions_busy_i[e] & free_regions_q[e]) == '0);
        m_stays_full : assume ((full_q[e] & ~full_i[e]) == '0);
        if (watchdog_q == '0) begin
          if (quiet_q[e] == SOON) begin
            m_does : assume (ready_i[e] && idle_i[e] && (slots_busy_i[e] & owed_slots_q[e]) == '0);
            m_does_regions : assume ((regions_busy_i[e] & owed_regions_q[e]) == '0);
            m_fills : assume ((owed_full_q[e] & ~full_i[e]) == '0);
          end
          if (there_q && live[e]) begin
            if (op == OP_LOAD_INPUT) m_freed : assume ((slots_busy_i[e] & slots & ~owed_slots_q[e]) == '0);
            if (op == OP_LOAD_WEIGHTS) m_freed_regions : assume ((regions_busy_i[e] & inst_q[35:34] & ~owed_regions_q[e]) == '0);
            if (op == OP_STORE && one && !runs_q) m_filled : assume (full_i[e][inst_q[0]] || owed_full_q[e][inst_q[0]]);
          end
        end
        if (claim_o[e]) begin
          a_free : assert ((slots_busy_i[e] & claim_slots_o) == '0 && (regions_busy_i[e] & claim_regions_o) == '0);
          a_claims : assert (claim_slots_o == slots && mask[e] && !failed_i[e]);
        end
        if (bus_valid_o[e] && bus_kind_o == BUS_INPUT) a_claimed : assert (claimed_q[e][bus_address_o[7:4]] && !bus_address_o[8]);
        if (bus_valid_o[e] && bus_kind_o == BUS_WEIGHTS) a_weights : assert (bus_address_o < 9'(WEIGHT_WORDS));
        if (issue_o[e]) a_room : assert (ready_i[e] && mask[e]);
        if (context_o[e]) a_idle : assert (idle_i[e] && mask[e] && !failed_i[e]);
        if (store_read_o[e]) a_full : assert (full_i[e][store_slot_o] && mask[e] && one);
      end
    end
  end
  always_comb begin
    if (rst_ni) begin
      m_watchdog : assume (watchdog_i == watchdog_q && watchdog_q < 32'h8000_0000);
      if (watchdog_q == '0 && out_q == SOON) m_leaves : assume (room_i && empty_i);

      a_fails_once : assert ((fail_o & failed_i) == '0);
      a_begins_once : assert (!begins || (there_q && !runs_q));
      a_all_at_once : assert (issue_o == '0 || issue_o == mask);
      a_store_ends : assert (store_done_o == '0 || (store_done_o == store_read_o && done));
      // A begun instruction: a word in each clock, and an end.
      if (runs_q) begin
        a_moves : assert (op != OP_STORE || store_read_o != '0);
        a_ends : assert (done == (run_q + 9'd1 == length_q));
      end
      // Nothing waits for ever.
      if (watchdog_q == '0) a_soon : assert (age_q <= SOON + 3'(ELEMENTS));
      else a_watched : assert (stuck_q <= watchdog_q);
      if (barked_q && !begins) begin
        a_behind : assert (waits && (fail_o != '0 || ((op == OP_STORE || op == OP_END) && !(room_i && empty_i))));
      end
`ifdef INDUCTION
      assert (runs_q == (state_q != 2'd0));
      assert (!runs_q || there_q);
      assert (runs_q || run_q == '0);
      if (runs_q) begin
        assert (10'(run_q) + 10'(left_q) + 10'd1 == 10'(length_q));
        assert (state_q == ((op == OP_END) ? 2'd3 : (op == OP_STORE) ? 2'd2 : 2'd1));
        assert (state_q != 2'd1 || op == OP_LOAD_INPUT || op == OP_LOAD_WEIGHTS || op == OP_CONTEXT);
      end
      if (state_q == 2'd2) assert (one && mask == (ELEMENTS'(1) << element_q) && (full_i[element_q][inst_q[0]]));
      if (state_q == 2'd1 && op == OP_LOAD_WEIGHTS) assert (10'(place_q) + 10'(left_q) < 10'(WEIGHT_WORDS));
      if (state_q == 2'd1 && op == OP_LOAD_INPUT) begin
        // The words that are left reach to the end of the last slot.
        assert (place_q[8:4] < 5'(6'(inst_q[3:0]) + 6'(inst_q[8:4])) && place_q[8:4] >= 5'(inst_q[3:0]));
        assert (10'(place_q[3:0]) < (10'd4 << digits_q[element_q]));
        assert (10'(left_q) + 10'd1 + 10'(place_q[3:0]) == 10'(6'(inst_q[3:0]) + 6'(inst_q[8:4]) - 6'(place_q[8:4])) << (3'd2 + 3'(digits_q[element_q])));
        assert (6'(inst_q[3:0]) + 6'(inst_q[8:4]) <= 6'd16);
        for (int unsigned e = 0; e < ELEMENTS; e++) assert (!to_q[e] || claimed_q[e] == slots);
      end
      assert (digits_q[element_q] != 2'd3 && digits_q == known_q);
      for (int unsigned e = 0; e < ELEMENTS; e++) begin
        assert (digits_q[e] != 2'd3);
        assert (failed_q[e] == failed_i[e] || failed_i[e]);
        assert (quiet_q[e] <= SOON && (!waits || age_q > SOON || quiet_q[e] >= age_q) && (age_q <= SOON || quiet_q[e] == SOON));
      end
      assert (out_q <= SOON && (!waits || age_q > SOON || out_q >= age_q) && (age_q <= SOON || out_q == SOON));
      if (watchdog_q == '0) assert (age_q <= SOON || 3'($countones(failed_i)) + SOON >= age_q);
      if (watchdog_q != '0) assert (stuck_q <= still_q && still_q <= watchdog_q);
`endif
    end
  end
endmodule

bind ph_controller f_ph_controller #(.ELEMENTS(ELEMENTS)) u_proof (.state_q(state_q), .*);
