"""sf_controller between memories and cells in Python: every gate gets its labels, every result its place, once.

Gates read and write places of both memories at random. One is offered when nothing it reads or writes is still on its way,
as the host's fences see to it, so that after each run memory must hold what the gates give in their order."""

import random
from collections import deque

import cocotb
from cocotb.triggers import Timer
from common import Coverage, begin, clock, parameter, settle, value, words


@cocotb.test()
async def labels(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    label, address, places = (parameter(dut, name) for name in ("LABEL", "ADDRESS", "PLACES"))
    index, word_bits = (places - 1).bit_length(), address - 3
    ddr_words = min(8, 1 << word_bits)
    top = (1 << label) - 1
    ends = [f"{a}_{b}_to_{out}" for a in ("ram", "ddr") for b in ("ram", "ddr") for out in ("ram", "ddr")]
    cover = Coverage(
        "labels", gates=1200, cell_busy=100, both_results=100, ports_busy=50, read_waits_for_write=50, write_on_0=100,
        write_on_1=50, both_write=20, retired_2=20, retired_3=1, handed_and_taken=100, own_operand=10, same_operand=20,
        last_place=20, latency_1=50, results_pause=20, **dict.fromkeys(ends, 30),
    )
    await begin(
        dut, valid_i=0, and_i=0, gate_i=0, cell_ready_i=0, result_valid_i=0, result_label_i=0, result_out_i=0, ram_data_i=0,
        ddr_complete_i=0, ddr_data_i=0,
    )

    def somewhere():
        if rng.random() < 0.5:
            return rng.choice((places - 1, rng.randrange(places))) << 1 | 1
        return rng.randrange(4 * ddr_words) << 1

    def kind(where):
        return "ram" if where & 1 else "ddr"

    cycles = 0
    memory = {where << 1 | 1: words(rng, label) for where in range(places)}
    memory |= {where << 1: words(rng, label) for where in range(4 * ddr_words)}
    # Clocks of an access (None: of each its own; 0: both ports end together, with a write of the block RAM, where they can), how often a cell is free, clocks in a cell, how often a gate is offered.
    for latency, takes, cell_wait, often in (
        (36, 0.9, 1, 1), (1, 1, 1, 1), (5, 0.5, 60, 1), (20, 1, 12, 0.5), (2, 0.3, 3, 1), (None, 1, 30, 1), (0, 1, 8, 1),
    ):
        truth = dict(memory)
        pending = []  # outs of gates that are not finished
        fetched, cells = None, [deque(), deque()]
        expected = [deque(), deque()]
        waited, port_was, length = [0, 0], [None, None], [0, 0]
        ram_asked, gates, made, retired = [None, None], 200, 0, 0
        offered, quiet = None, 0
        while made < gates or pending or fetched:
            if offered is None and made < gates and rng.random() < often:
                is_and = rng.random() < 0.5
                a, b, out = somewhere(), somewhere(), somewhere()
                b = a if rng.random() < 0.05 else b
                out = rng.choice((a, b)) if rng.random() < 0.05 else out
                if not {a, b, out} & set(pending):
                    offered = is_and, a, b, out
            is_and, a, b, out = offered or (rng.random() < 0.5, somewhere(), somewhere(), somewhere())
            dut.valid_i.value, dut.and_i.value = int(offered is not None), int(is_and)
            dut.gate_i.value = out << 2 * address | b << address | a
            # Cells: each result after a while, at the head of its kind's queue until it is taken.
            quiet = quiet - 1 if quiet else rng.choice((0,) * 40 + (30,))
            cover.hit("results_pause", quiet > 0)
            there = [bool(queue) and queue[0][2] <= cycles and (not quiet or queue[0][3]) for queue in cells]
            heads = [queue[0] if there[i] else (rng.getrandbits(label), rng.getrandbits(address)) for i, queue in enumerate(cells)]
            for i, queue in enumerate(cells):
                if there[i]:
                    queue[0][3] = True  # an offer stays
            dut.result_valid_i.value = there[0] | there[1] << 1
            dut.result_label_i.value = heads[0][0] | heads[1][0] << label
            dut.result_out_i.value = heads[0][1] | heads[1][1] << address
            cell_ready = rng.random() < takes
            dut.cell_ready_i.value = int(cell_ready)
            # Block RAM: what was asked for the clock before; else junk.
            ram = [memory[w] if w is not None else rng.getrandbits(label) for w in ram_asked]
            dut.ram_data_i.value = ram[0] | ram[1] << label
            dut.ddr_complete_i.value, dut.ddr_data_i.value = 0, rng.getrandbits(1024)
            # The ports' requests are registers': they can be read before `complete` answers them.
            await settle()
            request = [None, None]
            for p in range(2):
                if value(dut.ddr_valid_o) >> p & 1:
                    word = value(dut.ddr_word_o) >> word_bits * p & (1 << word_bits) - 1
                    request[p] = bool(value(dut.ddr_write_o) >> p & 1), word
                    assert port_was[p] in (None, request[p]), "a request that changes before it is complete"
                    assert word < ddr_words
                    if waited[p] == 0:
                        length[p] = latency or (rng.randrange(1, 16) if latency is None else 20)
            complete = [request[p] is not None and waited[p] + 1 >= length[p] for p in range(2)]
            if latency == 0 and all(entry and entry[0] for entry in request) and any(there) and heads[there[1]][1] & 1:
                complete = [True, True]
            await Timer(1, "ps")
            dut.ddr_complete_i.value = complete[0] | complete[1] << 1
            data = 0
            for p in range(2):
                for lane in range(4):
                    known = complete[p] and not request[p][0]
                    data |= (memory[request[p][1] << 3 | lane << 1] if known else rng.getrandbits(128)) << 512 * p + 128 * lane
            dut.ddr_data_i.value = data
            await settle()
            ready, cell_valid = value(dut.ready_o), value(dut.cell_valid_o)
            assert not value(dut.outside_o)
            # A gate that goes to its cell has its operands' labels.
            handed = cell_valid and cell_ready
            if cell_valid:
                assert fetched, "a gate that nobody sent"
                got = tuple(value(port) for port in (dut.cell_and_o, dut.cell_a_o, dut.cell_b_o, dut.cell_out_o))
                assert got == (fetched[0], truth_of[0], truth_of[1], fetched[3]), "another gate's labels"
                cover.hit("cell_busy", not cell_ready)
            # One result a clock to its place, ANDs first.
            taken = [there[i] and bool(value(dut.result_ready_o) >> i & 1) for i in range(2)]
            assert not all(taken)
            busy = [request[p] is not None for p in range(2)]
            if any(there):
                first = int(there[1])
                to_ram = heads[first][1] & 1
                assert taken[first] == (to_ram or not all(busy)), "a result waits only for a port"
                assert not taken[1 - first]
                cover.hit("ports_busy", not to_ram and all(busy))
                cover.hit("both_results", all(there))
                if taken[first]:
                    assert expected[first].popleft() == heads[first][:2]
                    cells[first].popleft()
                    assert value(dut.ram_write_o) == to_ram
                    if to_ram:
                        assert value(dut.ram_write_place_o) == heads[first][1] >> 1 and value(dut.ram_data_o) == heads[first][0]
            if not any(taken):
                assert not value(dut.ram_write_o)
            reads, ram_asked = value(dut.ram_read_o), [None, None]
            for i in range(2):
                if reads >> i & 1:
                    assert offered and ready, "a read for nobody"
                    ram_asked[i] = (value(dut.ram_read_place_o) >> index * i & (1 << index) - 1) << 1 | 1
            done = []
            if value(dut.ram_write_o):
                done.append(value(dut.ram_write_place_o) << 1 | 1)
                memory[done[0]] = value(dut.ram_data_o)
            writes = 0
            for p in range(2):
                if complete[p] and request[p][0]:
                    mask = value(dut.ddr_mask_o) >> 4 * p & 15
                    assert mask in (1, 2, 4, 8), "one label"
                    lane = mask.bit_length() - 1
                    where = request[p][1] << 3 | lane << 1
                    memory[where] = value(dut.ddr_data_o) >> 512 * p + 128 * lane & (1 << 128) - 1
                    assert memory[where] <= top
                    done.append(where)
                    cover.hit(f"write_on_{p}")
                    cover.hit("read_waits_for_write", bool(fetched) and not fetched[1 + p] & 1 and not cell_valid)
                writes += request[p] is not None and request[p][0]
                cover.hit("latency_1", complete[p] and latency == 1)
            cover.hit("both_write", writes == 2)
            for where in done:
                pending.remove(where)
            assert value(dut.retired_o) == len(done), "a gate is finished when its label is in its place"
            retired += len(done)
            cover.hit("retired_2", len(done) == 2)
            cover.hit("retired_3", len(done) == 3)
            for p in range(2):
                waited[p] = waited[p] + 1 if busy[p] and not complete[p] else 0
                port_was[p] = request[p] if busy[p] and not complete[p] else None
            if handed:
                is_and, _, _, out = fetched
                answer = (truth_of[0] * 3 + truth_of[1] & top) if is_and else truth_of[0] ^ truth_of[1]
                cells[is_and].append([answer, out, cycles + 1 + rng.randrange(cell_wait), False])
                expected[is_and].append([answer, out])
                truth[out] = answer
                fetched = None
            assert ready == (not fetched), "a gate is fetched at a time, the next when it has gone"
            if offered and ready:
                fetched, offered = offered, None
                _, a, b, out = fetched
                truth_of = truth[a], truth[b]
                pending.append(out)
                made += 1
                cover.hit("gates")
                cover.hit("handed_and_taken", bool(handed))
                cover.hit(f"{kind(a)}_{kind(b)}_to_{kind(out)}")
                cover.hit("own_operand", out in (a, b))
                cover.hit("same_operand", a == b)
                cover.hit("last_place", places - 1 << 1 | 1 in (a, b, out))
            cycles += 1
            assert cycles < 100000, "it hangs"
            await clock(dut)
        assert retired == gates and not any(expected)
        assert memory == truth, "what memory holds is what the gates give in their order"
    cover.check(cycles)


@cocotb.test()
async def outside(dut):
    """A place past the block RAM: said, and the gate is not taken. Any place of DDR memory is one."""
    rng = random.Random(cocotb.RANDOM_SEED)
    address, places = parameter(dut, "ADDRESS"), parameter(dut, "PLACES")
    cover = Coverage("outside", past=150, first_past=20, within=100, operand_0=20, operand_1=20, operand_2=20)
    await begin(
        dut, valid_i=0, and_i=0, gate_i=0, cell_ready_i=0, result_valid_i=0, result_label_i=0, result_out_i=0, ram_data_i=0,
        ddr_complete_i=0, ddr_data_i=0,
    )
    room = 1 << address - 1
    cycles = 0
    while cycles < 600:
        gate = [rng.choice((rng.randrange(room) << 1, rng.randrange(places) << 1 | 1)) for _ in range(3)]
        spoilt = rng.random() < 0.6
        at = rng.randrange(3)
        if spoilt:
            gate[at] = rng.choice((places, room - 1, rng.randrange(places, room))) << 1 | 1
        dut.valid_i.value = 1
        dut.gate_i.value = sum(where << address * i for i, where in enumerate(gate))
        await settle()
        assert value(dut.outside_o) == spoilt
        if spoilt:
            assert not value(dut.ready_o) and not value(dut.ram_read_o)
            cover.hit("past")
            cover.hit("first_past", gate[at] >> 1 == places)
            cover.hit(f"operand_{at}")
        else:
            assert value(dut.ready_o)
            cover.hit("within")
        await clock(dut)
        dut.valid_i.value, dut.rst_ni.value = 0, 0
        await settle()
        assert not value(dut.outside_o), "said of gates that are offered only"
        await clock(dut)
        dut.rst_ni.value = 1
        cycles += 2
    cover.check(cycles)
