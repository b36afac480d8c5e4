# SPDX-License-Identifier: Apache-2.0
"""com.microsoft's operators of transformers."""
import numpy as np
from onnx import helper

from record import Case, rng

MS = "com.microsoft"
F32, F16 = np.float32, np.float16


def case(op, name, inputs, outputs, dtype=F32, domain=MS, constants=(), opsets=None, expected=None,
         **attrs):
    """|inputs| in the order of the operator, None where one is absent; those named in |constants| are initializers.
    Floats become |dtype|."""
    given = {k: (v.astype(dtype) if v is not None and v.dtype.kind == "f" else v) for k, v in inputs.items()}
    node = helper.make_node(op, [k if v is not None else "" for k, v in given.items()], outputs,
                            domain="" if domain == "ai.onnx" else domain, **attrs)
    present = {k: v for k, v in given.items() if v is not None}
    return Case(domain, op, name, [node], {k: v for k, v in present.items() if k not in constants},
                [o for o in outputs if o], initializers={k: v for k, v in present.items() if k in constants},
                opsets=opsets or {}, expected=expected)


def floats(r, *dims):
    return (r.rand(*dims) * 2 - 1).astype(F32)


def norms():
    for dtype in (F32, F16):
        kind = dtype.__name__
        r = rng("skip" + kind)
        x = {"input": floats(r, 2, 3, 8), "skip": floats(r, 2, 3, 8), "gamma": floats(r, 8)}
        yield case("SkipLayerNormalization", "plain_" + kind, x, ["y"], dtype)
        x.update(beta=floats(r, 8), bias=floats(r, 8))
        yield case("SkipLayerNormalization", "all_" + kind, x, ["y", "", "", "sum"], dtype, epsilon=1e-3)
        simple = {k: v for k, v in x.items() if k != "beta"}
        yield case("SkipSimplifiedLayerNormalization", "all_" + kind, simple, ["y", "", "", "sum"], dtype,
                   epsilon=1e-3)
    r = rng("skip")
    yield case("SkipLayerNormalization", "broadcast", {
        "input": floats(r, 2, 3, 8), "skip": floats(r, 3, 8), "gamma": floats(r, 8), "beta": floats(r, 8)}, ["y"])
    yield case("SkipLayerNormalization", "tokens", {
        "input": floats(r, 4, 8), "skip": floats(r, 4, 8), "gamma": floats(r, 8), "beta": None, "bias": floats(r, 8)},
        ["y", "", "", "sum"])
    yield case("SkipSimplifiedLayerNormalization", "plain", {
        "input": floats(r, 2, 3, 8), "skip": floats(r, 1, 3, 8), "gamma": floats(r, 8)}, ["y"], epsilon=1e-5)
    yield case("SimplifiedLayerNormalization", "last", {"x": floats(r, 2, 3, 8), "scale": floats(r, 8)}, ["y"],
               domain="ai.onnx", epsilon=1e-4)
    yield case("SimplifiedLayerNormalization", "axis_1", {"x": floats(r, 2, 3, 8), "scale": floats(r, 3, 8)}, ["y"],
               domain="ai.onnx", axis=1)
    yield case("SimplifiedLayerNormalization", "float16", {"x": floats(r, 2, 3, 8), "scale": floats(r, 8)}, ["y"],
               F16, domain="ai.onnx", axis=-1, stash_type=1)
    x, scale = floats(r, 2, 3, 8), floats(r, 8)
    mean_square = np.mean(np.square(x, dtype=np.float64), axis=-1, keepdims=True)
    yield case("SimplifiedLayerNormalization", "in_its_own_domain", {"x": x, "scale": scale}, ["y"], axis=-1,
               epsilon=1e-4, expected={"y": (x / np.sqrt(mean_square + 1e-4) * scale).astype(np.float32)})
    yield case("LayerNormalization", "opset_11", {"x": floats(r, 2, 3, 8), "scale": floats(r, 8), "b": floats(r, 8)},
               ["y"], domain="ai.onnx", opsets={"": 11}, axis=-1)


