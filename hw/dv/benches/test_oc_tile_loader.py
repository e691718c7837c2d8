"""oc_tile_loader against the loops in Python: what is read, which lanes and rows it goes to, and the record of each tile."""

import random
from collections import deque

import cocotb
from common import Coverage, begin, clock, parameter, settle, value
from reference import A, B, C, loader_steps, shape, unpack_tile


def expected(d, built):
    """Everything in order: reads and marks, a read with the SSD's tile, its beat and where it goes to."""
    for ssd_tile, address, loads, half, _, tile in loader_steps(d):
        for x in loads:
            by_group, by_inner = d.group_stride[x] != 0, d.inner_stride[x] != 0 and not (x == C and d.reduce)
            for group in range(d.groups if by_group else 1):
                for inner in range(1 << d.inner_log2 if by_inner else 1):
                    lanes = 0
                    for lane in range(built["lanes"]):
                        at_group, at_inner = d.lane(lane)
                        mine = (at_group == group or not by_group)
                        # Lanes that sum to one C begin with it in the first of them.
                        mine &= at_inner == inner if by_inner or (x == C and d.reduce) else True
                        lanes |= mine << lane
                    row0 = tile[("a_row", "b_row", "c_row")[x]]
                    for beat in range(d.beats(x)):
                        offset = address[x] + d.offset(x, group, inner) + beat + (d.b_base if x == B else 0)
                        base = 2 * built["half_beats"] if x == C else ssd_tile % 2 * built["half_beats"]
                        row, part = (beat, 1) if d.one_beat[x] else (beat // 2, 1 << beat % 2)
                        yield "read", x, ssd_tile, offset, base + offset, lanes, part, row0 + row, half[x], tile["number"]
        yield "mark", tile, half


@cocotb.test()
async def against_the_loops(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    built = {name: parameter(dut, name.upper()) for name in ("lanes", "half_beats", "c_beats", "flight")}
    cover = Coverage(
        "against_the_loops", reads=1000, tiles=100, waited_for_stream=50, waited_for_half=50, held_back=100, c_comes_back=5,
        broadcast=100, to_one_lane=50, lower=100, upper=100, reduced=2, several_ssd_tiles=5, flight_full=10, stored_over=50,
        unread=5,
    )
    await begin(dut, start_i=0, config_i=0, loaded_i=0, filled_i=0, drained_i=0, dram_ready_i=0, dram_valid_i=0,
                write_ready_i=0, tile_ready_i=0)
    cycles = 0
    for case in range(30):
        d = shape(rng, built["lanes"], half_beats=200, c_beats=built["c_beats"], most=100000)
        while sum(1 for _ in expected(d, built)) > 1500 or (
                case % 4 == 0 and all(step[-1]["c_final"] for step in loader_steps(d))):
            d = shape(rng, built["lanes"], half_beats=200, c_beats=built["c_beats"], most=100000)
        plan = list(expected(d, built))
        tail = case % 3 and rng.randrange(9)  # beats of the SSD's tile that nothing reads
        d.tile_beats += tail
        reads = deque(entry for entry in plan if entry[0] == "read")
        lands = deque(plan)
        ends = {tile["number"]: tile["c_ends"] for kind, tile, *_ in plan if kind == "mark"}
        fast, answer, store, lag = rng.choice(((1, 1, 0, 1), (0.4, 1, 0, 0.2), (1, 0.3, 0.2, 0.2), (1, 1, 0.5, 0.05), (1, 0.1, 0, 1)))
        dut.config_i.value = d.pack()
        dut.start_i.value = 1
        filled = drained = 0
        dut.filled_i.value, dut.drained_i.value = 0, 0
        await clock(dut)
        dut.start_i.value = 0
        flight, marks, loaded, used, clocks, last_use, answers = deque(), [], 0, 0, 0, {}, False
        while clocks < 3000 + 40 * len(plan):
            if value(dut.used_o) != used:
                assert loaded == d.tile_beats, "a tile is left before all of it came"
                cover.hit("unread", tail > 0)
                used, loaded = value(dut.used_o), 0
            loaded = min(loaded + (rng.randrange(3) if lag == 0.2 else d.tile_beats), d.tile_beats)
            # Tiles leave some time after they came, in order: A and B when they are filled, C when it is drained.
            if filled < len(marks) and rng.random() < lag:
                filled += 1
            for number in range(drained, filled):
                if ends[number] and rng.random() < lag:
                    drained = number + 1
                    break
                if ends[number]:
                    break
            ready, write_ready, tile_ready = rng.random() < fast, rng.random() >= store, rng.random() < fast
            answers = answers or (bool(flight) and flight[0] <= cycles and rng.random() < answer)
            dut.loaded_i.value, dut.filled_i.value, dut.drained_i.value = loaded, filled, drained
            dut.dram_ready_i.value, dut.dram_valid_i.value = ready, answers
            dut.write_ready_i.value, dut.tile_ready_i.value = write_ready, tile_ready
            await settle()
            assert dut.overrun_o.value == 0
            if dut.dram_valid_o.value == 1:
                kind, x, ssd_tile, offset, address, *_ = reads[0]
                assert value(dut.dram_address_o) == address, reads[0]
                assert x == C or (ssd_tile == used and offset < loaded), "read before it is there"
                cover.hit("held_back", not ready)
                if ready:
                    reads.popleft()
                    flight.append(cycles + 5)
                    cover.hit("reads")
                    assert len(flight) <= built["flight"]
            cover.hit("flight_full", len(flight) == built["flight"])
            cover.hit("waited_for_stream", dut.waits_ssd_o.value == 1)
            cover.hit("waited_for_half", dut.waits_free_o.value == 1)
            taken = answers and dut.dram_ready_o.value == 1
            assert write_ready or not taken, "a beat is taken while a row is stored"
            cover.hit("stored_over", answers and not write_ready)
            if answers and value(dut.write_o):
                kind, x, _, _, _, lanes, part, row, half, number = lands[0]
                assert kind == "read", "a beat where the tile should be whole"
                assert (value(dut.write_o), value(dut.write_half_o), value(dut.write_row_o)) == (lanes, part, row), lands[0]
                # Whoever used this half before has left it.
                before = last_use.get((x, half))
                assert before is None or before == number or (drained if x == C else filled) > before, "a half in use"
            if taken:
                _, x, _, _, _, lanes, part, *_ = lands.popleft()
                flight.popleft()
                answers = False
                cover.hit("broadcast", lanes & (lanes - 1) != 0)
                cover.hit("to_one_lane", lanes & (lanes - 1) == 0)
                cover.hit("lower", part == 1)
                cover.hit("upper", part == 2)
                cover.hit("c_comes_back", x == C)
            if dut.tile_valid_o.value == 1:
                kind, tile, half = lands[0]
                assert kind == "mark", "the tile is not whole"
                assert unpack_tile(value(dut.tile_o)) == tile
                if tile_ready:
                    lands.popleft()
                    marks.append(tile)
                    for x in range(3):
                        last_use[x, half[x]] = tile["number"]
                    cover.hit("tiles")
            clocks += 1
            cycles += 1
            if not lands:
                await clock(dut)
                break
            await clock(dut)
        assert not lands and not reads, "it hangs"
        dut.tile_ready_i.value, dut.dram_valid_i.value = 0, 0
        await settle()
        assert dut.done_o.value == 1
        await clock(dut)
        cover.hit("reduced", d.reduce == 1)
        cover.hit("several_ssd_tiles", d.tiles > 1)
    cover.check(cycles)


@cocotb.test()
async def overruns(dut):
    """An address behind its region is flagged in the clock in which it would be read, and is not read."""
    rng = random.Random(cocotb.RANDOM_SEED + 1)
    built = {name: parameter(dut, name.upper()) for name in ("lanes", "half_beats", "c_beats")}
    cover = Coverage("overruns", a=3, b=3, c=3)
    await begin(dut, start_i=0, config_i=0, loaded_i=0, filled_i=0, drained_i=0, dram_ready_i=1, dram_valid_i=0,
                write_ready_i=1, tile_ready_i=1)
    cycles = 0
    for case in range(200):
        d = shape(rng, built["lanes"], half_beats=200, c_beats=built["c_beats"], most=100000)
        x = case % 3
        moves = [l for l in range(6) if d.dram_bounds[l] > 1]
        if not moves:
            continue
        d.dram_strides[moves[-1]][x] = built["c_beats"] if x == C else d.tile_beats
        if min(cover.hits.values()) >= 3 and case >= 60:
            break
        plan = list(expected(d, built))
        limit = {A: d.tile_beats, B: d.tile_beats, C: built["c_beats"]}
        over = next((i for i, entry in enumerate(plan) if entry[0] == "read" and entry[3] >= limit[entry[1]]), None)
        if over is None:
            continue
        before = sum(entry[0] == "read" for entry in plan[:over])
        dut.rst_ni.value = 0
        await clock(dut)
        dut.rst_ni.value = 1
        dut.config_i.value, dut.loaded_i.value = d.pack(), d.tile_beats
        dut.filled_i.value, dut.drained_i.value = (1 << 31), (1 << 31)
        dut.start_i.value = 1
        await clock(dut)
        dut.start_i.value = 0
        read, flight = 0, 0
        for _ in range(4000):
            dut.dram_valid_i.value = flight > 0
            await settle()
            flagged = dut.overrun_o.value == 1
            if dut.dram_valid_o.value == 1:
                assert not flagged
                read += 1
                flight += 1
            if flight and dut.dram_ready_o.value == 1 and dut.dram_valid_i.value == 1:
                flight -= 1
            cycles += 1
            await clock(dut)
            if flagged:
                break
        assert flagged and read == before, f"{read} beats read, {before} before the first that is behind"
        cover.hit("abc"[plan[over][1]])
    cover.check(cycles)
