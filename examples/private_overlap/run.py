#!/usr/bin/env python3
"""How many software packages two organisations' products have in common, while neither shows which it uses.

    cargo build --release --bin blindcore
    python3 examples/private_overlap/run.py             # two products of this repository's Cargo.lock
    python3 examples/private_overlap/run.py --lists ours.txt theirs.txt     # your own, an entry a line

Two organisations want to know how far a flaw in one package could hit both, and must not show each other what they
ship. Hashes of the names would show it: anybody can hash all names there are. So each runs `blindcore circuit run`, as on
two machines: one garbles a circuit that merges two sorted lists and counts equal neighbours, the other evaluates it, over
TLS on which both show a certificate. Both learn one number, which is compared with what plain Python says. Python's
standard library alone.
"""

import argparse
import hashlib
import json
import pathlib
import re
import secrets
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]

# An entry is 64 bits: 62 of its SHA-256, and above them 0. Padding has the side's own number there (1 or 2) and is random,
# so that it equals nothing of the other side.
WIDTH = 64
HASHED = WIDTH - 2


def packages(lock, product):
    """`name version` of every package that a Cargo.lock has for a product, its tests' too, itself left out."""
    needs = {}
    for block in lock.read_text().split("[[package]]")[1:]:
        name, version = (re.search(rf'^{key} = "(.*)"$', block, re.M).group(1) for key in ("name", "version"))
        inner = re.search(r"^dependencies = \[(.*?)^\]", block, re.M | re.S)
        needs[name, version] = re.findall(r'"(.*?)"', inner.group(1)) if inner else []
    versions = {}
    for name, version in needs:
        versions.setdefault(name, []).append(version)
    if product not in versions:
        sys.exit(f"{lock.name} has no package {product}; give one of its names with --products")
    seen, todo = set(), [(product, versions[product][0])]
    while todo:
        package = todo.pop()
        if package in seen:
            continue
        seen.add(package)
        # A dependency is "name", or "name version" where there are several.
        named = (need.split(" ") for need in needs[package])
        todo += [(name, rest[0] if rest else versions[name][0]) for name, *rest in named]
    return {f"{name} {version}" for name, version in seen if name != product}


def entries(path):
    """The entries of a file of one a line."""
    try:
        return {line.strip() for line in path.read_text().splitlines() if line.strip()}
    except (OSError, UnicodeDecodeError) as error:
        sys.exit(f"{path} can't be read: {error}")


def packed(names, size, side):
    """A side's list as the circuit takes it: `size` ascending values in one number, the first in the lowest bits."""
    values = {int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") >> 2 for name in names}
    while len(values) < size:
        values.add(side << HASHED | secrets.randbits(HASHED))
    return sum(value << WIDTH * at for at, value in enumerate(sorted(values)))


class Party:
    """A process of one side: its list in a file that only it reads, its result as a document."""

    def __init__(self, binary, folder, name, other, *args):
        self.name, self.errors = name, folder / f"{name}.log"
        tls = ["--cert", f"{name}.crt", "--key", f"{name}.key", "--trust", f"{other}.crt", "--peer-name", other]
        command = [binary, "circuit", "run", *args, "--input", f"@{name}.value", *tls, "--json"]
        with self.errors.open("w") as errors:
            self.process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=errors, text=True)

    def address(self):
        """Where it listens, once it does."""
        while True:
            ended = self.process.poll() is not None
            found = re.search(r"listening on (\S+)\n", self.errors.read_text())
            if found:
                return found.group(1)
            if ended:
                sys.exit(f"{self.name}: {self.errors.read_text().strip()}")
            time.sleep(0.01)

    def result(self):
        out, _ = self.process.communicate()
        if self.process.returncode != 0:
            sys.exit(f"{self.name}: {self.errors.read_text().strip()}")
        return json.loads(out)


def session(binary, folder, circuit):
    """Both parties' documents, and the seconds from the first's start to the second's end."""
    start = time.monotonic()
    parties = []
    try:
        parties.append(Party(binary, folder, "first", "second", "--role", "garbler", "--circuit", circuit, "--listen", "127.0.0.1:0"))
        address = parties[0].address()
        parties.append(Party(binary, folder, "second", "first", "--role", "evaluator", "--circuit", circuit, "--connect", address))
        results = [party.result() for party in reversed(parties)][::-1]
        return results, time.monotonic() - start
    finally:
        for party in parties:
            party.process.kill()
            party.process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blindcore", type=pathlib.Path, default=ROOT / "target/release/blindcore", help="the binary")
    parser.add_argument("--products", nargs=2, default=["blindcore-circuit", "blindcore-server"], metavar="NAME", help="two packages of Cargo.lock")
    parser.add_argument("--lists", nargs=2, type=pathlib.Path, metavar="FILE", help="two files, an entry a line, in place of products")
    parser.add_argument("--size", type=int, help="entries after padding, of both lists alike [default: the next power of two]")
    args = parser.parse_args()
    if not args.blindcore.is_file():
        sys.exit(f"{args.blindcore} is not there; cargo build --release --bin blindcore makes it")

    names = [path.name for path in args.lists] if args.lists else args.products
    lists = [entries(path) for path in args.lists] if args.lists else [packages(ROOT / "Cargo.lock", p) for p in names]
    longest = max(map(len, lists))
    size = args.size or 1 << max(longest - 1, 1).bit_length()
    if size < longest:
        sys.exit(f"lists can't be padded to {size:,} entries, for one has {longest:,}; take no less with --size")

    binary = args.blindcore.resolve()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for number, (side, own) in enumerate(zip(["first", "second"], lists), 1):
            done = subprocess.run([binary, "circuit", "identity", side], cwd=folder, capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(done.stderr.strip())
            (folder / f"{side}.value").write_text(hex(packed(own, size, number)))
        circuit = f"intersection{size}x{WIDTH}"
        results, seconds = session(binary, folder, circuit)

    wide = max(12, *map(len, names))
    row = lambda what, *cells: print(f"{what:<22}" + "".join(f"  {cell:>{wide}}" for cell in cells))
    row("", *names)
    row("role", *(r["role"] for r in results))
    row("entries, kept secret", *(f"{len(own):,}" for own in lists))
    row("padded to", *(f"{size:,}" for _ in lists))
    shared = [int(r["outputs"][0], 16) for r in results]
    row("learns: in common", *(f"{count:,}" for count in shared))
    row("session, s", *(f"{r['seconds']:.2f}" for r in results))
    garbler = results[0]
    print(f"\n{circuit}: {garbler['ands']:,} ANDs, {garbler['xors']:,} XORs; {garbler['table_bytes'] / 2**20:.1f} MiB of tables went over TLS")
    print(f"both processes, from start to end: {seconds:.2f} s")
    want = len(lists[0] & lists[1])
    if shared != [want, want]:
        sys.exit(f"plain Python says {want:,}, so this is WRONG")
    print(f"plain Python, which sees both lists, says {want:,} too")


if __name__ == "__main__":
    main()
