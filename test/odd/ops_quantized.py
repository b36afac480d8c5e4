# SPDX-License-Identifier: Apache-2.0
"""com.microsoft's quantized, packed and cached forms, where sizes come from attributes; what else is newer or rarer."""
from draw import ANY, F32, F64, FLOATS, HUGE, I8, I32, I64, MOST, TEXT, U8, Bits, np
from ops_contrib import finish, scale, small
from ops_move import element_indices, indices
from ops_reduce import cumulative
from ops_window import window

MS = "com.microsoft"


def odd_size(d, right, p=0.1):
    return right if not d.odd(p) else d.pick([0, -1, right + 1, 2**31, 2**62])


def bnb4(d):
    k, n, block = d.int(1, 40), d.int(1, 5), d.pick([16, 32])
    finish(d, "MatMulBnb4", [
        d.data(F32, d.shape(1, 2, 3) + [k]), d.input(d.data(U8, [max(0, (n * k + 1) // 2 - d.odd())], 0, 255), 1),
        d.input(scale(d, [max(0, -(-n * k // block) - d.odd())]), 1)], K=odd_size(d, k), N=odd_size(d, n),
        block_size=odd_size(d, block), quant_type=d.int(0, 1) if not d.odd(0.05) else 7)


def gather_block(d):
    rows, blocks = d.int(1, 4), d.int(1, 3)
    width = 16 * blocks
    kind = d.pick([21, 22])
    data = Bits(kind, [rows, width], d.data(U8, [rows * width // 2], 0, 255).tobytes())
    scales = [rows, blocks] if not d.odd() else [rows, blocks + 1]
    zeros = Bits(kind, [rows, blocks], d.data(U8, [(rows * blocks + 1) // 2], 0, 255).tobytes()) if d.chance(0.5) else None
    at = indices(d, rows, d.shape(0, 2))
    finish(d, "GatherBlockQuantized", [d.input(data, 1), at, d.input(d.data(F32, scales), 1), d.input(zeros, 1)],
           chain=False, gather_axis=0 if not d.odd(0.1) else d.axis(2), quantize_axis=1 if not d.odd(0.1) else d.axis(2),
           block_size=16 if not d.odd(0.1) else d.pick([0, -1, 8, 2**40]))


def embed(d):
    b, s, h, words = d.size(1, 2), d.size(1, 4), d.int(1, 5), d.int(1, 6)
    ids = d.data(I32, [b, s], 0, words - 1)
    segments = d.data(I32, [b, s], 0, 1) if d.chance(0.6) else None
    if ids.size and d.odd():
        ids.reshape(-1)[0] = d.pick([-1, words, MOST])
    if segments is not None and segments.size and d.odd():
        segments.reshape(-1)[0] = d.pick([-1, 2, MOST])
    places = d.data(F32, [max(1, s - d.odd()), h])
    mask = d.data(I32, [b, s], 0, 1) if d.chance(0.5) else None
    finish(d, "EmbedLayerNormalization", [
        ids, segments, d.data(F32, [words, h]), places, d.data(F32, [2, h]) if segments is not None else None,
        d.data(F32, [h]), d.data(F32, [h if not d.odd() else h + 1]), mask], 2, chain=False)


def qattention(d):
    b, s, heads, size, width = d.size(1, 2), d.size(1, 4), d.int(1, 3), d.int(1, 4), d.int(1, 5)
    hidden = heads * size
    t = d.pick([U8, I8])
    mask = np.array([d.int(1, max(1, s)) for _ in range(b)], I32) if d.chance(0.3) else None
    finish(d, "QAttention", [
        small(d, U8, [b, s, width]), d.input(small(d, t, [width, 3 * hidden if not d.odd() else 3 * hidden + 1]), 1),
        d.input(d.data(F32, [3 * hidden]), 1), d.input(scale(d), 1), d.input(scale(d), 1), mask,
        d.input(small(d, U8, [], 60), 1), d.input(small(d, t, [], 60), 1)], chain=False,
        num_heads=odd_size(d, heads), **d.maybe({}, 0.3, unidirectional=d.flag()))


def group_query(d):
    b, s, kv, groups, size = d.size(1, 2), d.size(1, 3), d.int(1, 2), d.int(1, 2), d.pick([8, 16])
    past = d.int(0, 3)
    total = past + s
    state = [b, kv, past, size]
    lengths = np.full([b], total - 1, I32)
    if b and d.odd():
        lengths[0] = d.pick([-1, -2**31, total, MOST])
    whole = d.input(np.array(total if not d.odd() else d.pick([0, -1, total + 5, MOST]), I32), 0.5)
    finish(d, "GroupQueryAttention", [
        d.data(F32, [b, s, kv * groups * size]), d.data(F32, [b, s, kv * size]), d.data(F32, [b, s, kv * size]),
        d.data(F32, state) if past else None, d.data(F32, state) if past else None, lengths, whole], 3, chain=False,
        num_heads=odd_size(d, kv * groups), kv_num_heads=odd_size(d, kv),
        **d.maybe({}, 0.3, scale=d.real(0.1, 1), local_window_size=d.int(1, 3), softcap=d.real(0.5, 3)))


def lstm_quantized(d):
    t, b, i, h = d.size(1, 4), d.size(1, 2), d.int(1, 3), d.int(1, 4)
    n, direction = d.pick([(1, "forward"), (1, "reverse"), (2, "bidirectional")])
    kind = d.pick([U8, I8])
    constant = lambda v: d.input(v, 1)
    zero = lambda: constant(np.full([n], 128 if kind is U8 else 0, kind))
    finish(d, "DynamicQuantizeLSTM", [
        d.data(F32, [t, b, i]), constant(small(d, kind, [n, i, 4 * h])),
        constant(small(d, kind, [n, h, 4 * h if not d.odd() else 4 * h + 1])),
        constant(d.data(F32, [n, 8 * h])) if d.chance(0.5) else None, None, None, None, None,
        constant(scale(d, [n])), zero(), constant(scale(d, [n if not d.odd(0.05) else n + 1])), zero()], 3, chain=False,
        hidden_size=odd_size(d, h), direction=direction)


def nhwc_max_pool(d):
    spatial = [d.size(1, 6) for _ in range(d.int(1, 2))]
    attrs, kernel = window(d, spatial)
    finish(d, "NhwcMaxPool", [small(d, d.pick([U8, I8]), [d.size(1, 2), *spatial, d.size(1, 3)])], kernel_shape=kernel,
           **attrs, **d.maybe({}, 0.3, ceil_mode=d.flag()))


def dynamic_pads(d):
    spatial = [d.int(1, 4), d.int(1, 4)]
    pads = [d.int(0, 1) for _ in range(4)]
    if d.odd():
        pads[0] = d.pick([-1, 9] + HUGE)
    c, m = d.int(1, 2), d.int(1, 2)
    finish(d, "ConvTransposeWithDynamicPads", [
        d.data(F32, [d.size(1, 2), c, *spatial]), d.data(F32, [c, m, d.int(1, 3), d.int(1, 3)]),
        d.shape_input(pads)], chain=False, **d.maybe({}, strides=[d.int(1, 3), d.int(1, 3)]))


def reduce_mean(d):
    t = d.pick([U8, I8])
    shape = d.shape(1)
    finish(d, "QLinearReduceMean", [small(d, t, shape), d.input(scale(d), 1), d.input(small(d, t, [], 60), 1),
                                    d.input(scale(d), 1), d.input(small(d, t, [], 60), 1)],
           axes=d.axes(len(shape), True), keepdims=d.int(0, 1))


def tensor_scatter(d):
    d.version(24)
    b, n, s, w = d.size(1, 2), d.int(1, 4), d.int(1, 3), d.int(1, 3)
    at = d.data(I64, [b], 0, max(0, n - s))
    if b and d.odd():
        at[0] = d.pick([-1, n] + HUGE)
    d.finish("TensorScatter", [d.data(F32, [b, n, w]), d.data(F32, [b, min(s, n) if not d.odd() else n + 1, w]),
                               at if d.chance(0.7) else None], **d.maybe(
        {}, mode=d.pick(["linear", "circular"]), axis=d.pick([1, -2]) if not d.odd() else d.axis(3)))


def range_of(d):
    values = [np.array(d.int(-5, 5), F32), np.array(d.int(-5, 9), F32), np.array(d.pick([1, -1, 2, 0.5]), F32)]
    if d.odd():
        values[2] = np.array(d.pick([0, np.nan, 1e-30]), F32)
    finish(d, "Range", [d.input(v, 0.5) for v in values[:d.int(2, 3)]], chain=False)


def pad(d):
    shape = d.shape(1, 3)
    pads = [d.int(-1 if d.chance(0.2) else 0, 2) for _ in range(2 * len(shape))]
    if d.odd():
        pads[0] = d.pick([-9] + HUGE)
    finish(d, "Pad", [d.data(F32, shape), d.shape_input(pads)], mode=d.pick(["constant", "reflect", "edge"]))


def ms_rotary(d):
    b, s, heads, size, most = d.size(1, 2), d.size(1, 3), d.int(1, 2), 2 * d.int(1, 3), 5
    at = d.data(I64, [b, s], 0, most - 1) if d.chance(0.5) else np.array([d.int(0, 2)], I64)
    if at.size and d.odd():
        at.reshape(-1)[0] = d.pick([-1, most] + HUGE)
    finish(d, "RotaryEmbedding", [d.data(F32, [b, s, heads * size]), at, d.data(F32, [most, size // 2]),
                                  d.data(F32, [most, size // 2])], chain=False,
           **d.maybe({}, 0.4, interleaved=d.int(0, 1)), **({"num_heads": odd_size(d, heads)} if d.odd(0.3) else {}))


def rfft(d):
    finish(d, "Rfft", [d.data(F32, d.shape(0, 2) + [d.size(1, 9)])], signal_ndim=1, onesided=1, normalized=0)


def irfft(d):
    finish(d, "Irfft", [d.data(F32, d.shape(0, 2) + [d.int(2, 6), 2 if not d.odd() else 3])], signal_ndim=1, onesided=1,
           normalized=0)


def sequence_construct(d):
    d.version(11)
    dtype = d.pick([F32, I64, TEXT])
    d.finish("SequenceConstruct", [d.data(dtype if not d.odd(0.05) else I32, d.shape()) for _ in range(d.int(1, 3))],
             chain=False)


def optional_element(d):
    d.version(15)
    made = d.node("Optional", [d.data(d.pick([F32, I64, TEXT]), d.shape())])[0]
    d.finish(d.pick(["OptionalGetElement", "OptionalHasElement"]), [made], chain=False)


def bit_cast(d):
    d.version(26, 26)
    a, to = d.pick([(F32, 6), (I32, 1), (F64, 7), (U8, 3), (F32, 12), (I64, 11), (F32, 7)])
    d.finish("BitCast", [d.data(a, d.shape())], to=to)


def scatter(d):
    d.version(9, 10)
    shape = d.shape(1)
    axis = d.int(0, len(shape) - 1)
    at = element_indices(d, None, shape, axis, unique=True)
    dtype = d.pick(FLOATS + ANY)
    d.finish("Scatter", [d.data(dtype, shape), at, d.data(dtype, at.shape)], axis=axis)


GENERATORS = {
    **{(MS, op): make for op, make in {
        "MatMulBnb4": bnb4, "GatherBlockQuantized": gather_block, "EmbedLayerNormalization": embed,
        "QAttention": qattention, "GroupQueryAttention": group_query, "DynamicQuantizeLSTM": lstm_quantized,
        "NhwcMaxPool": nhwc_max_pool, "ConvTransposeWithDynamicPads": dynamic_pads, "QLinearReduceMean": reduce_mean,
        "Range": range_of, "Pad": pad, "RotaryEmbedding": ms_rotary, "Rfft": rfft, "Irfft": irfft}.items()},
    **{("", op): make for op, make in {
        "TensorScatter": tensor_scatter, "SequenceConstruct": sequence_construct, "Optional": optional_element,
        "BitCast": bit_cast, "Scatter": scatter, "CumProd": cumulative("CumProd", 26)}.items()}}
