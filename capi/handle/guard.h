// SPDX-License-Identifier: Apache-2.0
//
// The body of an ABI function: statuses and exceptions as they cross, sized structs as they are
// read and written.
#pragma once

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>

#include "capi/handle/alive.h"
#include "core/base/os/floating_point.h"
#include "core/base/os/fork.h"
#include "core/base/status.h"
#include "pyflame_rt/pyflame_rt.h"

namespace pfrt::capi {

// Null on success; the immortal out-of-memory status when even the error cannot be allocated.
pfrt_status* to_status(Status status) noexcept;
pfrt_status* out_of_memory() noexcept;
pfrt_status* unexpected(const char* what) noexcept;
// The Status behind a handle, for host callbacks that got one from the tables; consumes it.
Status from_status(pfrt_status* status);

// Runs |fn| (returning Status) as the body of an ABI function: nothing it throws crosses, and the
// caller's floating-point environment is set aside.
template <typename Fn>
pfrt_status* guard(Fn&& fn) noexcept {
  const Inside inside;
  const os::ForkScope scope;
  const FloatingPointScope floating_point;
  try {
    return to_status(fn());
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::exception& e) {
    return unexpected(e.what());
  } catch (...) {  // of a client's function
    return unexpected("it is no std::exception");
  }
}

// A copy of a sized struct, fields the caller does not know being zero.
template <typename T>
T read(const T* from) {
  T out{};
  if (!from) return out;
  std::memcpy(&out, from, std::min<size_t>(from->struct_size, sizeof(T)));
  return out;
}

// Fills a sized struct of the caller's, as far as the caller knows it.
template <typename T>
void write(T* to, T from) {
  const uint32_t size = to->struct_size;
  from.struct_size = size;
  std::memcpy(static_cast<void*>(to), &from, std::min<size_t>(size, sizeof(T)));
}

inline Status null_argument(const char* name) {
  return error(Code::kINVALID_ARGUMENT, "argument '", name, "' is NULL");
}

}  // namespace pfrt::capi
