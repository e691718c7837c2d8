"""Builds the Rust tests and runs them, several programs at a time: `test.py --help`.

What cargo test prints is printed for a program that fails, and a line for each that passes. The last line is
`N passed, N failed, N skipped`, over all programs and documentation tests. Durations are kept in the target folder, so
that the next run starts the longest program first. A program gets a test thread for each processor, as under cargo test:
many tests wait for other processes, and no processor should wait with them.
"""

import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Seconds of those that take longest, for a first run, which remembers none.
LONG = {"cli/command": 250, "accel-cpu/accel-cpu": 115, "accel-rtl/accel-rtl": 115, "lookup/constant_work": 105, "lookup/lookup": 40}
RESULT = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored;.*$", re.MULTILINE)
FAILED = re.compile(r"^test (.+) \.\.\. FAILED$", re.MULTILINE)


class Job:
    """A program, or the documentation tests of some crates: its name, its command, where and with what it runs."""

    def __init__(self, name, command, folder, environment=None):
        self.name, self.command, self.folder = name, command, folder
        self.environment = dict(os.environ, **(environment or {}))


def cargo(arguments):
    return [os.environ.get("CARGO", "cargo"), *arguments]


def programs(selection):
    """Builds the test programs and returns them as jobs; ends where they don't build."""
    command = cargo(["test", "--no-run", "--locked", "--message-format=json-render-diagnostics", *selection])
    build = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    jobs = []
    for line in build.stdout:
        if not line.startswith("{"):
            continue
        message = json.loads(line)
        if message["reason"] != "compiler-artifact" or not message["executable"] or not message["profile"]["test"]:
            continue
        folder = Path(message["manifest_path"]).parent
        target = message["target"]
        kind = "unit" if target["kind"] != ["test"] else target["name"]
        jobs.append(
            Job(f"{folder.name}/{kind}", [message["executable"]], folder, {"CARGO_MANIFEST_DIR": str(folder)})
        )
    if build.wait() != 0:
        print("the tests do not build", file=sys.stderr)
        sys.exit(101)
    return jobs


def selection(options):
    """What cargo builds, and the crates whose documentation is tested."""
    # Everything that cargo test takes by itself: the facade's tests run its examples, which must be built, and not as tests.
    targets = ["--lib", "--bins"] if options.lib else []
    documented = not options.no_doc and not options.lib
    if not options.package:
        return ["--workspace", *targets], ["--workspace"] if documented else []
    metadata = subprocess.run(
        cargo(["metadata", "--no-deps", "--locked", "--format-version=1"]), cwd=ROOT, stdout=subprocess.PIPE, check=True
    )
    packages = {package["name"]: package for package in json.loads(metadata.stdout)["packages"]}
    chosen = []
    for name in options.package:
        name = name if name in packages else f"blindcore-{name}"
        if name not in packages:
            sys.exit(f"there is no crate {name}; the crates are {', '.join(sorted(packages))}")
        chosen.append(name)
    # The command depends on all: with it, dependencies are built with the features that the whole workspace gives them,
    # and not a second time with fewer.
    crates = [word for name in {*chosen, "blindcore-cli"} for word in ("-p", name)]
    libraries, units, kinds = [], False, []
    for name in chosen:
        for target in packages[name]["targets"]:
            kind = target["kind"][0]
            if kind == "lib":
                libraries.append(name)
                units |= target["test"]
            elif kind == "example" and not options.lib:
                # Tests run it; `cargo test --example` would build it as a test.
                subprocess.run(
                    cargo(["build", "--locked", "-p", name, "-p", "blindcore-cli", "--example", target["name"]]), cwd=ROOT, check=True
                )
            elif target["test"] and (kind == "bin" or kind == "test" and not options.lib):
                kinds += [f"--{kind}", target["name"]]
    kinds += ["--lib"] if units else []
    examples = [word for name in [*libraries, "blindcore-cli"] for word in ("-p", name)]
    # Of crates without unit tests nothing is left to build where unit tests alone are asked for.
    return [*crates, *kinds] if kinds else [], examples if documented and libraries else []


