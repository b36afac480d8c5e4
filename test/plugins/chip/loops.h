// SPDX-License-Identifier: Apache-2.0
//
// The operators of the digits model and of a decoder as plain loops over float32 and int64. Written
// against the plug-in header alone.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pyflame_rt/plugin.h"

namespace loops {

using Dims = std::vector<int64_t>;

// Elements of a snapshot's arrays, read with the strides that it gives.
inline const pfrt_snapshot_node& node_at(const pfrt_snapshot& s, uint32_t i) {
  return *static_cast<const pfrt_snapshot_node*>(pfrt_at(s.nodes, s.node_size, i));
}
inline const pfrt_snapshot_value& value_at(const pfrt_snapshot& s, uint32_t i) {
  return *static_cast<const pfrt_snapshot_value*>(pfrt_at(s.values, s.value_size, i));
}

inline std::string text_of(pfrt_string s) { return s.size ? std::string(s.data, s.size) : ""; }

inline int64_t count_of(const int64_t* begin, const int64_t* end) {
  int64_t n = 1;
  for (; begin != end; ++begin) n *= *begin;
  return n;
}
inline int64_t count_of(const Dims& dims) {
  return count_of(dims.data(), dims.data() + dims.size());
}

inline pfrt_code fail(const pfrt_sink* sink, pfrt_code code, const std::string& why) {
  return sink->fail(sink, code, PFRT_NO_INDEX, {why.data(), why.size()});
}

inline const pfrt_region& region_at(const pfrt_region* regions, size_t size, size_t i) {
  return *static_cast<const pfrt_region*>(pfrt_at(regions, size, i));
}

struct Tensor {
  pfrt_dtype dtype = PFRT_DTYPE_FLOAT32;
  Dims dims;
  char* data = nullptr;

  size_t rank() const { return dims.size(); }
  int64_t count() const { return count_of(dims); }
  size_t size() const { return dtype == PFRT_DTYPE_INT64 ? 8 : 4; }  // bytes of an element
  template <typename T = float>
  T* as() const {
    return reinterpret_cast<T*>(data);
  }
  // Number of rows, when the last |n| dimensions are a row.
  int64_t rows(size_t n) const { return count_of(dims.data(), dims.data() + rank() - n); }
  size_t axis(int64_t a) const {
    return static_cast<size_t>(a < 0 ? a + static_cast<int64_t>(rank()) : a);
  }
  // Number of elements before, and after, an axis.
  int64_t outer(size_t a) const { return count_of(dims.data(), dims.data() + a); }
  int64_t inner(size_t a) const { return count_of(dims.data() + a + 1, dims.data() + rank()); }
};

// A copy of a node, which outlives the snapshot.
struct Node {
  Node() = default;
  Node(const pfrt_snapshot& snapshot, uint32_t at) : index(at) {
    const pfrt_snapshot_node& from = node_at(snapshot, at);
    op = text_of(from.op);
    inputs.assign(from.inputs, from.inputs + from.input_count);
    output = from.output_count ? from.outputs[0] : PFRT_NO_INDEX;
    for (uint64_t a = 0; a < from.attr_count; ++a) {
      const auto& attr =
          *static_cast<const pfrt_snapshot_attr*>(pfrt_at(from.attrs, snapshot.attr_size, a));
      if (attr.type == PFRT_ATTR_INT) ints[text_of(attr.name)] = attr.i;
      if (attr.type == PFRT_ATTR_FLOAT) floats[text_of(attr.name)] = attr.f;
      if (attr.type == PFRT_ATTR_INTS)
        lists[text_of(attr.name)].assign(attr.ints, attr.ints + attr.count);
    }
  }

  uint32_t index = 0;
  std::string op;
  std::map<std::string, int64_t, std::less<>> ints;
  std::map<std::string, float, std::less<>> floats;
  std::map<std::string, Dims, std::less<>> lists;
  std::vector<uint32_t> inputs;  // values; PFRT_NO_INDEX = absent
  uint32_t output = 0;

