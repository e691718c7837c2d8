"""PH-EPU in Python: its instructions' encoder, a context's words, and what an element computes, without clocks.

A word has 256 bits; a residue is an integer in Montgomery form, R = 2^(256 d) for d = 4, 8 or 16 digits. Addresses of
ciphertexts are ph_pkg's; the instructions are described in hw/doc/ph_element.md."""

from collections import deque

DIGIT = 256
WORD = (1 << DIGIT) - 1
INPUT, TERM, OUTPUT, SQUARED, ONE, LITERAL, MODULUS = 0, 16, 24, 32, 33, 34, 35
INPUT_SLOTS, TERMS, WEIGHT_WORDS = 16, 8, 288
ALL = 0xFFFF  # every element

END, LOAD_INPUT, LOAD_WEIGHTS, STORE, CONTEXT = 0, 1, 2, 3, 4
FREE, CLEAR, ACCUMULATE, ALIGN, INVERT, REDUCE, BASIC, NOP = 8, 9, 10, 11, 12, 13, 14, 15
MULTIPLY, SQUARE, POWER, INVERSE = 0, 1, 2, 3  # kinds of BASIC
NAMES = {
    END: "END", LOAD_INPUT: "LOAD_INPUT", LOAD_WEIGHTS: "LOAD_WEIGHTS", STORE: "STORE", CONTEXT: "CONTEXT", FREE: "FREE",
    CLEAR: "CLEAR", ACCUMULATE: "ACCUMULATE", ALIGN: "ALIGN", INVERT: "INVERT", REDUCE: "REDUCE", BASIC: "BASIC", NOP: "NOP",
}
BUS_INPUT, BUS_WEIGHTS, BUS_CONTEXT = 0, 1, 2

OK, EVEN, NOT_REDUCED, NO_INVERSE, RANGE, UNKNOWN, WATCHDOG, NO_CONTEXT, LINK = range(9)


def instruction(opcode, mask, *fields):
    """64 bits; a field is (value, lowest bit, bits)."""
    word = opcode << 60 | mask << 44
    assert 0 <= mask <= ALL
    for given, low, bits in fields:
        assert 0 <= given < 1 << bits, f"{given} in {bits} bits at {low}"
        word |= given << low
    return word


def end():
    return instruction(END, 0)


def load_input(mask, slot, count, address):
    """`count` ciphertexts from the input buffer's word `address` on to the slots from `slot` on."""
    return instruction(LOAD_INPUT, mask, (slot, 0, 4), (count, 4, 5), (address, 9, 16))


def load_weights(mask, word, count, address, regions):
    """`count` words from the global weight buffer's word `address` on to the elements' from `word` on."""
    return instruction(LOAD_WEIGHTS, mask, (word, 0, 9), (count, 9, 9), (address, 18, 16), (regions, 34, 2))


def store(element, slot, tag):
    return instruction(STORE, 1 << element, (slot, 0, 1), (tag, 1, 32))


def context(mask, digits, width, address):
    """`digits` 4, 8 or 16; weights of `width` 2, 4 or 8 bits; the constants from the weight buffer's word `address` on."""
    return instruction(CONTEXT, mask, ({4: 0, 8: 1, 16: 2}[digits], 0, 2), ({2: 0, 4: 1, 8: 2}[width], 2, 2), (address, 4, 16))


def free(mask, slots, regions):
    return instruction(FREE, mask, (slots, 0, 16), (regions, 16, 2))


def clear(mask, sum=0, buckets=0):
    return instruction(CLEAR, mask, (sum, 0, 2), (buckets, 2, 1))


def accumulate(mask, sum, slot, count, weight, buckets=0, delta=0):
    """`count` weights from the buffer's weight `weight` on, with the inputs from `slot` on."""
    return instruction(
        ACCUMULATE, mask, (sum, 0, 2), (slot, 2, 4), (count, 6, 5), (weight, 11, 16), (buckets, 27, 1), (delta, 28, 4)
    )


def align(mask, sum):
    return instruction(ALIGN, mask, (sum, 0, 2))


def invert(mask, sum):
    """Inverts the term of the sum's sign bit."""
    return instruction(INVERT, mask, (sum, 0, 2))


def reduce(mask, sum, slot, buckets=0, chain=0, shift=0, last=1):
    return instruction(
        REDUCE, mask, (sum, 0, 2), (slot, 2, 1), (buckets, 3, 1), (chain, 4, 1), (shift, 5, 4), (last, 9, 1)
    )


def multiply(mask, dst, x, y):
    return instruction(BASIC, mask, (MULTIPLY, 41, 3), (dst, 0, 6), (x, 6, 6), (y, 12, 6))


