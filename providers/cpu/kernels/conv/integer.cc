// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "providers/cpu/elements/requantize.h"
#include "providers/cpu/kernels/conv/geometry.h"
#include "providers/cpu/kernels/conv/image_source.h"

namespace pfrt::cpu {
namespace {

constexpr Types kBytes{PFRT_DTYPE_INT8, PFRT_DTYPE_UINT8};

bool is_byte(pfrt_dtype dtype) { return kBytes.has(dtype); }

// A convolution of bytes with sums modulo 2^32, which both operators share.
struct ByteConv {
  ConvGeometry geometry;
  WindowRows rows;
  Gemm<uint32_t> gemm;
  uint32_t x, w;  // input positions
  pfrt_dtype x_type, w_type;
  Parameter x_zeros, w_zeros;

  int64_t channels() const { return geometry.groups * geometry.group_out; }
  int64_t tasks() const { return geometry.batch * geometry.groups * gemm.tiles(); }
  uint32_t read_x_zero(const Run& run) const { return x_zeros.read<uint32_t>(run, 1, 0)[0]; }
  std::vector<uint32_t> read_w_zeros(const Run& run) const {
    return w_zeros.read<uint32_t>(run, channels(), 0);
  }
  // Computes task |i| into |sums|, rows |ldc| apart.
  void compute(const Run& run, int64_t i, uint32_t zero, const uint32_t* zeros, uint32_t* sums,
               int64_t ldc, uint32_t* scratch) const {
    const int64_t image = i / gemm.tiles(), group = image % geometry.groups;
    const int64_t depth = geometry.depth(), pixels = geometry.window.image_size();
    StridedSource<uint32_t> weights(run.input(w), w_type, group * geometry.group_out * depth, depth,
                                    1);
    if (w_zeros.present()) weights.set_zero(zeros + group * geometry.group_out, 1);
    const ImageSource<uint32_t> columns(rows, pixels, run.input(x), x_type,
                                        image * geometry.group_in * pixels, zero);
    gemm.compute(run, gemm.tile(i % gemm.tiles()), weights, columns, sums, ldc, scratch);
  }
};

Result<std::shared_ptr<const ByteConv>> read(const SnapshotNode& node, uint32_t x, uint32_t w,
                                             uint32_t x_zero, uint32_t w_zero) {
  PFRT_ASSIGN(ConvGeometry g, conv_geometry(node, x, w));
  PFRT_TRY(need_types(node, {x, w, x_zero, w_zero}, kBytes));
  const WindowRows rows(g.window);
  const Gemm<uint32_t> gemm(g.group_out, g.window.position_count(), g.depth(), g.batch * g.groups);
  auto conv = std::make_shared<const ByteConv>(
      ByteConv{std::move(g), rows, gemm, x, w, node.input_dtype(x), node.input_dtype(w),
               Parameter(node, x_zero), Parameter(node, w_zero)});
  PFRT_TRY(conv->x_zeros.check("X's zero point", 1));
  PFRT_TRY(conv->w_zeros.check("W's zero point", conv->channels()));
  return conv;
}

}  // namespace

std::string refuse_conv_integer(const KernelRequest& node) {
  return is_byte(node.input_dtype(1))
             ? ""
             : message("W is ", dtype_name(node.input_dtype(1)), ", not int8 or uint8");
}

Result<Kernel> make_conv_integer(const KernelRequest& node) {
  PFRT_ASSIGN(const std::shared_ptr<const ByteConv> conv, read(node, 0, 1, 2, 3));
  Kernel kernel;
  kernel.flops = conv->geometry.flops();
  kernel.scratch_bytes = conv->gemm.scratch_bytes();
  kernel.run = [conv](const Run& run) -> pfrt_code {
    const uint32_t zero = conv->read_x_zero(run);
    const std::vector<uint32_t> zeros = conv->read_w_zeros(run);
    const int64_t tiles = conv->gemm.tiles(), positions = conv->geometry.window.position_count();
    run.parallel(conv->tasks(), [&](int64_t i, uint32_t worker) {
      const GemmTile tile = conv->gemm.tile(i % tiles);
      const int64_t at = (i / tiles * conv->geometry.group_out + tile.row) * positions + tile.col;
      conv->compute(run, i, zero, zeros.data(), run.output<uint32_t>(0) + at, positions,
                    run.scratch<uint32_t>(worker));
      for (int64_t r = 0; r < tile.rows; ++r)
        run.apply_epilogue(at + r * positions, at + r * positions + tile.cols);
    });
    return run.stop();
  };
  return kernel;
}

std::string refuse_qlinear_conv(const KernelRequest& node) {
  if (!is_byte(node.input_dtype(3)))
    return message("W is ", dtype_name(node.input_dtype(3)), ", not int8 or uint8");
  if (!is_byte(node.output_dtype(0)))
    return message("Y is ", dtype_name(node.output_dtype(0)), ", not int8 or uint8");
  return "";
}

// Inputs: x, its scale and zero point, w, its scale and zero point, y's scale and zero point, bias.
Result<Kernel> make_qlinear_conv(const KernelRequest& node) {
  PFRT_ASSIGN(const std::shared_ptr<const ByteConv> conv, read(node, 0, 3, 2, 5));
  const int64_t channels = conv->channels();
  PFRT_TRY(need_types(node, {1, 4, 6}, kFloats));
  PFRT_TRY(need_types(node, {7}, kBytes));
  PFRT_TRY(need_types(node, {8}, Types{PFRT_DTYPE_INT32}));
  const Parameter x_scale(node, 1), w_scale(node, 4), y_scale(node, 6), y_zero(node, 7);
  PFRT_TRY(x_scale.check("X's scale", 1));
  PFRT_TRY(w_scale.check("W's scale", channels));
  PFRT_TRY(y_scale.check("Y's scale", 1));
  PFRT_TRY(y_zero.check("Y's zero point", 1));
  PFRT_TRY(check_bias(node, 8, channels));
  const bool has_bias = node.has_input(8);
  const pfrt_dtype dtype = node.output_dtype(0);
  Kernel kernel;
  kernel.flops = conv->geometry.flops();
  kernel.scratch_bytes = conv->gemm.scratch_bytes() +
                         2 * static_cast<uint64_t>(conv->gemm.max_tile_elements()) * sizeof(float);
  kernel.run = [=](const Run& run) -> pfrt_code {
    const float sx = x_scale.read<float>(run, 1, 1.0f)[0],
                sy = y_scale.read<float>(run, 1, 1.0f)[0];
    const float zy = y_zero.read<float>(run, 1, 0.0f)[0];
    const std::vector<float> sw = w_scale.read<float>(run, channels, 1.0f);
    const uint32_t zero = conv->read_x_zero(run);
    const std::vector<uint32_t> zeros = conv->read_w_zeros(run);
    const uint32_t* const bias = has_bias ? run.input<uint32_t>(8) : nullptr;
    const int64_t tiles = conv->gemm.tiles(), positions = conv->geometry.window.position_count();
    const StoreFn<float> store = store_fn<float>(dtype);
    run.parallel(conv->tasks(), [&](int64_t i, uint32_t worker) {
      const GemmTile tile = conv->gemm.tile(i % tiles);
      uint32_t* const scratch = run.scratch<uint32_t>(worker);
      uint32_t* const sums = scratch + conv->gemm.scratch_bytes() / sizeof(uint32_t);
      float* const line = reinterpret_cast<float*>(sums + conv->gemm.max_tile_elements());
      conv->compute(run, i, zero, zeros.data(), sums, tile.cols, scratch);
      for (int64_t r = 0; r < tile.rows; ++r) {
        const int64_t plane = i / tiles * conv->geometry.group_out + tile.row + r,
                      channel = plane % channels;
        uint32_t* const row = sums + r * tile.cols;
        if (bias)
          for (int64_t j = 0; j < tile.cols; ++j) row[j] += bias[channel];
        const float scale = sx * sw[static_cast<size_t>(channel)] / sy;
        requantize(line, row, &scale, 0, zy, tile.cols);
        const int64_t at = plane * positions + tile.col;
        store(run.output(0), at, line, tile.cols);
        run.apply_epilogue(at, at + tile.cols);
      }
    });
    return run.stop();
  };
  return kernel;
}

}  // namespace pfrt::cpu
