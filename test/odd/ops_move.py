# SPDX-License-Identifier: Apache-2.0
"""Operators that move elements or make shapes, and those that gather and scatter."""
from draw import ANY, BOOL, F32, F64, FLOATS, HUGE, I32, I64, NUMBERS, ONNX_TYPES, TEXT, helper_tensor, np

MOVED = ANY + [TEXT]


def value(d, low=0, high=4, types=MOVED):
    shape = d.shape(low, high)
    return d.data(d.pick(types), shape), shape


def transpose(d):
    d.version(7)
    x, shape = value(d, 0, 5)
    perm = [int(a) for a in d.random.permutation(len(shape))]
    if perm and d.odd():
        perm[d.int(0, len(perm) - 1)] = d.pick([-1, 0, len(perm), 2**40])
    elif d.odd(0.05):
        perm = perm[1:] if d.chance(0.5) else perm + [len(perm)]
    d.finish("Transpose", [x], perm=perm if d.chance(0.8) else None)


def concat(d):
    d.version(7)
    dtype, shape = d.pick(MOVED), d.shape(1, 4)
    axis = d.int(0, len(shape) - 1)
    parts = []
    for _ in range(d.int(1, 4)):
        part = list(shape)
        part[axis] = d.size(1, 4) if not d.chance(0.1) else 0
        if d.odd(0.06):
            part[d.int(0, len(part) - 1)] += 1
        parts.append(d.data(dtype, part))
    if d.odd(0.1):
        axis = d.axis(len(shape))
    d.finish("Concat", parts, axis=axis - (len(shape) if d.chance(0.3) and d.version() >= 11 else 0))


def split(d):
    d.version(7)
    x, shape = value(d, 1)
    axis = d.int(0, len(shape) - 1)
    n = shape[axis]
    pieces = d.int(1, min(4, max(1, n)))
    cuts = sorted(d.int(0, n) for _ in range(pieces - 1))
    sizes = [b - a for a, b in zip([0] + cuts, cuts + [n])]
    if d.odd():
        sizes[d.int(0, pieces - 1)] += d.pick([1, -1, -7, 2**40])
    attrs = d.maybe({}, axis=axis if not d.odd(0.1) else d.axis(len(shape)))
    if attrs.get("axis") == axis and d.chance(0.3):
        attrs["axis"] -= len(shape)
    inputs = [x]
    equal = d.chance(0.3)
    if not equal and d.version() < 13:
        attrs["split"] = sizes
    elif not equal:
        inputs.append(d.shape_input(sizes))
    elif d.version() >= 18:
        attrs["num_outputs"] = pieces + (1 if d.odd() else 0)
    d.finish("Split", inputs, pieces, **attrs)


def pad(d):
    d.version(7)
    dtype = d.pick(NUMBERS + [BOOL]) if d.version() >= 13 else d.pick(FLOATS)
    shape = d.shape(0 if d.odd(0.05) else 1)
    mode = d.pick(["constant", "constant", "reflect", "edge"] + (["wrap"] if d.version() >= 19 else []))
    x = d.data(dtype, shape)
    if d.version() < 11:
        pads = [d.int(-1 if d.chance(0.2) else 0, 3) for _ in range(2 * len(shape))]
        return d.finish("Pad", [x], pads=pads, **d.maybe({}, mode=mode, value=d.real()))
    axes = d.axes(len(shape)) if d.version() >= 18 and d.chance(0.4) else None
    count = len(shape) if axes is None else len(axes)
    pads = [d.int(-2 if d.chance(0.2) else 0, 3) for _ in range(2 * count)]
    if pads and d.odd():
        pads[d.int(0, len(pads) - 1)] = d.pick([-9, 12] + HUGE)
    if d.odd(0.05):
        pads = pads[1:]
    fill = d.data(dtype, []) if d.chance(0.5) else None
    d.finish("Pad", [x, d.shape_input(pads), fill, None if axes is None else d.shape_input(axes, d.pick([I64, I32]))],
             mode=d.pick(["mirror", ""]) if d.odd(0.04) else mode)


