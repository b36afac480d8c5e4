// SPDX-License-Identifier: Apache-2.0
//
// ReduceX: y = finish(merge over the reduced elements of map(x)). float32 and shorter floats take
// vectors where the machine has them. Else floats accumulate in double, so that rounding is that of
// the result alone; integers wrap around in 64 bits. Accumulation order follows the shape: long
// reductions are divided into fixed chunks that are merged in order, whatever the number of
// threads.
#include "providers/cpu/kernels/reduce/reduce.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "providers/cpu/elements/arithmetic.h"
#include "providers/cpu/elements/convert.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/reduce/float_reduction.h"
#include "providers/cpu/kernels/reduce/log_sum_exp.h"
#include "providers/cpu/kernels/reduce/plan.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kTile = kReduceTile;   // outputs that accumulate together
constexpr int64_t kChunk = 64 * kBlock;  // elements of one chunk of a long reduction
constexpr int64_t kTaskElements = 16 * kBlock;

// The defaults of an operator. |shift| is 0 except in the second pass of log-sum-exp.
struct Operation {
  template <typename A>
  static A identity(pfrt_dtype) {
    return A{0};
  }
  template <typename A>
  static A map(A x, A) {
    return x;
  }
  template <typename A>
  static A merge(A a, A b) {
    return sum_of(a, b);
  }
  template <typename A>
  static A finish(A acc, int64_t) {
    return acc;
  }
};

struct Sum : Operation {};
struct Mean : Operation {
  template <typename A>
  static A finish(A acc, int64_t count) {
    if constexpr (std::is_integral_v<A>)
      return count == 0 ? A{0} : static_cast<A>(acc / static_cast<A>(count));
    else
      return acc / static_cast<A>(count);
  }
};
struct Product : Operation {
  template <typename A>
  static A identity(pfrt_dtype) {
    return A{1};
  }
  template <typename A>
  static A merge(A a, A b) {
    return product_of(a, b);
  }
};
struct Greatest : Operation {
  template <typename A>
  static A identity(pfrt_dtype dtype) {
    return lowest_of<A>(dtype);
  }
  template <typename A>
  static A merge(A a, A b) {
    return maximum_of(a, b);
  }
};
struct Least : Operation {
  template <typename A>
  static A identity(pfrt_dtype dtype) {
    return highest_of<A>(dtype);
  }
  template <typename A>
  static A merge(A a, A b) {
    return minimum_of(a, b);
  }
};
struct L1 : Operation {
  template <typename A>
  static A map(A x, A) {
    return x < A{0} ? difference_of(A{0}, x) : x;
  }
};
struct SumSquare : Operation {
  template <typename A>
  static A map(A x, A) {
    return product_of(x, x);
  }
};
struct L2 : SumSquare {
  template <typename A>
  static A finish(A acc, int64_t) {
    return std::sqrt(acc);
  }
};
struct LogSum : Operation {
  template <typename A>
  static A finish(A acc, int64_t) {
    return std::log(acc);
  }
};
struct SumExp : Operation {
  template <typename A>
  static A map(A x, A shift) {
    return std::exp(x - shift);
  }
};

// A contiguous run into one accumulator, in eight interleaved chains.
template <typename Op, typename A>
A reduce_run(A acc, pfrt_dtype dtype, const A* x, int64_t n, A shift) {
  constexpr int64_t kChains = 8;
  A chains[kChains];
  std::fill_n(chains, kChains, Op::template identity<A>(dtype));
  int64_t i = 0;
  for (; i + kChains <= n; i += kChains)
    for (int64_t c = 0; c < kChains; ++c)
      chains[c] = Op::merge(chains[c], Op::map(x[i + c], shift));
  for (; i < n; ++i) acc = Op::merge(acc, Op::map(x[i], shift));
  for (const A chain : chains) acc = Op::merge(acc, chain);
  return acc;
}

