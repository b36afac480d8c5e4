// SPDX-License-Identifier: Apache-2.0
#include "providers/wse/program/device_plan.h"

namespace pfrt::wse {

DevicePlan::DevicePlan(const Target& target, Placement placement)
    : target_(target), placement_(std::move(placement)) {}

int64_t DevicePlan::side_of(uint32_t layer) const {
  const std::lock_guard lock(mutex_);
  return placement_.mappings[layer].side;
}

void DevicePlan::update(uint32_t layer, const Layer& shape, const Mapping& mapping) {
  const std::lock_guard lock(mutex_);
  Stage& stage = placement_.stages[placement_.stage_of[layer]];
  stage.cycles += mapping.cycles - placement_.mappings[layer].cycles;
  std::vector<uint32_t> reads = std::move(placement_.layers[layer].reads);
  placement_.layers[layer] = shape;
  placement_.layers[layer].reads = std::move(reads);
  placement_.mappings[layer] = mapping;
  placement_.refused[layer].clear();
}

void DevicePlan::refuse(uint32_t first, size_t count, const std::string& why) {
  const std::lock_guard lock(mutex_);
  for (size_t i = first; i < first + count; ++i) placement_.refused[i] = why;
}

Placement DevicePlan::snapshot() const {
  const std::lock_guard lock(mutex_);
  return placement_;
}

}  // namespace pfrt::wse
