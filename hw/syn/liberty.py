"""What the flow needs to know of a standard-cell library: its name, its flip-flops, its smallest buffer."""

import gzip
import re
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Library:
    name: str
    text: str  # without its models of wires
    flip_flops: set[str]
    buffer: str  # the smallest, stands for whatever drives a gate
    load_ff: float  # what a flip-flop's data input weighs, in femtofarads


def _groups(text: str, kind: str):
    """Each `kind (name) { body }` directly or deeper in the text, as (name, body)."""
    for start in re.finditer(rf"\b{kind}\s*\(([^)]*)\)\s*\{{", text):
        depth, at = 1, start.end()
        while depth:
            brace = _BRACE.search(text, at)
            if brace is None:
                raise ValueError(f"{kind} ({start[1]}) is not closed")
            depth += 1 if brace[0] == "{" else -1
            at = brace.end()
        yield start[1].strip(' "'), text[start.end() : at - 1]


_BRACE = re.compile(r"[{}]")


def _value(body: str, key: str) -> str | None:
    found = re.search(rf"\b{key}\s*:\s*\"?([^\";]*?)\"?\s*;", body)
    return found[1].strip() if found else None


def _without_wires(text: str) -> str:
    """No estimate of wires: libraries disagree whether they bring one and how it is chosen, and none knows the layout."""
    while group := re.search(r"\bwire_load(_selection|_table)?\s*\([^)]*\)\s*\{", text):
        depth, at = 1, group.end()
        while depth:
            brace = _BRACE.search(text, at)
            depth += 1 if brace[0] == "{" else -1
            at = brace.end()
        text = text[: group.start()] + text[at:]
    return re.sub(r"\bdefault_wire_load\w*\s*:[^;]*;", "", text)


def read(path: Path) -> Library:
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode()
    text = _without_wires(re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL))
    library = re.search(r"\blibrary\s*\(\s*\"?([^\")]*?)\"?\s*\)", text)
    if library is None:
        raise ValueError(f"{path} is not a Liberty file: it has no library group")
    unit = re.search(r"capacitive_load_unit\s*\(\s*([0-9.]+)\s*,\s*\"?(pf|ff)\"?\s*\)", text, re.IGNORECASE)
    femto = float(unit[1]) * (1000 if unit[2].lower() == "pf" else 1)

    flip_flops, buffers, loads = set(), [], []
    for name, body in _groups(text, "cell"):
        pins = dict(_groups(body, "pin"))
        area = float(_value(body, "area") or 0)
        flip_flop = next(_groups(body, "ff"), None)
        if flip_flop:
            flip_flops.add(name)
            data = _value(flip_flop[1], "next_state")
            if data in pins:
                loads.append((area, float(_value(pins[data], "capacitance"))))
        elif len(pins) == 2 and area > 0:
            inputs = [pin for pin, text_ in pins.items() if _value(text_, "direction") == "input"]
            functions = [_value(text_, "function") for text_ in pins.values()]
            if len(inputs) == 1 and any(f and f.strip("() ") == inputs[0] for f in functions):
                buffers.append((area, name))
    if not flip_flops or not buffers:
        raise ValueError(f"{path} has no flip-flop or no buffer: nothing can be mapped to it")
    return Library(library[1], text, flip_flops, min(buffers)[1], round(min(loads)[1] * femto, 3))
