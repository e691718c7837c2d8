"""oc_sequencer with one lane in Python: whatever it does and in whatever order, the SRAM must hold the right sums."""

import math
import random
from collections import deque

import cocotb
from common import Coverage, begin, clock, parameter, settle, value
from reference import (
    A, B, C, ROW, Descriptor, add_latency, mul_latency, pack_tile, shape, unpack_tile, visits,
)

N = 65537


def sums(d, tiles, sram, columns):
    """The SRAM behind each tile of C's last tile, one multiply-accumulate after the other."""
    sram, behind = [list(row) for row in sram], []
    nest = visits(d.sram_bounds, d.sram_strides, 3, 8)
    inner = visits(d.rf_bounds, d.rf_strides, 3, 8)
    for tile in tiles:
        if tile["c_new"] and tile["c_zero"]:
            for row in range(d.sram_rows[C]):
                sram[tile["c_row"] + row] = [0] * columns
        for at, *_ in nest:
            for word, *_ in inner:
                def place(x):
                    return tile[("a_row", "b_row", "c_row")[x]] + at[x] + word[x] // columns, word[x] % columns
                (ar, aw), (br, bw), (cr, cw) = place(A), place(B), place(C)
                sram[cr][cw] = (sram[cr][cw] + sram[ar][aw] * sram[br][bw]) % N
        behind.append([list(row) for row in sram])
    return behind


