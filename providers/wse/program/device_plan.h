// SPDX-License-Identifier: Apache-2.0
//
// The plan of a wafer: the placement of all regions of a session, brought up to date with the
// dimensions of each run. Thread-safe.
#pragma once

#include <atomic>
#include <mutex>
#include <string>

#include "providers/wse/place/placement.h"

namespace pfrt::wse {

class DevicePlan {
 public:
  DevicePlan(const Target& target, Placement placement);

  const Target& target() const { return target_; }
  // The layers of a region begin at some index: |first| of its first one.
  int64_t side_of(uint32_t layer) const;
  // Puts what a layer costs at the dimensions at hand in place of what was expected.
  void update(uint32_t layer, const Layer& shape, const Mapping& mapping);
  // |count| layers from |first| on run elsewhere at the dimensions at hand, and |why|.
  void refuse(uint32_t first, size_t count, const std::string& why);
  // A copy as it stands.
  Placement snapshot() const;

 private:
  const Target& target_;
  mutable std::mutex mutex_;
  Placement placement_;  // guarded
};

// The plan for people, for programs, and as a picture with the time that each PE is at work.
std::string plan_text(const Target& target, const Placement& plan);
std::string plan_json(const Target& target, const Placement& plan);
std::string plan_svg(const Target& target, const Placement& plan);
// "simulated wse2 0123456789abcdef, 0.850 GHz; MeshGEMV fp16: held against published figures
// (...)": of the kinds of |programs|, those that were, and those that were not.
std::string simulated_line(const Machine& machine, const std::vector<std::string>& programs);
bool all_held(const Machine& machine, const std::vector<std::string>& programs);
// "MeshGEMM fp16"
std::string program_name(std::string_view algorithm, Arithmetic arithmetic);

}  // namespace pfrt::wse
