"""Draws the pages' timing diagrams from what run.py recorded: `waves.py VCD... FOLDER`.

Here stand the signals of each diagram and where in the run its window lies. A window is found by what happens in it and
not by a clock's number, so it is still the right one when the RTL changes.
"""

import sys
from pathlib import Path

from timing import Diagram, Heading, Signal, Strip, Trace, binary, decimal, hexadecimal, names, pair

CHIP = "u_chip."
LANE = CHIP + "gen_lane[0].u_lane."
UNIT = LANE + "gen_barrett.u_cu."
RUN_THESIS, RUN_LITERAL, RUN_ERROR = range(3)  # in the order of run.py

ERRORS = names("oc_pkg.sv", "error_e")
LOADER = names("oc_tile_loader.sv", "state_e")
FILLING = names("oc_sequencer.sv", "state_e")
DRAIN = names("oc_drain.sv", "state_e")
OPERAND = "ABC".__getitem__


def filling(state):
    return FILLING(state).removeprefix("FILL_")


def started(trace, run):
    """The clock on which a run starts."""
    return [t for t in range(trace.clocks) if trace[CHIP + "start"][t]][run]


def find(trace, happens, since=0, nth=0):
    """The nth clock from `since` on for which `happens(t)`."""
    for t in range(since, trace.clocks):
        if happens(t):
            if nth == 0:
                return t
            nth -= 1
    raise SystemExit("what a diagram is to show does not happen in its run")


def rises(trace, name, since=0, nth=0):
    values = trace[name]
    return find(trace, lambda t: t > 0 and values[t] and not values[t - 1], since, nth)


def changes(trace, name, since=0, nth=0):
    values = trace[name]
    return find(trace, lambda t: t > since and values[t] != values[t - 1], since, nth)


# ---------------------------------------------------------------------------------------------------- the chip
def whole_run(trace):
    first = started(trace, RUN_THESIS)
    return first, find(trace, lambda t: not trace[CHIP + "busy_o"][t], first) - first


def both(a, b):
    return a and b


CHIP_RUN = Strip("onionchopper-run", "trace", [
    ("words from the SSD", [CHIP + "ssd_valid_i", CHIP + "ssd_ready_o"], both),
    ("DRAM beats written", [CHIP + "dram_valid_o", CHIP + "dram_ready_i", CHIP + "dram_write_o"], lambda v, r, w: v and r and w),
    ("DRAM beats read", [CHIP + "dram_valid_o", CHIP + "dram_ready_i", CHIP + "dram_write_o"], lambda v, r, w: v and r and not w),
    ("rows filled", [CHIP + "fill"], bool),
    ("multiply-accumulates of a lane", [CHIP + "issue"], bool),
    ("rows of sums stored", [CHIP + "store"], bool),
    ("beats out", [CHIP + "out_valid_o", CHIP + "out_ready_i"], both),
], whole_run, uses=[CHIP + "busy_o"])


def error_begins(trace):
    return find(trace, lambda t: trace[CHIP + "error_q"][t] != 0, started(trace, RUN_ERROR))


CHIP_ERROR = Diagram("onionchopper-error", "trace", CHIP, [
    Heading("host"),
    Signal("host_write_i", "host_write_i"),
    Signal("host_address_i", "host_address_i", hexadecimal, "host_write_i"),
    Signal("host_data_i", "host_data_i", decimal, "host_write_i"),
    Signal("busy_o", "busy_o"),
    Heading("chip"),
    Signal("issue", "issue"),
    Signal("unreduced", "unreduced", binary(2)),
    Signal("error", "error", decimal),
    Signal("error_q", "error_q", ERRORS),
    Signal("done_q", "done_q"),
    Signal("run_rst_n", "run_rst_n"),
    Signal("ssd_ready_o", "ssd_ready_o"),
    Signal("dram_valid_i", "dram_valid_i"),
    Signal("stale_q", "stale_q", decimal),
], lambda trace: [(error_begins(trace) - 5, 16)], marks=lambda trace: {
    "a": find(trace, lambda t: trace[CHIP + "unreduced"][t], started(trace, RUN_ERROR)),
    "b": error_begins(trace),
    "c": find(trace, lambda t: trace[CHIP + "host_write_i"][t], error_begins(trace)),
})


