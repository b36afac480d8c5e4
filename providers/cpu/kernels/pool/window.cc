// SPDX-License-Identifier: Apache-2.0
//
// Windowed pooling: a row of the output is kept as a line of partial results, and every tap is one
// loop over it.
#include <cmath>
#include <limits>
#include <memory>
#include <optional>

#include "providers/cpu/elements/greater.h"
#include "providers/cpu/isa/isa.h"
#include "providers/cpu/kernel/stop_poll.h"
#include "providers/cpu/kernels/pool/make.h"
#include "providers/cpu/kernels/pool/max_rows.h"
#include "providers/cpu/kernels/window/small_planes.h"

namespace pfrt::cpu {
namespace {

// Calls fn(tap column's first pixel, begin, end) for every tap of output row |row|: positions
// [begin, end) see pixels first + position * stride.
template <typename Fn>
void each_tap(Pace& pace, const WindowRows& rows, int64_t row, Fn&& fn) {
  for (int64_t t = 0; t < rows.tap_rows(); ++t) {
    const int64_t start = rows.row_offset(row, t);
    if (pace.stopped(1)) return;
    if (start < 0) continue;
    for (int64_t x = 0; x < rows.row_taps(); ++x) {
      const WindowRows::Span& s = rows.span(x);
      if (pace.stopped(1 + s.end - s.begin)) return;
      if (s.begin < s.end) fn(start + s.first, s.begin, s.end);
    }
  }
}

template <typename T>
constexpr pfrt_dtype kOwn = std::is_same_v<T, double> ? PFRT_DTYPE_FLOAT64 : PFRT_DTYPE_FLOAT32;

// Applies the epilogue to rows of a plane, |between| at a time; |row| is the last one computed.
void finish_rows(const Run& run, int64_t row, int64_t between, int64_t rows, int64_t plane,
                 int64_t length) {
  const int64_t done = row + 1;
  if (done % between != 0 && done != rows) return;
  run.apply_epilogue(plane + row / between * between * length, plane + done * length);
}

template <typename T>
void max_row(Pace& pace, const WindowRows& rows, int64_t row, const T* plane, int64_t skipped,
             T* line) {
  std::fill(line, line + rows.row_length(), -std::numeric_limits<T>::infinity());
  const int64_t stride = rows.stride();
  each_tap(pace, rows, row, [&](int64_t pixel, int64_t begin, int64_t end) {
    const int64_t first = pixel - skipped;
    if (stride == 1) {
      for (int64_t p = begin; p < end; ++p) line[p] = greater_or_nan(plane[first + p], line[p]);
    } else {
      for (int64_t p = begin; p < end; ++p)
        line[p] = greater_or_nan(plane[first + p * stride], line[p]);
    }
  });
}

// The maximum of each window with its index: the pixel of the first maximum, or of the first NaN; 0
// for a window without pixels.
template <typename T>
void max_row_indices(Pace& pace, const WindowRows& rows, int64_t row, const T* plane, T* line,
                     int64_t* indices) {
  std::fill(line, line + rows.row_length(), -std::numeric_limits<T>::infinity());
  std::fill(indices, indices + rows.row_length(), int64_t{-1});
  each_tap(pace, rows, row, [&](int64_t first, int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const int64_t pixel = first + p * rows.stride();
      if (indices[p] >= 0 && !takes_place(plane[pixel], line[p])) continue;
      line[p] = plane[pixel];
      indices[p] = pixel;
    }
  });
  for (int64_t p = 0; p < rows.row_length(); ++p) indices[p] = std::max<int64_t>(indices[p], 0);
}

// A row-major pixel number as a column-major one; 0 where the image has no pixels.
int64_t column_major(int64_t pixel, const std::vector<int64_t>& image) {
  int64_t step = SnapshotNode::elements(image), out = 0;
  if (step == 0) return 0;
  for (size_t d = image.size(); d-- > 0; pixel /= image[d]) {
    step /= image[d];
    out += pixel % image[d] * step;
  }
  return out;
}

struct MaxPlan {
  PoolGeometry geometry;
  WindowRows rows;
  pfrt_dtype dtype;
  bool indices, column_order;
  std::optional<MaxRows> vectors;  // float32
};

template <typename T>
Result<Kernel> make_max(const KernelRequest& node) {
  PFRT_ASSIGN(PoolGeometry g, pool_geometry(node));
  const bool indices = node.has_output(1);
  if (indices && node.output_elements(1) != node.output_elements(0))
    return kernel_error("Indices must have Y's dimensions");
  const WindowRows rows(g.window);
  Kernel kernel;
  const int64_t pixels = g.window.image_size(), length = rows.row_length();
  kernel.flops = static_cast<double>(g.planes) * static_cast<double>(g.window.position_count()) *
                 static_cast<double>(g.window.taps());
  kernel.scratch_bytes = static_cast<uint64_t>(pixels + length) * sizeof(T);
  MaxPlan made{
      std::move(g), rows, node.input_dtype(0), indices, node.attr_int("storage_order", 0) == 1,
      std::nullopt};
  if (std::is_same_v<T, float> && !indices && MaxRows::takes(rows)) made.vectors.emplace(rows);
  const auto plan = std::make_shared<const MaxPlan>(std::move(made));
  kernel.run = [plan, pixels, length](const Run& run) -> pfrt_code {
    const Window& window = plan->geometry.window;
    const int64_t positions = window.position_count();
    const bool direct = plan->dtype == kOwn<T>;
    const StoreFn<T> store = store_fn<T>(plan->dtype);
    if (positions == 0) return 0;
    const int64_t between = std::clamp<int64_t>(16384 / length, 1, 64);  // rows
    run.parallel(plan->geometry.planes, [&](int64_t i, uint32_t worker) {
      Pace pace(run);
      T* const buffer = run.scratch<T>(worker);
      const T* const plane = load_plane<T>(plan->dtype, kOwn<T>, run.input(0), i, pixels, buffer);
      for (int64_t r = 0; r < plan->rows.rows(); ++r) {
        if (r % between == 0 && run.stopped()) return;
        const int64_t at = i * positions + r * length;
        T* const line = direct ? run.output<T>(0) + at : buffer + pixels;
        if (plan->indices) {
          int64_t* const pixel = run.output<int64_t>(1) + at;
          max_row_indices(pace, plan->rows, r, plane, line, pixel);
          for (int64_t p = 0; p < length; ++p)
            pixel[p] =
                i * pixels + (plan->column_order ? column_major(pixel[p], window.image) : pixel[p]);
        } else if (!std::is_same_v<T, float> || !plan->vectors) {
          max_row(pace, plan->rows, r, plane, 0, line);
        } else {
          if constexpr (std::is_same_v<T, float>) plan->vectors->run(pace, r, plane, line);
        }
        if (!direct) store(run.output(0), at, line, length);
        finish_rows(run, r, between, plan->rows.rows(), i * positions, length);
      }
    });
    return run.stop();
  };
  return kernel;
}

// Sums over windows, kept in double: of x, or of |x|^p.
struct SumPlan {
  PoolGeometry geometry;
  WindowRows rows;
  pfrt_dtype dtype;
  double power = 0;  // 0: an average
  std::vector<std::vector<int64_t>> counts;
};

template <typename T>
void sum_row(Pace& pace, const SumPlan& plan, int64_t row, const T* plane, double* line) {
  std::fill(line, line + plan.rows.row_length(), 0.0);
  const int64_t stride = plan.rows.stride();
  each_tap(pace, plan.rows, row, [&](int64_t first, int64_t begin, int64_t end) {
    const T* const from = plane + first;
    if (plan.power == 0 || plan.power == 1) {
      const bool absolute = plan.power != 0;
      for (int64_t p = begin; p < end; ++p) {
        const double v = static_cast<double>(from[p * stride]);
        line[p] += absolute ? std::fabs(v) : v;
      }
    } else if (plan.power == 2) {
      for (int64_t p = begin; p < end; ++p) {
        const double v = static_cast<double>(from[p * stride]);
        line[p] += v * v;
      }
    } else {
      for (int64_t p = begin; p < end; ++p)
        line[p] += std::pow(std::fabs(static_cast<double>(from[p * stride])), plan.power);
    }
  });
}

void finish_row(const SumPlan& plan, int64_t row, double* line) {
  const int64_t length = plan.rows.row_length();
  if (plan.power != 0) {
    for (int64_t p = 0; p < length; ++p)
      line[p] = plan.power == 1   ? line[p]
                : plan.power == 2 ? std::sqrt(line[p])
                                  : std::pow(line[p], 1 / plan.power);
    return;
  }
  int64_t outer = 1;
  for (size_t d = plan.counts.size() - 1; d-- > 0;) {
    const int64_t size = static_cast<int64_t>(plan.counts[d].size());
    outer *= plan.counts[d][static_cast<size_t>(row % size)];
    row /= size;
  }
  for (int64_t p = 0; p < length; ++p) {
    const int64_t count = outer * plan.counts.back()[static_cast<size_t>(p)];
    line[p] /= static_cast<double>(count > 0 ? count : 1);
  }
}

template <typename T>
Result<Kernel> make_sum(const SnapshotNode& node, double power) {
  PFRT_ASSIGN(PoolGeometry g, pool_geometry(node));
  const WindowRows rows(g.window);
  SumPlan made{std::move(g), rows, node.input_dtype(0), power, {}};
  const Window& window = made.geometry.window;
  if (power == 0)
    for (size_t d = 0; d < window.rank(); ++d)
      made.counts.push_back(pool_tap_counts(window, d, node.attr_int("count_include_pad", 0) != 0));
  const int64_t pixels = window.image_size(), length = rows.row_length();
  Kernel kernel;
  kernel.flops = static_cast<double>(made.geometry.planes) *
                 static_cast<double>(window.position_count()) * static_cast<double>(window.taps());
  kernel.scratch_bytes =
      static_cast<uint64_t>(length) * sizeof(double) + static_cast<uint64_t>(pixels) * sizeof(T);
  const auto plan = std::make_shared<const SumPlan>(std::move(made));
  kernel.run = [plan, pixels, length](const Run& run) -> pfrt_code {
    const int64_t positions = plan->geometry.window.position_count();
    const StoreFn<double> store = store_fn<double>(plan->dtype);
    if (positions == 0) return 0;
    const int64_t between = std::clamp<int64_t>(16384 / length, 1, 64);  // rows
    run.parallel(plan->geometry.planes, [&](int64_t i, uint32_t worker) {
      Pace pace(run);
      double* const line = run.scratch<double>(worker);
      const T* const plane = load_plane<T>(plan->dtype, kOwn<T>, run.input(0), i, pixels,
                                           reinterpret_cast<T*>(line + length));
      for (int64_t r = 0; r < plan->rows.rows(); ++r) {
        if (r % between == 0 && run.stopped()) return;
        sum_row(pace, *plan, r, plane, line);
        finish_row(*plan, r, line);
        store(run.output(0), i * positions + r * length, line, length);
        finish_rows(run, r, between, plan->rows.rows(), i * positions, length);
      }
    });
    return run.stop();
  };
  return kernel;
}

bool is_double(const SnapshotNode& node) { return node.input_dtype(0) == PFRT_DTYPE_FLOAT64; }

}  // namespace