// Reduced elements [begin, end) of output |o|, whose innermost reduced dimension is contiguous.
template <typename Op, typename A>
A reduce_output(const ReduceJob& job, int64_t o, int64_t begin, int64_t end, A shift) {
  const Axes& reduced = job.plan->reduced;
  const int64_t base = job.plan->kept.offset(o);
  const bool contiguous = !reduced.strides.empty() && reduced.strides[0] == 1;
  const int64_t run = contiguous ? reduced.extents[0] : 1;
  A acc = Op::template identity<A>(job.dtype);
  A block[kBlock];
  for (int64_t i = begin; i < end;) {
    const int64_t n = std::min({run - i % run, end - i, kBlock});
    acc = reduce_run<Op>(
        acc, job.dtype, read_block(job.dtype, job.x, base + reduced.offset(i), n, block), n, shift);
    i += n;
  }
  return acc;
}

// Accumulators of outputs [first, first + count), which are contiguous in the input, over reduced
// elements [begin, end).
template <typename Op, typename A>
void reduce_columns(const ReduceJob& job, int64_t first, int64_t count, int64_t begin, int64_t end,
                    const A* shift, A* acc) {
  A block[kTile];
  const int64_t base = job.plan->kept.offset(first);
  for (int64_t i = begin; i < end; ++i) {
    const A* x = read_block(job.dtype, job.x, base + job.plan->reduced.offset(i), count, block);
    for (int64_t j = 0; j < count; ++j)
      acc[j] = Op::merge(acc[j], Op::map(x[j], shift ? shift[j] : A{0}));
  }
}

template <typename Op, typename A>
void reduce_tile(const ReduceJob& job, int64_t first, int64_t count, int64_t begin, int64_t end,
                 const A* shift, A* acc) {
  std::fill_n(acc, count, Op::template identity<A>(job.dtype));
  if (!job.plan->columns) {
    for (int64_t j = 0; j < count; ++j)
      acc[j] = reduce_output<Op>(job, first + j, begin, end, shift ? shift[j] : A{0});
    return;
  }
  const int64_t row = job.plan->kept.extents[0];
  for (int64_t j = 0; j < count;) {
    const int64_t n = std::min(count - j, row - (first + j) % row);
    reduce_columns<Op>(job, first + j, n, begin, end, shift ? shift + j : nullptr, acc + j);
    j += n;
  }
}

// Outputs by tiles and, where there are few of those and long reductions, reduced elements by
// chunks.
struct Split {
  int64_t tile, tiles, chunk, chunks;

  explicit Split(const ReducePlan& plan) {
    const int64_t outputs = plan.kept.count, elements = plan.reduced.count;
    tile = std::clamp<int64_t>(kTaskElements / std::max<int64_t>(elements, 1), 1, kTile);
    if (plan.columns) tile = kTile;
    tile = std::max<int64_t>(std::min(tile, outputs), 1);
    tiles = (outputs + tile - 1) / tile;
    chunk = std::max<int64_t>(elements, 1);
    if (tiles < 16) chunk = std::min(chunk, std::max<int64_t>(kChunk / tile, 1));
    chunks = std::max<int64_t>((elements + chunk - 1) / chunk, 1);
  }
};

