// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/recurrent/quantized_weights.h"

#include <algorithm>

#include "providers/cpu/elements/load.h"
#include "providers/cpu/isa/isa.h"
#include "providers/cpu/isa/target.h"
#include "providers/cpu/kernel/signature.h"

namespace pfrt::cpu {
namespace {

constexpr Types kWeightTypes{PFRT_DTYPE_INT8, PFRT_DTYPE_UINT8};

void add_scaled_plainly(const int32_t* sums, int32_t total, const int32_t* zeros, float scale,
                        const float* scales, int64_t n, float* to) {
  for (int64_t j = 0; j < n; ++j)
    to[j] += static_cast<float>(sums[j] - (zeros == nullptr ? 0 : total * zeros[j])) *
             (scale * scales[j]);
}

PFRT_AVX2 void add_scaled_avx2(const int32_t* sums, int32_t total, const int32_t* zeros,
                               float scale, const float* scales, int64_t n, float* to) {
  if (zeros == nullptr) {
    for (int64_t j = 0; j < n; ++j) to[j] += static_cast<float>(sums[j]) * (scale * scales[j]);
    return;
  }
  for (int64_t j = 0; j < n; ++j)
    to[j] += static_cast<float>(sums[j] - total * zeros[j]) * (scale * scales[j]);
}

PFRT_AVX2 void multiply_all(int32_t factor, const int32_t* x, int64_t n, int32_t* y) {
  for (int64_t j = 0; j < n; ++j) y[j] = factor * x[j];
}

}  // namespace

QuantizedFns QuantizedFns::here() {
  const Isa have = isa();
  return {range_fn(have), byte_steps_fn(have),
          have >= Isa::kAvx2 ? add_scaled_avx2 : add_scaled_plainly};
}

void Levels::fill(const QuantizedFns& by, const float* x, int64_t n) {
  const ByteSteps found = byte_steps_of(by.range(x, n));
  scale = found.scale;
  zero = static_cast<int32_t>(found.zero);
  steps.resize(static_cast<size_t>(n));
  by.steps(found, x, n, steps.data());
}

Result<QuantizedWeights> QuantizedWeights::make(const SnapshotNode& node, uint32_t input,
                                                uint32_t scale, uint32_t zero) {
  QuantizedWeights w(input, scale, zero);
  w.dtype_ = node.input_dtype(input);
  const auto dims = node.input_dims(input);
  if (dims.size() != 3) return kernel_error("input ", input, " has rank ", dims.size(), ": 3");
  w.depth_ = dims[1];
  w.columns_ = dims[2];
  if (!kWeightTypes.has(w.dtype_))
    return error(Code::kDTYPE_MISMATCH, "input ", input, " is ", dtype_name(w.dtype_),
                 ": int8 or uint8");
  for (const uint32_t i : {scale, zero}) {
    const pfrt_dtype wanted = i == scale ? pfrt_dtype{PFRT_DTYPE_FLOAT32} : w.dtype_;
    if (node.input_dtype(i) != wanted)
      return error(Code::kDTYPE_MISMATCH, "input ", i, " is ", dtype_name(node.input_dtype(i)),
                   ": ", dtype_name(wanted));
    const int64_t whole[] = {dims[0]}, one[] = {dims[0], 1}, each[] = {dims[0], dims[2]};
    const auto found = node.input_dims(i);
    if (!same_dims(found, whole) && !same_dims(found, one) && !same_dims(found, each))
      return kernel_error("input ", i, " is ", dims_text(found), ": ", dims_text(whole), " or ",
                          dims_text(each));
    if (i == scale) {
      w.parameters_ = found.size() == 2 ? found[1] : 1;
    } else if (node.input_elements(i) != dims[0] * w.parameters_) {
      return kernel_error("input ", i, " is ", dims_text(found), ", the scales have ",
                          w.parameters_, " a direction");
    }
  }
  if (const DotMicrokernel* const microkernel = DotMicrokernel::get();
      microkernel != nullptr && w.depth_ > 0 && w.columns_ > 0) {
    w.dot_columns_.emplace(w.columns_, w.depth_, w.dtype_, *microkernel);
    w.dot_rows_.emplace(w.depth_, PFRT_DTYPE_UINT8, *microkernel);
  }
  return w;
}

uint64_t QuantizedWeights::packed_bytes() const {
  return dot_columns_ ? (dot_columns_->bytes() + 63) / 64 * 64 : 0;
}

std::string QuantizedWeights::recipe() const {
  return dot_columns_ ? dot_columns_->recipe() : std::string();
}

void QuantizedWeights::pack(const void* source, int64_t direction, void* out) const {
  if (!dot_columns_) return;
  dot_columns_->pack(static_cast<const uint8_t*>(source) + direction * depth_ * columns_, columns_,
                     1, out);
}

QuantizedWeights::Product::Product(const QuantizedWeights& weights, int64_t rows)
    : weights_(&weights), rows_(rows) {
  if (weights.dot_columns_)
    matmul_.emplace(rows, weights.columns_, weights.depth_, *weights.dot_rows_,
                    *DotMicrokernel::get());
}

QuantizedWeights::Product::Columns QuantizedWeights::Product::columns(const Run& run,
                                                                      int64_t direction,
                                                                      const void* packed) const {
  const QuantizedWeights& w = *weights_;
  Columns out{direction, packed, {}, {}, false, {}};
  if (!matmul_) return out;
  const auto n = static_cast<size_t>(w.columns_);
  const int64_t first = direction * w.parameters_;
  out.scales.resize(n);
  out.zeros.resize(n);
  out.start.resize(static_cast<size_t>(w.dot_columns_->panels() * DotMicrokernel::kPanel));
  load_fn<uint32_t>(w.dtype_)(reinterpret_cast<uint32_t*>(out.zeros.data()),
                              run.input(w.zero_input_), first, 1, w.parameters_);
  std::copy_n(run.input<float>(w.scale_input_) + first, w.parameters_, out.scales.data());
  if (w.parameters_ == 1) {
    std::fill(out.scales.begin() + 1, out.scales.end(), out.scales[0]);
    std::fill(out.zeros.begin() + 1, out.zeros.end(), out.zeros[0]);
  }
  for (int32_t& zero : out.zeros) {
    zero += w.dot_columns_->shift();
    out.any_zero |= zero != 0;
  }
  return out;
}

void QuantizedWeights::Product::begin_with(Columns& columns, int32_t row_zero) const {
  multiply_all(-row_zero, weights_->dot_columns_->sums(columns.packed),
               static_cast<int64_t>(columns.start.size()), columns.start.data());
  if (!weights_->dot_columns_->crosswise()) return;
  const uint32_t* const own = weights_->dot_columns_->own_products(columns.packed);
  for (size_t j = 0; j < columns.start.size(); ++j)
    columns.start[j] = static_cast<int32_t>(static_cast<uint32_t>(columns.start[j]) - own[j]);
}

void QuantizedWeights::Product::add_plainly(const Run& run, int64_t direction, const Levels& levels,
                                            int64_t row, int64_t begin, int64_t end,
                                            float* out) const {
  const QuantizedWeights& w = *weights_;
  const uint8_t* const x = levels.steps.data() + row * w.depth_;
  const LoadFn<uint32_t> load = load_fn<uint32_t>(w.dtype_);
  std::vector<uint32_t> sums(static_cast<size_t>(end - begin)), column(sums);
  uint32_t total = 0;
  for (int64_t k = 0; k < w.depth_; ++k) {
    const uint32_t factor = x[k] - static_cast<uint32_t>(levels.zero);
    total += factor;
    load(column.data(), run.input(w.input_), (direction * w.depth_ + k) * w.columns_ + begin, 1,
         end - begin);
    for (size_t j = 0; j < sums.size(); ++j) sums[j] += factor * column[j];
  }
  const float* const scales = run.input<float>(w.scale_input_);
  for (int64_t j = begin; j < end; ++j) {
    const int64_t p = direction * w.parameters_ + (w.parameters_ == 1 ? 0 : j);
    uint32_t zero = 0;
    load(&zero, run.input(w.zero_input_), p, 1, 1);
    out[j] += static_cast<float>(
                  static_cast<int32_t>(sums[static_cast<size_t>(j - begin)] - total * zero)) *
              (levels.scale * scales[p]);
  }
}

}  // namespace pfrt::cpu
