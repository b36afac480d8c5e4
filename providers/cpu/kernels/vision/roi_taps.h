// SPDX-License-Identifier: Apache-2.0
//
// The pixels that RoiAlign samples along one dimension of an image. The samples of a region are a
// grid, so a bin's sum is one over rows of sums over columns, and its maximum is one of maxima.
// Samples that read the same pixel are joined. Not shared between threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "providers/cpu/kernel/stop_poll.h"

namespace pfrt::cpu {

// The samples of a region along one dimension of an image.
struct RoiSamples {
  double start, bin;  // in pixels
  int64_t samples;    // of a bin
};

// The pixels that each bin reads, with their weights: tap k of bin i, first[i] <= k < first[i + 1].
// In sums the weights of a bin add up to 1; for a maximum they are the least and the greatest that
// any sample gives the pixel.
template <typename T>
struct RoiTaps {
  // A bin reads a pixel with at most two weights, and neighbouring bins share the pixels at their
  // ends.
  static int64_t most(int64_t length, int64_t bins) { return 2 * (length + 3 * bins) + 8; }
  // A multiple of 8.
  static uint64_t bytes(int64_t length, int64_t bins) {
    const uint64_t all = static_cast<uint64_t>(most(length, bins)) * (sizeof(int64_t) + sizeof(T)) +
                         static_cast<uint64_t>(bins + 1) * (sizeof(int64_t) + 1);
    return (all + 7) / 8 * 8;
  }

  // |memory| is of bytes(), aligned for int64_t; returns where it ends.
  char* place(char* memory, int64_t image_length, int64_t bin_count) {
    length = image_length;
    bins = bin_count;
    at = reinterpret_cast<int64_t*>(memory);
    first = at + most(length, bins);
    weight = reinterpret_cast<T*>(first + bins + 1);
    outside = reinterpret_cast<uint8_t*>(weight + most(length, bins));
    return memory + bytes(length, bins);
  }

  // Fills the taps in; false when the run is to stop. |exact| has room for most() weights.
  bool find(const RoiSamples& s, bool maximum, double* exact, StopPoll& pace) {
    const double n = static_cast<double>(length), count = static_cast<double>(s.samples);
    exact_ = exact;
    taps = 0;
    for (int64_t i = 0; i < bins; ++i) {
      first[i] = taps;
      outside[i] = 0;
      for (int64_t k = 0; k < s.samples; ++k) {
        if (pace.stopped(8)) return false;
        const double x = s.start + static_cast<double>(i) * s.bin +
                         (static_cast<double>(k) + 0.5) * s.bin / count;
        if (!(length > 0 && x >= -1 && x <= n)) {
          outside[i] = 1;
          continue;
        }
        const double inside = std::max(x, 0.0);
        const int64_t low = std::min(static_cast<int64_t>(inside), length - 1),
                      high = std::min(low + 1, length - 1);
        const double f = low == high ? 0 : inside - static_cast<double>(low);
        // Samples go one way, so their pixels are among the last taps.
        const int64_t recent = std::max(first[i], taps - 6);
        maximum ? widen(recent, low, 1 - f) : add(recent, low, 1 - f);
        maximum ? widen(recent, high, f) : add(recent, high, f);
      }
    }
    first[bins] = taps;
    for (int64_t k = 0; k < taps; ++k)
      weight[k] = static_cast<T>(maximum ? exact_[k] : exact_[k] / count);
    return true;
  }

  int64_t length = 0, bins = 0, taps = 0;
  int64_t* at = nullptr;
  int64_t* first = nullptr;
  T* weight = nullptr;
  uint8_t* outside = nullptr;  // 1 where samples of the bin are outside the image

 private:
  // 0 times infinity is NaN, so a weight of 0 stays beside what other samples give the pixel.
  void add(int64_t recent, int64_t pixel, double w) {
    for (int64_t k = recent; k < taps; ++k)
      if (at[k] == pixel && (exact_[k] == 0) == (w == 0)) {
        exact_[k] += w;
        return;
      }
    push(pixel, w);
  }
  void widen(int64_t recent, int64_t pixel, double w) {
    int64_t found[2], n = 0;
    for (int64_t k = recent; k < taps && n < 2; ++k)
      if (at[k] == pixel) found[n++] = k;
    if (n == 0 || (n == 1 && exact_[found[0]] != w)) return push(pixel, w);
    if (n == 1) return;
    double &a = exact_[found[0]], &b = exact_[found[1]];
    if (a > b) std::swap(a, b);
    a = std::min(a, w);
    b = std::max(b, w);
  }
  void push(int64_t pixel, double w) {
    at[taps] = pixel;
    exact_[taps++] = w;
  }

  double* exact_ = nullptr;
};

// Averages of planes of float32 by vectors; needs avx2. Not shared between threads.
class RoiVectors {
 public:
  static uint64_t bytes(int64_t columns);  // a multiple of 8
  // Pixels behind those of a region that average() writes.
  static constexpr int64_t kBeyond = 8;

  // |memory| is of bytes(), aligned for int64_t; returns where it ends.
  char* place(char* memory, int64_t columns);
  // Arranges the taps, of pixels [low, high) across; false where a bin has too many, or where most
  // pixels between them are of no use.
  bool arrange(const RoiTaps<float>& columns, int64_t low, int64_t high);
  // The averages of plane |x|, [rows.length, columns.length], which go to [rows, columns] at |y|.
  // |line| has room for high - low + kBeyond numbers.
  void average(const float* x, const RoiTaps<float>& rows, const RoiTaps<float>& columns,
               float* line, float* y) const;

 private:
  struct Slot;
  static int64_t vectors(int64_t columns) { return (columns + 7) / 8; }
  template <int kind>
  void average_as(const float* x, const RoiTaps<float>& rows, const RoiTaps<float>& columns,
                  float* line, float* y) const;

  Slot* slots_ = nullptr;
  int64_t* counts_ = nullptr;  // slots of each vector of bins
  int64_t low_ = 0, width_ = 0;
};

}  // namespace pfrt::cpu
