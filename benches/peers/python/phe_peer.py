"""python-paillier on one thread: a peer of `blindcore bench sum`.

Prints one JSON document, {"peer": name, "rows": [{"id", "value", "n", "min", "max"}]}; values are operations a second,
the median of n batches. --quick takes shorter batches.
"""

import importlib.metadata
import sys

import gmpy2
import phe.util
from measuring import BITS, TERMS, Rows, batch_seconds, int8s, measure
from phe import paillier


def main():
    seconds = batch_seconds(__doc__.splitlines()[0])
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

    rows = Rows()
    rates = measure(seconds, lambda: public.encrypt(inputs[0]))
    for row in "sum.encrypt.2048.textbook", "sum.encrypt.2048":  # the one way that it has
        rows.add(row, rates)
    rows.add("sum.decrypt.2048", measure(seconds, lambda: secret.decrypt(a)))
    rows.add("sum.add.2048", measure(seconds, lambda: a + b))
    rates = measure(seconds, dot)
    rows.add("sum.dot576.unpacked", rates)
    rows.add("sum.dot576.packed", [rate * TERMS for rate in rates])  # a number a ciphertext: it packs none
    version = importlib.metadata.version
    rows.show(f"phe {version('phe')} with gmpy2 {version('gmpy2')} ({gmpy2.mp_version()})")


if __name__ == "__main__":
    main()
