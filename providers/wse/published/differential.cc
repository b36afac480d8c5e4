// SPDX-License-Identifier: Apache-2.0
//
// V13: the phase engine against the event simulator of ../oracle, which shares nothing with it but
// the machine's numbers: cycles, and values from the same pseudo-random inputs.
#include <algorithm>

#include "providers/wse/oracle/oracle.h"
#include "providers/wse/published/rows.h"
#include "providers/wse/schedule/products.h"

namespace pfrt::wse::published {
namespace {

using oracle::Case;
using Algorithm = Case::Algorithm;

Arithmetic arithmetic_of(const Case& work) {
  return work.fp16 ? Arithmetic::kFp16 : Arithmetic::kFp32;
}

std::vector<float> random_values(int64_t count, Arithmetic arithmetic, uint32_t seed) {
  std::vector<float> out(static_cast<size_t>(count));
  for (float& value : out) {
    seed = seed * 1664525 + 1013904223;
    value = round_to(arithmetic, static_cast<float>(seed >> 8) / 8388608.0F - 1.0F);
  }
  return out;
}

// What the engine's side of a case came to.
struct EngineSide {
  double cycles = 0;
  std::vector<float> values;
  std::string derivation;
};

Status add_case(Rows& rows, const Machine& m, std::string_view point, const Case& work,
                const EngineSide& engine) {
  PFRT_ASSIGN(const oracle::Outcome outcome, oracle::simulate(m, work));
  const bool comparable = outcome.values.size() == engine.values.size();
  size_t differ = comparable ? 0 : outcome.values.size();
  for (size_t i = 0; comparable && i < engine.values.size(); ++i)
    if (outcome.values[i] != engine.values[i]) ++differ;
  ValidationRow row;
  row.id = "V13";
  row.point = point;
  row.source = "providers/wse/oracle";
  row.kind = "internal";
  row.unit = "cycles";
  row.tolerance_percent = 1;
  row.target = outcome.cycles;
  row.ours = engine.cycles;
  row.note = differ == 0 ? "values equal"
                         : message(differ, " of ", outcome.values.size(), " values differ");
  if (differ != 0) row.ours = 0;  // cycles of something else
  return rows.add(std::move(row), engine.derivation);
}

// ---- reduces on a line ----

// A chain from the last of |parts| to the first, in the engine's order: its tree with one group
// whose root is an end.
float chain_join(Arithmetic type, std::vector<float> parts) {
  std::reverse(parts.begin(), parts.end());
  return tree_join(type, parts, 2 * static_cast<int64_t>(parts.size()), Join::kAdd);
}

float reduced(const Case& work, const std::vector<float>& parts) {
  const Arithmetic type = arithmetic_of(work);
  if (work.algorithm == Algorithm::kTreeAllReduce)
    return tree_join(type, parts, work.group, Join::kAdd);
  if (work.algorithm == Algorithm::kChainReduce) return chain_join(type, parts);
  std::vector<float> roots;
  const auto group = static_cast<size_t>(work.group);
  for (size_t first = 0; first < parts.size(); first += group) {
    const size_t last = std::min(parts.size(), first + group);
    roots.push_back(chain_join(type, {parts.begin() + static_cast<ptrdiff_t>(first),
                                      parts.begin() + static_cast<ptrdiff_t>(last)}));
  }
  return chain_join(type, roots);
}

EngineSide reduce_by_engine(const Machine& m, const Case& work) {
  Schedule s(m, arithmetic_of(work), work.columns, 1);
  s.phase(PhaseKind::kCollective, "reduce", 0, [&](Grid& grid) {
    const int64_t wavelets = s.wavelets(work.n);
    if (work.algorithm == Algorithm::kTreeAllReduce)
      tree_all_reduce(grid, m, Axis::kX, work.group, wavelets);
    else if (work.algorithm == Algorithm::kTwoPhaseReduce)
      two_phase_reduce(grid, m, Axis::kX, work.group, wavelets);
    else
      chain_reduce(grid, m, Axis::kX, wavelets);
  });
  EngineSide out{s.finish(), {}, largest_phases(s)};
  for (int64_t j = 0; j < work.n; ++j) {
    std::vector<float> parts;
    for (int64_t pe = 0; pe < work.columns; ++pe)
      parts.push_back(work.a[static_cast<size_t>(pe * work.n + j)]);
    out.values.push_back(reduced(work, parts));
  }
  return out;
}

Status add_line(Rows& rows, const Machine& m, std::string_view point, Case work) {
  work.a = random_values(work.columns * work.n, arithmetic_of(work), 1);
  return add_case(rows, m, point, work, reduce_by_engine(m, work));
}

// ---- products on a square ----

ProductAlgorithm product_of(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kCannon:
      return ProductAlgorithm::kCannon;
    case Algorithm::kSumma:
      return ProductAlgorithm::kSumma;
    case Algorithm::kMeshGemv:
      return ProductAlgorithm::kMeshGemv;
    default:
      return ProductAlgorithm::kMeshGemm;
  }
}

std::vector<float> product_values(const Case& work) {
  const int64_t side = work.columns, n = work.n * side, k = work.k * side;
  const int64_t m = work.algorithm == Algorithm::kMeshGemv ? 1 : work.m * side;
  std::vector<float> out(static_cast<size_t>(m * n));
  const GemmValues values{product_of(work.algorithm),
                          arithmetic_of(work),
                          m,
                          k,
                          n,
                          side,
                          work.group,
                          work.a.data(),
                          k,
                          work.b.data(),
                          n,
                          out.data(),
                          n};
  gemm_values(values, [](int64_t count, const std::function<void(int64_t)>& fn) {
    for (int64_t i = 0; i < count; ++i) fn(i);
    return true;
  });
  return out;
}

EngineSide product_by_engine(const Machine& m, const Case& work) {
  Schedule s(m, arithmetic_of(work), work.columns, work.rows);
  const Tile tile{work.m, work.k, work.n};
  if (work.algorithm == Algorithm::kMeshGemv) {
    gemv(s, tile, Axis::kY, work.group);
  } else {
    GemmOptions options;
    options.algorithm = product_of(work.algorithm);
    gemm(s, tile, options);
  }
  return {s.finish(), product_values(work), largest_phases(s)};
}

Status add_product(Rows& rows, const Machine& m, std::string_view point, Case work) {
  const Arithmetic type = arithmetic_of(work);
  const int64_t pes = int64_t{work.columns} * work.rows;
  const bool vector = work.algorithm == Algorithm::kMeshGemv;
  work.a = random_values(vector ? work.k * work.rows : work.m * work.k * pes, type, 2);
  work.b = random_values(work.k * work.n * pes, type, 3);
  return add_case(rows, m, point, work, product_by_engine(m, work));
}

// ---- exchanges ----

// The engine moves no values here: what each PE gets follows from what an exchange is.
std::vector<float> exchanged_values(const Case& work) {
  const bool halo = work.algorithm == Algorithm::kHalo;
  const int64_t sides = halo ? 4 : 1;
  std::vector<float> out;
  for (int64_t y = 0; y < work.rows; ++y)
    for (int64_t x = 0; x < work.columns; ++x)
      for (int64_t side = 0; side < sides; ++side) {
        // N, E, S, W; a cache's entries come from the south.
        const int64_t way = halo ? side : 2;
        const int64_t from_x = x + (way == 1) - (way == 3), from_y = y + (way == 2) - (way == 0);
        const bool rim = from_x < 0 || from_x >= work.columns || from_y < 0 || from_y >= work.rows;
        const int64_t edge = halo ? (side + 2) % 4 : 0;
        const int64_t first = ((from_y * work.columns + from_x) * sides + edge) * work.n;
        for (int64_t j = 0; j < work.n; ++j)
          out.push_back(rim ? 0.0F : work.a[static_cast<size_t>(first + j)]);
      }
  return out;
}

Status add_exchange(Rows& rows, const Machine& m, std::string_view point, Case work) {
  const Arithmetic type = arithmetic_of(work);
  const bool halo = work.algorithm == Algorithm::kHalo;
  work.a = random_values(work.n * work.columns * work.rows * (halo ? 4 : 1), type, 4);
  Schedule s(m, type, work.columns, work.rows);
  s.phase(PhaseKind::kExchange, "exchange", 0, [&](Grid& grid) {
    halo ? exchange_halo(grid, m, s.wavelets(work.n)) : shift_up(grid, m, s.wavelets(work.n));
  });
  return add_case(rows, m, point, work, {s.finish(), exchanged_values(work), largest_phases(s)});
}

Case square_case(Algorithm algorithm, int side, int64_t tile, bool fp16) {
  Case out;
  out.algorithm = algorithm;
  out.columns = out.rows = side;
  out.m = out.k = out.n = tile;
  out.fp16 = fp16;
  return out;
}

Case line_case(Algorithm algorithm, int pes, int group, int64_t elements, bool fp16) {
  Case out;
  out.algorithm = algorithm;
  out.columns = pes;
  out.group = group;
  out.n = elements;
  out.fp16 = fp16;
  return out;
}

}  // namespace

