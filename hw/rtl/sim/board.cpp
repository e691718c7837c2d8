// A board as a library: the C interface that accel-rtl opens. One library is one build of the chip.
#include <cstdint>
#include <memory>

#include "Vboard.h"
#ifdef BOARD_TRACE
#include "verilated_vcd_c.h"
#endif

namespace {

struct Board {
  VerilatedContext context;
  Vboard top{&context, "board"};
  uint64_t cycles = 0;

  // Inputs settle while the clock is low, and count at its rise.
  void low() {
    top.clk_i = 0;
    top.eval();
    dump(2 * cycles);
  }
  void high() {
    top.clk_i = 1;
    top.eval();
    dump(2 * cycles + 1);
    ++cycles;
  }
  void tick() {
    low();
    high();
  }

#ifdef BOARD_TRACE
  VerilatedVcdC vcd;
  void trace(const char *path) {
    context.traceEverOn(true);
    top.trace(&vcd, 99);
    vcd.open(path);
  }
  void dump(uint64_t time) {
    if (vcd.isOpen()) vcd.dump(time);
  }
#else
  void dump(uint64_t) {}
#endif
};

}  // namespace

extern "C" {

// Raised when a caller compiled for another interface would misread it.
uint32_t board_version() { return 1; }

void *board_new() {
  auto *board = new Board;
  board->top.rst_ni = 0;
  for (int i = 0; i < 3; ++i) board->tick();
  board->top.rst_ni = 1;
  board->tick();
  return board;
}

void board_free(void *handle) { delete static_cast<Board *>(handle); }

#ifdef BOARD_TRACE
// Writes every signal of every clock from now on to a file.
void board_trace(void *handle, const char *path) { static_cast<Board *>(handle)->trace(path); }
#endif

// Lanes, word, full adders in a row, latency, SRAM rows, register file rows, beats of half the DRAM, beats for sums.
void board_parameters(void *handle, uint32_t out[8]) {
  auto &top = static_cast<Board *>(handle)->top;
  top.eval();
  out[0] = top.lanes_o;
  out[1] = top.word_o;
  out[2] = top.bits_o;
  out[3] = top.latency_o;
  out[4] = top.sram_rows_o;
  out[5] = top.rf_rows_o;
  out[6] = top.half_beats_o;
  out[7] = top.c_beats_o;
}

void board_write(void *handle, uint32_t address, uint64_t data) {
  auto *board = static_cast<Board *>(handle);
  board->top.host_write_i = 1;
  board->top.host_address_i = address;
  board->top.host_data_i = data;
  board->tick();
  board->top.host_write_i = 0;
}

uint64_t board_read(void *handle, uint32_t address) {
  auto *board = static_cast<Board *>(handle);
  board->top.host_address_i = address;
  board->top.eval();
  return board->top.host_data_o;
}

// Puts a beat into the DRAM, at no cost in the chip's time.
void board_poke(void *handle, uint32_t address, uint64_t low, uint64_t high) {
  auto *board = static_cast<Board *>(handle);
  board->top.poke_i = 1;
  board->top.poke_address_i = address;
  board->top.poke_data_i[0] = static_cast<uint32_t>(low);
  board->top.poke_data_i[1] = static_cast<uint32_t>(low >> 32);
  board->top.poke_data_i[2] = static_cast<uint32_t>(high);
  board->top.poke_data_i[3] = static_cast<uint32_t>(high >> 32);
  board->tick();
  board->top.poke_i = 0;
}

// Clocks until the chip is idle again or `most` clocks are over, feeding `ssd_words` words of `ssd` from `*ssd_at` on and
// taking what comes out into `out`, 64-bit words, from `*out_at` on, as far as `out_words` reaches. Every `hold`th clock
// nothing is taken (0: always). Returns the clocks it ran.
uint64_t board_run(void *handle, uint32_t numerator, uint32_t denominator, const uint64_t *ssd, uint64_t ssd_words,
                   uint64_t *ssd_at, uint64_t *out, uint64_t out_words, uint64_t *out_at, uint32_t hold, uint64_t most) {
  auto *board = static_cast<Board *>(handle);
  auto &top = board->top;
  top.ssd_numerator_i = numerator;
  top.ssd_denominator_i = denominator;
  uint64_t ran = 0;
  for (; ran < most; ++ran) {
    top.ssd_valid_i = *ssd_at < ssd_words;
    top.ssd_data_i = top.ssd_valid_i ? ssd[*ssd_at] : 0;
    const bool room = *out_at + 2 <= out_words;
    top.out_ready_i = room && (hold == 0 || ran % hold != 0);
    board->low();
    if (!top.busy_o) break;
    const bool fed = top.ssd_valid_i && top.ssd_ready_o;
    if (top.out_valid_o && top.out_ready_i) {
      out[(*out_at)++] = top.out_data_o[0] | static_cast<uint64_t>(top.out_data_o[1]) << 32;
      out[(*out_at)++] = top.out_data_o[2] | static_cast<uint64_t>(top.out_data_o[3]) << 32;
    }
    board->high();
    if (fed) ++*ssd_at;
  }
  top.ssd_valid_i = 0;
  top.out_ready_i = 0;
  return ran;
}

}  // extern "C"
