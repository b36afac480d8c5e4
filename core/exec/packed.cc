// SPDX-License-Identifier: Apache-2.0
#include "core/exec/packed.h"

#include <bit>

#include "core/base/os/mapping_guard.h"
#include "core/base/os/pages.h"

namespace pfrt {

Result<std::shared_ptr<Buffer>> PackedStore::get(const std::string& key,
                                                 const pfrt_packed_constant& constant,
                                                 const std::vector<const Tensor*>& sources,
                                                 Staging& staging, Sink& sink) {
  if (constant.alignment > 64 || (constant.alignment & (constant.alignment - 1)) != 0)
    return error(Code::kUNSUPPORTED, "packing a constant as '", view(constant.recipe),
                 "': alignment ", constant.alignment,
                 " was asked for; this host aligns to 64 and takes powers of two up to that");
  std::shared_ptr<Entry> entry;
  {
    std::lock_guard lock(mutex_);
    // Expired entries are not looked for each time, since constants may be many.
    if (std::has_single_bit(entries_.size())) {
      std::erase_if(entries_, [&](const auto& e) {
        if (e.first == key || e.second.use_count() != 1) return false;
        // Its last user let go of it; the count alone does not order that before the read below.
        std::lock_guard last(e.second->mutex);
        return e.second->buffer.expired();
      });
    }
    std::shared_ptr<Entry>& slot = entries_[key];
    if (!slot) slot = std::make_shared<Entry>();
    entry = slot;
  }
  std::lock_guard lock(entry->mutex);
  if (auto buffer = entry->buffer.lock()) return buffer;
  PFRT_ASSIGN(auto buffer, Buffer::allocate(constant.bytes, false));
  staging.clear();
  std::vector<const void*> data;
  for (const Tensor* source : sources) {
    PFRT_ASSIGN(const Tensor tensor, staging.readable(*source));
    data.push_back(tensor.data());
  }
  const pfrt_code code = sink.call(
      [&] { return constant.pack(constant.user, data.data(), buffer->data(), sink.get()); });
  PFRT_TRY(sink.status(code, "packing a constant as '", view(constant.recipe), "'"));
  for (const Tensor* source : sources) {
    const auto file = source->buffer ? os::health_of(source->buffer->origin()) : nullptr;
    if (!file) continue;
    // The key does not describe bytes that were packed from a file that is gone or has changed.
    if (file->check()) return file->status();
    // The source is rarely read again once it is packed.
    if (!source->buffer->deferred() && source->buffer->origin() == source->buffer->data())
      os::drop_pages(source->data(), source->bytes());
  }
  entry->buffer = buffer;
  return buffer;
}

}  // namespace pfrt
