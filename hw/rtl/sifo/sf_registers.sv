// What the host writes into registers of 32 bits, as commands: SIFO 2019, section 3.4.1 and figure 9. Three addresses of a
// gate take two registers (20 bits and a flag each) or, as before that optimisation, three.
//
//   0     header of a batch               3, 4, 5  addresses of a, b and the output (21 bits): a gate
//   1, 2  a gate: low 32, high 31 bits    8..11    the offset R      12, 13  the number of the first AND
module sf_registers #(
  parameter int unsigned LABEL = 80
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             valid_i,
  output logic             ready_o,
  input  logic [3:0]       address_i,
  input  logic [31:0]      data_i,
  output logic             valid_o,
  input  logic             ready_i,
  output logic             header_o,
  output logic [62:0]      command_o,
  output logic [LABEL-1:0] offset_o,
  output logic [63:0]      first_gate_o,
  output logic             renumber_o
);
  logic [31:0] low_q;
  logic [20:0] a_q, b_q;
  logic [127:0] offset_q;
  logic taken;

  assign header_o  = address_i == 4'd0;
  assign valid_o   = valid_i && (header_o || address_i == 4'd2 || address_i == 4'd5);
  assign command_o = header_o ? {31'b0, data_i} : address_i == 4'd2 ? {data_i[30:0], low_q} : {data_i[20:0], b_q, a_q};
  assign ready_o   = !valid_o || ready_i;
  assign taken     = valid_i && ready_o;
  assign offset_o  = offset_q[LABEL-1:0];

  always_ff @(posedge clk_i) begin
    if (taken) begin
      unique case (address_i)
        4'd1: low_q <= data_i;
        4'd3: a_q <= data_i[20:0];
        4'd4: b_q <= data_i[20:0];
        4'd8: offset_q[31:0] <= data_i;
        4'd9: offset_q[63:32] <= data_i;
        4'd10: offset_q[95:64] <= data_i;
        4'd11: offset_q[127:96] <= data_i;
        4'd12: first_gate_o[31:0] <= data_i;
        4'd13: first_gate_o[63:32] <= data_i;
        default: ;
      endcase
    end
  end
  // The counter of ANDs takes the number a clock after its upper half.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) renumber_o <= 1'b0;
    else renumber_o <= taken && address_i == 4'd13;
  end
endmodule
