// SPDX-License-Identifier: Apache-2.0
#include "core/exec/packed.h"

#include <algorithm>

#include "core/base/os/mapping_guard.h"
#include "core/base/os/pages.h"

namespace pfrt {
namespace {

constexpr uint64_t kLeastScratch = uint64_t{256} << 10;
constexpr uint64_t kMostScratch = uint64_t{8} << 20;  // what is larger has memory of its own

}  // namespace

Result<Tensor> PackScratch::readable(const Tensor& tensor, size_t slot) {
  const uint64_t bytes = tensor.buffer ? tensor.buffer->bytes() : 0;
  if (!tensor.deferred() || bytes > kMostScratch) return tensor.readable();
  if (buffers_.size() <= slot) buffers_.resize(slot + 1);
  std::shared_ptr<Buffer>& buffer = buffers_[slot];
  if (!buffer || buffer->bytes() < bytes) {
    const uint64_t twice = buffer ? 2 * buffer->bytes() : kLeastScratch;
    buffer = nullptr;
    PFRT_ASSIGN(buffer, Buffer::allocate_pages(std::min(std::max(bytes, twice), kMostScratch)));
  }
  Tensor copy;
  copy.dtype = tensor.dtype;
  copy.dims = tensor.dims;
  copy.buffer = buffer;
  tensor.buffer->copy_to(copy.data());
  return copy;
}

Result<std::shared_ptr<Buffer>> PackedStore::get(const std::string& key,
                                                 const pfrt_packed_constant& constant,
                                                 const std::vector<const Tensor*>& sources,
                                                 PackScratch& scratch) {
  if (constant.alignment > 64 || (constant.alignment & (constant.alignment - 1)) != 0)
    return error(Code::kUNSUPPORTED, "packing a constant as '", view(constant.recipe),
                 "': alignment ", constant.alignment,
                 " was asked for; this host aligns to 64 and takes powers of two up to that");
  std::shared_ptr<Entry> entry;
  {
    std::lock_guard lock(mutex_);
    std::erase_if(entries_, [&](const auto& e) {
      if (e.first == key || e.second.use_count() != 1) return false;
      // Its last user let go of it, which a count alone does not order before what is read here.
      std::lock_guard last(e.second->mutex);
      return e.second->buffer.expired();
    });
    std::shared_ptr<Entry>& slot = entries_[key];
    if (!slot) slot = std::make_shared<Entry>();
    entry = slot;
  }
  std::lock_guard lock(entry->mutex);
  if (auto buffer = entry->buffer.lock()) return buffer;
  PFRT_ASSIGN(auto buffer, Buffer::allocate(constant.bytes, false));
  std::vector<Tensor> read;
  std::vector<const void*> data;
  for (const Tensor* source : sources) {
    PFRT_ASSIGN(Tensor tensor, scratch.readable(*source, read.size()));
    data.push_back(tensor.data());
    read.push_back(std::move(tensor));
  }
  const pfrt_code code = constant.pack(constant.user, data.data(), buffer->data());
  if (code != PFRT_CODE_OK)
    return error(static_cast<Code>(code), "packing a constant as '", view(constant.recipe),
                 "' failed");
  for (const Tensor* source : sources) {
    const auto file = source->buffer ? os::health_of(source->buffer->origin()) : nullptr;
    if (!file) continue;
    // What was packed from a file that is gone is not what the key says.
    if (file->lost()) return file->status();
    // The file has what few will read again.
    if (!source->buffer->deferred() && source->buffer->origin() == source->buffer->data())
      os::drop_pages(source->data(), source->bytes());
  }
  entry->buffer = buffer;
  return buffer;
}

}  // namespace pfrt
