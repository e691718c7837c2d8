"""One block to standard cells: area, static timing before layout, power. `make -C hw syn BLOCK=... LIB=...` runs it."""

import argparse
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import liberty
from common import OUT, Failure, digest, make_command, parse_parameters, read_command, run_name, save, sources_of, tool_version, yosys

# Cells that compute nothing a netlist needs: delays, probes, isolation and level shifters of low-power flows.
NOT_USED = ["*dly*", "*lpflow*", "*probe*", "*macro*", "*antenna*"]
# Mapping for speed: dc2, which saves a fifth of a multiplier's area, makes its paths a third longer. `buffer -p` splits what a flip-flop drives too, which it only does for a known driver (-constr).
ABC = """strash
dch
map -B 0.9
topo
buffer -p
topo
upsize
dnsize
stime
"""
# yosys's `synth` in its own order, without opt -full and opt_expr -fine, which took most of its time on these pipelines:
# abc sees the same logic a little later. Carries by Sklansky, the shortest of yosys's adders here.
ELABORATE = """hierarchy -check -top {block}
proc
flatten
opt_expr
opt_clean
opt -fast -nodffe -nosdff
wreduce
peepopt
opt_clean
booth
alumacc
opt -fast
memory
opt_clean
techmap -map +/techmap.v -map +/choices/sklansky.v
opt -fast
simplemap
opt_clean"""
PERIOD_NS = 1000.0  # longer than any path: the shortest clock is this less the slack
TOGGLES = 0.5  # of a net, a clock: what random bits do, and the most that random bits do without glitches


def elaborate(block, parameters, black_boxes):
    """The block in yosys's own gates, the same for every library; kept until a source of it changes.

    Returns the file, and the digest of the sources."""
    folder = OUT / "generic" / run_name(block, parameters, "elaborated")
    folder.mkdir(parents=True, exist_ok=True)
    made, key = folder / f"{block}.il", folder / "key"
    commands = [read_command(block, parameters, black_boxes), *ELABORATE.format(block=block).splitlines()]

    sources = sources_of(block)
    now = digest(sources, *commands, tool_version("pyosys"))
    if not (made.exists() and key.exists() and key.read_text() == now):
        read = digest(sources)
        yosys([*commands, f"write_rtlil {made.name}"], folder, "yosys")
        if digest(sources) != read:
            raise Failure("a source changed while it was read: start again")
        key.write_text(now)
    return made, digest(sources)