def square(mask, dst, x, times=1):
    return instruction(BASIC, mask, (SQUARE, 41, 3), (dst, 0, 6), (x, 6, 6), (times, 18, 13))


def power(mask, dst, x, word, bits, steady=0):
    """dst = x^e, e the `bits` bits from the weight buffer's word `word` on."""
    return instruction(
        BASIC, mask, (POWER, 41, 3), (dst, 0, 6), (x, 6, 6), (word, 18, 9), (bits, 27, 13), (steady, 40, 1)
    )


def inverse(mask, dst, x):
    return instruction(BASIC, mask, (INVERSE, 41, 3), (dst, 0, 6), (x, 6, 6))


def nop():
    return instruction(NOP, 0)


def queued(word):
    """What goes to an element's queue: opcode and operands, without the mask."""
    return word >> 60 << 44 | word & (1 << 44) - 1


def split(number, words):
    """A number's words, lowest first."""
    assert number >> DIGIT * words == 0
    return [number >> DIGIT * i & WORD for i in range(words)]


def join(words):
    return sum(word << DIGIT * i for i, word in enumerate(words))


def negative_inverse(modulus):
    """n' = -m^-1 mod 2^256, of an odd modulus."""
    return -pow(modulus, -1, 1 << DIGIT) & WORD


def context_words(modulus, digits):
    """The 3 d + 1 words of CONTEXT: m, R^2 and R modulo m, n'."""
    r = (1 << DIGIT * digits) % modulus
    return split(modulus, digits) + split(r * r % modulus, digits) + split(r, digits) + [negative_inverse(modulus)]


