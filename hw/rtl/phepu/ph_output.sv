// What goes out of the chip: the controller says which word is next, and here it is picked up and queued for the link.
module ph_output
  import ph_pkg::*;
#(
  parameter int unsigned ELEMENTS = 16,
  parameter int unsigned DEPTH    = 512,
  localparam int unsigned ELEMENT = (ELEMENTS > 1) ? $clog2(ELEMENTS) : 1
) (
  input  logic               clk_i,
  input  logic               rst_ni,
  // A word: what an element gives a clock later if `stored_i`, or zeros if that failed; otherwise `word_i`.
  input  logic               push_i,
  input  logic               stored_i,
  input  logic               zero_i,
  input  logic [ELEMENT-1:0] element_i,
  input  logic [DIGIT-1:0]   word_i,
  input  logic [DIGIT-1:0]   stores_i[ELEMENTS],
  // There is room for a whole packet; nothing is left here.
  output logic               room_o,
  output logic               empty_o,
  output logic               valid_o,
  input  logic               ready_i,
  output logic [DIGIT-1:0]   word_o
);
  localparam int unsigned COUNT  = $clog2(DEPTH + 1);
  localparam int unsigned PACKET = (2 * ELEMENTS > DIGITS) ? 2 * ELEMENTS + 1 : DIGITS + 1;
  logic push_q, stored_q, zero_q;
  logic [ELEMENT-1:0] element_q;
  logic [DIGIT-1:0] word_q, word;
  logic [COUNT-1:0] count;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) push_q <= 1'b0;
    else push_q <= push_i;
  end
  always_ff @(posedge clk_i) begin
    if (push_i) begin
      stored_q  <= stored_i;
      zero_q    <= zero_i;
      element_q <= element_i;
      if (!stored_i) word_q <= word_i;
    end
  end
  // Held still where nothing is pushed, so that a simulator has nothing to do.
  always_comb begin
    word = word_q;
    if (push_q && stored_q) word = zero_q ? '0 : stores_i[element_q];
  end
  // The word that may be on its way, too, has room.
  assign room_o  = count < COUNT'(DEPTH - PACKET);
  assign empty_o = count == '0 && !push_q;
  bc_fifo #(.WIDTH(DIGIT), .DEPTH(DEPTH)) u_fifo (
    .clk_i, .rst_ni, .valid_i(push_q), .ready_o(), .data_i(word), .valid_o, .ready_i, .data_o(word_o), .count_o(count)
  );
endmodule
