// SPDX-License-Identifier: Apache-2.0
//
// V1 to V4 and V6: reduces, products on one PE and products on a mesh.
#include "providers/wse/published/data.h"
#include "providers/wse/published/rows.h"
#include "providers/wse/schedule/products.h"

namespace pfrt::wse::published {
namespace {

constexpr std::string_view kEth = "ETH two-phase reduce, SpMM_Cerebras";

Status add_reduce(Rows& rows, const Machine& m, ValidationRow row, const TwoPhasePoint& p) {
  Schedule s(m, Arithmetic::kFp32, p.pes, 1);
  s.phase(PhaseKind::kCollective, p.group < p.pes ? "two-phase reduce" : "chain", 0,
          [&](Grid& grid) { two_phase_reduce(grid, m, Axis::kX, p.group, p.wavelets); });
  row.point = message("P=", p.pes, " B=", p.wavelets, " S=", p.group);
  row.target = p.cycles;
  row.ours = s.finish();
  return rows.add(std::move(row), largest_phases(s));
}

double summa_cycles(Schedule& s) {
  GemmOptions options;
  options.algorithm = ProductAlgorithm::kSumma;
  constexpr int64_t kTile = kSummaTimeline.tile;
  gemm(s, {kTile, kTile, kTile}, options);
  return s.finish();
}

double mesh_gemm_cycles(Schedule& s, int64_t mt, int64_t repeats) {
  GemmOptions options;
  options.packed_alignment = false;
  options.repeats = repeats;
  gemm(s, {mt, 8, 8}, options);
  return s.finish();
}

Status add_map_calls(Rows& rows, const Machine& m, ValidationRow row) {
  constexpr int64_t kSide = 3;
  row.unit = "cycles a call";
  row.verdict = Verdict::kShown;
  row.note = "(cycles with 2 products a step less those with 1) / (64 P), its map's start included";
  for (size_t i = 0; i < kMapCall.size(); ++i) {
    const auto mt = static_cast<int64_t>(i) + 1;
    Schedule once(m, Arithmetic::kFp16, kSide, kSide), twice(m, Arithmetic::kFp16, kSide, kSide);
    const double difference = mesh_gemm_cycles(twice, mt, 2) - mesh_gemm_cycles(once, mt, 1);
    row.point = message("c(n), n=", mt);
    row.target = kMapCall[i];
    row.ours = difference / static_cast<double>(kSide * 64);
    PFRT_TRY(rows.add(row));
  }
  return {};
}

}  // namespace

Status add_reduces(Rows& rows, const Machines& machines) {
  ValidationRow row;
  row.id = "V1";
  row.source = kEth;
  row.kind = "simulator";
  row.unit = "cycles";
  row.tolerance_percent = 2.5;
  for (const TwoPhasePoint& point : kTwoPhase)
    PFRT_TRY(add_reduce(rows, machines.wse2, row, point));
  row.id = "V2";
  row.tolerance_percent = 6;
  row.note = "the mean of 925 and 928";
  return add_reduce(rows, machines.wse2, row, kSmallTwoPhase);
}

Status add_one_pe(Rows& rows, const Machines& machines) {
  const Machine& m = machines.wse2;
  for (const OnePePoint& p : kOnePe) {
    Schedule s(m, Arithmetic::kFp32, 1, 1);
    s.work("calls", static_cast<double>(p.kt * p.m) * (m.loop_call + s.fmac(p.nt)));
    ValidationRow row;
    row.id = "V3";
    row.point = message("Nt=", p.nt, " Kt=", p.kt, " M=", p.m);
    row.source = "GEMM_benchmark.csv, SpMM_Cerebras";
    row.kind = "simulator";
    row.unit = "cycles";
    row.tolerance_percent = 3.5;
    row.note = "the source does not say whether this is the device or the vendor's simulator";
    row.target = p.cycles;
    row.ours = s.finish();
    if (p.fitted) row.verdict = Verdict::kFitted;
    PFRT_TRY(rows.add(row, largest_phases(s)));
  }
  return {};
}

Status add_summa(Rows& rows, const Machines& machines) {
  const Machine& m = machines.wse2;
  const SummaTimeline& p = kSummaTimeline;
  Schedule s(m, Arithmetic::kFp32, p.side, p.side);
  const double compute = summa_cycles(s);
  const double h2d = static_cast<double>(p.h2d_words) / m.h2d_words;
  const double d2h = static_cast<double>(p.d2h_words) / m.d2h_words;
  ValidationRow row;
  row.id = "V4";
  row.source = "SUMMA timeline, csl-examples' shape";
  row.kind = "simulator";
  row.unit = "cycles";
  row.tolerance_percent = 5;
  const auto add = [&](std::string_view part, double target, double ours, Verdict verdict,
                       std::string_view note) {
    row.point = message("P=4 14x14x14 fp32, ", part);
    row.target = target;
    row.ours = ours;
    row.verdict = verdict;
    row.note = note;
    return rows.add(row, largest_phases(s));
  };
  PFRT_TRY(add("compute", p.compute, compute, Verdict::kMet, ""));
  PFRT_TRY(add("host to device", p.h2d, h2d, Verdict::kFitted, "h2d_words is taken from here"));
  PFRT_TRY(add("device to host", p.d2h, d2h, Verdict::kFitted, "d2h_words is taken from here"));
  return add("total", p.total, h2d + compute + d2h, Verdict::kMet,
             "two of its three parts were fitted");
}

Status add_mesh_gemm(Rows& rows, const Machines& machines) {
  const Machine& m = machines.wse3;
  const size_t first = rows.size();
  ValidationRow row;
  row.id = "V6";
  row.source = "MeshGEMM sweep, junesookang/WaferLLM";
  row.kind = "simulator";
  row.unit = "cycles";
  for (const MeshGemmPoint& p : kMeshGemmSweep)
    for (size_t repeats = 0; repeats < p.cycles.size(); ++repeats) {
      Schedule s(m, Arithmetic::kFp16, p.side, p.side);
      row.ours = mesh_gemm_cycles(s, p.mt, static_cast<int64_t>(repeats));
      row.target = p.cycles[repeats];
      row.point = message("P=", p.side, " Mt=", p.mt, " L=", repeats);
      row.verdict = p.side == 3 ? Verdict::kFitted : Verdict::kMet;
      row.tolerance_percent = 10;
      PFRT_TRY(rows.add(row, largest_phases(s)));
    }
  ValidationRow median = row;
  median.point = "median of P=6,9";
  median.target = 0;
  median.verdict = Verdict::kMet;
  median.tolerance_percent = 5;
  PFRT_TRY(rows.add_median(std::move(median), first));
  return add_map_calls(rows, m, std::move(row));
}

}  // namespace pfrt::wse::published
