// SPDX-License-Identifier: Apache-2.0
//
// MaxRoiPool, and what it shares with RoiAlign.
#include <algorithm>
#include <cmath>

#include "providers/cpu/elements/convert.h"
#include "providers/cpu/elements/greater.h"
#include "providers/cpu/elements/load.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernel/stop_poll.h"
#include "providers/cpu/kernels/vision/regions.h"
#include "providers/cpu/kernels/vision/vision.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kChannels = 32;  // of a task

// fn(pace, row, column, sums) fills the |channels| values of one bin, for every bin of a region.
template <typename Fn>
void for_bins(const Run& run, const Regions& r, int64_t region, int64_t channel, int64_t channels,
              Fn&& fn) {
  const StoreFn<double> store = store_fn<double>(r.dtype);
  double sums[kChannels];
  StopPoll pace(run);
  for (int64_t row = 0; row < r.rows; ++row) {
    for (int64_t column = 0; column < r.columns; ++column) {
      if (pace.stopped(8 * channels)) return;
      fn(pace, row, column, sums);
      for (int64_t k = 0; k < channels; ++k)
        store(run.output(0),
              ((region * r.channels + channel + k) * r.rows + row) * r.columns + column, &sums[k],
              1);
    }
  }
}

// Runs a task for each region and block of channels: fn(region, first channel, channels).
template <typename Fn>
void for_regions(const Run& run, const Regions& r, Fn&& fn) {
  const int64_t blocks = (r.channels + kChannels - 1) / kChannels;
  run.parallel(r.regions * blocks, [&](int64_t task, uint32_t) {
    const int64_t first = task % blocks * kChannels;
    fn(task / blocks, first, std::min(kChannels, r.channels - first));
  });
}

// The pixels of bin |i| of |bins| along one dimension: [first, last).
struct Span {
  int64_t first, last;
};

Span bin_span(double start, double end, int64_t i, int64_t bins, int64_t size) {
  const double length = std::max(end - start + 1, 1.0), bin = length / static_cast<double>(bins);
  const double first = std::floor(static_cast<double>(i) * bin) + start,
               last = std::ceil(static_cast<double>(i + 1) * bin) + start;
  const double most = static_cast<double>(size);
  return {static_cast<int64_t>(std::clamp(first, 0.0, most)),
          static_cast<int64_t>(std::clamp(last, 0.0, most))};
}

}  // namespace

Result<Regions> Regions::read(const SnapshotNode& node, int64_t coordinates) {
  PFRT_TRY(need(node, 2, 1));
  PFRT_TRY(need_types(node, {1}, kFloats));
  const auto x = node.input_dims(0), rois = node.input_dims(1), y = node.output_dims(0);
  if (x.size() != 4 || rois.size() != 2 || rois[1] != coordinates)
    return kernel_error("images ", dims_text(x), " and regions ", dims_text(rois),
                        " must be [N, C, H, W] and [regions, ", coordinates, "]");
  if (y.size() != 4 || y[0] != rois[0] || y[1] != x[1])
    return kernel_error("the output ", dims_text(y), " must be [", rois[0], ", ", x[1],
                        ", rows, columns]");
  return Regions{
      node.input_dtype(0), node.input_dtype(1), x[0], x[1], x[2], x[3], rois[0], y[2], y[3]};
}

Result<Kernel> make_max_roi_pool(const KernelRequest& node) {
  PFRT_ASSIGN(const Regions r, Regions::read(node, 5));
  const double scale = static_cast<double>(node.attr_float("spatial_scale", 1));
  Kernel kernel;
  kernel.flops = 16.0 * static_cast<double>(node.output_elements(0));
  kernel.run = [=](const Run& run) -> pfrt_code {
    for (int64_t i = 0; i < r.regions; ++i) {
      double roi[5];
      r.load(run, i, 5, roi);
      if (r.image_of(roi[0]) < 0)
        return run.fail(Code::kINVALID_ARGUMENT, "MaxRoiPool: region ", i, " is of image ", roi[0],
                        ", there are ", r.batch);
      for (int d = 1; d < 5; ++d)
        if (!(std::fabs(roi[d] * scale) < 1e15))
          return run.fail(Code::kINVALID_ARGUMENT, "MaxRoiPool: region ", i, " is not finite");
    }
    for_regions(run, r, [&](int64_t region, int64_t channel, int64_t channels) {
      double roi[5], pixel = 0;
      r.load(run, region, 5, roi);
      for (int d = 1; d < 5; ++d) roi[d] = std::round(roi[d] * scale);
      const int64_t plane = r.image_of(roi[0]) * r.channels + channel;
      const LoadFn<double> load = load_fn<double>(r.dtype);
      const auto bin = [&](StopPoll& pace, int64_t row, int64_t column, double* most) {
        const Span down = bin_span(roi[2], roi[4], row, r.rows, r.height),
                   across = bin_span(roi[1], roi[3], column, r.columns, r.width);
        const bool empty = down.first >= down.last || across.first >= across.last;
        for (int64_t k = 0; k < channels; ++k) {
          most[k] = empty ? 0 : -INFINITY;
          for (int64_t y = down.first; y < down.last && !empty; ++y) {
            if (pace.stopped(4 * (across.last - across.first))) return;
            for (int64_t x = across.first; x < across.last; ++x) {
              load(&pixel, run.input(0), ((plane + k) * r.height + y) * r.width + x, 1, 1);
              most[k] = greater_or_nan(pixel, most[k]);
            }
          }
        }
      };
      for_bins(run, r, region, channel, channels, bin);
    });
    return run.stop();
  };
  return kernel;
}

}  // namespace pfrt::cpu
