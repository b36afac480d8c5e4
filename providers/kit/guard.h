// SPDX-License-Identifier: Apache-2.0
//
// The body of a function of a plug-in's table: failures and exceptions as the host's sink takes
// them. Thread-safe.
#pragma once

#include <exception>
#include <new>
#include <string_view>

#include "core/base/status.h"
#include "providers/kit/host_structs.h"
#include "pyflame_rt/plugin.h"

namespace pfrt {

inline pfrt_code report_status(const pfrt_sink* sink, const Status& status,
                               uint32_t node = PFRT_NO_INDEX) {
  return sink->fail(sink, static_cast<pfrt_code>(status.code()), node, to_c(status.message()));
}

// Calls |fn|, which returns a code. An exception becomes one too, and a message about |who|, as
// "the CPU provider".
template <typename Fn>
pfrt_code guarded(const pfrt_sink* sink, const char* who, Fn&& fn) noexcept {
  const auto fail = [&](pfrt_code code, const char* before, const char* what) noexcept {
    try {
      return sink->fail(sink, code, PFRT_NO_INDEX, to_c(message(who, before, what)));
    } catch (...) {
      return sink->fail(sink, code, PFRT_NO_INDEX, to_c(std::string_view(who)));
    }
  };
  try {
    return fn();
  } catch (const std::bad_alloc&) {
    return fail(PFRT_CODE_OUT_OF_MEMORY, " ", "ran out of memory");
  } catch (const std::exception& fault) {
    return fail(PFRT_CODE_INTERNAL, ": ", fault.what());
  } catch (...) {
    return fail(PFRT_CODE_INTERNAL, ": ", "an unknown exception");
  }
}

// Calls |fn| once |asked|, what the host asks, is known to be nothing that this build does not
// know.
template <typename Asked, typename Fn>
pfrt_code guarded(const pfrt_sink* sink, const char* who, const Asked& asked, Fn&& fn) noexcept {
  return guarded(sink, who, [&] {
    const Status status = check_host(asked);
    return status.ok() ? fn() : report_status(sink, status);
  });
}

}  // namespace pfrt
