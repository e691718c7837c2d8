"""ph_montgomery against Python, clock by clock, with a memory as the element's: what is written in a clock can be read from
the next one, and a word comes a clock after its index.

Nothing that the unit does may hang on a value, so every output but the words is predicted from the starts alone."""

import random

import cocotb
from common import Coverage, begin, clock, settle, value
from phepu_numbers import DIGIT, MASK, MULTIPLY_CLOCKS, SIZES, Modulus, below, join, random_modulus, split

SLOTS = 8
PAPER_CLOCKS = 348  # 16 elements at 500 MHz that make 23 M products a second
N_PRIME = 16


class Unit:
    """The unit with a memory of residues."""

    def __init__(self, dut, rng, cover):
        self.dut, self.rng, self.cover = dut, rng, cover
        self.memory = [[0] * 16 for _ in range(SLOTS)]
        self.now = 0
        self.word = None  # what is read comes in this clock
        self.jobs = []  # (start, x, y, destination, square), the last two at most
        self.free_at = 0  # when the unit is ready
        self.digits = 4
        self.modulus = None

    async def begin(self):
        await begin(
            self.dut, digits_i=4, load_i=0, load_index_i=0, load_word_i=0, start_i=0, square_i=0, read_word_i=0,
        )

    def expected_read(self):
        """(of x, index) of the read port in this clock, or None."""
        d = self.digits
        if not self.jobs:
            return None
        start, _, _, _, square = self.jobs[-1]
        at = self.now - start
        if at in (0, 1):
            return not square, at
        if at <= d + 1:
            return False, at - 2
        period = 11 if d == 16 else 9
        row, slot = divmod(at - 3, period)
        if slot == period - 2 and 1 <= row < d - 1:
            return not square, row + 1
        return None

    def expected_out(self):
        for job in self.jobs:
            index = self.now - job[0] - MULTIPLY_CLOCKS[self.digits] + 1
            if 0 <= index < self.digits:
                return job, index
        return None

    async def step(self, start=None, load=None):
        """A clock: `start` is (x, y, destination, square), `load` (index, word)."""
        dut, rng = self.dut, self.rng
        busy = any(job[0] < self.now < job[0] + MULTIPLY_CLOCKS[self.digits] - 1 + self.digits for job in self.jobs)
        if start:
            assert self.now >= self.free_at
            self.jobs = [*self.jobs[-1:], (self.now, *start)]
            self.free_at = self.now + MULTIPLY_CLOCKS[self.digits] - 1
        dut.start_i.value = start is not None
        dut.square_i.value = start[3] if start else rng.randrange(2)
        dut.load_i.value = load is not None
        dut.load_index_i.value, dut.load_word_i.value = load or (rng.randrange(17), rng.getrandbits(DIGIT))
        dut.read_word_i.value = rng.getrandbits(DIGIT) if self.word is None else self.word
        await settle()
        assert value(dut.ready_o) == (self.now >= self.free_at or start is not None), "ready"
        assert value(dut.busy_o) == busy, "busy"

        read = self.expected_read()
        assert value(dut.read_valid_o) == (read is not None), "read"
        self.word = None
        if read:
            assert (value(dut.read_x_o), value(dut.read_index_o)) == read, "read"
            self.word = self.memory[self.jobs[-1][1 if value(dut.read_x_o) else 2]][value(dut.read_index_o)]
        out = self.expected_out()
        assert value(dut.out_valid_o) == (out is not None), "out"
        if out:
            (_, _, _, destination, _), index = out
            assert value(dut.out_index_o) == index
            self.memory[destination][index] = value(dut.out_word_o)
        self.now += 1
        await clock(dut)

    async def idle(self):
        while self.jobs and self.now < self.free_at + self.digits:
            await self.step()

    async def load(self, modulus):
        """A modulus, its words in any order."""
        await self.idle()
        self.jobs = []
        self.modulus, self.digits = modulus, modulus.digits
        self.dut.digits_i.value = modulus.digits
        words = [*enumerate(modulus.words()), (N_PRIME, modulus.n_prime)]
        self.rng.shuffle(words)
        for word in words:
            while self.rng.random() < 0.1:
                await self.step()
            await self.step(load=word)

    def put(self, slot, x):
        self.memory[slot] = split(x, self.digits) + [self.rng.getrandbits(DIGIT) for _ in range(16 - self.digits)]

    def get(self, slot):
        return join(self.memory[slot][: self.digits])


