// SPDX-License-Identifier: Apache-2.0
//
// Checks series of random models and tells of what fails: the model cut down, as text and as an
// ONNX file, and the line that repeats it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "test/optimise/check.h"

namespace pfrt_optimise {

struct RunOptions {
  uint64_t seed = 1;
  uint64_t first = 0, count = 1;
  std::string kind;  // of families, as generate takes it
  std::vector<Config> configs;
  std::string program = "pfrt_optimise_test";  // for the line that repeats
  std::string folder = ".";                    // of small models
  size_t most_reports = 3;                     // failures beyond are counted alone
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

// What |argv| asks for: --seed S --only N --models M --config C --kind K --save FOLDER; nothing
// when it has none of these. The result is for exit().
std::optional<int> run_command_line(int argc, char** argv);

}  // namespace pfrt_optimise
