"""oc_moduli: what was written to each part of each modulus is there, and nothing else moved."""

import random

import cocotb
from common import Coverage, begin, clock, settle, value, words
from reference import MODULI

PARTS = ((128, 64), (192, 1), (0, 64), (64, 64))  # where in modulus_t: n's low word, its bit 64, m's halves


@cocotb.test()
async def against_an_array(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    cover = Coverage(
        "against_an_array", not_written=100, **{f"modulus_{i}_part_{p}": 3 for i in range(MODULI) for p in range(4)})
    await begin(dut, write_i=0, index_i=0, part_i=0, data_i=0)
    model, cycles = [0] * MODULI, 1500
    for _ in range(cycles):
        write, index, part, data = rng.random() < 0.8, rng.randrange(MODULI), rng.randrange(4), words(rng, 64)
        dut.write_i.value, dut.index_i.value, dut.part_i.value, dut.data_i.value = write, index, part, data
        await settle()
        assert value(dut.moduli_o) == sum(n << (193 * i) for i, n in enumerate(model))
        if write:
            at, width = PARTS[part]
            mask = (1 << width) - 1
            model[index] = model[index] & ~(mask << at) | (data & mask) << at
            cover.hit(f"modulus_{index}_part_{part}")
        cover.hit("not_written", not write)
        await clock(dut)
    cover.check(cycles)
