// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/matmul/bf16_dot.h"

#include <algorithm>

#include "providers/cpu/kernels/matmul/bf16_pairs.h"
#include "providers/cpu/kernels/matmul/columns_16bit.h"
#include "providers/cpu/kernels/matmul/rows_16bit.h"
#include "providers/cpu/kernels/matmul/split_terms.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kTask = 8 << 10;  // numbers of rows that are rounded

}  // namespace

bool Bf16DotMatmul::takes(const SnapshotNode& node) {
  const bool rounds =
      node.input_dtype(0) == PFRT_DTYPE_BFLOAT16
          ? !is_plain(node.precision())
          : node.precision() == Precision::kBfloat16 && node.input_dtype(0) == PFRT_DTYPE_FLOAT32;
  return rounds && PanelMicrokernel::get_bf16_dot() != nullptr;
}

Bf16DotMatmul::Bf16DotMatmul(int64_t m, const Columns& columns)
    : m_(m),
      n_(columns.n),
      k_(columns.k),
      pairs_(bf16_pairs(columns.k)),
      matmul_(m, {n_, pairs_, 1, n_}, PanelMatmul::Panels::kBf16Dot) {}

std::vector<std::pair<std::string, Bf16DotMatmul>> Bf16DotMatmul::others() const {
  std::vector<std::pair<std::string, Bf16DotMatmul>> out;
  for (auto& [change, matmul] : matmul_.others()) {
    Bf16DotMatmul other = *this;
    other.matmul_ = matmul;
    out.emplace_back(std::move(change), std::move(other));
  }
  return out;
}

// Pairs, then for each row whether it could be rounded.
uint64_t Bf16DotMatmul::shared_bytes() const {
  return static_cast<uint64_t>(m_ * pairs_) * sizeof(uint32_t) + static_cast<uint64_t>(m_);
}

void Bf16DotMatmul::run(const Run& run, const Finish& finish) const {
  if (m_ <= 0) return;
  auto* const pairs = run.shared<uint32_t>();
  auto* const fit = reinterpret_cast<uint8_t*>(pairs + m_ * pairs_);
  const auto* const rows = run.input<float>(0);
  run.blocks(m_, std::max<int64_t>(1, kTask / k_), [&](int64_t begin, int64_t end) {
    if (run.stopped()) return;
    for (int64_t r = begin; r < end; ++r)
      fit[r] = large_enough(to_bf16_pairs(rows + r * k_, k_, pairs + r * pairs_));
  });
  const Columns16Bit columns(run.packed<uint32_t>(), n_, k_);
  matmul_.run(run, reinterpret_cast<const float*>(pairs),
              [&](float* row, int64_t i, int64_t j, int64_t n) {
                if (fit[i] == 0 || !columns.can_be_dot(j, n) || !sums_are_right(row, n))
                  Rows16Bit::multiply_row(rows + i * k_, columns, j, n, row);
                if (finish) finish(row, i, j, n);
              });
}

}  // namespace pfrt::cpu
