// SPDX-License-Identifier: Apache-2.0
//
// Averages of float32 planes, 8 positions of a row at a time, with the bits of the form for every
// type: sums are kept in double, in the order of taps.
#include <algorithm>
#include <memory>

#include "providers/cpu/isa/target.h"
#include "providers/cpu/kernels/pool/make.h"
#include "providers/cpu/kernels/window/plane_band.h"

namespace pfrt::cpu {
namespace {

struct AverageOf {
  struct Sum {
    __m256d low, high;
  };
  double outer;          // taps that count, of the dimensions but the row's own
  const double* counts;  // taps that count along the row, by position
  PFRT_AVX2_INLINE Sum start() const { return {_mm256_setzero_pd(), _mm256_setzero_pd()}; }
  PFRT_AVX2_INLINE int tap(size_t) const { return 0; }
  PFRT_AVX2_INLINE Sum add(Sum sum, __m256 x, int) const {
    return {sum.low + _mm256_cvtps_pd(_mm256_castps256_ps128(x)),
            sum.high + _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1))};
  }
  PFRT_AVX2_INLINE __m128 divided(__m256d sum, int64_t position) const {
    const __m256d count = _mm256_mul_pd(_mm256_set1_pd(outer), _mm256_loadu_pd(counts + position));
    return _mm256_cvtpd_ps(_mm256_div_pd(sum, _mm256_max_pd(count, _mm256_set1_pd(1))));
  }
  PFRT_AVX2_INLINE __m256 finish(Sum sum, int64_t position) const {
    return _mm256_set_m128(divided(sum.high, position + PlaneBand::kLanes / 2),
                           divided(sum.low, position));
  }
};

struct Plan {
  PoolGeometry geometry;
  PlaneBand band;
  std::vector<double> rows, along;  // taps that count, by row and by position of whole vectors
};

std::vector<double> as_doubles(const std::vector<int64_t>& counts) {
  return std::vector<double>(counts.begin(), counts.end());
}

Plan plan_of(const SnapshotNode& node, PoolGeometry geometry) {
  const Window& w = geometry.window;
  const bool with_pads = node.attr_int("count_include_pad", 0) != 0;
  PlaneBand band(w);
  std::vector<double> rows = as_doubles(pool_tap_counts(w, 0, with_pads));
  std::vector<double> along = as_doubles(pool_tap_counts(w, 1, with_pads));
  along.resize(static_cast<size_t>(band.vectors() * PlaneBand::kLanes), 1);
  return {std::move(geometry), std::move(band), std::move(rows), std::move(along)};
}

}  // namespace

Kernel average_pool_vectors(const SnapshotNode& node, PoolGeometry geometry) {
  const auto plan = std::make_shared<const Plan>(plan_of(node, std::move(geometry)));
  const Window& window = plan->geometry.window;
  const int64_t positions = window.position_count();
  Kernel kernel;
  kernel.flops = static_cast<double>(plan->geometry.planes) * static_cast<double>(positions) *
                 static_cast<double>(window.taps());
  kernel.scratch_bytes = plan->band.bytes();
  kernel.run = [plan, positions](const Run& run) -> pfrt_code {
    const PlaneBand& band = plan->band;
    const Window& w = plan->geometry.window;
    if (positions == 0) return run.stop();
    run.parallel(plan->geometry.planes, [&](int64_t p, uint32_t worker) {
      float* const lines = run.scratch<float>(worker);
      for (int64_t top = 0; top < w.positions[0]; top += band.rows()) {
        if (run.stopped()) return;
        const int64_t rows = std::min(band.rows(), w.positions[0] - top);
        const int64_t start = p * positions + top * band.length();
        band.fill(run.input<float>(0) + p * w.image_size(), top, rows, lines);
        band_rows(run, band, top, rows, lines, run.output<float>(0) + start, [&](int64_t row) {
          return AverageOf{plan->rows[static_cast<size_t>(row)], plan->along.data()};
        });
        run.apply_epilogue(start, start + rows * band.length());
      }
    });
    return run.stop();
  };
  return kernel;
}

}  // namespace pfrt::cpu
