// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/elements/strided.h"

#include <emmintrin.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace pfrt::cpu {
namespace {

constexpr int64_t kBlock = 1 << 15;          // elements a task
constexpr int64_t kTile = 32, kStrip = 128;  // a strip's rows are contiguous in the source

struct Wide {
  uint64_t low, high;
};

template <typename E>
void copy_row(const char* from, int64_t from_stride, char* to, int64_t to_stride, int64_t n) {
  const auto step = [](const char* base, int64_t i) {
    return base + i * static_cast<int64_t>(sizeof(E));
  };
  for (int64_t i = 0; i < n; ++i)
    std::memcpy(to + i * to_stride * static_cast<int64_t>(sizeof(E)), step(from, i * from_stride),
                sizeof(E));
}

// Every second number, whose bits are moved unseen.
template <>
void copy_row<uint32_t>(const char* from, int64_t from_stride, char* to, int64_t to_stride,
                        int64_t n) {
  const auto* const source = reinterpret_cast<const float*>(from);
  auto* const target = reinterpret_cast<float*>(to);
  int64_t i = 0;
  if (from_stride == 2 && to_stride == 1)
    for (; i + 4 < n; i += 4)
      _mm_storeu_ps(target + i,
                    _mm_shuffle_ps(_mm_loadu_ps(source + 2 * i), _mm_loadu_ps(source + 2 * i + 4),
                                   _MM_SHUFFLE(2, 0, 2, 0)));
  for (; i < n; ++i) std::memcpy(target + i * to_stride, source + i * from_stride, sizeof(float));
}

template <typename E>
void copy_tile(const char* from, int64_t from_stride, char* to, int64_t to_stride, int64_t rows,
               int64_t cols) {
  constexpr int64_t kSize = static_cast<int64_t>(sizeof(E));
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c)
      std::memcpy(to + (r * to_stride + c) * kSize, from + (c * from_stride + r) * kSize,
                  sizeof(E));
}

// Squares of 4 x 4 as vectors, whose bits are moved unseen.
template <>
void copy_tile<uint32_t>(const char* from, int64_t from_stride, char* to, int64_t to_stride,
                         int64_t rows, int64_t cols) {
  constexpr int64_t kSide = 4;
  const auto* const source = reinterpret_cast<const float*>(from);
  auto* const target = reinterpret_cast<float*>(to);
  const int64_t whole_rows = rows / kSide * kSide, whole_cols = cols / kSide * kSide;
  for (int64_t r = 0; r < whole_rows; r += kSide)
    for (int64_t c = 0; c < whole_cols; c += kSide) {
      const float* const in = source + c * from_stride + r;
      float* const out = target + r * to_stride + c;
      __m128 a = _mm_loadu_ps(in), b = _mm_loadu_ps(in + from_stride);
      __m128 d = _mm_loadu_ps(in + 2 * from_stride), e = _mm_loadu_ps(in + 3 * from_stride);
      _MM_TRANSPOSE4_PS(a, b, d, e);
      _mm_storeu_ps(out, a);
      _mm_storeu_ps(out + to_stride, b);
      _mm_storeu_ps(out + 2 * to_stride, d);
      _mm_storeu_ps(out + 3 * to_stride, e);
    }
  const auto rest = [&](int64_t row, int64_t row_end, int64_t col, int64_t col_end) {
    for (int64_t r = row; r < row_end; ++r)
      for (int64_t c = col; c < col_end; ++c)
        std::memcpy(target + r * to_stride + c, source + c * from_stride + r, sizeof(float));
  };
  rest(0, whole_rows, whole_cols, cols);
  rest(whole_rows, rows, 0, cols);
}

