// SPDX-License-Identifier: Apache-2.0
//
// MatMulInteger with constant columns: these are packed to panels of pairs of int16 once, by the
// host; rows become pairs, less their zero points, in the step's memory. Zero points of columns are
// taken off at the end, times the sum of the row.
#include "providers/cpu/kernels/matmul/integer_panels.h"

#include <memory>

#include "providers/cpu/kernels/matmul/int16_dot.h"
#include "providers/cpu/kernels/matmul/make.h"
#include "providers/cpu/kernels/matmul/panels.h"
#include "providers/cpu/row/requantize.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kPanel = PanelMicrokernel::kPanel;
constexpr int64_t kTaskBytes = 16 << 10;  // of rows that become pairs

struct Plan {
  int64_t m, n, k;
  pfrt_dtype a_type;
  Parameter a_zeros, b_zeros;
  PanelMatmul matmul;

  uint64_t pair_bytes() const { return static_cast<uint64_t>(m * pairs_of(k)) * sizeof(uint32_t); }
  uint64_t sum_bytes() const {
    return b_zeros.present() ? static_cast<uint64_t>(m) * sizeof(int32_t) : 0;
  }
  // All rows to |pairs|, their sums to |sums| unless that is null.
  void widen(const Run& run, uint32_t* pairs, int32_t* sums) const {
    const std::vector<uint32_t> zeros = a_zeros.read<uint32_t>(run, m, 0);
    const auto* const a = run.input<uint8_t>(0);
    run.blocks(m, std::max<int64_t>(1, kTaskBytes / k), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const auto zero = static_cast<int32_t>(zeros[static_cast<size_t>(r)]);
        const int32_t sum = to_int16_pairs(a_type, a + r * k, k, zero, pairs + r * pairs_of(k));
        if (sums != nullptr) sums[r] = sum;
      }
    });
  }
};

}  // namespace

std::optional<PackedInput> pack_matmul_integer(const SnapshotNode& node) {
  // Large columns are not kept twice where there may be few rows only.
  constexpr int64_t kLeastColumns = 8, kMostElements = 64 << 20;
  const auto a = node.input_dims(0), b = node.input_dims(1);
  if (PanelMicrokernel::get_int16_dot() == nullptr || a.size() < 2 || b.size() != 2 ||
      !node.is_constant(1))
    return std::nullopt;
  const int64_t k = b[0], n = b[1], pairs = pairs_of(k);
  if (n < kLeastColumns || k < 1 || n > kMostElements / k) return std::nullopt;
  const pfrt_dtype dtype = node.input_dtype(1);
  PackedInput packed;
  packed.input = 1;
  packed.recipe = message("int16_dot_columns/", dtype_name(dtype), "/", n, "x", k);
  packed.bytes =
      static_cast<uint64_t>((n + kPanel - 1) / kPanel * kPanel * pairs) * sizeof(uint32_t);
  packed.pack = [=](const void* source, void* memory) {
    const auto* const from = static_cast<const uint8_t*>(source);
    auto* const to = static_cast<uint32_t*>(memory);
    for (int64_t i = 0; i < pairs; ++i)
      for (int64_t first = 0; first < n; first += kPanel) {
        const uint8_t* const row = from + 2 * i * n + first;
        const int64_t count = std::min(kPanel, n - first);
        uint32_t* const line = to + first * pairs + i * kPanel;
        zip_int16_pairs(dtype, row, 2 * i + 1 < k ? row + n : nullptr, count, 0, line);
        std::fill(line + count, line + kPanel, 0);
      }
  };
  return packed;
}

Result<Kernel> make_packed_matmul_integer(const KernelRequest& node, const PackedInput&) {
  constexpr Types kBytes{PFRT_DTYPE_INT8, PFRT_DTYPE_UINT8};
  if (PanelMicrokernel::get_int16_dot() == nullptr)
    return make_matmul_integer(node);  // not any more
  PFRT_TRY(need_types(node, {0, 1, 2, 3}, kBytes));
  PFRT_ASSIGN(const MatMulShape shape, matmul_shape(node.input_dims(0), node.input_dims(1)));
  PFRT_TRY(shape.check(node));
  const Columns columns{shape.n, pairs_of(shape.k), 1, shape.n};
  const auto plan = std::make_shared<const Plan>(
      Plan{shape.m, shape.n, shape.k, node.input_dtype(0), Parameter(node, 2), Parameter(node, 3),
           PanelMatmul(shape.m, columns, PanelMatmul::Panels::kInt16Dot)});
  PFRT_TRY(plan->a_zeros.check("A's zero point", shape.m));
  PFRT_TRY(plan->b_zeros.check("B's zero point", shape.n));
  Kernel kernel;
  kernel.name = "matmul_integer_panels";
  kernel.packed_alone = true;
  kernel.flops = 2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
                 static_cast<double>(shape.k);
  kernel.scratch_bytes = plan->matmul.scratch_bytes();
  kernel.shared_bytes = plan->pair_bytes() + plan->sum_bytes();
  kernel.run = [plan](const Run& run) -> pfrt_code {
    auto* const pairs = run.shared<uint32_t>();
    auto* const sums =
        plan->b_zeros.present() ? run.shared<int32_t>() + plan->m * pairs_of(plan->k) : nullptr;
    plan->widen(run, pairs, sums);
    const std::vector<uint32_t> zeros = plan->b_zeros.read<uint32_t>(run, plan->n, 0);
    Finish finish;
    if (std::ranges::any_of(zeros, [](uint32_t zero) { return zero != 0; }))
      finish = [sums, &zeros](float* row, int64_t i, int64_t j, int64_t n) {
        auto* const c = reinterpret_cast<uint32_t*>(row);
        const auto sum = static_cast<uint32_t>(sums[i]);
        for (int64_t x = 0; x < n; ++x) c[x] -= sum * zeros[static_cast<size_t>(j + x)];
      };
    plan->matmul.run(run, reinterpret_cast<const float*>(pairs), finish);
    return run.stop();
  };
  return kernel;
}

}  // namespace pfrt::cpu
