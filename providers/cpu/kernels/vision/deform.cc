// SPDX-License-Identifier: Apache-2.0
//
// DeformConv: a convolution whose taps are moved by offsets that come with the input, and weighed
// by a mask. Each block of output positions gathers its columns by linear interpolation, and they
// are multiplied by the weights of all output channels of the group.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "providers/cpu/elements/load.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/vision/vision.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kPositions = 32;  // of a block
constexpr size_t kMostDims = 3;
constexpr int64_t kMostCorners = 1 << kMostDims;

struct Deform {
  size_t rank;
  int64_t batch, channels, groups, offset_groups, outputs, taps;
  int64_t in_pixels, out_pixels;
  std::array<int64_t, kMostDims> in, out, kernel, strides, dilations, pads;
  pfrt_dtype types[5];
  bool biased, masked;
  int64_t group_in() const { return channels / groups; }
  int64_t group_out() const { return outputs / groups; }
};

// The places of a tap at each position of a block: pixels and their weights.
template <typename T>
struct Places {
  int64_t at[kMostCorners][kPositions];
  T weight[kMostCorners][kPositions];
};

// Pixels outside the image are zero; |along| holds the offsets of one dimension after another.
template <typename T>
void place_tap(const Deform& d, int64_t tap, int64_t first, int64_t n, const T (*along)[kPositions],
               const T* mask, Places<T>& places) {
  std::array<int64_t, kMostDims> index{};
  for (size_t k = d.rank, rest = static_cast<size_t>(tap); k-- > 0;) {
    index[k] = static_cast<int64_t>(rest) % d.kernel[k];
    rest /= static_cast<size_t>(d.kernel[k]);
  }
  const int64_t corners = int64_t{1} << d.rank;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t c = 0; c < corners; ++c) {
      places.at[c][i] = 0;
      places.weight[c][i] = mask[i];
    }
    int64_t rest = first + i, pitch = 1;
    for (size_t k = d.rank; k-- > 0;) {
      const int64_t o = rest % d.out[k];
      rest /= d.out[k];
      const double where =
          static_cast<double>(o * d.strides[k] - d.pads[k] + index[k] * d.dilations[k]) +
          static_cast<double>(along[k][i]);
      const bool inside = where > -1 && where < static_cast<double>(d.in[k]);
      const double low = inside ? std::floor(where) : 0;
      const int64_t pixel = static_cast<int64_t>(low);
      const T part = static_cast<T>(inside ? where - low : 0);
      for (int64_t c = 0; c < corners; ++c) {
        const bool upper = (c >> k & 1) != 0;
        const int64_t p = pixel + upper;
        const bool counts = inside && p >= 0 && p < d.in[k];
        places.at[c][i] += (counts ? p : 0) * pitch;
        places.weight[c][i] *= counts ? (upper ? part : 1 - part) : T{0};
      }
      pitch *= d.in[k];
    }
  }
}

// The columns of one image, group and block of positions: [channel of the group][tap][position].
template <typename T>
void gather(const Run& run, const Deform& d, const T* x, int64_t image, int64_t group,
            int64_t first, int64_t n, T* columns) {
  const int64_t per_offset_group = d.channels / d.offset_groups;
  const int64_t begin = group * d.group_in(), end = begin + d.group_in();
  const LoadFn<T> load_offset = load_fn<T>(d.types[2]);
  const int64_t corners = int64_t{1} << d.rank, dims = static_cast<int64_t>(d.rank);
  T along[kMostDims][kPositions], mask[kPositions];
  Places<T> places;
  std::fill(mask, mask + kPositions, T{1});
  for (int64_t og = begin / per_offset_group; og * per_offset_group < end; ++og) {
    const int64_t from = std::max(begin, og * per_offset_group),
                  to = std::min(end, (og + 1) * per_offset_group);
    for (int64_t tap = 0; tap < d.taps; ++tap) {
      const int64_t field = (image * d.offset_groups + og) * d.taps + tap;
      for (int64_t k = 0; k < dims; ++k)
        load_offset(along[k], run.input(2), (field * dims + k) * d.out_pixels + first, 1, n);
      if (d.masked) load_fn<T>(d.types[4])(mask, run.input(4), field * d.out_pixels + first, 1, n);
      place_tap(d, tap, first, n, along, mask, places);
      for (int64_t c = from; c < to; ++c) {
        const T* const plane = x + (image * d.channels + c) * d.in_pixels;
        T* const column = columns + ((c - begin) * d.taps + tap) * kPositions;
        for (int64_t i = 0; i < n; ++i) {
          T sum = 0;
          for (int64_t k = 0; k < corners; ++k) sum += places.weight[k][i] * plane[places.at[k][i]];
          column[i] = sum;
        }
      }
    }
  }
}

