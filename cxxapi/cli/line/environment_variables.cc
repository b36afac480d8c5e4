// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/line/environment_variables.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "cxxapi/cli/line/mistakes.h"
#include "cxxapi/cli/line/usage_error.h"

namespace cli {
namespace {

[[noreturn]] void refuse(const std::string& name, const std::string& value,
                         const std::string& allowed) {
  throw UsageError("the environment has " + name + "=" + value + ": " + allowed);
}

// Returns the value; unset and empty mean the default.
std::string value_of(const char* name) {
  const char* value = ::secure_getenv(name);
  return value == nullptr ? "" : value;
}

void check_word(const char* name, const std::vector<std::string>& words,
                const std::string& meaning) {
  const std::string value = value_of(name);
  if (value.empty() || std::find(words.begin(), words.end(), value) != words.end()) return;
  std::string list;
  for (const std::string& word : words) list += (list.empty() ? "" : ", ") + word;
  const std::string meant = nearest(value, words);
  refuse(name, value,
         meaning + " " + list + (meant.empty() ? "" : "; did you mean " + meant + "?"));
}

void check_folder(const char* name, const std::string& meaning) {
  const std::string value = value_of(name);
  std::error_code error;
  if (value.empty()) return;
  if (!std::filesystem::is_directory(value, error))
    refuse(name, value, meaning + ", and this is not one");
  if (::access(value.c_str(), W_OK | X_OK) != 0)
    refuse(name, value, meaning + ", and this cannot be written to: " + std::strerror(errno));
}

}  // namespace

void check_variables() {
  check_word("PFRT_ISA",
             {"generic", "avx2", "avx_vnni", "avx512", "avx512_vnni", "avx512_bf16", "amx"},
             "the highest instruction set to use is one of");
  check_word("PFRT_JIT_PERF", {"0", "1"}, "whether to name generated code for perf is one of");
  check_folder("PFRT_JIT_DUMP", "generated code is written to a folder that exists");
}

}  // namespace cli
