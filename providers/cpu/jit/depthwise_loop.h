// SPDX-License-Identifier: Apache-2.0
//
// Machine code that adds up the taps of one depthwise convolution, for one size of its image. A
// vector is 8 neighbouring positions of a plane, or 8 or 16 channels of a position in nChw16c. The
// image is read where it lies: rows beside it are left out, and columns beside it count as 0 or are
// left out. Each pixel that several rows of positions see is loaded once for all of them. Products
// are fused with sums, in the order of the taps, from the bias on. For AVX2, and AVX-512 where a
// vector has 16 channels. Immutable after make; thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

namespace pfrt::cpu {

class DepthwiseLoop {
 public:
  using Pair = std::array<int64_t, 2>;  // of rows, and of columns
  struct Shape {
    bool nchw16c;
    Pair image, positions, taps, strides, dilations, pads;
    bool adds = false;  // to what the output holds, instead of the bias
    bool wide = false;  // 16 channels of nChw16c a vector, else 8
  };

  // nullptr where the code would be too long or cannot be made executable, and for windows that
  // other kernels take: strides of planes beyond 2, more than kMostTaps taps. Throws std::bad_alloc
  // where memory is short, since other kernels may round otherwise.
  static constexpr int64_t kMostTaps = 49;
  static std::shared_ptr<const DepthwiseLoop> make(const Shape& shape);
  virtual ~DepthwiseLoop() = default;

  // Rows of positions are divided into bands; the results do not depend on how many are computed
  // at a time.
  int64_t bands() const { return (top_rows_ > 0) + middle_bands_ + (bottom_rows_ > 0); }
  int64_t first_row(int64_t band) const;
  // Channels of nChw16c that a call computes.
  int64_t channels() const { return shape_.wide ? 16 : 8; }
  // Elements from one row of the output to the next. Where sums are added these are whole vectors,
  // all of which are written.
  int64_t pitch() const {
    return shape_.adds ? (shape_.positions[1] + 7) / 8 * 8 : shape_.positions[1];
  }

  // Computes bands [begin, end) of a plane, or of channels() of a block, whose first elements are
  // |in| and |out|. |weights| and |bias| are those of the plane, or of 16 channels a tap. Rows of
  // planes that are shorter than a vector are written as whole vectors, in order: up to 7 elements
  // behind the last row are written too. |planes| whole planes may follow each other; their biases
  // are |bias_step| apart. Where sums are added, the planes are all of one output's group, and
  // |out| is the first of these bands.
  void run(const float* in, const float* weights, const float* bias, float* out, int64_t begin,
           int64_t end, int64_t planes = 1, int64_t bias_step = 0) const;

 protected:
  struct Arguments {
    uintptr_t in;
    const float *weights, *bias;
    float* out;
    int64_t top, middle, bottom;  // whether, how many, whether
    int64_t planes, bias_step;    // in bytes
  };
  DepthwiseLoop() = default;
  void (*code_)(Arguments*) = nullptr;
  Shape shape_{};
  int64_t band_rows_ = 0;  // of a band in the middle
  int64_t top_rows_ = 0, middle_bands_ = 0, bottom_rows_ = 0;
};

}  // namespace pfrt::cpu
