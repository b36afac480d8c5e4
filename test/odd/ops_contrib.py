# SPDX-License-Identifier: Apache-2.0
"""com.microsoft's operators and attention."""
from draw import F32, F64, I8, I32, I64, TEXT, U8, np
from ops_reduce import gemm_parts, products
from ops_window import conv_parts

MS = "com.microsoft"
ACTIVATIONS = ["Relu", "Sigmoid", "Tanh", "LeakyRelu"]


def finish(d, op, inputs, outputs=1, chain=True, **attrs):
    d.version(11)
    d.finish(op, inputs, outputs, MS, chain, **attrs)


def scale(d, shape=()):
    return (np.abs(d.data(F32, shape, 0.01, 0.1)) + F32(0.01)).astype(F32)


def small(d, dtype, shape, high=120):
    return d.data(dtype, shape, -100 if dtype is I8 else 0, high)


def fused_matmul(op):
    def make(d):
        a, b = products(d)
        attrs = d.maybe({}, 0.4, alpha=d.pick([0.0, -1.0, 0.5]))
        if d.chance(0.4) and len(a) > 1:
            a[-1], a[-2], attrs["transA"] = a[-2], a[-1], d.flag() or 1
        if d.chance(0.4) and len(b) > 1:
            b[-1], b[-2], attrs["transB"] = b[-2], b[-1], 1
        if op == "FusedMatMul" and d.odd():
            attrs[d.pick(["transBatchA", "transBatchB"])] = 1
        finish(d, op, [d.data(F32, a), d.data(F32, b)], **attrs)
    return make


def fused_gemm(d):
    a, b, c, attrs = gemm_parts(d, F32)
    finish(d, "FusedGemm", [a, b, c if d.chance(0.7) else None], activation=d.pick(ACTIVATIONS), **attrs)


def fused_conv(d):
    x, w, filters, attrs = conv_parts(d)
    bias = d.data(F32, [filters]) if d.chance(0.5) else None
    finish(d, "FusedConv", [d.data(F32, x), d.input(d.data(F32, w), 0.6), bias], activation=d.pick(ACTIVATIONS[:3]),
           **attrs)


def gelu(op):
    def make(d):
        shape = d.shape(0 if op in ("Gelu", "QuickGelu") else 1)
        inputs = [d.data(F32, shape)]
        if op == "BiasGelu" or (op == "FastGelu" and d.chance(0.5)):
            inputs.append(d.data(F32, [shape[-1] if not d.odd() else shape[-1] + 1]))
        finish(d, op, inputs, **({"alpha": d.real()} if op == "QuickGelu" and d.chance(0.5) else {}))
    return make


def skip_norm(op):
    def make(d):
        shape = [d.size(1, 2), d.size(1, 3), d.size(1, 6)]
        if d.chance(0.2):
            shape = shape[1:]
        skip = list(shape) if d.chance(0.7) else d.pick([[1] + shape[1:], shape[1:]])
        if d.odd():
            skip[-1] += 1
        width = [shape[-1]]
        inputs = [d.data(F32, shape), d.data(F32, skip), d.data(F32, width)]
        if op == "SkipLayerNormalization":
            inputs.append(d.data(F32, width) if d.chance(0.6) else None)
        inputs.append(d.data(F32, width) if d.chance(0.4) else None)
        finish(d, op, inputs, **d.maybe({}, epsilon=d.pick([1e-5, 1e-3, 0.5])))
    return make


def qlinear_binary(op):
    def make(d):
        t = d.pick([U8, I8])
        shape = d.shape()
        zero = lambda: d.input(small(d, t, [], 60), 1)
        part = lambda s: [small(d, t, s), d.input(scale(d), 1), zero()]
        finish(d, op, [*part(shape), *part(d.broadcastable(shape)), d.input(scale(d), 1), zero()])
    return make


def qlinear_unary(op):
    def make(d):
        t = d.pick([U8, I8])
        attrs = d.maybe({}, alpha=d.real()) if op == "QLinearLeakyRelu" else {}
        finish(d, op, [small(d, t, d.shape()), d.input(scale(d), 1), d.input(small(d, t, [], 60), 1),
                       d.input(scale(d), 1), d.input(small(d, t, [], 60), 1)], **attrs)
    return make


