"""hg_delay against a queue in Python: every word comes after so many clocks, whatever the memory held before."""

import random

import cocotb
from common import Coverage, Delay, begin, clock, parameter, settle, value


@cocotb.test()
async def words(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    width, due = parameter(dut, "WIDTH"), Delay(parameter(dut, "CYCLES"))
    cover = Coverage("words", compared=300)
    await begin(dut, d_i=0)
    for _ in range(300 + len(due.queue)):
        given = rng.getrandbits(width)
        dut.d_i.value = given
        await settle()
        out = due.step(given)
        if out is not None:
            assert value(dut.q_o) == out
            cover.hit("compared")
        await clock(dut)
    cover.check(300 + len(due.queue))
