// SPDX-License-Identifier: Apache-2.0
//
// A sum of (a - za) (b - zb), where za and zb are zero points of a row and of a column, has four
// parts. The microkernel computes the sum of a b. The others take the sum of a column, which comes
// with the packed columns, and that of a row, which is computed where zb is not 0. With one za or
// one zb the sums begin with these parts, and with the factors' own products where they are
// multiplied crosswise.
#include "providers/cpu/kernels/matmul/integer_dots.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "providers/cpu/elements/requantize.h"
#include "providers/cpu/isa/target.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/matmul/dot_matmul.h"
#include "providers/cpu/kernels/matmul/make.h"

namespace pfrt::cpu {
namespace {

constexpr Types kBytes{PFRT_DTYPE_INT8, PFRT_DTYPE_UINT8};
constexpr int64_t kPanel = DotMicrokernel::kPanel;
constexpr int64_t kCopiedBytes = 16 << 10;  // of rows in a task
constexpr int64_t kMostK = 1 << 23;         // so that sums of columns stay within int32

// Positions of an operator's inputs.
struct Inputs {
  uint32_t a, b, a_zero, b_zero;
};
constexpr Inputs kMatMulInteger{0, 1, 2, 3}, kQLinearMatMul{0, 3, 2, 5};

// Zero points of all rows and columns of a run, and what a matmul of matrices makes of its own.
struct Zeros {
  std::vector<uint32_t> all_rows, all_columns;
  std::vector<int32_t> rows, columns;  // as elements count
  bool one_row_zero, one_column_zero, any_column_zero;
  std::vector<int32_t> start, of_rows;  // see above; |of_rows| is multiplied by a row's zero point

  // Whether sums are not whole with what they begin with.
  bool corrects() const { return !one_row_zero || !one_column_zero; }
};

struct Plan {
  MatMulShape shape;
  Inputs in;
  DotColumns columns;
  DotRows rows;
  DotMatmul matmul;
  Parameter a_zeros, b_zeros;
  int64_t a_lines, b_lines;  // rows of all matrices of A, columns of all of B

