// What the host sets before it sends gates: offset, key, whether gates are garbled or evaluated, and the gates' numbers.
// Register: 0 and 1 halves of the offset R, low first; 2 and 3 halves of AES's key, whose upper half begins its expansion;
// 4 number of lane 0's next AND; 5 how far a lane's numbers lie behind those of the lane before; 6 bit 0: evaluate.
module hg_registers
  import hg_pkg::*;
#(
  parameter int unsigned LANES = 4
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,
  // Writes, while no gate is under way.
  input  logic                    write_i,
  input  logic [3:0]              register_i,
  input  logic [63:0]             data_i,
  output logic [BLOCK-1:0]        offset_o,
  output logic                    evaluate_o,
  output planes_t [ROUNDS:0]      round_keys_o,
  output logic                    ready_o,       // the key is expanded; at first there is none
  // The number of each lane's next AND, and that one began.
  output logic [LANES-1:0][63:0]  numbers_o,
  input  logic                    next_i
);
  logic [63:0] low_q, number_q, stride_q;
  logic [LANES-1:0][63:0] behind_q;
  hg_aes_keys u_keys (
    .clk_i, .rst_ni, .start_i(write_i && register_i == 4'd3), .key_i({data_i, low_q}), .done_o(ready_o), .round_keys_o
  );
  always_comb begin
    for (int unsigned l = 0; l < LANES; l++) numbers_o[l] = number_q + behind_q[l];
  end
  always_ff @(posedge clk_i) begin
    for (int unsigned l = 0; l < LANES; l++) behind_q[l] <= 64'(l) * stride_q;
    if (next_i) number_q <= number_q + 1'b1;
    if (write_i) begin
      unique case (register_i)
        4'd0: offset_o[63:0] <= data_i;
        4'd1: offset_o[127:64] <= data_i;
        4'd2: low_q <= data_i;
        4'd4: number_q <= data_i;
        4'd5: stride_q <= data_i;
        4'd6: evaluate_o <= data_i[0];
        default: ;
      endcase
    end
  end
endmodule
