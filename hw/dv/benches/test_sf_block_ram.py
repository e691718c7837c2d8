"""sf_block_ram against a list: every copy has every write, a clock later, and a read of a place that is written gives what was there."""

import random

import cocotb
from common import Coverage, begin, clock, parameter, settle, value, words


@cocotb.test()
async def against_a_list(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    width, places, reads = (parameter(dut, name) for name in ("WIDTH", "PLACES", "READS"))
    index = max(1, (places - 1).bit_length())
    cover = Coverage(
        "against_a_list", writes=300, all_read=100, none_read=50, written_and_read=50, read_behind_write=50, same_place=20,
        stays=200, last_place=20, places=places,
    )
    await begin(dut, write_i=0, write_place_i=0, data_i=0, read_i=0, read_place_i=0)
    memory, out, seen, before = [None] * places, [None] * reads, set(), None
    for cycles in range(5000):
        write = rng.random() < 0.6 or cycles < places
        place = cycles if cycles < places else rng.randrange(places)
        data = words(rng, width)
        asked = [rng.random() < 0.7 for _ in range(reads)]
        near = [p for p in (place, before) if p is not None]
        at = [rng.choice(near) if rng.random() < 0.3 else rng.randrange(places) for _ in range(reads)]
        dut.write_i.value, dut.write_place_i.value, dut.data_i.value = int(write), place, data
        dut.read_i.value = sum(bit << r for r, bit in enumerate(asked))
        dut.read_place_i.value = sum(where << index * r for r, where in enumerate(at))
        await settle()
        got = value(dut.data_o)
        for r in range(reads):
            if out[r] is not None:
                assert got >> width * r & (1 << width) - 1 == out[r], f"copy {r}"
                cover.hit("stays", not asked[r])
        for r in range(reads):
            if asked[r]:
                out[r] = memory[at[r]]
                cover.hit("written_and_read", write and at[r] == place)
                cover.hit("read_behind_write", at[r] == before)
                cover.hit("last_place", at[r] == places - 1)
        cover.hit("all_read", all(asked))
        cover.hit("none_read", not any(asked))
        cover.hit("same_place", all(asked) and len(set(at)) == 1)
        before = None
        if write:
            memory[place], before = data, place
            cover.hit("writes")
            cover.hit("places", place not in seen)
            seen.add(place)
        await clock(dut)
    cover.check(5000)
