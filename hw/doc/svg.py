"""Enough SVG for block drawings and timing diagrams: text whose width is known beforehand, boxes, lines, arrows.

What does not fit is an error and not a smudge: a label that is wider than its box, or ink outside the drawing.
"""

from html import escape

MONO = "'DejaVu Sans Mono', Menlo, Consolas, monospace"
SANS = "'DejaVu Sans', Verdana, Helvetica, Arial, sans-serif"
INK, FAINT, PALE = "#1b1f24", "#6b7480", "#d5dae0"
BLUE, GREEN, AMBER, RED, VIOLET, GREY = "#dbe9fb", "#dcf3e0", "#fdeec7", "#f9d9d6", "#e9e0f8", "#eef1f4"


def width(text, size, mono=False, bold=False):
    """Of a line of text, at most: DejaVu's letters are the widest of the families above."""
    if mono:
        return 0.602 * size * len(text)
    narrow = sum(letter in "iljtfrI.,:;'|!()[] " for letter in text)
    wide = sum(letter in "mwMW@%" for letter in text)
    letters = 0.66 * (len(text) - narrow - wide) + 0.42 * narrow + 0.98 * wide
    return size * letters * (1.12 if bold else 1)


class Drawing:
    def __init__(self, name, wide, high):
        self.name, self.wide, self.high = name, wide, high
        self.parts = []

    def _inside(self, what, *points):
        for x, y in points:
            if not (0 <= x <= self.wide and 0 <= y <= self.high):
                raise ValueError(f"{self.name}: {what} at {x:.0f}, {y:.0f} is outside {self.wide:.0f} by {self.high:.0f}")

    def text(self, x, y, text, size=12, anchor="start", mono=False, bold=False, fill=INK, room=None):
        """`y` is the middle of the line; `room`: how wide it may be."""
        long = width(text, size, mono, bold)
        if room is not None and long > room:
            raise ValueError(f"{self.name}: {text!r} is {long:.0f} wide where {room:.0f} is free")
        left = x - {"start": 0, "middle": long / 2, "end": long}[anchor]
        self._inside(text, (left, y), (left + long, y))
        weight = ' font-weight="bold"' if bold else ""
        self.parts.append(
            f'<text x="{x:.1f}" y="{y + 0.36 * size:.1f}" font-family="{MONO if mono else SANS}" font-size="{size}"'
            f' text-anchor="{anchor}" fill="{fill}"{weight}>{escape(text)}</text>'
        )

    def rect(self, x, y, w, h, fill="none", stroke=INK, radius=0, dash=False, thick=1.2):
        self._inside("a box", (x, y), (x + w, y + h))
        dashes = ' stroke-dasharray="5 4"' if dash else ""
        self.parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" rx="{radius}" fill="{fill}" stroke="{stroke}"'
            f' stroke-width="{thick}"{dashes}/>'
        )

    def line(self, points, stroke=INK, thick=1.2, dash=False, fill="none", arrow=False, both=False):
        self._inside("a line", *points)
        dashes = ' stroke-dasharray="3 3"' if dash else ""
        ends = (' marker-end="url(#tip)"' if arrow or both else "") + (' marker-start="url(#tail)"' if both else "")
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{path}" fill="{fill}" stroke="{stroke}" stroke-width="{thick}"{dashes}{ends}/>')

    def save(self, folder):
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.wide:.0f}" height="{self.high:.0f}"'
            f' viewBox="0 0 {self.wide:.0f} {self.high:.0f}">\n'
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
            f'<path d="M0,0.8 L8,4 L0,7.2 z" fill="{INK}"/></marker>'
            '<marker id="tail" viewBox="0 0 8 8" refX="1" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
            f'<path d="M8,0.8 L0,4 L8,7.2 z" fill="{INK}"/></marker></defs>\n'
            f'<rect width="{self.wide:.0f}" height="{self.high:.0f}" fill="white"/>\n'
        )
        (folder / f"{self.name}.svg").write_text(head + "\n".join(self.parts) + "\n</svg>\n")


class Blocks(Drawing):
    """Boxes with a title and lines of text, and arrows between them."""

    def box(self, x, y, w, h, title, *lines, fill=GREY, dash=False, mono=False, size=13):
        self.rect(x, y, w, h, fill, radius=5, dash=dash)
        rows = [(title, size, mono, True)] * bool(title) + [(line, size - 2, False, False) for line in lines]
        top = y + (h - sum(size + 5 for _, size, *_ in rows)) / 2
        for text, high, fixed, bold in rows:
            self.text(x + w / 2, top + (high + 5) / 2, text, high, "middle", fixed, bold, room=w - 6)
            top += high + 5

    def frame(self, x, y, w, h, title, size=12):
        self.rect(x, y, w, h, stroke=FAINT, radius=7, dash=True)
        self.text(x + 10, y + 13, title, size, fill=FAINT, room=w - 20)

    def arrow(self, *points, label=None, at=None, anchor="middle", both=False, dash=False, size=11):
        """Along the points; `at`: where its label's middle (or start, or end) is."""
        self.line(points, arrow=True, both=both, dash=dash)
        if label:
            if at is None:
                (x0, y0), (x1, y1) = points[0], points[1]
                at = ((x0 + x1) / 2, (y0 + y1) / 2 - 9)
            self.text(*at, label, size, anchor, fill=FAINT)

    def label(self, x, y, text, anchor="start", size=11, mono=False, bold=False, fill=FAINT):
        self.text(x, y, text, size, anchor, mono, bold, fill)
