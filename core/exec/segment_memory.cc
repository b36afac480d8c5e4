// SPDX-License-Identifier: Apache-2.0
//
// Decides which memory a segment's values are in, the host's or a device's, and which are copied
// before a program runs.
#include <algorithm>

#include "core/exec/segment_plan.h"

namespace pfrt {

uint32_t SegmentPlan::space_of(Provider& provider) {
  for (uint32_t i = 1; i < spaces_.size(); ++i)
    if (spaces_[i].device.get() == &provider) return i;
  spaces_.push_back({provider.shared_from_this(), provider.name()});
  return static_cast<uint32_t>(spaces_.size() - 1);
}

// An input is read where it is, if the program wants it there. Else a copy is made for the first
// program that reads it, and later programs in the same memory share it.
Status SegmentPlan::place_input(const Source& source, const StageExecutable& stage,
                                const pfrt_buffer& b, Entry& entry) {
  const std::string& who = stage.executable->provider().name();
  const std::vector<ValueId>& inputs = stage.stage->inputs;
  if (b.index >= inputs.size())
    return error(Code::kPROVIDER, who, " returned a program with input ", b.index, " of ",
                 inputs.size());
  const ValueId value = inputs[b.index];
  const std::string& name = source.graph.at(value).name;
  const auto inner = inner_.find(value);
  const size_t producer = inner == inner_.end() ? kNone : inner->second;
  const uint32_t slot = source.slot_of[value];
  if (producer == kNone && slot == kNoId)
    return error(Code::kINTERNAL, "value '", name, "' is used before it is produced");
  if (producer != kNone && entries_[producer].space == entry.space) {
    entry.place = entries_[producer].place;
    entry.slot = entries_[producer].slot;
    entry.source = producer;
    return {};
  }
  Device* const here = spaces_[entry.space].device.get();
  Device* const there =
      producer == kNone && slot < source.resident.size() ? source.resident[slot] : nullptr;
  if (producer == kNone && here == there) {
    entry.place = Place::kLiveIn;
    entry.slot = slot;
    return {};
  }
  entry.place = Place::kBlock;
  for (const Mirror& mirror : mirrors_) {
    if (mirror.value != value || mirror.space != entry.space) continue;
    entry.source = mirror.entry;
    return {};
  }
  const Type& type = source.state.types[value];
  if (!type.is_tensor() || !type.fixed() || type.dtype == PFRT_DTYPE_STRING)
    return error(Code::kUNSUPPORTED, who, " wants '", name,
                 "' in other memory than it is in, and only tensors of numbers with known "
                 "dimensions can be copied there");
  int64_t count = 1;
  for (const Dim& d : type.shape) count *= d.value();
  entry.bytes = tensor_bytes(type.dtype, count);
  programs_.back().transfers.push_back(
      {producer, slot, entries_.size(), value, type.dtype, type.shape.size()});
  mirrors_.push_back({value, entry.space, entries_.size()});
  return {};
}

Result<const void*> SegmentPlan::upload(Provider& provider, const void* host, uint64_t bytes,
                                        const Stop& stop, Transfers& transfers, Uploads& fresh) {
  const Provider::HostBytes key{host, bytes};
  std::shared_ptr<Buffer> there = provider.uploaded(key);
  if (!there) {
    for (const auto& [constant, buffer] : fresh)
      if (constant == key) there = buffer;
  }
  if (!there) {
    PFRT_ASSIGN(there, Buffer::on_device(provider.shared_from_this(), bytes, stop));
    transfers.add(there->data(), &provider, host, nullptr, bytes);
    fresh.emplace_back(key, there);
  }
  if (std::ranges::find(uploaded_, there) == uploaded_.end()) uploaded_.push_back(there);
  return static_cast<const void*>(there->data());
}

Result<Tensor> SegmentPlan::allocate_in(uint32_t space, pfrt_dtype dtype, Dims dims,
                                        const RunControl& control) const {
  if (space == 0) return Tensor::allocate(dtype, std::move(dims), false);
  return Tensor::allocate_on(spaces_[space].device, dtype, std::move(dims), control.stopper(),
                             control.devices.number());
}

std::shared_ptr<BlockPool> Segment::blocks_in(const std::shared_ptr<Device>& device) const {
  const std::lock_guard lock(mutex);
  const auto there = std::ranges::find(blocks, device, [](const auto& b) { return b->device(); });
  if (there != blocks.end()) return *there;
  return blocks.emplace_back(std::make_shared<BlockPool>(device));
}

Status SegmentPlan::DeviceBlocks::take(const RunControl& control) {
  if (plan_.spaces_.size() == 1) return {};
  taken_.resize(plan_.spaces_.size());
  for (size_t i = 1; i < plan_.spaces_.size(); ++i) {
    const Space& space = plan_.spaces_[i];
    if (space.bytes == 0) continue;
    PFRT_ASSIGN(taken_[i], space.blocks->take(space.bytes, space.alignment, control.stopper(),
                                              control.devices.number()));
  }
  return {};
}

SegmentPlan::DeviceBlocks::~DeviceBlocks() {
  for (size_t i = 1; i < taken_.size(); ++i)
    if (taken_[i])
      plan_.spaces_[i].blocks->give(std::move(taken_[i]), plan_.spaces_[i].bytes, keep_);
}

}  // namespace pfrt
