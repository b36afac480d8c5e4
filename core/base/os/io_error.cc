// SPDX-License-Identifier: Apache-2.0
#include "core/base/os/io_error.h"

#include <cerrno>
#include <cstring>

namespace pfrt::os {

Status io_error(std::string_view what, const std::string& path, int code) {
  const Code kind = code == ENOENT || code == ENOTDIR ? Code::kNOT_FOUND
                    : code == ENOMEM                  ? Code::kOUT_OF_MEMORY
                                                      : Code::kIO;
  char text[128];
  return error(kind, what, " '", path, "': ", strerror_r(code, text, sizeof text));
}

Status check_path(std::string_view what, const std::string& path) {
  if (path.find('\0') == std::string::npos) return {};
  return error(Code::kINVALID_ARGUMENT, what, " '", path.c_str(),
               "...': the path has a NUL character in it");
}

}  // namespace pfrt::os
