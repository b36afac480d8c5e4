// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/conv/volume.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "providers/cpu/epilogue/in_float32.h"
#include "providers/cpu/kernels/conv/geometry.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kPiece = 1 << 14;  // elements that are copied at a time
constexpr size_t kRank = 5;

int64_t at(std::span<const int64_t> list, size_t i, int64_t otherwise) {
  return i < list.size() ? list[i] : otherwise;
}

// Whether spatial dimension |d| is read as it lies.
bool is_plain(const SnapshotNode& node, size_t d) {
  const auto pads = node.attr_ints("pads");
  return node.input_dims(1)[2 + d] == 1 && at(node.attr_ints("strides"), d, 1) == 1 &&
         at(pads, d, 0) == 0 && at(pads, d + 3, 0) == 0;
}

int64_t product(int64_t a, int64_t b) { return a < 0 || b < 0 ? -1 : a * b; }

uint64_t padded(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

// The copies of slices, and the results that go from one slice of two dimensions to three.
struct Slices {
  int64_t images, channels, depth, plane;  // of the image
  int64_t outs, places, out_plane;         // of the result, |places| slices
  int64_t taps, stride, dilation, pad;
  bool has_bias;
  uint64_t own;  // bytes that the kernel of two dimensions shares

  uint64_t stacked_bytes() const {
    return padded(static_cast<uint64_t>(channels * taps * plane) * sizeof(float));
  }
  uint64_t bytes() const {
    return own + stacked_bytes() + static_cast<uint64_t>(outs * out_plane) * sizeof(float);
  }

  void stack(const Run& run, int64_t image, int64_t place, float* to) const {
    const float* const from = run.input<float>(0) + image * channels * depth * plane;
    const auto bytes = static_cast<size_t>(plane) * sizeof(float);
    run.blocks(channels, std::max<int64_t>(kPiece / (taps * plane), 1),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin * taps; i < end * taps; ++i) {
                   const int64_t z = place * stride - pad + i % taps * dilation;
                   if (z < 0 || z >= depth)
                     std::memset(to + i * plane, 0, bytes);
                   else
                     std::memcpy(to + i * plane, from + (i / taps * depth + z) * plane, bytes);
                 }
               });
  }
  // Elements [begin, end) of the slice |from|.
  void put(const Run& run, int64_t image, int64_t place, const float* from, int64_t begin,
           int64_t end) const {
    for (int64_t n; begin < end; begin += n) {
      const int64_t channel = begin / out_plane, first = begin % out_plane;
      n = std::min(end - begin, out_plane - first);
      const int64_t to = ((image * outs + channel) * places + place) * out_plane + first;
      std::copy_n(from + begin, n, run.output<float>(0) + to);
      run.apply_epilogue(to, to + n);
    }
  }
};

Kernel by_slices(Slices slices, Kernel kernel) {
  slices.own = padded(kernel.shared_bytes);
  kernel.shared_bytes = slices.bytes();
  kernel.run = [slices, inner = std::move(kernel.run)](const Run& run) -> pfrt_code {
    char* const memory = run.shared<char>() + slices.own;
    auto* const stacked = reinterpret_cast<float*>(memory);
    auto* const slice = reinterpret_cast<float*>(memory + slices.stacked_bytes());
    for (int64_t image = 0; image < slices.images; ++image)
      for (int64_t place = 0; place < slices.places; ++place) {
        slices.stack(run, image, place, stacked);
        const std::function<void(int64_t, int64_t)> put = [&](int64_t begin, int64_t end) {
          slices.put(run, image, place, slice, begin, end);
        };
        Widened seen;
        seen.inputs[0] = stacked;
        if (slices.has_bias) seen.inputs[2] = run.input<float>(2);
        seen.output = slice;
        seen.take = &put;
        if (const pfrt_code code = inner(Run(run, seen)); code != PFRT_CODE_OK) return code;
      }
    return run.stop();
  };
  if (kernel.alternatives)
    kernel.alternatives = [slices, offered = std::move(kernel.alternatives)](bool all) {
      Alternatives out = offered(all);
      for (Alternative& other : out.others)
        other.kernel = by_slices(slices, std::move(other.kernel));
      return out;
    };
  return kernel;
}

// Spatial dimensions [first, last] as one; all but the last are read as they lie.
struct Joined {
  size_t first, last;

  int64_t size(std::span<const int64_t> dims) const {
    if (dims.size() != kRank) return -1;
    int64_t out = 1;
    for (size_t d = first; d <= last; ++d) out = product(out, dims[2 + d]);
    return out;
  }
};
// The two that stand for the three.
struct Axes {
  Joined rows, columns;
  bool sliced;
};
Axes axes_of(const SnapshotNode& node) {
  if (is_plain(node, 1) && is_plain(node, 2)) return {{0, 0}, {1, 2}, false};
  if (is_plain(node, 0) && is_plain(node, 1)) return {{0, 1}, {2, 2}, false};
  return {{1, 1}, {2, 2}, true};
}

pfrt_snapshot_value value_of(pfrt_dtype dtype, std::span<const int64_t> dims) {
  pfrt_snapshot_value value{};
  value.dtype = dtype;
  value.rank = dims.empty() ? -1 : static_cast<int32_t>(dims.size());
  value.dims = dims.data();
  value.producer = PFRT_NO_INDEX;
  value.consumer_count = 1;
  return value;
}

}  // namespace

