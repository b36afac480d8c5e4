// SPDX-License-Identifier: Apache-2.0
//
// The compile function of the tests' providers, which compile each region alone.
#pragma once

#include "pyflame_rt/plugin.h"

namespace pfrt_test {

template <auto kCompileOne, auto kRelease>
pfrt_code compile_each(pfrt_provider* provider, const pfrt_region* regions, size_t region_size,
                       size_t count, const pfrt_sink* sink, pfrt_executable** out_executables,
                       size_t* out_region) {
  return pfrt_compile_each(provider, regions, region_size, count, sink, out_executables, out_region,
                           kCompileOne, kRelease);
}

}  // namespace pfrt_test
