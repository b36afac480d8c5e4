// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/program/share_memory.h"

#include <algorithm>

namespace pfrt::cpu {
namespace {

// Whether each buffer has others as its parts.
std::vector<bool> wholes(const std::vector<pfrt_buffer>& buffers) {
  std::vector<bool> out(buffers.size());
  for (const pfrt_buffer& b : buffers)
    if (b.kind == PFRT_BUFFER_PART) out[b.index] = true;
  return out;
}

// The last step that touches each buffer.
std::vector<size_t> last_uses(const std::deque<Step>& steps, size_t buffers) {
  std::vector<size_t> out(buffers);
  for (size_t s = 0; s < steps.size(); ++s) {
    for (uint32_t b : steps[s].reads) out[b] = s;
    for (uint32_t b : steps[s].writes) out[b] = s;
  }
  return out;
}

// Whether nothing reads |buffer| in |step| but its input, once. The epilogue reads its operands
// after the kernel has written.
bool is_read_once(const Step& step, uint32_t buffer) {
  const bool of_epilogue = step.epilogue && std::ranges::find(step.epilogue->buffers(), buffer) !=
                                                step.epilogue->buffers().end();
  return !of_epilogue && std::ranges::count(step.inputs, buffer) == 1;
}

}  // namespace

void share_memory(const std::deque<Step>& steps, std::vector<pfrt_buffer>& buffers) {
  const std::vector<bool> has_sub_buffers = wholes(buffers);
  const std::vector<size_t> last_use = last_uses(steps, buffers.size());
  for (size_t s = 0; s < steps.size(); ++s) {
    const Step& step = steps[s];
    std::vector<uint32_t> taken;
    for (size_t a = 0; a < step.aliases.size(); ++a) {
      const auto [input, output] = step.aliases[a];
      if (input >= step.inputs.size() || output >= step.outputs.size()) continue;
      const uint32_t from = step.inputs[input], to = step.outputs[output];
      if (from == PFRT_NO_INDEX || to == PFRT_NO_INDEX || buffers[to].may_alias != 0) continue;
      if (has_sub_buffers[from] || has_sub_buffers[to]) continue;
      // An output may replace an input, where the caller gave the memory of one for both.
      const bool both_inner = a < step.inner_aliases && buffers[from].kind == PFRT_BUFFER_TEMP &&
                              buffers[to].kind == PFRT_BUFFER_TEMP;
      const bool both_outer =
          buffers[from].kind == PFRT_BUFFER_IN && buffers[to].kind == PFRT_BUFFER_OUT;
      const bool dies = (both_inner || both_outer) && last_use[from] == s;
      const bool fits = from != to && buffers[from].bytes == buffers[to].bytes;
      const bool is_free = std::ranges::find(taken, from) == taken.end();
      if (!dies || !fits || !is_free || !is_read_once(step, from)) continue;
      buffers[to].may_alias = from + 1;
      taken.push_back(from);
    }
  }
}

void relax_alignment(const std::deque<Step>& steps, std::vector<pfrt_buffer>& buffers) {
  std::vector<bool> aligned = wholes(buffers);
  for (const Step& step : steps) {
    const uint32_t any = step.unaligned ? step.inputs[0] : PFRT_NO_INDEX;
    for (const uint32_t b : step.reads)
      if (b != any || std::ranges::count(step.inputs, b) > 1) aligned[b] = true;
    if (step.epilogue)
      for (const uint32_t b : step.epilogue->buffers())
        if (b != PFRT_NO_INDEX) aligned[b] = true;
  }
  for (size_t b = 0; b < buffers.size(); ++b)
    if (buffers[b].kind == PFRT_BUFFER_INITIALIZER && !aligned[b]) buffers[b].alignment = 1;
}

}  // namespace pfrt::cpu
