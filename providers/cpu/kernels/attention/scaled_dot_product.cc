// SPDX-License-Identifier: Apache-2.0
//
// ai.onnx Attention: what its node says in the terms of the kernel.
#include <algorithm>
#include <cmath>

#include "providers/cpu/elements/load.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/attention/attention.h"
#include "providers/cpu/kernels/attention/operands.h"

namespace pfrt::cpu {
namespace {

// Keys and values may come from a cache that TensorScatter fills; nonpad_kv_seqlen then says how
// many of its positions are in use.
Status read_reach(const SnapshotNode& node, AttentionForm& form) {
  const int64_t q_len = form.q_len, total = form.total, past = form.past_room;
  if (!node.has_input(6)) {
    form.reach = [=](const Run&, std::span<Reach> reach) -> pfrt_code {
      std::fill(reach.begin(), reach.end(), Reach{past, total});
      return PFRT_CODE_OK;
    };
    return {};
  }
  const int64_t dims[] = {form.batch};
  if (node.input_dtype(6) != PFRT_DTYPE_INT64 || !same_dims(node.input_dims(6), dims))
    return kernel_error("nonpad_kv_seqlen must be int64 ", dims_text(dims));
  form.reach = [=](const Run& run, std::span<Reach> reach) -> pfrt_code {
    for (size_t b = 0; b < reach.size(); ++b) {
      const int64_t keys = run.input<int64_t>(6)[b];
      if (keys < 0 || keys > total)
        return run.fail(Code::kINVALID_ARGUMENT, "Attention: nonpad_kv_seqlen[", b, "] is ", keys,
                        ", needs to lie in [0, ", total, "], the length of the keys");
      reach[b] = {keys - q_len, keys};
    }
    return PFRT_CODE_OK;
  };
  return {};
}

Status read_attributes(const SnapshotNode& node, AttentionForm& form) {
  const double head = static_cast<double>(std::max<int64_t>(form.head, 1));
  form.scale =
      node.attr("scale") ? static_cast<double>(node.attr_float("scale", 1)) : 1 / std::sqrt(head);
  form.softcap = static_cast<double>(node.attr_float("softcap", 0));
  form.causal = node.attr_int("is_causal", 0) != 0;
  form.hidden_count = true;
  const std::string_view masking = node.attr_string("masking", "");
  form.hidden_scores_count = masking == "added";
  form.mask.replaces = masking == "replaced";
  form.nan_is_zero = node.attr_int("zero_nan_weights", 0) != 0;
  form.left = node.attr_int("left_window_size", -1);
  form.right = node.attr_int("right_window_size", -1);
  const int64_t precision = node.attr_int("softmax_precision", PFRT_DTYPE_UNSET);
  const bool known = precision >= 0 && precision < 64;
  if (precision != PFRT_DTYPE_UNSET && (!known || !kFloats.has(static_cast<pfrt_dtype>(precision))))
    return error(Code::kDTYPE_MISMATCH, "softmax_precision is ", precision,
                 ", which is no floating-point type");
  form.precision = static_cast<pfrt_dtype>(precision);
  const int64_t mode = node.attr_int("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3) return kernel_error("qk_matmul_output_mode is ", mode);
  form.scores = static_cast<Scores>(mode);
  return {};
}

}  // namespace

Result<Kernel> make_attention(const KernelRequest& node) {
  PFRT_TRY(need(node, 3, 1));
  PFRT_TRY(need_types(node, {1}, Types{node.input_dtype(0)}));
  PFRT_TRY(need_types(node, {2, 5}, kFloats));
  PFRT_TRY(need_types(node, {3}, kNumbers | kBool));
  AttentionForm form;
  PFRT_TRY(read_operands(node, {"q_num_heads", "kv_num_heads"}, form));
  PFRT_TRY(read_past(node, 4, form));
  form.total = form.past_room + form.kv_len;
  PFRT_TRY(check_presents(node, form));
  PFRT_TRY(read_mask(node, 3, form));
  PFRT_TRY(read_reach(node, form));
  PFRT_TRY(read_attributes(node, form));
  const bool flat = node.input_dims(0).size() == 3;
  const std::vector<int64_t> y =
      flat ? std::vector<int64_t>{form.batch, form.q_len, form.q_heads * form.v_head}
           : std::vector<int64_t>{form.batch, form.q_heads, form.q_len, form.v_head};
  PFRT_TRY(need_output_dims(node, 0, y));
  form.y = headed(node.output_dtype(0), y, form.q_heads);
  form.scores_wanted = node.has_output(3);
  form.scores_dtype = node.output_dtype(3);
  const int64_t scores[] = {form.batch, form.q_heads, form.q_len, form.total};
  if (form.scores_wanted) PFRT_TRY(need_output_dims(node, 3, scores));
  if (!kFloats.has(form.y.dtype) || (form.scores_wanted && !kFloats.has(form.scores_dtype)))
    return error(Code::kDTYPE_MISMATCH, "the outputs must be floating-point");
  return attention_kernel(std::move(form));
}

}  // namespace pfrt::cpu
