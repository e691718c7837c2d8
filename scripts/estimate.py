#!/usr/bin/env python3
"""Estimates the security of every parameter set again, and compares with what the sources say.

    python3 -m venv venv
    venv/bin/pip install passagemath-standard-no-symbolics==10.8.13 passagemath-symbolics==10.8.13 \
        passagemath-maxima==10.8.13
    git clone https://github.com/malb/lattice-estimator; git -C lattice-estimator checkout 27a581b
    venv/bin/python scripts/estimate.py lattice-estimator [DEGREE,BITS ...]

Compared are the entries of crates/rlwe/src/security.rs, or those that are named, and SimplePIR's parameters. The estimator is
under the LGPL and is no part of blindcore. It takes about 20 s an entry on one core. The exit code is 1 where a figure differs.
"""

import json
import pathlib
import re
import sys
from concurrent.futures import ProcessPoolExecutor
from math import log2
from multiprocessing import get_context

SOURCE = pathlib.Path(__file__).resolve().parent.parent / "crates/rlwe/src/security.rs"
# A figure is printed with one digit behind the point.
TOLERANCE = 0.051


def bits(attack, parameters, model):
    return float(log2(attack(parameters, red_cost_model=model)["rop"]))


def ring(entry):
    """Classical bits, quantum bits by ADPS16 and by ChaLoy21, of a ternary secret and errors of deviation 3.2."""
    from estimator import LWE, ND, RC
    from estimator.reduction import ADPS16

    degree, modulus_bits = entry
    parameters = LWE.Parameters(
        n=degree, q=2**modulus_bits, Xs=ND.Uniform(-1, 1), Xe=ND.DiscreteGaussian(3.2), m=degree
    )
    classical = min(bits(attack, parameters, RC.MATZOV) for attack in (LWE.primal_usvp, LWE.primal_bdd, LWE.dual_hybrid))
    quantum = [bits(LWE.primal_usvp, parameters, model) for model in (ADPS16(mode="quantum"), RC.ChaLoy21)]
    return [classical, *quantum]


def simple(_):
    """Bits of SimplePIR's parameters: a uniform secret of 1,024 words modulo 2^32, errors of deviation 11."""
    from estimator import LWE, ND
    from estimator.conf import red_cost_model

    parameters = LWE.Parameters(n=1024, q=2**32, Xs=ND.UniformMod(2**32), Xe=ND.DiscreteGaussian(11))
    return [min(bits(attack, parameters, red_cost_model) for attack in (LWE.primal_usvp, LWE.primal_bdd, LWE.dual_hybrid))]


def table():
    """What the sources say: (degree, bits) to the three figures."""
    entry = re.compile(r"^    \((\d+), (\d+), ([\d.]+), ([\d.]+), ([\d.]+)\),$", re.M)
    return {(int(m[1]), int(m[2])): [float(x) for x in m.groups()[2:]] for m in entry.finditer(SOURCE.read_text())}


def main():
    if len(sys.argv) < 2 or not (pathlib.Path(sys.argv[1]) / "estimator").is_dir():
        sys.exit(__doc__)
    sys.path.insert(0, sys.argv[1])
    said = table()
    if not said:
        sys.exit(f"{SOURCE}: no table of estimates was found in it")
    try:
        asked = [tuple(map(int, name.split(","))) for name in sys.argv[2:]] or list(said)
        if any(len(entry) != 2 for entry in asked):
            raise ValueError
    except ValueError:
        sys.exit("an entry is DEGREE,BITS, such as 2048,48")
    jobs = [(ring, entry, said.get(entry)) for entry in asked]
    if len(sys.argv) == 2:
        jobs.append((simple, "SimplePIR", [128.4]))
    differing = 0
    # Sage does not survive a fork.
    with ProcessPoolExecutor(mp_context=get_context("spawn"), initializer=sys.path.insert, initargs=(0, sys.argv[1])) as pool:
        for (_, entry, expected), future in zip(jobs, [pool.submit(job, entry) for job, entry, _ in jobs]):
            found = [round(x, 2) for x in future.result()]
            same = expected is not None and all(abs(a - b) < TOLERANCE for a, b in zip(found, expected))
            differing += not same
            print(json.dumps({"of": entry, "estimated": found, "said": expected, "same": same}), flush=True)
    print(f"{len(jobs)} estimated, {differing} differing")
    sys.exit(differing > 0)


if __name__ == "__main__":
    main()
