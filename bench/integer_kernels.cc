// SPDX-License-Identifier: Apache-2.0
//
// Products and convolutions of bytes, ours against oneDNN's: MatMulInteger with int32 sums, and
// QLinearConv from uint8 to uint8 with int8 weights and a scale for each channel. The output's zero
// point is 0, which makes each convolution one with its Relu. Results are compared as in
// kernels.cc.
#include "bench/integer_kernels.h"

#include <array>
#include <cmath>

#include "bench/onednn.h"
#include "bench/versus.h"

namespace bench {
namespace {

template <typename T>
std::vector<T> bytes(int64_t count, uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::vector<T> out(static_cast<size_t>(count));
  for (T& x : out) x = static_cast<T>(engine());
  return out;
}

// A graph of one node, x -> y; its other inputs are constants.
class OneNode {
 public:
  explicit OneNode(const char* op) : op_(op) {}
  OneNode& constant(const char* name, const Tensor& value) {
    names_.push_back(name);
    graph_.add_initializer(name, value);
    return *this;
  }
  OneNode& input(const Dims& dims, DType type) {
    names_.push_back("x");
    graph_.add_input({"x", {dims.begin(), dims.end()}, type});
    return *this;
  }
  std::shared_ptr<pyflame_rt::Node> node() const {
    return std::make_shared<pyflame_rt::Node>(op_, op_, names_, std::vector<std::string>{"y"});
  }
  const pyflame_rt::Graph& finished(const std::shared_ptr<pyflame_rt::Node>& node, const Dims& dims,
                                    DType type) {
    graph_.add_node(node);
    graph_.add_output({"y", {dims.begin(), dims.end()}, type});
    return graph_;
  }

 private:
  const char* op_;
  pyflame_rt::Graph graph_{"kernel"};
  std::vector<std::string> names_;
};

template <typename Left>
void product(Report& report, const Settings& settings, Dnn& dnn, int64_t m, int64_t n, int64_t k) {
  constexpr bool kUnsigned = std::is_same_v<Left, uint8_t>;
  const std::vector<Left> a = bytes<Left>(m * k, 1);
  const std::vector<int8_t> b = bytes<int8_t>(k * n, 2);
  const Capped ours([&] {
    OneNode one("MatMulInteger");
    one.input({m, k}, kUnsigned ? DType::UInt8 : DType::Int8)
        .constant("w", Tensor::from_vector(b, {k, n}));
    return std::make_unique<Ours>(one.finished(one.node(), {m, n}, DType::Int32), settings,
                                  Tensor::from_vector(a, {m, k}), Dims{m, n}, DType::Int32);
  });
  const dnnl::matmul::primitive_desc made(
      dnnl::matmul::desc({{m, k}, type_of<Left>(), Tag::ab}, {{k, n}, Type::s8, Tag::any},
                         {{m, n}, Type::s32, Tag::ab}),
      dnn.engine());
  const dnnl::matmul matmul(made);
  const Memory c = dnn.memory(made.dst_desc());
  const std::unordered_map<int, Memory> args = {
      {DNNL_ARG_SRC, dnn.memory(made.src_desc(), a, {m, k}, Tag::ab)},
      {DNNL_ARG_WEIGHTS, dnn.memory(made.weights_desc(), b, {k, n}, Tag::ab)},
      {DNNL_ARG_DST, c}};
  report.row(
      std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k),
      kUnsigned ? "u8s8" : "s8s8",
      2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k), ours,
      [&] { dnn.run(matmul, args); },
      [&] {
        return rms_difference(ours.result<int32_t>(), dnn.values<int32_t>(c, {m, n}, Tag::ab));
      });
}

struct Convolution {
  int64_t in, size, out, kernel, stride, groups;
};

// Shapes of the chains, of ResNet-50's first and strided layers, and MobileNetV2's depthwise ones.
constexpr Convolution kConvolutions[] = {
    {3, 224, 64, 7, 2, 1},     {64, 56, 64, 3, 1, 1},     {128, 28, 128, 3, 1, 1},
    {256, 14, 256, 3, 1, 1},   {512, 7, 512, 3, 1, 1},    {64, 56, 256, 1, 1, 1},
    {256, 28, 256, 1, 1, 1},   {1024, 14, 256, 1, 1, 1},  {512, 28, 256, 1, 2, 1},
    {144, 56, 144, 3, 1, 144}, {144, 56, 144, 3, 2, 144}, {576, 14, 576, 3, 1, 576},
};

