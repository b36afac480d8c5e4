// SPDX-License-Identifier: Apache-2.0
//
// Col2Im: columns of overlapping blocks are added up at their pixels of the image.
#include <algorithm>
#include <vector>

#include "providers/cpu/elements/convert.h"
#include "providers/cpu/elements/load.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/vision/vision.h"

namespace pfrt::cpu {
namespace {

struct Columns {
  pfrt_dtype dtype;
  int64_t batch, rows, positions, channels, pixels;
  std::vector<int64_t> image, strides, dilations, pads;
};

// Positions of blocks along each dimension, or empty when they do not make up the input.
std::vector<int64_t> grid_of(const Columns& c, const std::vector<int64_t>& block) {
  std::vector<int64_t> grid;
  int64_t taps = 1, positions = 1;
  for (size_t d = 0; d < block.size(); ++d) {
    if (block[d] < 1 || block[d] > c.rows) return {};
    // Dilations are at most 2^31 and the block no more than the rows: the product is tested in
    // double.
    const double extent = static_cast<double>(c.dilations[d]) * static_cast<double>(block[d] - 1);
    const double room = static_cast<double>(c.image[d]) + static_cast<double>(c.pads[d]) +
                        static_cast<double>(c.pads[d + block.size()]) - extent - 1;
    if (!(room >= 0 && room < 0x1p62)) return {};
    grid.push_back(static_cast<int64_t>(room) / c.strides[d] + 1);
    if (__builtin_mul_overflow(taps, block[d], &taps) ||
        __builtin_mul_overflow(positions, grid.back(), &positions))
      return {};
  }
  if (positions != c.positions || taps != c.rows / std::max<int64_t>(1, c.channels) ||
      taps * c.channels != c.rows)
    grid.clear();
  return grid;
}

// Counts |index| up, the last dimension first; false after the last.
bool advance(std::vector<int64_t>& index, const std::vector<int64_t>& sizes) {
  for (size_t d = index.size(); d-- > 0;) {
    if (++index[d] < sizes[d]) return true;
    index[d] = 0;
  }
  return false;
}

template <typename T>
void add_up(const Run& run, const Columns& c, const std::vector<int64_t>& block,
            const std::vector<int64_t>& grid, int64_t plane, T* image) {
  const size_t rank = block.size();
  std::fill(image, image + c.pixels, T{0});
  std::vector<int64_t> tap(rank, 0);
  const int64_t width = grid.back(), rows = c.positions / width;
  int64_t row = plane * (c.rows / c.channels);
  do {
    std::vector<int64_t> place(rank, 0);
    for (int64_t r = 0; r < rows; ++r) {
      int64_t at = 0;
      bool inside = true;
      for (size_t d = 0; d + 1 < rank; ++d) {
        const int64_t i = place[d] * c.strides[d] + tap[d] * c.dilations[d] - c.pads[d];
        inside = inside && i >= 0 && i < c.image[d];
        at = at * c.image[d] + (inside ? i : 0);
      }
      at *= c.image[rank - 1];
      const int64_t start = tap[rank - 1] * c.dilations[rank - 1] - c.pads[rank - 1];
      for (int64_t first = 0; first < width && inside; first += kBlock) {
        T values[kBlock];
        const int64_t n = std::min(kBlock, width - first);
        const T* const from =
            read_block(c.dtype, run.input(0), row * c.positions + r * width + first, n, values);
        for (int64_t i = 0; i < n; ++i) {
          const int64_t x = (first + i) * c.strides[rank - 1] + start;
          if (x < 0 || x >= c.image[rank - 1]) continue;
          if constexpr (std::is_same_v<T, int64_t>) {
            image[at + x] = static_cast<int64_t>(static_cast<uint64_t>(image[at + x]) +
                                                 static_cast<uint64_t>(from[i]));
          } else {
            image[at + x] += from[i];
          }
        }
      }
      for (size_t d = rank - 1; d-- > 0;) {
        if (++place[d] < grid[d]) break;
        place[d] = 0;
      }
    }
    ++row;
  } while (!run.stopped() && advance(tap, block));
}

template <typename T>
Kernel columns_kernel(const SnapshotNode& node, Columns columns) {
  Kernel kernel;
  kernel.flops = static_cast<double>(node.input_elements(0));
  kernel.scratch_bytes = static_cast<uint64_t>(columns.pixels) * sizeof(T);
  kernel.run = [c = std::move(columns)](const Run& run) -> pfrt_code {
    const int64_t* const given = run.input<int64_t>(1);
    if (!std::equal(c.image.begin(), c.image.end(), given))
      return run.fail(Code::kSHAPE_MISMATCH, "Col2Im: the image is not as large as was planned");
    const std::vector<int64_t> block(run.input<int64_t>(2), run.input<int64_t>(2) + c.image.size());
    const std::vector<int64_t> grid = grid_of(c, block);
    if (grid.empty())
      return run.fail(Code::kSHAPE_MISMATCH, "Col2Im: blocks ", dims_text(block), " of an image ",
                      dims_text(c.image), " do not make ", c.rows, " rows and ", c.positions,
                      " columns");
    if (c.pixels == 0) return 0;
    run.parallel(c.batch * c.channels, [&](int64_t plane, uint32_t worker) {
      T* const image = run.scratch<T>(worker);
      add_up(run, c, block, grid, plane, image);
      write_block(c.dtype, run.output(0), plane * c.pixels, c.pixels, image);
    });
    return run.stop();
  };
  return kernel;
}

}  // namespace

Result<Kernel> make_col2im(const KernelRequest& node) {
  PFRT_TRY(need(node, 3, 1));
  const auto in = node.input_dims(0), out = node.output_dims(0);
  const size_t rank = static_cast<size_t>(std::max<int64_t>(node.input_elements(1), 0));
  if (in.size() != 3 || rank == 0 || out.size() != rank + 2 ||
      node.input_elements(2) != node.input_elements(1))
    return kernel_error("columns ", dims_text(in), " do not make an image ", dims_text(out));
  for (uint32_t i : {1u, 2u})
    if (node.input_dtype(i) != PFRT_DTYPE_INT64)
      return error(Code::kDTYPE_MISMATCH, "input ", i, " is ", dtype_name(node.input_dtype(i)),
                   ": int64");
  Columns c{};
  c.dtype = node.input_dtype(0);
  c.batch = in[0];
  c.rows = in[1];
  c.positions = in[2];
  c.channels = out[1];
  c.image.assign(out.begin() + 2, out.end());
  c.pixels = SnapshotNode::elements(c.image);
  const auto list = [&](std::string_view name, size_t n, int64_t fallback, int64_t least,
                        std::vector<int64_t>& to) {
    const auto given = node.attr_ints(name);
    to.assign(given.begin(), given.end());
    if (given.empty()) to.assign(n, fallback);
    return to.size() == n && std::ranges::all_of(to, [least](int64_t v) {
             return v >= least && v < INT64_C(1) << 31;
           });
  };
  if (!list("strides", rank, 1, 1, c.strides) || !list("dilations", rank, 1, 1, c.dilations) ||
      !list("pads", 2 * rank, 0, 0, c.pads))
    return kernel_error("strides, dilations and pads must be of rank ", rank,
                        ", positive (pads: not negative) and below 2^31");
  if (out[0] != c.batch) return kernel_error("the batch differs in the output");
  return with_compute_type(c.dtype, [&](auto zero) -> Result<Kernel> {
    return columns_kernel<decltype(zero)>(node, std::move(c));
  });
}

}  // namespace pfrt::cpu
