"""Builds and runs the benches, and prints what each covered. `run.py NAME...` runs only those."""

import argparse
import fcntl
import json
import multiprocessing
import os
import subprocess
import sys
import time
import xml.etree.ElementTree as xml
from importlib.metadata import version
from pathlib import Path

from cocotb_tools.runner import Verilator

HW = Path(__file__).resolve().parent.parent
BENCHES = HW / "dv" / "benches"
INCLUDES = [HW / "rtl/common", HW / "rtl/onionchopper", HW / "rtl/sifo", HW / "rtl/phepu", HW / "rtl/assert", HW / "dv/models"]

# A bench is a module and the parameters it is built with.
BUILDS = {
    "bc_fifo": [{"WIDTH": 8, "DEPTH": 4}, {"WIDTH": 16, "DEPTH": 1}, {"WIDTH": 5, "DEPTH": 3}],
    "bc_arbiter": [{"REQUESTS": 3, "WIDTH": 8}, {"REQUESTS": 5, "WIDTH": 16}, {"REQUESTS": 1, "WIDTH": 4}],
    "bc_loop_nest": [{}, {"LOOPS": 6}, {"LOOPS": 3, "BOUND": 4, "ADDRESS": 8}],
    "oc_adder": [{}, {"WIDTH": 65, "BITS": 65}, {"WIDTH": 10, "BITS": 3}, {"WIDTH": 24, "BITS": 1}],
    "oc_multiplier": [{}, {"A": 65, "B": 64, "OUT": 66}, {"A": 16, "B": 16, "OUT": 32, "BITS": 3}],
    "oc_mod_add": [{"WORD": 64}, {"WORD": 32}],
    "oc_mod_mul": [{"BITS": 0}, {"BITS": 32}],
    "oc_mod_acc": [{"BITS": 0}, {"BITS": 8}],
    "oc_compute_unit": [{"BITS": 0}, {"BITS": 8}],
    "oc_compute_unit_lwe": [{}],
    "oc_moduli": [{}],
    "oc_moduli_selector": [{}],
    "oc_sram": [{"ROWS": 128}, {"ROWS": 16}],
    "oc_register_file": [{"WORD": 64, "ROWS": 16}, {"WORD": 32, "ROWS": 8}],
    "ssd_model": [{}],
    "dram_model": [{"BEATS": 256}, {"BEATS": 1 << 28, "PAGES": 255, "LATENCY": 1}],
    "oc_config": [{"LANES": 2, "COUNTERS": 15}],
    "oc_ssd_loader": [{"HALF_BEATS": 32}],
    "oc_tile_loader": [{"LANES": 4, "HALF_BEATS": 256, "C_BEATS": 256, "FLIGHT": 16}, {"LANES": 2, "FLIGHT": 8}],
    "oc_lane": [{"WORD": 64}, {"WORD": 32}],
    "oc_sequencer": [{"LANES": 2}, {"LANES": 4, "WORD": 32, "RF_ROWS": 32}],
    "oc_drain": [{"LANES": 4, "HALF_BEATS": 256, "C_BEATS": 256}, {"LANES": 2, "WORD": 32}, {"LANES": 1}],
    "sf_sha1": [{}],
    "sf_gand": [{"LABEL": 80}, {"LABEL": 128}],
    "sf_gxor": [{"LABEL": 80}, {"LABEL": 128}],
    "sf_cells": [
        {"CELLS": 1, "LABEL": 80, "TAG": 20}, {"CELLS": 3, "LABEL": 128, "TAG": 1}, {"CELLS": 5, "LABEL": 80, "TAG": 24},
    ],
    "hg_aes_sbox": [{"PLACES": 16}, {"PLACES": 4}],
    "hg_aes_round": [{"BLOCKS": 1, "LAST": 0}, {"BLOCKS": 3, "LAST": 1}, {"BLOCKS": 4, "LAST": 0}],
    "hg_aes": [{"BLOCKS": 1}, {"BLOCKS": 4}],
    "hg_aes_keys": [{}],
    "hg_delay": [{"WIDTH": 70, "CYCLES": 2}, {"WIDTH": 8, "CYCLES": 21}],
    "hg_cell": [{"TAG": 40}, {"TAG": 1, "GARBLES": 0}],
    "sf_registers": [{"LABEL": 80}, {"LABEL": 128}],
    "sf_dispatcher": [{"COMMAND": 63, "QUEUE": 64}, {"COMMAND": 96}],
    "sf_controller": [{"LABEL": 80, "ADDRESS": 9, "PLACES": 24}, {"LABEL": 128, "ADDRESS": 21, "PLACES": 16}],
    "sf_block_ram": [{"WIDTH": 108, "PLACES": 24, "READS": 2}, {"WIDTH": 512, "PLACES": 16, "READS": 3}],
    "ddr_model": [{"WORDS": 16}],
    "host_link": [{}],
    "sifo_board": [
        {"ANDS": 1, "XORS": 1, "LABEL": 80, "PLACES": 24, "WORDS": 8, "WATCHDOG": 400},
        {"ANDS": 3, "XORS": 2, "LABEL": 128, "PLACES": 16, "WORDS": 4, "WATCHDOG": 300},
    ],
    "hg_board": [
        {"LANES": 1, "PLACES": 64, "WORDS": 24, "WATCHDOG": 600}, {"LANES": 2, "PLACES": 64, "WORDS": 32, "WATCHDOG": 600},
        {"LANES": 4, "PLACES": 100, "WORDS": 16, "WATCHDOG": 600},
    ],
    "ph_stein": [{}, {"WIDTH": 256, "DIGIT": 16}, {"WIDTH": 256, "DIGIT": 16, "FORWARD": 0}],
    "ph_multiplier": [{"WIDTH": 256}, {"WIDTH": 64}],
    "ph_montgomery": [{}],
    "ph_selector": [{}],
    "ph_element": [{}],
    "ph_controller": [{"ELEMENTS": 3, "INPUTS": 600, "WEIGHTS": 400}],
    "phepu_card": [
        {"CHIPS": 1, "ELEMENTS": 2, "INPUTS": 256, "WEIGHTS": 128, "OUTPUTS": 40, "INSTRUCTIONS": 4, "DDR": 32},
        {"CHIPS": 2, "ELEMENTS": 2, "INPUTS": 256, "WEIGHTS": 128, "OUTPUTS": 64, "INSTRUCTIONS": 8, "DDR": 32},
    ],
    "onionchopper_board": [
        {"HALF_BEATS": 1024, "C_BEATS": 512},
        {"HALF_BEATS": 1024, "C_BEATS": 512, "LANES": 4, "WORD": 32},
        {"HALF_BEATS": 3 << 25, "C_BEATS": 1 << 26, "DRAM_PAGES": 1023, "LANES": 1, "BITS": 32},
    ],
}


