// The PH-EPU card as a library: the C interface that accel-rtl opens. One library is one build, with one chip or several.
#include <cstdint>
#include <cstring>
#include <vector>

#include "Vcard.h"
#include "Vcard__Dpi.h"
#include "Vchip.h"
#include "Vchip__Dpi.h"
#include "Velement.h"

namespace {

constexpr size_t WORD = 8;  // 32-bit parts of a word

// A number that is taken apart, the lowest bits first.
struct Bits {
  unsigned long long left;
  uint32_t low(unsigned bits) {
    const auto part = static_cast<uint32_t>(left & ((1ULL << bits) - 1));
    left >>= bits;
    return part;
  }
};

// A clock. Inputs settle while it is low, and count at its rise. What card, chip and element offer comes of registers alone: it
// is there after the rise, and needs no look in between.
template <typename Model>
void tick(Model &model) {
  model.clk_i = 0;
  model.eval();
  model.clk_i = 1;
  model.eval();
}

// What a chip sends, packet by packet, as far as its end must be known.
struct Chip {
  uint64_t left = 0;  // words of the packet that are still to come
  bool report = false;
  bool ended = false;

  void take(const uint32_t *word, uint64_t elements) {
    if (left == 0) {
      const uint32_t kind = word[0] & 0xff;
      report = kind == 2;
      left = report ? 2 * elements : word[1] >> 24;
    } else if (--left == 0 && report) {
      ended = true;
    }
  }
};

struct Card {
  VerilatedContext context;
  Vcard top{&context, "card"};
  std::vector<Chip> chips;
  ~Card() { top.final(); }

  void reset() {
    top.in_valid_i = 0;
    top.out_ready_i = 0;
    top.rst_ni = 0;
    for (int i = 0; i < 3; ++i) tick(top);
    top.rst_ni = 1;
    tick(top);
    chips.assign(top.chips_o, Chip{});
  }
};

}  // namespace

