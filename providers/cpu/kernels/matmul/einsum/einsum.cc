// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>

#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/matmul/einsum/step.h"
#include "providers/cpu/kernels/matmul/make.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kFilledAtOnce = 1 << 15;

template <typename T>
struct Plan {
  struct Step {
    EinsumMatMul<T> matmul;
    size_t a, b;
    uint64_t offset;  // of the result in the memory that the steps share
  };
  pfrt_dtype dtype;
  size_t inputs;
  std::vector<Step> steps;

  EinsumPlace operand(const Run& run, size_t number) const {
    if (number < inputs)
      return {const_cast<void*>(run.input(static_cast<uint32_t>(number))), dtype};
    return result(run, number - inputs);
  }
  EinsumPlace result(const Run& run, size_t step) const {
    if (step + 1 == steps.size()) return {run.output(0), dtype};
    return {run.shared<char>() + steps[step].offset, kOwn};
  }

 private:
  static constexpr pfrt_dtype kOwn = std::is_same_v<T, float>      ? PFRT_DTYPE_FLOAT32
                                     : std::is_same_v<T, double>   ? PFRT_DTYPE_FLOAT64
                                     : std::is_same_v<T, uint32_t> ? PFRT_DTYPE_UINT32
                                                                   : PFRT_DTYPE_UINT64;
};

template <typename T>
Result<Kernel> make_typed(const EinsumShape& shape, pfrt_dtype dtype) {
  PFRT_ASSIGN(const std::vector<EinsumStep> path, einsum_path(shape));
  auto plan = std::make_shared<Plan<T>>();
  plan->dtype = dtype;
  plan->inputs = shape.strides.size();
  Kernel kernel;
  for (const EinsumStep& step : path) {
    const EinsumMatMul<T> matmul(step, shape.sizes);
    kernel.flops += matmul.flops();
    kernel.scratch_bytes = std::max(kernel.scratch_bytes, matmul.scratch_bytes());
    const size_t b = step.b == EinsumStep::kNone ? step.a : step.b;
    plan->steps.push_back({matmul, step.a, b, kernel.shared_bytes});
    if (plan->steps.size() < path.size())
      kernel.shared_bytes += (static_cast<uint64_t>(step.elements) * sizeof(T) + 63) / 64 * 64;
  }
  kernel.run = [plan = std::shared_ptr<const Plan<T>>(std::move(plan))](const Run& run) {
    for (size_t i = 0; i < plan->steps.size() && !run.stopped(); ++i) {
      const auto& step = plan->steps[i];
      step.matmul.run(run, plan->operand(run, step.a), plan->operand(run, step.b),
                      plan->result(run, i));
    }
    return run.stop();
  };
  return kernel;
}

// Sums of nothing.
Kernel make_zeros(const EinsumShape& shape, pfrt_dtype dtype) {
  int64_t bytes = static_cast<int64_t>(stored_size(dtype));
  for (size_t l = 0; l < shape.output_labels; ++l) bytes *= shape.sizes[l];
  Kernel kernel;
  kernel.run = [bytes](const Run& run) {
    run.blocks(bytes, kFilledAtOnce, [&](int64_t begin, int64_t end) {
      std::fill_n(run.output<char>(0) + begin, end - begin, char{0});
    });
    return run.stop();
  };
  return kernel;
}

}  // namespace

std::string refuse_einsum(const KernelRequest& node) {
  const auto equation = parse_einsum(node.attr_string("equation", ""));
  return equation.ok() ? "" : equation.status().message();
}

Result<Kernel> make_einsum(const KernelRequest& node) {
  PFRT_ASSIGN(const EinsumEquation equation, parse_einsum(node.attr_string("equation", "")));
  PFRT_TRY(need(node, node.input_count(), 1));
  for (uint32_t i = 1; i < node.input_count(); ++i)
    PFRT_TRY(need_types(node, {i}, Types{node.input_dtype(0)}));
  std::vector<std::vector<int64_t>> dims;
  for (uint32_t i = 0; i < node.input_count(); ++i) {
    const auto d = node.input_dims(i);
    dims.emplace_back(d.begin(), d.end());
  }
  PFRT_ASSIGN(const EinsumShape shape, bind_einsum(equation, dims));
  PFRT_TRY(need_output_dims(node, 0, std::span(shape.sizes).first(shape.output_labels)));
  const pfrt_dtype dtype = node.input_dtype(0);
  if (std::count(shape.sizes.begin(), shape.sizes.end(), 0) != 0) return make_zeros(shape, dtype);
  switch (dtype) {
    case PFRT_DTYPE_FLOAT64:
      return make_typed<double>(shape, dtype);
    case PFRT_DTYPE_INT8:
    case PFRT_DTYPE_UINT8:
    case PFRT_DTYPE_INT16:
    case PFRT_DTYPE_UINT16:
    case PFRT_DTYPE_INT32:
    case PFRT_DTYPE_UINT32:  // shorter results are these modulo their size
      return make_typed<uint32_t>(shape, dtype);
    case PFRT_DTYPE_INT64:
    case PFRT_DTYPE_UINT64:
      return make_typed<uint64_t>(shape, dtype);
    default:
      return make_typed<float>(shape, dtype);
  }
}

}  // namespace pfrt::cpu
