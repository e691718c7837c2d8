"""sf_cells against garbling in Python: every result once, in order, and at which clocks gates are taken and results offered."""

import random
from collections import deque

import cocotb
from common import Coverage, begin, clock, parameter, settle, value, words
from garbling import garble_sifo

CLOCKS = 82


@cocotb.test()
async def in_order(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    cells, label, tag = (parameter(dut, name) for name in ("CELLS", "LABEL", "TAG"))
    gates = 40 * cells + 120
    colours = {f"colours_{a}{b}": 5 for a in (0, 1) for b in (0, 1)}
    cover = Coverage(
        "in_order", gates=gates, full=200, filled_a_clock=3, all_wait=3, drained_a_clock=3, held_back=20, empty=20,
        into_the_freed=20, **colours,
    )
    # A bank of one is full with a gate, and a result never has another behind it.
    if cells == 1:
        del cover.goals["filled_a_clock"], cover.goals["drained_a_clock"]
    offset = words(rng, label) | 1
    await begin(dut, valid_i=0, ready_i=0, a_i=0, b_i=0, gate_i=0, tag_i=0, offset_i=offset)
    flight = deque()  # of each gate in the bank: the clock of its result, then the result
    sent = cycles = freed = taken_in_a_row = given_in_a_row = 0
    offered = None
    # How often gates are offered and results taken; a phase in which nothing is taken fills the bank with results.
    phases = [(1, 1), (1, 0.02), (0.05, 1), (1, 0), (0.5, 0.5), (1, 1), (0.01, 1)]
    while sent < gates or flight:
        if cycles % (3 * CLOCKS) == 0:
            often, taken = phases[cycles // (3 * CLOCKS) % len(phases)]
        if offered is None and sent < gates and rng.random() < often:
            offered = words(rng, label), words(rng, label), words(rng, 64), words(rng, tag)
        a, b, gate, mark = offered or (*(rng.getrandbits(n) for n in (label, label, 64, tag)),)
        ready = rng.random() < taken
        dut.valid_i.value, dut.ready_i.value = int(offered is not None), int(ready)
        dut.a_i.value, dut.b_i.value, dut.gate_i.value, dut.tag_i.value = a, b, gate, mark
        await settle()
        room, there = len(flight) < cells, bool(flight) and cycles >= flight[0][0]
        assert dut.ready_o.value == room, "a gate a clock while a cell is free"
        assert dut.valid_o.value == there, f"a result {CLOCKS} clocks behind its gate, or behind the result before it"
        cover.hit("full", offered is not None and not room)
        cover.hit("empty", not flight)
        cover.hit("held_back", there and not ready)
        cover.hit("all_wait", not room and cycles >= flight[-1][0])
        if there:
            assert (value(dut.label_o), value(dut.table_o), value(dut.tag_o)) == flight[0][1:]
        given = there and ready
        if offered is not None and room:
            out, rows = garble_sifo(offset, a, b, gate, label)
            flight.append((cycles + CLOCKS, out, sum(row << label * n for n, row in enumerate(rows)), mark))
            cover.hit(f"colours_{a & 1}{b & 1}")
            cover.hit("into_the_freed", cycles == freed)
            offered, sent, taken_in_a_row = None, sent + 1, taken_in_a_row + 1
        else:
            taken_in_a_row = 0
        given_in_a_row = given_in_a_row + 1 if given else 0
        cover.hit("filled_a_clock", taken_in_a_row == cells)
        cover.hit("drained_a_clock", given_in_a_row == cells)
        if given:
            flight.popleft()
            cover.hit("gates")
            freed = cycles + 1
        cycles += 1
        assert cycles < 200 * CLOCKS * 7, "results stay out"
        await clock(dut)
    cover.check(cycles)
