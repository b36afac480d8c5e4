// SPDX-License-Identifier: Apache-2.0
#include "core/memory/device.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

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

DeviceWork::~DeviceWork() {
  if (!idle()) (void)finish({}).ok();
}

uint64_t DeviceWork::number() {
  static std::atomic<uint64_t> last{0};
  std::lock_guard lock(mutex_);
  if (number_ == 0) number_ = ++last;
  return number_;
}

Status DeviceWork::queue(Device& device, const Stop& stop) {
  const uint64_t own = number();
  std::lock_guard lock(mutex_);
  for (Used& used : used_) {
    if (used.device != &device) continue;
    used.queued = true;
    return {};
  }
  used_.reserve(used_.size() + 1);  // once begun, it can be stored
  Status status = device.begin(own, stop);
  if (!status.ok()) return std::move(status.blame(device));
  used_.push_back({&device, true});
  return {};
}

Status DeviceWork::copy(Device& device, Device::Direction direction,
                        const std::vector<Device::Copy>& copies, const Stop& stop) {
  PFRT_TRY(queue(device, stop));
  Status status = device.copy(number(), direction, copies, stop);
  return std::move(status.blame(device));
}

Status DeviceWork::wait(Device& device, const Stop& stop) {
  {
    std::lock_guard lock(mutex_);
    const auto it = std::ranges::find(used_, &device, &Used::device);
    if (it == used_.end() || !std::exchange(it->queued, false)) return {};
  }
  Status status = device.wait(number(), stop);
  return std::move(status.blame(device));
}

Status DeviceWork::finish(const Stop& stop) {
  Status first;
  for (const Used& used : used_) {
    Status status = wait(*used.device, stop);
    if (first.ok()) first = std::move(status);
  }
  for (const Used& used : used_) used.device->end(number_);
  used_.clear();
  number_ = 0;
  return first;
}

Status Transfers::run_batches(DeviceWork& work, const Stop& stop) {
  Status status;
  const auto did = [&](Status outcome) {
    if (status.ok()) status = std::move(outcome);
  };
  size_t started = 0;
  for (; started < batches_.size() && status.ok(); ++started)
    did(work.copy(*batches_[started].device, batches_[started].direction, batches_[started].copies,
                  stop));
  // Waits also after a failure: nothing may arrive in host memory that its owner has given up.
  for (size_t i = 0; i < started; ++i)
    if (batches_[i].direction == Device::Direction::kToHost)
      did(work.wait(*batches_[i].device, stop));
  batches_.clear();
  return status;
}

Status Transfers::run(DeviceWork& work, const Stop& stop) {
  PFRT_TRY(run_batches(work, stop));
  for (const Passing& p : passing_)
    put(p.to_device, Device::Direction::kToDevice, {p.to, p.bytes.get(), p.count});
  PFRT_TRY(run_batches(work, stop));
  passing_.clear();
  return {};
}

Status Transfers::run_alone(const Stop& stop) {
  DeviceWork work;
  Status status = run(work, stop);
  Status finished = work.finish(stop);
  return status.ok() ? finished : status;
}

}  // namespace pfrt
