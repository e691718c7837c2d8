// The source of the netlists mixed.*.v: vectors in both directions, escaped names, constants, comparison, addition.
module mixed (
    input        unused,
    input  [7:0] a,
    input  [0:7] b,
    input        s,
    output [8:0] sum,
    output [0:3] sel,
    output       \odd[name] ,
    output       eq,
    output [3:0] k
);
  assign sum = a + b;
  assign sel = s ? a[7:4] : b[2:5];
  assign \odd[name] = ^a | ~&b;
  assign eq = a == b;
  assign k = {s, 2'b01, a[0] & ~b[7]};
endmodule
