"""phepu_card, chips with real elements behind a host's link: random programs against Python, every error beside right results,
the watchdog at each kind of wait, packets that don't fit, bandwidths."""

import random
from collections import deque

import cocotb
from common import Coverage, begin, clock, parameter, settle, value
from phepu import (
    CONTEXT, END, EVEN, FREE, LINK, LOAD_INPUT, LOAD_WEIGHTS, NO_CONTEXT, NO_INVERSE, NOP, NOT_REDUCED, OK, RANGE, STORE, UNKNOWN,
    WATCHDOG, Element, accumulate, align, clear, context, context_words, end, free, instruction, inverse, invert, join,
    load_input, load_weights, multiply, nop, power, queued, reduce, split, square, store, weight_words,
)

INSTRUCTIONS, INPUT_BUFFER, WEIGHT_BUFFER = 1, 2, 3
# Products of two Mersenne primes: odd, and nearly everything has an inverse.
SHORT = ((1 << 61) - 1) * ((1 << 31) - 1)
MODULI = {4: ((1 << 607) - 1) * ((1 << 127) - 1), 8: ((1 << 1279) - 1) * ((1 << 521) - 1), 16: ((1 << 2203) - 1) * ((1 << 1279) - 1)}


def packet(kind, words, address=0, after=0, count=None):
    return [kind | address << 8 | (len(words) if count is None else count) << 32 | after << 56] + list(words)


def code(items, after=0):
    """A packet of instructions, and how many they are with what fills them up."""
    items = list(items) + [nop()] * (-len(items) % 4)
    words = [sum(items[i + k] << 64 * k for k in range(4)) for i in range(0, len(items), 4)]
    return packet(INSTRUCTIONS, words, 0, after), len(items)


class Chip:
    """What a chip must send for what it is sent: its buffers, elements without clocks, packets out in order."""

    def __init__(self, elements):
        self.elements = [Element() for _ in range(elements)]
        self.inputs, self.weights, self.out = {}, {}, []

    def run(self, items):
        for word in items:
            op, mask = word >> 60, word >> 44 & 0xFFFF
            chosen = [x for e, x in enumerate(self.elements) if mask >> e & 1]

            def field(low, bits):
                return word >> low & (1 << bits) - 1

            if op == LOAD_INPUT:
                for x in chosen:
                    for i in range(field(4, 5)):
                        start = field(9, 16) + i * x.digits
                        x.load_input(field(0, 4) + i, join(self.inputs[start + k] for k in range(x.digits)))
            elif op == LOAD_WEIGHTS:
                for x in chosen:
                    x.load_weights(field(0, 9), [self.weights[field(18, 16) + k] for k in range(field(9, 9))])
            elif op == CONTEXT:
                digits = 4 << field(0, 2)
                words = [self.weights[field(4, 16) + k] for k in range(3 * digits + 1)]
                for x in chosen:
                    x.context(words, digits, 2 << field(2, 2))
            elif op == STORE:
                x = chosen[0]
                known = x.digits or 4
                result = x.filled[field(0, 1)].popleft() if not x.error else 0
                self.out.append((mask.bit_length() - 1, x.error, field(1, 32), result, known))
            elif op == END:
                self.out.append(None)
            elif op >= FREE and op != NOP:
                for x in chosen:
                    x.execute(queued(word))


