"""hg_board, today's overlay on its board, against garbling in Python: random programs garbled, every table and label compared,
then evaluated with the tables that came out, and compared with plain bits. Its rate, and what stops it."""

import random

import cocotb
from common import Coverage, Sink, Source, begin, clock, parameter, settle, value, words
from garbling import aes_expand, garble_halves

XOR, AND, FULL, LOAD, STORE = range(5)
GATE, HEADER, REGISTER = range(3)
OFFSET, KEY, FIRST, STRIDE, EVALUATE = 0, 2, 4, 5, 6
MASK = (1 << 64) - 1


def gate(a=0, b=0, c=0, out=0, out2=0):
    return a | b << 19 | c << 38 | out << 57 | out2 << 76


def item(kind, payload, wait=0):
    return payload | kind << 96 | wait << 98


def header(count, operation, fence=0, sync=0):
    return item(HEADER, count | operation << 24 | fence << 27 | sync << 28)


def register(number, data):
    return item(REGISTER, number << 64 | data)


def wide(number, data):
    """Both halves of a register of 128 bits."""
    return [register(number, data & MASK), register(number + 1, data >> 64)]


class Board:
    def __init__(self, dut, rng):
        self.dut, self.rng = dut, rng
        self.lanes, self.places, self.ddr = (parameter(dut, name) for name in ("LANES", "PLACES", "WORDS"))
        self.link = Source(dut.link_valid_i, dut.link_ready_o, dut.link_item_i, rng=rng)
        self.feed = Source(dut.feed_valid_i, dut.feed_ready_o, dut.feed_i, rng=rng)
        self.tables = Sink(dut.table_valid_o, dut.table_ready_i, dut.table_o, rng=rng)
        self.cycles = 0

    async def start(self, latency=36, period=0, sync=0):
        """From reset, with nothing on the way to the chip."""
        for queue in (self.link, self.feed):
            queue.items.clear()
            queue.offered = False
        self.tables.taken.clear()
        self.link.often = self.feed.often = self.tables.often = 1
        if self.cycles:
            self.dut.rst_ni.value, self.dut.link_valid_i.value, self.dut.feed_valid_i.value = 0, 0, 0
            await clock(self.dut)
            self.dut.rst_ni.value = 1
        else:
            await begin(
                self.dut, period_i=0, sync_i=0, latency_i=0, link_valid_i=0, link_item_i=0, table_ready_i=0, feed_valid_i=0,
                feed_i=0, poke_i=0, poke_address_i=0, poke_label_i=0,
            )
        self.dut.latency_i.value, self.dut.period_i.value, self.dut.sync_i.value = latency, period, sync
        await self.step()

    async def step(self):
        """A clock; whether a gate begins."""
        for way in (self.link, self.feed, self.tables):
            way.drive()
        await settle()
        sent = bool(self.link.items)
        for way in (self.link, self.feed, self.tables):
            way.sample()
        began, self.idle, self.error = (value(x) for x in (self.dut.gate_o, self.dut.idle_o, self.dut.error_o))
        self.host, self.memory, self.cell = (value(x) for x in (self.dut.waits_host_o, self.dut.waits_ddr_o, self.dut.waits_cell_o))
        self.done = not sent and self.idle and not value(self.dut.table_valid_o)
        self.cycles += 1
        await clock(self.dut)
        return began

    async def run(self, items, most=100_000):
        """Sends items, until all is done; the clocks at which gates began."""
        self.link.items.extend(items)
        began = []
        for n in range(most):
            if await self.step():
                began.append(n)
            assert not self.error, f"error {self.error}"
            if self.done:
                return began
        raise AssertionError("never done")

    def join(self, labels, bits=128):
        return sum(label << bits * lane for lane, label in enumerate(labels))

    def split(self, word, bits=128):
        return [word >> bits * lane & (1 << bits) - 1 for lane in range(self.lanes)]

    async def poke(self, memory, labels):
        """Labels of all places in a memory: 1 is block RAM."""
        self.dut.poke_i.value = 1
        for place, given in enumerate(labels):
            self.dut.poke_address_i.value, self.dut.poke_label_i.value = 2 * place + memory, self.join(given)
            await clock(self.dut)
        self.dut.poke_i.value = 0
        self.cycles += len(labels)

    async def peek(self, memory, count):
        labels = []
        for place in range(count):
            self.dut.poke_address_i.value = 2 * place + memory
            await clock(self.dut)
            await settle()
            labels.append(self.split(value(self.dut.peek_label_o)))
            await clock(self.dut)
        self.cycles += 2 * count
        return labels


