// SPDX-License-Identifier: Apache-2.0
//
// Convolutions of one tap whose channels are no multiple of 16: a matmul of the weights by planes,
// vectors of pixels at a time. Nothing is packed or copied first.
#include <immintrin.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "providers/cpu/elements/ceil_div.h"
#include "providers/cpu/isa/isa.h"
#include "providers/cpu/kernel/pays.h"
#include "providers/cpu/kernels/conv/geometry.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kLanes = 8, kVectors = 2, kPanel = kLanes * kVectors;  // pixels
constexpr int64_t kMostRows = 6;                                         // output channels
constexpr int64_t kMostChain =
    80;                         // k of a sum before it is added to others, which keeps errors small
constexpr int64_t kBlock = 16;  // multiples of so many channels are for other kernels

// c[r * ldc + j] = start[r] + the sum over k < kn of a[r * lda + k] * b[k * ldb + j]; without
// |start|, that is added to what c holds.
using MicroFn = void (*)(int64_t kn, const float* a, int64_t lda, const float* b, int64_t ldb,
                         const float* start, float* c, int64_t ldc);

template <int R, int V>
__attribute__((target("avx2,fma"))) void micro(int64_t kn, const float* a, int64_t lda,
                                               const float* b, int64_t ldb, const float* start,
                                               float* c, int64_t ldc) {
  __m256 sum[R][V];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) sum[r][v] = _mm256_setzero_ps();
  for (int64_t k = 0; k < kn; ++k, b += ldb) {
    __m256 pixels[V];
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) pixels[v] = _mm256_loadu_ps(b + kLanes * v);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const __m256 weight = _mm256_broadcast_ss(a + r * lda + k);
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) sum[r][v] = _mm256_fmadd_ps(weight, pixels[v], sum[r][v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      float* const to = c + r * ldc + kLanes * v;
      const __m256 before = start != nullptr ? _mm256_broadcast_ss(start + r) : _mm256_loadu_ps(to);
      _mm256_storeu_ps(to, _mm256_add_ps(before, sum[r][v]));
    }
}

template <int... R>
constexpr MicroFn micro_of(int64_t rows, int64_t vectors, std::integer_sequence<int, R...>) {
  constexpr MicroFn kTable[] = {micro<R + 1, 1>..., micro<R + 1, 2>...};
  return kTable[(vectors - 1) * kMostRows + rows - 1];
}

MicroFn micro_of(int64_t rows, int64_t vectors) {
  return micro_of(rows, vectors, std::make_integer_sequence<int, kMostRows>());
}

struct Plan {
  ConvGeometry geometry;
  int64_t pixels, chain;
  bool has_bias;
  bool packs;  // panels of pixels are copied first: in place they would share sets of the cache
  bool pixels_stay;                // panels of pixels stay in the first-level cache for all weights
  int64_t block_rows, row_blocks;  // output channels of a task
  int64_t block_pixels, pixel_blocks;  // of a task; the last block is what is left

  Plan(const ConvGeometry& g, bool bias)
      : geometry(g),
        pixels(g.window.image_size()),
        chain(ceil_div(g.group_in, ceil_div(g.group_in, kMostChain))),
        has_bias(bias) {
    constexpr int64_t kSets = 4096,
                      kFewSets = 4;  // bytes after which addresses share a set of the cache
    packs = kSets / std::gcd(pixels * int64_t{sizeof(float)}, kSets) <= kFewSets &&
            g.group_out > kMostRows;
    constexpr int64_t kWeightBytes = 128 << 10, kPixels = 12 * kPanel, kWantedTasks = 16;
    block_pixels = kPixels;
    pixel_blocks = std::max<int64_t>(1, pixels / block_pixels);
    constexpr int64_t kNear = 28 << 10;
    pixels_stay = g.group_in * std::min(pixels, block_pixels) * int64_t{sizeof(float)} <= kNear;
    const int64_t others = g.batch * g.groups * pixel_blocks;
    const int64_t wanted =
        std::min(ceil_div(kWantedTasks, others), ceil_div(g.group_out, 4 * kMostRows));
    const int64_t most = std::max(kWeightBytes / (g.group_in * int64_t{sizeof(float)}), kMostRows);
    row_blocks = std::max(wanted, ceil_div(g.group_out, most));
    block_rows = ceil_div(ceil_div(g.group_out, row_blocks), kMostRows) * kMostRows;
    row_blocks = ceil_div(g.group_out, block_rows);
  }
  uint64_t scratch_bytes() const {
    return packs ? static_cast<uint64_t>(geometry.group_in * kPanel) * sizeof(float) : 0;
  }
};

