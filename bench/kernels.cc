// SPDX-License-Identifier: Apache-2.0
//
// Matrix products and ResNet-50's convolutions, ours against oneDNN's in one run: the two sides
// take turns of some milliseconds. Ours run through the public API, as models of one node with
// constant weights; oneDNN has its weights, and the images of convolutions too, in the layout it
// likes best. integer_kernels.cc has precision int8.
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "bench/integer_kernels.h"
#include "bench/onednn.h"
#include "bench/versus.h"

namespace {

using namespace bench;

void product(Report& report, const Settings& settings, Dnn& dnn, int64_t m, int64_t n, int64_t k,
             Operands operands) {
  const std::vector<float> a = numbers(operands, m * k, k, 1), b = numbers(operands, k * n, n, 2);
  const Capped ours([&] {
    const auto node = node_of("MatMul");
    return std::make_unique<Ours>(one_node(node, {m, k}, Tensor::from_vector(b, {k, n}), {m, n}),
                                  settings, Tensor::from_vector(a, {m, k}), Dims{m, n});
  });
  const std::string what =
      std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k);
  const double flops =
      2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  if (!settings.bf16()) {
    std::vector<float> c(static_cast<size_t>(m * n));
    const auto sgemm = [&] {
      dnnl::sgemm('N', 'N', m, n, k, 1, a.data(), k, b.data(), n, 0, c.data(), n);
    };
    report.row(what, name_of(operands), flops, ours, sgemm,
               [&] { return rms_difference(ours.result(), c); });
    return;
  }
  const dnnl::matmul::primitive_desc made(
      dnnl::matmul::desc({{m, k}, Type::bf16, Tag::ab}, {{k, n}, Type::bf16, Tag::any},
                         {{m, n}, Type::f32, Tag::ab}),
      dnn.engine());
  const dnnl::matmul matmul(made);
  const Memory c = dnn.memory(made.dst_desc());
  const std::unordered_map<int, Memory> args = {
      {DNNL_ARG_SRC, dnn.memory(made.src_desc(), a, {m, k}, Tag::ab)},
      {DNNL_ARG_WEIGHTS, dnn.memory(made.weights_desc(), b, {k, n}, Tag::ab)},
      {DNNL_ARG_DST, c}};
  report.row(
      what, name_of(operands), flops, ours, [&] { dnn.run(matmul, args); },
      [&] {
        return rms_difference(ours.result(), dnn.values(c, {m, n}, Tag::ab));
      });
}

struct Convolution {
  int64_t in, size, out, kernel, stride;
};

// Each shape once. The first block of a stage has its stride in the first 1x1, as in
// make_models.py.
constexpr Convolution kResNet50[] = {
    {3, 224, 64, 7, 2},    {64, 56, 64, 1, 1},    {64, 56, 64, 3, 1},     {64, 56, 256, 1, 1},
    {256, 56, 64, 1, 1},   {256, 56, 128, 1, 2},  {128, 28, 128, 3, 1},   {128, 28, 512, 1, 1},
    {256, 56, 512, 1, 2},  {512, 28, 128, 1, 1},  {512, 28, 256, 1, 2},   {256, 14, 256, 3, 1},
    {256, 14, 1024, 1, 1}, {512, 28, 1024, 1, 2}, {1024, 14, 256, 1, 1},  {1024, 14, 512, 1, 2},
    {512, 7, 512, 3, 1},   {512, 7, 2048, 1, 1},  {1024, 14, 2048, 1, 2}, {2048, 7, 512, 1, 1},
};

