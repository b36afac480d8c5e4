// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/registry/registry.h"

#include <algorithm>
#include <vector>

#include "providers/cpu/isa/isa.h"
#include "providers/cpu/kernels/attention/attention.h"
#include "providers/cpu/kernels/contrib/contrib.h"
#include "providers/cpu/kernels/conv/conv.h"
#include "providers/cpu/kernels/elementwise/elementwise.h"
#include "providers/cpu/kernels/index/index.h"
#include "providers/cpu/kernels/matmul/matmul.h"
#include "providers/cpu/kernels/ml/ml.h"
#include "providers/cpu/kernels/move/move.h"
#include "providers/cpu/kernels/norm/norm.h"
#include "providers/cpu/kernels/pool/pool.h"
#include "providers/cpu/kernels/quantize/quantize.h"
#include "providers/cpu/kernels/random/random.h"
#include "providers/cpu/kernels/recurrent/recurrent.h"
#include "providers/cpu/kernels/reduce/reduce.h"
#include "providers/cpu/kernels/resize/resize.h"
#include "providers/cpu/kernels/signal/signal.h"
#include "providers/cpu/kernels/softmax/softmax.h"
#include "providers/cpu/kernels/training/training.h"
#include "providers/cpu/kernels/vision/vision.h"
#include "providers/cpu/registry/empty.h"

namespace pfrt::cpu {
namespace {

constexpr uint32_t kCanonicalForm = 1;

std::string refuse_value(const pfrt_snapshot& snapshot, uint32_t index) {
  const auto& value = *reinterpret_cast<const pfrt_snapshot_value*>(
      reinterpret_cast<const char*>(snapshot.values) + size_t{index} * snapshot.value_size);
  if ((value.flags & PFRT_SNAPSHOT_NOT_TENSOR) != 0)
    return message("'", value.name, "' is a sequence, map or optional: CPU kernels take tensors");
  if (value.dtype == PFRT_DTYPE_STRING)
    return message("'", value.name, "' holds strings: CPU kernels take numbers");
  if (!dtype_known(value.dtype)) return message("the type of '", value.name, "' is not known");
  return {};
}

// What |row| does not know of |request|, in words; nullptr when it knows all.
const char* missing_form(const KernelRow& row, const KernelRequest& request) {
  if (request.any_nchw16c() && !row.has(kNchw16c)) return "takes no nChw16c";
  if (request.shuffle_groups > 0 && !row.has(kShuffled)) return "takes no shuffled channels";
  if (request.pool != nullptr && !row.has(kPooled)) return "does not run a pooling of its output";
  if (request.epilogue && !row.has(kEpilogue))
    return "takes no epilogue: it does not say which ranges of its output are final";
  return nullptr;
}

// Why |row| does not do what is asked; empty when it does.
std::string refusal(const KernelRow& row, const KernelRequest& request) {
  const Result<Isa> needs = isa_from_name(row.isa);
  if (!needs.ok() || needs.value() > isa())
    return message(row.name, " needs ", row.isa, ", usable is ", isa_name(isa()));
  const bool by_input = request.input_count() > row.typed_input;
  const pfrt_dtype dtype =
      by_input ? request.input_dtype(row.typed_input) : request.output_dtype(0);
  if (!row.types.has(dtype))
    return message(row.name, " takes ", row.types.text(), ", got ", dtype_name(dtype));
  if (const char* const missing = missing_form(row, request))
    return message(row.name, " ", missing);
  if (row.refuse == nullptr) return {};
  const std::string why = row.refuse(request);
  return why.empty() ? why : message(row.name, ": ", why);
}

}  // namespace

std::span<const std::span<const KernelRow>> kernels() {
  static const std::span<const KernelRow> families[] = {
      unary_rows(),       activation_rows(),  binary_rows(),    variadic_rows(),
      select_rows(),      compare_kernels(),  cast_kernels(),   reduce_rows(),
      arg_rows(),         cum_sum_rows(),     top_k_rows(),     softmax_kernels(),
      matmul_kernels(),   conv_kernels(),     pool_kernels(),   norm_kernels(),
      move_kernels(),     shape_rows(),       fill_rows(),      gathering_rows(),
      unique_rows(),      suppression_rows(), resize_kernels(), recurrent_kernels(),
      quantize_kernels(), contrib_kernels(),  ml_kernels(),     signal_kernels(),
      random_kernels(),   loss_rows(),        optimizer_rows(), vision_kernels(),
      attention_rows(),
  };
  return families;
}

const KernelRow* operator_row(const SnapshotNode& node) {
  for (std::span<const KernelRow> family : kernels())
    for (const KernelRow& row : family)
      if (row.op == node.op() && row.domain == node.domain()) return &row;
  return nullptr;
}

bool has_weights(const SnapshotNode& node) {
  if (!node.has_input(1) || !node.is_constant(1)) return false;
  for (std::span<const KernelRow> family : kernels())
    for (const KernelRow& row : family)
      if (row.pack != nullptr && row.op == node.op() && row.domain == node.domain()) return true;
  return false;
}

const KernelRow* find_kernel(const KernelRequest& request, std::string* reason) {
  const SnapshotNode& node = request;
  std::vector<const KernelRow*> rows;
  for (std::span<const KernelRow> family : kernels())
    for (const KernelRow& row : family)
      if (row.op == node.op() && row.domain == node.domain()) rows.push_back(&row);
  // The reference first: others may not even be asked about dimensions of 0.
  if (has_empty(node)) std::ranges::reverse(rows);
  std::string reasons;
  const KernelRequest plain(node);
  for (const KernelRow* const row : rows) {
    std::string why = refusal(*row, plain);
    if (why.empty()) {
      if (request.asks_more()) why = refusal(*row, request);
      if (why.empty()) return row;
      if (reason != nullptr) *reason = std::move(why);
      return nullptr;
    }
    if (!reasons.empty()) reasons += "; ";
    reasons += why;
  }
  if (reason == nullptr) return nullptr;
  if (reasons.empty())
    reasons = message("the CPU provider has no kernel for ", node.domain(),
                      node.domain().empty() ? "" : ".", node.op());
  *reason = std::move(reasons);
  return nullptr;
}

std::string refuse_values(const pfrt_snapshot& snapshot, const SnapshotNode& node) {
  const auto& raw = *reinterpret_cast<const pfrt_snapshot_node*>(
      reinterpret_cast<const char*>(snapshot.nodes) + size_t{node.index()} * snapshot.node_size);
  if (raw.canonical > kCanonicalForm)
    return message("the node is in canonical form ", raw.canonical, ", the CPU provider knows ",
                   kCanonicalForm);
  std::string why;
  for (uint32_t i = 0; why.empty() && i < node.input_count(); ++i)
    if (node.has_input(i)) why = refuse_value(snapshot, node.input_index(i));
  for (uint32_t i = 0; why.empty() && i < node.output_count(); ++i)
    if (node.has_output(i)) why = refuse_value(snapshot, node.output_index(i));
  return why;
}

std::string describe(const SnapshotNode& node) {
  return node.name().empty() ? message(node.op()) : message(node.op(), " '", node.name(), "'");
}

}  // namespace pfrt::cpu
