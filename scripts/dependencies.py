"""Whether every dependency is what deny.toml allows: licences, sources, no wildcard versions.

It reads `cargo metadata` and deny.toml's tables, as cargo-deny does, and takes a second; cargo-deny itself takes minutes to
compile. `cargo deny check bans licenses sources` reads the same file and must say the same. A licence that no rule of this
script understands is refused.
"""

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

try:
    import tomllib
except ImportError:
    sys.exit("dependencies.py needs Python 3.11 or later, which reads TOML; install it, or run cargo deny check yourself")

ROOT = Path(__file__).resolve().parent.parent
CRATES_IO = "registry+https://github.com/rust-lang/crates.io-index"
# Packages that name no licence: what a person read in the file that they name, and its SHA-256.
READ = {
    "webpki": ("ISC", "5b698ca13897be3afdb7174256fa1574f8c6892b8bea1a66dd6469d3fe27885a"),
}
TOKEN = re.compile(r"\s*([()]|[A-Za-z0-9.+-]+)")


def satisfied(expression, allowed):
    """Whether an SPDX expression can be met by licences that are allowed. OR binds least, then AND, then WITH."""
    tokens, position = [], 0
    text = expression.replace("/", " OR ").strip()  # old manifests write MIT/Apache-2.0
    while position < len(text):
        found = TOKEN.match(text, position)
        if not found:
            raise ValueError(f"{expression!r} is no SPDX expression")
        tokens.append(found.group(1))
        position = found.end()

    def take(word=None):
        if not tokens or (word and tokens[0] != word):
            raise ValueError(f"{expression!r} is no SPDX expression")
        return tokens.pop(0)

    def one():
        if tokens and tokens[0] == "(":
            take("(")
            value = either()
            take(")")
            return value
        name = take()
        if name in (")", "AND", "OR", "WITH"):
            raise ValueError(f"{expression!r} is no SPDX expression")
        if tokens and tokens[0] == "WITH":
            take("WITH")
            name = f"{name} WITH {take()}"
        return name in allowed

    def both():
        value = one()
        while tokens and tokens[0] == "AND":
            take("AND")
            value = one() and value
        return value

    def either():
        value = both()
        while tokens and tokens[0] == "OR":
            take("OR")
            value = both() or value
        return value

    value = either()
    if tokens:
        raise ValueError(f"{expression!r} is no SPDX expression")
    return value


def read(package):
    """The licence in the file of a package that names none; nothing where the file is not the one that was read."""
    licence, digest = READ.get(package["name"], (None, None))
    if not licence or not package["license_file"]:
        return None
    text = (Path(package["manifest_path"]).parent / package["license_file"]).read_bytes()
    return licence if hashlib.sha256(text).hexdigest() == digest else None


def problems(metadata, rules):
    """A line for each dependency that is not allowed, and for each rule that no dependency needs."""
    allowed = set(rules["licenses"]["allow"])
    exceptions = {rule["crate"]: set(rule["allow"]) for rule in rules["licenses"].get("exceptions", [])}
    members = set(metadata["workspace_members"])
    found = []
    for package in metadata["packages"]:
        name = f"{package['name']} {package['version']}"
        licence = package["license"] or read(package)
        try:
            if not licence:
                found.append(f"{name} names no licence, and nobody has read its file as it is now; see READ")
            elif not satisfied(licence, allowed | exceptions.get(package["name"], set())):
                found.append(f"{name} is under {licence}, which deny.toml does not allow")
        except ValueError as error:
            found.append(f"{name}: {error}")
        if package["id"] in members:
            found += [
                f"{name} takes any version of {d['name']}; name one"
                for d in package["dependencies"]
                if d["req"] == "*" and not d.get("path")
            ]
        elif package["source"] != CRATES_IO:
            found.append(f"{name} comes from {package['source'] or 'a folder outside the workspace'}, not crates.io")
    texts = " ".join(package["license"] or read(package) or "" for package in metadata["packages"])
    words = set(re.findall(r"[A-Za-z0-9.+-]+", texts))
    found += [f"deny.toml allows {licence}, which no dependency names" for licence in sorted(allowed - words)]
    names = {package["name"] for package in metadata["packages"]}
    found += [f"deny.toml makes an exception for {crate}, which is no dependency" for crate in exceptions if crate not in names]
    return found


def test():
    """The expressions that dependencies write, and some that must be refused."""
    allowed = {"MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"}
    for text, good in [
        ("MIT", True), ("GPL-3.0", False), ("MIT OR GPL-3.0", True), ("MIT AND GPL-3.0", False), ("MIT/Apache-2.0", True),
        ("(MIT OR GPL-3.0) AND Apache-2.0", True), ("GPL-3.0 OR MIT AND GPL-3.0", False), ("GPL-3.0 AND MIT OR MIT", True),
        ("Apache-2.0 WITH LLVM-exception", True), ("MIT WITH LLVM-exception", False),
    ]:
        assert satisfied(text, allowed) == good, text
    for text in ["", "MIT OR", "(MIT", "MIT MIT", "AND", "MIT, Apache-2.0"]:
        try:
            satisfied(text, allowed)
        except ValueError:
            continue
        raise AssertionError(text)


def main():
    test()
    command = ["cargo", "metadata", "--all-features", "--locked", "--format-version=1"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE)
    if done.returncode != 0:
        sys.exit(done.returncode)
    metadata = json.loads(done.stdout)
    found = problems(metadata, tomllib.loads((ROOT / "deny.toml").read_text()))
    if found:
        sys.exit("\n".join(found))
    print(f"{len(metadata['packages'])} packages: licences and sources are what deny.toml allows")


if __name__ == "__main__":
    main()
