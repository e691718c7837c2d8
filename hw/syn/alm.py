"""One block in Stratix V's logic modules (ALMs), before placement. `make -C hw alm BLOCK=...` runs it.

Yosys knows Cyclone V's ALM, which is the same: eight inputs for two look-up tables, two adders, four registers. It maps a block
to tables of at most six inputs, adder bits and registers, and doesn't put them into ALMs. That is done here, by the rules of
Stratix V's handbook (volume 1, "Normal mode"): a table of six inputs takes an ALM; two smaller ones share it if they have no
more than eight different inputs (five and five must share two, five and four one); two bits of an adder take one.

What it leaves out is said in syn/README.md.
"""

import argparse
import json
import re
import sys
from collections import Counter

from common import OUT, Failure, digest, make_command, parse_parameters, read_command, run_name, save, sources_of, tool_version, yosys

INPUTS = 8  # of an ALM
REGISTERS = 4
# Cells that no ALM holds, and what they are called in the result.
OTHERS = {"MISTRAL_M10K": "m10k_rams", "MISTRAL_MLAB": "mlab_bits", "MISTRAL_MUL27X27": "multipliers_27x27",
          "MISTRAL_MUL18X18": "multipliers_18x18", "MISTRAL_MUL9X9": "multipliers_9x9"}


def pack(tables: list[frozenset]) -> int:
    """ALMs for tables of at most five inputs, each given by its nets: those of five first, each with the largest partner that
    fits. What it gives can be reached, and there may be less."""
    wide = sorted((t for t in tables if len(t) == 5), key=sorted)
    by_net = {}
    for i, table in enumerate(wide):
        for net in table:
            by_net.setdefault(net, []).append((5, i))
    middle = sorted((t for t in tables if len(t) == 4), key=sorted)
    for i, table in enumerate(middle):
        for net in table:
            by_net.setdefault(net, []).append((4, i))
    small = sum(len(t) < 4 for t in tables)
    taken, alms, alone = set(), 0, 0
    for i, table in enumerate(wide):
        if (5, i) in taken:
            continue
        taken.add((5, i))
        shared = Counter(other for net in table for other in by_net[net] if other not in taken)
        fit = [other for other, common in shared.items() if 5 + other[0] - common <= INPUTS]
        if fit:
            taken.add(max(fit, key=lambda other: (other[0], -other[1])))
            alms += 1
        else:
            alone += 1
    # Five and three share nothing; what is left fits in pairs.
    left = sum((4, i) not in taken for i in range(len(middle))) + max(small - alone, 0)
    return alms + alone + -(-left // 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--block", required=True)
    parser.add_argument("parameter", nargs="*", help="NAME=NUMBER of the block")
    arguments = parser.parse_args()
    block, parameters = arguments.block, parse_parameters(arguments.parameter)
    name = run_name(block, parameters, "alm")
    folder = OUT / name
    folder.mkdir(parents=True, exist_ok=True)
    sources = digest(sources_of(block))
    yosys([
        read_command(block, parameters, []),
        f"synth_intel_alm -family cyclonev -top {block} -noiopad -noclkbuf",
        "write_json mapped.json",
    ], folder, "yosys")
    module = json.loads((folder / "mapped.json").read_text())["modules"][block]
    tables, counts = [], Counter()
    for cell in module["cells"].values():
        kind = cell["type"]
        counts[kind] += 1
        if re.fullmatch(r"MISTRAL_ALUT[2-6]|MISTRAL_NOT", kind):
            nets = {net for port, nets in cell["connections"].items() if port != "Q" for net in nets}
            tables.append(frozenset(net for net in nets if isinstance(net, int)))  # not constants
    known = {"MISTRAL_FF", "MISTRAL_ALUT_ARITH", "MISTRAL_NOT", *OTHERS, *(f"MISTRAL_ALUT{n}" for n in range(2, 7))}
    if set(counts) - known:
        raise Failure(f"cells that no rule is for: {', '.join(sorted(set(counts) - known))}")
    six = sum(len(t) == 6 for t in tables)
    rest = [t for t in tables if len(t) < 6]
    adder_bits, registers = counts["MISTRAL_ALUT_ARITH"], counts["MISTRAL_FF"]
    adders = -(-adder_bits // 2)
    logic = six + pack(rest) + adders
    save(
        {
            "block": block,
            "parameters": parameters,
            "family": "ALMs of Stratix V, by yosys's Cyclone V",
            "tables_by_inputs": {str(n): sum(len(t) == n for t in tables) for n in range(6, 0, -1)},
            "adder_bits": adder_bits,
            "aluts": len(tables) + adder_bits,
            "registers": registers,
            "alms": max(logic, -(-registers // REGISTERS)),
            "alms_if_every_pair_fitted": max(six + -(-len(rest) // 2) + adders, -(-registers // REGISTERS)),
            **{called: counts[kind] for kind, called in OTHERS.items() if counts[kind]},
            "timing": "none: before placement",
            "sources": sources,
            "tools": [tool_version("pyosys")],
            "command": make_command("alm", block, parameters),
        },
        name,
    )


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(f"alm: {failure}")
