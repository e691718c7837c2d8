"""Draws what sifo.cpp recorded: `sifo.py VCD FOLDER`. Tables and labels are compared with the definition first."""

import sys
from pathlib import Path

from timing import Diagram, Heading, Signal, Trace, decimal

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "dv" / "benches"))
from garbling import garble_sifo  # noqa: E402

LABEL = 80
CHIP = "u_chip."
OFFSET, FIRST = 0x6AE383B50F162D1A4C79, 7
STARTS = CHIP + "u_dispatcher.begin_batch"
USES = [STARTS, "table_valid_o", "table_o", "waits_host_o", CHIP + "u_controller.taken", CHIP + "gate_o",
        CHIP + "u_controller.retired_o", "access_o"]


def poked(address):
    """The label that sifo.cpp puts at an address."""
    words = [(0x01010101 * (address + 1) + 0x9E370000 * word) % (1 << 32) for word in range(3)]
    return sum(word << 32 * i for i, word in enumerate(words)) % (1 << LABEL)


def find(trace, name, nth=0, of=1):
    """The nth clock with this value."""
    return [t for t in range(trace.clocks) if trace[name][t] == of][nth]


def ends(trace):
    """The clock in which the first batch is seen to be done."""
    return [t for t in range(1, trace.clocks) if trace[CHIP + "done_o"][t] != trace[CHIP + "done_o"][t - 1]][0]


BATCH = Diagram("sifo-batch", "sifo", "", [
    Heading("host"),
    Signal("write", "u_link.ready_o"),
    Signal("register", CHIP + "host_address_i", decimal, "u_link.ready_o"),
    Signal("waits_host_o", "waits_host_o"),
    Heading("dispatcher"),
    Signal("begin_batch", CHIP + "u_dispatcher.begin_batch"),
    Signal("left_q", CHIP + "u_dispatcher.left_q", decimal),
    Signal("flight_q", CHIP + "u_dispatcher.flight_q", decimal),
    Signal("done_o", CHIP + "done_o", decimal),
    Heading("controller"),
    Signal("taken", CHIP + "u_controller.taken"),
    Signal("have_q: a", CHIP + "u_controller.have_q", bits=(0, 1)),
    Signal("have_q: b", CHIP + "u_controller.have_q", bits=(1, 1)),
    Signal("ddr_valid_o[0]", CHIP + "ddr_valid_o", bits=(0, 1)),
    Signal("ddr_write_o[0]", CHIP + "ddr_write_o", bits=(0, 1)),
    Signal("ddr_valid_o[1]", CHIP + "ddr_valid_o", bits=(1, 1)),
    Signal("complete[0]", "access_o", bits=(0, 1)),
    Signal("complete[1]", "access_o", bits=(1, 1)),
    Signal("gate_o", CHIP + "gate_o"),
    Heading("results"),
    Signal("AND's", CHIP + "result_valid", bits=(1, 1)),
    Signal("XOR's", CHIP + "result_valid", bits=(0, 1)),
    Signal("ram_write", CHIP + "ram_write"),
    Signal("retired_o", CHIP + "u_controller.retired_o", decimal),
    Signal("table_valid_o", "table_valid_o"),
], lambda trace: [
    (find(trace, STARTS) - 2, 20), (find(trace, "access_o", of=2) - 2, 5), (find(trace, "table_valid_o") - 2, 4),
    (ends(trace) - 4, 6), (find(trace, STARTS, 1) - 2, 21), (find(trace, "access_o", of=1) - 1, 4),
], uses=USES, marks=lambda trace: {
    "a": find(trace, STARTS), "b": find(trace, CHIP + "u_controller.taken"), "c": find(trace, CHIP + "gate_o"),
    "d": find(trace, "access_o", of=2), "e": find(trace, "table_valid_o") - 1, "f": ends(trace), "g": find(trace, STARTS, 1),
    "h": find(trace, CHIP + "gate_o", 2) + 1, "i": find(trace, "access_o", of=1),
})


def main(dump, folder):
    trace = Trace(dump, "sifo_board", sorted(BATCH.wanted() | {CHIP + "u_controller.ddr_data_o"}))
    tables = [trace["table_o"][t] for t in range(trace.clocks) if trace["table_valid_o"][t]]
    given = [(poked(1), poked(3)), (poked(5), poked(6))]
    expected, labels = [], []
    for n, (a, b) in enumerate(given):
        label, rows = garble_sifo(OFFSET, a, b, FIRST + n, LABEL)
        expected.append(sum(row << LABEL * i for i, row in enumerate(rows)))
        labels.append(label)
    written = trace[CHIP + "u_controller.ddr_data_o"][find(trace, "access_o", of=1)] % (1 << LABEL)
    if tables != expected or written != labels[0] ^ labels[1]:
        sys.exit(f"{dump}: garbled wrongly")
    BATCH.draw(trace, [find(trace, STARTS)], Path(folder))


main(*sys.argv[1:])
