// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/matmul/einsum/step.h"

#include <algorithm>
#include <numeric>
#include <type_traits>

namespace pfrt::cpu {
namespace {

constexpr int64_t kLine = 512;        // elements at a time
constexpr int64_t kSumsAtOnce = 256;  // products of a sum before it is added to the whole
constexpr int64_t kBlockWork = 1 << 15;
constexpr int64_t kFewRows = 4;
constexpr size_t kA = 0, kB = 1, kOut = 2;

template <typename T>
constexpr pfrt_dtype own_dtype() {
  return std::is_same_v<T, float>      ? PFRT_DTYPE_FLOAT32
         : std::is_same_v<T, double>   ? PFRT_DTYPE_FLOAT64
         : std::is_same_v<T, uint32_t> ? PFRT_DTYPE_UINT32
                                       : PFRT_DTYPE_UINT64;
}

// Whether elements of |dtype| are T as they lie.
template <typename T>
bool is_own(pfrt_dtype dtype) {
  return dtype == own_dtype<T>() || (dtype == PFRT_DTYPE_INT32 && std::is_same_v<T, uint32_t>) ||
         (dtype == PFRT_DTYPE_INT64 && std::is_same_v<T, uint64_t>);
}

EinsumOffsets plus(const EinsumOffsets& a, const EinsumOffsets& b, int64_t times = 1) {
  return {a[0] + b[0] * times, a[1] + b[1] * times, a[2] + b[2] * times};
}

// A matrix whose rows (or columns) and depth are several axes each.
template <typename T>
class AxesSource final : public PanelSource<T> {
 public:
  AxesSource(const EinsumPlace& place, int64_t offset, size_t which, const EinsumAxes& outer,
             const EinsumAxes& depth)
      : data_(place.data),
        load_(load_fn<T>(place.dtype)),
        offset_(offset),
        which_(which),
        outer_(outer),
        depth_(depth) {}
  void pack(T* out, int64_t width, int64_t first, int64_t count, int64_t k0,
            int64_t kn) const override {
    for (int64_t j = 0; j < count;) {
      const int64_t n = std::min(count - j, outer_.run(first + j));
      const int64_t base = offset_ + outer_.at(first + j)[which_];
      for (int64_t k = 0; k < kn;) {
        const int64_t deep = std::min(kn - k, depth_.run(k0 + k));
        pack_run(out + k * width + j, width, base + depth_.at(k0 + k)[which_], n, deep);
        k += deep;
      }
      j += n;
    }
    if (count == width) return;
    for (int64_t k = 0; k < kn; ++k)
      std::fill(out + k * width + count, out + (k + 1) * width, T{0});
  }

 private:
  void pack_run(T* out, int64_t width, int64_t start, int64_t n, int64_t deep) const {
    const int64_t step = outer_.step()[which_], down = depth_.step()[which_];
    if (n > 1 || deep == 1) {
      for (int64_t k = 0; k < deep; ++k) load_(out + k * width, data_, start + k * down, step, n);
      return;
    }
    T line[kLine];
    for (int64_t k = 0; k < deep; k += kLine) {
      const int64_t part = std::min(kLine, deep - k);
      load_(line, data_, start + k * down, down, part);
      for (int64_t i = 0; i < part; ++i) out[(k + i) * width] = line[i];
    }
  }