// Squares of 16 x 16: four times, lines of either half take turns.
template <>
void copy_tile<uint8_t>(const char* from, int64_t from_stride, char* to, int64_t to_stride,
                        int64_t rows, int64_t cols) {
  constexpr int64_t kSide = 16;
  const int64_t whole_rows = rows / kSide * kSide, whole_cols = cols / kSide * kSide;
  for (int64_t r = 0; r < whole_rows; r += kSide)
    for (int64_t c = 0; c < whole_cols; c += kSide) {
      __m128i lines[kSide], turned[kSide];
      for (int64_t i = 0; i < kSide; ++i)
        lines[i] =
            _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + (c + i) * from_stride + r));
      for (int round = 0; round < 4; ++round) {
        for (int64_t i = 0; i < kSide / 2; ++i) {
          turned[2 * i] = _mm_unpacklo_epi8(lines[i], lines[i + kSide / 2]);
          turned[2 * i + 1] = _mm_unpackhi_epi8(lines[i], lines[i + kSide / 2]);
        }
        std::swap(lines, turned);
      }
      for (int64_t i = 0; i < kSide; ++i)
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to + (r + i) * to_stride + c), lines[i]);
    }
  const auto rest = [&](int64_t row, int64_t row_end, int64_t col) {
    for (int64_t r = row; r < row_end; ++r)
      for (int64_t c = col; c < cols; ++c) to[r * to_stride + c] = from[c * from_stride + r];
  };
  rest(0, whole_rows, whole_cols);
  rest(whole_rows, rows, 0);
}

// |count| lines of |bytes|, whose strides are bytes too.
void copy_lines(const char* from, int64_t from_stride, char* to, int64_t to_stride, int64_t bytes,
                int64_t count) {
  constexpr int64_t kVector = 16, kMostInVectors = 256;  // longer ones are worth a call
  const auto copy = [](const char* source, char* target) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(target),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(source)));
  };
  for (; count > 0; --count, from += from_stride, to += to_stride) {
    if (bytes < kVector || bytes > kMostInVectors) {
      std::memcpy(to, from, static_cast<size_t>(bytes));
      continue;
    }
    // The last vector may hold again what the one before it holds.
    for (int64_t i = 0; i < bytes - kVector; i += kVector) copy(from + i, to + i);
    copy(from + bytes - kVector, to + bytes - kVector);
  }
}

// Joins contiguous ranges of output 0 and has the epilogue run on each. The ranges begin at element
// |output|; without it the memory is not output 0.
class EpilogueRanges {
 public:
  EpilogueRanges(const Run& run, std::optional<int64_t> output) : run_(run), output_(output) {}
  EpilogueRanges(const EpilogueRanges&) = delete;
  EpilogueRanges& operator=(const EpilogueRanges&) = delete;
  ~EpilogueRanges() { flush(); }

  void add(int64_t first, int64_t n, int64_t stride) {
    if (!output_) return;
    if (stride != 1) {
      for (int64_t i = 0; i < n; ++i) add(first + i * stride, 1, 1);
      return;
    }
    if (*output_ + first != end_) {
      flush();
      begin_ = *output_ + first;
    }
    end_ = *output_ + first + n;
  }

 private:
  void flush() const {
    if (begin_ < end_) run_.apply_epilogue(begin_, end_);
  }
  const Run& run_;
  std::optional<int64_t> output_;
  int64_t begin_ = 0, end_ = 0;
};

// Calls fn<E>() with the element of |bytes|.
template <typename Fn>
void by_size(size_t bytes, Fn&& fn) {
  switch (bytes) {
    case 1:
      return fn.template operator()<uint8_t>();
    case 2:
      return fn.template operator()<uint16_t>();
    case 4:
      return fn.template operator()<uint32_t>();
    case 8:
      return fn.template operator()<uint64_t>();
    default:
      return fn.template operator()<Wide>();
  }
}

}  // namespace

std::vector<int64_t> dense_strides(std::span<const int64_t> dims) {
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t d = dims.size(); d-- > 1;) strides[d - 1] = strides[d] * dims[d];
  return strides;
}

StridedCopy::StridedCopy(size_t element_bytes, std::span<const int64_t> dims,
                         std::span<const int64_t> from_strides, std::span<const int64_t> to_strides)
    : bytes_(element_bytes) {
  for (size_t d = 0; d < dims.size(); ++d) {
    total_ *= dims[d];
    if (dims[d] == 1) continue;
    const bool merges = !dims_.empty() && from_.back() == from_strides[d] * dims[d] &&
                        to_.back() == to_strides[d] * dims[d];
    if (merges) {
      dims_.back() *= dims[d];
      from_.back() = from_strides[d];
      to_.back() = to_strides[d];
    } else {
      dims_.push_back(dims[d]);
      from_.push_back(from_strides[d]);
      to_.push_back(to_strides[d]);
    }
  }
  if (dims_.empty()) {
    dims_ = {1};
    from_ = to_ = {1};
  }
  const size_t last = dims_.size() - 1;
  if (to_[last] != 1 || from_[last] == 0 || from_[last] == 1) return;
  for (size_t d = 0; d < last && !tiled_; ++d) {
    tiled_ = from_[d] == 1 && dims_[d] >= 4;
    dense_ = d;
  }
}

