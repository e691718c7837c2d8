"""ph_multiplier against Python: a product in any clock, three clocks later; between them the last one stays."""

import random

import cocotb
from common import Coverage, Delay, begin, clock, parameter, settle, value, words

LATENCY = 3


@cocotb.test()
async def products(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    width = parameter(dut, "WIDTH")
    top = (1 << width) - 1
    cover = Coverage(
        "products", products=2000, back_to_back=1000, pauses=500, zero=50, one=20, largest=10, squares=100, stays=500,
        full_width=200,
    )
    await begin(dut, valid_i=0, a_i=0, b_i=0)
    due, last, before = Delay(LATENCY), None, False
    cycles = 6000
    often = 1.0
    for cycle in range(cycles):
        if cycle % 100 == 0:
            often = rng.choice((1.0, 1.0, 0.5, 0.1))
        go = rng.random() < often
        a = words(rng, width)
        b = a if rng.random() < 0.1 else words(rng, width)
        if rng.random() < 0.01:
            a = b = top
        dut.valid_i.value, dut.a_i.value, dut.b_i.value = go, a, b
        await settle()
        product = due.step(a * b if go else None)
        assert value(dut.valid_o) == (product is not None)
        if product is not None:
            assert value(dut.product_o) == product
            last = product
            cover.hit("products")
            cover.hit("full_width", product >> 2 * width - 1)
        elif last is not None:
            assert value(dut.product_o) == last, "moved without a product"
            cover.hit("stays")
        cover.hit("back_to_back", go and before)
        cover.hit("pauses", not go)
        if go:
            cover.hit("zero", 0 in (a, b))
            cover.hit("one", 1 in (a, b))
            cover.hit("largest", a == top and b == top)
            cover.hit("squares", a == b)
        before = go
        await clock(dut)
    cover.check(cycles)
