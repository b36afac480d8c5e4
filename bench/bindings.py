# SPDX-License-Identifier: Apache-2.0
"""What a run costs from Python: session.run on a graph of three nodes, NumPy arrays in and out, beside the bare C call
and onnxruntime-node on the same graph, measured in turns. Medians over blocks in microseconds. See bindings.sh."""
import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

import pyflame_rt

BLOCKS, RUNS = 40, 2000
GRAPH = "run Add, Mul, Relu (one loop)"  # bench/overhead.cc has this graph too


def model():
    port = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 8]) for name in "xy"]
    nodes = [helper.make_node("Add", ["x", "b"], ["s"]), helper.make_node("Mul", ["s", "s"], ["m"]),
             helper.make_node("Relu", ["m"], ["y"])]
    bias = helper.make_tensor("b", TensorProto.FLOAT, [8], [0.1 * i for i in range(8)])
    graph = helper.make_graph(nodes, "three", port[:1], port[1:], [bias])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)])
    made.ir_version = 8
    return made


def python_session(file):
    options = pyflame_rt.SessionOptions()
    options.num_threads = 1
    session = pyflame_rt.InferenceSession(file, options)
    inputs = [np.array([[i - j for j in range(8)]], np.float32) for i in range(16)]
    expected = np.maximum((inputs[3] + np.arange(8, dtype=np.float32) * np.float32(0.1)) ** 2, 0)
    assert np.allclose(session.run(None, {"x": inputs[3]})[0], expected)
    return session, inputs


def python_block(session, inputs):
    run, rounds = session.run, RUNS // len(inputs)
    start = time.perf_counter()
    for _ in range(rounds):
        for x in inputs:
            run(None, {"x": x})
    return (time.perf_counter() - start) * 1e6 / (rounds * len(inputs))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--overhead", required=True, help="the program built of bench/overhead.cc")
    parser.add_argument("--peer", help="the folder of onnxruntime-node; without it there is no peer")
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args()

    samples = {"the C call (overhead.cc)": [], "Python: session.run": []}
    bare, ours, *_ = samples
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "three.onnx")
        onnx.save(model(), str(file))
        session, inputs = python_session(file)
        node = None
        if args.peer:
            samples["onnxruntime-node: await session.run"] = []
            peer = list(samples)[-1]
            node = subprocess.Popen(["node", Path(__file__).with_name("bindings.js"), args.peer, file], text=True,
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for block in range(BLOCKS):
            samples[ours].append(python_block(session, inputs))
            if node:
                print(RUNS, file=node.stdin, flush=True)
                samples[peer].append(float(node.stdout.readline()))
            if block % 10 == 0:  # overhead measures 201 blocks each time
                rows = json.loads(subprocess.check_output([args.overhead, "--json"], text=True))
                samples[bare] += [row["median_us"] for row in rows if row["what"] == GRAPH]
            if sys.stderr.isatty():
                print(f"\rblock {block + 1} of {BLOCKS}", end="", file=sys.stderr, flush=True)
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr)
        if node:
            node.stdin.close()
            node.wait()
    base = statistics.median(samples[ours])
    rows = [{"what": what, "median_us": round(statistics.median(times), 3), "least_us": round(min(times), 3),
             "of_python": round(statistics.median(times) / base, 3)} for what, times in samples.items()]
    if args.json:
        print(json.dumps(rows, indent=2))
        return
    print(f"{'Add, Mul, Relu on float32[1,8]':<38} {'median us':>10} {'least us':>10} {'of Python':>10}")
    for row in rows:
        print(f"{row['what']:<38} {row['median_us']:>10.2f} {row['least_us']:>10.2f} {row['of_python']:>10.2f}")


if __name__ == "__main__":
    main()
