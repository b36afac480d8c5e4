// SPDX-License-Identifier: Apache-2.0
#include "core/provider/devices.h"

#include <algorithm>

#include "core/base/lock.h"

namespace pfrt {
namespace {

std::string key_of(const ProviderSource& source) {
  auto options = source.options;
  std::ranges::sort(options);
  std::string key;
  const auto add = [&key](const std::string& part) {
    key += part;
    key += '\0';
  };
  add(source.name);
  add(source.device);
  for (const auto& [name, value] : options) {
    add(name);
    add(value);
  }
  return key;
}

}  // namespace

std::shared_ptr<Devices::Entry> Devices::entry_for(const ProviderSource& source) {
  std::lock_guard lock(mutex_);
  std::erase_if(entries_, [](const auto& e) {
    if (e.second.use_count() != 1) return false;
    std::lock_guard last(e.second->mutex);
    return e.second->provider.expired();
  });
  std::shared_ptr<Entry>& slot = entries_[key_of(source)];
  if (!slot) slot = std::make_shared<Entry>();
  return slot;
}

Result<std::shared_ptr<Provider>> Devices::open(const ProviderSource& source, Logger* logger,
                                                const Stop& stop) {
  if (!(source.features & PFRT_PROVIDER_MEMORY)) return Provider::open(source, logger, stop);
  const std::shared_ptr<Entry> entry = entry_for(source);
  Status stopped;
  const auto lock =
      lock_unless(entry->opening, [&] { return !(stopped = stop ? stop() : Status()).ok(); });
  if (!lock.owns_lock()) return stopped.prepend(message("opening ", source.device));
  {
    std::lock_guard read(entry->mutex);
    if (auto open = entry->provider.lock()) return open;
  }
  PFRT_ASSIGN(auto opened, Provider::open(source, logger, stop));
  std::lock_guard write(entry->mutex);
  entry->provider = opened;
  return opened;
}

void Devices::give_up(const Provider* lost) {
  std::lock_guard lock(mutex_);
  for (const auto& [key, entry] : entries_) {
    std::shared_ptr<Provider> open;  // released after the lock: it may have become the last one
    std::lock_guard own(entry->mutex);
    open = entry->provider.lock();
    if (open.get() == lost) entry->provider.reset();
  }
}

}  // namespace pfrt
