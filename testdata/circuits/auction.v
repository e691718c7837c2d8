// The highest of four bids and who made it; the first of equal ones.
module auction (
    input  [15:0] alice,
    input  [15:0] bob,
    input  [15:0] carol,
    input  [15:0] dave,
    output [15:0] price,
    output [1:0]  winner
);
  wire ab = bob > alice;
  wire cd = dave > carol;
  wire [15:0] left = ab ? bob : alice;
  wire [15:0] right = cd ? dave : carol;
  wire last = right > left;
  assign price = last ? right : left;
  assign winner = {last, last ? cd : ab};
endmodule
