"""Checks the documents against the tree. Usage: check_docs.py [--write]

- Every relative link of every .md file leads to a file, and its anchor to a heading.
- Every page of docs/ is in docs/SUMMARY.md, so that the book has it; decisions are numbered and listed. --write lists them.
- The drawing of imports in ARCHITECTURE.md is what the manifests say, and schemes import no device. --write redraws it.
- Paths that a page names in `...` exist, and so do the make targets of README.md and CONTRIBUTING.md.
- README.md and ARCHITECTURE.md keep to their lengths.
"""

import json
import re
import subprocess
import sys
import urllib.parse
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORDS = {"README.md": 1000, "ARCHITECTURE.md": 2500}
# Crates that run operations on whatever device they are given.
NO_DEVICE = {"lookup", "circuit", "sum", "wire", "store", "protocol", "client", "numbers", "files", "math", "accel"}
FOLDERS = r"(?:crates|docs|hw|fuzz|scripts|examples|benches|repro|testdata|deploy|\.ci)"
wrong = []


def run(*command):
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def without_code(text):
    """The text with fenced blocks and code spans blanked, line for line."""
    text = re.sub(r"^( *)(```+|~~~+).*?^\1\2 *$", lambda m: "\n" * m[0].count("\n"), text, flags=re.S | re.M)
    return re.sub(r"`[^`\n]+`", "", text)


def anchors(path, cache={}):
    """A page's anchors, as they are made of its headings."""
    if path not in cache:
        found, text = set(), re.sub(r"^( *)(```+|~~~+).*?^\1\2 *$", "", path.read_text(), flags=re.S | re.M)
        for heading in re.findall(r"^#{1,6} +(.*?) *#*$", text, re.M):
            plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
            name = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
            number = 0
            while (name if number == 0 else f"{name}-{number}") in found:
                number += 1
            found.add(name if number == 0 else f"{name}-{number}")
        cache[path] = found | set(re.findall(r'<a (?:id|name)="([^"]+)"', text))
    return cache[path]


def check_links(pages):
    for page in pages:
        text = without_code(page.read_text())
        for match in re.finditer(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)", text):
            target = match[1]
            if re.match(r"[a-z][a-z0-9+.-]*:", target):
                continue
            line = text[: match.start()].count("\n") + 1
            name, _, anchor = target.partition("#")
            to = (page.parent / urllib.parse.unquote(name)).resolve() if name else page
            where = f"{page.relative_to(ROOT)}:{line}"
            if not to.exists():
                wrong.append(f"{where}: {name} is not there")
            elif anchor and to.suffix == ".md" and anchor not in anchors(to):
                wrong.append(f"{where}: {name or page.name} has no heading #{anchor}")


def check_summary(pages):
    summary = ROOT / "docs/SUMMARY.md"
    named = {(summary.parent / to).resolve() for to in re.findall(r"\]\(([^)#]+\.md)\)", summary.read_text())}
    for page in pages:
        if page.is_relative_to(summary.parent) and page != summary and page not in named:
            wrong.append(f"{page.relative_to(ROOT)}: is not in docs/SUMMARY.md")


def check_decisions(write):
    """Numbers of the decisions are those of their files, and both lists of them are complete and in order."""
    index, summary = [], []
    for page in sorted((ROOT / "docs/decisions").glob("[0-9]*.md")):
        number, _, title = page.read_text().split("\n", 1)[0].removeprefix("# ").partition(". ")
        if f"{int(page.name[:4])}" != number:
            wrong.append(f"docs/decisions/{page.name}: its heading has number {number}")
        index.append(f"{number}. [{title}]({page.name})")
        summary.append(f"  - [{number}. {title}](decisions/{page.name})")
    for name, start, lines in [("docs/decisions/README.md", "1. [", index), ("docs/SUMMARY.md", "  - [1. ", summary)]:
        text = (ROOT / name).read_text()
        at = text.index("\n" + start) + 1
        if text[at:] != "\n".join(lines) + "\n":
            if write:
                (ROOT / name).write_text(text[:at] + "\n".join(lines) + "\n")
            else:
                wrong.append(f"{name}: its list of decisions is not that of the files; "
                             "run python3 scripts/check_docs.py --write")


def check_paths(pages):
    for path in pages:
        page = str(path.relative_to(ROOT))
        text = path.read_text()
        for match in re.finditer(rf"`({FOLDERS}/[^`\s]*)`", text):
            pattern = re.sub(r"<[^>]*>", "*", match[1]).rstrip("/")
            choices = [pattern]
            while found := next((re.search(r"\{([^{}]*)\}", c) for c in choices if "{" in c), None):
                choices = [c.replace(found[0], part) for c in choices for part in found[1].split(",")]
            for choice in choices:
                if not any(ROOT.glob(choice)) and not any(path.parent.glob(choice)):
                    line = text[: match.start()].count("\n") + 1
                    wrong.append(f"{page}:{line}: {choice} is not there")


