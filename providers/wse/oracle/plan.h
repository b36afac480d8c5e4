// SPDX-License-Identifier: Apache-2.0
//
// A case before it runs: the memory of each PE with its inputs, and its program. Functions fill a
// plan that was made for a case that passed check().
#pragma once

#include <array>
#include <vector>

#include "core/base/status.h"
#include "providers/wse/machine/machine.h"
#include "providers/wse/oracle/arithmetic.h"
#include "providers/wse/oracle/case.h"
#include "providers/wse/oracle/core.h"

namespace pfrt::wse::oracle {

struct Memory {
  std::vector<float> sum;                         // of a reduce; what a multicast brings
  std::vector<float> a, b, c;                     // tiles
  std::vector<float> next_a, next_b;              // tiles that come while a and b are at work
  std::array<std::vector<float>, 4> edges, from;  // by side: N, E, S, W
};

struct Plan {
  const Machine& machine;
  const Case& work;
  Arithmetic arithmetic;
  std::vector<Memory> memory;  // by PE; so are programs
  std::vector<Program> programs;

  Plan(const Machine& machine_in, const Case& work_in);
  int pe(int column, int row) const { return row * work.columns + column; }
  Memory& memory_of(int at) { return memory[static_cast<size_t>(at)]; }
  void append(int at, Operation operation);
  // Cycles of a fused multiply-add on a vector.
  double multiply_add_cycles(int64_t elements) const;
  double copy_cycles(int64_t elements) const;
  // Elements first, first + 1, ... of an input.
  std::vector<float> load(const std::vector<float>& from, int64_t first, int64_t count) const;
  Message message(int color, std::vector<float>& data, std::vector<Route> routes = {}) const;
};

// PEs in a row or a column; position 0 is the one of the smallest index.
struct Line {
  int first = 0, stride = 1, length = 1;
  Direction lower = Direction::kWest, higher = Direction::kEast;

  int pe(int position) const { return first + position * stride; }
  Route route(int from, int to, bool copies = false) const;
};

Line row_line(const Case& work, int row);
Line column_line(const Case& work, int column);

Status check(const Machine& machine, const Case& work);

void plan_reduce(Plan& plan);  // the first four algorithms
void append_tree_all_reduce(Plan& plan, const Line& line);

void plan_shifted_product(Plan& plan);  // MeshGEMM and Cannon
void plan_summa(Plan& plan);
void plan_mesh_gemv(Plan& plan);

void plan_halo(Plan& plan);
void plan_kv_shift(Plan& plan);

}  // namespace pfrt::wse::oracle