PlaneNode::PlaneNode(const KernelRequest& volume, Use use) : request_(volume) {
  const Axes axes = axes_of(volume);
  sliced_ = axes.sliced;
  const bool widened = use == Use::kMake && sliced_ && is_16bit_float(volume.input_dtype(0));
  const auto x = volume.input_dims(0), w = volume.input_dims(1), y = volume.output_dims(0);
  const int64_t taps = sliced_ ? w[2] : 1;
  const bool known = x.size() == kRank;
  const int64_t batch = sliced_ ? 1 : known ? x[0] : -1;
  dims_[0] = {batch, known ? product(x[1], taps) : -1, axes.rows.size(x), axes.columns.size(x)};
  dims_[1] = {w[0], w[1] * taps, axes.rows.size(w), axes.columns.size(w)};
  dims_[2] = {batch, w[0], axes.rows.size(y), axes.columns.size(y)};

  const auto pads = volume.attr_ints("pads");
  const size_t row = axes.rows.last, column = axes.columns.last;
  const auto both = [&](std::string_view name) -> std::vector<int64_t> {
    const auto given = volume.attr_ints(name);
    return {at(given, row, 1), at(given, column, 1)};
  };
  attrs_.reserve(kMostAttrs);
  add("strides", 0, both("strides"));
  add("dilations", 1, both("dilations"));
  if (volume.attr_string("auto_pad", "NOTSET") == "NOTSET")
    add("pads", 2,
        {at(pads, row, 0), at(pads, column, 0), at(pads, row + 3, 0), at(pads, column + 3, 0)});
  for (const std::string_view name : {"auto_pad", "group"})
    if (const pfrt_snapshot_attr* const attr = volume.attr(name)) attrs_.push_back(*attr);

  values_ = {value_of(volume.input_dtype(0), dims_[0]), value_of(volume.input_dtype(1), dims_[1]),
             value_of(volume.input_dtype(2), volume.input_dims(2)),
             value_of(volume.output_dtype(0), dims_[2])};
  for (uint32_t i = 1; i < 3; ++i)
    if (volume.has_input(i) && volume.is_constant(i)) {
      values_[i].flags = PFRT_SNAPSHOT_CONSTANT;
      values_[i].data = volume.input_constant(i);
    }
  values_[3].producer = 0;
  if (widened)
    for (pfrt_snapshot_value& value : values_) {
      if (value.dtype == volume.input_dtype(0)) value.dtype = PFRT_DTYPE_FLOAT32;
      value.data = nullptr;
    }

  node_.name = to_c(volume.name());
  node_.op = to_c(volume.op());
  node_.domain = to_c(volume.domain());
  node_.canonical = 1;
  node_.inputs = inputs_.data();
  node_.input_count = volume.has_input(2) ? 3 : 2;
  node_.outputs = &output_;
  node_.output_count = 1;
  node_.attrs = attrs_.data();
  node_.attr_count = attrs_.size();
  snapshot_.struct_size = sizeof snapshot_;
  snapshot_.node_size = sizeof(pfrt_snapshot_node);
  snapshot_.value_size = sizeof(pfrt_snapshot_value);
  snapshot_.attr_size = sizeof(pfrt_snapshot_attr);
  snapshot_.node_count = 1;
  snapshot_.value_count = static_cast<uint32_t>(values_.size());
  snapshot_.nodes = &node_;
  snapshot_.values = values_.data();
  static_cast<SnapshotNode&>(request_) = SnapshotNode(snapshot_, 0, nullptr, volume.precision());
}

void PlaneNode::add(std::string_view name, size_t i, std::vector<int64_t> values) {
  lists_[i] = std::move(values);
  pfrt_snapshot_attr& attr = attrs_.emplace_back();
  attr.name = to_c(name);
  attr.type = PFRT_ATTR_INTS;
  attr.ints = lists_[i].data();
  attr.count = lists_[i].size();
}

std::string refuse_volume(const SnapshotNode& node) {
  const auto weights = node.input_dims(1);
  if (weights.size() != kRank || SnapshotNode::elements(weights) <= 0 || !node.is_constant(1))
    return "slices are for three spatial dimensions and constant weights";
  return "";
}

Result<Kernel> volume_kernel(const KernelRequest& volume, const PlaneNode& planes, Kernel made) {
  PFRT_ASSIGN(const ConvGeometry g, one_type_conv_geometry(volume));
  if (!planes.sliced()) return made;
  const Window& w = g.window;
  made.flops = g.flops();
  if (g.batch == 0 || w.position_count() == 0) {
    made.run = [](const Run& run) { return run.stop(); };
    return made;
  }
  const int64_t plane = w.image[1] * w.image[2], out_plane = w.positions[1] * w.positions[2];
  const Slices slices{g.batch,
                      g.groups * g.group_in,
                      w.image[0],
                      plane,
                      g.groups * g.group_out,
                      w.positions[0],
                      out_plane,
                      w.kernel[0],
                      w.strides[0],
                      w.dilations[0],
                      w.pads[0],
                      volume.has_input(2),
                      0};
  return in_float32(volume, {0, 2}, by_slices(slices, std::move(made)));
}

}  // namespace pfrt::cpu
