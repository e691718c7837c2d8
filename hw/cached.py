"""Runs a command unless it has passed on the same files: `cached.py --stamp FILE --reads PATH... [--makes FILE...] -- COMMAND`.

Digests tell, not times: a checkout of the same sources has other times.
"""

import argparse
import hashlib
import os
import subprocess
import sys
from pathlib import Path


def digest(paths, command):
    """Of the command, and of every file at or below the paths, by name and content."""
    whole = hashlib.sha256("\0".join(command).encode())
    for path in paths:
        files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
        for file in files:
            if "__pycache__" not in file.parts:
                whole.update(f"\0{file}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
    return whole.hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stamp", type=Path, required=True, help="keeps the digest of what passed")
    parser.add_argument("--reads", type=Path, nargs="+", required=True, help="files and folders that the command reads")
    parser.add_argument("--makes", type=Path, nargs="*", default=[], help="files that must be there")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    command = given.command[1:] if given.command[:1] == ["--"] else given.command
    now = digest(given.reads, command)
    if given.stamp.exists() and given.stamp.read_text() == now and all(path.exists() for path in given.makes):
        print(f"{given.stamp.name}: unchanged since it passed")
        return
    flags = os.environ.get("MAKEFLAGS", "").split(" ")[0]
    if "n" in flags and not flags.startswith("-"):
        return  # make -n: nothing runs, so nothing passes
    given.stamp.unlink(missing_ok=True)
    # Make's own pipe to its parent stays open for the makes below.
    status = subprocess.run(command, close_fds=False).returncode
    if status == 0:
        given.stamp.parent.mkdir(parents=True, exist_ok=True)
        given.stamp.write_text(now)
    sys.exit(status)


if __name__ == "__main__":
    main()
