"""oc_config against a copy of its registers, and its judgement of the descriptor against the same rules in Python."""

import random

import cocotb
from common import Coverage, begin, clock, parameter, settle, value, words
from reference import (
    BAD_MODULUS, BAD_SHAPE, LAYOUT, MODULI, OK, RF_OVERRUN, SRAM_OVERRUN, Descriptor, modulus, register_writes, shape,
)

NAMES = {OK: "ok", BAD_SHAPE: "bad_shape", BAD_MODULUS: "bad_modulus", SRAM_OVERRUN: "sram_overrun", RF_OVERRUN: "rf_overrun"}
CONFIG = [address for address, _ in Descriptor().registers()]


def judge(d, moduli, built):
    """What is wrong with a descriptor, the first of the rules that it breaks."""
    loops = d.dram_bounds + d.sram_bounds + d.rf_bounds
    counts = [d.tiles, d.tile_beats, d.c_banks, d.groups, d.mac_period, d.drain_period, d.watchdog]
    if 0 in loops + d.sram_rows + d.rf_rows + counts or d.tile_beats > built["half_beats"] or d.inner_log2 > 4 \
            or d.groups << d.inner_log2 != built["lanes"] or (d.resident and d.tiles > 2):
        return BAD_SHAPE
    if not 1 <= d.moduli <= MODULI or any(not 2 <= n <= 1 << 64 for n in moduli[:d.moduli]):
        return BAD_MODULUS
    if 2 * sum(d.sram_rows) > built["sram_rows"]:
        return SRAM_OVERRUN
    if 2 * d.rf_rows[0] + 2 * d.rf_rows[1] + d.c_banks * d.rf_rows[2] > built["rf_rows"]:
        return RF_OVERRUN
    return OK


class Host:
    def __init__(self, dut):
        self.dut, self.cycles = dut, 0

    async def begin(self):
        await begin(self.dut, write_i=0, address_i=0, data_i=0, busy_i=0, done_i=0, error_i=0, counters_i=0)

    async def write(self, address, data):
        self.dut.write_i.value, self.dut.address_i.value, self.dut.data_i.value = 1, address, data
        self.cycles += 1
        await clock(self.dut)
        self.dut.write_i.value = 0


