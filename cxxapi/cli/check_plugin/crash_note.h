// SPDX-License-Identifier: Apache-2.0
//
// What a trial's process leaves for its parent when it ends before it can answer: which rule was at
// stake, what it was doing, and what went wrong. Memory that both share. One trial at a time.
#pragma once

#include <string_view>

namespace cli::check {

struct CrashNote {
  char rule[64];
  char doing[512];
  char fault[1024];
};

// Of the trial that runs or ran last; made at the first call, which the parent makes.
CrashNote& crash_note();
// From here on a crash breaks |rule|, and happens while |doing|. Longer texts are cut.
void note_doing(std::string_view rule, std::string_view doing);
// Ends the process with |fault| noted, and |rule| if not NULL: for signal handlers.
[[noreturn]] void die(const char* rule, const char* fault);

}  // namespace cli::check
