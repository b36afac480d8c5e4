// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/page/kernel_families.h"

#include <algorithm>
#include <iterator>

#include "cxxapi/cli/page/categories.h"

namespace cli {
namespace {

// A family, the names of its kernels, and the categories whose operators belong to it. Names are
// separated by blanks; "conv_*" stands for all that begin so. The first match counts.
struct FamilyRow {
  KernelFamily family;
  std::string_view kernels, categories;
};

constexpr FamilyRow kFamilyRows[] = {
    {{"attention", "attention"},
     "attention_* group_query_attention_* linear_attention_* rotary_* multi_head_attention_*",
     ""},
    {{"depthwise", "depthwise convolution"},
     "conv_depthwise_* conv_integer_depthwise* qlinear_conv_depthwise* causal_conv_*",
     ""},
    {{"conv", "convolution"}, "conv_* qlinear_conv_* deform_conv_* col2im_*", "conv"},
    {{"matmul", "matrix product, recurrent"},
     "matmul_* gemm_* qlinear_matmul_* einsum_* lstm_* gru_* rnn_* dynamic_quantize_lstm*",
     "product recurrent"},
    {{"norm", "normalisation, softmax"},
     "batch_norm_* instance_norm_* group_norm_* layer_norm_* rms_norm_* lp_norm_* lrn_* "
     "mean_variance_norm_* softmax_* log_softmax_* hardmax_*",
     "norm"},
    {{"reduce", "reduction, pooling"},
     "reduce_* arg_max_* arg_min_* top_k_* cum_* average_pool_* max_pool_* lp_pool_* global_* "
     "qlinear_average_pool* qlinear_global_* max_unpool_* max_roi_pool_* roi_align_*",
     "reduce pool"},
    {{"elementwise", "elementwise, quantisation"},
     "elementwise_* quantize_* dequantize_* dynamic_quantize_* cast_* where_* clip_*",
     "math act quant"},
    {{"move", "movement, resizing"},
     "transpose_* reshape_* squeeze_* unsqueeze_* flatten_* concat_* split_* slice_* gather_* "
     "scatter_* tensor_scatter_* expand_* tile_* pad_* identity_* resize_* grid_sample_* "
     "space_to_depth_* depth_to_space_* reverse_sequence_* reorder_* pack_*",
     "move"},
    {{"other", "other"}, "", ""},
};

// The part of |text| before |end|, or all of it.
std::string_view before(std::string_view text, char end) { return text.substr(0, text.find(end)); }

}  // namespace

std::vector<KernelFamily> kernel_families() {
  std::vector<KernelFamily> out;
  for (const FamilyRow& row : kFamilyRows) out.push_back(row.family);
  return out;
}

size_t kernel_family(std::string_view kernel, std::string_view ops) {
  const auto find = [](const auto& matches) {
    const auto* const at =
        std::find_if(std::begin(kFamilyRows), std::end(kFamilyRows) - 1, matches);
    return static_cast<size_t>(at - std::begin(kFamilyRows));
  };
  const std::string_view name = before(kernel, '+');
  const size_t by_kernel = find([&](const FamilyRow& row) { return has_name(row.kernels, name); });
  if (by_kernel + 1 < std::size(kFamilyRows)) return by_kernel;
  const std::string_view category = category_of("", before(ops, ','));
  return find([&](const FamilyRow& row) { return has_name(row.categories, category); });
}

}  // namespace cli