  int64_t padded_columns() const { return columns.panels() * kPanel; }
  // The step's memory: columns packed in the run, copied rows, what their sums begin with, their
  // sums.
  uint64_t packed_bytes(bool constant) const {
    return constant ? 0 : (columns.bytes() + 63) / 64 * 64;
  }
  uint64_t row_bytes() const {
    return rows.in_place() ? 0 : (static_cast<uint64_t>(shape.m * rows.row_bytes()) + 63) / 64 * 64;
  }
  bool sums_rows() const { return b_zeros.present() || columns.shift() != 0; }
  bool starts_rows() const { return sums_rows() || columns.crosswise(); }
  // Bytes of either, an int32 for each row.
  uint64_t line_bytes() const { return static_cast<uint64_t>(shape.m) * sizeof(int32_t); }
  size_t first_row(int64_t batch) const { return first(shape.a_offset(batch)); }
  size_t first_column(int64_t batch) const { return first(shape.b_offset(batch)); }
  // Without k the sums are 0 whatever the zero points.
  size_t first(int64_t offset) const {
    return static_cast<size_t>(shape.k == 0 ? 0 : offset / shape.k);
  }
};

Result<std::shared_ptr<const Plan>> make_plan(const KernelRequest& node, const Inputs& in) {
  const DotMicrokernel* const microkernel = DotMicrokernel::get();
  if (microkernel == nullptr) return error(Code::kUNSUPPORTED, "AVX2 is not usable any more");
  for (const uint32_t i : {in.a, in.b})
    if (!node.has_input(i) || node.input_elements(i) < 0)
      return kernel_error("input ", i, " is required and absent");
  PFRT_TRY(need(node, 0, 1));
  PFRT_TRY(need_types(node, {in.a, in.b, in.a_zero, in.b_zero}, kBytes));
  const auto a_dims = node.input_dims(in.a), b_dims = node.input_dims(in.b);
  PFRT_ASSIGN(MatMulShape shape, matmul_shape(a_dims, b_dims));
  PFRT_TRY(shape.check(node));
  const DotColumns columns(shape.n, shape.k, node.input_dtype(in.b), *microkernel);
  if (node.packed != nullptr && node.packed->recipe != columns.recipe())
    return error(Code::kUNSUPPORTED, "the columns are packed for other instructions");
  const DotTileMicrokernel* const tiles = DotMatmul::tiles(shape.m, *microkernel);
  const DotRows rows(shape.k, node.input_dtype(in.a), *microkernel, tiles != nullptr);
  const DotMatmul matmul(shape.m, shape.n, shape.k, rows, *microkernel, tiles);
  const auto lines_of = [&](std::span<const int64_t> dims, int64_t one) {
    return SnapshotNode::elements(dims.first(dims.size() > 2 ? dims.size() - 2 : 0)) * one;
  };
  const int64_t a_lines = lines_of(a_dims, a_dims.size() == 1 ? 1 : a_dims[a_dims.size() - 2]);
  const int64_t b_lines = lines_of(b_dims, shape.n);
  auto plan = std::make_shared<const Plan>(Plan{std::move(shape), in, columns, rows, matmul,
                                                Parameter(node, in.a_zero),
                                                Parameter(node, in.b_zero), a_lines, b_lines});
  PFRT_TRY(plan->a_zeros.check("A's zero point", a_lines));
  PFRT_TRY(plan->b_zeros.check("B's zero point", b_lines));
  return plan;
}

template <typename T>
bool all_equal(std::span<const T> all) {
  return std::ranges::adjacent_find(all, std::not_equal_to<>()) == all.end();
}

Zeros zeros_of(const Run& run, const Plan& plan) {
  Zeros z;
  z.all_rows = plan.a_zeros.read<uint32_t>(run, plan.a_lines, 0);
  z.all_columns = plan.b_zeros.read<uint32_t>(run, plan.b_lines, 0);
  return z;
}

void begin_matmul(const Plan& plan, int64_t batch, const void* packed, Zeros& z) {
  const int32_t* const column_sums = plan.columns.sums(packed);
  const auto count = [](const std::vector<uint32_t>& all, size_t first, int64_t n, int32_t shift,
                        std::vector<int32_t>& out) {
    out.resize(static_cast<size_t>(n));
    for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<int32_t>(all[first + i]) + shift;
  };
  count(z.all_rows, plan.first_row(batch), plan.shape.m, plan.rows.shift(), z.rows);
  count(z.all_columns, plan.first_column(batch), plan.shape.n, plan.columns.shift(), z.columns);
  z.one_row_zero = all_equal<int32_t>(z.rows);
  z.one_column_zero = all_equal<int32_t>(z.columns);
  z.any_column_zero = std::ranges::any_of(z.columns, [](int32_t zero) { return zero != 0; });
  z.of_rows.assign(column_sums, column_sums + plan.padded_columns());
  const auto k = static_cast<uint32_t>(plan.shape.k);
  for (size_t j = 0; j < z.columns.size(); ++j)
    z.of_rows[j] = static_cast<int32_t>(static_cast<uint32_t>(z.of_rows[j]) -
                                        k * static_cast<uint32_t>(z.columns[j]));
  z.start.resize(z.of_rows.size());
  const uint32_t* const own =
      plan.columns.crosswise() ? plan.columns.own_products(packed) : nullptr;
  const auto row_zero = static_cast<uint32_t>(z.one_row_zero ? z.rows[0] : 0);
  for (size_t j = 0; j < z.start.size(); ++j) {
    const uint32_t start = row_zero * static_cast<uint32_t>(z.of_rows[j]);
    z.start[j] = static_cast<int32_t>(0 - start - (own != nullptr ? own[j] : 0));
  }
}

// sums[j] -= row * of_rows[j] + sum * columns[j]
PFRT_AVX2 void correct(uint32_t* sums, uint32_t row, const uint32_t* of_rows, uint32_t sum,
                       const uint32_t* columns, int64_t n) {
  for (int64_t j = 0; j < n; ++j) sums[j] -= row * of_rows[j] + sum * columns[j];
}

const uint32_t* as_unsigned(const std::vector<int32_t>& x) {
  return reinterpret_cast<const uint32_t*>(x.data());
}

// Computes one matmul of a batch; put and done as in DotMatmul::run, with whole sums.
template <typename Put, typename Done>
void run_matmul(const Run& run, const Plan& plan, int64_t batch, Zeros& zeros, int32_t* direct,
                Put&& put, Done&& done) {
  const MatMulShape& s = plan.shape;
  auto* memory = run.shared<char>();
  const void* packed = run.packed<void>();
  if (packed == nullptr) {
    plan.columns.pack(run.input<uint8_t>(plan.in.b) + s.b_offset(batch), s.n, 1, memory);
    packed = memory;
    memory += plan.packed_bytes(false);
  }
  begin_matmul(plan, batch, packed, zeros);
  const char* const from = run.input<char>(plan.in.a) + s.a_offset(batch);
  auto* const row_starts = reinterpret_cast<uint32_t*>(memory + plan.row_bytes());
  uint32_t* const row_sums = row_starts + (plan.starts_rows() ? s.m : 0);
  const bool copies = !plan.rows.in_place(), sums = zeros.any_column_zero;
  const auto prepare = [&](int64_t r) {
    const char* const row = from + r * s.k;
    uint32_t start = 0;
    if (copies) start -= plan.rows.copy(row, memory + r * plan.rows.row_bytes());
    if (sums) row_sums[r] = static_cast<uint32_t>(plan.rows.sum(row));
    if (sums && zeros.one_column_zero)
      start -= row_sums[r] * static_cast<uint32_t>(zeros.columns[0]);
    if (plan.starts_rows()) row_starts[r] = start;
  };
  const bool starts = plan.columns.crosswise() || sums;
  if (copies || starts)
    run.blocks(s.m, std::max<int64_t>(1, kCopiedBytes / std::max<int64_t>(s.k, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t r = begin; r < end; ++r) prepare(r);
               });
  const DotMatmul::Start start{zeros.start.data(),
                               starts ? reinterpret_cast<const int32_t*>(row_starts) : nullptr};
  plan.matmul.run(
      run, copies ? memory : from, packed, start, direct,
      [&](const DotMatmul::Tile& tile, uint32_t worker) {
        for (int64_t i = 0; zeros.corrects() && i < tile.rows; ++i) {
          const auto r = static_cast<size_t>(tile.row + i);
          correct(reinterpret_cast<uint32_t*>(tile.sums + i * tile.stride),
                  zeros.one_row_zero ? 0 : static_cast<uint32_t>(zeros.rows[r]),
                  as_unsigned(zeros.of_rows) + tile.col, zeros.one_column_zero ? 0 : row_sums[r],
                  as_unsigned(zeros.columns) + tile.col, tile.cols);
        }
        put(tile, worker);
      },
      done);
}

Kernel kernel_of(const Plan& plan, std::string_view name, bool constant) {
  Kernel kernel;
  kernel.name = name;
  kernel.packed_alone = constant;
  kernel.flops = 2.0 * static_cast<double>(plan.shape.batch) * static_cast<double>(plan.shape.m) *
                 static_cast<double>(plan.shape.n) * static_cast<double>(plan.shape.k);
  kernel.scratch_bytes = plan.matmul.scratch_bytes();
  kernel.shared_bytes = plan.packed_bytes(constant) + plan.row_bytes() +
                        plan.line_bytes() * (plan.starts_rows() + plan.sums_rows());
  return kernel;
}

std::string refuse(const KernelRequest& node, const Inputs& in) {
  if (DotMicrokernel::get() == nullptr) return "the machine, or PFRT_ISA, has no AVX2";
  const auto a = node.input_dims(in.a), b = node.input_dims(in.b);
  const auto few = [](std::span<const int64_t> dims, size_t from_end, int64_t least) {
    return dims.size() >= from_end && dims[dims.size() - from_end] >= 0 &&
           dims[dims.size() - from_end] < least;
  };
  if (b.size() == 1 || few(b, 1, kPanel / 2)) return "panels are for 8 columns or more";
  if (!a.empty() && a.back() > kMostK) return "sums of so many terms are left to the reference";
  return "";
}

std::optional<PackedInput> pack(const SnapshotNode& node, const Inputs& in) {
  // Large columns are not kept twice where there may be few rows only.
  constexpr int64_t kMostElements = 1 << 30;
  const DotMicrokernel* const microkernel = DotMicrokernel::get();
  const auto b = node.input_dims(in.b);
  if (microkernel == nullptr || b.size() != 2 || !node.is_constant(in.b) ||
      node.input_dims(in.a).empty())
    return std::nullopt;
  const int64_t k = b[0], n = b[1];
  if (k < 1 || n < 1 || k > kMostK || n > kMostElements / k) return std::nullopt;
  const DotColumns columns(n, k, node.input_dtype(in.b), *microkernel);
  PackedInput packed;
  packed.input = in.b;
  packed.recipe = columns.recipe();
  packed.bytes = columns.bytes();
  packed.pack = [columns, n](const void* source, void* memory) {
    columns.pack(source, n, 1, memory);
  };
  return packed;
}

}  // namespace

std::string refuse_matmul_integer_dots(const KernelRequest& node) {
  if (std::string why = refuse_matmul_integer(node); !why.empty()) return why;
  return refuse(node, kMatMulInteger);
}

std::optional<PackedInput> pack_matmul_integer(const SnapshotNode& node) {
  return pack(node, kMatMulInteger);
}

Result<Kernel> make_matmul_integer_dots(const KernelRequest& node) {
  PFRT_ASSIGN(const std::shared_ptr<const Plan> plan, make_plan(node, kMatMulInteger));
  Kernel kernel =
      kernel_of(*plan, plan->matmul.on_tiles() ? "matmul_integer_tiles" : "matmul_integer_dots",
                node.packed != nullptr);
  kernel.run = [plan](const Run& run) -> pfrt_code {
    const MatMulShape& s = plan->shape;
    Zeros zeros = zeros_of(run, *plan);
    for (int64_t batch = 0; batch < s.batch && !run.stopped(); ++batch) {
      auto* const out = run.output<int32_t>(0) + batch * s.m * s.n;
      run_matmul(
          run, *plan, batch, zeros, out,
          [&](const DotMatmul::Tile& tile, uint32_t) {
            int32_t* const to = out + tile.row * s.n + tile.col;
            for (int64_t r = 0; tile.sums != to && r < tile.rows; ++r)
              std::copy_n(tile.sums + r * tile.stride, tile.cols, to + r * s.n);
          },
          [&](int64_t row, int64_t rows, int64_t col, int64_t cols) {
            const int64_t first = batch * s.m + row;
            if (cols == s.n) return run.apply_epilogue(first * s.n, (first + rows) * s.n);
            for (int64_t r = first; r < first + rows; ++r)
              run.apply_epilogue(r * s.n + col, r * s.n + col + cols);
          });
    }
    return run.stop();
  };
  return kernel;
}

std::string refuse_qlinear_matmul_dots(const KernelRequest& node) {
  if (std::string why = refuse_qlinear_matmul(node); !why.empty()) return why;
  return refuse(node, kQLinearMatMul);
}

std::optional<PackedInput> pack_qlinear_matmul(const SnapshotNode& node) {
  return pack(node, kQLinearMatMul);
}

namespace {

// Sums of a QLinearMatMul to its result.
struct ToBytes {
  RequantizeFns fns;
  StoreFn<float> exact;  // of any scales

