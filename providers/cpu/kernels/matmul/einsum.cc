// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>

#include "providers/cpu/kernels/matmul/einsum_equation.h"
#include "providers/cpu/kernels/matmul/product.h"
#include "providers/cpu/kernels/signature.h"

namespace pfrt::cpu {
namespace {

// Offsets of every combination of some labels, the last label fastest.
std::vector<int64_t> offsets(const std::vector<size_t>& labels, const std::vector<int64_t>& sizes,
                             const std::vector<int64_t>& strides) {
  std::vector<int64_t> all{0};
  for (size_t label : labels) {
    std::vector<int64_t> next;
    next.reserve(all.size() * static_cast<size_t>(std::max<int64_t>(sizes[label], 0)));
    for (int64_t base : all)
      for (int64_t i = 0; i < sizes[label]; ++i) next.push_back(base + i * strides[label]);
    all = std::move(next);
  }
  return all;
}

// A matrix whose element (j, k) lies at outer[j] + inner[k].
template <typename T>
class TableSource final : public PanelSource<T> {
 public:
  TableSource(const void* data, pfrt_dtype dtype, int64_t offset, const std::vector<int64_t>& outer,
              const std::vector<int64_t>& inner)
      : data_(data),
        load_(load_fn<T>(dtype)),
        offset_(offset),
        outer_(outer.data()),
        inner_(inner.data()) {}
  void pack(T* out, int64_t width, int64_t first, int64_t count, int64_t k0,
            int64_t kn) const override {
    for (int64_t k = 0; k < kn; ++k) {
      T* const row = out + k * width;
      const int64_t base = offset_ + inner_[k0 + k];
      for (int64_t j = 0; j < count;) {
        const int64_t start = outer_[first + j];
        const int64_t step = j + 1 < count ? outer_[first + j + 1] - start : 1;
        int64_t run = 1;
        while (j + run < count && outer_[first + j + run] == start + run * step) ++run;
        load_(row + j, data_, base + start, step, run);
        j += run;
      }
      std::fill(row + count, row + width, T{0});
    }
  }

 private:
  const void* data_;
  LoadFn<T> load_;
  int64_t offset_;
  const int64_t* outer_;
  const int64_t* inner_;
};

struct Plan {
  pfrt_dtype dtype;
  std::vector<int64_t> a_batch, b_batch, out_batch, a_rows, out_rows, b_cols, out_cols, a_depth,
      b_depth;
};

// Two operands are a matrix product once labels are sorted by where they stand; one operand is
// multiplied by one.
template <typename T>
Result<Kernel> make_product(const EinsumShape& shape, pfrt_dtype dtype) {
  const bool two = shape.strides.size() == 2;
  const size_t labels = shape.sizes.size();
  std::vector<int64_t> out_strides(labels, 0);
  int64_t step = 1;
  for (size_t l = shape.output_labels; l-- > 0; step *= shape.sizes[l]) out_strides[l] = step;
  const std::vector<int64_t>& sa = shape.strides[0];
  const std::vector<int64_t> sb = two ? shape.strides[1] : std::vector<int64_t>(labels, 0);
  std::vector<size_t> batch, rows, cols, depth;
  for (size_t l = 0; l < labels; ++l) {
    if (l >= shape.output_labels) {
      depth.push_back(l);
    } else if (sa[l] != 0 && sb[l] != 0) {
      batch.push_back(l);
    } else {
      (sb[l] != 0 ? cols : rows).push_back(l);
    }
  }
  auto plan = std::make_shared<Plan>();
  plan->dtype = dtype;
  plan->a_batch = offsets(batch, shape.sizes, sa);
  plan->b_batch = offsets(batch, shape.sizes, sb);
  plan->out_batch = offsets(batch, shape.sizes, out_strides);
  plan->a_rows = offsets(rows, shape.sizes, sa);
  plan->out_rows = offsets(rows, shape.sizes, out_strides);
  plan->b_cols = offsets(cols, shape.sizes, sb);
  plan->out_cols = offsets(cols, shape.sizes, out_strides);
  plan->a_depth = offsets(depth, shape.sizes, sa);
  plan->b_depth = offsets(depth, shape.sizes, sb);
  const int64_t batches = static_cast<int64_t>(plan->a_batch.size());
  const int64_t m = static_cast<int64_t>(plan->a_rows.size()),
                n = static_cast<int64_t>(plan->b_cols.size());
  const int64_t k = static_cast<int64_t>(plan->a_depth.size());
  const Gemm<T> gemm(m, n, k, batches);
  Kernel kernel;
  kernel.flops = 2.0 * static_cast<double>(batches) * static_cast<double>(m) *
                 static_cast<double>(n) * static_cast<double>(k);
  kernel.scratch_bytes = product_scratch(gemm, true);
  kernel.run = [gemm, plan, batches, two](const Run& run) -> pfrt_code {
    static constexpr T kOne{1};
    const StoreFn<T> store = store_fn<T>(plan->dtype);
    const int64_t tiles = gemm.tiles();
    constexpr pfrt_dtype kOneType = std::is_same_v<T, float>      ? PFRT_DTYPE_FLOAT32
                                    : std::is_same_v<T, double>   ? PFRT_DTYPE_FLOAT64
                                    : std::is_same_v<T, uint32_t> ? PFRT_DTYPE_UINT32
                                                                  : PFRT_DTYPE_UINT64;
    run.parallel(batches * tiles, [&](int64_t i, uint32_t worker) {
      const size_t at = static_cast<size_t>(i / tiles);
      const GemmTile t = gemm.tile(i % tiles);
      const TableSource<T> a(run.input(0), plan->dtype, plan->a_batch[at], plan->a_rows,
                             plan->a_depth);
      const TableSource<T> b(two ? run.input(1) : &kOne, two ? plan->dtype : kOneType,
                             plan->b_batch[at], plan->b_cols, plan->b_depth);
      T* const scratch = run.scratch<T>(worker);
      T* const c = scratch + gemm.scratch_bytes() / sizeof(T);
      gemm.compute(run, t, a, b, c, t.cols, scratch);
      for (int64_t r = 0; r < t.rows; ++r) {
        const int64_t base = plan->out_batch[at] + plan->out_rows[static_cast<size_t>(t.row + r)];
        for (int64_t j = 0; j < t.cols; ++j)
          store(run.output(0), base + plan->out_cols[static_cast<size_t>(t.col + j)],
                c + r * t.cols + j, 1);
      }
    });
    return run.stop();
  };
  return kernel;
}

// Any number of operands, element by element.
template <typename T>
Result<Kernel> make_loops(const EinsumShape& shape, pfrt_dtype dtype) {
  int64_t outer = 1, inner = 1;
  for (size_t l = 0; l < shape.sizes.size(); ++l)
    (l < shape.output_labels ? outer : inner) *= shape.sizes[l];
  Kernel kernel;
  kernel.flops = static_cast<double>(outer) * static_cast<double>(inner) *
                 static_cast<double>(shape.strides.size());
  kernel.run = [shape, dtype, outer, inner](const Run& run) -> pfrt_code {
    const LoadFn<T> load = load_fn<T>(dtype);
    const StoreFn<T> store = store_fn<T>(dtype);
    const size_t operands = shape.strides.size(), labels = shape.sizes.size(),
                 kept = shape.output_labels;
    const auto offset = [&](size_t t, int64_t index, size_t begin, size_t end) {
      int64_t at = 0;
      for (size_t l = end; l-- > begin; index /= shape.sizes[l])
        at += index % shape.sizes[l] * shape.strides[t][l];
      return at;
    };
    run.blocks(outer, 64, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        T sum{0};
        for (int64_t k = 0; k < inner; ++k) {
          if (k % 4096 == 0 && run.stopped()) return;
          T product{1};
          for (size_t t = 0; t < operands; ++t) {
            T x;
            load(&x, run.input(static_cast<uint32_t>(t)),
                 offset(t, i, 0, kept) + offset(t, k, kept, labels), 1, 1);
            product *= x;
          }
          sum += product;
        }
        store(run.output(0), i, &sum, 1);
      }
    });
    return run.stop();
  };
  return kernel;
}

