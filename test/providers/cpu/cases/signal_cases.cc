// SPDX-License-Identifier: Apache-2.0
//
// Fourier transforms as the sums that define them, windows and mel weights by formula, random
// numbers from a plain Mersenne twister.
#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include "test/providers/cpu/cases/cases.h"

namespace pfrt::test {
namespace {

using Complex = std::complex<double>;

// Transforms a line of |n| points; zeros follow those given.
std::vector<Complex> transform(std::vector<Complex> line, int64_t n, bool inverse) {
  line.resize(static_cast<size_t>(n));
  std::vector<Complex> out(line.size());
  const double turn = (inverse ? 2 : -2) * std::numbers::pi / static_cast<double>(n);
  for (int64_t k = 0; k < n; ++k) {
    Complex sum = 0;
    for (int64_t i = 0; i < n; ++i)
      sum += line[static_cast<size_t>(i)] * std::polar(1.0, turn * static_cast<double>(i * k % n));
    out[static_cast<size_t>(k)] = inverse ? sum / static_cast<double>(n) : sum;
  }
  return out;
}

// Returns the tensor's number at |at|, whose last index is ignored.
Complex number(const Data& x, Dims at) {
  at.back() = 0;
  const size_t i = position(at, x.dims);
  return {x.values[i], x.dims.back() == 2 ? x.values[i + 1] : 0};
}

Case dft(Random& r, pfrt_dtype dtype, int64_t size) {
  constexpr int64_t kLengths[] = {1, 2, 3, 4, 5, 8, 12, 16, 30, 49, 61, 64, 67, 101, 134};
  const size_t rank = static_cast<size_t>(r.from_to(2, 4));
  const size_t axis = static_cast<size_t>(r.below(static_cast<int64_t>(rank) - 1));
  const bool inverse = r.once_in(2), onesided = r.once_in(3), spectrum = inverse && onesided;
  Dims dims(rank, 1);
  dims[axis] = kLengths[r.below(std::size(kLengths))] + spectrum;
  for (size_t d = 0; d + 1 < rank; ++d)
    if (d != axis) dims[d] = r.from_to(1, std::clamp<int64_t>(size / 100, 3, 40));
  dims.back() = spectrum || (!onesided && r.once_in(2)) ? 2 : 1;
  const Data x = r.data(dtype, dims);
  int64_t n = spectrum ? 2 * (dims[axis] - 1) : dims[axis];
  Case c;
  c.inputs = {x};
  const bool given = r.once_in(2);
  if (given) {
    n = std::max<int64_t>(1, n + r.from_to(-4, 4));
    c.inputs.push_back(integers({}, {n}, r.once_in(2)));
  } else {
    c.inputs.push_back({});
  }
  c.inputs.push_back(
      integers({}, {static_cast<int64_t>(axis) - (r.once_in(2) ? 0 : static_cast<int64_t>(rank))},
               r.once_in(2)));
  Dims out = dims;
  out[axis] = onesided && !inverse ? n / 2 + 1 : n;
  out.back() = spectrum ? 1 : 2;
  Values y(static_cast<size_t>(count(out)));
  Dims lines = dims;
  lines[axis] = lines.back() = 1;
  for_each_index(lines, [&](const Dims& start) {
    Dims at = start;
    const int64_t held = std::min(dims[axis], spectrum ? n / 2 + 1 : n);
    std::vector<Complex> line;
    for (at[axis] = 0; at[axis] < held; ++at[axis]) line.push_back(number(x, at));
    line.resize(static_cast<size_t>(n));
    if (spectrum) {
      line[0] = line[0].real();
      for (int64_t k = 1; 2 * k <= n; ++k) {
        Complex& v = line[static_cast<size_t>(k)];
        if (2 * k == n) v = v.real();
        line[static_cast<size_t>(n - k)] = std::conj(v);
      }
    }
    line = transform(line, n, inverse);
    at.back() = 0;
    for (at[axis] = 0; at[axis] < out[axis]; ++at[axis]) {
      const size_t to = position(at, out);
      y[to] = line[static_cast<size_t>(at[axis])].real();
      if (!spectrum) y[to + 1] = line[static_cast<size_t>(at[axis])].imag();
    }
  });
  c.outputs = {expected(dtype, out, y)};
  c.attrs = {{"inverse", int64_t{inverse}}, {"onesided", int64_t{onesided}}};
  c.relative = 2;
  c.absolute = 64 * step_error(PFRT_DTYPE_FLOAT64) * static_cast<double>(n);
  return c;
}

Case stft(Random& r, pfrt_dtype dtype, int64_t size) {
  const int64_t batch = r.from_to(1, 3),
                samples = r.from_to(20, std::clamp<int64_t>(size / 20, 40, 400));
  const int64_t n = r.from_to(1, 20), step = r.from_to(1, 9);
  const bool windowed = r.once_in(2), given = !windowed || r.once_in(2);
  const bool onesided = r.once_in(2), complex = !onesided && r.once_in(2);
  const Data x = r.data(dtype, {batch, samples, complex ? 2 : 1});
  const int64_t held =
      windowed && given && r.once_in(2) ? r.from_to(1, 24) : n;  // samples in a window
  const Data window = r.data(dtype, {windowed ? held : 0}, 0, 1);
  const int64_t frames = (samples - n) / step + 1, bins = onesided ? n / 2 + 1 : n;
  Case c;
  c.inputs = {x, integers({}, {step}), windowed ? window : Data{}};
  if (given) c.inputs.push_back(integers({}, {n}));
  Values y;
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t f = 0; f < frames; ++f) {
      std::vector<Complex> line;
      for (int64_t i = 0; i < std::min(n, held) && f * step + i < samples; ++i)
        line.push_back(number(x, {b, f * step + i, 0}) *
                       (windowed ? window.values[static_cast<size_t>(i)] : 1));
      line = transform(line, n, false);
      for (int64_t k = 0; k < bins; ++k) {
        y.push_back(line[static_cast<size_t>(k)].real());
        y.push_back(line[static_cast<size_t>(k)].imag());
      }
    }
  if (!complex && r.once_in(2)) c.inputs[0].dims.pop_back();
  c.outputs = {expected(dtype, {batch, frames, bins, 2}, y)};
  c.attrs = {{"onesided", int64_t{onesided}}};
  c.relative = 2;
  c.absolute = 1e-12;
  return c;
}

Generator window(double a0, double a1, double a2) {
  return [=](Random& r, pfrt_dtype dtype, int64_t size) {
    constexpr pfrt_dtype kOut[] = {PFRT_DTYPE_FLOAT32, PFRT_DTYPE_FLOAT64, PFRT_DTYPE_FLOAT16,
                                   PFRT_DTYPE_BFLOAT16};
    const pfrt_dtype out = kOut[r.below(4)];
    const int64_t n = r.once_in(8) ? 0 : r.from_to(2, size), periodic = r.below(2);
    Values y;
    for (int64_t i = 0; i < n; ++i) {
      const double part = static_cast<double>(i) / static_cast<double>(periodic ? n : n - 1);
      y.push_back(a0 - a1 * std::cos(2 * std::numbers::pi * part) +
                  a2 * std::cos(4 * std::numbers::pi * part));
    }
    Case c;
    c.inputs = {{dtype, {}, {static_cast<double>(n)}, true}};
    c.outputs = {expected(out, {n}, y)};
    c.attrs = {{"output_datatype", int64_t{out}}, {"periodic", periodic}};
    c.relative = 2;
    c.absolute = 1e-14;
    return c;
  };
}

// Mel weights are triangles between the bins of neighbouring edges.
Case mel(Random& r, pfrt_dtype dtype, int64_t size) {
  const int64_t bands = r.from_to(0, std::clamp<int64_t>(size / 50, 8, 300)),
                length = r.from_to(16, 600), rate = r.from_to(4000, 48000);
  const double low = r.uniform(0, 200), high = r.uniform(300, static_cast<double>(rate) / 2);
  const auto to_mel = [](double f) { return 2595 * std::log10(1 + f / 700); };
  std::vector<int64_t> edge;
  const double step = (to_mel(high) - to_mel(low)) / static_cast<double>(bands + 2);
  for (int64_t i = 0; i < bands + 2; ++i) {
    const double hertz =
        700 * (std::pow(10, (static_cast<double>(i) * step + to_mel(low)) / 2595) - 1);
    edge.push_back(static_cast<int64_t>(
        std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate))));
  }
  const int64_t bins = length / 2 + 1;
  Values y(static_cast<size_t>(bins * bands), 0);
  for (int64_t b = 0; b < bands; ++b) {
    const int64_t from = edge[static_cast<size_t>(b)], peak = edge[static_cast<size_t>(b + 1)],
                  to = edge[static_cast<size_t>(b + 2)];
    const auto weight = [&](int64_t bin) -> double& {
      return y[static_cast<size_t>(bin * bands + b)];
    };
    for (int64_t j = from; j < peak; ++j)
      weight(j) = static_cast<double>(j - from) / static_cast<double>(peak - from);
    weight(peak) = 1;
    for (int64_t j = peak; j < to; ++j)
      weight(j) = static_cast<double>(to - j) / static_cast<double>(to - peak);
  }
  Case c;
  const auto scalar = [](pfrt_dtype type, double v) { return Data{type, {}, {v}, true}; };
  c.inputs = {scalar(dtype, static_cast<double>(bands)),
              scalar(PFRT_DTYPE_INT64, static_cast<double>(length)),
              scalar(PFRT_DTYPE_INT32, static_cast<double>(rate)), scalar(PFRT_DTYPE_FLOAT64, low),
              scalar(PFRT_DTYPE_FLOAT64, high)};
  c.outputs = {expected(PFRT_DTYPE_FLOAT32, {bins, bands}, y)};
  c.relative = 2;
  return c;
}

