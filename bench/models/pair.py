#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two sides of ours in one process, in turns of 100 ms: models, or precisions of one. integer_tables.py calls it.

    pair.py MODEL PRECISION OTHER_MODEL OTHER_PRECISION [--dim NAME=N] [--threads N] [--seconds S]

Prints JSON: medians, and the second side's by the first's.
"""
import argparse
import json
import statistics
import sys
import time

import numpy as np

import pyflame_rt

TURN, PAUSE, WARM_UP = 0.1, 0.05, 0.2


class Side:
    def __init__(self, model, precision, dims, threads):
        options = pyflame_rt.SessionOptions()
        options.num_threads = threads
        options.precision = precision
        self.session = pyflame_rt.InferenceSession(model, options)
        self.binding = self.session.io_binding()
        rng = np.random.default_rng(1)
        for port in self.session.get_inputs():
            shape = [dims.get(name, 1) if d is None else d for d, name in zip(port.shape, port.dim_names)]
            normal = rng.standard_normal(shape, dtype=np.float32)
            self.binding.bind_cpu_input(port.name, normal if "float" in port.type else rng.integers(0, 2, shape))
        for port in self.session.get_outputs():
            self.binding.bind_output(port.name)
        self.times = []

    def turn(self, seconds):
        start = before = time.perf_counter()
        times = []
        while not times or before - start < seconds:
            self.session.run_with_iobinding(self.binding)
            after = time.perf_counter()
            times.append(after - before)
            before = after
        return times


def measure(sides, seconds):
    """Until each has run for |seconds|; the side that begins alternates."""
    for side in sides:
        side.turn(WARM_UP)
    while min(sum(side.times) for side in sides) < seconds:
        for side in sides:
            time.sleep(PAUSE)
            side.times += side.turn(TURN)
        sides = sides[::-1]


def main():
    parser = argparse.ArgumentParser(prog="pair.py", description="Two sides of ours in turns.")
    parser.add_argument("side", nargs=4, metavar="MODEL PRECISION")
    parser.add_argument("--dim", action="append", default=[], metavar="NAME=N")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=5)
    args = parser.parse_args()
    dims = {name: int(size) for name, _, size in (d.rpartition("=") for d in args.dim)}
    try:
        sides = [Side(*args.side[i:i + 2], dims, args.threads) for i in (0, 2)]
        measure(sides, args.seconds)
    except pyflame_rt.PyFlameRTError as reason:
        sys.exit(f"pair.py: {reason}")
    medians = [statistics.median(side.times) for side in sides]
    print(json.dumps({"median_s": medians, "runs": [len(side.times) for side in sides],
                      "ratio": medians[1] / medians[0]}))


if __name__ == "__main__":
    main()
