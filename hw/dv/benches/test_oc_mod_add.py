"""oc_mod_add against Python, at 64 and 32 bits."""

import random

import cocotb
from common import Coverage, combinational, parameter, value
from reference import below, modulus


@cocotb.test()
async def against_a_remainder(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    width = parameter(dut, "WORD")
    cover = Coverage("against_a_remainder", reduced=200, not_reduced=200, just_n=20, greatest=20, widest_modulus=20)
    for i in range(3000):
        n = 1 << width if i % 5 == 0 else min(modulus(rng), 1 << width)
        a, b = below(rng, n), below(rng, n)
        if i % 7 == 0 and a:
            b = n - a
        dut.a_i.value, dut.b_i.value, dut.n_i.value = a, b, n
        await combinational()
        assert value(dut.r_o) == (a + b) % n
        cover.hit("reduced", a + b >= n)
        cover.hit("not_reduced", a + b < n)
        cover.hit("just_n", a + b == n)
        cover.hit("greatest", a == b == n - 1)
        cover.hit("widest_modulus", n == 1 << width)
    cover.check(3000)
