// An element's memories for ciphertexts (input, terms, output, constants), and the check that what comes in is below the modulus.
//
// A place (see ph_pkg) is one ciphertext, 16 words apart from the next at every size. Each memory has a port to write and one to
// read: the bus writes inputs and constants; the units write terms and outputs, and read everything, one word a clock; STORE
// reads an output that the units leave alone, for it is full.
//
// Source: PH-EPU 2023, Fig. 15.4.2 (input buffer of 8 KB, output buffer of 1 KB, look-up table of partial-sum terms); the table's
// 4 KB and the constants' 1.5 KB are ours.
module ph_ciphertexts
  import ph_pkg::*;
(
  input  logic             clk_i,
  input  logic             rst_ni,
  // Units: a word is there the clock after it was asked for. `power_i`: POWER is 2 to the `power_i`.
  input  logic             read_i,
  input  logic [5:0]       read_place_i,
  input  logic [3:0]       read_index_i,
  input  logic [11:0]      power_i,
  output logic [DIGIT-1:0] read_word_o,
  input  logic             write_i,
  input  logic [5:0]       write_place_i,
  input  logic [3:0]       write_index_i,
  input  logic [DIGIT-1:0] write_word_i,
  // Bus: a word of an input or of one of three constants. While it brings one the modulus can't be read.
  input  logic             bus_valid_i,
  input  logic [5:0]       bus_place_i,
  input  logic [3:0]       bus_index_i,
  input  logic             bus_last_i,    // its highest digit
  input  logic [DIGIT-1:0] bus_word_i,
  output logic             not_reduced_o, // a clock after a highest digit: that number is not below the modulus
  input  logic             store_read_i,
  input  logic             store_slot_i,
  input  logic [3:0]       store_index_i,
  output logic [DIGIT-1:0] store_word_o   // a clock later
);
  function automatic logic among(logic [5:0] place, logic [5:0] first, logic [5:0] places);
    return place >= first && place < first + places;
  endfunction

  // Input buffer.
  logic [DIGIT-1:0] input_word;
  ph_buffer #(.WORDS(256)) u_inputs (
    .clk_i, .write_i(bus_valid_i && among(bus_place_i, INPUT, 6'd16)), .write_address_i({bus_place_i[3:0], bus_index_i}),
    .write_word_i(bus_word_i), .read_i(read_i && among(read_place_i, INPUT, 6'd16)),
    .read_address_i({read_place_i[3:0], read_index_i}), .read_word_o(input_word)
  );

  // Terms of partial sums.
  logic [DIGIT-1:0] term_word;
  ph_buffer #(.WORDS(128)) u_terms (
    .clk_i, .write_i(write_i && among(write_place_i, TERM, 6'd8)), .write_address_i({write_place_i[2:0], write_index_i}),
    .write_word_i, .read_i(read_i && among(read_place_i, TERM, 6'd8)), .read_address_i({read_place_i[2:0], read_index_i}),
    .read_word_o(term_word)
  );

  // Output buffer: two banks, so that one is stored while the other is written.
  logic [DIGIT-1:0] output_word[2];
  for (genvar s = 0; s < 2; s++) begin : gen_output
    logic store;
    assign store = store_read_i && store_slot_i == 1'(s);
    ph_buffer #(.WORDS(16)) u_output (
      .clk_i, .write_i(write_i && write_place_i == OUTPUT + 6'(s)), .write_address_i(write_index_i), .write_word_i,
      .read_i(store || (read_i && read_place_i == OUTPUT + 6'(s))), .read_address_i(store ? store_index_i : read_index_i),
      .read_word_o(output_word[s])
    );
  end
  logic store_slot_q;
  always_ff @(posedge clk_i) if (store_read_i) store_slot_q <= store_slot_i;
  assign store_word_o = output_word[store_slot_q];

  // Constants.
  logic [DIGIT-1:0] constant_word;
  ph_buffer #(.WORDS(32)) u_constants (
    .clk_i, .write_i(bus_valid_i && among(bus_place_i, SQUARED, 6'd2)), .write_address_i({bus_place_i[0], bus_index_i}),
    .write_word_i(bus_word_i), .read_i(read_i && among(read_place_i, SQUARED, 6'd2)),
    .read_address_i({read_place_i[0], read_index_i}), .read_word_o(constant_word)
  );
  logic [DIGIT-1:0] modulus_word;
  ph_buffer #(.WORDS(16)) u_modulus (
    .clk_i, .write_i(bus_valid_i && bus_place_i == MODULUS), .write_address_i(bus_index_i), .write_word_i(bus_word_i),
    .read_i(bus_valid_i || (read_i && read_place_i == MODULUS)), .read_address_i(bus_valid_i ? bus_index_i : read_index_i),
    .read_word_o(modulus_word)
  );

  // What was read.
  logic read_q;
  logic [5:0] place_q;
  logic [3:0] index_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) read_q <= 1'b0;
    else read_q <= read_i;
  end
  always_ff @(posedge clk_i) begin
    if (read_i) begin
      place_q <= read_place_i;
      index_q <= read_index_i;
    end
  end
  always_comb begin
    read_word_o = '0;
    if (read_q) begin
      if (among(place_q, INPUT, 6'd16)) read_word_o = input_word;
      else if (among(place_q, TERM, 6'd8)) read_word_o = term_word;
      else begin
        unique case (place_q)
          OUTPUT, OUTPUT + 6'd1: read_word_o = output_word[place_q[0]];
          SQUARED, ONE:          read_word_o = constant_word;
          MODULUS:               read_word_o = modulus_word;
          LITERAL:               read_word_o[0] = index_q == '0;
          default:               read_word_o[power_i[7:0]] = index_q == power_i[11:8];
        endcase
      end
    end
  end

  // Is it below the modulus? Digit by digit, with the borrow of their difference.
  logic check_q, first_q, last_q, borrow_q, borrow;
  logic [DIGIT-1:0] given_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) check_q <= 1'b0;
    else check_q <= bus_valid_i && bus_place_i != MODULUS;
  end
  always_ff @(posedge clk_i) begin
    if (bus_valid_i) begin
      given_q <= bus_word_i;
      first_q <= bus_index_i == '0;
      last_q  <= bus_last_i;
    end
    if (check_q) borrow_q <= borrow;
  end
  always_comb begin
    borrow = 1'b0;
    if (check_q) borrow = given_q < modulus_word || (borrow_q && !first_q && given_q == modulus_word);
  end
  assign not_reduced_o = check_q && last_q && !borrow;
endmodule