template <typename T>
void multiply(const Run& run, const Deform& d, const T* weights, const T* bias, int64_t image,
              int64_t group, int64_t first, int64_t n, const T* columns) {
  const int64_t depth = d.group_in() * d.taps;
  const StoreFn<T> store = store_fn<T>(d.types[0]);
  for (int64_t o = group * d.group_out(); o < (group + 1) * d.group_out(); ++o) {
    T sums[kPositions];
    std::fill(sums, sums + kPositions, bias ? bias[o] : T{0});
    const T* const w = weights + o * depth;
    for (int64_t k = 0; k < depth; ++k)
      for (int64_t i = 0; i < n; ++i) sums[i] += w[k] * columns[k * kPositions + i];
    store(run.output(0), (image * d.outputs + o) * d.out_pixels + first, sums, n);
  }
}

// Returns |n| elements of input |i| as T: in place, or in |copy|.
template <typename T>
const T* whole(const Run& run, uint32_t i, pfrt_dtype dtype, int64_t n, std::vector<T>& copy) {
  if (dtype == (sizeof(T) == 8 ? PFRT_DTYPE_FLOAT64 : PFRT_DTYPE_FLOAT32)) return run.input<T>(i);
  copy.resize(static_cast<size_t>(n));
  load_fn<T>(dtype)(copy.data(), run.input(i), 0, 1, n);
  return copy.data();
}

template <typename T>
Kernel deform_kernel(const SnapshotNode& node, const Deform& d) {
  const int64_t depth = d.group_in() * d.taps;
  const int64_t blocks = (d.out_pixels + kPositions - 1) / kPositions;
  Kernel kernel;
  kernel.flops = 2.0 * static_cast<double>(node.output_elements(0)) * static_cast<double>(depth);
  kernel.scratch_bytes = static_cast<uint64_t>(depth) * kPositions * sizeof(T);
  kernel.run = [=](const Run& run) -> pfrt_code {
    std::vector<T> x_copy, w_copy, b_copy;
    const T* const x = whole(run, 0, d.types[0], d.batch * d.channels * d.in_pixels, x_copy);
    const T* const w = whole(run, 1, d.types[1], d.outputs * depth, w_copy);
    const T* const b = d.biased ? whole(run, 3, d.types[3], d.outputs, b_copy) : nullptr;
    run.parallel(d.batch * d.groups * blocks, [&](int64_t task, uint32_t worker) {
      if (run.stopped()) return;
      const int64_t first = task % blocks * kPositions, group = task / blocks % d.groups,
                    image = task / blocks / d.groups;
      const int64_t n = std::min(kPositions, d.out_pixels - first);
      T* const columns = run.scratch<T>(worker);
      gather(run, d, x, image, group, first, n, columns);
      multiply(run, d, w, b, image, group, first, n, columns);
    });
    return run.stop();
  };
  return kernel;
}

