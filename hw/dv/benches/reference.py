"""OnionChopper in Python: moduli, the descriptor and its registers, and what a contraction gives."""

import itertools
import math

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


A, B, C = 0, 1, 2
ROW, BEAT = 256, 128
DRAM_ADDRESS = 28

# config_t, from its highest bit down: name, bits of one, how many there are.
LAYOUT = (
    ("resident", 1, ()), ("tiles", 32, ()), ("tile_beats", DRAM_ADDRESS, ()), ("b_base", DRAM_ADDRESS, ()),
    ("dram_bounds", 16, (6,)), ("dram_strides", DRAM_ADDRESS, (6, 3)),
    ("inner_log2", 4, ()), ("groups", 5, ()), ("reduce", 1, ()), ("inner_stride", DRAM_ADDRESS, (3,)),
    ("group_stride", DRAM_ADDRESS, (3,)),
    ("sram_rows", 8, (3,)), ("one_beat", 1, (3,)), ("sram_bounds", 16, (4,)), ("sram_strides", 8, (4, 3)),
    ("rf_rows", 4, (3,)), ("c_banks", 4, ()), ("rf_bounds", 16, (3,)), ("rf_strides", 8, (3, 3)),
    ("moduli", 5, ()), ("mac_period", 64, ()), ("drain_period", 64, ()), ("watchdog", 32, ()),
)
# error_e
OK, BAD_SHAPE, BAD_MODULUS, DRAM_OVERRUN, SRAM_OVERRUN, RF_OVERRUN, UNREDUCED, STUCK = range(8)
# tile_t, from its highest bit down.
TILE = (
    ("a_row", 8), ("b_row", 8), ("c_row", 8), ("c_half", 1), ("c_new", 1), ("c_zero", 1), ("c_ends", 1), ("c_final", 1),
    ("c_beat", DRAM_ADDRESS), ("number", 32),
)


def pack_tile(tile):
    packed = 0
    for name, width in TILE:
        packed = packed << width | tile[name]
    return packed


def unpack_tile(packed):
    tile = {}
    for name, width in reversed(TILE):
        tile[name] = packed & ((1 << width) - 1)
        packed >>= width
    return tile


def visits(bounds, strides, operands, width):
    """Every step of a loop nest, outermost loop first: addresses, and for each operand whether this is the first and the
    final visit of where it is, and the first and the last of a run of visits of it."""
    indices = list(itertools.product(*(range(bound) for bound in bounds)))
    marks = []
    for x in range(operands):
        # What the operand's address depends on, step by step.
        moving = [l for l, bound in enumerate(bounds) if strides[l][x] and bound > 1]
        where = [tuple(index[l] for l in moving) for index in indices]
        final = {at: i for i, at in enumerate(where)}
        seen, own = set(), []
        for i, at in enumerate(where):
            own.append((
                sum(index * strides[l][x] for l, index in enumerate(indices[i])) % (1 << width),
                at not in seen, final[at] == i,
                i == 0 or where[i - 1] != at, i + 1 == len(where) or where[i + 1] != at,
            ))
            seen.add(at)
        marks.append(own)
    return [tuple([marks[x][i][k] for x in range(operands)] for k in range(5)) for i in range(len(indices))]


class Descriptor:
    """What the host asks for. Lists stand as in config_t: loops outermost first, operands A, B, C."""

    def __init__(self, **given):
        for name, _, shape in LAYOUT:
            setattr(self, name, given.pop(name) if name in given else _zeros(shape))
        assert not given, given

    def pack(self):
        packed = 0
        for name, width, shape in LAYOUT:
            for one in _flat(getattr(self, name), shape):
                assert 0 <= one < 1 << width, (name, one)
                packed = packed << width | one
        return packed

    def registers(self):
        """The descriptor as the host writes it: address and 64-bit word."""
        yield 0x01, self.resident
        yield 0x02, self.tiles
        yield 0x03, self.tile_beats
        yield 0x04, self.b_base
        yield 0x05, self.reduce << 9 | self.groups << 4 | self.inner_log2
        for x in range(3):
            yield 0x06 + x, self.inner_stride[x]
            yield 0x09 + x, self.group_stride[x]
        yield 0x0C, sum(rows << (8 * x) for x, rows in enumerate(self.sram_rows))
        yield 0x0D, sum(one << x for x, one in enumerate(self.one_beat))
        yield 0x0E, self.c_banks << 12 | sum(rows << (4 * x) for x, rows in enumerate(self.rf_rows))
        yield 0x0F, self.moduli
        yield 0x10, self.mac_period
        yield 0x11, self.drain_period
        yield 0x12, self.watchdog
        for base, bounds, strides in (
            (0x20, self.dram_bounds, self.dram_strides),
            (0x40, self.sram_bounds, self.sram_strides),
            (0x60, self.rf_bounds, self.rf_strides),
        ):
            for l, bound in enumerate(bounds):
                yield base + 4 * l, bound
                for x in range(3):
                    yield base + 4 * l + 1 + x, strides[l][x]

    def beats(self, x):
        """Of an operand's tile in one lane's SRAM."""
        return self.sram_rows[x] * (1 if self.one_beat[x] else 2)

    def lane(self, i):
        return i >> self.inner_log2, i & ((1 << self.inner_log2) - 1)

    def offset(self, x, group, inner):
        """Where a lane's tile lies behind the address of the step, in beats."""
        shared = x == C and self.reduce
        return group * self.group_stride[x] + (0 if shared else inner * self.inner_stride[x])

    def lanes(self):
        return self.groups << self.inner_log2

    def macs(self):
        """Of a lane, in one of the SSD's tiles."""
        return math.prod(self.dram_bounds) * math.prod(self.sram_bounds) * math.prod(self.rf_bounds)


