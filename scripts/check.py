"""Format, clippy and the tests of what changed: minutes less than `make test`, which stays the whole check.

What changed is what differs from the merge base with the main branch, or from the last commit on the main branch itself.
Clippy sees the workspace, of which Cargo checks what changed and whatever depends on it. Then the changed crates' tests run:
unit tests always, integration programs if they took less than --slow seconds last time. While --budget lasts, unit
tests of the crates that use a changed one follow. What is left out is named.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# A change here concerns every crate.
COMMON = {"Cargo.toml", "Cargo.lock", "clippy.toml", "rust-toolchain.toml", "rustfmt.toml"}


def output(*command):
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip()


def changed_files(since):
    """Paths that differ from the base, or are not tracked."""
    head = output("git", "rev-parse", "HEAD")
    base = since
    for branch in [] if since else ["origin/main", "main"]:
        base = output("git", "merge-base", "HEAD", branch)
        if base:
            break
    base = base or head
    names = output("git", "diff", "--name-only", base).splitlines()
    names += output("git", "ls-files", "--others", "--exclude-standard").splitlines()
    return names or output("git", "diff", "--name-only", "HEAD~1").splitlines()


def step(name, command):
    """Runs a step; ends where it fails."""
    begin = time.monotonic()
    print(f"-- {name}", flush=True)
    status = subprocess.run(command, cwd=ROOT).returncode
    print(f"-- {name}: {time.monotonic() - begin:.0f} s", flush=True)
    if status != 0:
        sys.exit(status)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--since", metavar="COMMIT", help="what changed since this commit")
    parser.add_argument("--slow", type=float, default=20, help="seconds that an integration program may take (default: 20)")
    parser.add_argument("--budget", type=float, default=60, help="seconds after which no dependent crate starts (default: 60)")
    options = parser.parse_args()
    begin = time.monotonic()

    files = changed_files(options.since)
    metadata = json.loads(output("cargo", "metadata", "--no-deps", "--locked", "--format-version=1"))
    packages = {package["name"]: package for package in metadata["packages"]}
    folders = {Path(package["manifest_path"]).parent.relative_to(ROOT): name for name, package in packages.items()}
    if COMMON.intersection(files):
        changed = set(packages)
    else:
        changed = {name for folder, name in folders.items() if any(Path(f).is_relative_to(folder) for f in files)}
    # Those that use a changed crate; a dependency for tests alone doesn't count.
    users = {
        name
        for name, package in packages.items()
        if any(d["name"] in changed and d["kind"] is None for d in package["dependencies"])
    } - changed
    print(f"changed: {', '.join(sorted(changed)) or 'no crate'}", flush=True)

    step("format", ["cargo", "fmt", "--all", "--check"])
    if changed:
        step("clippy", ["cargo", "clippy", "--workspace", "--all-targets", "--locked", "--quiet", "--", "-D", "warnings"])
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    try:
        seconds = json.loads((target / "test-durations.json").read_text())
    except (OSError, ValueError):
        seconds = {}
    left = []
    for name in sorted(changed):
        folder = Path(packages[name]["manifest_path"]).parent.name
        slow = [
            f"{folder}/{t['name']}"
            for t in packages[name]["targets"]
            if t["kind"] == ["test"] and seconds.get(f"{folder}/{t['name']}", 0) > options.slow
        ]
        left += slow
        step(f"tests of {name}", [sys.executable, "scripts/test.py", "-p", name, *(["--lib"] if slow else ["--no-doc"])])
    for name in sorted(users, key=lambda name: seconds.get(f"{Path(packages[name]['manifest_path']).parent.name}/unit", 0)):
        if time.monotonic() - begin > options.budget:
            left.append(f"{name} and its tests")
            continue
        step(f"unit tests of {name}", [sys.executable, "scripts/test.py", "-p", name, "--lib"])
    if any(f.startswith(("hw/rtl", "hw/dv", "hw/Makefile", "hw/requirements.txt")) for f in files):
        step("hardware", ["make", "-C", "hw", "check"])
    if left:
        print(f"left to make test: {', '.join(left)}")
    print(f"checked in {time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main()