// Output channels [row, row + rows) of a group at pixels [first, last).
struct Task {
  int64_t image, group, row, rows, first, last;
};

struct Panel {
  int64_t first, vectors;
};

// The panel from pixel |p| on. The last one may begin earlier, so that it is whole; the pixels that
// it shares with the one before are computed twice.
Panel panel_at(const Task& task, int64_t p) {
  const int64_t left = task.last - p;
  const int64_t vectors = left <= kLanes || task.last - task.first < kPanel ? 1 : kVectors;
  return {std::min(p, task.last - vectors * kLanes), vectors};
}

void pack(const float* from, int64_t step, int64_t depth, int64_t n, float* to) {
  for (int64_t k = 0; k < depth; ++k, from += step, to += kPanel) std::copy_n(from, n, to);
}

// Fetches |n| elements that come next into the first-level cache.
void fetch(const float* from, int64_t n) {
  constexpr int64_t kLine = 16;
  for (int64_t i = 0; i < n; i += kLine) _mm_prefetch(from + i, _MM_HINT_T0);
}

void run_task(const Run& run, const Plan& plan, const Task& task, float* scratch) {
  const ConvGeometry& g = plan.geometry;
  const int64_t depth = g.group_in, pixels = plan.pixels;
  const int64_t channel = task.group * g.group_out + task.row;
  const float* const weights = run.input<float>(1) + channel * depth;
  const float* const planes =
      run.input<float>(0) + (task.image * g.groups + task.group) * depth * pixels;
  const int64_t at = (task.image * g.groups * g.group_out + channel) * pixels;
  float* const out = run.output<float>(0) + at;
  constexpr float kNone[kMostRows] = {};
  const int64_t row_blocks = ceil_div(task.rows, kMostRows);
  const auto multiply = [&](int64_t row, int64_t rows, const Panel& panel, const float* b,
                            int64_t ldb) {
    const MicroFn fn = micro_of(rows, panel.vectors);
    const float* const start = plan.has_bias ? run.input<float>(2) + channel + row : kNone;
    for (int64_t k = 0; k < depth; k += plan.chain)
      fn(std::min(plan.chain, depth - k), weights + row * depth + k, depth, b + k * ldb, ldb,
         k == 0 ? start : nullptr, out + row * pixels + panel.first, pixels);
  };
  const auto each_row_block = [&](const auto& fn) {
    for (int64_t i = 0, row = 0, rows; i < row_blocks; ++i, row += rows) {
      rows = (task.rows - row) / (row_blocks - i);
      fn(row, rows);
    }
  };
  const auto each_panel = [&](const auto& fn) {
    for (int64_t p = task.first; p < task.last;) {
      const Panel panel = panel_at(task, p);
      fn(panel);
      p = panel.first + panel.vectors * kLanes;
    }
  };
  if (plan.packs) {
    each_panel([&](const Panel& panel) {
      pack(planes + panel.first, pixels, depth, panel.vectors * kLanes, scratch);
      each_row_block(
          [&](int64_t row, int64_t rows) { multiply(row, rows, panel, scratch, kPanel); });
    });
  } else if (plan.pixels_stay) {
    each_row_block([&](int64_t row, int64_t rows) {
      const int64_t next = row + rows;
      fetch(weights + next * depth, std::min(kMostRows, task.rows - next) * depth);
      each_panel(
          [&](const Panel& panel) { multiply(row, rows, panel, planes + panel.first, pixels); });
    });
  } else {
    each_panel([&](const Panel& panel) {
      each_row_block([&](int64_t row, int64_t rows) {
        multiply(row, rows, panel, planes + panel.first, pixels);
      });
    });
  }
  if (task.last - task.first == pixels) return run.apply_epilogue(at, at + task.rows * pixels);
  for (int64_t row = 0; row < task.rows; ++row)
    run.apply_epilogue(at + row * pixels + task.first, at + row * pixels + task.last);
}

