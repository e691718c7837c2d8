"""ph_element against phepu.Element, word by word: programs of every instruction, their exact clocks and counts, every error."""

import random
from math import gcd

import cocotb
import phepu as p
from cocotb.triggers import ValueChange, with_timeout
from cocotb.utils import get_sim_time
from common import Coverage, begin, clock, settle, value
from phepu_numbers import MULTIPLY_CLOCKS, almost_inverse, random_modulus

LONGEST = 1_000_000  # ns that anything is waited for: the longest power takes half of it
CLASSES = (3, 4, 5, 6, 7, 11, 12, 15)  # counters of which each clock adds to one


class Driver:
    """What the controller is to an element: bus, instructions, stores. Beside it, what the element should hold."""

    def __init__(self, dut, rng):
        self.dut, self.rng = dut, rng
        self.began = get_sim_time("ns")
        self.filled = [0, 0]  # results that a slot was given and that were not fetched
        self.pauses = 0.0     # of the bus

    async def begin(self):
        await begin(
            self.dut, context_i=0, digits_i=0, width_i=0, bus_valid_i=0, bus_kind_i=0, bus_address_i=0, bus_last_i=0, bus_word_i=0,
            claim_slots_i=0, claim_regions_i=0, fail_i=0, fail_code_i=0, valid_i=0, instruction_i=0, store_read_i=0, store_slot_i=0,
            store_index_i=0, store_done_i=0,
        )
        self.fresh()

    def fresh(self):
        self.model = p.Element()
        self.filled = [0, 0]
        self.since = get_sim_time("ns")

    async def reset(self):
        self.dut.rst_ni.value = 0
        await self.clocks(2)
        self.dut.rst_ni.value = 1
        self.fresh()

    async def clocks(self, count=1):
        for _ in range(count):
            await clock(self.dut)

    def total(self):
        """Clocks since the bench began."""
        return int(get_sim_time("ns") - self.began) // 2

    def now(self):
        """Clocks since the reset."""
        return int(get_sim_time("ns") - self.since) // 2

    async def until(self, output, good):
        """Waits until an output has a value that is good."""
        while not good(value(output)):
            await with_timeout(ValueChange(output), LONGEST, "ns")
            await clock(self.dut)

    async def idle(self):
        await self.until(self.dut.idle_o, bool)

    async def word(self, kind, address, word, last=0):
        while self.rng.random() < self.pauses:
            self.dut.bus_word_i.value = self.rng.getrandbits(256)
            await self.clocks()
        dut = self.dut
        dut.bus_valid_i.value, dut.bus_kind_i.value, dut.bus_address_i.value = 1, kind, address
        dut.bus_last_i.value, dut.bus_word_i.value = last, word
        await self.clocks()
        dut.bus_valid_i.value = 0

    async def context(self, modulus, digits, width, words=None):
        await self.idle()
        words = words or p.context_words(modulus, digits)
        dut = self.dut
        dut.context_i.value, dut.digits_i.value, dut.width_i.value = 1, {4: 0, 8: 1, 16: 2}[digits], {2: 0, 4: 1, 8: 2}[width]
        if self.rng.random() < 0.5:  # the first word may come in the same clock, or later
            await self.clocks()
            dut.context_i.value = 0
            dut.digits_i.value, dut.width_i.value = self.rng.randrange(4), self.rng.randrange(4)
        for i, word in enumerate(words):
            await self.word(p.BUS_CONTEXT, i, word)
            dut.context_i.value = 0
        self.model.context(words, digits, width)

    async def load(self, slot, residue, claim=True):
        if claim:
            await self.until(self.dut.slots_busy_o, lambda busy: not busy >> slot & 1)
            self.dut.claim_slots_i.value = 1 << slot
            await self.clocks()
            self.dut.claim_slots_i.value = 0
            self.model.slots_busy |= 1 << slot
        digits = self.model.digits or 4
        for i, word in enumerate(p.split(residue, digits)):
            await self.word(p.BUS_INPUT, 16 * slot + i, word, int(i == digits - 1))
        self.model.load_input(slot, residue)

    async def load_weights(self, first, words, regions=0):
        if regions:
            await self.until(self.dut.regions_busy_o, lambda busy: not busy & regions)
            self.dut.claim_regions_i.value = regions
            await self.clocks()
            self.dut.claim_regions_i.value = 0
            self.model.regions_busy |= regions
        for i, word in enumerate(words, first):
            await self.word(p.BUS_WEIGHTS, i, word)
        self.model.load_weights(first, words)

    async def push(self, instruction):
        """Into the queue; the model executes it at once."""
        dut = self.dut
        word = p.queued(instruction)
        dut.valid_i.value, dut.instruction_i.value = 1, word
        await self.until(dut.ready_o, bool)
        await clock(dut)
        dut.valid_i.value, dut.instruction_i.value = 0, self.rng.getrandbits(48)
        before = [len(slot) for slot in self.model.filled]
        self.model.execute(word)
        self.filled = [n + len(slot) - b for n, slot, b in zip(self.filled, self.model.filled, before)]

    async def read(self, slot):
        """The words of an output slot."""
        dut, words = self.dut, []
        dut.store_slot_i.value = slot
        for i in range(self.model.digits):
            dut.store_read_i.value, dut.store_index_i.value = 1, i
            await clock(dut)
            dut.store_read_i.value = 0
            dut.store_index_i.value = self.rng.randrange(16)
            if self.rng.random() < 0.1:
                await clock(dut)
            words.append(value(dut.store_word_o))
        return p.join(words)

    async def store(self, slot):
        """Fetches a result and compares it."""
        await self.until(self.dut.full_o, lambda full: full >> slot & 1)
        if self.rng.random() < 0.3:
            await self.clocks(self.rng.randrange(300))
        found = await self.read(slot)
        self.dut.store_done_i.value, self.dut.store_slot_i.value = 1, slot
        await self.clocks()
        self.dut.store_done_i.value = 0
        wanted = self.model.filled[slot].popleft()
        self.filled[slot] -= 1
        if not self.model.error:
            assert found == wanted, f"slot {slot}: {found:#x}, not {wanted:#x}"
            assert self.filled[slot] or not value(self.dut.full_o) >> slot & 1
        return found

    async def store_all(self):
        for slot in (0, 1):
            while self.filled[slot]:
                await self.store(slot)

    def counters(self):
        packed = value(self.dut.counters_o)
        return [packed >> 32 * i & 0xFFFFFFFF for i in range(16)]

    async def check(self):
        """Busy bits, errors, and counts, when all is done."""
        await self.idle()
        await self.clocks(2)
        dut, model, count = self.dut, self.model, self.counters()
        assert value(dut.failed_o) == bool(model.error)
        assert (value(dut.error_o), value(dut.error_at_o)) == (model.error, model.error_at), f"error {value(dut.error_o)} at {value(dut.error_at_o)}"
        assert count[0] == model.error | model.error_at << 8
        if model.error:
            assert value(dut.full_o) == 3 and value(dut.slots_busy_o) == value(dut.regions_busy_o) == 0
            assert value(dut.ready_o) and value(dut.idle_o)
            return
        assert value(dut.full_o) == sum(bool(n) << i for i, n in enumerate(self.filled))
        assert value(dut.slots_busy_o) == model.slots_busy and value(dut.regions_busy_o) == model.regions_busy
        seen = (count[8], count[9], count[10], count[13], count[14])
        wanted = (model.instructions, model.multiplications, model.inversions, model.copies * model.digits, model.zero_bits)
        assert seen == wanted, f"{seen}, not {wanted}"
        assert sum(count[i] for i in CLASSES) == self.now(), f"{count}, {self.now()} clocks"
        if model.digits:
            assert count[1] >= model.multiplications * (MULTIPLY_CLOCKS[4] - 1)


