// SPDX-License-Identifier: Apache-2.0
//
// Signals: Fourier transforms, windows, and the weights of the mel scale. com.microsoft's Rfft and
// Irfft are one-sided DFTs along the last dimension.
#include <algorithm>

#include "core/op/defs/common/families.h"
#include "core/op/defs/common/helpers.h"
#include "core/op/defs/common/shapes.h"
#include "core/op/engine/inference.h"
#include "core/op/engine/operator_def.h"
#include "core/op/engine/rewriter.h"

namespace pfrt {
namespace {

constexpr AttrDefault kSignalDefaults[] = {
    {"DFT", "inverse", PFRT_ATTR_INT, 0},
    {"DFT", "onesided", PFRT_ATTR_INT, 0},
    {"STFT", "onesided", PFRT_ATTR_INT, 1},
    {"HannWindow", "output_datatype", PFRT_ATTR_INT, PFRT_DTYPE_FLOAT32},
    {"HannWindow", "periodic", PFRT_ATTR_INT, 1},
    {"HammingWindow", "output_datatype", PFRT_ATTR_INT, PFRT_DTYPE_FLOAT32},
    {"HammingWindow", "periodic", PFRT_ATTR_INT, 1},
    {"BlackmanWindow", "output_datatype", PFRT_ATTR_INT, PFRT_DTYPE_FLOAT32},
    {"BlackmanWindow", "periodic", PFRT_ATTR_INT, 1},
    {"MelWeightMatrix", "output_datatype", PFRT_ATTR_INT, PFRT_DTYPE_FLOAT32},
};

Status canonical_defaults(Rewriter& rewriter) { return fill_defaults(rewriter, kSignalDefaults); }

// The number in scalar input |i|, if it is known.
std::optional<Dim> scalar_of(const Inference& inference, size_t i) {
  const std::optional<Shape> held = inference.data(i);
  return held && held->size() == 1 ? std::optional<Dim>(held->front()) : std::nullopt;
}

// ------------------------------------------------------------------ DFT

// Before opset 20 the axis was an attribute, 1 where it was absent.
Status canonical_dft(Rewriter& rewriter) {
  PFRT_TRY(fill_defaults(rewriter, kSignalDefaults));
  if (rewriter.opset() >= 20) return {};
  PFRT_TRY(fill_int(rewriter, "axis", 1));
  PFRT_ASSIGN(Tensor axis, Tensor::scalar_int64(rewriter.node().attr_int("axis", 1)));
  rewriter.set_input(2, rewriter.constant_value("axis", std::move(axis)));
  rewriter.node().drop_attr("axis");
  return {};
}

Status infer_dft(Inference& inference) {
  PFRT_TRY(expect_rank_at_least(inference, 0, 2));
  const Type& in = inference.input(0);
  if (!in.has_shape) {
    inference.set_output_unknown_shape(0, in.dtype);
    return {};
  }
  Shape out = in.shape;
  const size_t rank = out.size();
  if (out.back().known() && !out.back().is(1) && !out.back().is(2))
    return inference.fail("the last dimension is ", out.back().value(),
                          ", must be 1 (real) or 2 (complex)");
  const bool inverse = inference.node().attr_int("inverse", 0) != 0,
             onesided = inference.node().attr_int("onesided", 0) != 0;
  out.back() = inverse && onesided ? 1 : 2;
  const std::optional<Dim> given = inference.has_input(2) ? scalar_of(inference, 2) : Dim(-2);
  if (!given || !given->known()) {
    std::fill(out.begin(), out.end() - 1, Dim());
    inference.set_output(0, in.dtype, std::move(out));
    return {};
  }
  PFRT_ASSIGN(const int64_t axis, inference.axis(given->value(), rank));
  if (axis == static_cast<int64_t>(rank) - 1)
    return inference.fail("axis ", given->value(),
                          " is the last one, which holds real and imaginary parts");
  Dim& along = out[static_cast<size_t>(axis)];
  SymbolTable& symbols = inference.symbols();
  Dim length = inverse && onesided ? symbols.mul(symbols.sub(along, 1), 2) : along;
  if (inference.has_input(1)) length = scalar_of(inference, 1).value_or(Dim());
  if (length.known() && (length.value() < 0 || length.value() >= INT64_MAX / 8))
    return inference.fail("dft_length is ", length.value(), ", out of bounds");
  along = onesided && !inverse ? symbols.add(symbols.floor_div(length, 2), 1) : length;
  inference.set_output(0, in.dtype, std::move(out));
  return {};
}

double transform_flops(double points, double length) {
  double steps = 1;
  for (double reach = 2; reach < length; reach *= 2) ++steps;
  return 5 * points * steps;
}

double dft_flops(const Inference& inference) {
  const Type& out = inference.output(0);
  if (!out.has_shape) return 0;
  return transform_flops(elements(out.shape), elements(out.shape) / 4);
}

// ------------------------------------------------------------------ STFT

// The number of frames that start |step| apart and lie within |length|.
Result<Dim> frame_count(const Inference& inference, Dim length, Dim frame, Dim step) {
  if (step.known() && step.value() < 1)
    return inference.fail("frame_step is ", step.value(), ", needs 1 or more");
  if (frame.known() && frame.value() < 1)
    return inference.fail("frames have ", frame.value(), " samples, need 1 or more");
  SymbolTable& symbols = inference.symbols();
  const Dim rest = symbols.sub(length, frame);
  if (rest.known() && rest.value() < 0)
    return inference.fail("a signal of ", length.value(), " samples is shorter than a frame of ",
                          frame.value());
  return symbols.add(symbols.floor_div(rest, step), 1);
}

// A signal [batch, samples], as PyTorch exports it, is real.
Status infer_stft(Inference& inference) {
  if (!inference.has_shape(0) || inference.rank(0) != 2) PFRT_TRY(expect_rank(inference, 0, 3));
  PFRT_TRY(expect_rank(inference, 2, 1));
  Shape signal = inference.has_shape(0) ? inference.shape(0) : Shape(3);
  if (signal.size() == 2) signal.push_back(1);
  if (signal[2].known() && !signal[2].is(1) && !signal[2].is(2))
    return inference.fail("the last dimension is ", signal[2].value(),
                          ", must be 1 (real) or 2 (complex)");
  Dim frame = signal[1];
  if (inference.has_input(3)) {
    frame = scalar_of(inference, 3).value_or(Dim());
  } else if (inference.has_input(2)) {
    frame = inference.has_shape(2) ? inference.shape(2)[0] : Dim();
  }
  const Dim step = scalar_of(inference, 1).value_or(Dim());
  PFRT_ASSIGN(const Dim frames, frame_count(inference, signal[1], frame, step));
  SymbolTable& symbols = inference.symbols();
  const bool onesided = inference.node().attr_int("onesided", 1) != 0;
  const Dim bins = onesided ? symbols.add(symbols.floor_div(frame, 2), 1) : frame;
  inference.set_output(0, inference.input(0).dtype, {signal[0], frames, bins, 2});
  return {};
}

double stft_flops(const Inference& inference) {
  const Type& out = inference.output(0);
  if (!out.has_shape || out.shape.size() != 4) return 0;
  return transform_flops(elements(out.shape), elements(out.shape, 2, 3));
}

// ------------------------------------------------------------------ windows

Result<pfrt_dtype> output_type(const Inference& inference) {
  const int64_t dtype = inference.node().attr_int("output_datatype", PFRT_DTYPE_FLOAT32);
  if (dtype <= 0 || dtype > UINT32_MAX || !dtype_known(static_cast<pfrt_dtype>(dtype)))
    return inference.fail("attribute 'output_datatype' is ", dtype, ", which is no element type");
  return static_cast<pfrt_dtype>(dtype);
}

Status infer_window(Inference& inference) {
  PFRT_ASSIGN(const pfrt_dtype dtype, output_type(inference));
  const Dim size = scalar_of(inference, 0).value_or(Dim());
  if (size.known() && size.value() < 0)
    return inference.fail("size is ", size.value(), ", must not be negative");
  inference.set_output(0, dtype, {size});
  return {};
}

Status infer_mel(Inference& inference) {
  PFRT_ASSIGN(const pfrt_dtype dtype, output_type(inference));
  const Dim bands = scalar_of(inference, 0).value_or(Dim()),
            length = scalar_of(inference, 1).value_or(Dim());
  if (bands.known() && bands.value() < 0)
    return inference.fail("num_mel_bins is ", bands.value(), ", must not be negative");
  if (length.known() && length.value() < 0)
    return inference.fail("dft_length is ", length.value(), ", must not be negative");
  SymbolTable& symbols = inference.symbols();
  inference.set_output(0, dtype, {symbols.add(symbols.floor_div(length, 2), 1), bands});
  return {};
}

// ------------------------------------------------------------------ com.microsoft

// The last dimension has real and imaginary parts; the one before it is transformed.
Status along_last(Rewriter& rewriter) {
  Node& node = rewriter.node();
  if (node.attr_int("signal_ndim", 1) != 1)
    return rewriter.unsupported("signal_ndim is ", node.attr_int("signal_ndim", 1),
                                "; transforms along one dimension are supported");
  if (node.attr_int("normalized", 0) != 0)
    return rewriter.unsupported(
        "normalized = 1 has no meaning that is written down; divide the result");
  if (node.attr_int("onesided", 1) == 0)
    return rewriter.unsupported("onesided = 0 is not supported; use the operator DFT");
  node.attrs.clear();
  node.set_attr(Attribute::of_int("onesided", 1));
  node.set_attr(Attribute::of_int("inverse", node.op == "Irfft"));
  node.domain.clear();
  node.op = "DFT";
  return {};
}

Status canonical_rfft(Rewriter& rewriter) {
  PFRT_TRY(along_last(rewriter));
  PFRT_ASSIGN(const ValueId last, rewriter.int64s("last", {-1}));
  PFRT_ASSIGN(const ValueId real, rewriter.before("Unsqueeze", {rewriter.node().inputs[0], last}));
  rewriter.set_input(0, real);
  return {};
}

Status canonical_irfft(Rewriter& rewriter) {
  PFRT_TRY(along_last(rewriter));
  PFRT_ASSIGN(const ValueId last, rewriter.int64s("last", {-1}));
  return rewriter.after("Squeeze", {last});
}

constexpr OperatorDef kSignalOperators[] = {
    {"", "DFT", 17, 19, 1, 2, 1, 1, kOpPlain, 1u << 1, canonical_dft, infer_dft, dft_flops},
    {"", "DFT", 20, 0, 1, 3, 1, 1, kOpPlain, 1u << 1 | 1u << 2, canonical_dft, infer_dft,
     dft_flops},
    {"", "STFT", 17, 0, 2, 4, 1, 1, kOpPlain, 1u << 1 | 1u << 3, canonical_defaults, infer_stft,
     stft_flops},
    {"", "HannWindow", 17, 0, 1, 1, 1, 1, kOpPlain, 1u << 0, canonical_defaults, infer_window,
     nullptr},
    {"", "HammingWindow", 17, 0, 1, 1, 1, 1, kOpPlain, 1u << 0, canonical_defaults, infer_window,
     nullptr},
    {"", "BlackmanWindow", 17, 0, 1, 1, 1, 1, kOpPlain, 1u << 0, canonical_defaults, infer_window,
     nullptr},
    {"", "MelWeightMatrix", 17, 0, 5, 5, 1, 1, kOpPlain, 1u << 0 | 1u << 1, canonical_defaults,
     infer_mel, nullptr},
    {"com.microsoft", "Rfft", 1, 0, 1, 1, 1, 1, kOpPlain, 0, canonical_rfft, nullptr, nullptr},
    {"com.microsoft", "Irfft", 1, 0, 1, 1, 1, 1, kOpPlain, 0, canonical_irfft, nullptr, nullptr},
};

}  // namespace

std::span<const OperatorDef> signal_operators() { return kSignalOperators; }

}  // namespace pfrt
