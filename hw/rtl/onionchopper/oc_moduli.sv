// The moduli register: n and m of each modulus of a computation (thesis, section 4.4, Figure 4-9).
module oc_moduli
  import oc_pkg::*;
(
  input  logic                      clk_i,
  input  logic                      rst_ni,
  input  logic                      write_i,
  input  logic [$clog2(MODULI)-1:0] index_i,
  input  logic [1:0]                part_i,  // 0: n's low 64 bits, 1: its bit 64, 2 and 3: m's halves
  input  logic [63:0]               data_i,
  output modulus_t [MODULI-1:0]     moduli_o
);
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      moduli_o <= '0;
    end else if (write_i) begin
      unique case (part_i)
        2'd0: moduli_o[index_i].n[63:0]   <= data_i;
        2'd1: moduli_o[index_i].n[64]     <= data_i[0];
        2'd2: moduli_o[index_i].m[63:0]   <= data_i;
        2'd3: moduli_o[index_i].m[127:64] <= data_i;
      endcase
    end
  end
endmodule
