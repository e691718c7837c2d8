// The compute unit alone as a library: one call runs many clocks, so that a test of millions of sums is one call.
#include <cstdint>

#include "Vunit.h"

extern "C" {

// Feeds `count` inputs, one a clock: a, b, c, n's low word, n's bit 64, m's low and high words, and flags (bit 0 valid,
// bit 1 refresh, bit 2 last), eight words each; then clocks until nothing is left. Sums go to `sums`, at most
// `most` of them. Returns how many there were; `*unreduced` counts clocks on which an operand was flagged, `*clocks` all.
uint64_t unit_run(const uint64_t *inputs, uint64_t count, uint64_t *sums, uint64_t most, uint64_t flush,
                  uint64_t *unreduced, uint64_t *clocks) {
  VerilatedContext context;
  Vunit top{&context, "unit"};
  uint64_t found = 0;
  *unreduced = 0;
  *clocks = 0;
  const auto tick = [&] {
    top.clk_i = 0;
    top.eval();
    top.clk_i = 1;
    top.eval();
    ++*clocks;
    if (top.rst_ni && top.unreduced_o) ++*unreduced;
    if (top.rst_ni && top.valid_o) {
      if (found < most) sums[found] = top.sum_o;
      ++found;
    }
  };
  top.rst_ni = 0;
  tick();
  top.rst_ni = 1;
  for (uint64_t i = 0; i < count + flush; ++i) {
    const bool live = i < count;
    const uint64_t *in = inputs + 8 * (live ? i : 0);
    top.valid_i = live && (in[7] & 1);
    top.refresh_i = in[7] >> 1 & 1;
    top.last_i = in[7] >> 2 & 1;
    top.a_i = in[0];
    top.b_i = in[1];
    top.c_i = in[2];
    // modulus_t: n above m.
    for (int w = 0; w < 4; ++w) top.modulus_i[w] = static_cast<uint32_t>(in[5 + w / 2] >> (32 * (w % 2)));
    top.modulus_i[4] = static_cast<uint32_t>(in[3]);
    top.modulus_i[5] = static_cast<uint32_t>(in[3] >> 32);
    top.modulus_i[6] = static_cast<uint32_t>(in[4] & 1);
    tick();
  }
  return found;
}

}  // extern "C"
