// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/window/window.h"

#include <algorithm>

#include "providers/cpu/elements/ceil_div.h"

namespace pfrt::cpu {
namespace {

// Sizes past this make no sense and would overflow coordinates.
constexpr int64_t kLimit = int64_t{1} << 30;

Result<std::vector<int64_t>> values(const SnapshotNode& node, std::string_view name, size_t count,
                                    int64_t fallback, int64_t least) {
  const auto given = node.attr_ints(name);
  if (given.empty()) return std::vector<int64_t>(count, fallback);
  if (given.size() != count)
    return error(Code::kSHAPE_MISMATCH, name, " has ", given.size(), " values, expected ", count);
  for (int64_t v : given)
    if (v < least || v > kLimit)
      return error(Code::kSHAPE_MISMATCH, name, " holds ", v, ", expected at least ", least);
  return std::vector<int64_t>(given.begin(), given.end());
}

}  // namespace

Result<Window> Window::make(const SnapshotNode& node, std::span<const int64_t> image,
                            std::span<const int64_t> positions, std::span<const int64_t> kernel) {
  const size_t rank = image.size();
  if (rank == 0 || positions.size() != rank || kernel.size() != rank)
    return error(Code::kSHAPE_MISMATCH, "windows need as many kernel as spatial dimensions, found ",
                 kernel.size(), " and ", rank);
  Window w;
  w.image.assign(image.begin(), image.end());
  w.positions.assign(positions.begin(), positions.end());
  w.kernel.assign(kernel.begin(), kernel.end());
  PFRT_ASSIGN(w.strides, values(node, "strides", rank, 1, 1));
  PFRT_ASSIGN(w.dilations, values(node, "dilations", rank, 1, 1));
  PFRT_ASSIGN(const std::vector<int64_t> pads, values(node, "pads", 2 * rank, 0, -kLimit));
  const std::string_view auto_pad = node.attr_string("auto_pad", "NOTSET");
  const bool upper = auto_pad == "SAME_UPPER", same = upper || auto_pad == "SAME_LOWER";
  if (!same && auto_pad != "NOTSET" && auto_pad != "VALID" && !auto_pad.empty())
    return error(Code::kINVALID_MODEL, "auto_pad is '", auto_pad, "'");
  for (size_t d = 0; d < rank; ++d) {
    if (w.kernel[d] < 1 || w.kernel[d] > kLimit || w.image[d] > kLimit || w.positions[d] > kLimit)
      return error(Code::kSHAPE_MISMATCH, "kernel dimension ", d, " is ", w.kernel[d]);
    int64_t begin = pads[d], end = pads[d + rank];
    if (same) {
      const int64_t out = ceil_div(w.image[d], w.strides[d]);
      const int64_t reach = (w.kernel[d] - 1) * w.dilations[d] + 1;
      const int64_t total = std::max<int64_t>((out - 1) * w.strides[d] + reach - w.image[d], 0);
      begin = upper ? total / 2 : total - total / 2;
      end = total - begin;
    } else if (auto_pad == "VALID") {
      begin = end = 0;
    }
    w.pads.push_back(begin);
    w.end_pads.push_back(end);
  }
  return w;
}

bool Window::is_identity() const {
  const auto all = [](const std::vector<int64_t>& v, int64_t x) {
    return std::all_of(v.begin(), v.end(), [x](int64_t y) { return y == x; });
  };
  return image == positions && all(kernel, 1) && all(strides, 1) && all(pads, 0);
}

WindowRows::WindowRows(const Window& w) : outer_(w.rank() - 1) {
  const size_t last = outer_;
  image_.assign(w.image.begin(), w.image.end());
  positions_.assign(w.positions.begin(), w.positions.end());
  strides_ = w.strides;
  pads_ = w.pads;
  image_strides_.assign(w.rank(), 1);
  for (size_t d = last; d-- > 0;) image_strides_[d] = image_strides_[d + 1] * image_[d + 1];
  row_length_ = w.positions[last];
  row_taps_ = w.kernel[last];
  stride_ = w.strides[last];
  rows_ = tap_rows_ = 1;
  for (size_t d = 0; d < outer_; ++d) {
    rows_ *= w.positions[d];
    tap_rows_ *= w.kernel[d];
  }
  for (int64_t t = 0; t < tap_rows_; ++t) {
    std::vector<int64_t> at(outer_);
    int64_t left = t;
    for (size_t d = outer_; d-- > 0; left /= w.kernel[d])
      at[d] = left % w.kernel[d] * w.dilations[d];
    tap_offsets_.insert(tap_offsets_.end(), at.begin(), at.end());
  }
  spans_ = std::make_shared<Span[]>(static_cast<size_t>(row_taps_));
  for (int64_t t = 0; t < row_taps_; ++t) {
    const int64_t first = t * w.dilations[last] - w.pads[last];
    const int64_t begin = std::clamp<int64_t>(ceil_div(-first, stride_), 0, row_length_);
    const int64_t end =
        std::clamp<int64_t>(ceil_div(w.image[last] - first, stride_), begin, row_length_);
    spans_[t] = {begin, end, first};
  }
}

int64_t WindowRows::row_offset(int64_t row, int64_t tap_row) const {
  const int64_t* const taps = tap_offsets_.data() + static_cast<size_t>(tap_row) * outer_;
  int64_t offset = 0;
  for (size_t d = outer_; d-- > 0;) {
    const int64_t position = d == 0 ? row : row % positions_[d];
    const int64_t at = position * strides_[d] - pads_[d] + taps[d];
    if (at < 0 || at >= image_[d]) return -1;
    offset += at * image_strides_[d];
    if (d > 0) row /= positions_[d];
  }
  return offset;
}

}  // namespace pfrt::cpu
