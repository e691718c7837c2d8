// The data controller (SIFO 2019, sections 3.1.3 and 3.4.2, figure 5): fetches both operands of a gate from block RAM or
// DDR memory, hands them to a cell, and writes results back. One gate is fetched at a time, and a DDR port does one access
// at a time: its request stays until `complete`. Operand a comes over port 0, b over port 1; results go out over whichever
// is free.
//
// An address is a place and, as its last bit, the memory: 1 is block RAM. A DDR word has 512 bits, four labels.
module sf_controller #(
  parameter int unsigned LABEL  = 80,
  parameter int unsigned ADDRESS = 21,
  parameter int unsigned PLACES = 1 << 16,
  localparam int unsigned INDEX = $clog2(PLACES),
  localparam int unsigned WORD  = ADDRESS - 3
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  // Gates: {out, b, a}.
  input  logic                  valid_i,
  output logic                  ready_o,
  input  logic                  and_i,
  input  logic [3*ADDRESS-1:0]  gate_i,
  // To the cells.
  output logic                  cell_valid_o,
  input  logic                  cell_ready_i,
  output logic                  cell_and_o,
  output logic [LABEL-1:0]      cell_a_o,
  output logic [LABEL-1:0]      cell_b_o,
  output logic [ADDRESS-1:0]    cell_out_o,
  // From them: XORs at 0, ANDs at 1.
  input  logic [1:0]            result_valid_i,
  output logic [1:0]            result_ready_o,
  input  logic [1:0][LABEL-1:0] result_label_i,
  input  logic [1:0][ADDRESS-1:0] result_out_i,
  // Block RAM.
  output logic                  ram_write_o,
  output logic [INDEX-1:0]      ram_write_place_o,
  output logic [LABEL-1:0]      ram_data_o,
  output logic [1:0]            ram_read_o,
  output logic [1:0][INDEX-1:0] ram_read_place_o,
  input  logic [1:0][LABEL-1:0] ram_data_i,
  // Two DDR ports.
  output logic [1:0]            ddr_valid_o,
  output logic [1:0]            ddr_write_o,
  output logic [1:0][WORD-1:0]  ddr_word_o,
  output logic [1:0][3:0]       ddr_mask_o,
  output logic [1:0][511:0]     ddr_data_o,
  input  logic [1:0]            ddr_complete_i,
  input  logic [1:0][511:0]     ddr_data_i,
  output logic [1:0]            retired_o,
  // An address past the block RAM's end.
  output logic                  outside_o
);
  typedef logic [ADDRESS-1:0] address_t;
  function automatic logic in_ram(address_t address);
    return address[0];
  endfunction
  function automatic logic [INDEX-1:0] ram_place(address_t address);
    return address[INDEX:1];
  endfunction
  function automatic logic past(address_t address);
    return address[0] && 32'(address >> 1) >= PLACES;
  endfunction

  // The gate that is being fetched.
  logic fetch_q, and_q, new_q, taken, handed;
  address_t [2:0] gate, gate_q;
  logic [1:0] have_q;
  logic [1:0][LABEL-1:0] operand_q;
  // Writes that a DDR port is busy with.
  logic [1:0] writing_q, reading, free;
  address_t [1:0] target_q;
  logic [1:0][LABEL-1:0] label_q;

  assign gate          = gate_i;
  assign outside_o     = valid_i && (past(gate[0]) || past(gate[1]) || past(gate[2]));
  assign cell_valid_o  = fetch_q && have_q == 2'b11;
  assign handed        = cell_valid_o && cell_ready_i;
  assign ready_o       = (!fetch_q || handed) && !outside_o;
  assign taken         = valid_i && ready_o;
  assign cell_and_o    = and_q;
  assign cell_a_o      = operand_q[0];
  assign cell_b_o      = operand_q[1];
  assign cell_out_o    = gate_q[2];
  always_comb begin
    for (int unsigned i = 0; i < 2; i++) begin
      ram_read_o[i]       = taken && in_ram(gate[i]);
      ram_read_place_o[i] = ram_place(gate[i]);
      reading[i]          = fetch_q && !have_q[i] && !in_ram(gate_q[i]);
      free[i]             = !writing_q[i] && !reading[i];
      ddr_valid_o[i]      = writing_q[i] || reading[i];
      ddr_write_o[i]      = writing_q[i];
      ddr_word_o[i]       = writing_q[i] ? target_q[i][ADDRESS-1:3] : gate_q[i][ADDRESS-1:3];
      ddr_mask_o[i]       = 4'b1 << target_q[i][2:1];
      ddr_data_o[i]       = {4{128'(label_q[i])}};
    end
  end

  // ANDs before XORs, where both wait.
  logic source, any, to_ram, to_ddr, port;
  address_t out;
  assign source            = result_valid_i[1];
  assign any               = result_valid_i != '0;
  assign out               = result_out_i[source];
  assign to_ram            = any && in_ram(out);
  assign port              = !free[0];
  assign to_ddr            = any && !in_ram(out) && free != '0;
  assign result_ready_o[1] = source && (to_ram || to_ddr);
  assign result_ready_o[0] = !source && (to_ram || to_ddr);
  assign ram_write_o       = to_ram;
  assign ram_write_place_o = ram_place(out);
  assign ram_data_o        = result_label_i[source];
  assign retired_o         = 2'(to_ram) + 2'(writing_q[0] && ddr_complete_i[0]) + 2'(writing_q[1] && ddr_complete_i[1]);

  always_ff @(posedge clk_i) begin
    if (taken) begin
      gate_q <= gate;
      and_q  <= and_i;
    end
    for (int unsigned i = 0; i < 2; i++) begin
      if (new_q && in_ram(gate_q[i])) operand_q[i] <= ram_data_i[i];
      else if (reading[i] && !writing_q[i]) operand_q[i] <= ddr_data_i[i][128*gate_q[i][2:1]+:LABEL];
    end
    if (to_ddr) begin
      target_q[port] <= out;
      label_q[port]  <= result_label_i[source];
    end
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      fetch_q   <= 1'b0;
      new_q     <= 1'b0;
      have_q    <= '0;
      writing_q <= '0;
    end else begin
      if (taken) fetch_q <= 1'b1;
      else if (handed) fetch_q <= 1'b0;
      new_q <= taken;
      for (int unsigned i = 0; i < 2; i++) begin
        if (taken) have_q[i] <= 1'b0;
        else if (new_q && in_ram(gate_q[i])) have_q[i] <= 1'b1;
        else if (reading[i] && !writing_q[i] && ddr_complete_i[i]) have_q[i] <= 1'b1;
        if (to_ddr && port == (i == 1)) writing_q[i] <= 1'b1;
        else if (ddr_complete_i[i]) writing_q[i] <= 1'b0;
      end
    end
  end
endmodule
