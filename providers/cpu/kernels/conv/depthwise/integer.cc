// SPDX-License-Identifier: Apache-2.0
//
// ConvInteger and QLinearConv whose groups have one input channel. A task computes rows of
// positions in 16 output channels. The rows of the image that they see become columns of taps
// (depthwise/bytes.h) right before they are read, int8 as uint8 of 128 more, with the zero point
// around the image. Zero points of weights are subtracted from them first.
#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "providers/cpu/elements/ceil_div.h"
#include "providers/cpu/elements/requantize.h"
#include "providers/cpu/jit/dot_microkernel.h"
#include "providers/cpu/kernels/conv/depthwise/bytes.h"
#include "providers/cpu/kernels/conv/depthwise/weights.h"
#include "providers/cpu/kernels/conv/geometry.h"
#include "providers/cpu/kernels/conv/integer_inputs.h"
#include "providers/cpu/kernels/conv/requantized_conv.h"
#include "providers/cpu/kernels/window/reorder.h"
#include "providers/cpu/kernels/window/reorder_bytes.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kChannels = DepthwiseBytes::kChannels, kColumn = DepthwiseBytes::kColumn;
constexpr int64_t kBandBytes = 24 << 10;  // stays in the first-level cache
constexpr int64_t kMostTaps = 1 << 12;
constexpr Types kBytes{PFRT_DTYPE_INT8, PFRT_DTYPE_UINT8};
constexpr IntegerInputs kConvInteger{0, 1, 2, 3}, kQLinearConv{0, 3, 2, 5};

int64_t padded(int64_t bytes) { return ceil_div(bytes, int64_t{64}) * 64; }

// Columns of taps that have the same place between two positions. Columns [begin, end) are pixels
// of a row, |stride| apart from |pixel| on; the others are padding.
struct Phase {
  int64_t columns, begin, end, pixel;
  int64_t at;  // of its first column in a line
};

struct Plan {
  ConvGeometry geometry;  // two-dimensional
  IntegerInputs in;
  bool x_signed, w_signed, has_bias;
  Nchw16cSides nchw16c;
  Parameter x_zero, w_zeros;
  PackedTaps packed;  // used where run.packed() is there
  int64_t rows;       // of positions, of a task
  std::vector<Phase> phases;
  std::vector<int64_t> taps;  // offsets of their columns, in bytes of a line
  int64_t pitch;              // bytes of a line of columns

  int64_t channels() const { return geometry.groups * geometry.group_out; }
  int64_t blocks() const { return ceil_div(channels(), kChannels); }
  int64_t across() const { return geometry.window.positions[1]; }
  const DepthwiseBytes& shape() const { return packed.shape; }
  // The shape for weights that only a run knows; its lines and weights are the largest.
  DepthwiseBytes pairs() const {
    return {shape().taps_y, shape().taps_x, shape().two_rows, false, shape().vectors};
  }
  int64_t window_rows() const {
    const Window& w = geometry.window;
    return (rows - 1) * w.strides[0] + (w.kernel[0] - 1) * w.dilations[0] + 1;
  }
  // Scratch: pixels of an image in planes, a row of padding, columns for twice the groups that
  // positions see and where those are, packed weights, sums of rows of positions, bytes of all
  // rows, and weights.
  int64_t pixel_bytes() const {
    const Window& w = geometry.window;
    return nchw16c.input ? 0 : padded(std::min(window_rows(), w.image[0]) * w.image[1] * kChannels);
  }
  int64_t pad_bytes() const { return padded(geometry.window.image[1] * kChannels); }
  int64_t line_bytes() const {
    return padded(2 * pairs().groups() * DepthwiseBytes::kLines * pitch +
                  DepthwiseBytes::kSlack * kColumn);
  }
  int64_t group_bytes() const { return padded(pairs().groups() * int64_t{sizeof(void*)}); }
  int64_t sum_bytes() const { return across() * kChannels * 4; }
  int64_t row_bytes() const { return padded(rows * across() * kChannels); }
  int64_t tap_bytes() const { return padded(shape().taps_y * shape().taps_x * kChannels * 2); }
  uint64_t scratch_bytes() const {
    return static_cast<uint64_t>(pixel_bytes() + pad_bytes() + line_bytes() + group_bytes() +
                                 pairs().weight_bytes() + 2 * sum_bytes() + row_bytes() +
                                 tap_bytes());
  }
};

