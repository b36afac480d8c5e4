// SPDX-License-Identifier: Apache-2.0
//
// Memory that the host cannot touch, and copies between such memories and the host's. A Device is
// what a provider with memory of its own looks like from below; whoever holds memory of one holds
// the Device. Devices are thread-safe; a Transfers belongs to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/status.h"

namespace pfrt {

class Device {
 public:
  enum class Direction { kToDevice, kToHost, kOnDevice };
  struct Copy {
    void* to = nullptr;
    const void* from = nullptr;
    uint64_t bytes = 0;
  };
  virtual ~Device() = default;
  // 64-byte aligned; offsets may be added to it.
  virtual Result<void*> allocate_memory(uint64_t bytes) = 0;
  virtual void release_memory(void* memory) = 0;
  // What comes to the host is there after wait().
  virtual Status copy(Direction direction, const std::vector<Copy>& copies) = 0;
  virtual Status wait() = 0;
};

// Copies gathered and then made with as few calls as there are devices and directions. What goes
// from one device to another passes through the host.
class Transfers {
 public:
  // A null device is the host. Nothing is copied before run.
  void add(void* to, Device* to_device, const void* from, Device* from_device, uint64_t bytes);
  bool empty() const { return batches_.empty() && passing_.empty(); }
  // Returns when what came to the host is there. A failure is blamed on the device whose call it
  // was.
  Status run();

 private:
  struct Batch {
    Device* device;
    Device::Direction direction;
    std::vector<Device::Copy> copies;
  };
  struct Passing {
    void* to;
    Device* to_device;
    std::unique_ptr<char[]> bytes;
    uint64_t count;
  };
  void put(Device* device, Device::Direction direction, const Device::Copy& copy);
  Status run_batches();
  std::vector<Batch> batches_;
  std::vector<Passing> passing_;
};

}  // namespace pfrt
