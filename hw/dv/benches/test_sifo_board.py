"""sifo_board: programs of random gates against garbling in Python, each error, and a right result behind each.

A program keeps to what the host promises: a gate reads and writes no place that a gate before it is still to write, unless a
fence or a wait lies between them."""

import random

import cocotb
from common import Coverage, begin, clock, parameter, settle, value, words
from garbling import garble_sifo

XOR, AND = 0, 1
FENCE, SYNC, WHOLE, TURN, WAIT = 1 << 27, 1 << 28, 1 << 29, 1 << 30, 1 << 36
MISPLACED, OUTSIDE, STUCK = 1, 2, 3


def gate_items(gate, registers):
    """The register writes of a gate: {out, b, a} in two, or three addresses in three."""
    a, b, out = gate
    bits = out << 42 | b << 21 | a
    if registers == 2:
        return [1 << 32 | bits & 0xFFFFFFFF, 2 << 32 | bits >> 32]
    return [3 << 32 | a, 4 << 32 | b, 5 << 32 | out]


class Board:
    """A host beside the board."""

    def __init__(self, dut, rng, cover):
        self.dut, self.rng, self.cover = dut, rng, cover
        self.cycles = 0
        self.label, self.places, self.ddr = parameter(dut, "LABEL"), parameter(dut, "PLACES"), 4 * parameter(dut, "WORDS")
        self.watchdog = parameter(dut, "WATCHDOG")
        self.everywhere = [p << 1 | 1 for p in range(self.places)] + [p << 1 for p in range(self.ddr)]
        self.memory, self.done, self.offset = {}, 0, None

    async def begin(self):
        await begin(
            self.dut, period_i=0, sync_i=0, latency_i=1, link_valid_i=0, link_item_i=0, table_ready_i=0, poke_i=0,
            poke_address_i=0, poke_label_i=0,
        )
        built = (parameter(self.dut, "ANDS"), parameter(self.dut, "XORS"), self.label, self.places, self.ddr, 3 * self.label // 8, 1)
        names = ("ands", "xors", "label", "places", "words", "table_bytes", "lanes")
        assert tuple(value(getattr(self.dut, f"{name}_o")) for name in names) == built

    async def tick(self):
        self.cycles += 1
        await clock(self.dut)

    async def fill(self):
        """A label in every place, beside the chip's time."""
        self.dut.poke_i.value = 1
        for where in self.everywhere:
            self.memory[where] = label = words(self.rng, self.label)
            self.dut.poke_address_i.value, self.dut.poke_label_i.value = where, label
            await self.tick()
        self.dut.poke_i.value = 0

    async def reset(self):
        self.dut.rst_ni.value, self.dut.link_valid_i.value, self.dut.table_ready_i.value = 0, 0, 0
        await self.tick()
        self.dut.rst_ni.value = 1
        await self.tick()
        self.done, self.offset = 0, None

    def configure(self):
        """A fresh R and the first AND's number: some with a carry soon."""
        self.offset = words(self.rng, self.label) | 1
        self.number = self.rng.choice((0, self.rng.getrandbits(64), (self.rng.getrandbits(32) << 32) - 3, (1 << 64) - 2)) % (1 << 64)
        padded = self.offset | self.rng.getrandbits(128) >> self.label << self.label
        return [8 + i << 32 | padded >> 32 * i & 0xFFFFFFFF for i in range(4)] + [
            12 << 32 | self.number & 0xFFFFFFFF, 13 << 32 | self.number >> 32,
        ]

    def somewhere(self, without=()):
        while True:
            where = self.rng.choice((self.rng.randrange(self.places) << 1 | 1, self.rng.randrange(self.ddr) << 1))
            if where not in without:
                return where

    def batches(self, gates, ands=None):
        """Batches as (operation, fence, sync, gates), in which hazards lie behind fences and waits."""
        rng, batches, unfinished = self.rng, [], set()
        while gates > 0:
            count = min(gates, rng.choice((0, 1, 1, 2, 3, 6, 12)))
            gates -= count
            fence = rng.random() < 0.4 or len(unfinished) + count > len(self.everywhere) // 2
            sync = rng.random() < 0.3
            if fence:
                unfinished = set()
            self.cover.hit("no_fence", bool(unfinished) and count > 0)
            batch = []
            for _ in range(count):
                a, b, out = (self.somewhere(unfinished) for _ in range(3))
                b = a if rng.random() < 0.05 else b
                out = rng.choice((a, b)) if rng.random() < 0.1 else out
                unfinished.add(out)
                batch.append((a, b, out))
            operation = rng.choice((XOR, AND)) if ands is None else AND if rng.random() < ands else XOR
            batches.append((operation, fence, sync, batch))
            if sync:
                unfinished = set()
        return batches

    def items(self, batches, whole=0.3):
        """Register writes; the host waits behind the last of a batch with `sync`."""
        items = []
        for operation, fence, sync, gates in batches:
            arrives, turn = self.rng.random() < whole, self.rng.random() < 0.4
            items.append(operation << 24 | fence * FENCE | sync * SYNC | arrives * WHOLE | turn * TURN | len(gates))
            for gate in gates:
                registers = self.rng.choice((2, 3))
                items += gate_items(gate, registers)
                self.cover.hit("in_two" if registers == 2 else "in_three")
            if sync:
                items[-1] |= WAIT
            for name, happens in (
                ("fences", fence), ("syncs", sync), ("whole", arrives and len(gates) > 1), ("in_turn", turn and len(gates) > 1),
                ("empty", not gates), ("empty_sync", sync and not gates),
            ):
                self.cover.hit(name, happens)
        return items

    def garble(self, batches):
        """Tables, and what memory holds when all is done."""
        tables = []
        for operation, _, _, gates in batches:
            for a, b, out in gates:
                x, y = self.memory[a], self.memory[b]
                if operation == AND:
                    self.memory[out], rows = garble_sifo(self.offset, x, y, self.number, self.label)
                    tables.append(sum(row << self.label * i for i, row in enumerate(rows)))
                    self.number = (self.number + 1) % (1 << 64)
                    self.cover.hit(f"colours_{x & 1}{y & 1}")
                else:
                    self.memory[out] = x ^ y
                    self.cover.hit("xors")
                self.cover.hit("_".join("ram" if where & 1 else "ddr" for where in (a, b, out)))
                self.cover.hit("own_operand", out in (a, b))
        return tables

    async def run(self, items, period=0, sync=0, latency=1, taken=1.0, most=60000):
        """Sends all, until the chip is idle or stops: tables, and what was counted."""
        dut, rng = self.dut, self.rng
        dut.period_i.value, dut.sync_i.value, dut.latency_i.value = period, sync, latency
        tables, count, at, offered = [], dict.fromkeys(("gates", "accesses", "host", "cell", "ddr", "clocks", "still"), 0), 0, False
        for _ in range(most):
            offered = offered or at < len(items) and rng.random() < 0.9
            dut.link_valid_i.value = int(offered)
            dut.link_item_i.value = items[at] if offered else rng.getrandbits(37)
            ready = rng.random() < taken
            dut.table_ready_i.value = int(ready)
            await settle()
            error = value(dut.error_o)
            if error or at == len(items) and value(dut.idle_o) and not value(dut.table_valid_o):
                await self.tick()
                return error, tables, count
            if value(dut.table_valid_o):
                self.cover.hit("table_held", not ready)
                if ready:
                    tables.append(value(dut.table_o))
            gate = value(dut.gate_o)
            count["gates"] += gate
            count["accesses"] += value(dut.access_o).bit_count()
            count["clocks"] += 1
            count["still"] = 0 if gate else count["still"] + 1
            for name in ("host", "cell", "ddr"):
                waits = value(getattr(dut, f"waits_{name}_o"))
                count[name] += waits
                self.cover.hit(f"waits_{name}", waits)
            if offered and value(dut.link_ready_o):
                at, offered = at + 1, False
            await self.tick()
        raise AssertionError(f"not idle after {most} clocks")

    async def compare(self):
        """Every place of both memories."""
        for where in self.everywhere:
            self.dut.poke_address_i.value = where
            await self.tick()
            await settle()
            assert value(self.dut.peek_label_o) == self.memory[where], f"place {where >> 1} of memory {where & 1}"
            await self.tick()

    async def garbled(self, gates, ands=None, configure=True, whole=0.3, **pace):
        """A random program, all of whose results are looked at."""
        batches = self.batches(gates, ands)
        items = (self.configure() if configure else []) + self.items(batches, whole)
        tables = self.garble(batches)
        error, got, count = await self.run(items, **pace)
        assert error == 0, error
        assert got == tables, f"{sum(x != y for x, y in zip(got, tables))} of {len(tables)} tables differ"
        assert count["gates"] == gates
        ddr = sum(not where & 1 for _, _, _, batch in batches for gate in batch for where in gate)
        assert count["accesses"] == ddr, "an access for each place of DDR memory"
        self.done += sum(batch[2] for batch in batches)
        assert value(self.dut.done_o) == self.done
        await self.compare()
        return count


GOALS = {f"{a}_{b}_{out}": 10 for a in ("ram", "ddr") for b in ("ram", "ddr") for out in ("ram", "ddr")}


@cocotb.test()
async def programs(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    cover = Coverage(
        "programs", fences=40, syncs=30, whole=8, in_turn=15, empty=10, empty_sync=1, no_fence=20, in_two=200, in_three=200, xors=100,
        table_held=50, waits_host=100, waits_cell=100, waits_ddr=300, own_operand=20, all_ands=1, same_offset=2,
        **{f"colours_{a}{b}": 15 for a in (0, 1) for b in (0, 1)}, **GOALS,
    )
    board = Board(dut, rng, cover)
    await board.begin()
    await board.fill()
    for case, (period, sync, latency) in enumerate((
        (0, 0, 1), (640, 270, 36), (427, 20, 36), (64, 0, 5), (0, 3, 0), (100, 100, 36), (0, 0, 36), (640, 0, 2),
    )):
        again = case in (4, 6)  # R stays, and the count of ANDs goes on
        ands = 1.0 if case == 3 else None
        # While a whole batch comes, twelve gates in three writes each at the most, the chip may not take it that nothing happens.
        whole = 0.4 if 36 * period // 64 < board.watchdog // 2 else 0
        await board.garbled(
            60, ands, not again, whole, period=period, sync=sync, latency=latency, taken=rng.choice((1, 0.1, 0.02)),
        )
        cover.hit("all_ands", ands == 1.0)
        cover.hit("same_offset", again)
    cover.check(board.cycles)


@cocotb.test()
async def errors(dut):
    """Each error says so and stops the chip; behind a reset a program gives what it must."""
    rng = random.Random(cocotb.RANDOM_SEED)
    causes = {
        "no_batch": MISPLACED, "header_early": MISPLACED, "past_a": OUTSIDE, "past_b": OUTSIDE, "past_out": OUTSIDE,
        "lacks_gates": STUCK, "slow_host": STUCK, "no_tables": STUCK, "dead_ddr": STUCK,
    }
    rest = dict.fromkeys((
        "fences", "syncs", "whole", "in_turn", "empty", "empty_sync", "no_fence", "in_two", "in_three", "xors", "table_held",
        "waits_host", "waits_cell", "waits_ddr", "own_operand", *(f"colours_{a}{b}" for a in (0, 1) for b in (0, 1)), *GOALS,
    ), 0)
    cover = Coverage("errors", right_behind=2 * len(causes), slow_but_right=1, **dict.fromkeys(causes, 2), **rest)
    board = Board(dut, rng, cover)
    await board.begin()
    for _ in range(2):
        for cause, code in causes.items():
            await board.fill()
            # A program that would be right, up to where it is spoilt.
            before = board.batches(rng.choice((0, 5, 12)))
            pace = {"period": rng.choice((0, 64)), "sync": 3, "latency": 5}
            items = board.configure() + board.items(before)
            tables = board.garble(before)
            if cause == "no_batch":
                items += gate_items([board.somewhere() for _ in range(3)], 2)
            elif cause == "header_early":
                items += [XOR << 24 | 2, *gate_items((1, 1, 1), 3), AND << 24 | 1]
            elif cause.startswith("past"):
                gate = [board.somewhere() for _ in range(3)]
                gate["a b out".split().index(cause[5:])] = rng.choice((board.places, (1 << 20) - 1)) << 1 | 1
                items += [XOR << 24 | FENCE | 1, *gate_items(gate, 2)]
            elif cause == "lacks_gates":
                items += [AND << 24 | FENCE | 3, *gate_items((1, 3, 5), 2)]
                tables += board.garble([(AND, True, False, [(1, 3, 5)])])
            elif cause == "slow_host":
                # Two writes a gate that take longer than the chip waits.
                items += [XOR << 24 | FENCE | 2, *gate_items((1, 3, 5), 2), *gate_items((1, 3, 5), 2)]
                pace["period"] = 64 * (board.watchdog // 2 + 10)
            elif cause == "no_tables":
                # More than the queue of tables and the cells hold.
                many = 16 + parameter(dut, "ANDS") + 4
                items += [AND << 24 | many] + [item for _ in range(many) for item in gate_items((1, 3, 5), 2)]
                pace["taken"] = 0
            else:
                items += [XOR << 24 | FENCE | 1, *gate_items((0, 3, 5), 2)]
                pace["latency"] = 65535
                items, tables = board.configure() + items[-3:], []
            error, got, count = await board.run(items, **pace)
            assert error == code, (cause, error)
            assert got == tables[:len(got)], "a table that is wrong before an error"
            if code == STUCK:
                assert count["still"] >= board.watchdog, "too early"
            # It stays, and nothing more goes on than what was under way.
            gates = 0
            for _ in range(150):
                await settle()
                assert value(dut.error_o) == code
                gates += value(dut.gate_o)
                await board.tick()
            assert gates <= 1, "the one that was being fetched"
            cover.hit(cause)
            await board.reset()
            await settle()
            assert value(dut.error_o) == 0 and value(dut.idle_o) == 1 and value(dut.done_o) == 0
            await board.tick()
            await board.fill()
            await board.garbled(12, latency=5, sync=3)
            cover.hit("right_behind")
    # A host that is just fast enough: a gate's three writes within what the chip waits.
    await board.garbled(6, whole=0, period=64 * (board.watchdog // 3 - 10), latency=5)
    cover.hit("slow_but_right")
    cover.check(board.cycles)
