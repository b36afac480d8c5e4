// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/check_plugin/crash_note.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace cli::check {
namespace {

template <size_t kSize>
void put(char (&to)[kSize], std::string_view text) {
  const size_t size = std::min(text.size(), kSize - 1);
  std::memcpy(to, text.data(), size);
  to[size] = 0;
}

}  // namespace

CrashNote& crash_note() {
  static CrashNote* const shared = [] {
    void* map =
        mmap(nullptr, sizeof(CrashNote), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) throw std::runtime_error("no shared memory for the tests");
    return static_cast<CrashNote*>(map);
  }();
  return *shared;
}

void note_doing(std::string_view rule, std::string_view doing) {
  put(crash_note().rule, rule);
  put(crash_note().doing, doing);
}

void die(const char* rule, const char* fault) {
  if (rule) put(crash_note().rule, rule);
  put(crash_note().fault, fault);
  _exit(70);
}

}  // namespace cli::check
