// SPDX-License-Identifier: Apache-2.0
//
// A host that forks, without exec, while a session is open and has run on many threads. Children
// run it, open others, and exit; so does the parent.
#include <cstdio>

#include "test/hosts/host.h"

int main(int argc, char** argv) {
  const host::Opened opened;
  const std::string expected = opened.run();
  int failed = 0;
  const auto child = [&](const char* what, const std::function<int()>& fn) {
    if (const int code = host::in_child(fn)) {
      std::fprintf(stderr, "child that %s ended with %d\n", what, code);
      failed = 1;
    }
  };
  child("exits at once", [] { return 0; });
  child("runs the open session", [&] { return opened.run() == expected ? 0 : 1; });
  child("opens its own", [&] { return host::compare_results("child", argc, argv, host::work()); });
  child("forks again", [&] {
    return opened.run() == expected
               ? host::in_child([&] { return opened.run() == expected ? 0 : 1; })
               : 1;
  });
  if (opened.run() != expected) failed = 1;
  return failed | host::check("parent", argc, argv);
}
