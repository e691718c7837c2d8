"""onionchopper_board: contractions of every shape against Python, each error, and that nothing ever hangs."""

import random

import cocotb
from common import Coverage, Sink, Source, begin, clock, parameter, settle, value
from reference import (
    A, B, BAD_MODULUS, BAD_SHAPE, BEAT, C, DRAM_OVERRUN, OK, RF_OVERRUN, SRAM_OVERRUN, STUCK, UNREDUCED, contract, from_beats,
    modulus, register_writes, shape, tiles_of_data, to_ssd,
)

COUNTERS = (
    "clocks", "macs", "hazard", "tail", "fill", "ssd", "free", "dram", "ssd_words", "dram_reads", "dram_writes", "sram_reads",
    "sram_stores", "sums_begun", "out_beats",
)


class Board:
    """A host beside the board."""

    def __init__(self, dut, rng):
        self.dut, self.rng = dut, rng
        self.cycles = 0
        self.built = {
            name: parameter(dut, name.upper()) for name in ("sram_rows", "rf_rows", "half_beats", "c_beats")
        }
        self.lanes, self.word = parameter(dut, "LANES"), parameter(dut, "WORD")

    async def begin(self):
        await begin(
            self.dut, host_write_i=0, host_address_i=0, host_data_i=0, ssd_numerator_i=1, ssd_denominator_i=1, ssd_valid_i=0,
            ssd_data_i=0, out_ready_i=0, poke_i=0, poke_address_i=0, poke_data_i=0,
        )

    async def tick(self):
        self.cycles += 1
        await clock(self.dut)

    async def write(self, address, data):
        self.dut.host_write_i.value, self.dut.host_address_i.value, self.dut.host_data_i.value = 1, address, data
        await self.tick()
        self.dut.host_write_i.value = 0

    async def read(self, address):
        self.dut.host_address_i.value = address
        await settle()
        data = value(self.dut.host_data_o)
        await self.tick()
        return data

    async def state(self):
        """Busy, done, error."""
        data = await self.read(0)
        return data & 1, data >> 1 & 1, data >> 4 & 15

    async def counters(self):
        return {name: await self.read(0x80 + i) for i, name in enumerate(COUNTERS)}

    async def load(self, descriptor, moduli):
        for address, data in register_writes(descriptor, moduli):
            await self.write(address, data)

    async def clear(self):
        await self.write(0, 2)
        await self.tick()
        assert await self.state() == (0, 0, OK)

    async def run(self, words, offered=1.0, taken=1.0, rate=(1, 1), most=20000):
        """Starts, feeds the stream, takes what comes; clocks until the chip is idle again, or fails."""
        dut = self.dut
        dut.ssd_numerator_i.value, dut.ssd_denominator_i.value = rate
        source = Source(dut.ssd_valid_i, dut.ssd_ready_o, dut.ssd_data_i, words, offered, self.rng)
        sink = Sink(dut.out_valid_o, dut.out_ready_i, dut.out_data_o, taken, self.rng)
        await self.write(0, 1)
        for clocks in range(most):
            source.drive()
            sink.drive()
            await settle()
            busy = dut.busy_o.value == 1
            source.sample()
            sink.sample()
            await self.tick()
            if not busy:
                dut.ssd_valid_i.value, dut.out_ready_i.value = 0, 0
                return clocks, sink.taken, source
        raise AssertionError(f"still busy after {most} clocks")

    def shape(self, **given):
        return shape(self.rng, self.lanes, self.word, **{**self.built, **given})

    def moduli(self, count):
        return [1 << 32] * count if self.word == 32 else [modulus(self.rng) for _ in range(count)]

    async def contract(self, descriptor, moduli, **pace):
        """Runs a descriptor with fresh data and compares everything that can be counted."""
        d = descriptor
        data = tiles_of_data(self.rng, d, min(moduli), self.word)
        await self.load(d, moduli)
        stream = [word for tile in data for word in to_ssd(tile, self.word)]
        if d.resident:
            for t, tile in enumerate(data):
                words = to_ssd(tile, self.word)
                for i in range(d.tile_beats):
                    self.dut.poke_i.value = 1
                    self.dut.poke_address_i.value = t * self.built["half_beats"] + i
                    self.dut.poke_data_i.value = words[2 * i + 1] << 64 | words[2 * i]
                    await self.tick()
            self.dut.poke_i.value = 0
            stream = []
        clocks, beats, source = await self.run(stream, **pace)
        assert await self.state() == (0, 1, OK), await self.state()
        expected, spilled = contract(d, data, moduli, self.word)
        got = from_beats(beats, self.word)
        assert len(got) == len(expected), f"{len(got)} words out, {len(expected)} expected"
        wrong = [i for i, (x, y) in enumerate(zip(got, expected)) if x != y]
        assert not wrong, f"{len(wrong)} of {len(got)} words differ, the first at {wrong[0]}"
        assert not source.items, "words of the stream that nobody took"
        count = await self.counters()
        assert count["macs"] == d.macs() * d.tiles
        causes = [count[name] for name in ("macs", "hazard", "tail", "fill", "ssd", "free", "dram")]
        assert count["clocks"] == sum(causes), (count, causes)
        assert count["ssd_words"] == len(stream)
        assert count["out_beats"] == len(beats)
        assert count["dram_writes"] == spilled + len(stream) // 2
        await self.write(0, 2)
        return clocks, count, spilled




@cocotb.test()
async def contractions(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    board = Board(dut, rng)
    await board.begin()
    cover = Coverage(
        "contractions", spilled=3, stays_on_chip=3, one_beat=5, several_tiles=5, moduli_take_turns=3, resident=2,
        slow_ssd=3, held_back=3, waits_for_ssd=3, hazard=3, one_bank=2, several_banks=5, largest_modulus=1,
        **({"reduced": 3, "shared_by_lanes": 3} if board.lanes > 1 else {}),
    )
    for case in range(28):
        count = rng.choice((1, 1, 2, 3))
        most = 600 if board.lanes > 4 else 1000
        d = board.shape(moduli=count, most=most)
        moduli = board.moduli(count)
        if case % 7 == 0 and board.word == 64:
            moduli[0] = 1 << 64
        if case % 6 == 5 and d.tiles <= 2:
            d.resident = 1
        pace = rng.choice((
            {}, {"rate": (67, 100)}, {"rate": (1, 5)}, {"taken": 0.3}, {"offered": 0.4, "taken": 0.5},
        ))
        _, counters, spilled = await board.contract(d, moduli, **pace)
        cover.hit("spilled", spilled > 0)
        cover.hit("stays_on_chip", spilled == 0)
        cover.hit("one_beat", any(d.one_beat))
        cover.hit("several_tiles", d.tiles > 1)
        cover.hit("moduli_take_turns", count > 1 and d.tiles > 1)
        cover.hit("resident", d.resident == 1)
        cover.hit("slow_ssd", "rate" in pace)
        cover.hit("held_back", "taken" in pace)
        cover.hit("waits_for_ssd", counters["ssd"] > 0)
        cover.hit("hazard", counters["hazard"] > 0)
        cover.hit("one_bank", d.c_banks == 1)
        cover.hit("several_banks", d.c_banks > 1)
        cover.hit("largest_modulus", max(moduli) == 1 << board.word)
        if board.lanes > 1:
            cover.hit("reduced", d.reduce == 1)
            cover.hit("shared_by_lanes", 0 in (d.inner_stride[A], d.inner_stride[B]) and d.inner_log2 > 0)
    cover.check(board.cycles)
