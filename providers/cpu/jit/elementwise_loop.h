// SPDX-License-Identifier: Apache-2.0
//
// Machine code for one Expression: a loop over a range of elements, AVX2 or AVX-512. Code is
// written first and executable afterwards, never both. Immutable after make; run may be called from
// many threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "providers/cpu/isa/isa.h"
#include "providers/cpu/loop/expression.h"

namespace pfrt::cpu {

class ElementwiseLoop {
 public:
  // Vector registers an expression's terms may take.
  static int register_limit(Isa isa);
  // nullptr where code cannot be made: generic ISA, no executable memory, too many registers.
  // |nodes| is for the name. With PFRT_JIT_DUMP=DIR in the environment, the code is also written to
  // DIR/NAME_KEY.bin.
  static std::shared_ptr<const ElementwiseLoop> make(const Expression& expression, Isa isa,
                                                     size_t nodes);
  virtual ~ElementwiseLoop() = default;

  // "elementwise_jit_avx512_5ops"
  std::string_view name() const { return name_; }
  // Elements [begin, end) of |pointers|: first the slots of the expression's inputs, then its
  // outputs. An output may be an input's memory when that input is read no later than the output is
  // stored. |constants| is of constant_pool.
  void run(const void* const* pointers, const uint64_t* constants, int64_t begin,
           int64_t end) const {
    code_(pointers, constants, begin, end);
  }
  // The expression's constants, one after another.
  static std::vector<uint64_t> constant_pool(const Expression& expression);

 protected:
  ElementwiseLoop() = default;
  using Code = void (*)(const void* const* pointers, const uint64_t* constants, int64_t begin,
                        int64_t end);
  Code code_ = nullptr;
  std::string name_;
};

// A loop with the constants it reads.
struct LoopCode {
  std::shared_ptr<const ElementwiseLoop> loop;  // null: its nodes run kernel by kernel
  std::shared_ptr<const std::vector<uint64_t>> constants;
  // The loop for images in nChw16c: operands of |channel_slots| have 16 neighbours
  // (loop/by_channel.h). Null where there are no such operands, or no code for them.
  std::shared_ptr<const ElementwiseLoop> by_channel = nullptr;
  std::vector<bool> channel_slots = {};
};

}  // namespace pfrt::cpu
