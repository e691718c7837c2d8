// A bank of three gANDs with more gates than it has room for; the second result is left there for two clocks. Writes every
// signal of every clock: `cells VCD`. cells.py compares what comes out and draws it.
#include <cstdint>
#include <random>

#include "Vcells.h"
#include "verilated.h"
#include "verilated_vcd_c.h"

namespace {
constexpr int GATES = 6;
constexpr unsigned FIRST_TAG = 40;

void fill(WData* label, std::mt19937& random) {
  for (int word = 0; word < 3; word++) label[word] = random();
  label[2] &= 0xffff;
}
}  // namespace

int main(int, char** arguments) {
  VerilatedContext context;
  context.traceEverOn(true);
  Vcells bank(&context);
  VerilatedVcdC trace;
  bank.trace(&trace, 99);
  trace.open(arguments[1]);
  std::mt19937 random(1);
  bank.rst_ni = 0;
  fill(bank.offset_i, random);
  bank.offset_i[0] |= 1;
  uint64_t now = 0;
  int given = 0, taken = 0, held = 0;
  for (int clock = 0; taken < GATES && clock < 1000; clock++) {
    bank.valid_i = clock > 2 && given < GATES;
    bank.ready_i = taken != 1 || held == 2;
    bank.gate_i = given;
    bank.tag_i = FIRST_TAG + given;
    bank.clk_i = 0;
    bank.eval();
    trace.dump(now++);
    const bool goes = bank.valid_i && bank.ready_o, comes = bank.valid_o && bank.ready_i;
    held += bank.valid_o && !bank.ready_i;
    bank.clk_i = 1;
    bank.eval();
    trace.dump(now++);
    bank.rst_ni = clock >= 1;
    if (goes || given == 0) {
      fill(bank.a_i, random);
      fill(bank.b_i, random);
    }
    given += goes;
    taken += comes;
  }
  trace.close();
  return taken != GATES;
}