def qlinear_softmax(d):
    t = d.pick([U8, I8])
    shape = d.shape(1)
    opset = d.pick([12, 13])
    finish(d, "QLinearSoftmax", [small(d, t, shape), d.input(scale(d), 1), d.input(small(d, t, [], 60), 1),
                                 d.input(np.array(1 / 256, F32), 1), d.input(np.array(0 if t is U8 else -128, t), 1)],
           axis=d.axis(len(shape)), opset=opset)


def qlinear_concat(d):
    t = d.pick([U8, I8])
    shape = d.shape(1)
    axis = d.int(0, len(shape) - 1)
    inputs = [d.input(scale(d), 1), d.input(small(d, t, [], 60), 1)]
    for _ in range(d.int(1, 3)):
        part = list(shape)
        part[axis] = d.size(1, 3)
        if d.odd(0.05):
            part[0] += 1
        inputs += [small(d, t, part), d.input(scale(d), 1), d.input(small(d, t, [], 60), 1)]
    finish(d, "QLinearConcat", inputs, axis=d.pick([axis, axis - len(shape)]) if not d.odd(0.1) else d.axis(len(shape)))


def qlinear_where(d):
    t = d.pick([U8, I8])
    shape = d.shape()
    part = lambda s: [small(d, t, s), d.input(scale(d), 1), d.input(small(d, t, [], 60), 1)]
    finish(d, "QLinearWhere", [d.data(np.bool_, d.broadcastable(shape)), *part(shape), *part(d.broadcastable(shape)),
                               d.input(scale(d), 1), d.input(small(d, t, [], 60), 1)])


def qlinear_average_pool(d):
    t = d.pick([U8, I8])
    spatial = [d.size(1, 6) for _ in range(d.int(1, 2))]
    kernel = [d.int(1, max(1, min(3, n))) for n in spatial]
    last = d.chance(0.4)
    x = [d.size(1, 2), *spatial, d.size(1, 3)] if last else [d.size(1, 2), d.size(1, 3), *spatial]
    attrs = d.maybe({"kernel_shape": kernel}, strides=[d.int(1, 3) for _ in kernel], count_include_pad=d.flag(),
                    ceil_mode=d.flag(), pads=[d.int(0, k - 1) for k in kernel] * 2)
    if last:
        attrs["channels_last"] = 1
    finish(d, "QLinearAveragePool", [small(d, t, x), d.input(scale(d), 1), d.input(small(d, t, [], 60), 1),
                                     d.input(scale(d), 1), d.input(small(d, t, [], 60), 1)], **attrs)


def qlinear_global_pool(d):
    t = d.pick([U8, I8])
    finish(d, "QLinearGlobalAveragePool", [
        small(d, t, [d.size(1, 2), d.size(1, 4), d.size(1, 4), d.size(1, 4)]), d.input(scale(d), 1),
        d.input(small(d, t, [], 60), 1), d.input(scale(d), 1), d.input(small(d, t, [], 60), 1)],
        channels_last=d.int(0, 1))


def qgemm(d):
    a, b, _, attrs = gemm_parts(d, F32)
    attrs.pop("beta", None)
    ta, tb = d.pick([U8, I8]), d.pick([U8, I8])
    n = b.shape[0] if attrs.get("transB") == 1 else b.shape[-1]
    columns = [n] if d.chance(0.4) else []
    bias = d.data(I32, [n], -300, 300) if d.chance(0.5) else None
    inputs = [small(d, ta, a.shape), scale(d), small(d, ta, [], 60), d.input(small(d, tb, b.shape), 0.6),
              scale(d, columns), small(d, tb, columns, 60), bias]
    if d.chance(0.5):
        inputs += [scale(d) * F32(20), small(d, ta, [], 60)]
    finish(d, "QGemm", inputs, **attrs)


def to_float(d):
    a, b = products(d)
    ta, tb = d.pick([U8, I8]), d.pick([U8, I8])
    columns = [b[-1]] if len(b) > 1 and d.chance(0.4) else []
    finish(d, "MatMulIntegerToFloat", [small(d, ta, a), d.input(small(d, tb, b), 0.6), scale(d), scale(d, columns),
                                       small(d, ta, [], 60) if d.chance(0.6) else None,
                                       small(d, tb, columns, 60) if d.chance(0.6) else None,
                                       d.data(F32, [b[-1]]) if len(b) > 1 and d.chance(0.4) else None])