def embeddings():
    r = rng("embed")
    tables = {"words": floats(r, 20, 8), "positions": floats(r, 6, 8), "segments": floats(r, 2, 8),
              "gamma": floats(r, 8), "beta": floats(r, 8)}
    ids = r.randint(0, 20, (2, 4)).astype(np.int32)
    kinds = r.randint(0, 2, (2, 4)).astype(np.int32)
    mask = np.array([[1, 1, 1, 0], [1, 0, 0, 0]], np.int32)
    for name, inputs, outputs in [
            ("all", {"ids": ids, "kinds": kinds, **tables, "mask": mask}, ["y", "counts"]),
            ("sum", {"ids": ids, "kinds": kinds, **tables, "mask": mask}, ["y", "counts", "sum"]),
            ("no_segments", {"ids": ids, "kinds": None, **{**tables, "segments": None}}, ["y", "counts"]),
            ("position_ids", {"ids": ids, "kinds": None, **{**tables, "segments": None}, "mask": None,
                              "at": r.randint(0, 6, (2, 4)).astype(np.int32)}, ["y", "", "sum"])]:
        yield case("EmbedLayerNormalization", name, inputs, outputs, epsilon=1e-5)
    tables = {k: r.randint(0, 256, v.shape).astype(np.uint8) for k, v in tables.items()}
    scales = {k + "_scale": np.float32(0.01 + 0.003 * i) for i, k in enumerate(tables)}
    zeros = {k + "_zero": np.uint8(117 + 5 * i) for i, k in enumerate(tables)}
    yield case("QEmbedLayerNormalization", "segments", {
        "ids": ids, "kinds": kinds, **tables, "mask": mask, **scales, **zeros}, ["y", "counts"], epsilon=1e-5)
    lack = {"segments": None, "segments_scale": None, "segments_zero": None}
    yield case("QEmbedLayerNormalization", "no_segments", {
        "ids": ids, "kinds": None, **{**tables, "mask": None, **scales, **zeros, **lack}}, ["y", "counts"],
        epsilon=1e-5)


def activations():
    for dtype in (F32, F16):
        kind = dtype.__name__
        r = rng("gelu" + kind)
        x = {"x": floats(r, 3, 7) * 4}
        if dtype is F32:  # the peer's CPU provider has no float16 there
            yield case("Gelu", "plain", x, ["y"])
            yield case("QuickGelu", "default", x, ["y"])
            yield case("QuickGelu", "alpha", x, ["y"], alpha=0.7)
            yield case("BiasGelu", "plain", {**x, "bias": floats(r, 7)}, ["y"])
        yield case("FastGelu", "plain_" + kind, x, ["y"], dtype)
        yield case("FastGelu", "bias_" + kind, {**x, "bias": floats(r, 7)}, ["y"], dtype)