def check_targets():
    targets = {"Makefile": set(), "hw/Makefile": set()}
    for file, names in targets.items():
        included = re.findall(r"^include (\S+)", (ROOT / file).read_text(), re.M)
        for path in [ROOT / file, *((ROOT / file).parent / other for other in included)]:
            for rule in re.findall(r"^([\w .-]+?)\s*:(?!=)", path.read_text(), re.M):
                names.update(rule.split())
    for page in ("README.md", "CONTRIBUTING.md"):
        text = (ROOT / page).read_text()
        for hw, names in re.findall(r"(?:^|`)make (-C hw )?([a-z][a-z -]*?)(?=`|$|  |[A-Z])", text, re.M):
            file = "hw/Makefile" if hw else "Makefile"
            for name in names.split():
                if name not in targets[file] and not name.startswith("-"):
                    wrong.append(f"{page}: make {hw}{name} is not a target of {file}")

    for path in [ROOT / file for file in targets]:
        for crate, example in re.findall(r"-p blindcore-(\S+) --example (\S+)", path.read_text()):
            if not (ROOT / f"crates/{crate}/examples/{example}.rs").exists():
                wrong.append(f"{path.relative_to(ROOT)}: crates/{crate} has no example {example}")


def imports():
    """What each crate of the workspace imports of the others; tests and examples may import more."""
    metadata = json.loads(run("cargo", "metadata", "--no-deps", "--format-version", "1"))
    short = lambda name: name.removeprefix("blindcore-")
    names = {package["name"] for package in metadata["packages"]}
    return {
        short(package["name"]): sorted({
            short(d["name"]) for d in package["dependencies"] if d["name"] in names and d["kind"] != "dev"
        })
        for package in metadata["packages"]
    }


def drawing(edges):
    """The crates by level: each stands above all that it imports."""
    level = {}

    def height(crate):
        if crate not in level:
            level[crate] = 1 + max((height(to) for to in edges[crate]), default=-1)
        return level[crate]

    width = max(map(len, edges))
    lines, last = [], None
    for crate in sorted(edges, key=lambda c: (-height(c), c)):
        if last not in (None, height(crate)):
            lines.append("")
        last = height(crate)
        arrow = "──▶" if edges[crate] else "   "
        text, row = [], ""
        for to in edges[crate]:
            if len(row) + len(to) > 96 - width:
                text.append(row + " ·")
                row = ""
            row += (" · " if row else "") + to
        text.append(row)
        lines.append(f"  {crate:<{width}} {arrow} {text[0]}".rstrip())
        lines.extend(f"  {'':<{width}}      {more}" for more in text[1:])
    return "\n".join(lines)


def check_imports(write):
    edges = imports()
    for crate in sorted(NO_DEVICE & set(edges)):
        for to in edges[crate]:
            if to.startswith("accel-"):
                wrong.append(f"crates/{crate}: imports the device crate {to}; take devices as values")
    page = ROOT / "ARCHITECTURE.md"
    text = page.read_text()
    found = re.search(r"(<!-- imports[^>]*-->\n```\n)((?:(?!```).*\n)*)(```\n)", text)
    if not found:
        wrong.append("ARCHITECTURE.md: the drawing of imports is missing")
    elif found[2] != drawing(edges) + "\n":
        if write:
            page.write_text(text[: found.start(2)] + drawing(edges) + "\n" + text[found.end(2) :])
        else:
            wrong.append("ARCHITECTURE.md: the manifests import other crates than its drawing shows; "
                         "run python3 scripts/check_docs.py --write")


def check_words():
    for page, most in WORDS.items():
        words = len((ROOT / page).read_text().split())
        if words > most:
            wrong.append(f"{page}: has {words} words, over its limit of {most}; move some to docs/")


def main():
    listed = run("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", "*.md").split("\0")
    pages = sorted(ROOT / name for name in listed if name and (ROOT / name).exists())
    write = "--write" in sys.argv[1:]
    check_imports(write)
    check_decisions(write)
    check_links(pages)
    check_summary(pages)
    check_paths(pages)
    check_targets()
    check_words()
    print("\n".join(wrong) or f"{len(pages)} documents: links, paths, make targets, imports and lengths hold")
    sys.exit(bool(wrong))


main()
