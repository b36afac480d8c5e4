// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "providers/cpu/elements/arithmetic.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/elementwise/binary.h"
#include "providers/cpu/kernels/elementwise/broadcast.h"
#include "providers/cpu/kernels/elementwise/elementwise.h"

namespace pfrt::cpu {
namespace {

// y = x0 op x1 op ..., in the compute type throughout; for a mean, divided by the number of
// operands.
template <typename T>
Kernel variadic_kernel(const SnapshotNode& node, Broadcast broadcast, BinaryLoop<T, T> loop,
                       bool mean) {
  Kernel kernel;
  kernel.run = [=, broadcast = std::move(broadcast), dtype = node.input_dtype(0)](const Run& run) {
    const size_t count = broadcast.operands();
    run.blocks(broadcast.elements(), Broadcast::kTask, [&](int64_t begin, int64_t end) {
      T block[kBlock], result[kBlock];
      broadcast.walk(begin, end, [&](int64_t position, int64_t n, const int64_t* offsets) {
        for (size_t i = 0; i < count; ++i) {
          const int64_t step = broadcast.step(i);
          const T* x = read_block(dtype, run.input(static_cast<uint32_t>(i)), offsets[i],
                                  step ? n : 1, block);
          if (i > 0)
            loop(result, 1, x, step, result, n);
          else
            for (int64_t j = 0; j < n; ++j) result[j] = x[j * step];
        }
        if (mean)
          for (int64_t j = 0; j < n; ++j) result[j] /= static_cast<T>(count);
        store_block(dtype, result, n, element(dtype, run.output(0), position));
      });
      run.apply_epilogue(begin, end);
    });
    return run.stop();
  };
  return kernel;
}

Result<Kernel> make_variadic(const SnapshotNode& node, const BinaryLoops& loops, bool mean) {
  PFRT_TRY(need(node, std::max<uint32_t>(node.input_count(), 1), 1));
  std::vector<std::span<const int64_t>> dims;
  for (uint32_t i = 0; i < node.input_count(); ++i) {
    if (node.input_dtype(i) != node.output_dtype(0))
      return error(Code::kDTYPE_MISMATCH, "input ", i, " is ", dtype_name(node.input_dtype(i)),
                   ", the output ", dtype_name(node.output_dtype(0)),
                   ": cast one to the other's type");
    dims.push_back(node.input_dims(i));
  }
  PFRT_ASSIGN(auto broadcast, Broadcast::make(node.output_dims(0), dims));
  return with_compute_type(node.output_dtype(0), [&](auto zero) -> Result<Kernel> {
    using T = decltype(zero);
    const auto loop = std::get<BinaryLoop<T, T>>(loops);
    if (!loop)
      return kernel_error("element type ", dtype_name(node.output_dtype(0)), " is not computed");
    Kernel made = variadic_kernel<T>(node, std::move(broadcast), loop, mean);
    made.flops = static_cast<double>(node.output_elements(0)) * node.input_count();
    if (like_output(node, 0)) made.may_alias = 0;
    return made;
  });
}

Result<Kernel> make_max(const KernelRequest& node) {
  return make_variadic(
      node, binary_loops<[](auto a, auto b) { return maximum_of(a, b); }, On::kAny>(), false);
}
Result<Kernel> make_min(const KernelRequest& node) {
  return make_variadic(
      node, binary_loops<[](auto a, auto b) { return minimum_of(a, b); }, On::kAny>(), false);
}
Result<Kernel> make_sum(const KernelRequest& node) {
  return make_variadic(node, binary_loops<[](auto a, auto b) { return a + b; }, On::kFloat>(),
                       false);
}
Result<Kernel> make_mean(const KernelRequest& node) {
  return make_variadic(node, binary_loops<[](auto a, auto b) { return a + b; }, On::kFloat>(),
                       true);
}

constexpr KernelRow kRows[] = {
    with_epilogue({"", "Max", kNumbers, "max_ref", "generic", nullptr, make_max}),
    with_epilogue({"", "Min", kNumbers, "min_ref", "generic", nullptr, make_min}),
    with_epilogue({"", "Sum", kFloats, "sum_ref", "generic", nullptr, make_sum}),
    with_epilogue({"", "Mean", kFloats, "mean_ref", "generic", nullptr, make_mean}),
};

}  // namespace

std::span<const KernelRow> variadic_rows() { return kRows; }

}  // namespace pfrt::cpu