@cocotb.test()
async def with_a_lane(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    width, bits, lanes = parameter(dut, "WORD"), parameter(dut, "BITS"), parameter(dut, "LANES")
    sram_rows, rf_rows = parameter(dut, "SRAM_ROWS"), parameter(dut, "RF_ROWS")
    columns = ROW // width
    latency = 1 + (mul_latency(bits) + add_latency(bits) if width == 64 else 2)
    cover = Coverage(
        "with_a_lane", macs=3000, hazard=100, c_goes_on=10, c_begins_at_zero=10, c_comes_from_sram=5, one_bank=5,
        several_banks=10, run_over_tiles=5, drain_waits=20, reduced=5, stores=200, every_clock=2,
    )
    await begin(dut, start_i=0, config_i=0, tile_valid_i=0, tile_i=0, drain_ready_i=0, sum_i=0)
    cycles = 0
    for case in range(45):
        d = shape(rng, lanes, width, sram_rows=sram_rows, rf_rows=rf_rows, most=1 << 30)
        while not 4 <= (steps := len(visits(d.sram_bounds, d.sram_strides, 3, 8)) * len(
                visits(d.rf_bounds, d.rf_strides, 3, 8))) <= 200:
            d = shape(rng, lanes, width, sram_rows=sram_rows, rf_rows=rf_rows, most=1 << 30)
        d.one_beat = [0, 0, 0]
        smooth = case % 15 == 0
        if smooth:  # one C at a time, long enough that nothing has to wait
            d = Descriptor(inner_log2=0, groups=lanes, rf_bounds=[1, 1, 4], sram_bounds=[1, 1, 1, 20], rf_rows=[1, 1, 1],
                           sram_rows=[20, 1, 1], c_banks=2)
            d.rf_strides[2], d.sram_strides[3] = [1, 1, 0], [1, 0, 0]
            steps = 80
        # Tiles as the loader would send them: C stays for some of them, and its half is another for the next.
        begins = (0, 2 * d.sram_rows[A], 2 * d.sram_rows[A] + 2 * d.sram_rows[B])
        tiles, half = [], [0, 0, 0]
        count = rng.randrange(2, 6)
        for number in range(count):
            new = number == 0 or tiles[-1]["c_ends"] == 1
            half = [half[A] ^ 1, half[B] ^ (number % 2), half[C] ^ new]
            rows = [begins[x] + half[x] * d.sram_rows[x] for x in range(3)]
            tiles.append({
                "a_row": rows[A], "b_row": rows[B], "c_row": rows[C], "c_half": half[C], "c_new": int(new),
                "c_zero": rng.randrange(2) if new else tiles[-1]["c_zero"], "c_ends": int(number == count - 1 or rng.random() < 0.5),
                "c_final": rng.randrange(2), "c_beat": rng.getrandbits(28), "number": number,
            })
        sram = [[rng.randrange(N) for _ in range(columns)] for _ in range(sram_rows)]
        behind = sums(d, tiles, sram, columns)
        rf = [[rng.getrandbits(16) for _ in range(columns)] for _ in range(rf_rows)]
        dut.config_i.value = d.pack()
        dut.start_i.value = 1
        await clock(dut)
        dut.start_i.value = 0
        waiting, pipe, row, drains = deque(tiles), deque([None] * latency), None, deque(t for t in tiles if t["c_ends"])
        total, clocks, issued, tail, first_issue, last_issue = None, 0, 0, 0, None, None
        feed, take = rng.choice(((1, 1), (0.2, 1), (1, 0.1)))
        if smooth:
            feed = take = 1
        offered, pending_drains, drained_half = False, deque(), {}
        while clocks < 6000:
            # The loader keeps to the halves: a new C is not loaded over one that is still to be drained.
            may = bool(waiting) and (not waiting[0]["c_new"] or drained_half.get(waiting[0]["c_half"], True))
            offered = offered or (may and rng.random() < feed)
            dut.tile_valid_i.value = offered
            dut.tile_i.value = pack_tile(waiting[0]) if offered else rng.getrandbits(85)
            drain_ready = rng.random() < take
            dut.drain_ready_i.value = drain_ready
            done = pipe.popleft()
            dut.sum_i.value = done is not None
            await settle()
            assert not (value(dut.sram_overrun_o) or value(dut.rf_overrun_o) or value(dut.run_long_o))
            cover.hit("hazard", dut.hazard_o.value == 1)
            # The register file's and the SRAM's reads see what was there before this clock's edge.
            writes = []
            if dut.fill_o.value == 1:
                zero = value(dut.fill_zero_o)
                # Of lanes that share a C only the first begins with what was loaded.
                for lane in range(1, lanes):
                    follows = d.reduce and lane % (1 << d.inner_log2) != 0
                    assert zero >> lane & 1 == (zero & 1 or (follows and began_new)), "another lane's zero"
                writes.append((value(dut.fill_row_o), None, [0] * columns if zero & 1 else row))
            item = None
            issue = dut.issue_o.value == 1
            if issue:
                at = [value(port) for port in (dut.a_word_o, dut.b_word_o, dut.c_word_o)]
                a, b, c = (rf[word // columns][word % columns] for word in at)
                refresh = dut.refresh_o.value == 1
                if refresh:
                    target = at[2]  # while rows are stored the port shows theirs, but never as a sum begins
                    assert not any(entry and entry[0] == target for entry in pipe), "a sum in flight is read"
                total = ((c if refresh else total) + a * b) % N
                if dut.last_o.value == 1:
                    item = (target, total)
                cover.hit("macs")
                cover.hit("run_over_tiles", not refresh and issued % math.prod(d.rf_bounds) == 0)
                issued += 1
                first_issue = clocks if first_issue is None else first_issue
                last_issue = clocks
            pipe.append(item)
            if done is not None:
                assert value(dut.sum_word_o) == done[0], "a sum to the wrong word"
                writes.append((done[0] // columns, done[0] % columns, done[1]))
            if dut.store_o.value == 1:
                word = value(dut.c_word_o)
                sram_write = (value(dut.store_row_o), list(rf[word // columns]))
                cover.hit("stores")
            else:
                sram_write = None
            began_new = False
            if dut.read_o.value == 1:
                at = value(dut.read_row_o)
                row = list(sram[at])
                if at >= begins[C]:
                    began_new = current["c_new"] and at not in touched
                    touched.add(at)
            open_now = value(dut.open_o)
            # Out of the queue to the drain once no sum is to come: then the tile must be whole.
            if dut.drain_valid_o.value == 1 and drain_ready:
                expected = drains.popleft()
                assert unpack_tile(value(dut.drain_o)) == expected
                pending_drains.append(expected)
                drained_half[expected["c_half"]] = False
            cover.hit("drain_waits", not drain_ready)
            if offered and dut.tile_ready_o.value == 1:
                current, touched = waiting.popleft(), set()
                offered = False
                cover.hit("c_goes_on", not current["c_new"])
                cover.hit("c_begins_at_zero", current["c_new"] and current["c_zero"])
                cover.hit("c_comes_from_sram", current["c_new"] and not current["c_zero"])
            for at, column, data in writes:
                if column is None:
                    rf[at] = list(data)
                else:
                    rf[at][column] = data
            if sram_write:
                sram[sram_write[0]] = sram_write[1]
            while pending_drains and open_now >> (8 * pending_drains[0]["c_half"]) & 255 == 0:
                tile = pending_drains.popleft()
                rows = range(tile["c_row"], tile["c_row"] + d.sram_rows[C])
                for at in rows:
                    assert sram[at] == behind[tile["number"]][at], f"tile {tile['number']}, row {at}"
                drained_half[tile["c_half"]] = True
            idle = dut.idle_o.value == 1
            clocks += 1
            cycles += 1
            await clock(dut)
            if not waiting and idle and not pending_drains and not any(pipe) and issued == steps * count:
                break
        assert not waiting and not drains and not pending_drains and issued == steps * count, "it hangs"
        assert value(dut.filled_o) == count
        if smooth:
            # Nothing to wait for but the tiles' first rows.
            assert last_issue - first_issue + 1 <= issued + 30 * count
            cover.hit("every_clock")
        cover.hit("one_bank", d.c_banks == 1)
        cover.hit("several_banks", d.c_banks > 1)
        cover.hit("reduced", d.reduce == 1)
    cover.check(cycles)