class Program:
    """Random batches over all places, and what they do: to labels of 0, and to plain bits, lane by lane."""

    def __init__(self, board, rng, cover, key, offset):
        self.board, self.rng, self.cover, self.offset = board, rng, cover, offset
        self.keys = aes_expand(key)
        self.items = wide(KEY, int.from_bytes(key, "little")) + wide(OFFSET, offset)
        self.number = self.stride = 0
        self.tables = []

        def random_words(bits):
            return [[[words(rng, bits) for _ in range(board.lanes)] for _ in range(n)] for n in (board.ddr, board.places)]

        # Memory 0 is DDR.
        self.labels, self.bits = random_words(128), random_words(1)
        self.begun = [[list(x) for x in memory] for memory in self.labels], [[list(x) for x in memory] for memory in self.bits]
        self.free()
        self.renumber()

    def free(self):
        """Behind a fence anything may be read and written again."""
        self.written, self.read, self.stored, self.loaded = set(), set(), set(), set()

    def renumber(self):
        rng = self.rng
        self.number, self.stride = words(rng, 64), words(rng, 64)
        new = [register(FIRST, self.number), register(STRIDE, self.stride)]
        rng.shuffle(new)
        self.items += new
        self.free()

    def xor(self, *places):
        ram = self.labels[1]
        return [self.fold(x) for x in zip(*(ram[p] for p in places))]

    @staticmethod
    def fold(xs):
        total = 0
        for x in xs:
            total ^= x
        return total

    def ands(self, first, second):
        """An AND in each lane, of labels of 0; its table goes out."""
        pairs = [
            garble_halves(self.keys, self.offset, a, b, self.number + lane * self.stride & MASK)
            for lane, (a, b) in enumerate(zip(first, second))
        ]
        self.number = self.number + 1 & MASK
        self.tables.append(self.board.join([table for _, table in pairs], 256))
        return [label for label, _ in pairs]

    def place(self, taken):
        """One that nobody is in the way of, or None."""
        rng, board = self.rng, self.board
        for _ in range(30):
            place = rng.choice((0, board.places - 1, rng.randrange(board.places), rng.randrange(board.places)))
            if place not in taken:
                return place
        return None

    def word(self, taken):
        free = [word for word in range(self.board.ddr) if word not in taken]
        return self.rng.choice(free) if free else None

    def gate(self, operation):
        """One gate of a batch, or None where it would need a fence."""
        rng, cover, (memory, ram), (memory_bits, bits) = self.rng, self.cover, self.labels, self.bits
        a, b, c = (self.place(self.written) for _ in range(3))
        b = a if rng.random() < 0.1 else b
        out = self.place(self.written)
        out2 = self.place(self.written | {out})
        word = self.word(self.stored if operation == LOAD else self.loaded)
        if None in (a, b, c, out, out2, word):
            return None
        spare = [rng.randrange(1 << 19) for _ in range(3)]  # what isn't asked for may hold anything
        if operation == STORE:
            memory[word], memory_bits[word] = list(ram[a]), list(bits[a])
            self.stored.add(word)
            self.read.add(a)
            return gate(a, word, 0, *spare[:2])
        cover.hit("written_while_read", out in self.read)
        if operation == LOAD:
            ram[out], bits[out] = list(memory[word]), list(memory_bits[word])
            self.loaded.add(word)
            self.written.add(out)
            return gate(spare[0], word, 0, out, spare[1])
        self.read |= {a, b} | ({c} if operation == FULL else set())
        self.written |= {out} | ({out2} if operation == FULL else set())
        cover.hit("twice_the_same", a == b)
        cover.hit("onto_itself", out in (a, b))
        pairs = list(zip(bits[a], bits[b], bits[c]))
        if operation == XOR:
            ram[out], bits[out] = self.xor(a, b), [x ^ y for x, y, _ in pairs]
            return gate(a, b, spare[0], out, spare[1])
        if operation == AND:
            ram[out], bits[out] = self.ands(ram[a], ram[b]), [x & y for x, y, _ in pairs]
            return gate(a, b, spare[0], out, spare[1])
        cover.hit("carry_of_one", any(x + y + z > 1 for x, y, z in pairs))
        total, carry = self.xor(a, b, c), [x ^ y for x, y in zip(self.ands(self.xor(a, c), self.xor(b, c)), ram[c])]
        ram[out], ram[out2] = total, carry
        bits[out], bits[out2] = [x ^ y ^ z for x, y, z in pairs], [(x + y + z) >> 1 for x, y, z in pairs]
        return gate(a, b, c, out, out2)

    def batch(self, most):
        rng, cover = self.rng, self.cover
        operation = rng.randrange(5)
        fence = rng.random() < 0.3
        if fence:
            self.free()
        gates = []
        for _ in range(rng.randrange(most + 1)):
            more = self.gate(operation)
            if more is None:
                break
            gates.append(more)
        sync = rng.random() < 0.15
        cover.hit(f"operation_{operation}", gates)
        cover.hit("without_a_fence", not fence and gates)
        cover.hit("empty_batch", not gates)
        cover.hit("sync", sync)
        self.items.append(header(len(gates), operation, fence, sync))
        self.items += [item(GATE, one) for one in gates]
        if sync:
            # The host may wait for it, and must then know of every one that is counted.
            self.items[-1] |= 1 << 98
            self.free()

    def make(self, batches, most):
        for n in range(batches):
            if n % 12 == 11:
                self.renumber()
                self.cover.hit("renumbered")
            self.batch(most)