std::vector<int64_t> pool_tap_counts(const Window& w, size_t d, bool with_pads) {
  const int64_t low = with_pads ? -w.pads[d] : 0,
                high = w.image[d] + (with_pads ? w.end_pads[d] : 0);
  // Taps of the window that begins at |start| whose pixels are before |end|.
  const auto before = [&](int64_t end, int64_t start) {
    if (end <= start) return int64_t{0};
    return std::min(w.kernel[d], (end - start - 1) / w.dilations[d] + 1);
  };
  std::vector<int64_t> counts;
  for (int64_t p = 0; p < w.positions[d]; ++p) {
    const int64_t start = p * w.strides[d] - w.pads[d];
    counts.push_back(std::max<int64_t>(before(high, start) - before(low, start), 0));
  }
  return counts;
}

void max_pool_row(Pace& pace, const WindowRows& rows, int64_t row, const float* plane,
                  int64_t skipped, float* line) {
  max_row(pace, rows, row, plane, skipped, line);
}

Result<Kernel> make_max_pool(const KernelRequest& node) {
  const pfrt_dtype dtype = node.input_dtype(0);
  if ((dtype == PFRT_DTYPE_INT8 || dtype == PFRT_DTYPE_UINT8) && !node.has_output(1)) {
    PFRT_ASSIGN(std::optional<Kernel> of_bytes, make_max_pool_bytes(node));
    if (of_bytes) return std::move(*of_bytes);
  }
  return is_double(node) ? make_max<double>(node) : make_max<float>(node);
}

Result<Kernel> make_average_pool(const KernelRequest& node) {
  if (node.input_dtype(0) == PFRT_DTYPE_FLOAT32 && isa() >= Isa::kAvx2) {
    PFRT_ASSIGN(PoolGeometry g, pool_geometry(node));
    if (SmallPlanes::takes(g.window, g.planes))
      return average_pool_small_planes(node, std::move(g));
    if (g.window.rank() == 2) return average_pool_vectors(node, std::move(g));
  }
  return is_double(node) ? make_sum<double>(node, 0) : make_sum<float>(node, 0);
}

Result<Kernel> make_lp_pool(const KernelRequest& node) {
  const int64_t p = node.attr_int("p", 2);
  if (p < 1) return kernel_error("p is ", p, ", expected at least 1");
  return is_double(node) ? make_sum<double>(node, static_cast<double>(p))
                         : make_sum<float>(node, static_cast<double>(p));
}

}  // namespace pfrt::cpu
