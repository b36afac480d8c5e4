// SPDX-License-Identifier: Apache-2.0
//
// DFT and STFT. Every line is transformed in double precision, whatever the element type.
#include <algorithm>
#include <vector>

#include "providers/cpu/elements/convert.h"
#include "providers/cpu/elements/load.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/signal/fourier.h"
#include "providers/cpu/kernels/signal/signal.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kTaskPoints = 1 << 12;

// A line of complex numbers and what the transform needs, in a worker's scratch.
struct Bench {
  Bench(double* scratch, int64_t length, int64_t out)
      : re(scratch), im(re + length), interleaved(im + length), work(interleaved + 2 * out) {}
  static uint64_t bytes(int64_t length, int64_t out) {
    return (2 * static_cast<uint64_t>(length) + 2 * static_cast<uint64_t>(out) +
            static_cast<uint64_t>(Fourier::work_for(length))) *
           sizeof(double);
  }
  double *re, *im, *interleaved, *work;
};

// Elements [0, components * n) of line |first|, whose elements are |stride| apart.
void put(pfrt_dtype dtype, void* y, int64_t first, int64_t stride, int64_t components, int64_t n,
         const Bench& bench) {
  for (int64_t k = 0; k < n; ++k) {
    bench.interleaved[components * k] = bench.re[k];
    if (components == 2) bench.interleaved[2 * k + 1] = bench.im[k];
  }
  const StoreFn<double> store = store_fn<double>(dtype);
  if (stride == components) return store(y, first, bench.interleaved, components * n);
  for (int64_t k = 0; k < n; ++k)
    store(y, first + k * stride, bench.interleaved + components * k, components);
}

// The other half of a spectrum whose signal is real.
void mirror(double* re, double* im, int64_t length) {
  im[0] = 0;
  if (length % 2 == 0) im[length / 2] = 0;
  for (int64_t k = length / 2 + 1; k < length; ++k) {
    re[k] = re[length - k];
    im[k] = -im[length - k];
  }
}

// ------------------------------------------------------------------ DFT

struct Dft {
  pfrt_dtype dtype;
  bool inverse, onesided;
  std::vector<int64_t> in, out;  // dimensions
};

struct DftLines {
  int64_t outer = 1, inner = 1, in_length, out_length, length, in_components, out_components;
};

// The lines along |axis|; the length is given or follows from the dimensions. 0 lines on a fault.
Result<DftLines> dft_lines(const Dft& dft, int64_t raw_axis, int64_t length) {
  const size_t rank = dft.in.size();
  PFRT_ASSIGN(const int64_t signed_axis, axis_of(raw_axis, rank));
  const size_t axis = static_cast<size_t>(signed_axis);
  if (axis + 1 == rank) return kernel_error("axis ", raw_axis, " holds real and imaginary parts");
  DftLines lines{};
  lines.outer = lines.inner = 1;
  for (size_t d = 0; d + 1 < rank; ++d) {
    if (d == axis) continue;
    if (dft.in[d] != dft.out[d]) return kernel_error("dimension ", d, " differs in the output");
    (d < axis ? lines.outer : lines.inner) *= dft.in[d];
  }
  lines.in_length = dft.in[axis];
  lines.out_length = dft.out[axis];
  lines.in_components = dft.in.back();
  lines.out_components = dft.out.back();
  if (length < 0)
    length = dft.inverse && dft.onesided ? 2 * (lines.in_length - 1) : lines.in_length;
  lines.length = length;
  if (length < 1) return kernel_error("dft_length is ", length, ", needs 1 or more");
  const int64_t out_length = dft.onesided && !dft.inverse ? length / 2 + 1 : length;
  const int64_t out_components = dft.inverse && dft.onesided ? 1 : 2;
  if (out_length != lines.out_length || out_components != lines.out_components)
    return kernel_error("the output was planned with ", lines.out_length, " times ",
                        lines.out_components, " along axis ", axis, ", has ", out_length, " times ",
                        out_components);
  return lines;
}

