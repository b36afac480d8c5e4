// SPDX-License-Identifier: Apache-2.0
//
// `pfrt profile --html`: a profile as a page: the last run's time line by families of kernels,
// memory, the work before the first run, and steps by time and how near they come to the machine's
// limits. The page refers to nothing outside of itself.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cli {

// Peak rates of the machine, on as many threads as the runs had; 0 = not measured.
struct Roofline {
  double gflops = 0;  // float32
  struct Level {
    std::string name;    // "read L2"
    uint64_t bytes = 0;  // its capacity
    double gbytes = 0;   // gigabytes read per second
  };
  std::vector<Level> levels;  // the nearest first; the last holds everything
};

// Measures for about |seconds|; returns no figures where no provider can measure.
Roofline measure_roofline(uint32_t threads, double seconds);

// Returns the page. |trace| is the text of the file that end_profiling wrote; another text throws
// std::runtime_error.
std::string profile_page(const std::string& model, const std::string& trace,
                         const Roofline& roofline);

}  // namespace cli
