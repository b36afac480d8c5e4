// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <vector>

#include "providers/cpu/isa/isa.h"
#include "providers/cpu/kernels/conv/depthwise/depthwise.h"
#include "providers/cpu/kernels/conv/depthwise/taps.h"
#include "providers/cpu/kernels/window/small_planes.h"

namespace pfrt::cpu {

Kernel depthwise_small_planes(const ConvGeometry& geometry, int64_t shuffle, bool has_bias) {
  struct Plan {
    ConvGeometry geometry;
    SmallPlanes planes;
    std::vector<DepthwiseTap> wide;  // with AVX-512
  };
  Plan made{geometry, SmallPlanes(geometry.window), {}};
  if (isa() >= Isa::kAvx512)
    for (int64_t t = 0; t < geometry.window.taps(); ++t)
      made.wide.push_back({made.planes.offsets()[static_cast<size_t>(t)], kBlockChannels * t});
  const auto plan = std::make_shared<const Plan>(std::move(made));
  Kernel kernel;
  kernel.flops = geometry.flops();
  kernel.scratch_bytes =
      plan->planes.scratch_bytes() +
      static_cast<uint64_t>((geometry.window.taps() + 1) * kBlockChannels) * sizeof(float);
  kernel.run = [plan, shuffle, has_bias](const Run& run) -> pfrt_code {
    const ConvGeometry& g = plan->geometry;
    const int64_t channels = g.groups * g.group_out, taps = g.window.taps();
    const int64_t pixels = g.window.image_size(), positions = g.window.position_count();
    const auto plane_of = [&](int64_t p) {
      return run.input<float>(0) + depthwise_input_plane(g, shuffle, p) * pixels;
    };
    plan->planes.run(
        run, g.batch * channels, plane_of,
        [&](int64_t first, int64_t count, const float* image, float* out) {
          float* const weights = out + positions * kBlockChannels;
          float* const bias = weights + taps * kBlockChannels;
          std::fill_n(weights, (taps + 1) * kBlockChannels, 0.0f);
          for (int64_t i = 0; i < count; ++i) {
            const int64_t channel = (first + i) % channels;
            for (int64_t t = 0; t < taps; ++t)
              weights[t * kBlockChannels + i] = run.input<float>(1)[channel * taps + t];
            if (has_bias) bias[i] = run.input<float>(2)[channel];
          }
          const SmallPlanes& planes = plan->planes;
          for (int64_t r = 0; r < planes.rows(); ++r) {
            if (!plan->wide.empty()) {
              add_depthwise_taps(plan->wide, weights, bias, image + r * planes.row_step(),
                                 planes.step(), planes.length(),
                                 out + r * planes.length() * kBlockChannels);
              continue;
            }
            for (int64_t c = 0; c < count; c += kVectorChannels)
              planes.row(r, image + c, out + c, ChannelTaps{weights + c, bias + c});
          }
        });
    return run.stop();
  };
  return kernel;
}

}  // namespace pfrt::cpu
