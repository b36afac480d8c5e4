// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "providers/cpu/epilogue/norm_rows.h"
#include "providers/cpu/isa/isa.h"
#include "providers/cpu/kernels/norm/make.h"
#include "providers/cpu/row/load.h"
#include "providers/cpu/row/pace.h"
#include "providers/cpu/row/signature.h"

namespace pfrt::cpu {
namespace {

// A scale or bias broadcast to a row: element i of the row takes element offsets[i].
struct RowBroadcast {
  bool present = false;
  pfrt_dtype dtype = PFRT_DTYPE_UNSET;
  uint32_t input = 0;
  std::vector<int64_t> offsets;  // empty: element i takes element i

  // The scale or bias as T: in place, or in |values|.
  template <typename T>
  const T* read(const Run& run, int64_t n, std::vector<T>& values) const {
    if (offsets.empty() && dtype == kNormType<T>) return run.input<T>(input);
    values.resize(static_cast<size_t>(n));
    const LoadFn<T> load = load_fn<T>(dtype);
    if (offsets.empty()) {
      load(values.data(), run.input(input), 0, 1, n);
    } else {
      for (size_t i = 0; i < values.size(); ++i)
        load(&values[i], run.input(input), offsets[i], 1, 1);
    }
    return values.data();
  }
};

// Input |i| broadcast over the dimensions |row|; it must not vary along those before them.
Result<RowBroadcast> row_broadcast(const SnapshotNode& node, uint32_t i,
                                   std::span<const int64_t> row) {
  RowBroadcast s;
  s.present = node.has_input(i);
  if (!s.present) return s;
  s.dtype = node.input_dtype(i);
  s.input = i;
  auto dims = node.input_dims(i);
  while (dims.size() > row.size() && dims.front() == 1) dims = dims.subspan(1);
  if (same_dims(dims, row)) return s;
  if (dims.size() > row.size())
    return error(Code::kUNSUPPORTED, "input ", i,
                 " varies along dimensions that are not normalised");
  s.offsets = {0};
  const size_t lead = row.size() - dims.size();
  for (size_t d = 0; d < row.size(); ++d) {
    const int64_t size = d < lead ? 1 : dims[d - lead];
    if (size != 1 && size != row[d])
      return kernel_error("input ", i, " has ", size, " elements for a dimension of ", row[d]);
    int64_t stride = 1;
    for (size_t e = d < lead ? dims.size() : d - lead + 1; e < dims.size(); ++e) stride *= dims[e];
    std::vector<int64_t> next;
    for (int64_t base : s.offsets)
      for (int64_t k = 0; k < row[d]; ++k) next.push_back(base + (size == 1 ? 0 : k * stride));
    s.offsets = std::move(next);
  }
  return s;
}

struct RowsForm {
  RowNormalisation row;
  int64_t rows;
  pfrt_dtype dtype, out_dtype, mean_dtype, deviation_dtype;
  bool has_mean, has_deviation;
  RowBroadcast scale, bias;
};

template <typename T>
Kernel rows_kernel(RowsForm form) {
  Kernel kernel;
  kernel.flops = 8.0 * static_cast<double>(form.rows) * static_cast<double>(form.row.length);
  kernel.scratch_bytes = 2 * static_cast<uint64_t>(form.row.length) * sizeof(T);
  kernel.run = [f = std::move(form)](const Run& run) -> pfrt_code {
    std::vector<T> own_scale, own_bias;
    const T* const scale = f.scale.read(run, f.row.length, own_scale);
    const T* const bias = f.bias.present ? f.bias.read(run, f.row.length, own_bias) : nullptr;
    const int64_t block = std::max<int64_t>(1, (1 << 13) / std::max<int64_t>(f.row.length, 1));
    run.parallel((f.rows + block - 1) / block, [&](int64_t b, uint32_t worker) {
      Pace pace(run);
      T* const buffer = run.scratch<T>(worker);
      const int64_t end = std::min(f.rows, (b + 1) * block);
      for (int64_t r = b * block; r < end; ++r) {
        const T* const x =
            load_row(pace, f.dtype, run.input(0), r * f.row.length, f.row.length, buffer);
        T* const y = place_row(f.out_dtype, run.output(0), r * f.row.length, buffer + f.row.length);
        double mean, inverse;
        normalise_row(pace, f.row, x, scale, bias, y, &mean, &inverse);
        store_row(pace, f.out_dtype, run.output(0), r * f.row.length, f.row.length, y);
        if (f.has_mean) store_fn<double>(f.mean_dtype)(run.output(1), r, &mean, 1);
        if (f.has_deviation) store_fn<double>(f.deviation_dtype)(run.output(2), r, &inverse, 1);
      }
      run.apply_epilogue(b * block * f.row.length, end * f.row.length);
    });
    return run.stop();
  };
  return kernel;
}

Result<Kernel> make_rows(const SnapshotNode& node, bool centered) {
  PFRT_TRY(need(node, 2, 1));
  PFRT_TRY(need_types(node, {1, 2}, kFloats));
  const auto dims = node.input_dims(0);
  PFRT_TRY(need_output_dims(node, 0, dims));
  PFRT_ASSIGN(const int64_t axis, axis_of(node.attr_int("axis", -1), dims.size()));
  const auto row = dims.subspan(static_cast<size_t>(axis));
  RowsForm f{};
  f.rows = SnapshotNode::elements(dims.first(static_cast<size_t>(axis)));
  f.row.length = SnapshotNode::elements(row);
  f.row.epsilon = static_cast<double>(node.attr_float("epsilon", 1e-5f));
  f.dtype = node.input_dtype(0);
  f.out_dtype = node.output_dtype(0);
  f.row.centered = centered;
  f.row.avx2 = isa() >= Isa::kAvx2;
  f.has_mean = centered && node.has_output(1);
  f.has_deviation = centered && node.has_output(2);
  f.mean_dtype = node.output_dtype(1);
  f.deviation_dtype = node.output_dtype(2);
  if ((f.has_mean && !kFloats.has(f.mean_dtype)) ||
      (f.has_deviation && !kFloats.has(f.deviation_dtype)))
    return error(Code::kDTYPE_MISMATCH, "Mean and InvStdDev must be floating-point");
  if ((f.has_mean && node.output_elements(1) != f.rows) ||
      (f.has_deviation && node.output_elements(2) != f.rows))
    return kernel_error("Mean and InvStdDev must have ", f.rows, " elements");
  PFRT_ASSIGN(f.scale, row_broadcast(node, 1, row));
  if (centered) {
    PFRT_ASSIGN(f.bias, row_broadcast(node, 2, row));
  }
  return f.dtype == PFRT_DTYPE_FLOAT64 ? rows_kernel<double>(std::move(f))
                                       : rows_kernel<float>(std::move(f));
}

}  // namespace

Result<Kernel> make_layer_norm(const KernelRequest& node) { return make_rows(node, true); }
Result<Kernel> make_rms_norm(const KernelRequest& node) { return make_rows(node, false); }

}  // namespace pfrt::cpu