def blocks(op):
    def make(d):
        d.version(7)
        b, c = d.int(1, 3), d.int(1, 3)
        shape = [d.size(1, 3), c * b * b, d.size(1, 4), d.size(1, 4)]
        if op == "SpaceToDepth":
            shape = [d.size(1, 3), c, b * d.size(1, 3), b * d.size(1, 3)]
        if d.odd():
            shape[d.int(1, 3)] += 1
        if d.odd(0.08):
            shape = shape[1:] if d.chance(0.5) else shape + [2]
        attrs = {"blocksize": b if not d.odd(0.1) else d.pick([0, -1, 7, 2**31, 2**40])}
        if op == "DepthToSpace" and d.version() >= 11:
            d.maybe(attrs, mode=d.pick(["DCR", "CRD"]) if not d.odd(0.05) else "XYZ")
        d.finish(op, [d.data(d.pick(FLOATS), shape)], **attrs)
    return make


def trilu(d):
    d.version(14)
    x, _ = value(d, 2 if not d.odd(0.1) else 0, types=ANY)
    k = None if d.chance(0.3) else d.shape_input([d.pick(HUGE) if d.odd() else d.int(-4, 4)], rank=0)
    d.finish("Trilu", [x, k], **d.maybe({}, upper=d.flag()))


def reverse_sequence(d):
    d.version(10)
    x, shape = value(d, 2)
    batch = d.int(0, 1)
    lengths = [d.int(1, max(1, shape[1 - batch])) for _ in range(shape[batch])]
    if lengths and d.odd():
        lengths[0] = d.pick([0, -1, shape[1 - batch] + 1] + HUGE)
    if d.odd(0.05):
        lengths = lengths + [1]
    d.finish("ReverseSequence", [x, np.array(lengths, I64)], batch_axis=batch, time_axis=1 - batch if not d.odd(0.1)
             else d.axis(len(shape)))


def center_crop_pad(d):
    d.version(18)
    x, shape = value(d, 1, types=[F32])
    axes = d.axes(len(shape), True) if d.chance(0.5) else None
    to = [d.int(0 if d.odd() else 1, 7) for _ in (shape if axes is None else axes)]
    if to and d.odd(0.1):
        to[0] = d.pick([-1, -2**40])
    d.finish("CenterCropPad", [x, d.shape_input(to)], axes=axes)


def reshape(d):
    d.version(7)
    x, shape = value(d)
    count, rest = int(np.prod(shape)), []
    while count > 1 and d.chance(0.8):
        f = d.pick([f for f in range(1, count + 1) if count % f == 0])
        rest.append(f)
        count //= f
    rest.append(count)
    d.random.shuffle(rest)
    if d.chance(0.4):
        rest[d.int(0, len(rest) - 1)] = -1
    if rest == [1] and d.chance(0.5):
        rest = []
    zeros = [i for i in range(min(len(rest), len(shape))) if rest[i] == shape[i]]
    if zeros and d.chance(0.4):
        rest[d.pick(zeros)] = 0
    if d.odd():
        rest.insert(0, d.pick([0, -1, 1, 2, -2] + HUGE))
    d.finish("Reshape", [x, d.shape_input(rest)], **(d.maybe({}, 0.3, allowzero=d.flag()) if d.version() >= 14 else {}))


def flatten(d):
    d.version(9)
    x, shape = value(d, types=ANY)
    d.finish("Flatten", [x], axis=d.pick([None, d.axis(len(shape)), len(shape)]))


def squeeze(d):
    d.version(7)
    shape = [1 if d.chance(0.5) else n for n in d.shape(0, 5)]
    x = d.data(d.pick(MOVED), shape)
    ones = [i for i, n in enumerate(shape) if n == 1]
    axes = [i - (len(shape) if d.chance(0.3) and d.version() >= 11 else 0) for i in ones if d.chance(0.7)]
    if d.odd():
        axes.append(d.axis(len(shape)))
    attribute = d.version() < 13
    if d.chance(0.25):
        axes = None
    d.finish("Squeeze", [x] + ([] if attribute or axes is None else [d.shape_input(axes)]),
             axes=axes if attribute else None)


