"""oc_register_file against an array: three reads a clock, a row and a word written at once, the same one too."""

import random

import cocotb
from common import Coverage, begin, clock, parameter, settle, value

ROW = 256


@cocotb.test()
async def against_an_array(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    width, rows = parameter(dut, "WORD"), parameter(dut, "ROWS")
    columns = ROW // width
    count = rows * columns
    cover = Coverage(
        "against_an_array", row_alone=100, word_alone=100, both=100, word_into_its_row=20, one_word_three_times=20,
        words_read=count,
    )
    await begin(dut, a_word_i=0, b_word_i=0, c_word_i=0, fill_i=0, fill_row_i=0, fill_data_i=0, sum_i=0, sum_word_i=0,
                sum_data_i=0)
    model, seen, cycles = [], set(), 2500

    def row_of(words):
        return sum(word << (i * width) for i, word in enumerate(words))

    for row in range(rows):
        words = [rng.getrandbits(width) for _ in range(columns)]
        dut.fill_i.value, dut.fill_row_i.value, dut.fill_data_i.value = 1, row, row_of(words)
        model += words
        await clock(dut)
    for _ in range(cycles):
        fill, sum_ = rng.randrange(2), rng.randrange(2)
        row, word = rng.randrange(rows), rng.randrange(count)
        if rng.random() < 0.2:
            word = row * columns + rng.randrange(columns)
        words, data = [rng.getrandbits(width) for _ in range(columns)], rng.getrandbits(width)
        reads = [rng.randrange(count) for _ in range(3)]
        if rng.random() < 0.1:
            reads = [reads[0]] * 3
        dut.fill_i.value, dut.fill_row_i.value, dut.fill_data_i.value = fill, row, row_of(words)
        dut.sum_i.value, dut.sum_word_i.value, dut.sum_data_i.value = sum_, word, data
        dut.a_word_i.value, dut.b_word_i.value, dut.c_word_i.value = reads
        await settle()
        assert [value(port) for port in (dut.a_o, dut.b_o, dut.c_o)] == [model[at] for at in reads]
        first = reads[2] // columns * columns
        assert value(dut.c_row_o) == row_of(model[first:first + columns])
        cover.hit("one_word_three_times", len(set(reads)) == 1)
        cover.hits["words_read"] += len(set(reads) - seen)
        seen |= set(reads)
        cover.hit("row_alone", fill and not sum_)
        cover.hit("word_alone", sum_ and not fill)
        cover.hit("both", fill and sum_)
        cover.hit("word_into_its_row", fill and sum_ and word // columns == row)
        if fill:
            model[row * columns:(row + 1) * columns] = words
        if sum_:
            model[word] = data
        await clock(dut)
    cover.check(cycles)
