"""OnionChopper in Python: moduli, the descriptor and its registers, and what a contraction gives."""

MODULI = 16
# Where Barrett's reduction and the width of n are at their ends, and moduli of the schemes: primes of 17 to 62 bits.
EDGES = (2, 3, 4, 5, (1 << 32) - 5, 1 << 32, (1 << 63) - 25, 1 << 63, (1 << 63) + 1, (1 << 64) - 59, (1 << 64) - 1, 1 << 64)
PRIMES = (65537, 1004535809, 1073479681, 1152921504606830593, 4611686018427322369)


def barrett(n):
    return (1 << 128) // n


def pack(n):
    """modulus_t"""
    return n << 128 | barrett(n)


def modulus(rng):
    kind = rng.randrange(3)
    if kind == 0:
        return rng.choice(EDGES)
    if kind == 1:
        return rng.choice(PRIMES)
    return rng.randrange(2, 1 << rng.randrange(2, 65))


def below(rng, n):
    """A reduced operand, often the greatest or the least."""
    kind = rng.randrange(6)
    if kind == 0:
        return n - 1
    if kind == 1:
        return rng.choice((0, 1, n // 2, n - 1 - rng.randrange(min(n, 3))))
    return rng.randrange(n)


def stages(width, bits):
    return -(-width // bits)


def mul_latency(bits):
    """Clocks of the modular multiplication (thesis, section 4.2.1: five stages before the sum)."""
    if bits == 0:
        return 5
    half, sum_, q_n, less = (stages(w, bits) for w in (128, 128, 66, 66))
    rows = stages(64, bits)
    return (rows + half) + (rows + half) + (1 + sum_) + (rows + q_n) + 2 * less


def add_latency(bits):
    """Clocks of the sum, with eight conditional subtractions where it is pipelined."""
    return 1 if bits == 0 else 9 * stages(72, bits)
