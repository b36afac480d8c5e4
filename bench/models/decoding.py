#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Steps of a decoder with a cache of grouped queries, as ONNX Runtime GenAI's builder writes them, by a state.

decoding.sh, beside this file, builds what is needed and calls it. It prints what a step costs after few tokens and
after many, beside the time in which the machine reads the cache; what the state takes beside the cache; and what a step
costs whose length grows by one beside a step of one length. Caches are written where they are (in_place), in room for
--room tokens, or grow by a copy at each step (grows).
"""
import argparse
import ctypes
import json
import statistics
import sys
import time

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import pyflame_rt

VOCABULARY = 1000
MICROSOFT = "com.microsoft"


class Decoder:
    """A model in memory: |layers| layers of |heads| query heads and |kv| heads of keys and values, of |size| columns."""

    def __init__(self, layers, heads, kv, size):
        self.layers, self.heads, self.kv, self.size = layers, heads, kv, size
        self.width = heads * size
        self.rng = np.random.default_rng(layers)
        self.nodes, self.constants, self.inputs, self.outputs = [], [], [], []
        self.build()

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def weight(self, rows, columns):
        deviation = np.float32((1 / rows) ** 0.5)
        return self.constant(self.rng.standard_normal((rows, columns), dtype=np.float32) * deviation)

    def node(self, op, inputs, outputs=1, domain="", **attributes):
        names = [f"{op.lower()}{len(self.nodes)}_{i}" for i in range(outputs)] if isinstance(outputs, int) else outputs
        self.nodes.append(helper.make_node(op, inputs, names, domain=domain, **attributes))
        return names[0]

    def port(self, ports, name, dtype, dims):
        ports.append(helper.make_tensor_value_info(name, dtype, dims))
        return name

    def norm(self, x):
        return self.node("SimplifiedLayerNormalization", [x, self.constant(np.ones(self.width, np.float32))], axis=-1,
                         epsilon=1e-5)

    def lengths(self):
        """The two numbers that GroupQueryAttention has to be told, from the mask."""
        mask = self.port(self.inputs, "attention_mask", TensorProto.INT64, [1, "total"])
        seen = self.node("ReduceSum", [mask, self.constant(np.int64([1]))], keepdims=0)
        last = self.node("Cast", [self.node("Sub", [seen, self.constant(np.int64([1]))])], to=TensorProto.INT32)
        total = self.node("Gather", [self.node("Shape", [mask]), self.constant(np.int64(1))], axis=0)
        return last, self.node("Cast", [total], to=TensorProto.INT32)

    def attention(self, x, layer, last, total, tables):
        pasts, presents = [], []
        for what in ("key", "value"):
            for ports, name, tokens in ((self.inputs, f"past_key_values.{layer}.{what}", "past"),
                                        (self.outputs, f"present.{layer}.{what}", "total")):
                self.port(ports, name, TensorProto.FLOAT, [1, self.kv, tokens, self.size])
                (pasts if tokens == "past" else presents).append(name)
        q, k, v = (self.node("MatMul", [x, self.weight(self.width, heads * self.size)])
                   for heads in (self.heads, self.kv, self.kv))
        mixed = f"mixed{layer}"
        self.node("GroupQueryAttention", [q, k, v, *pasts, last, total, *tables], [mixed, *presents], MICROSOFT,
                  num_heads=self.heads, kv_num_heads=self.kv, do_rotary=1)
        return self.node("MatMul", [mixed, self.weight(self.width, self.width)])

    def feed_forward(self, x):
        gate, up = (self.node("MatMul", [x, self.weight(self.width, 2 * self.width)]) for _ in range(2))
        gated = self.node("Mul", [self.node("Mul", [gate, self.node("Sigmoid", [gate])]), up])
        return self.node("MatMul", [gated, self.weight(2 * self.width, self.width)])

    def build(self):
        ids = self.port(self.inputs, "input_ids", TensorProto.INT64, [1, "length"])
        last, total = self.lengths()
        angles = np.arange(4096)[:, None] * 10000.0 ** (-np.arange(self.size // 2) / (self.size // 2))
        tables = [self.constant(f(angles).astype(np.float32)) for f in (np.cos, np.sin)]
        x = self.node("Gather", [self.weight(VOCABULARY, self.width), ids], axis=0)
        for layer in range(self.layers):
            x = self.node("Add", [x, self.attention(self.norm(x), layer, last, total, tables)])
            x = self.node("Add", [x, self.feed_forward(self.norm(x))])
        self.node("MatMul", [self.norm(x), self.weight(self.width, VOCABULARY)], ["logits"])
        self.port(self.outputs, "logits", TensorProto.FLOAT, [1, "length", VOCABULARY])

    def model(self):
        graph = helper.make_graph(self.nodes, "decoding", self.inputs, self.outputs, self.constants)
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid(MICROSOFT, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


class Decoding:
    """A session of a decoder, and a state."""

    def __init__(self, decoder, room, threads):
        options = pyflame_rt.SessionOptions()
        options.num_threads = threads
        self.decoder = decoder
        self.session = pyflame_rt.InferenceSession(decoder.model(), options)
        self.room = room
        self.names = [f"{layer}.{what}" for layer in range(decoder.layers) for what in ("key", "value")]
        if room:
            pairs = [(f"past_key_values.{n}", f"present.{n}", "in_place") for n in self.names]
            self.state = self.session.create_state(pairs)
        else:
            self.state = self.session.create_state()
        self.run_options = pyflame_rt.RunOptions(state=self.state)

    def fill(self, length):
        """Gives the state |length| tokens, or room for them."""
        dims = (1, self.decoder.kv, self.room or length, self.decoder.size)
        for n in self.names:
            self.state.set(f"past_key_values.{n}", np.full(dims, 0.1, np.float32))

    def step(self, length):
        """Seconds of a step after |length| tokens."""
        feeds = {"input_ids": np.int64([[7]]), "attention_mask": np.ones((1, length + 1), np.int64)}
        start = time.perf_counter()
        (logits,) = self.session.run(["logits"], feeds, self.run_options)
        seconds = time.perf_counter() - start
        if not np.isfinite(logits).all():
            sys.exit(f"a step after {length} tokens gave numbers that are not finite")
        return seconds

    def steps(self, first, count):
        """The median of |count| steps, from |first| tokens on."""
        self.fill(first - 2)
        for length in (first - 2, first - 1):
            self.step(length)
        return statistics.median(self.step(first + i) for i in range(count))

    def same_steps(self, length, count):
        """The median of |count| steps of one length."""
        self.fill(length)
        times = []
        for _ in range(count + 2):
            times.append(self.step(length))
            if not self.room:
                self.state.truncate(length)
        return statistics.median(times[2:])


def resident():
    ctypes.CDLL(None).malloc_trim(0)  # what the making of a model has freed is no room for a state
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS"))


def seconds_to_read(size):
    """The least of a few passes over so many bytes, as the provider reads them."""
    data = np.ones(size // 4, np.float32)
    other = np.ones(data.size, np.float32)
    best = 1e9
    for _ in range(9):
        start = time.perf_counter()
        np.dot(data, other)  # reads both
        best = min(best, time.perf_counter() - start)
    return best / 2


def long_and_short(args):
    decoder = Decoder(args.layers, args.heads, args.heads, args.size)
    room = 0 if args.cache == "grows" else args.room
    token = 2 * decoder.layers * decoder.kv * decoder.size * 4
    held = Decoding(decoder, room, args.threads)
    before = resident()
    held.fill(args.many)
    for length in range(args.many, args.many + 4):
        held.step(length)
    taken = resident() - before
    del held
    few, many = (Decoding(decoder, room, args.threads) for _ in range(2))
    samples = [(few.steps(args.few, args.steps), many.steps(args.many, args.steps)) for _ in range(args.rounds)]
    short, long_ = (statistics.median(column) * 1e3 for column in zip(*samples))
    cache = token * (room or args.many + 4)
    reading = seconds_to_read(token * (args.many - args.few)) * 1e3
    return {"cache": args.cache, "layers": args.layers, "few": args.few, "many": args.many, "few_ms": short,
            "many_ms": long_, "read_ms": reading, "ratio": long_ / (short + reading), "state_bytes": taken,
            "cache_bytes": cache, "state_by_cache": taken / cache}


def growing_and_not(args):
    decoder = Decoder(4, 8, 4, 32)
    room = 0 if args.cache == "grows" else 512
    grows, stays = (Decoding(decoder, room, args.threads) for _ in range(2))
    samples = [(grows.steps(40, 60), stays.same_steps(70, 60)) for _ in range(args.rounds)]
    growing, same = (statistics.median(column) * 1e6 for column in zip(*samples))
    return {"growing_us": growing, "same_us": same, "more_us": growing - same}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--size", type=int, default=64, help="columns of a head")
    parser.add_argument("--room", type=int, default=2304, help="tokens that a cache in place has room for")
    parser.add_argument("--few", type=int, default=128)
    parser.add_argument("--many", type=int, default=2048)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cache", choices=("in_place", "grows"), default="in_place")
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args()
    figures = long_and_short(args) | growing_and_not(args)
    if args.json:
        print(json.dumps(figures))
        return
    f = figures
    print(f"{f['layers']} layers, {args.heads} x {args.size}, a cache that is {f['cache']}: "
          f"{f['few_ms']:.2f} ms a step after {f['few']} tokens, {f['many_ms']:.2f} after {f['many']}; "
          f"reading the cache takes {f['read_ms']:.2f} ms: {f['ratio']:.2f} of both")
    print(f"the state takes {f['state_bytes'] / 1e6:.0f} MB, {f['state_by_cache']:.2f} of the cache")
    print(f"4 layers of 256: {f['growing_us']:.0f} us a step that grows, {f['same_us']:.0f} of one length: "
          f"{f['more_us']:+.0f} us")


if __name__ == "__main__":
    main()