def netlist(block, generic, library, folder):
    """Maps to the library's cells; the netlist is `folder`/block.v and its counts are returned."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "library.lib").write_text(library.text)
    (folder / "abc.script").write_text(ABC)
    (folder / "drive.constr").write_text(f"set_driving_cell {library.buffer}\nset_load {library.load_ff}\n")
    avoid = " ".join(f"-dont_use {pattern}" for pattern in NOT_USED)
    yosys(
        [
            f"read_rtlil {generic}",
            f"dfflibmap -liberty library.lib {avoid}",
            f"abc -liberty library.lib {avoid} -constr drive.constr -script abc.script",
            "opt_clean -purge",
            "tee -q -o stat.json stat -json -liberty library.lib",
            f"write_verilog -noattr -noexpr -simple-lhs {block}.v",
        ],
        folder,
        "yosys",
    )
    # What is left out keeps its parameters, which OpenSTA can't read.
    made = folder / f"{block}.v"
    made.write_text(re.sub(r"^(  \w+) #\(\n(?:    \..*\n)+  \) ", r"\1 ", made.read_text(), flags=re.MULTILINE))
    module = json.loads((folder / "stat.json").read_text())["modules"]["\\" + block]
    cells = module["num_cells_by_type"]
    unmapped = sorted(cell for cell in cells if cell.startswith("$"))
    if unmapped:
        raise Failure(f"{library.name} has no cell for {', '.join(unmapped)}")
    return {
        "area_um2": round(float(module["area"]), 1),
        "area_of_registers_um2": round(float(module["sequential_area"]), 1),
        "cells": module["num_cells"],
        "flip_flops": sum(count for cell, count in cells.items() if cell in library.flip_flops),
    }


def sta(folder, block, lines):
    """Runs OpenSTA on the netlist and returns what it prints."""
    # Whatever units the library has: they would be the commands' too.
    units = "set_cmd_units -time ns -capacitance pF"
    script = ["read_liberty library.lib", units, f"read_verilog {block}.v", f"link_design {block}", *lines, "exit"]
    (folder / "sta.tcl").write_text("\n".join(script) + "\n")
    done = subprocess.run(
        ["sta", "-no_splash", "-no_init", "-exit", "sta.tcl"], cwd=folder, capture_output=True, text=True
    )
    (folder / "sta.log").write_text(done.stdout + done.stderr)
    if done.returncode or "Error" in done.stdout + done.stderr:
        raise Failure(f"OpenSTA failed:\n{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


def constraints(clocked, flip_flop, clock_to_q_ns, load_ff):
    """Inputs come from a flip-flop that the clock just set, outputs go to one; the clock reaches all at once."""
    lines = [f"create_clock -name clk -period {PERIOD_NS}" + (" [get_ports clk_i]" if clocked else "")]
    lines.append("set inputs {}")
    lines.append("foreach p [all_inputs] { if {![regexp {^(clk|rst)_n?i$} [get_name $p]]} { lappend inputs $p } }")
    if flip_flop:
        lines.append(f"set_driving_cell -lib_cell {flip_flop[0]} -pin {flip_flop[1]} $inputs")
    lines.append(f"set_input_delay -clock clk {clock_to_q_ns} $inputs")
    lines.append("set_output_delay -clock clk 0 [all_outputs]")
    lines.append(f"set_load {load_ff / 1000} [all_outputs]")
    lines.append("foreach p [all_inputs] { if {[get_name $p] == {rst_ni}} { set_case_analysis 1 $p } }")
    return lines


def register(netlist_text, instance):
    """The name of what a flip-flop holds; a port keeps its name."""
    found = re.search(rf"^  \S+ {re.escape(instance)} \((.*?)^  \);", netlist_text, re.MULTILINE | re.DOTALL)
    output = found and re.search(r"\.Q\((.*?)\)", found[1])
    return output[1].strip().replace("\\", "").replace(" ", "") if output else instance


def paths(report):
    """The slowest path of OpenSTA's report: nanoseconds of slack, and where its time goes."""
    start = re.search(r"^Startpoint: (\S+)", report, re.MULTILINE)
    end = re.search(r"^Endpoint: (\S+)", report, re.MULTILINE)
    slack = re.search(r"^\s+(-?[\d.]+)\s+slack", report, re.MULTILINE)
    if not (start and end and slack):
        raise Failure("OpenSTA found no path between registers, inputs and outputs")
    arrival = float(re.search(r"^\s+(-?[\d.]+)\s+data arrival time", report, re.MULTILINE)[1])
    setup = re.search(r"^\s+(-?[\d.]+)\s+-?[\d.]+\s+library setup time", report, re.MULTILINE)
    steps = re.findall(r"^.*?(-?[\d.]+)\s+(-?[\d.]+)\s+[v^]\s+(\S+)/(\S+) \((\S+)\)", report, re.MULTILINE)
    fanouts = [int(n) for n in re.findall(r"^\s+(\d+)\s+[\d.]+\s+\S.*\(net\)", report, re.MULTILINE)]
    gates = []
    for step in steps:  # an instance shows twice, at its input and at its output
        if step[2] not in (start[1], end[1]) and step[2] not in gates:
            gates.append(step[2])
    launch = [float(time) for _, time, instance, _, _ in steps if instance == start[1]]
    external = re.search(r"(-?[\d.]+)\s+-?[\d.]+\s+[v^]\s+input external delay", report)
    before = launch[-1] if launch else float(external[1]) if external else 0.0
    return {
        "slack_ns": float(slack[1]),
        "start": start[1],
        "end": end[1],
        "register_ps": round(1000 * before),
        "logic_ps": round(1000 * (arrival - before)),
        "setup_ps": round(-1000 * float(setup[1])) if setup else 0,
        "gates": len(gates),
        "largest_fanout": max(fanouts, default=0),
    }


# Not the group of asynchronous resets: the tree that would carry a reset is not built.
REPORT = "report_checks -path_delay max -path_group clk -format full_clock_expanded -fields {capacitance slew input_pin net} -digits 4"


def registers(library, out):
    """The library's own floor: flip-flop to flip-flop. Returns (cell, output pin), clock to output, and the clock."""
    folder = out / "oc_registers"
    netlist("oc_registers", elaborate("oc_registers", {}, [])[0], library, folder)
    cells = json.loads((folder / "stat.json").read_text())["modules"]["\\oc_registers"]["num_cells_by_type"]
    cell = next(cell for cell in cells if cell in library.flip_flops)
    lines = [f"create_clock -name clk -period {PERIOD_NS} [get_ports clk_i]", REPORT]
    report = sta(folder, "oc_registers", lines)
    path = paths(report)
    output = re.search(rf"[v^] \S+/(\S+) \({cell}\)\s+1\s", report)
    flip_flop = (cell, output[1])
    return flip_flop, path["register_ps"] / 1000, round(1000 * (PERIOD_NS - path["slack_ns"]))