  // |scales| of the tile's columns; |out| has rows of |n|.
  void store(const DotMatmul::Tile& tile, const float* scales, float zero, uint8_t* out,
             int64_t n) const {
    uint8_t* const to = out + tile.row * n + tile.col;
    int64_t col = 0;
    if (std::all_of(scales, scales + tile.cols, [](float x) { return std::isfinite(x); })) {
      const auto whole = static_cast<int32_t>(zero);
      for (; col + kPanel <= tile.cols; col += kPanel)
        fns.lines(tile.sums + col, tile.stride, scales + col, whole, tile.rows, to + col, n);
      for (int64_t i = 0; col < tile.cols && i < tile.rows; ++i)
        fns.columns(tile.sums + i * tile.stride + col, scales + col, whole, tile.cols - col,
                    to + i * n + col);
      return;
    }
    float line[DotMicrokernel::kMostPanels * kPanel];
    for (int64_t i = 0; i < tile.rows; ++i) {
      requantize(line, reinterpret_cast<const uint32_t*>(tile.sums + i * tile.stride), scales, 1,
                 zero, tile.cols);
      exact(to, i * n, line, tile.cols);
    }
  }
};

}  // namespace

Result<Kernel> make_qlinear_matmul_dots(const KernelRequest& node) {
  PFRT_ASSIGN(const std::shared_ptr<const Plan> plan, make_plan(node, kQLinearMatMul));
  PFRT_TRY(need_types(node, {1, 4, 6}, kFloats));
  PFRT_TRY(need_types(node, {7}, kBytes));
  const Parameter a_scale(node, 1), b_scale(node, 4), y_scale(node, 6), y_zero(node, 7);
  const int64_t y_lines = plan->shape.batch * plan->shape.m;
  PFRT_TRY(a_scale.check("A's scale", plan->a_lines));
  PFRT_TRY(b_scale.check("B's scale", plan->b_lines));
  PFRT_TRY(y_scale.check("Y's scale", y_lines));
  PFRT_TRY(y_zero.check("Y's zero point", y_lines));
  const pfrt_dtype dtype = node.output_dtype(0);
  Kernel kernel =
      kernel_of(*plan, plan->matmul.on_tiles() ? "qlinear_matmul_tiles" : "qlinear_matmul_dots",
                node.packed != nullptr);
  kernel.run = [=](const Run& run) -> pfrt_code {
    const MatMulShape& s = plan->shape;
    const std::vector<float> sa = a_scale.read<float>(run, plan->a_lines, 1.0f);
    const std::vector<float> sb = b_scale.read<float>(run, plan->b_lines, 1.0f);
    const std::vector<float> sy = y_scale.read<float>(run, y_lines, 1.0f);
    const std::vector<float> zy = y_zero.read<float>(run, y_lines, 0.0f);
    const ToBytes to_bytes{requantize_fns(dtype), store_fn<float>(dtype)};
    auto* const out = run.output<uint8_t>(0);
    Zeros zeros = zeros_of(run, *plan);
    const bool rows_alike = all_equal<float>(sa) && all_equal<float>(sy) && all_equal<float>(zy);
    for (int64_t batch = 0; batch < s.batch && !run.stopped(); ++batch) {
      const size_t first = static_cast<size_t>(batch * s.m);
      const float* const left = sa.data() + plan->first_row(batch);
      const float* const right = sb.data() + plan->first_column(batch);
      run_matmul(
          run, *plan, batch, zeros, nullptr,
          [&](const DotMatmul::Tile& tile, uint32_t) {
            float scales[DotMicrokernel::kMostPanels * kPanel] = {};
            for (int64_t i = 0, end; i < tile.rows; i = end) {
              const size_t r = static_cast<size_t>(tile.row + i);
              const auto as_first = [&](size_t other) {
                return left[other] == left[r] && sy[first + other] == sy[first + r] &&
                       zy[first + other] == zy[first + r];
              };
              end = rows_alike ? tile.rows : i + 1;
              while (end < tile.rows && as_first(static_cast<size_t>(tile.row + end))) ++end;
              for (int64_t j = 0; j < tile.cols; ++j)
                scales[j] = left[r] * right[tile.col + j] / sy[first + r];
              const DotMatmul::Tile rows{tile.sums + i * tile.stride,
                                         tile.stride,
                                         tile.row + i,
                                         end - i,
                                         tile.col,
                                         tile.cols};
              to_bytes.store(rows, scales, zy[first + r], out + batch * s.m * s.n, s.n);
            }
          },
          [](int64_t, int64_t, int64_t, int64_t) {});
    }
    return run.stop();
  };
  return kernel;
}

}  // namespace pfrt::cpu
