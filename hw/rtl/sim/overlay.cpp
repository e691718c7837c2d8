// A garbling overlay on its board as a library: the C interface that accel-rtl opens. One library is one build of a chip.
//
// Both boards have the same ports; EVALUATES is defined for the one that takes tables as well.
#include <cstdint>
#include <cstring>

#include "Voverlay.h"

namespace {

// A port as 32-bit words, whatever Verilator stores it in.
template <typename Port>
void put(Port &port, const uint32_t *words) {
  port = 0;
  for (size_t i = 0; i < (sizeof(Port) + 3) / 4; ++i) port |= static_cast<Port>(words[i]) << (32 * i);
}
template <std::size_t N>
void put(VlWide<N> &port, const uint32_t *words) {
  for (size_t i = 0; i < N; ++i) port[i] = words[i];
}
template <typename Port>
void get(const Port &port, uint8_t *bytes, size_t count) {
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>(port >> (8 * i));
}
template <std::size_t N>
void get(const VlWide<N> &port, uint8_t *bytes, size_t count) {
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>(port[i / 4] >> (8 * (i % 4)));
}

struct Board {
  VerilatedContext context;
  Voverlay top{&context, "overlay"};

  // Inputs settle while the clock is low, and count at its rise.
  void low() {
    top.clk_i = 0;
    top.eval();
  }
  void high() {
    top.clk_i = 1;
    top.eval();
  }
  void tick() {
    low();
    high();
  }
};

constexpr size_t LABEL_WORDS = sizeof(decltype(Voverlay::poke_label_i)) / 4;

}  // namespace

extern "C" {

// Raised when a caller compiled for another interface would misread it.
uint32_t overlay_version() { return 1; }

void *overlay_new() {
  auto *board = new Board;
  board->top.rst_ni = 0;
  for (int i = 0; i < 3; ++i) board->tick();
  board->top.rst_ni = 1;
  board->tick();
  return board;
}

void overlay_free(void *handle) { delete static_cast<Board *>(handle); }

// AND cells, XOR cells, bits of a label, places of the block RAM and of the DDR memory, bytes of an item, bytes of a table, lanes.
void overlay_parameters(void *handle, uint32_t out[8]) {
  auto &top = static_cast<Board *>(handle)->top;
  top.eval();
  out[0] = top.ands_o;
  out[1] = top.xors_o;
  out[2] = top.label_o;
  out[3] = top.places_o;
  out[4] = top.words_o;
  out[5] = sizeof(top.link_item_i);
  out[6] = top.table_bytes_o;
  out[7] = top.lanes_o;
}

// Puts the labels of all lanes, 16 bytes each, at an address, at no cost in the chip's time.
void overlay_poke(void *handle, uint32_t address, const uint32_t *labels) {
  auto *board = static_cast<Board *>(handle);
  board->top.poke_i = 1;
  board->top.poke_address_i = address;
  put(board->top.poke_label_i, labels);
  board->tick();
  board->top.poke_i = 0;
}

// The labels of all lanes at an address.
void overlay_peek(void *handle, uint32_t address, uint8_t *labels) {
  auto *board = static_cast<Board *>(handle);
  board->top.poke_address_i = address;
  board->tick();
  board->low();
  get(board->top.peek_label_o, labels, 4 * LABEL_WORDS);
}

// Sends `count` items and clocks until the chip is idle, or stops, or `most` clocks are over. Tables that come out go to
// `tables`, as far as `table_bytes` reaches; `*table_at` counts all of their bytes. With `feed`, tables go in instead.
//
// settings: clocks / 64 of a write, clocks of a wait, clocks of a DDR access, bytes / 64 a clock of the tables' way (0: any).
// counters: clocks, gates, DDR accesses, clocks waiting for DDR, for a cell, for the host, items sent, for tables' way.
// Returns the chip's error, 0 for none, or 255 for clocks over.
uint32_t overlay_run(void *handle, const uint32_t settings[4], const uint32_t *items, uint64_t count, uint8_t *tables,
                     uint64_t table_bytes, uint64_t *table_at, const uint8_t *feed, uint64_t most, uint64_t counters[8]) {
  auto *board = static_cast<Board *>(handle);
  auto &top = board->top;
  const size_t table = top.table_bytes_o;
  const size_t item_words = sizeof(top.link_item_i) / 4;
  top.period_i = settings[0];
  top.sync_i = settings[1];
  top.latency_i = settings[2];
  const uint64_t rate = settings[3];
  std::memset(counters, 0, 8 * sizeof *counters);
  uint64_t at = 0, credit = 0, fed = 0;
  uint32_t result = 255;
  for (uint64_t clock = 0; clock < most; ++clock) {
    top.link_valid_i = at < count;
    if (at < count) put(top.link_item_i, items + item_words * at);
    // A table may go when its bytes have been earned.
    if (rate) credit = credit + rate > 64 * table + rate ? 64 * table + rate : credit + rate;
    const bool open = !rate || credit >= 64 * table;
    top.table_ready_i = open;
#ifdef EVALUATES
    top.feed_valid_i = feed != nullptr && fed < table_bytes && open;
    if (top.feed_valid_i) {
      uint32_t words[sizeof(top.feed_i) / 4];
      std::memcpy(words, feed + fed, sizeof words);
      put(top.feed_i, words);
    }
#endif
    board->low();
    const bool idle = at == count && top.idle_o && !top.table_valid_o;
    if (top.error_o || idle) {
      result = top.error_o;
      break;
    }
    const bool sent = top.link_valid_i && top.link_ready_o;
    bool moved = false;
    if (top.table_valid_o && open) {
      if (feed == nullptr && *table_at + table <= table_bytes) get(top.table_o, tables + *table_at, table);
      *table_at += table;
      moved = true;
    }
#ifdef EVALUATES
    if (top.feed_valid_i && top.feed_ready_o) {
      fed += table;
      moved = true;
    }
#endif
    if (moved && rate) credit -= 64 * table;
    ++counters[0];
    counters[1] += top.gate_o;
    counters[2] += (top.access_o & 1) + (top.access_o >> 1 & 1);
    counters[3] += top.waits_ddr_o;
    counters[4] += top.waits_cell_o;
    counters[5] += top.waits_host_o;
    counters[6] += sent;
    counters[7] += top.table_valid_o && !open;
    board->high();
    if (sent) ++at;
  }
  top.link_valid_i = 0;
  top.table_ready_i = 0;
  return result;
}

}  // extern "C"
