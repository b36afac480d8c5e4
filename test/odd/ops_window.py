# SPDX-License-Identifier: Apache-2.0
"""Convolutions, pools, resizing and what else looks at windows of an image."""
from draw import F16, F32, F64, FLOATS, HUGE, I8, I32, I64, U8, np

AUTO = ["NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"]


def image(d, low=1, high=3, limit=7):
    return [d.size(low, limit) for _ in range(d.int(1, high))]


def window(d, spatial, dilations=True, fit=True):
    """Attributes of a window over |spatial| dimensions, and its size."""
    rank = len(spatial)
    kernel = [d.int(1, min(4, max(1, n))) if fit and d.chance(0.8) else d.int(1, 5) for n in spatial]
    attrs = {}
    auto = d.pick(AUTO) if d.chance(0.35) else None
    if auto:
        attrs["auto_pad"] = auto if not d.odd(0.05) else "SAME"
    d.maybe(attrs, strides=[d.int(1, 3) if d.chance(0.85) else d.int(4, 9) for _ in range(rank)])
    if dilations:
        d.maybe(attrs, 0.35, dilations=[d.int(1, 3) for _ in range(rank)])
    if auto in (None, "NOTSET") and d.chance(0.6):
        attrs["pads"] = [d.int(0, max(0, k - 1) if d.chance(0.8) else 4) for k in kernel] + [
            d.int(0, max(0, k - 1) if d.chance(0.8) else 4) for k in kernel]
    if d.odd():
        name = d.pick(["strides", "pads", "dilations", "kernel"])
        odd = d.pick([0, -1, 2**31, 2**40, 2**62, -2**63, 1000])
        if name == "kernel":
            kernel[0] = d.pick([0, -1])
        elif name == "pads" and auto in (None, "NOTSET"):
            attrs["pads"] = attrs.get("pads", [0] * 2 * rank)
            attrs["pads"][d.int(0, 2 * rank - 1)] = d.pick([-1, -3, 9, odd])
        elif dilations or name == "strides":
            name = name if name != "pads" else "strides"
            attrs[name] = attrs.get(name, [1] * rank)
            attrs[name][0] = odd
    if d.odd(0.05):
        name = d.pick(["strides", "pads"])
        attrs[name] = [1] * (rank + 1)
    return attrs, kernel


def conv_parts(d, transposed=False):
    spatial = image(d, limit=6 if transposed else 8)
    attrs, kernel = window(d, spatial)
    group = d.pick([1, 1, 1, 2, 3])
    if d.chance(0.15):
        group = d.int(1, 6)
    each, out = d.int(1, 3), d.int(1, 3)
    if group > 1 and d.chance(0.5):
        each = 1
    channels, filters = group * each, group * out
    if group != 1 or d.chance(0.3):
        attrs["group"] = group if not d.odd(0.1) else d.pick([0, -1, 5, 2**40])
    x = [d.size(1, 3), channels, *spatial]
    w = [channels, out, *kernel] if transposed else [filters, each, *kernel]
    if d.odd(0.08):
        w[d.int(0, len(w) - 1)] += 1
    if d.odd(0.05):
        x = x + [3] if d.chance(0.5) else x[:-1]
    w = [max(0, n) for n in w]
    if d.chance(0.5) or min(kernel) < 1:
        attrs["kernel_shape"] = kernel if not d.odd(0.05) else [k + 1 for k in kernel]
    return x, w, filters, attrs


def conv(op):
    def make(d):
        d.version(7)
        x, w, filters, attrs = conv_parts(d, op == "ConvTranspose")
        dtype = d.pick([F32, F32, F32, F32, F64]) if op == "ConvTranspose" else d.pick([F32, F32, F32, F32, F64])
        bias = d.data(dtype, [filters if not d.odd(0.06) else filters + 1]) if d.chance(0.5) else None
        if op == "ConvTranspose":
            rank = len(x) - 2
            d.maybe(attrs, 0.3, output_padding=[d.int(0, 2) for _ in range(rank)])
            if d.chance(0.15):
                attrs["output_shape"] = [d.int(1, 14) for _ in range(rank)]
            if d.odd(0.05):
                attrs["output_padding"] = [d.pick([-1, 7, 2**40])] * rank
        d.finish(op, [d.data(dtype, x), d.input(d.data(dtype, w), 0.5), bias], **attrs)
    return make


