// SPDX-License-Identifier: Apache-2.0
//
// Exchanges with neighbours.
// Reading: an exchange that has two parts, out and in, is two asynchronous operations with a task
// each, as in MeshGEMM; at the rim, parts that have no neighbour are left out.
#include <utility>

#include "providers/wse/oracle/plan.h"

namespace pfrt::wse::oracle {
namespace {

using Kind = Operation::Kind;

constexpr Direction kSides[] = {Direction::kNorth, Direction::kEast, Direction::kSouth,
                                Direction::kWest};
constexpr int kColumnSteps[] = {0, 1, 0, -1}, kRowSteps[] = {-1, 0, 1, 0};

bool has_neighbour(const Case& work, int column, int row, size_t side) {
  const int x = column + kColumnSteps[side], y = row + kRowSteps[side];
  return x >= 0 && x < work.columns && y >= 0 && y < work.rows;
}

void append_exchange(Plan& plan, int pe, std::vector<Message> out, std::vector<Message> in) {
  const int parts = static_cast<int>(out.size() + in.size());
  if (parts == 0) return;
  plan.append(pe, {.kind = Kind::kExchange,
                   .issues = parts,
                   .tasks = parts,
                   .out = std::move(out),
                   .in = std::move(in)});
}

void plan_halo_of(Plan& plan, int column, int row) {
  const Case& work = plan.work;
  const int pe = plan.pe(column, row);
  Memory& memory = plan.memory_of(pe);
  std::vector<Message> out, in;
  for (size_t side = 0; side < 4; ++side) {
    const int64_t first = (static_cast<int64_t>(pe) * 4 + static_cast<int64_t>(side)) * work.n;
    memory.edges[side] = plan.load(work.a, first, work.n);
    memory.from[side].assign(static_cast<size_t>(work.n), 0.0f);
    if (!has_neighbour(work, column, row, side)) continue;
    // A color for each way that wavelets go; what comes from the north goes south.
    const int way = static_cast<int>(side);
    out.push_back(plan.message(way, memory.edges[side], {{kSides[side], 1}}));
    in.push_back(plan.message((way + 2) % 4, memory.from[side]));
  }
  append_exchange(plan, pe, std::move(out), std::move(in));
}

}  // namespace

void plan_halo(Plan& plan) {
  for (int row = 0; row < plan.work.rows; ++row)
    for (int column = 0; column < plan.work.columns; ++column) plan_halo_of(plan, column, row);
}

// Reading: an asynchronous exchange, as each PE sends and receives at the same time.
void plan_kv_shift(Plan& plan) {
  const Case& work = plan.work;
  for (int pe = 0; pe < work.rows * work.columns; ++pe) {
    Memory& memory = plan.memory_of(pe);
    memory.edges[0] = plan.load(work.a, pe * work.n, work.n);
    memory.from[2].assign(static_cast<size_t>(work.n), 0.0f);
    const int row = pe / work.columns;
    std::vector<Message> out, in;
    if (row > 0) out = {plan.message(0, memory.edges[0], {{Direction::kNorth, 1}})};
    if (row + 1 < work.rows) in = {plan.message(0, memory.from[2])};
    append_exchange(plan, pe, std::move(out), std::move(in));
  }
}

}  // namespace pfrt::wse::oracle
