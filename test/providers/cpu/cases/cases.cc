// SPDX-License-Identifier: Apache-2.0
#include "test/providers/cpu/cases/cases.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/dtype.h"

namespace pfrt::test {

double Random::uniform(double low, double high) {
  return low + (high - low) * static_cast<double>(engine_() >> 11) * 0x1p-53;
}

Dims Random::dims_without_0(size_t rank, int64_t size) {
  static constexpr int64_t kSizes[] = {1, 1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 65};
  Dims out(rank);
  int64_t left = size;
  for (int64_t& d : out) {
    do d = kSizes[below(std::size(kSizes))];
    while (d > left);
    left /= d;
  }
  if (size >= kLarge && rank > 0)
    out[static_cast<size_t>(below(static_cast<int64_t>(rank)))] *= left;
  return out;
}

Dims Random::dims(size_t rank, int64_t size) {
  Dims out = dims_without_0(rank, size);
  if (rank > 0 && size < kLarge && once_in(20))
    out[static_cast<size_t>(below(static_cast<int64_t>(rank)))] = 0;
  return out;
}

Data Random::data(pfrt_dtype dtype, Dims dims, double low, double high) {
  Data out{dtype, std::move(dims), {}, false};
  out.values.resize(static_cast<size_t>(count(out.dims)));
  const bool is_unsigned = !is_float(dtype) && !dtype_is_signed(dtype);
  for (double& v : out.values) {
    v = uniform(is_unsigned ? std::max(low, 0.0) : low, high);
    if (!is_float(dtype)) v = std::round(v);
    if (dtype == PFRT_DTYPE_BOOL) v = once_in(2);
  }
  if (specials_ && is_float(dtype) && !out.values.empty() && once_in(2)) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    constexpr double kSpecial[] = {std::numeric_limits<double>::quiet_NaN(), kInfinity, -kInfinity,
                                   -0.0, 0x1p-140};
    for (int64_t n = from_to(1, 3); n > 0; --n)
      out.values[static_cast<size_t>(below(count(out.dims)))] =
          kSpecial[below(std::size(kSpecial))];
  }
  out.values = rounded(dtype, out.values);
  return out;
}

Dims Random::broadcast_to(const Dims& dims) {
  Dims out(dims.begin() + below(static_cast<int64_t>(dims.size()) + 1) * once_in(3), dims.end());
  for (int64_t& d : out)
    if (once_in(4)) d = 1;
  return out;
}

double greatest(const Values& values) {
  double most = values[0];
  for (const double v : values) most = most < v || std::isnan(v) ? v : most;
  return most;
}

double least(const Values& values) {
  double low = values[0];
  for (const double v : values) low = v < low || std::isnan(v) ? v : low;
  return low;
}

Data expected(pfrt_dtype dtype, Dims dims, Values values) {
  return {dtype, std::move(dims), std::move(values), false};
}

Data integers(Dims dims, const Dims& values, bool constant) {
  return {PFRT_DTYPE_INT64, std::move(dims), Values(values.begin(), values.end()), constant};
}

bool is_float(pfrt_dtype dtype) { return epsilon(dtype) > 0; }

size_t position(const Dims& index, const Dims& dims) {
  int64_t at = 0;
  const size_t skipped = index.size() - dims.size();
  for (size_t i = 0; i < dims.size(); ++i)
    at = at * dims[i] + (dims[i] == 1 ? 0 : index[i + skipped]);
  return static_cast<size_t>(at);
}

void for_each_index(const Dims& dims, const std::function<void(const Dims&)>& fn) {
  Dims index(dims.size(), 0);
  for (int64_t left = count(dims); left > 0; --left) {
    fn(index);
    for (size_t i = dims.size(); i-- > 0;) {
      if (++index[i] < dims[i]) break;
      index[i] = 0;
    }
  }
}

}  // namespace pfrt::test
