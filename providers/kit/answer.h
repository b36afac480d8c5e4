// SPDX-License-Identifier: Apache-2.0
//
// The parts of a provider's answer to a question: text, and vectors by name. The host copies them.
// Used on the thread of the call.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "pyflame_rt/plugin.h"

namespace pfrt {

inline void say(const pfrt_answer& out, std::string_view text) { out.text(&out, to_c(text)); }

inline void give(const pfrt_answer& out, const char* name, pfrt_dtype dtype, const void* data,
                 size_t count, size_t size) {
  const auto dim = static_cast<int64_t>(count);
  pfrt_tensor tensor{};
  tensor.struct_size = sizeof tensor;
  tensor.dtype = dtype;
  tensor.memory = PFRT_MEMORY_HOST;
  tensor.rank = 1;
  tensor.dims = &dim;
  tensor.data = const_cast<void*>(data);
  tensor.bytes = count * size;
  out.tensor(&out, to_c(name), &tensor);
}
inline void give(const pfrt_answer& out, const char* name, const std::vector<int64_t>& values) {
  give(out, name, PFRT_DTYPE_INT64, values.data(), values.size(), sizeof(int64_t));
}
inline void give(const pfrt_answer& out, const char* name, const std::vector<double>& values) {
  give(out, name, PFRT_DTYPE_FLOAT64, values.data(), values.size(), sizeof(double));
}
inline void give(const pfrt_answer& out, const char* name, const std::vector<pfrt_string>& values) {
  give(out, name, PFRT_DTYPE_STRING, values.data(), values.size(), sizeof(pfrt_string));
}
inline void give(const pfrt_answer& out, const char* name, double value) {
  give(out, name, PFRT_DTYPE_FLOAT64, &value, 1, sizeof value);
}

}  // namespace pfrt
