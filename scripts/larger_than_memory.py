#!/usr/bin/env python3
"""A server with a quarter of its database's size as memory: a table of random records is built and served from its disk,
each in a control group of so much memory (the page cache counts there too), and looked up; what comes back is compared.

Prints the peaks of memory and how fast the server read the disk. Needs to make control groups of memory: run it as
root, with version 1 or 2 of them; elsewhere it says why not and ends with 0. Everything it makes is in --dir, and
gone at its end.
"""

import argparse
import concurrent.futures
import contextlib
import hashlib
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Bytes of a record; more is not needed for a table of any size.
RECORD = 1000
# GiB of a table, at least: `db build` sorts in 128 MiB, and needs more than that in all.
LEAST = 1
# Lookups at a time, which the server gathers into one pass.
TOGETHER = 4


class Failed(Exception):
    """Something that this shows does not hold."""


class Skipped(Exception):
    """This machine can't show it."""


class Group:
    """A control group with a limit on memory, of version 2 or 1."""

    def __init__(self, limit, what):
        root = Path("/sys/fs/cgroup")
        name = f"blindcore-{what}-{os.getpid()}"
        if (root / "memory/memory.limit_in_bytes").exists():
            self.path, self.limit = root / "memory" / name, "memory.limit_in_bytes"
            self.peak_file = "memory.max_usage_in_bytes"
        elif "memory" in self.read(root / "cgroup.controllers", "").split():
            self.path, self.limit = root / name, "memory.max"
            self.peak_file = "memory.peak"
        else:
            raise Skipped("this system has no control groups of memory")
        try:
            self.path.mkdir()
            (self.path / self.limit).write_text(str(limit))
            # Memory that is swapped out is not bounded memory; a system without swap has no such file.
            with contextlib.suppress(OSError):
                (self.path / "memory.swap.max").write_text("0")
        except OSError as error:
            with contextlib.suppress(OSError):
                self.path.rmdir()
            raise Skipped(f"no control group of memory can be made here: {error}") from error

    @staticmethod
    def read(path, default):
        try:
            return path.read_text()
        except OSError:
            return default

    def enter(self):
        """For a process that is about to become another program."""
        (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def peak(self):
        return int(self.read(self.path / self.peak_file, "0"))

    def close(self):
        for _ in range(100):
            with contextlib.suppress(OSError):
                self.path.rmdir()
                return
            time.sleep(0.1)


def record(index):
    seed = hashlib.blake2b(index.to_bytes(8, "little"), digest_size=50).hexdigest()
    return seed * (RECORD // len(seed))


def build(blindcore, rows, folder, group, scheme):
    """Rows go in as JSON lines, so that the table lies nowhere but in the database."""
    command = [blindcore, "db", "build", "-", "--name", "big", "--out", folder, "--scheme", scheme, "--json"]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=group.enter
    )
    try:
        # A build that ends early says why by its exit code.
        with contextlib.suppress(BrokenPipeError):
            for first in range(0, rows, 1000):
                lines = (f'{{"note":"{record(i)}"}}\n' for i in range(first, min(rows, first + 1000)))
                process.stdin.write("".join(lines).encode())
            process.stdin.close()
        said = process.stdout.read()
        if process.wait() != 0:
            raise Failed(f"blindcore db build ended with {process.returncode}")
        return json.loads(said)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


class Server:
    """`blindcore serve` in a control group."""

    def __init__(self, blindcore, folder, group, log, more=()):
        self.log_path = log
        self.log = open(log, "w", encoding="utf-8")
        command = [blindcore, "serve", folder, "--listen", "127.0.0.1:0", *more]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("BLINDCORE_")}
        self.process = subprocess.Popen(
            command, stderr=self.log, stdin=subprocess.DEVNULL, env=environment, preexec_fn=group.enter
        )

    def lines(self):
        return self.log_path.read_text(encoding="utf-8").splitlines()

    def wait(self, seconds=120):
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.process.poll() is None:
            found = re.search(r"listening on (http://\S+)", "\n".join(self.lines()))
            if found:
                return found[1]
            time.sleep(0.05)
        raise Failed("the server did not become ready:\n" + "\n".join(self.lines()))

    def resident(self):
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+) kB", text)[1]) << 10

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log.close()
        return self.process.returncode


