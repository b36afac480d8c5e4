// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "providers/cpu/elements/arithmetic.h"
#include "providers/cpu/elements/convert.h"
#include "providers/cpu/elements/lines.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/reduce/reduce.h"

namespace pfrt::cpu {
namespace {

struct Sums {
  static constexpr int kIdentity = 0;
  template <typename T>
  static T join(T a, T b) {
    return sum_of(a, b);
  }
};
struct Products {
  static constexpr int kIdentity = 1;
  template <typename T>
  static T join(T a, T b) {
    return product_of(a, b);
  }
};

struct Form {
  bool exclusive, reverse;
};

// |x| and |y| may be the same line. Floats accumulate in double.
template <typename Op, typename T>
void accumulate_line(Pace& pace, const T* x, T* y, int64_t n, Form form) {
  using Total = std::conditional_t<std::is_same_v<T, float>, double, T>;
  Total total = Op::kIdentity;
  for (int64_t i = 0; i < n && !pace.stopped(1); ++i) {
    const int64_t at = form.reverse ? n - 1 - i : i;
    const Total before = total;
    total = Op::join(total, static_cast<Total>(x[at]));
    y[at] = static_cast<T>(form.exclusive ? before : total);
  }
}

template <typename Op, typename T>
void accumulate(const Run& run, const Lines& lines, pfrt_dtype dtype, Form form) {
  run.parallel(lines.groups, [&](int64_t index, uint32_t worker) {
    Pace pace(run);
    const LineGroup group(lines, index);
    T* buffer = run.scratch<T>(worker);
    const T* x = load_lines(pace, lines, group, dtype, run.input(0), buffer);
    T* y = place_lines(lines, group, dtype, run.output(0), buffer);
    for (int64_t j = 0; j < group.count; ++j)
      accumulate_line<Op>(pace, x + j * lines.length, y + j * lines.length, lines.length, form);
    store_lines(pace, lines, group, dtype, run.output(0), y);
  });
}

// Lines along every axis; the axis is chosen in the run.
Result<std::vector<Lines>> all_lines(std::span<const int64_t> dims) {
  std::vector<Lines> all;
  for (int64_t axis = 0; axis < std::max<int64_t>(static_cast<int64_t>(dims.size()), 1); ++axis) {
    PFRT_ASSIGN(const Lines lines, Lines::make(dims, axis));
    all.push_back(lines);
  }
  return all;
}

template <typename Op>
Result<Kernel> make_cumulative(const KernelRequest& node) {
  PFRT_TRY(need(node, 1, 1));
  PFRT_TRY(need_scalar(node, 1));
  PFRT_TRY(need_like_output(node, 0));
  const pfrt_dtype dtype = node.input_dtype(0), axis_type = node.input_dtype(1);
  if (!kIndices.has(axis_type))
    return error(Code::kDTYPE_MISMATCH, "the axis is ", dtype_name(axis_type), ": int32 or int64");
  const Form form{node.attr_int("exclusive", 0) != 0, node.attr_int("reverse", 0) != 0};
  PFRT_ASSIGN(auto lines, all_lines(node.input_dims(0)));
  Kernel kernel;
  for (const Lines& l : lines)
    kernel.scratch_bytes = std::max(kernel.scratch_bytes, l.group_elements() * 8);
  kernel.flops = static_cast<double>(node.output_elements(0));
  kernel.may_alias = 0;
  kernel.run = [=, lines = std::move(lines)](const Run& run) {
    const auto axis = axis_of(load_scalar<int64_t>(axis_type, run.input(1)), lines.size());
    if (!axis.ok()) return run.fail(axis.status().code(), axis.status().message());
    const Lines& chosen = lines[static_cast<size_t>(axis.value())];
    with_compute_type(dtype,
                      [&](auto zero) { accumulate<Op, decltype(zero)>(run, chosen, dtype, form); });
    return run.stop();
  };
  return kernel;
}

constexpr KernelRow kRows[] = {
    checks_inputs(
        {"", "CumSum", kNumbers, "cum_sum_ref", "generic", nullptr, make_cumulative<Sums>}),
    checks_inputs(
        {"", "CumProd", kNumbers, "cum_prod_ref", "generic", nullptr, make_cumulative<Products>}),
};

}  // namespace

std::span<const KernelRow> cum_sum_rows() { return kRows; }

}  // namespace pfrt::cpu
