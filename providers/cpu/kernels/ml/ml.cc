// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/ml/ml.h"

namespace pfrt::cpu {
namespace {

constexpr std::string_view kMl = "ai.onnx.ml";
constexpr Types kData{PFRT_DTYPE_FLOAT32, PFRT_DTYPE_FLOAT64, PFRT_DTYPE_INT64, PFRT_DTYPE_INT32};
constexpr Types kLabels = kData | Types{PFRT_DTYPE_INT16};
constexpr Types kTreeFloats{PFRT_DTYPE_FLOAT32, PFRT_DTYPE_FLOAT64, PFRT_DTYPE_FLOAT16};

constexpr KernelRow kRows[] = {
    {kMl, "TreeEnsemble", kTreeFloats, "tree_ensemble_packed", "generic", nullptr, make_trees, 0,
     prepare_trees},
    {kMl, "TreeEnsembleRegressor", kData, "tree_ensemble_packed", "generic", nullptr, make_trees, 0,
     prepare_trees},
    {kMl, "TreeEnsembleClassifier", kData, "tree_ensemble_packed", "generic", nullptr, make_trees,
     0, prepare_trees},
    {kMl, "SVMClassifier", kData, "svm_rows", "generic", nullptr, make_svm, 0, prepare_svm},
    {kMl, "SVMRegressor", kData, "svm_rows", "generic", nullptr, make_svm, 0, prepare_svm},
    {kMl, "LabelEncoder", kLabels, "label_encoder_sorted", "generic", nullptr, make_label_encoder,
     0, prepare_label_encoder},
    checks_inputs({kMl, "OneHotEncoder", kData, "one_hot_encoder_sorted", "generic", nullptr,
                   make_one_hot, 0, prepare_one_hot}),
};

}  // namespace

Result<Rows> rows_of(const SnapshotNode& node) {
  const auto dims = node.input_dims(0);
  if (dims.size() == 1) return Rows{1, dims[0]};
  if (dims.size() == 2) return Rows{dims[0], dims[1]};
  return kernel_error("input 0 has rank ", dims.size(), ", expected [N, C] or [C]");
}

std::span<const KernelRow> ml_kernels() { return kRows; }

}  // namespace pfrt::cpu