# ---------------------------------------------------------------------------------------------------- compute unit
def run_with_c(trace):
    """A run that goes on from a sum that is not zero, right behind another run."""
    return find(trace, lambda t: trace[UNIT + "valid_i"][t] and trace[UNIT + "refresh_i"][t] and trace[UNIT + "c_i"][t]
                and trace[UNIT + "valid_i"][t - 1])


COMPUTE_UNIT = Diagram("compute_unit-run", "trace", UNIT, [
    Heading("in"),
    Signal("valid_i", "valid_i"),
    Signal("refresh_i", "refresh_i"),
    Signal("last_i", "last_i"),
    Signal("a_i", "a_i", decimal, "valid_i"),
    Signal("b_i", "b_i", decimal, "valid_i"),
    Signal("c_i", "c_i", decimal, "refresh_i"),
    Heading("oc_mod_mul, five clocks"),
    Signal("p1_q = a b", "u_mul.gen_six.p1_q", decimal),
    Signal("q_q", "u_mul.gen_six.q_q", decimal),
    Signal("qn_q = q n", "u_mul.gen_six.qn_q", decimal),
    Signal("r_o", "u_mul.r_o", decimal),
    Heading("oc_mod_acc, one clock"),
    Signal("refresh_i", "u_acc.refresh_i"),
    Signal("c_i", "u_acc.c_i", decimal, "u_acc.refresh_i"),
    Signal("sum_o", "sum_o", decimal),
    Signal("valid_o", "valid_o"),
], lambda trace: [(run_with_c(trace) - 2, 18)], marks=lambda trace: {
    "a": run_with_c(trace), "b": run_with_c(trace) + 5, "c": run_with_c(trace) + 13,
})

CHUNKS = "gen_deep."
DEEP = UNIT + "u_acc."
ACCUMULATOR = Diagram("compute_unit-accumulator", "trace-deep", DEEP, [
    Signal("valid_i", "valid_i"),
    Signal("refresh_i", "refresh_i"),
    Signal("last_i", "last_i"),
    Signal("c_i", "c_i", decimal, "refresh_i"),
    Heading("chunk 0, bits 0 to 23"),
    Signal("product_g", CHUNKS + "gen_chunk[0].product_g", hexadecimal, "valid_i"),
    Signal("sum_q", CHUNKS + "gen_chunk[0].sum_q", hexadecimal),
    Signal("carry_q[1]", CHUNKS + "carry_q", bits=(1, 1)),
    Heading("chunk 1, bits 24 to 47"),
    Signal("product_g", CHUNKS + "gen_chunk[1].product_g", hexadecimal),
    Signal("sum_q", CHUNKS + "gen_chunk[1].sum_q", hexadecimal),
    Signal("carry_q[2]", CHUNKS + "carry_q", bits=(2, 1)),
    Heading("chunk 2, bits 48 to 71"),
    Signal("product_g", CHUNKS + "gen_chunk[2].product_g", hexadecimal),
    Signal("sum_q", CHUNKS + "gen_chunk[2].sum_q", hexadecimal),
    Heading("out"),
    Signal("valid_o", "valid_o"),
    Signal("sum_o, bits 0 to 23", "sum_o", hexadecimal, "valid_o", bits=(0, 24)),
], lambda trace: [(rises(trace, DEEP + "valid_i") - 1, 11), (rises(trace, DEEP + "valid_o") - 1, 3)], marks=lambda trace: {
    "a": rises(trace, DEEP + "valid_i"), "b": rises(trace, DEEP + "last_i"), "c": rises(trace, DEEP + "valid_o"),
})