def time_and_power(block, library, folder, out):
    flip_flop, clock_to_q_ns, floor_ps = registers(library, out)
    text = (folder / f"{block}.v").read_text()
    clocked = re.search(r"^  input clk_i;", text, re.MULTILINE) is not None
    if not clocked:
        flip_flop, clock_to_q_ns = None, 0.0  # the block alone, from its inputs' edges to its outputs
    setting = constraints(clocked, flip_flop, clock_to_q_ns, library.load_ff)
    path = paths(sta(folder, block, [*setting, REPORT]))
    path |= {"start": register(text, path["start"]), "end": register(text, path["end"])}
    delay_ps = round(1000 * (PERIOD_NS - path.pop("slack_ns")), 2)
    result = {"timing": "OpenSTA, before layout: no wires, no clock tree"}
    if clocked:
        result |= {"clock_ps": delay_ps, "fastest_mhz": round(1e6 / delay_ps, 1), "flip_flop_to_flip_flop_ps": floor_ps}
    else:
        result |= {"delay_ps": delay_ps}
    result["limiting_path"] = path
    if clocked:
        setting[0] = f"create_clock -name clk -period {delay_ps / 1000} [get_ports clk_i]"
        report = sta(
            folder, block, [*setting, f"set_power_activity -global -activity {TOGGLES} -duty 0.5", "report_power -digits 6"]
        )
        total = re.search(r"^Total\s+(\S+)\s+(\S+)\s+(\S+)\s+(\S+)", report, re.MULTILINE)
        internal, switching, leakage, watts = map(float, total.groups())
        result["power"] = {
            "milliwatts": round(1e3 * watts, 4),
            "leakage_milliwatts": round(1e3 * leakage, 6),
            "picojoules_a_clock": round((internal + switching) * delay_ps, 4),
            "assumption": f"at the fastest clock, every net toggles {TOGGLES} times a clock as random bits do; "
            "no wires, no clock tree, no glitches",
        }
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--block", required=True)
    parser.add_argument("--lib", required=True, type=Path, help="a Liberty file, plain or gzipped")
    parser.add_argument("--black-box", action="append", default=[], help="a module left out, such as a memory")
    parser.add_argument("parameter", nargs="*", help="NAME=NUMBER of the block")
    arguments = parser.parse_args()
    if not arguments.lib.exists():
        raise Failure(
            f"no library at {arguments.lib}: give LIB=path/to/cells.lib, or install Debian's qflow-tech-osu018, the default"
        )
    library = liberty.read(arguments.lib)
    parameters = parse_parameters(arguments.parameter)
    out = OUT / library.name
    name = run_name(arguments.block, parameters, library.name)
    folder = out / name
    generic, sources = elaborate(arguments.block, parameters, arguments.black_box)
    counts = netlist(arguments.block, generic, library, folder)
    tools = [tool_version("pyosys")]
    if shutil.which("sta"):
        timed = time_and_power(arguments.block, library, folder, out)
        tools.append("OpenSTA " + subprocess.run(["sta", "-version"], capture_output=True, text=True).stdout.strip())
    else:
        print("no OpenSTA: for timing and power install Debian's opensta; abc's own delay instead", file=sys.stderr)
        delays = re.findall(r"Delay =\s*([\d.]+) ps", (folder / "yosys.log").read_text())
        timed = {"timing": "abc, the logic between registers alone: without registers, wires, clock tree"}
        timed["logic_ps"] = round(float(delays[-1])) if delays else 0
    left_out = [f'BLACK_BOXES="{" ".join(arguments.black_box)}"'] if arguments.black_box else []
    save(
        {
            "block": arguments.block,
            "parameters": parameters,
            "library": library.name,
            **({"left_out": arguments.black_box} if arguments.black_box else {}),
            **counts,
            **timed,
            "sources": sources,
            "tools": tools,
            "command": make_command("syn", arguments.block, parameters, *left_out, f"LIB=<{library.name}>"),
        },
        name,
    )


if __name__ == "__main__":
    try:
        main()
    except (Failure, ValueError) as failure:
        sys.exit(f"synthesis: {failure}")
