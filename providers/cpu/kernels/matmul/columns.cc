// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/matmul/columns.h"

#include "providers/cpu/kernels/matmul/bfloat16_rows.h"
#include "providers/cpu/kernels/matmul/panels.h"
#include "providers/cpu/kernels/matmul/split_product.h"
#include "providers/cpu/kernels/matmul/tiles.h"

namespace pfrt::cpu {
namespace {

template <typename Product>
Kernel kernel_of(Product product, std::function<Finish(const Run&)> finish) {
  Kernel kernel;
  kernel.scratch_bytes = product.scratch_bytes();
  kernel.shared_bytes = product.shared_bytes();
  kernel.run = [product = std::move(product), finish = std::move(finish)](const Run& run) {
    product.run(run, finish(run));
    return run.stop();
  };
  return kernel;
}

}  // namespace

std::optional<PackedInput> pack_columns(const SnapshotNode& node, int64_t m, bool any,
                                        const Columns& columns, PackedNames names) {
  std::optional<PackedInput> packed = pack_bfloat16_columns(node, m, any, columns);
  if (packed) {
    packed->kernel = names.bfloat16_rows;
    return packed;
  }
  packed = pack_tile_columns(node, m, columns);
  if (packed) packed->kernel = names.tiles;
  // What is split on the way has more rows of tiles than vectors could make up for.
  if (packed || split_product_usable()) return packed;
  packed = pack_panel_columns(node, m, any, columns);
  if (packed) packed->kernel = names.panels;
  return packed;
}

Kernel packed_product(const PackedInput& packed, const SnapshotNode& node, int64_t m,
                      const Columns& columns, std::function<Finish(const Run&)> finish) {
  Kernel kernel;
  if (packed.recipe.starts_with(kTileColumns)) {
    kernel = kernel_of(TileMatmul(m, columns, node.precision()), std::move(finish));
  } else if (packed.recipe.starts_with(kBfloat16Columns)) {
    kernel = kernel_of(Bfloat16Rows(m, columns), std::move(finish));
  } else {
    const PanelMatmul product(m, columns);
    kernel = kernel_of(product, finish);
    kernel.alternatives = [product, columns, finish = std::move(finish)] {
      std::vector<Alternative> out;
      for (auto& [change, other] : product.others(columns))
        out.push_back({std::move(change), kernel_of(std::move(other), finish)});
      return out;
    };
  }
  kernel.flops = 2.0 * static_cast<double>(m) * static_cast<double>(columns.n) *
                 static_cast<double>(columns.k);
  return kernel;
}

}  // namespace pfrt::cpu