def look(blindcore, url, cache, index):
    command = [blindcore, "get", "--server", url, "--table", "big", "--index", str(index), "--cache", cache, "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, encoding="utf-8")
    if done.returncode != 0 or json.loads(done.stdout)["value"] != {"note": record(index)}:
        raise Failed(f"row {index} came back wrong: exit code {done.returncode}, {done.stdout[:200]}")


def run(options):
    memory = int(options.gib * (1 << 30)) // 4
    with contextlib.ExitStack() as groups:
        built, group = (groups.enter_context(contextlib.closing(Group(memory, w))) for w in ("build", "serve"))
        with tempfile.TemporaryDirectory(prefix="blindcore-", dir=options.dir) as work:
            work = Path(work)
            if options.binary is None:
                command = ["cargo", "build", "--release", "--locked", "-p", "blindcore-cli"]
                subprocess.run(command, cwd=ROOT, check=True)
            target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
            blindcore = options.binary or ROOT / target / "release/blindcore"
            rows = int(options.gib * (1 << 30)) // RECORD
            print(f"building a table of {rows:,} records of {RECORD} bytes", file=sys.stderr)
            build(blindcore, rows, work / "big.db", built, options.scheme)
            matrix = sum(f.stat().st_size for f in (work / "big.db").glob("*.shard"))
            # What building left in the page cache was counted where it was built: out with it.
            subprocess.run(["sync"], check=True)
            for path in (work / "big.db").iterdir():
                with open(path, "rb") as file:
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

            server = Server(blindcore, work / "big.db", group, work / "server.log")
            try:
                url = server.wait()
                chosen = next((line for line in server.lines() if "streamed:" in line), None)
                if chosen is None:
                    raise Failed("nothing is streamed:\n" + "\n".join(server.lines()))
                indices = [int.from_bytes(os.urandom(6), "little") % rows for _ in range(options.lookups)]
                look(blindcore, url, work / "cache", indices[0])
                with concurrent.futures.ThreadPoolExecutor(TOGETHER) as pool:
                    list(pool.map(lambda i: look(blindcore, url, work / "cache", i), indices[1:]))
                resident, peak = server.resident(), group.peak()
            finally:
                code = server.stop()
            if code != 0:
                raise Failed(f"the server ended with {code}:\n" + "\n".join(server.lines()[-5:]))
            queries = [line for line in server.lines() if re.search(r"\bquery\b.*pass_micros=", line)]
            passes = [matrix / int(re.search(r"pass_micros=(\d+)", line)[1]) * 1e6 for line in queries]
            gathered = max(int(re.search(r"gathered=(\d+)", line)[1]) for line in queries)
            result = {
                "database_bytes": matrix,
                "memory_limit_bytes": memory,
                "build_peak_bytes": built.peak(),
                "peak_bytes": peak,
                "resident_peak_bytes": resident,
                "lookups": len(indices),
                "most_gathered": gathered,
                "read_bytes_per_second": statistics.median(passes),
                "placed": re.sub(r"^\S+\s+INFO ", "", chosen),
            }
    if options.json:
        print(json.dumps(result, indent=2))
    else:
        gib = 1 << 30
        print(f"{result['placed']}\n"
              f"database {matrix / gib:.2f} GiB, memory {memory / gib:.2f} GiB: {matrix / memory:.1f} times as large\n"
              f"{len(indices)} lookups, all as they should be; up to {gathered} in a pass\n"
              f"passes at {result['read_bytes_per_second'] / 1e9:.2f} GB/s (median)\n"
              f"built with a peak of {result['build_peak_bytes'] / gib:.2f} GiB with the page cache\n"
              f"served with a peak of {peak / gib:.2f} GiB with the page cache, the process alone {resident / gib:.2f} GiB")


def ended(run, options):
    """Runs it and returns the exit code; a signal ends it with its folders gone."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda got, _: sys.exit(128 + got))
    try:
        run(options)
    except KeyboardInterrupt:
        return 130
    except Skipped as why:
        print(f"skipped: {why}", file=sys.stderr)
    except (Failed, subprocess.CalledProcessError, OSError) as error:
        print(f"{Path(sys.argv[0]).stem}: {error}", file=sys.stderr)
        return 1
    return 0


def options(about, gib, least, lookups, room):
    """What a script is asked for: a table's size, lookups, a folder with room for `room` times the size, a program, how to print."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gib", type=float, default=gib, metavar="N", help=f"size of the table [{gib:g}]")
    parser.add_argument("--lookups", type=int, default=lookups, metavar="N", help=f"lookups to compare [{lookups}]")
    parser.add_argument("--scheme", default="auto", help="what `db build --scheme` takes [auto]")
    parser.add_argument("--dir", type=Path, default=None, help=f"where {room} times the table's size is free [the system's]")
    parser.add_argument("--binary", type=Path, default=None, help="this blindcore instead of one built here")
    parser.add_argument("--json", action="store_true", help="print the result as one JSON document")
    asked = parser.parse_args()
    if not least <= asked.gib <= 4096:
        parser.error(f"--gib is {asked.gib:g}; say {least:g} to 4096")
    if asked.lookups < 1:
        parser.error(f"--lookups is {asked.lookups}; say 1 or more")
    return asked


def main():
    return ended(run, options(__doc__, gib=4, least=LEAST, lookups=12, room="three"))


if __name__ == "__main__":
    sys.exit(main())