# ---------------------------------------------------------------------------------------------------- moduli
SELECTOR = Diagram("moduli-selector", "trace", CHIP, [
    Heading("while lanes multiply"),
    Signal("advance_i", "u_selector.advance_i"),
    Signal("step_i", "u_selector.step_i", decimal, "u_selector.advance_i"),
    Signal("period_i", "u_selector.period_i", decimal),
    Signal("rest_q.low", "u_selector.rest_q.low", decimal),
    Signal("index_o", "u_selector.index_o", decimal),
    Signal("modulus_q.n of lane 0", "gen_lane[0].u_lane.modulus_q.n", decimal),
    Heading("while sums are drained"),
    Signal("advance_i", "u_drain.u_selector.advance_i"),
    Signal("step_i", "u_drain.u_selector.step_i", decimal, "u_drain.u_selector.advance_i"),
    Signal("period_i", "u_drain.u_selector.period_i", decimal),
    Signal("rest_q.low", "u_drain.u_selector.rest_q.low", decimal),
    Signal("index_o", "u_drain.u_selector.index_o", decimal),
], lambda trace: [
    (changes(trace, CHIP + "u_selector.index_o") - 5, 11), (changes(trace, CHIP + "u_drain.u_selector.index_o") - 14, 17),
], marks=lambda trace: {
    "a": changes(trace, CHIP + "u_selector.index_o") - 1, "b": changes(trace, CHIP + "u_drain.u_selector.index_o") - 1,
})


# ---------------------------------------------------------------------------------------------------- storage
def stored(trace):
    """A store while beats come from the DRAM and rows go to the register file."""
    def happens(t):
        span = range(t - 5, t + 5)
        return trace[LANE + "store_i"][t] and any(trace[LANE + "write_i"][i] in (1, 2) for i in span)
    return find(trace, happens, started(trace, RUN_THESIS) + 20)


STORAGE = Diagram("storage-lane", "trace", LANE, [
    Heading("SRAM"),
    Signal("read_i", "read_i"),
    Signal("read_row_i", "read_row_i", decimal, "read_i"),
    Signal("write_i", "write_i", lambda v: {1: "lower", 2: "upper", 3: "both"}.get(v)),
    Signal("write_row_i", "write_row_i", decimal),
    Heading("register file: rows"),
    Signal("fill_i", "fill_i"),
    Signal("fill_row_i", "fill_row_i", decimal, "fill_i"),
    Signal("store_i", "store_i"),
    Heading("register file: words"),
    Signal("issue_i", "issue_i"),
    Signal("a_word_i", "a_word_i", decimal, "issue_i"),
    Signal("b_word_i", "b_word_i", decimal, "issue_i"),
    Signal("c_word_i", "c_word_i", decimal),
    Signal("sum_o", "sum_o"),
    Signal("sum_word_i", "sum_word_i", decimal, "sum_o"),
    Heading("compute unit"),
    Signal("a_q", "a_q", decimal, "issue_q"),
    Signal("b_q", "b_q", decimal, "issue_q"),
], lambda trace: [(stored(trace) - 15, 26)], marks=lambda trace: {
    "a": rises(trace, LANE + "sum_o", stored(trace) - 14), "c": stored(trace),
    "b": find(trace, lambda t: trace[LANE + "read_i"][t], stored(trace) - 14),
})


# ---------------------------------------------------------------------------------------------------- SSD's loader
def second_tile(trace):
    return changes(trace, CHIP + "u_ssd.tile_q", started(trace, RUN_THESIS) + 1)


