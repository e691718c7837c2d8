// A loop nest that walks OPERANDS addresses at once: loop 0 is the outermost, each adds its stride to each address.
//
// `start_i` puts every loop at its beginning, `advance_i` steps. For each operand: `first_o`, all loops that don't move
// it are at their beginning, so the address is visited for the first time; `final_o`, they are at their end;
// `run_first_o` and `run_last_o`, the same for the innermost loops alone, up to the first that moves it: the
// visits between the two follow each other without a pause. After a step behind `run_last_o` the address differs.
// Bounds are 1 or more. A loop with bound 1 moves nothing.
module bc_loop_nest #(
  parameter int unsigned LOOPS    = 4,
  parameter int unsigned OPERANDS = 3,
  parameter int unsigned BOUND    = 16,
  parameter int unsigned ADDRESS  = 24
) (
  input  logic                                         clk_i,
  input  logic                                         rst_ni,
  input  logic                                         start_i,
  input  logic                                         advance_i,
  input  logic [LOOPS-1:0][BOUND-1:0]                  bounds_i,
  input  logic [LOOPS-1:0][OPERANDS-1:0][ADDRESS-1:0]  strides_i,
  output logic [OPERANDS-1:0][ADDRESS-1:0]             address_o,
  output logic                                         last_o,
  output logic [OPERANDS-1:0]                          first_o,
  output logic [OPERANDS-1:0]                          final_o,
  output logic [OPERANDS-1:0]                          run_first_o,
  output logic [OPERANDS-1:0]                          run_last_o
);
  logic [LOOPS-1:0][BOUND-1:0] index_q;
  // Where each loop's current turn began: the address is the innermost one's.
  logic [LOOPS-1:0][OPERANDS-1:0][ADDRESS-1:0] base_q;
  logic [LOOPS-1:0] begins, ends;
  logic [OPERANDS-1:0][LOOPS-1:0] still; // loops that don't move the operand
  logic [OPERANDS-1:0] inner;            // while walking outward: none has moved it yet

  always_comb begin
    for (int unsigned l = 0; l < LOOPS; l++) begin
      begins[l] = index_q[l] == '0;
      ends[l]   = index_q[l] + 1'b1 == bounds_i[l];
      for (int unsigned x = 0; x < OPERANDS; x++) begin
        still[x][l] = strides_i[l][x] == '0 || bounds_i[l] == BOUND'(1);
      end
    end
    for (int unsigned x = 0; x < OPERANDS; x++) begin
      first_o[x]     = &(~still[x] | begins);
      final_o[x]     = &(~still[x] | ends);
      run_first_o[x] = 1'b1;
      run_last_o[x]  = 1'b1;
      inner[x]       = 1'b1;
      for (int l = LOOPS - 1; l >= 0; l--) begin
        inner[x] &= still[x][l];
        run_first_o[x] &= !inner[x] || begins[l];
        run_last_o[x]  &= !inner[x] || ends[l];
      end
    end
  end
  assign last_o    = &ends;
  assign address_o = base_q[LOOPS-1];

  // The innermost loop that is not at its end steps; those inside it begin again.
  logic [LOOPS-1:0] steps;
  logic [OPERANDS-1:0][ADDRESS-1:0] next;
  always_comb begin
    steps = '0;
    next  = '0;
    for (int l = LOOPS - 1; l >= 0; l--) begin
      steps[l] = !ends[l] && steps == '0;
      for (int unsigned x = 0; x < OPERANDS; x++) begin
        if (steps[l]) next[x] = base_q[l][x] + strides_i[l][x];
      end
    end
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      index_q <= '0;
      base_q  <= '0;
    end else if (start_i) begin
      index_q <= '0;
      base_q  <= '0;
    end else if (advance_i) begin
      for (int unsigned l = 0; l < LOOPS; l++) begin
        if (steps[l]) index_q[l] <= index_q[l] + 1'b1;
        else if (steps < (LOOPS'(1) << l)) index_q[l] <= '0; // inside the loop that steps (or all are at their ends)
        if (steps <= (LOOPS'(1) << l)) base_q[l] <= next;
      end
    end
  end
endmodule
