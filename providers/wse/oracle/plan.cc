// SPDX-License-Identifier: Apache-2.0
#include "providers/wse/oracle/plan.h"

#include <cstdlib>
#include <utility>

namespace pfrt::wse::oracle {

Plan::Plan(const Machine& machine_in, const Case& work_in)
    : machine(machine_in),
      work(work_in),
      arithmetic{work_in.fp16},
      memory(static_cast<size_t>(work_in.columns * work_in.rows)),
      programs(memory.size()) {}

void Plan::append(int at, Operation operation) {
  programs[static_cast<size_t>(at)].push_back(std::move(operation));
}

double Plan::multiply_add_cycles(int64_t elements) const {
  return (work.fp16 ? machine.fp16_fmac : machine.fp32_fmac).cycles(elements);
}

double Plan::copy_cycles(int64_t elements) const {
  return (work.fp16 ? machine.fp16_copy : machine.fp32_copy).cycles(elements);
}

std::vector<float> Plan::load(const std::vector<float>& from, int64_t first, int64_t count) const {
  std::vector<float> out(from.begin() + first, from.begin() + first + count);
  for (float& value : out) value = arithmetic.load(value);
  return out;
}

Message Plan::message(int color, std::vector<float>& data, std::vector<Route> routes) const {
  return {static_cast<uint8_t>(color), work.fp16 ? 2 : 1, &data, std::move(routes)};
}

Route Line::route(int from, int to, bool copies) const {
  return {to < from ? lower : higher, static_cast<uint8_t>(std::abs(to - from)), copies};
}

Line row_line(const Case& work, int row) {
  return {row * work.columns, 1, work.columns, Direction::kWest, Direction::kEast};
}

Line column_line(const Case& work, int column) {
  return {column, work.columns, work.rows, Direction::kNorth, Direction::kSouth};
}

}  // namespace pfrt::wse::oracle
