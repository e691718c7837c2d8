"""python-paillier on one thread: a peer of `blindcore bench sum`.

Prints one JSON document, {"peer": name, "rows": [{"id", "value", "n", "min", "max"}]}; values are operations a second,
the median of n batches. --quick takes shorter batches.
"""

import argparse
import importlib.metadata
import json
import math
import secrets
import statistics
import sys
import time

import gmpy2
import phe.util
from phe import paillier

BATCHES = 7
BITS = 2048
TERMS = 576  # inputs of a dot product: a 3 x 3 x 64 convolution


def measure(seconds, operation):
    """Rates of batches that take about `seconds` each."""

    def timed(count):
        start = time.perf_counter()
        for _ in range(count):
            operation()
        return time.perf_counter() - start

    count = 1
    while (taken := timed(count)) < seconds / 4:
        count *= 2
    count = math.ceil(count * seconds / taken * 1.1)
    return [count / timed(count) for _ in range(BATCHES)]


def int8s(count):
    return [byte - 128 for byte in secrets.token_bytes(count)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="shorter batches")
    seconds = 0.04 if parser.parse_args().quick else 0.2
    if not phe.util.HAVE_GMP:
        sys.exit("phe works without gmpy2, which makes it slower: install gmpy2")

    public, secret = paillier.generate_paillier_keypair(n_length=BITS)
    inputs, weights = int8s(TERMS), int8s(TERMS)
    ciphertexts = [public.encrypt(x) for x in inputs]
    a, b = ciphertexts[:2]

    def dot():
        return sum(c * w for c, w in zip(ciphertexts, weights))

    if secret.decrypt(a + b) != inputs[0] + inputs[1]:
        sys.exit("a sum decrypts to another number")
    if secret.decrypt(dot()) != sum(x * w for x, w in zip(inputs, weights)):
        sys.exit("a dot product decrypts to another number")

    rows = []

    def row(name, rates):
        figures = {"value": statistics.median(rates), "n": len(rates), "min": min(rates), "max": max(rates)}
        rows.append({"id": name} | {key: round(figure, 3) for key, figure in figures.items()})

    row("sum.encrypt.2048.textbook", measure(seconds, lambda: public.encrypt(inputs[0])))
    rows.append(rows[-1] | {"id": "sum.encrypt.2048"})  # the one way that it has
    row("sum.decrypt.2048", measure(seconds, lambda: secret.decrypt(a)))
    row("sum.add.2048", measure(seconds, lambda: a + b))
    rates = measure(seconds, dot)
    row("sum.dot576.unpacked", rates)
    row("sum.dot576.packed", [rate * TERMS for rate in rates])  # a number a ciphertext: it packs none
    version = importlib.metadata.version
    name = f"phe {version('phe')} with gmpy2 {version('gmpy2')} ({gmpy2.mp_version()})"
    print(json.dumps({"peer": name, "rows": rows}, indent=2))


if __name__ == "__main__":
    main()
