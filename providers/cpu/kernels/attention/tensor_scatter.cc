// SPDX-License-Identifier: Apache-2.0
//
// TensorScatter: rows of an update written into a cache from a position that each batch has of its
// own.
#include <algorithm>
#include <cstring>

#include "providers/cpu/elements/strided.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/attention/attention.h"

namespace pfrt::cpu {
namespace {

struct ScatterForm {
  int64_t batch = 0, prefixes = 0;        // prefixes: all dimensions before the axis
  int64_t room = 0, rows = 0;             // positions of the cache and of the update
  int64_t line = 0;                       // bytes of a position
  bool circular = false, starts = false;  // starts: input 2 is there
};

pfrt_code write_rows(const Run& run, const ScatterForm& f) {
  const int64_t* const starts = f.starts ? run.input<int64_t>(2) : nullptr;
  for (int64_t b = 0; starts && !f.circular && b < f.batch; ++b)
    if (starts[b] < 0 || starts[b] > f.room - f.rows)
      return run.fail(Code::kINVALID_ARGUMENT, "TensorScatter: write_indices[", b, "] is ",
                      starts[b], "; ", f.rows, " positions from there do not fit into ", f.room,
                      " (mode 'circular' would wrap around)");
  copy_bytes(run, run.input(0), run.output(0), f.prefixes * f.room * f.line);
  run.parallel(f.prefixes, [&](int64_t p, uint32_t) {
    if (run.stopped()) return;
    int64_t at = starts ? starts[p / (f.prefixes / f.batch)] % f.room : 0;
    if (at < 0) at += f.room;
    const int64_t straight = std::min(f.rows, f.room - at);
    char* const to = run.output<char>(0) + p * f.room * f.line;
    const char* const from = run.input<char>(1) + p * f.rows * f.line;
    std::memcpy(to + at * f.line, from, static_cast<size_t>(straight * f.line));
    std::memcpy(to, from + straight * f.line, static_cast<size_t>((f.rows - straight) * f.line));
  });
  return run.stop();
}

}  // namespace

Result<Kernel> make_tensor_scatter(const KernelRequest& node) {
  PFRT_TRY(need(node, 2, 1));
  PFRT_TRY(need_like_output(node, 0));
  const auto cache = node.input_dims(0), update = node.input_dims(1);
  if (node.input_dtype(1) != node.input_dtype(0))
    return error(Code::kDTYPE_MISMATCH, "the update is ", dtype_name(node.input_dtype(1)),
                 ", the cache ", dtype_name(node.input_dtype(0)));
  PFRT_ASSIGN(const int64_t signed_axis, axis_of(node.attr_int("axis", -2), cache.size()));
  const size_t axis = static_cast<size_t>(signed_axis);
  if (axis == 0) return kernel_error("axis 0 is the batch");
  bool fits = update.size() == cache.size();
  for (size_t d = 0; fits && d < cache.size(); ++d)
    fits = d == axis ? update[d] <= cache[d] : update[d] == cache[d];
  if (!fits)
    return kernel_error("the update ", dims_text(update), " does not fit into the cache ",
                        dims_text(cache));
  const int64_t starts[] = {cache[0]};
  if (node.has_input(2) &&
      (node.input_dtype(2) != PFRT_DTYPE_INT64 || !same_dims(node.input_dims(2), starts)))
    return kernel_error("write_indices must be int64 ", dims_text(starts));
  Kernel kernel;
  if (node.input_elements(0) == 0) {
    kernel.run = [](const Run&) { return pfrt_code{PFRT_CODE_OK}; };
    return kernel;
  }
  ScatterForm f;
  f.batch = cache[0];
  f.prefixes = SnapshotNode::elements(cache.first(axis));
  f.room = cache[axis], f.rows = update[axis];
  f.line = SnapshotNode::elements(cache.subspan(axis + 1)) *
           static_cast<int64_t>(dtype_size(node.input_dtype(0)));
  f.circular = node.attr_string("mode", "linear") == "circular";
  f.starts = node.has_input(2);
  if (node.input_index(0) != node.input_index(1)) kernel.may_alias = 0;
  kernel.run = [f](const Run& run) { return write_rows(run, f); };
  return kernel;
}

}  // namespace pfrt::cpu
