// AES's S-box on PLACES bytes at once, at most 64, given and returned in bit planes (FIPS 197, section 5.1.1); see hg_pkg.
module hg_aes_sbox
  import hg_pkg::*;
#(
  parameter int unsigned PLACES = 16
) (
  input  logic [7:0][PLACES-1:0] d_i,
  output logic [7:0][PLACES-1:0] q_o
);
  state_t wide, result;
  for (genvar j = 0; j < 8; j++) begin : gen_plane
    assign wide[j] = WIDE'(d_i[j]);
    assign q_o[j]  = result[j][PLACES-1:0];
  end
  assign result = substitute_second(substitute_first(wide));
endmodule
