"""bc_arbiter against a turn order kept in Python: who is served, with what, and how long anyone waits."""

import random

import cocotb
from common import Coverage, begin, clock, parameter, settle, value


class Side:
    """One request's wires, as bits of the arbiter's vectors."""

    def __init__(self, rng, width):
        self.rng, self.width = rng, width
        self.offered, self.item, self.passed = False, 0, 0

    def step(self, often):
        if not self.offered:
            self.offered = self.rng.random() < often
            self.item = self.rng.getrandbits(self.width)
            self.passed = 0


@cocotb.test()
async def against_a_turn_order(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    count, width = parameter(dut, "REQUESTS"), parameter(dut, "WIDTH")
    cover = Coverage(
        "against_a_turn_order", all_at_once=20, none=20, held_back=20, taken_at_once=20, joined_while_held=20,
        waited_longest=10, **{f"served_{i}_after_{j}": 3 for i in range(count) for j in range(count)},
    )
    await begin(dut, valid_i=0, ready_i=0, data_i=0)
    sides = [Side(rng, width) for _ in range(count)]
    last, held, cycles = count - 1, None, 0  # after reset the first request is first
    for often, ready_often in ((0.3, 1), (1, 1), (0.5, 0.5), (1, 0.2), (0.05, 1), (0.1, 0.8), (0.1, 0.3), (0.9, 0.9)):
        for _ in range(500):
            before = [side.offered for side in sides]
            for side in sides:
                side.step(often)
            cover.hit("joined_while_held", held is not None and before != [side.offered for side in sides])
            ready = rng.random() < ready_often
            dut.valid_i.value = sum(side.offered << i for i, side in enumerate(sides))
            dut.data_i.value = sum(side.item << (i * width) for i, side in enumerate(sides))
            dut.ready_i.value = ready
            await settle()
            order = [(last + 1 + i) % count for i in range(count)]
            choice = held if held is not None else next((i for i in order if sides[i].offered), None)
            grant = 0 if choice is None else 1 << choice
            assert value(dut.grant_o) == grant
            assert value(dut.valid_o) == (choice is not None)
            assert value(dut.ready_o) == (grant if ready else 0)
            cover.hit("none", choice is None)
            cover.hit("all_at_once", all(side.offered for side in sides))
            if choice is not None:
                assert value(dut.data_o) == sides[choice].item
                if ready:
                    for i, side in enumerate(sides):
                        if side.offered and i != choice:
                            side.passed += 1
                            assert side.passed < count, f"request {i} waits for ever"
                            cover.hit("waited_longest", side.passed == count - 1)
                    cover.hit(f"served_{choice}_after_{last}")
                    cover.hit("taken_at_once", held is None)
                    sides[choice].offered = False
                    last, held = choice, None
                else:
                    cover.hit("held_back")
                    held = choice
            cycles += 1
            await clock(dut)
    if count == 1:  # with one request nobody waits for another
        for name in ("joined_while_held", "waited_longest"):
            assert cover.hits[name] == 0
            cover.goals.pop(name)
    cover.check(cycles)
