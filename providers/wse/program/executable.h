// SPDX-License-Identifier: Apache-2.0
//
// A compiled region on the wafer, and a program of it: a step for each node, all buffers in the
// device's memory. Executables are immutable; steps may run on many threads at once.
#pragma once

#include <deque>
#include <memory>

#include "providers/kit/snapshot_copy.h"
#include "providers/wse/program/device_plan.h"
#include "providers/wse/program/options.h"

namespace pfrt::wse {

struct Device {
  Settings settings;
  std::atomic<uint64_t> bytes_to_device{0}, bytes_to_host{0}, bytes_on_device{0};
  std::mutex mutex;
  std::shared_ptr<DevicePlan> plan;  // of what was compiled last; guarded

  std::shared_ptr<DevicePlan> latest() {
    const std::lock_guard lock(mutex);
    return plan;
  }
};

struct Executable {
  Executable(Device& owner, const pfrt_region& region, std::shared_ptr<DevicePlan> shared_plan,
             uint32_t first);

  Device& device;
  std::shared_ptr<DevicePlan> plan;
  uint32_t first_layer;  // of the plan: that of the region's first node
  std::vector<uint32_t> nodes, inputs, outputs;
  SnapshotCopy copy;
};

struct Step {
  Step(const Executable& executable, uint32_t node, const pfrt_shapes& shapes);

  const Executable* executable;
  SnapshotNode node;  // attributes and types
  Layer layer;
  Mapping mapping;
  std::vector<Tensor> in, out;                    // without data
  std::vector<uint32_t> in_buffers, out_buffers;  // PFRT_NO_INDEX: absent
  std::vector<uint32_t> reads, writes;
  std::string kernel, detail;
  std::atomic<bool> ran{false};
};

struct Program {
  std::vector<pfrt_buffer> buffers;
  std::deque<Step> steps;
  std::vector<pfrt_step> rows;
};

// Dimensions that nobody knows yet count so much when the wafer is divided.
constexpr int64_t kTypicalDim = 128;

// The region's program at |shapes|. UNSUPPORTED where it has no place at these dimensions.
Result<std::unique_ptr<Program>> make_program(const Executable& executable,
                                              const pfrt_shapes& shapes, uint32_t* node);

}  // namespace pfrt::wse
