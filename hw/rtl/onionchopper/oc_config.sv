// The host's registers: the descriptor, the moduli, start, and what there is to read afterwards. 64-bit words.
//
// Writes while a computation runs are ignored. The map stands in hw/doc/onionchopper.md.
module oc_config
  import oc_pkg::*;
#(
  parameter int unsigned LANES      = 2,
  parameter int unsigned HALF_BEATS = 1 << 16,
  parameter int unsigned SRAM_ROWS  = 128,
  parameter int unsigned RF_ROWS    = 16,
  parameter int unsigned COUNTERS   = 1
) (
  input  logic                       clk_i,
  input  logic                       rst_ni,
  input  logic                       write_i,
  input  logic [8:0]                 address_i,
  input  logic [63:0]                data_i,
  output logic [63:0]                data_o,
  output config_t                    config_o,
  output modulus_t [MODULI-1:0]      moduli_o,
  output logic                       start_o,  // one clock
  output logic                       clear_o,  // one clock: forget the error
  output error_e                     shape_o,  // what is wrong with the descriptor as it stands
  input  logic                       busy_i,
  input  logic                       done_i,
  input  error_e                     error_i,
  input  logic [COUNTERS-1:0][63:0]  counters_i
);
  logic write;
  assign write = write_i && !busy_i;
  oc_moduli u_moduli (
    .clk_i, .rst_ni, .write_i(write && address_i[8:6] == 3'b100), .index_i(address_i[5:2]), .part_i(address_i[1:0]), .data_i, .moduli_o
  );

  config_t config_q;
  assign config_o = config_q;
  // A loop is four registers: its bound and its strides for A, B and C.
  logic [2:0] loop;
  logic [1:0] field;
  assign loop  = address_i[4:2];
  assign field = address_i[1:0];
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      config_q <= '0;
      start_o  <= 1'b0;
      clear_o  <= 1'b0;
    end else begin
      start_o <= write && address_i == 9'h000 && data_i[0];
      clear_o <= write && address_i == 9'h000 && data_i[1];
      if (write && !address_i[8]) begin
        unique case (address_i[7:5])
          3'd0: unique case (address_i[4:0])
            5'h01: config_q.resident   <= data_i[0];
            5'h02: config_q.tiles      <= data_i[31:0];
            5'h03: config_q.tile_beats <= data_i[DRAM_ADDRESS-1:0];
            5'h04: config_q.b_base     <= data_i[DRAM_ADDRESS-1:0];
            5'h05: {config_q.reduce, config_q.groups, config_q.inner_log2} <= data_i[9:0];
            5'h06: config_q.inner_stride[A] <= data_i[DRAM_ADDRESS-1:0];
            5'h07: config_q.inner_stride[B] <= data_i[DRAM_ADDRESS-1:0];
            5'h08: config_q.inner_stride[C] <= data_i[DRAM_ADDRESS-1:0];
            5'h09: config_q.group_stride[A] <= data_i[DRAM_ADDRESS-1:0];
            5'h0a: config_q.group_stride[B] <= data_i[DRAM_ADDRESS-1:0];
            5'h0b: config_q.group_stride[C] <= data_i[DRAM_ADDRESS-1:0];
            5'h0c: config_q.sram_rows <= data_i[OPERANDS*SRAM_ADDRESS-1:0]; // A lowest
            5'h0d: config_q.one_beat  <= data_i[OPERANDS-1:0];
            5'h0e: {config_q.c_banks, config_q.rf_rows} <= data_i[15:0];
            5'h0f: config_q.moduli       <= data_i[4:0];
            5'h10: config_q.mac_period   <= data_i;
            5'h11: config_q.drain_period <= data_i;
            5'h12: config_q.watchdog     <= data_i[31:0];
            default: ;
          endcase
          3'd1: if (32'(loop) < DRAM_LOOPS) begin
            if (field == 2'd0) config_q.dram_bounds[loop] <= data_i[BOUND-1:0];
            else config_q.dram_strides[loop][field-2'd1] <= data_i[DRAM_ADDRESS-1:0];
          end
          3'd2: if (32'(loop) < SRAM_LOOPS) begin
            if (field == 2'd0) config_q.sram_bounds[loop[1:0]] <= data_i[BOUND-1:0];
            else config_q.sram_strides[loop[1:0]][field-2'd1] <= data_i[SRAM_ADDRESS-1:0];
          end
          3'd3: if (32'(loop) < RF_LOOPS) begin
            if (field == 2'd0) config_q.rf_bounds[loop[1:0]] <= data_i[BOUND-1:0];
            else config_q.rf_strides[loop[1:0]][field-2'd1] <= data_i[RF_ADDRESS-1:0];
          end
          default: ;
        endcase
      end
    end
  end

  // The descriptor against what this build has.
  logic [15:0] sram_rows, rf_rows;
  logic zero_bound, bad_modulus;
  assign sram_rows = (16'(config_q.sram_rows[A]) + 16'(config_q.sram_rows[B]) + 16'(config_q.sram_rows[C])) << 1;
  assign rf_rows   = (16'(config_q.rf_rows[A]) << 1) + (16'(config_q.rf_rows[B]) << 1) +
    16'(config_q.rf_rows[C]) * 16'(config_q.c_banks);
  always_comb begin
    zero_bound = 1'b0;
    for (int unsigned i = 0; i < DRAM_LOOPS; i++) zero_bound |= config_q.dram_bounds[i] == '0;
    for (int unsigned i = 0; i < SRAM_LOOPS; i++) zero_bound |= config_q.sram_bounds[i] == '0;
    for (int unsigned i = 0; i < RF_LOOPS; i++) zero_bound |= config_q.rf_bounds[i] == '0;
    for (int unsigned x = 0; x < OPERANDS; x++) begin
      zero_bound |= config_q.sram_rows[x] == '0 || config_q.rf_rows[x] == '0;
    end
    bad_modulus = config_q.moduli == '0 || config_q.moduli > 5'(MODULI);
    for (int unsigned i = 0; i < MODULI; i++) begin
      bad_modulus |= 32'(config_q.moduli) > i && (moduli_o[i].n < 65'd2 ||
        (moduli_o[i].n[64] && moduli_o[i].n[63:0] != '0));
    end
    shape_o = OK;
    if (zero_bound || config_q.tiles == '0 || config_q.tile_beats == '0 || config_q.c_banks == '0 ||
        32'(config_q.tile_beats) > HALF_BEATS || config_q.groups == '0 || config_q.inner_log2 > 4'd4 ||
        (32'(config_q.groups) << config_q.inner_log2) != LANES || config_q.mac_period == '0 ||
        config_q.drain_period == '0 || config_q.watchdog == '0 || (config_q.resident && config_q.tiles > 32'd2)) begin
      shape_o = BAD_SHAPE;
    end else if (bad_modulus) begin
      shape_o = BAD_MODULUS;
    end else if (32'(sram_rows) > SRAM_ROWS) begin
      shape_o = SRAM_OVERRUN;
    end else if (32'(rf_rows) > RF_ROWS) begin
      shape_o = RF_OVERRUN;
    end
  end

  // 0x000: state; from 0x080: counters.
  always_comb begin
    data_o = '0;
    if (address_i == '0) data_o = {56'b0, error_i, 2'b0, done_i, busy_i};
    for (int unsigned i = 0; i < COUNTERS; i++) begin
      if (address_i == 9'h080 + 9'(i)) data_o = counters_i[i];
    end
  end
endmodule