SSD_LOADER = Diagram("ssd_loader-stream", "trace", CHIP + "u_ssd.", [
    Heading("SSD"),
    Signal("ssd_valid_i", "ssd_valid_i"),
    Signal("ssd_ready_o", "ssd_ready_o"),
    Signal("ssd_data_i", "ssd_data_i", decimal, "ssd_valid_i"),
    Heading("loader"),
    Signal("low_valid_q", "low_valid_q"),
    Signal("low_q", "low_q", decimal, "low_valid_q"),
    Signal("tile_q", "tile_q", decimal),
    Heading("DRAM"),
    Signal("dram_valid_o", "dram_valid_o"),
    Signal("dram_ready_i", "dram_ready_i"),
    Signal("dram_address_o", "dram_address_o", decimal, "dram_valid_o"),
    Signal("dram_data_o", "dram_data_o", pair),
    Heading("tile loader"),
    Signal("used_i", "used_i", decimal),
    Signal("loaded_o", "loaded_o", decimal),
], lambda trace: [(started(trace, RUN_THESIS), 13), (second_tile(trace) - 7, 12)], marks=lambda trace: {
    "a": rises(trace, CHIP + "u_ssd.dram_valid_o", started(trace, RUN_THESIS)),
    "b": second_tile(trace),
})


# ---------------------------------------------------------------------------------------------------- tile loader
def asked(trace):
    """Where the loader has to wait for the stream in the middle of a tile, not the first."""
    return find(trace, lambda t: trace[CHIP + "u_loader.state_q"][t] == 3 and trace[CHIP + "u_loader.number_q"][t] == 1
                and trace[CHIP + "u_loader.operand_q"][t] == 1 and not trace[CHIP + "u_loader.there"][t])


def closed(trace):
    return find(trace, lambda t: trace[CHIP + "u_loader.state_q"][t] == 4 and trace[CHIP + "u_loader.number_q"][t] == 2)


def whole_tile(trace):
    return find(trace, lambda t: trace[CHIP + "u_loader.tile_valid_o"][t] and trace[CHIP + "u_loader.tile_ready_i"][t]
                and trace[CHIP + "u_loader.tile_o.number"][t] == 2)


LOADER_ASKS = Diagram("tile_loader-asks", "trace", CHIP + "u_loader.", [
    Signal("number_q", "number_q", decimal),
    Signal("state_q", "state_q", LOADER),
    Signal("operand_q", "operand_q", OPERAND),
    Signal("beat_q", "beat_q", decimal),
    Signal("loaded_i", "loaded_i", decimal),
    Signal("there", "there"),
    Signal("dram_valid_o", "dram_valid_o"),
    Signal("dram_ready_i", "dram_ready_i"),
    Signal("dram_address_o", "dram_address_o", decimal, "dram_valid_o"),
    Signal("lanes", "lanes", binary(2), "dram_valid_o"),
    Signal("waits_ssd_o", "waits_ssd_o"),
], lambda trace: [(asked(trace) - 3, 9), (closed(trace) - 5, 10)], marks=lambda trace: {
    "a": asked(trace), "b": closed(trace),
})

LOADER_GETS = Diagram("tile_loader-gets", "trace", CHIP + "u_loader.", [
    Signal("dram_valid_i", "dram_valid_i"),
    Signal("dram_ready_o", "dram_ready_o"),
    Signal("write_ready_i", "write_ready_i"),
    Signal("write_o", "write_o", binary(2), "dram_valid_i"),
    Signal("write_half_o", "write_half_o", lambda v: {1: "lower", 2: "upper"}.get(v), "dram_valid_i"),
    Signal("write_row_o", "write_row_o", decimal, "dram_valid_i"),
    Signal("tile_valid_o", "tile_valid_o"),
    Signal("tile_ready_i", "tile_ready_i"),
    Signal("tile_o.number", "tile_o.number", decimal, "tile_valid_o"),
    Signal("tile_o.a_row", "tile_o.a_row", decimal, "tile_valid_o"),
    Signal("tile_o.b_row", "tile_o.b_row", decimal, "tile_valid_o"),
    Signal("tile_o.c_row", "tile_o.c_row", decimal, "tile_valid_o"),
    Signal("tile_o.c_zero", "tile_o.c_zero", decimal, "tile_valid_o"),
    Signal("tile_o.c_final", "tile_o.c_final", decimal, "tile_valid_o"),
], lambda trace: [(whole_tile(trace) - 18, 20)], marks=lambda trace: {"a": whole_tile(trace)})


