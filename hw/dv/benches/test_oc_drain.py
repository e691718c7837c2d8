"""oc_drain against Python: tiles of C out of the lanes' SRAMs, summed where lanes share one, out of the chip or to DRAM."""

import random
from collections import deque

import cocotb
from common import Coverage, begin, clock, parameter, settle, value
from reference import BEAT, Descriptor, MODULI, ROW, below, modulus, pack, pack_tile


@cocotb.test()
async def against_sums(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    lanes, width = parameter(dut, "LANES"), parameter(dut, "WORD")
    half_beats, c_beats = parameter(dut, "HALF_BEATS"), parameter(dut, "C_BEATS")
    columns, per_beat = ROW // width, BEAT // width
    cover = Coverage(
        "against_sums", out_beats=200, dram_beats=100, one_beat=5, reduced=8, not_reduced=8, held_back=100, waited_for_sums=50,
        read_refused=50, sum_wrapped=20, moduli_take_turns=10, overrun=3,
    )
    await begin(dut, start_i=0, config_i=0, moduli_i=0, tile_valid_i=0, tile_i=0, open_i=0, read_ready_i=0, rows_i=0,
                dram_ready_i=0, out_ready_i=0)
    cycles = 0
    for case in range(60):
        inner_log2 = rng.choice([i for i in range(5) if 1 << i <= lanes])
        d = Descriptor(inner_log2=inner_log2, groups=lanes >> inner_log2, reduce=rng.randrange(2))
        d.one_beat = [0, 0, rng.randrange(2)]
        rows = rng.randrange(1, 5)
        d.sram_rows = [1, 1, rows]
        d.moduli = rng.choice((1, 2, 3))
        sharers = 1 << inner_log2 if d.reduce else 1
        positions = (1 << inner_log2) // sharers
        words = per_beat * (1 if d.one_beat[2] else 2)
        # A period ends with a row; one that would end within it ends behind it.
        d.drain_period = rng.choice((1, words, 2 * words, words * rows * positions * d.groups))
        beats = d.beats(2)
        d.inner_stride, d.group_stride = [0, 0, beats], [0, 0, beats * positions]
        moduli = [1 << 32 if width == 32 else modulus(rng) for _ in range(d.moduli)]
        n_least = min(moduli)
        dut.config_i.value = d.pack()
        dut.moduli_i.value = sum(pack(n) << (193 * i) for i, n in enumerate(moduli + [2] * (MODULI - d.moduli)))
        dut.start_i.value = 1
        await clock(dut)
        dut.start_i.value = 0
        # Tiles lie in two halves of 16 rows.
        tiles, expected = deque(), deque()
        index, counted = 0, 0
        overrun = case % 10 == 9
        for number in range(rng.randrange(1, 4)):
            tile = {"a_row": 0, "b_row": 0, "c_row": number % 2 * 16 + 3, "c_half": number % 2, "c_new": 1, "c_zero": 1,
                    "c_ends": 1, "c_final": int(rng.random() < 0.6 and not overrun), "number": 5 * number + 2,
                    "c_beat": c_beats if overrun else rng.randrange(c_beats - beats * positions * d.groups)}
            data = [[[below(rng, n_least) for _ in range(columns)] for _ in range(rows)] for _ in range(lanes)]
            tiles.append((tile, data))
            for group in range(d.groups):
                for inner in range(positions):
                    first = (group << inner_log2) + inner
                    for row in range(rows):
                        total = [sum(data[first + s][row][w] for s in range(sharers)) for w in range(columns)]
                        cover.hit("sum_wrapped", max(total[:words]) >= moduli[index] and sharers > 1)
                        if sharers > 1:
                            total = [word % moduli[index] for word in total]
                        counted += words
                        if counted >= d.drain_period:
                            counted, index = 0, (index + 1) % d.moduli
                            cover.hit("moduli_take_turns", index > 0 and sharers > 1)
                        for part in range(words // per_beat):
                            beat = sum(total[part * per_beat + w] << (width * w) for w in range(per_beat))
                            at = tile["c_beat"] + group * d.group_stride[2] + inner * d.inner_stride[2]
                            at += row * (words // per_beat) + part + 2 * half_beats
                            expected.append((tile["c_final"], at, beat))
        taken, refuse = rng.choice(((1, 0), (0.4, 0), (1, 0.5), (0.5, 0.5)))
        wait, read, last, clocks = rng.randrange(0, 30), None, None, 0
        while clocks < 5000:
            tile, data = tiles[0] if tiles else (None, None)
            dut.tile_valid_i.value = tile is not None
            # The other half's sums don't matter, this half's must all be in the SRAM.
            pending = tile is not None and wait > 0
            wait -= pending
            half = tile["c_half"] if tile else 0
            dut.open_i.value = (rng.randrange(1, 9) if pending else 0) << (8 * half) | rng.randrange(9) << (8 * (1 - half))
            dut.tile_i.value = pack_tile(tile) if tile else rng.getrandbits(85)
            ready, write_ready = rng.random() >= refuse, rng.random() < taken
            dut.read_ready_i.value, dut.out_ready_i.value, dut.dram_ready_i.value = ready, write_ready, write_ready
            # A row is there for the one clock behind the read.
            dut.rows_i.value = rng.getrandbits(lanes * ROW) if read is None else sum(
                last[lane][read][w] << (lane * ROW + w * width) for lane in range(lanes) for w in range(columns))
            await settle()
            read = None
            if dut.read_valid_o.value == 1:
                assert tile is not None and not pending, "a tile with sums still to come"
                cover.hit("read_refused", not ready)
                if ready:
                    read, last = value(dut.read_row_o) - tile["c_row"], data
                    assert 0 <= read < rows
            cover.hit("waited_for_sums", pending)
            out, dram = dut.out_valid_o.value == 1, dut.dram_valid_o.value == 1
            assert not (out and dram)
            if overrun and dram:
                assert dut.overrun_o.value == 1
                cover.hit("overrun")
                await clock(dut)
                break
            assert dut.overrun_o.value == 0
            if out or dram:
                final, at, beat = expected[0]
                assert out == bool(final)
                assert value(dut.data_o) == beat
                assert out or value(dut.dram_address_o) == at
                cover.hit("held_back", not write_ready)
                if write_ready:
                    expected.popleft()
                    cover.hit("out_beats" if out else "dram_beats")
            gone = tile is not None and dut.tile_ready_o.value == 1
            clocks += 1
            cycles += 1
            await clock(dut)
            if gone:
                tiles.popleft()
                wait = rng.randrange(0, 30)
                assert value(dut.drained_o) == tile["number"] + 1
                if not tiles:
                    break
        if overrun:
            dut.tile_valid_i.value, dut.rst_ni.value = 0, 0
            await clock(dut)
            dut.rst_ni.value = 1
            continue
        dut.tile_valid_i.value = 0
        await settle()
        assert not tiles and not expected, "it hangs, or something is missing"
        assert dut.idle_o.value == 1
        await clock(dut)
        cover.hit("one_beat", d.one_beat[2] == 1)
        cover.hit("reduced", sharers > 1)
        cover.hit("not_reduced", sharers == 1)
    if lanes == 1:  # a lane alone shares nothing
        for name in ("reduced", "sum_wrapped", "moduli_take_turns"):
            assert cover.hits[name] == 0
            cover.goals.pop(name)
    cover.check(cycles)
