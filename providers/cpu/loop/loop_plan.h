// SPDX-License-Identifier: Apache-2.0
//
// The plan of one generated loop, made from nodes: an expression, and the values it reads and
// stores. Pure; thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "providers/cpu/loop/broadcast_pattern.h"
#include "providers/cpu/loop/expression.h"
#include "pyflame_rt/plugin.h"

namespace pfrt::cpu {

// Values by slot: first |inputs|, then |outputs|.
struct LoopPlan {
  static constexpr size_t kMostPointers = 32;
  Expression expression;
  std::vector<uint32_t> inputs;  // value indices
  std::vector<bool> scalar;      // of each input: one element serves a run of neighbours
  std::vector<uint32_t> ones;    // of each input: dimensions of 1 behind its own (ones_behind)
  std::vector<uint32_t> outputs;
  std::vector<pfrt_dtype> types;  // by slot
};

// A loop is called for each run of elements for which operands have one element, or neighbours.
// Operands with shorter runs are rather copied, an element for each of a block of the whole.
inline constexpr int64_t kShortestRun = 32;
inline constexpr size_t kMostCopied = 6;
// The loop is left to plain kernels if, once dimensions are known, runs of one element are shorter
// than this.
inline constexpr int64_t kShortestScalarRun = 8;

// |nodes| are in topological order. Values for which |stored| is true are the outputs. No more
// terms are alive at once than |register_limit|. nullopt with the reason in |why| (may be null)
// when generated loops do not know an operator or how an operand is broadcast, or when it is too
// much for one loop.
std::optional<LoopPlan> plan_loop(const pfrt_snapshot& snapshot, std::span<const uint32_t> nodes,
                                  const std::function<bool(uint32_t)>& stored, int register_limit,
                                  std::string* why = nullptr);

// The loop of an epilogue: |epilogue| follows node |head|, each taking what the one before it puts
// out.
std::optional<LoopPlan> plan_epilogue(const pfrt_snapshot& snapshot, uint32_t head,
                                      std::span<const uint32_t> epilogue, int register_limit,
                                      std::string* why = nullptr);

}  // namespace pfrt::cpu
