// SPDX-License-Identifier: Apache-2.0
//
// What a host asks a provider, checked before it is read: a host that is newer than the plug-in may
// ask what the plug-in does not know. That is UNSUPPORTED, and the next provider is asked. Tables
// that a host only offers (sinks, claims, contexts of steps) need no check. Thread-safe.
#pragma once

#include "core/base/abi/sized.h"
#include "pyflame_rt/plugin.h"

namespace pfrt {

// The arguments of a compile.
struct HostRegions {
  const pfrt_region* regions;
  size_t size;  // bytes from one to the next
  size_t count;
};

// The arguments of a copy.
struct HostCopies {
  const pfrt_device_copy* copies;
  size_t size;  // bytes from one to the next
  size_t count;
};

Status check_host(const pfrt_snapshot& snapshot);
Status check_host(const HostRegions& regions);
Status check_host(const HostCopies& copies);
Status check_host(const pfrt_op_query& query);
Status check_host(const pfrt_shapes& shapes);
Status check_host(const pfrt_question& question);

// Fills in an out-parameter of the host's as far as the host knows it.
template <typename T>
pfrt_code put(T* to, const T& from) {
  return static_cast<pfrt_code>(abi::write(to, from).code());
}

}  // namespace pfrt
