// Sends SIFO's board two batches, and writes every signal of every clock: `run VCD`. sifo.py draws them.
#include <cstdint>
#include <vector>

#include "Vsifo.h"
#include "verilated_vcd_c.h"

namespace {

constexpr uint32_t AND = 1u << 24, FENCE = 1u << 27, SYNC = 1u << 28;

uint32_t ram(uint32_t place) { return place << 1 | 1; }
uint32_t ddr(uint32_t place) { return place << 1; }

std::vector<uint64_t> items;

void write(uint64_t address, uint32_t data) { items.push_back(address << 32 | data); }

// A gate, as two registers.
void gate(uint64_t a, uint64_t b, uint64_t out) {
  const uint64_t bits = out << 42 | b << 21 | a;
  write(1, static_cast<uint32_t>(bits));
  write(2, static_cast<uint32_t>(bits >> 32));
}

void wait() { items.back() |= uint64_t{1} << 36; }

}  // namespace

int main(int, char **argv) {
  VerilatedContext context;
  context.traceEverOn(true);
  Vsifo top{&context, "TOP"};
  VerilatedVcdC vcd;
  top.trace(&vcd, 9);
  vcd.open(argv[1]);
  uint64_t time = 0;
  const auto tick = [&] {
    for (int level = 0; level < 2; ++level) {
      top.clk_i = level;
      top.eval();
      vcd.dump(time++);
    }
  };
  // At 200 MHz: a register takes 33.3 ns, the host's look 1350 ns, an access to DDR memory 180 ns.
  top.period_i = 427;
  top.sync_i = 270;
  top.latency_i = 36;
  top.table_ready_i = 1;
  for (int i = 0; i < 3; ++i) tick();
  top.rst_ni = 1;
  tick();
  // Labels of 0, which differ in every byte's low half.
  top.poke_i = 1;
  for (uint32_t place = 0; place < 16; ++place) {
    for (const uint32_t address : {ram(place), ddr(place)}) {
      top.poke_address_i = address;
      for (int word = 0; word < 3; ++word) top.poke_label_i[word] = 0x01010101u * (address + 1) + 0x9e370000u * word;
      tick();
    }
  }
  top.poke_i = 0;
  write(8, 0x2d1a4c79);
  write(9, 0x83b50f16);
  write(10, 0x6ae3);
  write(12, 7);
  write(13, 0);
  // Two ANDs, of which one reads DDR memory; the host waits for them. Then an XOR of both that goes to DDR memory.
  write(0, AND | FENCE | SYNC | 2);
  gate(ram(0), ram(1), ram(8));
  gate(ram(2), ddr(3), ram(9));
  wait();
  write(0, FENCE | SYNC | 1);
  gate(ram(8), ram(9), ddr(4));
  wait();
  for (size_t at = 0, spent = 0; (at < items.size() || !top.idle_o) && spent < 2000; ++spent) {
    top.link_valid_i = at < items.size();
    if (at < items.size()) top.link_item_i = items[at];
    top.clk_i = 0;
    top.eval();
    const bool sent = top.link_valid_i && top.link_ready_o;
    tick();
    at += sent;
  }
  for (int i = 0; i < 4; ++i) tick();
  vcd.close();
}
