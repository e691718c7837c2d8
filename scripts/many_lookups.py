#!/usr/bin/env python3
"""Many lookups in a table of made-up records, each compared with what was put in; one in twenty keys is not there.

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
        server = Server(blindcore, work / "many.db", Anywhere, work / "server.log", ["--config", config])
        try:
            result = look(blindcore, server.wait(PATIENCE), work, rows, options.lookups)
        finally:
            code = server.stop()
        if code != 0:
            raise Failed(f"the server ended with {code}:\n" + "\n".join(server.lines()[-5:]))
        gathered = [int(n) for n in re.findall(r"gathered=(\d+)", server.log_path.read_text())]
    result = {"rows": rows, "record_bytes": RECORD, **result, "gathered": statistics.median(gathered)}
    if options.json:
        print(json.dumps(result, indent=2))
    else:
        print(f"{result['lookups']:,} lookups in {rows:,} records of {RECORD} bytes, none wrong: {result['found']:,} found, "
              f"{result['lookups'] - result['found']:,} not there\n"
              f"{result['up']:,} bytes up and {result['down']:,} down each; {result['gathered']:.0f} in a pass (median); "
              f"{result['seconds']:.0f} s")


def main():
    return ended(run, options(__doc__, gib=1, least=1 / 1024, lookups=100_000, room="four"))


if __name__ == "__main__":
    sys.exit(main())
