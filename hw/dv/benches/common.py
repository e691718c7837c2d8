"""What every bench uses: clock and reset, ready/valid sources and sinks, counted coverage.

A bench walks clock by clock: it drives, settles, samples, and goes on to the next clock. Everything is written between a
falling and a rising edge, so what is sampled after `settle` is what the next rising edge acts on.
"""

import json
import os
import random
from collections import deque

from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, ReadOnly, Timer


def value(handle):
    return int(handle.value)


async def settle():
    await ReadOnly()


async def clock(dut):
    await FallingEdge(dut.clk_i)


async def begin(dut, **inputs):
    """Gives the inputs their first values, resets, and starts the clock."""
    for name, first in {"clk_i": 0, **inputs}.items():
        getattr(dut, name).value = first
    # Reset falls before the first clock, so that nothing acts on what registers hold by chance.
    resets = [dut.rst_ni] if hasattr(dut, "rst_ni") else []
    for level in (1, 0):
        for reset in resets:
            reset.value = level
        await Timer(1, "ns")
    Clock(dut.clk_i, 2, "ns").start()
    for _ in range(3):
        await clock(dut)
    for reset in resets:
        reset.value = 1
    await clock(dut)


async def combinational():
    await Timer(1, "ns")


def parameter(dut, name):
    return value(getattr(dut, name))


def words(rng, width):
    """A word: often one where carries, signs and ends go wrong."""
    top = (1 << width) - 1
    kind = rng.randrange(8)
    if kind == 0:
        return rng.choice((0, 1, top, top - 1, 1 << (width - 1), top >> 1))
    if kind == 1:
        return 1 << rng.randrange(width)
    if kind == 2:
        return top >> rng.randrange(width)
    if kind == 3:
        return top ^ (1 << rng.randrange(width))
    return rng.getrandbits(width)


class Source:
    """Offers items in order, each until it is taken; between them the data lines carry junk."""

    def __init__(self, valid, ready, data, items=(), often=1.0, rng=random):
        self.valid, self.ready, self.data = valid, ready, data
        self.items, self.often, self.rng = deque(items), often, rng
        self.offered = False

    def drive(self):
        if not self.offered:
            self.offered = bool(self.items) and self.rng.random() < self.often
            self.data.value = self.items[0] if self.offered else self.rng.getrandbits(len(self.data))
        self.valid.value = int(self.offered)

    def sample(self):
        """The item that the coming edge takes, or None."""
        if self.offered and self.ready.value == 1:
            self.offered = False
            return self.items.popleft()
        return None


class Sink:
    """Takes what comes, as often as it is told to."""

    def __init__(self, valid, ready, data, often=1.0, rng=random):
        self.valid, self.ready, self.data = valid, ready, data
        self.often, self.rng = often, rng
        self.taken = []
        self.open = False

    def drive(self):
        self.open = self.rng.random() < self.often
        self.ready.value = int(self.open)

    def sample(self):
        if self.open and self.valid.value == 1:
            self.taken.append(value(self.data))
            return self.taken[-1]
        return None


class Delay:
    """What a pipeline of `cycles` clocks gives: None until the first item is through."""

    def __init__(self, cycles):
        self.queue = deque([None] * cycles)

    def step(self, item):
        self.queue.append(item)
        return self.queue.popleft()


class Coverage:
    """Counts what a test has seen against what it must see; `check` prints it and fails where a goal is missed."""

    def __init__(self, test, /, **goals):
        self.test = test
        self.goals = goals
        self.hits = dict.fromkeys(goals, 0)

    def hit(self, name, condition=True):
        if condition:
            self.hits[name] += 1
        return condition

    def check(self, cycles):
        path = os.environ.get("DV_COVERAGE")
        if path:
            with open(path, "a") as file:
                json.dump({"test": self.test, "cycles": cycles, "hits": self.hits, "goals": self.goals}, file)
                file.write("\n")
        missed = {name: f"{self.hits[name]} of {goal}" for name, goal in self.goals.items() if self.hits[name] < goal}
        assert not missed, f"coverage goals missed: {missed}"
