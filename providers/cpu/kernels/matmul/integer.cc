// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "providers/cpu/elements/requantize.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/matmul/make.h"

namespace pfrt::cpu {
namespace {

constexpr Types kBytes{PFRT_DTYPE_INT8, PFRT_DTYPE_UINT8};

bool is_byte(pfrt_dtype dtype) { return kBytes.has(dtype); }

// A matmul of bytes with sums modulo 2^32, which both operators share.
struct IntegerMatMul {
  MatMulShape shape;
  Gemm<uint32_t> gemm;
  pfrt_dtype a_type, b_type;
  uint32_t a, b;  // input positions
  Parameter a_zeros, b_zeros;
  int64_t a_lines, b_lines;  // rows of all matrices of A, columns of all of B

  int64_t tasks() const { return shape.batch * gemm.tiles(); }
  // The number of the first row of A, and of the first column of B, in |batch|, counted over all
  // batches.
  size_t a_line(int64_t batch) const { return line(shape.a_offset(batch)); }
  size_t b_line(int64_t batch) const { return line(shape.b_offset(batch)); }
  size_t line(int64_t offset) const {
    return static_cast<size_t>(offset / std::max<int64_t>(shape.k, 1));
  }
  std::vector<uint32_t> read_a_zeros(const Run& run) const {
    return a_zeros.read<uint32_t>(run, a_lines, 0);
  }
  std::vector<uint32_t> read_b_zeros(const Run& run) const {
    return b_zeros.read<uint32_t>(run, b_lines, 0);
  }
  // Computes task |i| into |sums|, rows |ldc| apart.
  void compute(const Run& run, int64_t i, const uint32_t* za, const uint32_t* zb, uint32_t* sums,
               int64_t ldc, uint32_t* scratch) const {
    const int64_t batch = i / gemm.tiles();
    StridedSource<uint32_t> left(run.input(a), a_type, shape.a_offset(batch), shape.k, 1);
    StridedSource<uint32_t> right(run.input(b), b_type, shape.b_offset(batch), 1, shape.n);
    if (a_zeros.present()) left.set_zero(za + a_line(batch), 1);
    if (b_zeros.present()) right.set_zero(zb + b_line(batch), 1);
    gemm.compute(run, gemm.tile(i % gemm.tiles()), left, right, sums, ldc, scratch);
  }
};

Result<IntegerMatMul> read(const SnapshotNode& node, uint32_t a, uint32_t b, uint32_t a_zero,
                           uint32_t b_zero) {
  for (const uint32_t i : {a, b})
    if (!node.has_input(i) || node.input_elements(i) < 0)
      return kernel_error("input ", i, " is required and absent");
  PFRT_TRY(need(node, 0, 1));
  PFRT_TRY(need_types(node, {a, b, a_zero, b_zero}, kBytes));
  PFRT_ASSIGN(MatMulShape shape, matmul_shape(node.input_dims(a), node.input_dims(b)));
  PFRT_TRY(shape.check(node));
  const Gemm<uint32_t> gemm(shape.m, shape.n, shape.k, shape.batch);
  IntegerMatMul p{std::move(shape),
                  gemm,
                  node.input_dtype(a),
                  node.input_dtype(b),
                  a,
                  b,
                  Parameter(node, a_zero),
                  Parameter(node, b_zero),
                  0,
                  0};
  // An empty sum needs no parameters, but those that are given are checked.
  const auto a_dims = node.input_dims(a), b_dims = node.input_dims(b);
  const auto lines_of = [&](std::span<const int64_t> dims, int64_t one) {
    return SnapshotNode::elements(dims.first(dims.size() > 2 ? dims.size() - 2 : 0)) * one;
  };
  p.a_lines = lines_of(a_dims, a_dims.size() == 1 ? 1 : a_dims[a_dims.size() - 2]);
  p.b_lines = lines_of(b_dims, p.shape.n);
  PFRT_TRY(p.a_zeros.check("A's zero point", p.a_lines));
  PFRT_TRY(p.b_zeros.check("B's zero point", p.b_lines));
  return p;
}

double flops(const MatMulShape& s) {
  return 2.0 * static_cast<double>(s.batch) * static_cast<double>(s.m) * static_cast<double>(s.n) *
         static_cast<double>(s.k);
}

}  // namespace

std::string refuse_matmul_integer(const KernelRequest& node) {
  return is_byte(node.input_dtype(1))
             ? ""
             : message("B is ", dtype_name(node.input_dtype(1)), ", not int8 or uint8");
}

Result<Kernel> make_matmul_integer(const KernelRequest& node) {
  PFRT_ASSIGN(IntegerMatMul matmul, read(node, 0, 1, 2, 3));
  Kernel kernel;
  kernel.flops = flops(matmul.shape);
  kernel.scratch_bytes = gemm_scratch(matmul.gemm, false);
  kernel.run = [matmul = std::move(matmul)](const Run& run) -> pfrt_code {
    const std::vector<uint32_t> za = matmul.read_a_zeros(run), zb = matmul.read_b_zeros(run);
    const int64_t n = matmul.shape.n, tiles = matmul.gemm.tiles();
    run.parallel(matmul.tasks(), [&](int64_t i, uint32_t worker) {
      const GemmTile tile = matmul.gemm.tile(i % tiles);
      uint32_t* to =
          run.output<uint32_t>(0) + (i / tiles * matmul.shape.m + tile.row) * n + tile.col;
      matmul.compute(run, i, za.data(), zb.data(), to, n, run.scratch<uint32_t>(worker));
      const int64_t first = to - run.output<uint32_t>(0);
      for (int64_t r = 0; r < tile.rows; ++r)
        run.apply_epilogue(first + r * n, first + r * n + tile.cols);
    });
    return run.stop();
  };
  return kernel;
}

std::string refuse_qlinear_matmul(const KernelRequest& node) {
  if (!is_byte(node.input_dtype(3)))
    return message("B is ", dtype_name(node.input_dtype(3)), ", not int8 or uint8");
  if (!is_byte(node.output_dtype(0)))
    return message("Y is ", dtype_name(node.output_dtype(0)), ", not int8 or uint8");
  return "";
}

Result<Kernel> make_qlinear_matmul(const KernelRequest& node) {
  PFRT_ASSIGN(IntegerMatMul matmul, read(node, 0, 3, 2, 5));
  PFRT_TRY(need_types(node, {1, 4, 6}, kFloats));
  PFRT_TRY(need_types(node, {7}, kBytes));
  const Parameter a_scale(node, 1), b_scale(node, 4), y_scale(node, 6), y_zero(node, 7);
  const int64_t y_lines = matmul.shape.batch * matmul.shape.m;
  PFRT_TRY(a_scale.check("A's scale", matmul.a_lines));
  PFRT_TRY(b_scale.check("B's scale", matmul.b_lines));
  PFRT_TRY(y_scale.check("Y's scale", y_lines));
  PFRT_TRY(y_zero.check("Y's zero point", y_lines));
  const pfrt_dtype dtype = node.output_dtype(0);
  Kernel kernel;
  kernel.flops = flops(matmul.shape);
  const uint64_t sums_bytes = gemm_scratch(matmul.gemm, true);
  const uint64_t line_bytes =
      static_cast<uint64_t>(matmul.gemm.max_tile_elements()) * sizeof(float);
  kernel.scratch_bytes = sums_bytes + 2 * line_bytes;
  kernel.run = [=, matmul = std::move(matmul)](const Run& run) -> pfrt_code {
    const int64_t m = matmul.shape.m, n = matmul.shape.n;
    const std::vector<float> sa = a_scale.read<float>(run, matmul.a_lines, 1.0f);
    const std::vector<float> sb = b_scale.read<float>(run, matmul.b_lines, 1.0f);
    const std::vector<float> sy = y_scale.read<float>(run, y_lines, 1.0f);
    const std::vector<float> zy = y_zero.read<float>(run, y_lines, 0.0f);
    const StoreFn<float> store = store_fn<float>(dtype);
    const std::vector<uint32_t> za = matmul.read_a_zeros(run), zb = matmul.read_b_zeros(run);
    const int64_t tiles = matmul.gemm.tiles();
    run.parallel(matmul.tasks(), [&](int64_t i, uint32_t worker) {
      const int64_t batch = i / tiles;
      const GemmTile tile = matmul.gemm.tile(i % tiles);
      // A tile of sums, then a row of scales and a row of results.
      uint32_t* const scratch = run.scratch<uint32_t>(worker);
      uint32_t* const sums = scratch + matmul.gemm.scratch_bytes() / sizeof(uint32_t);
      float* const scales = reinterpret_cast<float*>(scratch + sums_bytes / sizeof(uint32_t));
      float* const line = scales + tile.cols;
      matmul.compute(run, i, za.data(), zb.data(), sums, tile.cols, scratch);
      const size_t first = static_cast<size_t>(batch * m);
      const float* const left = sa.data() + matmul.a_line(batch);
      const float* const right = sb.data() + matmul.b_line(batch);
      for (int64_t r = 0; r < tile.rows; ++r) {
        const size_t row = static_cast<size_t>(tile.row + r);
        for (int64_t j = 0; j < tile.cols; ++j)
          scales[j] = left[row] * right[tile.col + j] / sy[first + row];
        requantize(line, sums + r * tile.cols, scales, 1, zy[first + row], tile.cols);
        store(run.output(0), (batch * m + tile.row + r) * n + tile.col, line, tile.cols);
      }
    });
    return run.stop();
  };
  return kernel;
}

}  // namespace pfrt::cpu