def unsqueeze(d):
    d.version(7)
    x, shape = value(d, 0, 3)
    extra = d.int(1, 3)
    axes = [int(a) for a in d.random.permutation(len(shape) + extra)[:extra]]
    if d.version() >= 11:
        axes = [a - len(shape) - extra if d.chance(0.3) else a for a in axes]
    if d.odd():
        axes[0] = d.pick([axes[-1], len(shape) + extra, -len(shape) - extra - 1] + HUGE)
    attribute = d.version() < 13
    d.finish("Unsqueeze", [x] + ([] if attribute else [d.shape_input(axes)]), axes=axes if attribute else None)


def expand(d):
    d.version(8)
    x, shape = value(d)
    to = [d.size() if n == 1 else n for n in shape]
    to = [1 if d.chance(0.2) else n for n in to]
    to = d.shape(0, 2) + to if d.chance(0.3) else to[d.int(0, len(to)):] if d.chance(0.3) else to
    if to and d.odd():
        to[d.int(0, len(to) - 1)] = d.pick([-1, 7, 0] + HUGE)
    d.finish("Expand", [x, d.shape_input(to)])


def tile(d):
    d.version(7)
    x, shape = value(d)
    repeats = [d.int(0 if d.chance(0.1) else 1, 3) for _ in shape]
    if d.odd():
        repeats = repeats + [2] if d.chance(0.4) or not repeats else [d.pick([-1] + HUGE)] + repeats[1:]
    d.finish("Tile", [x, d.shape_input(repeats)])


def shape_of(d):
    d.version(7)
    x, shape = value(d)
    attrs = {}
    if d.version() >= 15:
        d.maybe(attrs, 0.5, start=d.pick([d.int(-6, 6)] + HUGE), end=d.pick([d.int(-6, 6), d.int(-6, 6)] + HUGE))
    d.finish("Shape", [x], **attrs)


def size_of(d):
    d.version(7)
    d.finish("Size", [value(d)[0]])


def slice_of(d):
    d.version(7)
    x, shape = value(d, 1)
    axes = [int(a) for a in d.random.permutation(len(shape))[:d.int(1, len(shape))]]
    bound = lambda: d.pick([d.int(-7, 7), d.int(-7, 7), d.int(-7, 7)] + HUGE) if d.chance(0.3) else d.int(-6, 6)
    starts, ends = [bound() for _ in axes], [bound() for _ in axes]
    if d.version() < 10:
        return d.finish("Slice", [x], axes=axes if len(axes) < len(shape) or d.chance(0.5) else sorted(axes),
                        starts=starts, ends=ends)
    steps = [d.pick([1, 1, 2, -1, -2, 3, -3]) if d.chance(0.8) else d.pick([2**31, -2**31, 2**63 - 1, -2**63])
             for _ in axes] if d.chance(0.6) else None
    if steps and d.odd(0.1):
        steps[0] = 0
    if d.odd():
        axes[0] = d.pick([axes[-1], len(shape), -len(shape) - 1] + HUGE)
    axes = [a - len(shape) if d.chance(0.3) and 0 <= a < len(shape) else a for a in axes]
    if d.chance(0.2) and len(axes) == len(shape):
        axes = None
    dtype = I64
    if max(map(abs, starts + ends + (axes or []) + (steps or []))) < 2**31 and d.chance(0.3):
        dtype = I32
    if d.odd(0.05):
        ends = ends + [1]
    one = lambda v: None if v is None else d.shape_input(v, dtype)
    d.finish("Slice", [x, one(starts), one(ends), one(axes), one(steps)])


def index_value(d, n, odd=0.15):
    if d.odd(odd):
        return d.pick([n, -n - 1, n + 5] + HUGE)
    return d.int(-n, n - 1) if n else 0


def indices(d, n, shape):
    dtype = d.pick([I64, I64, I32])
    out = np.array([index_value(d, n, 0.1) for _ in range(int(np.prod(shape)))] or [0][:0], I64)
    return np.clip(out, np.iinfo(dtype).min, np.iinfo(dtype).max).astype(dtype).reshape(shape)


def gather(d):
    d.version(7)
    x, shape = value(d, 1)
    axis = d.int(0, len(shape) - 1)
    at = indices(d, shape[axis], d.shape(0, 3))
    if d.odd(0.1):
        axis = d.axis(len(shape))
    d.finish("Gather", [x, at], axis=d.pick([axis, axis - len(shape)]) if axis or d.chance(0.5) else None)