def dynamic_matmul(d):
    a, b = products(d)
    tb = d.pick([U8, I8])
    columns = [b[-1]] if len(b) > 1 and d.chance(0.4) else []
    finish(d, "DynamicQuantizeMatMul", [d.data(F32, a), d.input(small(d, tb, b), 0.6), scale(d, columns),
                                        small(d, tb, columns, 60) if d.chance(0.6) else None,
                                        d.data(F32, [b[-1]]) if len(b) > 1 and d.chance(0.4) else None])


def attention(d):
    b, s, heads, size = d.size(1, 2), d.size(1, 4), d.int(1, 3), d.int(1, 4)
    hidden, width = heads * size, d.int(1, 5)
    weights = [width, 3 * hidden] if not d.odd() else [width, 3 * hidden + d.int(1, 2)]
    mask = d.pick([None, None, np.array([d.int(1, max(1, s)) for _ in range(b)], I32), d.data(I32, [b, s], 0, 1)])
    attrs = {"num_heads": heads if not d.odd(0.1) else d.pick([0, -1, heads + 1, 2**40])}
    d.maybe(attrs, 0.4, unidirectional=d.flag(), scale=d.real(0.1, 1))
    finish(d, "Attention", [d.data(F32, [b, s, width]), d.data(F32, weights), d.data(F32, weights[1:]), mask],
           chain=False, **attrs)


def multi_head(d):
    b, s, kv, heads, size = d.size(1, 2), d.size(1, 4), d.size(1, 4), d.int(1, 3), d.int(1, 4)
    hidden = heads * size
    value = hidden if d.chance(0.7) else heads * d.int(1, 4)
    attrs = {"num_heads": heads if not d.odd(0.1) else d.pick([0, -1, heads + 1, 2**40])}
    d.maybe(attrs, 0.3, scale=d.real(0.1, 1), unidirectional=d.int(0, 1))
    bias = d.data(F32, [2 * hidden + value]) if d.chance(0.3) else None
    mask = d.data(I32, [b, kv], 0, 1) if d.chance(0.3) else None
    extra = d.data(F32, [d.pick([1, b]), d.pick([1, heads]), s, kv]) if d.chance(0.3) else None
    key = [b, kv, hidden] if not d.odd() else [b, kv + 1, hidden]
    finish(d, "MultiHeadAttention", [d.data(F32, [b, s, hidden]), d.data(F32, key), d.data(F32, [b, kv, value]),
                                     bias, mask, extra], chain=False, **attrs)


def standard_attention(d):
    d.version(23)
    b, s, kv, heads, size = d.size(1, 2), d.size(1, 4), d.size(1, 4), d.int(1, 3), d.int(1, 4)
    groups = d.int(1, 2)
    value = size if d.chance(0.7) else d.int(1, 4)
    flat = d.chance(0.4)
    attrs = d.maybe({}, 0.3, is_causal=d.int(0, 1), scale=d.real(0.1, 1), softcap=d.real(0.5, 3))
    if flat:
        attrs.update(q_num_heads=heads * groups, kv_num_heads=heads)
        q, k, v = [b, s, heads * groups * size], [b, kv, heads * size], [b, kv, heads * value]
    else:
        q, k, v = [b, heads * groups, s, size], [b, heads, kv, size], [b, heads, kv, value]
    if d.odd():
        side = d.pick([q, k, v])
        side[d.int(0, len(side) - 1)] += 1
    mask = None
    if d.chance(0.4):
        mask = d.data(d.pick([F32, np.bool_]), d.pick([[s, kv], [b, 1, s, kv], [1, heads * groups, s, kv]]))
    d.finish("Attention", [d.data(F32, q), d.data(F32, k), d.data(F32, v), mask], chain=False, **attrs)


