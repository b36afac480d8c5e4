// SPDX-License-Identifier: Apache-2.0
//
// Cuts the kernel of a convolution to the taps that see the image: with dilations as large as the
// image, all others lie on the padding at every position.
#include <algorithm>

#include "core/pass/rules/numbers.h"
#include "core/pass/rules/rule_tables.h"

namespace pfrt {
namespace {

// Sizes beyond these are no image's, and products of two of them still fit.
constexpr int64_t kMostSize = 1 << 30;

// A dimension of a window: |first| and |last| are the outermost taps that stay.
struct Taps {
  int64_t count, first, last, dilation, begin, end;

  bool cut() const { return last - first + 1 < count; }
};

// The taps of a dimension that see one of |image| pixels at one of |positions|; those between two
// such taps stay too. No pad becomes negative.
std::optional<Taps> live_taps(int64_t image, int64_t positions, int64_t stride, Taps taps) {
  const auto is_live = [&](int64_t tap) {
    // Positions p with 0 <= p * stride + offset < image.
    const int64_t offset = tap * taps.dilation - taps.begin;
    const int64_t least = offset < 0 ? (-offset + stride - 1) / stride : 0;
    return least < positions && least * stride + offset < image;
  };
  while (taps.first <= taps.last && !is_live(taps.first)) ++taps.first;
  if (taps.first > taps.last) return std::nullopt;
  while (!is_live(taps.last)) --taps.last;
  taps.first = std::min(taps.first, taps.begin / taps.dilation);
  taps.last = std::max(taps.last, taps.count - 1 - taps.end / taps.dilation);
  return taps;
}

// |weights| with the taps that stay.
Result<Tensor> cut_weights(const Tensor& weights, const std::vector<Taps>& taps) {
  Dims dims = weights.dims;
  for (size_t i = 0; i < taps.size(); ++i) dims[i + 2] = taps[i].last - taps[i].first + 1;
  PFRT_ASSIGN(Tensor cut, Tensor::allocate(weights.dtype, dims, false));
  PFRT_ASSIGN(const Tensor source, weights.readable());
  const size_t size = dtype_size(weights.dtype);
  const char* const from = source.as<char>();
  char* to = cut.as<char>();
  Dims index(dims.size());
  for (int64_t left = cut.count(); left > 0; --left, to += size) {
    int64_t at = 0;
    for (size_t i = 0; i < dims.size(); ++i)
      at = at * weights.dims[i] + index[i] + (i < 2 ? 0 : taps[i - 2].first);
    std::copy_n(from + static_cast<size_t>(at) * size, size, to);
    for (size_t i = dims.size(); i-- > 0 && ++index[i] == dims[i];) index[i] = 0;
  }
  return cut;
}

Result<bool> live_taps_alone(Editor& editor, Node& node, const RuleContext&) {
  const Tensor* const weights = node.has_input(1) ? editor.constant(node.inputs[1]) : nullptr;
  const std::vector<int64_t>*pads = node.attr_ints("pads"), *strides = node.attr_ints("strides"),
        *dilations = node.attr_ints("dilations");
  const std::optional<size_t> rank = editor.rank(node.inputs[0]);
  if (!weights || !pads || !strides || !dilations || rank.value_or(0) < 3 ||
      weights->dims.size() != *rank || weights->count() < 1 || dtype_size(weights->dtype) == 0 ||
      node.attr_string("auto_pad", "NOTSET") != "NOTSET")
    return false;
  const size_t spatial = *rank - 2;
  const Type &image = editor.type(node.inputs[0]), &out = editor.type(node.outputs[0]);
  if (pads->size() != 2 * spatial || strides->size() != spatial || dilations->size() != spatial ||
      editor.rank(node.outputs[0]) != rank)
    return false;
  std::vector<Taps> taps;
  bool cuts = false;
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t count = weights->dims[i + 2];
    const Dim &size = image.shape[i + 2], &positions = out.shape[i + 2];
    const Taps all{count, 0, count - 1, (*dilations)[i], (*pads)[i], (*pads)[spatial + i]};
    if (!size.known() || !positions.known()) return false;
    for (const int64_t number :
         {size.value(), positions.value(), all.count, all.dilation, (*strides)[i]})
      if (number < 1 || number > kMostSize) return false;
    for (const int64_t pad : {all.begin, all.end})
      if (pad < 0 || pad > kMostSize) return false;
    const std::optional<Taps> live = live_taps(size.value(), positions.value(), (*strides)[i], all);
    if (!live) return false;
    taps.push_back(*live);
    cuts |= live->cut();
  }
  if (!cuts || !all_finite(weights)) return false;
  PFRT_ASSIGN(Tensor cut, cut_weights(*weights, taps));
  const ValueId less = editor.add_constant(editor.graph().at(node.inputs[1]).name, std::move(cut));
  std::vector<int64_t> kernel, new_pads = *pads, new_dilations = *dilations;
  for (size_t i = 0; i < spatial; ++i) {
    const Taps& t = taps[i];
    kernel.push_back(t.last - t.first + 1);
    new_pads[i] -= t.first * t.dilation;
    new_pads[spatial + i] -= (t.count - 1 - t.last) * t.dilation;
    if (t.first == t.last) new_dilations[i] = 1;
  }
  node.set_attr(Attribute::of_ints("kernel_shape", std::move(kernel)));
  node.set_attr(Attribute::of_ints("pads", std::move(new_pads)));
  node.set_attr(Attribute::of_ints("dilations", std::move(new_dilations)));
  editor.set_input(node, 1, less);
  PFRT_TRY(editor.changed(node));
  return true;
}

constexpr Rule kTapRules[] = {
    {"LiveTaps", "Conv", "Conv whose outer taps see nothing but padding -> Conv of fewer taps",
     kExtended, true, live_taps_alone},
};

}  // namespace

std::span<const Rule> tap_rules() { return kTapRules; }

}  // namespace pfrt