// Whether vectors of pixels are faster than packed weights. Lines of the cache that hold a few
// pixels of each of many planes do not stay in it.
bool vectors_gain(int64_t in, int64_t out, int64_t pixels) {
  constexpr int64_t kFewPixels = 256, kDeep = 224, kMany = 96;
  return pixels > kFewPixels || in < kDeep || out < kMany;
}

}  // namespace

std::string refuse_conv_pointwise(const KernelRequest& node) {
  if (isa() < Isa::kAvx2) return "the machine, or PFRT_ISA, has no AVX2";
  const auto image = node.input_dims(0), weights = node.input_dims(1);
  if (image.size() < 3 || weights.size() != image.size() || SnapshotNode::elements(weights) <= 0)
    return "the dimensions of weights are not known";
  const auto one = [](int64_t v) { return v == 1; };
  const auto none = [](int64_t v) { return v == 0; };
  if (!std::ranges::all_of(weights.subspan(2), one) ||
      !std::ranges::all_of(node.attr_ints("strides"), one) ||
      !std::ranges::all_of(node.attr_ints("pads"), none))
    return "not one tap at every pixel";
  const int64_t groups = node.attr_int("group", 1);
  if (groups < 1 || weights[0] < groups) return "there are fewer outputs than groups";
  if (!pays(weights[0] / groups % kBlock != 0 && weights[1] % kBlock != 0))
    return "channels are multiples of 16, which other kernels take";
  const int64_t pixels = SnapshotNode::elements(image.subspan(2));
  if (pixels < kPanel) return message("vectors are of ", kPanel, " pixels, known before the run");
  if (!pays(!node.is_constant(1) || vectors_gain(weights[1], weights[0] / groups, pixels)))
    return "packed weights are faster for few pixels of many channels";
  return "";
}

Result<Kernel> make_conv_pointwise(const KernelRequest& node) {
  PFRT_ASSIGN(const ConvGeometry g, one_type_conv_geometry(node));
  if (!g.window.is_identity())
    return kernel_error("Y was planned with other spatial dimensions than X");
  Kernel kernel;
  kernel.flops = g.flops();
  if (g.batch == 0) {
    kernel.run = [](const Run& run) { return run.stop(); };
    return kernel;
  }
  const auto plan = std::make_shared<const Plan>(g, node.has_input(2));
  kernel.scratch_bytes = plan->scratch_bytes();
  kernel.run = [plan](const Run& run) -> pfrt_code {
    const ConvGeometry& geo = plan->geometry;
    const int64_t tasks = plan->row_blocks * plan->pixel_blocks;
    run.parallel(geo.batch * geo.groups * tasks, [&](int64_t i, uint32_t worker) {
      if (run.stopped()) return;
      const int64_t image = i / tasks / geo.groups, group = i / tasks % geo.groups;
      const int64_t row = i % tasks % plan->row_blocks * plan->block_rows;
      const int64_t block = i % tasks / plan->row_blocks, first = block * plan->block_pixels;
      const bool ends = block + 1 == plan->pixel_blocks;
      run_task(run, *plan,
               {image, group, row, std::min(plan->block_rows, geo.group_out - row), first,
                ends ? plan->pixels : first + plan->block_pixels},
               run.scratch<float>(worker));
    });
    return run.stop();
  };
  return kernel;
}

}  // namespace pfrt::cpu
