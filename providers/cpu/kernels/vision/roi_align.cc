// SPDX-License-Identifier: Apache-2.0
//
// RoiAlign. The pixels and weights of a region's bins are found once for all channels. In each
// plane the pixels of a row of bins are summed down to a line, and the line to bins.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "providers/cpu/elements/convert.h"
#include "providers/cpu/elements/greater.h"
#include "providers/cpu/elements/load.h"
#include "providers/cpu/isa/isa.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernel/stop_poll.h"
#include "providers/cpu/kernels/vision/regions.h"
#include "providers/cpu/kernels/vision/roi_taps.h"
#include "providers/cpu/kernels/vision/vision.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kChannels = 32;       // of a task
constexpr int64_t kMostRegions = 64;    // of a task
constexpr int64_t kTapBytes = 1 << 20;  // memory for the taps of a task, most of it unused
constexpr int64_t kNear = 1 << 18;      // bytes of a plane that is fetched as a whole

struct Align {
  bool maximum, half_pixel;
  int64_t sampling;  // 0: as many as a bin is pixels wide
  double scale;
  bool vectors;  // for averages
};

// Both dimensions, vertical first. False when the region is not finite or too large to sample.
bool sample(const Regions& r, const Align& align, const double* roi, RoiSamples* out) {
  for (int d = 0; d < 2; ++d) {
    const double offset = align.half_pixel ? 0.5 : 0;
    out[d].start = roi[1 - d] * align.scale - offset;
    double length = roi[3 - d] * align.scale - offset - out[d].start;
    if (!align.half_pixel) length = std::max(length, 1.0);
    out[d].bin = length / static_cast<double>(d == 0 ? r.rows : r.columns);
    const double samples =
        align.sampling > 0 ? static_cast<double>(align.sampling) : std::ceil(out[d].bin);
    if (!(std::fabs(out[d].start) < 1e15 && std::fabs(out[d].bin) < 1e15 && samples < 1e6))
      return false;
    out[d].samples = std::max<int64_t>(0, static_cast<int64_t>(samples));
  }
  return true;
}

// A region with its taps.
template <typename T>
struct Placed {
  static uint64_t bytes(const Regions& r) {
    return RoiTaps<T>::bytes(r.height, r.rows) + RoiTaps<T>::bytes(r.width, r.columns) +
           RoiVectors::bytes(r.columns);
  }
  char* place(const Regions& r, char* memory) {
    memory = rows.place(memory, r.height, r.rows);
    memory = columns.place(memory, r.width, r.columns);
    return vectors.place(memory, r.columns);
  }

  bool find(const Align& align, const RoiSamples* samples, double* exact, StopPoll& pace) {
    if (!rows.find(samples[0], align.maximum, exact, pace)) return false;
    if (!columns.find(samples[1], align.maximum, exact, pace)) return false;
    low = high = 0;
    if (columns.taps > 0) {
      const auto [least, greatest] = std::minmax_element(columns.at, columns.at + columns.taps);
      low = *least;
      high = *greatest + 1;
    }
    if constexpr (std::is_same_v<T, float>)
      by_vectors = align.vectors && !align.maximum && columns.taps > 0 &&
                   vectors.arrange(columns, low, high);
    return true;
  }

  RoiTaps<T> rows, columns;
  int64_t low = 0, high = 0;  // pixels across, of all bins
  RoiVectors vectors;
  bool by_vectors = false;
};

// The regions of a task, and what they share.
template <typename T>
struct Scratch {
  static int64_t exact(const Regions& r) {
    return std::max(RoiTaps<T>::most(r.height, r.rows), RoiTaps<T>::most(r.width, r.columns));
  }
  static int64_t regions(const Regions& r) {
    return std::clamp<int64_t>(kTapBytes / static_cast<int64_t>(Placed<T>::bytes(r)), 1,
                               kMostRegions);
  }
  static uint64_t bytes(const Regions& r) {
    return static_cast<uint64_t>(regions(r)) * Placed<T>::bytes(r) +
           static_cast<uint64_t>(exact(r)) * sizeof(double) +
           static_cast<uint64_t>(2 * r.width + r.columns + RoiVectors::kBeyond) * sizeof(T);
  }
  Scratch(const Regions& r, char* memory) {
    for (int64_t i = 0; i < regions(r); ++i) memory = placed[i].place(r, memory);
    exact_weights = reinterpret_cast<double*>(memory);
    line = reinterpret_cast<T*>(exact_weights + exact(r));
    loaded = line + r.width + RoiVectors::kBeyond;
    bins = loaded + r.width;
  }

