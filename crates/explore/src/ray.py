"""Computes points of a sweep by tasks of Ray; run by `blindcore hw explore --ray`, which sends it to python3.

Standard input: a job as one line of JSON; its end means that nobody waits any more.
Standard output: a line of JSON for each thing that happened; see `Said` in ray.rs.
"""

import json
import os
import subprocess
import sys
import threading

# Nothing but what is meant for blindcore gets to standard output.
OUT = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
# How often a task begins again whose worker or node died.
TIMES = 10
# Points of a task, at most; and tasks of a CPU, at least, where there are enough points.
POINTS, TASKS = 256, 8
# Seconds after which a cluster without a CPU is given up.
PATIENCE = 60
OBJECTS = 80 << 20


def say(**what):
    OUT.write(json.dumps(what) + "\n")
    OUT.flush()


def fail(why):
    lines = [line.strip() for line in str(why).splitlines() if line.strip()]
    say(failed=lines[-1] if lines else "it gave no reason")
    os._exit(1)


def nobody_waits():
    while sys.stdin.buffer.read(1 << 16):
        pass
    os._exit(1)


def compute(program, job, points):
    """A task: the same program on some points, and the node that it ran on."""
    node = ray.get_runtime_context().get_node_id()
    given = job + "\n" + json.dumps(points) + "\n"
    try:
        done = subprocess.run([program, "hw", "explore", "--worker"], input=given, capture_output=True, text=True)
    except OSError as error:
        raise RuntimeError(f"a node of Ray can't run {program}: {error.strerror}; put the same blindcore there") from None
    if done.returncode < 0:
        return node, None
    if done.returncode:
        raise RuntimeError("a task of Ray: " + done.stderr.strip().replace("\n", "; "))
    return node, done.stdout


job = json.loads(sys.stdin.buffer.readline())
if (job["address"] or "").rsplit(":", 1)[0] in ("127.0.0.1", "localhost", "[::1]"):
    # Else Ray looks for a cluster on loopback at this machine's address in its network.
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
try:
    import ray
except ImportError:
    fail("python3 has no package ray; install it with: python3 -m pip install ray")

threading.Thread(target=nobody_waits, daemon=True).start()
try:
    quiet = {"log_to_driver": False, "logging_level": "error"}
    if job["address"] is None:
        ray.init(num_cpus=job["cpus"], include_dashboard=False, object_store_memory=OBJECTS, _temp_dir=job["folder"],
                 _node_ip_address="127.0.0.1", **quiet)
    else:
        ray.init(address=job["address"], **quiet)
    cpus = int(ray.cluster_resources().get("CPU", 0))
    say(ready=cpus)

    run = ray.remote(num_cpus=1, max_retries=0)(compute)
    sent = ray.put(job["work"])
    points = job["points"]
    size = min(max(len(points) // (TASKS * max(cpus, 1)), 1), POINTS)
    waiting = {run.remote(job["program"], sent, part): (part, 0)
               for part in (points[at:at + size] for at in range(0, len(points), size))}
    idle = 0
    while waiting:
        done, _ = ray.wait(list(waiting), num_returns=1, timeout=1)
        if not done:
            idle = 0 if ray.cluster_resources().get("CPU", 0) >= 1 else idle + 1
            if idle >= PATIENCE:
                fail("no node of Ray with a CPU is left; its finished points are kept, so run it again when there is one")
            say(alive=True)
            continue
        part, times = waiting.pop(done[0])
        why = "a worker was killed"
        try:
            node, out = ray.get(done[0])
        except ray.exceptions.RayTaskError as error:
            fail(error.cause or error)
        except ray.exceptions.RayError as error:
            out, why = None, type(error).__name__
        if out is not None:
            say(node=node, outcomes=[json.loads(line) for line in out.splitlines()])
        elif times < TIMES:
            say(again=why)
            waiting[run.remote(job["program"], sent, part)] = (part, times + 1)
        else:
            fail(f"a task of Ray failed {times + 1} times ({why}); its finished points are kept, so run it again")
    say(ended=True)
    ray.shutdown()
except Exception as error:  # whatever Ray raises becomes one line
    fail(error)
