// SPDX-License-Identifier: Apache-2.0
//
// Tells which values of a fusion group vary from run to run, and which of them other groups see.
// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "providers/cpu/compile/executable.h"
#include "providers/cpu/program/value_buffers.h"
#include "providers/cpu/program/varying_step.h"

namespace pfrt::cpu {

// The inputs and outputs of the group's nodes, each once.
std::vector<uint32_t> values_of(const Executable& executable, const FusionGroup& group);
// The values among |values| whose dimensions vary.
std::vector<uint32_t> varying(const std::vector<uint32_t>& values, const pfrt_shapes& shapes);
// The values among |values|, which are the group's, that are made or used elsewhere too.
std::vector<uint32_t> seen_outside(const Executable& executable, const FusionGroup& group,
                                   const std::vector<uint32_t>& values);

// A value, and its buffer in the program.
struct Outer {
  uint32_t value, buffer;
};
// Makes |steps| of a group ready to run in the program. Their buffers are those of |values|: the
// buffers of |outer| are the program's, all others are theirs alone.
Result<std::shared_ptr<const MadeSteps>> made_steps(std::deque<Step> steps,
                                                    const ValueBuffers& values,
                                                    const std::vector<Outer>& outer);

}  // namespace pfrt::cpu