// Inputs that are known in a run: zero points, and a bias.
struct Inputs {
  int32_t zero;  // of x, as pixels count
  std::vector<uint32_t> zeros;
  const uint32_t* bias;
};

// Memory of a task.
struct Memory {
  uint8_t *pixels, *pad, *lines;
  const uint8_t** groups;
  void* weights;
  int32_t* sums[2];
  uint8_t* bytes;
  int16_t* taps;

  Memory(const Plan& plan, char* scratch) {
    const auto next = [&](int64_t size) { return std::exchange(scratch, scratch + size); };
    pixels = reinterpret_cast<uint8_t*>(next(plan.pixel_bytes()));
    pad = reinterpret_cast<uint8_t*>(next(plan.pad_bytes()));
    lines = reinterpret_cast<uint8_t*>(next(plan.line_bytes()));
    groups = reinterpret_cast<const uint8_t**>(next(plan.group_bytes()));
    weights = next(plan.pairs().weight_bytes());
    for (auto& sum : sums) sum = reinterpret_cast<int32_t*>(next(plan.sum_bytes()));
    bytes = reinterpret_cast<uint8_t*>(next(plan.row_bytes()));
    taps = reinterpret_cast<int16_t*>(next(plan.tap_bytes()));
  }
};

// Positions of a task: |n| from |from| on, in rows; 16 channels from |channel| on, counted over all
// images, of which |count| are there.
struct Task {
  int64_t channel, count, from, n;
  const Memory& memory;
};

// Pixels of |n| rows of the image from row |top| on, of the channels that 16 output channels from
// |first| on see.
void fill_pixels(const Plan& plan, const uint8_t* image, int64_t first, int64_t count, int64_t top,
                 int64_t n, uint8_t* pixels) {
  constexpr int64_t kPixels = 128;
  const int64_t size = plan.geometry.window.image_size(), across = plan.geometry.window.image[1];
  const int64_t group_out = plan.geometry.group_out, end = (top + n) * across;
  alignas(16) uint8_t planes[kChannels * kPixels];
  int64_t at = top * across;
  if (group_out == 1)
    return bytes_to_lines(pixels, kChannels, kChannels, image + first * size + at, size, count,
                          end - at);
  for (; at < end; at += kPixels, pixels += kPixels * kChannels) {
    const int64_t some = std::min(kPixels, end - at);
    for (int64_t c = 0; c < count; ++c)
      std::memcpy(planes + c * kPixels, image + (first + c) / group_out * size + at,
                  static_cast<size_t>(some));
    bytes_to_lines(pixels, kChannels, kChannels, planes, kPixels, count, some);
  }
}

// Rows of an image, of which those before |end| may be read.
struct ImageRows {
  const uint8_t* pixels;  // of row 0
  int64_t end;
};

// The groups of columns that rows of positions see, one after another. Positions share groups with
// those before them where they are whole groups of neighbouring rows below.
class Columns {
 public:
  // |row| is the first that positions see.
  Columns(const Plan& plan, const DepthwiseBytes& shape, const ImageRows& rows, int64_t row,
          const Memory& memory)
      : plan_(plan),
        shape_(shape),
        rows_(rows),
        memory_(memory),
        step_(shape.two_rows ? 1 : plan.geometry.window.dilations[0]),
        advance_(plan.geometry.window.strides[0] * shape.outputs()),
        groups_(shape.groups()),
        new_groups_(step_ == 1 && advance_ % shape.group() == 0
                        ? std::min(advance_ / shape.group(), groups_)
                        : groups_),
        slots_(groups_ + new_groups_),
        row_(row) {}

