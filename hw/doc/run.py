"""Runs a small contraction on the board and writes every signal of every clock: `run.py LIBRARY VCD`.

The thesis's tiles (section 6.3), two of them in depth, so that sums go to the DRAM and come back; two moduli."""

import ctypes
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "dv" / "benches"))
from reference import Descriptor, contract, register_writes  # noqa: E402

MODULI = (1152921504606830593, 1125899906826241)
# Register file tiles are 8 deep and 2 wide; an SRAM's tile is 2 by 2 by 2 of them. Beats of a lane's tile:
A_BEATS, B_BEATS, C_BEATS = 16, 32, 4
DEPTHS, COLUMNS, CHANNELS = 2, 2, 2

descriptor = Descriptor(
    tiles=1, tile_beats=CHANNELS * DEPTHS * (2 * A_BEATS + COLUMNS * 2 * B_BEATS), b_base=CHANNELS * DEPTHS * 2 * A_BEATS,
    dram_bounds=[CHANNELS, DEPTHS, COLUMNS, 1, 1, 1],
    dram_strides=[
        [DEPTHS * 2 * A_BEATS, DEPTHS * COLUMNS * 2 * B_BEATS, COLUMNS * C_BEATS],
        [2 * A_BEATS, COLUMNS * 2 * B_BEATS, 0],
        [0, 2 * B_BEATS, C_BEATS],
        [0, 0, 0], [0, 0, 0], [0, 0, 0],
    ],
    inner_log2=1, groups=1, reduce=1, inner_stride=[A_BEATS, B_BEATS, 0], group_stride=[0, 0, C_BEATS],
    sram_rows=[8, 16, 4], one_beat=[0, 0, 1],
    sram_bounds=[2, 2, 2, 1], sram_strides=[[2, 8, 0], [0, 4, 2], [4, 0, 1], [0, 0, 0]],
    rf_rows=[2, 4, 1], c_banks=4, rf_bounds=[2, 8, 1], rf_strides=[[0, 8, 1], [1, 1, 0], [0, 0, 0]],
    moduli=2, mac_period=DEPTHS * COLUMNS * 128, drain_period=DEPTHS * COLUMNS * 8, watchdog=1000,
)


def main(library, vcd):
    rng = random.Random(1)
    data = [rng.randrange(min(MODULI)) for _ in range(2 * descriptor.tile_beats)]
    expected, _ = contract(descriptor, [data], MODULI)
    board = ctypes.CDLL(library)
    u64, handle = ctypes.c_uint64, ctypes.c_void_p
    board.board_new.restype = handle
    board.board_run.restype = board.board_read.restype = u64
    chip = handle(board.board_new())
    for address, word in register_writes(descriptor, MODULI):
        board.board_write(chip, address, u64(word))
    board.board_trace(chip, vcd.encode())
    board.board_write(chip, 0, u64(1))
    words, out = (u64 * len(data))(*data), (u64 * len(expected))()
    fed, taken = u64(0), u64(0)
    board.board_run(
        chip, 67, 100, words, u64(len(words)), ctypes.byref(fed), out, u64(len(out)), ctypes.byref(taken), 0, u64(10**6)
    )
    state = board.board_read(chip, 0)
    board.board_free(chip)
    if state != 2 or list(out) != expected:
        sys.exit(f"the run went wrong: state {state:#x}, {taken.value} of {len(expected)} words")


main(*sys.argv[1:])
