"""What python-paillier does in the round trip of phe_roundtrip.rs; keys and ciphertexts by its own command line.

phe_peer.py make FOLDER BITS   writes key.json, public.json, values.json and numbers.jsonl
phe_peer.py check KEY FILE     prints what FILE's ciphertexts, one a line, decrypt to, as JSON
"""

import io
import json
import math
import subprocess
import sys
from pathlib import Path

import phe
from phe import command_line


def make(folder, bits):
    folder = Path(folder)
    tool = [sys.executable, "-m", "phe.command_line"]
    subprocess.run([*tool, "genpkey", "--keysize", bits, folder / "key.json"], check=True)
    subprocess.run([*tool, "extract", folder / "key.json", folder / "public.json"], check=True)
    public = command_line.load_public_key(json.loads((folder / "public.json").read_text()))
    values = [1, -1, 0, 123456789, -(2**40), 1.5, -2.25, math.pi, -math.e * 1e-9, 1e12 / 7]
    (folder / "values.json").write_text(json.dumps(values))
    with open(folder / "numbers.jsonl", "w") as out:
        for value in values:
            number = public.encrypt(value)
            print(json.dumps({"v": str(number.ciphertext()), "e": number.exponent}), file=out)
    # As the command line does it: with its exponent of -32.
    single = subprocess.run(
        [*tool, "encrypt", folder / "public.json", "--", "-12.75"], check=True, capture_output=True, text=True
    )
    (folder / "single.json").write_text(single.stdout)


def check(key, file):
    key = json.loads(Path(key).read_text())
    public = command_line.load_public_key(key["pub"])
    assert key["kty"] == "DAJ" and "decrypt" in key["key_ops"]
    p, q = (phe.util.base64_to_int(key[name]) for name in "pq")
    private = phe.PaillierPrivateKey(public, p, q)
    with open(file) as lines:
        numbers = [command_line.load_encrypted_number(io.StringIO(line), public) for line in lines]
    print(json.dumps([private.decrypt(number) for number in numbers]))


if __name__ == "__main__":
    {"make": make, "check": check}[sys.argv[1]](*sys.argv[2:])
