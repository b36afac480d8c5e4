// SPDX-License-Identifier: Apache-2.0
//
// Two neighbouring channels of bytes, less their zero points, are one channel of pairs of int16:
// what is left is a direct convolution (direct_plan.h) of half as many channels. Pads are 0 then.
// The weights' zero points are taken off when they are packed.
#include "providers/cpu/kernels/conv/integer_direct.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "providers/cpu/kernels/conv/direct_plan.h"
#include "providers/cpu/kernels/conv/plane_lines.h"
#include "providers/cpu/kernels/matmul/pairs.h"
#include "providers/cpu/kernels/matmul/requantize.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kPanel = DirectPlan::kPanel;
constexpr int64_t kTask = 16 << 10;  // pixels that become pairs
constexpr Types kBytes{PFRT_DTYPE_INT8, PFRT_DTYPE_UINT8};

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Positions of the inputs.
struct Form {
  uint32_t x, w, x_zero, w_zero;
};
constexpr Form kConvInteger{0, 1, 2, 3}, kQLinearConv{0, 3, 2, 5};

// The weights' zero points; nullopt when only a run knows them.
std::optional<std::vector<int32_t>> weight_zeros(const SnapshotNode& node, const Form& f) {
  if (!node.has_input(f.w_zero)) return std::vector<int32_t>{0};
  const int64_t n = node.input_elements(f.w_zero), channels = node.input_dims(f.w)[0];
  const void* const bytes = node.input_constant(f.w_zero);
  if (bytes == nullptr || n < 1 || channels % n != 0 || !kBytes.has(node.input_dtype(f.w_zero)))
    return std::nullopt;
  std::vector<int32_t> zeros;
  for (int64_t i = 0; i < n; ++i)
    zeros.push_back(node.input_dtype(f.w_zero) == PFRT_DTYPE_INT8
                        ? static_cast<const int8_t*>(bytes)[i]
                        : static_cast<const uint8_t*>(bytes)[i]);
  if (std::ranges::adjacent_find(zeros, std::not_equal_to<>()) == zeros.end()) zeros.resize(1);
  return zeros;
}

std::optional<PackedInput> pack(const SnapshotNode& node, const Form& f) {
  const auto dims = node.input_dims(f.w);
  const int64_t groups = node.attr_int("group", 1);
  if (PanelProduct::get_pairs() == nullptr || (dims.size() != 3 && dims.size() != 4) ||
      SnapshotNode::elements(dims) <= 0 || !node.is_constant(f.w) ||
      !kBytes.has(node.input_dtype(f.w)) || groups < 1 || dims[0] / groups < kPanel / 2)
    return std::nullopt;
  auto zeros = weight_zeros(node, f);
  if (!zeros) return std::nullopt;
  const int64_t outs = dims[0], channels = dims[1], pairs = pairs_of(channels);
  const int64_t taps_y = dims.size() == 4 ? dims[2] : 1, taps_x = dims.back();
  const pfrt_dtype dtype = node.input_dtype(f.w);
  PackedInput packed = pack_direct_weights(groups, outs / groups, pairs, taps_y, taps_x);
  packed.input = f.w;
  packed.recipe = message("pairs_of_", dtype_name(dtype), "/", channels, "/", packed.recipe);
  for (const int32_t zero : *zeros) packed.recipe += message("/", zero);
  packed.pack = [=, zeros = std::move(*zeros), inner = std::move(packed.pack)](const void* source,
                                                                               void* out) {
    const int64_t taps = taps_y * taps_x;
    std::vector<uint32_t> wide(static_cast<size_t>(outs * pairs * taps));
    for (int64_t o = 0; o < outs; ++o) {
      const int32_t zero = zeros[static_cast<size_t>(o) % zeros.size()];
      for (int64_t c = 0; c < channels; c += 2) {
        const uint8_t* const first =
            static_cast<const uint8_t*>(source) + (o * channels + c) * taps;
        pairs_of_two(dtype, first, c + 1 < channels ? first + taps : nullptr, taps, zero,
                     wide.data() + (o * pairs + c / 2) * taps);
      }
    }
    inner(wide.data(), out);
  };
  return packed;
}

struct Plan {
  ConvGeometry geometry;  // of bytes
  Form form;
  pfrt_dtype x_type;
  Parameter x_zero;
  DirectPlan direct;  // of pairs

