// SPDX-License-Identifier: Apache-2.0
#include "providers/wse/schedule/products.h"

#include <algorithm>

namespace pfrt::wse {
namespace {

// Finding its part and clearing the result, before the first step.
void enter(Schedule& s, const Tile& tile) {
  const Machine& m = s.machine();
  s.work("enter", 4 * m.task + 4 * m.role_test + m.dsd_setup + s.copy(tile.m * tile.n));
}

// A map over the row of B for each k of the tile.
double tile_cycles(const Schedule& s, const Tile& tile) {
  return static_cast<double>(tile.k) * s.map_cycles(tile.n, tile.m, false);
}

void shifting(Schedule& s, const Tile& tile, const GemmOptions& options) {
  const int64_t side = s.grid().columns();
  const bool interleaved = options.algorithm == ProductAlgorithm::kMeshGemm;
  const int64_t a = s.wavelets(tile.m * tile.k), b = s.wavelets(tile.k * tile.n);
  if (!options.aligned && side > 1) {
    const int64_t rounds = side / 2;  // whichever way round is shorter
    s.phase(PhaseKind::kExchange, "align", 0,
            [&](Grid& grid) { align(grid, s.machine(), rounds, a, interleaved); });
  }
  ShiftStep step;
  step.compute = static_cast<double>(options.repeats) * tile_cycles(s, tile);
  step.a_wavelets = a;
  step.b_wavelets = b;
  step.interleaved = interleaved;
  s.phase(PhaseKind::kExchange, "shift and multiply", static_cast<double>(side) * step.compute,
          [&](Grid& grid) { shift_steps(grid, s.machine(), side, step); });
}

void summa(Schedule& s, const Tile& tile, int64_t repeats) {
  const Machine& m = s.machine();
  const int64_t side = s.grid().columns();
  const double calls = static_cast<double>(repeats * tile.k * tile.n);
  const double compute = calls * (m.loop_call + m.scalar + s.fmac(tile.m));
  for (int64_t i = 0; i < side; ++i) {
    s.phase(PhaseKind::kCollective, "multicast", 0, [&](Grid& grid) {
      multicast_both(grid, m, i, s.wavelets(tile.m * tile.k), s.wavelets(tile.k * tile.n));
    });
    s.work("multiply", 2 * m.task + compute);
  }
}

}  // namespace

std::string_view name_of(ProductAlgorithm algorithm) {
  switch (algorithm) {
    case ProductAlgorithm::kMeshGemm:
      return "MeshGEMM";
    case ProductAlgorithm::kCannon:
      return "Cannon";
    case ProductAlgorithm::kSumma:
      return "SUMMA";
    case ProductAlgorithm::kMeshGemv:
      return "MeshGEMV";
  }
  return "";
}

void gemm(Schedule& s, const Tile& tile, const GemmOptions& options) {
  enter(s, tile);
  if (options.algorithm == ProductAlgorithm::kSumma) return summa(s, tile, options.repeats);
  shifting(s, tile, options);
}

void gemm_transposed(Schedule& s, const Tile& tile) {
  const Machine& m = s.machine();
  const int64_t side = s.grid().columns(), part = tile.m * tile.n;
  enter(s, tile);
  ShiftStep step;
  // The product, the PE's turn in the chain along x, and clearing the part for the next step.
  step.compute = tile_cycles(s, tile) + 2 * m.role_test + m.dsd_setup +
                 static_cast<double>(s.wavelets(part)) * m.wavelet + m.dsd_setup + s.copy(part);
  step.b_wavelets = s.wavelets(tile.k * tile.n);
  s.phase(PhaseKind::kExchange, "shift, multiply and join",
          static_cast<double>(side) * step.compute,
          [&](Grid& grid) { shift_steps(grid, m, side, step); });
  // Chains of one step run behind those of the next: only the last is waited for.
  const double stage = 2 * m.ramp + m.hop + 1;
  s.phase(PhaseKind::kCollective, "last chain", 0,
          [&](Grid& grid) { grid.work(static_cast<double>(side - 1) * stage); });
}

void gemv_local(Schedule& s, const Tile& tile) {
  const Machine& m = s.machine();
  s.work("multiply", m.dsd_setup + s.copy(tile.n) + m.dsd_setup +
                         s.map_cycles(tile.k, tile.n, /*dependent=*/true));
}

void gemv(Schedule& s, const Tile& tile, Axis axis, int64_t group) {
  gemv_local(s, tile);
  s.all_reduce("all-reduce", axis, tile.n, group);
}

int64_t gemm_bytes(const Tile& tile, Arithmetic arithmetic, ProductAlgorithm algorithm) {
  const int64_t tiles = tile.m * tile.k + tile.k * tile.n;
  const int64_t copies = algorithm == ProductAlgorithm::kMeshGemv ? 1 : 2;
  return bytes_of(arithmetic) * (copies * tiles + tile.m * tile.n);
}

}  // namespace pfrt::wse
