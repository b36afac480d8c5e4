// SPDX-License-Identifier: Apache-2.0
//
// Replaces a node by many in canonical forms: each call puts one node before it and gives the value
// that this makes. The first failure is kept, and calls after it do nothing. Not thread-safe.
#pragma once

#include <string_view>
#include <vector>

#include "core/op/engine/rewriter.h"

namespace pfrt {

class Chain {
 public:
  explicit Chain(Rewriter& rewriter) : rewriter_(rewriter) {}

  // Input |i| of the node; kNoId when absent.
  ValueId in(size_t i) const;
  ValueId op(std::string_view name, std::vector<ValueId> inputs, std::vector<Attribute> attrs = {});
  std::vector<ValueId> ops(std::string_view name, size_t outputs, std::vector<ValueId> inputs,
                           std::vector<Attribute> attrs = {});

  ValueId int64s(const std::vector<int64_t>& values);
  ValueId scalar(pfrt_dtype dtype, double value);
  ValueId add(ValueId a, ValueId b) { return op("Add", {a, b}); }
  // |a|, or the sum where |b| is present.
  ValueId add_if(ValueId a, ValueId b) { return b == kNoId ? a : add(a, b); }
  ValueId cast(ValueId a, pfrt_dtype to);
  ValueId reshape(ValueId a, const std::vector<int64_t>& dims);  // 0 keeps a dimension
  ValueId transpose(ValueId a, const std::vector<int64_t>& perm);
  ValueId unsqueeze(ValueId a, const std::vector<int64_t>& axes);
  // Element |index| along |axis|, without the axis.
  ValueId pick(ValueId a, int64_t index, int64_t axis);
  ValueId concat(std::vector<ValueId> values, int64_t axis);
  ValueId where(ValueId condition, ValueId yes, ValueId no) {
    return op("Where", {condition, yes, no});
  }
  // Dimension |axis| of |a|, int64 [1].
  ValueId size(ValueId a, int64_t axis);
  // The numbers 0, 1, ... below |count|, which is an int64 of one element.
  ValueId range(ValueId count);

  // Makes users of output |i| of the node use |value| instead.
  void hand_over(size_t i, ValueId value);
  // Removes the node, after its outputs were handed over or if nothing uses them.
  Status replace();
  Status status() { return std::move(status_); }
  bool ok() const { return status_.ok(); }

 private:
  template <typename T>
  T keep(Result<T> made, T otherwise) {
    if (made.ok()) return made.take();
    status_ = made.take_status();
    return otherwise;
  }
  Rewriter& rewriter_;
  Status status_;
};

}  // namespace pfrt
