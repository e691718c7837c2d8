"""ddr_model against an array: each access ends once, at its clock; a write changes the labels of its mask and no other."""

import random

import cocotb
from common import Coverage, begin, clock, parameter, settle, value

LANES = 4


@cocotb.test()
async def against_an_array(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    words = parameter(dut, "WORDS")
    index = (words - 1).bit_length()
    cover = Coverage(
        "against_an_array", reads=300, writes=200, both_ports=100, end_at_once=20, same_word=20, read_behind_write=20,
        back_to_back=100, poked=200, peeked=500, nothing_masked=5, several_masked=50, latency_0=50, latency_1=50, latency_long=2,
    )
    await begin(
        dut, latency_i=1, valid_i=0, write_i=0, word_i=0, mask_i=0, data_i=0, poke_i=0, poke_place_i=0, poke_label_i=0,
    )
    memory = [[None] * LANES for _ in range(words)]
    cycles = 0
    dut.poke_i.value = 1
    for place in range(words * LANES):
        memory[place // LANES][place % LANES] = label = rng.getrandbits(128)
        dut.poke_place_i.value, dut.poke_label_i.value = place, label
        cycles += 1
        await clock(dut)
    dut.poke_i.value = 0
    for latency in (36, 1, 0, 5, 2, 36, 300):
        # Latency changes only while nothing is under way.
        dut.latency_i.value = latency
        port, ended, written = [None, None], [False, False], None
        for step in range(500 if latency < 300 else 1500):
            for p in range(2):
                if port[p] is None and rng.random() < 0.7 and step < 1100:
                    word = port[1 - p][1] if port[1 - p] and rng.random() < 0.3 else rng.randrange(words)
                    word = written if written is not None and rng.random() < 0.2 else word
                    mask = rng.choice((1, 2, 4, 8, 15, 5, 0))
                    port[p] = [rng.random() < 0.4, word, mask, rng.getrandbits(512), 0]
                    cover.hit("back_to_back", ended[p])
            given = [entry or [rng.random() < 0.5, rng.randrange(words), 15, rng.getrandbits(512), 0] for entry in port]
            valid = [entry is not None for entry in port]
            dut.valid_i.value = sum(bit << p for p, bit in enumerate(valid))
            for name, part, width in (("write_i", 0, 1), ("word_i", 1, index), ("mask_i", 2, 4), ("data_i", 3, 512)):
                getattr(dut, name).value = sum(int(entry[part]) << width * p for p, entry in enumerate(given))
            # The host's way in and out, beside accesses to other labels.
            poke, place = rng.random() < 0.3, rng.randrange(words * LANES)
            poke = poke and not any(valid[p] and given[p][1] == place // LANES for p in range(2))
            label = rng.getrandbits(128)
            dut.poke_i.value, dut.poke_place_i.value, dut.poke_label_i.value = int(poke), place, label
            await settle()
            complete, data = value(dut.complete_o), value(dut.data_o)
            assert value(dut.peek_label_o) == memory[place // LANES][place % LANES]
            cover.hit("peeked")
            ends = [valid[p] and port[p][4] + 1 >= latency for p in range(2)]
            assert complete == sum(bit << p for p, bit in enumerate(ends)), "an access ends after its clocks, once"
            for p in range(2):
                if ends[p] and not port[p][0]:
                    assert data >> 512 * p & (1 << 512) - 1 == sum(x << 128 * i for i, x in enumerate(memory[port[p][1]]))
                    cover.hit("reads")
                    cover.hit("read_behind_write", port[p][1] == written)
            cover.hit("both_ports", all(valid))
            cover.hit("end_at_once", all(ends))
            cover.hit("same_word", all(valid) and port[0][1] == port[1][1])
            cover.hit("latency_0", any(ends) and latency == 0)
            cover.hit("latency_1", any(ends) and latency == 1)
            cover.hit("latency_long", any(ends) and latency == 300)
            for p in range(2):
                if ends[p] and port[p][0]:
                    write, word, mask, data, _ = port[p]
                    for lane in range(LANES):
                        if mask >> lane & 1:
                            memory[word][lane] = data >> 128 * lane & (1 << 128) - 1
                    written = word
                    cover.hit("writes")
                    cover.hit("nothing_masked", mask == 0)
                    cover.hit("several_masked", mask in (5, 15))
            if poke:
                memory[place // LANES][place % LANES] = label
                cover.hit("poked")
            for p in range(2):
                if valid[p]:
                    port[p][4] += 1
                if ends[p]:
                    port[p] = None
            ended = ends
            cycles += 1
            await clock(dut)
        # The last accesses end.
        while any(port):
            for p in range(2):
                dut.poke_i.value = 0
            dut.valid_i.value = sum((entry is not None) << p for p, entry in enumerate(port))
            await settle()
            for p in range(2):
                if port[p]:
                    assert (value(dut.complete_o) >> p & 1) == (port[p][4] + 1 >= latency)
            both = [p for p in range(2) if port[p] and port[p][4] + 1 >= latency]
            for p in both:
                if port[p][0]:
                    for lane in range(LANES):
                        if port[p][2] >> lane & 1:
                            memory[port[p][1]][lane] = port[p][3] >> 128 * lane & (1 << 128) - 1
            for p in range(2):
                if port[p]:
                    port[p][4] += 1
                if p in both:
                    port[p] = None
            cycles += 1
            await clock(dut)
        dut.valid_i.value = 0
        await clock(dut)
    cover.check(cycles)