void convolution(Report& report, const Settings& settings, Dnn& dnn, const Convolution& c) {
  const int64_t pad = c.kernel / 2, side = (c.size + 2 * pad - c.kernel) / c.stride + 1;
  const Dims x = {1, c.in, c.size, c.size}, w = {c.out, c.in, c.kernel, c.kernel},
             y = {1, c.out, side, side};
  const int64_t taps = c.in * c.kernel * c.kernel;
  const std::vector<float> image = numbers(Operands::kNormal, c.in * c.size * c.size, c.size, 1),
                           weights = numbers(Operands::kNormal, c.out * taps, taps, 2);
  const Capped ours([&] {
    const auto node = node_of("Conv");
    node->set_attr("kernel_shape", Dims{c.kernel, c.kernel});
    node->set_attr("strides", Dims{c.stride, c.stride});
    node->set_attr("pads", Dims{pad, pad, pad, pad});
    return std::make_unique<Ours>(one_node(node, x, Tensor::from_vector(weights, w), y), settings,
                                  Tensor::from_vector(image, x), y);
  });
  const Type type = settings.bf16() ? Type::bf16 : Type::f32;
  const dnnl::convolution_forward::primitive_desc made(
      dnnl::convolution_forward::desc(dnnl::prop_kind::forward_inference,
                                      dnnl::algorithm::convolution_auto, {x, type, Tag::any},
                                      {w, type, Tag::any}, {y, type, Tag::any},
                                      {c.stride, c.stride}, {pad, pad}, {pad, pad}),
      dnn.engine());
  const dnnl::convolution_forward primitive(made);
  const Memory out = dnn.memory(made.dst_desc());
  const std::unordered_map<int, Memory> args = {
      {DNNL_ARG_SRC, dnn.memory(made.src_desc(), image, x, Tag::nchw)},
      {DNNL_ARG_WEIGHTS, dnn.memory(made.weights_desc(), weights, w, Tag::oihw)},
      {DNNL_ARG_DST, out}};
  const std::string k = std::to_string(c.kernel);
  report.row(
      std::to_string(c.in) + "x" + std::to_string(c.size) + "x" + std::to_string(c.size) + " -> " +
          std::to_string(c.out) + ", " + k + "x" + k + "/" + std::to_string(c.stride),
      name_of(Operands::kNormal),
      2.0 * static_cast<double>(taps) * static_cast<double>(c.out * side * side), ours,
      [&] { dnn.run(primitive, args); },
      [&] { return rms_difference(ours.result(), dnn.values(out, y, Tag::nchw)); });
}

// ---- the whole

void run(const Settings& settings) {
  const std::string threads = std::to_string(settings.threads);
  const char* set = std::getenv("OMP_NUM_THREADS");
  if (set == nullptr || threads != set)
    throw std::runtime_error("set OMP_NUM_THREADS=" + threads +
                             ": oneDNN uses every core otherwise");
  const dnnl_version_t* version = dnnl::version();
  std::printf(
      "oneDNN %d.%d.%d, %s thread(s), precision %s. %s, medians; ratios of medians and "
      "of the best runs.\n"
      "wider: the time under the fastest narrower cap of PFRT_ISA by ours.\n",
      version->major, version->minor, version->patch, threads.c_str(), settings.precision.c_str(),
      settings.int8() ? "GOP/s" : "GFLOP/s");
  std::printf(
      "%s, tiles: the machine's peaks around the row, tiles with operands from L2.\n"
      "of peak: of %s\n",
      settings.int8() ? "dot" : "fma",
      settings.bf16()   ? "tiles"
      : settings.int8() ? "dot or tiles, whichever is more"
                        : "fma or a sixth of tiles, whichever is more");
  Dnn dnn;
  if (settings.int8()) return integer_kernels(settings, dnn);
  if (settings.only != "convolutions") {
    Report report("products, m x n x k", settings);
    for (Operands operands : {Operands::kNormal, Operands::kOutliers, Operands::kLognormal}) {
      product(report, settings, dnn, 128, 3072, 768, operands);
      product(report, settings, dnn, 128, 768, 3072, operands);
      for (int64_t side : {512, 1024, 2048, 4096})
        product(report, settings, dnn, side, side, side, operands);
    }
  }
  if (settings.only != "products") {
    Report report("ResNet-50's convolutions", settings);
    for (const Convolution& c : kResNet50) convolution(report, settings, dnn, c);
  }
}

Settings parse(int argc, char** argv) {
  Settings out;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string key = argv[i], value = argv[i + 1];
    if (key == "--threads") {
      out.threads = std::max(1, std::atoi(value.c_str()));
    } else if (key == "--precision") {
      out.precision = value;
    } else if (key == "--seconds") {
      out.seconds = std::atof(value.c_str());
    } else if (key == "--only" && (value == "products" || value == "convolutions")) {
      out.only = value;
    } else {
      throw std::runtime_error("'" + key + " " + value + "' is no option");
    }
  }
  if (argc % 2 == 0)
    throw std::runtime_error(
        "usage: kernels [--threads N] [--precision P] [--seconds S] [--only "
        "products|convolutions]");
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(parse(argc, argv));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kernels: %s\n", error.what());
    return 1;
  }
}
