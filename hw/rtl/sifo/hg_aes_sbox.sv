// AES's S-box on BYTES bytes at once, given and returned in bit planes (FIPS 197, section 5.1.1); with REGISTER it takes a
// clock, whose register halves it.
//
// The inverse is taken in the tower GF(((2^2)^2)^2), where it costs a few multiplications in GF(2^4) (Satoh et al. 2001;
// Canright 2005 for normal bases). Every level has a normal basis {t^q, t} of trace 1:
//   GF(2^2) over GF(2): t = 0xbc; GF(2^4) over GF(2^2): t = 0x5c; GF(2^8) over GF(2^4): t = 0xfe, as bytes of AES.
// Bit k of a byte in the tower is the coefficient of the product, over the levels, of t^q where k's bit of that level is 1
// and t where it is 0. Of the 128 such towers it is one whose two matrices have the fewest ones.
module hg_aes_sbox #(
  parameter int unsigned BYTES    = 16,
  parameter bit          REGISTER = 1'b0
) (
  input  logic                  clk_i,
  input  logic [7:0][BYTES-1:0] d_i,
  output logic [7:0][BYTES-1:0] q_o
);
  typedef logic [1:0][BYTES-1:0] gf4_t;
  typedef logic [3:0][BYTES-1:0] gf16_t;

  // Row r of a matrix says which bits are added to give bit r. The last row stands first.
  localparam logic [7:0][7:0] INTO = {8'h01, 8'h9b, 8'h4f, 8'h61, 8'h71, 8'he7, 8'he1, 8'h63};
  localparam logic [7:0][7:0] OUT  = {8'h41, 8'h44, 8'h28, 8'h45, 8'h4f, 8'he9, 8'h13, 8'h1a}; // and the affine map
  localparam logic [7:0] CONSTANT  = 8'h63;

  function automatic gf4_t multiply4(gf4_t a, gf4_t b);
    logic [BYTES-1:0] both;
    both = (a[1] ^ a[0]) & (b[1] ^ b[0]);
    return {both ^ (a[1] & b[1]), both ^ (a[0] & b[0])};
  endfunction

  // Times the norm of GF(2^4)'s t.
  function automatic gf4_t scale4(gf4_t a);
    return {a[1] ^ a[0], a[1]};
  endfunction

  // The square, which is the inverse too.
  function automatic gf4_t square4(gf4_t a);
    return {a[0], a[1]};
  endfunction

  function automatic gf16_t multiply16(gf16_t a, gf16_t b);
    gf4_t both;
    both = scale4(multiply4(a[3:2] ^ a[1:0], b[3:2] ^ b[1:0]));
    return {both ^ multiply4(a[3:2], b[3:2]), both ^ multiply4(a[1:0], b[1:0])};
  endfunction

  function automatic gf16_t invert16(gf16_t a);
    gf4_t norm;
    norm = square4(scale4(square4(a[3:2] ^ a[1:0])) ^ multiply4(a[3:2], a[1:0]));
    return {multiply4(a[1:0], norm), multiply4(a[3:2], norm)};
  endfunction

  // The square, times the norm of GF(2^8)'s t.
  function automatic gf16_t square_scale16(gf16_t a);
    return {a[2] ^ a[0], a[3] ^ a[1], a[1], a[1] ^ a[0]};
  endfunction

  // With x = high * t^16 + low * t: x^17 is in GF(2^4), and 1/x = x^16 / x^17.
  logic [7:0][BYTES-1:0] into, inverse;
  gf16_t high, low, divisor, high_q, low_q, divisor_q;
  always_comb begin
    for (int unsigned r = 0; r < 8; r++) begin
      into[r] = '0;
      for (int unsigned c = 0; c < 8; c++) into[r] ^= INTO[r][c] ? d_i[c] : '0;
    end
  end
  assign {high, low} = into;
  assign divisor     = invert16(square_scale16(high ^ low) ^ multiply16(high, low));
  if (REGISTER) begin : gen_register
    always_ff @(posedge clk_i) begin
      high_q    <= high;
      low_q     <= low;
      divisor_q <= divisor;
    end
  end else begin : gen_wires
    assign high_q    = high;
    assign low_q     = low;
    assign divisor_q = divisor;
  end
  assign inverse = {multiply16(low_q, divisor_q), multiply16(high_q, divisor_q)};
  always_comb begin
    for (int unsigned r = 0; r < 8; r++) begin
      q_o[r] = {BYTES{CONSTANT[r]}};
      for (int unsigned c = 0; c < 8; c++) q_o[r] ^= OUT[r][c] ? inverse[c] : '0;
    end
  end
endmodule
