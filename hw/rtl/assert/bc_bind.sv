// Where the handshake is asserted. One file, so that the RTL itself carries no assertion.
bind bc_fifo bc_handshake_assert #(.WIDTH(WIDTH)) u_assert_in (
  .clk_i, .rst_ni, .valid_i(valid_i), .ready_i(ready_o), .data_i(data_i)
);
bind bc_fifo bc_handshake_assert #(.WIDTH(WIDTH)) u_assert_out (
  .clk_i, .rst_ni, .valid_i(valid_o), .ready_i(ready_i), .data_i(data_o)
);
