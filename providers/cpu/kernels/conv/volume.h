// SPDX-License-Identifier: Apache-2.0
//
// Convolutions of three spatial dimensions by the families of two. Where neighbouring dimensions
// have one tap, no padding and a stride of 1, they are one dimension, and the image is read as it
// lies. Otherwise the result is made a slice at a time: the slices of the image that it sees stand
// beside each other as channels, and so do the weights as they lie in memory.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "providers/cpu/kernel/row.h"

namespace pfrt::cpu {

// The node of two dimensions that stands for |volume|, a Conv of three. Borrows from it; belongs to
// one thread. Sizes that are not known are negative.
class PlaneNode {
 public:
  // What the node is for: a kernel for slices is made for float32, which 16-bit slices are widened
  // to, and reads no weights but the packed ones.
  enum class Use : uint8_t { kAsk, kMake };
  explicit PlaneNode(const KernelRequest& volume, Use use = Use::kAsk);
  PlaneNode(const PlaneNode&) = delete;
  PlaneNode& operator=(const PlaneNode&) = delete;

  // Whether the result is made by slices.
  bool sliced() const { return sliced_; }
  const KernelRequest& request() const { return request_; }

 private:
  static constexpr size_t kMostAttrs = 5;
  // |name| is static.
  void add(std::string_view name, size_t i, std::vector<int64_t> values);

  bool sliced_ = false;
  std::array<std::array<int64_t, 4>, 3> dims_{};  // of X, W and Y
  std::array<std::vector<int64_t>, 3> lists_;
  std::vector<pfrt_snapshot_attr> attrs_;
  std::array<pfrt_snapshot_value, 4> values_{};  // X, W, B and Y
  std::array<uint32_t, 3> inputs_{0, 1, 2};
  uint32_t output_ = 3;
  pfrt_snapshot_node node_{};
  pfrt_snapshot snapshot_{};
  KernelRequest request_;
};

// Empty where |node| is a Conv of three dimensions with weights that are known.
std::string refuse_volume(const SnapshotNode& node);
// The kernel for |volume| where |made| is the one for |planes|.
Result<Kernel> volume_kernel(const KernelRequest& volume, const PlaneNode& planes, Kernel made);

// The functions of a row by those of a row of two dimensions.
template <auto refuse>
std::string refuse_conv_volume(const KernelRequest& node) {
  std::string why = refuse_volume(node);
  return why.empty() ? refuse(PlaneNode(node).request()) : why;
}
template <auto make>
Result<Kernel> make_conv_volume(const KernelRequest& node) {
  const PlaneNode planes(node, PlaneNode::Use::kMake);
  PFRT_ASSIGN(Kernel made, make(planes.request()));
  return volume_kernel(node, planes, std::move(made));
}
template <auto pack>
std::optional<PackedInput> pack_conv_volume(const SnapshotNode& node) {
  return pack(PlaneNode(KernelRequest(node)).request());
}

}  // namespace pfrt::cpu
