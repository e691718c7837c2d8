"""sf_sha1 against hashlib and, for blocks that are no padded message, Python: every digest, and the clock at which it comes."""

import hashlib
import random

import cocotb
from common import Coverage, Sink, Source, begin, clock, settle, value, words
from garbling import sha1_block, sha1_compress

CLOCKS = 82  # from a block's clock to the one in which its digest can be taken


async def run(dut, rng, cover, items):
    """`items`: pairs of block and digest."""
    await begin(dut, valid_i=0, ready_i=0, block_i=0)
    blocks = [int.from_bytes(block, "little") for block, _ in items]
    source = Source(dut.valid_i, dut.ready_o, dut.block_i, blocks, rng=rng)
    sink = Sink(dut.valid_o, dut.ready_i, dut.digest_o, rng=rng)
    cycles, began, free, held = 0, None, 0, 0
    while len(sink.taken) < len(items):
        source.drive()
        sink.drive()
        await settle()
        ready = began is not None and cycles >= began + CLOCKS
        assert dut.ready_o.value == (began is None)
        assert dut.valid_o.value == ready, f"a digest {CLOCKS} clocks behind its block, and no other"
        if ready:
            block, digest = items[len(sink.taken)]
            assert value(dut.digest_o) == int.from_bytes(digest, "little"), block.hex()
        cover.hit("waits_while_busy", source.offered and began is not None)
        taken, given = sink.sample(), source.sample()
        if taken is not None:
            cover.hit("digests")
            cover.hit("taken_at_once", held == 0)
            cover.hit("held_back", held > 0)
            began, free = None, cycles + 1
        elif ready:
            held += 1
        if given is not None:
            cover.hit("right_behind", cycles == free)
            cover.hit("later", cycles > free)
            began, held = cycles, 0
            source.often, sink.often = rng.choice((1, 0.2, 0.005)), rng.choice((1, 1, 0.2))
        cycles += 1
        await clock(dut)
    cover.check(cycles)


GOALS = {"taken_at_once": 20, "held_back": 10, "right_behind": 20, "later": 10, "waits_while_busy": 100}


@cocotb.test()
async def messages(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    cover = Coverage("messages", digests=66, known_answer=1, every_length=56, gate_of_80=10, gate_of_128=10, **GOALS)
    texts = [b"abc"] + [words(rng, 8 * n).to_bytes(n, "little") if n else b"" for n in range(56)]
    texts += [rng.randbytes(28) for _ in range(10)] + [rng.randbytes(40) for _ in range(10)]
    rng.shuffle(texts)
    assert hashlib.sha1(b"abc").hexdigest() == "a9993e364706816aba3e25717850c26c9cd0d89d"  # FIPS 180-4's example
    cover.hit("known_answer", b"abc" in texts)
    cover.hits["every_length"] = len({len(text) for text in texts})
    for text in texts:
        assert sha1_compress(sha1_block(text)) == hashlib.sha1(text).digest()
        cover.hit("gate_of_80", len(text) == 28)
        cover.hit("gate_of_128", len(text) == 40)
    await run(dut, rng, cover, [(sha1_block(text), hashlib.sha1(text).digest()) for text in texts])


@cocotb.test()
async def blocks(dut):
    rng = random.Random(cocotb.RANDOM_SEED + 1)
    cover = Coverage("blocks", digests=150, every_bit=1, **GOALS)
    texts = [words(rng, 512).to_bytes(64, "little") for _ in range(150)]
    zeros, ones = 0, 0
    for text in texts:
        ones |= int.from_bytes(text, "little")
        zeros |= ~int.from_bytes(text, "little")
    cover.hit("every_bit", ones == (1 << 512) - 1 and zeros & ones == ones)
    await run(dut, rng, cover, [(text, sha1_compress(text)) for text in texts])
