// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/matmul/matmul.h"

#include <algorithm>

#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/matmul/columns.h"
#include "providers/cpu/kernels/matmul/integer_dots.h"
#include "providers/cpu/kernels/matmul/make.h"

namespace pfrt::cpu {
namespace {

template <typename T>
Result<Kernel> make_typed(const SnapshotNode& node, StoreFn<T> store) {
  PFRT_TRY(need(node, 2, 1));
  PFRT_TRY(need_types(node, {1}, Types{node.input_dtype(0)}));
  PFRT_ASSIGN(MatMulShape shape, matmul_shape(node.input_dims(0), node.input_dims(1)));
  PFRT_TRY(shape.check(node));
  int64_t m = shape.m, n = shape.n;
  // A column of results is a row of the transposed product: wide panels then run along A.
  const bool swap = n == 1 && m > 1;
  if (swap) std::swap(m, n);
  const Gemm<T> gemm(m, n, shape.k, shape.batch);
  Kernel kernel;
  kernel.flops = 2.0 * static_cast<double>(shape.batch) * static_cast<double>(m) *
                 static_cast<double>(n) * static_cast<double>(shape.k);
  kernel.scratch_bytes = gemm_scratch(gemm, store != nullptr);
  const pfrt_dtype dtype = node.input_dtype(0);
  kernel.run = [gemm, shape = std::move(shape), store, dtype, swap](const Run& run) -> pfrt_code {
    const int64_t tiles = gemm.tiles();
    run.parallel(shape.batch * tiles, [&](int64_t i, uint32_t worker) {
      const int64_t batch = i / tiles;
      const StridedSource<T> a(run.input(0), dtype, shape.a_offset(batch), shape.k, 1);
      const StridedSource<T> b(run.input(1), dtype, shape.b_offset(batch), 1, shape.n);
      const GemmOut<T> out{run.output(0), store, batch * shape.m * shape.n,
                           swap ? shape.m : shape.n};
      compute_gemm_tile(run, gemm, gemm.tile(i % tiles), swap ? b : a, swap ? a : b, out,
                        run.scratch<T>(worker), [](T*, int64_t, int64_t, int64_t) {});
    });
    return run.stop();
  };
  return kernel;
}

constexpr Types kMatTypes =
    kFloats | Types{PFRT_DTYPE_INT32, PFRT_DTYPE_INT64, PFRT_DTYPE_UINT32, PFRT_DTYPE_UINT64};
constexpr Types kBytes{PFRT_DTYPE_INT8, PFRT_DTYPE_UINT8};

constexpr KernelRow kRows[] = {
    with_pack(long_step({"", "MatMul", kMatTypes, "matmul_packed", "generic", nullptr,
                         make_packed<make_matmul, make_packed_matmul>}),
              pack_matmul, kEpilogue | kPackOptional),
    with_pack(long_step({"", "Gemm", kMatTypes, "gemm_packed", "generic", nullptr,
                         make_packed<make_gemm, make_packed_gemm>}),
              pack_gemm, kEpilogue | kPackOptional),
    with_pack(long_step({"", "MatMulInteger", kBytes, "matmul_integer_dots", "avx2",
                         refuse_matmul_integer_dots, make_matmul_integer_dots}),
              pack_matmul_integer, kPackOptional | kEpilogue),
    with_epilogue(long_step({"", "MatMulInteger", kBytes, "matmul_integer_packed", "generic",
                             refuse_matmul_integer, make_matmul_integer})),
    with_pack(long_step({"", "QLinearMatMul", kBytes, "qlinear_matmul_dots", "avx2",
                         refuse_qlinear_matmul_dots, make_qlinear_matmul_dots}),
              pack_qlinear_matmul, kPackOptional),
    long_step({"", "QLinearMatMul", kBytes, "qlinear_matmul_packed", "generic",
               refuse_qlinear_matmul, make_qlinear_matmul}),
    {"", "Einsum", kNumbers, "einsum_ref", "generic", refuse_einsum, make_einsum},
    with_pack(checks_inputs({"com.microsoft", "MatMulNBits", kFloatsTo32, "matmul_nbits", "generic",
                             nullptr, make_packed<make_matmul_nbits, make_packed_matmul_nbits>}),
              pack_matmul_nbits, kEpilogue | kPackOptional),
};

}  // namespace

Result<MatMulShape> matmul_shape(std::span<const int64_t> a, std::span<const int64_t> b) {
  if (a.empty() || b.empty())
    return kernel_error("a matrix product needs operands of rank 1 or more");
  MatMulShape s;
  const size_t ra = a.size(), rb = b.size();
  s.m = ra == 1 ? 1 : a[ra - 2];
  s.k = a[ra - 1];
  s.n = rb == 1 ? 1 : b[rb - 1];
  const int64_t kb = rb == 1 ? b[0] : b[rb - 2];
  if (s.k != kb) return kernel_error("inner dimensions differ: ", s.k, " of A, ", kb, " of B");
  const std::span<const int64_t> ba = a.first(ra > 2 ? ra - 2 : 0),
                                 bb = b.first(rb > 2 ? rb - 2 : 0);
  if (bb.empty()) {  // one B for all: A's batches are more rows
    s.m *= element_count(ba.data(), ba.size());
    return s;
  }
  const size_t rank = std::max(ba.size(), bb.size());
  std::vector<int64_t> dims(rank);
  int64_t step_a = s.m * s.k, step_b = s.k * s.n;
  for (size_t i = rank; i-- > 0;) {
    const size_t lead_a = rank - ba.size(), lead_b = rank - bb.size();
    const int64_t da = i < lead_a ? 1 : ba[i - lead_a], db = i < lead_b ? 1 : bb[i - lead_b];
    if (da != db && da != 1 && db != 1)
      return kernel_error("batch dimensions ", da, " and ", db, " do not broadcast");
    dims[i] = da == 1 ? db : da;
    const MatMulShape::Axis axis{dims[i], da == 1 ? 0 : step_a, db == 1 ? 0 : step_b};
    step_a *= da;
    step_b *= db;
    if (dims[i] == 1) continue;
    if (!s.axes.empty()) {
      MatMulShape::Axis& inner = s.axes.front();
      if (axis.a == inner.a * inner.size && axis.b == inner.b * inner.size) {
        inner.size *= axis.size;
        continue;
      }
    }
    s.axes.insert(s.axes.begin(), axis);
  }
  s.batch = element_count(dims.data(), rank);
  if (s.batch < 0) return kernel_error("batch dimensions are too large");
  return s;
}

int64_t MatMulShape::offset(int64_t at, int64_t Axis::*step) const {
  int64_t sum = 0;
  for (size_t i = axes.size(); i-- > 1; at /= axes[i].size)
    sum += at % axes[i].size * axes[i].*step;
  return axes.empty() ? sum : sum + at * axes[0].*step;
}

Status MatMulShape::check(const SnapshotNode& node) const {
  const int64_t planned = node.output_elements(0);
  if (planned == batch * m * n) return Status();
  return kernel_error("output 0 was planned with ", planned, " elements but has ", batch, " x ", m,
                      " x ", n);
}

Result<Kernel> make_matmul(const KernelRequest& node) {
  return in_compute_type(node.input_dtype(0),
                         [&]<typename T>(StoreFn<T> store) { return make_typed<T>(node, store); });
}

std::optional<PackedInput> pack_matmul(const SnapshotNode& node) {
  const auto a = node.input_dims(0), b = node.input_dims(1);
  if (a.size() < 2 || b.size() != 2) return std::nullopt;
  int64_t rows = 1;  // at least
  bool any = false;
  for (const int64_t dim : a.first(a.size() - 1)) {
    any |= dim < 0;
    if (dim >= 0) rows = std::min<int64_t>(rows * std::min<int64_t>(dim, INT32_MAX), INT32_MAX);
  }
  return pack_columns(node, rows, any, {b[1], b[0], 1, b[1]});
}

Result<Kernel> make_packed_matmul(const KernelRequest& node, const PackedInput& packed) {
  PFRT_TRY(need(node, 2, 1));
  PFRT_TRY(need_types(node, {1}, Types{node.input_dtype(0)}));
  PFRT_ASSIGN(const MatMulShape shape, matmul_shape(node.input_dims(0), node.input_dims(1)));
  PFRT_TRY(shape.check(node));
  if (!reads_packed(packed, node, shape.m)) return make_matmul(node);
  return packed_matmul(packed, node, shape.m, {shape.n, shape.k, 1, shape.n},
                       {"matmul_tiles", "matmul_panels", "matmul_bf16_rows", "matmul_bf16_panels",
                        "matmul_bf16_dot", "matmul_f16_rows", "matmul_f16_panels"},
                       [](const Run&) { return Finish(); });
}

std::span<const KernelRow> matmul_kernels() { return kRows; }

}  // namespace pfrt::cpu
