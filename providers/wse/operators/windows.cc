// SPDX-License-Identifier: Apache-2.0
//
// Pools: over windows, whose rows and columns come from this PE and its neighbours and are taken in
// order, and over whole feature maps, which are sums along axes.
#include <algorithm>

#include "providers/wse/operators/families.h"
#include "providers/wse/operators/rounding.h"
#include "providers/wse/operators/tensor.h"
#include "providers/wse/operators/walk.h"

namespace pfrt::wse {
namespace windows {
namespace {

// Products of two such numbers fit an int64.
constexpr int64_t kLargest = int64_t{1} << 30;

// Elements [begin, end) of an axis, |step| apart; |counted| of a window count for an average.
struct Taps {
  int64_t begin, end, step, counted;
};

// A window along one axis of an image.
struct Axis {
  int64_t in = 1, out = 1, kernel = 1, stride = 1, dilation = 1, before = 0, after = 0;

  // Steps of a window that starts at |start| until it is at |limit| or ends.
  int64_t steps_to(int64_t limit, int64_t start) const {
    if (limit <= start) return 0;
    return std::min(kernel, (limit - start - 1) / dilation + 1);
  }
  Taps at(int64_t position, bool with_padding) const {
    const int64_t start = position * stride - before;
    const int64_t first = steps_to(0, start), last = steps_to(in, start);
    const int64_t counted =
        with_padding ? steps_to(in + after, start) - steps_to(-before, start) : last - first;
    return {start + first * dilation, start + last * dilation, dilation, counted};
  }
};

// Images of two axes; of one axis, the first has one element.
struct Geometry {
  int64_t planes = 0;
  Axis rows, columns;
};

int64_t at_or(std::span<const int64_t> list, size_t i, int64_t fallback) {
  return i < list.size() ? list[i] : fallback;
}

Axis read_axis(const Call& call, size_t i, size_t count) {
  const SnapshotNode& node = call.node;
  Axis axis;
  axis.in = call.in[0].dims[i + 2];
  axis.out = call.out[0].dims[i + 2];
  axis.kernel = at_or(node.attr_ints("kernel_shape"), i, 1);
  axis.stride = at_or(node.attr_ints("strides"), i, 1);
  axis.dilation = at_or(node.attr_ints("dilations"), i, 1);
  const std::string_view mode = node.attr_string("auto_pad", "NOTSET");
  if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
    const int64_t extent = (axis.kernel - 1) * axis.dilation + 1;
    const int64_t total = std::max<int64_t>((axis.out - 1) * axis.stride + extent - axis.in, 0);
    axis.before = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
    axis.after = total - axis.before;
  } else if (mode != "VALID") {
    axis.before = at_or(node.attr_ints("pads"), i, 0);
    axis.after = at_or(node.attr_ints("pads"), count + i, 0);
  }
  return axis;
}

bool read_geometry(const Call& call, Geometry* g, std::string* why) {
  if (!sound(call, 1, why)) return false;
  const Dims &in = call.in[0].dims, &out = call.out[0].dims;
  if ((in.size() != 3 && in.size() != 4) || out.size() != in.size() || out[0] != in[0] ||
      out[1] != in[1])
    return fault(call, why, "dimensions ", text_of(in), " to ", text_of(out));
  for (size_t d = 2; d < in.size(); ++d)
    if (in[d] > kLargest || out[d] > kLargest)
      return fault(call, why, "images of dimensions ", text_of(in), " are too large");
  g->planes = elements_of(in, 0, 2);
  const size_t axes = in.size() - 2;
  g->columns = read_axis(call, axes - 1, axes);
  if (axes == 2) g->rows = read_axis(call, 0, axes);
  return true;
}

struct Most {
  static constexpr bool kWithPadding = false;
  template <typename R>
  static float join(R, float a, float b) {
    return std::isnan(a) || a > b ? a : b;
  }
  template <typename R>
  static float finish(R, float joined, int64_t) {
    return joined;
  }
  static constexpr float kNothing = -INFINITY;
};

template <bool with_padding>
struct Average {
  static constexpr bool kWithPadding = with_padding;
  template <typename R>
  static float join(R round, float a, float b) {
    return round(a + b);
  }
  template <typename R>
  static float finish(R round, float joined, int64_t count) {
    return round.divide(joined, static_cast<float>(std::max<int64_t>(count, 1)));
  }
  static constexpr float kNothing = 0;
};

template <typename Pool, typename R>
float pool_window(R round, const float* plane, int64_t width, const Taps& rows,
                  const Taps& columns) {
  float joined = Pool::kNothing;
  for (int64_t y = rows.begin; y < rows.end; y += rows.step)
    for (int64_t x = columns.begin; x < columns.end; x += columns.step)
      joined = Pool::join(round, joined, round(plane[y * width + x]));
  return Pool::finish(round, joined, rows.counted * columns.counted);
}

template <typename Pool>
void pool(const Call& call, const Geometry& g) {
  std::vector<Taps> columns;
  for (int64_t x = 0; x < g.columns.out; ++x)
    columns.push_back(g.columns.at(x, Pool::kWithPadding));
  float* to = call.out[0].as();
  with_rounding(call.arithmetic, [&](auto round) {
    for (int64_t p = 0; p < g.planes; ++p) {
      const float* const plane = call.in[0].as() + p * g.rows.in * g.columns.in;
      for (int64_t y = 0; y < g.rows.out; ++y) {
        const Taps rows = g.rows.at(y, Pool::kWithPadding);
        for (const Taps& taps : columns)
          *to++ = pool_window<Pool>(round, plane, g.columns.in, rows, taps);
      }
    }
  });
}

bool run_max(const Call& call, std::string* why) {
  Geometry g;
  if (!read_geometry(call, &g, why)) return false;
  pool<Most>(call, g);
  return true;
}

bool run_average(const Call& call, std::string* why) {
  Geometry g;
  if (!read_geometry(call, &g, why)) return false;
  if (call.node.attr_int("count_include_pad", 0) != 0)
    pool<Average<true>>(call, g);
  else
    pool<Average<false>>(call, g);
  return true;
}

template <Join join>
bool run_global(const Call& call, std::string* why) {
  if (!sound(call, 1, why)) return false;
  const Tensor &x = call.in[0], &y = call.out[0];
  if (x.rank() < 2) return fault(call, why, "dimensions ", text_of(x.dims), " have no channels");
  const int64_t planes = elements_of(x.dims, 0, 2), size = elements_of(x.dims, 2, x.rank());
  if (y.count() != planes)
    return fault(call, why, "dimensions ", text_of(x.dims), " to ", text_of(y.dims));
  std::vector<float> plane(static_cast<size_t>(size));
  AxisJoin joined(call);
  with_rounding(call.arithmetic, [&](auto round) {
    for (int64_t p = 0; p < planes; ++p) {
      const float* const from = x.as() + p * size;
      for (int64_t i = 0; i < size; ++i) plane[static_cast<size_t>(i)] = round(from[i]);
      const float all = joined(plane, join);
      y.as()[p] = join == Join::kMax ? all : round.divide(all, static_cast<float>(size));
    }
  });
  return true;
}

// ------------------------------------------------------------------------------------ refusals

std::string refuse_axes(const SnapshotNode& node) {
  const int32_t rank = node.input_rank(0);
  if (rank == 3 || rank == 4) return {};
  return message(node.op(), " of an input of rank ", rank, ": images of 1 or 2 axes, rank 3 or 4, ",
                 "are taken here");
}

std::string refuse_list(const SnapshotNode& node, std::string_view name, size_t size,
                        int64_t least) {
  const auto list = node.attr_ints(name);
  if (list.empty() && name != "kernel_shape") return {};
  if (list.size() != size)
    return message(node.op(), " with ", list.size(), " entries in ", name, ": ", size,
                   " are taken here");
  for (const int64_t entry : list)
    if (entry < least || entry > kLargest)
      return message(node.op(), " with ", entry, " in ", name, ": ", least, " to ", kLargest,
                     " are taken here");
  return {};
}

std::string refuse_pool(const SnapshotNode& node) {
  std::string why = first_of({refuse_unlike_output(node, 0, kFloat), refuse_axes(node)});
  if (!why.empty()) return why;
  const auto axes = static_cast<size_t>(node.input_rank(0) - 2);
  return first_of({refuse_list(node, "kernel_shape", axes, 1),
                   refuse_list(node, "strides", axes, 1), refuse_list(node, "dilations", axes, 1),
                   refuse_list(node, "pads", 2 * axes, 0)});
}

std::string refuse_max(const SnapshotNode& node) {
  return first_of({refuse_outputs(node, 1, "indices"), refuse_pool(node)});
}

std::string refuse_global(const SnapshotNode& node) {
  return first_of({refuse_unlike_output(node, 0, kFloat), refuse_axes(node)});
}

// --------------------------------------------------------------------------------------- rows

// Windows that overlap take several operations an element; how many, the node says.
constexpr Work kWindow{.vector_operations = 1};
constexpr Work kGlobal{.vector_operations = 0, .sums = 1, .all_reduces = 1};

constexpr Operator kOperators[] = {
    {"", "MaxPool", Family::kWindows, kWindow, refuse_max, run_max},
    {"", "AveragePool", Family::kWindows, kWindow, refuse_pool, run_average},
    {"", "GlobalAveragePool", Family::kRows, kGlobal, refuse_global, run_global<Join::kAdd>},
    {"", "GlobalMaxPool", Family::kRows, kGlobal, refuse_global, run_global<Join::kMax>},
};

}  // namespace
}  // namespace windows

std::span<const Operator> window_operators() { return windows::kOperators; }

}  // namespace pfrt::wse