  // Makes those columns that are padding for all rows.
  void pad(uint8_t byte) const {
    const uint64_t half =
        byte * (shape_.quads ? uint64_t{0x0101010101010101} : uint64_t{0x0001000100010001});
    for (const Phase& phase : plan_.phases)
      for (int64_t line = 0; line < slots_ * DepthwiseBytes::kLines; ++line) {
        uint8_t* const out = memory_.lines + line * plan_.pitch + phase.at * kColumn;
        for (int64_t i = 0; i < phase.begin; ++i) put(half, out + i * kColumn);
        for (int64_t i = phase.end; i < phase.columns; ++i) put(half, out + i * kColumn);
      }
  }
  // Makes columns of the next positions' new groups; the first have all.
  void fill() {
    for (int64_t n = first_ ? groups_ : new_groups_; n > 0; --n) {
      fill(lines(filled_), row_);
      filled_ = after(filled_);
      row_ += shape_.group() * step_;
    }
    first_ = false;
    if (new_groups_ == groups_) row_ += advance_ - groups_ * shape_.group() * step_;
  }
  // The groups of lines of the next positions.
  const uint8_t* const* next() {
    int64_t slot = next_;
    for (int64_t g = 0; g < groups_; ++g) {
      memory_.groups[g] = lines(slot);
      slot = after(slot);
      if (g + 1 == new_groups_) next_ = slot;
    }
    return memory_.groups;
  }

 private:
  static void put(uint64_t half, uint8_t* column) {
    std::memcpy(column, &half, sizeof half);
    std::memcpy(column + sizeof half, &half, sizeof half);
  }
  int64_t after(int64_t slot) const { return slot + 1 < slots_ ? slot + 1 : 0; }
  uint8_t* lines(int64_t slot) const {
    return memory_.lines + slot * DepthwiseBytes::kLines * plan_.pitch;
  }
  void fill(uint8_t* out, int64_t row) const {
    const int64_t row_bytes = plan_.geometry.window.image[1] * kChannels;
    const uint8_t* starts[4];
    for (int64_t r = 0; r < shape_.group(); ++r, row += step_)
      starts[r] = row >= 0 && row < rows_.end ? rows_.pixels + row * row_bytes : memory_.pad;
    for (const Phase& phase : plan_.phases) {
      if (phase.begin == phase.end) continue;
      const uint8_t* from[4];
      for (int64_t r = 0; r < shape_.group(); ++r) from[r] = starts[r] + phase.pixel * kChannels;
      shape_.arrange(from, plan_.geometry.window.strides[1], phase.end - phase.begin,
                     plan_.x_signed ? 0x80 : 0, out + (phase.at + phase.begin) * kColumn,
                     plan_.pitch);
    }
  }

  const Plan& plan_;
  const DepthwiseBytes& shape_;
  const ImageRows rows_;
  const Memory& memory_;
  const int64_t step_, advance_, groups_, new_groups_, slots_;
  int64_t row_;
  int64_t filled_ = 0, next_ = 0;  // slots: to fill, and of the next positions' first group
  bool first_ = true;
};

// Weights as a task reads them, and what sums begin with; whether four are multiplied at once.
bool prepare(const Run& run, const Plan& plan, const Inputs& inputs, int64_t first, int64_t count,
             const Memory& memory, const void*& weights, int32_t* start) {
  bool quads = plan.shape().quads;
  int32_t own[kChannels];
  const int32_t* sums = own;
  if (const char* const packed = run.packed<char>()) {
    weights = packed + first / kChannels * plan.packed.block_bytes();
    sums = reinterpret_cast<const int32_t*>(static_cast<const char*>(weights) +
                                            plan.shape().weight_bytes());
  } else {
    const bool small =
        widen_taps(run.input<uint8_t>(plan.in.w), plan.w_signed, plan.geometry.window.taps(), first,
                   count, inputs.zeros, memory.taps, own);
    DepthwiseBytes shape = plan.pairs();
    shape.quads = quads = small && DepthwiseBytes::has_quads();
    shape.pack(memory.taps, memory.weights);
    weights = memory.weights;
  }
  for (int64_t c = 0; c < count; ++c) {
    const uint32_t bias = inputs.bias == nullptr ? 0 : inputs.bias[first + c];
    start[c] = static_cast<int32_t>(bias - static_cast<uint32_t>(inputs.zero) *
                                               static_cast<uint32_t>(sums[c]));
  }
  return quads;
}

// |rows| takes a task, the shape and the columns of a row of positions (or of two), its number
// within the task, and how many there are; |done| takes the task where the output is in planes.
using RowsFn = std::function<void(const Task&, const DepthwiseBytes&, const DepthwiseColumns&,
                                  int64_t row, int64_t n)>;
