"""ph_controller clock by clock: when each instruction begins, what it moves, and whom it makes fail, beside elements in Python that
hold it up at random."""

import random
from collections import deque

import cocotb
from common import Coverage, begin, clock, parameter, settle, value
from phepu import (
    ACCUMULATE, BASIC, CONTEXT, END, FREE, LINK, LOAD_INPUT, LOAD_WEIGHTS, NO_CONTEXT, NOP, RANGE, REDUCE, STORE, UNKNOWN,
    WATCHDOG, accumulate, context, end, free, instruction, load_input, load_weights, nop, queued, reduce, store,
)

QUEUE = 3
NAMES = {LOAD_INPUT: "load_input", LOAD_WEIGHTS: "load_weights", STORE: "store", CONTEXT: "context", END: "end"}


class Element:
    """What the controller sees of one: marks, and a queue that works now and then."""

    def __init__(self):
        self.slots = self.regions = self.full = 0
        self.queue = deque()
        self.failed, self.error = False, 0
        self.digits = None  # the code that CONTEXT gave

    def fail(self, code):
        if not self.failed:
            self.failed, self.error = True, code
            self.queue.clear()

    def work(self):
        """Does the oldest instruction, if it can; whether it did."""
        if not self.queue:
            return False
        head = self.queue[0]
        if head >> 44 == FREE:
            self.slots &= ~head & 0xFFFF
            self.regions &= ~(head >> 16) & 3
        elif head >> 44 == REDUCE:
            slot = 1 << (head >> 2 & 1)
            if self.full & slot:
                return False
            self.full |= slot
        self.queue.popleft()
        return True

    ready = property(lambda self: self.failed or len(self.queue) < QUEUE)
    idle = property(lambda self: self.failed or not self.queue)
    outputs = property(lambda self: 3 if self.failed else self.full)
    busy_slots = property(lambda self: 0 if self.failed else self.slots)
    busy_regions = property(lambda self: 0 if self.failed else self.regions)