def note(cover, modulus, x, y):
    """What is special about a multiplication."""
    m, r, d = modulus.m, modulus.r, modulus.digits
    q = -x * y * pow(m, -1, r) % r
    v = (x * y + q * m) // r
    met = {
        "subtracts": v >= m,
        "stays": v < m,
        "overflows": v >= r,
        "equals_modulus": v == m,
        "equal_digits": v >= m and any(a == b for a, b in zip(split(v % r, d), split(m, d))),
        "q_zero": 0 in split(q, d),
        "q_ones": MASK in split(q, d),
        f"digits_{d}": True,
        "zero": 0 in (x, y),
        "one": 1 in (x, y),
        "greatest": m - 1 in (x, y),
    }
    for name in met.keys() & cover.goals.keys():
        cover.hit(name, met[name])


GOALS = dict(
    subtracts=10, stays=20, overflows=2, q_zero=3, zero=5, one=5, greatest=5, digits_4=20, digits_8=20, digits_16=20, squares=20,
)


@cocotb.test()
async def chains(dut):
    """Multiplications that need one another's results, as fast as they may follow; and pauses, and ones that need nothing."""
    rng = random.Random(cocotb.RANDOM_SEED)
    cover = Coverage(
        "chains", **GOALS, dependent_x=8, dependent_y=5, dependent_square=5, independent_at_once=5, pauses=10, in_place=10,
    )
    unit = Unit(dut, rng, cover)
    await unit.begin()
    for size in SIZES:
        assert MULTIPLY_CLOCKS[size] <= PAPER_CLOCKS
    for turn in range(45):
        modulus = random_modulus(rng, SIZES[turn % 3])
        await unit.load(modulus)
        values = [below(rng, modulus.m) for _ in range(SLOTS)]
        for slot, x in enumerate(values):
            unit.put(slot, x)
        previous = None
        for _ in range(rng.randrange(4, 9)):
            square = rng.random() < 0.4
            x, y, destination = (rng.randrange(SLOTS) for _ in range(3))
            if previous is not None and rng.random() < 0.5:
                x, y = rng.choice(((previous, y), (x, previous), (previous, previous)))
            x = y if square else x
            # From the clock of the result's first word, or the next one if that is needed.
            wait = rng.choice((0, 0, 0, rng.randrange(30)))
            free = max(unit.free_at, unit.now)
            if previous in (x, y) and unit.jobs and unit.now <= unit.free_at:
                free = unit.free_at + 1
            while unit.now < free + wait:
                await unit.step()
            if not wait and unit.jobs:
                cover.hit("dependent_x", x == previous != y)
                cover.hit("dependent_y", y == previous != x)
                cover.hit("dependent_square", square and x == previous)
                cover.hit("independent_at_once", previous not in (x, y))
            cover.hit("pauses", wait > 0)
            cover.hit("squares", square)
            cover.hit("in_place", destination in (x, y))
            note(cover, modulus, values[x], values[y])
            await unit.step(start=(x, y, destination, square))
            values[destination] = modulus.mont(values[x], values[y])
            previous = destination
        await unit.idle()
        for slot in range(SLOTS):
            assert unit.get(slot) == values[slot], f"slot {slot} of {modulus.digits} digits, m = {modulus.m:#x}"
    cover.check(unit.now)