using DoneFn = std::function<void(const Task&)>;
pfrt_code run_plan(const Run& run, const Plan& plan, const RowsFn& rows, const DoneFn& done) {
  const ConvGeometry& g = plan.geometry;
  const Window& w = g.window;
  const int32_t shift = plan.x_signed ? 128 : 0;
  Inputs inputs{static_cast<int32_t>(plan.x_zero.read<uint32_t>(run, 1, 0)[0]) + shift,
                plan.w_zeros.read<uint32_t>(run, plan.channels(), 0),
                plan.has_bias ? run.input<uint32_t>(8) : nullptr};
  const int64_t height = w.positions[0], across = w.positions[1];
  if (g.batch == 0 || height * across == 0) return run.stop();
  const int64_t tasks = ceil_div(height, plan.rows), blocks = plan.blocks();
  const auto pad = static_cast<uint8_t>(inputs.zero);
  const OutputLayout layout{plan.nchw16c.output, height * across};
  run.parallel(g.batch * blocks * tasks, [&](int64_t i, uint32_t worker) {
    if (run.stopped()) return;
    const int64_t image = i / tasks / blocks, first = i / tasks % blocks * kChannels;
    const int64_t top = i % tasks * plan.rows, end = std::min(top + plan.rows, height);
    const int64_t count = std::min(kChannels, plan.channels() - first);
    const Memory memory(plan, run.scratch<char>(worker));
    int32_t start[kChannels] = {};
    const void* weights = nullptr;
    DepthwiseBytes shape = plan.shape();
    shape.quads = prepare(run, plan, inputs, first, count, memory, weights, start);
    const uint8_t* pixels = run.input<uint8_t>(plan.in.x) + image * g.groups * w.image_size();
    const int64_t above = top * w.strides[0] - w.pads[0];
    ImageRows image_rows{};
    if (plan.nchw16c.input) {
      image_rows = {pixels + first * w.image_size(), w.image[0]};
    } else {
      const int64_t row = std::clamp<int64_t>(above, 0, w.image[0]);
      const int64_t behind = std::clamp<int64_t>(above + plan.window_rows(), row, w.image[0]);
      fill_pixels(plan, pixels, first, count, row, behind - row, memory.pixels);
      image_rows = {memory.pixels - row * w.image[1] * kChannels, behind};
    }
    std::memset(memory.pad, pad ^ (plan.x_signed ? 0x80 : 0),
                static_cast<size_t>(w.image[1] * kChannels));
    const Task task{image * plan.channels() + first, count, top * across, (end - top) * across,
                    memory};
    Columns filled(plan, shape, image_rows, above, memory);
    DepthwiseColumns columns{memory.groups, plan.pitch, plan.taps.data(), weights, start};
    filled.pad(pad);
    filled.fill();
    for (int64_t y = top; y < end; y += shape.outputs()) {
      // Columns are made one step ahead: bytes that were just written are slow to read in pieces of
      // another size.
      if (y + shape.outputs() < end) filled.fill();
      columns.groups = filled.next();
      const int64_t n = std::min(shape.outputs(), end - y);
      rows(task, shape, columns, y - top, n);
      // Lines are still in the first-level cache.
      if (layout.nchw16c) apply_epilogue(run, layout, task.channel, count, y * across, n * across);
    }
    if (layout.nchw16c) return;
    done(task);
    apply_epilogue(run, layout, task.channel, count, task.from, task.n);
  });
  return run.stop();
}

std::string refuse(const KernelRequest& node, const IntegerInputs& in) {
  const auto weights = node.input_dims(in.w);
  const int64_t groups = node.attr_int("group", 1);
  if ((weights.size() != 3 && weights.size() != 4) || weights[1] != 1 || groups < 2 ||
      weights[0] < groups || weights[0] > 4 * groups)
    return "not depthwise: groups must have one input channel and at most four output channels";
  const int64_t taps = SnapshotNode::elements(weights.subspan(2));
  if (taps < 1 || taps > kMostTaps) return "lines are for 1 to 4096 taps";
  // Taps of a row are neighbours.
  const auto dilations = node.attr_ints("dilations");
  if (!dilations.empty() && dilations.back() != 1 && weights.back() != 1)
    return "lines are for windows without dilation along the row";
  if (node.any_nchw16c() && (weights[0] != groups || groups % kChannels != 0))
    return "nChw16c is for multiples of 16 channels, one output each";
  return "";
}

