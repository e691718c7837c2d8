"""Reads a VCD and draws windows of it as timing diagrams.

A column is a clock: what stands in it is what the rising edge at its right end acts on.
"""

import re
from pathlib import Path

from svg import BLUE, FAINT, GREEN, INK, PALE, Drawing, width

HW = Path(__file__).resolve().parent.parent
SIZE = 12
ROW, HIGH = 25, 15  # of a signal: its line, and what is drawn in it


class Trace:
    """What the wanted signals hold at each rising edge of the clock."""

    def __init__(self, path, top, wanted):
        with open(path) as file:
            names = self._header(file, top)
            missing = [name for name in wanted if name not in names]
            if missing:
                raise SystemExit(f"{path}: no signal {', '.join(sorted(missing))}")
            self.values = {name: [] for name in wanted}
            self._sample(file, names, wanted)
        self.clocks = len(self.values[wanted[0]])

    @staticmethod
    def _header(file, top):
        names, scopes = {}, []
        for line in file:
            part = line.split()
            if not part:
                continue
            if part[0] == "$scope":
                scopes.append(part[2])
            elif part[0] == "$upscope":
                scopes.pop()
            elif part[0] == "$var":
                inner = scopes[scopes.index(top) + 1:] if top in scopes else None
                if inner is not None:
                    names[".".join(inner + [part[4]])] = part[3]
            elif part[0] == "$enddefinitions":
                return names
        raise SystemExit("a VCD without an end of its header")

    def _sample(self, file, names, wanted):
        clock = names["clk_i"]
        codes = {names[name] for name in wanted} | {clock}
        now = dict.fromkeys(codes, 0)
        columns = [(self.values[name], names[name]) for name in wanted]
        changes = {}

        def step():
            if changes.get(clock) == 1 and now[clock] == 0:
                for values, code in columns:
                    values.append(now[code])  # before the edge
            now.update(changes)
            changes.clear()

        for line in file:
            first = line[0]
            if first == "#":
                step()
            elif first == "b":
                bits, code = line[1:].split()
                if code in codes:
                    changes[code] = int(bits, 2)
            elif first in "01" and (code := line[1:].strip()) in codes:
                changes[code] = int(first)
        step()

    def __getitem__(self, name):
        return self.values[name]


def decimal(value):
    return str(value)


def hexadecimal(value):
    return f"{value:x}"


def binary(digits):
    return lambda value: f"{value:0{digits}b}"


def pair(value):
    """A beat's two words of 64 bits, the lower first."""
    return f"{value & (1 << 64) - 1} {value >> 64}"


def names(file, type_name):
    """The names of an enumeration, as the RTL has them."""
    text = re.sub(r"//.*", "", (HW / "rtl/onionchopper" / file).read_text())
    body = next(body for body, name in re.findall(r"typedef enum [^{]*\{([^}]*)\}\s*(\w+)\s*;", text) if name == type_name)
    found = [name.split("=")[0].strip() for name in body.split(",")]
    return lambda value: found[value]


class Signal:
    """A row: a bit (no `show`) or a word. `when`: shown only where this is 1. `bits`: first bit and how many of the path's."""

    def __init__(self, label, path, show=None, when=None, bits=None):
        self.label, self.path, self.show, self.when, self.bits = label, path, show, when, bits

    def paths(self):
        return [path for path in (self.path, self.when) if path]

    def at(self, trace, clock):
        value = trace[self.path][clock]
        if self.bits:
            value = value >> self.bits[0] & (1 << self.bits[1]) - 1
        if self.show is None:
            return value
        return self.show(value) if self.when is None or trace[self.when][clock] else None


class Heading:
    def __init__(self, label):
        self.label = label

    def paths(self):
        return []


