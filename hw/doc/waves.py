"""Draws the pages' timing diagrams from a run of the chip: `waves.py VCD FOLDER`.

A diagram shows what signals are at each rise of the clock, over a window that begins where something happens."""

import re
import sys
from pathlib import Path

CHIP = "board.onionchopper_board.u_chip."
LANE = CHIP + "gen_lane[0].u_lane."
UNIT = LANE + "gen_barrett.u_cu."

# Page: title, what the window begins with (a signal that rises, for which time), clocks before and in it, signals.
# A signal is its label, its name and, for a bus, how it is shown: x for hexadecimal, d for decimal, or names by value.
LOADER_STATES = ["idle", "init", "sel", "read", "end"]
FILL_STATES = ["idle", "A", "B", "C", "push"]
DRAIN_STATES = ["idle", "read", "take", "sum", "out"]
DIAGRAMS = {
    "onionchopper": (
        "The chip begins: stream, tiles, registers, sums", (CHIP + "go", 1), 1, 44,
        [
            ("start", CHIP + "go"), ("busy_o", CHIP + "busy_o"), ("ssd_valid_i", CHIP + "ssd_valid_i"),
            ("dram write", CHIP + "dram_write_o"), ("dram valid", CHIP + "dram_valid_o"),
            ("dram address", CHIP + "dram_address_o", "d"),
        ],
    ),
    "compute_unit": (
        "A run of eight products: the sum leaves six clocks behind the last", (UNIT + "refresh_i", 1), 1, 20,
        [
            ("valid_i", UNIT + "valid_i"), ("refresh_i", UNIT + "refresh_i"), ("last_i", UNIT + "last_i"),
            ("a_i", UNIT + "a_i", "x"), ("b_i", UNIT + "b_i", "x"), ("product", UNIT + "product", "x"),
            ("accumulates", UNIT + "flags", ["", "", "", "", "adds", "last", "c"]),
            ("valid_o", UNIT + "valid_o"), ("sum_o", UNIT + "sum_o", "x"),
        ],
    ),
    "moduli": (
        "The selector rolls over to the second modulus", (CHIP + "u_selector.index_o", 1), 8, 14,
        [
            ("advance_i", CHIP + "u_selector.advance_i"), ("counter", CHIP + "u_selector.counter_q", "d"),
            ("period_i", CHIP + "u_selector.period_i", "d"), ("index_o", CHIP + "u_selector.index_o", "d"),
        ],
    ),
    "storage": (
        "A lane: a row goes from the SRAM to the registers while words leave them", (LANE + "issue_i", 1), 8, 24,
        [
            ("SRAM read_i", LANE + "read_i"), ("read_row_i", LANE + "read_row_i", "d"), ("fill_i", LANE + "fill_i"),
            ("fill_row_i", LANE + "fill_row_i", "d"), ("issue_i", LANE + "issue_i"),
            ("refresh_i", LANE + "refresh_i"), ("a_word_i", LANE + "a_word_i", "d"),
            ("b_word_i", LANE + "b_word_i", "d"), ("c_word_i", LANE + "c_word_i", "d"),
            ("sum ready", LANE + "sum_o"), ("store_i", LANE + "store_i"),
        ],
    ),
    "ssd_loader": (
        "Two words of the stream become a beat in the DRAM", (CHIP + "u_ssd.full_q", 2), 4, 20,
        [
            ("ssd_valid_i", CHIP + "u_ssd.ssd_valid_i"), ("ssd_ready_o", CHIP + "u_ssd.ssd_ready_o"),
            ("holds a word", CHIP + "u_ssd.low_valid_q"), ("dram_valid_o", CHIP + "u_ssd.dram_valid_o"),
            ("dram_ready_i", CHIP + "u_ssd.dram_ready_i"), ("dram_address_o", CHIP + "u_ssd.dram_address_o", "d"),
            ("loaded_o", CHIP + "u_ssd.loaded_o", "d"),
        ],
    ),
    "tile_loader": (
        "A tile's beats are asked for as the stream brings them, and arrive 30 clocks later",
        (CHIP + "u_loader.tile_valid_o", 1), 34, 40,
        [
            ("state", CHIP + "u_loader.state_q", LOADER_STATES), ("operand", CHIP + "u_loader.operand_q", ["A", "B", "C"]),
            ("there", CHIP + "u_loader.there"), ("dram_valid_o", CHIP + "u_loader.dram_valid_o"),
            ("dram_valid_i", CHIP + "u_loader.dram_valid_i"), ("write_o", CHIP + "u_loader.write_o", "d"),
            ("tile_valid_o", CHIP + "u_loader.tile_valid_o"),
        ],
    ),
    "sequencer": (
        "A tile of the SRAMs: filling runs ahead, issuing follows, sums are stored", (CHIP + "u_sequencer.tile_valid_i", 2), 1, 48,
        [
            ("tile_valid_i", CHIP + "u_sequencer.tile_valid_i"),
            ("filling", CHIP + "u_sequencer.state_q", FILL_STATES), ("rf_valid", CHIP + "u_sequencer.rf_valid"),
            ("issue_o", CHIP + "u_sequencer.issue_o"), ("refresh_o", CHIP + "u_sequencer.refresh_o"),
            ("last_o", CHIP + "u_sequencer.last_o"), ("sum_i", CHIP + "u_sequencer.sum_i"),
            ("store_o", CHIP + "u_sequencer.store_o"),
        ],
    ),
    "drain": (
        "A tile of C leaves: rows of both lanes are summed, word by word", (CHIP + "u_drain.out_valid_o", 1), 8, 28,
        [
            ("tile_valid_i", CHIP + "u_drain.tile_valid_i"), ("state", CHIP + "u_drain.state_q", DRAIN_STATES),
            ("read_row_o", CHIP + "u_drain.read_row_o", "d"), ("word", CHIP + "u_drain.word_q", "d"),
            ("modulus", CHIP + "u_drain.modulus", "d"), ("out_valid_o", CHIP + "u_drain.out_valid_o"),
            ("data_o", CHIP + "u_drain.data_o", "x"), ("tile_ready_o", CHIP + "u_drain.tile_ready_o"),
        ],
    ),
    "common": (
        "The arbiter of the DRAM's port: stream, loader and drain take turns", (CHIP + "u_dram.valid_i", 6), 2, 24,
        [
            ("valid_i", CHIP + "u_dram.valid_i", "b"), ("grant_o", CHIP + "u_dram.grant_o", "b"),
            ("ready_i", CHIP + "u_dram.ready_i"), ("valid_o", CHIP + "u_dram.valid_o"),
        ],
    ),
    "models": (
        "The SSD's model: 67 words in 100 clocks", ("board.onionchopper_board.u_ssd.valid_o", 3), 2, 24,
        [
            ("valid_i", "board.onionchopper_board.u_ssd.valid_i"), ("ready_o", "board.onionchopper_board.u_ssd.ready_o"),
            ("credit", "board.onionchopper_board.u_ssd.credit_q", "d"),
            ("valid_o", "board.onionchopper_board.u_ssd.valid_o"), ("ready_i", "board.onionchopper_board.u_ssd.ready_i"),
        ],
    ),
}