// Rows of positions of tasks, and where columns lie.
void divide(Plan& plan) {
  const Window& w = plan.geometry.window;
  const int64_t height = std::max<int64_t>(w.positions[0], 1);
  const int64_t fit = kBandBytes / std::max<int64_t>(w.image[1] * kChannels, 1);
  const int64_t outputs = plan.shape().outputs();
  plan.rows = std::clamp<int64_t>((fit - plan.window_rows()) / w.strides[0] + 1, 1, height);
  plan.rows = ceil_div(ceil_div(height, ceil_div(height, plan.rows)), outputs) * outputs;
  const int64_t stride = w.strides[1], taps = w.kernel[1];
  int64_t at = 0;
  for (int64_t first = 0; first < std::min(stride, taps); ++first) {
    const int64_t columns = std::max<int64_t>(plan.across(), 1) + (taps - 1 - first) / stride;
    const int64_t left = w.pads[1] - first;  // column i is pixel i * stride - left
    const int64_t begin = left <= 0 ? 0 : std::min(ceil_div(left, stride), columns);
    const int64_t last = w.image[1] - 1 + left;
    const int64_t end = std::clamp(last < 0 ? 0 : last / stride + 1, begin, columns);
    plan.phases.push_back({columns, begin, end, begin * stride - left, at});
    at += columns;
  }
  for (int64_t t = 0; t < taps; ++t)
    plan.taps.push_back((plan.phases[static_cast<size_t>(t % stride)].at + t / stride) * kColumn);
  plan.pitch = at * kColumn;
}

Result<std::shared_ptr<const Plan>> make_plan(const KernelRequest& node, const IntegerInputs& in,
                                              bool has_bias) {
  PFRT_ASSIGN(ConvGeometry g, conv_geometry(node, in.x, in.w));
  PFRT_TRY(need_types(node, {in.x, in.w, in.x_zero, in.w_zero}, kBytes));
  g.window = two_dimensional(std::move(g.window));
  Plan plan{std::move(g),
            in,
            node.input_dtype(in.x) == PFRT_DTYPE_INT8,
            node.input_dtype(in.w) == PFRT_DTYPE_INT8,
            has_bias,
            node.sides,
            Parameter(node, in.x_zero),
            Parameter(node, in.w_zero),
            packed_taps(node, in),
            1,
            {},
            {},
            0};
  divide(plan);
  PFRT_TRY(plan.x_zero.check("X's zero point", 1));
  PFRT_TRY(plan.w_zeros.check("W's zero point", plan.channels()));
  if (node.packed != nullptr && !node.packed->recipe.starts_with(plan.packed.recipe()))
    return error(Code::kUNSUPPORTED, "the weights are packed for other instructions");
  return std::make_shared<const Plan>(std::move(plan));
}

Kernel kernel_of(const KernelRequest& node, const Plan& plan) {
  Kernel kernel;
  kernel.packed_alone = node.packed != nullptr;
  kernel.flops = plan.geometry.flops();
  kernel.scratch_bytes = plan.scratch_bytes();
  return kernel;
}

}  // namespace

std::string refuse_conv_integer_depthwise(const KernelRequest& node) {
  if (std::string why = refuse_conv_integer(node); !why.empty()) return why;
  return refuse(node, kConvInteger);
}

std::optional<PackedInput> pack_conv_integer_depthwise(const SnapshotNode& node) {
  return pack_taps(node, kConvInteger);
}