template <typename T, typename Wide>
Result<Kernel> make_typed(const EinsumShape& shape, pfrt_dtype dtype) {
  return shape.strides.size() <= 2 ? make_product<T>(shape, dtype) : make_loops<Wide>(shape, dtype);
}

}  // namespace

std::string refuse_einsum(const SnapshotNode& node) {
  const auto equation = parse_einsum(node.attr_string("equation", ""));
  return equation.ok() ? "" : equation.status().message();
}

Result<Kernel> make_einsum(const SnapshotNode& node) {
  PFRT_ASSIGN(const EinsumEquation equation, parse_einsum(node.attr_string("equation", "")));
  PFRT_TRY(need(node, node.input_count(), 1));
  for (uint32_t i = 1; i < node.input_count(); ++i)
    PFRT_TRY(need_types(node, {i}, Types{node.input_dtype(0)}));
  std::vector<std::vector<int64_t>> dims;
  for (uint32_t i = 0; i < node.input_count(); ++i) {
    const auto d = node.input_dims(i);
    dims.emplace_back(d.begin(), d.end());
  }
  PFRT_ASSIGN(const EinsumShape shape, bind_einsum(equation, dims));
  PFRT_TRY(need_output_dims(node, 0, std::span(shape.sizes).first(shape.output_labels)));
  const pfrt_dtype dtype = node.input_dtype(0);
  switch (dtype) {
    case PFRT_DTYPE_FLOAT64:
      return make_typed<double, double>(shape, dtype);
    case PFRT_DTYPE_INT8:
    case PFRT_DTYPE_UINT8:
    case PFRT_DTYPE_INT16:
    case PFRT_DTYPE_UINT16:
    case PFRT_DTYPE_INT32:
    case PFRT_DTYPE_UINT32:  // shorter results are these modulo their size
      return make_typed<uint32_t, uint32_t>(shape, dtype);
    case PFRT_DTYPE_INT64:
    case PFRT_DTYPE_UINT64:
      return make_typed<uint64_t, uint64_t>(shape, dtype);
    default:
      return make_typed<float, double>(shape, dtype);
  }
}

}  // namespace pfrt::cpu
