// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "providers/cpu/epilogue/norm_rows.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/norm/make.h"

namespace pfrt::cpu {
namespace {

// A tensor of planes: N x C of |pixels| elements each.
struct Planes {
  int64_t batch, channels, pixels;
  double epsilon;
  pfrt_dtype dtype;
};

Result<Planes> read_planes(const SnapshotNode& node, uint32_t inputs) {
  PFRT_TRY(need(node, inputs, 1));
  PFRT_TRY(need_types(node, {1, 2, 3, 4}, kFloats));
  const auto dims = node.input_dims(0);
  PFRT_TRY(need_output_dims(node, 0, dims));
  if (dims.empty()) return kernel_error("X needs a batch dimension");
  Planes p{};
  p.batch = dims[0];
  p.channels = dims.size() > 1 ? dims[1] : 1;
  p.pixels = SnapshotNode::elements(dims.subspan(std::min<size_t>(dims.size(), 2)));
  p.epsilon = static_cast<double>(node.attr_float("epsilon", 1e-5f));
  p.dtype = node.input_dtype(0);
  return p;
}

template <typename T>
std::vector<T> read_all(const Run& run, uint32_t i, pfrt_dtype dtype, int64_t n) {
  std::vector<T> values(static_cast<size_t>(n));
  load_fn<T>(dtype)(values.data(), run.input(i), 0, 1, n);
  return values;
}

template <typename T>
void affine(StopPoll& pace, const T* x, T* y, int64_t n, T center, T factor, T shift) {
  in_chunks(pace, n, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) y[i] = (x[i] - center) * factor + shift;
  });
}

// A number of each channel.
template <typename T>
struct BatchFactors {
  std::vector<T> center, factor, shift;
};

// Planes |first| to |last| of a tensor, which |x| and |y| begin with. Channels of one pixel each
// are neighbours.
template <typename T>
void affine_planes(const Planes& p, int64_t first, int64_t last, const BatchFactors<T>& by,
                   const T* x, T* y) {
  int64_t c = first % p.channels;
  for (int64_t i = first; i < last;) {
    if (p.pixels == 1) {
      const int64_t n = std::min(p.channels - c, last - i);
      const T *const center = by.center.data() + c, *const factor = by.factor.data() + c,
                     *const shift = by.shift.data() + c;
      for (int64_t j = 0; j < n; ++j) y[j] = (x[j] - center[j]) * factor[j] + shift[j];
      x += n, y += n, i += n, c = 0;
      continue;
    }
    const auto at = static_cast<size_t>(c);
    const T center = by.center[at], factor = by.factor[at], shift = by.shift[at];
    for (int64_t k = 0; k < p.pixels; ++k) y[k] = (x[k] - center) * factor + shift;
    x += p.pixels, y += p.pixels, ++i;
    if (++c == p.channels) c = 0;
  }
}