extern "C" {

// Elements and chips, which element.sv and chip.sv call: compiled once, however many there are.
void *phepu_element_new() { return new Velement{Verilated::threadContextp(), "element"}; }

void phepu_element_free(void *handle) { delete static_cast<Velement *>(handle); }

unsigned long long phepu_element_clock(void *handle, unsigned long long inputs, unsigned long long instruction,
                                       const svBitVecVal *word, svBitVecVal *stored, svBitVecVal *counters) {
  auto &element = *static_cast<Velement *>(handle);
  Bits from{inputs};
  element.store_done_i = from.low(1);
  element.store_index_i = from.low(4);
  element.store_slot_i = from.low(1);
  element.store_read_i = from.low(1);
  element.valid_i = from.low(1);
  element.fail_code_i = from.low(8);
  element.fail_i = from.low(1);
  element.claim_regions_i = from.low(2);
  element.claim_slots_i = from.low(16);
  element.bus_last_i = from.low(1);
  element.bus_address_i = from.low(9);
  element.bus_kind_i = from.low(2);
  element.bus_valid_i = from.low(1);
  element.width_i = from.low(2);
  element.digits_i = from.low(2);
  element.context_i = from.low(1);
  element.rst_ni = from.low(1);
  element.instruction_i = instruction;
  std::memcpy(&element.bus_word_i[0], word, 4 * WORD);
  tick(element);
  std::memcpy(stored, &element.store_word_o[0], 4 * WORD);
  std::memcpy(counters, &element.counters_o[0], 8 * WORD);
  unsigned long long out = element.ready_o;
  out = out << 16 | element.slots_busy_o;
  out = out << 2 | element.regions_busy_o;
  out = out << 2 | element.full_o;
  out = out << 1 | element.idle_o;
  out = out << 1 | element.progress_o;
  out = out << 1 | element.failed_o;
  out = out << 8 | element.error_o;
  return out << 24 | element.error_at_o;
}

void *phepu_chip_new() { return new Vchip{Verilated::threadContextp(), "chip"}; }

void phepu_chip_free(void *handle) {
  auto *chip = static_cast<Vchip *>(handle);
  chip->final();
  delete chip;
}

unsigned int phepu_chip_clock(void *handle, unsigned int inputs, unsigned int watchdog, const svBitVecVal *word,
                              svBitVecVal *out) {
  auto &chip = *static_cast<Vchip *>(handle);
  Bits from{inputs};
  chip.out_ready_i = from.low(1);
  chip.in_valid_i = from.low(1);
  chip.rst_ni = from.low(1);
  chip.watchdog_i = watchdog;
  std::memcpy(&chip.in_word_i[0], word, 4 * WORD);
  tick(chip);
  std::memcpy(out, &chip.out_word_o[0], 4 * WORD);
  return chip.in_ready_o << 2 | chip.out_valid_o << 1 | chip.idle_o;
}

// Raised when a caller compiled for another interface would misread it.
uint32_t phepu_version() { return 1; }

void *phepu_new() {
  auto *card = new Card;
  card->reset();
  return card;
}

void phepu_free(void *handle) { delete static_cast<Card *>(handle); }

// Chips, elements of each, 256-bit words of a chip's input buffer, weight buffer, output FIFO and instruction FIFO, 0, 0.
void phepu_parameters(void *handle, uint32_t out[8]) {
  const auto &top = static_cast<Card *>(handle)->top;
  const uint32_t all[8] = {top.chips_o, top.elements_o, top.inputs_o, top.weights_o, top.outputs_o, top.instructions_o, 0, 0};
  std::memcpy(out, all, sizeof all);
}

// Bits a clock of PCIe, DDR and each link (0: any, at most 65535), and the watchdog's clocks (0: never). All that was under
// way is gone; the global buffers keep their words.
void phepu_reset(void *handle, const uint32_t settings[4]) {
  auto *card = static_cast<Card *>(handle);
  card->top.pcie_rate_i = settings[0];
  card->top.ddr_rate_i = settings[1];
  card->top.link_rate_i = settings[2];
  card->top.watchdog_i = settings[3];
  card->reset();
}

// Sends `count` words, each to the chips of its mask, until every chip of a mask has sent the report of an END and nothing is
// under way. What comes is 9 parts each: chip, word.
//
// counters: clocks, those in which PCIe and DDR moved a word, words over the links to the chips and from them, 0, 0, 0.
// Returns 0, or 1 where `most` clocks are over or nothing is under way and an END is missing, or 2 where `out` is too small.
uint32_t phepu_run(void *handle, const uint32_t *masks, const uint32_t *words, uint64_t count, uint32_t *out,
                   uint64_t capacity, uint64_t *out_count, uint64_t most, uint64_t counters[8]) {
  auto *card = static_cast<Card *>(handle);
  auto &top = card->top;
  const uint64_t elements = top.elements_o;
  uint64_t at = 0, got = 0, clocks = 0, pcie = 0, ddr = 0, in = 0, back = 0;
  uint32_t asked = 0, result = 1;
  bool offered = false;
  for (auto &chip : card->chips) chip.ended = false;
  for (; clocks < most; ++clocks) {
    if (at < count && !offered) {
      offered = true;
      asked |= masks[at];
      top.in_chips_i = masks[at];
      std::memcpy(&top.in_word_i[0], words + WORD * at, 4 * WORD);
    }
    top.in_valid_i = offered;
    top.out_ready_i = 1;
    if (top.out_valid_o) {
      if (got == capacity) {
        result = 2;
        break;
      }
      uint32_t *to = out + (WORD + 1) * got++;
      to[0] = top.out_chip_o;
      std::memcpy(to + 1, &top.out_word_o[0], 4 * WORD);
      card->chips[to[0]].take(to + 1, elements);
    }
    if (top.in_ready_o && offered) {
      offered = false;
      ++at;
    } else if (at == count && top.idle_o) {
      result = 0;
      for (size_t c = 0; c < card->chips.size(); ++c) {
        if ((asked >> c & 1) && !card->chips[c].ended) result = 1;
      }
      break;
    }
    pcie += top.pcie_o;
    ddr += top.ddr_o;
    in += top.links_in_o;
    back += top.links_out_o;
    tick(top);
  }
  top.in_valid_i = 0;
  top.out_ready_i = 0;
  *out_count = got;
  const uint64_t all[8] = {clocks, pcie, ddr, in, back, 0, 0, 0};
  std::memcpy(counters, all, sizeof all);
  return result;
}

}  // extern "C"
