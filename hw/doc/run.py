"""Runs contractions on the board and writes every signal of every clock: `run.py LIBRARY VCD`.

They are small and have the thesis's tiles (section 6.3), two of them in depth, so that sums go to the DRAM and come back.
What comes out is compared with the definition, so no diagram shows a chip that computes something else."""

import ctypes
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "dv" / "benches"))
from reference import OK, UNREDUCED, C, Descriptor, contract, register_writes  # noqa: E402

LANES = 2
# Two digits, so that a word is short to print; a pipelined accumulator is to show carries between its chunks.
SMALL, LARGE = (97, 89), (1152921504606830593,)
SPOILT = 300  # a word of B, so that the stream and reads of the DRAM are under way when it is found
CONTROL, START, CLEAR = 0, 1, 2


def nest(room, loops):
    """Bounds and strides, those that are not needed turning once."""
    loops = loops + [(1, [0, 0, 0])] * (room - len(loops))
    return [bound for bound, _ in loops], [strides for _, strides in loops]


def mapped(columns, depths, moduli, tiles=1, literal=False):
    """The thesis's mapping as crates/accel-rtl/src/onionchopper/mapping.rs cuts it, on two lanes that share a C: so many tiles of
    columns and of depth. `literal`: columns innermost in the registers, as section 6.3 has them."""
    jr, nr, js, ns, ps = 8, 2, 2, 2, 2
    d = Descriptor(tiles=tiles, moduli=moduli, watchdog=1000, inner_log2=1, groups=1, reduce=1, one_beat=[0, 0, 1])
    d.rf_rows = [jr // 4, nr * jr // 4, 1]
    d.c_banks = 4
    by_column, by_depth = (nr, [0, jr, 1]), (jr, [1, 1, 0])
    d.rf_bounds, d.rf_strides = nest(3, [by_depth, by_column] if literal else [by_column, by_depth])
    d.sram_rows = [d.rf_rows[0] * js * ps, d.rf_rows[1] * js * ns, ns * ps]
    d.sram_bounds, d.sram_strides = nest(4, [
        (js, [d.rf_rows[0], ns * d.rf_rows[1], 0]), (ns, [0, d.rf_rows[1], ps]), (ps, [js * d.rf_rows[0], 0, 1]),
    ])
    a, b, c = (d.beats(x) for x in range(3))
    d.inner_stride = [a, b, 0]
    d.dram_bounds, d.dram_strides = nest(6, [
        (moduli, [depths * LANES * a, depths * columns * LANES * b, columns * c]),
        (depths, [LANES * a, columns * LANES * b, 0]),
        (columns, [0, LANES * b, c]),
    ])
    d.b_base = moduli * depths * LANES * a
    d.tile_beats = d.b_base + moduli * depths * columns * LANES * b
    d.mac_period = d.macs() // moduli
    # Where columns come between two tiles of one C, it is drained each time; else it stays until it is whole.
    d.drain_period = (depths if columns > 1 else 1) * columns * d.sram_rows[C] * nr
    return d


class Board:
    def __init__(self, library, vcd):
        self.rng = random.Random(1)
        self.library = ctypes.CDLL(library)
        for function in ("board_run", "board_read"):
            getattr(self.library, function).restype = ctypes.c_uint64
        self.library.board_new.restype = ctypes.c_void_p
        self.chip = ctypes.c_void_p(self.library.board_new())
        self.library.board_trace(self.chip, vcd.encode())

    def write(self, address, word):
        self.library.board_write(self.chip, address, ctypes.c_uint64(word))

    def parameters(self):
        out = (ctypes.c_uint32 * 8)()
        self.library.board_parameters(self.chip, out)
        return list(out)

    def run(self, descriptor, moduli, rate, spoil=None, error=OK):
        """Fresh data, a run to its end, and the words that came out. `spoil` is a word of the stream to be the modulus."""
        data = [
            [self.rng.randrange(min(moduli)) for _ in range(2 * descriptor.tile_beats)] for _ in range(descriptor.tiles)
        ]
        if spoil is not None:
            data[0][spoil] = moduli[0]
        expected, _ = contract(descriptor, data, moduli)
        stream = [word for tile in data for word in tile]
        for address, word in register_writes(descriptor, moduli):
            self.write(address, word)
        self.write(CONTROL, START)
        words, out = (ctypes.c_uint64 * len(stream))(*stream), (ctypes.c_uint64 * len(expected))()
        fed, taken = ctypes.c_uint64(0), ctypes.c_uint64(0)
        self.library.board_run(
            self.chip, *rate, words, ctypes.c_uint64(len(words)), ctypes.byref(fed), out, ctypes.c_uint64(len(out)),
            ctypes.byref(taken), 0, ctypes.c_uint64(10**6),
        )
        state = self.library.board_read(self.chip, CONTROL)
        if state != 2 | error << 4 or error == OK and list(out) != expected:
            sys.exit(f"a run went wrong: state {state:#x}, {taken.value} of {len(expected)} words")
        self.write(CONTROL, 0)  # a clock in which nothing happens, so that the next write stands alone
        self.write(CONTROL, CLEAR)


def main(library, vcd):
    board = Board(library, vcd)
    bits = board.parameters()[2]
    if bits:
        board.run(mapped(columns=1, depths=1, moduli=1), LARGE, (1, 1))
    else:
        # waves.py counts on this order: the thesis's mapping and SSD; columns innermost; an error, and a run behind it.
        board.run(mapped(columns=2, depths=2, moduli=2, tiles=2), SMALL, (67, 100))
        board.run(mapped(columns=1, depths=1, moduli=1, literal=True), SMALL[:1], (1, 1))
        board.run(mapped(columns=2, depths=2, moduli=1), SMALL[:1], (1, 1), spoil=SPOILT, error=UNREDUCED)
        board.run(mapped(columns=1, depths=1, moduli=1), SMALL[:1], (1, 1))
    board.library.board_free(board.chip)


main(*sys.argv[1:])
