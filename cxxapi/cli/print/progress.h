// SPDX-License-Identifier: Apache-2.0
//
// One line on the terminal that says how far a command is, and Ctrl-C as a request to stop.
#pragma once

#include <signal.h>

#include <string>

namespace cli {

// Writes to stderr, and only when that is a terminal. Clears its line when it goes.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  void show(const std::string& text);
  void clear();

 private:
  bool terminal_, shown_ = false;
};

// While it lives the first Ctrl-C only sets requested(); the second ends the process as ever. One
// at a time.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  static bool requested();

 private:
  struct sigaction before_ {};
};

}  // namespace cli
