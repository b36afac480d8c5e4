// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/softmax/softmax.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "providers/cpu/elements/lines.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/softmax/line.h"

namespace pfrt::cpu {
namespace {

// The greatest element; a NaN where there is one.
template <typename T>
T greatest(const T* x, int64_t n) {
  T best = x[0];
  for (int64_t i = 1; i < n; ++i) best = best > x[i] || best != best ? best : x[i];
  return best;
}

// Lines of at least one element; |x| and |y| may be the same. Sums are taken in double.
template <typename T>
void softmax_line(StopPoll& pace, const T* x, T* y, int64_t n) {
  const T shift = greatest(x, n);
  double sum = 0;
  in_chunks(pace, n, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      y[i] = std::exp(x[i] - shift);
      sum += static_cast<double>(y[i]);
    }
  });
  const double scale = 1.0 / sum;
  in_chunks(pace, n, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) y[i] = static_cast<T>(static_cast<double>(y[i]) * scale);
  });
}

template <typename T>
void log_softmax_line(StopPoll& pace, const T* x, T* y, int64_t n) {
  const T shift = greatest(x, n);
  double sum = 0;
  in_chunks(pace, n, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) sum += static_cast<double>(std::exp(x[i] - shift));
  });
  const T log_sum = static_cast<T>(std::log(sum));
  in_chunks(pace, n, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) y[i] = (x[i] - shift) - log_sum;
  });
}

// Writes 1 at the first greatest element, or at the first NaN.
template <typename T>
void hardmax_line(StopPoll& pace, const T* x, T* y, int64_t n) {
  int64_t at = 0;
  in_chunks(pace, n, [&](int64_t begin, int64_t end) {
    for (int64_t i = std::max<int64_t>(begin, 1); i < end && x[at] == x[at]; ++i)
      if (x[at] < x[i] || x[i] != x[i]) at = i;
  });
  in_chunks(pace, n, [&](int64_t begin, int64_t end) { std::fill(y + begin, y + end, T{0}); });
  y[at] = T{1};
}

// Computes |count| lines of |n|. A line's greatest element, its sum and a quotient take long to
// come: other lines are worked on meanwhile.
void softmax_floats(StopPoll& pace, const LineMath& math, const float* x, float* y, int64_t n,
                    int64_t count) {
  constexpr int64_t kTogether = 16, kElements = 4096;  // so many stay in the cache
  const int64_t most = std::clamp<int64_t>(kElements / std::max<int64_t>(n, 1), 1, kTogether);
  for (int64_t first = 0; first < count; first += most) {
    const int64_t lines = std::min(most, count - first), from = first * n;
    std::array<float, kTogether> shifts;
    std::array<double, kTogether> sums{};
    for (int64_t j = 0; j < lines; ++j)
      shifts[static_cast<size_t>(j)] =
          math.greatest(x + from + j * n, n, -std::numeric_limits<float>::infinity());
    for (int64_t j = 0; j < lines; ++j)
      in_chunks(pace, n, [&](int64_t begin, int64_t end) {
        const int64_t at = from + j * n + begin;
        sums[static_cast<size_t>(j)] +=
            math.exp(x + at, y + at, end - begin, shifts[static_cast<size_t>(j)]);
      });
    for (int64_t j = 0; j < lines; ++j)
      in_chunks(pace, n, [&](int64_t begin, int64_t end) {
        const int64_t at = from + j * n + begin;
        math.scale(y + at, y + at, end - begin, 1.0 / sums[static_cast<size_t>(j)]);
      });
  }
}

// The exponentials are needed for their sum alone.
void log_softmax_floats(StopPoll& pace, const LineMath& math, const float* x, float* y, int64_t n,
                        int64_t count) {
  constexpr float kLowest = -std::numeric_limits<float>::infinity();
  float unused[kBlock];
  for (int64_t at = 0; at < count * n; at += n) {
    const float shift = math.greatest(x + at, n, kLowest);
    double sum = 0;
    in_chunks(pace, n, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i += kBlock)
        sum += math.exp(x + at + i, unused, std::min(end - i, kBlock), shift);
    });
    const auto log_sum = static_cast<float>(std::log(sum));
    in_chunks(pace, n, [&](int64_t begin, int64_t end) {
      math.subtract(x + at + begin, y + at + begin, end - begin, shift, log_sum);
    });
  }
}

