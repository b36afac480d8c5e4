// SPDX-License-Identifier: Apache-2.0
#include "providers/wse/oracle/oracle.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <utility>

#include "providers/wse/oracle/plan.h"

namespace pfrt::wse::oracle {

namespace {

using Algorithm = Case::Algorithm;

void make_programs(Plan& plan) {
  switch (plan.work.algorithm) {
    case Algorithm::kChainReduce:
    case Algorithm::kTwoPhaseReduce:
    case Algorithm::kMulticast:
    case Algorithm::kTreeAllReduce:
      return plan_reduce(plan);
    case Algorithm::kMeshGemm:
    case Algorithm::kCannon:
      return plan_shifted_product(plan);
    case Algorithm::kSumma:
      return plan_summa(plan);
    case Algorithm::kMeshGemv:
      return plan_mesh_gemv(plan);
    case Algorithm::kHalo:
      return plan_halo(plan);
    case Algorithm::kKvShift:
      return plan_kv_shift(plan);
  }
}

std::vector<Core> make_cores(Plan& plan, Fabric& fabric, EventQueue& events) {
  std::vector<Core> cores;
  cores.reserve(plan.programs.size());
  for (size_t pe = 0; pe < plan.programs.size(); ++pe)
    cores.emplace_back(static_cast<int>(pe), plan.machine, plan.arithmetic,
                       std::move(plan.programs[pe]), fabric, events);
  return cores;
}

void run(std::vector<Core>& cores, Fabric& fabric, EventQueue& events) {
  for (Core& core : cores) core.start();
  while (!events.empty()) {
    const Event event = events.pop();
    Core& core = cores[static_cast<size_t>(event.pe)];
    switch (event.kind) {
      case Event::Kind::kAtRouter:
        fabric.at_router(event);
        break;
      case Event::Kind::kServer:
        fabric.at_server(event);
        break;
      case Event::Kind::kAtCore:
        core.at_core(event);
        break;
      case Event::Kind::kTick:
        core.tick(event.time);
        break;
      case Event::Kind::kDone:
        core.done(event.time);
        break;
    }
  }
}

void append(std::vector<float>& out, const std::vector<float>& part) {
  out.insert(out.end(), part.begin(), part.end());
}

// An all-reduce along columns of PEs leaves the same in each row; a line has one row of results in
// each PE.
Status same(const std::vector<float>& x, const std::vector<float>& y) {
  const auto bits = [](float p, float q) {
    return std::bit_cast<uint32_t>(p) == std::bit_cast<uint32_t>(q);
  };
  if (std::equal(x.begin(), x.end(), y.begin(), y.end(), bits)) return {};
  return error(Code::kINTERNAL, "the PEs of an all-reduce do not agree on its values");
}

std::vector<float> read_product(const Plan& plan) {
  const Case& work = plan.work;
  std::vector<float> out;
  for (int row = 0; row < work.rows; ++row)
    for (int64_t i = 0; i < work.m; ++i)
      for (int column = 0; column < work.columns; ++column) {
        const std::vector<float>& c = plan.memory[static_cast<size_t>(plan.pe(column, row))].c;
        const auto first = c.begin() + i * work.n;
        out.insert(out.end(), first, first + work.n);
      }
  return out;
}

// Reads the result that all PEs of a column have; on a line, the one that all PEs have.
Result<std::vector<float>> read_all_reduce(const Plan& plan) {
  const bool line = plan.work.algorithm == Algorithm::kTreeAllReduce;
  const size_t step = line ? 1 : static_cast<size_t>(plan.work.columns);
  std::vector<float> out;
  for (size_t first = 0; first < step; ++first) {
    append(out, plan.memory[first].sum);
    for (size_t pe = first; pe < plan.memory.size(); pe += step)
      PFRT_TRY(same(plan.memory[first].sum, plan.memory[pe].sum));
  }
  return out;
}

Result<std::vector<float>> read_values(const Plan& plan) {
  std::vector<float> out;
  switch (plan.work.algorithm) {
    case Algorithm::kChainReduce:
    case Algorithm::kTwoPhaseReduce:
      return plan.memory[0].sum;
    case Algorithm::kTreeAllReduce:
    case Algorithm::kMeshGemv:
      return read_all_reduce(plan);
    case Algorithm::kMeshGemm:
    case Algorithm::kCannon:
    case Algorithm::kSumma:
      return read_product(plan);
    case Algorithm::kMulticast:
      for (const Memory& memory : plan.memory) append(out, memory.sum);
      break;
    case Algorithm::kHalo:
      for (const Memory& memory : plan.memory)
        for (const std::vector<float>& from : memory.from) append(out, from);
      break;
    case Algorithm::kKvShift:
      for (const Memory& memory : plan.memory) append(out, memory.from[2]);
      break;
  }
  return out;
}

}  // namespace

Result<Outcome> simulate(const Machine& machine, const Case& work) {
  PFRT_TRY(check(machine, work));
  Plan plan(machine, work);
  make_programs(plan);
  EventQueue events;
  std::vector<Core> cores;
  const auto at = [&](int pe) -> Core& { return cores[static_cast<size_t>(pe)]; };
  Fabric fabric(
      machine, work.columns, work.rows, events,
      [&](int pe, int color) { return at(pe).has_room(color); },
      [&](int pe, double time) { at(pe).ramp_freed(time); });
  cores = make_cores(plan, fabric, events);
  run(cores, fabric, events);

  Outcome out;
  for (const Core& core : cores) {
    if (!core.finished())
      return error(Code::kINTERNAL, "a PE of the oracle waits for a wavelet that nobody sends");
    out.free_at.push_back(core.free_at());
    out.cycles = std::max(out.cycles, core.free_at());
  }
  PFRT_ASSIGN(out.values, read_values(plan));
  return out;
}

}  // namespace pfrt::wse::oracle
