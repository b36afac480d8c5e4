// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/loop/by_channel.h"

#include <algorithm>
#include <utility>

#include "core/base/dtype.h"

namespace pfrt::cpu {
namespace {

constexpr size_t kWidestElement = 4;  // bytes; lanes of 64 bits are two terms

Dims dims_of(const SnapshotCopy& snapshot, uint32_t value) {
  const pfrt_snapshot_value& v = snapshot.value(value);
  return v.rank < 0 ? Dims() : Dims(v.dims, static_cast<size_t>(v.rank));
}

bool by_channel(Dims own, Dims image) {
  if (image.size() < 3 || image[1] <= 0 || image[1] % kChannelBlock != 0) return false;
  if (own.size() + 1 < image.size() || own.size() > image.size()) return false;
  const bool batched = own.size() == image.size();
  if (batched && own[0] != 1 && own[0] != image[0]) return false;
  own = own.subspan(batched ? 1 : 0);
  return own.front() == image[1] &&
         std::ranges::all_of(own.subspan(1), [](int64_t d) { return d == 1; });
}

}  // namespace

std::vector<bool> channel_slots(const SnapshotCopy& snapshot, const LoopPlan& plan) {
  const Dims image = dims_of(snapshot, plan.outputs.front());
  std::vector<bool> out(plan.inputs.size());
  for (size_t slot = 0; slot < out.size(); ++slot)
    out[slot] = dtype_size(plan.types[slot]) <= kWidestElement &&
                by_channel(with_ones(dims_of(snapshot, plan.inputs[slot]), plan.ones[slot]), image);
  return out;
}

}  // namespace pfrt::cpu
