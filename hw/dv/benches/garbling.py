"""Garbling in Python: what the cells are compared with. Labels are integers, bit 0 the colour, bytes little-endian.

The definition is crates/accel/src/garble/reference.rs; `label` is how many bits a label has."""

import hashlib

SHA1_INITIAL = (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0)


def sha1_block(message):
    """The padded block of a message of at most 55 bytes (FIPS 180-4, section 5.1.1)."""
    assert len(message) <= 55
    return message + b"\x80" + bytes(55 - len(message)) + (8 * len(message)).to_bytes(8, "big")


def sha1_compress(block):
    """SHA-1's compression of any 64 bytes, from the initial value (FIPS 180-4, section 6.1.2)."""
    def left(x, n):
        return (x << n | x >> 32 - n) & 0xFFFFFFFF

    w = [int.from_bytes(block[4 * i:4 * i + 4], "big") for i in range(16)]
    for t in range(16, 80):
        w.append(left(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1))
    a, b, c, d, e = SHA1_INITIAL
    for t in range(80):
        f, k = (
            (b & c | ~b & d, 0x5A827999), (b ^ c ^ d, 0x6ED9EBA1), (b & c | b & d | c & d, 0x8F1BBCDC), (b ^ c ^ d, 0xCA62C1D6)
        )[t // 20]
        a, b, c, d, e = (left(a, 5) + f + e + k + w[t]) & 0xFFFFFFFF, a, left(b, 30), c, d
    return b"".join((x + y & 0xFFFFFFFF).to_bytes(4, "big") for x, y in zip(SHA1_INITIAL, (a, b, c, d, e)))


def sifo_hash(a, b, gate, label):
    """The first bits of SHA-1 over both labels and the gate's number."""
    size = label // 8
    digest = hashlib.sha1(a.to_bytes(size, "little") + b.to_bytes(size, "little") + gate.to_bytes(8, "little")).digest()
    return int.from_bytes(digest[:size], "little")


def garble_sifo(offset, a, b, gate, label):
    """An AND gate of SIFO: the output's label of 0, and the rows of the colours 01, 10, 11."""
    def of(colour_a, colour_b):
        value_a, value_b = colour_a ^ a & 1, colour_b ^ b & 1
        return sifo_hash(a ^ value_a * offset, b ^ value_b * offset, gate, label) ^ (value_a & value_b) * offset

    out = of(0, 0)
    return out, [of(*colours) ^ out for colours in ((0, 1), (1, 0), (1, 1))]


def evaluate_sifo(rows, a, b, gate, label):
    """The output's label, from the inputs' labels that the evaluator holds."""
    row = 2 * (a & 1) + (b & 1)
    return sifo_hash(a, b, gate, label) ^ (rows[row - 1] if row else 0)


def xtime(x):
    """Twice a byte in AES's field (FIPS 197, section 4.2.1)."""
    return (x << 1) ^ (0x11B if x & 0x80 else 0)


def aes_sbox():
    """The S-box by its definition: the inverse, found by trying, then the affine map (FIPS 197, section 5.1.1)."""
    power, powers = 1, []
    for _ in range(255):
        powers.append(power)
        power ^= xtime(power)  # times 3, which generates all
    inverse = {powers[i]: powers[-i % 255] for i in range(255)} | {0: 0}
    ring = [inverse[x] * 0x0101 for x in range(256)]
    return [(i ^ i >> 4 ^ i >> 5 ^ i >> 6 ^ i >> 7 ^ 0x63) & 0xFF for i in ring]


AES_SBOX = aes_sbox()


def aes_expand(key):
    """The 11 round keys of 16 bytes (FIPS 197, section 5.2)."""
    keys, constant = [list(key)], 1
    for _ in range(10):
        before = keys[-1]
        column = [AES_SBOX[before[12 + (i + 1) % 4]] for i in range(4)]
        column[0] ^= constant
        after = []
        for c in range(4):
            column = [x ^ y for x, y in zip(column, before[4 * c:4 * c + 4])]
            after += column
        keys.append(after)
        constant = xtime(constant)
    return keys


def aes_round(state, key, last):
    """SubBytes, ShiftRows, MixColumns unless it is the last, AddRoundKey; 16 bytes, column by column."""
    state = [AES_SBOX[state[(i + 4 * (i % 4)) % 16]] for i in range(16)]
    if not last:
        mixed = []
        for c in range(0, 16, 4):
            a = state[c:c + 4]
            total = a[0] ^ a[1] ^ a[2] ^ a[3]
            mixed += [a[i] ^ total ^ xtime(a[i] ^ a[(i + 1) % 4]) for i in range(4)]
        state = mixed
    return [x ^ y for x, y in zip(state, key)]


def aes_encrypt(keys, block):
    """A block under expanded keys, both as integers whose bits 7:0 are byte 0."""
    state = [x ^ y for x, y in zip(block.to_bytes(16, "little"), keys[0])]
    for r in range(1, 11):
        state = aes_round(state, keys[r], r == 10)
    return int.from_bytes(bytes(state), "little")


def to_planes(blocks):
    """Blocks of 16 bytes as hg_pkg's bit planes: bit 4 * row + column of plane j is bit j of byte row + 4 * column."""
    planes = 0
    for k, block in enumerate(blocks):
        for n, byte in enumerate(block.to_bytes(16, "little")):
            for j in range(8):
                planes |= (byte >> j & 1) << (j * 16 * len(blocks) + 16 * k + 4 * (n % 4) + n // 4)
    return planes


def from_planes(planes, count):
    blocks = []
    for k in range(count):
        block = 0
        for n in range(16):
            for j in range(8):
                block |= (planes >> (j * 16 * count + 16 * k + 4 * (n % 4) + n // 4) & 1) << (8 * n + j)
        blocks.append(block)
    return blocks


def round_keys(keys):
    """Expanded keys as hg_aes_keys gives them: in planes, the first in the low bits."""
    return sum(to_planes([int.from_bytes(bytes(key), "little")]) << (128 * r) for r, key in enumerate(keys))


def tmmo(keys, x, tweak):
    """pi(pi(x) ^ t) ^ pi(x)."""
    once = aes_encrypt(keys, x)
    return aes_encrypt(keys, once ^ tweak) ^ once


def garble_halves(keys, offset, a, b, gate):
    """The output's label of 0 and the table, garbler's half in the low 128 bits; from labels of 0."""
    h = [tmmo(keys, x ^ r, 2 * gate + i) for i, x in enumerate((a, b)) for r in (0, offset)]
    garblers = h[0] ^ h[1] ^ (offset if b & 1 else 0)
    evaluators = h[2] ^ h[3] ^ a
    out = h[0] ^ (garblers if a & 1 else 0) ^ h[2] ^ (evaluators ^ a if b & 1 else 0)
    return out, garblers | evaluators << 128


def evaluate_halves(keys, a, b, gate, table):
    """The output's active label, from active labels."""
    garblers, evaluators = table & ((1 << 128) - 1), table >> 128
    return (
        tmmo(keys, a, 2 * gate) ^ (garblers if a & 1 else 0) ^ tmmo(keys, b, 2 * gate + 1) ^ (evaluators ^ a if b & 1 else 0)
    )
