"""Compares what `blindcore plan` says with what it plans: builds tables, serves them and looks rows up.

    cargo build --release -p blindcore-cli
    python3 scripts/check_plan.py --json > plan.json

Each table is built and served on loopback. While a plan measures the machine, it is stopped again and again and the server is
asked meanwhile, one lookup at a time and many gathered in passes: other work may slow the machine for minutes, and both see the
same of it then. Each plan is held against what was measured meanwhile, of which the mean of the quickest quarter counts, as it
does in the plan. `ratio` is that of the plan that is furthest off, `plans` and `lookups` have all of them; `ratio_of_least` is
the least of all plans to the least of all that was measured. Both must hold. Tables lie in a temporary folder (TMPDIR), which
needs three times the largest table, and are removed. Exits with 1 where a ratio that is promised lies outside of its bound.
"""

import argparse
import itertools
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

# Rows, bytes of a record, and how many keys are looked up together, or 0 for rows that are found by their number. A text of
# 128 characters or more has a byte before it and one or two that say how many there are.
TABLES = {"10k-1k": (10_000, 1024, 128), "10m-256": (10_000_000, 256, 16), "3m-2": (3_000_000, 2, 0)}
# A planned size may be off by this, and so may a planned time.
BOUND = 1.3
# This many plans.
PLANS = 3
# Seconds for which a plan goes on between two times that the server is asked. A sample that a stop falls into is lost, so they
# are many times as long as a sample.
SLICE = 2
# This many lookups then, of one key each or of many, one after another.
LOOKUPS = 3


def main():
    parser = argparse.ArgumentParser(description="Compare planned with measured tables.")
    parser.add_argument("--blindcore", default="target/release/blindcore", help="the program")
    parser.add_argument("--table", action="append", choices=TABLES, help="only this table; may be said again")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    args = parser.parse_args()
    blindcore = str(pathlib.Path(args.blindcore).absolute())
    if not os.access(blindcore, os.X_OK):
        parser.error(f"{args.blindcore} is not there; run cargo build --release -p blindcore-cli")
    rows, rates = [], None
    for name in args.table or TABLES:
        with tempfile.TemporaryDirectory(prefix="blindcore-plan-") as folder:
            more, rates = check(blindcore, name, folder)
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


def start(blindcore, folder, *args, **more):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("BLINDCORE_")}
    environment["BLINDCORE_CACHE"] = os.path.join(folder, "cache")
    return subprocess.Popen([blindcore, *args], cwd=folder, env=environment, **more)


def run(blindcore, folder, *args):
    with start(blindcore, folder, *args, stdout=subprocess.PIPE) as running:
        out, _ = running.communicate()
    if running.returncode != 0:
        raise SystemExit(f"blindcore {args[0]} ended with {running.returncode}")
    return json.loads(out)


def plan(blindcore, folder, rows, record_bytes, keyed, meanwhile):
    """A plan that is stopped after every SLICE, for `meanwhile`."""
    note(f"planning {rows} rows of {record_bytes} B")
    found = ["--key-bytes", "12"] if keyed else ["--by-index"]
    args = ["plan", "--rows", str(rows), "--record-bytes", str(record_bytes), *found, "--json"]
    path = pathlib.Path(folder, "plan.json")
    with open(path, "wb") as out, start(blindcore, folder, *args, stdout=out) as running:
        try:
            while True:
                try:
                    running.wait(SLICE)
                    break
                except subprocess.TimeoutExpired:
                    running.send_signal(signal.SIGSTOP)
                    meanwhile()
                    running.send_signal(signal.SIGCONT)
        except BaseException:
            running.kill()
            raise
    if running.returncode != 0:
        raise SystemExit(f"blindcore plan ended with {running.returncode}")
    answer = json.loads(path.read_bytes())
    return next(c for c in answer["candidates"] if c["chosen"]), answer["rates"]


def text_of(row, record_bytes):
    """A value whose record has this many bytes, unlike those of other rows."""
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
        """What it logged of queries, once there are this many."""
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