class Card:
    def __init__(self, dut, rng, cover):
        self.dut, self.rng, self.cover = dut, rng, cover
        self.chips, self.count, self.inputs, self.weights = (parameter(dut, x) for x in ("CHIPS", "ELEMENTS", "INPUTS", "WEIGHTS"))
        self.all, self.every = (1 << self.count) - 1, (1 << self.chips) - 1
        self.cycles = 0

    async def start(self, pcie=0, ddr=0, link=0, watchdog=0, often=1.0):
        dut = self.dut
        if self.cycles:
            dut.rst_ni.value, dut.in_valid_i.value, dut.out_ready_i.value = 0, 0, 0
            await clock(dut)
            dut.rst_ni.value = 1
        else:
            await begin(
                dut, pcie_rate_i=0, ddr_rate_i=0, link_rate_i=0, watchdog_i=0, in_valid_i=0, in_chips_i=0, in_word_i=0, out_ready_i=0,
            )
        dut.pcie_rate_i.value, dut.ddr_rate_i.value, dut.link_rate_i.value, dut.watchdog_i.value = pcie, ddr, link, watchdog
        self.often = often
        self.queue = deque()
        self.got = [[] for _ in range(self.chips)]
        self.times = [[] for _ in range(self.chips)]
        self.driven = None
        self.clocks = 0
        self.links_in = 0

    def send(self, words, chips=None):
        self.queue.extend((self.every if chips is None else chips, word) for word in words)

    async def step(self):
        """A clock; whether nothing is under way any more."""
        dut = self.dut
        if self.driven is None and self.queue:
            self.driven = self.queue[0]
            dut.in_valid_i.value, dut.in_chips_i.value, dut.in_word_i.value = 1, *self.driven
        elif self.driven is None:
            dut.in_valid_i.value = 0
        open = self.often == 1 or self.rng.random() < self.often
        dut.out_ready_i.value = open
        await settle()
        idle = not self.queue and value(dut.idle_o)
        if self.driven is not None and value(dut.in_ready_o):
            self.queue.popleft()
            self.driven = None
        if value(dut.out_valid_o):
            if open:
                chip = value(dut.out_chip_o)
                self.got[chip].append(value(dut.out_word_o))
                self.times[chip].append(self.clocks)
            else:
                self.cover.hits["held_back"] = self.cover.hits.get("held_back", 0) + 1
        self.links_in += value(dut.links_in_o)
        self.cycles += 1
        self.clocks += 1
        await clock(dut)
        return idle

    async def run(self, most=60_000):
        for _ in range(most):
            if await self.step():
                return
        raise AssertionError("never done")

    def packets(self, chip):
        """What came of a chip: stores as (element, error, tag, number, words), reports as (error, fields, counters)."""
        words, found = iter(self.got[chip]), []
        for head in words:
            if head & 0xFF == 1:
                count = head >> 56 & 0xFF
                assert head >> 64 == 0
                found.append((head >> 8 & 0xFF, head >> 16 & 0xFF, head >> 24 & 0xFFFF_FFFF, join([next(words) for _ in range(count)]), count))
            else:
                assert head & 0xFF == 2 and head >> 16 & 0xFF == self.count
                counters = [next(words) | next(words) << 256 for _ in range(self.count)]
                found.append(Report(head, counters))
        return found

    def compare(self, chip, model):
        """Every result as it must be, in order; the report."""
        found = self.packets(chip)
        assert len(found) == len(model.out), f"{len(found)} packets and not {len(model.out)}"
        report = None
        for mine, wanted in zip(found, model.out):
            if wanted is None:
                report = mine
            else:
                assert mine == wanted, f"{mine[:3]} and not {wanted[:3]}"
        for e, x in enumerate(model.elements):
            assert report.error(e) == x.error, f"element {e}: error {report.error(e)} and not {x.error}"
        return report


class Report:
    def __init__(self, head, counters):
        self.chip_error = head >> 8 & 0xFF
        self.clocks = head >> 32 & (1 << 64) - 1
        self.instructions, self.bus, self.wait_bus, self.wait_output, self.wait_link = (head >> 96 + 32 * i & 0xFFFF_FFFF for i in range(5))
        self.counters = [[x >> 32 * i & 0xFFFF_FFFF for i in range(16)] for x in counters]

    def error(self, e):
        return self.counters[e][0] & 0xFF

    def error_at(self, e):
        return self.counters[e][0] >> 8


