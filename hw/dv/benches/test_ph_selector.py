"""ph_selector against Python: runs of bits anywhere in the buffer, in each of its ways, and the clocks from one to the next."""

import random

import cocotb
from common import Coverage, begin, clock, settle, value

WORDS = 288


def expected(bits, first, count, down, every, whole, width):
    """(position, set, weight) of each that is to be found, in order; a weight's position is that of its lowest bit set."""
    run = bits >> first & (1 << count) - 1
    if whole:
        found = []
        for i in range(0, count, width):
            weight = run >> i & (1 << width) - 1
            if weight:
                lowest = i + (weight & -weight).bit_length() - 1
                found.append((lowest, 1, weight - (weight >> width - 1 << width)))
        return found
    order = range(count - 1, -1, -1) if down else range(count)
    return [(i, run >> i & 1, None) for i in order if every or run >> i & 1]


@cocotb.test()
async def runs(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    cover = Coverage(
        "runs", bits=30, exponents=30, steady=15, weights=30, none=10, words=8, longest=2, inside_a_word=8, restarts=3,
        sparse=15, width2=4, width4=4, width8=4, last_word=5,
    )
    await begin(dut, start_i=0, first_i=0, count_i=1, down_i=0, every_i=0, whole_i=0, width_i=0, word_i=0, take_i=0)
    cycles, read = 0, None
    for number in range(140):
        kind = ("bits", "exponents", "steady", "weights")[number % 4]
        code = rng.randrange(3)
        width = 2 << code
        down, every, whole = kind in ("exponents", "steady"), kind == "steady", kind == "weights"
        if down:
            count = 4096 if number in (5, 129) else rng.choice((1, 2, 255, 256, 257, rng.randrange(1, 700)))
            count = min(count, 280) if every else count
            first = 256 * rng.choice((0, rng.randrange(WORDS - 16), WORDS - -(-count // 256)))
        else:
            count = width * rng.randrange(1, 17)
            first = rng.choice((0, WORDS * 256 - count, width * rng.randrange((WORDS * 256 - count) // width)))
        density = rng.choice((0.0, 0.01, 0.5, 1.0))
        bits = sum(1 << first + i for i in range(count) if rng.random() < density)
        # Beside the run there is anything.
        bits |= rng.getrandbits(256) << first + count | rng.getrandbits(256) << first >> 256
        wanted = expected(bits, first, count, down, every, whole, width)
        cover.hit(kind)
        cover.hit("none", not wanted)
        cover.hit("words", first // 256 != (first + count - 1) // 256)
        cover.hit("inside_a_word", first % 256 != 0 and (first + count) % 256 != 0)
        cover.hit("longest", count == 4096)
        cover.hit("sparse", density == 0.01)
        cover.hit("last_word", first + count > 287 * 256)
        if whole:
            cover.hit(f"width{width}")
        dut.first_i.value, dut.count_i.value, dut.width_i.value = first, count, code
        dut.down_i.value, dut.every_i.value, dut.whole_i.value = down, every, whole
        dut.start_i.value, dut.take_i.value = 1, 0
        stop = rng.randrange(len(wanted)) if wanted and rng.random() < 0.1 else None
        slow = rng.choice((0, 0, 0.5))
        since, previous, position = 0, None, 0
        junk = rng.getrandbits(256)
        while True:
            if read is not None or since % 4 == 0:  # what wasn't asked for may be anything
                dut.word_i.value = junk if read is None else bits >> 256 * read & (1 << 256) - 1
            offered = value(dut.valid_o) if since else 0
            take = bool(offered) and rng.random() >= slow
            dut.take_i.value = take
            await settle()
            if since and value(dut.valid_o):
                at, is_set, weight = wanted[position]
                assert value(dut.position_o) == at and value(dut.set_o) == is_set
                assert weight is None or value(dut.weight_o) == weight & 255
                if slow == 0:
                    # Four clocks to the first of a word, two to the next one there, three for each word without any.
                    here = (first + at) // 256
                    if position == 0:
                        begun = (first + count - 1 if down else first) // 256
                        assert since == 4 + 3 * abs(here - begun)
                    elif here == previous:
                        assert since == 2 if not every else since <= 2
                    else:
                        assert since == (4 if every else 2 + 3 * abs(here - previous))
                    previous = here
            read = value(dut.address_o) if value(dut.read_o) else None
            assert read is None or first // 256 <= read <= (first + count - 1) // 256
            end = since and value(dut.end_o)
            cycles += 1
            await clock(dut)
            dut.start_i.value = 0
            since += 1
            if take:
                position += 1
                since = 1
            if end:
                assert position == len(wanted)
                break
            if stop is not None and position > stop:
                cover.hit("restarts")
                break
    cover.check(cycles)
