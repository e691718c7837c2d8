"""sf_gand against garbling in Python: label and rows of every gate, that each pair of labels evaluates, and its 82 clocks."""

import random

import cocotb
from common import Coverage, begin, clock, parameter, settle, value, words
from garbling import evaluate_sifo, garble_sifo

CLOCKS = 82


@cocotb.test()
async def against_garbling(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    label = parameter(dut, "LABEL")
    colours = {f"colours_{a}{b}": 10 for a in (0, 1) for b in (0, 1)}
    cover = Coverage(
        "against_garbling", gates=100, offsets=10, taken_at_once=20, held_back=20, right_behind=20, high_gate=5, first_gate=1,
        last_gate=1, same_wire=3, zero_label=2, **colours,
    )
    await begin(dut, valid_i=0, ready_i=0, a_i=0, b_i=0, gate_i=0, offset_i=1)
    cycles = 0

    async def step(a=None, b=None, gate=None, ready=False):
        """A clock, with junk where nothing is offered; returns ready and valid, behind them label and table if valid."""
        nonlocal cycles
        dut.valid_i.value, dut.ready_i.value = int(a is not None), int(ready)
        dut.a_i.value = rng.getrandbits(label) if a is None else a
        dut.b_i.value = rng.getrandbits(label) if b is None else b
        dut.gate_i.value = rng.getrandbits(64) if gate is None else gate
        await settle()
        seen = value(dut.ready_o), value(dut.valid_o)
        if seen[1]:
            seen += value(dut.label_o), value(dut.table_o)
        cycles += 1
        await clock(dut)
        return seen

    for i in range(120):
        if i % 10 == 0:
            offset = words(rng, label) | 1
            dut.offset_i.value = offset
            cover.hit("offsets")
        a, b, gate = words(rng, label), words(rng, label), words(rng, 64)
        if i % 20 == 7:
            b = a ^ rng.choice((0, offset))
        gate = {3: 0, 4: (1 << 64) - 1}.get(i, gate)
        a = 0 if i in (5, 6) else a
        cover.hit("same_wire", b in (a, a ^ offset))
        cover.hit("zero_label", a == 0)
        cover.hit("first_gate", gate == 0)
        cover.hit("last_gate", gate == (1 << 64) - 1)
        cover.hit("high_gate", gate >> 32 != 0)
        cover.hit(f"colours_{a & 1}{b & 1}")
        out, rows = garble_sifo(offset, a, b, gate, label)
        for x, y in ((0, 0), (0, 1), (1, 0), (1, 1)):
            assert evaluate_sifo(rows, a ^ x * offset, b ^ y * offset, gate, label) == out ^ (x & y) * offset
        pause, held = rng.choice((0, 0, 1, 7)), rng.choice((0, 0, 1, 9))
        early = rng.randrange(2)  # ready before a result is there takes nothing
        for _ in range(pause):
            assert await step() == (1, 0)
        assert await step(a, b, gate) == (1, 0)
        for _ in range(CLOCKS - 1):
            assert await step(ready=early) == (0, 0), f"a result {CLOCKS} clocks behind its gate, and no sooner"
        for left in range(held, -1, -1):
            assert await step(ready=left == 0) == (0, 1, out, sum(row << label * n for n, row in enumerate(rows))), i
        cover.hit("right_behind", i > 0 and pause == 0)
        cover.hit("taken_at_once" if held == 0 else "held_back")
        cover.hit("gates")
    cover.check(cycles)
