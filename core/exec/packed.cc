// SPDX-License-Identifier: Apache-2.0
#include "core/exec/packed.h"

#include "core/base/os/mapping_guard.h"

namespace pfrt {

Result<std::shared_ptr<Buffer>> PackedStore::get(const std::string& key,
                                                 const pfrt_packed_constant& constant,
                                                 const std::vector<const void*>& sources) {
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
  const pfrt_code code = constant.pack(constant.user, sources.data(), buffer->data());
  if (code != PFRT_CODE_OK)
    return error(static_cast<Code>(code), "packing a constant as '", view(constant.recipe),
                 "' failed");
  // What was packed from a file that is gone is not what the key says.
  for (const void* source : sources)
    if (const auto file = os::health_of(source); file && file->lost()) return file->status();
  entry->buffer = buffer;
  return buffer;
}

}  // namespace pfrt