def conv_integer(d):
    d.version(10)
    x, w, filters, attrs = conv_parts(d)
    tx, tw = d.pick([U8, U8, I8]), d.pick([U8, I8])
    zx = d.data(tx, [], 0, 9) if d.chance(0.6) else None
    zw = d.data(tw, [] if d.chance(0.6) else [filters], 0, 9) if d.chance(0.5) else None
    d.finish("ConvInteger", [d.data(tx, x, 0, 100), d.input(d.data(tw, w, 0, 100), 0.5), zx, zw], **attrs)


def qlinear_conv(d):
    d.version(10)
    x, w, filters, attrs = conv_parts(d)
    tx, tw = d.pick([U8, U8, I8]), d.pick([U8, I8])
    form = [] if d.chance(0.6) else [filters]
    low = -128 if tx is I8 else 0
    scale = lambda s: (np.abs(d.data(F32, s, 0.01, 0.1)) + F32(0.01)).astype(F32)
    bias = d.data(I32, [filters], -300, 300) if d.chance(0.5) else None
    d.finish("QLinearConv", [d.data(tx, x, low, 120), d.input(scale([]), 1), d.input(d.data(tx, [], low, 100), 1),
                             d.input(d.data(tw, w, 0, 100), 1), d.input(scale(form), 1),
                             d.input(np.zeros(form, tw) if d.chance(0.5) else d.data(tw, form, 0, 50), 1),
                             d.input(scale([]) * F32(30), 1), d.input(d.data(tx, [], low, 100), 1),
                             d.input(bias, 1)], **attrs)


def pool(op):
    def make(d):
        d.version(7)
        spatial = image(d)
        with_dilations = (op == "MaxPool" and d.version() >= 10) or (op == "AveragePool" and d.version() >= 19) or (
            op == "LpPool" and d.version() >= 18)
        attrs, kernel = window(d, spatial, with_dilations)
        attrs["kernel_shape"] = kernel if not d.odd(0.05) else kernel[1:] + [2, 2]
        ceil = (op in ("MaxPool", "AveragePool") and d.version() >= 10) or (op == "LpPool" and d.version() >= 18)
        if ceil:
            d.maybe(attrs, 0.4, ceil_mode=d.flag())
        if op == "AveragePool":
            d.maybe(attrs, 0.5, count_include_pad=d.flag())
        if op == "LpPool":
            d.maybe(attrs, 0.7, p=d.int(1, 4) if not d.odd(0.05) else d.pick([0, -1]))
        outputs = 1
        if op == "MaxPool" and d.version() >= 8:
            d.maybe(attrs, 0.2, storage_order=d.flag())
            outputs = d.int(1, 2)
        types = [F32, F32, F32, F64] + ([F16] if op != "LpPool" else []) + (
            [U8, I8] if op == "MaxPool" and d.version() >= 12 else [])
        x = [d.size(1, 3), d.size(1, 4), *spatial]
        if d.odd(0.04):
            x = x[:d.int(0, 2)]
        d.finish(op, [d.data(d.pick(types), x)], outputs, **attrs)
    return make


def global_pool(op):
    def make(d):
        d.version(7)
        x = [d.size(1, 3), d.size(1, 4), *image(d)]
        if d.odd(0.1):
            x = x[:d.int(0, 2)]
        attrs = d.maybe({}, p=d.int(1, 4)) if op == "GlobalLpPool" else {}
        d.finish(op, [d.data(d.pick([F32, F32, F64]), x)], **attrs)
    return make


def lrn(d):
    d.version(7)
    attrs = d.maybe({"size": d.pick([1, 3, 5, 3, 7] if not d.odd() else [0, -1, 2, 2**40])}, alpha=d.real(0, 1),
                    beta=d.real(0, 1), bias=d.real(0.5, 2))
    d.finish("LRN", [d.data(F32, [d.size(), d.size(), *(image(d) if d.chance(0.2) else [d.size(), d.size()])])], **attrs)


