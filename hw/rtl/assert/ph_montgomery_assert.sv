// What ph_montgomery does inside: no column is written twice in a clock, none after it was read and before it begins anew, and
// a multiplication takes 2 d^2 + d products, no more and no fewer. And what it asks of whoever uses it.
module ph_montgomery_assert (
  input logic       clk_i,
  input logic       rst_ni,
  input logic [4:0] digits_i,
  input logic       load_i,
  input logic       start_i,
  input logic       ready_i,
  input logic       busy_i,
  input logic [2:0] product_i, // each multiplier takes one
  input logic       last_i,    // the result's last column is read
  input logic [2:0] write_i,
  input logic [2:0] first_i,
  input logic [3:0] column_i[3],
  input logic       spill_i,
  input logic [3:0] spill_column_i,
  input logic       read_i,
  input logic [3:0] read_column_i
);
  logic [15:0] whole_q; // read, and not begun anew
  logic [9:0] products_q;
  logic [4:0] digits_q;
  logic reset_q; // before the first reset nothing is promised
  initial reset_q = 1'b0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      reset_q    <= 1'b1;
      whole_q    <= '1;
      products_q <= '0;
    end else if (reset_q) begin
      digits_q <= digits_i;
      if (busy_i) digits_stay: assert (digits_i == digits_q);
      if (start_i) begin
        started_when_ready: assert (ready_i);
        digits_known: assert (digits_i inside {5'd4, 5'd8, 5'd16});
      end
      if (load_i) loaded_when_idle: assert (!busy_i && !start_i);

      for (int a = 0; a < 3; a++) begin
        for (int b = 0; b < a; b++) begin
          if (write_i[a] && write_i[b]) own_column: assert (column_i[a] != column_i[b]);
        end
        if (write_i[a] && spill_i) own_column_spill: assert (column_i[a] != spill_column_i);
        if (write_i[a] && read_i) written_before_read: assert (column_i[a] != read_column_i);
        if (write_i[a] && first_i[a]) begun_once: assert (whole_q[column_i[a]]);
        if (write_i[a] && !first_i[a]) begun_before: assert (!whole_q[column_i[a]]);
      end
      if (spill_i) spill_begins: assert (whole_q[spill_column_i]);
      if (read_i) read_once: assert (!whole_q[read_column_i]);
      for (int a = 0; a < 3; a++) if (write_i[a] && first_i[a]) whole_q[column_i[a]] <= 1'b0;
      if (spill_i) whole_q[spill_column_i] <= 1'b0;
      if (read_i) whole_q[read_column_i] <= 1'b1;

      if (last_i) begin
        products: assert (products_q == 10'(2 * digits_i * digits_i + digits_i));
        all_whole: assert ((whole_q | 16'b1 << read_column_i) == '1);
        products_q <= '0;
      end else products_q <= products_q + 10'(product_i[0]) + 10'(product_i[1]) + 10'(product_i[2]);
    end
  end
endmodule