def element_indices(d, x, shape, axis, unique=False):
    to = [d.int(0, n) if d.empty else d.int(min(1, n), n) for n in shape]
    if not unique:
        to[axis] = d.size(1, 6)
    if d.odd(0.1):
        to[d.int(0, len(to) - 1)] += 2
    if not unique:
        return indices(d, shape[axis], to)
    out = np.zeros(to, I64)
    if out.size:
        order = [int(i) - (shape[axis] if d.chance(0.3) else 0) for i in d.random.permutation(max(1, shape[axis]))]
        order = np.resize(np.array(order, I64), to[axis])
        out = out + order.reshape([-1 if i == axis else 1 for i in range(len(to))])
        if d.odd(0.1):
            out.reshape(-1)[0] = index_value(d, shape[axis], 1.0)
    return out


def gather_elements(d):
    d.version(11)
    x, shape = value(d, 1)
    axis = d.int(0, len(shape) - 1)
    at = element_indices(d, x, shape, axis)
    if d.odd(0.1):
        axis = d.axis(len(shape))
    d.finish("GatherElements", [x, at], axis=d.pick([axis, axis - len(shape)]) if axis else None)


def scatter_elements(d, op="ScatterElements"):
    d.version(11)
    x, shape = value(d, 1, types=NUMBERS)
    axis = d.int(0, len(shape) - 1)
    attrs = {}
    if d.version() >= 16:
        d.maybe(attrs, reduction=d.pick(["none", "add", "mul"] + (["max", "min"] if d.version() >= 18 else []))
                if not d.odd(0.05) else "mean")
    at = element_indices(d, x, shape, axis, unique=attrs.get("reduction", "none") == "none")
    updates = d.data(x.dtype.type, at.shape if not d.odd(0.05) else list(at.shape) + [1])
    if d.odd(0.1):
        axis = d.axis(len(shape))
    d.finish(op, [x, at, updates], axis=d.pick([axis, axis - len(shape)]) if axis else None, **attrs)


def nd_indices(d, shape, batch, lead):
    last = d.int(0 if d.odd(0.1) else 1, len(shape) - batch + (1 if d.odd(0.1) else 0))
    full = shape[:batch] + lead + [last]
    dims = (shape[batch:] + [3])[:last]
    flat = [[index_value(d, n, 0.04) for n in dims] for _ in range(int(np.prod(full[:-1])))]
    return np.array(flat, I64).reshape(full), last


def gather_nd(d):
    d.version(11)
    x, shape = value(d, 1)
    batch = d.int(0, len(shape) - 1) if d.version() >= 12 and d.chance(0.4) else 0
    at, _ = nd_indices(d, shape, batch, d.shape(0, 2, 3))
    attrs = d.maybe({}, batch_dims=batch if not d.odd(0.05) else d.pick([-1, len(shape)] + HUGE)) if not batch else {
        "batch_dims": batch}
    if d.version() < 12:
        attrs = {}
    d.finish("GatherND", [x, at], **attrs)


def scatter_nd(d):
    d.version(11)
    x, shape = value(d, 1, types=NUMBERS)
    attrs = {}
    if d.version() >= 16:
        d.maybe(attrs, reduction=d.pick(["none", "add", "mul"] + (["max", "min"] if d.version() >= 18 else [])))
    at, last = nd_indices(d, shape, 0, d.shape(0, 2, 3))
    if attrs.get("reduction", "none") == "none" and len(at.reshape(-1, last or 1)) > 1:
        lead = list(at.shape[:-1])
        lead = [1 for _ in lead]  # one place: which of two updates wins is not defined
        at = at.reshape(-1, last)[:1].reshape(lead + [last]) if last else at
    updates = list(at.shape[:-1]) + shape[last:]
    if d.odd(0.1):
        updates = updates + [1] if d.chance(0.5) or not updates else updates[:-1]
    d.finish("ScatterND", [x, at, d.data(x.dtype.type, updates)], **attrs)


