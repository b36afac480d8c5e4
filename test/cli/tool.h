// SPDX-License-Identifier: Apache-2.0
//
// The tool as a program.
#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <string>

namespace pfrt_test {

struct Ran {
  int code = -1;
  std::string output;  // both streams
};

// |environment|: "NAME=VALUE ..." for that run alone.
inline Ran run(const std::string& arguments, const std::string& environment = "") {
  Ran out;
  const std::string command = environment + " " + PFRT_TOOL + " " + arguments + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return out;
  char buffer[4096];
  for (size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) out.output.append(buffer, n);
  const int status = pclose(pipe);
  out.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return out;
}

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace pfrt_test
