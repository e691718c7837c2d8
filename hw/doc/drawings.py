"""Draws the pages' block diagrams: `drawings.py FOLDER`. What each box is stands in the page that shows it."""

import sys
from pathlib import Path

from svg import AMBER, BLUE, GREEN, GREY, RED, VIOLET, Blocks


def chip():
    d = Blocks("onionchopper", 1000, 610)
    d.frame(150, 12, 720, 586, "onionchopper")
    d.box(14, 90, 104, 50, "SSD", "64-bit words", fill=AMBER)
    d.box(14, 240, 104, 70, "DRAM", "half 0, half 1", "sums", fill=AMBER)
    d.box(14, 530, 104, 50, "host", fill=AMBER)
    d.box(890, 240, 96, 50, "host", "sums", fill=AMBER)

    d.box(190, 90, 150, 50, "oc_ssd_loader", "a counter", mono=True, fill=BLUE)
    d.box(190, 240, 110, 70, "bc_arbiter", "of requests;", "answers pass", mono=True, fill=GREY)
    d.box(400, 90, 160, 62, "oc_tile_loader", "DRAM's loop nest", "halves of SRAMs", mono=True, fill=BLUE)
    d.box(640, 90, 200, 62, "oc_sequencer", "SRAM's loop nest, registers'", "banks, sums in flight", mono=True, fill=BLUE)
    d.box(540, 410, 170, 62, "oc_drain", "adds lanes that share C", "one word a clock", mono=True, fill=BLUE)
    d.box(190, 510, 200, 70, "oc_config", "descriptor, state, counters", "oc_moduli: 16 of n, m", mono=True, fill=VIOLET)
    d.box(460, 520, 170, 50, "oc_moduli_selector", "which n, m is used now", mono=True, fill=VIOLET, size=12)

    d.frame(352, 202, 500, 166, "oc_lane, LANES times")
    d.rect(360, 354, 500, 22, fill="none", stroke="#6b7480", radius=7, dash=True)
    d.box(372, 240, 120, 70, "oc_sram", "128 rows of 256", "two tiles each", mono=True, fill=GREEN)
    d.box(540, 240, 130, 70, "oc_register_file", "16 rows of 256", "banks", mono=True, fill=GREEN, size=12)
    d.box(716, 240, 126, 70, "oc_compute_unit", "a b + c mod n", "6 clocks", mono=True, fill=RED, size=12)

    d.arrow((118, 115), (190, 115))
    d.arrow((240, 140), (240, 240), label="beats", at=(248, 190), anchor="start")
    d.arrow((118, 275), (190, 275), both=True, label="128", at=(136, 264))
    d.arrow((430, 152), (430, 178), (280, 178), (280, 240), label="reads", at=(350, 170))
    d.arrow((300, 262), (372, 262), label="beats", at=(336, 252))
    d.arrow((492, 262), (540, 262), label="row", at=(516, 252))
    d.arrow((540, 295), (492, 295), label="sums", at=(516, 306))
    d.arrow((670, 262), (716, 262), label="a b c", at=(693, 252))
    d.arrow((716, 295), (670, 295), label="sum", at=(693, 306))
    d.arrow((560, 121), (640, 121), label="tiles", at=(600, 111))
    d.arrow((620, 202), (700, 152), dash=True, both=True)
    d.label(676, 182, "fill, issue, store")
    d.arrow((432, 310), (432, 441), (540, 441), label="rows", at=(486, 431))
    d.arrow((840, 130), (862, 130), (862, 441), (710, 441), label="tiles of C", at=(826, 431))
    d.arrow((620, 410), (620, 390), (320, 390), (320, 330), (270, 330), (270, 310), label="sums that go on", at=(540, 399))
    d.arrow((710, 460), (938, 460), (938, 290), label="final sums", at=(826, 470))
    d.arrow((118, 555), (190, 555), both=True, label="64", at=(140, 545))
    d.arrow((390, 545), (460, 545), label="periods", at=(425, 534))
    d.arrow((630, 545), (779, 545), (779, 310), label="n, m", at=(705, 536))
    return d


