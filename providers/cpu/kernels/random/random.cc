// SPDX-License-Identifier: Apache-2.0
//
// A stream is one sequence, so these kernels draw on one thread; results do not depend on the
// number of threads.
#include "providers/cpu/kernels/random/random.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "providers/cpu/elements/convert.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/random/stream.h"

namespace pfrt::cpu {
namespace {

// fill(block, first, n) draws n values, of the type that |dtype| is computed in.
template <typename T, typename Fill>
pfrt_code draw(const Run& run, pfrt_dtype dtype, int64_t count, Fill&& fill) {
  T block[kBlock];
  for (int64_t first = 0; first < count; first += kBlock) {
    if (run.stopped()) break;
    const int64_t n = std::min(kBlock, count - first);
    T* const to = place_block(dtype, run.output(0), first, block);
    fill(to, first, n);
    write_block(dtype, run.output(0), first, n, to);
  }
  return run.stop();
}

// value * scale + shift, in the compute type as NumPy has it.
template <typename T>
Kernel random_kernel(const SnapshotNode& node, bool normal, double scale, double shift) {
  Kernel kernel;
  kernel.width = 1;
  kernel.flops = 20.0 * static_cast<double>(node.output_elements(0));
  kernel.run = [source = Source(node), dtype = node.output_dtype(0),
                count = node.output_elements(0), normal, scale, shift](const Run& run) {
    Stream stream = source.open();
    return draw<T>(run, dtype, count, [&](T* to, int64_t, int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        T value = static_cast<T>(normal ? stream.normal() : stream.uniform());
        value *= static_cast<T>(scale);
        to[i] = value + static_cast<T>(shift);
      }
    });
  };
  return kernel;
}

Result<Kernel> make_random(const SnapshotNode& node, bool normal, double scale, double shift) {
  if (node.input_count() > 0) {
    PFRT_TRY(need(node, 1, 1));
    PFRT_TRY(need_output_dims(node, 0, node.input_dims(0)));
  } else {
    PFRT_TRY(need(node, 0, 1));
  }
  if (node.output_dtype(0) == PFRT_DTYPE_FLOAT64)
    return random_kernel<double>(node, normal, scale, shift);
  return random_kernel<float>(node, normal, scale, shift);
}

Result<Kernel> make_normal(const KernelRequest& node) {
  return make_random(node, true, static_cast<double>(node.attr_float("scale", 1)),
                     static_cast<double>(node.attr_float("mean", 0)));
}

Result<Kernel> make_uniform(const KernelRequest& node) {
  const double low = static_cast<double>(node.attr_float("low", 0)),
               high = static_cast<double>(node.attr_float("high", 1));
  return make_random(node, false, high - low, low);
}

std::string refuse_unless_float(const KernelRequest& node) {
  if (kFloats.has(node.output_dtype(0))) return {};
  return message("random numbers of ", dtype_name(node.output_dtype(0)),
                 " are not available: ", kFloats.text());
}

std::string refuse_unless_number(const KernelRequest& node) {
  if ((kNumbers | kBool).has(node.output_dtype(0))) return {};
  return message("draws of ", dtype_name(node.output_dtype(0)),
                 " are not available: ", kNumbers.text());
}

Result<Kernel> make_bernoulli(const KernelRequest& node) {
  PFRT_TRY(need(node, 1, 1));
  PFRT_TRY(need_output_dims(node, 0, node.input_dims(0)));
  Kernel kernel;
  kernel.width = 1;
  kernel.flops = 10.0 * static_cast<double>(node.output_elements(0));
  kernel.run = [source = Source(node), from = node.input_dtype(0), to = node.output_dtype(0),
                count = node.output_elements(0)](const Run& run) -> pfrt_code {
    Stream stream = source.open();
    double p[kBlock];
    for (int64_t first = 0; first < count; first += kBlock) {
      if (run.stopped()) break;
      const int64_t n = std::min(kBlock, count - first);
      load_block(from, element(from, run.input(0), first), n, p);
      for (int64_t i = 0; i < n; ++i) {
        if (!(p[i] >= 0 && p[i] <= 1))
          return run.fail(Code::kINVALID_ARGUMENT, "Bernoulli: probability ", p[i], " (element ",
                          first + i, ") is outside [0, 1]");
        p[i] = stream.bernoulli(p[i]) ? 1 : 0;
      }
      void* const out = element(to, run.output(0), first);
      if (kFloats.has(to)) {
        store_block(to, p, n, out);
      } else {
        int64_t whole[kBlock];
        for (int64_t i = 0; i < n; ++i) whole[i] = p[i] != 0;
        store_block(to, whole, n, out);
      }
    }
    return run.stop();
  };
  return kernel;
}

// Running sums of the probabilities of one row of unnormalised log-probabilities; false when they
// are none.
bool sums_of(const double* logits, std::vector<double>& sums) {
  double top = -INFINITY;
  for (size_t c = 0; c < sums.size(); ++c) {
    if (std::isnan(logits[c])) return false;
    top = std::max(top, logits[c]);
  }
  if (std::isinf(top)) return false;
  double sum = 0;
  for (size_t c = 0; c < sums.size(); ++c) sums[c] = sum += std::exp(logits[c] - top);
  return true;
}

Result<Kernel> make_multinomial(const KernelRequest& node) {
  PFRT_TRY(need(node, 1, 1));
  const auto in = node.input_dims(0), out = node.output_dims(0);
  if (in.size() != 2 || out.size() != 2 || in[0] != out[0])
    return kernel_error("input ", dims_text(in), " and output ", dims_text(out),
                        " must be [batch, classes] and [batch, samples]");
  if (!kIndices.has(node.output_dtype(0)))
    return kernel_error("samples are ", dtype_name(node.output_dtype(0)), ": int32 or int64");
  const int64_t batch = in[0], classes = in[1], samples = out[1];
  if (classes == 0 && batch * samples > 0) return kernel_error("there are no classes to draw from");
  Kernel kernel;
  kernel.width = 1;
  kernel.flops = 20.0 * static_cast<double>(node.output_elements(0));
  kernel.run = [=, source = Source(node), from = node.input_dtype(0),
                to = node.output_dtype(0)](const Run& run) -> pfrt_code {
    Stream stream = source.open();
    std::vector<double> logits(static_cast<size_t>(classes)), sums(logits.size());
    for (int64_t b = 0; b < batch && samples > 0; ++b) {
      load_block(from, element(from, run.input(0), b * classes), classes, logits.data());
      if (!sums_of(logits.data(), sums))
        return run.fail(Code::kINVALID_ARGUMENT, "Multinomial: row ", b,
                        " holds no finite log-probability, or NaN or infinity");
      int64_t block[kBlock];
      for (int64_t first = 0; first < samples; first += kBlock) {
        if (run.stopped()) return run.stop();
        const int64_t n = std::min(kBlock, samples - first);
        for (int64_t i = 0; i < n; ++i) {
          const auto at =
              std::upper_bound(sums.begin(), sums.end() - 1, stream.uniform() * sums.back());
          block[i] = at - sums.begin();
        }
        store_block(to, block, n, element(to, run.output(0), b * samples + first));
      }
    }
    return run.stop();
  };
  return kernel;
}

// ------------------------------------------------------------------ Dropout

struct Dropping {
  pfrt_dtype dtype, ratio_type;
  bool has_ratio, has_mode, has_mask;
  int64_t count;
};

template <typename T>
pfrt_code drop(const Run& run, const Dropping& d, const Source& source) {
  const double ratio = d.has_ratio ? load_scalar<double>(d.ratio_type, run.input(1)) : 0.5;
  if (!(ratio >= 0 && ratio < 1))
    return run.fail(Code::kINVALID_ARGUMENT, "Dropout: ratio is ", ratio, ", must lie in [0, 1)");
  const bool drops = d.has_mode && *run.input<uint8_t>(2) != 0 && ratio > 0;
  Stream stream = source.open();
  const T scale = static_cast<T>(drops ? 1 / (1 - ratio) : 1);
  bool keep[kBlock];
  std::fill(keep, keep + kBlock, true);
  T block[kBlock];
  return draw<T>(run, d.dtype, d.count, [&](T* to, int64_t first, int64_t n) {
    if (drops)
      for (int64_t i = 0; i < n; ++i) keep[i] = stream.uniform() >= ratio;
    const T* const x = read_block(d.dtype, run.input(0), first, n, block);
    for (int64_t i = 0; i < n; ++i) to[i] = drops ? (keep[i] ? x[i] : x[i] * T{0}) * scale : x[i];
    if (d.has_mask) std::memcpy(run.output<uint8_t>(1) + first, keep, static_cast<size_t>(n));
  });
}

// The other row, for inference, is in elementwise/select.cc.
std::string refuse_training_dropout(const KernelRequest& node) {
  if (!node.has_input(2)) return "training_mode is not given: this kernel is for training";
  const auto training = node.constant_int64s(2);
  if (!training.empty() && training[0] == 0)
    return "training_mode is false: this kernel is for training";
  return {};
}

Result<Kernel> make_training_dropout(const KernelRequest& node) {
  PFRT_TRY(need(node, 1, node.has_output(1) ? 2 : 1));
  PFRT_TRY(need_like_output(node, 0));
  PFRT_TRY(need_scalar(node, 2));
  if (node.input_dtype(2) != PFRT_DTYPE_BOOL)
    return error(Code::kDTYPE_MISMATCH, "training_mode is ", dtype_name(node.input_dtype(2)),
                 ": bool");
  if (node.has_input(1)) PFRT_TRY(need_scalar(node, 1));
  if (node.has_input(1) && !kFloats.has(node.input_dtype(1)))
    return error(Code::kDTYPE_MISMATCH, "the ratio is ", dtype_name(node.input_dtype(1)), ": ",
                 kFloats.text());
  if (node.has_output(1)) {
    PFRT_TRY(need_output_dims(node, 1, node.input_dims(0)));
    if (node.output_dtype(1) != PFRT_DTYPE_BOOL)
      return error(Code::kDTYPE_MISMATCH, "the mask is ", dtype_name(node.output_dtype(1)),
                   ": bool");
  }
  const Dropping d{node.input_dtype(0), node.input_dtype(1), node.has_input(1),
                   node.has_input(2),   node.has_output(1),  node.output_elements(0)};
  Kernel kernel;
  kernel.width = 1;
  kernel.flops = 10.0 * static_cast<double>(d.count);
  kernel.run = [d, source = Source(node)](const Run& run) {
    return d.dtype == PFRT_DTYPE_FLOAT64 ? drop<double>(run, d, source)
                                         : drop<float>(run, d, source);
  };
  return kernel;
}

constexpr KernelRow kRows[] = {
    {"", "RandomNormal", kFloats, "random_normal", "generic", nullptr, make_normal},
    {"", "RandomUniform", kFloats, "random_uniform", "generic", nullptr, make_uniform},
    {"", "RandomNormalLike", kMovable, "random_normal", "generic", refuse_unless_float,
     make_normal},
    {"", "RandomUniformLike", kMovable, "random_uniform", "generic", refuse_unless_float,
     make_uniform},
    checks_inputs(
        {"", "Bernoulli", kFloats, "bernoulli", "generic", refuse_unless_number, make_bernoulli}),
    checks_inputs(
        {"", "Multinomial", kFloats, "multinomial", "generic", nullptr, make_multinomial}),
    checks_inputs(optional_outputs({"", "Dropout", kFloats, "dropout_training", "generic",
                                    refuse_training_dropout, make_training_dropout})),
};

}  // namespace

std::span<const KernelRow> random_kernels() { return kRows; }

}  // namespace pfrt::cpu
