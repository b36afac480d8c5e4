// SPDX-License-Identifier: Apache-2.0
//
// com.microsoft GroupQueryAttention, its projections already split and rotated: each batch has a
// past of its own length in a cache with room for more.
#include <algorithm>
#include <cmath>

#include "providers/cpu/elements/load.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/attention/attention.h"
#include "providers/cpu/kernels/attention/operands.h"

namespace pfrt::cpu {
namespace {

// seqlens_k has the number of keys less one; a first prompt, as long as the total, has no past.
pfrt_code read_reach(const Run& run, const AttentionForm& form, std::span<Reach> reach) {
  const int32_t* const lengths = run.input<int32_t>(5);
  const int64_t total = *run.input<int32_t>(6);
  for (size_t b = 0; b < reach.size(); ++b) {
    const int64_t keys = int64_t{lengths[b]} + 1;
    const int64_t past = form.q_len == total ? 0 : keys - form.q_len;
    if (keys < 1 || keys > form.total || past < 0 || past > form.past_room)
      return run.fail(Code::kINVALID_ARGUMENT, "GroupQueryAttention: seqlens_k[", b, "] is ",
                      lengths[b], "; with ", form.q_len, " queries, a past with room for ",
                      form.past_room, " and total_sequence_length ", total,
                      " that leaves no sense; it is the number of keys less one");
    reach[b] = {past, keys};
  }
  return PFRT_CODE_OK;
}

Status read_lengths(const SnapshotNode& node, const AttentionForm& form) {
  if (!node.has_input(5) || !node.has_input(6) || node.input_dtype(5) != PFRT_DTYPE_INT32 ||
      node.input_dtype(6) != PFRT_DTYPE_INT32 || node.input_elements(5) != form.batch)
    return kernel_error("seqlens_k must be int32 with ", form.batch, " elements");
  return need_scalar(node, 6);
}

Status read_sinks(const SnapshotNode& node, AttentionForm& form) {
  form.sink_of_zero = node.attr_int("smooth_softmax", 0) != 0;
  if (!node.has_input(11)) return {};
  PFRT_TRY(need_types(node, {11}, kFloats));
  if (node.input_elements(11) != form.q_heads)
    return kernel_error("head_sink must have ", form.q_heads, " elements");
  form.sink_input = 11;
  form.sink_dtype = node.input_dtype(11);
  return {};
}

// Output 3 has total_sequence_length keys, which may be fewer than the cache has room for.
Status read_scores(const SnapshotNode& node, AttentionForm& form) {
  const int64_t what = node.attr_int("qk_output", 0);
  form.scores_wanted = node.has_output(3);
  if (!form.scores_wanted) return {};
  if (what != 1 && what != 2) return kernel_error("output 3 needs qk_output 1 or 2");
  form.scores = what == 1 ? Scores::kBiased : Scores::kSoftmax;
  form.scores_dtype = node.output_dtype(3);
  const int64_t scores[] = {form.batch, form.q_heads, form.q_len, form.total};
  return need_output_dims(node, 3, scores);
}

}  // namespace

Result<Kernel> make_group_query_attention(const KernelRequest& node) {
  PFRT_TRY(need(node, 3, 3));
  PFRT_TRY(need_types(node, {1, 2, 3, 4}, Types{node.input_dtype(0)}));
  PFRT_TRY(need_types(node, {10}, kFloats));
  AttentionForm form;
  PFRT_TRY(read_operands(node, {"num_heads", "kv_num_heads"}, form));
  if (node.input_dims(0).size() != 3 || form.kv_len != form.q_len || form.v_head != form.head)
    return kernel_error("keys and values must have the length and head size of the query");
  PFRT_TRY(read_past(node, 3, form));
  form.total = node.output_dims(1).size() == 4 ? node.output_dims(1)[2] : -1;
  if (form.total < form.past_room) return kernel_error("the present is shorter than the past");
  PFRT_TRY(check_presents(node, form));
  PFRT_TRY(read_lengths(node, form));
  PFRT_TRY(read_mask(node, 10, form));
  PFRT_TRY(read_sinks(node, form));
  PFRT_TRY(read_scores(node, form));
  PFRT_TRY(need_like_output(node, 0));
  form.y = form.q;
  const float scale = node.attr_float("scale", 0);
  form.scale = scale != 0 ? static_cast<double>(scale)
                          : 1 / std::sqrt(static_cast<double>(std::max<int64_t>(form.head, 1)));
  form.softcap = static_cast<double>(node.attr_float("softcap", 0));
  form.causal = true;
  const int64_t window = node.attr_int("local_window_size", -1);
  form.left = window > 0 ? window - 1 : -1;  // the query's own position counts
  AttentionForm lengths;                     // the part of the form that reach needs
  lengths.q_len = form.q_len, lengths.total = form.total, lengths.past_room = form.past_room;
  form.reach = [lengths](const Run& run, std::span<Reach> reach) {
    return read_reach(run, lengths, reach);
  };
  return attention_kernel(std::move(form));
}

// Rows of a cache are read once they are written, and those beyond the keys never.
std::vector<std::pair<uint32_t, uint32_t>> group_query_caches(const SnapshotNode& node) {
  if (!node.has_input(3) || !node.has_input(4) || node.input_index(3) == node.input_index(4))
    return {};
  return {{3, 1}, {4, 2}};
}

}  // namespace pfrt::cpu
