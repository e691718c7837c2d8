"""oc_mod_acc against Python's sums: runs of every length, with pauses, one behind the other without a gap."""

import random

import cocotb
from common import Coverage, Delay, begin, clock, parameter, settle, value
from reference import add_latency, below, modulus


@cocotb.test()
async def against_sums(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    bits = parameter(dut, "BITS")
    cover = Coverage(
        "against_sums", run_of_one=50, longest_run=3, greatest_everywhere=2, paused=200, back_to_back=100, began_from_c=100,
        largest_modulus=10, sum_is_zero=5,
    )
    await begin(dut, valid_i=0, refresh_i=0, last_i=0, product_i=0, c_i=0, n_i=2)
    pipe, cycles, sums = Delay(add_latency(bits)), 0, 0
    for run in range(200):
        n = modulus(rng)
        length = rng.choice((1, 1, 2, 3, rng.randrange(4, 20)))
        if run % 20 == 0:
            n = 1 << 64
        if run % 40 == 0:
            length = 255  # as many as the guard bits hold
        paused = rng.choice((0, 0, 0.5))
        greatest = run % 80 == 0
        total = c = n - 1 if greatest else below(rng, n)
        done = 0
        while done < length:
            go = rng.random() >= paused
            product = n - 1 if greatest else below(rng, n)
            if done == length - 1 and run % 10 == 3:
                product = -total % n
            # Where nothing is valid, the other lines carry junk.
            dut.valid_i.value = go
            dut.refresh_i.value = done == 0 if go else rng.randrange(2)
            dut.last_i.value = done == length - 1 if go else rng.randrange(2)
            dut.product_i.value = product
            dut.c_i.value = c if go and done == 0 else rng.getrandbits(64)
            dut.n_i.value = n
            await settle()
            ready = None
            if go:
                total = (total + product) % n
                done += 1
                if done == length:
                    ready = total
                    cover.hit("run_of_one", length == 1)
                    cover.hit("longest_run", length == 255)
                    cover.hit("greatest_everywhere", greatest)
                    cover.hit("back_to_back", paused == 0)
                    cover.hit("began_from_c", c != 0)
                    cover.hit("largest_modulus", n == 1 << 64)
                    cover.hit("sum_is_zero", total == 0)
            else:
                cover.hit("paused")
            expected = pipe.step(ready)
            assert value(dut.valid_o) == (expected is not None)
            if expected is not None:
                assert value(dut.sum_o) == expected
                sums += 1
            cycles += 1
            await clock(dut)
    dut.valid_i.value = 0
    for _ in range(add_latency(bits)):
        await settle()
        expected = pipe.step(None)
        assert value(dut.valid_o) == (expected is not None)
        if expected is not None:
            assert value(dut.sum_o) == expected
            sums += 1
        cycles += 1
        await clock(dut)
    assert sums == 200
    cover.check(cycles)