  int64_t i(std::string_view name, int64_t fallback) const {
    const auto at = ints.find(name);
    return at == ints.end() ? fallback : at->second;
  }
  float f(std::string_view name, float fallback) const {
    const auto at = floats.find(name);
    return at == floats.end() ? fallback : at->second;
  }
  Dims list(std::string_view name, Dims fallback) const {
    const auto at = lists.find(name);
    return at == lists.end() ? fallback : at->second;
  }
};

using Inputs = std::vector<Tensor>;
using Loop = void (*)(const Node& node, const Inputs& in, const Tensor& out);

// Index in |in| of the element that is broadcast to element |at| of |out|.
inline int64_t broadcast_index(const Tensor& in, const Tensor& out, int64_t at) {
  int64_t index = 0, stride = 1;
  for (size_t d = out.rank(), k = in.rank(); k > 0; --d, --k) {
    const int64_t place = at % out.dims[d - 1];
    at /= out.dims[d - 1];
    if (in.dims[k - 1] != 1) index += place * stride;
    stride *= in.dims[k - 1];
  }
  return index;
}

template <typename T, typename Fn>
void zip(const Inputs& in, const Tensor& out, Fn fn) {
  for (int64_t i = 0; i < out.count(); ++i)
    out.as<T>()[i] = fn(in[0].as<T>()[broadcast_index(in[0], out, i)],
                        in[1].as<T>()[broadcast_index(in[1], out, i)]);
}
template <auto fn>
void binary(const Node&, const Inputs& in, const Tensor& out) {
  if (out.dtype == PFRT_DTYPE_INT64) return zip<int64_t>(in, out, fn);
  zip<float>(in, out, fn);
}
template <auto fn>
void binary_float(const Node&, const Inputs& in, const Tensor& out) {
  zip<float>(in, out, fn);
}
template <auto fn>
void unary(const Node&, const Inputs& in, const Tensor& out) {
  for (int64_t i = 0; i < out.count(); ++i) out.as()[i] = fn(in[0].as()[i]);
}

inline void copy(const Node&, const Inputs& in, const Tensor& out) {
  std::memcpy(out.data, in[0].data, static_cast<size_t>(out.count()) * out.size());
}

inline void matmul(const Node&, const Inputs& in, const Tensor& out) {
  const int64_t m = in[0].dims[in[0].rank() - 2], k = in[0].dims.back(), n = in[1].dims.back();
  Tensor a = in[0], b = in[1], c = out;
  for (Tensor* t : {&a, &b, &c}) t->dims.resize(t->rank() - 2);
  for (int64_t batch = 0; batch < c.count(); ++batch) {
    const float* const rows = a.as() + broadcast_index(a, c, batch) * m * k;
    const float* const columns = b.as() + broadcast_index(b, c, batch) * k * n;
    float* const to = c.as() + batch * m * n;
    std::fill_n(to, m * n, 0.0F);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t l = 0; l < k; ++l)
        for (int64_t j = 0; j < n; ++j) to[i * n + j] += rows[i * k + l] * columns[l * n + j];
  }
}

inline void gemm(const Node& node, const Inputs& in, const Tensor& out) {
  const bool across = node.i("transA", 0) != 0, turned = node.i("transB", 0) != 0;
  const int64_t m = out.dims[0], n = out.dims[1], k = in[0].dims[across ? 0 : 1];
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t l = 0; l < k; ++l)
        sum +=
            in[0].as()[across ? l * m + i : i * k + l] * in[1].as()[turned ? j * k + l : l * n + j];
      float& to = out.as()[i * n + j];
      to = node.f("alpha", 1) * sum;
      if (in.size() > 2 && in[2].data)
        to += node.f("beta", 1) * in[2].as()[broadcast_index(in[2], out, i * n + j)];
    }
}

// Calls fn(output element, input element of a channel, tap) for each tap of each window.
template <typename Fn>
void windows(const Node& node, const Tensor& in, const Tensor& out, const Dims& kernel, Fn fn) {
  const Dims strides = node.list("strides", {1, 1}), pads = node.list("pads", {0, 0, 0, 0}),
             dilations = node.list("dilations", {1, 1});
  const int64_t height = in.dims[2], width = in.dims[3];
  for (int64_t y = 0; y < out.dims[2]; ++y)
    for (int64_t x = 0; x < out.dims[3]; ++x)
      for (int64_t t = 0; t < kernel[0] * kernel[1]; ++t) {
        const int64_t row = y * strides[0] - pads[0] + t / kernel[1] * dilations[0];
        const int64_t column = x * strides[1] - pads[1] + t % kernel[1] * dilations[1];
        if (row < 0 || row >= height || column < 0 || column >= width) continue;
        fn(y * out.dims[3] + x, row * width + column, t);
      }
}

