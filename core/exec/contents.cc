// SPDX-License-Identifier: Apache-2.0
#include "core/exec/contents.h"

#include <bit>

#include "core/base/digest.h"

namespace pfrt {
namespace {

std::string hash_of(const void* data, uint64_t bytes) { return "#" + digest_of(data, bytes); }

}  // namespace

std::string Contents::key_of(const Tensor& tensor) {
  std::string key(dtype_name(tensor.dtype));
  for (const int64_t d : tensor.dims) key += message(",", d);
  const uint64_t bytes = tensor.bytes();
  const bool there =
      tensor.buffer && (!tensor.buffer->deferred() || tensor.buffer->lies_at_origin());
  if (!there || tensor.dtype == PFRT_DTYPE_STRING) {
    const void* buffer = tensor.buffer ? tensor.buffer->identity() : nullptr;
    return key + message("@", reinterpret_cast<uintptr_t>(buffer), "+", tensor.offset);
  }
  const void* data = static_cast<const char*>(tensor.buffer->at_any_address()) + tensor.offset;
  const std::pair place{data, bytes};
  {
    const std::lock_guard lock(mutex_);
    if (std::has_single_bit(known_.size()))
      std::erase_if(known_, [](const auto& e) { return e.second.buffer.expired(); });
    const auto at = known_.find(place);
    if (at != known_.end() && at->second.buffer.lock() == tensor.buffer)
      return key + at->second.hash;
  }
  std::string hash = hash_of(data, bytes);
  const std::lock_guard lock(mutex_);
  known_[place] = {tensor.buffer, hash};
  return key + hash;
}

}  // namespace pfrt
