// SPDX-License-Identifier: Apache-2.0
//
// A step of the CPU provider: a row of its kernel table, made for one node and called as in a run,
// on this thread alone. For programs that measure.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "providers/cpu/registry/registry.h"

namespace micro {

using Dims = std::vector<int64_t>;

// A float32 node: its inputs, which hold normal random numbers, and its first output.
struct Node {
  std::string domain, op;
  std::vector<Dims> inputs;
  std::vector<bool> constant;  // whether each input is; inputs past the end are not
  Dims output;
  std::vector<std::pair<std::string, Dims>> ints;  // attributes: one number is an int
  std::string shape;                               // text of the shape in the benchmark's name
  Dims indices = {};  // one more constant input, of int64 and rank 1, where there are any
  pfrt::cpu::Nchw16cSides sides = {};
};

// The row that a session takes for the node; null where there is none that takes its layouts too.
const pfrt::cpu::KernelRow* chosen_row(const Node& node);

class Step {
 public:
  // Returns null where the row does not take the node; |why| then says so. With |packs|, what the
  // row packs is packed, else only what it cannot do without.
  static std::unique_ptr<Step> make(const pfrt::cpu::KernelRow& row, const Node& node,
                                    std::string& why, bool packs = true);
  virtual ~Step() = default;
  // Throws std::runtime_error with what the kernel said.
  virtual void run() = 0;
  virtual double flops() const = 0;  // 0: the row does not count them
  virtual double bytes() const = 0;  // of inputs and output, each once
  virtual std::string_view name() const = 0;
  // Moves constant inputs, as they are and packed, from the caches to memory.
  virtual void forget_constants() const = 0;
  // Of the last run; in nChw16c where node.sides.output.
  virtual std::span<const float> output() const = 0;
  virtual uint64_t memory_bytes() const = 0;  // beside inputs, output and what is packed
};

}  // namespace micro
