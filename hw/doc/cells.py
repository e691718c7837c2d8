"""Draws what cells.cpp recorded: `cells.py VCD FOLDER`. Every result is compared with the definition first."""

import sys
from pathlib import Path

from timing import Diagram, Heading, Signal, Trace, decimal

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "dv" / "benches"))
from garbling import garble_sifo  # noqa: E402

CELLS, LABEL = 3, 80
LATENCY = 82


def end(value):
    """The last four digits of a label."""
    return f"..{value & 0xffff:04x}"


def taken(trace, nth):
    """The clock in which a gate is taken."""
    return [t for t in range(trace.clocks) if trace["valid_i"][t] and trace["ready_o"][t]][nth]


def given(trace, nth):
    return [t for t in range(trace.clocks) if trace["valid_o"][t] and trace["ready_i"][t]][nth]


BANK = Diagram("sf_cells-bank", "cells", "", [
    Heading("gates"),
    Signal("valid_i", "valid_i"),
    Signal("ready_o", "ready_o"),
    Signal("gate_i", "gate_i", decimal, "valid_i"),
    Signal("tag_i", "tag_i", decimal, "valid_i"),
    Signal("a_i", "a_i", end, "valid_i"),
    Heading("cells: clock of the hash"),
    *(Signal(f"cell {i}", f"gen_cell[{i}].u_gand.gen_core[0].u_sha1.count_q", decimal) for i in range(CELLS)),
    Heading("results"),
    Signal("valid_o", "valid_o"),
    Signal("ready_i", "ready_i"),
    Signal("tag_o", "tag_o", decimal, "valid_o"),
    Signal("label_o", "label_o", end, "valid_o"),
], lambda trace: [(taken(trace, 0) - 1, 5), (given(trace, 0) - 2, 10)], uses=["b_i", "offset_i", "table_o"], marks=lambda trace: {
    "a": taken(trace, 0), "b": given(trace, 0), "c": given(trace, 1) - 2,
})


def main(dump, folder):
    trace = Trace(dump, "sf_cells", sorted(BANK.wanted()))
    gates = sum(v and r for v, r in zip(trace["valid_o"], trace["ready_i"]))
    for n in range(gates):
        into, out = taken(trace, n), given(trace, n)
        label, rows = garble_sifo(*(trace[name][into] for name in ("offset_i", "a_i", "b_i", "gate_i")), LABEL)
        table = sum(row << LABEL * i for i, row in enumerate(rows))
        if (trace["label_o"][out], trace["table_o"][out], trace["tag_o"][out]) != (label, table, trace["tag_i"][into]):
            sys.exit(f"{dump}: gate {n} is garbled wrongly")
    if gates < CELLS or given(trace, 0) - taken(trace, 0) != LATENCY:
        sys.exit(f"{dump}: {gates} gates")
    BANK.draw(trace, [taken(trace, 0)], folder)


main(*map(Path, sys.argv[1:]))
