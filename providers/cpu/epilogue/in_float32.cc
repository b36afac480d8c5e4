// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/epilogue/in_float32.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/base/dtype.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kPiece = 1 << 14;  // elements
constexpr uint64_t kLeast = 64;      // bytes

uint64_t padded(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

// Positions of widened inputs and the output in the step's shared memory, after what the kernel
// needs.
struct Plan {
  struct Input {
    uint32_t index;
    int64_t elements;
    uint64_t at;
  };
  WidenFn widen;
  NarrowFn narrow = nullptr;
  std::vector<Input> inputs;
  uint64_t output = 0, bytes = 0;

  Plan(const SnapshotNode& node, std::initializer_list<uint32_t> read, Rounding16Bit rounding)
      : widen(widen_fn(node.input_dtype(0))) {
    for (const uint32_t i : read)
      if (node.has_input(i)) {
        inputs.push_back({i, node.input_elements(i), bytes});
        bytes += padded(static_cast<uint64_t>(inputs.back().elements) * sizeof(float));
      }
    if (rounding == Rounding16Bit::kByKernel) return;
    narrow = narrow_fn(node.input_dtype(0));
    output = bytes;
    bytes += padded(static_cast<uint64_t>(node.output_elements(0)) * sizeof(float));
  }
};

Kernel wrapped(const Plan& plan, Kernel kernel) {
  const uint64_t own = padded(kernel.shared_bytes);
  // A step without shared memory may not call Run::shared.
  kernel.shared_bytes = std::max(own + plan.bytes, kLeast);
  kernel.run = [plan, own, inner = std::move(kernel.run)](const Run& run) -> pfrt_code {
    char* const memory = run.shared<char>() + own;
    Widened seen;
    for (const Plan::Input& input : plan.inputs) {
      float* const to = reinterpret_cast<float*>(memory + input.at);
      run.blocks(input.elements, kPiece, [&](int64_t begin, int64_t end) {
        if (!run.stopped())
          plan.widen(run.input<uint16_t>(input.index) + begin, to + begin, end - begin);
      });
      seen.inputs[input.index] = to;
    }
    seen.output = plan.narrow == nullptr ? run.output(0) : memory + plan.output;
    seen.narrow = plan.narrow;
    return inner(Run(run, seen));
  };
  if (kernel.alternatives)
    kernel.alternatives = [plan, offered = std::move(kernel.alternatives)](bool all) {
      Alternatives out = offered(all);
      for (Alternative& other : out.others) other.kernel = wrapped(plan, std::move(other.kernel));
      return out;
    };
  return kernel;
}

}  // namespace

const void* Run::widened_input(uint32_t i) const {
  return i < Widened::kMostInputs ? widened_->inputs[i] : nullptr;
}
void* Run::widened_output() const { return widened_->output; }

Kernel in_float32(const SnapshotNode& node, std::initializer_list<uint32_t> inputs, Kernel kernel,
                  Rounding16Bit rounding) {
  if (!is_16bit_float(node.input_dtype(0))) return kernel;
  return wrapped(Plan(node, inputs, rounding), std::move(kernel));
}

PackedInput packed_from_float32(const SnapshotNode& node, PackedInput packed) {
  const pfrt_dtype dtype = node.input_dtype(packed.input);
  if (!is_16bit_float(dtype)) return packed;
  packed.recipe = message("from_", dtype_name(dtype), "/", packed.recipe);
  packed.pack = [widen = widen_fn(dtype), elements = node.input_elements(packed.input),
                 pack = std::move(packed.pack)](const void* source, void* out) {
    std::vector<float> wide(static_cast<size_t>(elements));
    widen(static_cast<const uint16_t*>(source), wide.data(), elements);
    pack(wide.data(), out);
  };
  return packed;
}

}  // namespace pfrt::cpu
