// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "providers/cpu/elements/load.h"
#include "providers/cpu/epilogue/norm_rows.h"
#include "providers/cpu/isa/isa.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernel/stop_poll.h"
#include "providers/cpu/kernels/norm/make.h"

namespace pfrt::cpu {
namespace {

// A scale or bias broadcast to rows: element i of row r takes element start(r) + offsets[i].
struct RowBroadcast {
  // A dimension before a row's along which it varies: index r / rows % size.
  struct Outer {
    int64_t rows, size, stride;
  };
  bool present = false;
  pfrt_dtype dtype = PFRT_DTYPE_UNSET;
  uint32_t input = 0;
  int64_t count = 0;             // of its elements
  std::vector<int64_t> offsets;  // empty: element i of a row follows element i - 1
  std::vector<Outer> outer;      // empty: all rows take the same

  int64_t start(int64_t row) const {
    int64_t at = 0;
    for (const Outer& o : outer) at += row / o.rows % o.size * o.stride;
    return at;
  }
};

// Reads the rows of a RowBroadcast in a run, as T.
template <typename T>
class RowReader {
 public:
  RowReader(const RowBroadcast& from, const Run& run, int64_t length) : from_(from), n_(length) {
    if (!from.present) return;
    const void* const data = run.input(from.input);
    if (from.dtype == kNormType<T>) {
      values_ = static_cast<const T*>(data);
    } else if (from.offsets.empty() && !from.outer.empty()) {
      data_ = data;  // converted row by row
    } else {
      converted_.resize(static_cast<size_t>(from.count));
      load_fn<T>(from.dtype)(converted_.data(), data, 0, 1, from.count);
      values_ = converted_.data();
    }
    if (from.offsets.empty() || !from.outer.empty()) return;
    spread_.resize(static_cast<size_t>(length));
    spread(0, spread_.data());
    values_ = spread_.data();
  }
  RowReader(const RowReader&) = delete;
  RowReader& operator=(const RowReader&) = delete;

  // Row |r|, perhaps in |buffer|; null where the input is absent.
  const T* row(int64_t r, T* buffer) const {
    if (from_.outer.empty()) return values_;
    const int64_t start = from_.start(r);
    if (data_ != nullptr) {
      load_fn<T>(from_.dtype)(buffer, data_, start, 1, n_);
      return buffer;
    }
    if (from_.offsets.empty()) return values_ + start;
    spread(start, buffer);
    return buffer;
  }

 private:
  void spread(int64_t start, T* out) const {
    for (const int64_t offset : from_.offsets) *out++ = values_[start + offset];
  }
  const RowBroadcast& from_;
  int64_t n_;
  const void* data_ = nullptr;
  const T* values_ = nullptr;
  std::vector<T> converted_, spread_;
};

// Input |i| broadcast to |dims|, of which a row has those from |axis| on.
Result<RowBroadcast> row_broadcast(const SnapshotNode& node, uint32_t i,
                                   std::span<const int64_t> dims, size_t axis) {
  RowBroadcast s;
  s.present = node.has_input(i);
  if (!s.present) return s;
  s.dtype = node.input_dtype(i);
  s.input = i;
  s.count = node.input_elements(i);
  auto given = node.input_dims(i);
  while (given.size() > dims.size() && given.front() == 1) given = given.subspan(1);
  if (given.size() > dims.size())
    return kernel_error("input ", i, " has more dimensions than the ", dims.size(), " of X");
  const size_t lead = dims.size() - given.size();
  const auto size_of = [&](size_t d) { return d < lead ? 1 : given[d - lead]; };
  bool contiguous = true;
  int64_t rows = 1, stride = 1;
  std::vector<int64_t> strides(dims.size());
  for (size_t d = dims.size(); d-- > 0;) {
    const int64_t size = size_of(d);
    if (size != 1 && size != dims[d])
      return kernel_error("input ", i, " has ", size, " elements for a dimension of ", dims[d]);
    strides[d] = size == 1 ? 0 : stride;
    stride *= size;
    if (d >= axis) {
      contiguous = contiguous && size == dims[d];
    } else {
      if (size != 1) s.outer.push_back({rows, size, strides[d]});
      rows *= dims[d];
    }
  }
  if (contiguous) return s;
  s.offsets = {0};
  for (size_t d = axis; d < dims.size(); ++d) {
    std::vector<int64_t> next;
    for (const int64_t base : s.offsets)
      for (int64_t k = 0; k < dims[d]; ++k) next.push_back(base + k * strides[d]);
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
  kernel.scratch_bytes = 4 * static_cast<uint64_t>(form.row.length) * sizeof(T);
  kernel.run = [f = std::move(form)](const Run& run) -> pfrt_code {
    const RowReader<T> scales(f.scale, run, f.row.length), biases(f.bias, run, f.row.length);
    const int64_t block = std::max<int64_t>(1, (1 << 13) / std::max<int64_t>(f.row.length, 1));
    run.parallel((f.rows + block - 1) / block, [&](int64_t b, uint32_t worker) {
      Pace pace(run);
      T* const buffer = run.scratch<T>(worker);
      const int64_t end = std::min(f.rows, (b + 1) * block);
      for (int64_t r = b * block; r < end; ++r) {
        const T* const x =
            load_row(pace, f.dtype, run.input(0), r * f.row.length, f.row.length, buffer);
        T* const y = place_row(f.out_dtype, run.output(0), r * f.row.length, buffer + f.row.length);
        const T* const scale = scales.row(r, buffer + 2 * f.row.length);
        const T* const bias = biases.row(r, buffer + 3 * f.row.length);
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
  PFRT_ASSIGN(f.scale, row_broadcast(node, 1, dims, static_cast<size_t>(axis)));
  if (centered) {
    PFRT_ASSIGN(f.bias, row_broadcast(node, 2, dims, static_cast<size_t>(axis)));
  }
  return f.dtype == PFRT_DTYPE_FLOAT64 ? rows_kernel<double>(std::move(f))
                                       : rows_kernel<float>(std::move(f));
}

}  // namespace

Result<Kernel> make_layer_norm(const KernelRequest& node) { return make_rows(node, true); }
Result<Kernel> make_rms_norm(const KernelRequest& node) { return make_rows(node, false); }

}  // namespace pfrt::cpu
