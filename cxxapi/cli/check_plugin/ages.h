// SPDX-License-Identifier: Apache-2.0
//
// The host's structs as a host of today and one of a later minor version pass them: at the end of a
// page, so that reading or writing beyond struct_size is caught.
#pragma once

#include <cstring>
#include <memory>
#include <string>

#include "cxxapi/cli/check_plugin/faults.h"
#include "pyflame_rt/custom.h"

namespace cli::check {

enum class Age { kNow, kNewer };

inline const char* age_text(Age age) {
  return age == Age::kNow ? "for this host" : "for a newer host, whose structs are larger";
}

constexpr size_t kMore = 64;  // bytes that a newer host's structs have more

template <typename T>
constexpr size_t size_at(Age age) {
  return sizeof(T) + (age == Age::kNewer ? kMore : 0);
}

inline uint32_t abi_at(Age age) { return PFRT_ABI_VERSION + (age == Age::kNewer ? 1u : 0u); }

inline constexpr Guards kHostStruct = {"struct-size-host", "struct-size-host",
                                       "read-only-arguments"};

// A struct of the host's. T starts with {struct_size, abi}.
template <typename T>
class Sized {
 public:
  Sized(Age age, const T& from, const char* name)
      : memory_(size_at<T>(age), name, kHostStruct, alignof(T)) {
    std::memcpy(memory_.data(), &from, sizeof(T));
    // Such a host leaves zero what a plug-in of today's minor does not know.
    std::memset(memory_.data() + sizeof(T), 0, memory_.size() - sizeof(T));
    get()->struct_size = static_cast<uint32_t>(memory_.size());
    get()->abi = abi_at(age);
  }
  T* get() const { return reinterpret_cast<T*>(memory_.data()); }
  // Whether the bytes beyond this build's struct are unchanged.
  bool tail_intact() const {
    for (size_t i = sizeof(T); i < memory_.size(); ++i)
      if (memory_.data()[i] != 0) return false;
    return true;
  }
  void make_read_only() { memory_.allow(Guarded::Access::kRead); }

 private:
  Guarded memory_;
};

}  // namespace cli::check
