// SPDX-License-Identifier: Apache-2.0
//
// The discrete Fourier transform of any length, in double precision and O(n log n) steps: factors
// up to 61 by butterflies (Stockham's order, which needs no bit reversal), lengths with a greater
// prime factor as a convolution with a chirp (Bluestein). Immutable; thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "providers/cpu/kernel/stop_poll.h"

namespace pfrt::cpu {

class Fourier {
 public:
  Fourier(int64_t length, const Run& run);  // 1 or more; of no use once |run| is stopped
  int64_t length() const { return length_; }
  // Transforms |re| and |im| in place, with the kernel e^(-2 pi i k n / length). |work| holds
  // work_for(length) doubles. With re and im exchanged it is the inverse, times the length.
  // Leaves early when |run| is stopped.
  void transform(const Run& run, double* re, double* im, double* work) const;
  static int64_t work_for(int64_t length);

 private:
  void butterflies(const Run& run, double* re, double* im, double* work) const;
  void chirp(const Run& run, double* re, double* im, double* work) const;

  int64_t length_;
  std::vector<int64_t> factors_;
  std::vector<double> cos_, sin_;   // of -2 pi i / length; of the chirp when there is one
  std::unique_ptr<Fourier> inner_;  // a power of two that holds the convolution
  std::vector<double> filter_re_, filter_im_;  // the chirp's transform
};

// The transform last asked for, made when it is first needed. Thread-safe.
class FourierCache {
 public:
  // Null when |run| is stopped.
  std::shared_ptr<const Fourier> get(int64_t length, const Run& run);

 private:
  std::mutex mutex_;
  std::shared_ptr<const Fourier> last_;
};

}  // namespace pfrt::cpu
