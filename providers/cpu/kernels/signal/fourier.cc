// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/signal/fourier.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace pfrt::cpu {
namespace {

constexpr int64_t kLargestFactor = 61;
constexpr int64_t kAngle = 40;  // work of a sine and a cosine

// Factors in the order of the stages; empty when a prime factor is too large for a butterfly.
std::vector<int64_t> factors_of(int64_t n) {
  std::vector<int64_t> out;
  while (n % 4 == 0) {
    out.push_back(4);
    n /= 4;
  }
  for (int64_t p = 2; p <= kLargestFactor && n > 1; ++p) {
    while (n % p == 0) {
      out.push_back(p);
      n /= p;
    }
  }
  if (n > 1) out.clear();
  return out;
}

int64_t power_of_two(int64_t least) {
  int64_t n = 1;
  while (n < least) n *= 2;
  return n;
}

// A stage: |stride| interleaved transforms, of |count| * radix points each.
struct Stage {
  int64_t radix, count, stride, length;
  const double *from_re, *from_im;
  double *to_re, *to_im;
  const double *cos, *sin;
};

void radix2(const Stage& s, Pace& pace) {
  for (int64_t p = 0; p < s.count && !pace.stopped(2 * s.stride); ++p) {
    const double c = s.cos[p * s.stride], w = s.sin[p * s.stride];
    const double *ar = s.from_re + s.stride * p, *ai = s.from_im + s.stride * p;
    const double *br = ar + s.stride * s.count, *bi = ai + s.stride * s.count;
    double *yr = s.to_re + 2 * s.stride * p, *yi = s.to_im + 2 * s.stride * p;
    for (int64_t q = 0; q < s.stride; ++q) {
      const double dr = ar[q] - br[q], di = ai[q] - bi[q];
      yr[q] = ar[q] + br[q];
      yi[q] = ai[q] + bi[q];
      yr[q + s.stride] = dr * c - di * w;
      yi[q + s.stride] = dr * w + di * c;
    }
  }
}

void radix4(const Stage& s, Pace& pace) {
  const int64_t step = s.stride * s.count;
  for (int64_t p = 0; p < s.count && !pace.stopped(4 * s.stride); ++p) {
    double c[4], w[4];
    for (int64_t k = 1; k < 4; ++k) {
      c[k] = s.cos[k * p * s.stride];
      w[k] = s.sin[k * p * s.stride];
    }
    const double *xr = s.from_re + s.stride * p, *xi = s.from_im + s.stride * p;
    double *yr = s.to_re + 4 * s.stride * p, *yi = s.to_im + 4 * s.stride * p;
    for (int64_t q = 0; q < s.stride; ++q) {
      const double er = xr[q] + xr[q + 2 * step], ei = xi[q] + xi[q + 2 * step];
      const double fr = xr[q] - xr[q + 2 * step], fi = xi[q] - xi[q + 2 * step];
      const double gr = xr[q + step] + xr[q + 3 * step], gi = xi[q + step] + xi[q + 3 * step];
      const double hr = xr[q + step] - xr[q + 3 * step], hi = xi[q + step] - xi[q + 3 * step];
      const double br[4] = {er + gr, fr + hi, er - gr, fr - hi};
      const double bi[4] = {ei + gi, fi - hr, ei - gi, fi + hr};
      yr[q] = br[0];
      yi[q] = bi[0];
      for (int64_t k = 1; k < 4; ++k) {
        yr[q + k * s.stride] = br[k] * c[k] - bi[k] * w[k];
        yi[q + k * s.stride] = br[k] * w[k] + bi[k] * c[k];
      }
    }
  }
}

void any_radix(const Stage& s, Pace& pace) {
  const int64_t r = s.radix, step = s.stride * s.count, root = s.length / r;
  for (int64_t p = 0; p < s.count; ++p) {
    for (int64_t k = 0; k < r && !pace.stopped(r * s.stride); ++k) {
      const double c = s.cos[k * p * s.stride], w = s.sin[k * p * s.stride];
      double* yr = s.to_re + (r * p + k) * s.stride;
      double* yi = s.to_im + (r * p + k) * s.stride;
      for (int64_t q = 0; q < s.stride; ++q) {
        double sum_re = 0, sum_im = 0;
        for (int64_t j = 0; j < r; ++j) {
          const double cj = s.cos[j * k % r * root], wj = s.sin[j * k % r * root];
          const double re = s.from_re[q + s.stride * p + step * j],
                       im = s.from_im[q + s.stride * p + step * j];
          sum_re += re * cj - im * wj;
          sum_im += re * wj + im * cj;
        }
        yr[q] = sum_re * c - sum_im * w;
        yi[q] = sum_re * w + sum_im * c;
      }
    }
  }
}

// Fills with zeros, a step at a time: the system maps memory when it is first written to, which
// takes time. False once the run is to stop.
bool grow(Pace& pace, std::vector<double>& list, size_t size) {
  constexpr size_t kStep = 1 << 17;
  list.reserve(size);
  while (list.size() < size && !pace.stopped(4 * kStep))
    list.resize(std::min(size, list.size() + kStep));
  return list.size() == size;
}

}  // namespace

