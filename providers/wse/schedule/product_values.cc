// SPDX-License-Identifier: Apache-2.0
//
// Values of products in the order of the mapped algorithm. Each PE adds up all of k for its tile of
// C in blocks whose order depends on its place; a matrix-vector product has parts of k on the PEs
// of a line, joined by the tree.
#include <algorithm>
#include <vector>

#include "providers/wse/number/tile.h"
#include "providers/wse/schedule/products.h"

namespace pfrt::wse {
namespace {

// Columns [begin, end) of B as rows of |width| floats, the rest of which is 0.
void pack_columns(const GemmValues& p, int64_t begin, int64_t end, int64_t width, float* out) {
  for (int64_t k = 0; k < p.k; ++k, out += width) {
    const float* const from = p.b + k * p.b_stride;
    std::copy(from + begin, from + end, out);
    std::fill(out + (end - begin), out + width, 0.0F);
  }
}

class Mesh {
 public:
  explicit Mesh(const GemmValues& p)
      : p_(p),
        side_(std::max<int64_t>(1, p.grid)),
        m_(divide_up(p.m, side_)),
        k_(divide_up(p.k, side_)),
        n_(divide_up(p.n, side_)),
        width_(divide_up(n_, kTileLanes) * kTileLanes) {
    ring_ = ring_order(side_, p.algorithm == ProductAlgorithm::kMeshGemm);
    place_.resize(ring_.size());
    for (size_t i = 0; i < ring_.size(); ++i)
      place_[static_cast<size_t>(ring_[i])] = static_cast<int32_t>(i);
  }
  int64_t tile_columns() const { return divide_up(p_.n, n_); }

  int64_t tile_rows() const { return divide_up(p_.m, m_); }
  // Rows of PEs whose part of some columns takes a few milliseconds.
  int64_t rows_together(int64_t columns) const {
    constexpr int64_t kMultiplyAdds = 16'000'000;
    return std::max<int64_t>(1, kMultiplyAdds / std::max<int64_t>(1, m_ * p_.k * n_ * columns));
  }

  // The tiles of C of columns [first, last) and rows [top, bottom) of PEs: several columns at a
  // time, so that a row of A is brought to the core less often.
  void tiles(int64_t first, int64_t last, int64_t top, int64_t bottom) const {
    const int64_t panel = p_.k * width_;
    std::vector<float> b(static_cast<size_t>((last - first) * panel));
    for (int64_t x = first; x < last; ++x)
      pack_columns(p_, x * n_, std::min(p_.n, (x + 1) * n_), width_,
                   b.data() + (x - first) * panel);
    std::vector<float> c(static_cast<size_t>(m_ * width_));
    std::vector<int32_t> order(ring_.size());
    for (int64_t y = top; y < bottom; ++y)
      for (int64_t x = first; x < last; ++x)
        tile(x, y, b.data() + (x - first) * panel, c.data(), order);
  }

 private:
  void tile(int64_t x, int64_t y, const float* b, float* c, std::vector<int32_t>& order) const {
    const int64_t first = y * m_, rows = std::min(m_, p_.m - first);
    const int64_t begin = x * n_, count = std::min(p_.n, begin + n_) - begin;
    float* const out = p_.c + first * p_.c_stride + begin;
    for (int64_t r = 0; r < rows; ++r) std::copy_n(out + r * p_.c_stride, count, c + r * width_);
    const int64_t blocks = blocks_of(x, y, order);
    multiply(p_.arithmetic, {p_.a + first * p_.a_stride, p_.a_stride, b, c, rows, width_, p_.k,
                             order.data(), blocks, k_});
    for (int64_t r = 0; r < rows; ++r) std::copy_n(c + r * width_, count, out + r * p_.c_stride);
  }
  // The blocks of k that the PE at (x, y) sees, in order; those beyond k are padding.
  int64_t blocks_of(int64_t x, int64_t y, std::vector<int32_t>& out) const {
    const bool summa = p_.algorithm == ProductAlgorithm::kSumma;
    const int64_t first =
        summa ? 0 : place_[static_cast<size_t>(x)] + place_[static_cast<size_t>(y)];
    int64_t count = 0;
    for (int64_t s = 0; s < side_; ++s) {
      const int32_t block =
          summa ? static_cast<int32_t>(s) : ring_[static_cast<size_t>((first + s) % side_)];
      if (block * k_ < p_.k) out[static_cast<size_t>(count++)] = block;
    }
    return count;
  }

  const GemmValues& p_;
  int64_t side_, m_, k_, n_, width_;
  std::vector<int32_t> ring_, place_;
};

// Columns [begin, end) of y = x W + y for all rows of x, each a vector of its own.
void vector_columns(const GemmValues& p, int64_t begin, int64_t end) {
  const int64_t width = divide_up(end - begin, kTileLanes) * kTileLanes;
  // PEs at the end of the line may have no part of k; they are in the tree all the same.
  const int64_t parts = std::max<int64_t>(1, p.grid), part = divide_up(p.k, parts);
  std::vector<float> b(static_cast<size_t>(p.k * width));
  pack_columns(p, begin, end, width, b.data());
  std::vector<float> sums(static_cast<size_t>(parts * width)), line(static_cast<size_t>(parts));
  constexpr int32_t kOne = 0;
  for (int64_t row = 0; row < p.m; ++row) {
    std::fill(sums.begin(), sums.end(), 0.0F);
    for (int64_t i = 0; i * part < p.k; ++i) {
      const int64_t k = i * part, depth = std::min(part, p.k - k);
      multiply(p.arithmetic, {p.a + row * p.a_stride + k, p.a_stride, b.data() + k * width,
                              sums.data() + i * width, 1, width, depth, &kOne, 1, depth});
    }
    float* const c = p.c + row * p.c_stride + begin;
    for (int64_t j = 0; j < end - begin; ++j) {
      for (int64_t i = 0; i < parts; ++i)
        line[static_cast<size_t>(i)] = sums[static_cast<size_t>(i * width + j)];
      c[j] = round_to(p.arithmetic, c[j] + tree_join(p.arithmetic, line,
                                                     std::max<int64_t>(1, p.group), Join::kAdd));
    }
  }
}

}  // namespace

bool gemm_values(const GemmValues& p, const Parallel& parallel) {
  if (p.m == 0 || p.n == 0 || p.k == 0) return true;
  if (p.algorithm == ProductAlgorithm::kMeshGemv) {
    constexpr int64_t kColumns = 64;
    return parallel(divide_up(p.n, kColumns), [&](int64_t i) {
      vector_columns(p, i * kColumns, std::min(p.n, (i + 1) * kColumns));
    });
  }
  const Mesh mesh(p);
  constexpr int64_t kTogether = 4;
  const int64_t columns = mesh.tile_columns(), rows = mesh.tile_rows();
  const int64_t high = mesh.rows_together(kTogether);
  const int64_t across = divide_up(columns, kTogether), down = divide_up(rows, high);
  return parallel(across * down, [&](int64_t i) {
    const int64_t x = i / down * kTogether, y = i % down * high;
    mesh.tiles(x, std::min(columns, x + kTogether), y, std::min(rows, y + high));
  });
}

}  // namespace pfrt::wse
