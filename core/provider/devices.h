// SPDX-License-Identifier: Apache-2.0
//
// Open devices with memory of their own. Sessions of an environment that name the same provider,
// device and options share a handle, so that values and constants on the device belong to all of
// them. A handle closes with its last user. Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "core/provider/provider.h"

namespace pfrt {

class Devices {
 public:
  // The handle of another session, where the provider has memory of its own, or a new one. |stop|
  // is asked also while another thread opens the same device.
  Result<std::shared_ptr<Provider>> open(const ProviderSource& source, Logger* logger,
                                         const Stop& stop);
  // Hands out |lost| no more: the next caller opens its device anew, once for all.
  void give_up(const Provider* lost);

 private:
  struct Entry {
    std::timed_mutex opening;
    std::mutex mutex;
    std::weak_ptr<Provider> provider;
  };
  std::shared_ptr<Entry> entry_for(const ProviderSource& source);
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Entry>> entries_;
};

}  // namespace pfrt