# ---------------------------------------------------------------------------------------------------- sequencer
def first_tile(trace):
    return find(trace, lambda t: trace[CHIP + "u_sequencer.tile_valid_i"][t] and trace[CHIP + "u_sequencer.tile_ready_o"][t],
                started(trace, RUN_THESIS))


def first_issue(trace, run):
    return find(trace, lambda t: trace[CHIP + "issue"][t], started(trace, run))


def issuing():
    return [
        Heading("issuing"),
        Signal("rf_valid", "rf_valid"),
        Signal("stalled", "stalled"),
        Signal("issue_o", "issue_o"),
        Signal("refresh_o", "refresh_o"),
        Signal("last_o", "last_o"),
        Signal("a_word_o", "a_word_o", decimal, "issue_o"),
        Signal("b_word_o", "b_word_o", decimal, "issue_o"),
        Signal("c_word_o", "c_word_o", decimal, "issue_o"),
    ]


SEQUENCER_FILLS = Diagram("sequencer-fills", "trace", CHIP + "u_sequencer.", [
    Heading("filling"),
    Signal("tile_valid_i", "tile_valid_i"),
    Signal("tile_ready_o", "tile_ready_o"),
    Signal("state_q", "state_q", filling),
    Signal("read_o", "read_o"),
    Signal("read_row_o", "read_row_o", decimal, "read_o"),
    Signal("fill_o", "fill_o"),
    Signal("fill_row_o", "fill_row_o", decimal, "fill_o"),
    Signal("fill_zero_o", "fill_zero_o", binary(2), "fill_o"),
    *issuing(),
], lambda trace: [(first_tile(trace) - 1, 30)], uses=[CHIP + "issue"], marks=lambda trace: {
    "a": first_tile(trace), "b": first_issue(trace, RUN_THESIS), "c": first_issue(trace, RUN_THESIS) + 8,
})


def hazard(trace):
    return find(trace, lambda t: trace[CHIP + "u_sequencer.stalled"][t], started(trace, RUN_LITERAL))


def stalled_again(trace):
    return find(trace, lambda t: trace[CHIP + "u_sequencer.sum_i"][t], hazard(trace))


SEQUENCER_HAZARD = Diagram("sequencer-hazard", "trace", CHIP + "u_sequencer.", [
    *issuing(),
    Heading("sums"),
    Signal("sum_i", "sum_i"),
    Signal("sum_word_o", "sum_word_o", decimal, "sum_i"),
    Signal("hazard_o", "hazard_o"),
], lambda trace: [(first_issue(trace, RUN_LITERAL) - 1, 28)], uses=[CHIP + "issue"], marks=lambda trace: {
    "a": hazard(trace), "b": stalled_again(trace),
})


def storing(trace):
    return rises(trace, CHIP + "u_sequencer.store_o", started(trace, RUN_THESIS), nth=3)


SEQUENCER_STORES = Diagram("sequencer-stores", "trace", CHIP + "u_sequencer.", [
    Signal("issue_o", "issue_o"),
    Signal("refresh_o", "refresh_o"),
    Signal("last_o", "last_o"),
    Signal("c_issue_word", "c_issue_word", decimal, "issue_o"),
    Signal("issue_last", "issue_last"),
    Heading("sums"),
    Signal("sum_i", "sum_i"),
    Signal("sum_word_o", "sum_word_o", decimal, "sum_i"),
    Heading("storing"),
    Signal("store_bank_q", "store_bank_q", decimal),
    Signal("c_closed_q", "c_closed_q", lambda v: f"{v:04b}"),
    Signal("bank_pending", "bank_pending"),
    Signal("storable", "storable"),
    Signal("store_o", "store_o"),
    Signal("c_word_o", "c_word_o", decimal, "store_o"),
    Signal("store_row_o", "store_row_o", decimal, "store_o"),
    Signal("open_o[0]", "open_o[0]", decimal),
    Signal("open_o[1]", "open_o[1]", decimal),
], lambda trace: [(storing(trace) - 20, 25)], marks=lambda trace: {
    "a": find(trace, lambda t: trace[CHIP + "u_sequencer.issue_last"][t], storing(trace) - 12),
    "b": find(trace, lambda t: trace[CHIP + "u_sequencer.sum_i"][t], storing(trace) - 3), "c": storing(trace),
})


