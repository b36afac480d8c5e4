// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/matmul/bf16_dot.h"

#include <algorithm>

#include "providers/cpu/kernels/matmul/bf16_pairs.h"
#include "providers/cpu/kernels/matmul/columns_16bit.h"
#include "providers/cpu/kernels/matmul/rows_16bit.h"
#include "providers/cpu/kernels/matmul/split_matmul.h"
#include "providers/cpu/kernels/matmul/split_terms.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kTask = 8 << 10;  // numbers of rows that are rounded

DotSums trusted_row(uint16_t largest, float reach) {
  return large_enough(largest) ? trusted_sums(largest, reach) : DotSums::kNone;
}

// Computes a row's sums with columns [j, j + n) again where they are not to be trusted. It decides
// panel by panel, since the number of columns in a task depends on the number of threads.
void compute_again(const Run& run, const float* row, uint16_t largest, const Columns16Bit& columns,
                   int64_t j, int64_t n, float* sums) {
  for (const int64_t end = j + n; j < end && !run.stopped();
       j += Panel16Bit::kColumns, sums += Panel16Bit::kColumns) {
    const int64_t count = std::min(Panel16Bit::kColumns, end - j);
    const DotSums right = trusted_row(largest, columns.reach(j, count));
    if (right == DotSums::kNone || (right == DotSums::kIfFinite && !all_finite(sums, count)))
      Rows16Bit::multiply_row(row, columns, j, count, sums);
  }
}

}  // namespace

bool takes_bf16_dot(const SnapshotNode& node) {
  const pfrt_dtype dtype = node.input_dtype(0);
  const bool exact = dtype == PFRT_DTYPE_BFLOAT16 && !is_plain(node.precision());
  const bool rounds = dtype == PFRT_DTYPE_FLOAT32 && node.precision() == Precision::kBfloat16;
  return (exact || rounds) && PanelMicrokernel::get_bf16_dot() != nullptr && !split_matmul_usable();
}

Bf16DotMatmul::Bf16DotMatmul(int64_t m, const Columns& columns)
    : m_(m),
      n_(columns.n),
      k_(columns.k),
      pairs_(bf16_pairs(columns.k)),
      matmul_(m, {n_, pairs_, 1, n_}, PanelMatmul::Panels::kBf16Dot) {}

std::vector<Bf16DotMatmul> Bf16DotMatmul::others(bool all) const {
  std::vector<Bf16DotMatmul> out;
  for (const PanelMatmul& matmul : matmul_.others(all)) out.emplace_back(*this).matmul_ = matmul;
  return out;
}

// Pairs, then for each row the upper half of its largest number.
uint64_t Bf16DotMatmul::shared_bytes() const {
  return static_cast<uint64_t>(m_ * pairs_) * sizeof(uint32_t) +
         static_cast<uint64_t>(m_) * sizeof(uint16_t);
}

void Bf16DotMatmul::run(const Run& run, const Finish& finish) const {
  if (m_ <= 0) return;
  auto* const pairs = run.shared<uint32_t>();
  auto* const largest = reinterpret_cast<uint16_t*>(pairs + m_ * pairs_);
  const auto* const rows = run.input<float>(0);
  run.blocks(m_, std::max<int64_t>(1, kTask / std::max<int64_t>(k_, 1)),
             [&](int64_t begin, int64_t end) {
               if (run.stopped()) return;
               for (int64_t r = begin; r < end; ++r)
                 largest[r] = to_bf16_pairs(rows + r * k_, k_, pairs + r * pairs_);
             });
  const Columns16Bit columns(run.packed<uint32_t>(), n_, k_);
  const float reach = columns.reach(0, n_);
  matmul_.run(run, reinterpret_cast<const float*>(pairs),
              [&](float* row, int64_t i, int64_t j, int64_t n) {
                if (trusted_row(largest[i], reach) != DotSums::kRight)
                  compute_again(run, rows + i * k_, largest[i], columns, j, n, row);
                if (finish) finish(row, i, j, n);
              });
}

}  // namespace pfrt::cpu
