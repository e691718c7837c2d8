"""Two builds of the command, measured in turns: `compare.py BEFORE AFTER [--json FILE]`.

Each round runs `bench lookup`, `bench sum` and `bench circuit` with one build and then with the other, and the next round the
other way round, so that a neighbour who slows the machine slows both. A row's figure is the median of its rounds; what counts
is the ratio. The exit code is 1 if a row is slower by more than --slower percent.
"""

import argparse
import json
import statistics
import subprocess
import sys

# Units of which less is better, times and memory; of the others, rates, more is.
LESS = {"s", "ms", "us", "ns", "MiB"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", help="the program that was")
    parser.add_argument("after", help="the program that is")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="rounds (default: 3)")
    parser.add_argument("--gib", default="0.25", metavar="N", help="GiB of the scanned database (default: 0.25)")
    parser.add_argument("--bench", action="append", choices=["lookup", "sum", "circuit"], help="only this; may be repeated")
    parser.add_argument("--only", metavar="WHAT", help="only this of bench lookup: scan, hint, client or table")
    parser.add_argument("--slower", type=float, default=2, metavar="PERCENT", help="a row that is slower by more is named (default: 2)")
    parser.add_argument("--json", metavar="FILE", help="where the medians go")
    options = parser.parse_args()
    commands = {"lookup": ["lookup", "--gib", options.gib, "--repeat", "5"], "sum": ["sum"], "circuit": ["circuit"]}
    if options.only:
        options.bench = ["lookup"]
        commands["lookup"] += ["--only", options.only]
    samples = {}
    machine = None
    for turn in range(options.rounds):
        order = [("before", options.before), ("after", options.after)]
        for bench in options.bench or commands:
            for which, program in order if turn % 2 == 0 else reversed(order):
                print(f"round {turn + 1} of {options.rounds}: bench {bench}, {which}", file=sys.stderr, flush=True)
                run = subprocess.run([program, "bench", *commands[bench], "--json"], stdout=subprocess.PIPE, check=True)
                document = json.loads(run.stdout)
                machine = document["machine"]
                for row in document["rows"]:
                    entry = samples.setdefault(row["id"], {"unit": row["unit"], "before": [], "after": []})
                    entry[which].append(row["value"])
    rows, slower = [], []
    for name, entry in samples.items():
        if not entry["before"] or not entry["after"]:
            print(f"{name}: measured by one of them alone", file=sys.stderr)
            continue
        before, after = (statistics.median(entry[which]) for which in ("before", "after"))
        speed = before / after if entry["unit"] in LESS else after / before
        rows.append({"id": name, "unit": entry["unit"], "before": before, "after": after, "speed": round(speed, 3)})
        if speed < 1 - options.slower / 100:
            slower.append(name)
        print(f"{name:44} {before:12.4g} {after:12.4g} {entry['unit']:14} {speed:.3f}")
    if options.json:
        document = {"machine": machine, "rounds": options.rounds, "gib": options.gib, "rows": rows}
        with open(options.json, "w", encoding="utf-8") as file:
            file.write(json.dumps(document, indent=1) + "\n")
    if slower:
        print(f"slower by more than {options.slower:g} %: {', '.join(slower)}")
        sys.exit(1)


if __name__ == "__main__":
    main()