@cocotb.test()
async def descriptors(dut):
    """Whole descriptors, right ones and ones with a number spoilt, and what the chip says of them."""
    rng = random.Random(cocotb.RANDOM_SEED)
    host = Host(dut)
    await host.begin()
    built = {name: parameter(dut, name.upper()) for name in ("lanes", "half_beats", "sram_rows", "rf_rows")}
    cover = Coverage("descriptors", ok=10, bad_shape=5, bad_modulus=5, sram_overrun=2, rf_overrun=2, full_sram=1, full_rf=1)
    sizes = {"half_beats": built["half_beats"], "sram_rows": built["sram_rows"], "rf_rows": built["rf_rows"]}
    for case in range(150):
        count = rng.randrange(1, MODULI + 1)
        d = shape(rng, built["lanes"], **sizes, most=100000, moduli=count)
        moduli = [modulus(rng) for _ in range(MODULI)]
        kind = case % 5
        if kind == 1:  # any register, any value that ends or begins it
            name, width, dims = rng.choice(LAYOUT)
            held, to = getattr(d, name), rng.choice((0, 0, (1 << width) - 1, rng.getrandbits(width)))
            while dims:
                held, last, dims = (held[0] if len(dims) > 1 else held), held, dims[1:]
            if isinstance(getattr(d, name), list):
                last[rng.randrange(len(last))] = to
            else:
                setattr(d, name, to)
        elif kind == 2:
            moduli[rng.randrange(MODULI)] = rng.choice((0, 1, (1 << 64) + 1, (1 << 65) - 1))
        elif kind == 3:  # up to the last row, and one row over it
            over = rng.randrange(2)
            if case % 2:
                d.sram_rows[0] = built["sram_rows"] // 2 - d.sram_rows[1] - d.sram_rows[2] + over
            else:
                d.rf_rows, d.c_banks = [1, 1, 1], built["rf_rows"] - 4 + over
        expected = judge(d, moduli, built)
        writes = list(register_writes(d, moduli))
        rng.shuffle(writes)
        for address, data in writes:
            await host.write(address, data)
        await settle()
        assert value(dut.config_o) == d.pack()
        assert value(dut.moduli_o) == sum(
            (n << 128 | ((1 << 128) // n) % (1 << 128) if n else 0) << (193 * i) for i, n in enumerate(moduli))
        assert value(dut.shape_o) == expected, (value(dut.shape_o), expected, vars(d))
        cover.hit(NAMES[expected])
        cover.hit("full_sram", 2 * sum(d.sram_rows) == built["sram_rows"])
        cover.hit("full_rf", 2 * d.rf_rows[0] + 2 * d.rf_rows[1] + d.c_banks * d.rf_rows[2] == built["rf_rows"])
        await clock(dut)
    cover.check(host.cycles)


@cocotb.test()
async def registers(dut):
    """Any writes anywhere: only what is addressed changes, nothing while the chip is busy; start, clear and reading."""
    rng = random.Random(cocotb.RANDOM_SEED + 1)
    host = Host(dut)
    await host.begin()
    counters = parameter(dut, "COUNTERS")
    cover = Coverage("registers", written=500, unmapped=50, busy=100, moduli=200, started=20, cleared=20, counters_read=50,
                     state_read=50, each_register=len(CONFIG))
    held = Descriptor()
    packed, moduli, seen = held.pack(), [0] * MODULI, set()
    parts = ((128, 64), (192, 1), (0, 64), (64, 64))
    for _ in range(4000):
        address = rng.choice((
            rng.choice(CONFIG), rng.choice(CONFIG), rng.randrange(512), 0x80 + rng.randrange(counters), 0x100 + rng.randrange(64), 0))
        data, write, busy = words(rng, 64), rng.random() < 0.8, rng.random() < 0.2
        state, counted = (rng.randrange(2), rng.randrange(8)), [rng.getrandbits(64) for _ in range(counters)]
        dut.write_i.value, dut.address_i.value, dut.data_i.value, dut.busy_i.value = write, address, data, busy
        dut.done_i.value, dut.error_i.value = state
        dut.counters_i.value = sum(count << (64 * i) for i, count in enumerate(counted))
        await settle()
        assert value(dut.config_o) == packed
        assert value(dut.moduli_o) == sum(n << (193 * i) for i, n in enumerate(moduli))
        expected = 0
        if address == 0:
            expected = state[1] << 4 | state[0] << 1 | busy
            cover.hit("state_read")
        elif 0x80 <= address < 0x80 + counters:
            expected = counted[address - 0x80]
            cover.hit("counters_read")
        assert value(dut.data_o) == expected
        acts = write and not busy
        cover.hit("busy", write and busy)
        if acts and address in CONFIG:
            packed = replace(packed, address, data)
            cover.hit("written")
            cover.hit("each_register", address not in seen)
            seen.add(address)
        elif acts and address >= 0x100 and address < 0x140:
            at, width = parts[address & 3]
            mask = (1 << width) - 1
            i = address >> 2 & 15
            moduli[i] = moduli[i] & ~(mask << at) | (data & mask) << at
            cover.hit("moduli")
        elif acts and address:
            cover.hit("unmapped")
        host.cycles += 1
        await clock(dut)
        started, cleared = acts and address == 0 and data & 1, acts and address == 0 and data >> 1 & 1
        assert value(dut.start_o) == started
        assert value(dut.clear_o) == cleared
        cover.hit("started", started)
        cover.hit("cleared", cleared)
    cover.check(host.cycles)


def replace(packed, address, data):
    """The packed configuration after a write: each bit that the register of an all-ones descriptor can set."""
    for at, source in REGISTER_BITS[address]:
        packed = packed & ~(1 << at) | (data >> source & 1) << at
    return packed


def register_bits():
    """By address: where each bit of a register lies in config_t. Found by setting one bit of the descriptor at a time."""
    found = {address: [] for address in CONFIG}
    for name, width, dims in LAYOUT:
        for path in places(dims):
            for bit in range(width):
                d = Descriptor()
                if path:
                    held = getattr(d, name)
                    for index in path[:-1]:
                        held = held[index]
                    held[path[-1]] = 1 << bit
                else:
                    setattr(d, name, 1 << bit)
                at = d.pack().bit_length() - 1
                for address, data in d.registers():
                    if data:
                        found[address].append((at, data.bit_length() - 1))
    assert sum(len(bits) for bits in found.values()) == sum(
        width * len(list(places(dims))) for _, width, dims in LAYOUT)
    return found


def places(dims):
    if not dims:
        yield ()
        return
    for i in range(dims[0]):
        for rest in places(dims[1:]):
            yield (i, *rest)


REGISTER_BITS = register_bits()