@cocotb.test()
async def programs(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    cover = Coverage(
        "programs", **{f"operation_{n}": 8 for n in range(5)}, without_a_fence=40, empty_batch=2, sync=5, renumbered=8,
        written_while_read=20, twice_the_same=10, onto_itself=10, carry_of_one=20, tables=200, table_waits=200, feed_waits=200,
        waits_host=50, waits_memory=50, waits_cell=50, labels=700,
    )
    board = Board(dut, rng)
    # Clocks / 64 of an item, clocks behind a wait, of DDR; how often the link, the tables' way and the feed go on.
    settings = [(0, 0, 1, 1, 1, 1), (22, 3, 36, 1, 0.03, 0.03), (640, 20, 36, 1, 1, 1), (0, 1, 90, 0.7, 0.3, 0.3)]
    for run, (period, sync, latency, link, out, back) in enumerate(settings):
        key, offset = rng.randbytes(16), words(rng, 128) | 1
        program = Program(board, rng, cover, key, offset)
        program.make(32, 14)
        await board.start(latency, period, sync)

        for evaluate in (0, 1):
            labels, bits = program.begun
            first = [
                [[x ^ (bit and evaluate and offset) for x, bit in zip(*place)] for place in zip(labels[m], bits[m])] for m in (0, 1)
            ]
            await board.poke(0, first[0])
            await board.poke(1, first[1])
            board.link.often, board.tables.often, board.feed.often = link, out, back
            if evaluate:
                board.feed.items.extend(program.tables)
            board.link.items.extend([register(EVALUATE, evaluate), *program.items])
            began = 0
            for _ in range(200_000):
                began += await board.step()
                assert not board.error, f"error {board.error}"
                cover.hit("waits_host", board.host)
                cover.hit("waits_memory", board.memory)
                cover.hit("waits_cell", board.cell)
                cover.hit("table_waits", not evaluate and not board.tables.open and value(dut.table_valid_o))
                cover.hit("feed_waits", evaluate and not board.feed.offered and value(dut.feed_ready_o))
                if board.done:
                    break
            assert board.done
            assert began == sum((x >> 96 & 3) == GATE for x in program.items), "each gate begins once"
            if evaluate:
                assert not board.feed.items and not board.feed.offered, "every table was taken"
                assert not board.tables.taken, "nothing comes out of an evaluation"
            else:
                assert board.tables.taken == program.tables, "tables, in the order of the ANDs"
                cover.hits["tables"] += board.lanes * len(program.tables)
                board.tables.taken.clear()
            for memory, count in ((0, board.ddr), (1, board.places)):
                expected = [
                    [x ^ (bit and evaluate and offset) for x, bit in zip(*place)]
                    for place in zip(program.labels[memory], program.bits[memory])
                ]
                assert await board.peek(memory, count) == expected, f"run {run}, memory {memory}, evaluate {evaluate}"
                cover.hits["labels"] += count * board.lanes
    cover.check(board.cycles)


@cocotb.test()
async def full_rate(dut):
    """A gate at every clock, as long as the block RAM's one write a clock allows it."""
    rng = random.Random(cocotb.RANDOM_SEED + 1)
    cover = Coverage("full_rate", gates=1600)
    board = Board(dut, rng)
    await board.start()
    key = rng.randbytes(16)
    await board.run(wide(KEY, int.from_bytes(key, "little")) + wide(OFFSET, 1) + [register(FIRST, 0), register(STRIDE, 0)])
    half, count = board.places // 2, 200

    def one(operation, n):
        """Reads the lower half, writes the upper."""
        out, word = half + n % half, n % board.ddr
        if operation == STORE:
            return item(GATE, gate(n % half, word))
        if operation == LOAD:
            return item(GATE, gate(0, word, 0, out))
        return item(GATE, gate(n % half, (n + 1) % half, (n + 2) % half, out, half + (n + half // 2) % half))

    def batch(operation, number=count):
        return [header(number, operation, fence=1), *(one(operation, n) for n in range(number))]

    for evaluate in (0, 1):
        await board.run([register(EVALUATE, evaluate)])
        for operation in (XOR, AND, LOAD, STORE):
            board.feed.items.extend(rng.getrandbits(len(dut.feed_i)) for _ in range(count) if evaluate and operation == AND)
            began = await board.run(batch(operation))
            assert began[-1] - began[0] == len(began) - 1 == count - 1, f"operation {operation}: {began}"
            cover.hits["gates"] += count
    assert len(board.tables.taken) == count
    await board.run([register(EVALUATE, 0)])
    # Two writes each.
    began = await board.run(batch(FULL))
    assert count - 1 <= began[-1] - began[0] <= 2 * count
    # ANDs and XORs in turns, none of which waits for those before: a header more is a clock more.
    mixed = []
    for n in range(10):
        batches = batch(n % 2, 40)
        batches[0] = header(40, n % 2)
        mixed += batches
    began = await board.run(mixed)
    assert began[-1] - began[0] == len(mixed) - 2
    # LOADs that the tables' way doesn't hold up, ANDs that it does, nothing lost.
    board.tables.often, before = 0.05, len(board.tables.taken)
    await board.run(batch(AND) + batch(LOAD, 30))
    assert len(board.tables.taken) == before + count
    cover.check(board.cycles)


@cocotb.test()
async def writes_in_turn(dut):
    """LOADs whose words come while XORs are written, then FULL adders whose sums wait for the ANDs before them until behind their
    carries: a fence waits for every write."""
    rng = random.Random(cocotb.RANDOM_SEED + 3)
    cover = Coverage("writes_in_turn", sums=24, loads=7, slow_stores=1, slow_loads=1)
    board = Board(dut, rng)
    await board.start()
    half, count, loads = board.places // 2, 24, 7
    memory, ram = ([[words(rng, 128) for _ in range(board.lanes)] for _ in range(n)] for n in (board.ddr, board.places))
    await board.poke(0, memory)
    await board.poke(1, ram)
    # The lower half is read; whatever nobody asks for goes to its last place.
    last, fulls = half - 1, [(n, n + 1, n + 2) for n in range(count)]
    items = [*wide(KEY, 1), *wide(OFFSET, 1), register(FIRST, 0), register(STRIDE, 0), register(EVALUATE, 0)]
    for operation, fence, gates in (
        (LOAD, 0, [gate(0, n, 0, half + count + n) for n in range(loads)]),
        (XOR, 0, [gate(n % count, 1, 0, last) for n in range(60)]),
        (AND, 0, [gate(n % count, 1, 0, last) for n in range(150)]),
        (FULL, 0, [gate(*abc, half + n, last) for n, abc in enumerate(fulls)]),
        (XOR, 1, [gate(half + n, half + (n + 1) % count, 0, n) for n in reversed(range(count))]),
    ):
        items += [header(len(gates), operation, fence), *(item(GATE, one) for one in gates)]
    began = await board.run(items)
    assert len(began) == loads + 60 + 150 + 2 * count and len(board.tables.taken) == 150 + count
    after = await board.peek(1, board.places)
    sums = [[a ^ b ^ c for a, b, c in zip(*(ram[p] for p in abc))] for abc in fulls]
    assert after[half:half + count] == sums
    assert after[:count] == [[x ^ y for x, y in zip(sums[n], sums[(n + 1) % count])] for n in range(count)]
    assert after[half + count:half + count + loads] == memory[:loads]
    cover.hits.update(sums=count, loads=loads)
    # A memory that is so slow that it takes no more: STOREs and LOADs wait, and come in order.
    dut.latency_i.value = 300
    for operation in (STORE, LOAD):
        gates = [gate(n % half, n % board.ddr, 0, half + n % board.ddr % half) for n in range(150)]
        began = await board.run([header(len(gates), operation), *(item(GATE, one) for one in gates)])
        cover.hit("slow_loads" if operation == LOAD else "slow_stores", began[-1] - began[0] >= 300)
    memory = [after[max(n for n in range(150) if n % board.ddr == word) % half] for word in range(board.ddr)]
    assert await board.peek(0, board.ddr) == memory
    assert (await board.peek(1, board.places))[half:half + min(board.ddr, half)] == memory[:half]
    cover.check(board.cycles)


@cocotb.test()
async def stops(dut):
    """Each error by each way to it, and nothing begins behind it; what is just allowed isn't one."""
    rng = random.Random(cocotb.RANDOM_SEED + 2)
    cover = Coverage("stops", error_1=11, error_2=32, error_3=3, allowed=16)
    board = Board(dut, rng)
    watchdog = parameter(dut, "WATCHDOG")
    places, ddr = board.places, board.ddr
    key = wide(KEY, 1) + wide(OFFSET, 1) + [register(FIRST, 0), register(STRIDE, 0), register(EVALUATE, 0)]

    async def stopped(items, expected, tables=1):
        await board.start()
        board.tables.often = tables
        behind = [header(3, XOR), *[item(GATE, gate())] * 3]
        board.link.items.extend([*items, *behind])
        for n in range(3 * watchdog):
            await board.step()
            if board.error:
                break
        assert board.error == expected, f"{board.error} for {expected}"
        for _ in range(20):
            assert not await board.step(), "a gate begins behind an error"
            assert board.error == expected
        cover.hit(f"error_{expected}")

    xor = item(GATE, gate())
    for items in (
        [xor], [header(1, XOR), xor, xor], [header(0, XOR), xor], [header(2, XOR), xor, header(1, AND)],
        [header(1, XOR), register(STRIDE, 1)], [header(1, 5), xor], [header(1, 7), xor], [register(7, 0)], [register(15, 0)],
        [item(3, 0)], [header(2, XOR), xor, item(3, 0)],
    ):
        await stopped(items, 1)
    fields = {XOR: ("a", "b", "out"), AND: ("a", "b", "out"), FULL: ("a", "b", "c", "out", "out2"), LOAD: ("out",), STORE: ("a",)}
    for operation, names in fields.items():
        for name in names:
            for past in (places, (1 << 19) - 1):
                await stopped([*key, header(1, operation), item(GATE, gate(**{name: past}))], 2)
    for operation in (LOAD, STORE):
        for past in (ddr, 1 << 20, (1 << 38) - 1):
            await stopped([*key, header(1, operation), item(GATE, past << 19)], 2)
    # No table is fed; none is taken; there is no key.
    await stopped([*key, register(EVALUATE, 1), header(1, AND), xor], 3)
    await stopped([*key, header(100, AND), *[xor] * 100], 3, tables=0)
    await stopped([header(1, AND), xor], 3)
    # The last places, and what an operation doesn't look at.
    last, junk = places - 1, (1 << 19) - 1
    for operation, one in (
        (XOR, gate(last, last, junk, last, junk)), (AND, gate(last, last, junk, last, junk)), (FULL, gate(last, last, last, last, 0)),
        (FULL, gate(last, last, last, 0, last)), (LOAD, gate(junk, 0, 0, last, junk)), (STORE, gate(last, 0, 0, junk, junk)),
        (LOAD, gate(junk, ddr - 1, 0, last, junk)), (STORE, gate(last, ddr - 1, 0, junk, junk)),
    ):
        for fence in (0, 1):
            await board.start()
            assert len(await board.run([*key, header(1, operation, fence, 1), item(GATE, one, 1)])) == 1
            assert value(dut.done_o) == 1
            cover.hit("allowed")
    # A host that is slow is no error.
    for _ in range(watchdog + 50):
        await board.step()
        assert not board.error
    cover.check(board.cycles)
