// What comes into the chip: packets of 256-bit words, for the instruction FIFO or one of the global buffers.
//
// A packet is a header and `count` words. Header: 7:0 kind, 31:8 address, 55:32 count, 87:56 after. A packet waits until the
// controller has executed `after` instructions: so its words come into a buffer when what lay there is no longer needed.
// A packet that doesn't fit into its buffer, or that has no known kind, is dropped with all of its words.
module ph_link
  import ph_pkg::*;
#(
  parameter int unsigned INPUTS  = 1 << 16, // words of the global buffers
  parameter int unsigned WEIGHTS = 1 << 14
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             valid_i,
  output logic             ready_o,
  input  logic [DIGIT-1:0] word_i,
  input  logic [31:0]      executed_i,
  // The watchdog lets the packet through that waits for instructions that never come.
  input  logic             give_up_i,
  // The word belongs there, in this clock.
  output logic             instruction_valid_o,
  input  logic             instruction_ready_i,
  output logic             write_inputs_o,
  output logic             write_weights_o,
  output logic [15:0]      write_address_o,
  output logic             waits_o, // for `after`
  output logic             error_o, // a pulse: a packet is dropped
  output logic             idle_o
);
  localparam logic [7:0] INSTRUCTIONS = 8'd1, INPUT_BUFFER = 8'd2, WEIGHT_BUFFER = 8'd3;
  typedef enum logic [1:0] {
    DROP,
    TO_INSTRUCTIONS,
    TO_INPUTS,
    TO_WEIGHTS
  } way_e;
  way_e way, way_q;
  logic [23:0] left_q;
  logic header, take;

  assign header = left_q == '0;
  always_comb begin
    logic [24:0] last;
    last = 25'(word_i[31:8]) + 25'(word_i[55:32]);
    way  = DROP;
    unique case (word_i[7:0])
      INSTRUCTIONS: way = TO_INSTRUCTIONS;
      INPUT_BUFFER: if (last <= 25'(INPUTS)) way = TO_INPUTS;
      WEIGHT_BUFFER: if (last <= 25'(WEIGHTS)) way = TO_WEIGHTS;
      default: ;
    endcase
  end

  assign waits_o             = valid_i && header && executed_i < word_i[87:56];
  assign instruction_valid_o = valid_i && !header && way_q == TO_INSTRUCTIONS;
  assign ready_o             = header ? !waits_o || give_up_i : way_q != TO_INSTRUCTIONS || instruction_ready_i;
  assign take                = valid_i && ready_o;
  assign write_inputs_o      = take && !header && way_q == TO_INPUTS;
  assign write_weights_o     = take && !header && way_q == TO_WEIGHTS;
  assign error_o             = take && header && way == DROP;
  assign idle_o              = header && !valid_i;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      left_q          <= '0;
      way_q           <= DROP;
      write_address_o <= '0;
    end else if (take) begin
      if (header) begin
        left_q          <= word_i[55:32];
        way_q           <= way;
        write_address_o <= word_i[23:8];
      end else begin
        left_q          <= left_q - 1'b1;
        write_address_o <= write_address_o + 1'b1;
      end
    end
  end
endmodule
