// A round-robin arbiter of requests with their payloads onto one ready/valid port. After a grant the others come
// first; a request that is being offered stays until it is taken.
module bc_arbiter #(
  parameter int unsigned REQUESTS = 3,
  parameter int unsigned WIDTH    = 8
) (
  input  logic                           clk_i,
  input  logic                           rst_ni,
  input  logic [REQUESTS-1:0]            valid_i,
  output logic [REQUESTS-1:0]            ready_o,
  input  logic [REQUESTS-1:0][WIDTH-1:0] data_i,
  output logic                           valid_o,
  input  logic                           ready_i,
  output logic [WIDTH-1:0]               data_o,
  output logic [REQUESTS-1:0]            grant_o
);
  // Those after the last one served come first.
  logic [REQUESTS-1:0] after_q, held_q, first, any, choice;
  assign first   = valid_i & after_q;
  assign any     = (first != '0) ? first : valid_i;
  assign choice  = (held_q != '0) ? held_q : any & (~any + 1'b1);
  assign grant_o = choice & valid_i;
  assign valid_o = grant_o != '0;
  assign ready_o = ready_i ? grant_o : '0;
  always_comb begin
    data_o = '0;
    for (int unsigned i = 0; i < REQUESTS; i++) data_o |= grant_o[i] ? data_i[i] : '0;
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      after_q <= '1;
      held_q  <= '0;
    end else if (valid_o) begin
      // All above the one that is served.
      if (ready_i) after_q <= ~((grant_o - 1'b1) | grant_o);
      held_q <= ready_i ? '0 : grant_o;
    end
  end
endmodule