# ---------------------------------------------------------------------------------------------------- drain
def drains(trace):
    """A tile whose sums are final."""
    return find(trace, lambda t: trace[CHIP + "u_drain.state_q"][t] == 1 and trace[CHIP + "u_drain.tile_i.c_final"][t]
                and trace[CHIP + "u_drain.state_q"][t - 1] == 0)


def first_out(trace):
    return find(trace, lambda t: trace[CHIP + "u_drain.out_valid_o"][t], drains(trace))


DRAINS = Diagram("drain-tile", "trace", CHIP + "u_drain.", [
    Signal("tile_valid_i", "tile_valid_i"),
    Signal("open_i[1]", "open_i[1]", decimal),
    Signal("state_q", "state_q", DRAIN),
    Signal("row_q", "row_q", decimal),
    Heading("SRAM"),
    Signal("read_valid_o", "read_valid_o"),
    Signal("read_ready_i", "read_ready_i"),
    Signal("read_row_o", "read_row_o", decimal, "read_valid_o"),
    Heading("sum over lanes"),
    Signal("lane 0's word 0", "rows_q[0]", decimal, bits=(0, 64)),
    Signal("lane 1's word 0", "rows_q[1]", decimal, bits=(0, 64)),
    Signal("word_q", "word_q", decimal),
    Signal("next", "next", decimal),
    Signal("n", "u_add.n_i", decimal),
    Heading("out"),
    Signal("out_valid_o", "out_valid_o"),
    Signal("out_ready_i", "out_ready_i"),
    Signal("data_o", "data_o", pair, "out_valid_o"),
], lambda trace: [(drains(trace) - 3, 16)], uses=[CHIP + "u_drain.tile_i.c_final"], marks=lambda trace: {"a": drains(trace), "b": first_out(trace)})


# ---------------------------------------------------------------------------------------------------- common
def contended(trace):
    """Two ask for the DRAM at once, while all three do within a few clocks."""
    asking = trace[CHIP + "u_dram.valid_i"]
    return find(trace, lambda t: asking[t] in (3, 5, 6, 7) and asking[t] & 1 and any(asking[i] == 7 for i in range(t, t + 10)))


ARBITER = Diagram("common-arbiter", "trace", CHIP + "u_dram.", [
    Heading("0: drain"),
    Signal("valid_i[0]", "valid_i", bits=(0, 1)),
    Signal("ready_o[0]", "ready_o", bits=(0, 1)),
    Heading("1: tile loader"),
    Signal("valid_i[1]", "valid_i", bits=(1, 1)),
    Signal("ready_o[1]", "ready_o", bits=(1, 1)),
    Heading("2: SSD loader"),
    Signal("valid_i[2]", "valid_i", bits=(2, 1)),
    Signal("ready_o[2]", "ready_o", bits=(2, 1)),
    Heading("DRAM"),
    Signal("valid_o", "valid_o"),
    Signal("ready_i", "ready_i"),
    Signal("grant_o", "grant_o", binary(3)),
    Signal("after_q", "after_q", binary(3)),
], lambda trace: [(contended(trace) - 3, 18)])


def full(trace):
    return find(trace, lambda t: not trace[CHIP + "u_sequencer.u_rf_tiles.ready_o"][t], started(trace, RUN_THESIS))


