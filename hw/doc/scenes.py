"""What is simulated to be drawn: runs of the whole board, and of an accumulator that is cut into chunks.

Each run is checked, so that no diagram shows a chip that computes something else.
"""

import random

import cocotb
from common import begin, clock, parameter, value
from reference import C, OK, UNREDUCED, Descriptor, tiles_of_data, to_ssd
from test_onionchopper_board import Board

# Small, so that a word is short to print.
MODULI = (65537, 12289)
LANES = 2


def matmul(columns, depths, moduli, tiles, literal=False):
    """The thesis's mapping as crates/accel-rtl/src/mapping.rs cuts it, on two lanes that share a C: so many tiles of
    columns and of depth. `literal`: columns innermost in the registers, as section 6.3 has them."""
    jr, nr, js, ns, ps = 8, 2, 2, 2, 2
    d = Descriptor(tiles=tiles, moduli=moduli, watchdog=400, inner_log2=1, groups=1, reduce=1, one_beat=[0, 0, 1])
    d.rf_rows = [jr // 4, nr * jr // 4, 1]
    d.c_banks = 4
    by_column, by_depth = (nr, [0, jr, 1]), (jr, [1, 1, 0])
    loops = [by_depth, by_column] if literal else [by_column, by_depth]
    d.rf_bounds, d.rf_strides = nest(3, loops)
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


def nest(room, loops):
    """Bounds and strides, those that are not needed turning once."""
    loops = loops + [(1, [0, 0, 0])] * (room - len(loops))
    return [bound for bound, _ in loops], [strides for _, strides in loops]


@cocotb.test()
async def board(dut):
    rng = random.Random(1)
    host = Board(dut, rng)
    await host.begin()
    # A run as the thesis has it, at its SSD's rate.
    await host.contract(matmul(columns=2, depths=2, moduli=2, tiles=2), MODULI, rate=(67, 100))
    # Section 6.3 to the letter.
    await host.contract(matmul(columns=1, depths=1, moduli=1, tiles=1, literal=True), MODULI[:1])
    # An operand that is its modulus: the run ends; the host clears the error, and the next one is right.
    d = matmul(columns=1, depths=1, moduli=1, tiles=1)
    words = to_ssd(tiles_of_data(rng, d, MODULI[0])[0])
    words[1] = MODULI[0]
    await host.load(d, MODULI[:1])
    await host.run(words)
    assert await host.state() == (0, 1, UNREDUCED)
    await host.clear()
    await host.contract(d, MODULI[:1])
    assert (await host.state())[2] == OK


@cocotb.test()
async def accumulator(dut):
    """Two runs through three chunks, with residues whose sums carry from one chunk to the next."""
    assert parameter(dut, "BITS") == 24
    n = (1 << 48) + 1
    runs = {5: [(1 << 24) - 1, 2, 1 << 47, 1 << 47, (1 << 47) - 1, 3], 2: [5, 6, 7, 8, 9]}
    feed = [(x, c, i == 0, i + 1 == len(run)) for c, run in runs.items() for i, x in enumerate(run)]
    await begin(dut, valid_i=0, refresh_i=0, last_i=0, product_i=0, c_i=0, n_i=n)
    sums = []
    for i in range(len(feed) + 40):
        dut.valid_i.value = int(i < len(feed))
        if i < len(feed):
            dut.product_i.value, dut.c_i.value, dut.refresh_i.value, dut.last_i.value = feed[i]
        await clock(dut)
        if dut.valid_o.value == 1:
            sums.append(value(dut.sum_o))
    assert sums == [(c + sum(run)) % n for c, run in runs.items()], sums
