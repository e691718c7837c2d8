"""The results as Markdown, the thesis's and the paper's own figures beside them. `make -C hw syn-table` prints it."""

import json
import re

from common import RESULTS, digest, sources_of

# OnionChopper thesis, sections 4.2.4, 4.2.5 and 6.4; its library is not named.
# 6.87 mm2, of which compute units 99.54 %, two of them, modelled by Accelergy and not synthesised.
THESIS = {
    ("oc_compute_unit", 0): {"ps": 3442.00},
    ("oc_compute_unit", 1): {"ps": 500.0, "mm2": 6.87 * 0.9954 / 2},
    ("oc_full_adder", None): {"ps": 153.58},
    ("oc_comparator", None): {"ps": 100.32},
}
# SIFO 2019, section 3.1.1: a gAND on Stratix V.
PAPER = {("sf_gand", 80): {"alms": 3070, "registers": 3750}}
ORDER = ["oc_compute_unit", "oc_mod_acc", "oc_multiplier", "oc_adder", "oc_compute_unit_lwe", "oc_full_adder", "oc_comparator"]


def row(*cells) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def number(value, digits: int) -> str:
    return "" if value is None else f"{value:,.{digits}f}"


def depth(result: dict):
    return result["parameters"].get("BITS")


def shown(result: dict) -> str:
    others = [f"{k}={v}" for k, v in result["parameters"].items() if k != "BITS"]
    changed = result["sources"] != digest(sources_of(result["block"]))
    return " ".join([result["block"], *others, *(["(older sources)"] if changed else [])])


def order(result: dict):
    block = result["block"]
    known = ORDER.index(block) if block in ORDER else len(ORDER)
    bits = depth(result)
    return known, block, -1 if bits is None else 1000 if bits == 0 else bits, result.get("library", "")


def limit(path: dict) -> str:
    """From register to register, without the cells' names that mapping strings together behind a net's own."""
    start, end = (re.sub(r"(_[A-Z][A-Z0-9]*)+(_[0-9A-Z]+)*$", "", path[name]) for name in ("start", "end"))
    return f"{start} to {end}"


def main():
    results = [json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))]
    cells = sorted((r for r in results if "library" in r), key=order)
    chips = sorted((r for r in results if "device" in r), key=order)

    print("Standard cells, before layout: no wires, no clock tree, typical corner.\n")
    heads = ["block", "BITS", "library", "mm2", "of it registers", "cells", "flip-flops", "ps", "MHz", "pJ a clock"]
    heads += ["limiting path", "gates", "register + logic + setup, ps"]
    print(row(*heads))
    print(row(*["---"] * len(heads)))
    done = set()
    for r in cells:
        for key in THESIS:
            if key[0] == r["block"] and key not in done:
                done.add(key)
                print(thesis_row(key))
        path = r.get("limiting_path")
        parts = f"{path['register_ps']} + {path['logic_ps']} + {path['setup_ps']}" if path else ""
        print(
            row(
                shown(r),
                "" if depth(r) is None else depth(r),
                r["library"],
                number(r["area_um2"] / 1e6, 6 if r["area_um2"] < 1e3 else 3),
                number(100 * r["area_of_registers_um2"] / r["area_um2"], 0) + " %",
                number(r["cells"], 0),
                number(r["flip_flops"], 0),
                number(r.get("clock_ps", r.get("delay_ps", r.get("logic_ps"))), 0 if "clock_ps" in r else 1),
                number(r.get("fastest_mhz"), 0),
                number(r.get("power", {}).get("picojoules_a_clock"), 0),
                limit(path) if path else r["timing"],
                path["gates"] if path else "",
                parts,
            )
        )

    print(f"\nFPGA, after place and route: {', '.join(sorted({r['device'] for r in chips}))}.\n")
    heads = ["block", "BITS", "LUTs", "flip-flops", "18x18 multipliers", "ps", "MHz", "limiting path"]
    heads += ["register + logic + wires, ps"]
    print(row(*heads))
    print(row(*["---"] * len(heads)))
    for r in chips:
        path = r["limiting_path"]
        print(
            row(
                shown(r),
                "" if depth(r) is None else depth(r),
                number(r["luts"], 0),
                number(r["flip_flops"] - r["of_these_flip_flops_of_the_harness"], 0),
                r["multipliers_18x18"],
                number(r["clock_ps"], 0),
                number(r["fastest_mhz"], 1),
                limit(path),
                f"{path['register_ps']} + {path['logic_ps']} + {path['wires_ps']}",
            )
        )

    modules = sorted((r for r in results if "alms" in r), key=order)
    print("\nALMs of Stratix V, before placement.\n")
    heads = ["block", "ALMs", "were every pair of tables to fit", "tables of 6, 5, 4, 3, 2, 1 inputs", "adder bits", "registers"]
    heads += ["published ALMs", "published registers"]
    print(row(*heads))
    print(row(*["---"] * len(heads)))
    for r in modules:
        published = PAPER.get((r["block"], r["parameters"].get("LABEL", 80)), {})
        print(
            row(
                shown(r),
                number(r["alms"], 0),
                number(r["alms_if_every_pair_fitted"], 0),
                ", ".join(number(count, 0) for count in r["tables_by_inputs"].values()),
                number(r["adder_bits"], 0),
                number(r["registers"], 0),
                number(published.get("alms"), 0),
                number(published.get("registers"), 0),
            )
        )
    print("\nTools: " + "; ".join(sorted({tool for r in results for tool in r["tools"]})) + ".")


def thesis_row(key) -> str:
    block, bits = key
    figure = THESIS[key]
    return row(
        block,
        "" if bits is None else bits,
        "the thesis",
        number(figure.get("mm2"), 3),
        "",
        "",
        "",
        number(figure["ps"], 2),
        number(1e6 / figure["ps"], 0) if block == "oc_compute_unit" else "",
        "",
        "assumed, from its full adder and comparator" if bits == 1 else "",
        "",
        "",
    )


if __name__ == "__main__":
    main()