inline void conv(const Node& node, const Inputs& in, const Tensor& out) {
  const Tensor &image = in[0], &weights = in[1];
  const int64_t group = node.i("group", 1), channels = weights.dims[1], taps = weights.inner(1);
  const int64_t pixels = image.inner(1), results = out.inner(1), of_group = out.dims[1] / group;
  for (int64_t b = 0; b < out.dims[0]; ++b)
    for (int64_t m = 0; m < out.dims[1]; ++m) {
      float* const to = out.as() + (b * out.dims[1] + m) * results;
      std::fill_n(to, results, in.size() > 2 && in[2].data ? in[2].as()[m] : 0.0F);
      for (int64_t c = 0; c < channels; ++c) {
        const float* const from =
            image.as() + (b * image.dims[1] + m / of_group * channels + c) * pixels;
        const float* const weight = weights.as() + (m * channels + c) * taps;
        windows(node, image, out, {weights.dims[2], weights.dims[3]},
                [&](int64_t o, int64_t i, int64_t t) { to[o] += from[i] * weight[t]; });
      }
    }
}

inline void max_pool(const Node& node, const Inputs& in, const Tensor& out) {
  std::fill_n(out.as(), out.count(), -INFINITY);
  for (int64_t p = 0; p < out.rows(2); ++p) {
    float* const to = out.as() + p * out.inner(1);
    const float* const from = in[0].as() + p * in[0].inner(1);
    windows(node, in[0], out, node.list("kernel_shape", {1, 1}),
            [&](int64_t o, int64_t i, int64_t) { to[o] = std::max(to[o], from[i]); });
  }
}

inline void softmax(const Node& node, const Inputs& in, const Tensor& out) {
  const size_t a = out.axis(node.i("axis", -1));
  const int64_t n = out.dims[a], inner = out.inner(a);
  for (int64_t r = 0; r < out.outer(a) * inner; ++r) {
    const int64_t first = r / inner * n * inner + r % inner;
    float most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; ++i) most = std::max(most, in[0].as()[first + i * inner]);
    for (int64_t i = 0; i < n; ++i)
      sum += out.as()[first + i * inner] = std::exp(in[0].as()[first + i * inner] - most);
    for (int64_t i = 0; i < n; ++i) out.as()[first + i * inner] /= sum;
  }
}

// Takes the mean over the last axis.
inline void reduce_mean(const Node&, const Inputs& in, const Tensor& out) {
  const int64_t n = in[0].dims.back();
  for (int64_t r = 0; r < out.count(); ++r) {
    float sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += in[0].as()[r * n + i];
    out.as()[r] = sum / static_cast<float>(n);
  }
}

inline void transpose(const Node& node, const Inputs& in, const Tensor& out) {
  const Dims perm = node.list("perm", {});
  Dims strides(in[0].rank(), 1);
  for (size_t d = strides.size() - 1; d > 0; --d) strides[d - 1] = strides[d] * in[0].dims[d];
  for (int64_t i = 0; i < out.count(); ++i) {
    int64_t at = i, from = 0;
    for (size_t d = out.rank(); d-- > 0; at /= out.dims[d])
      from += at % out.dims[d] * strides[static_cast<size_t>(perm[d])];
    std::memcpy(out.data + static_cast<size_t>(i) * out.size(),
                in[0].data + static_cast<size_t>(from) * out.size(), out.size());
  }
}

inline void concat(const Node& node, const Inputs& in, const Tensor& out) {
  const size_t a = out.axis(node.i("axis", 0));
  char* to = out.data;
  for (int64_t o = 0; o < out.outer(a); ++o)
    for (const Tensor& t : in) {
      const auto bytes = static_cast<size_t>(t.dims[a] * t.inner(a)) * t.size();
      if (bytes) std::memcpy(to, t.data + static_cast<size_t>(o) * bytes, bytes);
      to += bytes;
    }
}

