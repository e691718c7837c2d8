"""hg_aes against FIPS 197's vectors and Python: a block a clock, its latency exact."""

import random

import cocotb
from common import Coverage, Delay, begin, clock, parameter, settle, value, words
from garbling import aes_encrypt, aes_expand, from_planes, round_keys, to_planes

LATENCY = 21
# FIPS 197, appendices B and C.1: key, block, cipher.
VECTORS = [
    ("2b7e151628aed2a6abf7158809cf4f3c", "3243f6a8885a308d313198a2e0370734", "3925841d02dc09fbdc118597196a0b32"),
    ("000102030405060708090a0b0c0d0e0f", "00112233445566778899aabbccddeeff", "69c4e0d86a7b0430d8cdb78070b4c55a"),
]


def number(text):
    return int.from_bytes(bytes.fromhex(text), "little")


@cocotb.test()
async def blocks(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    count = parameter(dut, "BLOCKS")
    cover = Coverage("blocks", vectors=2 * count, random=200 * count, keys=6)
    keys = [bytes.fromhex(key) for key, _, _ in VECTORS] + [bytes(16), b"\xff" * 16, rng.randbytes(16), rng.randbytes(16)]
    cycles = 0
    await begin(dut, state_i=0, round_keys_i=0)
    for i, key in enumerate(keys):
        expanded = aes_expand(key)
        dut.round_keys_i.value = round_keys(expanded)
        given = [[words(rng, 128) for _ in range(count)] for _ in range(40)]
        published = {}
        if i < len(VECTORS):
            # The vector in each of the blocks, random ones beside it.
            for k in range(count):
                given[2 * k][k] = number(VECTORS[i][1])
                published[2 * k, k] = number(VECTORS[i][2])
        due = Delay(LATENCY)
        for n in range(len(given) + LATENCY):
            item = given[n] if n < len(given) else None
            dut.state_i.value = to_planes(item) if item else rng.getrandbits(128 * count)
            await settle()
            out = due.step((n, item) if item else None)
            if out is not None:
                ciphers = from_planes(value(dut.state_o), count)
                assert ciphers == [aes_encrypt(expanded, x) for x in out[1]]
                cover.hits["random"] += count
                for k in range(count):
                    if (out[0], k) in published:
                        assert ciphers[k] == published[out[0], k]
                        cover.hit("vectors")
            cycles += 1
            await clock(dut)
        cover.hit("keys")
    cover.check(cycles)
