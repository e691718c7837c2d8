"""sf_dispatcher against Python, clock by clock: every gate once and in order, none past a fence or an open sync."""

import random
from collections import deque

import cocotb
from common import Coverage, begin, clock, parameter, settle, value

FENCE, SYNC = 1 << 27, 1 << 28


class Model:
    """What it may do, from what it has done."""

    def __init__(self):
        self.left = self.flight = self.done = self.operation = 0
        self.sync = self.closing = False

    def outputs(self, item):
        """Ready, valid, misplaced, idle: for what is offered, (is it a header, its bits) or None."""
        idle = not self.left and not self.flight and not self.closing
        if item is None:
            return False, False, False, idle
        header, bits = item
        if header != (self.left == 0):
            return False, False, True, idle
        if header:
            return not self.closing and not (bits & FENCE and self.flight), False, False, idle
        return None, True, False, idle  # ready with whoever takes it

    def step(self, item, taken, retired):
        ended = self.closing and self.flight == 0
        if ended:
            self.closing, self.done = False, self.done + 1
        if taken:
            header, bits = item
            if header:
                self.left, self.operation, self.sync = bits & 0xFFFFFF, bits >> 24 & 7, bool(bits & SYNC)
            else:
                self.left -= 1
                self.flight += 1
            self.closing |= self.sync and self.left == 0
        self.flight -= retired
        return ended


def batches(rng, width, count):
    """Headers and their gates."""
    for _ in range(count):
        gates = rng.choice((0, 1, 1, 2, 3, rng.randrange(4, 30)))
        yield True, rng.getrandbits(width) >> 29 << 29 | rng.choice((0, SYNC)) | rng.choice((0, FENCE)) | rng.randrange(8) << 24 | gates
        for _ in range(gates):
            yield False, rng.getrandbits(width)


async def run(dut, rng, model, items, cover, most=100000):
    """Offers items, takes gates and retires them as it likes, until all is done or nothing can go on; clocks of it."""
    items, cycles, offered, stuck = deque(items), 0, False, 0
    sent, handed = [item for item in items if not item[0]], []
    while (items or not model.outputs(None)[3]) and stuck < 50:
        if cycles % 200 == 0:
            # How often items are offered, gates taken and gates finished.
            offers, takes, retires = rng.choice(((1, 1, 0.6), (1, 1, 0.05), (0.3, 1, 0.3), (1, 0.3, 1), (0.7, 0.7, 0.2)))
        offered = offered or (bool(items) and rng.random() < offers)
        item = items[0] if offered else None
        junk = rng.getrandbits(1), rng.getrandbits(len(dut.command_i))
        ready = rng.random() < takes
        retired = rng.choice((1, 1, 2, 3)) if rng.random() < retires else 0
        retired = min(retired, model.flight)
        dut.valid_i.value, (dut.header_i.value, dut.command_i.value) = int(offered), item or junk
        dut.ready_i.value, dut.retired_i.value = int(ready), retired
        await settle()
        goes, valid, misplaced, idle = model.outputs(item)
        goes = ready if goes is None else goes
        got = tuple(value(port) for port in (dut.ready_o, dut.valid_o, dut.misplaced_o, dut.idle_o, dut.done_o))
        assert got == (goes, valid, misplaced, idle, model.done), (got, (goes, valid, misplaced, idle, model.done))
        if valid:
            assert value(dut.gate_o) == item[1] and value(dut.operation_o) == model.operation
            if ready:
                handed.append(item)
        cover.hit(f"retired_{retired}")
        cover.hit("retired_with_a_gate", retired and valid and ready)
        if item and item[0] and not misplaced:
            cover.hit("waits_for_fence", not goes and not model.closing)
            cover.hit("waits_for_sync", not goes and model.closing)
            cover.hit("overlaps", goes and model.flight > 0)
            cover.hit("empty_batch", goes and item[1] & 0xFFFFFF == 0)
            cover.hit("empty_sync", goes and item[1] & 0x10FFFFFF == SYNC)
        cover.hit("held", valid and not ready)
        ended = model.step(item, goes, retired)
        cover.hit("synced", ended)
        if goes:
            items.popleft()
            offered = False
        stuck = stuck + 1 if misplaced and not model.flight and not model.closing else 0
        cycles += 1
        assert cycles < most, "it hangs"
        await clock(dut)
    if stuck == 0:
        assert handed == sent, "gates, each once and in order"
    return cycles, stuck > 0


def coverage(test, times, **more):
    return Coverage(
        test, retired_0=10 * times, retired_1=10 * times, retired_2=4 * times, retired_3=4 * times,
        retired_with_a_gate=10 * times, waits_for_fence=4 * times, waits_for_sync=4 * times, overlaps=2 * times,
        empty_batch=4 * times, empty_sync=times, held=10 * times, synced=4 * times, **more,
    )


async def start(dut):
    await begin(dut, valid_i=0, header_i=0, command_i=0, ready_i=0, retired_i=0)


@cocotb.test()
async def in_order(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    cover = coverage("in_order", 5)
    await start(dut)
    cycles, stuck = await run(dut, rng, Model(), list(batches(rng, parameter(dut, "COMMAND"), 300)), cover)
    assert not stuck
    cover.check(cycles)


@cocotb.test()
async def misplaced(dut):
    """A gate without a batch and a header too early: said at once, and nothing goes on; after reset all is as new."""
    rng = random.Random(cocotb.RANDOM_SEED)
    cover = coverage("misplaced", 1, gate_too_many=5, header_too_early=5)
    await start(dut)
    cycles, width = 0, parameter(dut, "COMMAND")
    for _ in range(30):
        items = list(batches(rng, width, 10))
        headers = [i for i, (header, _) in enumerate(items) if header]
        if rng.random() < 0.5:
            at = rng.choice([i for i in headers if i] or [0])
            items.insert(at, (False, rng.getrandbits(width)))  # behind a whole batch
            kind = "gate_too_many"
        else:
            gates = [i for i, (header, _) in enumerate(items) if not header] or [0]
            items.insert(rng.choice(gates), (True, rng.getrandbits(width)))  # before a batch's last gate
            kind = "header_too_early"
        clocks, stuck = await run(dut, rng, Model(), items, cover)
        assert stuck, "it went on"
        cover.hit(kind)
        dut.rst_ni.value, dut.valid_i.value, dut.retired_i.value = 0, 0, 0
        await clock(dut)
        dut.rst_ni.value = 1
        cycles += clocks + 1
    cover.check(cycles)
