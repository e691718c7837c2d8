"""oc_mod_mul against Python: one product a clock, another modulus each clock."""

import random

import cocotb
from common import Coverage, Delay, begin, clock, parameter, settle, value
from reference import EDGES, barrett, below, modulus, mul_latency, pack


@cocotb.test()
async def against_a_remainder(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    cover = Coverage(
        "against_a_remainder", corrected=20, not_corrected=200, greatest=50, zero=50, largest_modulus=50,
        **{f"modulus_{n:x}": 3 for n in EDGES},
    )
    await begin(dut, a_i=0, b_i=0, modulus_i=pack(2))
    pipe, cycles = Delay(mul_latency(parameter(dut, "BITS"))), 3000
    for _ in range(cycles):
        n = modulus(rng)
        a, b = below(rng, n), below(rng, n)
        dut.a_i.value, dut.b_i.value, dut.modulus_i.value = a, b, pack(n)
        # Barrett's quotient is right, or one short.
        short = a * b // n - (a * b * barrett(n) >> 128)
        cover.hit("corrected", short == 1)
        cover.hit("not_corrected", short == 0)
        cover.hit("greatest", a == b == n - 1)
        cover.hit("zero", a * b == 0)
        cover.hit("largest_modulus", n == 1 << 64)
        if n in EDGES:
            cover.hit(f"modulus_{n:x}")
        await settle()
        expected = pipe.step(a * b % n)
        if expected is not None:
            assert value(dut.r_o) == expected
        await clock(dut)
    cover.check(cycles)
