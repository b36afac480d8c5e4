// SPDX-License-Identifier: Apache-2.0
#include "core/memory/staging.h"

#include <algorithm>

namespace pfrt {
namespace {

constexpr uint64_t kFirst = uint64_t{4} << 20;  // on large pages
constexpr uint64_t kKept = uint64_t{16} << 20;  // of a block, to stay in a cache

}  // namespace

Result<Tensor> Staging::readable(const Tensor& tensor) {
  if (!tensor.deferred()) return tensor;
  const uint64_t bytes = tensor.bytes();
  if (used_ == blocks_.size()) blocks_.emplace_back();
  std::shared_ptr<Buffer>& block = blocks_[used_];
  if (!block || block->bytes() < bytes) {
    const uint64_t wanted = block ? std::min(2 * block->bytes(), kKept) : kFirst;
    block.reset();
    PFRT_ASSIGN(block, Buffer::allocate_pages(std::max(bytes, wanted)));
  }
  tensor.copy_to(block->data());
  ++used_;
  Tensor copy;
  copy.dtype = tensor.dtype;
  copy.dims = tensor.dims;
  copy.buffer = block;
  return copy;
}

void Staging::clear() {
  used_ = 0;
  for (std::shared_ptr<Buffer>& block : blocks_)
    if (block && block->bytes() > kKept) block.reset();
}

}  // namespace pfrt