template <typename T>
Result<Kernel> batch_kernel(const SnapshotNode& node) {
  PFRT_ASSIGN(const Planes p, read_planes(node, 5));
  pfrt_dtype types[5];
  for (uint32_t i = 1; i < 5; ++i) {
    types[i] = node.input_dtype(i);
    if (node.input_elements(i) != p.channels)
      return kernel_error("input ", i, " must hold ", p.channels, " elements, found ",
                          node.input_elements(i));
  }
  // A task takes many small planes, which lie one after another, or a block of a large one.
  constexpr int64_t kBlock = 1 << 14, kTask = 1 << 13;
  const int64_t block = std::clamp<int64_t>(p.pixels, 1, kBlock),
                blocks = (p.pixels + block - 1) / block;
  const int64_t group = std::max<int64_t>(1, kTask / block);
  Kernel kernel;
  kernel.flops = 3.0 * static_cast<double>(node.input_elements(0));
  kernel.scratch_bytes = 2 * static_cast<uint64_t>(group * block) * sizeof(T);
  if (node.input_dtype(0) == node.output_dtype(0)) kernel.may_alias = 0;
  kernel.run = [=, t1 = types[1], t2 = types[2], t3 = types[3],
                t4 = types[4]](const Run& run) -> pfrt_code {
    BatchFactors<T> by{read_all<T>(run, 3, t3, p.channels), read_all<T>(run, 1, t1, p.channels),
                       read_all<T>(run, 2, t2, p.channels)};
    const std::vector<T> variance = read_all<T>(run, 4, t4, p.channels);
    for (size_t c = 0; c < variance.size(); ++c)
      by.factor[c] /= std::sqrt(variance[c] + static_cast<T>(p.epsilon));
    const int64_t planes = p.batch * p.channels;
    run.parallel((planes * blocks + group - 1) / group, [&](int64_t task, uint32_t worker) {
      StopPoll pace(run);
      T* const buffer = run.scratch<T>(worker);
      // Where planes have several blocks a task is one of these.
      const int64_t from = task * group, to = std::min(planes * blocks, from + group);
      const int64_t plane = from / blocks, first = plane * p.pixels + from % blocks * block;
      const int64_t n =
          blocks > 1 ? std::min(block, p.pixels - from % blocks * block) : (to - from) * p.pixels;
      const T* const x = load_row(pace, p.dtype, run.input(0), first, n, buffer);
      T* const y = place_row(p.dtype, run.output(0), first, buffer + group * block);
      if (blocks > 1) {
        const auto c = static_cast<size_t>(plane % p.channels);
        affine(pace, x, y, n, by.center[c], by.factor[c], by.shift[c]);
      } else if (!run.stopped()) {
        affine_planes(p, from, to, by, x, y);
      }
      store_row(pace, p.dtype, run.output(0), first, n, y);
      run.apply_epilogue(first, first + n);
    });
    return run.stop();
  };
  return kernel;
}

// Statistics of the batch, a channel a task.
template <typename T>
Result<Kernel> training_kernel(const SnapshotNode& node) {
  PFRT_ASSIGN(const Planes p, read_planes(node, 5));
  pfrt_dtype in[5], out[5];  // out: 0 for those that are not wanted
  for (uint32_t i = 0; i < 5; ++i) {
    in[i] = node.input_dtype(i);
    out[i] = node.has_output(i) ? node.output_dtype(i) : pfrt_dtype{PFRT_DTYPE_UNSET};
    if (i > 0 && node.input_elements(i) != p.channels)
      return kernel_error("input ", i, " must hold ", p.channels, " elements, found ",
                          node.input_elements(i));
    if (i > 0 && node.has_output(i) &&
        (node.output_elements(i) != p.channels || !kFloats.has(out[i])))
      return kernel_error("output ", i, " must hold ", p.channels, " floats");
  }
  const double momentum = static_cast<double>(node.attr_float("momentum", 0.9f));
  Kernel kernel;
  kernel.flops = 8.0 * static_cast<double>(node.input_elements(0));
  kernel.scratch_bytes = 2 * static_cast<uint64_t>(p.pixels) * sizeof(T);
  kernel.run = [=](const Run& run) -> pfrt_code {
    run.parallel(p.channels, [&](int64_t c, uint32_t worker) {
      StopPoll pace(run);
      T* const buffer = run.scratch<T>(worker);
      const auto plane = [&](int64_t n) { return (n * p.channels + c) * p.pixels; };
      const auto number = [&](uint32_t i) {
        double value = 0;
        load_fn<double>(in[i])(&value, run.input(i), c, 1, 1);
        return value;
      };
      const auto give = [&](uint32_t i, double value) {
        if (out[i] != PFRT_DTYPE_UNSET) store_fn<double>(out[i])(run.output(i), c, &value, 1);
      };
      const double count = static_cast<double>(p.batch) * static_cast<double>(p.pixels);
      double sum = 0, squares = 0;
      for (int64_t n = 0; n < p.batch && !run.stopped(); ++n)
        sum += row_sum(pace, load_row(pace, p.dtype, run.input(0), plane(n), p.pixels, buffer),
                       p.pixels);
      const double mean = sum / count;
      for (int64_t n = 0; n < p.batch && !run.stopped(); ++n)
        squares +=
            row_squares(pace, load_row(pace, p.dtype, run.input(0), plane(n), p.pixels, buffer),
                        p.pixels, mean);
      const double variance = squares / count;
      const T factor = static_cast<T>(number(1) / std::sqrt(variance + p.epsilon));
      for (int64_t n = 0; n < p.batch && !run.stopped(); ++n) {
        const T* const x = load_row(pace, p.dtype, run.input(0), plane(n), p.pixels, buffer);
        T* const y = place_row(p.dtype, run.output(0), plane(n), buffer + p.pixels);
        affine(pace, x, y, p.pixels, static_cast<T>(mean), factor, static_cast<T>(number(2)));
        store_row(pace, p.dtype, run.output(0), plane(n), p.pixels, y);
        run.apply_epilogue(plane(n), plane(n) + p.pixels);
      }
      give(1, number(3) * momentum + mean * (1 - momentum));
      give(2, number(4) * momentum + variance * (1 - momentum));
      give(3, mean);
      give(4, variance);
    });
    return run.stop();
  };
  return kernel;
}

