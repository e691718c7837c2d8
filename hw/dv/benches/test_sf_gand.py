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
        "against_garbling", gates=100, offsets=10, taken_at_once=20, held_back=20, right_behind=20, offered_while_busy=20,
        high_gate=5, first_gate=1, last_gate=1, same_wire=3, zero_label=2, **colours,
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

    offsets = [words(rng, label) | 1 for _ in range(12)]
    gates = []
    for i in range(120):
        a, b, gate = words(rng, label), words(rng, label), words(rng, 64)
        if i % 20 == 7:
            b = a ^ rng.choice((0, offsets[i // 10]))
        gates.append((0 if i in (5, 6) else a, b, {3: 0, 4: (1 << 64) - 1}.get(i, gate)))
    for i, (a, b, gate) in enumerate(gates):
        offset = offsets[i // 10]
        dut.offset_i.value = offset
        cover.hit("offsets", i % 10 == 0)
        cover.hit("same_wire", b in (a, a ^ offset))
        cover.hit("zero_label", a == 0)
        cover.hit("first_gate", gate == 0)
        cover.hit("last_gate", gate == (1 << 64) - 1)
        cover.hit("high_gate", gate >> 32 != 0)
        cover.hit(f"colours_{a & 1}{b & 1}")
        out, rows = garble_sifo(offset, a, b, gate, label)
        for x, y in ((0, 0), (0, 1), (1, 0), (1, 1)):
            assert evaluate_sifo(rows, a ^ x * offset, b ^ y * offset, gate, label) == out ^ (x & y) * offset
        held, early = rng.choice((0, 0, 1, 9)), rng.randrange(2)  # ready before a result is there takes nothing
        assert await step(a, b, gate) == (1, 0)
        # The next gate may be offered all the while, if R stays, and is not taken.
        waits = i % 10 != 9 and rng.random() < 0.5
        following = gates[i + 1] if waits else ()
        for _ in range(CLOCKS - 1):
            assert await step(*following, ready=early) == (0, 0), f"a result {CLOCKS} clocks behind its gate, and no sooner"
        for left in range(held, -1, -1):
            seen = await step(*following, ready=left == 0)
            assert seen == (0, 1, out, sum(row << label * n for n, row in enumerate(rows))), (i, seen)
        cover.hit("offered_while_busy", waits)
        cover.hit("taken_at_once" if held == 0 else "held_back")
        cover.hit("gates")
        pause = 0 if waits else rng.choice((0, 1, 7))
        for _ in range(pause):
            assert await step() == (1, 0)
        cover.hit("right_behind", pause == 0)
    cover.check(cycles)
