#!/usr/bin/env python3
"""Draws harbour.png: 48 x 64 pixels of sky, sun, sea, a sail and a pier. Made by arithmetic alone; free to use."""

import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples/convolution"))
from run import write_png  # noqa: E402

WIDTH, HEIGHT = 64, 48


def pixel(x, y):
    horizon = 28
    if y < horizon:
        colour = [90 + 3 * y, 150 + 2 * y, 225]
        if (x - 48) ** 2 + (y - 10) ** 2 < 36:
            colour = [250, 220, 120]
    else:
        wave = int(14 * math.sin(0.9 * x + 1.7 * y) * math.sin(0.35 * y))
        colour = [20 + wave, 80 + wave + 2 * (y - horizon), 130 + wave]
    if 12 <= y < 31 and abs(x - 20) * 19 < (y - 12) * 9 and x != 20:
        colour = [245, 240, 230] if x > 20 else [210, 60, 50]
    if 31 <= y < 35 and abs(x - 20) < 12 - (y - 31) * 2:
        colour = [90, 55, 30]
    if x == 20 and 10 <= y < 31:
        colour = [60, 40, 30]
    if y >= 38 and x >= 40 and (y < 41 or (x - 40) % 7 < 2):
        colour = [120, 85, 50]
    return tuple(max(0, min(255, v)) for v in colour)


write_png(pathlib.Path(__file__).with_name("harbour.png"), [[pixel(x, y) for x in range(WIDTH)] for y in range(HEIGHT)])
