// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/print/counters.h"

#include <cmath>

#include "cxxapi/cli/print/table.h"
#include "cxxapi/cli/print/text.h"

namespace cli {
namespace {

// Writes a count with all digits, since each may matter; other figures are rounded.
std::string figure_text(double value) {
  if (!(std::fabs(value) < 1e15) || value != std::floor(value)) return number_text(value);
  return std::to_string(static_cast<int64_t>(value));
}

std::string steps_text(const pyflame_rt::ExplainCounter& counter) {
  std::string first = std::to_string(counter.first_step);
  if (counter.step_count <= 1) return first;
  return first + "-" + std::to_string(counter.first_step + counter.step_count - 1);
}

}  // namespace

void print_counters(const std::vector<pyflame_rt::ExplainCounter>& counters) {
  if (counters.empty()) return;
  Table table({"steps", "provider", "counter", "value", "unit"});
  for (const auto& counter : counters)
    table.add({steps_text(counter), counter.provider, one_line(counter.name),
               figure_text(counter.value), one_line(counter.unit)});
  std::printf("\n");
  table.print(60);
}

void write_counters_json(const std::vector<pyflame_rt::ExplainCounter>& counters, Json* json) {
  json->key("counters").list();
  for (const auto& counter : counters)
    json->object()
        .field("first_step", counter.first_step)
        .field("step_count", counter.step_count)
        .field("provider", counter.provider)
        .field("name", counter.name)
        .field("unit", counter.unit)
        .field("value", counter.value)
        .end();
  json->end();
}

}  // namespace cli