def unit():
    d = Blocks("compute_unit", 1060, 400)
    d.frame(70, 12, 690, 250, "oc_mod_mul, BITS = 0: five clocks")
    d.frame(772, 12, 196, 250, "oc_mod_acc: one clock", size=11)
    x = [92, 218, 356, 494, 632]
    names = [("a b", "128 bits"), ("4 products", "of halves of", "p and m"), ("sum >> 128", "q, 64 bits"),
             ("q n", "66 bits"), ("p - q n", "less n if it is n", "or more")]
    for left, (title, *lines) in zip(x, names):
        d.box(left, 90, 112, 66, title, *lines, fill=RED, size=12)
    d.box(800, 90, 116, 66, "base + r", "less n if it is n", "or more", fill=RED, size=12)
    for left in x[1:]:
        d.arrow((left - (26 if left != 218 else 14), 123), (left, 123))
    d.arrow((744, 123), (800, 123), label="r", at=(768, 112))
    d.arrow((40, 108), (92, 108), label="a", at=(30, 108))
    d.arrow((40, 138), (92, 138), label="b", at=(30, 138))
    d.arrow((40, 200), (274, 200), (274, 156), label="m", at=(28, 200))
    d.arrow((40, 226), (550, 226), (550, 156), label="n", at=(30, 226))
    d.arrow((550, 226), (688, 226), (688, 156))
    d.arrow((688, 226), (840, 226), (840, 156))
    d.arrow((148, 90), (148, 58), (688, 58), (688, 90), label="p, its low 66 bits", at=(430, 48))
    d.arrow((916, 123), (1046, 123), label="sum_o", at=(1010, 112))
    d.arrow((946, 123), (946, 64), (858, 64), (858, 90), label="base: sum so far, or c", at=(878, 54))
    d.box(92, 290, 824, 38, "shift registers: valid, refresh, last, c, n", fill=GREY, size=12)
    d.arrow((40, 309), (92, 309))
    d.label(4, 286, "c, refresh, last")
    d.arrow((888, 290), (888, 156), label="refresh, c", at=(880, 276), anchor="end")
    d.box(92, 346, 824, 38, "three comparisons with n: a, b, and c at a run's first product", fill=GREY, size=12)
    d.arrow((916, 365), (1046, 365), label="unreduced_o", at=(1004, 354))
    return d


def storage():
    d = Blocks("storage", 900, 350)
    d.frame(100, 12, 700, 326, "oc_lane")
    d.frame(128, 44, 220, 278, "oc_sram: 128 rows of 256")
    for i, (name, fill) in enumerate((("A", BLUE), ("B", GREEN), ("C", AMBER))):
        for half in range(2):
            d.box(150, 68 + (2 * i + half) * 41, 176, 34, "", f"{name}, half {half}: sram_rows[{name}]", fill=fill)
    d.frame(470, 44, 200, 278, "oc_register_file: 16 rows", size=11)
    y = 68
    for name, fill, text in (("A", BLUE, "A, 2 banks of rf_rows[A]"), ("B", GREEN, "B, 2 banks of rf_rows[B]"),
                             ("C", AMBER, "C, c_banks of rf_rows[C]")):
        d.box(484, y, 172, 70, "", text, fill=fill)
        y += 80
    d.box(716, 130, 70, 90, "unit", "a b + c", "mod n", fill=RED)
    d.arrow((14, 120), (128, 120), label="beats", at=(50, 110))
    d.arrow((348, 110), (470, 110), label="row, 256 bits,", at=(409, 90))
    d.label(409, 126, "a clock later", anchor="middle")
    d.arrow((470, 250), (348, 250), label="row of sums", at=(409, 240))
    d.arrow((128, 280), (14, 280), label="to the drain", at=(10, 296), anchor="start")
    d.arrow((670, 150), (716, 150), label="a b c", at=(692, 140))
    d.arrow((716, 200), (670, 200), label="sum", at=(692, 212))
    return d