// Attribute |name| of the rank's length, or |fallback| in each dimension.
Status read_list(const SnapshotNode& node, std::string_view name, int64_t fallback, size_t n,
                 size_t rank, std::array<int64_t, kMostDims>& to) {
  const auto given = node.attr_ints(name);
  if (!given.empty() && given.size() != n)
    return kernel_error("attribute ", name, " has ", given.size(), " entries, needs ", n);
  for (size_t k = 0; k < rank; ++k) to[k] = given.empty() ? fallback : given[k];
  return {};
}

Status check_dims(const SnapshotNode& node, uint32_t i, const std::vector<int64_t>& wanted) {
  if (same_dims(node.input_dims(i), wanted)) return {};
  return kernel_error("input ", i, " has dimensions ", dims_text(node.input_dims(i)), ", needs ",
                      dims_text(wanted));
}

Result<Deform> read_deform(const SnapshotNode& node) {
  PFRT_TRY(need(node, 3, 1));
  PFRT_TRY(need_types(node, {1, 2, 3, 4}, kFloats));
  const auto x = node.input_dims(0), w = node.input_dims(1), y = node.output_dims(0);
  Deform d{};
  d.rank = x.size() - 2;
  if (w.size() != x.size() || y.size() != x.size())
    return kernel_error("weights ", dims_text(w), " do not go with an input ", dims_text(x));
  PFRT_TRY(read_list(node, "strides", 1, d.rank, d.rank, d.strides));
  PFRT_TRY(read_list(node, "dilations", 1, d.rank, d.rank, d.dilations));
  PFRT_TRY(read_list(node, "pads", 0, 2 * d.rank, d.rank, d.pads));
  d.batch = x[0];
  d.channels = x[1];
  d.outputs = w[0];
  d.groups = node.attr_int("group", 1);
  d.offset_groups = node.attr_int("offset_group", 1);
  if (d.groups < 1 || d.channels != w[1] * d.groups || d.outputs % d.groups != 0)
    return kernel_error("weights ", dims_text(w), " do not take ", d.channels, " channels in ",
                        d.groups, " groups");
  if (d.offset_groups < 1 || d.channels % d.offset_groups != 0)
    return kernel_error(d.channels, " channels do not divide into ", d.offset_groups,
                        " offset groups");
  d.taps = d.in_pixels = d.out_pixels = 1;
  std::vector<int64_t> offsets{d.batch, 0}, masks{d.batch, 0};
  for (size_t k = 0; k < d.rank; ++k) {
    d.in[k] = x[k + 2];
    d.out[k] = y[k + 2];
    d.kernel[k] = w[k + 2];
    d.taps *= d.kernel[k];
    d.in_pixels *= d.in[k];
    d.out_pixels *= d.out[k];
    offsets.push_back(d.out[k]);
    masks.push_back(d.out[k]);
  }
  masks[1] = d.offset_groups * d.taps;
  offsets[1] = masks[1] * static_cast<int64_t>(d.rank);
  PFRT_TRY(check_dims(node, 2, offsets));
  d.biased = node.has_input(3);
  d.masked = node.has_input(4);
  if (d.biased) PFRT_TRY(check_dims(node, 3, {d.outputs}));
  if (d.masked) PFRT_TRY(check_dims(node, 4, masks));
  if (y[0] != d.batch || y[1] != d.outputs)
    return kernel_error("the output has dimensions ", dims_text(y));
  for (uint32_t i = 0; i < 5; ++i) d.types[i] = node.input_dtype(i);
  return d;
}

}  // namespace

std::string refuse_deform_conv(const KernelRequest& node) {
  const int32_t rank = node.input_rank(0);
  if (rank < 0 || (rank >= 3 && rank <= 5)) return {};
  return message("X has rank ", rank, "; one to three spatial dimensions are supported");
}

Result<Kernel> make_deform_conv(const KernelRequest& node) {
  PFRT_ASSIGN(const Deform d, read_deform(node));
  return node.input_dtype(0) == PFRT_DTYPE_FLOAT64 ? deform_kernel<double>(node, d)
                                                   : deform_kernel<float>(node, d);
}

}  // namespace pfrt::cpu