def max_unpool(d):
    d.version(9)
    spatial = image(d, high=2, limit=4)
    x = [d.size(1, 2), d.size(1, 3), *spatial]
    kernel = [d.int(1, 3) for _ in spatial]
    strides = [d.int(1, 3) for _ in spatial]
    out = [(n - 1) * s + k for n, s, k in zip(spatial, strides, kernel)]
    top = max(1, x[0] * x[1] * int(np.prod(out)))
    at = d.random.permutation(max(top, int(np.prod(x))))[:int(np.prod(x))].reshape(x) % top
    if at.size and d.odd():
        at.reshape(-1)[0] = d.pick([-1, top, 2**40])
    sized = np.array(x[:2] + [n + d.int(0, 2) for n in out] if not d.odd() else [1, 1, 1], I64) if d.chance(
        0.3) else None
    attrs = {"kernel_shape": kernel, "strides": strides}
    if d.chance(0.2):
        attrs["pads"] = [d.int(0, k - 1) for k in kernel] * 2
        at = at * 0 + np.arange(at.size).reshape(x) % max(1, min(top, at.size))
    d.finish("MaxUnpool", [d.data(F32, x), at.astype(I64), sized], **attrs)


def roi_align(d):
    d.version(10)
    n, c, h, w = d.size(1, 2), d.size(1, 3), d.size(1, 7), d.size(1, 7)
    count = d.size(1, 3)
    rois = d.data(F32, [count, 4 if not d.odd(0.05) else 5], -2, 8)
    at = np.array([d.int(0, max(0, n - 1)) for _ in range(count)], I64)
    if count and d.odd(0.1):
        at[0] = d.pick([-1, n, 2**40])
    attrs = d.maybe({}, mode=d.pick(["avg", "max"]), output_height=d.int(1, 3), output_width=d.int(1, 3),
                    sampling_ratio=d.int(0, 3), spatial_scale=d.real(0.2, 1.5))
    if d.version() >= 16:
        d.maybe(attrs, coordinate_transformation_mode=d.pick(["half_pixel", "output_half_pixel"]))
    if d.odd(0.1):
        attrs[d.pick(["output_height", "sampling_ratio"])] = d.pick([0, -1])
    d.finish("RoiAlign", [d.data(F32, [n, c, h, w]), rois, at], **attrs)


def max_roi_pool(d):
    d.version(7)
    n, count = d.int(1, 2), d.size(1, 3)
    rois = np.array([[d.int(0, n - 1)] + [d.int(0, 6) for _ in range(4)] for _ in range(count)], F32).reshape(count, 5)
    if count and d.odd(0.1):
        rois[0, 0] = d.pick([-1, n, 1e9])
    shape = [d.int(1, 3), d.int(1, 3)] if not d.odd(0.1) else d.pick([[0, 1], [-1, 2], [2]])
    d.finish("MaxRoiPool", [d.data(F32, [n, d.size(1, 3), d.int(1, 7), d.int(1, 7)]), rois], pooled_shape=shape,
             **d.maybe({}, spatial_scale=d.real(0.2, 1.5)))


def non_max_suppression(d):
    d.version(10)
    b, c, n = d.size(1, 2), d.size(1, 3), d.size(1, 6)
    scalar = lambda v, t: d.input(np.array(v, t) if d.chance(0.5) else np.array([v], t), 0.5)
    top = scalar(d.int(0, 4) if not d.odd(0.1) else d.pick([-1, 2**40]), I64) if d.chance(0.8) else None
    iou = scalar(d.real(0, 1) if not d.odd(0.1) else d.pick([-1.0, 2.0, float("nan")]), F32) if d.chance(0.7) else None
    score = scalar(d.real(-1, 1), F32) if d.chance(0.5) else None
    boxes = d.data(F32, [b, n, 4], 0, 4)
    d.finish("NonMaxSuppression", [boxes, d.data(F32, [b, c, n if not d.odd(0.05) else n + 1]), top, iou, score],
             **d.maybe({}, center_point_box=d.flag()))


