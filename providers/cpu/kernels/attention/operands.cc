// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/attention/operands.h"

#include "providers/cpu/kernel/signature.h"

namespace pfrt::cpu {

Status read_operands(const SnapshotNode& node, const HeadNames& names, AttentionForm& form) {
  const auto q = node.input_dims(0), k = node.input_dims(1), v = node.input_dims(2);
  const size_t rank = q.size();
  if ((rank != 3 && rank != 4) || k.size() != rank || v.size() != rank)
    return kernel_error("query ", dims_text(q), ", key ", dims_text(k), " and value ", dims_text(v),
                        " must all have rank 3 or all 4");
  form.q_heads = rank == 4 ? q[1] : node.attr_int(names.q, 0);
  form.kv_heads = rank == 4 ? k[1] : node.attr_int(names.kv, 0);
  constexpr int64_t kMostHeads = 1 << 20;
  const auto counts = [](int64_t heads) { return heads >= 1 && heads <= kMostHeads; };
  if (rank == 3 && !(counts(form.q_heads) && counts(form.kv_heads)))
    return kernel_error("inputs of rank 3 need attributes ", names.q, " and ", names.kv);
  const size_t at = rank == 4 ? 2 : 1;
  form.batch = q[0], form.q_len = q[at], form.kv_len = k[at];
  const int64_t heads_in_q = rank == 4 ? 1 : form.q_heads,
                heads_in_k = rank == 4 ? 1 : form.kv_heads;
  form.head = q.back() / heads_in_q, form.v_head = v.back() / heads_in_k;
  const bool agree = k[0] == form.batch && v[0] == form.batch && v[at] == form.kv_len &&
                     (rank == 3 || v[1] == form.kv_heads) && q.back() % heads_in_q == 0 &&
                     k.back() == form.head * heads_in_k && v.back() % heads_in_k == 0;
  if (!agree)
    return kernel_error("query ", dims_text(q), ", key ", dims_text(k), " and value ", dims_text(v),
                        " do not agree");
  if (form.kv_heads == 0 ? form.q_heads != 0 : form.q_heads % form.kv_heads != 0)
    return kernel_error(form.q_heads, " query heads are not a multiple of ", form.kv_heads,
                        " key heads");
  form.q = headed(node.input_dtype(0), q, form.q_heads);
  form.k = headed(node.input_dtype(1), k, form.kv_heads);
  form.v = headed(node.input_dtype(2), v, form.kv_heads);
  return {};
}

Status read_past(const SnapshotNode& node, uint32_t input, AttentionForm& form) {
  form.presents = node.has_output(1) || node.has_output(2);
  if (form.presents && (!node.has_output(1) || !node.has_output(2)))
    return kernel_error("present keys and values must both be there");
  if (!node.has_input(input) && !node.has_input(input + 1)) return {};
  if (!node.has_input(input) || !node.has_input(input + 1) || !form.presents)
    return kernel_error("past keys and values need each other and present ones");
  const auto k = node.input_dims(input), v = node.input_dims(input + 1);
  form.past_input = input;
  form.past_room = k.size() == 4 ? k[2] : -1;
  const int64_t key[] = {form.batch, form.kv_heads, form.past_room, form.head};
  const int64_t value[] = {form.batch, form.kv_heads, form.past_room, form.v_head};
  if (!same_dims(k, key) || !same_dims(v, value) || node.input_dtype(input) != form.k.dtype ||
      node.input_dtype(input + 1) != form.v.dtype)
    return kernel_error("the past ", dims_text(k), " and ", dims_text(v),
                        " does not fit the keys and values");
  return {};
}

Status check_presents(const SnapshotNode& node, const AttentionForm& form) {
  if (!form.presents) return {};
  const int64_t key[] = {form.batch, form.kv_heads, form.total, form.head};
  const int64_t value[] = {form.batch, form.kv_heads, form.total, form.v_head};
  PFRT_TRY(need_output_dims(node, 1, key));
  return need_output_dims(node, 2, value);
}

Status read_mask(const SnapshotNode& node, uint32_t input, AttentionForm& form) {
  if (!node.has_input(input)) return {};
  const auto dims = node.input_dims(input);
  const int64_t scores[] = {form.batch, form.q_heads, form.q_len, form.total};
  bool fits = !dims.empty() && dims.size() <= 4 && dims.back() <= form.total;
  int64_t strides[4] = {0, 0, 0, 1}, step = 1;
  for (size_t i = 0; fits && i < dims.size(); ++i) {
    const int64_t size = dims[dims.size() - 1 - i];
    if (i > 0 && size != 1 && size != scores[3 - i]) fits = false;
    if (i > 0) strides[3 - i] = size == 1 ? 0 : step;
    step *= size;
  }
  if (!fits)
    return kernel_error("the mask ", dims_text(dims), " does not broadcast to the scores ",
                        dims_text(scores));
  form.mask.input = input, form.mask.dtype = node.input_dtype(input);
  form.mask.columns = dims.back();
  form.mask.batch = strides[0], form.mask.head = strides[1], form.mask.row = strides[2];
  return {};
}

}  // namespace pfrt::cpu
