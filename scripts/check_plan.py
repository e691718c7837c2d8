"""Compares what `blindcore plan` says with what it plans: builds tables, serves them and looks rows up.

    cargo build --release --bin blindcore
    python3 scripts/check_plan.py --json > plan.json

Each table is built, served on loopback and then, by turns, asked and planned, one lookup at a time and many gathered in
passes. Each plan is held against what was measured right before and right after it, the least of each, since other work on a
machine only adds to times: where these two differ, the machine's pace changed, and the nearer one counts. `plans` and `around`
have all of them, `ratio` is that of the plan that is furthest off, `ratio_of_least` of the least of all plans to the least of
all that was measured; both must hold. Tables lie in a temporary folder (TMPDIR), which needs three
times the largest table, and are removed. Exits with 1 where a ratio that is promised lies outside of its bound.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

# Rows, bytes of a record, lookups by key or by number. A text of 128 characters or more has a byte before it and one or two
# that say how many there are.
TABLES = {"10k-1k": (10_000, 1024, True), "10m-256": (10_000_000, 256, True), "3m-2": (3_000_000, 2, False)}
# A planned size may be off by this, and so may a planned time.
BOUND = 1.3
# So many plans, each between lookups.
PLANS = 3


def main():
    parser = argparse.ArgumentParser(description="Compare planned with measured tables.")
    parser.add_argument("--blindcore", default="target/release/blindcore", help="the program")
    parser.add_argument("--table", action="append", choices=TABLES, help="only this table; may be said again")
    parser.add_argument("--lookups", type=int, default=5, help="single lookups before and after each plan, 1 to 1000")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    args = parser.parse_args()
    if not 1 <= args.lookups <= 1000:
        parser.error(f"--lookups is {args.lookups}, outside 1 to 1000")
    blindcore = str(pathlib.Path(args.blindcore).absolute())
    if not os.access(blindcore, os.X_OK):
        parser.error(f"{args.blindcore} is not there; run cargo build --release --bin blindcore")
    rows, rates = [], None
    for name in args.table or TABLES:
        with tempfile.TemporaryDirectory(prefix="blindcore-plan-") as folder:
            more, rates = check(blindcore, name, folder, args.lookups)
            rows += more
    if args.json:
        machine = {key: rates[key] for key in ("processor", "device", "threads")}
        print(json.dumps({"machine": machine, "rows": rows}, indent=2))
    else:
        for row in rows:
            print(f"{row['id']:36} {row['planned']:>14.6g} {row['measured']:>14.6g} {row['unit']:3} {row['ratio']:.2f}")
    ratios = [(row["id"], ratio) for row in rows if row["promised"] for ratio in (row["ratio"], row["ratio_of_least"])]
    worst = sorted({name for name, ratio in ratios if not 1 / BOUND <= ratio <= BOUND})
    if worst:
        note(f"planned and measured differ by more than {BOUND} times: {', '.join(worst)}")
        sys.exit(1)


def note(text):
    print(text, file=sys.stderr, flush=True)


def run(blindcore, folder, *args, **more):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("BLINDCORE_")}
    environment["BLINDCORE_CACHE"] = os.path.join(folder, "cache")
    done = subprocess.run([blindcore, *args], cwd=folder, env=environment, stdout=subprocess.PIPE, check=True, **more)
    return json.loads(done.stdout)


def plan(blindcore, folder, rows, record_bytes, keyed):
    note(f"planning {rows} rows of {record_bytes} B")
    found = ["--key-bytes", "12"] if keyed else ["--by-index"]
    answer = run(blindcore, folder, "plan", "--rows", str(rows), "--record-bytes", str(record_bytes), *found, "--json")
    return next(c for c in answer["candidates"] if c["chosen"]), answer["rates"]


def text_of(row, record_bytes):
    """A value whose record has so many bytes, unlike those of other rows."""
    length = record_bytes - (3 if record_bytes >= 256 + 3 else 2 if record_bytes >= 130 else 1)
    return (f"{row * 2654435761 % 2**32:08x}" * (length // 8 + 1))[:length]


def write_table(path, rows, record_bytes):
    with open(path, "w", encoding="ascii", buffering=1 << 20) as file:
        file.write("k,v\n")
        for row in range(rows):
            file.write(f"k{row:011},{text_of(row, record_bytes)}\n")


class Server:
    """A server on loopback with its log."""

    def __init__(self, blindcore, folder, *args):
        command = [blindcore, "serve", *args, "--listen", "127.0.0.1:0", "--log-json"]
        self.child = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
        self.lines, self.ready, self.url = [], threading.Event(), None
        threading.Thread(target=self.listen, daemon=True).start()
        if not self.ready.wait(300) or self.url is None:
            raise SystemExit("the server does not start: " + "".join(self.lines))

    def listen(self):
        for line in self.child.stderr:
            self.lines.append(line)
            found = re.search(r"listening on (http://[0-9.:]+)", line)
            if found:
                self.url = found.group(1)
                self.ready.set()
        self.ready.set()

    def queries(self, least=0):
        """What it logged of queries, once there are so many."""
        for _ in range(1000):
            entries = [json.loads(line)["fields"] for line in list(self.lines)]
            found = [entry for entry in entries if entry.get("message") == "query"]
            if len(found) >= least:
                return found
            time.sleep(0.01)
        raise SystemExit(f"the server logged {len(found)} queries of {least}")

    def memory(self):
        """Bytes in memory, but for pages of the database's files: its copies are what is read."""
        total, counted = 0, True
        for line in pathlib.Path(f"/proc/{self.child.pid}/smaps").read_text().splitlines():
            if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
                counted = "/t.db/" not in line
            elif counted and line.startswith("Rss:"):
                total += int(line.split()[1]) * 1024
        return total

    def stop(self):
        self.child.terminate()
        self.child.wait(60)


