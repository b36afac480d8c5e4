// SPDX-License-Identifier: Apache-2.0
//
// The host's structs as a host of the first minor version, of today, and of a later one would pass
// them: at the end of a page, so that reading or writing more than struct_size says is caught.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "cxxapi/cli/check_plugin/faults.h"
#include "pyflame_rt/custom.h"

namespace cli::check {

enum class Age { kFirst, kNow, kNewer };

inline const char* age_text(Age age) {
  return age == Age::kFirst ? "for a host of ABI 1.0"
         : age == Age::kNow ? "for this host"
                            : "for a newer host, whose structs are larger";
}

constexpr size_t kMore = 64;  // bytes that a newer host's structs have more

// Sizes of the host's structs in ABI 1.0.
template <typename T>
inline constexpr size_t kFirstSize = 0;
#define PFRT_FIRST_SIZE(type, bytes)                \
  template <>                                       \
  inline constexpr size_t kFirstSize<type> = bytes; \
  static_assert(sizeof(type) >= bytes)
PFRT_FIRST_SIZE(pfrt_host_info, 40);
PFRT_FIRST_SIZE(pfrt_plugin_desc, 80);
PFRT_FIRST_SIZE(pfrt_sink, 32);
PFRT_FIRST_SIZE(pfrt_kernel_info, 96);
PFRT_FIRST_SIZE(pfrt_snapshot, 48);
PFRT_FIRST_SIZE(pfrt_op_query, 40);
PFRT_FIRST_SIZE(pfrt_claims, 40);
PFRT_FIRST_SIZE(pfrt_region, 56);
PFRT_FIRST_SIZE(pfrt_shapes, 32);
PFRT_FIRST_SIZE(pfrt_step_context, 72);
PFRT_FIRST_SIZE(pfrt_program, 48);
PFRT_FIRST_SIZE(pfrt_import_request, 136);
PFRT_FIRST_SIZE(pfrt_export_request, 88);
// Since 1.1:
PFRT_FIRST_SIZE(pfrt_service_request, sizeof(pfrt_service_request));
PFRT_FIRST_SIZE(pfrt_op_infer, sizeof(pfrt_op_infer));
PFRT_FIRST_SIZE(pfrt_op_compute, sizeof(pfrt_op_compute));
#undef PFRT_FIRST_SIZE

template <typename T>
constexpr size_t size_at(Age age) {
  return age == Age::kFirst ? kFirstSize<T> : sizeof(T) + (age == Age::kNewer ? kMore : 0);
}

inline uint32_t abi_at(Age age) {
  return age == Age::kFirst ? PFRT_MAKE_ABI(PFRT_ABI_MAJOR, 0)
                            : PFRT_ABI_VERSION + (age == Age::kNewer ? 1u : 0u);
}

inline constexpr Guards kHostStruct = {"struct-size-host", "struct-size-host",
                                       "read-only-arguments"};

// A struct of the host's. T starts with {struct_size, abi}.
template <typename T>
class Sized {
 public:
  Sized(Age age, const T& from, const char* name)
      : memory_(size_at<T>(age), name, kHostStruct, alignof(T)) {
    std::memcpy(memory_.data(), &from, std::min(sizeof(T), memory_.size()));
    get()->struct_size = static_cast<uint32_t>(memory_.size());
    get()->abi = abi_at(age);
  }
  T* get() const { return reinterpret_cast<T*>(memory_.data()); }
  // Whether what is beyond this build's struct is as it was.
  bool tail_intact() const {
    for (size_t i = sizeof(T); i < memory_.size(); ++i)
      if (static_cast<unsigned char>(memory_.data()[i]) != 0xcd) return false;
    return true;
  }
  void make_read_only() { memory_.allow(Guarded::Access::kRead); }

 private:
  Guarded memory_;
};

}  // namespace cli::check
