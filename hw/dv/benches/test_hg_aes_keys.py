"""hg_aes_keys against FIPS 197's expansion and Python: every key after 11 clocks, kept, and started anew at any time."""

import random

import cocotb
from common import Coverage, begin, clock, settle, value
from garbling import aes_expand, from_planes, round_keys

LATENCY = 11
# FIPS 197, appendix A.1: the key, its first and its last round key.
PUBLISHED = ("2b7e151628aed2a6abf7158809cf4f3c", "a0fafe1788542cb123a339392a6c7605", "d014f9a8c9ee2589e13f0cc8b6630ca6")


@cocotb.test()
async def keys(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    cover = Coverage("keys", published=1, expanded=100, kept=100, restarted=30, started_when_done=20)
    await begin(dut, start_i=0, key_i=0)
    await settle()
    assert value(dut.done_o) == 0, "nothing was started"
    await clock(dut)
    cycles = 0
    held = False
    for i in range(200):
        key = bytes.fromhex(PUBLISHED[0]) if i == 0 else rng.choice((rng.randbytes(16), rng.randbytes(16), bytes(16), b"\xff" * 16))
        expanded = round_keys(aes_expand(key))
        # A third of them is cut short by the next.
        run = rng.randrange(1, LATENCY) if i % 3 == 2 else LATENCY + rng.choice((0, 0, rng.randrange(1, 30)))
        for n in range(run + 1):
            dut.start_i.value = n == 0
            dut.key_i.value = int.from_bytes(key, "little") if n == 0 else rng.getrandbits(128)
            await settle()
            if n == 0:
                # What was expanded before stays until this start is taken.
                assert value(dut.done_o) == held
                cover.hit("started_when_done", held)
            else:
                assert value(dut.done_o) == (n >= LATENCY), f"clock {n}"
                if n >= LATENCY:
                    assert value(dut.round_keys_o) == expanded
                    cover.hit("kept", n > LATENCY)
            cycles += 1
            if n < run:
                await clock(dut)
        if run >= LATENCY:
            held = True
            cover.hit("expanded")
            if i == 0:
                given = [from_planes(value(dut.round_keys_o) >> 128 * r & ((1 << 128) - 1), 1)[0] for r in range(11)]
                assert [given[r].to_bytes(16, "little").hex() for r in (0, 1, 10)] == list(PUBLISHED)
                cover.hit("published")
        else:
            # The next start comes a clock later: where that is the last of them, this key is done.
            held = run + 1 == LATENCY
            cover.hit("restarted", not held)
        await clock(dut)
    cover.check(cycles)
