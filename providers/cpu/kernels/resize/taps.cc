// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/resize/taps.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>

namespace pfrt::cpu {
namespace {

template <typename E>
struct Word {
  std::string_view text;
  E value;
};

constexpr Word<Resample> kModes[] = {
    {"nearest", Resample::kNearest}, {"linear", Resample::kLinear}, {"cubic", Resample::kCubic}};
constexpr Word<Transform> kTransforms[] = {{"half_pixel", Transform::kHalfPixel},
                                           {"half_pixel_symmetric", Transform::kHalfPixelSymmetric},
                                           {"pytorch_half_pixel", Transform::kPytorchHalfPixel},
                                           {"align_corners", Transform::kAlignCorners},
                                           {"asymmetric", Transform::kAsymmetric},
                                           {"tf_crop_and_resize", Transform::kCropAndResize}};
constexpr Word<NearestMode> kRoundings[] = {{"round_prefer_floor", NearestMode::kPreferFloor},
                                            {"round_prefer_ceil", NearestMode::kPreferCeil},
                                            {"floor", NearestMode::kFloor},
                                            {"ceil", NearestMode::kCeil}};

// Attribute |name| as one of |words|, the first of which is its default.
template <typename E, size_t N>
Status read_word(const SnapshotNode& node, std::string_view name, const Word<E> (&words)[N],
                 E& out) {
  const std::string_view given = node.attr_string(name, words[0].text);
  std::string known;
  for (const Word<E>& word : words) {
    out = word.value;
    if (word.text == given) return {};
    known += message(known.empty() ? "" : ", ", word.text);
  }
  return error(Code::kUNSUPPORTED, name, " is '", given, "', not one of ", known);
}

// A coordinate |x|. For the nearest element, a coordinate from a float scale is rounded to float,
// so that a scale that stands for a ratio (0.3f) still gives exact integers and halves.
double kept(const Sampling& s, const AxisSizes& a, double x) {
  const bool rounded = s.mode == Resample::kNearest && a.approximate;
  return rounded ? static_cast<double>(static_cast<float>(x)) : x;
}

// The coordinate of |position| in the input. Dividing by the scale is done as multiplying by in /
// length, which is exact where ratios of lengths are.
double coordinate(const Sampling& s, const AxisSizes& a, int64_t position) {
  const double x = static_cast<double>(position), in = static_cast<double>(a.in);
  switch (s.transform) {
    case Transform::kHalfPixel:
      return kept(s, a, (x + 0.5) * in / a.length) - 0.5;
    case Transform::kPytorchHalfPixel:
      return a.length > 1 ? kept(s, a, (x + 0.5) * in / a.length) - 0.5 : 0;
    case Transform::kHalfPixelSymmetric: {
      const double adjustment = static_cast<double>(a.out) / a.length;
      return kept(s, a, in / 2 * (1 - adjustment) + (x + 0.5) * in / a.length) - 0.5;
    }
    case Transform::kAlignCorners:
      return a.length == 1 ? 0 : kept(s, a, x * (in - 1) / (a.length - 1));
    case Transform::kAsymmetric:
      return kept(s, a, x * in / a.length);
    case Transform::kCropAndResize:
      if (a.out == 1) return 0.5 * (a.start + a.end) * (in - 1);
      return a.start * (in - 1) + x * (a.end - a.start) * (in - 1) / static_cast<double>(a.out - 1);
  }
  return 0;
}

int64_t nearest(NearestMode rounding, int64_t below, double f) {
  switch (rounding) {
    case NearestMode::kPreferFloor:
      return f > 0.5 ? below + 1 : below;
    case NearestMode::kPreferCeil:
      return f >= 0.5 ? below + 1 : below;
    case NearestMode::kFloor:
      return below;
    case NearestMode::kCeil:
      return f > 0 ? below + 1 : below;
  }
  return below;
}

double triangle(double x) { return std::max(0.0, 1 - std::fabs(x)); }

double cubic(double a, double x) {
  x = std::fabs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

void divide_by_sum(double* weight, int64_t n) {
  const double sum = std::accumulate(weight, weight + n, 0.0);
  if (sum == 0) return;
  for (int64_t k = 0; k < n; ++k) weight[k] /= sum;
}

// The elements around a position that have weights: |count| from |first| on, counted from the
// element below, with the kernel stretched by 1 / |scale|.
struct Window {
  int64_t first, count;
  double scale;
};

Window window_of(const Sampling& s, const AxisSizes& a) {
  const double reach = s.mode == Resample::kLinear ? 1 : 2;
  Window w{static_cast<int64_t>(1 - reach), static_cast<int64_t>(2 * reach), 1};
  if (!s.antialias || a.scale >= 1) return w;
  // An output of at least one element has no smaller scale.
  w.scale = std::max(a.scale, 0.5 / static_cast<double>(a.in));
  w.first = static_cast<int64_t>(std::floor(-reach / w.scale)) + 1;
  w.count = 2 * (1 - w.first);
  return w;
}

void weigh(const Sampling& s, const Window& w, double f, double* weight) {
  if (w.scale == 1 && s.mode == Resample::kLinear) {
    weight[0] = 1 - f;
    weight[1] = f;
    return;
  }
  if (w.scale == 1) return cubic_weights(s.cubic_a, f, weight);
  for (int64_t k = 0; k < w.count; ++k) {
    const double x = (static_cast<double>(w.first + k) - f) * w.scale;
    weight[k] = s.mode == Resample::kLinear ? triangle(x) : cubic(s.cubic_a, x);
  }
  divide_by_sum(weight, w.count);
}

// No weight for elements outside the input, unless all are.
void exclude(const AxisSizes& a, int64_t first, int64_t count, double* weight) {
  const auto inside = [&](int64_t k) { return first + k >= 0 && first + k < a.in; };
  double sum = 0;
  for (int64_t k = 0; k < count; ++k) sum += inside(k) ? weight[k] : 0;
  if (sum == 0) return;
  for (int64_t k = 0; k < count; ++k) weight[k] = inside(k) ? weight[k] / sum : 0;
}

}  // namespace

Result<Sampling> Sampling::make(const SnapshotNode& node) {
  Sampling s;
  PFRT_TRY(read_word(node, "mode", kModes, s.mode));
  PFRT_TRY(read_word(node, "coordinate_transformation_mode", kTransforms, s.transform));
  PFRT_TRY(read_word(node, "nearest_mode", kRoundings, s.rounding));
  s.cubic_a = static_cast<double>(node.attr_float("cubic_coeff_a", -0.75f));
  s.antialias = node.attr_int("antialias", 0) != 0;
  s.exclude_outside = node.attr_int("exclude_outside", 0) != 0;
  return s;
}

Taps Taps::make(const Sampling& s, const AxisSizes& a) {
  constexpr double kFar = 0x1p52;
  Taps taps;
  taps.in = a.in;
  taps.out = a.out;
  const bool weighted = s.mode != Resample::kNearest;
  const Window window = window_of(s, a);
  if (weighted) taps.count = window.count;
  taps.index.resize(static_cast<size_t>(taps.out * taps.count));
  if (weighted) taps.weight.resize(taps.index.size());
  for (int64_t j = 0; j < a.out; ++j) {
    double x = coordinate(s, a, j);
    x = std::isnan(x) ? 0 : std::clamp(x, -kFar, kFar);
    if (s.transform == Transform::kCropAndResize && (x < 0 || x > static_cast<double>(a.in - 1))) {
      taps.outside.resize(static_cast<size_t>(a.out));
      taps.outside[static_cast<size_t>(j)] = 1;
    }
    const int64_t below = static_cast<int64_t>(std::floor(x));
    const double f = x - std::floor(x);
    const int64_t first = weighted ? below + window.first : nearest(s.rounding, below, f);
    int64_t* index = &taps.index[static_cast<size_t>(j * taps.count)];
    for (int64_t k = 0; k < taps.count; ++k) index[k] = std::clamp<int64_t>(first + k, 0, a.in - 1);
    if (!weighted) continue;
    double* weight = &taps.weight[static_cast<size_t>(j * taps.count)];
    weigh(s, window, f, weight);
    if (s.exclude_outside) exclude(a, first, taps.count, weight);
  }
  return taps;
}

bool Taps::identity() const {
  if (in != out || !outside.empty()) return false;
  for (size_t i = 0; i < index.size(); ++i) {
    const bool own = index[i] == static_cast<int64_t>(i) / count;
    if (weight.empty() ? !own : !own && weight[i] != 0) return false;
  }
  return true;
}

void cubic_weights(double a, double f, double weight[4]) {
  for (int k = 0; k < 4; ++k) weight[k] = cubic(a, f + 1 - k);
}

}  // namespace pfrt::cpu
