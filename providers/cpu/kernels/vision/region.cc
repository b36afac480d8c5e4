// SPDX-License-Identifier: Apache-2.0
//
// Pools of regions of interest: RoiAlign and MaxRoiPool.
#include <algorithm>
#include <cmath>

#include "providers/cpu/elements/convert.h"
#include "providers/cpu/elements/greater.h"
#include "providers/cpu/elements/load.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernel/stop_poll.h"
#include "providers/cpu/kernels/vision/vision.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kChannels = 32;  // of a task

// Images [batch, channels, height, width], regions [regions, ...], output [regions, channels,
// rows, columns].
struct Regions {
  pfrt_dtype dtype, region_type;
  int64_t batch, channels, height, width, regions, rows, columns;
  int64_t channel_blocks() const { return (channels + kChannels - 1) / kChannels; }
};

Result<Regions> read_regions(const SnapshotNode& node, int64_t coordinates) {
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

// Runs a task for each region and block of channels: fn(region, first channel, channels).
template <typename Fn>
void for_regions(const Run& run, const Regions& r, Fn&& fn) {
  run.parallel(r.regions * r.channel_blocks(), [&](int64_t task, uint32_t) {
    const int64_t first = task % r.channel_blocks() * kChannels;
    fn(task / r.channel_blocks(), first, std::min(kChannels, r.channels - first));
  });
}

// The image of the region, or -1 when there is no such image.
int64_t image_of(const Regions& r, double index) {
  return index >= 0 && index < static_cast<double>(r.batch) ? static_cast<int64_t>(index) : -1;
}

// The four pixels about a place and their weights.
struct Corners {
  int64_t at[4];
  double weight[4];
};

Corners corners(double y, double x, int64_t height, int64_t width) {
  const int64_t top = std::min(static_cast<int64_t>(y), height - 1),
                left = std::min(static_cast<int64_t>(x), width - 1);
  const int64_t bottom = std::min(top + 1, height - 1), right = std::min(left + 1, width - 1);
  const double v = top == bottom ? 0 : y - static_cast<double>(top),
               u = left == right ? 0 : x - static_cast<double>(left);
  return {{top * width + left, top * width + right, bottom * width + left, bottom * width + right},
          {(1 - v) * (1 - u), (1 - v) * u, v * (1 - u), v * u}};
}

// ------------------------------------------------------------------ RoiAlign

struct Align {
  bool maximum, half_pixel;
  int64_t sampling;  // 0: as many as a bin is pixels wide
  double scale;
};

struct AlignedRegion {
  double start[2], bin[2];  // vertical, horizontal
  int64_t samples[2];
};

// False when the region is not finite or too large to sample.
bool place(const Regions& r, const Align& align, const double* roi, AlignedRegion& out) {
  for (int d = 0; d < 2; ++d) {
    const double offset = align.half_pixel ? 0.5 : 0;
    out.start[d] = roi[1 - d] * align.scale - offset;
    double length = roi[3 - d] * align.scale - offset - out.start[d];
    if (!align.half_pixel) length = std::max(length, 1.0);
    out.bin[d] = length / static_cast<double>(d == 0 ? r.rows : r.columns);
    const double samples =
        align.sampling > 0 ? static_cast<double>(align.sampling) : std::ceil(out.bin[d]);
    if (!(std::fabs(out.start[d]) < 1e15 && std::fabs(out.bin[d]) < 1e15 && samples < 1e6))
      return false;
    out.samples[d] = std::max<int64_t>(0, static_cast<int64_t>(samples));
  }
  return true;
}

void align_bin(const Run& run, Pace& pace, const Regions& r, const Align& align,
               const AlignedRegion& region, int64_t plane, int64_t channels, int64_t row,
               int64_t column, double* sums) {
  std::fill(sums, sums + channels, 0.0);
  const LoadFn<double> load = load_fn<double>(r.dtype);
  const auto at = [&](int d, int64_t bin, int64_t sample) {
    return region.start[d] + static_cast<double>(bin) * region.bin[d] +
           (static_cast<double>(sample) + 0.5) * region.bin[d] /
               static_cast<double>(region.samples[d]);
  };
  const double height = static_cast<double>(r.height), width = static_cast<double>(r.width);
  const bool has_pixels = r.height > 0 && r.width > 0;
  bool first = true;
  for (int64_t i = 0; i < region.samples[0]; ++i) {
    for (int64_t j = 0; j < region.samples[1]; ++j) {
      if (pace.stopped(8 * channels)) return;
      const double y = at(0, row, i), x = at(1, column, j);
      const bool inside = has_pixels && y >= -1 && y <= height && x >= -1 && x <= width;
      const Corners c =
          inside ? corners(std::max(y, 0.0), std::max(x, 0.0), r.height, r.width) : Corners{};
      for (int64_t k = 0; k < channels; ++k) {
        double part[4];
        for (int p = 0; p < 4; ++p) {
          double pixel = 0;
          if (inside) load(&pixel, run.input(0), (plane + k) * r.height * r.width + c.at[p], 1, 1);
          part[p] = c.weight[p] * pixel;
        }
        // The reference implementation's maximum is over weighted pixels, not over samples.
        const double most =
            greater_or_nan(greater_or_nan(part[0], part[1]), greater_or_nan(part[2], part[3]));
        if (!align.maximum)
          sums[k] += part[0] + part[1] + part[2] + part[3];
        else
          sums[k] = first ? most : greater_or_nan(most, sums[k]);
      }
      first = false;
    }
  }
  if (align.maximum) return;
  const double count =
      static_cast<double>(std::max<int64_t>(1, region.samples[0] * region.samples[1]));
  for (int64_t k = 0; k < channels; ++k) sums[k] /= count;
}

// fn(pace, row, column, sums) fills the |channels| values of one bin, for every bin of a region.
template <typename Fn>
void for_bins(const Run& run, const Regions& r, int64_t region, int64_t channel, int64_t channels,
              Fn&& fn) {
  const StoreFn<double> store = store_fn<double>(r.dtype);
  double sums[kChannels];
  Pace pace(run);
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

// The coordinates of a region.
void load_region(const Run& run, const Regions& r, int64_t region, int64_t n, double* out) {
  load_block(r.region_type, element(r.region_type, run.input(1), region * n), n, out);
}

// ------------------------------------------------------------------ MaxRoiPool

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

Result<Kernel> make_roi_align(const KernelRequest& node) {
  PFRT_ASSIGN(const Regions r, read_regions(node, 4));
  PFRT_TRY(need(node, 3, 1));
  PFRT_TRY(need_types(node, {2}, kIndices));
  if (node.input_elements(2) != r.regions)
    return kernel_error("there are ", node.input_elements(2), " batch indices for ", r.regions,
                        " regions");
  const std::string_view mode = node.attr_string("mode", "avg");
  if (mode != "avg" && mode != "max")
    return kernel_error("mode is '", mode, "', expected avg or max");
  const Align align{
      mode == "max",
      node.attr_string("coordinate_transformation_mode", "half_pixel") == "half_pixel",
      std::max<int64_t>(0, node.attr_int("sampling_ratio", 0)),
      static_cast<double>(node.attr_float("spatial_scale", 1))};
  Kernel kernel;
  kernel.flops = 32.0 * static_cast<double>(node.output_elements(0));
  kernel.run = [=, index_type = node.input_dtype(2)](const Run& run) -> pfrt_code {
    const auto image = [&](int64_t region) {
      int64_t index = 0;
      load_block(index_type, element(index_type, run.input(2), region), 1, &index);
      return image_of(r, static_cast<double>(index));
    };
    for (int64_t i = 0; i < r.regions; ++i) {
      double roi[4];
      AlignedRegion placed;
      load_region(run, r, i, 4, roi);
      if (image(i) < 0)
        return run.fail(Code::kINVALID_ARGUMENT, "RoiAlign: region ", i, " is of no image of ",
                        r.batch);
      if (!place(r, align, roi, placed))
        return run.fail(Code::kINVALID_ARGUMENT, "RoiAlign: region ", i,
                        " is not finite or too large to sample");
    }
    for_regions(run, r, [&](int64_t region, int64_t channel, int64_t channels) {
      double roi[4];
      AlignedRegion placed;
      load_region(run, r, region, 4, roi);
      if (!place(r, align, roi, placed)) return;
      const int64_t plane = image(region) * r.channels + channel;
      for_bins(run, r, region, channel, channels,
               [&](Pace& pace, int64_t row, int64_t column, double* sums) {
                 align_bin(run, pace, r, align, placed, plane, channels, row, column, sums);
               });
    });
    return run.stop();
  };
  return kernel;
}

Result<Kernel> make_max_roi_pool(const KernelRequest& node) {
  PFRT_ASSIGN(const Regions r, read_regions(node, 5));
  const double scale = static_cast<double>(node.attr_float("spatial_scale", 1));
  Kernel kernel;
  kernel.flops = 16.0 * static_cast<double>(node.output_elements(0));
  kernel.run = [=](const Run& run) -> pfrt_code {
    for (int64_t i = 0; i < r.regions; ++i) {
      double roi[5];
      load_region(run, r, i, 5, roi);
      if (image_of(r, roi[0]) < 0)
        return run.fail(Code::kINVALID_ARGUMENT, "MaxRoiPool: region ", i, " is of image ", roi[0],
                        ", there are ", r.batch);
      for (int d = 1; d < 5; ++d)
        if (!(std::fabs(roi[d] * scale) < 1e15))
          return run.fail(Code::kINVALID_ARGUMENT, "MaxRoiPool: region ", i, " is not finite");
    }
    for_regions(run, r, [&](int64_t region, int64_t channel, int64_t channels) {
      double roi[5], pixel = 0;
      load_region(run, r, region, 5, roi);
      for (int d = 1; d < 5; ++d) roi[d] = std::round(roi[d] * scale);
      const int64_t plane = image_of(r, roi[0]) * r.channels + channel;
      const LoadFn<double> load = load_fn<double>(r.dtype);
      const auto bin = [&](Pace& pace, int64_t row, int64_t column, double* most) {
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
