// SPDX-License-Identifier: Apache-2.0
//
// Tensors computed from a few parameters: windows and the weights of mel bands.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "providers/cpu/elements/convert.h"
#include "providers/cpu/elements/load.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/signal/signal.h"

namespace pfrt::cpu {
namespace {

constexpr double kTurn = 2 * std::numbers::pi;

// Stores doubles as any number type; integers drop the fraction.
void store_numbers(pfrt_dtype dtype, const double* from, int64_t n, void* to) {
  if (kFloats.has(dtype)) return store_block(dtype, from, n, to);
  int64_t whole[kBlock];
  for (int64_t i = 0; i < n; ++i) whole[i] = converted<int64_t>(from[i]);
  store_block(dtype, whole, n, to);
}

// a0 - a1 cos(2 pi i / period) + a2 cos(4 pi i / period). The period of a symmetric window of one
// sample is 0: like the reference implementation's, its sample is NaN.
Result<Kernel> make_window(const SnapshotNode& node, double a0, double a1, double a2) {
  PFRT_TRY(need_scalar(node, 0));
  const pfrt_dtype dtype = node.output_dtype(0);
  if (!kNumbers.has(dtype))
    return kernel_error("windows of ", dtype_name(dtype), " are not available: ", kNumbers.text());
  const auto dims = node.output_dims(0);
  if (dims.size() != 1) return kernel_error("the window must be a list");
  const int64_t size = dims[0];
  const double period = static_cast<double>(node.attr_int("periodic", 1) != 0 ? size : size - 1);
  Kernel kernel;
  kernel.flops = 20.0 * static_cast<double>(size);
  kernel.run = [=](const Run& run) {
    run.blocks(size, kBlock, [&](int64_t begin, int64_t end) {
      double block[kBlock];
      for (int64_t i = begin; i < end; ++i) {
        const double angle = static_cast<double>(i) * kTurn / period;
        block[i - begin] = a0 - a1 * std::cos(angle) + a2 * std::cos(2 * angle);
      }
      store_numbers(dtype, block, end - begin, element(dtype, run.output(0), begin));
    });
    return run.stop();
  };
  return kernel;
}

double mel(double hertz) { return 2595 * std::log10(1 + hertz / 700); }

struct Mel {
  pfrt_dtype dtype;
  int64_t bins, bands;
};

// The bins at which bands begin, peak and end: |bands| + 2 of them, band b has those from b on.
// Steps are a (bands + 2)th of the way, which is what the reference implementation does.
pfrt_code edges_of(const Run& run, const Mel& to, double length, double rate, double low,
                   double high, std::vector<int64_t>& edges) {
  const double from = mel(low), step = (mel(high) - from) / static_cast<double>(to.bands + 2);
  for (int64_t b = 0; b < to.bands + 2; ++b) {
    const double hertz = 700 * (std::pow(10.0, (static_cast<double>(b) * step + from) / 2595) - 1);
    const double bin = std::floor((length + 1) * hertz / rate);
    if (!(bin >= 0 && bin < static_cast<double>(to.bins)))
      return run.fail(Code::kINVALID_ARGUMENT, "MelWeightMatrix: edge ", b, " at ", hertz,
                      " Hz lies outside the spectrogram's ", to.bins,
                      " bins; edges must be from 0 "
                      "to half the sample rate of ",
                      rate);
    edges.push_back(static_cast<int64_t>(bin));
  }
  return 0;
}

}  // namespace

Result<Kernel> make_hann(const KernelRequest& node) { return make_window(node, 0.5, 0.5, 0); }

Result<Kernel> make_hamming(const KernelRequest& node) {
  return make_window(node, 25.0 / 46, 21.0 / 46, 0);
}

Result<Kernel> make_blackman(const KernelRequest& node) {
  return make_window(node, 0.42, 0.5, 0.08);
}

Result<Kernel> make_mel(const KernelRequest& node) {
  for (uint32_t i = 0; i < 5; ++i) PFRT_TRY(need_scalar(node, i));
  PFRT_TRY(need_types(node, {1, 2}, kIndices));
  PFRT_TRY(need_types(node, {3, 4}, kFloats));
  const auto dims = node.output_dims(0);
  Mel to{node.output_dtype(0), 0, 0};
  if (!kNumbers.has(to.dtype))
    return kernel_error("weights of ", dtype_name(to.dtype),
                        " are not available: ", kNumbers.text());
  if (dims.size() != 2) return kernel_error("the weights must be a matrix");
  to.bins = dims[0];
  to.bands = dims[1];
  pfrt_dtype types[5];
  for (uint32_t i = 0; i < 5; ++i) types[i] = node.input_dtype(i);
  Kernel kernel;
  kernel.flops = static_cast<double>(node.output_elements(0));
  kernel.run = [=](const Run& run) -> pfrt_code {
    const auto number = [&](uint32_t i) { return load_scalar<double>(types[i], run.input(i)); };
    const int64_t length = load_scalar<int64_t>(types[1], run.input(1)),
                  rate = load_scalar<int64_t>(types[2], run.input(2));
    if (rate < 1)
      return run.fail(Code::kINVALID_ARGUMENT, "MelWeightMatrix: sample_rate is ", rate);
    std::vector<int64_t> edges;
    if (to.bands > 0)
      if (const pfrt_code code = edges_of(run, to, static_cast<double>(length),
                                          static_cast<double>(rate), number(3), number(4), edges))
        return code;
    run.parallel(to.bins, [&](int64_t bin, uint32_t) {
      double block[kBlock];
      for (int64_t first = 0; first < to.bands; first += kBlock) {
        const int64_t n = std::min(kBlock, to.bands - first);
        for (int64_t b = 0; b < n; ++b) {
          const int64_t* edge = edges.data() + first + b;
          const double up = static_cast<double>(edge[1] - edge[0]),
                       down = static_cast<double>(edge[2] - edge[1]);
          double weight = 0;
          if (bin >= edge[0] && bin <= edge[1])
            weight = up > 0 ? static_cast<double>(bin - edge[0]) / up : 1;
          if (bin >= edge[1] && bin < edge[2]) weight = static_cast<double>(edge[2] - bin) / down;
          block[b] = weight;
        }
        store_numbers(to.dtype, block, n, element(to.dtype, run.output(0), bin * to.bands + first));
      }
    });
    return run.stop();
  };
  return kernel;
}

}  // namespace pfrt::cpu
