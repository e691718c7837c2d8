"""Checks the pages against the RTL: every port of every module, every register, error and counter, every image and link.

A table of ports stands below a line that begins with `Ports of` and the module's name; clock and reset are not in it."""

import re
import sys
from pathlib import Path

DOC = Path(__file__).resolve().parent
HW = DOC.parent
RTL = [path for folder in ("rtl/common", "rtl/onionchopper", "rtl/sifo", "rtl/phepu", "dv/models") for path in sorted((HW / folder).glob("*.sv"))]
wrong = []


def ports(text):
    """A module's ports, from its header."""
    header = re.search(r"^module .*?^\);", text, re.S | re.M)
    found = re.findall(r"^\s*(?:input|output)\s.*?(\w+)(?:\[\w+\])?\s*,?\s*(?://.*)?$", header[0], re.M) if header else []
    return set(found) - {"clk_i", "rst_ni"}


def rows(text):
    """Cells of the table's rows, without the head."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def check(what, here, there, page):
    for name in sorted(here - there):
        wrong.append(f"{page}: {what} {name} is not in the RTL")
    for name in sorted(there - here):
        wrong.append(f"{page}: {what} {name} is missing")


pages = {path.name: path.read_text() for path in sorted(DOC.glob("*.md"))}

tables = {}
for page, text in pages.items():
    for module, table in re.findall(r"^Ports of `(\w+)`[^\n]*:\n\n((?:\|.*\n)+)", text, re.M):
        tables[module] = (page, {name for row in rows(table) for name in re.findall(r"`(\w+)`", row[0])})
declarations = {path.stem: ports(path.read_text()) for path in RTL if not path.stem.endswith("_pkg")}
for module, declared in declarations.items():
    if module not in tables:
        wrong.append(f"no page has a table of the ports of {module}")
        continue
    page, named = tables[module]
    check(f"{module}'s port", named, declared, page)
check("module", set(tables) - set(declarations), set(), "ports of")

chip = pages["onionchopper.md"]
config = (HW / "rtl/onionchopper/oc_config.sv").read_text()
registers = {int(address, 16) for address in re.findall(r"5'h(\w\w): ", config)}
described = set()
for row in rows(re.search(r"## Registers\n(.*?)\n## ", chip, re.S)[1]):
    first, *last = (int(x, 16) for x in re.findall(r"0x(\w+)", row[0]))
    if 0 < first < 0x20:
        described.update(range(first, (last or [first])[0] + 1))
check("register", {f"{x:#x}" for x in described}, {f"{x:#x}" for x in registers}, "onionchopper.md")

package = (HW / "rtl/onionchopper/oc_pkg.sv").read_text()
errors = set(re.findall(r"(\w+)\s*=\s*4'd(\d)", package))
named = {(row[1].strip("`"), row[0]) for row in rows(re.search(r"## Errors\n(.*?)\n## ", chip, re.S)[1])}
check("error", {" ".join(x) for x in named}, {" ".join(x) for x in errors}, "onionchopper.md")

counters = set(re.findall(r"count\[(\d+)\]\s+=", (HW / "rtl/onionchopper/onionchopper.sv").read_text()))
named = {str(int(row[0], 16) - 0x80) for row in rows(re.search(r"## Counters\n(.*?)\n## ", chip, re.S)[1])}
check("counter", named, counters, "onionchopper.md")

used = set()
for page, text in [*pages.items(), ("../README.md", (HW / "README.md").read_text())]:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        if not ((DOC / page).parent / target).exists():
            wrong.append(f"{page}: {target} is not there")
        used.add(Path(target).name)
    if page in pages and not re.search("^## How it differs from the (thesis|paper), and why$", text, re.M):
        wrong.append(f"{page}: does not say how it differs from the thesis or the paper")
for image in sorted((DOC / "img").glob("*.svg")):
    if image.name not in used:
        wrong.append(f"no page shows {image.name}")

print("\n".join(wrong) or f"{len(pages)} pages, {len(tables)} modules' ports, {len(registers)} registers, {len(errors)} errors, "
      f"{len(counters)} counters: as in the RTL")
sys.exit(bool(wrong))