class Bench:
    def __init__(self, dut, rng, cover):
        self.dut, self.rng = dut, rng
        self.coverage = cover
        self.count, self.inputs, self.weights = (parameter(dut, name) for name in ("ELEMENTS", "INPUTS", "WEIGHTS"))
        self.all = (1 << self.count) - 1
        self.cycles = 0

    def hit(self, name, condition=True):
        if name in self.coverage.goals:
            self.coverage.hit(name, condition)

    async def start(self, program, watchdog=0, given=1.0, works=0.5, fails=0.0, room=1.0):
        """From reset; `given`, `works`, `fails`, `room`: how often a word of instructions is there, an element works, one fails
        by itself, there is room for words out."""
        if self.cycles:
            self.dut.rst_ni.value = 0
            await clock(self.dut)
            self.dut.rst_ni.value = 1
        else:
            await begin(
                self.dut, watchdog_i=0, valid_i=0, word_i=0, ready_i=0, slots_busy_i=0, regions_busy_i=0, full_i=0, idle_i=0,
                progress_i=0, failed_i=0, error_i=0, counters_i=0, room_i=1, empty_i=1, moved_i=0, blocked_i=0, waits_i=0,
                dropped_i=0,
            )
        self.dut.watchdog_i.value = self.watchdog = watchdog
        self.given, self.works, self.fails, self.room_often = given, works, fails, room
        self.program = program + [nop()] * (-len(program) % 4)
        self.words = deque(
            sum(self.program[i + k] << 64 * k for k in range(4)) for i in range(0, len(self.program), 4)
        )
        self.elements = [Element() for _ in range(self.count)]
        self.executed = self.still = 0
        self.there = self.begun = self.offered = False
        self.left = 0          # words that the instruction still moves
        self.bus = None        # what the bus must carry in this clock
        self.chip_error = 0
        self.moved = self.blocked = self.waits = self.dropped = False
        self.give_up = False
        self.later, self.taken = [], 0
        # The first start's reset ends a clock before this.
        self.clocks = int(self.cycles == 0)
        self.report = dict(bus=0, wait_bus=0, wait_output=0, wait_link=self.clocks)

    def masked(self, mask):
        return [e for e in range(self.count) if mask >> e & 1]

    def decode(self, word):
        """What an instruction comes to in this clock: whom it makes fail and why, whom it waits for, what it moves."""
        op, mask = word >> 60, word >> 44 & self.all
        live = [e for e in self.masked(mask) if not self.elements[e].failed]
        bad, code, waits, words, place, start = [], 0, [], 0, 0, 0

        def field(low, bits):
            return word >> low & (1 << bits) - 1

        def those(when):
            return [e for e in live if when(self.elements[e])]

        if op == LOAD_INPUT:
            slot, count, start = field(0, 4), field(4, 5), field(9, 16)
            strangers = those(lambda x: x.digits is None)
            digits = (self.elements[live[0]].digits if live else 0) or 0
            words, place = count * (4 << digits), slot * 16
            if strangers:
                bad, code = strangers, NO_CONTEXT
            elif not 1 <= count <= 16 - slot or start + words > self.inputs:
                bad, code = live, RANGE
            else:
                bad, code = those(lambda x: x.digits != digits), RANGE
            waits = those(lambda x: x.slots >> slot & (1 << count) - 1)
        elif op == LOAD_WEIGHTS:
            place, words, start = field(0, 9), field(9, 9), field(18, 16)
            if not 1 <= words <= 288 - place or start + words > self.weights:
                bad, code = live, RANGE
            waits = those(lambda x: x.regions & field(34, 2))
        elif op == CONTEXT:
            start, words = field(4, 16), 3 * (4 << field(0, 2)) + 1
            if field(0, 2) == 3 or field(2, 2) == 3 or start + words > self.weights:
                bad, code = live, RANGE
            waits = those(lambda x: x.queue)
        elif op == STORE:
            if mask.bit_count() != 1:
                bad, code = live, RANGE
            elif live and self.elements[live[0]].digits is None:
                bad, code = live, NO_CONTEXT
            else:
                waits = [e for e in self.masked(mask) if not self.elements[e].outputs >> field(0, 1) & 1]
                words = 4 << (self.elements[self.masked(mask)[0]].digits or 0)
        elif op == END:
            waits = [e for e in range(self.count) if not self.elements[e].idle]
            words = 2 * self.count
        elif op == NOP:
            pass
        elif op < FREE:
            bad, code = live, UNKNOWN
        else:
            waits = [e for e in self.masked(mask) if not self.elements[e].ready]
        nothing = op == NOP or 5 <= op < FREE or op in (LOAD_INPUT, LOAD_WEIGHTS, CONTEXT) and not live or (
            op == STORE and mask.bit_count() != 1
        )
        return op, mask, live, bad, code, [] if nothing else waits, nothing, words, place, start

    def drive(self):
        rng, dut = self.rng, self.dut
        self.offered = self.offered or bool(self.words) and rng.random() < self.given
        dut.valid_i.value = int(self.offered)
        dut.word_i.value = self.words[0] if self.offered else rng.getrandbits(256)
        self.room = rng.random() < self.room_often
        self.empty = rng.random() < self.room_often
        self.counters = rng.getrandbits(512)
        pack = lambda bits, get: sum(get(x) << bits * e for e, x in enumerate(self.elements))
        dut.ready_i.value, dut.idle_i.value = pack(1, lambda x: x.ready), pack(1, lambda x: x.idle)
        dut.slots_busy_i.value, dut.regions_busy_i.value = pack(16, lambda x: x.busy_slots), pack(2, lambda x: x.busy_regions)
        dut.full_i.value, dut.failed_i.value = pack(2, lambda x: x.outputs), pack(1, lambda x: x.failed)
        dut.error_i.value = pack(8, lambda x: x.error)
        self.worked = [not x.failed and rng.random() < self.works and self.would(x) for x in self.elements]
        self.progress = sum(w << e for e, w in enumerate(self.worked))
        dut.progress_i.value = self.progress
        dut.room_i.value, dut.empty_i.value, dut.counters_i.value = self.room, self.empty, self.counters
        dut.moved_i.value, dut.blocked_i.value = self.moved, self.blocked
        dut.waits_i.value, dut.dropped_i.value = self.waits, self.dropped

    @staticmethod
    def would(x):
        """Whether the element's oldest instruction can be done."""
        head = x.queue[0] if x.queue else None
        return head is not None and not (head >> 44 == REDUCE and x.full >> (head >> 2 & 1) & 1)

    async def step(self):
        """A clock, checked."""
        dut = self.dut
        self.drive()
        await settle()
        out = {name: value(getattr(dut, name)) for name in (
            "ready_o", "read_inputs_o", "read_weights_o", "read_address_o", "bus_valid_o", "bus_kind_o", "bus_address_o",
            "bus_last_o", "context_o", "claim_o", "fail_o", "fail_code_o", "issue_o", "instruction_o", "store_read_o",
            "store_done_o", "push_o", "stored_o", "element_o", "executed_o", "give_up_o", "idle_o",
        )}
        assert out["executed_o"] == self.executed
        assert out["give_up_o"] == self.give_up
        expected = dict.fromkeys(
            ("read_inputs_o", "read_weights_o", "bus_valid_o", "context_o", "claim_o", "fail_o", "issue_o", "store_read_o",
             "store_done_o", "push_o", "stored_o"), 0)
        bus, self.bus = self.bus, None
        if bus:
            expected["bus_valid_o"] = bus[0]
            assert (out["bus_kind_o"], out["bus_address_o"], out["bus_last_o"]) == bus[1:]
        done = begins = False
        waits, moving, bad = [], self.begun, []
        if self.there:
            op, mask, live, bad, code, waits, nothing, words, place, start = self.decode(self.program[self.executed])
            if self.begun:
                done = self.move(out, expected)
                waits, bad = [], []
            elif bad:
                expected["fail_o"], expected["fail_code_o"] = sum(1 << e for e in bad), code
                self.hit(f"{NAMES.get(op, 'unknown')}_error_{code}")
            else:
                held = op == STORE and not nothing and not self.room or op == END and not self.empty
                self.hit("held_by_output", held and not waits)
                begins = not waits and not held
                if waits:
                    self.hit(f"{NAMES.get(op, 'issue')}_waits")
                if begins:
                    self.hit(f"{NAMES.get(op, 'issue')}_begins", not nothing)
                    done = self.begin(out, expected, op, mask, live, nothing, words, place, start)
                elif op in (STORE, END):
                    self.report["wait_output"] += 1
                else:
                    self.report["wait_bus"] += 1
        else:
            self.report["wait_link"] += 1
            self.hit("no_instruction", bool(self.words))
        # The watchdog.
        idle = all(x.idle for x in self.elements)
        late = {e for e in range(self.count) if not self.elements[e].idle} | set(waits)
        moves = self.moved or self.progress or begins or bad or moving
        barks = bool(self.watchdog) and self.still >= self.watchdog and not moves and not self.blocked
        if barks:
            expected["fail_o"], expected["fail_code_o"] = sum(1 << e for e in late), WATCHDOG
            self.hit("watchdog", bool(late))
        gives_up = barks and not late and not self.there and self.waits
        self.still = 0 if moves or barks else self.still + (not self.blocked)
        for name, wanted in expected.items():
            assert name == "fail_code_o" and not expected["fail_o"] or out[name] == wanted, (
                f"{name} is {out[name]:#x} and not {wanted:#x} at instruction {self.executed}")
        take = self.offered and (not self.there or done)
        assert out["ready_o"] == (take and self.taken % 4 == 3)
        assert out["idle_o"] == (not self.there and not self.offered and not expected["bus_valid_o"])
        if not self.chip_error:
            op = self.program[self.executed] >> 60 if self.there else NOP
            none = begins and op == STORE and not self.program[self.executed] >> 44 & self.all
            self.chip_error = LINK if self.dropped else WATCHDOG if self.give_up else RANGE if none else 0
        self.after(out, done, take)
        self.give_up = gives_up
        self.cycles += 1
        self.clocks += 1
        await clock(dut)
        return done

    def begin(self, out, expected, op, mask, live, nothing, words, place, start):
        """An instruction begins; whether it is over, too."""
        dut, bits = self.dut, sum(1 << e for e in live)
        if nothing:
            return True
        word = self.program[self.executed]
        if op >= FREE:
            expected["issue_o"] = mask
            assert out["instruction_o"] == queued(word)
            self.hit("broadcast", mask.bit_count() > 1)
            for e in self.masked(mask):
                self.later.append((self.elements[e].queue.append, queued(word)))
            return True
        self.begun, self.left, self.total = True, words, words
        self.to, self.place, self.source = bits, place, start
        if op == END:
            expected["push_o"] = 1
            report = (2 | self.chip_error << 8 | self.count << 16 | self.clocks << 32 | self.executed << 96
                      | self.report["bus"] << 128 | self.report["wait_bus"] << 160 | self.report["wait_output"] << 192
                      | self.report["wait_link"] << 224)
            assert value(dut.word_o) == report, f"{value(dut.word_o):x} and not {report:x}"
        elif op == STORE:
            expected["push_o"] = 1
            self.one = self.masked(mask)[0]
            x = self.elements[self.one]
            self.zero = x.failed
            self.hit("zeros", x.failed)
            tag = word >> 1 & 0xFFFF_FFFF
            header = 1 | self.one << 8 | (x.error if x.failed else 0) << 16 | tag << 24 | words << 56
            assert value(dut.word_o) == header
        elif op == CONTEXT:
            expected["context_o"] = bits
            assert value(dut.digits_o) == word & 3 and value(dut.width_o) == word >> 2 & 3
            for e in live:
                self.later.append((lambda code, e=e: setattr(self.elements[e], "digits", code), word & 3))
        else:
            expected["claim_o"] = bits
            slots = ((1 << (word >> 4 & 31)) - 1) << (word & 15) if op == LOAD_INPUT else 0
            regions = word >> 34 & 3 if op == LOAD_WEIGHTS else 0
            assert value(dut.claim_slots_o) == slots and value(dut.claim_regions_o) == regions
            self.hit("broadcast", len(live) > 1)
            for e in live:
                self.later.append((lambda both, e=e: self.claim(e, *both), (slots, regions)))
        return False

    def claim(self, e, slots, regions):
        self.elements[e].slots |= slots
        self.elements[e].regions |= regions

    def move(self, out, expected):
        """A word of the instruction; whether it is the last."""
        op, i = self.program[self.executed] >> 60, self.total - self.left
        if op == END:
            expected["push_o"] = 1
            assert out["element_o"] == i // 2
            assert value(self.dut.word_o) == self.counters >> 256 * (i % 2) & (1 << 256) - 1
        elif op == STORE:
            expected["push_o"] = expected["stored_o"] = 1
            expected["store_read_o"] = 1 << self.one
            expected["store_done_o"] = (self.left == 1) << self.one
            assert value(self.dut.store_index_o) == i and value(self.dut.store_slot_o) == self.program[self.executed] & 1
            assert out["element_o"] == self.one and value(self.dut.zero_o) == self.zero
            if self.left == 1:
                slot = 1 << (self.program[self.executed] & 1)
                self.later.append((lambda keep: setattr(self.elements[self.one], "full", self.elements[self.one].full & keep), ~slot))
        else:
            expected["read_inputs_o"], expected["read_weights_o"] = op == LOAD_INPUT, op != LOAD_INPUT
            assert out["read_address_o"] == self.source + i
            digits = self.total // (self.program[self.executed] >> 4 & 31) if op == LOAD_INPUT else 1
            at = self.place + (i // digits * 16 + i % digits if op == LOAD_INPUT else i)
            kind = {LOAD_INPUT: 0, LOAD_WEIGHTS: 1, CONTEXT: 2}[op]
            self.bus = (self.to, kind, at, int(op == LOAD_INPUT and i % digits == digits - 1))
        self.report["bus"] += op != END
        self.left -= 1
        return self.left == 0

    def after(self, out, done, take):
        """What this clock's end changes."""
        if done:
            self.executed += 1
            self.begun = False
        if out["ready_o"]:
            self.words.popleft()
            self.offered = False
        self.taken += take
        self.there = take or self.there and not done
        for e, x in enumerate(self.elements):
            if self.worked[e] and not x.failed:
                x.work()
        for act, given in self.later:
            act(given)
        self.later.clear()
        for e, x in enumerate(self.elements):
            if out["fail_o"] >> e & 1:
                x.fail(out["fail_code_o"])
            elif self.rng.random() < self.fails:
                x.fail(3)

    async def run(self, most=30_000):
        for _ in range(most):
            await self.step()
            if self.executed == len(self.program):
                await self.step()
                return
        raise AssertionError(f"stuck at instruction {self.executed}: {self.program[self.executed]:#018x}")


def programs(bench, rng, length, wrong=0.0):
    """A random program, in order as it must be: what is loaded was freed before, what is stored is given before; some of it wrong."""
    count, everyone = bench.count, bench.all
    loaded, regions, given, known = [0] * count, [0] * count, [0] * count, {}
    items = []

    def some():
        return rng.choice((everyone, 1 << rng.randrange(count), rng.randrange(1, everyone + 1)))

    def setup(mask, code):
        words = 3 * (4 << code) + 1
        items.append(context(mask, 4 << code, rng.choice((2, 4, 8)), rng.choice((0, bench.weights - words, rng.randrange(8)))))
        for e in bench.masked(mask):
            known[e] = code

    if rng.random() < 0.8 or not wrong:
        setup(everyone, rng.randrange(3))
    else:
        items.append(rng.choice((store(0, 0, 1), load_input(everyone, 0, 1, 0))))
    for _ in range(length):
        kind, mask = rng.randrange(12), some()
        if rng.random() < wrong:
            mask = 1 << rng.randrange(count)
            items.append(rng.choice((
                instruction(rng.choice((5, 6, 7)), mask), load_input(mask, 9, 8, 0), load_input(mask, 0, 0, 0), load_input(mask, 3, 17, 0),
                load_input(mask, 0, 1, bench.inputs - 3), load_weights(mask, 280, 9, 0, 1), load_weights(mask, 0, 0, 0, 1),
                load_weights(mask, 0, 3, bench.weights - 2, 1), instruction(STORE, 0), instruction(STORE, everyone),
                instruction(CONTEXT, mask, (3, 0, 2)), instruction(CONTEXT, mask, (3, 2, 2)),
                context(mask, 4, 2, bench.weights - 12),
            )))
        elif kind == 0 and rng.random() < 0.3:
            setup(some() if wrong else everyone, rng.randrange(3))
        elif kind <= 2:
            slot = rng.randrange(16)
            n = rng.randrange(1, 17 - slot)
            slots = ((1 << n) - 1) << slot
            busy = [e for e in bench.masked(mask) if loaded[e] & slots]
            if busy:
                items.append(free(sum(1 << e for e in busy), slots, 0))
            words = n * (4 << max((known.get(e, 0) for e in range(count)), default=0))
            items.append(load_input(mask, slot, n, rng.choice((0, max(bench.inputs - words, 0), rng.randrange(20)))))
            for e in bench.masked(mask):
                loaded[e] |= slots
        elif kind == 3:
            region = rng.randrange(4)
            busy = [e for e in bench.masked(mask) if regions[e] & region]
            if busy:
                items.append(free(sum(1 << e for e in busy), 0, region))
            n = rng.choice((1, 2, rng.randrange(1, 40), 288 if rng.random() < 0.2 else 3))
            items.append(load_weights(mask, rng.choice((0, 288 - n)), n, rng.choice((0, bench.weights - n)), region))
            for e in bench.masked(mask):
                regions[e] |= region
        elif kind == 4:
            items.append(nop())
        elif kind == 5:
            e = rng.randrange(count)
            slot = rng.randrange(2)
            if not given[e] >> slot & 1:
                items.append(reduce(1 << e, 0, slot))
                given[e] |= 1 << slot
        elif kind <= 7:
            e = rng.randrange(count)
            for slot in (0, 1):
                if given[e] >> slot & 1:
                    items.append(store(e, slot, rng.getrandbits(32)))
                    given[e] &= ~(1 << slot)
                    break
        elif kind == 8 and rng.random() < 0.2:
            items.append(end())
        else:
            items.append(accumulate(mask, 0, rng.randrange(16), 1, rng.getrandbits(16)))
    for e in range(count):
        for slot in (0, 1):
            if given[e] >> slot & 1:
                items.append(store(e, slot, 7))
    return items + [end()]


@cocotb.test()
async def random_programs(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    waits = {f"{name}_waits": 8 for name in (*NAMES.values(), "issue")}
    begins = {f"{name}_begins": 10 for name in (*NAMES.values(), "issue")}
    cover = Coverage("random_programs", **waits, **begins, broadcast=20, held_by_output=6, no_instruction=20)
    bench = Bench(dut, rng, cover)
    for given, works, room in ((1, 0.5, 1), (0.1, 1, 1), (1, 0.03, 0.3), (1, 0.1, 0.9)):
        for _ in range(3):
            await bench.start(programs(bench, rng, 50), given=given, works=works, room=room)
            await bench.run()
            assert not any(x.failed for x in bench.elements)
    cover.check(bench.cycles)


@cocotb.test()
async def errors(dut):
    rng = random.Random(cocotb.RANDOM_SEED + 1)
    cover = Coverage(
        "errors", unknown_error_5=2, load_input_error_4=10, load_input_error_7=3, load_weights_error_4=3, store_error_4=2,
        store_error_7=1, context_error_4=3, zeros=20, chip_range=1, chip_link=3, **{f"{NAMES[op]}_begins": 10 for op in NAMES},
    )
    bench = Bench(dut, rng, cover)
    for n in range(40):
        await bench.start(programs(bench, rng, 30, wrong=0.1), works=0.4, fails=0.002 if n % 2 else 0, given=0.8)
        bench.dropped = n % 10 == 9
        await bench.run()
        cover.hit("chip_range", bench.chip_error == RANGE)
        cover.hit("chip_link", bench.chip_error == LINK)
    cover.check(bench.cycles)


@cocotb.test()
async def watchdog(dut):
    """Every kind of wait that never ends, one after the other: only those who are waited for fail, and all goes on."""
    rng = random.Random(cocotb.RANDOM_SEED + 2)
    cover = Coverage(
        "watchdog", watchdog=12, load_input_waits=50, load_weights_waits=50, store_waits=50, context_waits=50, end_waits=50,
        issue_waits=50, blocked=1, given_up=1, moved=1,
    )
    bench = Bench(dut, rng, cover)
    setup = [context(bench.all, 4, 8, 0)]
    other, one = bench.all & ~1, 1
    cases = {
        "slots": ([load_input(one, 0, 2, 0), load_input(bench.all, 1, 1, 0)], 1),
        "regions": ([load_weights(one, 0, 1, 0, 1), load_weights(bench.all, 0, 1, 0, 3)], 1),
        "store": ([store(0, 1, 5)], 1),
        "queue": ([accumulate(one, 0, 0, 1, 0)] * (QUEUE + 1), 0),
        "context": ([accumulate(one, 0, 0, 1, 0), context(bench.all, 8, 8, 0)], 0),
        "end": ([accumulate(one, 0, 0, 1, 0), end()], 0),
    }
    for name, (items, works) in cases.items():
        for limit in (30, 90):
            await bench.start(setup + items + [reduce(other, 0, 0)] + [store(e, 0, e) for e in range(bench.count)] + [end()], limit, works=works)
            if works == 0:
                # Only the first one never works.
                bench.works = 1
                bench.would = lambda x, b=bench: x is not b.elements[0] and Bench.would(x)
            await bench.run()
            bench.__dict__.pop("would", None)
            assert [x.error for x in bench.elements] == [WATCHDOG] + [0] * (bench.count - 1), name
    # The clock stands still while words can't go out, and begins again when one comes in.
    await bench.start(setup + [store(0, 0, 1), end()], 40)
    for blocked, moved, clocks in ((1, 0, 200), (0, 1, 100), (0, 0, 30), (0, 1, 1), (0, 0, 35), (1, 0, 50), (0, 0, 3)):
        bench.blocked, bench.moved = bool(blocked), bool(moved)
        for _ in range(clocks):
            await bench.step()
        assert not bench.elements[0].failed
    cover.hit("blocked")
    cover.hit("moved")
    bench.blocked = bench.moved = False
    for _ in range(60):
        await bench.step()
    assert bench.elements[0].error == WATCHDOG and bench.executed == len(bench.program)
    # A packet that waits for instructions that never come is let through; not while there is an instruction.
    await bench.start([end()], 25)
    bench.waits = True
    seen = 0
    for _ in range(120):
        await bench.step()
        seen += bench.give_up
    assert seen >= 2 and bench.chip_error == WATCHDOG
    cover.hit("given_up")
    cover.check(bench.cycles)
