"""What both flows share: the sources, yosys in a process of its own, versions, and the file of results."""

import hashlib
import json
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

HW = Path(__file__).resolve().parent.parent
OUT = HW.parent / "target" / "hw" / "syn"
RESULTS = HW / "syn" / "results"


# Each command with the seconds it took, so that a log says where a slow block spends its time.
YOSYS = """
import time
from pyosys import libyosys
design = libyosys.Design()
for command in open("{script}").read().splitlines():
    began = time.monotonic()
    libyosys.run_pass(command, design)
    print(f"-- {{time.monotonic() - began:.1f}} s: {{command[:60]}}", flush=True)
"""


class Failure(Exception):
    """The flow can't go on; the message says what to do."""


def folders() -> list[Path]:
    return [*sorted(path for path in (HW / "rtl").iterdir() if path.is_dir()), HW / "syn" / "cells"]


def read_command(block: str, parameters: dict[str, int], black_boxes: list[str]) -> str:
    """Yosys's command that reads a block, and no file that isn't in it."""
    sources = sources_of(block)
    if not sources:
        raise Failure(f"no block {block}: looked for {block}.sv in " + ", ".join(str(f.relative_to(HW)) for f in folders()))
    words = ["read_slang --allow-use-before-declare --top", block]  # as Verilator does
    words += [f"-G {name}={value}" for name, value in parameters.items()]
    words += [f"--blackboxed-module {module}" for module in black_boxes]
    return " ".join(map(str, [*words, *sorted(sources, key=lambda path: not path.stem.endswith("_pkg"))]))


def yosys(commands: list[str], folder: Path, name: str) -> None:
    """Runs yosys in `folder`, its log in `folder`/name.log. A process a run: yosys ends the process on an error."""
    (folder / f"{name}.ys").write_text("\n".join(commands) + "\n")
    program = YOSYS.format(script=f"{name}.ys")
    with open(folder / f"{name}.log", "w") as log:
        done = subprocess.run([sys.executable, "-c", program], cwd=folder, stdout=log, stderr=subprocess.STDOUT)
    if done.returncode:
        tail = (folder / f"{name}.log").read_text().splitlines()[-12:]
        raise Failure(f"yosys failed, whole log in {folder / name}.log:\n" + "\n".join(tail))


def sources_of(block: str) -> list[Path]:
    """The files of a block and, by the names in them, of all that is in it."""
    files = {path.stem: path for folder in folders() for path in folder.glob("*.sv")}
    found, ahead = {}, [block]
    while ahead:
        name = ahead.pop()
        if name in files and name not in found:
            found[name] = files[name]
            ahead += set(re.findall(r"\w+", re.sub(r"//.*", "", files[name].read_text())))
    return [found[name] for name in sorted(found)]


def digest(sources: list[Path], *more: str) -> str:
    """Twelve digits that change with any of the sources."""
    sha = hashlib.sha256("\n".join(more).encode())
    for path in sources:
        sha.update(path.name.encode() + path.read_bytes())
    return sha.hexdigest()[:12]


def tool_version(package: str) -> str:
    return f"{package} {version(package)}"


def parse_parameters(texts: list[str]) -> dict[str, int]:
    parameters = {}
    for text in texts:
        match = re.fullmatch(r"(\w+)=(\d+)", text)
        if match is None:
            raise Failure(f"a parameter is NAME=NUMBER, not {text}")
        parameters[match[1]] = int(match[2])
    return parameters


def make_command(rule: str, block: str, parameters: dict[str, int], *more: str) -> str:
    """What was said to make, as somebody else would say it."""
    others = " ".join(f"{k}={v}" for k, v in parameters.items() if k != "BITS")
    words = [f"BITS={parameters['BITS']}"] if "BITS" in parameters else []
    words += [f'PARAMETERS="{others}"'] if others else []
    return " ".join([f"make -C hw {rule} BLOCK={block}", *words, *more])


def run_name(block: str, parameters: dict[str, int], target: str) -> str:
    return ".".join([block, *(f"{k}{v}" for k, v in parameters.items()), target])


def save(result: dict, name: str) -> None:
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))
    print(f"written: {path.relative_to(HW.parent)}", file=sys.stderr)
