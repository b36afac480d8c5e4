// SPDX-License-Identifier: Apache-2.0
#include <emmintrin.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <type_traits>
#include <vector>

#include "providers/cpu/elements/complex.h"
#include "providers/cpu/elements/convert.h"
#include "providers/cpu/elements/lines.h"
#include "providers/cpu/kernel/data_dependent_output.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernel/stop_poll.h"
#include "providers/cpu/kernels/index/index.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kTask = 16 * kBlock;

// Up to eight elements are looked at together; bit j of their set says that the jth is not 0.
constexpr int64_t kTogether = 8;

// Where in a set its bits lie, in order, and how many there are.
struct Places {
  uint8_t at[256][kTogether], count[256];
};
constexpr Places kPlaces = [] {
  Places places{};
  for (int set = 0; set < 256; ++set)
    for (uint8_t j = 0; j < kTogether; ++j)
      if ((set >> j & 1) != 0) places.at[set][places.count[set]++] = j;
  return places;
}();

// fn(i, set) for the elements from i on, which ends at |end| or a multiple of eight after |begin|.
template <typename T, typename Fn>
void each_set(pfrt_dtype dtype, const void* x, int64_t begin, int64_t end, Fn&& fn) {
  T block[2 * kBlock];
  const int64_t components = components_of(dtype);
  for (int64_t first = begin; first < end; first += kBlock) {
    const int64_t n = std::min(kBlock, end - first);
    const T* values =
        read_block(component_dtype(dtype), x, first * components, n * components, block);
    int64_t j = 0;
    if constexpr (std::is_same_v<T, float>) {
      const __m128 zero = _mm_setzero_ps();
      for (; components == 1 && j + kTogether <= n; j += kTogether) {
        const int low = _mm_movemask_ps(_mm_cmpneq_ps(_mm_loadu_ps(values + j), zero));
        const int high = _mm_movemask_ps(_mm_cmpneq_ps(_mm_loadu_ps(values + j + 4), zero));
        fn(first + j, static_cast<uint32_t>(low | high << 4));
      }
    }
    for (; j < n; j += kTogether) {
      uint32_t set = 0;  // without branches
      for (int64_t k = j; k < std::min(n, j + kTogether); ++k) {
        const T* const value = values + k * components;
        set |= static_cast<uint32_t>((value[0] != T{0}) | (value[components - 1] != T{0}))
               << (k - j);
      }
      fn(first + j, set);
    }
  }
}

// Does the same for elements of a byte.
struct Byte {};
template <typename Fn>
void each_set_of_bytes(const uint8_t* x, int64_t begin, int64_t end, Fn&& fn) {
  for (int64_t i = begin; i < end; i += kTogether) {
    uint64_t eight = 0;
    std::memcpy(&eight, x + i, static_cast<size_t>(std::min(kTogether, end - i)));
    const __m128i bytes = _mm_cvtsi64_si128(static_cast<int64_t>(eight));
    const int zeros = _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_setzero_si128()));
    fn(i, static_cast<uint32_t>(~zeros) & 0xff);
  }
}

bool is_byte(pfrt_dtype dtype) {
  return dtype == PFRT_DTYPE_BOOL || dtype == PFRT_DTYPE_UINT8 || dtype == PFRT_DTYPE_INT8;
}

// Writes coordinates of elements, which are called in their order, to columns of |y|: those of
// this writer are |count| from |column| on.
class Coordinates {
 public:
  Coordinates(const std::vector<int64_t>& dims, int64_t total, int64_t column, int64_t count,
              int64_t* y)
      : last_(dims.size() - 1), dims_(dims), total_(total), y_(y + column), room_(count) {
    row_.resize(last_);
  }

  void write(int64_t i, uint32_t set) {
    if (set == 0) return;
    if (i >= end_) find_row(i);
    if (i + kTogether <= end_ && room_ >= kTogether) {
      // All eight columns are written, since later elements overwrite those that are too many.
      for (size_t d = 0; d < last_; ++d) {
        const int64_t at = row_[d];
        int64_t* const y = y_ + static_cast<int64_t>(d) * total_;
        for (int64_t j = 0; j < kTogether; ++j) y[j] = at;
      }
      const int64_t at = i - start_;
      int64_t* const y = y_ + static_cast<int64_t>(last_) * total_;
      const uint8_t* const places = kPlaces.at[set];
      for (int64_t j = 0; j < kTogether; ++j) y[j] = at + places[j];
      advance(kPlaces.count[set]);
      return;
    }
    for (; set != 0 && room_ > 0; set &= set - 1) {
      const int64_t element = i + std::countr_zero(set);
      if (element >= end_) find_row(element);
      for (size_t d = 0; d < last_; ++d) y_[static_cast<int64_t>(d) * total_] = row_[d];
      y_[static_cast<int64_t>(last_) * total_] = element - start_;
      advance(1);
    }
  }

 private:
  void find_row(int64_t i) {
    int64_t row = i / dims_[last_];
    start_ = row * dims_[last_];
    end_ = start_ + dims_[last_];
    for (size_t d = last_; d-- > 0; row /= dims_[d]) row_[d] = row % dims_[d];
  }
  void advance(int64_t n) {
    y_ += n;
    room_ -= n;
  }

  size_t last_;  // dimension
  const std::vector<int64_t>& dims_;
  int64_t total_, start_ = 0, end_ = 0;  // elements of the row that was last written to
  std::vector<int64_t> row_;             // its other coordinates
  int64_t* y_;
  int64_t room_;
};

