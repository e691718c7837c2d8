// What the modules of OnionChopper agree on.
package oc_pkg;
  // A modulus and its Barrett constant. n is 2 to 2^64; m is floor(2^128 / n), so below 2^128.
  // The thesis keeps 64 + 128 bits; 2^64 takes one more.
  typedef struct packed {
    logic [64:0]  n;
    logic [127:0] m;
  } modulus_t;

  // A beat is what DRAM moves in a clock, a row what SRAM and register file move: DDR5's four 32-bit words, and twice that
  // (thesis, section 4.3).
  localparam int unsigned BEAT = 128;
  localparam int unsigned ROW = 256;
  localparam int unsigned DRAM_ADDRESS = 28; // in beats: 4 GiB
  localparam int unsigned SRAM_ADDRESS = 8;  // in rows
  localparam int unsigned RF_ADDRESS = 8;    // in words
  localparam int unsigned BOUND = 16;        // of a loop

  localparam int unsigned OPERANDS = 3;
  localparam int unsigned A = 0;
  localparam int unsigned B = 1;
  localparam int unsigned C = 2;
  localparam int unsigned DRAM_LOOPS = 6;
  localparam int unsigned SRAM_LOOPS = 4;
  localparam int unsigned RF_LOOPS = 3;
  localparam int unsigned MODULI = 16;

  // What the host describes: a loop nest over three stores, outermost first.
  typedef struct packed {
    // The SSD's level: tiles of A and B behind each other, each filling a half of the DRAM from its beginning.
    logic                                              resident;   // the tiles are in the DRAM: don't load them
    logic [31:0]                                       tiles;
    logic [DRAM_ADDRESS-1:0]                           tile_beats;
    logic [DRAM_ADDRESS-1:0]                           b_base;     // of B in a tile; A begins it
    // The DRAM's level: one step is one tile of the SRAMs.
    logic [DRAM_LOOPS-1:0][BOUND-1:0]                              dram_bounds;
    logic [DRAM_LOOPS-1:0][OPERANDS-1:0][DRAM_ADDRESS-1:0]         dram_strides; // beats
    // Lanes: lane = group * 2^inner_log2 + inner. `reduce`: the inner ones sum to the same C.
    logic [3:0]                                        inner_log2;
    logic [4:0]                                        groups;
    logic                                              reduce;
    logic [OPERANDS-1:0][DRAM_ADDRESS-1:0]             inner_stride;             // beats
    logic [OPERANDS-1:0][DRAM_ADDRESS-1:0]             group_stride;
    // The SRAM's level: one step is one tile of the register files.
    logic [OPERANDS-1:0][SRAM_ADDRESS-1:0]             sram_rows;                // of a tile
    logic [OPERANDS-1:0]                               one_beat;                 // a row holds one beat, not two
    logic [SRAM_LOOPS-1:0][BOUND-1:0]                              sram_bounds;
    logic [SRAM_LOOPS-1:0][OPERANDS-1:0][SRAM_ADDRESS-1:0]         sram_strides; // rows
    // The register file's level: one step is one multiply-accumulate.
    logic [OPERANDS-1:0][3:0]                          rf_rows;                  // of a tile
    logic [3:0]                                        c_banks;                  // tiles of C in flight
    logic [RF_LOOPS-1:0][BOUND-1:0]                                rf_bounds;
    logic [RF_LOOPS-1:0][OPERANDS-1:0][RF_ADDRESS-1:0]             rf_strides;   // words
    // Moduli take turns: one lasts so many multiply-accumulates of a lane, and so many drained words.
    logic [4:0]                                        moduli;
    logic [63:0]                                       mac_period;
    logic [63:0]                                       drain_period;
    logic [31:0]                                       watchdog;                 // clocks without any progress
  } config_t;

  // Why a run ended.
  typedef enum logic [3:0] {
    OK            = 4'd0,
    BAD_SHAPE     = 4'd1, // lanes, halves, rows or banks that this build does not have; a bound of zero
    BAD_MODULUS   = 4'd2, // none, or below 2
    DRAM_OVERRUN  = 4'd3, // an address behind its region
    SRAM_OVERRUN  = 4'd4,
    RF_OVERRUN    = 4'd5,
    UNREDUCED     = 4'd6, // an operand was not below its modulus
    STUCK         = 4'd7  // nothing moved for as long as the watchdog waits
  } error_e;

  // A tile in the SRAMs, from the loader to the sequencer.
  typedef struct packed {
    logic [SRAM_ADDRESS-1:0] a_row;
    logic [SRAM_ADDRESS-1:0] b_row;
    logic [SRAM_ADDRESS-1:0] c_row;
    logic                    c_half;
    logic                    c_new;   // another C than the tile before: lanes start from what was loaded, or zero
    logic                    c_zero;  // nothing was summed to this C before
    logic                    c_ends;  // the next tile has another C
    logic                    c_final; // nothing will be summed to this C again
    logic [DRAM_ADDRESS-1:0] c_beat;  // where C lies in its region
    logic [31:0]             number;
  } tile_t;

  // A tile in the register files, from filling to issuing.
  typedef struct packed {
    logic [RF_ADDRESS-1:0]   a;       // first words
    logic [RF_ADDRESS-1:0]   b;
    logic [RF_ADDRESS-1:0]   c;
    logic                    a_bank;
    logic                    b_bank;
    logic [3:0]              c_bank;
    logic                    a_ends;  // the bank is free behind this tile
    logic                    b_ends;
    logic                    c_new;
    logic                    c_ends;
  } rf_tile_t;

  // Products that a pipelined accumulator adds before it reduces: a run has at most 2^GUARD - 1.
  localparam int unsigned GUARD = 8;

  function automatic int unsigned stages(int unsigned width, int unsigned bits);
    return (width + bits - 1) / bits;
  endfunction

  // Clocks of the modular multiplication, by full adders in a row between two registers; 0 is the thesis's stages:
  // product; four half products; their sum; q * n; p - q * n and correction.
  function automatic int unsigned mul_latency(int unsigned bits);
    if (bits == 0) return 5;
    return 2 * (stages(64, bits) + stages(128, bits)) // a * b, halves of p * m
      + 1 + stages(128, bits)                         // their sum
      + stages(64, bits) + stages(66, bits)           // q * n
      + 2 * stages(66, bits);                         // p - q * n, less n
  endfunction

  // Clocks from a product to the sum.
  function automatic int unsigned add_latency(int unsigned bits);
    if (bits == 0) return 1;
    return (1 + GUARD) * stages(64 + GUARD, bits);
  endfunction

  // Clocks from an input of the compute unit to its output; 6 for the thesis's.
  function automatic int unsigned latency(int unsigned bits);
    return mul_latency(bits) + add_latency(bits);
  endfunction
endpackage
