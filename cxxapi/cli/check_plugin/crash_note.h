// SPDX-License-Identifier: Apache-2.0
//
// A note that a trial's process leaves for its parent when it ends before it can answer: the rule
// at stake, the call under way, and the fault. It lies in memory that both share. One trial at a
// time.
#pragma once

#include <string_view>

namespace cli::check {

struct CrashNote {
  char rule[64];
  char doing[512];
  char fault[1024];
};

// Returns the note of the trial that runs or ran last; made at the first call, which the parent
// makes.
CrashNote& crash_note();
// Sets the rule that a crash breaks from here on, and the call during which it happens. Longer
// texts are cut.
void note_doing(std::string_view rule, std::string_view doing);
// Ends the process with |fault| noted, and |rule| if not NULL: for signal handlers.
[[noreturn]] void die(const char* rule, const char* fault);

}  // namespace cli::check
