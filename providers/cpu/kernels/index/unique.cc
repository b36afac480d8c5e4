// SPDX-License-Identifier: Apache-2.0
//
// Unique: slices along an axis (or single elements) are sorted by content, equal ones become one
// group, and groups are given out in order of content or of first occurrence. NaNs are equal to
// each other and after all numbers; complex numbers are ordered by their real parts first.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "providers/cpu/elements/complex.h"
#include "providers/cpu/elements/convert.h"
#include "providers/cpu/elements/lines.h"
#include "providers/cpu/elements/sorting.h"
#include "providers/cpu/kernel/data_dependent_output.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/index/index.h"

namespace pfrt::cpu {
namespace {

template <typename T>
int compared(T a, T b) {
  const bool a_nan = a != a, b_nan = b != b;
  if (a_nan || b_nan) return static_cast<int>(a_nan) - static_cast<int>(b_nan);
  return a < b ? -1 : b < a ? 1 : 0;
}

template <typename T>
int compared(const T* a, const T* b, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    if (const int order = compared(a[i], b[i])) return order;
  return 0;
}

struct Groups {
  std::vector<int64_t> first;    // first slice of each group
  std::vector<int64_t> count;    // slices of each group
  std::vector<int64_t> inverse;  // group of each slice
};

// |slices| is [n][width].
template <typename T>
Groups grouped(const Run& run, const T* slices, int64_t n, int64_t width, bool sorted) {
  const auto at = [&](int64_t i) { return slices + i * width; };
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto before = [&](int64_t i, int64_t j) {
    const int c = compared(at(i), at(j), width);
    return c != 0 ? c < 0 : i < j;
  };
  Groups groups;
  if (!sort_unless_stopped(run, before, [&](const auto& compare) {
        std::sort(order.begin(), order.end(), compare);
      }))
    return groups;
  groups.inverse.resize(order.size());
  Pace pace(run);
  for (const int64_t i : order) {
    if (pace.stopped(16)) return groups;
    if (groups.first.empty() || compared(at(groups.first.back()), at(i), width) != 0) {
      groups.first.push_back(i);
      groups.count.push_back(0);
    }
    ++groups.count.back();
    groups.inverse[static_cast<size_t>(i)] = static_cast<int64_t>(groups.first.size()) - 1;
  }
  if (sorted) return groups;

  std::vector<size_t> by_first(groups.first.size());
  std::iota(by_first.begin(), by_first.end(), size_t{0});
  const auto earlier = [&](size_t a, size_t b) { return groups.first[a] < groups.first[b]; };
  if (!sort_unless_stopped(run, earlier, [&](const auto& compare) {
        std::sort(by_first.begin(), by_first.end(), compare);
      }))
    return groups;
  Groups renumbered;
  std::vector<int64_t> number(by_first.size());
  for (const size_t g : by_first) {
    if (pace.stopped(16)) return groups;
    number[g] = static_cast<int64_t>(renumbered.first.size());
    renumbered.first.push_back(groups.first[g]);
    renumbered.count.push_back(groups.count[g]);
  }
  for (const int64_t g : groups.inverse) {
    if (pace.stopped(8)) return groups;
    renumbered.inverse.push_back(number[static_cast<size_t>(g)]);
  }
  return renumbered;
}

struct UniqueJob {
  std::vector<int64_t> dims;  // of the input, or its one dimension when flattened
  size_t axis = 0;
  Lines lines;
  pfrt_dtype dtype = PFRT_DTYPE_UNSET;
  bool sorted = true;
  std::vector<Outlet> outlets;  // values, indices, inverse, counts
};

// The input with the axis first: [length][outer * inner].
template <typename T>
std::unique_ptr<T[]> slices_of(Pace& pace, const UniqueJob& job, const void* x) {
  const Lines& lines = job.lines;
  const int64_t components = components_of(job.dtype), width = lines.lines() * components;
  auto slices = std::make_unique_for_overwrite<T[]>(static_cast<size_t>(lines.length * width));
  for (int64_t o = 0; o < lines.outer; ++o)
    for (int64_t k = 0; k < lines.length && !pace.stopped(16 + lines.inner); ++k)
      load_block(component_dtype(job.dtype),
                 element(job.dtype, x, (o * lines.length + k) * lines.inner),
                 lines.inner * components,
                 &slices[static_cast<size_t>(k * width + o * lines.inner * components)]);
  return slices;
}

template <typename T>
pfrt_code unique(const Run& run, const UniqueJob& job) {
  const Lines& lines = job.lines;
  Pace pace(run);
  const Groups groups = [&] {
    const auto slices = slices_of<T>(pace, job, run.input(0));
    if (run.stopped()) return Groups();
    const int64_t width = lines.lines() * components_of(job.dtype);
    return grouped(run, slices.get(), lines.length, width, job.sorted);
  }();
  if (const pfrt_code code = run.stop()) return code;
  const int64_t n = static_cast<int64_t>(groups.first.size());
  std::vector<int64_t> dims = job.dims;
  dims[job.axis] = n;
  void* y = nullptr;
  if (const pfrt_code code = job.outlets[0].open(run, dims, &y)) return code;
  const int64_t bytes = lines.inner * static_cast<int64_t>(dtype_size(job.dtype));
  for (int64_t i = 0; y && bytes > 0 && i < lines.outer * n && !pace.stopped(8 + bytes); ++i) {
    const int64_t from = i / n * lines.length + groups.first[static_cast<size_t>(i % n)];
    std::memcpy(static_cast<char*>(y) + i * bytes, run.input<char>(0) + from * bytes,
                static_cast<size_t>(bytes));
  }
  const std::vector<int64_t>* lists[] = {&groups.first, &groups.inverse, &groups.count};
  for (size_t i = 0; i < 3; ++i) {
    const int64_t size = static_cast<int64_t>(lists[i]->size());
    void* out = nullptr;
    if (const pfrt_code code = job.outlets[i + 1].open(run, {&size, 1}, &out)) return code;
    if (out) std::copy(lists[i]->begin(), lists[i]->end(), static_cast<int64_t*>(out));
  }
  return run.stop();
}

Result<Kernel> make_unique_values(const KernelRequest& node) {
  PFRT_TRY(need(node, 1, 0));
  UniqueJob job;
  const bool flat = node.attr("axis") == nullptr;
  if (flat)
    job.dims = {node.input_elements(0)};
  else
    job.dims.assign(node.input_dims(0).begin(), node.input_dims(0).end());
  PFRT_ASSIGN(const int64_t axis, axis_of(flat ? 0 : node.attr_int("axis", 0), job.dims.size()));
  job.axis = static_cast<size_t>(axis);
  PFRT_ASSIGN(job.lines, Lines::make(job.dims, axis));
  job.dtype = node.input_dtype(0);
  job.sorted = node.attr_int("sorted", 1) != 0;
  for (uint32_t i = 0; i < 4; ++i) {
    job.outlets.emplace_back(node, i);
    const pfrt_dtype wanted = i == 0 ? job.dtype : pfrt_dtype{PFRT_DTYPE_INT64};
    if (node.has_output(i) && node.output_dtype(i) != wanted)
      return error(Code::kDTYPE_MISMATCH, "output ", i, " is ", dtype_name(node.output_dtype(i)),
                   ": ", dtype_name(wanted));
  }
  Kernel kernel;
  kernel.width = 1;
  const double elements = static_cast<double>(node.input_elements(0));
  kernel.flops = elements * std::log2(static_cast<double>(job.lines.length) + 2);
  kernel.run = [job = std::move(job)](const Run& run) {
    return with_compute_type(component_dtype(job.dtype),
                             [&](auto zero) { return unique<decltype(zero)>(run, job); });
  };
  return kernel;
}

constexpr KernelRow kRows[] = {
    optional_outputs({"", "Unique", kNumbers | kBool | kComplex, "unique_ref", "generic", nullptr,
                      make_unique_values}),
};

}  // namespace

std::span<const KernelRow> unique_rows() { return kRows; }

}  // namespace pfrt::cpu
