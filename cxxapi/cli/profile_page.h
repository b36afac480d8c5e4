// SPDX-License-Identifier: Apache-2.0
//
// `pfrt profile --html`: a profile as a page for people who would rather look: steps by time and
// how near they come to what the machine can do, the last run's time line, memory, and what was
// done before the first run. The page refers to nothing outside of itself.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cli {

// What the machine can do at most, on as many threads as the runs had; 0 = not measured.
struct Roofline {
  double gflops = 0;  // float32
  struct Level {
    std::string name;    // "read L2"
    uint64_t bytes = 0;  // that it holds
    double gbytes = 0;   // a second
  };
  std::vector<Level> levels;  // the nearest first; the last holds everything
};

// Measures for about |seconds|; nothing where no provider can.
Roofline measure_roofline(uint32_t threads, double seconds);

// |trace|: the text of the file that end_profiling wrote.
std::string profile_page(const std::string& model, const std::string& trace,
                         const Roofline& roofline);

}  // namespace cli