def attention():
    b, s, n, d = 2, 4, 2, 8
    r = rng("attention")
    x = {"x": floats(r, b, s, d), "w": floats(r, d, 3 * d), "bias": floats(r, 3 * d)}
    past = floats(r, 2, b, n, 3, d // n)
    raw = np.array([[1, 1, 1, 0], [1, 1, 0, 0]], np.int32)
    cube = (r.rand(b, s, s) > 0.3).astype(np.int32)
    left = np.array([[0, 1, 1, 1], [0, 0, 1, 1]], np.int32)
    lowest = float(np.finfo(F32).min)
    for name, more, outputs, attrs in [
            ("plain", {}, ["y"], {}),
            ("causal", {}, ["y"], {"unidirectional": 1}),
            ("scale", {}, ["y"], {"scale": 0.25}),
            ("present", {}, ["y", "present"], {"unidirectional": 1}),
            ("mask_raw", {"mask": raw}, ["y"], {}),
            ("mask_raw_causal", {"mask": raw}, ["y"], {"unidirectional": 1}),
            ("mask_left_lowest", {"mask": left}, ["y"], {"unidirectional": 1, "mask_filter_value": lowest}),
            ("mask_left", {"mask": left}, ["y"], {"unidirectional": 1}),
            ("mask_ends", {"mask": np.array([4, 2], np.int32)}, ["y"], {}),
            ("mask_ranges", {"mask": np.array([4, 2, 1, 0], np.int32)}, ["y"], {}),
            ("mask_cube", {"mask": cube}, ["y"], {"unidirectional": 1}),
            ("past", {"mask": None, "past": past}, ["y", "present"], {"unidirectional": 1}),
            ("past_mask", {"mask": (r.rand(b, s + 3) > 0.3).astype(np.int32), "past": past}, ["y", "present"],
             {"unidirectional": 1}),
            ("bias", {"mask": None, "past": None, "add": floats(r, b, n, s, s)}, ["y"], {}),
            ("bias_broadcast_mask", {"mask": raw, "past": None, "add": floats(r, 1, 1, s, s)}, ["y"], {})]:
        yield case("Attention", name, {**x, **more}, outputs, constants=("w", "bias"), num_heads=n, **attrs)
    yield case("Attention", "hidden_sizes", {"x": x["x"], "w": floats(r, d, 4 + 4 + 12), "bias": floats(r, 20)}, ["y"],
               num_heads=n, qkv_hidden_sizes=[4, 4, 12])


def quantized_attention():
    b, s, n, d = 2, 3, 2, 8
    r = rng("quantized_attention")
    scale = np.array(0.03, F32)
    x = {"x": r.randint(0, 256, (b, s, d)).astype(np.uint8), "w": r.randint(-128, 128, (d, 3 * d)).astype(np.int8),
         "bias": floats(r, 3 * d), "x_scale": scale, "w_scale": np.array(0.02, F32)}
    zero = {"x_zero": np.array(120, np.uint8), "w_zero": np.array(3, np.int8)}
    raw = np.array([[1, 1, 0], [1, 1, 1]], np.int32)
    past = floats(r, 2, b, n, 2, d // n)
    for name, inputs, outputs, attrs in [
            ("plain", {**x, "mask": None, **zero}, ["y"], {}),
            ("no_zeros", {**x, "mask": None}, ["y"], {}),
            ("mask", {**x, "mask": raw, **zero}, ["y"], {"unidirectional": 1}),
            ("columns", {**x, "w_scale": (floats(r, 3 * d) + 2) / 80, "mask": raw, **zero,
                         "w_zero": r.randint(-5, 5, 3 * d).astype(np.int8)}, ["y"], {}),
            ("past", {**x, "mask": None, **zero, "past": past}, ["y", "present"], {"unidirectional": 1})]:
        yield case("QAttention", name, inputs, outputs, constants=("w", "bias", "x_scale", "w_scale", "w_zero"),
                   num_heads=n, **attrs)


def multi_head():
    b, s, l, n, d, dv = 2, 3, 5, 2, 8, 12
    r = rng("multi_head")
    q, k, v = floats(r, b, s, d), floats(r, b, l, d), floats(r, b, l, dv)
    bias = floats(r, 2 * d + dv)
    heads = {"k": floats(r, b, n, l, d // n), "v": floats(r, b, n, l, d // n)}
    own = {"q": q, "k": floats(r, b, s, d), "v": floats(r, b, s, d)}
    past = {"past_k": floats(r, b, n, 2, d // n), "past_v": floats(r, b, n, 2, d // n)}
    pad = (r.rand(b, l) > 0.3).astype(np.int32)
    for name, inputs, outputs, attrs in [
            ("plain", {"q": q, "k": k, "v": v}, ["y"], {}),
            ("bias", {"q": q, "k": k, "v": v, "bias": bias}, ["y"], {"scale": 0.3}),
            ("by_head", {"q": q, **heads}, ["y"], {}),
            ("mask", {"q": q, "k": k, "v": v, "bias": bias, "mask": pad}, ["y"], {}),
            ("mask_filter", {"q": q, "k": k, "v": v, "bias": None, "mask": pad}, ["y"], {"mask_filter_value": -2.0}),
            ("mask_ends", {"q": q, "k": k, "v": v, "bias": None, "mask": np.array([3, 5], np.int32)}, ["y"], {}),
            ("mask_cube", {"q": q, "k": k, "v": v, "bias": None, "mask": (r.rand(b, s, l) > 0.3).astype(np.int32)},
             ["y"], {}),
            ("add", {"q": q, "k": k, "v": v, "bias": None, "mask": None, "add": floats(r, b, n, s, l)}, ["y"], {}),
            ("add_broadcast", {"q": q, "k": k, "v": v, "bias": None, "mask": pad, "add": floats(r, 1, n, s, l)},
             ["y"], {}),
            ("causal", own, ["y"], {"unidirectional": 1}),
            ("present", own, ["y", "pk", "pv"], {}),
            ("past", {**own, "bias": None, "mask": None, "add": None, **past}, ["y", "pk", "pv"],
             {"unidirectional": 1}),
            ("past_bias", {**own, "bias": floats(r, 3 * d), "mask": None, "add": floats(r, b, n, s, s + 2), **past},
             ["y", "pk", "pv"], {}),
            ("past_mask", {**own, "bias": None, "mask": (r.rand(b, s + 2) > 0.3).astype(np.int32), "add": None,
                           **past}, ["y", "pk", "pv"], {})]:
        yield case("MultiHeadAttention", name, inputs, outputs, num_heads=n, **attrs)
    # A formula gives the result, since the peer cannot infer the type of qk.
    scores = case("MultiHeadAttention", "scores", {"q": q, "k": k, "v": v, "bias": None, "mask": pad},
                  ["y", "", "", "qk"], num_heads=n)
    q4, k4, v4 = (t.reshape(b, -1, n, t.shape[2] // n).transpose(0, 2, 1, 3) for t in (q, k, v))
    qk = q4 @ k4.transpose(0, 1, 3, 2) / np.sqrt(d // n) + np.where(pad > 0, 0, -10000)[:, None, None, :]
    weights = np.exp(qk - qk.max(-1, keepdims=True))
    y = weights / weights.sum(-1, keepdims=True) @ v4
    scores.expected = {"y": y.transpose(0, 2, 1, 3).reshape(b, s, dv).astype(F32), "qk": qk.astype(F32)}
    yield scores


def group_query():
    b, s, n, kv, h, room = 2, 3, 4, 2, 16, 6
    r = rng("group_query")
    qkv = {"q": floats(r, b, s, n * h), "k": floats(r, b, s, kv * h), "v": floats(r, b, s, kv * h)}
    one = {"q": floats(r, b, 1, n * h), "k": floats(r, b, 1, kv * h), "v": floats(r, b, 1, kv * h)}
    past = {"past_k": floats(r, b, kv, room, h), "past_v": floats(r, b, kv, room, h)}
    none = {"past_k": None, "past_v": None}
    angles = r.rand(10, h // 2)
    rotary = {"cos": np.cos(angles).astype(F32), "sin": np.sin(angles).astype(F32)}
    no_rotary = {"cos": None, "sin": None}

    def lengths(keys, total):
        return {"seqlens": np.array(keys, np.int32) - 1, "total": np.array(total, np.int32)}

    outputs = ["y", "pk", "pv"]
    for name, inputs, outs, attrs in [
            ("prompt", {**qkv, **none, **lengths([3, 3], 3)}, outputs, {}),
            ("prompt_rotary", {**qkv, **none, **lengths([3, 3], 3), **rotary}, outputs, {"do_rotary": 1}),
            ("prompt_room", {**qkv, **past, **lengths([3, 3], 3)}, outputs, {}),
            ("token", {**one, **past, **lengths([7, 4], 7)}, outputs, {}),
            ("token_room", {**one, **past, **lengths([5, 4], 5)}, outputs, {}),
            ("token_rotary", {**one, **past, **lengths([6, 3], 6), **rotary}, outputs, {"do_rotary": 1}),
            ("token_interleaved", {**one, **past, **lengths([6, 3], 6), **rotary}, outputs,
             {"do_rotary": 1, "rotary_interleaved": 1}),
            ("window", {**one, **past, **lengths([7, 4], 7)}, outputs, {"local_window_size": 2}),
            ("prompt_window", {**qkv, **none, **lengths([3, 3], 3)}, outputs, {"local_window_size": 1}),
            ("softcap", {**one, **past, **lengths([7, 4], 7)}, outputs, {"softcap": 0.5, "scale": 0.7}),
            ("smooth", {**one, **past, **lengths([7, 4], 7)}, outputs, {"smooth_softmax": 1}),
            ("sink", {**one, **past, **lengths([7, 4], 7), **no_rotary, "at": None, "add": None,
                      "sink": floats(r, n)}, outputs, {}),
            ("add", {**one, **past, **lengths([7, 7], 7), **no_rotary, "at": None, "add": floats(r, b, 1, 1, 7)},
             outputs, {}),
            ("positions", {**one, **past, **lengths([7, 7], 7), **rotary, "at": np.array([[5], [2]], np.int64)},
             outputs, {"do_rotary": 1}),
            ("scores_before", {**one, **past, **lengths([7, 7], 7)}, outputs + ["qk"], {"qk_output": 1}),
            ("scores_after", {**one, **past, **lengths([7, 7], 7)}, outputs + ["qk"], {"qk_output": 2})]:
        yield case("GroupQueryAttention", name, inputs, outs, num_heads=n, kv_num_heads=kv, **attrs)
    packed = np.concatenate([qkv["q"], qkv["k"], qkv["v"]], axis=2)
    yield case("GroupQueryAttention", "packed", {
        "q": packed, "k": None, "v": None, **none, **lengths([3, 3], 3), **rotary}, outputs, num_heads=n,
        kv_num_heads=kv, do_rotary=1)
    yield case("GroupQueryAttention", "float16", {**one, **past, **lengths([7, 4], 7), **rotary}, outputs, F16,
               num_heads=n, kv_num_heads=kv, do_rotary=1)


def rotary():
    r = rng("rotary")
    angles = r.rand(9, 4)
    caches = {"cos": np.cos(angles).astype(F32), "sin": np.sin(angles).astype(F32)}
    flat, heads = floats(r, 2, 3, 16), floats(r, 2, 2, 3, 8)
    at, start = np.array([[0, 4, 8], [2, 3, 4]], np.int64), np.array([5], np.int64)
    for name, x, positions, attrs in [
            ("flat", flat, at, {}), ("start", flat, start, {}), ("interleaved", flat, at, {"interleaved": 1}),
            ("by_head", heads, at, {}), ("by_head_start", heads, start, {"interleaved": 1}),
            ("partial", floats(r, 2, 3, 24), at, {"num_heads": 2, "rotary_embedding_dim": 8})]:
        yield case("RotaryEmbedding", name, {"x": x, "at": positions, **caches}, ["y"], **attrs)
    yield case("RotaryEmbedding", "float16", {"x": flat, "at": at, **caches}, ["y"], F16)


def matmul_nbits():
    k, n, block = 40, 5, 16
    blocks = -(-k // block)
    for bits in (4, 8):
        r = rng(f"nbits{bits}")
        stored = r.randint(0, 256, (n, blocks, block * bits // 8)).astype(np.uint8)
        zeros = r.randint(0, 256, (n, -(-blocks * bits // 8))).astype(np.uint8)
        weights = {"b": stored, "scales": floats(r, n, blocks)}
        for name, more in [("plain", {}), ("zeros", {"zeros": zeros}),
                           ("bias", {"zeros": None, "groups": None, "bias": floats(r, n)})]:
            yield case("MatMulNBits", f"{name}_{bits}", {"a": floats(r, 2, 3, k), **weights, **more}, ["y"],
                       constants=("b", "scales", "zeros", "bias"), K=k, N=n, bits=bits, block_size=block)
        if bits == 4:  # the peer has no others of 8 bits
            yield case("MatMulNBits", f"float_zeros_{bits}", {"a": floats(r, 2, 3, k), **weights,
                                                              "zeros": floats(r, n, blocks) * 4}, ["y"],
                       constants=("b", "scales", "zeros"), K=k, N=n, bits=bits, block_size=block)
    r = rng("groups")
    yield case("MatMulNBits", "groups", {
        "a": floats(r, 3, 32), "b": r.randint(0, 256, (n, 2, 8)).astype(np.uint8), "scales": floats(r, n, 2),
        "zeros": None, "groups": r.randint(0, 2, 32).astype(np.int32)}, ["y"],
        constants=("b", "scales", "groups"), K=32, N=n, bits=4, block_size=16)
    yield case("MatMulNBits", "float16", {
        "a": floats(r, 3, 32), "b": r.randint(0, 256, (n, 2, 8)).astype(np.uint8), "scales": floats(r, n, 2)}, ["y"],
        F16, constants=("b", "scales"), K=32, N=n, bits=4, block_size=16)


def cases():
    for family in (norms, embeddings, activations, attention, quantized_attention, multi_head, group_query, rotary,
                   matmul_nbits):
        yield from family()