Fourier::Fourier(int64_t length, const Run& run) : length_(length), factors_(factors_of(length)) {
  const size_t n = static_cast<size_t>(length);
  Pace pace(run);
  for (std::vector<double>* const list : {&cos_, &sin_})
    if (!grow(pace, *list, n)) return;
  const bool direct = length == 1 || !factors_.empty();
  // The chirp has half the angle, and squares are taken modulo 2 n, which is exact for any length.
  const double turn = (direct ? 2 : 1) * std::numbers::pi / static_cast<double>(length);
  uint64_t square = 0;
  for (size_t i = 0; i < n && !pace.stopped(kAngle); ++i) {
    const double angle = turn * static_cast<double>(direct ? i : square);
    cos_[i] = std::cos(angle);
    sin_[i] = -std::sin(angle);
    square = (square + 2 * i + 1) % (2 * n);
  }
  if (direct || run.stopped()) return;
  const int64_t size = power_of_two(2 * length - 1);
  inner_ = std::make_unique<Fourier>(size, run);
  if (run.stopped()) return;
  std::vector<double> work;
  if (!grow(pace, filter_re_, static_cast<size_t>(size)) ||
      !grow(pace, filter_im_, static_cast<size_t>(size)) ||
      !grow(pace, work, static_cast<size_t>(work_for(size))))
    return;
  for (size_t i = 0; i < n && !pace.stopped(1); ++i) {
    filter_re_[i] = cos_[i];
    filter_im_[i] = -sin_[i];
    if (i == 0) continue;
    filter_re_[static_cast<size_t>(size) - i] = cos_[i];
    filter_im_[static_cast<size_t>(size) - i] = -sin_[i];
  }
  if (run.stopped()) return;
  inner_->transform(run, filter_re_.data(), filter_im_.data(), work.data());
}

int64_t Fourier::work_for(int64_t length) {
  if (length == 1 || !factors_of(length).empty()) return 2 * length;
  return 4 * power_of_two(2 * length - 1);
}

void Fourier::transform(const Run& run, double* re, double* im, double* work) const {
  inner_ ? chirp(run, re, im, work) : butterflies(run, re, im, work);
}

void Fourier::butterflies(const Run& run, double* re, double* im, double* work) const {
  Pace pace(run);
  Stage s{};
  s.length = length_;
  s.cos = cos_.data();
  s.sin = sin_.data();
  s.stride = 1;
  double *at_re = re, *at_im = im, *other_re = work, *other_im = work + length_;
  int64_t rest = length_;
  for (int64_t radix : factors_) {
    s.radix = radix;
    s.count = rest / radix;
    s.from_re = at_re;
    s.from_im = at_im;
    s.to_re = other_re;
    s.to_im = other_im;
    radix == 2 ? radix2(s, pace) : radix == 4 ? radix4(s, pace) : any_radix(s, pace);
    std::swap(at_re, other_re);
    std::swap(at_im, other_im);
    rest /= radix;
    s.stride *= radix;
  }
  if (at_re == re || run.stopped()) return;
  std::copy(at_re, at_re + length_, re);
  std::copy(at_im, at_im + length_, im);
}

// x[k] = w[k] sum over n of (x[n] w[n]) conj(w[k - n]), where w[n] = e^(-pi i n^2 / length).
void Fourier::chirp(const Run& run, double* re, double* im, double* work) const {
  const int64_t size = inner_->length();
  double *a = work, *b = work + size, *rest = work + 2 * size;
  Pace pace(run);
  in_chunks(pace, 2 * size,
            [&](int64_t begin, int64_t end) { std::fill(a + begin, a + end, 0.0); });
  for (int64_t i = 0; i < length_ && !pace.stopped(4); ++i) {
    const double c = cos_[static_cast<size_t>(i)], w = sin_[static_cast<size_t>(i)];
    a[i] = re[i] * c - im[i] * w;
    b[i] = re[i] * w + im[i] * c;
  }
  inner_->transform(run, a, b, rest);
  for (int64_t i = 0; i < size && !pace.stopped(4); ++i) {
    const double fr = filter_re_[static_cast<size_t>(i)], fi = filter_im_[static_cast<size_t>(i)];
    const double r = a[i] * fr - b[i] * fi;
    b[i] = a[i] * fi + b[i] * fr;
    a[i] = r;
  }
  inner_->transform(run, b, a, rest);  // back
  const double scale = 1 / static_cast<double>(size);
  for (int64_t i = 0; i < length_ && !pace.stopped(4); ++i) {
    const double c = cos_[static_cast<size_t>(i)], w = sin_[static_cast<size_t>(i)];
    re[i] = (a[i] * c - b[i] * w) * scale;
    im[i] = (a[i] * w + b[i] * c) * scale;
  }
}

std::shared_ptr<const Fourier> FourierCache::get(int64_t length, const Run& run) {
  {
    const std::lock_guard lock(mutex_);
    if (last_ && last_->length() == length) return last_;
  }
  auto made = std::make_shared<const Fourier>(length, run);
  if (run.stopped()) return nullptr;
  const std::lock_guard lock(mutex_);
  return last_ = std::move(made);
}

}  // namespace pfrt::cpu
