"""oc_ssd_loader: every word of the stream into its beat, two tiles ahead at most, and an honest count of what is there."""

import random

import cocotb
from common import Coverage, Source, begin, clock, parameter, settle, value
from reference import Descriptor


@cocotb.test()
async def against_the_stream(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    half = parameter(dut, "HALF_BEATS")
    cover = Coverage(
        "against_the_stream", waited_for_room=30, held_back=30, starved=50, one_beat_tile=2, full_half=2, several_tiles=10,
        full_rate=2, resident=3, second_half=10, partly_there=100, whole_tile_there=100,
    )
    await begin(dut, start_i=0, config_i=0, used_i=0, ssd_valid_i=0, ssd_data_i=0, dram_ready_i=0)
    cycles, any_resident = 0, False
    for case in range(40):
        beats = half if case % 8 == 0 else rng.choice((1, 2, 3, 5, rng.randrange(1, 20)))
        tiles = rng.choice((1, 2, 3, 5))
        resident = case % 10 == 9
        offered, taken, lag = rng.choice(((1, 1, 0), (0.3, 1, 0.1), (1, 0.3, 0.1), (1, 1, 0.02), (0.7, 0.7, 0.3)))
        dut.config_i.value = Descriptor(tiles=tiles, tile_beats=beats, resident=int(resident)).pack()
        stream = [rng.getrandbits(64) for _ in range(2 * beats * tiles)]
        source = Source(dut.ssd_valid_i, dut.ssd_ready_o, dut.ssd_data_i, stream, offered, rng)
        dut.used_i.value = used = 0
        dut.ssd_valid_i.value = 0
        dut.rst_ni.value = int(not any_resident)  # what was offered to a resident run was not taken
        await clock(dut)
        dut.rst_ni.value = 1
        any_resident = resident
        dut.start_i.value = 1
        await clock(dut)
        dut.start_i.value = 0
        written, fed, clocks = [], 0, 0
        while used < tiles and clocks < 5000:
            source.drive()
            ready = rng.random() < taken
            dut.dram_ready_i.value = ready
            dut.used_i.value = used
            await settle()
            loaded = value(dut.loaded_o)
            if resident:
                assert dut.ssd_ready_o.value == 0 and dut.dram_valid_o.value == 0 and loaded == beats
            else:
                there = len(written) - used * beats
                assert loaded == min(max(there, 0), beats), "a count of beats that are not there"
                cover.hit("partly_there", 0 < loaded < beats)
                cover.hit("whole_tile_there", loaded == beats)
            assert fed < 2 * beats * (used + 2) or dut.ssd_ready_o.value == 0, "a tile that is in use is written over"
            cover.hit("waited_for_room", fed == 2 * beats * (used + 2))
            cover.hit("held_back", dut.dram_valid_o.value == 1 and not ready)
            cover.hit("starved", dut.ssd_ready_o.value == 1 and not source.offered)
            fed += source.sample() is not None
            if dut.dram_valid_o.value == 1 and ready:
                i = len(written)
                tile, beat = divmod(i, beats)
                address = beat + (half if tile % 2 else 0)
                assert value(dut.dram_address_o) == address, f"beat {i}"
                assert value(dut.dram_data_o) == stream[2 * i + 1] << 64 | stream[2 * i], f"beat {i}"
                written.append(address)
                cover.hit("second_half", tile % 2 == 1)
            # The tile is used up some time after all of it is there.
            if (resident or loaded == beats) and rng.random() < (1 if lag == 0 else lag):
                used += 1
            clocks += 1
            cycles += 1
            await clock(dut)
        assert used == tiles, "it hangs"
        assert resident or len(written) == beats * tiles
        if not resident and (offered, taken, lag) == (1, 1, 0):
            assert clocks <= 2 * beats * tiles + 2 * tiles + 3, "slower than the stream"
            cover.hit("full_rate")
        cover.hit("resident", resident)
        cover.hit("one_beat_tile", beats == 1 and not resident)
        cover.hit("full_half", beats == half and not resident)
        cover.hit("several_tiles", tiles > 1 and not resident)
    cover.check(cycles)
