// What the modules of PH-EPU share: sizes, addresses of ciphertexts, instructions, errors.
// Source: PH-EPU 2023, Fig. 15.4.2 to 15.4.4; instructions and addresses are ours (hw/doc/phepu.md).
package ph_pkg;
  localparam int unsigned DIGIT  = 256; // bits of a digit, of the bus and of a word of every buffer
  localparam int unsigned DIGITS = 16;  // of the longest ciphertext, 4096 bits

  // Ciphertext addresses in an element.
  localparam logic [5:0] INPUT   = 6'd0;  // 16 slots of the input buffer
  localparam logic [5:0] TERM    = 6'd16; // 8 terms of partial sums
  localparam logic [5:0] OUTPUT  = 6'd24; // 2 slots of the output buffer
  localparam logic [5:0] SQUARED = 6'd32; // R^2 mod m
  localparam logic [5:0] ONE     = 6'd33; // R mod m
  localparam logic [5:0] LITERAL = 6'd34; // the number 1
  localparam logic [5:0] MODULUS = 6'd35; // m
  localparam logic [5:0] POWER   = 6'd36; // the power of two that an inverse needs; inside of an element only

  localparam int unsigned INPUT_SLOTS  = 16;
  localparam int unsigned TERMS        = 8;
  localparam int unsigned WEIGHT_WORDS = 288;

  typedef enum logic [3:0] {
    OP_END          = 4'd0,
    OP_LOAD_INPUT   = 4'd1,
    OP_LOAD_WEIGHTS = 4'd2,
    OP_STORE        = 4'd3,
    OP_CONTEXT      = 4'd4,
    OP_FREE         = 4'd8,
    OP_CLEAR        = 4'd9,
    OP_ACCUMULATE   = 4'd10,
    OP_ALIGN        = 4'd11,
    OP_INVERT       = 4'd12,
    OP_REDUCE       = 4'd13,
    OP_BASIC        = 4'd14,
    OP_NOP          = 4'd15
  } opcode_e;

  typedef enum logic [2:0] {
    BASIC_MULTIPLY = 3'd0,
    BASIC_SQUARE   = 3'd1,
    BASIC_POWER    = 3'd2,
    BASIC_INVERT   = 3'd3
  } basic_e;

  // What an element's instructions are made of.
  typedef enum logic [1:0] {
    STEP_MULTIPLY = 2'd0,
    STEP_COPY     = 2'd1,
    STEP_INVERT   = 2'd2
  } step_e;

  typedef enum logic [1:0] {
    BUS_INPUT   = 2'd0,
    BUS_WEIGHTS = 2'd1,
    BUS_CONTEXT = 2'd2
  } bus_e;

  localparam logic [7:0] ERROR_NONE        = 8'd0;
  localparam logic [7:0] ERROR_EVEN        = 8'd1; // the modulus is even
  localparam logic [7:0] ERROR_NOT_REDUCED = 8'd2; // an input is not below the modulus
  localparam logic [7:0] ERROR_NO_INVERSE  = 8'd3;
  localparam logic [7:0] ERROR_RANGE       = 8'd4; // out of a buffer
  localparam logic [7:0] ERROR_UNKNOWN     = 8'd5; // no such instruction
  localparam logic [7:0] ERROR_WATCHDOG    = 8'd6;
  localparam logic [7:0] ERROR_NO_CONTEXT  = 8'd7;
  localparam logic [7:0] ERROR_LINK        = 8'd8; // a packet out of its buffer

  // Digits of a ciphertext by the two bits of CONTEXT.
  function automatic logic [4:0] digits_of(logic [1:0] code);
    return 5'd4 << code;
  endfunction

  // Clocks from one multiplication's start to the next one's, which may need its result.
  localparam int unsigned MULTIPLY_CLOCKS_4  = 49;
  localparam int unsigned MULTIPLY_CLOCKS_8  = 89;
  localparam int unsigned MULTIPLY_CLOCKS_16 = 206;
endpackage
