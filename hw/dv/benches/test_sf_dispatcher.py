"""sf_dispatcher against Python, clock by clock: every gate once and in order, none past a fence or an open sync, none beside another
that it takes turns with, none of a whole batch before the queue holds it."""

import random
from collections import deque

import cocotb
from common import Coverage, begin, clock, parameter, settle, value

FENCE, SYNC, WHOLE, TURN = 1 << 27, 1 << 28, 1 << 29, 1 << 30


class Model:
    """What it may do, from what it has done."""

    def __init__(self, queue):
        self.queue = queue
        self.left = self.flight = self.done = self.operation = 0
        self.sync = self.closing = self.turn = False

    def outputs(self, item, queued=0):
        """Ready, valid, misplaced, idle: for what is offered, (is it a header, its bits) or None, and how much the queue holds."""
        idle = not self.left and not self.flight and not self.closing
        if item is None:
            return False, False, False, idle
        header, bits = item
        whole, gates = header and self.queue and bits & WHOLE, bits & 0xFFFFFF
        if header != (self.left == 0) or whole and gates >= self.queue:
            return False, False, True, idle
        if header:
            waits = self.closing or bits & FENCE and self.flight or whole and queued <= gates
            return not waits, False, False, idle
        if self.turn and self.flight:
            return False, False, False, idle
        return None, True, False, idle  # ready with whoever takes it

    def step(self, item, taken, retired):
        ended = self.closing and self.flight == 0
        if ended:
            self.closing, self.done = False, self.done + 1
        if taken:
            header, bits = item
            if header:
                self.left, self.operation, self.sync = bits & 0xFFFFFF, bits >> 24 & 7, bool(bits & SYNC)
                self.turn = bool(self.queue and bits & TURN)
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
    items, cycles, inside, stuck = deque(items), 0, 0, 0
    room = model.queue or 1
    sent, handed = [item for item in items if not item[0]], []
    while (items or not model.outputs(None)[3]) and stuck < 50:
        if cycles % 200 == 0:
            # How often items are offered, gates taken and gates finished.
            offers, takes, retires = rng.choice(((1, 1, 0.6), (1, 1, 0.05), (0.3, 1, 0.3), (1, 0.3, 1), (0.7, 0.7, 0.2), (0.1, 1, 1)))
        if inside < min(room, len(items)) and rng.random() < offers:
            inside += 1
        item = items[0] if inside else None
        junk = rng.getrandbits(1), rng.getrandbits(len(dut.command_i))
        ready = rng.random() < takes
        retired = rng.choice((1, 1, 2, 3)) if rng.random() < retires else 0
        retired = min(retired, model.flight)
        dut.valid_i.value, (dut.header_i.value, dut.command_i.value) = int(inside > 0), item or junk
        dut.queued_i.value = inside if model.queue else rng.getrandbits(1)
        dut.ready_i.value, dut.retired_i.value = int(ready), retired
        await settle()
        goes, valid, misplaced, idle = model.outputs(item, inside)
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
            whole = model.queue and item[1] & WHOLE and inside <= item[1] & 0xFFFFFF
            cover.hit("waits_for_fence", not goes and not model.closing and not whole)
            if model.queue:
                cover.hit("waits_for_the_whole", whole and not model.closing)
            cover.hit("waits_for_sync", not goes and model.closing)
            cover.hit("overlaps", goes and model.flight > 0)
            cover.hit("empty_batch", goes and item[1] & 0xFFFFFF == 0)
            cover.hit("empty_sync", goes and item[1] & 0x10FFFFFF == SYNC)
        cover.hit("held", valid and not ready)
        if model.queue:
            cover.hit("waits_for_its_turn", item and not item[0] and model.left and not valid)
        ended = model.step(item, goes, retired)
        cover.hit("synced", ended)
        if goes:
            items.popleft()
            inside -= 1
        stuck = stuck + 1 if misplaced and not model.flight and not model.closing else 0
        cycles += 1
        assert cycles < most, "it hangs"
        await clock(dut)
    if stuck == 0:
        assert handed == sent, "gates, each once and in order"
    return cycles, stuck > 0


def coverage(test, times, queue, **more):
    if queue:
        more.update(waits_for_the_whole=4 * times, waits_for_its_turn=10 * times)
    return Coverage(
        test, retired_0=10 * times, retired_1=10 * times, retired_2=4 * times, retired_3=3 * times,
        retired_with_a_gate=10 * times, waits_for_fence=4 * times, waits_for_sync=4 * times, overlaps=2 * times,
        empty_batch=4 * times, empty_sync=times, held=10 * times, synced=4 * times, **more,
    )


async def start(dut):
    await begin(dut, valid_i=0, header_i=0, command_i=0, queued_i=0, ready_i=0, retired_i=0)


@cocotb.test()
async def in_order(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    queue = parameter(dut, "QUEUE")
    cover = coverage("in_order", 5, queue)
    await start(dut)
    cycles, stuck = await run(dut, rng, Model(queue), list(batches(rng, parameter(dut, "COMMAND"), 300)), cover)
    assert not stuck
    cover.check(cycles)


@cocotb.test()
async def misplaced(dut):
    """A gate without a batch, a header too early, a whole batch too long: said at once, and nothing goes on; after reset all is as
    new."""
    rng = random.Random(cocotb.RANDOM_SEED)
    queue = parameter(dut, "QUEUE")
    cover = coverage("misplaced", 1, queue, gate_too_many=5, header_too_early=5, **{"too_long": 3} if queue else {})
    await start(dut)
    cycles, width = 0, parameter(dut, "COMMAND")
    for _ in range(30):
        items = list(batches(rng, width, 10))
        headers = [i for i, (header, _) in enumerate(items) if header]
        if queue and rng.random() < 0.3:
            at, gates = rng.choice(headers), rng.choice((queue, queue + 1, rng.randrange(queue, 1 << 24)))
            items.insert(at, (True, rng.getrandbits(width) >> 30 << 30 | WHOLE | rng.getrandbits(5) << 24 | gates))
            kind = "too_long"
        elif rng.random() < 0.5:
            at = rng.choice([i for i in headers if i] or [0])
            items.insert(at, (False, rng.getrandbits(width)))  # behind a whole batch
            kind = "gate_too_many"
        else:
            gates = [i for i, (header, _) in enumerate(items) if not header] or [0]
            items.insert(rng.choice(gates), (True, rng.getrandbits(width)))  # before a batch's last gate
            kind = "header_too_early"
        clocks, stuck = await run(dut, rng, Model(queue), items, cover)
        assert stuck, "it went on"
        cover.hit(kind)
        dut.rst_ni.value, dut.valid_i.value, dut.retired_i.value = 0, 0, 0
        await clock(dut)
        dut.rst_ni.value = 1
        cycles += clocks + 1
    cover.check(cycles)