class Diagram:
    """A window, or several with what lies between left out. `windows(trace)` gives pairs of first clock and clocks;
    `marks(trace)` letters and the clocks they stand over, which the page explains."""

    def __init__(self, name, scene, base, rows, windows, uses=(), marks=lambda trace: {}):
        self.name, self.scene, self.windows, self.marks = name, scene, windows, marks
        self.rows = rows
        for row in rows:
            if isinstance(row, Signal):
                row.path = f"{base}{row.path}"
                row.when = row.when and f"{base}{row.when}"
        self.uses = list(uses)

    def wanted(self):
        return {path for row in self.rows for path in row.paths()} | set(self.uses)

    def draw(self, trace, starts, folder):
        windows = self.windows(trace)
        zero = max((t for t in starts if t <= windows[0][0] + 1), default=starts[0])  # clocks count from the run's start
        cells = {}  # row -> list of (window, first column, columns, text)
        column = 22.0
        for row in self.rows:
            if not isinstance(row, Signal) or row.show is None:
                continue
            found = []
            for w, (first, clocks) in enumerate(windows):
                texts = [row.at(trace, first + i) for i in range(clocks)]
                begin = 0
                for i in range(1, clocks + 1):
                    if i == clocks or texts[i] != texts[begin]:
                        if texts[begin] is not None:
                            found.append((w, begin, i - begin, texts[begin]))
                            column = max(column, (width(texts[begin], SIZE, True) + 9) / (i - begin))
                        begin = i
            cells[row] = found
        left = 16 + max(width(row.label, SIZE, True, isinstance(row, Heading)) + 6 for row in self.rows)
        gap, top = 26, 40
        lefts, x = [], left
        for _, clocks in windows:
            lefts.append(x)
            x += clocks * column + gap
        wide, high = x - gap + 16, top + len(self.rows) * ROW + 10
        out = Drawing(self.name, wide, high)

        marks = self.marks(trace)
        for letter, clock in marks.items():
            for (first, clocks), x in zip(windows, lefts):
                if first <= clock < first + clocks:
                    at = x + (clock - first) * column
                    out.rect(at, top - 4, column, high - top, fill="#fff4cf", stroke="none")
                    out.text(at + column / 2, 10, letter, SIZE, "middle", bold=True)
                    break
            else:
                raise SystemExit(f"{self.name}: mark {letter}, clock {clock}, lies outside {windows}")
        for (first, clocks), x in zip(windows, lefts):
            every = 5 if column < 60 else 2
            for i in range(clocks + 1):
                at = x + i * column
                out.line([(at, top - 4), (at, high - 8)], stroke=PALE, thick=0.8)
                if i < clocks and (first + i - zero) % every == 0:
                    out.text(at + column / 2, 26, str(first + i - zero), SIZE - 1, "middle", fill=FAINT)
        out.text(left - 8, 26, "clock", SIZE - 1, "end", fill=FAINT)
        for n, row in enumerate(self.rows):
            middle = top + n * ROW + ROW / 2
            low, up = middle + HIGH / 2, middle - HIGH / 2
            if isinstance(row, Heading):
                out.text(8, middle, row.label, SIZE, mono=True, bold=True, fill=FAINT)
                continue
            out.text(left - 8, middle, row.label, SIZE, "end", mono=True)
            if row.show is None:
                for (first, clocks), x in zip(windows, lefts):
                    points, before = [], None
                    for i in range(clocks):
                        value = row.at(trace, first + i)
                        y = up if value else low
                        at = x + i * column
                        if value:
                            out.rect(at, up, column, HIGH, fill=GREEN, stroke="none")
                        if before is not None and before != y:
                            points.append((at, before))
                        if not points or before != y:
                            points.append((at, y))
                        before = y
                    points.append((x + clocks * column, before))
                    out.line(points, thick=1.5)
            else:
                for (_, clocks), x in zip(windows, lefts):
                    out.line([(x, middle), (x + clocks * column, middle)], stroke=PALE)
                for w, begin, clocks, text in cells[row]:
                    x0, x1 = lefts[w] + begin * column, lefts[w] + (begin + clocks) * column
                    slope = 3
                    shape = [(x0, middle), (x0 + slope, up), (x1 - slope, up), (x1, middle), (x1 - slope, low),
                             (x0 + slope, low), (x0, middle)]
                    out.line(shape, fill=BLUE, stroke=INK, thick=1)
                    out.text((x0 + x1) / 2, middle, text, SIZE, "middle", mono=True)
        for x in lefts[1:]:
            for y in (high / 2 - 6, high / 2, high / 2 + 6):
                out.text(x - gap / 2, y, "·", SIZE, "middle", mono=True, fill=FAINT)
        out.save(folder)


class Strip:
    """A whole run from afar: for each row, in how many of a bin's clocks something happened, and how often in all."""

    def __init__(self, name, scene, rows, run, uses=()):
        self.name, self.scene, self.rows, self.run, self.uses = name, scene, rows, run, list(uses)

    def wanted(self):
        return {path for _, paths, _ in self.rows for path in paths} | set(self.uses)

    def draw(self, trace, _, folder, bins=160, column=5):
        first, clocks = self.run(trace)
        per = -(-clocks // bins)
        bins = -(-clocks // per)
        left = 16 + max(width(label, SIZE) for label, _, _ in self.rows)
        counted = "in all"
        wide, high, top = left + bins * column + 80, 40 + len(self.rows) * 34 + 6, 34
        out = Drawing(self.name, wide, high)
        out.text(left - 8, 16, f"clock, {per} to a column", SIZE - 1, "end", fill=FAINT)
        out.text(wide - 8, 16, counted, SIZE - 1, "end", fill=FAINT)
        for i in range(0, clocks + 1, 500):
            at = left + i / per * column
            out.line([(at, 26), (at, high - 6)], stroke=PALE, thick=0.8)
            out.text(at, 16, str(i), SIZE - 1, "middle", fill=FAINT)
        for n, (label, paths, happens) in enumerate(self.rows):
            up = top + n * 34
            out.text(left - 8, up + 12, label, SIZE, "end")
            out.rect(left, up, bins * column, 24, fill="none", stroke=PALE, thick=0.8)
            total = 0
            for b in range(bins):
                span = range(first + b * per, min(first + (b + 1) * per, first + clocks))
                count = sum(bool(happens(*(trace[path][t] for path in paths))) for t in span)
                total += count
                if count:
                    tall = 24 * count / per
                    out.rect(left + b * column, up + 24 - tall, column, tall, fill="#5b8fd6", stroke="none")
            out.text(wide - 8, up + 12, f"{total:,}", SIZE, "end", mono=True)
        out.save(folder)
