"""sf_registers against a table of what was written: which writes complete a command, and what it is."""

import random

import cocotb
from common import Coverage, begin, clock, parameter, settle, value, words

HEADER, LOW, HIGH, A, B, OUT = range(6)
GATE_ENDS = {HIGH, OUT}


@cocotb.test()
async def commands(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    label = parameter(dut, "LABEL")
    cover = Coverage(
        "commands", header=100, in_two=100, in_three=100, offset=100, first_gate=50, unused=50, held=100, held_plain=50,
        mixed=20,
    )
    await begin(dut, valid_i=0, ready_i=0, address_i=0, data_i=0)
    low = a = b = None
    offset, first, renumber, cycles, offered, last = [None] * 4, [None] * 2, False, 0, None, None
    while cycles < 6000:
        if offered is None and rng.random() < 0.9:
            # Mostly a gate's registers in their order, and now and then anything.
            follow = {LOW: HIGH, A: B, B: OUT}.get(last)
            address = follow if follow and rng.random() < 0.7 else rng.randrange(16)
            offered = address, words(rng, 32)
        address, data = offered or (rng.randrange(16), rng.getrandbits(32))
        ready = rng.random() < 0.6
        dut.valid_i.value, dut.ready_i.value = int(offered is not None), int(ready)
        dut.address_i.value, dut.data_i.value = address, data
        await settle()
        gate = address in GATE_ENDS
        command = offered is not None and (address == HEADER or gate)
        assert value(dut.valid_o) == command
        assert value(dut.ready_o) == (ready or not command), "a write that completes no command never waits"
        assert value(dut.renumber_o) == renumber, "a clock behind the number's upper half"
        if command:
            assert value(dut.header_o) == (address == HEADER)
            got = value(dut.command_o)
            if address == HEADER:
                assert got == data
            elif address == HIGH and low is not None:
                assert got == (data << 32 | low) & (1 << 63) - 1
            elif address == OUT and a is not None and b is not None:
                assert got == (data & 0x1FFFFF) << 42 | b << 21 | a
            cover.hit("held", not ready)
        cover.hit("held_plain", offered is not None and not command and not ready)
        if None not in offset:
            assert value(dut.offset_o) == sum(word << 32 * i for i, word in enumerate(offset)) & (1 << label) - 1
        if None not in first:
            assert value(dut.first_gate_o) == first[1] << 32 | first[0]
        renumber = False
        if offered is not None and (ready or not command):
            if address == LOW:
                low = data
            elif address == A:
                a = data & 0x1FFFFF
            elif address == B:
                b = data & 0x1FFFFF
            elif 8 <= address < 12:
                offset[address - 8] = data
                cover.hit("offset")
            elif address in (12, 13):
                first[address - 12] = data
                renumber = address == 13
                cover.hit("first_gate")
            elif address not in (HEADER, HIGH, OUT):
                cover.hit("unused")
            cover.hit("header", address == HEADER)
            cover.hit("in_two", address == HIGH and last == LOW)
            cover.hit("in_three", address == OUT and last == B)
            cover.hit("mixed", gate and last not in (LOW, B))
            offered, last = None, address
        cycles += 1
        await clock(dut)
    cover.check(cycles)
