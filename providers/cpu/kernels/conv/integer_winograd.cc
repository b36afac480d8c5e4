// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/conv/integer_winograd.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "providers/cpu/jit/dot_microkernel.h"
#include "providers/cpu/jit/panel_microkernel.h"
#include "providers/cpu/kernels/conv/int16_dot.h"
#include "providers/cpu/kernels/matmul/int16_dot.h"
#include "providers/cpu/kernels/window/reorder.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kPanel = PanelMicrokernel::kPanel;
constexpr Types kBytes{PFRT_DTYPE_INT8, PFRT_DTYPE_UINT8};
constexpr IntegerInputs kConvInteger{0, 1, 2, 3}, kQLinearConv{0, 3, 2, 5};

std::string refuse(const KernelRequest& node, const IntegerInputs& in) {
  const DotMicrokernel* const dots = DotMicrokernel::get();
  if (dots == nullptr || PanelMicrokernel::get_int16_dot() == nullptr)
    return "the machine, or PFRT_ISA, has no AVX2";
  if (dots->bytes()) return "bytes are multiplied four at a time";
  const auto dims = node.input_dims(in.w);
  const int64_t groups = node.attr_int("group", 1);
  if (dims.size() != 4 || SnapshotNode::elements(dims) <= 0 || !node.is_constant(in.w) ||
      groups < 1)
    return "the transform is for constant weights of two dimensions";
  if (!weight_zeros(node, in)) return "the transform is for constant zero points of weights";
  return int16_dot_winograd_takes(node, in) ? ""
                                            : "the transform is for 3 x 3 taps of many channels";
}

PackedInput pack(const SnapshotNode& node, const IntegerInputs& in) {
  const auto dims = node.input_dims(in.w);
  const int64_t groups = node.attr_int("group", 1);
  return packed_from_bytes(node, in, *weight_zeros(node, in),
                           pack_int16_dot_winograd(groups, dims[0] / groups, pairs_of(dims[1])));
}

template <typename PutOf>
Result<Kernel> make(const SnapshotNode& node, const IntegerInputs& in, std::string_view name,
                    PutOf&& put_of) {
  PFRT_TRY(need_types(node, {in.x, in.w, in.x_zero, in.w_zero}, kBytes));
  PFRT_ASSIGN(ConvGeometry g, conv_geometry(node, in.x, in.w));
  const Parameter x_zero(node, in.x_zero);
  PFRT_TRY(x_zero.check("X's zero point", 1));
  PFRT_TRY(Parameter(node, in.w_zero).check("W's zero point", g.groups * g.group_out));
  Kernel kernel;
  if (g.batch == 0 || g.window.position_count() == 0) {
    kernel.run = [](const Run& run) { return run.stop(); };
  } else if (PanelMicrokernel::get_int16_dot() == nullptr) {
    return error(Code::kUNSUPPORTED, "AVX2 is not usable any more");
  } else {
    const Int16DotConv conv{g, in, node.input_dtype(in.x), x_zero};
    kernel = int16_dot_winograd_kernel(conv, put_of(g));
  }
  kernel.name = name;
  kernel.packed_alone = true;
  kernel.flops = g.flops();
  return kernel;
}

}  // namespace

std::string refuse_conv_integer_winograd(const KernelRequest& node) {
  if (std::string why = refuse_conv_integer(node); !why.empty()) return why;
  return refuse(node, kConvInteger);
}

std::optional<PackedInput> pack_conv_integer_winograd(const SnapshotNode& node) {
  return pack(node, kConvInteger);
}

Result<Kernel> make_conv_integer_winograd(const KernelRequest& node) {
  return make(node, kConvInteger, "conv_integer_winograd", [](const ConvGeometry& g) -> PutSums {
    return {0, [positions = g.window.position_count()](const Run&) -> PutSums::Fn {
              return [positions](const Run& run, const Int16DotSums& s) {
                float* const to = run.output<float>(0) + s.channel * positions + s.from;
                reorder_to_planes(to, positions, s.lines, s.channels, s.n);
              };
            }};
  });
}

std::string refuse_qlinear_conv_winograd(const KernelRequest& node) {
  if (std::string why = refuse_qlinear_conv(node); !why.empty()) return why;
  return refuse(node, kQLinearConv);
}

std::optional<PackedInput> pack_qlinear_conv_winograd(const SnapshotNode& node) {
  return pack(node, kQLinearConv);
}

// Inputs: x, its scale and zero point, w, its scale and zero point, y's scale and zero point, bias.
Result<Kernel> make_qlinear_conv_winograd(const KernelRequest& node) {
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
  const auto of_run = [=](const Run& run, int64_t positions) -> PutSums::Fn {
    const float sx = x_scale.read<float>(run, 1, 1.0f)[0],
                sy = y_scale.read<float>(run, 1, 1.0f)[0];
    const float zero = y_zero.read<float>(run, 1, 0.0f)[0];
    std::vector<float> scales = w_scale.read<float>(run, channels, 1.0f);
    for (float& scale : scales) scale = sx * scale / sy;
    return [=, scales = std::move(scales)](const Run& r, const Int16DotSums& s) {
      const uint32_t* const bias = has_bias ? r.input<uint32_t>(8) : nullptr;
      float* const line = s.scratch + kPanel * s.n;
      reorder_to_planes(s.scratch, s.n, s.lines, s.channels, s.n);
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
  return make(node, kQLinearConv, "qlinear_conv_winograd", [&](const ConvGeometry& g) -> PutSums {
    return {(kPanel + 1) * sizeof(float), [of_run, positions = g.window.position_count()](
                                              const Run& run) { return of_run(run, positions); }};
  });
}

}  // namespace pfrt::cpu
