// SPDX-License-Identifier: Apache-2.0
//
// Which values of a fusion group vary from run to run, and which other groups see. Pure functions;
// thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "providers/cpu/compile/executable.h"
#include "providers/cpu/program/value_buffers.h"
#include "providers/cpu/program/varying_step.h"

namespace pfrt::cpu {

// Of inputs and outputs of the group's nodes, each once.
std::vector<uint32_t> values_of(const Executable& executable, const FusionGroup& group);
// Those of |values| whose dimensions vary.
std::vector<uint32_t> varying(const std::vector<uint32_t>& values, const pfrt_shapes& shapes);
// Those of |values|, which are the group's, that are made or used elsewhere too.
std::vector<uint32_t> seen_outside(const Executable& executable, const FusionGroup& group,
                                   const std::vector<uint32_t>& values);

// A value, and its buffer in the program.
struct Outer {
  uint32_t value, buffer;
};
// |steps| of a group, which have the buffers of |values|: those of |outer| are the program's, all
// others theirs alone.
Result<std::shared_ptr<const MadeSteps>> made_steps(std::deque<Step> steps,
                                                    const ValueBuffers& values,
                                                    const std::vector<Outer>& outer);

}  // namespace pfrt::cpu
