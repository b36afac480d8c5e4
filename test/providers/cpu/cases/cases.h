// SPDX-License-Identifier: Apache-2.0
//
// Random cases of operators with the results of plain double-precision references. A generator
// depends on its arguments alone. A new kernel row of a known operator needs nothing here.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string_view>

#include "test/providers/cpu/one_node.h"

namespace pfrt::test {

class Random {
 public:
  // With |specials|, data of floating-point numbers may hold NaN, infinities, -0 and denormals.
  explicit Random(uint64_t seed, bool specials = false) : engine_(seed), specials_(specials) {}
  int64_t below(int64_t n) { return static_cast<int64_t>(engine_() % static_cast<uint64_t>(n)); }
  int64_t from_to(int64_t low, int64_t high) { return low + below(high - low + 1); }
  bool once_in(int64_t n) { return below(n) == 0; }
  double uniform(double low, double high);
  // Odd sizes, now and then 0, with at most about |size| elements, and nearly as many when |size|
  // is large.
  Dims dims(size_t rank, int64_t size);
  Dims dims_without_0(size_t rank, int64_t size);
  // Numbers in [low, high] that are exact in |dtype|: whole for integers, never negative where
  // unsigned.
  Data data(pfrt_dtype dtype, Dims dims, double low = -3, double high = 3);
  // A shape that broadcasts to |dims|.
  Dims broadcast_to(const Dims& dims);

 private:
  std::mt19937_64 engine_;
  bool specials_;
};

// Sizes from which on cases are large enough to be divided between threads.
inline constexpr int64_t kLarge = 20000, kVeryLarge = 4 * kLarge;  // the latter for attention

using Generator = std::function<Case(Random& random, pfrt_dtype dtype, int64_t size)>;
using Generators = std::map<std::string_view, Generator>;  // by operator

const Generators& elementwise_cases();
const Generators& reduce_cases();
const Generators& matmul_cases();  // matrices and convolutions
const Generators& window_cases();  // pools and normalisations
const Generators& move_cases();
const Generators& index_cases();  // use indices or depend on contents
const Generators& recurrent_cases();
const Generators& quantize_cases();
const Generators& signal_cases();
const Generators& vision_cases();
const Generators& image_cases();
const Generators& attention_cases();
const Generators& contrib_attention_cases();  // com.microsoft
const Generators& ml_cases();                 // ai.onnx.ml
const Generators& contrib_cases();            // com.microsoft
const Generators& byte_pool_cases();          // com.microsoft's averages of bytes

// ------------------------------------------------------------------ for references
Data expected(pfrt_dtype dtype, Dims dims, Values values);
Data integers(Dims dims, const Dims& values, bool constant = true);  // int64
bool is_float(pfrt_dtype dtype);
// Like NumPy's, these give NaN where an element is NaN.
double greatest(const Values& values);
double least(const Values& values);
// Row-major position of |index| in |dims|; dimensions of 1 and missing leading ones are broadcast.
size_t position(const Dims& index, const Dims& dims);
// Calls |fn| with every index of |dims|, in row-major order.
void for_each_index(const Dims& dims, const std::function<void(const Dims&)>& fn);

}  // namespace pfrt::test