// Row-major order is kept: tasks are counted first, so that each knows where its positions go.
template <typename T>
pfrt_code non_zero(const Run& run, const DataDependentOutput& outlet,
                   const std::vector<int64_t>& dims, pfrt_dtype dtype, int64_t elements) {
  const void* x = run.input(0);
  const auto each = [&](auto&& fn, int64_t begin, int64_t end) {
    if constexpr (std::is_same_v<T, Byte>)
      each_set_of_bytes(static_cast<const uint8_t*>(x), begin, end, fn);
    else
      each_set<T>(dtype, x, begin, end, fn);
  };
  std::vector<int64_t> starts(static_cast<size_t>((elements + kTask - 1) / kTask) + 1);
  run.blocks(elements, kTask, [&](int64_t begin, int64_t end) {
    int64_t count = 0;
    each([&](int64_t, uint32_t set) { count += kPlaces.count[set]; }, begin, end);
    starts[static_cast<size_t>(begin / kTask) + 1] = count;
  });
  if (const pfrt_code code = run.stop()) return code;
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
  const int64_t total = starts.back();
  const int64_t out_dims[] = {static_cast<int64_t>(dims.size()), total};
  void* out = nullptr;
  if (const pfrt_code code = outlet.open(run, out_dims, &out)) return code;
  if (dims.empty()) return PFRT_CODE_OK;
  int64_t* y = static_cast<int64_t*>(out);
  run.blocks(elements, kTask, [&](int64_t begin, int64_t end) {
    const int64_t* const start = &starts[static_cast<size_t>(begin / kTask)];
    Coordinates to(dims, total, start[0], start[1] - start[0], y);
    each([&](int64_t i, uint32_t set) { to.write(i, set); }, begin, end);
  });
  return run.stop();
}

Result<Kernel> make_non_zero(const KernelRequest& node) {
  PFRT_TRY(need(node, 1, 0));
  if (node.output_dtype(0) != PFRT_DTYPE_INT64)
    return error(Code::kDTYPE_MISMATCH, "the output is ", dtype_name(node.output_dtype(0)),
                 ": int64");
  Kernel kernel;
  kernel.run = [dims = std::vector<int64_t>(node.input_dims(0).begin(), node.input_dims(0).end()),
                dtype = node.input_dtype(0), elements = node.input_elements(0),
                outlet = DataDependentOutput(node, 0)](const Run& run) {
    if (is_byte(dtype)) return non_zero<Byte>(run, outlet, dims, dtype, elements);
    return with_compute_type(component_dtype(dtype), [&](auto zero) {
      return non_zero<decltype(zero)>(run, outlet, dims, dtype, elements);
    });
  };
  kernel.flops = 2.0 * static_cast<double>(node.input_elements(0));
  return kernel;
}

std::string refuse_compress(const KernelRequest& node) {
  if (node.input_dtype(1) == PFRT_DTYPE_BOOL) return {};
  return message("the condition is ", dtype_name(node.input_dtype(1)), ": bool");
}

// Slices of |lines| along the axis whose condition holds; those beyond the condition are dropped.
Result<Kernel> make_compress(const KernelRequest& node) {
  PFRT_TRY(need(node, 2, 0));
  if (node.output_dtype(0) != node.input_dtype(0))
    return error(Code::kDTYPE_MISMATCH, "the input is ", dtype_name(node.input_dtype(0)),
                 ", the output ", dtype_name(node.output_dtype(0)));
  const bool flat = node.attr("axis") == nullptr;
  const int64_t count = node.input_elements(0);
  const std::vector<int64_t> dims =
      flat ? std::vector<int64_t>{count}
           : std::vector<int64_t>(node.input_dims(0).begin(), node.input_dims(0).end());
  PFRT_ASSIGN(const int64_t axis, axis_of(flat ? 0 : node.attr_int("axis", 0), dims.size()));
  PFRT_ASSIGN(const Lines lines, Lines::make(dims, axis));
  const int64_t slice = lines.inner * static_cast<int64_t>(dtype_size(node.input_dtype(0)));
  const int64_t conditions = std::min(node.input_elements(1), lines.length);
  Kernel kernel;
  kernel.run = [=, outlet = DataDependentOutput(node, 0)](const Run& run) {
    const uint8_t* condition = run.input<uint8_t>(1);
    std::vector<int64_t> kept;
    StopPoll pace(run);
    for (int64_t i = 0; i < conditions && !pace.stopped(8); ++i)
      if (condition[i] != 0) kept.push_back(i);
    if (const pfrt_code code = run.stop()) return code;
    const int64_t n = static_cast<int64_t>(kept.size());
    std::vector<int64_t> out_dims = dims;
    out_dims[static_cast<size_t>(axis)] = n;
    void* out = nullptr;
    if (const pfrt_code code = outlet.open(run, out_dims, &out)) return code;
    if (element_count(out_dims.data(), out_dims.size()) == 0) return pfrt_code{PFRT_CODE_OK};
    const int64_t slices_a_task = std::max<int64_t>(64 * kBlock / slice, 1);
    run.blocks(lines.outer * n, slices_a_task, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t from = i / n * lines.length + kept[static_cast<size_t>(i % n)];
        std::memcpy(static_cast<char*>(out) + i * slice, run.input<char>(0) + from * slice,
                    static_cast<size_t>(slice));
      }
    });
    return run.stop();
  };
  return kernel;
}

constexpr KernelRow kRows[] = {
    {"", "NonZero", kNumbers | kBool | kComplex, "non_zero_sets", "generic", nullptr,
     make_non_zero},
    {"", "Compress", kMovable, "compress_ref", "generic", refuse_compress, make_compress},
};

}  // namespace

std::span<const KernelRow> gathering_rows() { return kRows; }

}  // namespace pfrt::cpu
