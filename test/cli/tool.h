// SPDX-License-Identifier: Apache-2.0
//
// The tool as a program.
#pragma once

#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace pfrt_test {

struct Ran {
  int code = -1;
  std::string output;  // both streams
};

// |environment| is "NAME=VALUE ..." and holds for that run alone.
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

// Runs the tool with a terminal of |columns| for all streams and returns its output. When |awaited|
// has appeared there, Ctrl-C is pressed; empty = never.
inline Ran run_in_terminal(const std::string& arguments, unsigned short columns = 80,
                           const std::string& awaited = "") {
  Ran out;
  winsize size{};
  size.ws_row = 25;
  size.ws_col = columns;
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, &size);
  if (child < 0) return out;
  if (child == 0) {
    const std::string command = std::string("exec ") + PFRT_TOOL + " " + arguments;
    execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  bool pressed = awaited.empty();
  char buffer[4096];
  for (ssize_t n; (n = read(terminal, buffer, sizeof buffer)) > 0;) {
    out.output.append(buffer, static_cast<size_t>(n));
    if (pressed || out.output.find(awaited) == std::string::npos) continue;
    pressed = write(terminal, "\x03", 1) == 1;
  }
  int status = 0;
  waitpid(child, &status, 0);
  close(terminal);
  out.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return out;
}

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace pfrt_test
