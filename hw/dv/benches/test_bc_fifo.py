"""bc_fifo against a list: order, count, and full and empty at once, at every mix of pushing and popping."""

import random

import cocotb
from common import Coverage, Sink, Source, begin, clock, parameter, settle, value, words


@cocotb.test()
async def against_a_list(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    depth, width = parameter(dut, "DEPTH"), parameter(dut, "WIDTH")
    cover = Coverage("against_a_list", full=20, empty=20, push_when_full=20, push_and_pop=20, held_back=20, drained_whole=5, wraps=20)
    await begin(dut, valid_i=0, ready_i=0, data_i=0)
    model, cycles, pushed, peak = [], 0, 0, 0
    for push_often, pop_often in ((1, 1), (1, 0.1), (0.1, 1), (0.5, 0.5), (0.9, 0.6), (1, 0), (0, 1), (1, 0.5)):
        source = Source(dut.valid_i, dut.ready_o, dut.data_i, [words(rng, width) for _ in range(200)], push_often, rng)
        sink = Sink(dut.valid_o, dut.ready_i, dut.data_o, pop_often, rng)
        # An offer must be taken before another source begins, so the phase ends with it.
        for clocks in range(400):
            if clocks == 250:
                source.often = 0
            if clocks > 250:
                sink.often = max(pop_often, 0.5)
            source.drive()
            sink.drive()
            await settle()
            assert value(dut.count_o) == len(model)
            assert dut.ready_o.value == (len(model) < depth), "room but not ready, or the other way round"
            assert dut.valid_o.value == (len(model) > 0)
            if model:
                assert value(dut.data_o) == model[0]
            cover.hit("full", len(model) == depth)
            cover.hit("empty", not model)
            cover.hit("push_when_full", source.offered and len(model) == depth)
            cover.hit("held_back", bool(model) and not sink.open)
            popped, went_in = sink.sample(), source.sample()
            cover.hit("push_and_pop", popped is not None and went_in is not None)
            if popped is not None:
                model.pop(0)
                if not model and went_in is None:
                    cover.hit("drained_whole", peak == depth)
                    peak = 0
            if went_in is not None:
                model.append(went_in)
                pushed += 1
                peak = max(peak, len(model))
                cover.hit("wraps", pushed % depth == 0)
            cycles += 1
            await clock(dut)
        assert not source.offered and not model
    # Depth 1 can't push and pop in one clock: it is either full or empty.
    if depth == 1:
        assert cover.hits["push_and_pop"] == 0
        cover.goals.pop("push_and_pop")
    cover.check(cycles)