def resize(d):
    d.version(10)
    rank = d.int(1, 4) if d.chance(0.4) else 4
    shape = [d.size(1, 2), d.size(1, 2), d.size(1, 6), d.size(1, 6)][4 - rank:] if d.chance(0.7) else d.rank_shape(rank)
    mode = d.pick(["nearest", "linear"] + (["cubic"] if d.version() >= 11 else []))
    moved = range(max(0, rank - 2), rank) if d.chance(0.8) else range(rank)
    scale = [d.pick([0.5, 2.0, 1.5, 0.7, 3.0, 1.0]) if i in moved else 1.0 for i in range(rank)]
    sizes = [d.int(1, 9) if i in moved else n for i, n in enumerate(shape)]
    if d.odd():
        scale[0] = d.pick([0.0, -1.0, float("nan"), 1e30, 1e-9])
        sizes[0] = d.pick([0, -1, 2**40])
    x = d.data(d.pick([F32, F32, F32, U8, F16, I32]) if d.version() >= 11 else F32, shape)
    scales = d.input(np.array(scale, F32), 0.7)
    if d.version() == 10:
        return d.finish("Resize", [x, scales], mode=mode)
    attrs = {"mode": mode}
    modes = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"] + (
        ["tf_half_pixel_for_nn"] if d.version() < 13 else []) + (["half_pixel_symmetric"] if d.version() >= 19 else [])
    crop = d.chance(0.1)
    if crop:
        attrs["coordinate_transformation_mode"] = "tf_crop_and_resize"
        d.maybe(attrs, extrapolation_value=d.real())
    else:
        d.maybe(attrs, coordinate_transformation_mode=d.pick(modes))
    if mode == "nearest":
        d.maybe(attrs, nearest_mode=d.pick(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]))
    if mode == "cubic":
        d.maybe(attrs, 0.4, cubic_coeff_a=d.pick([-0.5, -0.75, 0.3]))
    d.maybe(attrs, 0.25, exclude_outside=d.flag())
    if d.version() >= 18:
        if mode != "nearest":
            d.maybe(attrs, 0.3, antialias=d.flag())
        if d.chance(0.25):
            axes = [i for i in moved if d.chance(0.8)] or [rank - 1]
            scale, sizes = [scale[i] for i in axes], [sizes[i] for i in axes]
            attrs["axes"] = [a - rank if d.chance(0.3) else a for a in axes] if not d.odd(0.1) else d.axes(rank, True)
            scales = d.input(np.array(scale, F32), 0.7)
            d.maybe(attrs, 0.6, keep_aspect_ratio_policy=d.pick(["stretch", "not_larger", "not_smaller"]))
    roi = None
    if crop:
        count = len(scale)
        roi = d.input(np.array([d.real(0, 0.4) for _ in range(count)] + [d.real(0.5, 1) for _ in range(count)], F32), 0.7)
    by_size = d.chance(0.5) or "keep_aspect_ratio_policy" in attrs
    if d.version() < 13 and roi is None:
        roi = d.input(np.zeros([0], F32), 1)
    if by_size:
        d.finish("Resize", [x, roi, d.input(np.zeros([0], F32), 1) if d.version() < 13 else None, d.shape_input(sizes)],
                 **attrs)
    else:
        d.finish("Resize", [x, roi, scales], **attrs)


def upsample(d):
    d.version(7, 9)
    shape = d.rank_shape(d.pick([4, 4, 2, 3]))
    scale = [1.0] * (len(shape) - 2) + [d.pick([1.0, 2.0, 1.5, 3.0]) for _ in range(2)]
    if d.odd(0.1):
        scale[0] = d.pick([0.5, 0.0, -1.0])
    x, mode = d.data(F32, shape), d.pick(["nearest", "linear"])
    if d.version() < 9:
        return d.finish("Upsample", [x], mode=mode, scales=scale)
    d.finish("Upsample", [x, d.input(np.array(scale, F32), 0.7)], mode=mode)


def grid_sample(d):
    d.version(16)
    new = d.version() >= 20
    volume = new and d.chance(0.3)
    x = [d.size(1, 2), d.size(1, 2)] + [d.size(1, 5) for _ in range(3 if volume else 2)]
    grid = [x[0] if not d.odd(0.05) else x[0] + 1] + [d.size(1, 4) for _ in range(len(x) - 2)] + [
        len(x) - 2 if not d.odd(0.05) else 4]
    modes = (["linear", "nearest"] + ([] if volume else ["cubic"])) if new else ["bilinear", "nearest", "bicubic"]
    d.finish("GridSample", [d.data(F32, x), d.data(F32, grid, -1.5, 1.5)], **d.maybe(
        {}, mode=d.pick(modes), padding_mode=d.pick(["zeros", "border", "reflection"]), align_corners=d.flag()))