def weight_words(weights, width):
    """Signed weights of `width` bits as words, lowest first."""
    packed = sum((w & (1 << width) - 1) << width * i for i, w in enumerate(weights))
    return split(packed, -(-max(width * len(weights), 1) // DIGIT))


def signed(bits, width):
    return bits - (bits >> width - 1 << width)


class Failed(Exception):
    """An element's error: its code."""


class Element:
    """What an element holds and computes. `filled[slot]` are the results that its output slots were given, in order."""

    def __init__(self):
        self.digits, self.width, self.modulus = 0, 0, None
        self.memory = {LITERAL: 1}
        self.weights = 0
        self.terms = [False] * TERMS  # which are not empty
        self.filled = [deque(), deque()]
        self.error, self.error_at = OK, 0
        self.instructions = self.multiplications = self.inversions = self.copies = self.zero_bits = 0
        self.slots_busy = self.regions_busy = 0

    def fail(self, code):
        """The first error counts; `error_at`: instructions before it."""
        if not self.error:
            self.error, self.error_at = code, self.instructions

    def context(self, words, digits, width):
        if self.error:
            return
        self.digits, self.width = digits, width
        self.terms = [False] * TERMS
        self.memory = {LITERAL: 1}  # what there was belongs to another modulus
        self.modulus = join(words[:digits])
        if self.modulus % 2 == 0:
            return self.fail(EVEN)
        self.inverse_of_r = pow(1 << DIGIT * digits, -1, self.modulus)
        for i, place in enumerate((SQUARED, ONE), 1):
            self.memory[place] = join(words[i * digits:(i + 1) * digits])
            if self.memory[place] >= self.modulus:
                return self.fail(NOT_REDUCED)

    def load_input(self, slot, residue):
        if self.error:
            return
        if self.modulus is None:
            return self.fail(NO_CONTEXT)
        if residue >= self.modulus:
            return self.fail(NOT_REDUCED)
        self.memory[INPUT + slot] = residue

    def load_weights(self, word, words):
        for i, given in enumerate(words, word):
            self.weights = self.weights & ~(WORD << DIGIT * i) | given << DIGIT * i

    def execute(self, word):
        """Executes an instruction of the queue (`queued`)."""
        if self.error:
            return
        try:
            self._execute(word >> 44, word)
        except Failed as failed:
            return self.fail(failed.args[0])
        finally:
            self.instructions += 1

    def _multiply(self, dst, x, y):
        self.multiplications += 1
        self._write(dst, self.memory[x] * (self.memory[y] if isinstance(y, int) else y[0]) * self.inverse_of_r % self.modulus)

    def _copy(self, dst, x):
        self.copies += 1
        self._write(dst, self.memory[x])

    def _write(self, dst, residue):
        self.memory[dst] = residue
        if TERM <= dst < TERM + TERMS:
            self.terms[dst - TERM] = True

    def _invert(self, dst, x):
        self.inversions += 1
        try:
            found = pow(self.memory[x], -1, self.modulus)
        except ValueError:
            raise Failed(NO_INVERSE) from None
        r = self.memory[ONE]
        self._write(dst, found * r * r % self.modulus)
        self.multiplications += 2

    def _gather(self, dst, place):
        """A term's factor: the first is taken over."""
        if self.terms[dst - TERM]:
            self._multiply(dst, dst, place)
        else:
            self._copy(dst, place)

    def _execute(self, opcode, word):
        def field(low, bits):
            return word >> low & (1 << bits) - 1

        if opcode < FREE:
            raise Failed(UNKNOWN)
        if opcode == NOP:
            return
        if opcode == FREE:
            self.slots_busy &= ~field(0, 16)
            self.regions_busy &= ~field(16, 2)
            return
        if self.modulus is None:
            raise Failed(NO_CONTEXT)
        if opcode == BASIC:
            return self._basic(field)
        width, sum = self.width, field(0, 2)
        buckets = field({CLEAR: 2, ACCUMULATE: 27, REDUCE: 3}[opcode], 1) if opcode in (CLEAR, ACCUMULATE, REDUCE) else 0
        if not buckets and (sum + 1) * width > TERMS:
            raise Failed(RANGE)
        places = range(TERMS) if buckets else range(sum * width, (sum + 1) * width)
        if opcode == CLEAR:
            for t in places:
                self.terms[t] = False
        elif opcode == ACCUMULATE:
            slot, count, first, delta = field(2, 4), field(6, 5), field(11, 16), field(28, 4)
            if not 1 <= count <= INPUT_SLOTS - slot or (first + count) * width > WEIGHT_WORDS * DIGIT:
                raise Failed(RANGE)
            for i in range(count):
                bits = self.weights >> (first + i) * width & (1 << width) - 1
                weight = signed(bits, width)
                if not buckets:
                    self.zero_bits += width - bits.bit_count()
                    for b in range(width):
                        if bits >> b & 1:
                            self._gather(TERM + sum * width + b, INPUT + slot + i)
                elif weight:
                    if abs(weight) > TERMS:
                        raise Failed(RANGE)
                    self._gather(TERM + abs(weight) - 1, INPUT + (slot + i if weight > 0 else (slot + i + delta) % INPUT_SLOTS))
                else:
                    self.zero_bits += width
        elif opcode == ALIGN:
            for b, t in enumerate(places):
                for _ in range(b if self.terms[t] else 0):
                    self._multiply(TERM + t, TERM + t, TERM + t)
        elif opcode == INVERT:
            if self.terms[places[-1]]:
                self._invert(TERM + places[-1], TERM + places[-1])
        else:
            out, chain, shift, last = OUTPUT + field(2, 1), field(4, 1), field(5, 4), field(9, 1)
            for t in range(TERMS - 2, -1, -1) if buckets else ():
                if self.terms[t + 1]:
                    self._gather(TERM + t, TERM + t + 1)
            for _ in range(shift if chain else 0):
                self._multiply(out, out, out)
            begun = chain
            for t in places:
                if self.terms[t]:
                    self._multiply(out, out, TERM + t) if begun else self._copy(out, TERM + t)
                    begun = True
                    self.terms[t] = False
            if not begun:
                self._copy(out, ONE)
            if last:
                self.filled[out - OUTPUT].append(self.memory[out])

    def _basic(self, field):
        kind, dst, x = field(41, 3), field(0, 6), field(6, 6)

        def operand(place):
            if not (place < OUTPUT + 2 or SQUARED <= place <= LITERAL):
                raise Failed(RANGE)
            return place

        if kind > INVERSE:
            raise Failed(UNKNOWN)
        operand(x)
        if not TERM <= dst < OUTPUT + 2:
            raise Failed(RANGE)
        if kind == MULTIPLY:
            self._multiply(dst, x, operand(field(12, 6)))
        elif kind == SQUARE:
            times = field(18, 13)
            if not times:
                raise Failed(RANGE)
            for i in range(times):
                self._multiply(dst, dst if i else x, dst if i else x)
        elif kind == INVERSE:
            self._invert(dst, x)
        else:
            word, bits, steady = field(18, 9), field(27, 13), field(40, 1)
            if dst == x or not 1 <= bits <= 4096 or word + -(-bits // DIGIT) > WEIGHT_WORDS:
                raise Failed(RANGE)
            exponent = self.weights >> DIGIT * word & (1 << bits) - 1
            if steady:
                self.copies += 1
                self.multiplications += 2 * bits
            else:
                self.copies += 1
                self.multiplications += max(exponent.bit_length() - 1, 0) + max(exponent.bit_count() - 1, 0)
                self.zero_bits += bits - exponent.bit_count()
            r = self.memory[ONE]
            base = self.memory[x] * self.inverse_of_r % self.modulus
            self._write(dst, pow(base, exponent, self.modulus) * r % self.modulus)
        if dst >= OUTPUT:
            self.filled[dst - OUTPUT].append(self.memory[dst])