FIFO = Diagram("common-fifo", "trace", CHIP + "u_sequencer.u_rf_tiles.", [
    Heading("in: filled tiles"),
    Signal("valid_i", "valid_i"),
    Signal("ready_o", "ready_o"),
    Heading("out: tiles to issue"),
    Signal("valid_o", "valid_o"),
    Signal("ready_i", "ready_i"),
    Signal("count_o", "count_o", decimal),
], lambda trace: [(full(trace) - 6, 30)], marks=lambda trace: {"a": full(trace), "b": rises(trace, CHIP + "u_sequencer.u_rf_tiles.ready_i", full(trace))})

LOOP_NEST = Diagram("common-nest", "trace", CHIP + "u_sequencer.u_rf_nest.", [
    Signal("advance_i", "advance_i"),
    Heading("loops"),
    Signal("index_q[0]", "index_q[0]", decimal),
    Signal("index_q[1]", "index_q[1]", decimal),
    Signal("last_o", "last_o"),
    Heading("A"),
    Signal("address_o[0]", "address_o[0]", decimal),
    Signal("run_last_o[0]", "run_last_o", bits=(0, 1)),
    Heading("B"),
    Signal("address_o[1]", "address_o[1]", decimal),
    Signal("first_o[1]", "first_o", bits=(1, 1)),
    Heading("C"),
    Signal("address_o[2]", "address_o[2]", decimal),
    Signal("first_o[2]", "first_o", bits=(2, 1)),
    Signal("final_o[2]", "final_o", bits=(2, 1)),
    Signal("run_first_o[2]", "run_first_o", bits=(2, 1)),
    Signal("run_last_o[2]", "run_last_o", bits=(2, 1)),
], lambda trace: [(first_issue(trace, RUN_THESIS) - 2, 21)], uses=[CHIP + "issue"])


# ---------------------------------------------------------------------------------------------------- models
SSD = Diagram("models-ssd", "trace", "u_ssd.", [
    Signal("valid_i", "valid_i"),
    Signal("ready_o", "ready_o"),
    Signal("credit_q", "credit_q", decimal),
    Signal("data_i", "data_i", decimal, "valid_i"),
    Signal("valid_o", "valid_o"),
    Signal("ready_i", "ready_i"),
    Signal("data_o", "data_o", decimal, "valid_o"),
], lambda trace: [(started(trace, RUN_THESIS) - 1, 20)])


def read_first(trace):
    return find(trace, lambda t: trace["u_dram.read"][t], started(trace, RUN_THESIS))


DRAM = Diagram("models-dram", "trace", "u_dram.", [
    Heading("requests"),
    Signal("valid_i", "valid_i"),
    Signal("ready_o", "ready_o"),
    Signal("write_i", "write_i"),
    Signal("address_i", "address_i", decimal, "valid_i"),
    Heading("answers"),
    Signal("valid_o", "valid_o"),
    Signal("ready_i", "ready_i"),
    Signal("data_o", "data_o", pair, "valid_o"),
    Signal("count_q", "count_q", decimal),
], lambda trace: [(read_first(trace) - 2, 8), (read_first(trace) + 28, 8)], uses=["u_dram.read"], marks=lambda trace: {
    "a": read_first(trace), "b": find(trace, lambda t: trace["u_dram.valid_o"][t], read_first(trace)),
})

DIAGRAMS = [value for value in list(globals().values()) if isinstance(value, (Diagram, Strip))]


def main(*given):
    *dumps, folder = map(Path, given)
    for dump in dumps:
        mine = [diagram for diagram in DIAGRAMS if diagram.scene == dump.stem]
        trace = Trace(dump, "onionchopper_board", sorted(set().union(*(diagram.wanted() for diagram in mine), {CHIP + "start"})))
        starts = [t for t in range(trace.clocks) if trace[CHIP + "start"][t]]
        for diagram in mine:
            diagram.draw(trace, starts, folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
