// SPDX-License-Identifier: Apache-2.0
//
// Tells whether this build has a sanitizer, under which work takes many times as long.
#pragma once

namespace pfrt::test {

#if defined(PFRT_SANITIZE_ADDRESS) || defined(PFRT_SANITIZE_THREAD)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace pfrt::test
