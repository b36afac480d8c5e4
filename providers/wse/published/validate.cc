// SPDX-License-Identifier: Apache-2.0
#include "providers/wse/published/validate.h"

#include "providers/wse/published/rows.h"

namespace pfrt::wse {
namespace {

// "fitted: V6, P = 3" of wse2's task becomes {"wse2.task", "V6, P = 3"}.
void add_fitted(const Machine& machine, std::vector<std::pair<std::string, std::string>>& out) {
  constexpr std::string_view kFitted = "fitted: ";
  for (const auto& [number, source] : machine.sources)
    if (source.starts_with(kFitted))
      out.emplace_back(message(machine.name, ".", number), source.substr(kFitted.size()));
}

// Numbers whose source begins with "idle: ".
void add_idle(const Machine& machine, std::vector<std::string>& out) {
  for (const auto& [number, source] : machine.sources)
    if (source.starts_with("idle: ")) out.push_back(message(machine.name, ".", number));
}

void count(const ValidationRow& row, Validation& out) {
  const bool predicts = row.evidence == Evidence::kPrediction;
  if (row.verdict == Verdict::kMet) {
    ++out.met;
    out.predictions_met += predicts ? 1 : 0;
  } else if (row.verdict == Verdict::kNotMet) {
    ++out.not_met;
    out.predictions_not_met += predicts ? 1 : 0;
  }
}

Status add_rows(published::Rows& rows, const published::Machines& machines, bool oracle) {
  PFRT_TRY(add_reduces(rows, machines));
  PFRT_TRY(add_one_pe(rows, machines));
  PFRT_TRY(add_summa(rows, machines));
  PFRT_TRY(add_mesh_gemm(rows, machines));
  PFRT_TRY(add_decode(rows, machines));
  PFRT_TRY(add_prefill(rows, machines));
  PFRT_TRY(add_vectors(rows, machines));
  PFRT_TRY(add_end_to_end(rows, machines));
  PFRT_TRY(add_caches(rows, machines));
  PFRT_TRY(add_microbenches(rows, machines));
  if (oracle) PFRT_TRY(add_oracle(rows, machines));
  return add_orderings(rows, machines);
}

}  // namespace

Result<Validation> validate(const std::vector<Change>& changes, const std::function<bool()>& stop,
                            bool oracle) {
  published::Machines machines;
  PFRT_ASSIGN(machines.wse2, find_machine("wse2", false, changes));
  PFRT_ASSIGN(machines.wse3, find_machine("wse3", false, changes));
  PFRT_ASSIGN(machines.wse3_silicon, find_machine("wse3", true, changes));
  published::Rows rows(stop);
  PFRT_TRY(add_rows(rows, machines, oracle));

  Validation out;
  out.rows = rows.take();
  for (const ValidationRow& row : out.rows) count(row, out);
  for (const Machine* const machine : {&machines.wse2, &machines.wse3}) {
    add_fitted(*machine, out.fitted);
    add_idle(*machine, out.idle);
  }
  out.machines = {machines.wse2.identity(), machines.wse3.identity(),
                  machines.wse3_silicon.identity()};
  return out;
}

}  // namespace pfrt::wse
