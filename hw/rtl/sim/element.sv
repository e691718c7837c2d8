// An element for the simulated chips: the same ports as ph_element's, behind which the library clocks a ph_element that was
// compiled once for all of them. Right only since what an element gives comes of registers alone.
module ph_element
  import ph_pkg::*;
(
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             context_i,
  input  logic [1:0]       digits_i,
  input  logic [1:0]       width_i,
  input  logic             bus_valid_i,
  input  logic [1:0]       bus_kind_i,
  input  logic [8:0]       bus_address_i,
  input  logic             bus_last_i,
  input  logic [DIGIT-1:0] bus_word_i,
  input  logic [15:0]      claim_slots_i,
  input  logic [1:0]       claim_regions_i,
  input  logic             fail_i,
  input  logic [7:0]       fail_code_i,
  input  logic             valid_i,
  output logic             ready_o,
  input  logic [47:0]      instruction_i,
  output logic [15:0]      slots_busy_o,
  output logic [1:0]       regions_busy_o,
  output logic [1:0]       full_o,
  output logic             idle_o,
  output logic             progress_o,
  output logic             failed_o,
  output logic [7:0]       error_o,
  output logic [23:0]      error_at_o,
  input  logic             store_read_i,
  input  logic             store_slot_i,
  input  logic [3:0]       store_index_i,
  output logic [DIGIT-1:0] store_word_o,
  input  logic             store_done_i,
  output logic [511:0]     counters_o
);
  // A clock of it: what is small goes in and comes back in one number.
  import "DPI-C" function chandle phepu_element_new();
  import "DPI-C" function longint unsigned phepu_element_clock(
    input chandle element, input longint unsigned inputs, input longint unsigned instruction, input bit [255:0] word,
    output bit [255:0] stored, output bit [511:0] counters
  );
  import "DPI-C" function void phepu_element_free(input chandle element);
  chandle element;
  initial element = phepu_element_new();
  final phepu_element_free(element);

  bit [255:0] stored;
  bit [511:0] counters;
  always_ff @(posedge clk_i) begin
    {ready_o, slots_busy_o, regions_busy_o, full_o, idle_o, progress_o, failed_o, error_o, error_at_o} <= 56'(phepu_element_clock(
      element, 64'({rst_ni, context_i, digits_i, width_i, bus_valid_i, bus_kind_i, bus_address_i, bus_last_i, claim_slots_i,
      claim_regions_i, fail_i, fail_code_i, valid_i, store_read_i, store_slot_i, store_index_i, store_done_i}), 64'(instruction_i),
      bus_word_i, stored, counters));
    store_word_o <= stored;
    counters_o   <= counters;
  end
endmodule
