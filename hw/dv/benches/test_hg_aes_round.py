"""hg_aes_round against Python: each of its blocks, two clocks later, at every clock."""

import random

import cocotb
from common import Coverage, Delay, begin, clock, parameter, settle, value
from garbling import aes_round, to_planes


@cocotb.test()
async def rounds(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    blocks, last = parameter(dut, "BLOCKS"), parameter(dut, "LAST")
    cover = Coverage("rounds", compared=300, one_byte=50)
    key = rng.randbytes(16)
    due = Delay(2)
    await begin(dut, state_i=0, key_i=to_planes([int.from_bytes(key, "little")]))
    for i in range(302):
        if i % 3:
            given = [rng.randbytes(16) for _ in range(blocks)]
        else:
            # One byte that is not zero: a byte that goes astray is seen.
            given = [bytes(16)] * blocks
            byte = rng.randrange(16)
            given[rng.randrange(blocks)] = bytes(byte) + bytes([rng.randrange(1, 256)]) + bytes(15 - byte)
            cover.hit("one_byte")
        dut.state_i.value = to_planes([int.from_bytes(x, "little") for x in given])
        await settle()
        out = due.step([int.from_bytes(bytes(aes_round(x, key, last)), "little") for x in given])
        if out is not None:
            assert value(dut.state_o) == to_planes(out)
            cover.hit("compared")
        await clock(dut)
    cover.check(302)