// fn(first, count, acc) with the complete accumulators of every tile.
template <typename Op, typename A, typename Fn>
void reduce_all(const Run& run, const ReduceJob& job, const Split& split, const A* shift, Fn&& fn) {
  const int64_t outputs = job.plan->kept.count, elements = job.plan->reduced.count;
  const auto tile_count = [&](int64_t t) { return std::min(split.tile, outputs - t * split.tile); };
  const auto shift_at = [&](int64_t t) { return shift ? shift + t * split.tile : nullptr; };
  if (split.chunks == 1) {
    run.parallel(split.tiles, [&](int64_t t, uint32_t) {
      A acc[kTile];
      reduce_tile<Op>(job, t * split.tile, tile_count(t), 0, elements, shift_at(t), acc);
      fn(t * split.tile, tile_count(t), acc);
    });
    return;
  }
  const auto partial =
      std::make_unique<A[]>(static_cast<size_t>(split.tiles * split.chunks * split.tile));
  run.parallel(split.tiles * split.chunks, [&](int64_t task, uint32_t) {
    const int64_t t = task / split.chunks, c = task % split.chunks;
    reduce_tile<Op>(job, t * split.tile, tile_count(t), c * split.chunk,
                    std::min(elements, (c + 1) * split.chunk), shift_at(t),
                    &partial[static_cast<size_t>(task * split.tile)]);
  });
  for (int64_t t = 0; t < split.tiles; ++t) {
    A* acc = &partial[static_cast<size_t>(t * split.chunks * split.tile)];
    for (int64_t c = 1; c < split.chunks; ++c)
      for (int64_t j = 0; j < tile_count(t); ++j)
        acc[j] = Op::merge(acc[j], acc[c * split.tile + j]);
    fn(t * split.tile, tile_count(t), acc);
  }
}

template <typename Op, typename A>
struct Reduction {
  static void run(const Run& run, const ReduceJob& job) {
    void* y = run.output(0);
    reduce_all<Op, A>(run, job, Split(*job.plan), nullptr,
                      [&](int64_t first, int64_t count, A* acc) {
                        for (int64_t j = 0; j < count; ++j)
                          acc[j] = Op::finish(acc[j], job.plan->reduced.count);
                        store_block(job.dtype, acc, count, element(job.dtype, y, first));
                        run.apply_epilogue(first, first + count);
                      });
  }
};

// log(sum(exp(x))) as m + log(sum(exp(x - m))) with the greatest m, where that is finite.
template <typename A>
struct Reduction<SumExp, A> {
  static void run(const Run& run, const ReduceJob& job) {
    const Split split(*job.plan);
    const auto shift = std::make_unique<A[]>(static_cast<size_t>(job.plan->kept.count));
    reduce_all<Greatest, A>(
        run, job, split, nullptr, [&](int64_t first, int64_t count, const A* acc) {
          for (int64_t j = 0; j < count; ++j)
            shift[static_cast<size_t>(first + j)] = std::isfinite(acc[j]) ? acc[j] : A{0};
        });
    void* y = run.output(0);
    reduce_all<SumExp, A>(run, job, split, shift.get(), [&](int64_t first, int64_t count, A* acc) {
      for (int64_t j = 0; j < count; ++j)
        acc[j] = shift[static_cast<size_t>(first + j)] + std::log(acc[j]);
      store_block(job.dtype, acc, count, element(job.dtype, y, first));
      run.apply_epilogue(first, first + count);
    });
  }
};

void log_sum_exp(const Run& run, const ReduceJob& job) {
  log_sum_exp_by_lines(*job.plan) ? log_sum_exp_lines(run, job)
                                  : Reduction<SumExp, double>::run(run, job);
}

using ReduceFn = void (*)(const Run&, const ReduceJob&);

// Axes of a run, read where they are not constant.
Result<ReducePlan> plan_of(std::span<const int64_t> dims, pfrt_dtype axes_type, const void* axes,
                           int64_t axes_count, bool noop) {
  std::vector<int64_t> listed(static_cast<size_t>(axes_count));
  if (axes && axes_count > 0) load_block(axes_type, axes, axes_count, listed.data());
  return ReducePlan::make(dims, listed, !noop);
}