inline void gather(const Node& node, const Inputs& in, const Tensor& out) {
  const size_t a = in[0].axis(node.i("axis", 0));
  const auto bytes = static_cast<size_t>(in[0].inner(a)) * out.size();
  char* to = out.data;
  for (int64_t o = 0; o < in[0].outer(a); ++o)
    for (int64_t i = 0; i < in[1].count(); ++i, to += bytes) {
      int64_t at = in[1].as<int64_t>()[i];
      if (at < 0) at += in[0].dims[a];
      if (at < 0 || at >= in[0].dims[a]) throw std::out_of_range("an index is out of range");
      std::memcpy(to, in[0].data + static_cast<size_t>(o * in[0].dims[a] + at) * bytes, bytes);
    }
}

inline void shape(const Node& node, const Inputs& in, const Tensor& out) {
  const auto start = static_cast<ptrdiff_t>(in[0].axis(node.i("start", 0)));
  std::copy_n(in[0].dims.begin() + start, out.count(), out.as<int64_t>());
}

inline const std::map<std::string_view, Loop>& table() {
  static const std::map<std::string_view, Loop> kTable = {
      {"Add", binary<[](auto a, auto b) { return a + b; }>},
      {"Sub", binary<[](auto a, auto b) { return a - b; }>},
      {"Mul", binary<[](auto a, auto b) { return a * b; }>},
      {"Div", binary_float<[](float a, float b) { return a / b; }>},
      {"Pow", binary_float<[](float a, float b) { return std::pow(a, b); }>},
      {"Relu", unary<[](float a) { return a < 0 ? 0 : a; }>},
      {"Erf", unary<[](float a) { return std::erf(a); }>},
      {"Sqrt", unary<[](float a) { return std::sqrt(a); }>},
      {"MatMul", matmul},
      {"Gemm", gemm},
      {"Conv", conv},
      {"MaxPool", max_pool},
      {"Softmax", softmax},
      {"ReduceMean", reduce_mean},
      {"Transpose", transpose},
      {"Concat", concat},
      {"Gather", gather},
      {"Shape", shape},
      {"Reshape", copy},
      {"Flatten", copy},
      {"Squeeze", copy},
      {"Unsqueeze", copy},
      {"Identity", copy},
  };
  return kTable;
}

// Returns why no loop takes the node; empty when one does.
inline std::string refusal(const pfrt_snapshot& snapshot, uint32_t at) {
  const Node node(snapshot, at);
  const pfrt_snapshot_node& raw = node_at(snapshot, at);
  const auto value = [&](uint32_t i) { return value_at(snapshot, node.inputs[i]); };
  const bool moves =
      table().count(node.op) && (table().at(node.op) == copy || node.op == "Concat" ||
                                 node.op == "Transpose" || node.op == "Gather");
  if (raw.domain.size || !table().count(node.op)) return "not one of its operators";
  if (raw.output_count != 1 || node.output == PFRT_NO_INDEX) return "it gives one output";
  const pfrt_dtype out = value_at(snapshot, node.output).dtype;
  const bool whole = out == PFRT_DTYPE_INT64;
  if (!whole && out != PFRT_DTYPE_FLOAT32) return "it makes float32 and int64";
  if (whole && !moves && node.op != "Add" && node.op != "Sub" && node.op != "Mul" &&
      node.op != "Shape")
    return "of int64 it moves, adds and multiplies";
  for (uint32_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == PFRT_NO_INDEX) continue;
    const bool index =
        i == 1 && (node.op == "Gather" || node.op == "ReduceMean" || node.op == "Reshape" ||
                   node.op == "Squeeze" || node.op == "Unsqueeze");
    const pfrt_dtype wanted = index ? pfrt_dtype{PFRT_DTYPE_INT64} : out;
    if (node.op != "Shape" && value(i).dtype != wanted) return "its inputs have other types";
    if (value(i).rank < 0) return "it needs to know ranks";
  }
  const int32_t rank = value(0).rank;
  if (node.op == "MatMul" && (rank < 2 || value(1).rank < 2)) return "it multiplies matrices";
  if ((node.op == "Conv" || node.op == "MaxPool") &&
      (rank != 4 || node.list("dilations", {1, 1}).size() != 2))
    return "it slides over images";
  if (node.op == "ReduceMean") {
    if (node.inputs.size() < 2 || !value(1).data || value(1).bytes != 8) return "it averages rows";
    const int64_t axis = *static_cast<const int64_t*>(value(1).data);
    if (axis != -1 && axis != rank - 1) return "it averages rows";
  }
  return "";
}

