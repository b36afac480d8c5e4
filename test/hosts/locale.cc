// SPDX-License-Identifier: Apache-2.0
//
// A host that writes numbers in its own way, in C (where the build could make such a locale) and in
// C++.
#include <clocale>
#include <cstdio>
#include <locale>

#include "test/hosts/host.h"

namespace {

class Odd : public std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\1"; }
};

}  // namespace

int main(int argc, char** argv) {
  int failed = 0;
  if (setlocale(LC_ALL, "comma")) {
    char text[16];
    std::snprintf(text, sizeof text, "%.1f", 1.5);
    if (std::string(text) != "1,5") failed = 1;
    failed |= host::check("C locale with commas", argc, argv);
  } else {
    std::printf("no locale with commas: only C++'s is changed\n");
  }
  std::locale::global(std::locale(std::locale(), new Odd));
  return failed | host::check("C++ locale with commas", argc, argv);
}
