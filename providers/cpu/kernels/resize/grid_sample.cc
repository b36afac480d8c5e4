// SPDX-License-Identifier: Apache-2.0
//
// GridSample: each point of the grid names a place in the image, and the pixels around it give the
// output. A point's neighbours are found once for all channels.
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "providers/cpu/elements/complex.h"
#include "providers/cpu/elements/convert.h"
#include "providers/cpu/isa/target.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/resize/rows.h"

namespace pfrt::cpu {
namespace {

constexpr size_t kMostDims = 4;  // spatial ones
constexpr int64_t kPoints = 64;  // of a task
constexpr double kCubicA = -0.75;

enum class Padding : uint8_t { kZeros, kBorder, kReflection };

struct Image {
  pfrt_dtype dtype, grid_dtype;
  Resample mode;
  Padding padding;
  bool align_corners;
  size_t dims;                             // spatial ones
  std::array<int64_t, kMostDims> lengths;  // of the image
  int64_t channels, pixels;                // pixels of a channel
  int64_t points;                          // of a grid
  int64_t batch;

  int64_t taps_a_dim() const {
    return mode == Resample::kNearest ? 1 : mode == Resample::kLinear ? 2 : 4;
  }
  int64_t most_taps() const {
    int64_t n = 1;
    for (size_t d = 0; d < dims; ++d) n *= taps_a_dim();
    return n;
  }
};

// |x| mirrored at |low| and |high| until it is between them.
double reflected(double x, double low, double high) {
  const double range = high - low;
  if (!(range > 0)) return low;
  const double turn = std::fmod(std::fabs(x - low), 2 * range);
  return low + (turn > range ? 2 * range - turn : turn);
}

// The neighbours along one dimension: count pixels with weights; index -1 is outside.
struct Neighbours {
  std::array<int64_t, 4> index;
  std::array<double, 4> weight;
};

Neighbours neighbours_of(const Image& image, double place, int64_t length) {
  constexpr double kFar = 0x1p52;
  const double n = static_cast<double>(length);
  double x = image.align_corners ? (place + 1) / 2 * (n - 1) : ((place + 1) * n - 1) / 2;
  x = std::isnan(x) ? -1 : std::clamp(x, -kFar, kFar);
  if (image.mode == Resample::kNearest) x = std::nearbyint(x);
  const double low = image.align_corners ? 0 : -0.5, high = low == 0 ? n - 1 : n - 0.5;
  if (x < low || x > high) {
    // The taps of a cubic are clamped one by one, below: their weights are those of the place
    // itself.
    if (image.padding == Padding::kBorder && image.mode != Resample::kCubic)
      x = std::clamp(x, 0.0, std::max(n - 1, 0.0));
    if (image.padding == Padding::kReflection) x = reflected(x, low, high);
  }

  const double below = std::floor(x), f = x - below;
  Neighbours all{};
  int64_t first = static_cast<int64_t>(below);
  if (image.mode == Resample::kNearest) {
    all.weight[0] = 1;
  } else if (image.mode == Resample::kLinear) {
    all.weight = {1 - f, f, 0, 0};
  } else {
    cubic_weights(kCubicA, f, all.weight.data());
    --first;
  }
  for (int64_t k = 0; k < image.taps_a_dim(); ++k) {
    int64_t i = first + k;
    if (i < 0 || i >= length) {
      if (image.padding == Padding::kZeros || length == 0) {
        i = -1;
      } else {
        if (image.padding == Padding::kReflection)
          i = static_cast<int64_t>(reflected(static_cast<double>(i), low, high));
        i = std::clamp<int64_t>(i, 0, length - 1);
      }
    }
    all.index[static_cast<size_t>(k)] = i;
  }
  return all;
}

template <typename T>
struct Tap {
  int64_t pixel;
  T weight;
};

// The pixels of the point at |places| (last dimension first) that count; returns how many.
template <typename T>
int64_t taps_of(const Image& image, const double* places, Tap<T>* taps) {
  std::array<Neighbours, kMostDims> along;
  for (size_t d = 0; d < image.dims; ++d)
    along[d] = neighbours_of(image, places[image.dims - 1 - d], image.lengths[d]);
  const int64_t each = image.taps_a_dim(), most = image.most_taps();
  int64_t count = 0;
  for (int64_t tap = 0; tap < most; ++tap) {
    int64_t pixel = 0, stride = 1, left = tap;
    double weight = 1;
    bool inside = true;
    for (size_t d = image.dims; d-- > 0; left /= each) {
      const size_t k = static_cast<size_t>(left % each);
      inside = inside && along[d].index[k] >= 0;
      pixel += along[d].index[k] * stride;
      stride *= image.lengths[d];
      weight *= along[d].weight[k];
    }
    if (inside && weight != 0) taps[count++] = {pixel, static_cast<T>(weight)};
  }
  return count;
}

// T is float or double.
template <typename T>
void sample(const Run& run, const Image& image) {
  const int64_t tasks = (image.points + kPoints - 1) / kPoints, most = image.most_taps();
  const int64_t dims = static_cast<int64_t>(image.dims);
  run.parallel(image.batch * tasks, [&](int64_t task, uint32_t worker) {
    const int64_t n = task / tasks, first = task % tasks * kPoints;
    const int64_t count = std::min(kPoints, image.points - first);
    Tap<T>* const taps = run.scratch<Tap<T>>(worker);
    std::array<int64_t, kPoints> counts;
    std::array<double, kPoints * kMostDims> places;
    load_block(image.grid_dtype,
               element(image.grid_dtype, run.input(1), (n * image.points + first) * dims),
               count * dims, places.data());
    for (int64_t p = 0; p < count; ++p)
      counts[static_cast<size_t>(p)] =
          taps_of(image, &places[static_cast<size_t>(p * dims)], taps + p * most);
    std::array<T, 2 * kPoints> block;
    const int64_t components = components_of(image.dtype);
    const pfrt_dtype dtype = component_dtype(image.dtype);
    for (int64_t c = 0; c < image.channels && !run.stopped(); ++c) {
      const int64_t channel = n * image.channels + c;
      const int64_t to = (channel * image.points + first) * components;
      T* y = place_block(dtype, run.output(0), to, block.data());
      for (int64_t i = 0; i < count * components; ++i) {
        const int64_t p = i / components;
        T sum = 0;
        for (int64_t k = 0; k < counts[static_cast<size_t>(p)]; ++k) {
          const Tap<T>& tap = taps[p * most + k];
          const int64_t at = (channel * image.pixels + tap.pixel) * components + i % components;
          T pixel;
          sum += tap.weight * *read_block(dtype, run.input(0), at, 1, &pixel);
        }
        y[i] = sum;
      }
      write_sums(dtype, run.output(0), to, count * components, y);
      run.apply_epilogue(to, to + count * components);
    }
  });
}

// ------------------------------------------------------------------ vectors

constexpr int64_t kLanes = 8;
constexpr int64_t kMostPixels = int64_t{1} << 31;  // of a channel, so that int32 counts them

// The neighbours of eight points along one dimension.
struct Along {
  alignas(32) int32_t index[4][kLanes];
  alignas(32) double weight[4][kLanes];
};

// A tap of eight points: for each a pixel, or -1 where it has none, and its weight.
struct Tap8 {
  int32_t pixel[kLanes];
  float weight[kLanes];
};

void find_one_by_one(const Image& image, const double* places, int64_t stride, int64_t length,
                     Along& along) {
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    const Neighbours found = neighbours_of(image, places[lane * stride], length);
    for (size_t k = 0; k < static_cast<size_t>(image.taps_a_dim()); ++k) {
      along.index[k][lane] = static_cast<int32_t>(found.index[k]);
      along.weight[k][lane] = found.weight[k];
    }
  }
}

// Does what neighbours_of does, to four places at a time. False where a place is to be mirrored.
PFRT_AVX2 bool find_vectors(const Image& image, const double* places, int64_t stride,
                            int64_t length, Along& along) {
  const __m256d one = _mm256_set1_pd(1), none = _mm256_set1_pd(-1), half = _mm256_set1_pd(0.5),
                zero = _mm256_setzero_pd(), far = _mm256_set1_pd(0x1p52);
  const __m256d n = _mm256_set1_pd(static_cast<double>(length)), last = _mm256_sub_pd(n, one);
  const bool corners = image.align_corners, nearest = image.mode == Resample::kNearest;
  const __m256d low = corners ? zero : _mm256_set1_pd(-0.5),
                high = corners ? last : _mm256_sub_pd(n, half);
  for (int64_t lane = 0; lane < kLanes; lane += 4, places += 4 * stride) {
    const __m256d place = _mm256_add_pd(
        _mm256_setr_pd(places[0], places[stride], places[2 * stride], places[3 * stride]), one);
    __m256d x = corners ? _mm256_mul_pd(_mm256_mul_pd(place, half), last)
                        : _mm256_mul_pd(_mm256_sub_pd(_mm256_mul_pd(place, n), one), half);
    x = _mm256_blendv_pd(x, none, _mm256_cmp_pd(x, x, _CMP_UNORD_Q));
    x = _mm256_min_pd(_mm256_max_pd(x, _mm256_sub_pd(zero, far)), far);
    if (nearest) x = _mm256_round_pd(x, _MM_FROUND_CUR_DIRECTION);
    const __m256d outside =
        _mm256_or_pd(_mm256_cmp_pd(x, low, _CMP_LT_OQ), _mm256_cmp_pd(x, high, _CMP_GT_OQ));
    if (image.padding == Padding::kReflection && _mm256_movemask_pd(outside) != 0) return false;
    if (image.padding == Padding::kBorder)
      x = _mm256_blendv_pd(x, _mm256_min_pd(_mm256_max_pd(x, zero), last), outside);
    const __m256d below = _mm256_floor_pd(x), f = _mm256_sub_pd(x, below);
    for (int k = 0; k < (nearest ? 1 : 2); ++k) {
      __m256d i = k == 0 ? below : _mm256_add_pd(below, one);
      const __m256d clamped = _mm256_min_pd(_mm256_max_pd(i, zero), last);
      if (image.padding == Padding::kZeros)
        i = _mm256_blendv_pd(none, i, _mm256_cmp_pd(i, clamped, _CMP_EQ_OQ));
      else
        i = clamped;
      _mm_store_si128(reinterpret_cast<__m128i*>(along.index[k] + lane), _mm256_cvtpd_epi32(i));
      _mm256_store_pd(along.weight[k] + lane, nearest ? one : k == 0 ? _mm256_sub_pd(one, f) : f);
    }
  }
  return true;
}

// All taps of eight points, from their neighbours along each dimension.
PFRT_AVX2 void join(const Image& image, const Along* along, Tap8* taps) {
  const int64_t each = image.taps_a_dim(), most = image.most_taps();
  for (int64_t tap = 0; tap < most; ++tap) {
    __m256i pixel = _mm256_setzero_si256(), outside = pixel;
    __m256d weight[2] = {_mm256_set1_pd(1), _mm256_set1_pd(1)};
    int64_t stride = 1, left = tap;
    for (size_t d = image.dims; d-- > 0; left /= each) {
      const size_t k = static_cast<size_t>(left % each);
      // It was stored in halves, and comes from the store buffer in halves alone.
      const int32_t* const stored = along[d].index[k];
      const __m256i index =
          _mm256_set_m128i(_mm_load_si128(reinterpret_cast<const __m128i*>(stored + 4)),
                           _mm_load_si128(reinterpret_cast<const __m128i*>(stored)));
      outside = _mm256_or_si256(outside, index);
      pixel = _mm256_add_epi32(
          pixel, _mm256_mullo_epi32(index, _mm256_set1_epi32(static_cast<int>(stride))));
      stride *= image.lengths[d];
      for (int half = 0; half < 2; ++half)
        weight[half] = _mm256_mul_pd(weight[half], _mm256_load_pd(along[d].weight[k] + 4 * half));
    }
    const __m256 share = _mm256_set_m128(_mm256_cvtpd_ps(weight[1]), _mm256_cvtpd_ps(weight[0]));
    // Pixels without weight are not read: infinity times 0 is NaN.
    const __m256i unused =
        _mm256_or_si256(_mm256_srai_epi32(outside, 31),
                        _mm256_castps_si256(_mm256_cmp_ps(share, _mm256_setzero_ps(), _CMP_EQ_OQ)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(taps[tap].pixel),
                        _mm256_or_si256(pixel, unused));
    _mm256_storeu_ps(taps[tap].weight, share);
  }
}

// |count| points of one channel.
template <int fixed>
PFRT_AVX2_FMA void gather(const float* x, const Tap8* taps, int64_t most, int64_t count, float* y) {
  if (fixed != 0) most = fixed;
  for (int64_t i = 0; i < count; i += kLanes) {
    __m256 sum = _mm256_setzero_ps();
    for (int64_t k = 0; k < most; ++k, ++taps) {
      const __m256i pixel = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(taps->pixel));
      const __m256 here = _mm256_castsi256_ps(_mm256_cmpgt_epi32(pixel, _mm256_set1_epi32(-1)));
      const __m256 pixels = _mm256_mask_i32gather_ps(_mm256_setzero_ps(), x, pixel, here, 4);
      sum = _mm256_fmadd_ps(_mm256_loadu_ps(taps->weight), pixels, sum);
    }
    if (count - i >= kLanes) {
      _mm256_storeu_ps(y + i, sum);
    } else {
      float lanes[kLanes];
      _mm256_storeu_ps(lanes, sum);
      std::copy_n(lanes, count - i, y + i);
    }
  }
}

void sample_vectors(const Run& run, const Image& image) {
  const int64_t tasks = (image.points + kPoints - 1) / kPoints, most = image.most_taps();
  const int64_t dims = static_cast<int64_t>(image.dims);
  run.parallel(image.batch * tasks, [&](int64_t task, uint32_t worker) {
    const int64_t n = task / tasks, first = task % tasks * kPoints;
    const int64_t count = std::min(kPoints, image.points - first);
    Tap8* const taps = run.scratch<Tap8>(worker);
    std::array<double, kPoints * kMostDims> places{};
    load_block(image.grid_dtype,
               element(image.grid_dtype, run.input(1), (n * image.points + first) * dims),
               count * dims, places.data());
    for (int64_t p = 0; p < count; p += kLanes) {
      Along along[kMostDims];
      for (size_t d = 0; d < image.dims; ++d) {
        const double* const place = &places[static_cast<size_t>(p * dims)] + image.dims - 1 - d;
        if (image.mode == Resample::kCubic ||
            !find_vectors(image, place, dims, image.lengths[d], along[d]))
          find_one_by_one(image, place, dims, image.lengths[d], along[d]);
      }
      join(image, along, taps + p / kLanes * most);
    }
    const auto gather_taps = most == 4 ? gather<4> : gather<0>;
    for (int64_t c = 0; c < image.channels && !run.stopped(); ++c) {
      const int64_t channel = n * image.channels + c, to = channel * image.points + first;
      gather_taps(run.input<float>(0) + channel * image.pixels, taps, most, count,
                  run.output<float>(0) + to);
      run.apply_epilogue(to, to + count);
    }
  });
}

// ------------------------------------------------------------------ the node

Result<Image> read(const SnapshotNode& node) {
  PFRT_TRY(need(node, 2, 1));
  const auto x = node.input_dims(0), grid = node.input_dims(1);
  if (x.size() < 3 || x.size() != grid.size())
    return kernel_error("the image and the grid need the same rank of 3 or more, found ", x.size(),
                        " and ", grid.size());
  Image image{};
  image.dtype = node.input_dtype(0);
  image.grid_dtype = node.input_dtype(1);
  if (!kFloats.has(image.grid_dtype) || node.output_dtype(0) != image.dtype)
    return error(Code::kDTYPE_MISMATCH, "the grid is ", dtype_name(image.grid_dtype),
                 " and the output ", dtype_name(node.output_dtype(0)), " for an image of ",
                 dtype_name(image.dtype));
  const std::string_view mode = node.attr_string("mode", "linear");
  image.mode = mode == "nearest"  ? Resample::kNearest
               : mode == "linear" ? Resample::kLinear
                                  : Resample::kCubic;
  const std::string_view padding = node.attr_string("padding_mode", "zeros");
  image.padding = padding == "border"       ? Padding::kBorder
                  : padding == "reflection" ? Padding::kReflection
                                            : Padding::kZeros;
  image.align_corners = node.attr_int("align_corners", 0) != 0;
  image.dims = x.size() - 2;
  if (image.dims > kMostDims)
    return error(Code::kUNSUPPORTED, "an image of ", image.dims, " spatial dimensions: at most ",
                 kMostDims);
  std::copy(x.begin() + 2, x.end(), image.lengths.begin());
  image.batch = x[0];
  image.channels = x[1];
  image.pixels = element_count(x.data() + 2, image.dims);
  image.points = element_count(grid.data() + 1, image.dims);
  if (grid.front() != image.batch || grid.back() != static_cast<int64_t>(image.dims))
    return kernel_error("a grid of dimensions ", dims_text(grid), " does not go with an image of ",
                        dims_text(x));
  std::vector<int64_t> out(grid.begin(), grid.end() - 1);
  out.insert(out.begin() + 1, image.channels);
  PFRT_TRY(need_output_dims(node, 0, out));
  return image;
}

template <typename T>
Kernel sample_kernel(const Image& image) {
  Kernel kernel;
  kernel.scratch_bytes = static_cast<uint64_t>(kPoints * image.most_taps()) * sizeof(Tap<T>);
  kernel.run = [image](const Run& run) {
    sample<T>(run, image);
    return run.stop();
  };
  return kernel;
}

}  // namespace

