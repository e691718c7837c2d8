// What a ready/valid pair promises: what is offered stays as it is until it is taken.
//
// Immediate assertions on the values of the clock before, and no sequences: simulator and prover both read them. A proof
// of one side may ASSUME what the other side promises.
module bc_handshake_assert #(
  parameter int unsigned WIDTH  = 1,
  parameter bit          ASSUME = 1'b0
) (
  input logic             clk_i,
  input logic             rst_ni,
  input logic             valid_i,
  input logic             ready_i,
  input logic [WIDTH-1:0] data_i
);
  logic waiting_q;
  logic [WIDTH-1:0] data_q;
  initial waiting_q = 1'b0; // before the first reset nothing was promised
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) waiting_q <= 1'b0;
    else waiting_q <= valid_i && !ready_i;
  end
  always_ff @(posedge clk_i) data_q <= data_i;
  if (ASSUME) begin : gen_assume
    always_comb begin
      if (rst_ni && waiting_q) begin
        m_valid_stays : assume (valid_i);
        m_data_stays : assume (data_i == data_q);
      end
    end
  end else begin : gen_assert
    always_ff @(posedge clk_i) begin
      if (rst_ni && waiting_q) begin
        a_valid_stays : assert (valid_i);
        a_data_stays : assert (data_i == data_q);
      end
    end
  end
endmodule