// By |vectors| in place of |reduce| where they are given.
Result<Kernel> make_reduction(const SnapshotNode& node, ReduceFn reduce,
                              const FloatReduction* vectors = nullptr) {
  PFRT_TRY(need(node, 1, 1));
  const bool has_axes = node.has_input(1);
  if (has_axes) {
    PFRT_TRY(need(node, 2, 1));
    if (!kIndices.has(node.input_dtype(1)))
      return error(Code::kDTYPE_MISMATCH, "axes are ", dtype_name(node.input_dtype(1)), ": int64");
  }
  if (node.output_dtype(0) != node.input_dtype(0))
    return error(Code::kDTYPE_MISMATCH, "the input is ", dtype_name(node.input_dtype(0)),
                 ", the output ", dtype_name(node.output_dtype(0)));
  const bool noop = node.attr_int("noop_with_empty_axes", 0) != 0;
  const std::vector<int64_t> dims(node.input_dims(0).begin(), node.input_dims(0).end());
  const pfrt_dtype dtype = node.input_dtype(0), axes_type = node.input_dtype(1);
  const int64_t axes_count = has_axes ? node.input_elements(1) : 0,
                outputs = node.output_elements(0);
  if (axes_count > static_cast<int64_t>(dims.size()))
    return kernel_error(axes_count, " axes for an input of rank ", dims.size());

  const auto reduce_by = [reduce, vectors, dtype](const Run& run, const ReducePlan& plan) {
    const ReduceJob job{&plan, dtype, run.input(0)};
    if (vectors != nullptr)
      reduce_floats(run, job, *vectors);
    else
      reduce(run, job);
    return run.stop();
  };
  Kernel kernel;
  kernel.flops = static_cast<double>(node.input_elements(0));
  if (vectors != nullptr) kernel.scratch_bytes = float_reduction_scratch(dtype);
  const void* constant = has_axes ? node.input_constant(1) : nullptr;
  if (axes_count == 0 || constant) {
    PFRT_ASSIGN(ReducePlan plan, plan_of(dims, axes_type, constant, axes_count, noop));
    if (plan.kept.count != outputs)
      return kernel_error("the axes leave ", plan.kept.count,
                          " elements, the output was planned with ", outputs);
    kernel.run = [reduce_by, plan = std::move(plan)](const Run& run) {
      return reduce_by(run, plan);
    };
    return kernel;
  }
  kernel.run = [=](const Run& run) {
    auto plan = plan_of(dims, axes_type, run.input(1), axes_count, noop);
    if (!plan.ok()) return run.fail(plan.status().code(), plan.status().message());
    if (plan->kept.count != outputs)
      return run.fail(Code::kSHAPE_MISMATCH, "the axes leave ", plan->kept.count,
                      " elements, the output was planned with ", outputs);
    return reduce_by(run, *plan);
  };
  return kernel;
}

// Floats in double, integers in their compute type.
template <typename Op>
Result<Kernel> make_exact(const KernelRequest& node) {
  if (dtype_is_float(node.input_dtype(0))) return make_reduction(node, Reduction<Op, double>::run);
  if (dtype_is_signed(node.input_dtype(0)) || node.input_dtype(0) == PFRT_DTYPE_BOOL)
    return make_reduction(node, Reduction<Op, int64_t>::run);
  return make_reduction(node, Reduction<Op, uint64_t>::run);
}
// Everything in double.
template <typename Op>
Result<Kernel> make_real(const KernelRequest& node) {
  return make_reduction(node, Reduction<Op, double>::run);
}

using Finish = FloatReduction::Finish;
constexpr uint32_t kAllBits = ~uint32_t{0}, kSign = uint32_t{1} << 31;
constexpr double kAnySum = -std::numeric_limits<double>::infinity();
// Below it, squares of float32 may have been rounded to fewer bits, or to 0.
constexpr double kLeastSquare = 0x1p-100;

constexpr FloatReduction kSums{&kVectorSum, kAllBits, Finish::kNone, reduce_tile<Sum, double>,
                               kAnySum};
constexpr FloatReduction kMeans{&kVectorSum, kAllBits, Finish::kMean, reduce_tile<Sum, double>,
                                kAnySum};
constexpr FloatReduction kLogSums{&kVectorSum, kAllBits, Finish::kLog, reduce_tile<Sum, double>,
                                  kAnySum};
constexpr FloatReduction kMagnitudes{&kVectorSum, ~kSign, Finish::kNone, reduce_tile<L1, double>,
                                     kAnySum};