// A region as compile keeps it.
struct Region {
  explicit Region(const pfrt_region& region)
      : inputs(region.inputs, region.inputs + region.input_count),
        outputs(region.outputs, region.outputs + region.output_count) {
    const pfrt_snapshot& snapshot = *region.snapshot;
    for (uint32_t v = 0; v < snapshot.value_count; ++v)
      dtypes.push_back(value_at(snapshot, v).dtype);
    for (uint32_t i = 0; i < region.node_count; ++i) {
      nodes.emplace_back(snapshot, region.nodes[i]);
      for (const uint32_t v : nodes.back().inputs) {
        if (v == PFRT_NO_INDEX) continue;
        const pfrt_snapshot_value& value = value_at(snapshot, v);
        if (value.flags & PFRT_SNAPSHOT_CONSTANT)
          constants[v].assign(value.dims, value.dims + value.rank);
      }
    }
  }
  // Returns the value's tensor without data.
  Tensor tensor(const pfrt_shapes& shapes, uint32_t value) const {
    if (value == PFRT_NO_INDEX) return {};
    Tensor out{dtypes[value], {}, nullptr};
    const auto constant = constants.find(value);
    if (constant != constants.end()) {
      out.dims = constant->second;
    } else if (shapes.ranks[value] > 0) {
      out.dims.assign(shapes.dims[value], shapes.dims[value] + shapes.ranks[value]);
    }
    return out;
  }

  std::vector<Node> nodes;
  std::vector<uint32_t> inputs, outputs;
  std::vector<pfrt_dtype> dtypes;      // by value
  std::map<uint32_t, Dims> constants;  // by value
};

// Returns the buffers of a region's values, all in |memory|, and the buffer of each value.
inline std::vector<pfrt_buffer> buffers_of(const Region& region, const pfrt_shapes& shapes,
                                           pfrt_memory_kind memory,
                                           std::map<uint32_t, uint32_t>& home) {
  std::vector<pfrt_buffer> out;
  const auto place = [&](uint32_t value, pfrt_buffer_kind kind, uint32_t index) {
    if (!home.emplace(value, static_cast<uint32_t>(out.size())).second) return;
    const Tensor tensor = region.tensor(shapes, value);
    pfrt_buffer buffer{};
    buffer.kind = kind;
    buffer.index = index;
    buffer.bytes = static_cast<uint64_t>(tensor.count()) * tensor.size();
    buffer.memory = memory;
    out.push_back(buffer);
  };
  for (uint32_t i = 0; i < region.inputs.size(); ++i) place(region.inputs[i], PFRT_BUFFER_IN, i);
  for (uint32_t i = 0; i < region.outputs.size(); ++i) place(region.outputs[i], PFRT_BUFFER_OUT, i);
  for (const auto& [v, dims] : region.constants) place(v, PFRT_BUFFER_INITIALIZER, v);
  for (const Node& node : region.nodes) place(node.output, PFRT_BUFFER_TEMP, 0);
  return out;
}

inline void claim(const pfrt_snapshot& snapshot, const pfrt_claims* claims) {
  for (uint32_t n = 0; n < snapshot.node_count; ++n) {
    const std::string why = refusal(snapshot, n);
    if (why.empty()) {
      claims->accept(claims, n, 0, 0);
    } else {
      claims->refuse(claims, n, {why.data(), why.size()});
    }
  }
}

// Returns a step that reads and writes the node's values; |state| has lists of buffers.
template <typename Step>
pfrt_step row_of(Step& state, pfrt_code (*run)(void*, const pfrt_step_context*)) {
  pfrt_step row{};
  row.run = run;
  row.state = &state;
  row.reads = state.reads.data();
  row.read_count = static_cast<uint32_t>(state.reads.size());
  row.writes = &state.write;
  row.write_count = 1;
  row.nodes = &state.node->index;
  row.node_count = 1;
  row.kernel = {state.node->op.data(), state.node->op.size()};
  return row;
}

template <typename Program>
void describe(Program* program, pfrt_program* out) {
  out->buffer_size = sizeof(pfrt_buffer);
  out->step_size = sizeof(pfrt_step);
  out->buffer_count = static_cast<uint32_t>(program->buffers.size());
  out->step_count = static_cast<uint32_t>(program->steps.size());
  out->buffers = program->buffers.data();
  out->steps = program->steps.data();
  out->handle = program;
}

}  // namespace loops