void convolution(Report& report, const Settings& settings, Dnn& dnn, const Convolution& c) {
  const int64_t pad = c.kernel / 2, side = (c.size + 2 * pad - c.kernel) / c.stride + 1;
  const int64_t taps = c.in / c.groups * c.kernel * c.kernel;
  const Dims x = {1, c.in, c.size, c.size}, y = {1, c.out, side, side},
             w = {c.out, c.in / c.groups, c.kernel, c.kernel},
             grouped = {c.groups, c.out / c.groups, c.in / c.groups, c.kernel, c.kernel};
  const std::vector<uint8_t> image = bytes<uint8_t>(c.in * c.size * c.size, 1);
  const std::vector<int8_t> weights = bytes<int8_t>(c.out * taps, 2);
  // Sums have a standard deviation of about 147 * 74 * sqrt(taps), results one of about 40 steps.
  std::vector<float> scales(static_cast<size_t>(c.out));
  for (size_t i = 0; i < scales.size(); ++i)
    scales[i] = (i % 2 == 0 ? 40.0f : 30.0f) / (147 * 74 * std::sqrt(static_cast<float>(taps)));
  const Tensor one = Tensor::from_vector(std::vector<float>{1}, {}),
               zero = Tensor::from_vector(std::vector<uint8_t>{0}, {});
  const Capped ours([&] {
    OneNode made("QLinearConv");
    made.input(x, DType::UInt8)
        .constant("x_scale", one)
        .constant("x_zero_point", zero)
        .constant("w", Tensor::from_vector(weights, w))
        .constant("w_scale", Tensor::from_vector(scales, {c.out}))
        .constant("w_zero_point",
                  Tensor::from_vector(std::vector<int8_t>(scales.size(), 0), {c.out}))
        .constant("y_scale", one)
        .constant("y_zero_point", zero);
    const auto node = made.node();
    node->set_attr("kernel_shape", Dims{c.kernel, c.kernel});
    node->set_attr("strides", Dims{c.stride, c.stride});
    node->set_attr("pads", Dims{pad, pad, pad, pad});
    node->set_attr("group", c.groups);
    return std::make_unique<Ours>(made.finished(node, y, DType::UInt8), settings,
                                  Tensor::from_vector(image, x), y, DType::UInt8);
  });
  dnnl::primitive_attr attributes;
  attributes.set_output_scales(1 << 1, scales);  // a scale for each index of axis 1
  const bool groups = c.groups > 1;
  const dnnl::convolution_forward::primitive_desc made(
      dnnl::convolution_forward::desc(
          dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_auto,
          {x, Type::u8, Tag::any}, {groups ? grouped : w, Type::s8, Tag::any},
          {y, Type::u8, Tag::any}, {c.stride, c.stride}, {pad, pad}, {pad, pad}),
      attributes, dnn.engine());
  const dnnl::convolution_forward primitive(made);
  const Memory out = dnn.memory(made.dst_desc());
  const std::unordered_map<int, Memory> args = {
      {DNNL_ARG_SRC, dnn.memory(made.src_desc(), image, x, Tag::nchw)},
      {DNNL_ARG_WEIGHTS, groups ? dnn.memory(made.weights_desc(), weights, grouped, Tag::goihw)
                                : dnn.memory(made.weights_desc(), weights, w, Tag::oihw)},
      {DNNL_ARG_DST, out}};
  const std::string k = std::to_string(c.kernel);
  report.row(
      std::to_string(c.in) + "x" + std::to_string(c.size) + "x" + std::to_string(c.size) + " -> " +
          std::to_string(c.out) + ", " + k + "x" + k + "/" + std::to_string(c.stride),
      groups ? "depthwise" : "u8s8",
      2.0 * static_cast<double>(taps) * static_cast<double>(c.out * side * side), ours,
      [&] { dnn.run(primitive, args); },
      [&] {
        return rms_difference(ours.result<uint8_t>(), dnn.values<uint8_t>(out, y, Tag::nchw));
      });
}

}  // namespace

void integer_kernels(const Settings& settings, Dnn& dnn) {
  if (settings.only != "convolutions") {
    Report report("products, m x n x k", settings);
    constexpr std::array<int64_t, 3> kShapes[] = {{128, 1024, 1024},
                                                  {512, 3072, 768},
                                                  {128, 3072, 768},
                                                  {128, 768, 3072},
                                                  {1024, 1024, 1024}};
    for (const auto& [m, n, k] : kShapes) product<uint8_t>(report, settings, dnn, m, n, k);
    for (const auto& [m, n, k] : kShapes) product<int8_t>(report, settings, dnn, m, n, k);
  }
  if (settings.only != "products") {
    Report report("convolutions", settings);
    for (const Convolution& c : kConvolutions) convolution(report, settings, dnn, c);
  }
}

}  // namespace bench
