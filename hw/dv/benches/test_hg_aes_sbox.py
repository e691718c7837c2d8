"""hg_aes_sbox against FIPS 197: every byte in every place."""

import random

import cocotb
from common import Coverage, combinational, parameter, value
from garbling import AES_SBOX

# Figure 7 of FIPS 197, first and last row and its diagonal: the definition that AES_SBOX is made by is checked too.
PUBLISHED = {
    0x00: "637c777bf26b6fc53001672bfed7ab76", 0xF0: "8ca1890dbfe6426841992d0fb054bb16",
    0x11: "82", 0x22: "93", 0x33: "c3", 0x44: "1b", 0x53: "ed", 0x66: "33", 0x77: "f5", 0x88: "c4", 0x99: "ee", 0xAA: "ac",
    0xBB: "ea", 0xCC: "4b", 0xDD: "c1", 0xEE: "28",
}


@cocotb.test()
async def every_byte(dut):
    places = parameter(dut, "PLACES")
    cover = Coverage("every_byte", published=46, bytes=256 * places)
    for first, row in PUBLISHED.items():
        assert bytes(AES_SBOX[first:first + len(row) // 2]).hex() == row
        cover.hits["published"] += len(row) // 2
    order = list(range(256))
    random.Random(cocotb.RANDOM_SEED).shuffle(order)
    for first in range(256):
        # Each place meets each byte once, beside others.
        given = [order[(first + place) % 256] for place in range(places)]
        dut.d_i.value = planes(given)
        await combinational()
        assert value(dut.q_o) == planes([AES_SBOX[x] for x in given]), f"{given}"
        cover.hits["bytes"] += places
    cover.check(256)


def planes(given):
    return sum((x >> j & 1) << (j * len(given) + place) for place, x in enumerate(given) for j in range(8))