def source(module):
    for folder in INCLUDES:
        if (folder / f"{module}.sv").exists():
            return folder / f"{module}.sv"
    raise FileNotFoundError(f"no such module: {module}")


# Low, since most of a bench's time is Python's.
OPTIMISED = "-O1"
# What every bench includes.
HEADERS = "headers.h"


def objects(runtime):
    """The simulator's own."""
    return [runtime / f"verilated{part}.o" for part in ("", "_dpi", "_vpi", "_threads")]


def compile_runtime(folder):
    """Compiles the simulator's own objects, with a bench, and its headers. A compiler that can't use those reads their text."""
    build("bc_fifo", {}, folder, None)
    (folder / HEADERS).write_text("".join(f'#include "verilated{part}.h"\n' for part in ("", "_dpi", "_vpi")))
    include = Path(os.environ["VERILATOR_ROOT"]) / "include"
    flags = [f"-I{path}" for path in (".", include, include / "vltstd")] + ["-DVERILATOR=1"]
    flags += [f"-DVM_{what}=0" for what in ("COVERAGE", "SC", "TIMING", "TRACE", "TRACE_FST", "TRACE_VCD", "TRACE_SAIF")]
    subprocess.run([os.environ.get("CXX", "c++"), OPTIMISED, *flags, "-x", "c++-header", HEADERS], cwd=folder, check=True)


class Ports(Verilator):
    """cocotb's runner for Verilator, with two changes that take most of the time off a build: only the top's ports and
    parameters can be reached, not every signal, and the simulator's own objects and headers are compiled once for all benches."""

    runtime = None

    def _build_command(self):
        verilate, make = super()._build_command()
        verilate.remove("--public-flat-rw")
        options = OPTIMISED
        if self.runtime:
            make += ["VK_GLOBAL_OBJS=", "LOADLIBES=" + " ".join(map(str, objects(self.runtime)))]
            options += f" -include {self.runtime / HEADERS}"
        make += [f"OPT_FAST={options}", "OPT_SLOW=-O0", f"OPT_GLOBAL={options}"]
        return [verilate, make]


def build(module, parameters, folder, runtime):
    """Verilates a module with the assertions bound to it."""
    folder.mkdir(parents=True, exist_ok=True)
    ports = folder / "ports.vlt"
    text = "`verilator_config\n" + "".join(f'public_flat_rw -module "{module}" -var "{var}"\n' for var in ("*_i", "*_ni", "*_o"))
    text += f'public_flat_rd -module "{module}" -param "*"\n'
    if not ports.exists() or ports.read_text() != text:
        ports.write_text(text)
    runner = Ports()
    runner.runtime = runtime
    runner.build(
        sources=[
            HW / "rtl/lint.vlt", ports, HW / "rtl/onionchopper/oc_pkg.sv", HW / "rtl/sifo/hg_pkg.sv", HW / "rtl/phepu/ph_pkg.sv",
            source(module), HW / "rtl/assert/bc_bind.sv",
        ],
        includes=INCLUDES,
        hdl_toplevel=module,
        parameters=parameters,
        build_dir=folder,
        # One file to compile; what is not written at reset begins at random, by the run's seed.
        build_args=["--assert", "--output-split", "0", "--x-initial", "unique", "--quiet-stats"],
        timescale=("1ns", "1ps"),
        log_file=folder / "build.log",
    )
    return runner


