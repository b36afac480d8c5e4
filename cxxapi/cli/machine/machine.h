// SPDX-License-Identifier: Apache-2.0
//
// Facts about this machine that matter for inference. Read anew at each call.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cli {

struct Machine {
  std::string cpu;               // model name
  std::vector<std::string> isa;  // extensions of this CPU that kernels may use
  int online = 0;                // processors of the machine
  int usable = 0;                // processors that this process may run on
  std::optional<double> quota;   // processors' worth of time its cgroups allow
  uint64_t memory = 0;           // bytes
  std::string system;            // kernel name and release
};

Machine read_machine();
// Number of threads that can run at once: usable processors within the quota, at least 1.
int default_threads(const Machine& machine);
std::string isa_text(const Machine& machine);
// Returns sentences that a host should know about the kernels' use of the machine. |cap|: PFRT_ISA,
// or empty.
std::vector<std::string> machine_notes(const Machine& machine, const std::string& cap);

}  // namespace cli
