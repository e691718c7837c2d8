"""oc_lane against its parts in Python: SRAM, register file and compute unit, each clock any mix of what they can do."""

import random

import cocotb
from common import Coverage, Delay, begin, clock, parameter, settle, value
from reference import ROW, add_latency, below, modulus, mul_latency, pack


@cocotb.test()
async def against_its_parts(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    width, bits = parameter(dut, "WORD"), parameter(dut, "BITS")
    sram_rows, rf_rows = parameter(dut, "SRAM_ROWS"), parameter(dut, "RF_ROWS")
    columns = ROW // width
    n = (1 << 64) - 59 if width == 64 else 1 << 32
    latency = 1 + (mul_latency(bits) + add_latency(bits) if width == 64 else 2)
    cover = Coverage(
        "against_its_parts", fills=300, zero_fills=50, stores=100, beats=300, sums=200, long_run=20, fill_and_sum=50,
        store_over_beat=30, read_and_write=200, store_reads_new_sum=10, **({"unreduced": 10} if width == 64 else {}),
    )
    await begin(
        dut, read_i=0, read_row_i=0, write_i=0, write_row_i=0, beat_i=0, store_i=0, fill_i=0, fill_zero_i=0, fill_row_i=0,
        issue_i=0, refresh_i=0, last_i=0, a_word_i=0, b_word_i=0, c_word_i=0, modulus_i=pack(n), sum_word_i=0,
    )

    def row_of(words):
        return sum(word << (i * width) for i, word in enumerate(words))

    half = columns // 2
    sram, rf = [[0] * columns for _ in range(sram_rows)], [[0] * columns for _ in range(rf_rows)]
    for row in range(max(sram_rows, rf_rows)):  # all of it known before the first clock that counts
        for part in range(2):
            beat = [below(rng, n) for _ in range(half)]
            if row < sram_rows:
                sram[row][part * half:(part + 1) * half] = beat
                dut.write_i.value, dut.write_row_i.value, dut.beat_i.value = 1 << part, row, row_of(beat)
            dut.fill_i.value, dut.fill_zero_i.value, dut.fill_row_i.value = 1, 1, row % rf_rows
            await clock(dut)
    dut.fill_i.value = 0
    sums, flags = Delay(latency), Delay(2 if bits == 0 else 1 + -(-65 // bits))
    out, run, total, left, written = None, 0, 0, 0, None
    cycles = 6000
    for _ in range(cycles):
        # Only what the clock before has read can fill.
        fill = rng.random() < 0.3 and out is not None
        zero = fill and rng.random() < 0.2
        fill_row = rng.randrange(rf_rows)
        store = rng.random() < 0.15
        read, read_row = rng.random() < 0.5, rng.randrange(sram_rows)
        write, write_row = rng.randrange(4) if store else rng.randrange(3), rng.randrange(sram_rows)
        beat = [below(rng, n) for _ in range(half)]
        issue = rng.random() < 0.7
        a, b, c, to = (rng.randrange(rf_rows * columns) for _ in range(4))
        if written and rng.random() < 0.3:  # what a sum has just changed
            c = written * columns
        dut.read_i.value, dut.read_row_i.value = read, read_row
        dut.store_i.value, dut.write_i.value, dut.write_row_i.value = store, 3 if store else write, write_row
        dut.beat_i.value = row_of(beat)
        dut.fill_i.value, dut.fill_zero_i.value, dut.fill_row_i.value = fill, zero, fill_row
        first, last = left == 0, False
        if issue:
            if first:
                left = rng.choice((1, 2, 3, rng.randrange(1, 40)))
                run, total = 0, rf[c // columns][c % columns]
            last = left == 1
        dut.issue_i.value, dut.refresh_i.value, dut.last_i.value = issue, first, last
        dut.a_word_i.value, dut.b_word_i.value, dut.c_word_i.value = a, b, c
        dut.sum_word_i.value = to
        item = None
        if issue:
            x, y = rf[a // columns][a % columns], rf[b // columns][b % columns]
            total = (total + x * y) % n
            left -= 1
            run += 1
            if last:
                item = (total, run)
        done = sums.step(item)
        await settle()
        if out is not None:
            assert value(dut.row_o) == row_of(out), "the row that was read"
        assert value(dut.sum_o) == (done is not None)
        assert value(dut.unreduced_o) == 0
        stored = list(rf[c // columns])
        if read:
            out = list(sram[read_row])
            cover.hit("read_and_write", write != 0)
        if store:
            sram[write_row] = stored
            cover.hit("stores")
            cover.hit("store_over_beat", write != 0)
            cover.hit("store_reads_new_sum", c // columns == written)
        elif write:
            for part in range(2):
                if write >> part & 1:
                    sram[write_row][part * half:(part + 1) * half] = beat
            cover.hit("beats")
        written = None
        if fill:
            rf[fill_row] = [0] * columns if zero else list(filled)
            cover.hit("zero_fills" if zero else "fills")
        if done is not None:
            rf[to // columns][to % columns] = done[0]
            written = to // columns
            cover.hit("sums")
            cover.hit("long_run", done[1] > 10)
            cover.hit("fill_and_sum", fill)
        filled = out
        await clock(dut)
    if width == 64:
        # Operands are in the register file; a smaller modulus finds some that are not below it.
        dut.fill_i.value, dut.store_i.value, dut.write_i.value, dut.read_i.value = 0, 0, 0, 0
        for _ in range(60):
            m = modulus(rng)
            a, b, c, first = (*(rng.randrange(rf_rows * columns) for _ in range(3)), rng.randrange(2))
            # Where a sum went meanwhile does not matter: it goes where nobody looks.
            dut.issue_i.value, dut.refresh_i.value, dut.last_i.value = 1, first, 0
            dut.a_word_i.value, dut.b_word_i.value, dut.c_word_i.value, dut.modulus_i.value = a, b, c, pack(m)
            read = [rf[at // columns][at % columns] for at in ((a, b, c) if first else (a, b))]
            flag = flags.step(any(word >= m for word in read))
            await settle()
            done = sums.step(None)
            if done is not None:
                rf[to // columns][to % columns] = done[0]
            if flag is not None:
                assert value(dut.unreduced_o) == flag
                cover.hit("unreduced", flag)
            await clock(dut)
    cover.check(cycles)