Result<Kernel> make_conv_integer_depthwise(const KernelRequest& node) {
  PFRT_ASSIGN(const std::shared_ptr<const Plan> plan, make_plan(node, kConvInteger, false));
  Kernel kernel = kernel_of(node, *plan);
  kernel.run = [plan](const Run& run) {
    const int64_t positions = plan->geometry.window.position_count();
    const bool vectors = DotMicrokernel::get() != nullptr;
    const auto rows = [&](const Task& task, const DepthwiseBytes& shape,
                          const DepthwiseColumns& columns, int64_t row, int64_t n) {
      const int64_t across = plan->across();
      if (plan->nchw16c.output) {
        auto* const to = run.output<int32_t>(0) + task.channel * positions +
                         (task.from + row * across) * kChannels;
        int32_t* const lines[2] = {to, n > 1 ? to + across * kChannels : task.memory.sums[1]};
        return depthwise_sums(shape, columns, across, lines);
      }
      depthwise_sums(shape, columns, across, task.memory.sums);
      for (int64_t r = 0; r < n; ++r) {
        const int32_t* const sums = task.memory.sums[r];
        auto* const to =
            run.output<int32_t>(0) + task.channel * positions + task.from + (row + r) * across;
        if (vectors) {
          reorder_to_planes(reinterpret_cast<float*>(to), positions,
                            reinterpret_cast<const float*>(sums), task.count, across);
          continue;
        }
        for (int64_t c = 0; c < task.count; ++c)
          for (int64_t p = 0; p < across; ++p) to[c * positions + p] = sums[p * kChannels + c];
      }
    };
    return run_plan(run, *plan, rows, [](const Task&) {});
  };
  return kernel;
}

namespace {

// Writes the bytes of |n| rows of positions, 1 or 2, to |out|, lines of 16 channels.
void requantize_rows(const Plan& plan, const RequantizedConv::Scales& scales, const Task& task,
                     const DepthwiseBytes& shape, const DepthwiseColumns& columns, int64_t n,
                     uint8_t* out) {
  const int64_t first = task.channel % plan.channels(), across = plan.across();
  if (scales.below_one) {
    float scale[kChannels] = {};
    std::copy_n(scales.scales.data() + first, task.count, scale);
    uint8_t* const lines[2] = {
        out, n > 1 ? out + across * kChannels : reinterpret_cast<uint8_t*>(task.memory.sums[1])};
    return depthwise_requantized(shape, columns, across, scale, static_cast<int32_t>(scales.zero),
                                 scales.is_signed, lines);
  }
  depthwise_sums(shape, columns, across, task.memory.sums);
  for (int64_t r = 0; r < n; ++r)
    scales.lines(task.memory.sums[r], first, task.count, across, out + r * across * kChannels);
}

}  // namespace

std::string refuse_qlinear_conv_depthwise(const KernelRequest& node) {
  if (std::string why = refuse_qlinear_conv(node); !why.empty()) return why;
  return refuse(node, kQLinearConv);
}

std::optional<PackedInput> pack_qlinear_conv_depthwise(const SnapshotNode& node) {
  return pack_taps(node, kQLinearConv);
}

// Inputs: x, its scale and zero point, w, its scale and zero point, y's scale and zero point, bias.
Result<Kernel> make_qlinear_conv_depthwise(const KernelRequest& node) {
  PFRT_ASSIGN(const std::shared_ptr<const Plan> plan,
              make_plan(node, kQLinearConv, node.has_input(8)));
  PFRT_ASSIGN(const RequantizedConv to_bytes, RequantizedConv::make(node));
  Kernel kernel = kernel_of(node, *plan);
  kernel.run = [plan, to_bytes](const Run& run) {
    const RequantizedConv::Scales scales = to_bytes.read(run);
    const int64_t positions = plan->geometry.window.position_count();
    const auto out_of = [&](const Task& task) {
      return run.output<uint8_t>(0) + task.channel * positions;
    };
    const auto rows = [&](const Task& task, const DepthwiseBytes& shape,
                          const DepthwiseColumns& columns, int64_t row, int64_t n) {
      uint8_t* const lines =
          plan->nchw16c.output ? out_of(task) + task.from * kChannels : task.memory.bytes;
      requantize_rows(*plan, scales, task, shape, columns, n,
                      lines + row * plan->across() * kChannels);
    };
    return run_plan(run, *plan, rows, [&](const Task& task) {
      bytes_to_planes(out_of(task) + task.from, positions, task.memory.bytes, task.count, task.n);
    });
  };
  return kernel;
}

}  // namespace pfrt::cpu