def bench(module, parameters, out, runtime, seed):
    name = "-".join([module] + [f"{key.lower()}{given}" for key, given in parameters.items()])
    folder = out / name
    began = time.monotonic()
    try:
        runner = build(module, parameters, folder, runtime)
    except RuntimeError:
        print(f"{(folder / 'build.log').read_text()}{name}: does not build", flush=True)
        return False, {"bench": name, "tests": []}
    built = time.monotonic()
    coverage = folder / "coverage.json"
    coverage.unlink(missing_ok=True)
    results = folder / "results.xml"
    results.unlink(missing_ok=True)
    try:
        runner.test(
            hdl_toplevel=module,
            test_module=f"test_{module}",
            test_dir=folder,
            build_dir=folder,
            seed=seed,
            results_xml=results,
            extra_env={"DV_COVERAGE": str(coverage), "COCOTB_LOG_LEVEL": "WARNING"},
            plusargs=["+verilator+rand+reset+2", f"+verilator+seed+{seed}"],
            log_file=folder / "test.log",
        )
    except (RuntimeError, SystemExit):
        pass  # the results say what failed; without results, all of it
    ended = time.monotonic()
    cases = list(xml.parse(results).iter("testcase")) if results.exists() else []
    failed = [case.get("name") for case in cases if case.find("failure") is not None or case.find("error") is not None]
    seen = [json.loads(line) for line in coverage.read_text().splitlines()] if coverage.exists() else []
    bins = sum(len(test["goals"]) for test in seen)
    met = sum(test["hits"][key] >= goal for test in seen for key, goal in test["goals"].items())
    good = bool(cases) and not failed and len(seen) == len(cases)
    print(
        f"{name:44} {len(cases) - len(failed):3}/{len(cases)} tests {sum(t['cycles'] for t in seen):8,} clocks "
        f"{met:3}/{bins} covered {built - began:5.1f} + {ended - built:4.1f} s{'' if good else '  FAILED'}",
        flush=True,
    )
    if not good:
        print((folder / "test.log").read_text())
    return good, {"bench": name, "tests": seen}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bins", action="store_true", help="print each bin's count and goal")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    unknown = [name for name in given.names if name not in BUILDS]
    if unknown:
        sys.exit(f"no bench {', '.join(unknown)}; there are: {' '.join(BUILDS)}")
    out = given.out.resolve()
    # Make's own flags are not for the makes below, whose python is the tools' own.
    os.environ.pop("MAKEFLAGS", None)
    os.environ["PATH"] = f"{os.environ['VERILATOR_ROOT']}/bin:{Path(sys.executable).parent}:{os.environ['PATH']}"
    sys.path.insert(0, str(BENCHES))  # which the runner hands to the simulator's python
    # Two runs at once would build in the same folders: the second waits for the first.
    out.mkdir(parents=True, exist_ok=True)
    lock = open(out / ".lock", "w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    began = time.monotonic()
    runtime = out / f"runtime-{version('verilator')}"
    if not all(path.exists() for path in [*objects(runtime), runtime / f"{HEADERS}.gch"]):
        compile_runtime(runtime)
    jobs = [(module, parameters, out, runtime, given.seed) for module in given.names or BUILDS for parameters in BUILDS[module]]
    # A bench is a process of its own, as many at a time as there are cores.
    with multiprocessing.Pool(min(len(jobs), os.cpu_count() or 1)) as pool:
        results = pool.starmap(bench, jobs, chunksize=1)
    if given.bins:
        for _, result in results:
            for test in result["tests"]:
                for name, goal in test["goals"].items():
                    print(f"{result['bench']:44} {test['test']:28} {name:28} {test['hits'][name]:7} of {goal}")
    failed = sum(not good for good, _ in results)
    tests = [test for _, result in results for test in result["tests"]]
    goals = [test["hits"][key] >= goal for test in tests for key, goal in test["goals"].items()]
    print(
        f"{len(results)} builds, {len(tests)} tests, {sum(test['cycles'] for test in tests):,} clocks; "
        f"{sum(goals):,} of {len(goals):,} coverage goals met"
    )
    print(f"{len(results)} benches, {failed} failed, {time.monotonic() - began:.0f} s, seed {given.seed}")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
