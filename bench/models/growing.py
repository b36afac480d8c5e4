#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What growing costs a decoder: each step of a state that grows by a token, by a step of the size in the middle.

growing.sh, beside this file, builds what is needed and calls it. Both kinds of step alternate. A growing state meets
lengths that its session has not seen, since each round has a session of its own; the other state is cut back after each
step, so that its session plans once. Plans are counted by the sessions themselves.
"""
import argparse
import json
import statistics
import time
from pathlib import Path

import numpy as np

import pyflame_rt
from cases import made


class Decoding:
    """A session of the decoder with a state of its own."""

    def __init__(self, model):
        self.session = pyflame_rt.InferenceSession(str(model))
        self.state = self.session.create_state()
        self.options = pyflame_rt.RunOptions(state=self.state)

    def step(self, token):
        start = time.perf_counter()
        self.session.run(["logits"], {"ids": np.int64([[token]])}, self.options)
        return time.perf_counter() - start


def round_of(model, steps, fixed):
    """Seconds a step, growing and not, from the third step on; plans after the second and at the end; planning."""
    growing = Decoding(model)
    pairs, early = [], None
    for token in range(steps):
        seconds = growing.step(token)
        fixed.state.truncate(steps // 2 - 1)
        pairs.append((seconds, fixed.step(token)))
        if token == 1:
            early = growing.session.statistics()
    late = growing.session.statistics()
    return pairs[2:], late["plans"] - early["plans"], (late["planning_ns"] - early["planning_ns"]) / 1e3 / (steps - 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=Path, required=True, help="folder for the model")
    parser.add_argument("--steps", type=int, default=127, help="at most 127")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args()
    model = made(args.models, ["decoder_step"])[0].path
    fixed = Decoding(model)
    for token in range(args.steps // 2):
        fixed.step(token)
    ratios, sizes, plans, planning = [], [], 0, []
    for _ in range(args.rounds):
        pairs, more, microseconds = round_of(model, args.steps, fixed)
        ratios.append(sum(g for g, _ in pairs) / sum(f for _, f in pairs))
        sizes.append(statistics.median(f for _, f in pairs) * 1e3)
        plans += more
        planning.append(microseconds)
    out = {"ratio": statistics.median(ratios), "ratios": ratios, "step_ms": statistics.median(sizes),
           "plans_after_the_second_step": plans, "planning_us_a_step": statistics.median(planning)}
    if args.json:
        print(json.dumps(out))
        return
    print(f"a growing step by one of fixed size: {out['ratio']:.3f} ({min(ratios):.3f} to {max(ratios):.3f}), "
          f"of {out['step_ms']:.2f} ms")
    print(f"plans after the second step: {plans}; looking at new dimensions: {out['planning_us_a_step']:.0f} us a step")


if __name__ == "__main__":
    main()
