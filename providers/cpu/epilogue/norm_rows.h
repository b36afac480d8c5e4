// SPDX-License-Identifier: Apache-2.0
//
// Rows of a tensor as normalisations see them: loaded in the compute type, measured in double,
// stored again, each by a pace. Sums are taken in an order that depends on the length alone. Pure
// functions; thread-safe.
#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "providers/cpu/row/load.h"
#include "providers/cpu/row/pace.h"
#include "providers/cpu/row/row.h"

namespace pfrt::cpu {

template <typename T>
inline constexpr pfrt_dtype kNormType =
    std::is_same_v<T, double> ? PFRT_DTYPE_FLOAT64 : PFRT_DTYPE_FLOAT32;

// |n| elements from |first| on as T: in place where that is their type, else converted into
// |buffer|.
template <typename T>
const T* load_row(Pace& pace, pfrt_dtype dtype, const void* data, int64_t first, int64_t n,
                  T* buffer) {
  if (dtype == kNormType<T>) return static_cast<const T*>(data) + first;
  in_parts(pace, n, [&](int64_t begin, int64_t end) {
    load_fn<T>(dtype)(buffer + begin, data, first + begin, 1, end - begin);
  });
  return buffer;
}
// Where to put a row of results; store_row completes it.
template <typename T>
T* place_row(pfrt_dtype dtype, void* data, int64_t first, T* buffer) {
  return dtype == kNormType<T> ? static_cast<T*>(data) + first : buffer;
}
template <typename T>
void store_row(Pace& pace, pfrt_dtype dtype, void* data, int64_t first, int64_t n, const T* row) {
  if (dtype == kNormType<T>) return;
  in_parts(pace, n, [&](int64_t begin, int64_t end) {
    store_fn<T>(dtype)(data, first + begin, row + begin, end - begin);
  });
}

template <typename T>
double row_sum(Pace& pace, const T* x, int64_t n);
// Sum of (x - center)^2.
template <typename T>
double row_squares(Pace& pace, const T* x, int64_t n, double center);
template <typename T>
double row_magnitudes(Pace& pace, const T* x, int64_t n);

// y = (x - mean) * scale / deviation + bias over |length| elements, without the mean where not
// |centered|; |bias| may be null, |y| may be |x|. The sums are those of the kernels below.
void normalise_float_row(int64_t length, double epsilon, bool centered, const float* x,
                         const float* scale, const float* bias, float* y);

// rows.cc
Result<Kernel> make_layer_norm(const SnapshotNode& node);
Result<Kernel> make_rms_norm(const SnapshotNode& node);
// channels.cc
Result<Kernel> make_batch_norm(const SnapshotNode& node);
Result<Kernel> make_instance_norm(const SnapshotNode& node);
Result<Kernel> make_group_norm(const SnapshotNode& node);
std::string refuse_batch_norm(const SnapshotNode& node);
std::string refuse_batch_norm_blocked(const SnapshotNode& node, Blocked sides);
Result<Kernel> make_batch_norm_blocked(const SnapshotNode& node, Blocked sides);
Result<Kernel> make_batch_norm_training(const SnapshotNode& node);
std::string refuse_batch_norm_training(const SnapshotNode& node);
// axes.cc
Result<Kernel> make_lp_norm(const SnapshotNode& node);
Result<Kernel> make_mean_variance_norm(const SnapshotNode& node);
// lrn.cc
Result<Kernel> make_lrn(const SnapshotNode& node);
std::string refuse_lrn_blocked(const SnapshotNode& node, Blocked sides);
Result<Kernel> make_lrn_blocked(const SnapshotNode& node, Blocked sides);

}  // namespace pfrt::cpu
