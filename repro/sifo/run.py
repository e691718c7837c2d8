#!/usr/bin/env python3
"""Tables 1, 3 and 4 of SIFO beside the same problems as blindcore makes them.

    cargo build --release --bin blindcore
    python3 repro/sifo/run.py                 the tables in Markdown
    python3 repro/sifo/run.py --json          the same figures for programs

Everything is counted when it is asked. Published figures: Fang, Ioannidis and Leeser, "SIFO: Secure Computational
Infrastructure using FPGA Overlays", 2019, whose circuits FlexSC generated; those that blindcore holds of it come from
`blindcore circuit stats` too.
"""

import argparse
import json
import subprocess
import sys

TABLE_1 = ["layers", "input_wires", "output_wires", "ands", "xors", "gates", "reprogrammings"]
TABLE_3 = ["wires", "one_to_one", "adjacent", "not_adjacent", "most_one_to_one", "wires_a_layer"]
TABLE_4 = ["percent_a", "percent_b", "percent_c"]
HEADS = {
    "layers": "layers", "input_wires": "input wires", "output_wires": "output wires", "ands": "ANDs", "xors": "XORs",
    "gates": "gates", "reprogrammings": "reprogrammings at 10 ANDs", "wires": "wires", "one_to_one": "A",
    "adjacent": "B", "not_adjacent": "C", "most_one_to_one": "D", "wires_a_layer": "wires a layer",
    "percent_a": "A of all wires, %", "percent_b": "B of A, %", "percent_c": "B of all wires, %",
}


def ask(blindcore, *arguments):
    """What a command prints as JSON."""
    try:
        done = subprocess.run([blindcore, *arguments, "--json"], check=True, stdout=subprocess.PIPE)
    except FileNotFoundError:
        sys.exit(f"{blindcore} is not there; build it, or say --blindcore PATH")
    except subprocess.CalledProcessError as error:
        sys.exit(f"{' '.join(error.cmd)} ended with {error.returncode}")
    return json.loads(done.stdout)


def number(value):
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


def table(title, rows, columns):
    """Our figures, each over the paper's."""
    print(f"\n## {title}\n")
    print("| problem | | " + " | ".join(HEADS[c] for c in columns) + " |")
    print("|---|---|" + "--:|" * len(columns))
    for row in rows:
        print(f"| {row['circuit']} | here | " + " | ".join(number(row[c]) for c in columns) + " |")
        print("| | paper | " + " | ".join(number(row["paper"][c]) for c in columns) + " |")


def markdown(rows):
    print("# SIFO's problems, here and in the paper\n")
    print("Made by `python3 repro/sifo/run.py > repro/sifo/tables.md`; `README.md` says what to make of it.")
    print("\n## ANDs, which are what garbling costs\n")
    print("| problem | what it computes | here | FlexSC today | the paper | here, of FlexSC today |")
    print("|---|---|--:|--:|--:|--:|")
    for row in rows:
        ours, flexsc, paper = row["ands"], row["flexsc_ands"], row["paper"]["ands"]
        counts = " | ".join(number(n) for n in (ours, flexsc, paper))
        print(f"| {row['circuit']} | {row['about']} | {counts} | {100 * ours / flexsc:.0f} % |")
    table("Table 1: gates", rows, TABLE_1)
    table("Table 3: wires", rows, TABLE_3)
    print("\nA: one-to-one wires; B: those that the next layer reads; C: those that a later one reads; D: most in a layer.")
    table("Table 4: shares of wires", rows, TABLE_4)
    memory = rows[0]["memory"]["block_ram"]
    print(f"\n## DDR accesses that the memory policies leave, with {memory:,} words of block RAM\n")
    policies = [p["policy"] for p in rows[0]["memory"]["policies"]]
    print("| problem | without block RAM | " + " | ".join(policies) + " | words that lifetimes takes |")
    print("|---|--:|" + "--:|" * len(policies) + "--:|")
    for row in rows:
        by_policy = row["memory"]["policies"]
        accesses = [3 * row["gates"]] + [p["ddr_reads"] + p["ddr_writes"] for p in by_policy]
        counts = " | ".join(number(n) for n in accesses)
        print(f"| {row['circuit']} | {counts} | {number(by_policy[-1]['block_ram_words'])} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blindcore", default="target/release/blindcore", help="the command [%(default)s]")
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args()
    problems = ask(args.blindcore, "circuit", "list")["problems"]
    names = [p["name"] for p in problems if p["paper_ands"] is not None]
    rows = [ask(args.blindcore, "circuit", "stats", name) for name in names]
    if args.json:
        made_by = "python3 repro/sifo/run.py --json > repro/sifo/tables.json"
        print(json.dumps({"made_by": made_by, "rows": rows}, indent=1))
    else:
        markdown(rows)


if __name__ == "__main__":
    main()