CLOCK, ROW, LEFT, TOP = 26, 30, 120, 46


def read(path, wanted):
    """Values of signals by clock: what each is when the clock is about to rise."""
    names, scope, values, now, time = {}, [], {}, {}, 0
    with open(path) as vcd:
        for line in vcd:
            if line.startswith("$enddefinitions"):
                break
            words = line.split()
            if words[:1] == ["$scope"]:
                scope.append(words[2])
            elif words[:1] == ["$upscope"]:
                scope.pop()
            elif words[:1] == ["$var"]:
                name = ".".join([*scope, words[4]])
                if name in wanted:
                    names.setdefault(words[3], []).append(name)
        missing = wanted - {name for same in names.values() for name in same}
        if missing:
            sys.exit(f"the run has no signal {', '.join(sorted(missing))}")

        def sample():
            if time % 2 == 0:
                for name, value in now.items():
                    values.setdefault(name, {})[time // 2] = value

        for line in vcd:
            if line[0] == "#":
                sample()
                time = int(line[1:])
            else:
                match = re.match(r"b([01xz]+) (\S+)|([01xz])(\S+)", line)
                if not match:
                    continue
                bits, key = (match[1], match[2]) if match[1] else (match[3], match[4])
                for name in names.get(key, ()):
                    now[name] = int(re.sub("[xz]", "0", bits), 2)
        sample()
    return values, {name: len(clocks) for name, clocks in values.items()}


def show(value, how):
    if isinstance(how, list):
        return how[value] if value < len(how) else str(value)
    text = {"x": f"{value:x}", "d": str(value), "b": f"{value:03b}"}[how]
    most = 3 if how == "x" else 6
    return text if len(text) <= most else text[:most] + "…"


def draw(title, begin, clocks, signals, values):
    width, height = LEFT + clocks * CLOCK + 16, TOP + len(signals) * ROW + 12
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="monospace" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="8" y="18" font-family="sans-serif" font-size="14">{title}</text>',
    ]
    for i in range(0, clocks + 1):
        x = LEFT + i * CLOCK
        out.append(f'<line x1="{x}" y1="{TOP - 10}" x2="{x}" y2="{height - 8}" stroke="#e4e4e4"/>')
        if i % 5 == 0 and i < clocks:
            out.append(f'<text x="{x + 3}" y="{TOP - 12}" fill="#888" font-size="10">{i}</text>')
    for row, (label, name, *how) in enumerate(signals):
        top = TOP + row * ROW
        low, high = top + 22, top + 6
        out.append(f'<text x="{LEFT - 8}" y="{top + 18}" text-anchor="end">{label}</text>')
        own = [values[name].get(begin + i, 0) for i in range(clocks)]
        if not how:
            points, last = [], None
            for i, value in enumerate(own):
                y = high if value else low
                if last is not None and y != last:
                    points.append(f"{LEFT + i * CLOCK},{last}")
                points += [f"{LEFT + i * CLOCK},{y}", f"{LEFT + (i + 1) * CLOCK},{y}"]
                last = y
            out.append(f'<polyline points="{" ".join(points)}" fill="none" stroke="#1a5fb4" stroke-width="1.6"/>')
            continue
        start = 0
        for i in range(1, clocks + 1):
            if i < clocks and own[i] == own[start]:
                continue
            x, wide = LEFT + start * CLOCK, (i - start) * CLOCK
            out.append(
                f'<path d="M{x + 3} {high}H{x + wide - 3}L{x + wide} {top + 14}L{x + wide - 3} {low}H{x + 3}L{x} {top + 14}Z" '
                'fill="#f3f7fc" stroke="#1a5fb4"/>'
            )
            text = show(own[start], how[0])
            room = (wide - 6) / 6.2
            size = 10 if len(text) <= room else 8
            if len(text) <= (wide - 4) / 4.6:
                out.append(
                    f'<text x="{x + wide / 2}" y="{top + 18}" text-anchor="middle" font-size="{size}">{text}</text>'
                )
            start = i
    out.append("</svg>\n")
    return "\n".join(out)


def main(vcd, folder):
    wanted = {signal[1] for _, trigger, _, _, signals in DIAGRAMS.values() for signal in [*signals, ("", trigger[0])]}
    values, _ = read(vcd, wanted)
    Path(folder).mkdir(parents=True, exist_ok=True)
    for page, (title, (trigger, nth), before, clocks, signals) in DIAGRAMS.items():
        own = values[trigger]
        times = sorted(own)
        rises = [t for t in times[1:] if own[t] and not own.get(t - 1, 0)]
        begin = rises[nth - 1] - before
        Path(folder, f"{page}.svg").write_text(draw(title, begin, clocks, signals, values))
        print(f"{folder}/{page}.svg: clocks {begin} to {begin + clocks - 1}")


main(*sys.argv[1:])
