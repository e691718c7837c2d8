"""dram_model against an array: requests in order, each answer after its latency and no earlier, none lost when held back."""

import random
from collections import deque

import cocotb
from common import Coverage, begin, clock, parameter, settle, value

QUEUE = 128


@cocotb.test()
async def against_an_array(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    beats, latency, sparse = (parameter(dut, name) for name in ("BEATS", "LATENCY", "PAGES"))
    cover = Coverage(
        "against_an_array", reads=500, writes=300, read_behind_write=50, held_back=200, queue_full=20, at_once=200,
        poked=50, streamed=100,
    )
    await begin(dut, valid_i=0, write_i=0, address_i=0, data_i=0, ready_i=0, poke_i=0, poke_address_i=0, poke_data_i=0)
    places = range(beats)
    if sparse:  # some beats of all of it, the first and the last among them
        places = [0, beats - 1, *(rng.randrange(1, beats - 1) for _ in range(200))]
        cover.goals["far"], cover.hits["far"] = 200, 0
        cover.goals["never_written"], cover.hits["never_written"] = 20, 0
    model = {place: rng.getrandbits(128) for place in places}
    cycles = 0
    dut.poke_i.value = 1
    for address, data in model.items():
        dut.poke_address_i.value, dut.poke_data_i.value = address, data
        cycles += 1
        await clock(dut)
    dut.poke_i.value = 0
    due, request, last_write, streak = deque(), None, None, 0
    for often, taken in ((1, 1), (0.5, 1), (1, 0.2), (0.5, 0.5), (1, 0), (0.2, 1), (1, 1)):
        for _ in range(500):
            if request is None and rng.random() < often:
                address = last_write if last_write is not None and rng.random() < 0.2 else rng.choice(places)
                request = (rng.random() < 0.3, address, rng.getrandbits(128))
                if sparse and not request[0] and rng.random() < 0.1:
                    request = (False, rng.randrange(beats), 0)
            dut.valid_i.value = request is not None
            if request:
                dut.write_i.value, dut.address_i.value, dut.data_i.value = request
            ready = rng.random() < taken
            dut.ready_i.value = ready
            # The way in that costs no time, beside a request to another place, but not beside a write.
            poke = rng.random() < 0.05 and not (request and request[0])
            at, data = rng.choice(places), rng.getrandbits(128)
            dut.poke_i.value, dut.poke_address_i.value, dut.poke_data_i.value = poke, at, data
            await settle()
            room = len(due) < QUEUE
            assert value(dut.ready_o) == room
            answers = bool(due) and due[0][0] <= cycles
            assert value(dut.valid_o) == answers, "early, late or lost"
            if answers:
                assert value(dut.data_o) == due[0][1]
            cover.hit("queue_full", not room)
            cover.hit("held_back", answers and not ready)
            streak = streak + 1 if answers and ready else 0
            cover.hit("streamed", streak > 1)
            cover.hit("at_once", answers and ready and due[0][0] == cycles)
            if answers and ready:
                due.popleft()
            if request and room:
                write, address, word = request
                if write:
                    model[address], last_write = word, address
                    cover.hit("writes")
                else:
                    due.append((cycles + latency, model.get(address, 0)))
                    cover.hit("reads")
                    cover.hit("read_behind_write", address == last_write)
                    if sparse:
                        cover.hit("far", address >> 24 and address in model)
                        cover.hit("never_written", address not in model)
                request = None
            if poke:
                model[at] = data
                cover.hit("poked")
            cycles += 1
            await clock(dut)
    cover.check(cycles)
