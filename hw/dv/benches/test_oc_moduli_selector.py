"""oc_moduli_selector against a count of steps: each modulus lasts its period, then comes the next, then the first again."""

import random

import cocotb
from common import Coverage, begin, clock, settle, value


@cocotb.test()
async def against_a_count(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    cover = Coverage(
        "against_a_count", rolled_over=50, began_again=20, waited=200, one_modulus=3, all_moduli=1, period_of_one=3,
        step_over_the_end=20, long_period=1, begun_midway=5, borrowed=4,
    )
    await begin(dut, start_i=0, advance_i=0, step_i=1, period_i=1, count_i=1)
    cycles = 0
    for case in range(40):
        count = rng.choice((1, 2, 3, 5, 16))
        period = rng.choice((1, 2, 3, 7, 20, (1 << 64) - 300))
        if case == 0:
            count, period = 16, 3
        if case == 1:
            period = (1 << 64) - 300
        greatest, steps = rng.choice((1, 1, 4, 255)), rng.randrange(50, 150)
        if case in (2, 3, 4):  # the count's upper part loses one and more on the way
            period, greatest, steps = (case - 1 << 16) + rng.randrange(-2, 600), 255, 2500
        dut.count_i.value, dut.period_i.value = count, period
        dut.start_i.value, dut.advance_i.value = 1, rng.randrange(2)
        cover.hit("begun_midway", case > 0 and at > 0)
        await clock(dut)
        dut.start_i.value, dut.advance_i.value = 0, 0
        for _ in range(2):  # in which the period is made ready
            await settle()
            assert value(dut.index_o) == 0
            await clock(dut)
        at, index = 0, 0
        cover.hit("one_modulus", count == 1)
        cover.hit("all_moduli", count == 16)
        cover.hit("period_of_one", period == 1)
        cover.hit("long_period", period > 1 << 63)
        for _ in range(steps):
            go, step = rng.random() < 0.8, rng.randrange(1, greatest + 1)
            dut.advance_i.value, dut.step_i.value = go, step
            await settle()
            assert value(dut.index_o) == index
            if go:
                at += step
                if at >= period:
                    cover.hit("step_over_the_end", at > period)
                    cover.hit("borrowed", period >> 16 != 0)
                    at, index = 0, (index + 1) % count
                    cover.hit("rolled_over")
                    cover.hit("began_again", index == 0)
            cover.hit("waited", not go)
            cycles += 1
            await clock(dut)
    cover.check(cycles)
