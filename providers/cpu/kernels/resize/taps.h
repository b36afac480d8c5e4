// SPDX-License-Identifier: Apache-2.0
//
// The input elements of each position of an output axis of Resize: coordinates by ONNX's
// coordinate_transformation_mode, and the elements around them with their weights. Pure functions;
// thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/status.h"
#include "providers/kit/node.h"

namespace pfrt::cpu {

enum class Resample : uint8_t { kNearest, kLinear, kCubic };
enum class Transform : uint8_t {
  kHalfPixel,
  kHalfPixelSymmetric,
  kPytorchHalfPixel,
  kAlignCorners,
  kAsymmetric,
  kCropAndResize,
};
enum class NearestMode : uint8_t { kPreferFloor, kPreferCeil, kFloor, kCeil };

// The attributes that axes share.
struct Sampling {
  static Result<Sampling> make(const SnapshotNode& node);

  Resample mode = Resample::kNearest;
  Transform transform = Transform::kHalfPixel;
  NearestMode rounding = NearestMode::kPreferFloor;
  double cubic_a = -0.75;
  bool antialias = false, exclude_outside = false;
};

struct AxisSizes {
  int64_t in = 1, out = 1;
  double scale = 1;           // greater than 0
  double length = 1;          // in * scale: of the output before rounding
  bool approximate = false;   // the scale is a float that may stand for a ratio
  double start = 0, end = 1;  // the cropped part, of kCropAndResize
};

// Position j of the output is the sum over k < count of weight[j * count + k] times element
// index[j * count + k] of the input; of kNearest it is element index[j].
struct Taps {
  static Taps make(const Sampling& sampling, const AxisSizes& sizes);
  // Every position is the element of the same index.
  bool identity() const;

  int64_t in = 1, out = 1, count = 1;
  std::vector<int64_t> index;
  std::vector<double> weight;    // empty for kNearest
  std::vector<uint8_t> outside;  // 1 where extrapolated; empty when no position is
};

// The four weights of a cubic kernel at distance |f| in [0, 1) from the second element.
void cubic_weights(double a, double f, double weight[4]);

}  // namespace pfrt::cpu
