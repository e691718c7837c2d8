// What the modules of half gates share: AES's state in bit planes, and how many clocks things take.
//
// A *plane* holds one bit of every byte: bit 4 * row + column of plane j is bit j of the state's byte row + 4 * column
// (FIPS 197, section 3.4). The same logic then works on all bytes as on words of 16 bits, and on several blocks as on
// longer words; in gates it is the same, in simulation it takes an operation for what would take one a byte.
package hg_pkg;
  localparam int unsigned BLOCK  = 128; // bits of a block, a key and a label
  localparam int unsigned BYTES  = 16;
  localparam int unsigned ROUNDS = 10;
  localparam int unsigned KEYS   = (ROUNDS + 1) * BLOCK; // bits of all round keys

  typedef logic [7:0][BYTES-1:0] planes_t;

  // Bits 7:0 of a block are its byte 0.
  function automatic planes_t to_planes(logic [BLOCK-1:0] block);
    // verilator no_inline_task
    for (int unsigned i = 0; i < BYTES; i++) begin
      for (int unsigned j = 0; j < 8; j++) to_planes[j][i] = block[8 * (i / 4 + 4 * (i % 4)) + j];
    end
  endfunction

  function automatic logic [BLOCK-1:0] from_planes(planes_t planes);
    // verilator no_inline_task
    for (int unsigned i = 0; i < BYTES; i++) begin
      for (int unsigned j = 0; j < 8; j++) from_planes[8 * (i / 4 + 4 * (i % 4)) + j] = planes[j][i];
    end
  endfunction

  // Clocks from an input to its output.
  localparam int unsigned ROUND_LATENCY = 2;
  localparam int unsigned AES_LATENCY   = 1 + ROUNDS * ROUND_LATENCY;
  localparam int unsigned CELL_LATENCY  = 2 * AES_LATENCY + 2;

  // AES's steps, on as many blocks as fit 64 bits. Functions, so that a simulator compiles each once for all pipes.
  localparam int unsigned BLOCKS_MAX = 4;
  localparam int unsigned WIDE       = BLOCKS_MAX * BYTES;
  typedef logic [WIDE-1:0] plane_t;
  typedef plane_t [7:0] state_t;
  // A byte halfway through the S-box: what is inverted, and the inverse of its norm.
  typedef struct packed {
    plane_t [7:0] tower;
    plane_t [3:0] divisor;
  } halfway_t;

  // The S-box's inverse is taken in the tower GF(((2^2)^2)^2), where it costs a few multiplications in GF(2^4) (Satoh et al.
  // 2001; Canright 2005 for normal bases). Every level has a normal basis {t^q, t} of trace 1:
  //   GF(2^2) over GF(2): t = 0xbc; GF(2^4) over GF(2^2): t = 0x5c; GF(2^8) over GF(2^4): t = 0xfe, as bytes of AES.
  // Bit k of a byte in the tower is the coefficient of the product, over the levels, of t^q where k's bit of that level is
  // 1 and t where it is 0. Of the 128 such towers it is one whose two matrices have the fewest ones.
  // Row r of a matrix says which bits are added to give bit r. The last row stands first.
  localparam logic [7:0][7:0] INTO_TOWER = {8'h01, 8'h9b, 8'h4f, 8'h61, 8'h71, 8'he7, 8'he1, 8'h63};
  localparam logic [7:0][7:0] FROM_TOWER = {8'h41, 8'h44, 8'h28, 8'h45, 8'h4f, 8'he9, 8'h13, 8'h1a}; // and the affine map
  localparam logic [7:0] CONSTANT = 8'h63;

  function automatic void multiply4(input plane_t a1, a0, b1, b0, output plane_t q1, q0);
    plane_t both;
    both = (a1 ^ a0) & (b1 ^ b0);
    q1 = both ^ (a1 & b1);
    q0 = both ^ (a0 & b0);
  endfunction

  function automatic void multiply16(input plane_t a3, a2, a1, a0, b3, b2, b1, b0, output plane_t q3, q2, q1, q0);
    plane_t s1, s0, h1, h0, l1, l0, t;
    multiply4(a3 ^ a1, a2 ^ a0, b3 ^ b1, b2 ^ b0, s1, s0);
    multiply4(a3, a2, b3, b2, h1, h0);
    multiply4(a1, a0, b1, b0, l1, l0);
    // The product of the sums, times the norm of GF(2^4)'s t, goes to both.
    t  = s1 ^ s0;
    q3 = h1 ^ t;
    q2 = h0 ^ s1;
    q1 = l1 ^ t;
    q0 = l0 ^ s1;
  endfunction

  function automatic void invert16(input plane_t a3, a2, a1, a0, output plane_t q3, q2, q1, q0);
    plane_t p1, p0, s1, s0, n1, n0;
    // The norm: a's halves multiplied, and their sum squared, times the norm of t. Its inverse is its square, its bits swapped.
    multiply4(a3, a2, a1, a0, p1, p0);
    s1 = a3 ^ a1;
    s0 = a2 ^ a0;
    n0 = p1 ^ (s1 ^ s0);
    n1 = p0 ^ s0;
    multiply4(a1, a0, n1, n0, q3, q2);
    multiply4(a3, a2, n1, n0, q1, q0);
  endfunction

  // With x = high * t^16 + low * t: x^17 is in GF(2^4), and 1/x = x^16 / x^17.
  function automatic halfway_t substitute_first(state_t bytes);
    // verilator no_inline_task
    plane_t x, h3, h2, h1, h0, l3, l2, l1, l0, p3, p2, p1, p0, s3, s2, s1, s0, d3, d2, d1, d0;
    state_t tower;
    for (int unsigned r = 0; r < 8; r++) begin
      x = '0;
      for (int unsigned c = 0; c < 8; c++) x ^= INTO_TOWER[r][c] ? bytes[c] : '0;
      tower[r] = x;
    end
    {h3, h2, h1, h0, l3, l2, l1, l0} = tower;
    multiply16(h3, h2, h1, h0, l3, l2, l1, l0, p3, p2, p1, p0);
    {s3, s2, s1, s0} = {h3 ^ l3, h2 ^ l2, h1 ^ l1, h0 ^ l0};
    // The sum's square times the norm of GF(2^8)'s t.
    invert16(p3 ^ (s2 ^ s0), p2 ^ (s3 ^ s1), p1 ^ s1, p0 ^ (s1 ^ s0), d3, d2, d1, d0);
    return {tower, d3, d2, d1, d0};
  endfunction

  function automatic state_t substitute_second(halfway_t halfway);
    // verilator no_inline_task
    plane_t x, h3, h2, h1, h0, l3, l2, l1, l0, d3, d2, d1, d0, p3, p2, p1, p0, q3, q2, q1, q0;
    state_t inverse;
    {h3, h2, h1, h0, l3, l2, l1, l0, d3, d2, d1, d0} = halfway;
    multiply16(l3, l2, l1, l0, d3, d2, d1, d0, p3, p2, p1, p0);
    multiply16(h3, h2, h1, h0, d3, d2, d1, d0, q3, q2, q1, q0);
    inverse = {p3, p2, p1, p0, q3, q2, q1, q0};
    for (int unsigned r = 0; r < 8; r++) begin
      x = {WIDE{CONSTANT[r]}};
      for (int unsigned c = 0; c < 8; c++) x ^= FROM_TOWER[r][c] ? inverse[c] : '0;
      substitute_second[r] = x;
    end
  endfunction

  // Byte (row, column) is bit 4 * row + column of a block's 16. Row r turns by r columns: its columns that stay inside it
  // move down by r bits, the others up by 4 - r.
  function automatic plane_t shift_rows(plane_t x);
    return (x & {BLOCKS_MAX{16'h000f}}) | ((x >> 1) & {BLOCKS_MAX{16'h0070}}) | ((x << 3) & {BLOCKS_MAX{16'h0080}}) |
      ((x >> 2) & {BLOCKS_MAX{16'h0300}}) | ((x << 2) & {BLOCKS_MAX{16'h0c00}}) |
      ((x >> 3) & {BLOCKS_MAX{16'h1000}}) | ((x << 1) & {BLOCKS_MAX{16'he000}});
  endfunction

  // In the place of each row the one that comes one or two rows behind it.
  function automatic plane_t row_behind(plane_t x);
    return ((x >> 4) & {BLOCKS_MAX{16'h0fff}}) | ((x << 12) & {BLOCKS_MAX{16'hf000}});
  endfunction
  function automatic plane_t two_rows_behind(plane_t x);
    return ((x >> 8) & {BLOCKS_MAX{16'h00ff}}) | ((x << 8) & {BLOCKS_MAX{16'hff00}});
  endfunction

  // ShiftRows, MixColumns, AddRoundKey; the last round has no MixColumns.
  function automatic state_t add_last(state_t bytes, planes_t key);
    // verilator no_inline_task
    for (int unsigned j = 0; j < 8; j++) add_last[j] = shift_rows(bytes[j]) ^ {BLOCKS_MAX{key[j]}};
  endfunction
  function automatic state_t mix_and_add(state_t bytes, planes_t key);
    // verilator no_inline_task
    state_t behind, pairs;
    plane_t x;
    // A column's byte becomes 2 a + 3 b + c + d with the bytes behind it: 2 (a + b) + b + (c + d).
    for (int unsigned j = 0; j < 8; j++) begin
      x = shift_rows(bytes[j]);
      behind[j] = row_behind(x);
      pairs[j] = x ^ behind[j];
    end
    for (int unsigned j = 0; j < 8; j++) begin
      x = behind[j] ^ two_rows_behind(pairs[j]);
      if (j > 0) x ^= pairs[j-1];
      if (j == 0 || j == 1 || j == 3 || j == 4) x ^= pairs[7]; // x^8 = x^4 + x^3 + x + 1
      mix_and_add[j] = x ^ {BLOCKS_MAX{key[j]}};
    end
  endfunction
endpackage