std::string refuse_grid_sample(const KernelRequest& node) {
  const std::string_view mode = node.attr_string("mode", "linear");
  if (mode != "nearest" && mode != "linear" && mode != "cubic")
    return message("mode is '", mode, "': nearest, linear or cubic");
  const std::string_view padding = node.attr_string("padding_mode", "zeros");
  if (padding != "zeros" && padding != "border" && padding != "reflection")
    return message("padding_mode is '", padding, "': zeros, border or reflection");
  return {};
}

Result<Kernel> make_grid_vectors(const KernelRequest& node) {
  PFRT_ASSIGN(const Image image, read(node));
  if (image.pixels == 0 || image.pixels >= kMostPixels || node.output_elements(0) == 0)
    return make_grid_sample(node);
  Kernel kernel;
  const int64_t most = image.most_taps();
  kernel.scratch_bytes = static_cast<uint64_t>(kPoints / kLanes * most) * sizeof(Tap8);
  kernel.flops = static_cast<double>(2 * most * node.output_elements(0));
  kernel.run = [image](const Run& run) {
    sample_vectors(run, image);
    return run.stop();
  };
  return kernel;
}

Result<Kernel> make_grid_sample(const KernelRequest& node) {
  PFRT_ASSIGN(const Image image, read(node));
  const bool wide =
      component_dtype(image.dtype) == PFRT_DTYPE_FLOAT64 || dtype_is_integer(image.dtype);
  Kernel kernel = wide ? sample_kernel<double>(image) : sample_kernel<float>(image);
  const double taps = static_cast<double>(image.most_taps());
  kernel.flops = 2 * taps * static_cast<double>(node.output_elements(0));
  if (node.output_elements(0) == 0) kernel.run = [](const Run&) { return pfrt_code{PFRT_CODE_OK}; };
  return kernel;
}

}  // namespace pfrt::cpu
