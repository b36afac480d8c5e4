// SPDX-License-Identifier: Apache-2.0
//
// The body of an ABI function: statuses and exceptions as they cross, sized structs as they are
// read and written.
#pragma once

#include <exception>
#include <new>

#include "capi/handle/alive.h"
#include "core/base/abi/sized.h"
#include "core/base/os/floating_point.h"
#include "core/base/os/fork.h"
#include "core/base/status.h"
#include "pyflame_rt/pyflame_rt.h"

namespace pfrt::capi {

// Returns null on success; the immortal out-of-memory status when even the error cannot be
// allocated.
pfrt_status* to_status(Status status) noexcept;
pfrt_status* out_of_memory() noexcept;
pfrt_status* unexpected(const char* what) noexcept;
// Returns the Status behind a handle, for host callbacks that got one from the tables; consumes it.
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
  } catch (...) {  // thrown by a client's function
    return unexpected("it is no std::exception");
  }
}

// Every struct of the caller's is read and filled in by these.
using abi::read;
using abi::write;

inline Status null_argument(const char* name) {
  return error(Code::kINVALID_ARGUMENT, "argument '", name, "' is NULL");
}

}  // namespace pfrt::capi