def unit(rng, m):
    """A number below m that has an inverse, often an extreme one."""
    while True:
        x = rng.choice((1, m - 1, rng.randrange(m), rng.randrange(m), rng.randrange(m), rng.getrandbits(256) % m))
        if gcd(x, m) == 1:
            return x


def sparse(rng, bits, zeros):
    return sum(1 << i for i in range(bits) if rng.random() >= zeros)


class Deck:
    """One after the other in random order, all as often."""

    def __init__(self, rng, *cards):
        self.rng, self.cards, self.left = rng, cards, []

    def draw(self):
        if not self.left:
            self.left = self.rng.sample(self.cards, len(self.cards))
        return self.left.pop()


class Programs:
    """Random programs that wait for nothing later."""

    def __init__(self, driver, cover):
        self.driver, self.rng, self.cover = driver, driver.rng, cover
        self.kinds = Deck(self.rng, "load", "sum", "sum", "buckets", "basic", "basic")
        self.basics = Deck(self.rng, "multiply", "multiply", "square", "power", "power", "steady", "inverse")

    async def issue(self, instruction, slots=()):
        """Pushes an instruction that names these output slots."""
        driver = self.driver
        late = []
        for slot in sorted(set(slots)):
            if driver.filled[slot]:
                if self.rng.random() < 0.5:
                    await driver.store(slot)
                else:
                    late.append(slot)  # the element waits
        await driver.push(instruction)
        for slot in late:
            self.cover.hit("waits")
            await driver.store(slot)

    async def weights(self, zeros):
        """The whole weight buffer; buckets don't take all weights of 8 bits."""
        await self.driver.load_weights(0, p.split(sparse(self.rng, 256 * p.WEIGHT_WORDS, zeros), p.WEIGHT_WORDS), 3)

    async def bucket_weights(self):
        """A word of weights between -8 and 8, in the buffer's last word."""
        width, rng = self.driver.model.width, self.rng
        low = max(-8, -1 << width - 1)
        weights = [rng.choice((0, low, rng.randrange(low, min(8, (1 << width - 1) - 1) + 1))) for _ in range(256 // width)]
        await self.driver.push(p.free(1, 0, 2))
        await self.driver.load_weights(p.WEIGHT_WORDS - 1, p.weight_words(weights, width), 2)

    async def inputs(self, slots):
        for slot in slots:
            await self.driver.load(slot, unit(self.rng, self.driver.model.modulus))

    async def sum(self, buckets):
        """One output, in both dataflows."""
        rng, model, cover = self.rng, self.driver.model, self.cover
        width = model.width
        chosen = rng.randrange(8 // width)
        if buckets or rng.random() < 0.8:
            await self.issue(p.clear(1, chosen, buckets))
        filled = model.terms.count(True)
        for _ in range(rng.randrange(3)):
            slot = rng.randrange(16)
            count = rng.randrange(1, min(16 - slot, 5) + 1)
            total = p.WEIGHT_WORDS * 256 // width
            weight = total - 256 // width + rng.randrange(256 // width - count) if buckets else rng.choice(
                (rng.randrange(total - count), total - count, 256 // width * rng.randrange(1, 288) - 1)
            )
            cover.hit("two_words", not buckets and weight * width // 256 != ((weight + count) * width - 1) // 256)
            await self.issue(p.accumulate(1, chosen, slot, count, weight, buckets, rng.randrange(16) if buckets else 0))
        cover.hit("no_terms", model.terms.count(True) == filled == 0)
        if not buckets:
            await self.issue(p.align(1, chosen))
            cover.hit("negative", model.terms[(chosen + 1) * width - 1])
            await self.issue(p.invert(1, chosen))
        slot = rng.randrange(2)
        chain = int(p.OUTPUT + slot in model.memory and rng.random() < 0.4)
        last = int(rng.random() < 0.7)
        shift = rng.randrange(4)
        cover.hit("chain", chain)
        cover.hit("not_last", not last)
        await self.issue(p.reduce(1, chosen, slot, buckets, chain, shift, last), [slot])
        cover.hit("buckets" if buckets else f"width{width}")

    async def basic(self):
        rng, model, cover = self.rng, self.driver.model, self.cover
        places = [place for place in model.memory if place <= p.LITERAL]
        dst, x, y = rng.randrange(p.TERM, p.OUTPUT + 2), rng.choice(places), rng.choice(places)
        if rng.random() < 0.2:
            x = rng.choice([place for place in places if place >= p.OUTPUT])
        kind = self.basics.draw()
        if kind == "multiply":
            if rng.random() < 0.3:
                x = dst if dst in model.memory else x
            instruction = p.multiply(1, dst, x, y)
        elif kind == "square":
            instruction = p.square(1, dst, x, rng.choice((1, 1, 2, 5)))
        elif kind == "inverse":
            if gcd(model.memory[x], model.modulus) != 1:
                return
            instruction = p.inverse(1, dst, x)
        else:
            if x == dst:
                return
            bits = rng.choice((1, 2, 7, rng.randrange(1, 20), 40 if kind == "power" else 12))
            word = rng.choice((0, rng.randrange(p.WEIGHT_WORDS), p.WEIGHT_WORDS - 1))
            cover.hit("exponent_0", not model.weights >> 256 * word & (1 << bits) - 1)
            instruction = p.power(1, dst, x, word, bits, kind == "steady")
        cover.hit(kind)
        slots = [place - p.OUTPUT for place in (dst, x, y if kind == "multiply" else x) if p.OUTPUT <= place < p.OUTPUT + 2]
        cover.hit("from_output", p.OUTPUT <= x < p.OUTPUT + 2)
        await self.issue(instruction, slots)

    async def program(self, length):
        rng, driver, model, cover = self.rng, self.driver, self.driver.model, self.cover
        for _ in range(length):
            kind = self.kinds.draw()
            if kind == "load":
                slot = rng.randrange(16)
                regions = rng.randrange(4) if rng.random() < 0.3 else 0
                await self.issue(p.free(1, 1 << slot, regions))
                await self.inputs([slot])
                if regions:
                    first = {1: 0, 2: 144, 3: 140}[regions]
                    await driver.load_weights(first, [rng.getrandbits(256) for _ in range(4)], regions)
                    cover.hit("regions")
                cover.hit("reloads")
            elif kind == "sum":
                await self.sum(0)
            elif kind == "buckets":
                await self.bucket_weights()
                await self.sum(1)
            else:
                await self.basic()
            if model.error:
                return


async def random_programs(dut, name, digits, contexts, length, goals, seed):
    rng = random.Random(cocotb.RANDOM_SEED + seed)
    cover = Coverage(name, **(dict.fromkeys(GOALS, 0) | goals))
    driver = Driver(dut, rng)
    await driver.begin()
    programs = Programs(driver, cover)
    for number in range(contexts):
        if number % 3 == 0:
            await driver.reset()
        driver.pauses = (0.0, 0.3)[number % 2]
        while True:
            modulus = rng.getrandbits(rng.randrange(3, 256 * digits - 1)) | 1 if number % 5 == 4 else random_modulus(rng, digits).m
            if modulus > 3:
                break
        cover.hit("short_modulus", modulus.bit_length() < 256 * digits - 1)
        # What is in use stays so.
        if number % 3:
            await driver.push(p.free(1, 0xFFFF, 3))
        await driver.context(modulus, digits, rng.choice((2, 4, 8)))
        zeros = (0.0, 0.25, 0.5, 0.75, 1.0, 0.9)[number % 6]
        cover.hit(f"zeros_{int(100 * zeros)}")
        await programs.weights(zeros)
        await programs.inputs(range(16))
        await programs.program(length)
        await driver.store_all()
        await driver.check()
        assert not driver.model.error
        cover.hit("contexts_anew", number % 3)
    cover.check(driver.total())


GOALS = dict(
    waits=5, two_words=6, no_terms=2, negative=10, chain=8, not_last=8, buckets=12, width2=5, width4=5, width8=5, multiply=8,
    square=4, power=8, steady=4, inverse=3, exponent_0=3, from_output=3, regions=3, reloads=10, short_modulus=3, zeros_0=2, zeros_25=2,
    zeros_50=2, zeros_75=2, zeros_100=2, zeros_90=2, contexts_anew=6,
)


@cocotb.test()
async def programs_4(dut):
    await random_programs(dut, "programs_4", 4, 18, 10, GOALS, 0)


@cocotb.test()
async def programs_8(dut):
    await random_programs(dut, "programs_8", 8, 3, 6, dict(negative=1, contexts_anew=2), 1)


@cocotb.test()
async def programs_16(dut):
    await random_programs(dut, "programs_16", 16, 2, 6, dict(negative=1, contexts_anew=1), 2)


def steps_clocks(steps, digits):
    """From the first step's start to the clock in which an instruction with these steps ends, "m" multiplications, "c" copies:
    a copy takes a clock a word and one to begin, and waits for the words of the multiplication before it."""
    total = 0
    for step, after in zip(steps, steps[1:] + "-"):
        total += digits + 1 if step == "c" else MULTIPLY_CLOCKS[digits] + (digits - 1 if after == "c" else 0)
    return total + 1


def inversion(digits, k):
    """Of an inverse, without its two multiplications: 3 d words, k branches and doublings."""
    return 3 * digits + k + 5


async def timed(driver, instruction, counter, wanted):
    """Runs an instruction on an element that is idle: the clocks of its step."""
    await driver.idle()
    before = driver.counters()
    await driver.push(instruction)
    await driver.idle()
    after = driver.counters()
    assert after[counter] - before[counter] == wanted, f"{after[counter] - before[counter]} clocks, not {wanted}"
    assert sum(after[i] - before[i] for i in CLASSES if i not in (counter, 11)) == 0


@cocotb.test()
async def clocks(dut):
    """Every instruction's clocks on an idle element, as hw/doc/ph_element.md has them."""
    rng = random.Random(cocotb.RANDOM_SEED + 3)
    cover = Coverage(
        "clocks", accumulate=20, no_bit=2, copies=20, buckets=3, align=4, invert=3, reduce=4, multiply=3, square=3, power=8,
        exponent_0=2, ones=3, steady=6, steady_values=6, inverse=3, short_inverse=1, bits_4096=1,
    )
    driver = Driver(dut, rng)
    await driver.begin()
    for digits in (4, 8, 16):
        m = MULTIPLY_CLOCKS[digits]
        rounds = {4: 10, 8: 3, 16: 2}[digits]
        width = 8
        for turn in range(2 if digits == 4 else 1):
            modulus = rng.getrandbits(256 * digits if turn == 0 else 200) | 1
            await driver.reset()
            model = driver.model
            await driver.context(modulus, digits, width)
            for slot in range(16):
                await driver.load(slot, unit(rng, modulus))
            for number in range(rounds):
                zeros = (0.5, 0.9, 1.0, 0.75, 0.0)[number % 5]
                count, slot = rng.randrange(1, 5), rng.randrange(12)
                await driver.load_weights(7, [sparse(rng, 256, zeros) for _ in range(2)])
                if number % 2 == 0:
                    await timed(driver, p.clear(1), 15, 1)
                first = 7 * 32 + rng.choice((0, 5, 28))
                steps, terms = "", list(model.terms)
                for i in range(first, first + count):
                    for b in range(8):
                        if model.weights >> 8 * i + b & 1:
                            steps += "m" if terms[b] else "c"
                            terms[b] = True
                words = (first + count - 1) // 32 - first // 32
                # One to look at it, three to the first bit, three more for a word before it without any.
                if steps:
                    empty = words and not model.weights >> 8 * first & (1 << 8 * (32 - first % 32)) - 1
                    wanted = 4 + 3 * empty + steps_clocks(steps, digits)
                else:
                    wanted = 6 + 3 * words
                cover.hit("accumulate")
                cover.hit("no_bit", not steps)
                for _ in range(steps.count("c")):
                    cover.hit("copies")
                await timed(driver, p.accumulate(1, 0, slot, count, first), 3, wanted)
                # Aligning: a clock to look, one for the first term, one for each that is empty and nothing hides.
                squares = sum(b for b in range(8) if terms[b])
                if squares and all(terms):
                    await timed(driver, p.align(1, 0), 4, 2 + steps_clocks("m" * squares, digits))
                    cover.hit("align")
                elif not any(terms):
                    await timed(driver, p.align(1, 0), 4, 10)
                    cover.hit("align")
                else:
                    await driver.push(p.align(1, 0))
                if terms[7]:
                    k = almost_inverse(model.memory[p.TERM + 7], modulus, 256 * digits)[1]
                    await timed(driver, p.invert(1, 0), 5, 1 + inversion(digits, k) + 2 * m + 1)
                    cover.hit("invert")
                else:
                    await timed(driver, p.invert(1, 0), 5, 3)
                full = sum(terms)
                if full == 8:
                    await timed(driver, p.reduce(1, 0, 0, last=0), 6, 1 + steps_clocks("c" + 7 * "m", digits))
                    cover.hit("reduce")
                elif not full:
                    await timed(driver, p.reduce(1, 0, 0, last=0), 6, 9 + steps_clocks("c", digits))
                    cover.hit("reduce")
                    await timed(driver, p.reduce(1, 0, 0, chain=1, shift=3, last=0), 6, 1 + steps_clocks("mmm", digits))
                else:
                    await driver.push(p.reduce(1, 0, 0, last=0))
            await driver.check()
            # Buckets: as many terms as weights, and the suffix products.
            await driver.load_weights(7, p.weight_words([3, -8, 0, 3, 1, 8], 8))
            await timed(driver, p.clear(1, buckets=1), 15, 1)
            await timed(driver, p.accumulate(1, 0, 0, 6, 7 * 32, 1, 6), 3, 4 + steps_clocks("ccmcm", digits))
            await timed(driver, p.reduce(1, 0, 0, buckets=1, last=0), 6, 1 + steps_clocks("ccccmcm" + "c" + 7 * "m", digits))
            cover.hit("buckets")
            # Basic operations.
            await timed(driver, p.multiply(1, p.TERM, 0, 1), 7, 1 + steps_clocks("m", digits))
            cover.hit("multiply")
            await timed(driver, p.square(1, p.TERM, 0, 6), 7, 1 + steps_clocks(6 * "m", digits))
            cover.hit("square")
            k = almost_inverse(model.memory[3], modulus, 256 * digits)[1]
            await timed(driver, p.inverse(1, p.TERM + 1, 3), 7, 1 + inversion(digits, k) + 2 * m + 1)
            cover.hit("inverse")
            cover.hit("short_inverse", turn)
            for bits, exponent in ((1, 1), (9, 0b100000001), (7, 127), (300, 0b1011), (5, 0), (260, 0), (12, rng.getrandbits(12))):
                await driver.load_weights(20, p.split(exponent, -(-bits // 256)))
                n = max(exponent.bit_length() - 1, 0) + max(exponent.bit_count() - 1, 0)
                words = -(-bits // 256)
                skipped = words - max(-(-exponent.bit_length() // 256), 1)
                wanted = 4 + 3 * skipped + steps_clocks("c" + n * "m", digits)
                await timed(driver, p.power(1, p.TERM + 2, 5, 20, bits), 7, wanted)
                cover.hit("power")
                cover.hit("exponent_0", not exponent)
                cover.hit("ones", exponent == (1 << bits) - 1)
            for bits in (1, 9):
                for exponent in (0, 1, (1 << bits) - 1, rng.getrandbits(bits)):
                    await driver.load_weights(20, [exponent])
                    await timed(driver, p.power(1, p.TERM + 3, 5, 20, bits, 1), 7, 1 + steps_clocks("c" + 2 * bits * "m", digits))
                    cover.hit("steady_values")
                cover.hit("steady")
            for term in range(4):
                await driver.push(p.multiply(1, p.OUTPUT, p.TERM + term, p.LITERAL))
                await driver.store(0)
            await driver.check()
    # The longest exponent, once, over 16 words and from a place in the middle of the buffer.
    await driver.reset()
    modulus = rng.getrandbits(1024) | 1
    await driver.context(modulus, 4, 4)
    await driver.load(2, unit(rng, modulus))
    exponent = 1 << 4095 | sparse(rng, 4095, 0.9)
    await driver.load_weights(272, p.split(exponent, 16))
    n = 4095 + exponent.bit_count() - 1
    await timed(driver, p.power(1, p.OUTPUT + 1, 2, 272, 4096), 7, 4 + steps_clocks("c" + n * "m", 4))
    cover.hit("bits_4096")
    await driver.store(1)
    await driver.check()
    cover.check(driver.total())


async def healthy(driver, digits=4):
    """After a reset: a right result, of a sum and of a power."""
    rng = driver.rng
    await driver.reset()
    modulus = rng.getrandbits(256 * digits) | 1
    await driver.context(modulus, digits, 4)
    for slot in (0, 1):
        await driver.load(slot, unit(rng, modulus))
    await driver.load_weights(0, p.weight_words([3, -6], 4))
    for instruction in (
        p.clear(1), p.accumulate(1, 0, 0, 2, 0), p.align(1, 0), p.invert(1, 0), p.reduce(1, 0, 0), p.power(1, p.OUTPUT + 1, 1, 0, 8),
    ):
        await driver.push(instruction)
    await driver.store_all()
    await driver.check()
    assert not driver.model.error


async def dead(driver):
    """A failed element takes everything and shows nothing of it, however much comes."""
    dut, rng, model = driver.dut, driver.rng, driver.model
    await driver.check()
    assert model.error
    at = model.error_at
    for _ in range(rng.randrange(20, 30)):
        dut.valid_i.value, dut.instruction_i.value = 1, rng.getrandbits(48)
        dut.claim_slots_i.value, dut.claim_regions_i.value = rng.getrandbits(16), rng.getrandbits(2)
        dut.fail_i.value, dut.fail_code_i.value = rng.randrange(2), rng.getrandbits(8)
        dut.bus_valid_i.value, dut.bus_kind_i.value, dut.bus_address_i.value = 1, rng.randrange(3), rng.randrange(288)
        dut.bus_word_i.value = rng.getrandbits(256)
        await settle()
        assert value(dut.ready_o) and value(dut.idle_o) and value(dut.full_o) == 3
        assert value(dut.slots_busy_o) == value(dut.regions_busy_o) == 0
        await clock(dut)
    dut.valid_i.value = dut.fail_i.value = dut.bus_valid_i.value = dut.claim_slots_i.value = dut.claim_regions_i.value = 0
    await driver.clocks(20)
    assert model.error_at == at
    await driver.check()


async def failing(driver):
    """Until the element has failed."""
    await driver.until(driver.dut.failed_o, bool)


BAD = {  # instructions out of a buffer or unknown, by the width of weights
    p.RANGE: [
        (2, p.accumulate(1, 0, 15, 2, 0)), (2, p.accumulate(1, 0, 0, 17, 0)), (2, p.accumulate(1, 0, 3, 0, 0)),
        (2, p.accumulate(1, 0, 0, 1, 36864)), (4, p.accumulate(1, 0, 0, 3, 18430)), (8, p.accumulate(1, 0, 0, 16, 9201)),
        (8, p.accumulate(1, 0, 0, 1, 65535)), (4, p.accumulate(1, 2, 0, 1, 0)), (8, p.accumulate(1, 1, 0, 1, 0)),
        (8, p.clear(1, 1)), (4, p.clear(1, 3)), (8, p.align(1, 2)), (4, p.align(1, 2)), (8, p.invert(1, 3)), (4, p.invert(1, 2)),
        (8, p.reduce(1, 1, 0)), (4, p.reduce(1, 3, 1)), (8, p.accumulate(1, 0, 0, 4, 100, 1)), (8, p.accumulate(1, 0, 0, 4, 104, 1)),
        (2, p.multiply(1, 15, 0, 1)), (2, p.multiply(1, 26, 0, 1)), (2, p.multiply(1, 35, 0, 1)), (2, p.multiply(1, 16, 26, 1)),
        (2, p.multiply(1, 16, 0, 31)), (2, p.multiply(1, 16, 35, 1)), (2, p.multiply(1, 16, 0, 63)), (2, p.square(1, 16, 36, 1)),
        (2, p.square(1, 16, 1, 0)), (2, p.square(1, 0, 1, 1)), (2, p.power(1, 16, 16, 0, 8)), (2, p.power(1, 16, 0, 0, 0)),
        (2, p.power(1, 16, 0, 0, 4097)), (2, p.power(1, 16, 0, 287, 257)), (2, p.power(1, 16, 0, 288, 1)),
        (2, p.power(1, 25, 25, 0, 8, 1)), (2, p.power(1, 16, 0, 273, 4096, 1)), (2, p.inverse(1, 2, 0)), (2, p.inverse(1, 16, 27)),
    ],
    p.UNKNOWN: [(2, p.instruction(opcode, 1)) for opcode in range(8)]
    + [(2, p.instruction(p.BASIC, 1, (kind, 41, 3), (16, 0, 6))) for kind in range(4, 8)],
}


@cocotb.test()
async def crossing(dut):
    """Inputs come while an inverse takes the modulus from its memory, which the check of inputs reads too."""
    rng = random.Random(cocotb.RANDOM_SEED + 6)
    cover = Coverage("crossing", held=10, not_held=3)
    driver = Driver(dut, rng)
    await driver.begin()
    for digits in (4, 16):
        await driver.reset()
        modulus = rng.getrandbits(256 * digits) | 1
        await driver.context(modulus, digits, 2)
        for slot in range(4):
            await driver.load(slot, unit(rng, modulus))
        for _ in range(20 if digits == 4 else 6):
            driver.pauses = rng.choice((0.0, 0.5))
            await driver.push(p.free(1, 0xFFFE, 0))
            await driver.idle()
            before = driver.counters()[7]
            k = almost_inverse(driver.model.memory[0], modulus, 256 * digits)[1]
            await driver.push(p.inverse(1, p.OUTPUT, 0))
            await driver.clocks(rng.randrange(2 * digits))
            for slot in range(1, 4):
                await driver.load(slot, unit(rng, modulus))
            await driver.idle()
            assert value(dut.full_o) == 1  # what is idle has filled its outputs
            late = driver.counters()[7] - before - (1 + inversion(digits, k) + 2 * MULTIPLY_CLOCKS[digits] + 1)
            assert 0 <= late <= 4 * digits
            cover.hit("held" if late else "not_held")
            await driver.store(0)
            for slot in range(4):
                await driver.push(p.multiply(1, p.OUTPUT, slot, p.SQUARED))
                await driver.store(0)
        await driver.check()
    cover.check(driver.total())


@cocotb.test()
async def waits(dut):
    """Whatever names an output waits for it to be stored, right behind the instruction that fills it as well as later."""
    rng = random.Random(cocotb.RANDOM_SEED + 7)
    cover = Coverage("waits", dst=20, x=16, y=4, both=2, right_behind=16, later=8)
    driver = Driver(dut, rng)
    await driver.begin()
    for digits in (4, 16):
        await driver.reset()
        modulus = rng.getrandbits(256 * digits) | 1
        await driver.context(modulus, digits, 2)
        await driver.load(0, unit(rng, modulus))
        await driver.load_weights(0, [5])
        for slot in (0, 1):
            out, other = p.OUTPUT + slot, p.OUTPUT + 1 - slot
            for name, instruction in (
                ("dst", p.multiply(1, out, 0, 0)), ("x", p.multiply(1, p.TERM, out, 0)), ("y", p.multiply(1, p.TERM, 0, out)),
                ("dst", p.square(1, out, 0, 2)), ("x", p.square(1, p.TERM, out, 2)), ("dst", p.power(1, out, 0, 0, 3)),
                ("x", p.power(1, p.TERM, out, 0, 3)), ("dst", p.power(1, out, 0, 0, 3, 1)), ("dst", p.inverse(1, out, 0)),
                ("x", p.inverse(1, p.TERM, out)), ("dst", p.reduce(1, 0, slot)), ("dst", p.reduce(1, 0, slot, last=0)),
                ("both", p.multiply(1, other, out, 0)),
            ):
                await driver.idle()
                await driver.push(p.multiply(1, out, 0, p.SQUARED))
                right_behind = rng.random() < 0.6
                if not right_behind:
                    await driver.until(dut.full_o, bool)
                cover.hit("right_behind" if right_behind else "later")
                cover.hit("x" if name == "both" else name)
                cover.hit("both", name == "both")
                await driver.push(instruction)
                await driver.until(dut.full_o, bool)
                before = driver.counters()
                held = rng.randrange(400, 500)
                await driver.clocks(held)
                after = driver.counters()
                assert held - 4 <= after[12] - before[12] <= held and after[9] == before[9]
                assert not value(dut.idle_o)
                await driver.store(slot)
                await driver.store_all()
        await driver.check()
    cover.check(driver.total())


@cocotb.test()
async def errors(dut):
    """Every error by each of its ways, and a right result behind it."""
    rng = random.Random(cocotb.RANDOM_SEED + 4)
    cover = Coverage(
        "errors", even=3, not_reduced=8, just_reduced=4, constants=2, no_inverse=4, range=38, unknown=12, no_context=8, context_under_way=2,
        weights_beyond=1, behind=20, right=12,
    )
    driver = Driver(dut, rng)
    await driver.begin()
    ended = 0

    async def over(code, goal):
        nonlocal ended
        assert driver.model.error == code
        await failing(driver)
        await dead(driver)
        cover.hit(goal)
        ended += 1
        if ended % 5 == 0:
            await healthy(driver)
            cover.hit("right")
        await driver.reset()

    async def ready(width=2, digits=4, modulus=None):
        modulus = modulus or rng.getrandbits(256 * digits) | 1 << 256 * digits - 1 | 1
        await driver.context(modulus, digits, width)
        return modulus

    for digits, modulus in ((4, 1 << 1023), (8, rng.getrandbits(2000) << 1), (16, (1 << 4096) - 2)):
        words = p.split(modulus, digits) + [0] * (2 * digits + 1)
        await driver.context(modulus, digits, 2, words)
        await over(p.EVEN, "even")

    for digits in (4, 8, 16):
        modulus = rng.getrandbits(256 * digits) | 1 << 256 * digits - 1 | 1 << 300 | 1
        modulus &= ~((1 << 256 * digits) - 1 >> 1 & -1 << 256 * digits - 40)  # room above, in the highest digit too
        for given in (
            modulus, modulus + 1, modulus + (1 << 256), modulus + (1 << 256 * (digits - 1)), (1 << 256 * digits) - 1, modulus - 1,
            modulus - (1 << 300), modulus - (1 << 256 * digits - 1), 0,
        ):
            await ready(modulus=modulus, digits=digits)
            await driver.load(rng.randrange(16), unit(rng, modulus))
            await driver.load(3, given, claim=rng.random() < 0.5 and not value(dut.slots_busy_o) >> 3 & 1)
            if given >= modulus:
                await over(p.NOT_REDUCED, "not_reduced")
            else:
                await driver.clocks(3)
                await driver.check()
                assert not driver.model.error
                cover.hit("just_reduced")
                await driver.reset()
        for place in (1, 2):
            words = p.context_words(modulus, digits)
            words[place * digits:(place + 1) * digits] = p.split(modulus + rng.randrange(2), digits)
            await driver.context(modulus, digits, 2, words)
            await over(p.NOT_REDUCED, "constants")

    modulus = 3 * 5 * (rng.getrandbits(1000) | 1)
    for number in range(5):
        await ready(4, modulus=modulus)
        x = (0, 5, modulus - 3, 15 * rng.getrandbits(900) % modulus, 9)[number]
        await driver.load(1, x)
        await driver.load_weights(0, p.weight_words([-8], 4))
        await driver.push(p.clear(1, 1))
        if number % 2:
            await driver.push(p.inverse(1, p.TERM, 1))
        else:
            await driver.push(p.accumulate(1, 1, 1, 1, 0))
            await driver.push(p.align(1, 1))
            await driver.push(p.invert(1, 1))
        for _ in range(rng.randrange(18)):
            await driver.push(p.multiply(1, p.OUTPUT, 0, 1))
        await over(p.NO_INVERSE, "no_inverse")

    for code, goal in ((p.RANGE, "range"), (p.UNKNOWN, "unknown")):
        for width, instruction in BAD[code]:
            modulus = await ready(width)
            await driver.load_weights(0, p.weight_words([1] * 100 + [0, -3, 9, 1, -9, 1, 1, 1], 8) if width == 8 else [rng.getrandbits(256)])
            for slot in range(4):
                await driver.load(slot, unit(rng, modulus))
            for _ in range(rng.randrange(4)):
                await driver.push(p.multiply(1, 16, 0, 1))
                cover.hit("behind")
            await driver.push(instruction)
            for _ in range(rng.randrange(4)):
                await driver.push(p.multiply(1, 17, 0, 1))
                cover.hit("behind")
            await over(code, goal)

    for instruction in (
        p.clear(1), p.accumulate(1, 0, 0, 1, 0), p.align(1, 0), p.invert(1, 0), p.reduce(1, 0, 0), p.multiply(1, 16, 0, 1),
        p.inverse(1, 16, 0),
    ):
        await driver.push(p.free(1, 0, 0))
        await driver.push(p.nop())
        await driver.push(instruction)
        await over(p.NO_CONTEXT, "no_context")
    driver.model.modulus = None
    await driver.load(2, 5)
    await over(p.NO_CONTEXT, "no_context")
    # A context is one when its last word has come, an earlier one is none from the start of the next.
    for again in (0, 1):
        if again:
            await ready()
        dut.context_i.value = 1
        await driver.clocks()
        dut.context_i.value, dut.digits_i.value = 0, 0
        for i, word in enumerate(p.context_words(rng.getrandbits(1024) | 1, 4)[:-1]):
            await driver.word(p.BUS_CONTEXT, i, word)
        driver.model.modulus = None
        await driver.push(p.multiply(1, 16, 33, 33))
        await over(p.NO_CONTEXT, "context_under_way")
    await driver.word(p.BUS_WEIGHTS, 288, 1)
    driver.model.fail(p.RANGE)
    await over(p.RANGE, "weights_beyond")
    await healthy(driver, 8)
    cover.hit("right")
    cover.check(driver.total())


@cocotb.test()
async def stopped(dut):
    """The controller stops an element anywhere; what was to be fetched stays, and nothing of it is seen again."""
    rng = random.Random(cocotb.RANDOM_SEED + 5)
    cover = Coverage("stopped", stopped=40, idle=3, fetched=40, full_queue=5, waiting=3, right=8)
    driver = Driver(dut, rng)
    await driver.begin()
    for number in range(48):
        modulus = rng.getrandbits(1024) | 1
        await driver.context(modulus, 4, 4)
        for slot in range(4):
            await driver.load(slot, unit(rng, modulus))
        await driver.load_weights(0, p.weight_words([3, -6, 7, 1], 4))
        model = driver.model
        await driver.push(p.multiply(1, p.OUTPUT, 0, 1))
        first = model.memory[p.OUTPUT]
        await driver.until(dut.full_o, lambda full: full & 1)
        after = [
            p.clear(1), p.accumulate(1, 0, 0, 4, 0), p.align(1, 0), p.invert(1, 0), p.reduce(1, 0, 1), p.power(1, p.TERM, 1, 0, 8, 1),
            p.inverse(1, p.TERM + 1, 2), p.square(1, p.TERM + 2, 1, 3),
        ]
        if number % 4 == 1:
            after = [p.multiply(1, p.OUTPUT, 0, 0), *after]  # waits for ever
            cover.hit("waiting")
        if number % 4 == 2:
            after = [p.power(1, p.TERM, 1, 0, 250, 1), *after, *after]
            cover.hit("full_queue")
        if number % 12 == 3:
            after = []
            cover.hit("idle")
        for instruction in after:
            word = p.queued(instruction)
            dut.valid_i.value, dut.instruction_i.value = 1, word
            await settle()
            if not value(dut.ready_o):
                break  # and it stays offered
            await clock(dut)
            dut.valid_i.value = 0
        # Anywhere in the 5,000 clocks that it takes, often early.
        await clock(dut)
        await driver.clocks(rng.choice((rng.randrange(60), rng.randrange(600), rng.randrange(6000) if number < 20 else 3)))
        taken = driver.counters()[8]
        working = not value(dut.idle_o)
        dut.fail_i.value, dut.fail_code_i.value = 1, p.WATCHDOG
        dut.store_slot_i.value = 0
        words = []
        for i in range(4):
            dut.store_read_i.value, dut.store_index_i.value = 1, i
            await clock(dut)
            dut.fail_i.value = 0
            if i:
                dut.valid_i.value = 0
            words.append(value(dut.store_word_o))
            assert value(dut.failed_o) and value(dut.idle_o) and value(dut.full_o) == 3 and value(dut.ready_o)
        dut.store_read_i.value = 0
        assert p.join(words) == first
        cover.hit("fetched")
        cover.hit("stopped", working)
        # An instruction is under way, or the next one would be: it may have been taken in the clock in which it was stopped.
        model.error, model.error_at = p.WATCHDOG, value(dut.error_at_o)
        assert taken - 1 <= model.error_at <= taken
        await driver.clocks(rng.choice((0, 3, 100)))
        await dead(driver)
        if number % 5 == 0:
            await healthy(driver)
            cover.hit("right")
        await driver.reset()
    cover.check(driver.total())
