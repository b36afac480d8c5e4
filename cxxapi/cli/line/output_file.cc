// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/line/output_file.h"

#include <filesystem>
#include <system_error>

#include "cxxapi/cli/line/usage_error.h"

namespace cli {

void keep_input(const std::string& in, const std::string& out, const std::string& remedy) {
  std::error_code error;
  if (!std::filesystem::equivalent(in, out, error)) return;
  throw UsageError("'" + out + "' would be overwritten, and it is the input" +
                   (in == out ? "" : " '" + in + "'") + ": " + remedy);
}

}  // namespace cli
