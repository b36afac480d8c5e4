// SPDX-License-Identifier: Apache-2.0
//
// Costs of a layer on a square of PEs. Products are mapped as published programs map them. Layers
// that nobody has measured (convolutions, elementwise chains, normalisations, moves) follow from
// the same rules and are not validated.
#include <algorithm>
#include <cmath>

#include "providers/wse/place/layer.h"

namespace pfrt::wse {
namespace {

// Routes that algorithms take on a PE (csl-examples and WaferLLM).
constexpr int kGemmColors = 12, kGemvColors = 10, kTreeColors = 10;

struct Trial {
  Schedule schedule;
  Mapping mapping;
};

// Squares of the rectangle on which products of a batch run at a time.
int64_t squares_on(int64_t batch, int64_t side) {
  return std::clamp<int64_t>(std::llround(std::ceil(std::sqrt(static_cast<double>(batch)))), 1,
                             side);
}

int64_t clamped(double bytes) {
  constexpr double kMost = 1e18;
  return static_cast<int64_t>(std::min(bytes, kMost));
}

void set_memory(Mapping& out, Arithmetic arithmetic, const Layer& layer, const Tile& tile,
                int64_t products) {
  const auto bytes = static_cast<double>(bytes_of(arithmetic));
  const auto count = static_cast<double>(products);
  const auto m = static_cast<double>(tile.m), k = static_cast<double>(tile.k);
  const auto n = static_cast<double>(tile.n);
  const bool shifting = out.algorithm != ProductAlgorithm::kMeshGemv;
  out.weight_bytes = layer.constant_b ? clamped(bytes * count * k * n) : 0;
  // A shifting operand needs a second buffer, a constant one as well.
  const double moving = shifting ? 2 * m * k + (layer.constant_b ? k * n : 2 * k * n)
                                 : k + (layer.constant_b ? 0 : k * n);
  out.buffer_bytes = clamped(bytes * (moving + count * (shifting ? m * n : 2 * n)));
}

Mapping map_gemm(const Machine& machine, Arithmetic arithmetic, const Layer& layer, int64_t side) {
  Mapping out;
  out.side = side;
  const int64_t squares = squares_on(layer.batch, side);
  out.grid = side / squares;
  const int64_t rounds = divide_up(layer.batch, squares * squares);
  const Tile tile{divide_up(layer.m, out.grid), divide_up(layer.k, out.grid),
                  divide_up(layer.n, out.grid)};
  Schedule schedule(machine, arithmetic, out.grid, out.grid);
  // Each PE gathers the pixels of its windows from neighbours.
  if (layer.window > 1 && out.grid > 1)
    schedule.phase(PhaseKind::kExchange, "halo", 0, [&](Grid& grid) {
      exchange_halo(grid, machine, schedule.wavelets(divide_up(tile.m * tile.k, layer.window)));
    });
  gemm(schedule, tile, {});
  out.colors = kGemmColors;  // the halo is over when they are needed
  out.cycles = static_cast<double>(rounds) * schedule.finish();
  out.phases = schedule.phases();
  out.spent = schedule.spent();
  set_memory(out, arithmetic, layer, tile, rounds);
  return out;
}

Mapping map_gemv(const Machine& machine, Arithmetic arithmetic, const Layer& layer, int64_t side) {
  Mapping out;
  out.side = side;
  out.algorithm = ProductAlgorithm::kMeshGemv;
  const int64_t squares = squares_on(layer.batch, side);
  out.grid = side / squares;
  out.group = tree_group(out.grid);
  const int64_t rounds = divide_up(layer.batch, squares * squares);
  const Tile tile{1, divide_up(layer.k, out.grid), divide_up(layer.n, out.grid)};
  Schedule schedule(machine, arithmetic, out.grid, out.grid);
  gemv(schedule, tile, Axis::kY, out.group);
  out.colors = kGemvColors;
  out.cycles = static_cast<double>(rounds * layer.m) * schedule.finish();
  out.phases = schedule.phases();
  out.spent = schedule.spent();
  set_memory(out, arithmetic, layer, tile, rounds);
  // All rows of x and y wait their turn.
  out.buffer_bytes = clamped(static_cast<double>(out.buffer_bytes) +
                             static_cast<double>(bytes_of(arithmetic) * (layer.m - 1)) *
                                 static_cast<double>(tile.k + tile.n));
  return out;
}

void move_phases(Schedule& s, const Layer& layer, int64_t side) {
  const Machine& m = s.machine();
  const int64_t pes = side * side, mine = divide_up(layer.outputs, pes);
  if (layer.row->op == "Identity" || layer.row->op == "Squeeze" || layer.row->op == "Unsqueeze" ||
      layer.row->op == "Reshape" || layer.row->op == "Flatten" || layer.row->op == "Shape")
    return;  // another name for what lies there
  if (layer.fresh > 0) {
    // The new entry goes to the last row; where it is full, each row passes its oldest one up.
    s.phase(PhaseKind::kExchange, "KV shift", 0,
            [&](Grid& grid) { shift_up(grid, m, s.wavelets(divide_up(layer.fresh, side))); });
    return;
  }
  // Anything may go anywhere: half of it crosses the middle of the rectangle.
  const double wavelets = static_cast<double>(s.wavelets(mine));
  const double cycles = m.dsd_setup + wavelets * m.wavelet * static_cast<double>(side) / 2 +
                        static_cast<double>(side) * m.hop + 2 * m.ramp;
  s.phase(PhaseKind::kExchange, "move", 0, [&](Grid& grid) { grid.work(cycles); });
}

void row_phases(Schedule& s, const Layer& layer, int64_t mine) {
  const Work& work = layer.row->work;
  const int64_t side = s.grid().columns();
  const int64_t rows = std::max<int64_t>(
      1, divide_up(std::max(layer.inputs, layer.outputs), std::max<int64_t>(1, layer.line) * side));
  for (int i = 0; i < static_cast<int>(work.sums); ++i) s.register_join("sums", mine);
  for (int i = 0; i < static_cast<int>(work.all_reduces); ++i)
    s.all_reduce("all-reduce", Axis::kX, rows, tree_group(side));
}

void plain_phases(Schedule& s, const Layer& layer, int64_t side) {
  const Machine& m = s.machine();
  const Work& work = layer.row->work;
  const int64_t most = std::max(layer.inputs, layer.outputs);
  const int64_t mine = divide_up(most, side * side);
  if (layer.row->family == Family::kWindows && side > 1)
    s.phase(PhaseKind::kExchange, "halo", 0, [&](Grid& grid) {
      exchange_halo(
          grid, m,
          s.wavelets(std::max<int64_t>(1, std::llround(std::sqrt(static_cast<double>(mine))))));
    });
  s.vectors("vector operations", work.vector_operations * static_cast<double>(layer.window), mine);
  const double scalar = work.scalars * m.scalar + work.divides * m.divide +
                        work.square_roots * m.square_root + work.exponentials * m.exponential;
  if (scalar > 0) s.scalar_loop("scalar code", mine, scalar);
  if (layer.row->family == Family::kRows) row_phases(s, layer, mine);
}

void attention_phases(Schedule& s, const Layer& layer, int64_t side) {
  const int64_t width = std::max<int64_t>(1, layer.line);
  const int64_t tokens = std::max<int64_t>(1, layer.outputs / width);
  const Tile tile{divide_up(tokens, side), divide_up(width, side), divide_up(tokens, side)};
  gemm_transposed(s, tile);
  s.loop("softmax", 4 * tile.m, tile.m);
  s.scalar_loop("exponential", tile.m * tile.m, s.machine().exponential);
  for (int i = 0; i < 2; ++i) s.all_reduce("all-reduce", Axis::kX, tile.m, tree_group(side));
  gemm(s, {tile.m, tile.m, tile.k}, {});
}

Mapping map_plain(const Machine& machine, Arithmetic arithmetic, const Layer& layer, int64_t side) {
  Mapping out;
  out.side = out.grid = side;
  out.group = tree_group(side);
  Schedule s(machine, arithmetic, side, side);
  switch (layer.row->family) {
    case Family::kMove:
      move_phases(s, layer, side);
      break;
    case Family::kLookup:
      s.phase(PhaseKind::kCollective, "rows", 0, [&](Grid& grid) {
        multicast(grid, machine, Axis::kX, 0, s.wavelets(divide_up(layer.outputs, side)));
      });
      break;
    case Family::kAttention:
      attention_phases(s, layer, side);
      break;
    default:
      plain_phases(s, layer, side);
  }
  out.colors = layer.row->family == Family::kElementwise ? 0
               : layer.row->family == Family::kAttention ? kGemmColors
                                                         : kTreeColors;
  out.cycles = s.finish();
  out.phases = s.phases();
  out.spent = s.spent();
  const int64_t pes = side * side, bytes = bytes_of(arithmetic);
  out.weight_bytes = bytes * divide_up(layer.weights, pes);
  out.buffer_bytes = bytes * (divide_up(layer.inputs, pes) + divide_up(layer.outputs, pes));
  return out;
}

}  // namespace

Spread Mapping::spread(const Layer& layer) const {
  if (layer.is_product()) return {grid, group};
  return {std::clamp<int64_t>(layer.line, 1, side), group};
}

double Mapping::utilisation(const Layer& layer, const Machine& machine,
                            Arithmetic arithmetic) const {
  const Rate& rate = is_16_bit(arithmetic) ? machine.fp16_fmac : machine.fp32_fmac;
  const double peak = rate.group / rate.group_cycles * static_cast<double>(side * side) * cycles;
  return peak > 0 && layer.is_product() ? layer.macs() / peak : 0;
}

std::string_view Mapping::bound() const {
  if (spent.host > std::max(spent.compute, spent.fabric)) return "host";
  if (spent.cycles == 0) return "nothing";
  return spent.compute >= spent.fabric ? "compute" : "fabric";
}

Mapping map_layer(const Machine& machine, Arithmetic arithmetic, const Layer& layer, int64_t side) {
  if (!layer.is_product()) return map_plain(machine, arithmetic, layer, side);
  Mapping a = map_gemm(machine, arithmetic, layer, side);
  Mapping b = map_gemv(machine, arithmetic, layer, side);
  const int64_t room = machine.data_bytes();
  if ((a.bytes() <= room) != (b.bytes() <= room)) return a.bytes() <= room ? a : b;
  return a.cycles <= b.cycles ? a : b;
}

}  // namespace pfrt::wse
