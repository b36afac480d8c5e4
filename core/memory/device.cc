// SPDX-License-Identifier: Apache-2.0
#include "core/memory/device.h"

#include <algorithm>
#include <cstring>

namespace pfrt {

void Transfers::put(Device* device, Device::Direction direction, const Device::Copy& copy) {
  auto it = std::find_if(batches_.begin(), batches_.end(), [&](const Batch& b) {
    return b.device == device && b.direction == direction;
  });
  if (it == batches_.end()) it = batches_.insert(it, {device, direction, {}});
  it->copies.push_back(copy);
}

void Transfers::add(void* to, Device* to_device, const void* from, Device* from_device,
                    uint64_t bytes) {
  if (bytes == 0 || (to == from && to_device == from_device)) return;
  if (!to_device && !from_device) {
    std::memcpy(to, from, static_cast<size_t>(bytes));
  } else if (to_device == from_device) {
    put(to_device, Device::Direction::kOnDevice, {to, from, bytes});
  } else if (!from_device) {
    put(to_device, Device::Direction::kToDevice, {to, from, bytes});
  } else if (!to_device) {
    put(from_device, Device::Direction::kToHost, {to, from, bytes});
  } else {
    passing_.push_back(
        {to, to_device, std::make_unique<char[]>(static_cast<size_t>(bytes)), bytes});
    put(from_device, Device::Direction::kToHost, {passing_.back().bytes.get(), from, bytes});
  }
}

Status Transfers::run_batches() {
  Status status;
  const auto did = [&](const Batch& batch, Status outcome) {
    if (outcome.ok() || !status.ok()) return;
    status = std::move(outcome);
    status.blame(*batch.device);
  };
  size_t started = 0;
  for (; started < batches_.size() && status.ok(); ++started)
    did(batches_[started],
        batches_[started].device->copy(batches_[started].direction, batches_[started].copies));
  // Also after a failure: nothing may come to host memory that its owner has given up.
  for (size_t i = 0; i < started; ++i)
    if (batches_[i].direction == Device::Direction::kToHost)
      did(batches_[i], batches_[i].device->wait());
  batches_.clear();
  return status;
}

Status Transfers::run() {
  PFRT_TRY(run_batches());
  for (const Passing& p : passing_)
    put(p.to_device, Device::Direction::kToDevice, {p.to, p.bytes.get(), p.count});
  PFRT_TRY(run_batches());
  passing_.clear();
  return {};
}

}  // namespace pfrt
