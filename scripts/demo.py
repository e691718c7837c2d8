#!/usr/bin/env python3
"""The main job on real data: a table, a server, and lookups that it learns nothing from.

Builds blindcore, makes a SQLite table of every named character that this Python knows (the Unicode Character
Database; see README on its licence), builds a database from it, serves it in a process of its own, looks rows up
from others, and compares what comes back with what SQL says. Everything it makes is under demo/.
"""

import argparse
import contextlib
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import unicodedata
import urllib.error
import urllib.request
from pathlib import Path

import unicode_table
from unicode_table import COLUMNS, TABLE

ROOT = Path(__file__).resolve().parent.parent
DEMO = ROOT / "demo"
PRESENT, ABSENT, INDEX = "U+1F600", "U+110000", 4242
COLOUR = sys.stdout.isatty() and "NO_COLOR" not in os.environ


class Failed(Exception):
    """Something that the demo shows does not hold."""


def paint(code, text):
    return f"\x1b[{code}m{text}\x1b[0m" if COLOUR else text


def step(text):
    print(paint("1;36", f"\n== {text}"), flush=True)


def size(n):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if n < 1024 or unit == "GiB":
            return f"{n:.0f} {unit}" if unit == "B" else f"{n:.1f} {unit}"
        n /= 1024


def shown(value):
    """A value for the terminal: combining and control characters would spoil the line."""
    text = json.dumps(value, ensure_ascii=True) if not isinstance(value, str) else value
    plain = all(c.isprintable() and not unicodedata.combining(c) for c in text)
    return text if plain else json.dumps(text)