constexpr FloatReduction kSquares{&kVectorSquares, 0, Finish::kNone, reduce_tile<SumSquare, double>,
                                  kLeastSquare};
constexpr FloatReduction kLengths{&kVectorSquares, 0, Finish::kRoot, reduce_tile<SumSquare, double>,
                                  kLeastSquare};
constexpr FloatReduction kGreatest{&kVectorGreatest, 0, Finish::kNone, nullptr, 0};
constexpr FloatReduction kLeast{&kVectorGreatest, kSign, Finish::kNegative, nullptr, 0};
constexpr FloatReduction kProducts{&kVectorProduct, 0, Finish::kNone, nullptr, 0};

std::string refuse_vectors(const KernelRequest& node) {
  return std::ranges::count(node.input_dims(0), 0) > 0 ? "there is nothing to reduce" : "";
}

template <const FloatReduction& form>
Result<Kernel> make_vectors(const KernelRequest& node) {
  return make_reduction(node, nullptr, &form);
}

template <const FloatReduction& form>
constexpr KernelRow vector_row(std::string_view op, std::string_view name) {
  return with_epilogue({"", op, kFloatsTo32, name, "avx2", refuse_vectors, make_vectors<form>});
}

Result<Kernel> make_log_sum_exp(const KernelRequest& node) {
  return make_reduction(node, log_sum_exp);
}

constexpr KernelRow kRows[] = {
    vector_row<kSums>("ReduceSum", "reduce_sum_vectors"),
    vector_row<kMeans>("ReduceMean", "reduce_mean_vectors"),
    vector_row<kGreatest>("ReduceMax", "reduce_max_vectors"),
    vector_row<kLeast>("ReduceMin", "reduce_min_vectors"),
    vector_row<kProducts>("ReduceProd", "reduce_prod_vectors"),
    vector_row<kMagnitudes>("ReduceL1", "reduce_l1_vectors"),
    vector_row<kLengths>("ReduceL2", "reduce_l2_vectors"),
    vector_row<kSquares>("ReduceSumSquare", "reduce_sum_square_vectors"),
    vector_row<kLogSums>("ReduceLogSum", "reduce_log_sum_vectors"),
    with_epilogue({"", "ReduceLogSumExp", kFloatsTo32, "reduce_log_sum_exp_lines", "avx2",
                   refuse_vectors, make_log_sum_exp}),
    with_epilogue(
        {"", "ReduceSum", kNumbers, "reduce_sum_ref", "generic", nullptr, make_exact<Sum>}),
    with_epilogue(
        {"", "ReduceMean", kNumbers, "reduce_mean_ref", "generic", nullptr, make_exact<Mean>}),
    with_epilogue({"", "ReduceMax", kNumbers | kBool, "reduce_max_ref", "generic", nullptr,
                   make_exact<Greatest>}),
    with_epilogue({"", "ReduceMin", kNumbers | kBool, "reduce_min_ref", "generic", nullptr,
                   make_exact<Least>}),
    with_epilogue(
        {"", "ReduceProd", kNumbers, "reduce_prod_ref", "generic", nullptr, make_exact<Product>}),
    with_epilogue({"", "ReduceL1", kNumbers, "reduce_l1_ref", "generic", nullptr, make_exact<L1>}),
    with_epilogue({"", "ReduceL2", kNumbers, "reduce_l2_ref", "generic", nullptr, make_real<L2>}),
    with_epilogue({"", "ReduceLogSum", kNumbers, "reduce_log_sum_ref", "generic", nullptr,
                   make_real<LogSum>}),
    with_epilogue({"", "ReduceLogSumExp", kNumbers, "reduce_log_sum_exp_ref", "generic", nullptr,
                   make_real<SumExp>}),
    with_epilogue({"", "ReduceSumSquare", kNumbers, "reduce_sum_square_ref", "generic", nullptr,
                   make_exact<SumSquare>}),
};

}  // namespace

std::span<const KernelRow> reduce_rows() { return kRows; }

}  // namespace pfrt::cpu