def check(blindcore, name, folder):
    rows, record_bytes, together = TABLES[name]
    note(f"writing {name}")
    write_table(os.path.join(folder, "t.csv"), rows, record_bytes)
    note("building it")
    key = ["--key", "k"] if together else []
    built = run(blindcore, folder, "db", "build", "t.csv", *key, "--value", "v", "--out", "t.db", "--json")
    server = Server(blindcore, folder, "t.db")
    try:
        table = ["get", "--server", server.url, "--table", "t", "--json"]
        numbers = itertools.count(1)

        def single():
            row = next(numbers) * 7919 % rows
            found = ["--key", f"k{row:011}"] if together else ["--index", str(row)]
            got = run(blindcore, folder, *table, *found)
            if str(got["value"]["v"]) != text_of(row, record_bytes):
                raise SystemExit(f"row {row} is wrong: {got}")
            return got

        keys = os.path.join(folder, "keys.txt")
        pathlib.Path(keys).write_text("".join(f"k{row * 104729 % rows:011}\n" for row in range(together)))
        hint = single()["bytes"]["hint"]
        sizes = single()["bytes"]
        plans, turns = [], []
        for _ in range(PLANS):
            times = {"server": [], "server.gathered": [], "prepare": []}
            turn = itertools.count()

            def ask():
                seen = len(server.queries())
                if together and next(turn) % 2 == 1:
                    for _ in range(LOOKUPS):
                        got = run(blindcore, folder, *table, "--keys-from", keys)["results"]
                        # The first takes pages of the hint in.
                        times["prepare"] += [lookup["ms"]["prepare"] / 1e3 for lookup in got[1:]]
                    gathered = [query for query in server.queries(seen + LOOKUPS)[seen:] if query["gathered"] == 16]
                    times["server.gathered"] += map(seconds, gathered)
                else:
                    lookups = [single() for _ in range(LOOKUPS)]
                    if not together:
                        times["prepare"] += [lookup["ms"]["prepare"] / 1e3 for lookup in lookups]
                    times["server"] += map(seconds, server.queries(seen + LOOKUPS)[seen:])

            chosen, rates = plan(blindcore, folder, rows, record_bytes, together > 0, ask)
            plans.append(chosen)
            turns.append(times)
        memory = server.memory()
    finally:
        server.stop()

    def planned(field):
        return [chosen[field] for chosen in plans]

    def row(what, unit, by_plan, measured, promised=True):
        found = [{"planned": p, "measured": m, "unit": unit, "ratio": p / m} for p, m in zip(by_plan, measured)]
        worst = max(found, key=lambda one: off(one["ratio"]))
        worst["ratio"] = round(worst["ratio"], 3)
        worst["ratio_of_least"] = round(min(by_plan) / min(measured), 3)
        return {"id": f"plan.{name}.{what}"} | worst | {"promised": promised, "plans": by_plan, "lookups": measured}

    def timed(what, field, promised=True, shortest=0.0):
        if not all(times[what] for times in turns):
            raise SystemExit(f"there was no {what} while a plan was made")
        quick = [quickest_quarter(times[what]) for times in turns]
        counted = {"times": [len(times[what]) for times in turns]}
        return row(what, "s", planned(field), quick, promised and min(quick) > shortest) | counted

    def same(what, unit, by_plan, real, promised=True):
        return row(what, unit, by_plan, [real] * PLANS, promised)

    out = [
        same("hint", "B", planned("hint_bytes"), hint),
        same("query", "B", planned("query_bytes"), sizes["up"]),
        same("answer", "B", planned("answer_bytes"), sizes["down"]),
        # Waking the server's threads is most of a shorter pass, and takes now this and now that.
        timed("server", "server_seconds", shortest=500e-6),
        # A process of its own takes pages of the hint in while it prepares its first lookup.
        timed("prepare", "prepare_seconds", promised=together > 0),
    ]
    if together:
        out.append(timed("server.gathered", "server_seconds_gathered"))
    out.append(same("memory", "B", planned("memory_bytes"), memory))
    builds = [sum(chosen["build_seconds"].values()) for chosen in plans]
    out.append(same("build", "s", builds, built["seconds"], promised=False))
    return out, rates


def off(ratio):
    """How far a ratio is from 1, up or down."""
    return max(ratio, 1 / ratio)


def quickest_quarter(times):
    """The mean of the quickest quarter."""
    quarter = sorted(times)[: -(-len(times) // 4)]
    return sum(quarter) / len(quarter)


def seconds(query):
    """Seconds of one query in its pass."""
    return query["pass_micros"] / query["queries"] / 1e6


if __name__ == "__main__":
    main()