def run(job, threads, filters):
    """Runs a job: seconds, exit status and what it printed."""
    begin = time.monotonic()
    done = subprocess.run(
        [*job.command, *filters],
        cwd=job.folder,
        env=dict(job.environment, RUST_TEST_THREADS=str(threads), CARGO_TERM_COLOR="never"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    return time.monotonic() - begin, done.returncode, done.stdout


def counts(text):
    """Passed, failed and skipped, over all the results that a text holds."""
    return [sum(int(found[i]) for found in RESULT.findall(text)) for i in range(3)]


def suite(jobs, memory, options):
    """Runs every job once: the totals, and the names of what failed."""
    jobs = sorted(jobs, key=lambda job: -memory.get(job.name, LONG.get(job.name, 30)))
    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    totals, red = [0, 0, 0], []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        running = {pool.submit(run, job, threads, options.filters): job for job in jobs}
        for future in concurrent.futures.as_completed(running):
            job = running[future]
            seconds, status, text = future.result()
            numbers = counts(text)
            if status == 0:
                memory[job.name] = round(seconds, 1)
                print(f"ok     {job.name:28} {seconds:6.1f} s  {numbers[0]:4} passed", flush=True)
                if options.show:
                    print(RESULT.sub("", text), flush=True)
            else:
                # A program that dies before it counts has failed once.
                numbers[1] = max(numbers[1], 1)
                names = FAILED.findall(text)
                red += [f"{job.name}: {name}" for name in names] or [f"{job.name}: ended with {status}"]
                # The result's line is left out: the last line of all has its numbers.
                print(f"FAILED {job.name:28} {seconds:6.1f} s\n{RESULT.sub('', text)}", flush=True)
            totals = [a + b for a, b in zip(totals, numbers)]
    return totals, red


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-p", "--package", action="append", default=[], help="a crate to test; without it, all")
    parser.add_argument("--lib", action="store_true", help="unit tests alone")
    parser.add_argument("--no-doc", action="store_true", help="no documentation tests")
    parser.add_argument("--jobs", type=int, default=2, help="programs at a time (default: 2)")
    parser.add_argument("--repeat", type=int, default=1, help="run all of it N times and stop at the first failure")
    parser.add_argument("--no-run", action="store_true", help="build the tests, and run none")
    parser.add_argument("--show", action="store_true", help="what passing programs print, too")
    parser.add_argument("filters", nargs="*", help="what a test's name contains")
    options = parser.parse_args()
    if options.jobs < 1 or options.repeat < 1:
        parser.error("--jobs and --repeat are 1 or more")

    build, documented = selection(options)
    jobs = programs(build) if build else []
    if options.no_run:
        return
    if documented:
        jobs.append(Job("documentation", cargo(["test", "--doc", "--locked", "--quiet", *documented]), ROOT))

    remembered = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "test-durations.json"
    try:
        memory = json.loads(remembered.read_text())
    except (OSError, ValueError):
        memory = {}
    totals = [0, 0, 0]
    for turn in range(1, options.repeat + 1):
        if options.repeat > 1:
            print(f"run {turn} of {options.repeat}", flush=True)
        begin = time.monotonic()
        turns, red = suite(jobs, memory, options)
        totals = [a + b for a, b in zip(totals, turns)]
        print(f"{len(jobs)} programs in {time.monotonic() - begin:.0f} s", flush=True)
        if not options.filters:
            remembered.write_text(json.dumps(memory, indent=1, sort_keys=True))
        if red:
            where = f"run {turn} of {options.repeat}: " if options.repeat > 1 else ""
            print("\n".join(f"{where}failed: {name}" for name in red))
            break
    print(f"{totals[0]} passed, {totals[1]} failed, {totals[2]} skipped", flush=True)
    sys.exit(1 if totals[1] else 0)


if __name__ == "__main__":
    main()