void transform_line(const Run& run, const Dft& dft, const DftLines& lines, const Fourier& fourier,
                    int64_t line, const Bench& bench) {
  const int64_t o = line / lines.inner, i = line % lines.inner, n = lines.length;
  const bool real = dft.inverse && dft.onesided;
  const int64_t held = std::min(lines.in_length, real ? n / 2 + 1 : n);
  const int64_t first = (o * lines.in_length * lines.inner + i) * lines.in_components,
                stride = lines.inner * lines.in_components;
  const LoadFn<double> load = load_fn<double>(dft.dtype);
  Pace pace(run);
  in_chunks(pace, n, [&](int64_t begin, int64_t end) {
    const int64_t there = std::clamp(held, begin, end);
    load(bench.re + begin, run.input(0), first + begin * stride, stride, there - begin);
    std::fill(bench.re + there, bench.re + end, 0.0);
    const int64_t imaginary = lines.in_components == 2 ? there : begin;
    if (lines.in_components == 2)
      load(bench.im + begin, run.input(0), first + 1 + begin * stride, stride, there - begin);
    std::fill(bench.im + imaginary, bench.im + end, 0.0);
  });
  if (run.stopped()) return;
  if (real) mirror(bench.re, bench.im, n);
  if (dft.inverse) {
    fourier.transform(run, bench.im, bench.re, bench.work);
    const double scale = 1 / static_cast<double>(n);
    for (int64_t k = 0; k < n; ++k) {
      bench.re[k] *= scale;
      bench.im[k] *= scale;
    }
  } else {
    fourier.transform(run, bench.re, bench.im, bench.work);
  }
  if (run.stopped()) return;
  put(dft.dtype, run.output(0), (o * lines.out_length * lines.inner + i) * lines.out_components,
      lines.inner * lines.out_components, lines.out_components, lines.out_length, bench);
}

// Scratch for any axis and length that gives the output's dimensions.
uint64_t dft_scratch(const Dft& dft) {
  uint64_t most = 0;
  for (size_t d = 0; d + 1 < dft.out.size(); ++d) {
    const int64_t out = dft.out[d];
    for (int64_t length : {out, 2 * (out - 1), 2 * out - 1}) {
      if (length < 1 || (length != out && (dft.inverse || !dft.onesided))) continue;
      most = std::max(most, Bench::bytes(length, length));
    }
  }
  return most;
}

// ------------------------------------------------------------------ STFT

struct Stft {
  pfrt_dtype dtype;
  int64_t batch, samples, components, frames, bins,
      window;  // window: its samples, or those of a frame
  bool onesided, windowed;
};

void transform_frame(const Run& run, const Stft& stft, const Fourier& fourier, int64_t step,
                     const double* window, int64_t index, const Bench& bench) {
  const int64_t b = index / stft.frames, start = index % stft.frames * step, n = fourier.length();
  const int64_t held = std::clamp<int64_t>(stft.samples - start, 0, std::min(n, stft.window));
  const LoadFn<double> load = load_fn<double>(stft.dtype);
  const int64_t first = (b * stft.samples + start) * stft.components;
  std::fill(bench.re, bench.re + n, 0.0);
  std::fill(bench.im, bench.im + n, 0.0);
  load(bench.re, run.input(0), first, stft.components, held);
  if (stft.components == 2) load(bench.im, run.input(0), first + 1, 2, held);
  if (stft.windowed)
    for (int64_t k = 0; k < held; ++k) {
      bench.re[k] *= window[k];
      bench.im[k] *= window[k];
    }
  fourier.transform(run, bench.re, bench.im, bench.work);
  put(stft.dtype, run.output(0), index * stft.bins * 2, 2, 2, stft.bins, bench);
}

}  // namespace

Result<Kernel> make_dft(const KernelRequest& node) {
  PFRT_TRY(need(node, 1, 1));
  PFRT_TRY(need_types(node, {1, 2}, kIndices));
  for (uint32_t i : {1u, 2u})
    if (node.has_input(i)) PFRT_TRY(need_scalar(node, i));
  const auto in = node.input_dims(0), out = node.output_dims(0);
  if (in.size() < 2 || in.size() != out.size() || in.back() < 1 || in.back() > 2)
    return kernel_error("input ", dims_text(in), " does not end in 1 (real) or 2 (complex)");
  Dft dft{};
  dft.dtype = node.input_dtype(0);
  dft.inverse = node.attr_int("inverse", 0) != 0;
  dft.onesided = node.attr_int("onesided", 0) != 0;
  dft.in.assign(in.begin(), in.end());
  dft.out.assign(out.begin(), out.end());
  Kernel kernel;
  kernel.scratch_bytes = dft_scratch(dft);
  kernel.run = [dft = std::move(dft), cache = std::make_shared<FourierCache>(),
                has_length = node.has_input(1), has_axis = node.has_input(2),
                length_type = node.input_dtype(1),
                axis_type = node.input_dtype(2)](const Run& run) -> pfrt_code {
    const int64_t axis = has_axis ? load_scalar<int64_t>(axis_type, run.input(2)) : -2;
    int64_t length = -1;
    if (has_length) length = std::max<int64_t>(0, load_scalar<int64_t>(length_type, run.input(1)));
    const Result<DftLines> made = dft_lines(dft, axis, length);
    if (!made.ok()) return run.fail(Code::kSHAPE_MISMATCH, "DFT: ", made.status().message());
    const DftLines& lines = made.value();
    const int64_t count = lines.outer * lines.inner;
    if (count == 0) return 0;
    const std::shared_ptr<const Fourier> fourier = cache->get(lines.length, run);
    if (!fourier) return run.stop();
    const int64_t group = std::max<int64_t>(1, kTaskPoints / lines.length);
    run.parallel((count + group - 1) / group, [&](int64_t task, uint32_t worker) {
      const Bench bench(run.scratch<double>(worker), lines.length, lines.length);
      for (int64_t l = task * group; l < std::min(count, (task + 1) * group); ++l)
        transform_line(run, dft, lines, *fourier, l, bench);
    });
    return run.stop();
  };
  return kernel;
}

