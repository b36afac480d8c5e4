// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/elements/convert.h"
#include "providers/cpu/elements/lines.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/reduce/reduce.h"

namespace pfrt::cpu {
namespace {

enum class Wanted : uint8_t { kGreatest, kLeast };

// Whether |x| takes the place of |best|; the first NaN wins over numbers.
template <Wanted wanted, typename T>
bool better(T x, T best) {
  if (x != x) return best == best;
  return wanted == Wanted::kGreatest ? best < x : x < best;
}

template <Wanted wanted, typename T>
int64_t best_index(Pace& pace, const T* x, int64_t n, bool last) {
  int64_t best = 0;
  in_chunks(pace, n, [&](int64_t begin, int64_t end) {
    for (int64_t i = std::max<int64_t>(begin, 1); i < end; ++i)
      if (better<wanted>(x[i], x[best]) || (last && x[i] == x[best])) best = i;
  });
  return best;
}

template <Wanted wanted, typename T>
Kernel arg_kernel(const Lines& lines, pfrt_dtype dtype, bool last) {
  Kernel kernel;
  kernel.scratch_bytes = lines.buffer_bytes<T>(dtype);
  kernel.run = [=](const Run& run) {
    int64_t* y = run.output<int64_t>(0);
    run.parallel(lines.groups, [&](int64_t index, uint32_t worker) {
      Pace pace(run);
      const LineGroup group(lines, index);
      const T* x = load_lines(pace, lines, group, dtype, run.input(0), run.scratch<T>(worker));
      int64_t* out = y + group.slice * lines.inner + group.first;
      for (int64_t j = 0; j < group.count; ++j)
        out[j] = best_index<wanted>(pace, x + j * lines.length, lines.length, last);
    });
    return run.stop();
  };
  return kernel;
}

template <Wanted wanted>
Result<Kernel> make_arg(const KernelRequest& node) {
  PFRT_TRY(need(node, 1, 1));
  if (node.output_dtype(0) != PFRT_DTYPE_INT64)
    return error(Code::kDTYPE_MISMATCH, "the output is ", dtype_name(node.output_dtype(0)),
                 ": int64");
  PFRT_ASSIGN(const Lines lines, Lines::make(node.input_dims(0), node.attr_int("axis", 0)));
  if (lines.lines() != node.output_elements(0))
    return kernel_error("there are ", lines.lines(),
                        " lines along the axis, the output was planned with ",
                        node.output_elements(0), " elements");
  if (lines.length == 0 && lines.lines() > 0)
    return kernel_error("the axis is empty: it has no greatest or least");
  const bool last = node.attr_int("select_last_index", 0) != 0;
  return with_compute_type(node.input_dtype(0), [&](auto zero) -> Result<Kernel> {
    Kernel kernel = arg_kernel<wanted, decltype(zero)>(lines, node.input_dtype(0), last);
    kernel.flops = static_cast<double>(node.input_elements(0));
    return kernel;
  });
}

constexpr KernelRow kRows[] = {
    {"", "ArgMax", kNumbers, "arg_max_ref", "generic", nullptr, make_arg<Wanted::kGreatest>},
    {"", "ArgMin", kNumbers, "arg_min_ref", "generic", nullptr, make_arg<Wanted::kLeast>},
};

}  // namespace

std::span<const KernelRow> arg_rows() { return kRows; }

}  // namespace pfrt::cpu