def _zeros(shape):
    return 0 if not shape else [_zeros(shape[1:]) for _ in range(shape[0])]


def _flat(value, shape):
    if not shape:
        yield value
    else:
        for one in reversed(value):  # the highest index stands highest
            yield from _flat(one, shape[1:])


def register_writes(descriptor, moduli):
    """Everything the host writes before it starts a computation."""
    yield from descriptor.registers()
    for i, n in enumerate(moduli):
        m = barrett(n) % (1 << 128) if n else 0
        for part, word in enumerate((n & ((1 << 64) - 1), n >> 64, m & ((1 << 64) - 1), m >> 64)):
            yield 0x100 + 4 * i + part, word


def loader_steps(descriptor):
    """What the tile loader does, step by step: which operands it loads into which half, and the tile's record."""
    half, number = [0, 0, 0], 0
    c_begin = 2 * (descriptor.sram_rows[A] + descriptor.sram_rows[B])
    begins = (0, 2 * descriptor.sram_rows[A], c_begin)
    for ssd_tile in range(descriptor.tiles):
        steps = visits(descriptor.dram_bounds, descriptor.dram_strides, 3, DRAM_ADDRESS)
        for i, (address, first, final, run_first, run_last) in enumerate(steps):
            loads = []
            for x in range(3):
                if run_first[x]:
                    half[x] ^= 1
                    if x != C or not first[C]:
                        loads.append(x)
            rows = [(begins[x] + half[x] * descriptor.sram_rows[x]) % 256 for x in range(3)]
            yield ssd_tile, address, loads, list(half), run_first, {
                "a_row": rows[A], "b_row": rows[B], "c_row": rows[C], "c_half": half[C], "c_new": int(run_first[C]),
                "c_zero": int(first[C]), "c_ends": int(run_last[C]), "c_final": int(final[C]), "c_beat": address[C],
                "number": number,
            }
            number += 1