// ------------------------------------------------------------------ random numbers

// The Mersenne twister of the paper, seeded like NumPy's RandomState.
class Twister {
 public:
  explicit Twister(uint32_t seed) {
    state_[0] = seed;
    for (uint32_t i = 1; i < 624; ++i)
      state_[i] = 1812433253u * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
  }
  double uniform() {
    const double high = next() >> 5, low = next() >> 6;
    return (high * 67108864.0 + low) / 9007199254740992.0;
  }

 private:
  uint32_t next() {
    if (at_ == 624) {
      for (uint32_t i = 0; i < 624; ++i) {
        const uint32_t y = (state_[i] & 0x80000000u) | (state_[(i + 1) % 624] & 0x7fffffffu);
        state_[i] = state_[(i + 397) % 624] ^ (y >> 1) ^ (y & 1 ? 0x9908b0dfu : 0);
      }
      at_ = 0;
    }
    uint32_t y = state_[at_++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
  }
  uint32_t state_[624];
  uint32_t at_ = 624;
};

Values normals(Twister& from, size_t n) {
  Values out;
  while (out.size() < n) {
    const double a = 2 * from.uniform() - 1, b = 2 * from.uniform() - 1, s = a * a + b * b;
    if (s >= 1 || s == 0) continue;
    const double scale = std::sqrt(-2 * std::log(s) / s);
    out.push_back(scale * b);
    out.push_back(scale * a);
  }
  out.resize(n);
  return out;
}

Generator random_numbers(bool normal, bool like) {
  return [=](Random& r, pfrt_dtype dtype, int64_t size) {
    const Dims dims = r.dims(static_cast<size_t>(r.from_to(1, 3)), size);
    const int64_t seed = r.below(5000);
    const float first = static_cast<float>(r.from_to(-4, 2)),
                second = static_cast<float>(r.from_to(3, 9));
    const size_t n = static_cast<size_t>(count(dims));
    Twister twister(static_cast<uint32_t>(seed));
    Values y;
    if (normal) y = normals(twister, n);
    while (y.size() < n) y.push_back(twister.uniform());
    const double scale = normal ? double{second} : double{second} - double{first};
    for (double& v : y) v = v * scale + double{first};
    const pfrt_dtype out = is_float(dtype) ? dtype : pfrt_dtype{PFRT_DTYPE_FLOAT32};
    Case c;
    if (like) c.inputs = {r.data(dtype, dims)};
    c.outputs = {expected(out, dims, y)};
    c.attrs = {{"seed", static_cast<float>(seed)},
               {normal ? "mean" : "low", first},
               {normal ? "scale" : "high", second},
               {"dtype", int64_t{out}}};
    if (!like) c.attrs.push_back({"shape", dims});
    c.relative = 4;
    c.absolute = 40 * step_error(out);
    return c;
  };
}

Case bernoulli(Random& r, pfrt_dtype dtype, int64_t size) {
  Data p = r.data(dtype, r.dims(static_cast<size_t>(r.from_to(1, 3)), size), 0, 1);
  if (!p.values.empty() && r.once_in(2)) p.values[0] = static_cast<double>(r.below(2));
  const int64_t seed = r.below(100);
  Twister twister(static_cast<uint32_t>(seed));
  Values y;
  for (double v : p.values) {
    // NumPy inverts the rarer outcome; a certain outcome draws nothing.
    if (v == 0 || v == 1)
      y.push_back(v);
    else if (v <= 0.5)
      y.push_back(twister.uniform() > std::exp(std::log(1 - v)) ? 1 : 0);
    else
      y.push_back(twister.uniform() > std::exp(std::log(1 - (1 - v))) ? 0 : 1);
  }
  constexpr pfrt_dtype kOut[] = {PFRT_DTYPE_BOOL, PFRT_DTYPE_INT32, PFRT_DTYPE_FLOAT32};
  const pfrt_dtype out = r.once_in(2) ? dtype : kOut[r.below(3)];
  Case c;
  c.inputs = {p};
  c.outputs = {expected(out, p.dims, y)};
  c.attrs = {{"seed", static_cast<float>(seed)}, {"dtype", int64_t{out}}};
  return c;
}

Case multinomial(Random& r, pfrt_dtype dtype, int64_t size) {
  const int64_t batch = r.from_to(0, 4), classes = r.from_to(1, 20),
                samples = r.from_to(0, std::max<int64_t>(size / 8, 8)), seed = r.below(100);
  const Data logits = r.data(dtype, {batch, classes});
  Twister twister(static_cast<uint32_t>(seed));
  Values y;
  for (int64_t b = 0; b < batch; ++b) {
    const double* row = logits.values.data() + b * classes;
    const double top = *std::max_element(row, row + classes);
    double total = 0;
    for (int64_t k = 0; k < classes; ++k) total += std::exp(row[k] - top);
    for (int64_t s = 0; s < samples; ++s) {
      const double wanted = twister.uniform() * total;
      int64_t k = 0;
      for (double sum = std::exp(row[0] - top); sum <= wanted && k + 1 < classes;)
        sum += std::exp(row[++k] - top);
      y.push_back(static_cast<double>(k));
    }
  }
  const pfrt_dtype out = r.once_in(2) ? PFRT_DTYPE_INT32 : PFRT_DTYPE_INT64;
  Case c;
  c.inputs = {logits};
  c.outputs = {expected(out, {batch, samples}, y)};
  c.attrs = {{"seed", static_cast<float>(seed)}, {"dtype", int64_t{out}}, {"sample_size", samples}};
  return c;
}

// A single input is for the row of inference, three are for that of training.
Case dropout(Random& r, pfrt_dtype dtype, int64_t size) {
  const Data x = r.data(dtype, r.dims(static_cast<size_t>(r.below(5)), size), -9, 9);
  Case c;
  c.inputs = {x};
  Values y = x.values, mask(y.size(), 1);
  if (r.once_in(2)) {
    const double ratio = static_cast<double>(r.below(4)) / 4;
    const bool trains = !r.once_in(4), constant = trains && r.once_in(2);
    const int64_t seed = r.below(1000);
    c.inputs.push_back({dtype, {}, {ratio}, constant});
    c.inputs.push_back({PFRT_DTYPE_BOOL, {}, {static_cast<double>(trains)}, constant});
    c.attrs = {{"seed", seed}};
    Twister twister(static_cast<uint32_t>(seed));
    for (size_t i = 0; i < y.size() && trains && ratio > 0; ++i) {
      mask[i] = twister.uniform() >= ratio;
      y[i] *= mask[i] / (1 - ratio);
    }
    c.relative = 2;
  }
  c.outputs = {expected(dtype, x.dims, y)};
  if (r.once_in(2)) c.outputs.push_back(expected(PFRT_DTYPE_BOOL, x.dims, mask));
  return c;
}

}  // namespace

const Generators& signal_cases() {
  static const Generators generators = {
      {"DFT", dft},
      {"STFT", stft},
      {"HannWindow", window(0.5, 0.5, 0)},
      {"HammingWindow", window(25.0 / 46, 21.0 / 46, 0)},
      {"BlackmanWindow", window(0.42, 0.5, 0.08)},
      {"MelWeightMatrix", mel},
      {"RandomNormal", random_numbers(true, false)},
      {"RandomUniform", random_numbers(false, false)},
      {"RandomNormalLike", random_numbers(true, true)},
      {"RandomUniformLike", random_numbers(false, true)},
      {"Bernoulli", bernoulli},
      {"Multinomial", multinomial},
      {"Dropout", dropout},
  };
  return generators;
}

}  // namespace pfrt::test
