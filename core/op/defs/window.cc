// SPDX-License-Identifier: Apache-2.0
#include "core/op/defs/window.h"

#include <algorithm>

#include "core/op/defs/common/shapes.h"
#include "core/op/engine/inference.h"
#include "core/op/engine/rewriter.h"

namespace pfrt {
namespace {

// Below this, the product of two numbers fits an int64.
constexpr int64_t kLargest = int64_t{1} << 30;

Status check_list(const Graph& graph, const Node& node, std::string_view name, size_t size,
                  int64_t least) {
  const std::vector<int64_t>* list = node.attr_ints(name);
  if (!list) return {};
  if (list->size() != size)
    return error(Code::kSHAPE_MISMATCH, describe(graph, node), ": ", name, " has ", list->size(),
                 " entries, needs ", size, " for this input rank");
  for (int64_t v : *list)
    if (v < least || v > kLargest)
      return error(Code::kSHAPE_MISMATCH, describe(graph, node), ": ", name, " has an entry ", v,
                   ", needs ", least, " to ", kLargest);
  return {};
}

Status check_lists(const Graph& graph, const Node& node, size_t rank) {
  PFRT_TRY(check_list(graph, node, "kernel_shape", rank, 1));
  PFRT_TRY(check_list(graph, node, "strides", rank, 1));
  PFRT_TRY(check_list(graph, node, "dilations", rank, 1));
  return check_list(graph, node, "pads", 2 * rank, 0);
}

// Total padding for ceil(in / stride) positions; nullopt when it depends on an unknown dimension.
std::optional<int64_t> same_padding(int64_t extent, int64_t stride, const Dim& in) {
  if (stride == 1) return extent - 1;
  if (!in.known()) return std::nullopt;
  const int64_t last_window = in.value() % stride ? in.value() % stride : stride;
  return std::max<int64_t>(0, extent - last_window);
}

}  // namespace

Shape spatial_dims(const Shape& shape) {
  return shape.size() > 2 ? Shape(shape.begin() + 2, shape.end()) : Shape();
}

std::vector<int64_t> as_numbers(const Shape& shape) {
  std::vector<int64_t> numbers;
  for (const Dim& d : shape) {
    if (!d.known()) return {};
    numbers.push_back(d.value());
  }
  return numbers;
}

Status canonical_window(Rewriter& rewriter, size_t rank, const std::vector<int64_t>& kernel,
                        const Shape& spatial) {
  Node& node = rewriter.node();
  if (!kernel.empty()) PFRT_TRY(fill_ints(rewriter, "kernel_shape", kernel));
  PFRT_TRY(fill_ints(rewriter, "strides", std::vector<int64_t>(rank, 1)));
  PFRT_TRY(fill_ints(rewriter, "dilations", std::vector<int64_t>(rank, 1)));
  PFRT_TRY(fill_string(rewriter, "auto_pad", "NOTSET"));
  const std::string mode(node.attr_string("auto_pad", ""));
  if (mode == "VALID" || mode == "SAME_UPPER" || mode == "SAME_LOWER") {
    node.drop_attr("pads");
  } else if (mode != "NOTSET" && !mode.empty()) {
    return rewriter.fail("auto_pad is '", mode, "', needs NOTSET, VALID, SAME_UPPER or SAME_LOWER");
  }
  PFRT_TRY(check_lists(rewriter.graph(), node, rank));

  std::vector<int64_t> pads(2 * rank, 0);
  if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
    const std::vector<int64_t>* sizes = node.attr_ints("kernel_shape");
    if (!sizes) return {};
    const std::vector<int64_t>& strides = *node.attr_ints("strides");
    const std::vector<int64_t>& dilations = *node.attr_ints("dilations");
    for (size_t i = 0; i < rank; ++i) {
      const auto total = same_padding(((*sizes)[i] - 1) * dilations[i] + 1, strides[i],
                                      i < spatial.size() ? spatial[i] : Dim());
      if (!total) return {};
      const int64_t less = *total / 2, more = *total - less;
      pads[i] = mode == "SAME_UPPER" ? less : more;
      pads[rank + i] = mode == "SAME_UPPER" ? more : less;
    }
  }
  node.drop_attr("auto_pad");
  return fill_ints(rewriter, "pads", pads);
}

Result<Window> read_window(const Inference& inference, size_t rank, std::vector<int64_t> kernel) {
  const Node& node = inference.node();
  PFRT_TRY(check_lists(inference.graph(), node, rank));
  auto list = [&](std::string_view name, size_t size, int64_t fallback) {
    const std::vector<int64_t>* ints = node.attr_ints(name);
    return ints ? *ints : std::vector<int64_t>(size, fallback);
  };
  Window window;
  const std::vector<int64_t>* const given = node.attr_ints("kernel_shape");
  window.kernel = given ? std::vector<int64_t>(*given) : std::move(kernel);
  window.strides = list("strides", rank, 1);
  window.dilations = list("dilations", rank, 1);
  window.pads = list("pads", 2 * rank, 0);
  window.ceil_mode = node.attr_int("ceil_mode", 0) != 0;
  const std::string_view mode = node.attr_string("auto_pad", "NOTSET");
  if (mode == "SAME_UPPER") window.auto_pad = AutoPad::kSameUpper;
  if (mode == "SAME_LOWER") window.auto_pad = AutoPad::kSameLower;
  for (int64_t k : window.kernel)
    if (k < 1 || k > kLargest)
      return inference.fail("a kernel of size ", k, ", needs 1 to ", kLargest);
  return window;
}

Result<Dim> window_positions(const Inference& inference, const Window& window, size_t i, Dim in) {
  SymbolTable& symbols = inference.symbols();
  const int64_t stride = window.strides[i];
  if (window.auto_pad != AutoPad::kNone) return symbols.ceil_div(in, stride);
  if (window.kernel.empty()) return Dim();
  const size_t rank = window.strides.size();
  const int64_t extent = window.extent(i), begin = window.pads[i], end = window.pads[rank + i];
  const int64_t slack = begin + end - extent;  // |in| plus this is the last start of a window
  if (!in.known()) {
    const Dim floor = symbols.floor_div(symbols.add(in, slack + stride), stride);
    if (!window.ceil_mode || stride == 1) return floor;
    if (end >= extent) return Dim();
    return symbols.min(symbols.floor_div(symbols.add(in, slack + 2 * stride - 1), stride),
                       symbols.ceil_div(symbols.add(in, begin), stride));
  }
  const Dim last = symbols.add(in, slack);
  if (!last.known()) return Dim();
  if (last.value() < 0 && in.is(0)) return Dim(0);
  // When rounding up, a window that reaches less than a stride beyond the end still counts.
  const bool counts = last.value() >= 0 || (window.ceil_mode && last.value() > -stride);
  if (!counts)
    return inference.fail("the window covers ", extent, " elements of spatial dimension ", i,
                          ", which has ", in.value(), " and padding ", begin, " + ", end,
                          "; make the input larger or pad it");
  int64_t positions = last.value() / stride + 1;  // 1 where |last| is negative
  if (window.ceil_mode && last.value() % stride > 0) {
    ++positions;
    if ((positions - 1) * stride - begin >= in.value()) --positions;
  }
  return Dim(positions);
}

}  // namespace pfrt
