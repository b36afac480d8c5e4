# SPDX-License-Identifier: Apache-2.0
"""Runs cases for odd.py, a line of JSON each, and says before each step what it is about to do, so that whoever reads
knows what ended the process. Arguments: seed, operators as JSON, the peer's library or "". Standard input has indices
of cases; an index is answered before the next is read."""
import json
import os
import resource
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "capi", "python")]
import numpy as np  # noqa: E402
import compare  # noqa: E402
import generators  # noqa: E402
from draw import Bits, Draw  # noqa: E402

import pyflame_rt as rt  # noqa: E402

ADDRESS_SPACE = 4 << 30
TIME_LIMIT_MS = 10000


def own(value):
    """A value as the package takes it."""
    if isinstance(value, Bits):
        dtype = rt.DType(next(d for d, n in rt._dtype.TO_ABI.items() if n == value.dtype))
        tensor = rt.Tensor(value.dims, dtype)
        tensor.numpy().reshape(-1).view(np.uint8)[:] = np.frombuffer(value.data, np.uint8)
        return tensor
    return value


def options(level):
    out = rt.SessionOptions()
    out.optimization_level, out.num_threads, out.log_level = level, 1, "off"
    return out


def run_ours(model, inputs, settings, limit):
    try:
        session = rt.InferenceSession(model, settings)
    except rt.PyFlameRTError as fault:
        return None, f"load: {type(fault).__name__}: {fault}"
    try:
        return session.run(None, {n: own(v) for n, v in inputs.items()}, limit), ""
    except rt.PyFlameRTError as fault:
        return None, f"run: {type(fault).__name__}: {fault}"
    except Exception as fault:  # the package promises no such exception
        return None, f"run: PyFlameRTError: of NumPy or Python: {fault!r}"


def run_peer(peer, model, inputs):
    try:
        return peer.run(model, inputs), ""
    except (RuntimeError, MemoryError) as fault:
        return None, str(fault)


class Worker:
    def __init__(self, seed, operators, library):
        self.seed, self.operators = seed, [tuple(o) for o in operators]
        self.peer = None
        if library:
            from peer import FATAL_ONLY, Peer
            self.peer = Peer(library, FATAL_ONLY)
        self.levels = [options(rt.OptLevel.ALL), options(rt.OptLevel.NONE)]
        self.limit = rt.RunOptions()
        self.limit.timeout_ms = TIME_LIMIT_MS

    def draw(self, index):
        key = self.operators[index % len(self.operators)]
        case = Draw(self.seed, index)
        case.operator = key
        generators.GENERATORS[key](case)
        return case, case.model(key[1])

    def run(self, index, said):
        """The class of a case, what tells, and the case in words."""
        case, model = self.draw(index)
        said("ours")
        results = [run_ours(model, case.inputs, level, self.limit) for level in self.levels]
        op = "/".join(case.operator) if case.operator[0] else case.operator[1]
        quantized = any(word in op for word in ("Quant", "QLinear", "QGemm", "Resize"))
        line = {"index": index, "op": op}
        (high, fault), (plain, plain_fault) = results
        how = compare.outputs(high, plain, quantized) if high is not None and plain is not None else ""
        if how or bool(fault) != bool(plain_fault):
            line.update({"class": "levels", "how": how or f"all: {fault or 'runs'}; none: {plain_fault or 'runs'}"})
        if "class" not in line and self.peer:
            said("peer")
            theirs, their_fault = run_peer(self.peer, model, case.inputs)
            how = compare.outputs(high, theirs, quantized) if high is not None and theirs is not None else ""
            kind = ("refused" if fault and their_fault else "ours refuses" if fault else "peer refuses" if their_fault
                    else "differs" if how else "agree")
            line.update({"class": kind, "how": how or fault or their_fault})
        line.setdefault("class", "refused" if fault else "runs")
        line.setdefault("how", fault)
        if line["class"] not in ("agree", "refused", "runs"):
            line["case"] = case.text()
        elif line["class"] == "refused":
            line["how"] = ""
        if ": PyFlameRTError:" in fault:  # an error without a kind is our own bug
            line.update({"class": "internal", "how": fault, "case": case.text()})
        return line


def main():
    seed, operators, library = int(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3]
    if "libasan" not in os.environ.get("LD_PRELOAD", ""):
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    out = os.fdopen(os.dup(1), "w", buffering=1)
    worker = Worker(seed, operators, library)
    for line in sys.stdin:
        begin, end, step = map(int, line.split())
        for index in range(begin, end, step):
            said = lambda what: out.write(f"{index} {what}\n")
            said("draw")
            out.write(json.dumps(worker.run(index, said)) + "\n")
        out.write("done\n")


if __name__ == "__main__":
    main()
