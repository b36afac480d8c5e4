// SPDX-License-Identifier: Apache-2.0
//
// A reader's view of one node of a snapshot, for providers: inputs, outputs and attributes by
// position and name, without the index arithmetic. Borrowed; valid as long as the snapshot (and
// |shapes|) it was made from. Thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/status.h"
#include "pyflame_rt/plugin.h"

namespace pfrt {

// Precision of float32 products, by the session's option "precision", from the nearest to the
// fastest. kRowsAlone is kIeee, and the bits of a row do not depend on the number of rows
// (PFRT_COMPILE_BATCH).
enum class Precision : uint8_t { kRowsAlone, kIeee, kFloat32, kFast, kBfloat16 };
// Sums of products as they are, nothing split, transformed or rounded before.
constexpr bool is_plain(Precision p) { return p == Precision::kIeee || p == Precision::kRowsAlone; }
Precision precision_of(pfrt_compile_hints hints);

class SnapshotNode {
 public:
  // |shapes| may be null: dimensions are then those of the snapshot, symbolic ones negative.
  SnapshotNode(const pfrt_snapshot& snapshot, uint32_t node, const pfrt_shapes* shapes = nullptr,
               Precision precision = Precision::kFloat32);

  std::string_view op() const { return view(node_->op); }
  std::string_view domain() const { return view(node_->domain); }
  std::string_view name() const { return view(node_->name); }
  uint32_t index() const { return index_; }
  Precision precision() const { return precision_; }

  uint32_t input_count() const { return node_->input_count; }
  uint32_t output_count() const { return node_->output_count; }
  bool has_input(uint32_t i) const {
    return i < node_->input_count && node_->inputs[i] != PFRT_NO_INDEX;
  }
  bool has_output(uint32_t i) const {
    return i < node_->output_count && node_->outputs[i] != PFRT_NO_INDEX;
  }
  uint32_t input_index(uint32_t i) const {
    return node_->inputs[i];
  }  // value index in the snapshot
  uint32_t output_index(uint32_t i) const { return node_->outputs[i]; }

  pfrt_dtype input_dtype(uint32_t i) const;  // 0 when absent
  pfrt_dtype output_dtype(uint32_t i) const;
  // -1 when unknown. With shapes given, only contents decide what is still unknown.
  int32_t input_rank(uint32_t i) const;
  int32_t output_rank(uint32_t i) const;
  std::span<const int64_t> input_dims(uint32_t i) const;  // empty when the rank is unknown
  std::span<const int64_t> output_dims(uint32_t i) const;
  int64_t input_elements(uint32_t i) const { return elements(input_dims(i)); }
  int64_t output_elements(uint32_t i) const { return elements(output_dims(i)); }
  bool is_constant(uint32_t i) const;
  // Bytes of a constant input; nullptr when only a run knows, or only packing and steps read them.
  const void* input_constant(uint32_t i) const;
  // A constant integer input widened; empty when absent or not constant.
  std::vector<int64_t> constant_int64s(uint32_t i) const;

  const pfrt_snapshot_attr* attr(std::string_view name) const;  // nullptr when absent
  int64_t attr_int(std::string_view name, int64_t fallback) const;
  float attr_float(std::string_view name, float fallback) const;
  std::string_view attr_string(std::string_view name, std::string_view fallback) const;
  std::span<const int64_t> attr_ints(std::string_view name) const;  // empty when absent
  std::span<const float> attr_floats(std::string_view name) const;

  static int64_t elements(std::span<const int64_t> dims) {
    return element_count(dims.data(), dims.size());
  }

 private:
  const pfrt_snapshot_value* value(uint32_t index) const;
  std::span<const int64_t> dims(uint32_t index) const;
  int32_t rank(uint32_t index) const;
  const pfrt_snapshot* snapshot_;
  const pfrt_snapshot_node* node_;
  const pfrt_shapes* shapes_;
  uint32_t index_;
  Precision precision_;
};

}  // namespace pfrt
