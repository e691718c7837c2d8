#!/usr/bin/env python3
"""Many lookups in a table of made-up records, each compared with what was put in; one in twenty keys is not there. Then
rows are changed, removed and added while it is served, clients ask at the same time, and the server starts again.

Prints how many were right, how many a pass answered and what one moved. A wrong answer ends it with 1. Everything it makes is in
--dir, and gone at its end.

    python3 scripts/many_lookups.py --gib 1 --lookups 100000
"""

import hashlib
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from larger_than_memory import ROOT, Failed, Server, ended, options

# Bytes of a record.
RECORD = 256
# How often it says how far it is, in seconds.
SAYS = 10
# How long a request, and a server that starts, may take, in seconds: a scheme that is there for comparison on a busy machine needs more than usual.
PATIENCE = 900


# Clients that ask at the same time in the end, how many of them one pass is to answer, and how often they may try.
CLIENTS = 16
GATHERED = 8
ROUNDS = 10


class Anywhere:
    """Where a server runs that has no group of its own."""

    @staticmethod
    def enter():
        pass


def record(index):
    return hashlib.blake2b(index.to_bytes(8, "little"), digest_size=32).hexdigest() * (RECORD // 64)


def build(blindcore, rows, folder, scheme):
    command = [blindcore, "db", "build", "-", "--name", "many", "--key", "key", "--out", folder, "--quiet", "--scheme", scheme]
    process = subprocess.Popen(command, stdin=subprocess.PIPE)
    for first in range(0, rows, 1000):
        lines = (f'{{"key":"k{i}","note":"{record(i)}"}}\n' for i in range(first, min(rows, first + 1000)))
        process.stdin.write("".join(lines).encode())
    process.stdin.close()
    if process.wait() != 0:
        raise Failed(f"blindcore db build ended with {process.returncode}")


def look(blindcore, url, work, rows, count):
    """Looks `count` keys up: the first of them that is wrong ends it."""
    draw = random.Random()
    chosen = [draw.randrange(rows) + (rows if draw.random() < 0.05 else 0) for _ in range(count)]
    keys = work / "keys.txt"
    keys.write_text("".join(f"k{i}\n" for i in chosen))
    command = [blindcore, "get", "--server", url, "--table", "many", "--keys-from", keys, "--no-cache", "--json", "--timeout", str(PATIENCE)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8")
    done, there, up, down, began = 0, 0, 0, 0, time.monotonic()
    said = began
    for line in process.stdout:
        line = line.strip().removesuffix(",")
        if not line.startswith('{"') or line.startswith('{"results"'):
            continue
        result = json.loads(line)
        index = chosen[done]
        wanted = {"note": record(index)} if index < rows else None
        if result["key"] != f"k{index}" or result["value"] != wanted:
            process.kill()
            raise Failed(f"lookup {done}, of k{index}, came back as {str(result)[:300]}")
        done, there = done + 1, there + result["found"]
        up, down = up + result["bytes"]["up"], down + result["bytes"]["down"]
        if time.monotonic() > said + SAYS:
            said = time.monotonic()
            rate = done / (said - began)
            print(f"{done:,} of {count:,}, {rate:.0f} per second, {(count - done) / rate:.0f} s left", file=sys.stderr)
    if process.wait() not in (0, 1) or done != count:
        raise Failed(f"{done} of {count} lookups were answered; blindcore get ended with {process.returncode}")
    return {"lookups": done, "found": there, "wrong": 0, "up": up // done, "down": down // done,
            "seconds": round(time.monotonic() - began, 1)}


def ask(blindcore, url, work, keys):
    """A process that looks keys up, with what a client keeps from one time to the next."""
    command = [blindcore, "get", "--server", url, "--table", "many", "--keys-from", "-", "--cache", work / "cache", "--json"]
    process = subprocess.Popen([*command, "--timeout", str(PATIENCE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
    process.stdin.write("".join(f"{key}\n" for key in keys))
    process.stdin.close()
    return process


def told(process):
    """What a process of [`ask`] found, by key: a note, or None where there is no such key."""
    said = process.stdout.read()
    if process.wait() not in (0, 1):
        raise Failed(f"blindcore get ended with {process.returncode}: {said[:300]}")
    return {r["key"]: r["value"] and r["value"]["note"] for r in json.loads(said)["results"]}


def change(blindcore, url, work, rows):
    """Changes a row, removes one and adds one, and waits until they are served. Returns what the keys hold now."""
    draw = random.Random()
    changed, removed, kept = draw.sample(range(rows), 3)
    now = {f"k{changed}": record(rows + changed), f"k{removed}": None, f"k{kept}": record(kept), "new": record(rows), "none": None}
    rows = [{"key": f"k{changed}", "note": now[f"k{changed}"], "_change": "set"}, {"key": f"k{removed}", "note": "", "_change": "remove"},
            {"key": "new", "note": now["new"], "_change": "set"}]
    command = [blindcore, "db", "update", work / "many.db", "--from", "-", "--quiet", "--json"]
    subprocess.run(command, input="".join(json.dumps(row) + "\n" for row in rows), stdout=subprocess.DEVNULL, encoding="utf-8", check=True)
    end = time.monotonic() + PATIENCE
    while told(ask(blindcore, url, work, [f"k{changed}"])) != {f"k{changed}": now[f"k{changed}"]}:
        if time.monotonic() > end:
            raise Failed(f"the change of k{changed} was not served after {PATIENCE} s")
        time.sleep(0.2)
    return now


def compare(processes, now):
    for process in processes:
        found = told(process)
        if any(found[key] != now[key] for key in found):
            raise Failed(f"after the change {found} came back, where {now} was put in")


def run(options):
    with tempfile.TemporaryDirectory(prefix="blindcore-", dir=options.dir) as work:
        work = Path(work)
        if options.binary is None:
            subprocess.run(["cargo", "build", "--release", "--locked", "-p", "blindcore-cli"], cwd=ROOT, check=True)
        target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
        blindcore = options.binary or ROOT / target / "release/blindcore"
        rows = int(options.gib * (1 << 30)) // RECORD
        print(f"building a table of {rows:,} records of {RECORD} bytes", file=sys.stderr)
        build(blindcore, rows, work / "many.db", options.scheme)
        config = work / "blindcore.toml"
        config.write_text(f"[limits]\nrequest_seconds = {PATIENCE}\n")
        logs = [work / f"server-{i}.log" for i in range(2)]

        def serve(log, clients):
            server = Server(blindcore, work / "many.db", Anywhere, log, ["--config", config])
            try:
                done = clients(server.wait(PATIENCE))
            finally:
                code = server.stop()
            if code != 0:
                raise Failed(f"the server ended with {code}:\n" + "\n".join(server.lines()[-5:]))
            return done

        def first(url):
            return look(blindcore, url, work, rows, options.lookups), change(blindcore, url, work, rows)

        def again(url):
            keys = list(now)
            compare([ask(blindcore, url, work, keys)], now)
            for asked in range(1, ROUNDS + 1):
                compare([ask(blindcore, url, work, [keys[i % len(keys)]]) for i in range(CLIENTS)], now)
                if max(gathered(logs[1])) >= GATHERED:
                    return len(keys) + asked * CLIENTS
            raise Failed(f"{CLIENTS} clients asked at the same time, {ROUNDS} times, and no pass answered {GATHERED} of them")

        def gathered(log):
            return [int(n) for n in re.findall(r"gathered=(\d+)", log.read_text())]

        result, now = serve(logs[0], first)
        more = serve(logs[1], again)
        passes, together = map(gathered, logs)
    result = {"rows": rows, "record_bytes": RECORD, **result, "gathered": statistics.median(passes),
              "after_change_and_restart": more, "clients_in_one_pass": max(together)}
    if options.json:
        print(json.dumps(result, indent=2))
    else:
        print(f"{result['lookups']:,} lookups in {rows:,} records of {RECORD} bytes, none wrong: {result['found']:,} found, "
              f"{result['lookups'] - result['found']:,} not there\n"
              f"{result['up']:,} bytes up and {result['down']:,} down each; {result['gathered']:.0f} in a pass (median); "
              f"{result['seconds']:.0f} s\n"
              f"rows changed, removed and added, and the server started again: {result['after_change_and_restart']} more, none wrong; "
              f"up to {result['clients_in_one_pass']} clients in one pass")


def main():
    return ended(run, options(__doc__, gib=1, least=1 / 1024, lookups=100_000, room="four"))


if __name__ == "__main__":
    sys.exit(main())
