"""HEU (sf-heu) on one core: a peer of `blindcore bench sum`.

Prints one JSON document, {"peer": name, "rows": [{"id", "value", "n", "min", "max"}]}; values are operations a second,
the median of n batches. --quick takes shorter batches.
"""

import importlib.metadata
import os
import sys

# Before the library starts a thread for each core that it may run on.
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
# The library's log goes to stdout, where the document alone belongs.
sys.stdout = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

import numpy
from heu import numpy as arrays
from heu import phe
from measuring import BITS, TERMS, Rows, batch_seconds, int8s, measure

COUNT = 256  # numbers of an array, as many as `blindcore bench` takes at once


def main():
    seconds = batch_seconds(__doc__.splitlines()[0])
    kit = arrays.setup(phe.SchemaType.ZPaillier, BITS)
    encryptor, decryptor, evaluator = kit.encryptor(), kit.decryptor(), kit.evaluator()
    numbers, others = (numpy.array(int8s(COUNT)) for _ in range(2))
    plain = kit.array(numbers)
    a, b = encryptor.encrypt(plain), encryptor.encrypt(kit.array(others))
    inputs, weights = (numpy.array(int8s(TERMS)) for _ in range(2))
    row, column = encryptor.encrypt(kit.array(inputs.reshape(1, TERMS))), kit.array(weights.reshape(TERMS, 1))

    def decrypted(ciphertexts):
        return decryptor.decrypt(ciphertexts).to_numpy(kit.bigint_encoder())

    if (decrypted(evaluator.add(a, b)) != numbers + others).any():
        sys.exit("a sum decrypts to another number")
    if int(decrypted(evaluator.matmul(row, column)).reshape(-1)[0]) != int(inputs @ weights):
        sys.exit("a dot product decrypts to another number")

    rows = Rows()

    def each(operation):
        """Rates of single numbers."""
        return [rate * COUNT for rate in measure(seconds, operation)]

    rows.add("sum.encrypt.2048", each(lambda: encryptor.encrypt(plain)))
    rows.add("sum.decrypt.2048", each(lambda: decryptor.decrypt(a)))
    rows.add("sum.add.2048", each(lambda: evaluator.add(a, b)))
    rates = measure(seconds, lambda: evaluator.matmul(row, column))
    rows.add("sum.dot576.unpacked", rates)
    rows.add("sum.dot576.packed", [rate * TERMS for rate in rates])  # a number a ciphertext: it packs none
    rows.show(f"sf-heu {importlib.metadata.version('sf-heu')} (ZPaillier)")


if __name__ == "__main__":
    main()
