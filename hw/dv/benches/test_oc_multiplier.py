"""oc_multiplier against Python's product: one a clock, the low OUT bits."""

import random

import cocotb
from common import Coverage, Delay, begin, clock, parameter, settle, value, words


@cocotb.test()
async def against_a_product(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    a_bits, b_bits, out, bits = (parameter(dut, name) for name in ("A", "B", "OUT", "BITS"))
    cover = Coverage("against_a_product", zero=20, greatest=10, one_row=50, cut_off=20)
    if out >= a_bits + b_bits:
        cover.goals.pop("cut_off")
    await begin(dut, a_i=0, b_i=0)
    pipe, cycles = Delay(-(-b_bits // bits) + -(-out // bits)), 1200
    for i in range(cycles):
        a, b = words(rng, a_bits), words(rng, b_bits)
        if i % 40 == 0:
            a, b = (1 << a_bits) - 1, (1 << b_bits) - 1
        if i % 40 == 1:
            a, b = rng.choice(((0, b), (a, 0)))
        dut.a_i.value, dut.b_i.value = a, b
        cover.hit("zero", a * b == 0)
        cover.hit("greatest", a + 1 == 1 << a_bits and b + 1 == 1 << b_bits)
        cover.hit("one_row", b.bit_count() == 1)
        cover.hits["cut_off"] += a * b >> out > 0
        await settle()
        expected = pipe.step(a * b % (1 << out))
        if expected is not None:
            assert value(dut.product_o) == expected
        await clock(dut)
    cover.check(cycles)