def affine_grid(d):
    d.version(20)
    volume = d.chance(0.3)
    n = d.size(1, 2)
    size = [n, d.size(1, 2)] + [d.int(1, 4) for _ in range(3 if volume else 2)]
    if d.odd(0.1):
        size[d.int(0, 3)] = d.pick([0, -1, 2**40])
    theta = [n, 3, 4] if volume else [n, 2, 3]
    if d.odd(0.05):
        theta[0] += 1
    d.finish("AffineGrid", [d.data(d.pick([F32, F32, F64]), theta), d.shape_input(size)],
             **d.maybe({}, align_corners=d.flag()))


def col2im(d):
    d.version(18)
    rank = d.int(1, 2) if d.chance(0.8) else 3
    block = [d.int(1, 3) for _ in range(rank)]
    shape = [d.int(3, 6) for _ in range(rank)]
    attrs = d.maybe({}, 0.4, strides=[d.int(1, 2) for _ in range(rank)], dilations=[d.int(1, 2) for _ in range(rank)],
                    pads=[d.int(0, 1) for _ in range(2 * rank)])
    strides, dil, pads = (attrs.get(k, [v] * (2 * rank)) for k, v in (("strides", 1), ("dilations", 1), ("pads", 0)))
    places = [(shape[i] + pads[i] + pads[i + rank] - dil[i] * (block[i] - 1) - 1) // strides[i] + 1
              for i in range(rank)]
    count = max(0, int(np.prod([max(0, p) for p in places])) + (1 if d.odd(0.05) else 0))
    channels = d.int(1, 3) * int(np.prod(block)) + (1 if d.odd(0.05) else 0)
    if d.odd(0.1):
        shape[0] = d.pick([0, -1, 1, 2**40])
    d.finish("Col2Im", [d.data(F32, [d.size(1, 2), channels, count]), d.shape_input(shape), d.shape_input(block)],
             **attrs)


def deform_conv(d):
    d.version(19)
    spatial = [d.int(2, 5), d.int(2, 5)]
    kernel = [d.int(1, 3), d.int(1, 3)]
    kernel = [min(k, n) for k, n in zip(kernel, spatial)]
    group, offsets = d.pick([1, 1, 2]), d.pick([1, 1, 2])
    channels = group * offsets * d.int(1, 2)
    attrs = d.maybe({}, 0.4, strides=[d.int(1, 2), d.int(1, 2)], pads=[d.int(0, 1) for _ in range(4)])
    strides, pads = attrs.get("strides", [1, 1]), attrs.get("pads", [0] * 4)
    out = [(spatial[i] + pads[i] + pads[i + 2] - kernel[i]) // strides[i] + 1 for i in range(2)]
    n, filters, area = d.size(1, 2), group * d.int(1, 2), kernel[0] * kernel[1]
    offset = [n, offsets * 2 * area, *out]
    if d.odd(0.1):
        offset[d.int(1, 3)] += 1
    mask = d.data(F32, [n, offsets * area, *out]) if d.chance(0.5) else None
    if group != 1:
        attrs["group"] = group
    if offsets != 1:
        attrs["offset_group"] = offsets
    d.finish("DeformConv", [d.data(F32, [n, channels, *spatial]), d.data(F32, [filters, channels // group, *kernel]),
                            d.data(F32, offset), d.data(F32, [filters]) if d.chance(0.5) else None, mask], **attrs)


GENERATORS = {("", op): make for op, make in {
    "Conv": conv("Conv"), "ConvTranspose": conv("ConvTranspose"), "ConvInteger": conv_integer,
    "QLinearConv": qlinear_conv, "MaxPool": pool("MaxPool"), "AveragePool": pool("AveragePool"),
    "LpPool": pool("LpPool"), "GlobalAveragePool": global_pool("GlobalAveragePool"),
    "GlobalMaxPool": global_pool("GlobalMaxPool"), "GlobalLpPool": global_pool("GlobalLpPool"), "LRN": lrn,
    "MaxUnpool": max_unpool, "RoiAlign": roi_align, "MaxRoiPool": max_roi_pool,
    "NonMaxSuppression": non_max_suppression, "Resize": resize, "Upsample": upsample, "GridSample": grid_sample,
    "AffineGrid": affine_grid, "Col2Im": col2im, "DeformConv": deform_conv}.items()}