void StridedCopy::run(const Run& run, const void* from, void* to, Output output) const {
  if (total_ <= 0) return;
  const char* const source = static_cast<const char*>(from);
  char* const target = static_cast<char*>(to);
  tiled_ ? tiles(run, source, target, output) : rows(run, source, target, output);
}

void StridedCopy::rows(const Run& run, const char* from, char* to, Output output) const {
  const size_t last = dims_.size() - 1;
  const int64_t length = dims_[last], bytes = static_cast<int64_t>(bytes_);
  run.blocks(total_, kBlock, [&](int64_t begin, int64_t end) {
    constexpr size_t kNear = 8;
    std::array<int64_t, kNear> near{};
    std::vector<int64_t> far(dims_.size() > kNear ? dims_.size() : 0);
    int64_t* const at = far.empty() ? near.data() : far.data();
    int64_t left = begin, source = 0, target = 0;
    for (size_t d = dims_.size(); d-- > 0; left /= dims_[d]) {
      at[d] = left % dims_[d];
      source += at[d] * from_[d];
      target += at[d] * to_[d];
    }
    EpilogueRanges ranges(run, output);
    for (int64_t i = begin; i < end;) {
      const int64_t n = std::min(length - at[last], end - i);
      if (from_[last] == 1 && to_[last] == 1) {
        int64_t count = 1, from_line = 0, to_line = 0;
        if (last > 0 && n == length) {
          count = std::min(dims_[last - 1] - at[last - 1], (end - i) / length);
          from_line = from_[last - 1], to_line = to_[last - 1];
        }
        copy_lines(from + source * bytes, from_line * bytes, to + target * bytes, to_line * bytes,
                   n * bytes, count);
        // The last line is counted below.
        for (int64_t line = 1; line < count; ++line, target += to_line) ranges.add(target, n, 1);
        source += (count - 1) * from_line;
        if (last > 0) at[last - 1] += count - 1;
        i += (count - 1) * n;
      } else {
        by_size(bytes_, [&]<typename E>() {
          copy_row<E>(from + source * bytes, from_[last], to + target * bytes, to_[last], n);
        });
      }
      ranges.add(target, n, to_[last]);
      i += n;
      source -= at[last] * from_[last];
      target -= at[last] * to_[last];
      at[last] = 0;
      for (size_t d = last; d-- > 0;) {
        source += from_[d];
        target += to_[d];
        if (++at[d] < dims_[d]) break;
        source -= dims_[d] * from_[d];
        target -= dims_[d] * to_[d];
        at[d] = 0;
      }
    }
  });
}

void StridedCopy::tiles(const Run& run, const char* from, char* to, Output output) const {
  const size_t last = dims_.size() - 1;
  const int64_t rows = dims_[dense_], cols = dims_[last], bytes = static_cast<int64_t>(bytes_);
  const int64_t strips = (rows + kStrip - 1) / kStrip;
  run.parallel(total_ / (rows * cols) * strips, [&](int64_t i, uint32_t) {
    const int64_t row = i % strips * kStrip, height = std::min(kStrip, rows - row);
    int64_t left = i / strips, source = row, target = row * to_[dense_];
    for (size_t d = last; d-- > 0;) {
      if (d == dense_) continue;
      source += left % dims_[d] * from_[d];
      target += left % dims_[d] * to_[d];
      left /= dims_[d];
    }
    for (int64_t col = 0; col < cols; col += kTile) {
      by_size(bytes_, [&]<typename E>() {
        copy_tile<E>(from + (source + col * from_[last]) * bytes, from_[last],
                     to + (target + col) * bytes, to_[dense_], height, std::min(kTile, cols - col));
      });
    }
    EpilogueRanges ranges(run, output);
    for (int64_t r = 0; r < height; ++r) ranges.add(target + r * to_[dense_], cols, 1);
  });
}

void copy_bytes(const Run& run, const void* from, void* to, int64_t bytes) {
  if (from == to || bytes <= 0) return;
  run.blocks(bytes, kBlock * 8, [&](int64_t begin, int64_t end) {
    std::memcpy(static_cast<char*>(to) + begin, static_cast<const char*>(from) + begin,
                static_cast<size_t>(end - begin));
  });
}

}  // namespace pfrt::cpu
