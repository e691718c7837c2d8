"""ssd_model: nothing lost, nothing reordered, and never faster than the bandwidth, nor slower where both sides are ready."""

import random

import cocotb
from common import Coverage, Sink, Source, begin, clock, settle


@cocotb.test()
async def order_and_bandwidth(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    cover = Coverage("order_and_bandwidth", held_back=100, starved=100, words=1000, full_rate=4, slow=4, one_a_clock=1)
    cycles = 0
    rates = [(1, 1), (2, 3), (67, 100), (1, 7), (999, 1000), (1, 2), (65535, 65535), (1, 40)]
    for numerator, denominator in rates:
        for offered, taken in ((1, 1), (0.3, 1), (1, 0.3), (0.7, 0.7)):
            dut.rst_ni.value = 0
            await begin_once(dut)
            dut.numerator_i.value, dut.denominator_i.value = numerator, denominator
            await clock(dut)
            dut.rst_ni.value = 1
            items = [rng.getrandbits(64) for _ in range(300)]
            source = Source(dut.valid_i, dut.ready_o, dut.data_i, items, offered, rng)
            sink = Sink(dut.valid_o, dut.ready_i, dut.data_o, taken, rng)
            clocks, moved = 300, 0
            stamps = []
            for now in range(clocks):
                source.drive()
                sink.drive()
                await settle()
                cover.hit("held_back", dut.valid_o.value == 1 and not sink.open)
                cover.hit("starved", dut.valid_o.value == 0 and sink.open)
                if source.sample() is not None:
                    stamps.append(now)
                    moved += 1
                sink.sample()
                cycles += 1
                await clock(dut)
            source.often, sink.often = 0, 1
            while source.offered or dut.valid_o.value == 1:
                source.drive()
                sink.drive()
                await settle()
                moved += source.sample() is not None
                sink.sample()
                cycles += 1
                await clock(dut)
            assert sink.taken == items[:moved], "lost, doubled or out of order"
            cover.hits["words"] += moved
            # In any span of clocks the words are at most the bandwidth's, and the credit for one or two on top.
            for i, first in enumerate(stamps):
                for j in (i + 1, i + 2, i + 5, i + 20, i + 100):
                    if j < len(stamps):
                        span = stamps[j] - first + 1
                        assert (j - i + 1) <= span * numerator / denominator + 2, "faster than the SSD"
            if offered == taken == 1:
                # Both sides always ready: the bandwidth and nothing less, but for the first word's credit.
                assert len(stamps) >= min(300, clocks * numerator // denominator) - 1, "slower than the SSD"
                cover.hit("full_rate")
                cover.hit("slow", denominator >= 2 * numerator or denominator < 2 * numerator < 3 * denominator)
                cover.hit("one_a_clock", numerator == denominator)
    cover.check(cycles)


STARTED = []


async def begin_once(dut):
    if not STARTED:
        STARTED.append(True)
        await begin(dut, valid_i=0, ready_i=0, data_i=0, numerator_i=1, denominator_i=1)
        dut.rst_ni.value = 0
    else:
        dut.valid_i.value, dut.ready_i.value = 0, 0
        await clock(dut)
