"""What peers in Python share: batches, dot products' numbers, and the document that they print."""

import argparse
import json
import math
import secrets
import statistics
import time

BATCHES = 7
BITS = 2048
TERMS = 576  # inputs of a dot product: a 3 x 3 x 64 convolution


def batch_seconds(description):
    """How long a batch takes, by --quick or without."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="shorter batches")
    return 0.04 if parser.parse_args().quick else 0.2


def measure(seconds, operation):
    """Rates of batches that take about `seconds` each."""

    def timed(count):
        start = time.perf_counter()
        for _ in range(count):
            operation()
        return time.perf_counter() - start

    count = 1
    while (taken := timed(count)) < seconds / 4:
        count *= 2
    count = math.ceil(count * seconds / taken * 1.1)
    return [count / timed(count) for _ in range(BATCHES)]


def int8s(count):
    return [byte - 128 for byte in secrets.token_bytes(count)]


class Rows:
    """Rows as `blindcore bench` reads them: operations a second, the median of n batches."""

    def __init__(self):
        self.rows = []

    def add(self, name, rates):
        figures = {"value": statistics.median(rates), "n": len(rates), "min": min(rates), "max": max(rates)}
        self.rows.append({"id": name} | {key: round(figure, 3) for key, figure in figures.items()})

    def show(self, peer):
        print(json.dumps({"peer": peer, "rows": self.rows}, indent=2))