  int64_t pairs() const { return direct.geometry.group_in; }
  uint64_t band_bytes() const { return (direct.image.bytes() + 63) / 64 * 64; }
  uint64_t shared_bytes() const {
    return band_bytes() +
           static_cast<uint64_t>(pairs() * geometry.window.image_size()) * sizeof(uint32_t);
  }
  uint32_t* planes(const Run& run) const {
    return run.shared<uint32_t>() + band_bytes() / sizeof(uint32_t);
  }
  void widen(const Run& run, int64_t image, int32_t zero) const {
    const int64_t pixels = geometry.window.image_size(), channels = geometry.group_in;
    const uint8_t* const from = run.input<uint8_t>(form.x) + image * channels * pixels;
    uint32_t* const to = planes(run);
    const int64_t parts = ceil_div(pixels, kTask);
    run.parallel(pairs() * parts, [&](int64_t i, uint32_t) {
      const int64_t p = i / parts, begin = i % parts * kTask;
      const uint8_t* const first = from + 2 * p * pixels + begin;
      pairs_of_two(x_type, first, 2 * p + 1 < channels ? first + pixels : nullptr,
                   std::min(kTask, pixels - begin), zero, to + p * pixels + begin);
    });
  }
};

// Sums of |channels| channels from |channel| on, counted over all images, at positions [from, from
// + n): lines of a panel, and scratch.
struct Sums {
  int64_t channel, channels, from, n;
  const float* lines;
  float* scratch;
};
using PutFn = std::function<void(const Run&, const Sums&)>;

pfrt_code run_plan(const Run& run, const Plan& plan, const PutFn& put) {
  const DirectPlan& direct = plan.direct;
  const ConvGeometry& g = plan.geometry;
  if (run.packed<float>() == nullptr) return fail_unpacked(run, "integer convolution");
  const auto zero = static_cast<int32_t>(plan.x_zero.read<uint32_t>(run, 1, 0)[0]);
  const int64_t height = g.window.positions[0], width = g.window.positions[1];
  const int64_t columns = direct.columns(), stride = direct.task_positions * kPanel;
  for (int64_t image = 0; image < g.batch * g.groups && !run.stopped(); ++image) {
    plan.widen(run, image, zero);
    for (int64_t top = 0; top < height && !run.stopped(); top += direct.band) {
      fill_direct_band(run, direct, reinterpret_cast<const float*>(plan.planes(run)), top);
      const int64_t positions = std::min(direct.band, height - top) * width;
      run.parallel(ceil_div(positions, direct.task_positions) * columns,
                   [&](int64_t i, uint32_t worker) {
                     if (run.stopped()) return;
                     const int64_t begin = i / columns * direct.task_positions;
                     const int64_t end = std::min(begin + direct.task_positions, positions);
                     const DirectTask task = direct_task(direct, i % columns, begin, end, top);
                     float* const lines = run.scratch<float>(worker);
                     direct_product(run, direct, task, image, lines, stride);
                     for (int64_t p = 0; p < task.panels; ++p)
                       put(run, {image * g.group_out + (task.panel + p) * kPanel,
                                 std::min(kPanel, task.columns - p * kPanel), top * width + begin,
                                 end - begin, lines + p * stride, lines + task.panels * stride});
                   });
    }
  }
  return run.stop();
}

// |bytes| of scratch for a position of a panel, which |put| uses.
Result<Kernel> make(const SnapshotNode& node, const Form& f, uint64_t bytes,
                    const std::function<PutFn(const ConvGeometry&, const Run&)>& put_of) {
  PFRT_TRY(need_types(node, {f.x, f.w, f.x_zero, f.w_zero}, kBytes));
  PFRT_ASSIGN(ConvGeometry g, conv_geometry(node, f.x, f.w));
  const Parameter x_zero(node, f.x_zero);
  PFRT_TRY(x_zero.check("X's zero point", 1));
  PFRT_TRY(Parameter(node, f.w_zero).check("W's zero point", g.groups * g.group_out));
  g.window = along_rows(std::move(g.window));
  Kernel kernel;
  kernel.packed_alone = true;
  if (g.batch == 0 || g.window.position_count() == 0) {
    kernel.run = [](const Run& run) { return run.stop(); };
    return kernel;
  }
  if (PanelProduct::get_pairs() == nullptr)
    return error(Code::kUNSUPPORTED, "AVX2 is not usable any more");
  ConvGeometry of_pairs = g;
  of_pairs.group_in = pairs_of(g.group_in);
  const auto plan = std::make_shared<const Plan>(
      Plan{g, f, node.input_dtype(f.x), x_zero,
           DirectPlan(of_pairs, false, {}, {}, DirectElements::kPairs)});
  kernel.flops = g.flops();
  kernel.scratch_bytes =
      plan->direct.scratch_bytes() + static_cast<uint64_t>(plan->direct.task_positions) * bytes;
  kernel.shared_bytes = plan->shared_bytes();
  kernel.run = [plan, put_of](const Run& run) {
    return run_plan(run, *plan, put_of(plan->geometry, run));
  };
  return kernel;
}

}  // namespace

