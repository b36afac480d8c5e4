// SPDX-License-Identifier: Apache-2.0
//
// Runs a provider's program whose buffers are in the device's memory, as a host does: allocates,
// copies in, calls the steps, copies out and waits, all under a run number of its own. Memory that
// the device may not touch any more is protected.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "cxxapi/cli/check_plugin/provider_host.h"

namespace cli::check {

class DeviceRun {
 public:
  // |dims| is that of RunOptions.
  DeviceRun(Trial& trial, Device& device, const ProgramView& program, const Case& c,
            const HostSnapshot& snapshot, const std::vector<std::unique_ptr<Guarded>>& constants,
            const int64_t* const* dims = nullptr);
  // Ends the run and frees its memory.
  ~DeviceRun();
  DeviceRun(const DeviceRun&) = delete;
  DeviceRun& operator=(const DeviceRun&) = delete;

  // Queues everything up to the copies to the host; false when a call failed, which is a finding.
  bool queue();
  // Waits for the queued work. With |stop| the sink asks to stop.
  pfrt_code finish(bool stop = false);
  // Bytes of an output of the region; valid after finish.
  std::vector<char> output(uint32_t index) const;
  // Protects the outputs from being written any more.
  void lock_outputs();

 private:
  static DeviceRun& of(const pfrt_step_context* context) {
    return *static_cast<DeviceRun*>(context->host);
  }
  void* allocate(uint64_t bytes);
  bool place(uint32_t index);
  bool copy(const std::vector<pfrt_device_copy>& copies, const char* what);
  bool copy_in();
  bool run_steps();
  bool copy_out();
  pfrt_code late_output(uint32_t buffer, const int64_t* dims, uint32_t rank, void** out);
  const void* source_of(const pfrt_buffer& buffer, size_t* bytes) const;

  Trial& trial_;
  Device& device_;
  const ProgramView& program_;
  const Case& case_;
  const HostSnapshot& snapshot_;
  const std::vector<std::unique_ptr<Guarded>>& constants_;
  const int64_t* const* const dims_;
  const uint64_t number_;
  bool begun_ = false;
  std::vector<void*> pointers_;                    // by buffer
  std::vector<void*> memory_;                      // of the device
  std::vector<std::unique_ptr<Guarded>> host_;     // by buffer; null = on the device
  std::vector<std::unique_ptr<Guarded>> inputs_;   // copied to the device, by region input
  std::vector<std::unique_ptr<Guarded>> outputs_;  // by region output
  std::string text_;
};

}  // namespace cli::check