Result<Kernel> make_stft(const KernelRequest& node) {
  PFRT_TRY(need(node, 2, 1));
  PFRT_TRY(need_types(node, {1, 3}, kIndices));
  PFRT_TRY(need_scalar(node, 1));
  const auto in = node.input_dims(0), out = node.output_dims(0);
  const int64_t components = in.size() == 3 ? in[2] : 1;
  if (in.size() < 2 || in.size() > 3 || out.size() != 4 || out[3] != 2 || components < 1 ||
      components > 2)
    return kernel_error("signal ", dims_text(in),
                        " is neither [batch, samples] nor [batch, samples, 1 or 2]");
  Stft stft{};
  stft.dtype = node.input_dtype(0);
  stft.batch = in[0];
  stft.samples = in[1];
  stft.components = components;
  stft.frames = out[1];
  stft.bins = out[2];
  stft.onesided = node.attr_int("onesided", 1) != 0;
  stft.windowed = node.has_input(2);
  if (out[0] != in[0]) return kernel_error("the batch differs in the output");
  if (stft.windowed) {
    PFRT_TRY(need_types(node, {2}, kFloats));
    if (node.input_rank(2) != 1) return kernel_error("the window must be a list");
  }
  const bool given = node.has_input(3);
  if (given) PFRT_TRY(need_scalar(node, 3));
  stft.window = stft.windowed ? node.input_elements(2) : INT64_MAX;
  // The length where input 3 does not give one.
  const int64_t natural = stft.windowed ? stft.window : stft.samples;
  const int64_t most = stft.onesided ? 2 * stft.bins : stft.bins;
  Kernel kernel;
  for (int64_t n = std::max<int64_t>(1, most - 2); n <= most; ++n)
    kernel.scratch_bytes = std::max(kernel.scratch_bytes, Bench::bytes(n, n));
  kernel.run = [stft, given, natural, cache = std::make_shared<FourierCache>(),
                step_type = node.input_dtype(1), window_type = node.input_dtype(2),
                length_type = node.input_dtype(3)](const Run& run) -> pfrt_code {
    const int64_t step = load_scalar<int64_t>(step_type, run.input(1));
    const int64_t n = given ? load_scalar<int64_t>(length_type, run.input(3)) : natural;
    if (step < 1 || n < 1 || n > stft.samples || (stft.samples - n) / step + 1 != stft.frames ||
        (stft.onesided ? n / 2 + 1 : n) != stft.bins)
      return run.fail(Code::kSHAPE_MISMATCH, "STFT: frames of ", n, " samples, ", step,
                      " apart, of a signal of ", stft.samples, " do not make ", stft.frames, " by ",
                      stft.bins);
    std::vector<double> window;
    if (stft.windowed) {
      window.resize(static_cast<size_t>(stft.window));
      load_fn<double>(window_type)(window.data(), run.input(2), 0, 1, stft.window);
    }
    const std::shared_ptr<const Fourier> fourier = cache->get(n, run);
    if (!fourier) return run.stop();
    const int64_t count = stft.batch * stft.frames;
    const int64_t group = std::max<int64_t>(1, kTaskPoints / n);
    run.parallel((count + group - 1) / group, [&](int64_t task, uint32_t worker) {
      const Bench bench(run.scratch<double>(worker), n, n);
      for (int64_t f = task * group; f < std::min(count, (task + 1) * group); ++f)
        transform_frame(run, stft, *fourier, step, window.data(), f, bench);
    });
    return run.stop();
  };
  return kernel;
}

}  // namespace pfrt::cpu
