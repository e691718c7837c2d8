"""sf_gxor against Python: free XOR, so the output's label of any two values is right where those of 0 are."""

import random

import cocotb
from common import Coverage, combinational, parameter, value, words


@cocotb.test()
async def free(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    label = parameter(dut, "LABEL")
    cover = Coverage("free", gates=200, same=5, every_bit=1)
    ones = 0
    for i in range(200):
        a, b = words(rng, label), words(rng, label)
        b = a if i % 20 == 0 else b
        dut.a_i.value, dut.b_i.value = a, b
        await combinational()
        assert value(dut.label_o) == a ^ b
        ones |= a ^ b
        cover.hit("same", a == b)
        cover.hit("gates")
    cover.hit("every_bit", ones == (1 << label) - 1)
    cover.check(200)
