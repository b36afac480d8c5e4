// SPDX-License-Identifier: Apache-2.0
//
// A minimal host: opens a provider's device, asks it for claims, packs its constants. Faults of the
// provider on the way are findings. For one thread.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cxxapi/cli/check_plugin/host_sink.h"
#include "cxxapi/cli/check_plugin/program_run.h"

namespace cli::check {

// The answer of claim about a node.
struct Claim {
  int answers = 0;
  bool accepted = false;
  double ns = 0;
  uint64_t bytes = 0;
  std::string reason;
  bool operator==(const Claim& o) const {
    return accepted == o.accepted && ns == o.ns && bytes == o.bytes && reason == o.reason;
  }
};

// Holds an opened device and closes it.
class Device {
 public:
  Device(Trial& trial, const PluginFile& file, Age age);
  ~Device() {
    if (handle_) table_->close(handle_);
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  bool ok() const { return handle_ != nullptr; }
  const pfrt_provider_table& table() const { return *table_; }
  pfrt_provider* handle() const { return handle_; }
  bool has(uint64_t feature) const { return (desc_.features & feature) != 0; }
  Age age() const { return age_; }
  const std::string& name() const { return device_; }
  void close() {
    pfrt_provider* handle = std::exchange(handle_, nullptr);
    if (handle) call(trial_, "double-release", "it was closed", [&] { table_->close(handle); });
  }

 private:
  Trial& trial_;
  pfrt_plugin_desc desc_;
  Age age_;
  const pfrt_provider_table* table_;
  std::string device_;
  pfrt_provider* handle_ = nullptr;
};

// Returns a claim for each node of |c|. Throws Broken where claim fails.
std::vector<Claim> claim(Trial& trial, Device& device, const HostSnapshot& snapshot, const Case& c);

// Returns the packed constants of an executable, by index. Throws Broken where one cannot be
// packed.
std::vector<std::unique_ptr<Guarded>> pack_constants(Trial& trial, Device& device,
                                                     pfrt_executable* compiled,
                                                     const HostSnapshot& snapshot, const Case& c);

}  // namespace cli::check
