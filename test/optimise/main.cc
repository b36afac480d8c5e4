// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdio>
#include <exception>

#include "test/optimise/run.h"

int main(int argc, char** argv) {
  try {
    if (const auto code = pfrt_optimise::run_command_line(argc, argv)) return *code;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