def check(blindcore, name, folder, lookups):
    rows, record_bytes, keyed = TABLES[name]
    note(f"writing {name}")
    write_table(os.path.join(folder, "t.csv"), rows, record_bytes)
    note("building it")
    key = ["--key", "k"] if keyed else []
    built = run(blindcore, folder, "db", "build", "t.csv", *key, "--value", "v", "--out", "t.db", "--json")
    server = Server(blindcore, folder, "t.db")
    try:
        table = ["get", "--server", server.url, "--table", "t", "--json"]

        def single(row):
            got = run(blindcore, folder, *table, *(["--key", f"k{row:011}"] if keyed else ["--index", str(row)]))
            if str(got["value"]["v"]) != text_of(row, record_bytes):
                raise SystemExit(f"row {row} is wrong: {got}")
            return got

        hint = single(0)["bytes"]["hint"]
        if keyed:
            keys = os.path.join(folder, "keys.txt")
            pathlib.Path(keys).write_text("".join(f"k{row * 104729 % rows:011}\n" for row in range(256)))
        plans, turns, sizes = [], [], None
        for turn in range(PLANS + 1):
            note("looking up")
            seen = len(server.queries())
            singles = [single((turn * lookups + i) * 7919 % rows) for i in range(lookups)]
            sizes = singles[0]["bytes"]
            asked = seen + lookups
            times = {"server": least_pass(server.queries(asked)[seen:asked])}
            # A process of its own takes pages of the hint in while it prepares its first lookup.
            prepared = [got["ms"]["prepare"] for got in singles]
            if keyed:
                many = [run(blindcore, folder, *table, "--keys-from", keys)["results"] for _ in range(2)]
                prepared = [lookup["ms"]["prepare"] for results in many for lookup in results[1:]]
                times["server.gathered"] = least_pass(q for q in server.queries()[asked:] if q["gathered"] == 16)
            turns.append(times | {"prepare": min(prepared) / 1e3})
            if turn < PLANS:
                chosen, rates = plan(blindcore, folder, rows, record_bytes, keyed)
                plans.append(chosen)
        memory = server.memory()
    finally:
        server.stop()

    def planned(field):
        return [chosen[field] for chosen in plans]

    def row(what, unit, by_plan, around, promised=True):
        found = []
        for said, measured in zip(by_plan, around):
            nearest = min(measured, key=lambda real: off(said / real))
            found.append({"planned": said, "measured": nearest, "unit": unit, "ratio": said / nearest})
        worst = max(found, key=lambda one: off(one["ratio"]))
        worst["ratio"] = round(worst["ratio"], 3)
        worst["ratio_of_least"] = round(min(by_plan) / min(real for pair in around for real in pair), 3)
        return {"id": f"plan.{name}.{what}"} | worst | {"promised": promised, "plans": by_plan, "around": around}

    def timed(what, field, promised=True):
        around = [[before[what], after[what]] for before, after in zip(turns, turns[1:])]
        return row(what, "s", planned(field), around, promised)

    def same(what, unit, by_plan, real, promised=True):
        return row(what, unit, by_plan, [[real]] * PLANS, promised)

    out = [
        same("hint", "B", planned("hint_bytes"), hint),
        same("query", "B", planned("query_bytes"), sizes["up"]),
        same("answer", "B", planned("answer_bytes"), sizes["down"]),
        timed("prepare", "prepare_seconds", keyed),
        # Waking the server's threads is most of a shorter pass, and takes now this and now that.
        timed("server", "server_seconds", min(turn["server"] for turn in turns) > 500e-6),
    ]
    if keyed:
        out.append(timed("server.gathered", "server_seconds_gathered"))
    out.append(same("memory", "B", planned("memory_bytes"), memory))
    builds = [sum(chosen["build_seconds"].values()) for chosen in plans]
    out.append(same("build", "s", builds, built["seconds"], promised=False))
    return out, rates


def off(ratio):
    """How far a ratio is from 1, up or down."""
    return max(ratio, 1 / ratio)


def least_pass(queries):
    """Seconds of a query in the quickest pass."""
    times = [entry["pass_micros"] / entry["queries"] for entry in queries]
    if not times:
        raise SystemExit("the server logged no such pass")
    return min(times) / 1e6


if __name__ == "__main__":
    main()