def sequencer():
    d = Blocks("sequencer", 960, 330)
    d.frame(110, 12, 740, 306, "oc_sequencer")
    d.box(136, 60, 190, 74, "filling", "bc_loop_nest, SRAM's loops", "one row a clock", fill=BLUE)
    d.box(420, 72, 100, 50, "bc_fifo", "2 tiles", mono=True, fill=GREY)
    d.box(610, 60, 220, 74, "issuing", "bc_loop_nest, registers' loops", "one multiply-accumulate a clock", fill=BLUE, size=12)
    d.box(610, 220, 220, 74, "storing", "banks in the order of filling", "one row a clock", fill=BLUE)
    d.box(380, 160, 170, 44, "pending_q", "a bit a word of the registers", mono=True, fill=VIOLET, size=12)
    d.box(380, 250, 170, 44, "row_busy_q", "a bit a row of the SRAM", mono=True, fill=VIOLET, size=12)
    d.arrow((14, 97), (136, 97), label="tiles", at=(60, 87))
    d.arrow((326, 97), (420, 97), label="filled tiles", at=(373, 87))
    d.arrow((520, 97), (610, 97), label="valid", at=(565, 87))
    d.arrow((830, 80), (946, 80), label="issue, words", at=(900, 70))
    d.arrow((830, 257), (946, 257), label="store, row", at=(900, 247))
    d.arrow((680, 134), (680, 175), (550, 175), both=True, label="a run begins", at=(640, 165))
    d.arrow((946, 190), (550, 190), label="sum_i, its word", at=(900, 180))
    d.arrow((720, 134), (720, 220), label="bank closed", at=(728, 208), anchor="start")
    d.arrow((610, 272), (550, 272), label="clears", at=(580, 262))
    d.arrow((231, 134), (231, 272), (380, 272), both=True, label="filling C sets, waits", at=(240, 287), anchor="start")
    d.arrow((180, 134), (180, 290), (14, 290), label="drain", at=(60, 280))
    return d


def tile_loader():
    d = Blocks("tile_loader", 960, 350)
    d.frame(110, 12, 740, 326, "oc_tile_loader")
    d.box(136, 60, 180, 74, "bc_loop_nest", "DRAM's 6 loops: where A, B", "and C of this step lie", mono=True, fill=BLUE)
    d.box(386, 60, 190, 74, "SELECT, READ, CLOSE", "operand, group,", "inner lane, beat", fill=BLUE, size=12)
    d.box(656, 60, 170, 74, "there?", "offset below loaded_i", "(A and B)", fill=GREY)
    d.box(386, 236, 190, 74, "bc_fifo, 64 deep", "lanes, half, row of each beat", "under way; a mark a tile", mono=True, fill=GREY, size=12)
    d.box(136, 236, 180, 74, "bc_fifo, 4 deep", "tile_t of each mark", mono=True, fill=GREY, size=12)
    d.arrow((316, 97), (386, 97), label="address", at=(351, 87))
    d.arrow((576, 97), (656, 97), label="offset", at=(616, 87))
    d.arrow((826, 80), (946, 80), label="DRAM reads", at=(900, 70))
    d.arrow((946, 120), (826, 120), label="loaded_i", at=(900, 110))
    d.arrow((481, 134), (481, 236), label="as each is asked for", at=(490, 186), anchor="start")
    d.arrow((420, 134), (420, 160), (226, 160), (226, 236), label="CLOSE", at=(330, 170))
    d.arrow((946, 255), (576, 255), label="DRAM's answers", at=(900, 245))
    d.arrow((576, 292), (946, 292), label="SRAM writes", at=(900, 282))
    d.arrow((136, 273), (14, 273), label="whole tiles", at=(60, 263))
    d.arrow((14, 40), (481, 40), (481, 60), label="filled_i, drained_i", at=(8, 52), anchor="start")
    return d


def nest():
    d = Blocks("common", 900, 260)
    d.frame(12, 12, 560, 236, "bc_loop_nest: two of LOOPS loops, one of OPERANDS addresses")
    for i, y in enumerate((46, 146)):
        d.box(34, y, 120, 60, f"index_q[{i}]", "0 to bound - 1", mono=True, fill=BLUE, size=12)
        d.box(210, y, 130, 60, "begins, ends", "is it 0, is it last", fill=GREY, size=12)
        d.box(400, y, 150, 60, f"base_q[{i}]", "where its turn began", mono=True, fill=GREEN, size=12)
        d.arrow((154, y + 30), (210, y + 30))
        d.arrow((340, y + 30), (400, y + 30), label="+ stride", at=(370, y + 20))
    d.arrow((475, 106), (475, 146), label="a new turn begins where the outer loop is", at=(466, 126), anchor="end")
    d.arrow((475, 206), (475, 228), (860, 228), label="address_o", at=(760, 218))
    d.arrow((572, 86), (660, 86))
    d.arrow((572, 164), (660, 164))
    d.box(660, 30, 220, 84, "first, final", "begins (ends) of all loops", "that don't move the operand", fill=VIOLET, size=12)
    d.box(660, 122, 220, 84, "run_first, run_last", "the same of the innermost loops,", "up to the first that moves it", fill=VIOLET, size=12)
    return d


def main(folder):
    for draw in (chip, unit, storage, sequencer, tile_loader, nest):
        draw().save(Path(folder))


main(sys.argv[1])