def compress(d):
    d.version(9)
    x, shape = value(d, 1, types=MOVED)
    axis = d.int(0, len(shape) - 1) if d.chance(0.6) else None
    n = int(np.prod(shape)) if axis is None else shape[axis]
    if axis is not None and d.chance(0.3) and d.version() >= 11:
        axis -= len(shape)
    if axis is not None and d.odd(0.1):
        axis = d.axis(len(shape))
    d.finish("Compress", [x, d.data(BOOL, [max(0, n + (d.int(-2, 0) if not d.odd() else d.int(1, 3)))])], axis=axis)


def unique(d):
    d.version(11)
    x, shape = value(d, 0 if d.odd(0.1) else 1, 3, types=[F32, F64, I64, I32, TEXT] if d.chance(0.7) else MOVED)
    d.finish("Unique", [x], d.int(1, 4), **d.maybe({}, 0.5, axis=d.axis(len(shape)), sorted=d.flag()))


def non_zero(d):
    d.version(9)
    d.finish("NonZero", [value(d, types=ANY)[0]])


def one_hot(d):
    d.version(9)
    kind, depth_kind = d.pick([I64, I32, F32]), d.pick([I64, I32, F32])
    depth = d.int(0 if d.odd(0.1) else 1, 6) if not d.odd(0.05) else -2
    x = d.data(kind, d.shape(0, 3), -depth - 1, depth + 1)
    if d.special:
        x = np.where(np.isfinite(x), x, 0).astype(kind)
    depth_value = np.array(depth, depth_kind) if d.chance(0.6) else np.array([depth], depth_kind)
    d.finish("OneHot", [np.asarray(x).round().astype(kind), d.input(depth_value, 0.6), d.data(d.pick([F32, I64, I32]),
                                                                                     [2 if not d.odd(0.05) else 3])],
             **d.maybe({}, axis=d.axis(x.ndim + 1)))


def range_of(d):
    d.version(11)
    dtype = d.pick([F32, F64, I64, I32])
    start, limit = d.data(dtype, [], -8, 8), d.data(dtype, [], -8, 8)
    delta = np.array(d.pick([1, -1, 2, -3, 0.5 if np.dtype(dtype).kind == "f" else 1]), dtype)
    if d.odd():
        delta = np.array(0, dtype)
    d.finish("Range", [d.input(v, 0.5) for v in (start, limit, delta)])


def eye_like(d):
    d.version(9)
    x = d.data(d.pick([F32, F64, I64, I32]), d.rank_shape(2 if not d.odd(0.1) else d.pick([1, 3])))
    d.finish("EyeLike", [x], **d.maybe({}, 0.5, k=d.pick(HUGE) if d.odd() else d.int(-6, 6),
                                       dtype=ONNX_TYPES[d.pick([F32, F64, I64, I32])]))


def constant_of_shape(d):
    d.version(9)
    dims = d.shape()
    if dims and d.odd():
        dims[0] = d.pick([-1, 2**62, -2**63, 2**40])
    fill = helper_tensor(d.data(d.pick(ANY), [1 if not d.odd(0.05) else 2]))
    d.finish("ConstantOfShape", [d.shape_input(dims)], value=fill if d.chance(0.7) else None)


GENERATORS = {("", op): make for op, make in {
    "Transpose": transpose, "Concat": concat, "Split": split, "Pad": pad, "DepthToSpace": blocks("DepthToSpace"),
    "SpaceToDepth": blocks("SpaceToDepth"), "Trilu": trilu, "ReverseSequence": reverse_sequence,
    "CenterCropPad": center_crop_pad, "Reshape": reshape, "Flatten": flatten, "Squeeze": squeeze,
    "Unsqueeze": unsqueeze, "Expand": expand, "Tile": tile, "Shape": shape_of, "Size": size_of, "Slice": slice_of,
    "Gather": gather, "GatherElements": gather_elements, "ScatterElements": scatter_elements, "GatherND": gather_nd,
    "ScatterND": scatter_nd, "Compress": compress, "Unique": unique, "NonZero": non_zero, "OneHot": one_hot,
    "Range": range_of, "EyeLike": eye_like, "ConstantOfShape": constant_of_shape}.items()}