  Placed<T> placed[kMostRegions];
  double* exact_weights;
  T* line;    // what a row of bins has of each pixel across
  T* loaded;  // pixels as T
  T* bins;
};

template <bool maximum, typename T>
void take_row(T* line, const T* x, T weight, bool begins, int64_t n) {
  if (begins) {
    for (int64_t i = 0; i < n; ++i)
      line[i] = maximum ? greater_or_nan(weight * x[i], T{-INFINITY}) : weight * x[i];
  } else {
    for (int64_t i = 0; i < n; ++i)
      line[i] = maximum ? greater_or_nan(weight * x[i], line[i]) : line[i] + weight * x[i];
  }
}

// The bins of row |row| in the plane that begins at element |plane|.
template <bool maximum, typename T>
void align_row(const Regions& r, const void* x, int64_t plane, int64_t row, const Placed<T>& placed,
               Scratch<T>& s, T* y) {
  const RoiTaps<T>&rows = placed.rows, &columns = placed.columns;
  const int64_t begin = rows.first[row], end = rows.first[row + 1];
  const int64_t n = begin == end ? 0 : placed.high - placed.low;
  T* const line = s.line;
  // Most pixels between bins that are far apart are of no use.
  const bool sparse = n > 4 * columns.taps;
  for (int64_t k = begin; k < end && n > 0; ++k) {
    const int64_t from = plane + rows.at[k] * r.width;
    if (sparse) {
      for (int64_t j = 0; j < columns.taps; ++j) {
        T pixel;
        const T* const p = read_block(r.dtype, x, from + columns.at[j], 1, &pixel);
        take_row<maximum>(line + j, p, rows.weight[k], k == begin, 1);
      }
    } else {
      take_row<maximum>(line, read_block(r.dtype, x, from + placed.low, n, s.loaded),
                        rows.weight[k], k == begin, n);
    }
  }
  for (int64_t i = 0; i < columns.bins; ++i) {
    const bool outside = rows.outside[row] != 0 || columns.outside[i] != 0;
    const int64_t first = columns.first[i], last = n == 0 ? first : columns.first[i + 1];
    T sum = maximum && !outside && first < last ? T{-INFINITY} : T{0};
    for (int64_t k = first; k < last; ++k) {
      const T part = columns.weight[k] * line[sparse ? k : columns.at[k] - placed.low];
      sum = maximum ? greater_or_nan(part, sum) : sum + part;
    }
    y[i] = sum;
  }
}

// The bins of a region in a plane; |to| is the first of them. False when the run is to stop.
template <typename T>
bool align_plane(const Run& run, StopPoll& pace, const Regions& r, bool maximum, int64_t plane,
                 const Placed<T>& placed, Scratch<T>& s, int64_t to) {
  if constexpr (std::is_same_v<T, float>) {
    if (placed.by_vectors) {
      if (pace.stopped(placed.rows.taps + r.rows * placed.columns.taps)) return false;
      placed.vectors.average(run.input<float>(0) + plane, placed.rows, placed.columns, s.line,
                             run.output<float>(0) + to);
      return true;
    }
  }
  const int64_t across = placed.columns.taps;
  for (int64_t row = 0; row < r.rows; ++row, to += r.columns) {
    const int64_t down = placed.rows.first[row + 1] - placed.rows.first[row];
    if (pace.stopped(down * std::min(placed.high - placed.low, 4 * across) + across + r.columns))
      return false;
    T* const y = place_block(r.dtype, run.output(0), to, s.bins);
    if (maximum)
      align_row<true>(r, run.input(0), plane, row, placed, s, y);
    else
      align_row<false>(r, run.input(0), plane, row, placed, s, y);
    write_block(r.dtype, run.output(0), to, r.columns, y);
  }
  return true;
}

