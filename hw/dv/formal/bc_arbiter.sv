// bc_arbiter: at most one is served, an offer stays, and nobody is passed more often than there are others. By induction.
//
// Requests are assumed to stay until they are taken (bc_handshake_assert, assumed).
module f_bc_arbiter #(
  parameter int unsigned REQUESTS = 3,
  parameter int unsigned WIDTH    = 8
) (
  input logic                           clk_i,
  input logic                           rst_ni,
  input logic [REQUESTS-1:0]            valid_i,
  input logic [REQUESTS-1:0]            ready_o,
  input logic [REQUESTS-1:0][WIDTH-1:0] data_i,
  input logic                           valid_o,
  input logic                           ready_i,
  input logic [WIDTH-1:0]               data_o,
  input logic [REQUESTS-1:0]            grant_o,
  input logic [REQUESTS-1:0]            after_q,
  input logic [REQUESTS-1:0]            held_q
);
  f_reset u_reset (.clk_i, .rst_ni);

  // How often others were served since a request that waits was there.
  int unsigned passed_q[REQUESTS];
  logic [REQUESTS-1:0] waits_q;
  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < REQUESTS; i++) begin
      waits_q[i] <= rst_ni && valid_i[i] && !ready_o[i];
      if (!rst_ni || !valid_i[i] || ready_o[i]) passed_q[i] <= 0;
      else if (ready_o != '0) passed_q[i] <= passed_q[i] + 1;
    end
  end

  // How many come before a request: those between it and the one that was served last.
  int unsigned next, ahead[REQUESTS];
  always_comb begin
    next = 0;
    for (int unsigned i = 0; i < REQUESTS; i++) if (!after_q[i]) next = i + 1;
    for (int unsigned i = 0; i < REQUESTS; i++) ahead[i] = (i + REQUESTS - next % REQUESTS) % REQUESTS;
  end

  for (genvar i = 0; i < REQUESTS; i++) begin : gen_request
    always_comb begin
      if (rst_ni) begin
        if (grant_o[i]) a_data : assert (data_o == data_i[i]);
        a_no_starvation : assert (passed_q[i] < REQUESTS);
      end
    end
  end
  always_comb begin
    if (rst_ni) begin
      a_one : assert ((grant_o & (grant_o - 1'b1)) == '0);
      a_asked : assert ((grant_o & ~valid_i) == '0);
      a_works : assert (valid_o == (valid_i != '0) && valid_o == (grant_o != '0));
      a_ready : assert (ready_o == (ready_i ? grant_o : '0));
      for (int unsigned i = 0; i < REQUESTS; i++) begin
`ifdef INDUCTION // the order, and that whoever is held came before those that were passed since
        assert ((after_q >> i & 1) == 32'(i >= next));
        assert (passed_q[i] == 0 || (waits_q[i] && passed_q[i] + ahead[i] < REQUESTS));
        for (int unsigned j = 0; j < REQUESTS; j++) begin
          if (held_q[j]) assert (passed_q[i] == 0 || ahead[j] <= ahead[i]);
        end
`endif
      end
`ifdef INDUCTION
      a_held : assert ((held_q & (held_q - 1'b1)) == '0 && (held_q & ~waits_q) == '0);
`endif
    end
  end
endmodule

bind bc_arbiter f_bc_arbiter #(.REQUESTS(REQUESTS), .WIDTH(WIDTH)) u_proof (.*);
bind bc_arbiter bc_handshake_assert #(.WIDTH(WIDTH), .ASSUME(1'b1)) u_assume_in[REQUESTS-1:0] (
  .clk_i, .rst_ni, .valid_i(valid_i), .ready_i(ready_o), .data_i(data_i)
);
bind bc_arbiter bc_handshake_assert #(.WIDTH(REQUESTS + WIDTH)) u_assert_out (
  .clk_i, .rst_ni, .valid_i(valid_o), .ready_i(ready_i), .data_i({grant_o, data_o})
);
