// SPDX-License-Identifier: Apache-2.0
//
// RotaryEmbedding: pairs of columns of a head, half a head apart or interleaved, are turned by the
// angle of the row's position.
#include <algorithm>

#include "providers/cpu/elements/load.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/attention/attention.h"
#include "providers/cpu/kernels/attention/form.h"

namespace pfrt::cpu {
namespace {

struct RotaryForm {
  int64_t batch = 0, heads = 0, length = 0, head = 0;
  int64_t half = 0;       // pairs
  int64_t positions = 0;  // of the tables, where positions are given
  // Steps of cosines and sines where no positions are given: these have rows of their own, or
  // broadcast ones, for batches and positions.
  struct Steps {
    int64_t batch, row;  // rows from one to the next
  };
  Steps cosine = {0, 0}, sine = {0, 0};
  bool interleaved = false, by_position = false;
  Headed x;
  pfrt_dtype table = PFRT_DTYPE_UNSET;

  bool empty() const { return batch == 0 || heads == 0 || length == 0 || head == 0; }
};

template <typename T>
void rotate(const RotaryForm& f, const T* cosine, const T* sine, T* x) {
  const int64_t apart = f.interleaved ? 1 : f.half, step = f.interleaved ? 2 : 1;
  for (int64_t i = 0; i < f.half; ++i) {
    T& a = x[i * step];
    T& b = x[i * step + apart];
    const T real = cosine[i] * a - sine[i] * b;
    b = sine[i] * a + cosine[i] * b;
    a = real;
  }
}

// Whether |dims| are those |wanted|, or, of three, broadcast to them but for the last.
bool is_table(std::span<const int64_t> dims, std::span<const int64_t> wanted) {
  if (dims.size() != wanted.size() || dims.back() != wanted.back()) return false;
  for (size_t d = 0; d + 1 < dims.size(); ++d)
    if (dims[d] != wanted[d] && !(dims.size() == 3 && dims[d] == 1)) return false;
  return true;
}

RotaryForm::Steps steps_of(std::span<const int64_t> table) {
  return {table[0] == 1 ? 0 : table[1], table[1] == 1 ? 0 : 1};
}

// A fault where a position has no row in the tables.
pfrt_code check_positions(const Run& run, const RotaryForm& f) {
  if (!f.by_position) return PFRT_CODE_OK;
  const int64_t* const at = run.input<int64_t>(3);
  for (int64_t i = 0; i < f.batch * f.length; ++i)
    if (at[i] < -f.positions || at[i] >= f.positions)
      return run.fail(Code::kINVALID_ARGUMENT, "RotaryEmbedding: position ", at[i], " (element ", i,
                      ") is outside [", -f.positions, ", ", f.positions, "), the cache's rows");
  return PFRT_CODE_OK;
}

template <typename T>
Kernel rotary_kernel(const RotaryForm& form) {
  Kernel kernel;
  kernel.may_alias = 0;
  kernel.flops = 6.0 * static_cast<double>(form.batch) * static_cast<double>(form.length) *
                 static_cast<double>(form.heads) * static_cast<double>(form.half);
  kernel.scratch_bytes = static_cast<uint64_t>(form.head + 2 * form.half) * sizeof(T);
  kernel.run = [f = form](const Run& run) -> pfrt_code {
    if (f.empty()) return PFRT_CODE_OK;
    if (const pfrt_code code = check_positions(run, f)) return code;
    const LoadFn<T> load = load_fn<T>(f.x.dtype), load_table = load_fn<T>(f.table);
    const StoreFn<T> store = store_fn<T>(f.x.dtype);
    const int64_t* const positions = f.by_position ? run.input<int64_t>(3) : nullptr;
    run.parallel(f.batch * f.length, [&](int64_t i, uint32_t worker) {
      T *const row = run.scratch<T>(worker), *const cosine = row + f.head,
               *const sine = cosine + f.half;
      const auto at = [&](const RotaryForm::Steps& steps) {
        if (!positions) return i / f.length * steps.batch + i % f.length * steps.row;
        return positions[i] < 0 ? positions[i] + f.positions : positions[i];
      };
      load_table(cosine, run.input(1), at(f.cosine) * f.half, 1, f.half);
      load_table(sine, run.input(2), at(f.sine) * f.half, 1, f.half);
      for (int64_t h = 0; h < f.heads; ++h) {
        const int64_t start = f.x.at(i / f.length, h, i % f.length);
        load(row, run.input(0), start, 1, f.head);
        rotate(f, cosine, sine, row);
        store(run.output(0), start, row, f.head);
      }
    });
    return run.stop();
  };
  return kernel;
}

}  // namespace

Result<Kernel> make_rotary_embedding(const KernelRequest& node) {
  PFRT_TRY(need(node, 3, 1));
  PFRT_TRY(need_like_output(node, 0));
  PFRT_TRY(need_types(node, {1, 2}, kFloats));
  const auto dims = node.input_dims(0), table = node.input_dims(1);
  const size_t rank = dims.size();
  if (rank != 3 && rank != 4)
    return kernel_error("the input ", dims_text(dims), " must have rank 3 or 4");
  RotaryForm f;
  f.batch = dims[0], f.length = dims[rank - 2];
  f.heads = rank == 4 ? dims[1] : node.attr_int("num_heads", 0);
  if (rank == 3 && (f.heads < 1 || dims[2] % f.heads != 0))
    return kernel_error("num_heads is ", f.heads, ", which does not divide the input ",
                        dims_text(dims));
  f.head = rank == 4 ? dims[3] : dims[2] / f.heads;
  const int64_t rotated = node.attr_int("rotary_embedding_dim", 0);
  if (rotated < 0 || rotated > f.head || (rotated ? rotated : f.head) % 2 != 0)
    return kernel_error("rotary_embedding_dim is ", rotated, " for heads of ", f.head,
                        "; an even number of columns is rotated");
  f.half = (rotated ? rotated : f.head) / 2;
  f.interleaved = node.attr_int("interleaved", 0) != 0;
  f.x = headed(node.input_dtype(0), dims, f.heads);
  f.table = node.input_dtype(1);
  f.by_position = node.has_input(3);
  f.positions = f.by_position && !table.empty() ? table[0] : 0;
  const int64_t of_positions[] = {f.positions, f.half}, of_rows[] = {f.batch, f.length, f.half};
  const std::span<const int64_t> wanted =
      f.by_position ? std::span<const int64_t>(of_positions) : std::span<const int64_t>(of_rows);
  if (!is_table(table, wanted) || !is_table(node.input_dims(2), wanted) ||
      node.input_dtype(2) != f.table)
    return kernel_error("the caches ", dims_text(table), " and ", dims_text(node.input_dims(2)),
                        f.by_position ? " must have dimensions " : " do not broadcast to ",
                        dims_text(wanted));
  if (!f.by_position) {
    f.cosine = steps_of(table);
    f.sine = steps_of(node.input_dims(2));
  }
  const int64_t rows[] = {f.batch, f.length};
  if (f.by_position &&
      (node.input_dtype(3) != PFRT_DTYPE_INT64 || !same_dims(node.input_dims(3), rows)))
    return kernel_error("position_ids must be int64 ", dims_text(rows));
  return f.x.dtype == PFRT_DTYPE_FLOAT64 ? rotary_kernel<double>(f) : rotary_kernel<float>(f);
}

}  // namespace pfrt::cpu
