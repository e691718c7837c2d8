// DDR memory as SIFO's board shows it (2019, sections 3.1.3 and 3.4.1): two ports of 512-bit words, four labels each; an
// access takes LATENCY clocks, about 180 ns, and ends with `complete`. A port does one at a time and knows no bursts.
module ddr_model #(
  parameter int unsigned WORDS = 1 << 18,
  parameter int unsigned LABEL = 128,
  localparam int unsigned INDEX = $clog2(WORDS)
) (
  input  logic                         clk_i,
  input  logic                         rst_ni,
  input  logic [15:0]                  latency_i,
  input  logic [1:0]                   valid_i,
  input  logic [1:0]                   write_i,
  input  logic [1:0][INDEX-1:0]        word_i,
  input  logic [1:0][3:0]              mask_i,
  input  logic [1:0][4*LABEL-1:0]      data_i,
  output logic [1:0]                   complete_o,
  output logic [1:0][4*LABEL-1:0]      data_o,
  // The host's DMA, at no cost in time here: a label in, a label out.
  input  logic                         poke_i,
  input  logic [INDEX+1:0]             poke_place_i,
  input  logic [LABEL-1:0]             poke_label_i,
  output logic [LABEL-1:0]             peek_label_o
);
  logic [4*LABEL-1:0] memory_q[WORDS];
  logic [1:0][15:0] waited_q;

  always_comb begin
    for (int unsigned p = 0; p < 2; p++) begin
      complete_o[p] = valid_i[p] && waited_q[p] + 16'd1 >= latency_i;
      data_o[p]     = memory_q[word_i[p]];
    end
  end
  assign peek_label_o = memory_q[poke_place_i[INDEX+1:2]][LABEL*poke_place_i[1:0]+:LABEL];

  always_ff @(posedge clk_i) begin
    for (int unsigned p = 0; p < 2; p++) begin
      for (int unsigned l = 0; l < 4; l++) begin
        if (complete_o[p] && write_i[p] && mask_i[p][l]) begin
          memory_q[word_i[p]][LABEL*l+:LABEL] <= data_i[p][LABEL*l+:LABEL];
        end
      end
    end
    if (poke_i) memory_q[poke_place_i[INDEX+1:2]][LABEL*poke_place_i[1:0]+:LABEL] <= poke_label_i;
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) waited_q <= '0;
    else for (int unsigned p = 0; p < 2; p++) waited_q[p] <= valid_i[p] && !complete_o[p] ? waited_q[p] + 1'b1 : '0;
  end
endmodule
