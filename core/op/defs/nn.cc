// SPDX-License-Identifier: Apache-2.0
//
// Convolutions. Inputs are [N, C, spatial...], weights [M, C / group, kernel...]; a transposed
// convolution's weights are [C, M / group, kernel...].
#include <algorithm>

#include "core/op/defs/common/families.h"
#include "core/op/defs/common/helpers.h"
#include "core/op/defs/common/shapes.h"
#include "core/op/defs/window.h"
#include "core/op/engine/inference.h"
#include "core/op/engine/operator_def.h"
#include "core/op/engine/rewriter.h"

namespace pfrt {
namespace {

// The number of spatial dimensions of a convolution, from |x| or |w|; 0 when neither has a shape.
template <typename View>
size_t spatial_rank(const View& view, size_t x, size_t w) {
  const size_t rank = view.has_shape(x) ? view.rank(x) : view.has_shape(w) ? view.rank(w) : 0;
  return rank > 2 ? rank - 2 : 0;
}

std::vector<int64_t> weight_kernel(const Type& weights) {
  return weights.has_shape ? as_numbers(spatial_dims(weights.shape)) : std::vector<int64_t>();
}

Status canonical_convolution(Rewriter& rewriter, size_t x, size_t w) {
  PFRT_TRY(fill_int(rewriter, "group", 1));
  const size_t rank = spatial_rank(rewriter, x, w);
  if (rank == 0) return {};
  std::vector<int64_t> kernel;
  if (rewriter.has_input(w)) kernel = weight_kernel(rewriter.input(w));
  if (kernel.size() != rank) kernel.clear();
  const Shape spatial = rewriter.has_shape(x) ? spatial_dims(rewriter.input(x).shape) : Shape();
  return canonical_window(rewriter, rank, kernel, spatial);
}

// Checks ranks, group and the kernel's size of a convolution with inputs |x| and |w|.
Status check_convolution(const Inference& inference, size_t x, size_t w) {
  PFRT_TRY(expect_rank_at_least(inference, x, 3));
  PFRT_TRY(expect_rank_at_least(inference, w, 3));
  if (inference.has_shape(x)) PFRT_TRY(expect_rank(inference, w, inference.rank(x)));
  const int64_t group = inference.node().attr_int("group", 1);
  if (group < 1) return inference.fail("group is ", group, ", needs 1 or more");
  const std::vector<int64_t>* declared = inference.node().attr_ints("kernel_shape");
  if (!declared || !inference.has_shape(w)) return {};
  for (size_t i = 0; i < declared->size() && i + 2 < inference.rank(w); ++i) {
    const Dim actual = inference.shape(w)[i + 2];
    if (actual.known() && actual.value() != (*declared)[i])
      return inference.fail("kernel_shape is ", (*declared)[i], " in spatial dimension ", i,
                            " but the weights have shape ",
                            inference.symbols().text(inference.shape(w)));
  }
  return {};
}

Status infer_convolution(Inference& inference, size_t x, size_t w, size_t bias, pfrt_dtype dtype) {
  PFRT_TRY(check_convolution(inference, x, w));
  const size_t rank = spatial_rank(inference, x, w);
  if (rank == 0) {
    inference.set_output_unknown_shape(0, dtype);
    return {};
  }
  const int64_t group = inference.node().attr_int("group", 1);
  Shape out(rank + 2);
  Shape in(rank + 2);
  if (inference.has_shape(x)) in = inference.shape(x);
  out[0] = in[0];
  if (inference.has_shape(w)) {
    out[1] = inference.shape(w)[0];
    const Dim per_group = inference.shape(w)[1];
    if (out[1].known() && out[1].value() % group != 0)
      return inference.fail(out[1].value(), " output channels do not divide into ", group,
                            " groups");
    const Dim wanted = inference.symbols().mul(per_group, group);
    if (wanted.known() && in[1].known() && !(wanted == in[1]))
      return inference.fail("the input has ", in[1].value(), " channels, the weights take ",
                            per_group.value(), " a group in ", group, " groups");
  }
  PFRT_TRY(expect_shape(inference, bias, {out[1]}));
  PFRT_ASSIGN(const Window window, read_window(inference, rank, weight_kernel(inference.input(w))));
  for (size_t i = 0; i < rank; ++i) {
    PFRT_ASSIGN(out[i + 2], window_positions(inference, window, i, in[i + 2]));
  }
  inference.set_output(0, dtype, std::move(out));
  return {};
}

// Counts two for a multiply-add.
double convolution_flops(const Inference& inference, size_t w) {
  if (!inference.output(0).has_shape || !inference.has_shape(w)) return 0;
  return 2 * elements(inference.output(0).shape) * elements(inference.shape(w), 1);
}

Status canonical_conv(Rewriter& rewriter) { return canonical_convolution(rewriter, 0, 1); }
Status infer_conv(Inference& inference) {
  PFRT_TRY(same_dtypes(inference, 0, 3));
  return infer_convolution(inference, 0, 1, 2, inference.input(0).dtype);
}
double conv_flops(const Inference& inference) { return convolution_flops(inference, 1); }

Status infer_conv_integer(Inference& inference) {
  return infer_convolution(inference, 0, 1, SIZE_MAX, PFRT_DTYPE_INT32);
}

Status canonical_deform_conv(Rewriter& rewriter) {
  PFRT_TRY(fill_int(rewriter, "offset_group", 1));
  return canonical_convolution(rewriter, 0, 1);
}

// Offsets are [N, offset_group * taps * spatial rank, out...], the mask [N, offset_group * taps,
// out...].
Status infer_deform_conv(Inference& inference) {
  PFRT_TRY(same_dtypes(inference, 0, 5));
  const int64_t groups = inference.node().attr_int("offset_group", 1);
  if (groups < 1) return inference.fail("offset_group is ", groups, ", needs 1 or more");
  PFRT_TRY(infer_convolution(inference, 0, 1, 3, inference.input(0).dtype));
  if (!inference.output(0).has_shape || !inference.has_shape(1)) return {};
  Shape moved = inference.output(0).shape;
  SymbolTable& symbols = inference.symbols();
  const Dim taps = symbols.mul(symbols.product(inference.shape(1), 2), groups);
  moved[1] = taps;
  PFRT_TRY(expect_shape(inference, 4, moved));
  moved[1] = symbols.mul(taps, static_cast<int64_t>(moved.size()) - 2);
  return expect_shape(inference, 2, moved);
}

Status canonical_qlinear_conv(Rewriter& rewriter) { return canonical_convolution(rewriter, 0, 3); }
Status infer_qlinear_conv(Inference& inference) {
  return infer_convolution(inference, 0, 3, 8, inference.input(7).dtype);
}
double qlinear_conv_flops(const Inference& inference) { return convolution_flops(inference, 3); }

// The window of a transposed convolution, with pads such that positions times strides give the
// requested size.
struct Transposed {
  Window window;
  std::vector<int64_t> output_padding;
  std::vector<int64_t> output_shape;  // empty unless requested
};

// Divides |total|, the excess of the full output over the requested size, into pads of dimension
// |i|. A full output that is too small grows at its end.
void place_pads(Transposed& t, size_t i, int64_t total, bool more_at_end) {
  if (total < 0) {
    t.output_padding[i] -= total;
    total = 0;
  }
  const size_t rank = t.window.strides.size();
  const int64_t less = total / 2, more = total - less;
  t.window.pads[i] = more_at_end ? less : more;
  t.window.pads[rank + i] = more_at_end ? more : less;
}

Status canonical_conv_transpose(Rewriter& rewriter) {
  PFRT_TRY(fill_int(rewriter, "group", 1));
  const size_t rank = spatial_rank(rewriter, 0, 1);
  if (rank == 0) return {};
  Node& node = rewriter.node();
  PFRT_TRY(fill_ints(rewriter, "output_padding", std::vector<int64_t>(rank, 0)));
  std::vector<int64_t> output_padding = *node.attr_ints("output_padding");
  if (output_padding.size() != rank)
    return rewriter.fail("output_padding has ", output_padding.size(), " entries, needs ", rank);
  if (std::any_of(output_padding.begin(), output_padding.end(),
                  [](int64_t p) { return p < 0 || p > (1 << 30); }))
    return rewriter.fail("output_padding has an entry that is negative or too large");
  if (const std::vector<int64_t>* shape = node.attr_ints("output_shape");
      shape && shape->size() == rank + 2)
    node.set_attr(
        Attribute::of_ints("output_shape", std::vector<int64_t>(shape->begin() + 2, shape->end())));

  std::vector<int64_t> kernel;
  if (rewriter.has_input(1)) kernel = weight_kernel(rewriter.input(1));
  const std::string mode(node.attr_string("auto_pad", "NOTSET"));
  const bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  if (same) node.drop_attr("auto_pad");
  PFRT_TRY(canonical_window(rewriter, rank, kernel.size() == rank ? kernel : std::vector<int64_t>(),
                            {}));
  const std::vector<int64_t>* asked = node.attr_ints("output_shape");
  if (!same && !asked) return {};
  if (asked && asked->size() != rank)
    return rewriter.fail("output_shape has ", asked->size(), " entries, needs ", rank);
  auto absurd = [](int64_t size) { return size < 0 || size > (int64_t{1} << 40); };
  if (asked && std::any_of(asked->begin(), asked->end(), absurd))
    return rewriter.fail("output_shape has an entry that is negative or too large");

  const Shape spatial = rewriter.has_shape(0) ? spatial_dims(rewriter.input(0).shape) : Shape();
  const std::vector<int64_t>* sizes = node.attr_ints("kernel_shape");
  Transposed t{{}, output_padding, {}};
  t.window.strides = *node.attr_ints("strides");
  t.window.dilations = *node.attr_ints("dilations");
  t.window.pads.assign(2 * rank, 0);
  bool known = sizes != nullptr;
  for (size_t i = 0; known && i < rank; ++i) {
    const int64_t extent = ((*sizes)[i] - 1) * t.window.dilations[i] + 1;
    if (asked) {
      known = i < spatial.size() && spatial[i].known() && spatial[i].value() <= (1 << 30);
      if (!known) break;
      const int64_t full =
          t.window.strides[i] * (spatial[i].value() - 1) + output_padding[i] + extent;
      place_pads(t, i, full - (*asked)[i], mode == "SAME_UPPER");
    } else {
      place_pads(t, i, extent + output_padding[i] - t.window.strides[i], mode == "SAME_UPPER");
    }
  }
  if (!known) {
    if (same) node.set_attr(Attribute::of_string("auto_pad", mode));
    return {};
  }
  node.drop_attr("output_shape");
  node.set_attr(Attribute::of_ints("pads", t.window.pads));
  node.set_attr(Attribute::of_ints("output_padding", t.output_padding));
  return {};
}

// Number of elements along dimension |i| for an input of size |in|.
Result<Dim> transposed_size(const Inference& inference, const Transposed& t, size_t i, Dim in) {
  SymbolTable& symbols = inference.symbols();
  if (!t.output_shape.empty()) return Dim(t.output_shape[i]);
  const Window& window = t.window;
  if (window.auto_pad != AutoPad::kNone) return symbols.mul(in, window.strides[i]);
  if (window.kernel.empty()) return Dim();
  const size_t rank = window.strides.size();
  // in * stride comes first: with a kernel of the stride's size the rest is 0, and "N*2" stays
  // short.
  const int64_t rest = t.output_padding[i] + window.extent(i) - window.strides[i] - window.pads[i] -
                       window.pads[rank + i];
  const Dim size = symbols.add(symbols.mul(in, window.strides[i]), rest);
  if (in.is(0)) return Dim(std::max<int64_t>(0, rest));
  if (size.known() && size.value() < 0)
    return inference.fail("spatial dimension ", i, " of the output would have ", size.value(),
                          " elements; make the pads smaller");
  return size;
}

Status infer_conv_transpose(Inference& inference) {
  PFRT_TRY(same_dtypes(inference, 0, 3));
  PFRT_TRY(check_convolution(inference, 0, 1));
  const pfrt_dtype dtype = inference.input(0).dtype;
  const size_t rank = spatial_rank(inference, 0, 1);
  if (rank == 0) {
    inference.set_output_unknown_shape(0, dtype);
    return {};
  }
  Shape out(rank + 2), in(rank + 2);
  if (inference.has_shape(0)) in = inference.shape(0);
  out[0] = in[0];
  if (inference.has_shape(1)) {
    const int64_t group = inference.node().attr_int("group", 1);
    PFRT_ASSIGN(const Dim channels,
                same_dim(inference, in[1], inference.shape(1)[0],
                         "the input's channels and the weights' first dimension"));
    if (channels.known() && channels.value() % group != 0)
      return inference.fail(channels.value(), " input channels do not divide into ", group,
                            " groups");
    out[1] = inference.symbols().mul(inference.shape(1)[1], group);
  }
  PFRT_TRY(expect_shape(inference, 2, {out[1]}));
  Transposed t;
  PFRT_ASSIGN(t.window, read_window(inference, rank, weight_kernel(inference.input(1))));
  const std::vector<int64_t>* padding = inference.node().attr_ints("output_padding");
  t.output_padding = padding ? *padding : std::vector<int64_t>(rank, 0);
  if (const std::vector<int64_t>* asked = inference.node().attr_ints("output_shape"))
    t.output_shape = *asked;
  if (t.output_padding.size() != rank)
    return inference.fail("output_padding needs ", rank, " entries");
  if (!t.output_shape.empty() && t.output_shape.size() != rank)
    return inference.fail("output_shape needs ", rank, " entries");
  if (std::any_of(t.output_shape.begin(), t.output_shape.end(), [](int64_t d) { return d < 0; }))
    return inference.fail("output_shape has a negative entry");
  for (size_t i = 0; i < rank; ++i) {
    PFRT_ASSIGN(out[i + 2], transposed_size(inference, t, i, in[i + 2]));
  }
  inference.set_output(0, dtype, std::move(out));
  return {};
}

double conv_transpose_flops(const Inference& inference) {
  if (!inference.has_shape(0) || !inference.has_shape(1)) return 0;
  return 2 * elements(inference.shape(0)) * elements(inference.shape(1), 1);
}

constexpr OperatorDef kNnOperators[] = {
    {"", "Conv", 1, 0, 2, 3, 1, 1, kOpPlain, 0, canonical_conv, infer_conv, conv_flops},
    {"", "ConvTranspose", 1, 0, 2, 3, 1, 1, kOpPlain, 0, canonical_conv_transpose,
     infer_conv_transpose, conv_transpose_flops},
    {"", "DeformConv", 19, 0, 3, 5, 1, 1, kOpPlain, 0, canonical_deform_conv, infer_deform_conv,
     conv_flops},
    {"", "ConvInteger", 10, 0, 2, 4, 1, 1, kOpPlain, 0, canonical_conv, infer_conv_integer,
     conv_flops},
    {"", "QLinearConv", 10, 0, 8, 9, 1, 1, kOpPlain, 0, canonical_qlinear_conv, infer_qlinear_conv,
     qlinear_conv_flops},
};

}  // namespace

std::span<const OperatorDef> nn_operators() { return kNnOperators; }

}  // namespace pfrt