Status add_oracle(Rows& rows, const Machines& machines) {
  const Machine& m = machines.wse2;
  PFRT_TRY(add_line(rows, m, "chain, P=64 B=256 fp32",
                    line_case(Algorithm::kChainReduce, 64, 1, 256, false)));
  PFRT_TRY(add_line(rows, m, "two-phase, P=64 S=8 B=64 fp32",
                    line_case(Algorithm::kTwoPhaseReduce, 64, 8, 64, false)));
  PFRT_TRY(add_line(rows, m, "tree all-reduce, P=60 g=8 n=64 fp16",
                    line_case(Algorithm::kTreeAllReduce, 60, 8, 64, true)));
  PFRT_TRY(add_product(rows, m, "MeshGEMM, P=8 4x4x4 fp16",
                       square_case(Algorithm::kMeshGemm, 8, 4, true)));
  PFRT_TRY(
      add_product(rows, m, "Cannon, P=8 4x4x4 fp16", square_case(Algorithm::kCannon, 8, 4, true)));
  PFRT_TRY(add_product(rows, m, "SUMMA, P=4 14x14x14 fp32",
                       square_case(Algorithm::kSumma, 4, 14, false)));
  Case vector = square_case(Algorithm::kMeshGemv, 16, 8, true);
  vector.m = 1;
  vector.group = 4;
  PFRT_TRY(add_product(rows, m, "MeshGEMV, P=16 8x8 g=4 fp16", std::move(vector)));
  PFRT_TRY(
      add_exchange(rows, m, "halo, 8x8 n=32 fp16", square_case(Algorithm::kHalo, 8, 32, true)));
  return add_exchange(rows, m, "KV shift, 8x8 n=128 fp16",
                      square_case(Algorithm::kKvShift, 8, 128, true));
}

}  // namespace pfrt::wse::published
