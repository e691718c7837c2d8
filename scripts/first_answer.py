"""Times each stage from a table in SQLite to the first answer: 10 million rows of 256 B, unless told otherwise.

    cargo build --release -p blindcore-cli
    python3 scripts/first_answer.py --json > first_answer.json

Everything lies in a temporary folder (TMPDIR), which needs four times the table, and is removed.
"""

import argparse
import json
import os
import pathlib
import sqlite3
import tempfile
import time

from check_plan import Server, note, run, text_of


def main():
    parser = argparse.ArgumentParser(description="Time each stage from a table in SQLite to the first answer.")
    parser.add_argument("--blindcore", default="target/release/blindcore", help="the program")
    parser.add_argument("--rows", type=int, default=10_000_000, help="1 to 1000000000")
    parser.add_argument("--bytes", type=int, default=256, help="of a record, 16 to 4096")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    args = parser.parse_args()
    if not 1 <= args.rows <= 10**9 or not 16 <= args.bytes <= 4096:
        parser.error("--rows is outside 1 to 1000000000, or --bytes outside 16 to 4096")
    blindcore = str(pathlib.Path(args.blindcore).absolute())
    if not os.access(blindcore, os.X_OK):
        parser.error(f"{args.blindcore} is not there; run cargo build --release -p blindcore-cli")
    with tempfile.TemporaryDirectory(prefix="blindcore-first-") as folder:
        found = measure(blindcore, folder, args.rows, args.bytes)
    if args.json:
        print(json.dumps(found, indent=2))
    else:
        for stage, seconds in found["seconds"].items():
            print(f"{stage:12} {seconds:8.2f} s")


def measure(blindcore, folder, rows, record_bytes):
    note(f"writing {rows} rows of {record_bytes} B")
    table = sqlite3.connect(os.path.join(folder, "t.sqlite"))
    table.execute("pragma journal_mode = off")
    table.execute("pragma synchronous = off")
    table.execute("create table t (k text primary key, v text) without rowid")
    table.executemany("insert into t values (?, ?)", ((f"k{row:011}", text_of(row, record_bytes)) for row in range(rows)))
    table.commit()
    table.close()
    os.sync()
    note("building")
    built = run(blindcore, folder, "db", "build", "sqlite:t.sqlite?table=t", "--key", "k", "--value", "v", "--out", "t.db", "--json")
    seconds = {stage: built["stages"][stage] for stage in ("read", "layout", "hint")}
    seconds["build"] = built["seconds"]
    begun = time.monotonic()
    server = Server(blindcore, folder, "t.db")
    try:
        seconds["listening"] = time.monotonic() - begun
        ask = ["get", "--server", server.url, "--table", "t", "--json", "--key"]
        note("looking up")
        for what, row in (("first lookup", rows * 7 // 13), ("next lookup", rows * 5 // 13)):
            begun = time.monotonic()
            got = run(blindcore, folder, *ask, f"k{row:011}")
            seconds[what] = time.monotonic() - begun
            if got["value"]["v"] != text_of(row, record_bytes):
                raise SystemExit(f"row {row} is wrong: {got}")
            if what == "first lookup":
                hint = got["bytes"]["hint"]
    finally:
        server.stop()
    seconds["all"] = sum(seconds[stage] for stage in ("build", "listening", "first lookup"))
    seconds = {stage: round(value, 3) for stage, value in seconds.items()}
    records = built["records"]
    table = {"rows": rows, "record_bytes": record_bytes, "database_bytes": records["database_bytes"], "hint_bytes": hint}
    return {"table": table, "device": built["device"], "seconds": seconds}


if __name__ == "__main__":
    main()