std::optional<PackedInput> pack_conv_integer(const SnapshotNode& node) {
  return pack(node, kConvInteger);
}

Result<Kernel> make_conv_integer_direct(const SnapshotNode& node, const PackedInput&) {
  PFRT_ASSIGN(Kernel kernel,
              make(node, kConvInteger, 0, [](const ConvGeometry& g, const Run&) -> PutFn {
                const int64_t positions = g.window.position_count();
                return [positions](const Run& run, const Sums& s) {
                  lines_to_planes(run.output<float>(0) + s.channel * positions + s.from, positions,
                                  s.lines, s.channels, s.n);
                };
              }));
  kernel.name = "conv_integer_direct";
  return kernel;
}

std::optional<PackedInput> pack_qlinear_conv(const SnapshotNode& node) {
  return pack(node, kQLinearConv);
}

// Inputs: x, its scale and zero point, w, its scale and zero point, y's scale and zero point, bias.
Result<Kernel> make_qlinear_conv_direct(const SnapshotNode& node, const PackedInput&) {
  PFRT_TRY(need_types(node, {1, 4, 6}, kFloats));
  PFRT_TRY(need_types(node, {7}, kBytes));
  PFRT_TRY(need_types(node, {8}, Types{PFRT_DTYPE_INT32}));
  const int64_t channels = node.input_dims(3)[0];
  const Parameter x_scale(node, 1), w_scale(node, 4), y_scale(node, 6), y_zero(node, 7);
  PFRT_TRY(x_scale.check("X's scale", 1));
  PFRT_TRY(w_scale.check("W's scale", channels));
  PFRT_TRY(y_scale.check("Y's scale", 1));
  PFRT_TRY(y_zero.check("Y's zero point", 1));
  PFRT_TRY(check_bias(node, 8, channels));
  const bool has_bias = node.has_input(8);
  const StoreFn<float> store = store_fn<float>(node.output_dtype(0));
  const auto put_of = [=](const ConvGeometry& g, const Run& run) -> PutFn {
    const float sx = x_scale.read<float>(run, 1, 1.0f)[0],
                sy = y_scale.read<float>(run, 1, 1.0f)[0];
    const float zero = y_zero.read<float>(run, 1, 0.0f)[0];
    std::vector<float> scales = w_scale.read<float>(run, channels, 1.0f);
    for (float& scale : scales) scale = sx * scale / sy;
    const int64_t positions = g.window.position_count();
    return [=, scales = std::move(scales)](const Run& r, const Sums& s) {
      const uint32_t* const bias = has_bias ? r.input<uint32_t>(8) : nullptr;
      float* const line = s.scratch + kPanel * s.n;
      lines_to_planes(s.scratch, s.n, s.lines, s.channels, s.n);
      for (int64_t c = 0; c < s.channels; ++c) {
        const int64_t channel = (s.channel + c) % channels;
        auto* const row = reinterpret_cast<uint32_t*>(s.scratch + c * s.n);
        if (bias != nullptr)
          for (int64_t i = 0; i < s.n; ++i) row[i] += bias[channel];
        requantize(line, row, &scales[static_cast<size_t>(channel)], 0, zero, s.n);
        store(r.output(0), (s.channel + c) * positions + s.from, line, s.n);
      }
    };
  };
  PFRT_ASSIGN(Kernel kernel, make(node, kQLinearConv, (kPanel + 1) * sizeof(float), put_of));
  kernel.name = "qlinear_conv_direct";
  return kernel;
}

}  // namespace pfrt::cpu
