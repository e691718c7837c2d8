"""oc_sram against an array: halves of rows, and a row that is written while it is read."""

import random

import cocotb
from common import Coverage, begin, clock, parameter, settle, value


@cocotb.test()
async def against_an_array(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    rows = parameter(dut, "ROWS")
    cover = Coverage(
        "against_an_array", lower=100, upper=100, both=100, read_while_written=50, read_held=50, first_row=5, last_row=5,
        rows_read=rows,
    )
    await begin(dut, read_i=0, read_row_i=0, write_i=0, write_row_i=0, data_i=0)
    model, cycles, seen = [None] * rows, 0, set()
    for row in range(rows):  # what was never written is not known
        model[row] = [rng.getrandbits(128), rng.getrandbits(128)]
        dut.write_i.value, dut.write_row_i.value = 3, row
        dut.data_i.value = model[row][1] << 128 | model[row][0]
        await clock(dut)
    out = None
    for _ in range(2500):
        write, row, data = rng.randrange(4), rng.randrange(rows), rng.getrandbits(256)
        read, read_row = rng.random() < 0.8, rng.choice((row, rng.randrange(rows), 0, rows - 1))
        dut.write_i.value, dut.write_row_i.value, dut.data_i.value = write, row, data
        dut.read_i.value, dut.read_row_i.value = read, read_row
        await settle()
        if out is not None:
            assert value(dut.data_o) == out
        cover.hit("lower", write == 1)
        cover.hit("upper", write == 2)
        cover.hit("both", write == 3)
        cover.hit("read_while_written", read and write and row == read_row)
        cover.hit("read_held", not read and out is not None)
        if read:
            out = model[read_row][1] << 128 | model[read_row][0]
            cover.hit("rows_read", read_row not in seen)
            seen.add(read_row)
            cover.hit("first_row", read_row == 0)
            cover.hit("last_row", read_row == rows - 1)
        for half in range(2):
            if write >> half & 1:
                model[row][half] = data >> (128 * half) & ((1 << 128) - 1)
        cycles += 1
        await clock(dut)
    cover.check(cycles)