struct Roi {
  int64_t image;
  RoiSamples samples[2];
};

Roi read_roi(const Run& run, const Regions& r, pfrt_dtype index_type, const Align& align,
             int64_t region, bool& finite) {
  Roi out;
  int64_t index = 0;
  load_block(index_type, element(index_type, run.input(2), region), 1, &index);
  double corners[4];
  r.load(run, region, 4, corners);
  out.image = r.image_of(static_cast<double>(index));
  finite = sample(r, align, corners, out.samples);
  return out;
}

// Regions read pieces of rows, in an order that no prefetcher of a processor follows.
void fetch(const Run& run, const Regions& r, int64_t plane) {
  const int64_t bytes = r.height * r.width * static_cast<int64_t>(dtype_size(r.dtype));
  const char* const x = run.input<char>(0) + plane * bytes;
  for (int64_t i = 0; bytes <= kNear && i < bytes; i += 64) __builtin_prefetch(x + i, 0, 2);
}

// Takes planes one after another, and in each all regions of a task: they may share its pixels.
template <typename T>
void align_all(const Run& run, const Regions& r, pfrt_dtype index_type, const Align& align) {
  const int64_t most = Scratch<T>::regions(r), groups = (r.regions + most - 1) / most;
  const int64_t blocks = (r.channels + kChannels - 1) / kChannels;
  run.parallel(groups * blocks, [&](int64_t task, uint32_t worker) {
    const int64_t begin = task / blocks * most, count = std::min(most, r.regions - begin);
    const int64_t channel = task % blocks * kChannels;
    Scratch<T> s(r, run.scratch<char>(worker));
    StopPoll pace(run);
    int64_t images[kMostRegions];
    for (int64_t i = 0; i < count; ++i) {
      bool finite = false;
      const Roi roi = read_roi(run, r, index_type, align, begin + i, finite);
      images[i] = roi.image;
      if (!finite || !s.placed[i].find(align, roi.samples, s.exact_weights, pace)) return;
    }
    for (int64_t c = channel; c < std::min(channel + kChannels, r.channels); ++c) {
      if (count > 1) fetch(run, r, images[0] * r.channels + c);
      for (int64_t i = 0; i < count; ++i)
        if (!align_plane(run, pace, r, align.maximum,
                         (images[i] * r.channels + c) * r.height * r.width, s.placed[i], s,
                         ((begin + i) * r.channels + c) * r.rows * r.columns))
          return;
    }
  });
}

}  // namespace

Result<Kernel> make_roi_align(const KernelRequest& node) {
  PFRT_ASSIGN(const Regions r, Regions::read(node, 4));
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
      static_cast<double>(node.attr_float("spatial_scale", 1)),
      r.dtype == PFRT_DTYPE_FLOAT32 && isa() >= Isa::kAvx2};
  const bool wide = r.dtype == PFRT_DTYPE_FLOAT64, any = node.output_elements(0) > 0;
  Kernel kernel;
  kernel.flops = 32.0 * static_cast<double>(node.output_elements(0));
  if (any) kernel.scratch_bytes = wide ? Scratch<double>::bytes(r) : Scratch<float>::bytes(r);
  kernel.run = [=, index_type = node.input_dtype(2)](const Run& run) -> pfrt_code {
    for (int64_t i = 0; i < r.regions; ++i) {
      bool finite = false;
      if (read_roi(run, r, index_type, align, i, finite).image < 0)
        return run.fail(Code::kINVALID_ARGUMENT, "RoiAlign: region ", i, " is of no image of ",
                        r.batch);
      if (!finite)
        return run.fail(Code::kINVALID_ARGUMENT, "RoiAlign: region ", i,
                        " is not finite or too large to sample");
    }
    if (!any) return run.stop();
    if (wide)
      align_all<double>(run, r, index_type, align);
    else
      align_all<float>(run, r, index_type, align);
    return run.stop();
  };
  return kernel;
}

}  // namespace pfrt::cpu