  const void* data_;
  LoadFn<T> load_;
  int64_t offset_;
  size_t which_;
  const EinsumAxes& outer_;
  const EinsumAxes& depth_;
};

// use(source): a StridedSource, which a matmul can read in place, where one stride is enough.
template <typename T, typename Use>
void with_source(const EinsumPlace& place, int64_t offset, size_t which, const EinsumAxes& outer,
                 const EinsumAxes& depth, Use&& use) {
  if (outer.even() && depth.even())
    use(StridedSource<T>(place.data, place.dtype, offset, outer.step()[which],
                         depth.step()[which]));
  else
    use(AxesSource<T>(place, offset, which, outer, depth));
}

template <typename T>
void store_line(const EinsumPlace& out, int64_t offset, int64_t step, const T* from, int64_t n) {
  const StoreFn<T> store = store_fn<T>(out.dtype);
  if (step == 1 || n == 1) return store(out.data, offset, from, n);
  for (int64_t i = 0; i < n; ++i) store(out.data, offset + i * step, from + i, 1);
}

}  // namespace

void EinsumAxes::add(int64_t size, const EinsumOffsets& steps) {
  count_ *= size;
  if (!axes_.empty()) {
    Axis& last = axes_.back();
    bool joins = true;
    for (size_t i = 0; i < steps.size(); ++i) joins = joins && last.steps[i] == steps[i] * size;
    if (joins) {
      last.size *= size;
      last.steps = steps;
      return;
    }
  }
  axes_.push_back({size, steps});
}

EinsumOffsets EinsumAxes::at(int64_t index) const {
  EinsumOffsets sum{};
  for (size_t i = axes_.size(); i-- > 1; index /= axes_[i].size)
    sum = plus(sum, axes_[i].steps, index % axes_[i].size);
  return axes_.empty() ? sum : plus(sum, axes_[0].steps, index);
}

int64_t EinsumAxes::run(int64_t index) const {
  return even() ? count_ - index : axes_.back().size - index % axes_.back().size;
}

EinsumOffsets EinsumAxes::step() const {
  return axes_.empty() ? EinsumOffsets{} : axes_.back().steps;
}

int64_t EinsumAxes::pop() {
  if (axes_.empty()) return 1;
  const int64_t size = axes_.back().size;
  axes_.pop_back();
  count_ /= size;
  return size;
}

template <typename T>
EinsumMatMul<T>::EinsumMatMul(const EinsumStep& step, const std::vector<int64_t>& sizes)
    : two_(step.b != EinsumStep::kNone) {
  std::vector<size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  // The result is written in its order; sums run along the lines of an operand.
  std::stable_sort(order.begin(), order.end(), [&](size_t x, size_t y) {
    const int64_t rx = step.out_strides[x], ry = step.out_strides[y];
    return rx != ry ? rx > ry : step.a_strides[x] > step.a_strides[y];
  });
  for (const size_t l : order) {
    const EinsumOffsets steps{step.a_strides[l], step.b_strides[l], step.out_strides[l]};
    if (steps == EinsumOffsets{}) continue;  // of size 1, or of other operands
    if (steps[kOut] == 0)
      depth_.add(sizes[l], steps);
    else if (steps[kA] != 0 && steps[kB] != 0)
      batch_.add(sizes[l], steps);
    else
      (steps[kB] != 0 ? cols_ : rows_).add(sizes[l], steps);
    if (steps[kOut] != 0) outer_.add(sizes[l], steps);
  }
  line_step_ = outer_.step();
  line_ = outer_.pop();
  // About how many nanoseconds matmuls with their panels take, and lines.
  const auto m = static_cast<double>(rows_.count()), n = static_cast<double>(cols_.count()),
             k = static_cast<double>(depth_.count()), batches = static_cast<double>(batch_.count());
  const double panels = batches * (200 + 0.1 * m * n * k + (m + n) * k);
  const double lines = static_cast<double>(outer_.count()) * k * (30 + static_cast<double>(line_));
  lines_ = lines < panels;
  if (lines_) return;
  // A matmul of a few rows reads a wide matrix in place.
  if (cols_.count() < rows_.count() && cols_.count() <= kFewRows && two_) swapped_ = true;
  gemm_ = Gemm<T>(swapped_ ? cols_.count() : rows_.count(),
                  swapped_ ? rows_.count() : cols_.count(), depth_.count(), batch_.count());
}

template <typename T>
uint64_t EinsumMatMul<T>::scratch_bytes() const {
  if (lines_) return 0;
  return gemm_.scratch_bytes() + static_cast<uint64_t>(gemm_.max_tile_elements()) * sizeof(T);
}

template <typename T>
double EinsumMatMul<T>::flops() const {
  return 2.0 * static_cast<double>(batch_.count()) * static_cast<double>(rows_.count()) *
         static_cast<double>(cols_.count()) * static_cast<double>(depth_.count());
}

template <typename T>
void EinsumMatMul<T>::run(const Run& run, const EinsumPlace& a, const EinsumPlace& b,
                          const EinsumPlace& out) const {
  if (lines_) return by_lines(run, a, b, out);
  static constexpr T kOne{1};
  multiply(run, a, two_ ? b : EinsumPlace{const_cast<T*>(&kOne), own_dtype<T>()}, out);
}

template <typename T>
void EinsumMatMul<T>::multiply(const Run& run, const EinsumPlace& a, const EinsumPlace& b,
                               const EinsumPlace& out) const {
  const EinsumAxes &rows = swapped_ ? cols_ : rows_, &cols = swapped_ ? rows_ : cols_;
  const size_t left = swapped_ ? kB : kA, right = swapped_ ? kA : kB;
  const EinsumPlace &of_rows = swapped_ ? b : a, &of_cols = swapped_ ? a : b;
  const int64_t tiles = gemm_.tiles();
  // If the result has the form of a matrix, matmuls write to it directly.
  const bool direct = is_own<T>(out.dtype) && rows.even() && cols.even() &&
                      (cols.count() == 1 || cols.step()[kOut] == 1) &&
                      (rows.count() == 1 || rows.step()[kOut] >= cols.count());
  run.parallel(batch_.count() * tiles, [&](int64_t i, uint32_t worker) {
    const EinsumOffsets start = batch_.at(i / tiles);
    const GemmTile t = gemm_.tile(i % tiles);
    T* const scratch = run.scratch<T>(worker);
    const int64_t ldc = direct ? std::max(rows.step()[kOut], cols.count()) : t.cols;
    T* const c = direct ? static_cast<T*>(out.data) + start[kOut] + t.row * ldc + t.col
                        : scratch + gemm_.scratch_bytes() / sizeof(T);
    with_source<T>(of_rows, start[left], left, rows, depth_, [&](const auto& from_rows) {
      with_source<T>(of_cols, start[right], right, cols, depth_, [&](const auto& from_cols) {
        gemm_.compute(run, t, from_rows, from_cols, c, ldc, scratch);
      });
    });
    for (int64_t r = 0; r < t.rows && !direct; ++r) {
      const int64_t base = start[kOut] + rows.at(t.row + r)[kOut];
      for (int64_t j = 0; j < t.cols;) {
        const int64_t n = std::min(t.cols - j, cols.run(t.col + j));
        store_line(out, base + cols.at(t.col + j)[kOut], cols.step()[kOut], c + r * t.cols + j, n);
        j += n;
      }
    }
  });
}

template <typename T>
void EinsumMatMul<T>::by_lines(const Run& run, const EinsumPlace& a, const EinsumPlace& b,
                               const EinsumPlace& out) const {
  const int64_t tasks = (line_ + kLine - 1) / kLine;
  const int64_t work = std::min(line_, kLine) * std::min(depth_.count(), kBlockWork);
  run.blocks(outer_.count() * tasks, std::max<int64_t>(kBlockWork / work, 1),
             [&](int64_t begin, int64_t end) {
               for (int64_t i = begin; i < end; ++i) {
                 const int64_t first = i % tasks * kLine;
                 line(run, a, b, out, plus(outer_.at(i / tasks), line_step_, first),
                      std::min(kLine, line_ - first));
               }
             });
}

// Computes |n| elements of the result, from |start| on.
template <typename T>
void EinsumMatMul<T>::line(const Run& run, const EinsumPlace& a, const EinsumPlace& b,
                           const EinsumPlace& out, const EinsumOffsets& start, int64_t n) const {
  T sums[kLine], part[kLine], left[kLine], right[kLine];
  std::fill_n(sums, n, T{0});
  const int64_t depth = depth_.count();
  for (int64_t k0 = 0; k0 < depth; k0 += kSumsAtOnce) {
    if (k0 > 0 && run.stopped()) return;
    std::fill_n(part, n, T{0});
    for (int64_t k = k0; k < std::min(depth, k0 + kSumsAtOnce); ++k) {
      const EinsumOffsets at = plus(start, depth_.at(k));
      factors(a, kA, at[kA], n, left);
      if (two_) {
        factors(b, kB, at[kB], n, right);
        for (int64_t j = 0; j < n; ++j) part[j] += left[j] * right[j];
      } else {
        for (int64_t j = 0; j < n; ++j) part[j] += left[j];
      }
    }
    for (int64_t j = 0; j < n; ++j) sums[j] += part[j];
  }
  store_line(out, start[kOut], line_step_[kOut], sums, n);
}

template <typename T>
void EinsumMatMul<T>::factors(const EinsumPlace& from, size_t which, int64_t offset, int64_t n,
                              T* to) const {
  const LoadFn<T> load = load_fn<T>(from.dtype);
  if (line_step_[which] != 0) return load(to, from.data, offset, line_step_[which], n);
  load(to, from.data, offset, 1, 1);
  std::fill(to + 1, to + n, to[0]);
}

template class EinsumMatMul<float>;
template class EinsumMatMul<double>;
template class EinsumMatMul<uint32_t>;
template class EinsumMatMul<uint64_t>;

}  // namespace pfrt::cpu