@cocotb.test()
async def edges(dut):
    """Extreme moduli and operands, one after the other."""
    rng = random.Random(cocotb.RANDOM_SEED + 1)
    cover = Coverage(
        "edges", **(GOALS | dict(overflows=5, equals_modulus=3, q_ones=5, equal_digits=2, digits_16=100)), modulus_of_ones=20, modulus_3=10,
        n_prime_1=10, n_prime_ones=10, short_modulus=20,
    )
    unit = Unit(dut, rng, cover)
    await unit.begin()
    for d in SIZES:
        bits = DIGIT * d
        ones = (1 << bits) - 1
        factor = rng.getrandbits(bits // 2) | 1 << bits // 2 - 1 | 1
        moduli = [
            ones, ones - 2, 3, (1 << DIGIT) - 1, (1 << DIGIT) + 1, (1 << bits - 1) + 1, ones ^ (1 << bits - 1),
            rng.getrandbits(bits) >> DIGIT << DIGIT | MASK,  # n' = 1
            rng.getrandbits(bits) >> DIGIT << DIGIT | 1,  # n' = 2^256 - 1
            rng.getrandbits(bits - 3 * DIGIT + 5) | 1,
            factor * (rng.getrandbits(bits // 2) | 1 << bits // 2 - 1 | 1),
        ]
        for m in moduli:
            modulus = Modulus(m, d)
            await unit.load(modulus)
            first = [0, 1, m - 1, m - 2, modulus.one, m >> 1, factor % m, MASK % m, (MASK << DIGIT) % m, rng.randrange(m)]
            pairs = [(m - 1, m - 1), (0, m - 1), (1, 1), (m - 1, 1), (0, 0)]
            pairs += [(rng.choice(first), rng.choice(first)) for _ in range(5)]
            pairs += [(factor % m, m // factor % m), (m - 1, rng.randrange(m)), (rng.randrange(m), modulus.squared)]
            for x, y in pairs:
                # A slot each for x and y, the results in turn in two others.
                while unit.now < unit.free_at:
                    await unit.step()
                turn = unit.now % 2
                unit.put(2 * turn, x)
                unit.put(2 * turn + 1, y)
                square = x == y and rng.random() < 0.7
                cover.hit("squares", square)
                cover.hit("modulus_of_ones", m == ones)
                cover.hit("modulus_3", m == 3)
                cover.hit("n_prime_1", modulus.n_prime == 1)
                cover.hit("n_prime_ones", modulus.n_prime == MASK)
                cover.hit("short_modulus", m < 1 << DIGIT)
                note(cover, modulus, x, y)
                await unit.step(start=(2 * turn + square, 2 * turn + 1, 4 + turn, square))
                await unit.idle()
                assert unit.get(4 + turn) == modulus.mont(x, y), f"{x:#x} * {y:#x} mod {m:#x}, {d} digits"
    cover.check(unit.now)


@cocotb.test()
async def power(dut):
    """An exponentiation: every step needs the one before it, and starts in the first clock that gives its result."""
    rng = random.Random(cocotb.RANDOM_SEED + 2)
    cover = Coverage("power", squares=60, products=20, clocks_4=1, clocks_8=1, clocks_16=1)
    unit = Unit(dut, rng, cover)
    await unit.begin()
    for d in SIZES:
        modulus = random_modulus(rng, d)
        while modulus.m < 1 << DIGIT * d - 1:
            modulus = random_modulus(rng, d)
        await unit.load(modulus)
        x, exponent = rng.randrange(modulus.m), rng.getrandbits(30) | 1 << 29
        unit.put(0, x)
        unit.put(1, modulus.squared)
        steps = [(0, 1, 2, False), (0, 1, 3, False)]  # into Montgomery form, twice
        for bit in bin(exponent)[3:]:
            steps += [(3, 3, 3, True)] + [(2, 3, 3, False)] * int(bit)
        began = unit.now
        for step in steps:
            while unit.jobs and unit.now <= unit.free_at:
                await unit.step()
            cover.hit("squares" if step[3] else "products")
            await unit.step(start=step)
        assert unit.now - began == (len(steps) - 1) * MULTIPLY_CLOCKS[d] + 1
        cover.hit(f"clocks_{d}")
        await unit.idle()
        assert modulus.leave(unit.get(3)) == pow(x, exponent, modulus.m)
    cover.check(unit.now)
