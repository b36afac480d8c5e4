// SPDX-License-Identifier: Apache-2.0
//
// Reduces and multicasts on a line.
#include <algorithm>
#include <utility>

#include "providers/wse/oracle/plan.h"

namespace pfrt::wse::oracle {
namespace {

using Kind = Operation::Kind;

enum Color { kFirstChains, kFirstChainsBelow, kRootChains, kRootChainsBelow, kToLower, kToHigher };

struct Group {
  int first = 0, last = 0, root = 0;
};

std::vector<Group> groups_of(int length, int size, int root_offset) {
  std::vector<Group> out;
  size = std::min(size, length);  // sums below stay in range
  root_offset = std::min(root_offset, length);
  for (int first = 0; first < length; first += size) {
    const int last = std::min(first + size, length) - 1;
    out.push_back({first, last, std::min(first + root_offset, last)});
  }
  return out;
}

// Reading: every PE of the line does the tests, also those without a part in the phase.
void append_role_tests(Plan& plan, const Line& line, int count) {
  for (int i = 0; i < line.length; ++i)
    plan.append(line.pe(i), {.cycles = count * plan.machine.role_test});
}

// |positions| begin with the root. Nothing is moved where it is alone.
void append_chain(Plan& plan, const Line& line, const std::vector<int>& positions, int color) {
  if (positions.size() < 2) return;
  for (size_t i = 0; i < positions.size(); ++i) {
    const bool root = i == 0, far_end = i + 1 == positions.size();
    std::vector<float>& sum = plan.memory_of(line.pe(positions[i])).sum;
    Operation operation{.kind = root      ? Kind::kReceive
                                : far_end ? Kind::kSend
                                          : Kind::kRelay,
                        .adds = true};
    if (!far_end) operation.in = {plan.message(color, sum)};
    if (!root)
      operation.out = {plan.message(color, sum, {line.route(positions[i], positions[i - 1])})};
    plan.append(line.pe(positions[i]), std::move(operation));
  }
}

std::vector<int> count(int from, int to) {
  std::vector<int> out = {from};
  while (from != to) out.push_back(from += to > from ? 1 : -1);
  return out;
}

// Multicasts from the PE at |from| to all others up to the end of the line at |to|.
void append_multicast(Plan& plan, const Line& line, int from, int to, int color) {
  if (from == to) return;
  std::vector<float>& root = plan.memory_of(line.pe(from)).sum;
  const Route route = line.route(from, to, /*copies=*/true);
  plan.append(line.pe(from), {.kind = Kind::kSend, .out = {plan.message(color, root, {route})}});
  for (const int i : count(from, to)) {
    if (i == from) continue;
    std::vector<float>& copy = plan.memory_of(line.pe(i)).sum;
    plan.append(line.pe(i), {.kind = Kind::kReceive, .in = {plan.message(color, copy)}});
  }
}

// The chain of the roots of |groups| that begins with group |from| and ends with |to|.
std::vector<int> roots(const std::vector<Group>& groups, int from, int to) {
  std::vector<int> out;
  for (const int i : count(from, to)) out.push_back(groups[static_cast<size_t>(i)].root);
  return out;
}

void append_two_phase_reduce(Plan& plan, const Line& line) {
  const std::vector<Group> groups = groups_of(line.length, plan.work.group, /*root_offset=*/0);
  append_role_tests(plan, line, 1);
  for (const Group& group : groups)
    append_chain(plan, line, count(group.root, group.last), kFirstChains);
  if (groups.size() == 1) return;
  append_role_tests(plan, line, 1);
  append_chain(plan, line, roots(groups, 0, static_cast<int>(groups.size()) - 1), kRootChains);
}

}  // namespace

void append_tree_all_reduce(Plan& plan, const Line& line) {
  const int size = plan.work.group;
  const std::vector<Group> groups = groups_of(line.length, size, size / 2);
  const int last = static_cast<int>(groups.size()) - 1;
  const int middle = static_cast<int>(groups.size()) / 2;
  append_role_tests(plan, line, 4);
  for (const Group& group : groups) {
    append_chain(plan, line, count(group.root, group.last), kFirstChains);
    append_chain(plan, line, count(group.root, group.first), kFirstChainsBelow);
  }
  append_role_tests(plan, line, 4);
  append_chain(plan, line, roots(groups, middle, last), kRootChains);
  append_chain(plan, line, roots(groups, middle, 0), kRootChainsBelow);
  append_role_tests(plan, line, 2);
  const int root = groups[static_cast<size_t>(middle)].root;
  append_multicast(plan, line, root, 0, kToLower);
  append_multicast(plan, line, root, line.length - 1, kToHigher);
}

void plan_reduce(Plan& plan) {
  const Case& work = plan.work;
  const Line line = row_line(work, 0);
  const bool multicast = work.algorithm == Case::Algorithm::kMulticast;
  for (int i = 0; i < line.length; ++i)
    plan.memory_of(i).sum = multicast && i > 0 ? std::vector<float>(static_cast<size_t>(work.n))
                                               : plan.load(work.a, i * work.n, work.n);
  if (multicast) {
    append_multicast(plan, line, 0, line.length - 1, kToHigher);
  } else if (work.algorithm == Case::Algorithm::kTwoPhaseReduce) {
    append_two_phase_reduce(plan, line);
  } else if (work.algorithm == Case::Algorithm::kTreeAllReduce) {
    append_tree_all_reduce(plan, line);
  } else {
    append_role_tests(plan, line, 1);
    append_chain(plan, line, count(0, line.length - 1), kFirstChains);
  }
}

}  // namespace pfrt::wse::oracle
