// SPDX-License-Identifier: Apache-2.0
//
// Checks series of random models and reports failures: the model cut down, as text and as an ONNX
// file, and the command that repeats it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "test/optimise/check.h"

namespace pfrt_optimise {

struct RunOptions {
  uint64_t seed = 1;
  uint64_t first = 0, count = 1;
  std::string kind;  // kind of families, as generate() takes it
  std::vector<Config> configs;
  std::string program = "pfrt_optimise_test";  // in the command that repeats
  std::string folder = ".";                    // for small models
  size_t most_reports = 3;                     // further failures are only counted
};

struct Report {
  uint64_t index = 0;
  Config config;
  Failure failure;
  ModelSpec small;
  std::string text;
};

struct RunResult {
  uint64_t failures = 0;
  std::vector<Report> reports;
};

RunResult run_models(const RunOptions& options);

// Does what |argv| asks: --seed S --only N --models M --config C --kind K --save FOLDER. Returns
// the result for exit(), or nothing when there is no such option.
std::optional<int> run_command_line(int argc, char** argv);

}  // namespace pfrt_optimise
