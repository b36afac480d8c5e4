// SPDX-License-Identifier: Apache-2.0
//
// What a page shows of the trace that `pfrt profile` writes: sums over the runs that were profiled,
// and the spans of the last of them. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cli {

// A step of the plan in all runs that count.
struct TraceStep {
  std::string nodes, ops, kernel, provider;  // nodes and operators are joined by commas
  double bytes = 0, flops = 0;               // of one run
  uint64_t times = 0;
  int64_t ns = 0;  // of all these
};

struct TraceSpan {
  // A share is a thread's part in a loop of a step that another thread runs.
  enum Kind : uint8_t { kStep, kShare, kStage };
  size_t what = 0;  // index into Trace::steps, for kStage into Trace::stages
  int64_t start_ns = 0, ns = 0;
  Kind kind = kStep;

  int64_t end_ns() const { return start_ns + ns; }
};

// Spans of a thread. Those of a row do not overlap, and the earliest is first; a span that lies
// within another is in a row below it.
struct TraceThread {
  std::string name;
  std::vector<std::vector<TraceSpan>> rows;
  int64_t busy_ns = 0;  // in which any span lies
};

struct Timeline {
  int64_t ns = 0;  // from the first start, which is 0, to the last end
  std::vector<TraceThread> threads;
  size_t left_out = 0;  // spans, the shortest ones
};

struct MemoryPoint {
  int64_t at_ns = 0;  // since the first one
  double working_bytes = 0, result_bytes = 0;
};

struct Trace {
  std::vector<TraceStep> steps;
  std::vector<std::string> stages;
  Timeline last_run, before;        // |before|: what is in no run, and planning
  std::vector<MemoryPoint> memory;  // of the runs that count; at most kMostPoints
  size_t runs = 0;                  // all of them
  std::vector<int64_t> run_ns;      // of those that count, the shortest first
  double wall_us = 0, processor_us = 0, parameter_bytes = 0, peak_resident_bytes = 0,
         dropped_events = 0;
  std::vector<double> busy_us;  // of each thread over the whole profile

  static constexpr size_t kMostPoints = 4000;
};

// Runs whose tag is "profiled" count, or all where none has it. A timeline keeps the |most| longest
// spans. Throws std::runtime_error where |text| is no trace.
Trace read_trace(std::string_view text, size_t most = 250000);

}  // namespace cli
