"""bc_loop_nest against loops in Python. First and last visits are found by looking at where the loops have been."""

import random

import cocotb
from common import Coverage, begin, clock, parameter, settle, value
from reference import visits


@cocotb.test()
async def against_loops(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    loops, operands = parameter(dut, "LOOPS"), parameter(dut, "OPERANDS")
    bound_bits, width = parameter(dut, "BOUND"), parameter(dut, "ADDRESS")
    cover = Coverage(
        "against_loops", begun_again_midway=5, wrapped=5, waited=100, one_step=2, greatest_bound=1, address_wraps=5,
        never_moved=5, always_moved=5, revisited=20, run_of_several=20, every_loop_turned=3,
    )
    await begin(dut, start_i=0, advance_i=0, bounds_i=0, strides_i=0)
    cycles = 0

    def bits(flags):
        return sum(flag << x for x, flag in enumerate(flags))

    for case in range(60):
        bounds = [rng.choice((1, 1, 2, 3, 4)) for _ in range(loops)]
        if case % 4 == 0:
            bounds = [2 if loops > 4 else 3] * loops
        if case in (1, 2):
            bounds = [1] * loops
        if case == 3:
            bounds = [1] * loops
            bounds[rng.randrange(loops)] = min((1 << bound_bits) - 1, 700)
        strides = [[rng.choice((0, 1, rng.getrandbits(width), (1 << width) - 1)) for _ in range(operands)]
                   for _ in range(loops)]
        if case % 5 == 0:
            for line in strides:
                line[0] = 0
        expected = visits(bounds, strides, operands, width)
        dut.bounds_i.value = sum(bound << (l * bound_bits) for l, bound in enumerate(bounds))
        dut.strides_i.value = sum(
            strides[l][x] << ((l * operands + x) * width) for l in range(loops) for x in range(operands))
        dut.start_i.value = 1
        dut.advance_i.value = rng.randrange(2)
        await clock(dut)
        cycles += 1
        dut.start_i.value = 0
        cover.hit("one_step", len(expected) == 1)
        cover.hit("greatest_bound", max(bounds) in ((1 << bound_bits) - 1, 700))
        cover.hit("every_loop_turned", min(bounds) > 1)
        # Once round and on into the next turn, unless it is cut short by a new start.
        cut = rng.random() < 0.3
        steps = rng.randrange(len(expected)) if cut else min(len(expected) + rng.randrange(1, 4), len(expected) + 3)
        cover.hit("begun_again_midway", cut and steps > 0)
        i = 0
        while i < steps:
            go = rng.random() < 0.7
            dut.advance_i.value = go
            await settle()
            address, first, final, run_first, run_last = expected[i % len(expected)]
            assert value(dut.address_o) == sum(at << (x * width) for x, at in enumerate(address)), f"step {i}"
            assert value(dut.last_o) == (i % len(expected) == len(expected) - 1)
            assert value(dut.first_o) == bits(first)
            assert value(dut.final_o) == bits(final)
            assert value(dut.run_first_o) == bits(run_first)
            assert value(dut.run_last_o) == bits(run_last)
            cover.hit("waited", not go)
            cover.hit("wrapped", i == len(expected))
            cover.hit("never_moved", bounds != [1] * loops and not any(line[0] for line in strides))
            for x in range(operands):
                cover.hit("revisited", not first[x] and run_first[x])
                cover.hit("run_of_several", run_last[x] and not run_first[x])
                cover.hit("always_moved", len(expected) > 1 and run_first[x] and run_last[x])
                cover.hit("address_wraps", i > 0 and address[x] < expected[(i - 1) % len(expected)][0][x])
            i += go
            cycles += 1
            await clock(dut)
        dut.advance_i.value = 0
    cover.check(cycles)
