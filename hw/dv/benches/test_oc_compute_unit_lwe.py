"""oc_compute_unit_lwe against Python: the same runs modulo 2^32, two clocks from the last product to the sum."""

import random

import cocotb
from common import Coverage, Delay, begin, clock, settle, value, words


@cocotb.test()
async def against_sums(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    cover = Coverage("against_sums", sums=300, run_of_one=30, wrapped=200, back_to_back=50, paused=100, long_run=5)
    await begin(dut, valid_i=0, refresh_i=0, last_i=0, a_i=0, b_i=0, c_i=0)
    pipe, cycles = Delay(2), 0
    for i in range(302):
        length = rng.choice((1, 1, 2, 5, rng.randrange(3, 40))) if i < 300 else 1
        paused = rng.choice((0, 0, 0.4))
        c = words(rng, 32)
        done, total = 0, c
        while done < length:
            go = rng.random() >= paused and i < 300
            a, b = words(rng, 32), words(rng, 32)
            dut.valid_i.value = go
            dut.refresh_i.value = done == 0 if go else rng.randrange(2)
            dut.last_i.value = done == length - 1 if go else rng.randrange(2)
            dut.a_i.value, dut.b_i.value = a, b
            dut.c_i.value = c if go and done == 0 else rng.getrandbits(32)
            ready = None
            if go:
                total += a * b
                done += 1
                if done == length:
                    ready = total % (1 << 32)
                    cover.hit("wrapped", total >> 32 > 0)
                    cover.hit("run_of_one", length == 1)
                    cover.hit("long_run", length > 30)
                    cover.hit("back_to_back", paused == 0)
            elif i < 300:
                cover.hit("paused")
            await settle()
            expected = pipe.step(ready)
            assert value(dut.valid_o) == (expected is not None)
            if expected is not None:
                assert value(dut.sum_o) == expected
                cover.hit("sums")
            cycles += 1
            await clock(dut)
            if i >= 300:
                break
    assert cover.hits["sums"] == 300
    cover.check(cycles)
