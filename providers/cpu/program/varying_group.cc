// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/program/varying_group.h"

#include <algorithm>
#include <utility>

namespace pfrt::cpu {

std::vector<uint32_t> values_of(const Executable& executable, const FusionGroup& group) {
  std::vector<uint32_t> out;
  const auto add = [&](uint32_t v) {
    if (v != PFRT_NO_INDEX && std::ranges::find(out, v) == out.end()) out.push_back(v);
  };
  for (const uint32_t n : group.nodes) {
    const pfrt_snapshot_node& node = executable.snapshot().node(n);
    std::for_each_n(node.inputs, node.input_count, add);
    std::for_each_n(node.outputs, node.output_count, add);
  }
  return out;
}

std::vector<uint32_t> varying(const std::vector<uint32_t>& values, const pfrt_shapes& shapes) {
  std::vector<uint32_t> out;
  for (const uint32_t v : values)
    if (shapes.least != nullptr && v < shapes.value_count && shapes.least[v] != nullptr)
      out.push_back(v);
  return out;
}

std::vector<uint32_t> seen_outside(const Executable& executable, const FusionGroup& group,
                                   const std::vector<uint32_t>& values) {
  std::vector<uint32_t> made, out;
  std::vector<uint32_t> uses(values.size());
  const auto use = [&](uint32_t v) {
    if (v != PFRT_NO_INDEX)
      ++uses[static_cast<size_t>(std::ranges::find(values, v) - values.begin())];
  };
  for (const uint32_t n : group.nodes) {
    const pfrt_snapshot_node& node = executable.snapshot().node(n);
    std::for_each_n(node.inputs, node.input_count, use);
    made.insert(made.end(), node.outputs, node.outputs + node.output_count);
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const bool inside = executable.home(values[i]).kind == PFRT_BUFFER_TEMP &&
                        std::ranges::find(made, values[i]) != made.end() &&
                        executable.snapshot().value(values[i]).consumer_count == uses[i];
    if (!inside) out.push_back(values[i]);
  }
  return out;
}

Result<std::shared_ptr<const MadeSteps>> made_steps(std::deque<Step> steps,
                                                    const ValueBuffers& values,
                                                    const std::vector<Outer>& outer) {
  constexpr uint64_t kAlignment = 64;
  auto made = std::make_shared<MadeSteps>();
  made->steps = std::move(steps);
  made->places.resize(values.list().size());
  for (const Outer& of : outer)
    if (const uint32_t own = values.known(of.value); own != PFRT_NO_INDEX)
      made->places[own].buffer = of.buffer;
  for (size_t i = 0; i < made->places.size(); ++i) {
    const pfrt_buffer& buffer = values.list()[i];
    if (made->places[i].buffer != PFRT_NO_INDEX) continue;
    if (buffer.kind != PFRT_BUFFER_TEMP || buffer.bytes == PFRT_BYTES_UNKNOWN)
      return error(Code::kUNSUPPORTED, "a value of a step whose dimensions vary has no place");
    made->places[i].offset = made->own_bytes;
    made->own_bytes += (buffer.bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  for (const Step& step : made->steps)
    made->scratch_bytes = std::max(made->scratch_bytes, step.kernel.scratch_bytes);
  made->scratch_bytes = (made->scratch_bytes + kAlignment - 1) / kAlignment * kAlignment;
  return std::shared_ptr<const MadeSteps>(std::move(made));
}

}  // namespace pfrt::cpu
