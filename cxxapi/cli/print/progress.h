// SPDX-License-Identifier: Apache-2.0
//
// A line on the terminal that says how far a command is, and Ctrl-C as a request to stop.
#pragma once

#include <signal.h>

#include <string>

namespace cli {

// Writes a line to stderr, and only when that is a terminal. The destructor clears the line.
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

// Makes the first Ctrl-C set only requested(), while the object lives; the second ends the process
// as ever. Only one may exist at a time.
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
