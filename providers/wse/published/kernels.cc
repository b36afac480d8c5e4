// SPDX-License-Identifier: Apache-2.0
//
// V1 to V4, V6 and V9: reduces, products on one PE and products on a mesh.
#include <algorithm>

#include "providers/wse/published/data.h"
#include "providers/wse/published/rows.h"
#include "providers/wse/schedule/products.h"

namespace pfrt::wse::published {
namespace {

constexpr std::string_view kEth = "ETH two-phase reduce, SpMM_Cerebras";

// max(C, E / N + L) + (2 T_R + 1) D of a two-phase reduce, and of a chain (HPDC'24; T_R = 2).
double closed_form(const TwoPhasePoint& p) {
  const auto pes = static_cast<double>(p.pes), b = static_cast<double>(p.wavelets);
  const double s = static_cast<double>(p.group), groups = pes / s, stage = 5;
  if (p.group >= p.pes) return b + pes - 1 + stage * (pes - 1);
  const double energy = b * (pes - groups) + b * (pes - s);
  return std::max(2 * b, energy / (pes - 1) + pes - 1) + stage * (s - 1 + groups - 1);
}

Status add_reduce(Rows& rows, const Machine& m, ValidationRow row, const TwoPhasePoint& p) {
  Schedule s(m, Arithmetic::kFp32, p.pes, 1);
  s.phase(PhaseKind::kCollective, p.group < p.pes ? "two-phase reduce" : "chain", 0,
          [&](Grid& grid) { two_phase_reduce(grid, m, Axis::kX, p.group, p.wavelets); });
  row.baseline_name = "the paper's closed form, without set-ups";
  row.baseline = closed_form(p);
  row.machine = m.name;
  row.program = "two-phase reduce fp32";
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
  options.repeats = repeats;
  gemm(s, {mt, 8, 8}, options);
  return s.finish();
}

constexpr int64_t kFittedSide = 3;  // of V6

double scaled_from_fitted(const MeshGemmPoint& p, size_t repeats) {
  for (const MeshGemmPoint& other : kMeshGemmSweep)
    if (other.side == kFittedSide && other.mt == p.mt)
      return other.cycles[repeats] * static_cast<double>(p.side) / static_cast<double>(kFittedSide);
  return 0;
}

// A square of PEs, and the groups of its tree.
struct Best {
  int64_t side = 0, group = 0;
  double cycles = 0;
};

// The best of the squares and groups that the published program can be compiled for: groups divide
// the side, and a tile has room on its PE.
Best best_vector_product(const Machine& m, int64_t size) {
  constexpr int64_t kLeastSide = 64;
  Best best;
  const auto most = static_cast<int64_t>(std::min(m.usable_columns, m.usable_rows));
  for (int64_t side = kLeastSide; side <= most; ++side) {
    const Tile tile{1, divide_up(size, side), divide_up(size, side)};
    if (gemm_bytes(tile, Arithmetic::kFp16, ProductAlgorithm::kMeshGemv) > m.data_bytes()) continue;
    for (int64_t group = 2; group <= side / 2; ++group) {
      if (side % group != 0) continue;
      Schedule s(m, Arithmetic::kFp16, side, side);
      gemv(s, tile, Axis::kY, group);
      if (best.side == 0 || s.finish() < best.cycles) best = {side, group, s.finish()};
    }
  }
  return best;
}

// All usable PEs' datapaths at once, and the hops along a column and back.
double naive_vector_product(const Machine& m, int64_t size) {
  const auto n = static_cast<double>(size);
  const double rate = m.fp16_fmac.group / m.fp16_fmac.group_cycles;
  return n * n / (rate * static_cast<double>(m.usable_pes())) + 2 * m.usable_columns * m.hop;
}

Status add_map_calls(Rows& rows, const Machine& m, ValidationRow row) {
  constexpr int64_t kSide = 3;
  row.unit = "cycles a call";
  row.verdict = Verdict::kShown;
  row.baseline = 0;
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
    row.machine = m.name;
    row.program = "product on one PE fp32";
    row.baseline_name = "2 cycles a multiply-add alone";
    row.baseline = 2 * static_cast<double>(p.kt * p.m * p.nt);
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
  row.machine = m.name;
  row.program = "SUMMA fp32";
  row.unit = "cycles";
  row.tolerance_percent = 5;
  const auto add = [&](std::string_view part, double target, double ours, Verdict verdict,
                       std::string_view note) {
    row.baseline = 0;
    row.baseline_name = "2 cycles a multiply-add alone";
    row.evidence = part == "total" ? Evidence::kPartlyFitted : Evidence::kPrediction;
    if (part == "compute")
      row.baseline = 2 * static_cast<double>(p.side * p.tile * p.tile * p.tile);
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
  row.machine = m.name;
  row.program = "MeshGEMM fp16";
  row.baseline_name = "P = 3's figure times P / 3";
  row.unit = "cycles";
  for (const MeshGemmPoint& p : kMeshGemmSweep)
    for (size_t repeats = 0; repeats < p.cycles.size(); ++repeats) {
      Schedule s(m, Arithmetic::kFp16, p.side, p.side);
      row.ours = mesh_gemm_cycles(s, p.mt, static_cast<int64_t>(repeats));
      row.target = p.cycles[repeats];
      row.point = message("P=", p.side, " Mt=", p.mt, " L=", repeats);
      row.verdict = p.side == kFittedSide ? Verdict::kFitted : Verdict::kMet;
      row.baseline = p.side == kFittedSide ? 0 : scaled_from_fitted(p, repeats);
      row.tolerance_percent = 10;
      PFRT_TRY(rows.add(row, largest_phases(s)));
    }
  row.baseline = 0;
  ValidationRow median = row;
  median.evidence = Evidence::kMedian;
  median.point = "median of P=6,9";
  median.target = 0;
  median.verdict = Verdict::kMet;
  median.tolerance_percent = 5;
  PFRT_TRY(rows.add_median(std::move(median), first));
  return add_map_calls(rows, m, std::move(row));
}

Status add_vectors(Rows& rows, const Machines& machines) {
  const Machine& m = machines.wse2;
  ValidationRow row;
  row.id = "V9";
  row.source = "WaferLLM, OSDI'25, MeshGEMV";
  row.kind = "silicon";
  row.machine = m.name;
  row.program = "MeshGEMV fp16";
  row.unit = "cycles";
  row.tolerance_percent = 12;
  row.baseline_name = "all datapaths at once, and the hops of a column and back";
  for (const VectorPoint& p : kVectors) {
    const Best best = best_vector_product(m, p.size);
    row.point = message("1x", p.size / 1024, "K by ", p.size / 1024, "Kx", p.size / 1024, "K fp16");
    row.target = p.cycles;
    row.ours = best.cycles;
    row.baseline = naive_vector_product(m, p.size);
    row.note = message("the grid is not published; best: ", best.side, "x", best.side,
                       ", groups of ", best.group);
    PFRT_TRY(rows.add(row));
  }
  return {};
}

}  // namespace pfrt::wse::published
