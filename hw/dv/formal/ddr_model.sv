// ddr_model: an access that is offered ends once, after its clocks, on either port whatever the other does; a read gives what was
// written last, and a write changes the labels of its mask and no other. By induction.
//
// Data is looked at in one label's place, any. Assumed: an access is offered until it ends; a latency that stays; the
// host's poke comes alone.
module f_ddr_model #(
  parameter int unsigned WORDS = 2,
  parameter int unsigned LABEL = 2,
  parameter int unsigned INDEX = 1
) (
  input logic                  clk_i,
  input logic                  rst_ni,
  input logic [15:0]           latency_i,
  input logic [1:0]            valid_i,
  input logic [1:0]            write_i,
  input logic [1:0][INDEX-1:0] word_i,
  input logic [1:0][3:0]       mask_i,
  input logic [1:0][4*LABEL-1:0]     data_i,
  input logic [1:0]            complete_o,
  input logic [1:0][4*LABEL-1:0]     data_o,
  input logic                  poke_i,
  input logic [INDEX+1:0]      poke_place_i,
  input logic [LABEL-1:0]          poke_label_i,
  input logic [LABEL-1:0]          peek_label_o,
  input logic [1:0][15:0]      waited_q,
  input logic [4*LABEL-1:0]          memory_q[WORDS]
);
  f_reset u_reset (.clk_i, .rst_ni);

  // Any, from the start on.
  logic [INDEX-1:0] word;
  logic [1:0] place;
  logic began_q, known_q;
  initial began_q = 1'b0;
  initial known_q = 1'b0;
  logic [15:0] latency_q;
  logic [LABEL-1:0] label_q; // what was written there last
  logic [1:0][15:0] age_q; // clocks that an access has been offered
  logic [1:0] writes;
  always_comb begin
    for (int unsigned p = 0; p < 2; p++) begin
      writes[p] = valid_i[p] && complete_o[p] && write_i[p] && word_i[p] == word && mask_i[p][place];
    end
  end
  always_ff @(posedge clk_i) begin
    {word, place} <= {word, place};
    began_q   <= 1'b1;
    latency_q <= latency_i;
    if (writes[0]) label_q <= data_i[0][LABEL*place+:LABEL];
    if (writes[1]) label_q <= data_i[1][LABEL*place+:LABEL];
    if (poke_i && poke_place_i == {word, place}) label_q <= poke_label_i;
    known_q <= known_q || writes != '0 || (poke_i && poke_place_i == {word, place});
    for (int unsigned p = 0; p < 2; p++) age_q[p] <= (!rst_ni || !valid_i[p] || complete_o[p]) ? '0 : age_q[p] + 1'b1;
  end

  always_comb begin
    if (began_q) m_latency_stays : assume (latency_i == latency_q);
    if (poke_i) m_alone : assume (valid_i == '0);
    if (!rst_ni) m_rests : assume (valid_i == '0);
    if (rst_ni) begin
      if (known_q && poke_place_i == {word, place}) a_peeks : assert (peek_label_o == label_q);
`ifdef INDUCTION
      if (known_q) assert (memory_q[word][LABEL*place+:LABEL] == label_q);
`endif
    end
  end
  for (genvar p = 0; p < 2; p++) begin : port
    always_comb begin
      if (rst_ni) begin
        // Once: at its last clock, which nothing but its own age decides.
        a_ends : assert (complete_o[p] == (valid_i[p] && (latency_i <= 16'd1 || age_q[p] == latency_i - 1'b1)));
        if (known_q && word_i[p] == word) a_reads : assert (data_o[p][LABEL*place+:LABEL] == label_q);
`ifdef INDUCTION
        assert (age_q[p] == waited_q[p]);
        assert (age_q[p] == '0 || age_q[p] < latency_i);
`endif
      end
    end
  end
endmodule

bind ddr_model f_ddr_model #(.WORDS(WORDS), .LABEL(LABEL), .INDEX(INDEX)) u_proof (.*);
bind ddr_model bc_handshake_assert #(.WIDTH(1 + INDEX + 4 + 4 * LABEL), .ASSUME(1'b1)) u_assume_0 (
  .clk_i, .rst_ni, .valid_i(valid_i[0]), .ready_i(complete_o[0]), .data_i({write_i[0], word_i[0], mask_i[0], data_i[0]})
);
bind ddr_model bc_handshake_assert #(.WIDTH(1 + INDEX + 4 + 4 * LABEL), .ASSUME(1'b1)) u_assume_1 (
  .clk_i, .rst_ni, .valid_i(valid_i[1]), .ready_i(complete_o[1]), .data_i({write_i[1], word_i[1], mask_i[1], data_i[1]})
);
