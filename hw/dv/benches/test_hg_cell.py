"""hg_cell against Python: half gates garbled and evaluated in one stream, a gate a clock, its latency exact."""

import random

import cocotb
from common import Coverage, Delay, begin, clock, parameter, settle, value, words
from garbling import aes_expand, evaluate_halves, garble_halves, round_keys

LATENCY = 44


class Cell:
    """Drives the cell clock by clock and compares what comes out, and when."""

    def __init__(self, dut, rng, cover):
        self.dut, self.rng, self.cover = dut, rng, cover
        self.garbles, self.tag = parameter(dut, "GARBLES"), parameter(dut, "TAG")
        self.due = Delay(LATENCY)
        self.cycles, self.streak = 0, 0

    async def start(self):
        await begin(self.dut, valid_i=0, evaluate_i=0, a_i=0, b_i=0, gate_i=0, table_i=0, tag_i=0, offset_i=0, round_keys_i=0)
        self.rekey()

    def rekey(self):
        """Another key and offset; nothing may be in the cell."""
        self.keys = aes_expand(self.rng.randbytes(16))
        self.offset = words(self.rng, 128) | 1
        self.dut.round_keys_i.value, self.dut.offset_i.value = round_keys(self.keys), self.offset

    async def step(self, gate=None):
        """A clock, with a gate (evaluate, a, b, number, table) or none; returns (label, table) of the one that came out."""
        dut, rng = self.dut, self.rng
        junk = (rng.randrange(2), *(rng.getrandbits(n) for n in (128, 128, 64, 256)))
        evaluate, a, b, number, table = gate or junk
        tag = rng.getrandbits(self.tag)
        dut.valid_i.value = gate is not None
        dut.evaluate_i.value = evaluate if self.garbles else rng.randrange(2)
        dut.a_i.value, dut.b_i.value, dut.gate_i.value, dut.tag_i.value = a, b, number, tag
        dut.table_i.value = table if evaluate else rng.getrandbits(256)
        expected = None
        if gate:
            if evaluate:
                expected = evaluate_halves(self.keys, a, b, number, table), table, tag
            else:
                expected = *garble_halves(self.keys, self.offset, a, b, number), tag
        await settle()
        out = self.due.step(expected)
        assert value(dut.valid_o) == (out is not None), "a gate comes out after its latency and at no other time"
        if out is not None:
            assert (value(dut.label_o), value(dut.table_o), value(dut.tag_o)) == out
            self.cover.hit("compared")
        self.streak = self.streak + 1 if out else 0
        self.cover.hit("full_rate", self.streak > LATENCY)
        self.cycles += 1
        await clock(dut)
        return out and out[:2]

    async def drain(self):
        return [out for out in [await self.step() for _ in range(LATENCY)] if out]


@cocotb.test()
async def stream(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    garbles = parameter(dut, "GARBLES")
    modes = ("garble", "evaluate") if garbles else ("evaluate",)
    colors = {f"{mode}_{c:02b}": 40 for mode in modes for c in range(4)}
    behind = {f"{x}_then_{y}": 40 for x in modes for y in modes}
    cover = Coverage("stream", compared=500, full_rate=200, paused=30, last_gate=5, **colors, **behind)
    cell = Cell(dut, rng, cover)
    await cell.start()
    for run, paused in enumerate((0, 0.3, 0)):
        if run:
            await cell.drain()
            cell.rekey()
        before = None
        for _ in range(220):
            if rng.random() < paused:
                await cell.step()
                cover.hit("paused")
                before = None
                continue
            mode = rng.choice(modes)
            a, b = words(rng, 128), words(rng, 128)
            number = words(rng, 64)
            cover.hit(f"{mode}_{a & 1}{b & 1}")
            cover.hit("last_gate", number == (1 << 64) - 1)
            if before:
                cover.hit(f"{before}_then_{mode}")
            before = mode
            await cell.step((mode == "evaluate", a, b, number, words(rng, 256)))
    await cell.drain()
    cover.check(cell.cycles)


@cocotb.test()
async def truth(dut):
    """What is garbled, here or in Python, gives the output's label of a AND b for every value of both."""
    rng = random.Random(cocotb.RANDOM_SEED + 1)
    cover = Coverage("truth", compared=80, full_rate=1, false=40, true=15)
    cell = Cell(dut, rng, cover)
    await cell.start()
    gates = [(rng.getrandbits(128), rng.getrandbits(128), rng.getrandbits(64)) for _ in range(24)]
    if cell.garbles:
        garbled = [await cell.step((0, a, b, number, 0)) for a, b, number in gates]
        garbled = [out for out in garbled if out] + await cell.drain()
    else:
        garbled = [garble_halves(cell.keys, cell.offset, a, b, number) for a, b, number in gates]
    assert len(garbled) == len(gates)
    expected, outs = [], []
    for (a, b, number), (zero, table) in zip(gates, garbled):
        for values in range(4):
            x, y = values >> 1, values & 1
            expected.append(zero ^ (cell.offset if x & y else 0))
            cover.hit("true" if x & y else "false")
            outs.append(await cell.step((1, a ^ x * cell.offset, b ^ y * cell.offset, number, table)))
    outs = [out for out in outs if out] + await cell.drain()
    assert [label for label, _ in outs] == expected
    cover.check(cell.cycles)


@cocotb.test()
async def reset(dut):
    """Gates that are in the cell when it is reset don't come out."""
    rng = random.Random(cocotb.RANDOM_SEED + 2)
    cover = Coverage("reset", compared=20, dropped=20)
    cell = Cell(dut, rng, cover)
    await cell.start()
    for _ in range(30):
        await cell.step((1, *(rng.getrandbits(n) for n in (128, 128, 64, 256))))
        cover.hit("dropped")
    dut.rst_ni.value, dut.valid_i.value = 0, 0
    await clock(dut)
    dut.rst_ni.value = 1
    cell.due = Delay(LATENCY)
    await cell.drain()
    for _ in range(20):
        await cell.step((1, *(rng.getrandbits(n) for n in (128, 128, 64, 256))))
    await cell.drain()
    cover.check(cell.cycles)
