"""Builds what scenes.py runs, with every signal traced, and runs it: one VCD a scene."""

import os
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

HW = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HW / "dv"))
from run import INCLUDES, Ports, source  # noqa: E402

# A scene, its top and how that is built.
SCENES = {
    "board": ("onionchopper_board", {"HALF_BEATS": 1024, "C_BEATS": 512}),
    "accumulator": ("oc_mod_acc", {"BITS": 24}),
}


def simulate(scene, out):
    """The VCD of a scene."""
    top, parameters = SCENES[scene]
    folder = out / scene
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.pop("MAKEFLAGS", None)
    os.environ["PATH"] = f"{os.environ['VERILATOR_ROOT']}/bin:{Path(sys.executable).parent}:{os.environ['PATH']}"
    for path in (HW / "dv" / "benches", HW / "doc"):
        if str(path) not in sys.path:
            sys.path.insert(0, str(path))  # which the runner hands to the simulator's python
    ports = folder / "ports.vlt"
    text = "`verilator_config\n" + "".join(f'public_flat_rw -module "{top}" -var "{var}"\n' for var in ("*_i", "*_ni", "*_o"))
    if not ports.exists() or ports.read_text() != text:
        ports.write_text(text)
    runner = Ports()
    try:
        runner.build(
            sources=[HW / "rtl/lint.vlt", ports, HW / "rtl/onionchopper/oc_pkg.sv", source(top)],
            includes=INCLUDES,
            hdl_toplevel=top,
            parameters=parameters,
            build_dir=folder,
            build_args=["--public-params", "--output-split", "0", "--trace-structs", "--x-initial", "fast", "--quiet-stats"],
            timescale=("1ns", "1ps"),
            waves=True,
            log_file=folder / "build.log",
        )
    except RuntimeError:
        sys.exit((folder / "build.log").read_text())
    results = folder / "results.xml"
    results.unlink(missing_ok=True)
    try:
        runner.test(
            hdl_toplevel=top,
            test_module="scenes",
            test_filter=f"{scene}$",
            test_dir=folder,
            build_dir=folder,
            seed=1,
            waves=True,
            results_xml=results,
            extra_env={"COCOTB_LOG_LEVEL": "WARNING"},
            log_file=folder / "run.log",
        )
    except (RuntimeError, SystemExit):
        pass  # the results say what failed; without results, all of it
    cases = list(xml.parse(results).iter("testcase")) if results.exists() else []
    if len(cases) != 1 or cases[0].find("failure") is not None or cases[0].find("error") is not None:
        sys.exit((folder / "run.log").read_text())
    return folder / "dump.vcd"
