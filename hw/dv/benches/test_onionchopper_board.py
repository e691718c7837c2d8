"""onionchopper_board: contractions of every shape against Python, each error, and that nothing ever hangs."""

import copy
import math
import random

import cocotb
from common import Coverage, Sink, Source, begin, clock, parameter, settle, value
from reference import (
    A, B, BAD_MODULUS, BAD_SHAPE, C, DRAM_OVERRUN, OK, RF_OVERRUN, SRAM_OVERRUN, STUCK, UNREDUCED, Descriptor, contract,
    from_beats, loader_steps, modulus, register_writes, shape, tiles_of_data, to_ssd,
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
        self.lanes, self.word, self.bits = (parameter(dut, name) for name in ("LANES", "WORD", "BITS"))

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
        while True:
            d = shape(self.rng, self.lanes, self.word, **{**self.built, "half_beats": 256, **given})
            # A pipelined accumulator holds 255 products of a run.
            if self.bits == 0 or math.prod(d.sram_bounds) * math.prod(d.rf_bounds) <= 255:
                return d

    def moduli(self, count):
        return [1 << 32] * count if self.word == 32 else [modulus(self.rng) for _ in range(count)]

    def apart(self, d):
        """A resident descriptor whose tiles lie apart, over all of the DRAM; and where a beat of its data lies then."""
        c_beats = 1 + sum(stride[C] * (bound - 1) for stride, bound in zip(d.dram_strides, d.dram_bounds))
        c_beats += d.offset(C, d.groups - 1, (1 << d.inner_log2) - 1) + d.beats(C)
        by = [self.built["half_beats"] // d.tile_beats] * 2 + [self.built["c_beats"] // c_beats]
        far = copy.deepcopy(d)
        far.tile_beats, far.b_base = d.tile_beats * by[B], d.b_base * by[A]
        for strides in [*far.dram_strides, far.inner_stride, far.group_stride]:
            strides[:] = [stride * times for stride, times in zip(strides, by)]

        def place(beat):
            x = B if beat >= d.b_base else A
            begins = d.b_base if x == B else 0
            tile, within = divmod(beat - begins, d.beats(x))
            return (begins + tile * d.beats(x)) * by[x] + within
        return far, place

    async def contract(self, descriptor, moduli, load=True, apart=False, **pace):
        """Runs a descriptor with fresh data and compares everything that can be counted."""
        d = descriptor
        data = tiles_of_data(self.rng, d, min(moduli), self.word)
        given, place = self.apart(d) if apart else (d, int)
        if load:
            await self.load(given, moduli)
        stream = [word for tile in data for word in to_ssd(tile, self.word)]
        if d.resident:
            for t, tile in enumerate(data):
                words = to_ssd(tile, self.word)
                for i in range(d.tile_beats):
                    self.dut.poke_i.value = 1
                    self.dut.poke_address_i.value = t * self.built["half_beats"] + place(i)
                    self.dut.poke_data_i.value = words[2 * i + 1] << 64 | words[2 * i]
                    await self.tick()
            self.dut.poke_i.value = 0
            stream = []
        clocks, beats, source = await self.run(stream, most=20000 + 60 * len(stream), **pace)
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
        # Gigabytes of which little is used: words beyond the first 256 MiB, sums too.
        **({"apart": 4, "spilled_apart": 1} if (large := board.built["half_beats"] > 1 << 24) else {}),
    )
    for case in range(28):
        count = rng.choice((1, 1, 2, 3)) if case % 4 else 3
        most = 600 if board.lanes > 4 else 1000
        d = board.shape(moduli=count, most=most)
        while case % 5 == 4 and all(tile["c_final"] or not tile["c_ends"] for *_, tile in loader_steps(d)):
            d = board.shape(moduli=count, most=most)
        moduli = board.moduli(count)
        if case % 7 == 0 and board.word == 64:
            moduli[0] = 1 << 64
        if case % 6 == 5 and d.tiles <= 2:
            d.resident = 1
        apart = large and case % 3 == 1
        if apart:
            while d.tiles > 2 or (case % 2 and all(tile["c_final"] or not tile["c_ends"] for *_, tile in loader_steps(d))):
                d = board.shape(moduli=count, most=most)
            d.resident = 1
        pace = rng.choice((
            {}, {"rate": (67, 100)}, {"rate": (1, 5)}, {"taken": 0.3}, {"offered": 0.4, "taken": 0.5},
        ))
        _, counters, spilled = await board.contract(d, moduli, apart=apart, **pace)
        cover.hit("spilled", spilled > 0)
        cover.hit("stays_on_chip", spilled == 0)
        if large:
            cover.hit("apart", apart)
            cover.hit("spilled_apart", apart and spilled > 0)
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


def plain(board, **changes):
    """A contraction with each operand at each level, whose sums go to DRAM and come back; then what is to be wrong."""
    words = 256 // board.word
    d = Descriptor(
        tiles=1, groups=board.lanes, rf_bounds=[1, 2, 4], sram_bounds=[1, 1, 2, 2], dram_bounds=[1, 1, 1, 1, 2, 3],
        rf_rows=[1, 2, 1], sram_rows=[2, 8, 2], c_banks=2, moduli=1, watchdog=300,
    )
    d.rf_strides[1], d.rf_strides[2] = [0, words, 1], [1, 1, 0]
    d.sram_strides[2], d.sram_strides[3] = [1, 4, 0], [0, 2, 1]
    d.dram_strides[4], d.dram_strides[5] = [4, 48, 0], [0, 16, 4]
    d.group_stride = [0, 96, 12]
    d.b_base = 8
    d.tile_beats = 8 + 96 * board.lanes
    d.mac_period = d.macs()
    d.drain_period = 1 << 20
    for name, change in changes.items():
        held = getattr(d, name)
        setattr(d, name, change(held) if callable(change) else change)
    return d


def put(*path, to):
    """A change of one number in a list, or in a list of lists."""
    def change(held):
        held = [list(line) if isinstance(line, list) else line for line in held]
        inner = held
        for index in path[:-1]:
            inner = inner[index]
        inner[path[-1]] = to
        return held
    return change


def good(board):
    return [1 << 32] if board.word == 32 else [modulus(board.rng)]


async def stream_of(board, descriptor, n):
    return [w for tile in tiles_of_data(board.rng, descriptor, n, board.word) for w in to_ssd(tile, board.word)]


async def recover(board, expected):
    """The error is there and stays, nothing starts over it; once it is cleared the next computation is right, at once."""
    assert await board.state() == (0, 1, expected), f"{await board.state()}, expected error {expected}"
    await board.write(0, 1)
    await board.tick()
    assert await board.state() == (0, 1, expected), "a start over an error"
    await board.clear()
    await board.contract(plain(board), good(board))


@cocotb.test()
async def bad_descriptors(dut):
    """What the chip refuses before it begins."""
    rng = random.Random(cocotb.RANDOM_SEED + 1)
    board = Board(dut, rng)
    await board.begin()
    cover = Coverage("bad_descriptors", bad_shape=20, bad_modulus=4, sram_overrun=1, rf_overrun=1)
    lanes = board.lanes
    rows, rf = board.built["sram_rows"], board.built["rf_rows"]
    cases = [(BAD_SHAPE, {"tiles": 0}), (BAD_SHAPE, {"tile_beats": 0}),
             (BAD_SHAPE, {"tile_beats": board.built["half_beats"] + 1}), (BAD_SHAPE, {"groups": 0}),
             (BAD_SHAPE, {"groups": lanes + 1}), (BAD_SHAPE, {"inner_log2": 5}), (BAD_SHAPE, {"inner_log2": 1}),
             (BAD_SHAPE, {"mac_period": 0}), (BAD_SHAPE, {"drain_period": 0}), (BAD_SHAPE, {"watchdog": 0}),
             (BAD_SHAPE, {"c_banks": 0}), (BAD_SHAPE, {"resident": 1, "tiles": 3})]
    for name, loops in (("dram_bounds", 6), ("sram_bounds", 4), ("rf_bounds", 3)):
        cases += [(BAD_SHAPE, {name: put(l, to=0)}) for l in range(loops)]
    for name in ("sram_rows", "rf_rows"):
        cases += [(BAD_SHAPE, {name: put(x, to=0)}) for x in range(3)]
    cases += [(SRAM_OVERRUN, {"sram_rows": put(B, to=min(rows // 2 - 3, 255))}),
              (RF_OVERRUN, {"c_banks": 11}),
              (RF_OVERRUN, {"rf_rows": put(A, to=rf // 2)}), (BAD_MODULUS, {"moduli": 0}), (BAD_MODULUS, {"moduli": 17})]
    bad = [[0], [1], [(1 << 64) + 1], [1 << 64, 0], [65537, 1]]
    for expected, changes in cases:
        d = plain(board, **changes)
        await board.load(d, good(board))
        clocks, out, _ = await board.run(await stream_of(board, plain(board), 2), most=5)
        assert clocks <= 2 and not out
        assert await board.state() == (0, 1, expected), (await board.state(), changes)
        await board.clear()
        cover.hit({BAD_SHAPE: "bad_shape", BAD_MODULUS: "bad_modulus", SRAM_OVERRUN: "sram_overrun", RF_OVERRUN: "rf_overrun"}[expected])
    for moduli in bad:
        await board.load(plain(board, moduli=len(moduli)), moduli)
        clocks, out, _ = await board.run([], most=5)
        assert clocks <= 2 and not out
        cover.hit("bad_modulus")
        await recover(board, BAD_MODULUS)
    cover.check(board.cycles)


@cocotb.test()
async def errors_under_way(dut):
    """What the chip finds while it works: it ends at once, and is whole again when the error is cleared."""
    rng = random.Random(cocotb.RANDOM_SEED + 2)
    board = Board(dut, rng)
    await board.begin()
    goals = {"a_behind_tile": 2, "b_behind_tile": 2, "c_behind_dram": 2, "sram_a": 2, "sram_b": 2, "sram_c": 2, "rf_a": 2,
             "rf_b": 2, "rf_c": 2}
    if board.word == 64:
        goals |= {"unreduced_a": 2, "unreduced_b": 2}
    cover = Coverage("errors_under_way", **goals)
    words = 256 // board.word
    base = plain(board)
    cases = {
        "a_behind_tile": (DRAM_OVERRUN, {"dram_strides": put(4, A, to=base.tile_beats)}),
        "b_behind_tile": (DRAM_OVERRUN, {"group_stride": put(B, to=base.tile_beats - 8)} if board.lanes > 1 else
                          {"dram_strides": put(5, B, to=base.tile_beats - 8)}),
        "c_behind_dram": (DRAM_OVERRUN, {"dram_strides": put(5, C, to=board.built["c_beats"])}),
        "sram_a": (SRAM_OVERRUN, {"sram_strides": put(2, A, to=2)}),
        "sram_b": (SRAM_OVERRUN, {"sram_strides": put(3, B, to=8)}),
        "sram_c": (SRAM_OVERRUN, {"sram_strides": put(3, C, to=2)}),
        "rf_a": (RF_OVERRUN, {"rf_strides": put(2, A, to=words)}),
        "rf_b": (RF_OVERRUN, {"rf_strides": put(1, B, to=2 * words)}),
        "rf_c": (RF_OVERRUN, {"rf_strides": put(1, C, to=words)}),
    }
    if board.bits:  # a run of more products than the accumulator's guard bits hold
        cases["long_run"] = (BAD_SHAPE, {"rf_bounds": put(2, to=256), "rf_strides": put(2, to=[0, 0, 0])})
        cover.goals["long_run"] = 2
        cover.hits["long_run"] = 0
    for name, (expected, changes) in list(cases.items()) * 2:
        d = plain(board, **changes)
        await board.load(d, good(board))
        await board.run(await stream_of(board, d, 2), rng.choice((1, 0.5)), rng.choice((1, 0.5)), most=6000)
        await recover(board, expected)
        cover.hit(name)
    for i in range(4 if board.word == 64 else 0):
        # One word of A or B that is just not below n. Then the same descriptor again, cleared and started at once: what
        # was under way to and from SSD and DRAM must not reach it.
        d, n = plain(board), (1 << 61) - 1
        await board.load(d, [n])
        at = rng.randrange(16) if i % 2 == 0 else 16 + rng.randrange(192)
        stream = await stream_of(board, d, n)
        stream[at] = n
        await board.run(stream, most=6000)
        assert await board.state() == (0, 1, UNREDUCED)
        await board.write(0, 2)
        await board.contract(d, [n], load=False)
        cover.hit("unreduced_a" if at < 16 else "unreduced_b")
    cover.check(board.cycles)


@cocotb.test()
async def watchdog(dut):
    """A run that is starved or held back ends within the watchdog's clocks, wherever it stands; a slow one does not."""
    rng = random.Random(cocotb.RANDOM_SEED + 3)
    board = Board(dut, rng)
    await board.begin()
    cover = Coverage("watchdog", never_fed=2, starved=6, never_taken=3, slow_but_whole=2, shortest=1, host_shut_out=1)
    whole = plain(board)
    length = len(await stream_of(board, whole, 2))
    for patience in (1, 40, 300):
        for fed in (0, 1, 2, 16, length // 2, length - 1):
            d = plain(board, watchdog=patience)
            await board.load(d, good(board))
            words = (await stream_of(board, d, 2))[:fed]
            source = Source(dut.ssd_valid_i, dut.ssd_ready_o, dut.ssd_data_i, words)
            dut.ssd_numerator_i.value, dut.ssd_denominator_i.value = 1, 1
            dut.out_ready_i.value = 1
            await board.write(0, 1)
            quiet = 0
            for clocks in range(8000):
                source.drive()
                await settle()
                fed_one = source.sample() is not None
                out = dut.out_valid_o.value == 1
                if dut.busy_o.value == 0:
                    break
                # Behind the stream's last word there is a while until all that it allows is done.
                quiet = 0 if fed_one or out else quiet + 1
                assert quiet < patience + 1500, "it hangs"
                await board.tick()
            else:
                raise AssertionError("it hangs")
            await board.tick()
            dut.ssd_valid_i.value = 0
            if fed == 0:
                assert clocks <= patience + 3, f"{clocks} clocks for a watchdog of {patience}"
            cover.hit("never_fed", fed == 0)
            cover.hit("starved", fed > 0)
            cover.hit("shortest", patience == 1)
            await recover(board, STUCK)
    for patience in (40, 300, 500):
        d = plain(board, watchdog=patience)
        await board.load(d, good(board))
        _, out, _ = await board.run(await stream_of(board, d, 2), taken=0, most=patience + 4000)
        assert not out
        cover.hit("never_taken")
        await recover(board, STUCK)
    for _ in range(2):
        # Seldom fed, but more often than the watchdog bites.
        d = plain(board, watchdog=300)
        await board.contract(d, good(board), rate=(1, 20), taken=0.1)
        cover.hit("slow_but_whole")
    # While it works, writes change nothing: neither the descriptor nor a start or a clear.
    d, moduli = plain(board), good(board)
    data = tiles_of_data(rng, d, moduli[0], board.word)
    await board.load(d, moduli)
    await board.write(0, 1)
    for address, data_word in list(register_writes(plain(board, tiles=7), [3]))[:80] + [(0, 3), (0, 1)]:
        await board.write(address, data_word)
    assert (await board.state())[0] == 1
    source = Source(dut.ssd_valid_i, dut.ssd_ready_o, dut.ssd_data_i, to_ssd(data[0], board.word))
    sink = Sink(dut.out_valid_o, dut.out_ready_i, dut.out_data_o)
    while dut.busy_o.value == 1:
        source.drive()
        sink.drive()
        await settle()
        source.sample()
        sink.sample()
        await board.tick()
    assert await board.state() == (0, 1, OK)
    assert from_beats(sink.taken, board.word) == contract(d, data, moduli, board.word)[0]
    cover.hit("host_shut_out")
    cover.check(board.cycles)