// A function of |count| lines of |n|.
template <typename T>
using LineLoop = std::function<void(StopPoll& pace, const T* x, T* y, int64_t n, int64_t count)>;

template <typename T>
LineLoop<T> each(void (*line)(StopPoll& pace, const T* x, T* y, int64_t n)) {
  return [line](StopPoll& pace, const T* x, T* y, int64_t n, int64_t count) {
    for (int64_t j = 0; j < count; ++j) line(pace, x + j * n, y + j * n, n);
  };
}

template <typename T>
Kernel line_kernel(const Lines& lines, pfrt_dtype dtype, LineLoop<T> loop) {
  Kernel kernel;
  kernel.scratch_bytes = lines.buffer_bytes<T>(dtype);
  kernel.may_alias = 0;
  kernel.run = [=](const Run& run) {
    run.parallel(lines.groups, [&](int64_t index, uint32_t worker) {
      StopPoll pace(run);
      const LineGroup group(lines, index);
      T* buffer = run.scratch<T>(worker);
      const T* x = load_lines(pace, lines, group, dtype, run.input(0), buffer);
      T* y = place_lines(lines, group, dtype, run.output(0), buffer);
      loop(pace, x, y, lines.length, group.count);
      store_lines(pace, lines, group, dtype, run.output(0), y);
      finish_lines(run, lines, group);
    });
    return run.stop();
  };
  return kernel;
}

Result<Kernel> make_lines(const SnapshotNode& node, LineLoop<float> f32, LineLoop<double> f64,
                          double cost) {
  PFRT_TRY(need(node, 1, 1));
  PFRT_TRY(need_like_output(node, 0));
  PFRT_ASSIGN(const Lines lines, Lines::make(node.input_dims(0), node.attr_int("axis", -1)));
  const pfrt_dtype dtype = node.input_dtype(0);
  Kernel kernel;
  if (lines.length == 0) {
    kernel.run = [](const Run&) { return pfrt_code{PFRT_CODE_OK}; };
    return kernel;
  }
  kernel = dtype == PFRT_DTYPE_FLOAT64 ? line_kernel(lines, dtype, std::move(f64))
                                       : line_kernel(lines, dtype, std::move(f32));
  kernel.flops = cost * static_cast<double>(node.output_elements(0));
  return kernel;
}

Result<Kernel> make_softmax(const KernelRequest& node) {
  const auto lines = [math = LineMath::here()](StopPoll& pace, const float* x, float* y, int64_t n,
                                               int64_t count) {
    softmax_floats(pace, math, x, y, n, count);
  };
  return make_lines(node, lines, each(softmax_line<double>), 14);
}
Result<Kernel> make_log_softmax(const KernelRequest& node) {
  const auto lines = [math = LineMath::here()](StopPoll& pace, const float* x, float* y, int64_t n,
                                               int64_t count) {
    log_softmax_floats(pace, math, x, y, n, count);
  };
  return make_lines(node, lines, each(log_softmax_line<double>), 14);
}
Result<Kernel> make_hardmax(const KernelRequest& node) {
  return make_lines(node, each(hardmax_line<float>), each(hardmax_line<double>), 1);
}

constexpr KernelRow kRows[] = {
    with_epilogue({"", "Softmax", kFloats, "softmax_lines", "generic", nullptr, make_softmax}),
    with_epilogue(
        {"", "LogSoftmax", kFloats, "log_softmax_lines", "generic", nullptr, make_log_softmax}),
    with_epilogue({"", "Hardmax", kFloats, "hardmax_ref", "generic", nullptr, make_hardmax}),
};

}  // namespace

std::span<const KernelRow> softmax_kernels() { return kRows; }

}  // namespace pfrt::cpu