class Program:
    """A random program for one chip, in packets, and what comes of it."""

    def __init__(self, card, rng, chip, digits, shared):
        self.card, self.rng, self.chip, self.digits = card, rng, chip, digits
        self.model = Chip(card.count)
        self.modulus = SHORT if digits == 4 and rng.random() < 0.4 else MODULI[digits]
        self.packets, self.sent, self.items = [], 0, []
        self.context = context_words(self.modulus, digits)
        self.room = card.inputs // digits
        self.put(WEIGHT_BUFFER, self.context)
        self.model.inputs.update(shared)
        self.busy = [0] * card.count
        self.regions = [0] * card.count
        self.given = [[False, False] for _ in range(card.count)]
        self.tags = 0

    def put(self, kind, words, address=0):
        """Words for a buffer, behind all instructions so far."""
        self.flush()
        self.packets.append(packet(kind, words, address, self.sent))
        self.card.cover.hit("after", self.sent > 0)
        buffer = self.model.inputs if kind == INPUT_BUFFER else self.model.weights
        buffer.update({address + i: word for i, word in enumerate(words)})

    def flush(self):
        if self.items:
            words, count = code(self.items)
            self.packets.append(words)
            self.sent += count
            self.model.run(self.items)
            self.items = []

    def make(self, blocks):
        rng, count, everyone = self.rng, self.card.count, self.card.all
        width = rng.choice((2, 4, 8))
        self.items.append(context(everyone, self.digits, width, 0))
        for n in range(blocks):
            mask = rng.choice((everyone, everyone, 1 << rng.randrange(count)))
            chosen = [e for e in range(count) if mask >> e & 1]
            self.card.cover.hit("broadcast", len(chosen) > 1)
            if n % 4 == 3:
                # New inputs where old ones lay.
                many = rng.randrange(1, min(self.room, 4))
                fresh = [rng.randrange(self.modulus) for _ in range(many)]
                self.put(INPUT_BUFFER, [w for x in fresh for w in split(x, self.digits)], rng.randrange(self.room - many + 1) * self.digits)
            many = rng.randrange(1, 5)
            slot = rng.randrange(17 - many)
            slots = (1 << many) - 1 << slot
            self.free([e for e in chosen if self.busy[e] & slots], slots, 0)
            held = [a for a in range(self.room) if self.reduced(a)]
            runs = [a for a in held if all(a + i in held for i in range(many))]
            if not runs:
                continue
            self.items.append(load_input(mask, slot, many, rng.choice(runs) * self.digits))
            weights = [rng.randrange(-(1 << width - 1), 1 << width - 1) for _ in range(many)]
            self.put(WEIGHT_BUFFER, weight_words(weights, width), len(self.context))
            region = rng.choice((1, 2))
            self.free([e for e in chosen if self.regions[e] & region], 0, region)
            word = 0 if region == 1 else 144
            self.items.append(load_weights(mask, word, 1, len(self.context), region))
            for e in chosen:
                self.busy[e] |= slots
                self.regions[e] |= region
            out = rng.randrange(2)
            self.store([e for e in chosen if self.given[e][out]], out)
            kind = rng.randrange(4)
            self.card.cover.hit(("sums", "sums", "powers", "products")[kind])
            if kind < 2:
                sum = rng.randrange(8 // width)
                self.items += [clear(mask, sum), accumulate(mask, sum, slot, many, word * 256 // width), align(mask, sum)]
                self.items += [invert(mask, sum), reduce(mask, sum, out)]
            elif kind == 2:
                self.items.append(power(mask, 24 + out, slot, word, rng.randrange(1, 12), rng.randrange(2)))
            else:
                self.items.append(rng.choice((multiply(mask, 24 + out, slot, slot + many - 1), square(mask, 24 + out, slot, 2))))
            for e in chosen:
                self.given[e][out] = True
        for out in (0, 1):
            self.store([e for e in range(count) if self.given[e][out]], out)
        self.items.append(end())
        self.flush()
        return self

    def reduced(self, place):
        """Whether a residue lies in the input buffer there."""
        words = [self.model.inputs.get(place * self.digits + i) for i in range(self.digits)]
        return None not in words and join(words) < self.modulus

    def free(self, elements, slots, regions):
        if elements:
            self.items.append(free(sum(1 << e for e in elements), slots, regions))
            for e in elements:
                self.busy[e] &= ~slots
                self.regions[e] &= ~regions

    def store(self, elements, out):
        for e in elements:
            self.tags += 1
            self.items.append(store(e, out, self.tags << 8 | e))
            self.given[e][out] = False


@cocotb.test()
async def programs(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    cover = Coverage("programs", broadcast=15, sums=8, powers=3, products=3, after=15, held_back=20, reports=5)
    card = Card(dut, rng, cover)
    for digits, rates, often, blocks in ((4, (0, 0, 0), 1, 10), (4, (64, 200, 25), 1, 8), (4, (0, 0, 100), 0.2, 10), (8, (0, 0, 0), 1, 4), (16, (0, 0, 0), 1, 2)):
        await card.start(*rates, watchdog=20_000, often=often)
        # Inputs that all chips take, at once.
        shared = [rng.randrange(SHORT if i % 2 else MODULI[digits]) for i in range(8)]
        words = [w for x in shared for w in split(x, digits)]
        made = [Program(card, rng, c, digits, dict(enumerate(words))).make(blocks) for c in range(card.chips)]
        card.send(packet(INPUT_BUFFER, words))
        ways = [deque(program.packets) for program in made]
        while any(ways):
            c = rng.choice([c for c in range(card.chips) if ways[c]])
            card.send(ways[c].popleft(), 1 << c)
        await card.run()
        for c, program in enumerate(made):
            report = card.compare(c, program.model)
            cover.hit("reports")
            assert report.chip_error == OK and report.instructions <= program.sent and report.clocks < card.clocks
            for e, x in enumerate(program.model.elements):
                assert report.counters[e][8:11] == [x.instructions, x.multiplications, x.inversions]
                assert sum(report.counters[e][i] for i in (3, 4, 5, 6, 7, 11, 12, 15)) <= card.clocks
    cover.check(card.cycles)


async def beside(card, rng, bad, wrong, code_, at=None, chip_error=OK, watchdog=3000, digits=4, before=()):
    """Runs `wrong` for element `bad` of every chip in the middle of everybody's work: the others' results are right."""
    await card.start(watchdog=watchdog)
    modulus = MODULI[digits]
    xs = [rng.randrange(modulus) for _ in range(4)]
    # An input with a common divisor, one that is not reduced, an even modulus.
    special = [((1 << 127) - 1) * 5, modulus]
    constants = context_words(modulus, digits)
    weights = weight_words([3, -5, 7, 100], 8)
    even = [w for w in split(modulus - 1, digits)] + constants[digits:]
    inputs = [w for x in xs + special for w in split(x, digits)]
    card.send(packet(WEIGHT_BUFFER, constants + weights + even))
    card.send(packet(INPUT_BUFFER, inputs))
    first = list(before) or [context(card.all, digits, 8, 0)]
    work = [load_input(card.all, 0, 4, 0), load_weights(card.all, 0, 1, len(constants), 1), accumulate(card.all, 0, 0, 4, 0), align(card.all, 0)]
    work += [invert(card.all, 0), reduce(card.all, 0, 0)]
    rest = [multiply(card.all, 25, 0, 1)] + [store(e, s, 2 * e + s) for s in (0, 1) for e in range(card.count)] + [end()]
    words, _ = code(first + work[:2] + list(wrong) + work[2:] + rest)
    card.send(words)
    await card.run()
    model = Chip(card.count)
    model.weights.update(enumerate(constants + weights + even))
    model.inputs.update(enumerate(inputs))
    x = model.elements[bad]
    if not before:
        model.run(first)
    else:
        for e in range(card.count):
            if e != bad:
                model.run([context(1 << e, digits, 8, 0)])
    x.error = code_
    x.digits = x.digits or 4
    model.run(work + rest)
    for c in range(card.chips):
        report = card.compare(c, model)
        assert report.chip_error == chip_error
        if at is not None:
            assert report.error_at(bad) == at
    return len(constants) + len(weights)


@cocotb.test()
async def errors(dut):
    rng = random.Random(cocotb.RANDOM_SEED + 1)
    cover = Coverage("errors", **{f"error_{n}": 1 for n in (1, 2, 3, 4, 5, 7)}, of_the_controller=5, of_the_element=5)
    card = Card(dut, rng, cover)
    even = 13 + 1  # where beside() puts the even modulus

    cases = [
        (EVEN, lambda b: [context(b, 4, 8, even)], None),
        (NOT_REDUCED, lambda b: [load_input(b, 5, 1, 5 * 4)], None),
        (NO_INVERSE, lambda b: [load_input(b, 6, 1, 4 * 4), inverse(b, 20, 6)], 0),
        (RANGE, lambda b: [power(b, 16, 16, 0, 4)], 0),
        (RANGE, lambda b: [accumulate(b, 0, 15, 2, 0)], 0),
        (RANGE, lambda b: [load_input(b, 15, 2, 0)], None),
        (RANGE, lambda b: [load_input(b, 5, 1, card.inputs - 3)], None),
        (RANGE, lambda b: [load_weights(b, 288, 1, 0, 2)], None),
        (RANGE, lambda b: [context(b, 16, 8, card.weights - 48)], None),
        (UNKNOWN, lambda b: [instruction(5, b)], None),
        (UNKNOWN, lambda b: [instruction(7, b)], None),
        (UNKNOWN, lambda b: [instruction(14, b, (5, 41, 3))], 0),
    ]
    for n, (code_, wrong, at) in enumerate(cases):
        bad = rng.randrange(card.count)
        await beside(card, rng, bad, wrong(1 << bad), code_, at)
        cover.hit(f"error_{code_}")
        cover.hit("of_the_element" if n < 5 else "of_the_controller")
    for bad in range(card.count):
        others = card.all & ~(1 << bad)
        await beside(card, rng, bad, [], NO_CONTEXT, before=[context(others, 4, 8, 0)])
        cover.hit("error_7")
    # A store of none: nothing is sent, the chip says so.
    await card.start()
    card.send(code([instruction(STORE, 0), end()])[0])
    await card.run()
    for c in range(card.chips):
        (report,) = card.packets(c)
        assert report.chip_error == RANGE
    cover.check(card.cycles)


@cocotb.test()
async def watchdog(dut):
    """Waits that never end, of the controller and of an element: those who are waited for fail, the others' results are right."""
    rng = random.Random(cocotb.RANDOM_SEED + 2)
    cover = Coverage("watchdog", caught=7, never=1)
    card = Card(dut, rng, cover)
    for bad in (0, card.count - 1):
        b = 1 << bad
        full = [square(b, 24, 32), square(b, 24, 32)]  # the second waits for a store that comes too late
        for wrong in (
            [load_input(b, 0, 1, 0)], [load_weights(b, 0, 1, 0, 1)], [store(bad, 1, 7)], full + [nop()] * 3 + [context(b, 4, 8, 0)],
            full + [end()], full + [align(b, 0)] * 20,
        ):
            if bad and len(wrong) > 2:
                continue
            await card.start(watchdog=700)
            # As in beside(), but what is sent in the middle sends something itself.
            modulus = MODULI[4]
            constants = context_words(modulus, 4)
            inputs = [w for _ in range(4) for w in split(rng.randrange(modulus), 4)]
            card.send(packet(WEIGHT_BUFFER, constants))
            card.send(packet(INPUT_BUFFER, inputs))
            first = [context(card.all, 4, 8, 0), load_input(card.all, 0, 4, 0), load_weights(card.all, 0, 1, 0, 1)]
            rest = [multiply(card.all, 24, 0, 1), multiply(card.all, 25, 2, 3)]
            rest += [store(e, s, 2 * e + s) for s in (0, 1) for e in range(card.count)] + [end()]
            card.send(code(first + list(wrong) + rest)[0])
            await card.run()
            model = Chip(card.count)
            model.weights.update(enumerate(constants))
            model.inputs.update(enumerate(inputs))
            model.run(first)
            model.elements[bad].error = WATCHDOG
            model.run([x for x in wrong if x >> 60 in (STORE, END)] + rest)
            for c in range(card.chips):
                report = card.compare(c, model)
                assert report.chip_error == OK
                cover.hit("caught")
    # Without one it is waited for ever.
    await card.start(watchdog=0)
    card.send(code([context(1, 4, 8, 0), store(0, 0, 1)])[0])
    for _ in range(2500):
        assert not await card.step()
    assert not any(card.got)
    cover.hit("never")
    cover.check(card.cycles)


@cocotb.test()
async def link(dut):
    """Packets that don't fit, of no kind, empty ones, and such that wait for instructions that never come."""
    rng = random.Random(cocotb.RANDOM_SEED + 3)
    cover = Coverage("link", dropped=8, fits=3, given_up=1)
    card = Card(dut, rng, cover)
    modulus = MODULI[4]
    constants = context_words(modulus, 4)
    xs = [rng.randrange(modulus) for _ in range(2)]
    inputs = [w for x in xs for w in split(x, 4)]
    last = card.inputs - len(inputs)
    junk = [rng.getrandbits(256) for _ in range(5)]
    for bad in (
        packet(INPUT_BUFFER, junk, card.inputs - 4), packet(INPUT_BUFFER, junk, (1 << 24) - 5), packet(INPUT_BUFFER, junk, 1 << 20),
        packet(WEIGHT_BUFFER, junk, card.weights - 4), packet(WEIGHT_BUFFER, junk, (1 << 24) - 1), packet(0, junk), packet(4, junk),
        packet(255, []), None, packet(INPUT_BUFFER, [], card.inputs), packet(INSTRUCTIONS, []),
    ):
        await card.start(watchdog=500)
        card.send(packet(WEIGHT_BUFFER, constants))
        card.send(packet(INPUT_BUFFER, inputs, last))
        card.send(bad or [])
        card.send(code([context(card.all, 4, 8, 0), load_input(card.all, 0, 2, last), multiply(card.all, 24, 0, 1)]
                       + [store(e, 0, e) for e in range(card.count)] + [end()])[0])
        await card.run()
        model = Chip(card.count)
        model.weights.update(enumerate(constants))
        model.inputs.update((last + i, w) for i, w in enumerate(inputs))
        model.run([context(card.all, 4, 8, 0), load_input(card.all, 0, 2, last), multiply(card.all, 24, 0, 1)]
                  + [store(e, 0, e) for e in range(card.count)] + [end()])
        fits = bad is None or bad[0] in (packet(INPUT_BUFFER, [], card.inputs)[0], packet(INSTRUCTIONS, [])[0])
        for c in range(card.chips):
            assert card.compare(c, model).chip_error == (OK if fits else LINK)
        cover.hit("fits" if fits else "dropped")
    await card.start(watchdog=300)
    card.send(code([nop()])[0])
    card.send(code([end()], after=5)[0])
    await card.run()
    for c in range(card.chips):
        assert card.packets(c)[0].chip_error == WATCHDOG
    assert card.clocks > 300
    cover.hit("given_up")
    cover.check(card.cycles)


@cocotb.test()
async def bandwidths(dut):
    """So many words in so many clocks as each rate says, within a word."""
    rng = random.Random(cocotb.RANDOM_SEED + 4)
    cover = Coverage("bandwidths", pcie=3, ddr=3, link=3, out=6, unbound=1)
    card = Card(dut, rng, cover)
    many = 150
    for name, rates, a_word in (
        ("pcie", (64, 0, 0), 1), ("pcie", (100, 0, 0), 1), ("pcie", (7, 0, 0), 1), ("ddr", (0, 200, 0), 1 + card.chips), ("ddr", (0, 256, 0), 1 + card.chips),
        ("ddr", (0, 90, 0), 1 + card.chips), ("link", (0, 0, 25), 1), ("link", (0, 0, 50), 1), ("link", (0, 0, 255), 1), ("unbound", (0, 0, 0), 0),
    ):
        await card.start(*rates)
        count = 40 if rates[0] == 7 else many
        card.send(packet(INPUT_BUFFER, [rng.getrandbits(256) for _ in range(count - 1)]))
        while card.links_in < count * card.chips:
            await card.step()
            assert card.clocks < 20_000
        rate = max(rates)
        # The first word is earned first; queues are a few clocks long.
        wanted = max(a_word * count * 256 / rate, count) if rate else count
        assert -256 / max(rate, 1) - 1 <= card.clocks - wanted <= 256 * a_word / max(rate, 1) + 8, f"{name} {rate}: {card.clocks} clocks, not {wanted}"
        cover.hit(name)
        # Back: an element without a context fails, and its stores are zeros. Between the last words of instructions, which
        # share PCIe, and the reports they come as they can.
        card.send(code([store(0, 0, 1)] * 24 + [end()])[0])
        await card.run()
        if not 0 < rate <= 200:
            continue  # more than a chip makes
        report = 1 + 2 * card.count
        stores = [times[:-report] for times in card.times]
        times = stores[0] if name == "link" else sorted(sum(stores, []))
        times = times[40:-20]
        wanted = (len(times) - 1) * (2 if name == "ddr" else 1) * 256 / rate
        assert abs(times[-1] - times[0] - wanted) <= 512 / rate + 2, f"{name} {rate}: {times[-1] - times[0]} clocks out, not {wanted}"
        cover.hit("out")
    cover.check(card.cycles)
