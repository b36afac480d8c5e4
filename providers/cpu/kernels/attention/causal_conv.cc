// SPDX-License-Identifier: Apache-2.0
//
// CausalConvWithState: y[t] = bias + sum of weight[j] x[t - (taps - 1) + j] for each channel, where
// x before its beginning is the state, and the state that follows.
#include <algorithm>
#include <cmath>

#include "providers/cpu/elements/load.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/attention/attention.h"

namespace pfrt::cpu {
namespace {

struct CausalForm {
  int64_t batch = 0, channels = 0, length = 0, taps = 1;
  bool silu = false, has_bias = false, has_state = false, keeps_state = false;
  pfrt_dtype dtype = PFRT_DTYPE_UNSET;
};

template <typename T>
pfrt_code convolve(const Run& run, const CausalForm& f) {
  const LoadFn<T> load = load_fn<T>(f.dtype);
  const StoreFn<T> store = store_fn<T>(f.dtype);
  const int64_t kept = f.taps - 1;
  run.parallel(f.batch * f.channels, [&](int64_t i, uint32_t worker) {
    if (run.stopped()) return;
    const int64_t channel = i % f.channels;
    T *const x = run.scratch<T>(worker), *const weight = x + kept + f.length,
             *const y = weight + f.taps;
    if (f.has_state) {
      load(x, run.input(3), i * kept, 1, kept);
    } else {
      std::fill_n(x, kept, T{0});
    }
    load(x + kept, run.input(0), i * f.length, 1, f.length);
    load(weight, run.input(1), channel * f.taps, 1, f.taps);
    T bias = 0;
    if (f.has_bias) load(&bias, run.input(2), channel, 1, 1);
    std::fill_n(y, f.length, bias);
    for (int64_t j = 0; j < f.taps; ++j)
      for (int64_t t = 0; t < f.length; ++t) y[t] += weight[j] * x[t + j];
    if (f.silu)
      for (int64_t t = 0; t < f.length; ++t) y[t] /= 1 + std::exp(-y[t]);
    store(run.output(0), i * f.length, y, f.length);
    if (f.keeps_state) store(run.output(1), i * kept, x + f.length, kept);
  });
  return run.stop();
}

template <typename T>
Kernel causal_kernel(const CausalForm& form) {
  Kernel kernel;
  kernel.flops = 2.0 * static_cast<double>(form.batch) * static_cast<double>(form.channels) *
                 static_cast<double>(form.length) * static_cast<double>(form.taps);
  kernel.scratch_bytes = static_cast<uint64_t>(2 * (form.taps + form.length)) * sizeof(T);
  kernel.run = [form](const Run& run) { return convolve<T>(run, form); };
  return kernel;
}

}  // namespace

Result<Kernel> make_causal_conv(const KernelRequest& node) {
  PFRT_TRY(need(node, 2, 1));
  PFRT_TRY(need_like_output(node, 0));
  PFRT_TRY(need_types(node, {1, 2, 3}, Types{node.input_dtype(0)}));
  const auto dims = node.input_dims(0), weight = node.input_dims(1);
  if (dims.size() != 3 || weight.size() != 3 || weight[0] != dims[1] || weight[1] != 1 ||
      weight[2] < 1)
    return kernel_error("an input ", dims_text(dims), " takes a kernel [channels, 1, taps], not ",
                        dims_text(weight));
  CausalForm f;
  f.batch = dims[0], f.channels = dims[1], f.length = dims[2], f.taps = weight[2];
  const int64_t bias[] = {f.channels}, state[] = {f.batch, f.channels, f.taps - 1};
  if (node.has_input(2) && !same_dims(node.input_dims(2), bias))
    return kernel_error("the bias ", dims_text(node.input_dims(2)), " must be ", dims_text(bias));
  if (node.has_input(3) && !same_dims(node.input_dims(3), state))
    return kernel_error("the state ", dims_text(node.input_dims(3)), " must be ", dims_text(state));
  f.has_bias = node.has_input(2), f.has_state = node.has_input(3);
  f.keeps_state = node.has_output(1);
  if (f.keeps_state) PFRT_TRY(need_output_dims(node, 1, state));
  f.silu = node.attr_string("activation", "none") != "none";
  f.dtype = node.input_dtype(0);
  Kernel kernel;
  if (SnapshotNode::elements(dims) == 0 && (!f.keeps_state || SnapshotNode::elements(state) == 0)) {
    kernel.run = [](const Run&) { return pfrt_code{PFRT_CODE_OK}; };
    return kernel;
  }
  return f.dtype == PFRT_DTYPE_FLOAT64 ? causal_kernel<double>(f) : causal_kernel<float>(f);
}

}  // namespace pfrt::cpu