// Each group of channels of each image is normalised by its own mean and variance.
template <typename T>
Result<Kernel> group_kernel(const SnapshotNode& node, const Planes& p, int64_t groups) {
  const int64_t per_group = groups > 0 ? p.channels / groups : 0;
  if (groups < 1 || per_group * groups != p.channels)
    return kernel_error(p.channels, " channels do not divide into ", groups, " groups");
  int64_t spans[3] = {};  // channels that share one element of scale, bias
  for (uint32_t i = 1; i < 3; ++i) {
    const int64_t count = node.input_elements(i);
    if (count != p.channels && count != groups)
      return kernel_error("input ", i, " must hold ", p.channels, " elements, found ", count);
    spans[i] = count == p.channels ? 1 : per_group;
  }
  const pfrt_dtype scale_type = node.input_dtype(1), bias_type = node.input_dtype(2);
  const int64_t size = per_group * p.pixels;
  Kernel kernel;
  kernel.flops = 8.0 * static_cast<double>(node.input_elements(0));
  kernel.scratch_bytes = 2 * static_cast<uint64_t>(size) * sizeof(T);
  kernel.run = [=, scale_span = spans[1], bias_span = spans[2]](const Run& run) -> pfrt_code {
    if (size == 0) return 0;
    const std::vector<T> scale = read_all<T>(run, 1, scale_type, p.channels / scale_span);
    const std::vector<T> bias = read_all<T>(run, 2, bias_type, p.channels / bias_span);
    run.parallel(p.batch * groups, [&](int64_t i, uint32_t worker) {
      StopPoll pace(run);
      T* const buffer = run.scratch<T>(worker);
      const T* const x = load_row(pace, p.dtype, run.input(0), i * size, size, buffer);
      T* const y = place_row(p.dtype, run.output(0), i * size, buffer + size);
      const double mean = row_sum(pace, x, size) / static_cast<double>(size);
      const double inverse =
          1 / std::sqrt(row_squares(pace, x, size, mean) / static_cast<double>(size) + p.epsilon);
      for (int64_t k = 0; k < per_group; ++k) {
        if (run.stopped()) return;
        const int64_t c = i % groups * per_group + k;
        const T factor = static_cast<T>(
            inverse * static_cast<double>(scale[static_cast<size_t>(c / scale_span)]));
        affine(pace, x + k * p.pixels, y + k * p.pixels, p.pixels, static_cast<T>(mean), factor,
               bias[static_cast<size_t>(c / bias_span)]);
      }
      store_row(pace, p.dtype, run.output(0), i * size, size, y);
      run.apply_epilogue(i * size, (i + 1) * size);
    });
    return run.stop();
  };
  return kernel;
}

