// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/matmul/columns.h"

#include "providers/cpu/epilogue/in_float32.h"
#include "providers/cpu/kernels/matmul/bf16_dot.h"
#include "providers/cpu/kernels/matmul/columns_16bit.h"
#include "providers/cpu/kernels/matmul/panels.h"
#include "providers/cpu/kernels/matmul/rows_16bit.h"
#include "providers/cpu/kernels/matmul/split_matmul.h"
#include "providers/cpu/kernels/matmul/tiles.h"

namespace pfrt::cpu {
namespace {

template <typename MatMul>
Kernel kernel_of(std::string_view name, MatMul matmul, std::function<Finish(const Run&)> finish) {
  Kernel kernel;
  kernel.name = name;
  kernel.scratch_bytes = matmul.scratch_bytes();
  kernel.shared_bytes = matmul.shared_bytes();
  kernel.run = [matmul = std::move(matmul), finish = std::move(finish)](const Run& run) {
    matmul.run(run, finish(run));
    return run.stop();
  };
  return kernel;
}

// Whether more rows than a few read panels: not where tiles are used, or code cannot be made
// executable.
bool panels_are_best(const SnapshotNode& node) {
  return !splits_products(node.precision()) && PanelMicrokernel::get() != nullptr;
}

// Whether the kernel of a few rows reads columns of 16 bits. Its sums are added otherwise than
// those of more rows.
bool are_few_rows(const SnapshotNode& node, int64_t m) {
  return m <= Rows16Bit::kMostRows && node.precision() != Precision::kRowsAlone;
}

template <typename MatMul>
Kernel kernel_with_others(std::string_view name, const MatMul& matmul,
                          std::function<Finish(const Run&)> finish) {
  Kernel kernel = kernel_of(name, matmul, finish);
  kernel.alternatives = [name, matmul, finish = std::move(finish)](bool all) {
    Alternatives out{matmul.parameters(), {}};
    for (const MatMul& other : matmul.others(all))
      out.others.push_back({other.parameters(), kernel_of(name, other, finish)});
    return out;
  };
  return kernel;
}

Kernel kernel_that_reads(const PackedInput& packed, const SnapshotNode& node, int64_t m,
                         const Columns& columns, const PackedNames& names,
                         std::function<Finish(const Run&)> finish) {
  using Panels = PanelMatmul::Panels;
  if (packed.recipe.starts_with(kTileColumns)) {
    if (tiles_win(m, columns) || PanelMicrokernel::get() == nullptr)
      return kernel_of(names.tiles, TileMatmul(m, columns, node.precision()), std::move(finish));
    PanelMatmul behind(m, columns, Panels::kFp32);
    behind.at(panels_behind_tiles(node.precision(), columns));
    return kernel_with_others(names.panels, behind, std::move(finish));
  }
  Panels panels = Panels::kFp32;
  std::string_view name = names.panels;
  if (packed.recipe.starts_with(kColumns16Bit)) {
    const ColumnType type = column_type(node);
    const bool float16 = type == ColumnType::kFp16;
    if (are_few_rows(node, m))
      return kernel_of(float16 ? names.float16_rows : names.bfloat16_rows,
                       Rows16Bit(m, columns, type), std::move(finish));
    if (takes_bf16_dot(node))
      return kernel_with_others(names.bfloat16_dot, Bf16DotMatmul(m, columns), std::move(finish));
    panels = float16 ? Panels::kFp16 : Panels::kBf16;
    name = float16 ? names.float16_panels : names.bfloat16_panels;
  }
  return kernel_with_others(name, PanelMatmul(m, columns, panels), std::move(finish));
}

}  // namespace

std::optional<PackedInput> pack_columns(const SnapshotNode& node, int64_t m, bool any,
                                        const Columns& columns) {
  std::optional<PackedInput> packed;
  // Columns of 16 bits are widened once where the product, not reading them, is what takes time.
  if (is_16bit_float(node.input_dtype(0)) && m > Rows16Bit::kMostRows && panels_are_best(node) &&
      !takes_bf16_dot(node))
    packed = pack_panel_columns(node, m, any, columns);
  if (!packed && (are_few_rows(node, m) || panels_are_best(node)))
    packed = pack_columns_16bit(node, columns, m > Rows16Bit::kMostRows && takes_bf16_dot(node));
  if (!packed) packed = pack_tile_columns(node, m, any, columns);
  // With products that are split for tiles, other columns stay as they are: a matmul of many rows
  // splits them in the run.
  if (packed || splits_products(node.precision())) return packed;
  return pack_panel_columns(node, m, any, columns);
}

bool reads_packed(const PackedInput& packed, const SnapshotNode& node, int64_t m) {
  return !packed.recipe.starts_with(kColumns16Bit) || are_few_rows(node, m) ||
         panels_are_best(node);
}

Kernel packed_matmul(const PackedInput& packed, const SnapshotNode& node, int64_t m,
                     const Columns& columns, const PackedNames& names,
                     std::function<Finish(const Run&)> finish) {
  Kernel kernel = kernel_that_reads(packed, node, m, columns, names, std::move(finish));
  kernel.packed_alone = true;
  kernel.flops = 2.0 * static_cast<double>(m) * static_cast<double>(columns.n) *
                 static_cast<double>(columns.k);
  return in_float32(node, {0, 2}, std::move(kernel));
}

}  // namespace pfrt::cpu
