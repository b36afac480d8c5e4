// SPDX-License-Identifier: Apache-2.0
//
// Memory that the host cannot touch, and copies between such memories and the host's. A Device is
// the view from below of a provider with memory of its own; holders of its memory hold the Device.
// Devices are thread-safe; a Transfers belongs to one thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "core/base/status.h"
#include "core/base/stop.h"

namespace pfrt {

class Device {
 public:
  enum class Direction { kToDevice, kToHost, kOnDevice };
  struct Copy {
    void* to = nullptr;
    const void* from = nullptr;
    uint64_t bytes = 0;
  };
  Device() = default;
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  // Is unique among the devices that this process has had; not 0.
  uint32_t number() const { return number_; }
  // Offsets may be added to the result. |alignment| is a power of two, 64 or more. |work| is a
  // DeviceWork's number, or 0. |stop| is asked by this and the calls below that take long.
  virtual Result<void*> allocate_memory(uint64_t bytes, uint32_t alignment, uint64_t work,
                                        const Stop& stop) = 0;
  virtual void release_memory(void* memory) = 0;

  // DeviceWork calls these with its number. Copies to the host are there after wait; when that
  // fails or is stopped, nothing writes to host memory any more.
  virtual Status begin(uint64_t work, const Stop& stop) = 0;
  virtual Status copy(uint64_t work, Direction direction, const std::vector<Copy>& copies,
                      const Stop& stop) = 0;
  virtual Status wait(uint64_t work, const Stop& stop) = 0;
  virtual void end(uint64_t work) = 0;

 private:
  static uint32_t next_number() {
    static std::atomic<uint32_t> last{0};
    return ++last;
  }
  const uint32_t number_ = next_number();
};

// The work on devices for one run, or one piece of work of the host's own: the devices on which it
// has begun, and those that have to be waited for. It ends when it is destroyed. Steps that run at
// once may use it at once; finish is called when they are over.
class DeviceWork {
 public:
  DeviceWork() = default;
  ~DeviceWork();
  DeviceWork(const DeviceWork&) = delete;
  DeviceWork& operator=(const DeviceWork&) = delete;

  // Is unique among the works of the process; not 0.
  uint64_t number();
  // Is called before anything is queued on |device|, which outlives the work.
  Status queue(Device& device, const Stop& stop);
  Status copy(Device& device, Device::Direction direction, const std::vector<Device::Copy>& copies,
              const Stop& stop);
  // Waits until everything queued on |device| is done.
  Status wait(Device& device, const Stop& stop);
  // Whether no device has been used since the work began.
  bool idle() const { return used_.empty(); }
  // Waits for all devices; afterwards the work is over, and later uses begin a new one. Each
  // failure names its device as the culprit, and the first one is returned.
  Status finish(const Stop& stop);

 private:
  struct Used {
    Device* device;
    bool queued;  // whether something was queued and not waited for
  };
  std::mutex mutex_;
  uint64_t number_ = 0;
  std::vector<Used> used_;
};

// Gathers copies and makes them with as few calls as there are devices and directions. Copies from
// one device to another pass through the host.
class Transfers {
 public:
  // A null device is the host. Nothing is copied before run.
  void add(void* to, Device* to_device, const void* from, Device* from_device, uint64_t bytes);
  bool empty() const { return batches_.empty() && passing_.empty(); }
  // Returns when the copies to the host are there. A failure names the device whose call it was.
  Status run(DeviceWork& work, const Stop& stop);
  // Runs as separate work, which is done when this returns.
  Status run_alone(const Stop& stop = {});

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
  Status run_batches(DeviceWork& work, const Stop& stop);
  std::vector<Batch> batches_;
  std::vector<Passing> passing_;
};

}  // namespace pfrt
