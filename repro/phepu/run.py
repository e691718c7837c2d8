#!/usr/bin/env python3
"""How many of today's cores equal one PH-EPU chip, from a measured rate.

    blindcore bench sum --json > sum.json
    python3 repro/phepu/run.py sum.json

Prints a table in Markdown. Published figures: Shi et al., "A 28nm 68MOPS 0.18 uJ/Op Paillier Homomorphic Encryption
Processor with Bit-Serial Sparse Ciphertext Computing", ISSCC 2023, Fig. 15.4.7: 4096-bit Montgomery multiplications a
second with the cost of all input and output, for one chip and for a card of eight.
"""

import json
import sys

PUBLISHED = [
    ("chip, basic operations", 23e6),
    ("chip, MAC mode", 68e6),
    ("card of 8, basic operations", 181e6),
    ("card of 8, MAC mode", 355e6),
]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        document = json.load(file)
    rates = {row["id"]: row["value"] for row in document["rows"]}
    try:
        general, halves = rates["sum.mul.4096"] * 1e6, rates["sum.mul.n2.2048"] * 1e6
        bit_serial = next(r["of_value"] for r in document["rows"] if r["id"] == "sum.dot576.unpacked")
        outputs = rates["sum.dot576.unpacked"]
    except (KeyError, StopIteration):
        sys.exit(f"{sys.argv[1]} has not the rows of `blindcore bench sum --json`")
    print(f"One core of {document['machine']['processor']}, {document['machine']['settings']['device']}:")
    print(f"{general / 1e6:.2f} M products of 4096 bits per second, {halves / 1e6:.2f} M modulo n^2 in halves.\n")
    print("| PH-EPU | published, M/s | = cores, plain products | = cores, products in halves |")
    print("|---|---|---|---|")
    for name, rate in PUBLISHED:
        print(f"| {name} | {rate / 1e6:.0f} | {rate / general:.1f} | {rate / halves:.1f} |")
    print(
        f"\nDot products of 576 int8 terms: the chip's bit-serial dataflow on this core makes {bit_serial:.0f} outputs a"
        f" second, tables shared by outputs {outputs:.0f} ({outputs / bit_serial:.1f} times): against the chip's work, and"
        f" not its multiplications alone, divide the cores by that."
    )


if __name__ == "__main__":
    main()
