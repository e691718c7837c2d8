"""oc_adder against Python's sum: one a clock, each out after its clocks, carries through every chunk."""

import random

import cocotb
from common import Coverage, Delay, begin, clock, parameter, settle, value, words


@cocotb.test()
async def against_a_sum(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    width, bits = parameter(dut, "WIDTH"), parameter(dut, "BITS")
    top = (1 << width) - 1
    cover = Coverage("against_a_sum", carry_in=100, carry_out=100, rippled_whole=20, zero=5, all_ones=5)
    await begin(dut, a_i=0, b_i=0, carry_i=0)
    pipe, cycles = Delay(-(-width // bits)), 1500
    for i in range(cycles):
        a, b, carry = words(rng, width), words(rng, width), rng.randrange(2)
        if i % 16 == 0:  # a carry that goes in below and out above
            b, carry = top ^ a, 1
        if i % 50 == 0:
            a = b = carry = 0
        if i % 50 == 1:
            a, b, carry = top, top, 1
        dut.a_i.value, dut.b_i.value, dut.carry_i.value = a, b, carry
        cover.hit("carry_in", carry == 1)
        cover.hit("carry_out", a + b + carry > top)
        cover.hit("rippled_whole", carry == 1 and a ^ b == top)
        cover.hit("zero", a + b + carry == 0)
        cover.hit("all_ones", a == b == top)
        await settle()
        expected = pipe.step(a + b + carry)
        if expected is not None:
            assert value(dut.sum_o) == expected & top
            assert value(dut.carry_o) == expected >> width
        await clock(dut)
    cover.check(cycles)