def rotary(d):
    d.version(23)
    b, s, heads, size = d.size(1, 2), d.size(1, 4), d.int(1, 3), 2 * d.int(1, 3)
    flat = d.chance(0.5)
    turned = size if d.chance(0.6) else 2 * d.int(1, size // 2)
    attrs = d.maybe({}, 0.4, interleaved=d.int(0, 1))
    if turned != size:
        attrs["rotary_embedding_dim"] = turned
    if flat:
        attrs["num_heads"] = heads if not d.odd(0.1) else d.pick([0, -1, heads + 1])
    places = 6 if d.chance(0.6) else None
    table = [places, turned // 2] if places else [b, s, turned // 2]
    at = None
    if places:
        at = d.data(I64, [b, s], 0, 5)
        if at.size and d.odd():
            at.reshape(-1)[0] = d.pick([-1, 6, 2**40])
    d.finish("RotaryEmbedding", [d.data(F32, [b, s, heads * size] if flat else [b, heads, s, size]),
                                 d.data(F32, table), d.data(F32, table), at], chain=False, **attrs)


def nbits(d):
    n, k, block = d.int(1, 5), d.int(1, 40), d.pick([16, 32])
    blocks = -(-k // block)
    inputs = [d.data(F32, d.shape(1, 2, 3) + [k if not d.odd() else k + 1]),
              d.input(d.data(U8, [n, blocks, block // 2], 0, 255), 1), d.input(scale(d, [n * blocks]), 1)]
    if d.chance(0.5):
        inputs.append(d.input(d.data(U8, [n * ((blocks + 1) // 2)], 0, 255), 1))
    finish(d, "MatMulNBits", inputs, K=k, N=n, bits=4 if not d.odd(0.05) else d.pick([3, 0]),
           block_size=block if not d.odd(0.05) else d.pick([0, -1, 17]))


def gather_nd(d):
    shape = d.shape(1, 3)
    last = d.int(1, len(shape))
    at = np.array([[d.int(0, max(0, n - 1)) for n in shape[:last]] for _ in range(3)], I64)
    if d.odd():
        at[0, 0] = d.pick([-1, 9, 2**40])
    finish(d, "GatherND", [d.data(F32, shape), at])


def expand_dims(d):
    shape = d.shape(0, 3)
    finish(d, "ExpandDims", [d.data(F32, shape), d.input(np.array(
        d.int(-len(shape) - 1, len(shape)) if not d.odd() else d.pick([9, -9, 2**31 - 1]), I32), 0.6)])


def tokenizer(d):
    least = d.pick([1, 1, 2]) if not d.odd() else d.pick([0, -1, 2**40])
    rule = d.pick([{"tokenexp": d.pick(["[a-z]+", ".", "..", "a*", "a|ab", "("])}, {"separators": [""]},
                   {"separators": [d.pick(["a", "[0-9]+", ".", "a*"]) for _ in range(d.int(1, 3))]}])
    texts = d.data(TEXT, d.shape(1, 2) if not d.odd() else d.shape(0, 3))
    finish(d, "Tokenizer", [texts], mark=d.flag(), mincharnum=least, pad_value=d.pick(["#", "", "a"]), **rule)


def murmur(d):
    finish(d, "MurmurHash3", [d.data(d.pick([I32, I64, F32, F64, np.uint32, TEXT]), d.shape())],
           **d.maybe({}, positive=d.flag(), seed=d.int(0, 99)))


def cdist(d):
    n = d.size(1, 4)
    finish(d, "CDist", [d.data(F32, [d.size(1, 4), n]), d.data(F32, [d.size(1, 4), n if not d.odd() else n + 1])],
           metric=d.pick(["euclidean", "sqeuclidean"]))


def inverse(d):
    n = d.int(1, 4)
    x = d.data(F32, d.shape(0, 2, 3) + [n, n if not d.odd() else n + 1])
    if x.shape[-1] == n:
        x = (x + 3 * np.eye(n)).astype(F32)
    finish(d, "Inverse", [x])


def crop_and_resize(d):
    n, count = d.int(1, 2), d.size(1, 3)
    at = np.array([d.int(0, n - 1) for _ in range(count)], I32)
    if count and d.odd():
        at[0] = d.pick([-1, n, 2**31 - 1])
    finish(d, "CropAndResize", [d.data(F32, [n, d.size(1, 2), d.int(1, 5), d.int(1, 5)]),
                                d.data(F32, [count, 4], -0.3, 1.3), at, d.input(np.array(
                                    [d.int(1, 4), d.int(1, 4)] if not d.odd(0.1) else [d.pick([0, -1, 2**30]), 1], I32),
                                    0.6)],
           **d.maybe({}, mode=d.pick(["bilinear", "nearest"]), extrapolation_value=d.real()))


def unfold(d):
    shape = d.shape(1, 3)
    axis = d.int(0, len(shape) - 1)
    finish(d, "UnfoldTensor", [d.data(F32, shape)], size=d.int(1, max(1, shape[axis])) if not d.odd() else d.pick(
        [0, -1, 99, 2**40]), dim=d.pick([axis, axis - len(shape)]) if not d.odd(0.1) else d.axis(len(shape)),
        **d.maybe({}, step=d.int(1, 3) if not d.odd(0.1) else d.pick([0, -1, 2**62])))


def repeat_block(d):
    b, s = d.int(1, 2), d.int(1, 6)
    ids = d.data(I64, [b, s], 0, 3)
    if d.odd():
        ids[0, -1] = d.pick([-1, 9, 2**40])
    finish(d, "NGramRepeatBlock", [ids, d.data(F32, [b, 4])], ngram_size=d.int(1, 3) if not d.odd(0.1) else d.pick(
        [0, -1, 2**40]))


def bifurcation(d):
    inputs = [d.data(I64, [d.int(1, 6)], 0, 3), d.data(I64, [d.int(1, 4)], 0, 3),
              np.array([d.int(0, 2) if not d.odd() else d.pick([-1, 99])], I64)]
    if d.chance(0.5):
        inputs.append(d.data(I64, [len(inputs[0]) + 1 - (inputs[2][0] if 0 <= inputs[2][0] < 3 else 0)], 0, 3))
    finish(d, "BifurcationDetector", inputs, 2, min_ngram_size=1, max_ngram_size=d.int(1, 3))


def warp(d):
    finish(d, "DynamicTimeWarping", [d.data(F32, ([1] if d.chance(0.5) else []) + [d.size(1, 5), d.size(1, 5)])])


GENERATORS = {
    **{(MS, op): make for op, make in {
        "FusedMatMul": fused_matmul("FusedMatMul"), "TransposeMatMul": fused_matmul("TransposeMatMul"),
        "FusedGemm": fused_gemm, "FusedConv": fused_conv, "Gelu": gelu("Gelu"), "BiasGelu": gelu("BiasGelu"),
        "FastGelu": gelu("FastGelu"), "QuickGelu": gelu("QuickGelu"),
        "SkipLayerNormalization": skip_norm("SkipLayerNormalization"),
        "SkipSimplifiedLayerNormalization": skip_norm("SkipSimplifiedLayerNormalization"),
        "QLinearAdd": qlinear_binary("QLinearAdd"), "QLinearMul": qlinear_binary("QLinearMul"),
        "QLinearSigmoid": qlinear_unary("QLinearSigmoid"), "QLinearLeakyRelu": qlinear_unary("QLinearLeakyRelu"),
        "QLinearSoftmax": qlinear_softmax, "QLinearConcat": qlinear_concat, "QLinearWhere": qlinear_where,
        "QLinearAveragePool": qlinear_average_pool, "QLinearGlobalAveragePool": qlinear_global_pool, "QGemm": qgemm,
        "MatMulIntegerToFloat": to_float, "DynamicQuantizeMatMul": dynamic_matmul, "Attention": attention,
        "MultiHeadAttention": multi_head, "MatMulNBits": nbits, "GatherND": gather_nd, "ExpandDims": expand_dims,
        "Tokenizer": tokenizer,
        "MurmurHash3": murmur, "CDist": cdist, "Inverse": inverse, "CropAndResize": crop_and_resize,
        "UnfoldTensor": unfold, "NGramRepeatBlock": repeat_block, "BifurcationDetector": bifurcation,
        "DynamicTimeWarping": warp}.items()},
    ("", "Attention"): standard_attention, ("", "RotaryEmbedding"): rotary}