def build_binary():
    command = ["cargo", "build", "--release", "--locked", "-p", "blindcore-cli"]
    subprocess.run(command, cwd=ROOT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return ROOT / target / "release" / ("blindcore.exe" if os.name == "nt" else "blindcore")


class Server:
    """`blindcore serve` as a process of its own, on a port that was free. Only it is ever stopped."""

    def __init__(self, blindcore, folder):
        self.log_path = DEMO / "server.log"
        self.log = open(self.log_path, "w", encoding="utf-8")
        command = [blindcore, "serve", folder, "--listen", "127.0.0.1:0"]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("BLINDCORE_")}
        # In a group of its own: Ctrl-C comes to us, and we stop it.
        own = {} if os.name == "nt" else {"start_new_session": True}
        self.process = subprocess.Popen(
            command, stderr=self.log, stdin=subprocess.DEVNULL, cwd=DEMO, env=environment, **own
        )

    def lines(self):
        return self.log_path.read_text(encoding="utf-8").splitlines()

    def wait(self, seconds=60):
        """Waits until it says that it is ready."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                break
            found = re.search(r"listening on (http://\S+)", "\n".join(self.lines()))
            if found:
                self.url = found[1]
                with contextlib.suppress(urllib.error.URLError, OSError):
                    # No proxy stands between us and this machine itself.
                    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
                    with opener.open(self.url + "/readyz", timeout=5) as answer:
                        if answer.status == 200:
                            return
            time.sleep(0.05)
        raise Failed("the server did not become ready:\n" + "\n".join(self.lines()))

    def queries(self):
        """Its log lines about queries, without their time stamps."""
        return [re.sub(r"^\S+\s+INFO ", "", line) for line in self.lines() if " query " in f"{line} "]

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log.close()
        return self.process.returncode


class Demo:
    def __init__(self, blindcore, server, database):
        self.blindcore, self.server, self.database = blindcore, server, database

    def get(self, *what, expect=(0, 1)):
        """Runs `blindcore get ... --json` as a process of its own."""
        command = [self.blindcore, "get", "--server", self.server.url, "--table", TABLE, *what,
                   "--cache", DEMO / "cache", "--json"]
        started = time.monotonic()
        done = subprocess.run(command, stdout=subprocess.PIPE, cwd=DEMO, encoding="utf-8")
        if done.returncode not in expect:
            raise Failed(f"blindcore get {' '.join(map(str, what))} ended with {done.returncode}")
        return json.loads(done.stdout), time.monotonic() - started

    def sql(self, where, *arguments):
        """What SQL says: a row without its key, or None."""
        names = list(COLUMNS)
        row = self.database.execute(f"SELECT {', '.join(names)} FROM {TABLE} {where}", arguments).fetchone()
        return None if row is None else dict(zip(names, row))

    def check(self, result, row):
        value = None if row is None else {k: v for k, v in row.items() if k != "code"}
        if result["found"] != (row is not None) or result["value"] != value:
            raise Failed(f"blindcore says {result['value']!r} where SQL says {value!r}")
        if row is not None and result["key"] != row["code"]:
            raise Failed(f"blindcore says key {result['key']!r} where SQL says {row['code']!r}")

    def one(self, title, *what, row):
        before = len(self.server.queries())
        result, wall = self.get(*what, expect=[0 if row else 1])
        self.check(result, row)
        print(paint("1", f"\n   blindcore get --table {TABLE} {' '.join(what)}") + f"    # {title}")
        if result["found"]:
            if "index" in result:
                print(f"   row {result['index']} is {result['key']}")
            width = max(map(len, result["value"]))
            for column, value in result["value"].items():
                if value not in (None, "", 0):
                    print(f"     {column:{width}}  {shown(value)}")
        else:
            print("     not there")
        traffic, ms = result["bytes"], result["ms"]
        hint = f", {size(traffic['hint'])} of hints, kept for the next" if traffic["hint"] else ""
        print(f"   {size(traffic['up'])} up, {size(traffic['down'])} down{hint}")
        print(f"   query {ms['prepare']:.1f} ms, answer {ms['query']:.1f} ms (server {ms['server']:.1f}), "
              f"decode {ms['decode']:.1f} ms; the process as a whole {wall:.2f} s")
        print(paint("32", "   the same as SQL says"))
        print("   the server's log of it:")
        for line in self.server.queries()[before:]:
            print(paint("2", f"     {line}"))

    def many(self, count):
        codes = [row[0] for row in self.database.execute(f"SELECT code FROM {TABLE}")]
        draw = random.Random()
        # One in twenty is a code that is not a character.
        keys = [f"U+{draw.randrange(0x110000, 0x1000000):X}" if draw.random() < 0.05 else draw.choice(codes)
                for _ in range(count)]
        path = DEMO / "keys.txt"
        path.write_text("\n".join(keys) + "\n")
        print(f"   blindcore get --table {TABLE} --keys-from demo/keys.txt --json", flush=True)
        answer, wall = self.get("--keys-from", path)
        if len(answer["results"]) != count:
            raise Failed(f"{len(answer['results'])} results for {count} keys")
        for key, result in zip(keys, answer["results"]):
            self.check(result, self.sql("WHERE code = ?", key))
        down = sum(r["bytes"]["down"] for r in answer["results"]) / count
        up = sum(r["bytes"]["up"] for r in answer["results"]) / count
        print(f"   {count:,} lookups in {wall:.1f} s ({count / wall:,.0f} per second), "
              f"{size(up)} up and {size(down)} down each")
        print(f"   {answer['found']:,} found, {count - answer['found']:,} not there, "
              + paint("32", "all as SQL says"))


def run(options):
    DEMO.mkdir(exist_ok=True)
    step("blindcore itself")
    blindcore = build_binary()

    step(f"a table from this machine: Unicode {unicodedata.unidata_version}, every character with a name")
    source = DEMO / "unicode.sqlite"
    unicode_table.make(source)
    database = sqlite3.connect(source)
    rows = database.execute(f"SELECT count(*) FROM {TABLE}").fetchone()[0]
    print(f"   demo/unicode.sqlite: {rows:,} rows, {len(COLUMNS)} columns, {size(source.stat().st_size)}")

    step("a database that can be looked up in private")
    print(f"   blindcore db build 'sqlite:demo/unicode.sqlite?table={TABLE}' --key code --out demo/unicode.db\n",
          flush=True)
    folder = DEMO / "unicode.db"
    subprocess.run(
        [blindcore, "db", "build", f"sqlite:{source}?table={TABLE}", "--key", "code", "--out",
         folder.relative_to(ROOT), *(["--force"] if folder.exists() else [])],
        cwd=ROOT, check=True,
    )

    step("a server, in a process of its own")
    shutil.rmtree(DEMO / "cache", ignore_errors=True)
    server = Server(blindcore, folder)
    try:
        server.wait()
        print(f"   blindcore serve demo/unicode.db: process {server.process.pid}, ready at {server.url}")
        demo = Demo(blindcore, server, database)

        step("lookups, each in a process of its own")
        demo.one("a key that is there", "--key", PRESENT, row=demo.sql("WHERE code = ?", PRESENT))
        demo.one("one that is not: it looks the same to the server", "--key", ABSENT, row=None)
        demo.one("a row by its number: two lookups, of its key and its record", "--index", str(INDEX),
                 row=demo.sql("ORDER BY rowid LIMIT 1 OFFSET ?", INDEX))

        sizes = {tuple(re.findall(r"bytes_(?:in|out)=\d+", line)) for line in server.queries()[:2]}
        if len(server.queries()) != 4 or len(sizes) != 1:
            raise Failed("the server saw a difference between a key that is there and one that is not:\n"
                         + "\n".join(server.queries()))
        if options.lookups:
            step(f"{options.lookups:,} random lookups, compared with SQL")
            demo.many(options.lookups)
        if options.keep:
            step(f"serving at {server.url} until Ctrl-C")
            with contextlib.suppress(KeyboardInterrupt):
                server.process.wait()
    finally:
        code = server.stop()
    if code != 0:
        raise Failed(f"the server ended with {code}:\n" + "\n".join(server.lines()[-5:]))
    step("done; what was made is in demo/, the server's whole log in demo/server.log")
    print("   to look things up yourself: python3 scripts/demo.py --keep, and in another terminal\n"
          f"   {os.path.relpath(blindcore, ROOT)} get --server URL --table {TABLE} --key U+1F600")


def count(text):
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError("a number of lookups is 0 or more")
    return number


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lookups", type=count, default=100, metavar="N", help="random lookups to compare with SQL [100]")
    parser.add_argument("--keep", action="store_true", help="go on serving until Ctrl-C")
    options = parser.parse_args()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")
    # What stops the demo stops its server.
    for number in {signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}:
        signal.signal(number, lambda got, _: sys.exit(128 + got))
    try:
        run(options)
    except KeyboardInterrupt:
        print("\ndemo: interrupted; nothing of it is left running", file=sys.stderr)
        return 130
    except (Failed, subprocess.CalledProcessError, OSError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
