"""Tests `blindcore hw explore --ray` with a real Ray: one that it starts, and a cluster of two nodes of which one is killed in the middle.

    make test-ray        installs Ray into target/ray, builds the command and runs this
    target/ray/bin/python scripts/test_ray.py thesis-initial        a sweep that comes with the command in place of a small one

Results must be those of the run on threads, to the byte. Ray listens on loopback only.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMMAND = ROOT / "target/debug/blindcore"
# How often a node is killed, until the kill interrupts a task; seconds after which anything here is stuck.
TRIES, LIMIT = 5, 300
OBJECTS = 80 << 20
# What is explored.
WHAT = ["--preset", sys.argv[1]] if len(sys.argv) > 1 else ["sweep.toml"]

# Some seconds of work, with a machine in a file beside it.
SWEEP = """
name = "ray"
about = "points enough for two nodes"
machine = "mine.toml"
[[problem]]
name = "OnionPIR"
scheme = "onionpir"
gib = [1, 4, 16, 64]
[[axis]]
name = "registers"
set = ["RF.size"]
scale = 8
from = 4
to = 256
step = 4
[[axis]]
name = "sram_bytes"
set = ["SRAM.size"]
values = ["1 KiB", "2 KiB", "4 KiB", "8 KiB", "16 KiB", "32 KiB", "64 KiB", "128 KiB"]
"""

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
# The command runs the python3 that has Ray.
os.environ["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])


def explore(folder, *more, wait=True):
    args = [COMMAND, "hw", "explore", *WHAT, *more]
    run = subprocess.Popen(args, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return ended(run) if wait else run


def ended(run):
    out, err = run.communicate(timeout=LIMIT)
    if run.returncode:
        sys.exit(f"{' '.join(map(str, run.args))} failed: {err}")
    return out


def same(folder, name):
    want, got = folder / "threads", folder / name
    files = sorted(file.name for file in want.iterdir() if file.name != "points.part")
    assert len(files) > 3, files
    for file in files:
        assert (want / file).read_bytes() == (got / file).read_bytes(), f"{file} of {name} is not that of threads"


def on_ray(text):
    line = next(line for line in text.splitlines() if line.startswith("Computed on "))
    return [int(number) for number in re.findall(r"\d+", line)]


def killed(folder, name):
    """Kills one of two nodes in the middle of the sweep; says how many tasks were begun again."""
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "object_store_memory": OBJECTS, "node_ip_address": "127.0.0.1"}
    cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    try:
        victim = cluster.add_node(**node)
        run = explore(folder, "--out", name, "--ray", cluster.address, wait=False)
        part, deadline = folder / name / "points.part", time.monotonic() + LIMIT
        points = (folder / "threads/results.csv").read_bytes().count(b"\n")
        while not part.exists() or part.read_bytes().count(b"\n") < points // 4:
            assert run.poll() is None, run.communicate()
            assert time.monotonic() < deadline, "it has not come to a quarter of the points"
            time.sleep(0.05)
        cluster.remove_node(victim, allow_graceful=False)
        assert run.poll() is None, "it ended before the kill: give it more points"
        nodes, again = on_ray(ended(run))
        print(f"one of two nodes was killed: {nodes} nodes finished tasks, {again} tasks were begun again")
        return again
    finally:
        cluster.shutdown()


def main():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="blindcore-ray-"))
    try:
        (folder / "sweep.toml").write_text(SWEEP)
        machine = (ROOT / "crates/model/machines/thesis-sweep.toml").read_text()
        (folder / "mine.toml").write_text(machine.replace('name = "thesis-sweep"', 'name = "mine"'))
        explore(folder, "--out", "threads")
        text = explore(folder, "--out", "local", "--ray", "local", "--threads", "2")
        same(folder, "local")
        print(f"a cluster of its own: {on_ray(text)[0]} node, the same files")
        for time_ in range(TRIES):
            name = f"killed{time_}"
            again = killed(folder, name)
            same(folder, name)
            if again:
                break
        else:
            sys.exit(f"{TRIES} kills interrupted no task")
        print("2 passed, 0 failed")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
