// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/program/step_kernels.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace pfrt::cpu {
namespace {

constexpr int64_t kLoopBlock = 16 * 1024;   // elements
constexpr int64_t kCopyBlock = 256 * 1024;  // bytes

}  // namespace

Kernel copy_kernel(std::vector<uint64_t> bytes) {
  Kernel kernel;
  kernel.run = [bytes = std::move(bytes)](const Run& run) {
    for (uint32_t i = 0; i < bytes.size(); ++i)
      run.blocks(static_cast<int64_t>(bytes[i]), kCopyBlock, [&](int64_t begin, int64_t end) {
        std::memcpy(run.output<char>(i) + begin, run.input<char>(i) + begin,
                    static_cast<size_t>(end - begin));
      });
    return run.stop();
  };
  return kernel;
}

Kernel loop_kernel(BroadcastLoop loop) {
  Kernel kernel;
  kernel.flops = loop.flops();
  kernel.width =
      static_cast<uint32_t>(std::min<int64_t>(loop.elements() / kLoopBlock + 1, UINT32_MAX));
  kernel.run = [loop = std::move(loop)](const Run& run) {
    std::array<const void*, LoopPlan::kMostPointers> bases;
    for (uint32_t i = 0; i < loop.inputs(); ++i) bases[i] = run.input(i);
    for (uint32_t i = 0; i < loop.outputs(); ++i) bases[loop.inputs() + i] = run.output(i);
    run.blocks(loop.elements(), kLoopBlock,
               [&](int64_t begin, int64_t end) { loop.run(bases.data(), begin, end); });
    return run.stop();
  };
  return kernel;
}

std::vector<std::pair<uint32_t, uint32_t>> loop_aliases(const LoopPlan& plan) {
  std::vector<std::pair<uint32_t, uint32_t>> out;
  const std::vector<Operation>& operations = plan.expression.operations();
  for (uint32_t o = 0; o < plan.outputs.size(); ++o) {
    const Stored& stored = plan.expression.outputs()[o];
    const Term first = std::min(stored.term, stored.high);
    for (uint32_t at = 0; at <= first; ++at) {
      const bool wide = at + 1 < operations.size() && operations[at + 1].prim == Prim::kInputHigh;
      const bool is_read = operations[at].prim == Prim::kInput && at + wide <= first;
      if (is_read && dtype_size(operations[at].type) == dtype_size(stored.type))
        out.emplace_back(operations[at].slot, o);
    }
  }
  return out;
}

}  // namespace pfrt::cpu
