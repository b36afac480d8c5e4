// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/epilogue/row_norm.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "providers/cpu/epilogue/norm_rows.h"
#include "providers/cpu/isa/isa.h"
#include "providers/cpu/kernel/stop_poll.h"

namespace pfrt::cpu {
namespace {

// Whether input |i| is a constant with an element for each of the last dimension, the same for all
// rows.
bool is_a_row(const SnapshotNode& norm, uint32_t i) {
  const auto dims = norm.input_dims(i);
  const int64_t length = norm.input_dims(0).back();
  return norm.is_constant(i) && norm.input_elements(i) == length &&
         (length == 1 || (!dims.empty() && dims.back() == length));
}

}  // namespace

bool is_row_norm(const SnapshotNode& node) {
  return node.domain().empty() &&
         (node.op() == "LayerNormalization" || node.op() == "RMSNormalization");
}

std::string refuse_row_norm(const SnapshotNode& norm) {
  if (!is_row_norm(norm)) return message(norm.op(), " is no normalisation of rows");
  const auto rank = static_cast<int64_t>(norm.input_dims(0).size());
  const int64_t axis = norm.attr_int("axis", -1);
  constexpr int64_t kLongest = int64_t{1} << 30;
  if (rank == 0 || norm.input_dims(0).back() > kLongest || (axis != -1 && axis != rank - 1))
    return "only the last dimension is normalised in the step before";
  for (uint32_t i = 0; i < norm.input_count(); ++i) {
    if (!norm.has_input(i)) continue;
    if (norm.input_dtype(i) != PFRT_DTYPE_FLOAT32)
      return message("input ", i, " of ", norm.op(), " is ", dtype_name(norm.input_dtype(i)));
    if (i > 0 && !is_a_row(norm, i))
      return message("input ", i, " of ", norm.op(),
                     " is no constant with an element for each of a row");
  }
  for (uint32_t i = 1; i < norm.output_count(); ++i)
    if (norm.has_output(i)) return message(norm.op(), " gives more than its output 0");
  return {};
}

RowNorm::RowNorm(const SnapshotNode& norm)
    : rows_(SnapshotNode::elements(norm.input_dims(0).first(norm.input_dims(0).size() - 1))),
      length_(norm.input_dims(0).back()),
      epsilon_(static_cast<double>(norm.attr_float("epsilon", 1e-5F))),
      centered_(norm.op() == "LayerNormalization"),
      avx2_(isa() >= Isa::kAvx2) {}

double RowNorm::flops() const {
  return 8.0 * static_cast<double>(rows_) * static_cast<double>(length_);
}

void RowNorm::start(void* const* buffers) const {
  if (rows_ > 0) std::memset(buffers[at_.counters], 0, counter_bytes());
}

void RowNorm::apply(void* const* buffers, int64_t begin, int64_t end) const {
  const auto* scale = static_cast<const float*>(buffers[at_.scale]);
  const auto* bias =
      at_.bias == PFRT_NO_INDEX ? nullptr : static_cast<const float*>(buffers[at_.bias]);
  for (int64_t at = begin; at < end;) {
    const int64_t row = at / length_, to = std::min(end, (row + 1) * length_);
    const auto count = static_cast<uint32_t>(to - at);
    at = to;
    // The thread that counts the last elements sees what all others wrote of the row.
    if (count < length_) {
      std::atomic_ref<uint32_t> done(static_cast<uint32_t*>(buffers[at_.counters])[row]);
      if (done.fetch_add(count, std::memory_order_acq_rel) + count < length_) continue;
    }
    Pace pace;
    double mean, inverse;
    normalise_row(pace, {length_, epsilon_, centered_, avx2_},
                  static_cast<const float*>(buffers[at_.x]) + row * length_, scale, bias,
                  static_cast<float*>(buffers[at_.y]) + row * length_, &mean, &inverse);
  }
}

}  // namespace pfrt::cpu