def contract(descriptor, data, moduli, word=64):
    """What the chip gives for `data`, each of the SSD's tiles a list of words of A and B: the words that come out, and
    how many sums were written back to DRAM, in beats.

    Everything in the order of the loops, one multiply-accumulate after the other: no banks, no pipeline.
    """
    words = BEAT // word  # in a beat
    row_words = ROW // word
    lanes = descriptor.lanes()
    sharers = 1 << descriptor.inner_log2 if descriptor.reduce else 1
    sram = visits(descriptor.sram_bounds, descriptor.sram_strides, 3, 8)
    rf = visits(descriptor.rf_bounds, descriptor.rf_strides, 3, 8)
    out, spilled, issued = [], 0, 0
    drained_words, drain_index = 0, 0

    def at(x, row, w):
        """A word of a tile, from its beginning, in words of DRAM."""
        row += w // row_words
        w %= row_words
        if descriptor.one_beat[x]:
            assert w < words, "a word that was never loaded"
            return row * words + w
        return row * row_words + w

    memory, sums = {}, []
    for ssd_tile, address, _, _, _, tile in loader_steps(descriptor):
        if tile["number"] % math.prod(descriptor.dram_bounds) == 0:
            memory = {}  # of C, by word: nothing was summed yet
        size = descriptor.beats(C) * words
        if tile["c_new"]:
            sums = []
            for lane in range(lanes):
                group, inner = descriptor.lane(lane)
                base = (address[C] + descriptor.offset(C, group, inner)) * words
                # Lanes that share a C begin with it in the first of them.
                mine = not descriptor.reduce or inner == 0
                sums.append([memory.get(base + i, 0) if mine else 0 for i in range(size)])
        for s in sram:
            for r in rf:
                n = moduli[issued // descriptor.mac_period % descriptor.moduli]
                issued += 1
                for lane in range(lanes):
                    group, inner = descriptor.lane(lane)
                    a = data[ssd_tile][(address[A] + descriptor.offset(A, group, inner)) * words + at(A, s[0][A], r[0][A])]
                    b = data[ssd_tile][
                        (descriptor.b_base + address[B] + descriptor.offset(B, group, inner)) * words + at(B, s[0][B], r[0][B])
                    ]
                    c = at(C, s[0][C], r[0][C])
                    sums[lane][c] = (sums[lane][c] + a * b) % n
        if tile["c_ends"]:
            for group in range(descriptor.groups):
                for inner in range((1 << descriptor.inner_log2) // sharers):
                    lane = (group << descriptor.inner_log2) + inner
                    base = (address[C] + descriptor.offset(C, group, inner)) * words
                    per_row = descriptor.beats(C) // descriptor.sram_rows[C] * words
                    for i in range(size):
                        n = moduli[drain_index]
                        total = sum(sums[lane + s][i] for s in range(sharers))
                        memory[base + i] = total % n if sharers > 1 else total
                        if tile["c_final"]:
                            out.append(memory[base + i])
                        if (i + 1) % per_row == 0:
                            drained_words += per_row
                            if drained_words >= descriptor.drain_period:
                                drained_words, drain_index = 0, (drain_index + 1) % descriptor.moduli
            if not tile["c_final"]:
                spilled += descriptor.beats(C) * descriptor.groups * ((1 << descriptor.inner_log2) // sharers)
    return out, spilled


def _strides(rng, bounds, unit):
    """A stride a loop: none, or so that every place is its own. How many units there are."""
    loops = [l for l in range(len(bounds)) if rng.random() < 0.6]
    rng.shuffle(loops)
    strides, size = [0] * len(bounds), 1
    for l in loops:
        strides[l] = size * unit
        size *= bounds[l]
    return strides, size


def shape(rng, lanes, word=64, sram_rows=128, rf_rows=16, half_beats=1 << 18, c_beats=1 << 17, most=1200, moduli=1,
          watchdog=2000):
    """A descriptor of any kind that fits, with at most `most` multiply-accumulates a lane."""
    row_words = ROW // word
    while True:
        d = Descriptor(watchdog=watchdog, moduli=moduli)
        d.inner_log2 = rng.choice([i for i in range(5) if 1 << i <= lanes])
        d.groups = lanes >> d.inner_log2
        if d.groups << d.inner_log2 != lanes or d.groups > 31:
            continue
        d.reduce = int(d.inner_log2 > 0 and rng.random() < 0.5)
        d.one_beat = [int(rng.random() < 0.3) for _ in range(3)]
        d.tiles = rng.choice((1, 1, 2, 3))
        d.rf_bounds = [rng.choice((1, 2, 3, 4)) for _ in range(3)]
        d.sram_bounds = [rng.choice((1, 1, 2, 3)) for _ in range(4)]
        d.dram_bounds = [rng.choice((1, 1, 1, 2, 3)) for _ in range(6)]
        if d.macs() * d.tiles > most:
            continue
        d.c_banks = rng.randrange(1, 5)
        regions = [0, 0, 0]
        for x in range(3):
            rf, size = _strides(rng, d.rf_bounds, 1)
            # A row that holds one beat has words in its lower half alone.
            unit = row_words if d.one_beat[x] and size > row_words // 2 else 1
            d.rf_rows[x] = -(-size * unit // row_words) if unit == 1 else size
            sram, tiles = _strides(rng, d.sram_bounds, d.rf_rows[x])
            d.sram_rows[x] = tiles * d.rf_rows[x]
            beats = d.sram_rows[x] if d.one_beat[x] else 2 * d.sram_rows[x]
            dram, steps = _strides(rng, d.dram_bounds, beats)
            for l in range(3):
                d.rf_strides[l][x] = rf[l] * unit
            for l in range(4):
                d.sram_strides[l][x] = sram[l]
            for l in range(6):
                d.dram_strides[l][x] = dram[l]
            region = beats * steps
            if d.inner_log2 and not (x == C and d.reduce) and (x == C or rng.random() < 0.5):
                d.inner_stride[x] = region
                region <<= d.inner_log2
            if d.groups > 1 and (x == C or rng.random() < 0.5):
                d.group_stride[x] = region
                region *= d.groups
            regions[x] = region
        d.b_base = regions[A]
        d.tile_beats = regions[A] + regions[B]
        if max(d.rf_rows) > 15 or 2 * d.rf_rows[A] + 2 * d.rf_rows[B] + d.c_banks * d.rf_rows[C] > rf_rows:
            continue
        if max(d.sram_rows) > 255 or 2 * sum(d.sram_rows) > sram_rows or d.tile_beats > half_beats or regions[C] > c_beats:
            continue
        # One of the SSD's tiles is summed to modulo one n: the moduli take turns tile by tile.
        d.mac_period = d.macs()
        steps = [step for step in loader_steps(d)]
        drains = sum(tile["c_ends"] for *_, tile in steps) // d.tiles
        positions = d.groups << (0 if d.reduce else d.inner_log2)
        d.drain_period = drains * d.beats(C) * (BEAT // word) * positions
        return d


def tiles_of_data(rng, descriptor, n, word=64):
    count = descriptor.tile_beats * (BEAT // word)
    return [[below(rng, n) for _ in range(count)] for _ in range(descriptor.tiles)]


def to_ssd(words, word=64):
    """Words as the SSD streams them, 64 bits at a time."""
    per = 64 // word
    return [sum(words[i + j] << (word * j) for j in range(per)) for i in range(0, len(words), per)]


def from_beats(beats, word=64):
    return [beat >> (word * i) & ((1 << word) - 1) for beat in beats for i in range(BEAT // word)]
