// SPDX-License-Identifier: Apache-2.0
//
// An operator of the host: a row of its family's table, and the arguments of a call. Rows are found
// by canonical domain and name. The operator's row in core/op says that the host runs it (kOpHost),
// or that it does when a string or another value that is no tensor of numbers is among its inputs
// or outputs (kOpHostStrings).
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/exec/host/prepared.h"
#include "core/exec/run/control.h"
#include "core/ir/graph.h"

namespace pfrt::host {

struct Call {
  const Graph& graph;
  const Node& node;
  const std::vector<ValuePtr>& in;  // null where absent
  std::vector<ValuePtr>& out;       // one for each output of the node, at least one
  const RunControl& control;
  Prepared& prepared;  // the node's
  mutable BytePace pace{control};

  const Value* input(size_t i) const { return i < in.size() ? in[i].get() : nullptr; }
  // For loops over elements: fails once the run is to stop. It looks at some values of |i| only.
  template <typename Index>
  Status look(Index i) const {
    if (i % 64 != 0) return {};
    return control.stopped();
  }
  // For loops over texts, which may be long: looks after some number of |bytes|.
  Status walked(uint64_t bytes) const {
    constexpr uint64_t kElement = 64;
    return pace.after(bytes + kElement);
  }
};

// The sign of |a| - |b| as bytes.
Result<int> compare(const Call& call, std::string_view a, std::string_view b);
inline Result<bool> equal(const Call& call, std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  PFRT_ASSIGN(const int order, compare(call, a, b));
  return order == 0;
}

struct HostOp {
  std::string_view domain, name;
  Status (*run)(const Call& call);
};

// Input |i| if it is there and of |kind|; |what|, such as "a sequence", ends the error.
Result<const Value*> need(const Call& call, size_t i, pfrt_value_kind kind, const char* what);
// Input |i| if it is a tensor of |dtype|.
Result<const Tensor*> need_tensor(const Call& call, size_t i, pfrt_dtype dtype);

// Tables of the families, joined by host_ops.cc.
std::span<const HostOp> ml_ops();
std::span<const HostOp> sequence_ops();
std::span<const HostOp> text_ops();
std::span<const HostOp> hash_ops();
std::span<const HostOp> string_ops();
std::span<const HostOp> cast_ops();
std::span<const HostOp> tf_idf_ops();

}  // namespace pfrt::host
