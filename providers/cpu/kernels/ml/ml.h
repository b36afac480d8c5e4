// SPDX-License-Identifier: Apache-2.0
//
// The ai.onnx.ml family as far as it is not made of other operators: tree ensembles, support vector
// machines, and encoders of numbers. Rows are constants that live as long as the program;
// thread-safe.
#pragma once

#include <span>

#include "providers/cpu/kernel/row.h"

namespace pfrt::cpu {

std::span<const KernelRow> ml_kernels();

// tree_run.cc
Result<Prepared> prepare_trees(const SnapshotNode& node);
Result<Kernel> make_trees(const KernelRequest& node);
// svm.cc
Result<Prepared> prepare_svm(const SnapshotNode& node);
Result<Kernel> make_svm(const KernelRequest& node);
// encode.cc
Result<Prepared> prepare_label_encoder(const SnapshotNode& node);
Result<Kernel> make_label_encoder(const KernelRequest& node);
Result<Prepared> prepare_one_hot(const SnapshotNode& node);
Result<Kernel> make_one_hot(const KernelRequest& node);

// A matrix as these operators see it: [N, C], or [C] as one row.
struct Rows {
  int64_t rows, columns;
};
Result<Rows> rows_of(const SnapshotNode& node);

// FAIL in the words of the model: "attribute 'rho' ...".
template <typename... Parts>
Status attribute_error(std::string_view name, const Parts&... parts) {
  return error(Code::kINVALID_MODEL, "attribute '", name, "' ", parts...);
}

}  // namespace pfrt::cpu
