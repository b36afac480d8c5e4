// SPDX-License-Identifier: Apache-2.0
//
// The phases of a program on a rectangle of PEs: each takes its machine's cycles, by the rules of
// ../README.md, and moves the times of the rectangle's PEs on. The list of phases is what a program
// for the device would be written from. Not thread-safe.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "providers/wse/fabric/collectives.h"
#include "providers/wse/fabric/exchange.h"
#include "providers/wse/fabric/grid.h"
#include "providers/wse/machine/machine.h"
#include "providers/wse/number/arithmetic.h"

namespace pfrt::wse {

// Pieces of |size| that |count| elements make, the last of which may be smaller.
constexpr int64_t divide_up(int64_t count, int64_t size) { return (count + size - 1) / size; }

enum class PhaseKind : uint8_t { kCompute, kExchange, kCollective, kHost };

struct Phase {
  PhaseKind kind;
  std::string_view name;  // lives as long as the program
  double cycles;          // from the end of the phase before to the end of this one
  double busy;            // of them, those of a PE's datapath
};

// Sums over phases.
struct Spent {
  double cycles = 0, compute = 0, fabric = 0, host = 0;
};

class Schedule {
 public:
  Schedule(const Machine& machine, Arithmetic arithmetic, int64_t columns, int64_t rows)
      : machine_(machine), arithmetic_(arithmetic), grid_(columns, rows) {}

  const Machine& machine() const { return machine_; }
  Arithmetic arithmetic() const { return arithmetic_; }
  const Grid& grid() const { return grid_; }
  const std::vector<Phase>& phases() const { return phases_; }
  double finish() const { return grid_.finish(); }
  Spent spent() const;

  // Cycles of one operation on |n| elements, without what it takes to start it.
  double fmac(int64_t n) const { return rate(&Machine::fp16_fmac, &Machine::fp32_fmac).cycles(n); }
  double op(int64_t n) const { return rate(&Machine::fp16_op, &Machine::fp32_op).cycles(n); }
  double copy(int64_t n) const { return rate(&Machine::fp16_copy, &Machine::fp32_copy).cycles(n); }
  int64_t wavelets(int64_t elements) const { return wavelets_of(elements, bytes_of(arithmetic_)); }

  // Rule 1: |count| vector operations, or copies, of |n| elements in straight-line code.
  void vectors(std::string_view name, double count, int64_t n);
  void copies(std::string_view name, double count, int64_t n);
  // Rule 2, with multiply-adds.
  double map_cycles(int64_t calls, int64_t n, bool dependent) const;
  // Rule 3: |calls| operations of |n| elements in a loop.
  void loop(std::string_view name, int64_t calls, int64_t n);
  // Rule 4: a sum or maximum into a register.
  void register_join(std::string_view name, int64_t n);
  // Scalar code on each of |count| elements in a loop: cycles of one.
  void scalar_loop(std::string_view name, int64_t count, double cycles);
  void work(std::string_view name, double cycles);

  // The tree over lines along |axis|, of |elements|, in groups of |group| (0: the fastest).
  void all_reduce(std::string_view name, Axis axis, int64_t elements, int64_t group = 0);
  // A phase that |fn| makes.
  void phase(PhaseKind kind, std::string_view name, double busy,
             const std::function<void(Grid&)>& fn);

 private:
  const Rate& rate(Rate Machine::*narrow, Rate Machine::*wide) const {
    return machine_.*(is_16_bit(arithmetic_) ? narrow : wide);
  }

  const Machine& machine_;
  Arithmetic arithmetic_;
  Grid grid_;
  std::vector<Phase> phases_;
};

}  // namespace pfrt::wse
