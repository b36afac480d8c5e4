// SPDX-License-Identifier: Apache-2.0
//
// Convolutions whose groups have one input channel: too little depth for a matmul, so each tap is
// added to a whole row of the output by one loop.
#include "providers/cpu/kernels/conv/depthwise/depthwise.h"

#include <algorithm>
#include <memory>

#include "providers/cpu/elements/ceil_div.h"
#include "providers/cpu/elements/load.h"
#include "providers/cpu/epilogue/in_float32.h"
#include "providers/cpu/isa/isa.h"
#include "providers/cpu/isa/target.h"
#include "providers/cpu/jit/depthwise_loop.h"
#include "providers/cpu/kernel/pays.h"
#include "providers/cpu/kernels/conv/depthwise/taps.h"
#include "providers/cpu/kernels/window/plane_band.h"
#include "providers/cpu/kernels/window/small_planes.h"

namespace pfrt::cpu {
namespace {

struct Plan {
  ConvGeometry geometry;
  WindowRows rows;
  TapRow tap;
};

void plane(const Run& run, const Plan& plan, const float* image, const float* weights, float bias,
           int64_t plane_start) {
  constexpr int64_t kPiece = 8192;  // elements of a row: they stay in the first-level cache
  const WindowRows& rows = plan.rows;
  const int64_t length = rows.row_length(), taps = rows.row_taps(), stride = rows.stride();
  int64_t applied = 0;  // elements of the plane that the epilogue has seen
  for (int64_t r = 0; r < rows.rows(); ++r) {
    float* const line = run.output<float>(0) + plane_start + r * length;
    for (int64_t first = 0; first < length; first += kPiece) {
      if ((first > 0 || r % 16 == 0) && run.stopped()) return;
      const int64_t last = std::min(first + kPiece, length);
      std::fill(line + first, line + last, bias);
      for (int64_t t = 0; t < rows.tap_rows(); ++t) {
        const int64_t start = rows.row_offset(r, t);
        if (start < 0) continue;
        for (int64_t x = 0; x < taps; ++x) {
          const WindowRows::Span& s = rows.span(x);
          const int64_t begin = std::max(s.begin, first), end = std::min(s.end, last);
          if (begin < end)
            plan.tap(line + begin, image + start + s.first + begin * stride, weights[t * taps + x],
                     stride, end - begin);
        }
      }
      const int64_t done = r * length + last;
      if (done - applied >= kPiece || done == rows.rows() * length) {
        run.apply_epilogue(plane_start + applied, plane_start + done);
        applied = done;
      }
    }
  }
}

// 8 positions of a row at a time.
struct VectorTaps {
  using Sum = __m256;
  const float* weights;
  float bias;
  PFRT_AVX2_FMA_INLINE Sum start() const { return _mm256_set1_ps(bias); }
  PFRT_AVX2_FMA_INLINE __m256 tap(size_t index) const {
    return _mm256_broadcast_ss(weights + index);
  }
  PFRT_AVX2_FMA_INLINE Sum add(Sum sum, __m256 pixels, __m256 tap) const {
    return _mm256_fmadd_ps(tap, pixels, sum);
  }
  PFRT_AVX2_FMA_INLINE __m256 finish(Sum sum, int64_t) const { return sum; }
};

Kernel band_kernel(const ConvGeometry& geometry, int64_t shuffle, bool has_bias) {
  struct BandPlan {
    ConvGeometry geometry;
    PlaneBand band;
    int64_t planes;  // of a task
  };
  constexpr int64_t kTask = 1 << 12;  // elements
  const int64_t positions = geometry.window.position_count();
  const auto plan = std::make_shared<const BandPlan>(
      BandPlan{geometry, PlaneBand(geometry.window),
               std::max<int64_t>(1, kTask / std::max<int64_t>(positions, 1))});
  Kernel kernel;
  kernel.flops = geometry.flops();
  kernel.scratch_bytes = plan->band.bytes();
  kernel.run = [plan, shuffle, has_bias, positions](const Run& run) -> pfrt_code {
    const ConvGeometry& g = plan->geometry;
    const PlaneBand& band = plan->band;
    const int64_t height = g.window.positions[0], taps = g.window.taps();
    const int64_t channels = g.groups * g.group_out;
    if (positions == 0) return run.stop();
    const int64_t all = g.batch * channels, together = plan->planes;
    run.parallel((all + together - 1) / together, [&](int64_t i, uint32_t worker) {
      float* const lines = run.scratch<float>(worker);
      const int64_t first = i * together, last = std::min(first + together, all);
      int64_t applied = first * positions;
      for (int64_t p = first; p < last; ++p) {
        const int64_t channel = p % channels;
        const float* const plane =
            run.input<float>(0) + depthwise_input_plane(g, shuffle, p) * g.window.image_size();
        const float bias = has_bias ? run.input<float>(2)[channel] : 0.0f;
        const VectorTaps op{run.input<float>(1) + channel * taps, bias};
        for (int64_t top = 0; top < height; top += band.rows()) {
          if (run.stopped()) return;
          const int64_t rows = std::min(band.rows(), height - top);
          const int64_t start = p * positions + top * band.length();
          band.fill(plane, top, rows, lines);
          band_rows(run, band, top, rows, lines, run.output<float>(0) + start,
                    [&](int64_t) { return op; });
          const int64_t done = start + rows * band.length();
          if (done - applied < kTask && p + 1 < last) continue;
          run.apply_epilogue(applied, done);
          applied = done;
        }
      }
    });
    return run.stop();
  };
  return kernel;
}

constexpr float kNoBias[kBlockChannels] = {};
constexpr int64_t kMostLength = 8192;  // of a row that is computed without a look at the run

// Weights of 16 channels a tap, then their biases.
void fill_block_weights(const Run& run, int64_t channel, int64_t taps, bool has_bias, float* to) {
  const float* const from = run.input<float>(1) + channel * taps;
  for (int64_t c = 0; c < kBlockChannels; ++c) {
    for (int64_t t = 0; t < taps; ++t) to[t * kBlockChannels + c] = from[c * taps + t];
    to[taps * kBlockChannels + c] = has_bias ? run.input<float>(2)[channel + c] : 0.0f;
  }
}

Kernel planes_kernel(const ConvGeometry& geometry, int64_t shuffle, bool has_bias,
                     std::shared_ptr<const DepthwiseLoop> code) {
  struct PlanesPlan {
    ConvGeometry geometry;
    std::shared_ptr<const DepthwiseLoop> loop;
    int64_t task, together;  // planes of a task, and at a time
    int64_t bands;           // at a time, of a plane alone
    int64_t aside;           // planes at the end of a task: up to 7 elements behind a plane are
                             // written, which may be another task's
  };
  constexpr int64_t kTask = 1 << 13;  // elements
  const int64_t positions = geometry.window.position_count();
  const int64_t band = ceil_div(positions, code->bands());
  const bool apart = shuffle > 1 || geometry.group_out > 1;
  const auto plan = std::make_shared<const PlanesPlan>(PlanesPlan{
      geometry, std::move(code), std::max<int64_t>(1, kTask / positions),
      apart ? 1 : std::max<int64_t>(1, kNear / positions), std::max<int64_t>(1, kNear / band),
      ceil_div(std::max<int64_t>(kVectorChannels - geometry.window.positions[1], 0), positions)});
  Kernel kernel;
  kernel.flops = geometry.flops();
  if (plan->aside > 0)
    kernel.scratch_bytes = static_cast<uint64_t>(positions + kVectorChannels) * sizeof(float);
  kernel.run = [plan, shuffle, has_bias, positions](const Run& run) -> pfrt_code {
    const ConvGeometry& g = plan->geometry;
    const DepthwiseLoop& loop = *plan->loop;
    const int64_t pixels = g.window.image_size(), taps = g.window.taps();
    const int64_t length = g.window.positions[1], bands = loop.bands();
    const int64_t channels = g.groups * g.group_out, all = g.batch * channels;
    float* const out = run.output<float>(0);
    // Planes [p, p + n), from |begin| to |end| of their bands; |to| is where the first one goes.
    const auto compute = [&](int64_t p, int64_t n, int64_t begin, int64_t end, float* to) {
      const int64_t channel = p % channels;
      loop.run(run.input<float>(0) + depthwise_input_plane(g, shuffle, p) * pixels,
               run.input<float>(1) + channel * taps,
               has_bias ? run.input<float>(2) + channel : kNoBias, to, begin, end, n, has_bias);
    };
    run.parallel(ceil_div(all, plan->task), [&](int64_t i, uint32_t worker) {
      const int64_t first = i * plan->task, last = std::min(first + plan->task, all);
      const int64_t ahead = std::max(last - plan->aside, first);
      for (int64_t p = first, n; p < last; p += n) {
        if (run.stopped()) return;
        n = p < ahead ? std::min({plan->together, channels - p % channels, ahead - p}) : 1;
        if (n == 1 && p < ahead) {
          for (int64_t b = 0, end; b < bands; b = end) {
            if (run.stopped()) return;
            end = std::min(b + plan->bands, bands);
            compute(p, 1, b, end, out + p * positions);
            run.apply_epilogue(p * positions + loop.first_row(b) * length,
                               p * positions + loop.first_row(end) * length);
          }
          continue;
        }
        if (p >= ahead) {
          compute(p, 1, 0, bands, run.scratch<float>(worker));
          std::copy_n(run.scratch<float>(worker), positions, out + p * positions);
        } else {
          compute(p, n, 0, bands, out + p * positions);
        }
        run.apply_epilogue(p * positions, (p + n) * positions);
      }
    });
    return run.stop();
  };
  return kernel;
}

Kernel blocks_kernel(const ConvGeometry& geometry, bool has_bias,
                     std::shared_ptr<const DepthwiseLoop> code) {
  struct BlocksPlan {
    ConvGeometry geometry;
    std::shared_ptr<const DepthwiseLoop> loop;
    int64_t task, bands;  // bands of a task; at a time
  };
  constexpr int64_t kTask = 1 << 14;  // elements
  const Window& w = geometry.window;
  const int64_t all = code->bands();
  const int64_t band = ceil_div(w.position_count() * kBlockChannels, all);
  const int64_t tasks = ceil_div(all, std::max<int64_t>(1, kTask / band));
  const auto plan = std::make_shared<const BlocksPlan>(BlocksPlan{
      geometry, std::move(code), ceil_div(all, tasks), std::max<int64_t>(1, kNear / band)});
  Kernel kernel;
  kernel.flops = geometry.flops();
  kernel.scratch_bytes = static_cast<uint64_t>((w.taps() + 1) * kBlockChannels) * sizeof(float);
  kernel.run = [plan, has_bias](const Run& run) -> pfrt_code {
    const ConvGeometry& g = plan->geometry;
    const DepthwiseLoop& loop = *plan->loop;
    const int64_t taps = g.window.taps(), blocks = g.groups / kBlockChannels;
    const int64_t row = g.window.positions[1] * kBlockChannels;
    const int64_t parts = ceil_div(loop.bands(), plan->task);
    run.parallel(g.batch * blocks * parts, [&](int64_t i, uint32_t worker) {
      const int64_t block = i / parts;
      float* const weights = run.scratch<float>(worker);
      float* const bias = weights + taps * kBlockChannels;
      fill_block_weights(run, block % blocks * kBlockChannels, taps, has_bias, weights);
      const float* const image =
          run.input<float>(0) + block * g.window.image_size() * kBlockChannels;
      const int64_t start = block * g.window.position_count() * kBlockChannels;
      float* const out = run.output<float>(0) + start;
      const int64_t last = std::min((i % parts + 1) * plan->task, loop.bands());
      for (int64_t b = i % parts * plan->task, end; b < last; b = end) {
        if (run.stopped()) return;
        end = std::min(b + plan->bands, last);
        for (int64_t c = 0; c < kBlockChannels; c += loop.channels())
          loop.run(image + c, weights + c, bias + c, out + c, b, end);
        run.apply_epilogue(start + loop.first_row(b) * row, start + loop.first_row(end) * row);
      }
    });
    return run.stop();
  };
  return kernel;
}

// Row |row| of positions in all 16 channels of a block, with AVX-512. |taps| has room for them all.
void wide_row(const WindowRows& rows, int64_t row, const float* image, const float* weights,
              const float* bias, DepthwiseTap* taps, float* out) {
  const TapRows starts(rows, row);
  const int64_t across = rows.row_taps(), step = kBlockChannels * rows.stride();
  // Positions [begin, end) see the same taps of a row.
  for (int64_t begin = 0, end; begin < rows.row_length(); begin = end) {
    end = rows.row_length();
    size_t count = 0;
    for (int64_t x = 0; x < across; ++x) {
      const WindowRows::Span& span = rows.span(x);
      end =
          std::min({end, begin < span.begin ? span.begin : end, begin < span.end ? span.end : end});
    }
    for (int64_t t = 0; t < rows.tap_rows(); ++t) {
      if (starts[t] < 0) continue;
      for (int64_t x = 0; x < across; ++x) {
        const WindowRows::Span& span = rows.span(x);
        if (begin >= span.begin && begin < span.end)
          taps[count++] = {kBlockChannels * (starts[t] + span.first),
                           kBlockChannels * (t * across + x)};
      }
    }
    add_depthwise_taps({taps, count}, weights, bias, image + begin * step, step, end - begin,
                       out + begin * kBlockChannels);
  }
}

}  // namespace

std::shared_ptr<const DepthwiseLoop> depthwise_loop(const Window& w, bool nchw16c, bool adds) {
  if (isa() < Isa::kAvx2 || w.rank() != 2 || w.positions[1] > kMostLength) return nullptr;
  // The last planes of a task go to scratch first where rows are shorter than a vector.
  if (!nchw16c && w.positions[1] < kVectorChannels && w.position_count() > kNear) return nullptr;
  const auto pair = [](const std::vector<int64_t>& v) { return DepthwiseLoop::Pair{v[0], v[1]}; };
  return DepthwiseLoop::make({nchw16c, pair(w.image), pair(w.positions), pair(w.kernel),
                              pair(w.strides), pair(w.dilations), pair(w.pads), adds,
                              nchw16c && isa() >= Isa::kAvx512});
}

int64_t depthwise_input_plane(const ConvGeometry& g, int64_t shuffle, int64_t p) {
  const int64_t plane = p / g.group_out, channel = plane % g.groups;
  return plane - channel + channel % shuffle * (g.groups / shuffle) + channel / shuffle;
}

std::string refuse_conv_depthwise_nchw16c(const SnapshotNode& node, Nchw16cSides sides) {
  const int64_t groups = node.attr_int("group", 1);
  if (isa() < Isa::kAvx2) return "the machine, or PFRT_ISA, has no AVX2";
  if (sides.input != sides.output) return "input and output need the same layout";
  return node.input_dims(1)[0] == groups && groups % kBlockChannels == 0
             ? ""
             : "nChw16c is for multiples of 16 channels, one output each";
}

Result<Kernel> make_conv_depthwise_nchw16c(const SnapshotNode& node, Nchw16cSides) {
  PFRT_ASSIGN(ConvGeometry g, conv_geometry(node, 0, 1));
  PFRT_TRY(need_types(node, {1, 2}, Types{node.input_dtype(0)}));
  PFRT_TRY(check_bias(node, 2, g.groups));
  if (g.window.rank() <= 2) {
    ConvGeometry flat = g;
    flat.window = along_rows(std::move(flat.window));
    if (auto loop = depthwise_loop(flat.window, true, false))
      return in_float32(node, {0, 1, 2}, blocks_kernel(flat, node.has_input(2), std::move(loop)));
  }
  Kernel kernel;
  kernel.flops = g.flops();
  const bool wide = isa() >= Isa::kAvx512;
  const auto tap_count = static_cast<uint64_t>(g.window.taps());
  kernel.scratch_bytes = (tap_count + 1) * kBlockChannels * sizeof(float) +
                         (wide ? tap_count * sizeof(DepthwiseTap) : 0);
  const WindowRows rows(g.window);
  const auto plan = std::make_shared<const Plan>(Plan{std::move(g), rows, nullptr});
  kernel.run = [plan, wide, has_bias = node.has_input(2)](const Run& run) -> pfrt_code {
    const ConvGeometry& geo = plan->geometry;
    const int64_t pixels = geo.window.image_size(), length = plan->rows.row_length();
    const int64_t all = plan->rows.rows(), taps = geo.window.taps();
    const int64_t blocks = geo.groups / kBlockChannels;
    if (length * all == 0) return run.stop();
    constexpr int64_t kTask = 1 << 14;  // elements
    const int64_t together = std::clamp<int64_t>(kTask / (length * kBlockChannels), 1, all);
    const int64_t tasks = (all + together - 1) / together;
    run.parallel(geo.batch * blocks * tasks, [&](int64_t i, uint32_t worker) {
      if (run.stopped()) return;
      const int64_t block = i / tasks, channel = block % blocks * kBlockChannels;
      float* const weights = run.scratch<float>(worker);
      float* const bias = weights + taps * kBlockChannels;
      fill_block_weights(run, channel, taps, has_bias, weights);
      const float* const image = run.input<float>(0) + block * pixels * kBlockChannels;
      const int64_t start = block * all * length * kBlockChannels, first = i % tasks * together;
      const int64_t last = std::min(first + together, all);
      auto* const list = reinterpret_cast<DepthwiseTap*>(bias + kBlockChannels);
      for (int64_t r = first; r < last; ++r) {
        float* const out = run.output<float>(0) + start + r * length * kBlockChannels;
        if (wide) {
          wide_row(plan->rows, r, image, weights, bias, list, out);
          continue;
        }
        for (int64_t c = 0; c < kBlockChannels; c += kVectorChannels)
          nchw16c_row(plan->rows, r, image + c, out + c, ChannelTaps{weights + c, bias + c});
      }
      run.apply_epilogue(start + first * length * kBlockChannels,
                         start + last * length * kBlockChannels);
    });
    return run.stop();
  };
  return in_float32(node, {0, 1, 2}, std::move(kernel));
}

std::string refuse_conv_depthwise(const KernelRequest& node) {
  if (std::string why = refuse_conv(node); !why.empty()) return why;
  const auto weights = node.input_dims(1);
  const int64_t groups = node.attr_int("group", 1);
  if (weights.size() < 3 || weights[1] != 1 || groups < 1 || weights[0] < groups)
    return "not depthwise: groups must have one input channel";
  constexpr int64_t kMostOutputs = 4, kMostOfVectors = 7;
  if (!pays(isa() >= Isa::kAvx2 ? weights[0] <= kMostOfVectors * groups
                                : groups > 1 && weights[0] <= kMostOutputs * groups))
    return "many output channels of a group are left to others";
  return "";
}

Result<Kernel> make_conv_depthwise(const KernelRequest& node) {
  return make_conv_depthwise_shuffled(node, 1);
}

// Makes the kernel for channels shuffled by |shuffle| groups; 1 leaves them alone.
static Kernel depthwise_kernel(ConvGeometry g, int64_t shuffle, bool has_bias) {
  if (isa() >= Isa::kAvx2 && g.window.rank() <= 2) {
    g.window = along_rows(std::move(g.window));
    if (g.window.position_count() > 0)
      if (auto loop = depthwise_loop(g.window, false, false))
        return planes_kernel(g, shuffle, has_bias, std::move(loop));
    if (SmallPlanes::takes(g.window, g.groups * g.group_out))
      return depthwise_small_planes(g, shuffle, has_bias);
    if (g.window.positions[1] <= kMostLength) return band_kernel(g, shuffle, has_bias);
  }
  Kernel kernel;
  kernel.flops = g.flops();
  const WindowRows rows(g.window);
  const auto plan = std::make_shared<const Plan>(Plan{std::move(g), rows, tap_row()});
  kernel.run = [plan, shuffle, has_bias](const Run& run) -> pfrt_code {
    const ConvGeometry& geo = plan->geometry;
    const int64_t pixels = geo.window.image_size(), positions = geo.window.position_count(),
                  taps = geo.window.taps();
    const int64_t channels = geo.groups * geo.group_out;
    const float* bias = has_bias ? run.input<float>(2) : nullptr;
    run.parallel(geo.batch * channels, [&](int64_t i, uint32_t) {
      const int64_t channel = i % channels;
      const float* in = run.input<float>(0) + depthwise_input_plane(geo, shuffle, i) * pixels;
      plane(run, *plan, in, run.input<float>(1) + channel * taps, bias ? bias[channel] : 0.0f,
            i * positions);
    });
    return run.stop();
  };
  return kernel;
}

Result<Kernel> make_conv_depthwise_shuffled(const SnapshotNode& node, int64_t shuffle) {
  PFRT_ASSIGN(ConvGeometry g, one_type_conv_geometry(node));
  return in_float32(node, {0, 1, 2}, depthwise_kernel(std::move(g), shuffle, node.has_input(2)));
}

}  // namespace pfrt::cpu
