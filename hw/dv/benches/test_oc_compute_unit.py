"""oc_compute_unit against Python: runs of multiply-accumulates, one a clock, and the flag for operands that are not reduced."""

import random

import cocotb
from common import Coverage, Delay, begin, clock, parameter, settle, value
from reference import add_latency, below, modulus, mul_latency, pack, stages


async def run(dut, rng, cover, runs, spoil):
    """`runs` runs; `spoil`: how often an operand is not below its modulus."""
    bits = parameter(dut, "BITS")
    sums = Delay(mul_latency(bits) + add_latency(bits))
    flags = Delay(1 if bits == 0 else stages(65, bits))
    cycles = 0
    await begin(dut, valid_i=0, refresh_i=0, last_i=0, a_i=0, b_i=0, c_i=0, modulus_i=pack(2))

    async def step(go, first, last, a, b, c, n, ready, flag):
        nonlocal cycles
        dut.valid_i.value = go
        dut.refresh_i.value = first if go else rng.randrange(2)
        dut.last_i.value = last if go else rng.randrange(2)
        dut.a_i.value, dut.b_i.value, dut.c_i.value, dut.modulus_i.value = a, b, c, pack(n)
        await settle()
        due = flags.step(flag)
        assert value(dut.unreduced_o) == bool(due), "operand not reduced"
        out = sums.step(ready)
        assert value(dut.valid_o) == (out is not None)
        if out is not None and out != "any":
            assert value(dut.sum_o) == out
            cover.hit("sums")
        cycles += 1
        await clock(dut)

    for i in range(runs):
        n = 1 << 64 if i % 15 == 0 else modulus(rng)
        length = 255 if i % 50 == 0 else rng.choice((1, 1, 2, 3, rng.randrange(4, 20)))
        paused = rng.choice((0, 0, 0.4))
        c = total = below(rng, n)
        done, bad = 0, False
        while done < length:
            if rng.random() < paused:
                # Nothing is valid: neither summed nor flagged, whatever the lines carry.
                await step(False, 0, 0, *(rng.getrandbits(64) for _ in range(3)), n, None, False)
                cover.hit("paused")
                continue
            a, b = below(rng, n), below(rng, n)
            first, last = done == 0, done == length - 1
            given = c if first else rng.getrandbits(64)
            flag = False
            if rng.random() < spoil and n < 1 << 64:
                which = rng.choice("abccc" if first else "abc")
                over = rng.choice((n, n + 1, (1 << 64) - 1))
                if over >> 64 == 0 and over >= n:
                    a, b = (over, b) if which == "a" else (a, over) if which == "b" else (a, b)
                    given = over if which == "c" else given
                    flag = which != "c" or first
                    if flag:
                        cover.hit(f"unreduced_{which}")
                        cover.hit("unreduced_by_none", over == n)
                    else:
                        cover.hit("c_unread")
            bad |= flag
            total = (total + a * b) % n
            done += 1
            ready = None
            if last:
                ready = "any" if bad else total
                cover.hit("run_of_one", length == 1)
                cover.hit("longest_run", length == 255)
                cover.hit("back_to_back", paused == 0)
                cover.hit("largest_modulus", n == 1 << 64)
            await step(True, first, last, a, b, given, n, ready, flag)
    for _ in range(len(sums.queue) + len(flags.queue)):
        await step(False, 0, 0, 0, 0, 0, 2, None, False)
    cover.check(cycles)


@cocotb.test()
async def sums(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    cover = Coverage("sums", sums=200, run_of_one=20, longest_run=3, back_to_back=50, paused=100, largest_modulus=10)
    await run(dut, rng, cover, 200, 0)
    assert cover.hits["sums"] == 200


@cocotb.test()
async def unreduced(dut):
    rng = random.Random(cocotb.RANDOM_SEED + 1)
    cover = Coverage(
        "unreduced", sums=20, run_of_one=5, longest_run=1, back_to_back=20, paused=50, largest_modulus=5, unreduced_a=20,
        unreduced_b=20, unreduced_c=10, unreduced_by_none=20, c_unread=20,
    )
    await run(dut, rng, cover, 200, 0.2)