Result<Kernel> make_grouped(const SnapshotNode& node, int64_t groups) {
  PFRT_ASSIGN(const Planes p, read_planes(node, 3));
  if (groups < 0) groups = p.channels;
  if (p.channels == 0) groups = 1;
  return p.dtype == PFRT_DTYPE_FLOAT64 ? group_kernel<double>(node, p, groups)
                                       : group_kernel<float>(node, p, groups);
}

}  // namespace

std::string refuse_batch_norm(const KernelRequest& node) {
  if (node.attr_int("training_mode", 0) != 0 || node.output_count() > 1)
    return "training_mode is set: this kernel is for inference";
  return "";
}

Result<Kernel> make_batch_norm(const KernelRequest& node) {
  return node.input_dtype(0) == PFRT_DTYPE_FLOAT64 ? batch_kernel<double>(node)
                                                   : batch_kernel<float>(node);
}

std::string refuse_batch_norm_nchw16c(const SnapshotNode& node, Nchw16cSides sides) {
  if (node.input_dtype(0) != PFRT_DTYPE_FLOAT32) return "nChw16c is for float32";
  return sides.input == sides.output ? "" : "input and output need the same layout";
}

Result<Kernel> make_batch_norm_nchw16c(const SnapshotNode& node, Nchw16cSides) {
  constexpr int64_t kBlock = 16;
  PFRT_ASSIGN(const Planes p, read_planes(node, 5));
  for (uint32_t i = 1; i < 5; ++i)
    if (node.input_dtype(i) != PFRT_DTYPE_FLOAT32 || node.input_elements(i) != p.channels)
      return kernel_error("input ", i, " must hold ", p.channels, " float32 elements, found ",
                          node.input_elements(i));
  Kernel kernel;
  kernel.flops = 3.0 * static_cast<double>(node.input_elements(0));
  kernel.may_alias = 0;
  kernel.run = [p](const Run& run) -> pfrt_code {
    const int64_t blocks = p.channels / kBlock;
    run.parallel(p.batch * blocks, [&](int64_t i, uint32_t) {
      if (run.stopped()) return;
      const int64_t c = i % blocks * kBlock, at = i * p.pixels * kBlock;
      float factor[kBlock], center[kBlock], shift[kBlock];
      for (int64_t j = 0; j < kBlock; ++j) {
        factor[j] = run.input<float>(1)[c + j] /
                    std::sqrt(run.input<float>(4)[c + j] + static_cast<float>(p.epsilon));
        center[j] = run.input<float>(3)[c + j];
        shift[j] = run.input<float>(2)[c + j];
      }
      const float* const x = run.input<float>(0) + at;
      float* const y = run.output<float>(0) + at;
      for (int64_t k = 0; k < p.pixels * kBlock; k += kBlock)
        for (int64_t j = 0; j < kBlock; ++j)
          y[k + j] = (x[k + j] - center[j]) * factor[j] + shift[j];
      run.apply_epilogue(at, at + p.pixels * kBlock);
    });
    return run.stop();
  };
  return kernel;
}

std::string refuse_batch_norm_training(const KernelRequest& node) {
  return node.attr_int("training_mode", 0) == 0
             ? "training_mode is not set: this kernel is for training"
             : "";
}

Result<Kernel> make_batch_norm_training(const KernelRequest& node) {
  return node.input_dtype(0) == PFRT_DTYPE_FLOAT64 ? training_kernel<double>(node)
                                                   : training_kernel<float>(node);
}

Result<Kernel> make_instance_norm(const KernelRequest& node) { return make_grouped(node, -1); }

Result<Kernel> make_group_norm(const KernelRequest& node) {
  return make_grouped(node, std::max<int64_t>(node.attr_int("num_groups", 0), 0));
}

}  // namespace pfrt::cpu
