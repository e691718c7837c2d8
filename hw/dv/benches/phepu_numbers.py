"""Numbers as PH-EPU's units see them: digits of 256 bits, Montgomery form, Kaliski's almost inverse, and how long a
Montgomery multiplication takes by the package."""

import re
from pathlib import Path

DIGIT = 256
MASK = (1 << DIGIT) - 1
SIZES = (4, 8, 16)  # digits of a modulus

PACKAGE = (Path(__file__).resolve().parents[2] / "rtl/phepu/ph_pkg.sv").read_text()
MULTIPLY_CLOCKS = {d: int(re.search(rf"MULTIPLY_CLOCKS_{d}\s*=\s*(\d+)", PACKAGE)[1]) for d in SIZES}


def split(x, digits):
    """Digits, least significant first."""
    assert 0 <= x < 1 << DIGIT * digits
    return [x >> DIGIT * i & MASK for i in range(digits)]


def join(words):
    return sum(word << DIGIT * i for i, word in enumerate(words))


class Modulus:
    """An odd number of at most 256 `digits` bits, and what belongs to it."""

    def __init__(self, m, digits):
        assert digits in SIZES and m % 2 == 1 and 3 <= m < 1 << DIGIT * digits
        self.m, self.digits = m, digits
        self.r = 1 << DIGIT * digits
        self.n_prime = -pow(m, -1, 1 << DIGIT) % (1 << DIGIT)
        self.one = self.r % m  # 1 in Montgomery form
        self.squared = self.r * self.r % m  # takes a number into it
        self.inverse_r = pow(self.r, -1, m)

    def words(self):
        return split(self.m, self.digits)

    def context(self):
        """The words of a CONTEXT instruction: m, R^2, R and n'."""
        return [*self.words(), *split(self.squared, self.digits), *split(self.one, self.digits), self.n_prime]

    def mont(self, x, y):
        """x y / R mod m, below m."""
        return x * y * self.inverse_r % self.m

    def enter(self, x):
        return x * self.r % self.m

    def leave(self, x):
        return x * self.inverse_r % self.m

    def invert(self, x):
        """Montgomery form of the inverse of what x is the Montgomery form of."""
        return pow(x, -1, self.m) * self.r % self.m * self.r % self.m


def almost_inverse(a, m, least=0):
    """Kaliski 1995: (a^-1 2^k mod m, k), with k at least `least`; None where a and m have a common factor."""
    u, v, r, s, k = m, a, 0, 1, 0
    while v:
        if u % 2 == 0:
            u, s = u >> 1, s << 1
        elif v % 2 == 0:
            v, r = v >> 1, r << 1
        elif u > v:
            u, r, s = (u - v) >> 1, r + s, s << 1
        else:
            v, s, r = (v - u) >> 1, s + r, r << 1
        k += 1
    if u != 1:
        return None
    r = m - (r - m if r >= m else r)
    while k < least:
        r, k = 2 * r % m, k + 1
    return r, k


def random_modulus(rng, digits):
    """Any odd modulus for this many digits, often an extreme one."""
    bits = DIGIT * digits
    kind = rng.randrange(10)
    if kind == 0:
        m = (1 << bits) - 1 - 2 * rng.choice((0, 0, rng.randrange(1000)))
    elif kind == 1:
        m = rng.choice((3, 5, 7, (1 << 64) + 13, (1 << DIGIT) - 1, (1 << DIGIT) + 1, (1 << bits - 1) + 1))
    elif kind == 2:
        m = rng.getrandbits(rng.randrange(2, bits + 1)) | 3
    elif kind == 3:
        # n' = 1, and n' = 2^256 - 1.
        m = (rng.getrandbits(bits) >> DIGIT << DIGIT) | rng.choice((MASK, 1))
    else:
        m = rng.getrandbits(bits) | 1 << bits - 1 | 1
    return Modulus(max(m, 3), digits)


def below(rng, m):
    """A number below m, often at an end."""
    kind = rng.randrange(10)
    if kind < 3:
        return rng.choice((0, 1, m - 1, m - 2, m >> 1)) % m
    if kind == 3:
        return rng.getrandbits(DIGIT) % m
    return rng.randrange(m)
