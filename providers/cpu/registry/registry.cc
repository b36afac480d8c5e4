// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/registry/registry.h"

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
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

// The form of |request| that |row| lacks, in words; nullptr when it has all.
const char* missing_form(const KernelRow& row, const KernelRequest& request) {
  if (request.any_nchw16c() && !row.has(kNchw16c)) return "takes no nChw16c";
  if (request.shuffle_groups > 0 && !row.has(kShuffled)) return "takes no shuffled channels";
  if (request.pool != nullptr && !row.has(kPooled)) return "does not run a pooling of its output";
  if (request.epilogue && !row.has(kEpilogue))
    return "takes no epilogue: it does not say which ranges of its output are final";
  return nullptr;
}

// Why |row| does not do what is asked; empty when it does. In few words where nobody asks why.
std::string refusal(const KernelRow& row, const KernelRequest& request, Isa usable, bool told) {
  const Result<Isa> needs = isa_from_name(row.isa);
  if (!needs.ok() || needs.value() > usable)
    return told ? message(row.name, " needs ", row.isa, ", usable is ", isa_name(usable)) : "isa";
  const bool by_input = request.input_count() > row.typed_input;
  const pfrt_dtype dtype =
      by_input ? request.input_dtype(row.typed_input) : request.output_dtype(0);
  if (!row.types.has(dtype))
    return told ? message(row.name, " takes ", row.types.text(), ", got ", dtype_name(dtype))
                : "type";
  if (const char* const missing = missing_form(row, request))
    return told ? message(row.name, " ", missing) : "form";
  if (row.refuse == nullptr) return {};
  std::string why = row.refuse(request);
  return why.empty() || !told ? why : message(row.name, ": ", why);
}

// The rows of an operator in the order of the families: they are asked for several times a node.
// Without heap memory or a destructor: exit() may come while another thread still looks up.
class RowIndex {
 public:
  RowIndex() {
    first_.fill(kNone);
    for (std::span<const KernelRow> family : kernels())
      for (const KernelRow& row : family) rows_.at(count_++) = &row;
    for (size_t i = count_; i-- > 0;) {
      uint16_t& first = first_[bucket(rows_[i]->op)];
      next_[i] = std::exchange(first, static_cast<uint16_t>(i));
    }
  }
  // |fn| is called with each row of the node's operator until it returns true.
  template <typename Fn>
  void each(const SnapshotNode& node, Fn&& fn) const {
    const std::string_view op = node.op(), domain = node.domain();
    for (uint16_t i = first_[bucket(op)]; i != kNone; i = next_[i])
      if (rows_[i]->op == op && rows_[i]->domain == domain && fn(*rows_[i])) return;
  }

 private:
  static constexpr uint16_t kNone = UINT16_MAX;
  static constexpr size_t kMost = 1024, kBuckets = 512;
  static size_t bucket(std::string_view op) { return std::hash<std::string_view>()(op) % kBuckets; }
  std::array<const KernelRow*, kMost> rows_{};
  std::array<uint16_t, kMost> next_{};
  std::array<uint16_t, kBuckets> first_{};
  size_t count_ = 0;
};

const RowIndex& row_index() {
  static const RowIndex index;
  return index;
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
  const KernelRow* first = nullptr;
  row_index().each(node, [&](const KernelRow& row) {
    first = &row;
    return true;
  });
  return first;
}

bool has_weights(const SnapshotNode& node) {
  if (!node.has_input(1) || !node.is_constant(1)) return false;
  bool packs = false;
  row_index().each(node, [&](const KernelRow& row) { return packs = row.pack != nullptr; });
  return packs;
}

const KernelRow* find_kernel(const KernelRequest& request, std::string* reason) {
  const SnapshotNode& node = request;
  const bool told = reason != nullptr;
  const Isa usable = isa();
  const KernelRequest plain(node);
  const KernelRow* found = nullptr;
  std::string reasons;
  const auto takes = [&](const KernelRow& row) {
    const std::string why = refusal(row, plain, usable, told);
    if (why.empty()) {
      found = &row;
      return true;
    }
    if (told) reasons += (reasons.empty() ? "" : "; ") + why;
    return false;
  };
  if (has_empty(node)) {
    // The reference first: others may not even be asked about dimensions of 0.
    std::vector<const KernelRow*> rows;
    row_index().each(node, [&](const KernelRow& row) {
      rows.push_back(&row);
      return false;
    });
    for (auto row = rows.rbegin(); row != rows.rend() && !takes(**row);) ++row;
  } else {
    row_index().each(node, takes);
  }
  if (found != nullptr) {
    if (!request.asks_more()) return found;
    reasons = refusal(*found, request, usable, told);
    if (reasons.empty()) return found;
  } else if (reasons.empty() && told) {
    reasons = message("the CPU provider has no kernel for ", node.domain(),
                      node.domain().empty() ? "" : ".", node.op());
  }
  if (told) *reason = std::move(reasons);
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

std::vector<std::pair<uint32_t, uint32_t>> caches(const SnapshotNode& node) {
  if (node.domain() != "com.microsoft" || node.op() != "GroupQueryAttention") return {};
  return group_query_caches(node);
}

std::string describe(const SnapshotNode& node) {
  return node.name().empty() ? message(node.op()) : message(node.op(), " '", node.name(), "'");
}

}  // namespace pfrt::cpu
