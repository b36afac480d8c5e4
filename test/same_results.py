#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether two builds of the library give the same bits.

    test/same_results.py OLD_LIBRARY NEW_LIBRARY [--random 20000] [--threads 1] [MODEL.onnx ...]

Each library runs, in a process of its own and at levels none and all: the conformance cases and models that are here
(Debian's libonnx-testdata, ../shared/onnx, ../shared/zoo) with their recorded inputs, the models given, and random
models of one operator. Prints every case whose outputs or error differ; exit code 1 when there is one. The Python
package is that of the tree a library was built in, so that libraries of two major versions of the ABI can be compared;
where there is none, it is this tree's.
"""
import argparse
import glob
import hashlib
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path[:0] = [os.path.join(HERE, "odd"), os.path.join(ROOT, "capi", "python")]
SETS = ("/usr/share/libonnx-testdata/data/*/*", os.path.join(ROOT, "..", "shared", "onnx", "*", "*"),
        os.path.join(ROOT, "..", "shared", "zoo", "*"))
RANDOM = ("Bernoulli", "Random", "Multinomial", "Dropout", "dropout", "bernoulli")  # unseeded, other numbers each time


def digest(values):
    """One hash of values of any kind, sequences and strings too."""
    import numpy as np
    out = hashlib.sha256()

    def add(value):
        if isinstance(value, (list, tuple)):
            out.update(f"[{len(value)}".encode())
            for each in value:
                add(each)
        elif isinstance(value, dict):
            add(sorted(value.items(), key=str))
        elif value is None or isinstance(value, (str, bytes, int, float)):
            out.update(repr(value).encode())
        else:
            array = value if isinstance(value, np.ndarray) else value.numpy()
            out.update(f"{array.dtype} {array.shape}".encode())
            out.update(repr(array.tolist()).encode() if array.dtype == object else array.tobytes())
    add(values)
    return out.hexdigest()[:16]


def recorded_inputs(folder):
    import onnx
    from onnx import numpy_helper
    out = []
    for path in sorted(glob.glob(os.path.join(folder, "input_*.pb")),
                       key=lambda p: int(os.path.basename(p)[6:-3])):
        with open(path, "rb") as file:
            data = file.read()
        tensor = onnx.TensorProto()
        tensor.ParseFromString(data)
        out.append(numpy_helper.to_array(tensor))
    return out


def made_inputs(session, seed):
    import numpy as np
    random = np.random.default_rng(seed)
    out = []
    for value in session.get_inputs():
        dims = [d if isinstance(d, int) and d > 0 else 1 for d in value.shape]
        dtype = np.dtype(value.dtype.numpy)
        out.append(random.standard_normal(dims).astype(dtype) if dtype.kind == "f" else
                   random.integers(0, 2, dims).astype(dtype))
    return out


def run(model, feed, threads):
    """A line for each level: the hash of the outputs, or the error."""
    import pyflame_rt as rt
    said = []
    for level in (rt.OptLevel.NONE, rt.OptLevel.ALL):
        options = rt.SessionOptions()
        options.optimization_level, options.num_threads, options.log_level = level, threads, "off"
        try:
            session = rt.InferenceSession(model, options)
            inputs = feed(session)
            if isinstance(inputs, list):
                inputs = dict(zip([i.name for i in session.get_inputs()], inputs))
            said.append(digest(session.run(None, inputs)))
        except Exception as fault:
            said.append(f"{type(fault).__name__}: {fault}".replace("\n", " ").replace("\t", " "))
    return " | ".join(said)


def cases(args):
    """(name, model, feed)"""
    for pattern in SETS:
        for folder in sorted(glob.glob(pattern)):
            model = os.path.join(folder, "model.onnx")
            if not os.path.isfile(model) or any(word in folder for word in RANDOM):
                continue
            for data in sorted(glob.glob(os.path.join(folder, "test_data_set_*"))):
                yield data, model, lambda session, data=data: recorded_inputs(data)
    for model in args.models:
        yield model, model, lambda session: made_inputs(session, 1)
    import generators
    from draw import Draw
    from worker import own
    operators = [key for key in sorted(generators.GENERATORS) if not any(word in key[1] for word in RANDOM)]
    for index in range(args.random):
        key = operators[index % len(operators)]
        case = Draw(1, index)
        case.operator = key
        generators.GENERATORS[key](case)
        inputs = {name: own(value) for name, value in case.inputs.items()}
        yield f"random {index} {key[1]}", case.model(key[1]), lambda session, inputs=inputs: inputs


def package_of(library):
    tree = os.path.abspath(os.path.join(os.path.dirname(library), "..", "..", ".."))
    package = os.path.join(tree, "capi", "python")
    return package if os.path.isdir(os.path.join(package, "pyflame_rt")) else os.path.join(ROOT, "capi", "python")


def worker(args):
    sys.path.insert(0, package_of(args.new))
    import pyflame_rt  # before anything else puts another one on the path
    assert pyflame_rt
    for name, model, feed in cases(args):
        print(name, run(model, feed, args.threads), sep="\t", flush=True)


def results(library, arguments):
    environment = dict(os.environ, PYFLAME_RT_LIBRARY=library, PYTHONWARNINGS="ignore")
    command = [sys.executable, os.path.abspath(__file__), library, library, "--worker", *arguments]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("models", nargs="*")
    parser.add_argument("--random", type=int, default=20000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        return worker(args)
    arguments = [*args.models, "--random", str(args.random), "--threads", str(args.threads)]
    said = []
    processes = [results(library, arguments) for library in (args.old, args.new)]
    for process in processes:
        text, _ = process.communicate()
        said.append(dict(line.split("\t", 1) for line in text.splitlines()))
    old, new = said
    faults = sum(process.returncode != 0 for process in processes)
    for process, which in zip(processes, ("old", "new")):
        if process.returncode:
            print(f"the {which} library's process ended with {process.returncode}")
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) != new.get(name):
            faults += 1
            print(f"{name}\n  old {old.get(name, 'not run')}\n  new {new.get(name, 'not run')}")
    print(f"{len(old)} cases, {faults} differ")
    return 1 if faults or not old else 0


if __name__ == "__main__":
    sys.exit(main())
