// SPDX-License-Identifier: Apache-2.0
//
// Products of matrices on a square, and of a vector and a matrix.
#include <utility>

#include "providers/wse/oracle/plan.h"

namespace pfrt::wse::oracle {
namespace {

using Kind = Operation::Kind;

enum Color { kMoveA, kMoveB, kAlign };

// The tile at |block_row| and |block_column| of a row-major matrix of |width| columns.
std::vector<float> load_tile(const Plan& plan, const std::vector<float>& from, int64_t width,
                             int64_t block_row, int64_t block_column, int64_t rows,
                             int64_t columns) {
  std::vector<float> out;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t first = (block_row * rows + row) * width + block_column * columns;
    const std::vector<float> part = plan.load(from, first, columns);
    out.insert(out.end(), part.begin(), part.end());
  }
  return out;
}

std::vector<float> load_a(const Plan& plan, int block_row, int block_column) {
  const Case& work = plan.work;
  return load_tile(plan, work.a, work.k * work.columns, block_row, block_column, work.m, work.k);
}

std::vector<float> load_b(const Plan& plan, int block_row, int block_column) {
  const Case& work = plan.work;
  return load_tile(plan, work.b, work.n * work.columns, block_row, block_column, work.k, work.n);
}

// c += a * b for tiles, k ascending for each element.
void multiply(const Plan& plan, const std::vector<float>& a, const std::vector<float>& b,
              std::vector<float>& c) {
  const size_t m = static_cast<size_t>(plan.work.m), n = static_cast<size_t>(plan.work.n);
  const size_t depth = static_cast<size_t>(plan.work.k);
  for (size_t k = 0; k < depth; ++k)
    for (size_t i = 0; i < m; ++i)
      for (size_t j = 0; j < n; ++j)
        c[i * n + j] = plan.arithmetic.multiply_add(a[i * depth + k], b[k * n + j], c[i * n + j]);
}

// Reading: the scalars of the map are the n of a row of B; each multiplies a column of A, of m.
double mapped_product_cycles(const Plan& plan) {
  const double calls = static_cast<double>(plan.work.n);
  const double map = plan.machine.map_setup +
                     calls * (plan.machine.map_call + plan.multiply_add_cycles(plan.work.m));
  return static_cast<double>(plan.work.k) * map;
}

// Cycles of a product with one call of the loop for each scalar of B, which moves an address.
double looped_product_cycles(const Plan& plan) {
  const double calls = static_cast<double>(plan.work.k) * static_cast<double>(plan.work.n);
  return calls *
         (plan.machine.loop_call + plan.machine.scalar + plan.multiply_add_cycles(plan.work.m));
}

// Cycles of every PE before a product of matrices.
double entering_cycles(const Plan& plan) {
  return 4 * plan.machine.task + 4 * plan.machine.role_test + plan.machine.dsd_setup +
         plan.copy_cycles(plan.work.m * plan.work.n);
}

// Physical indices in the order of the ring.
std::vector<int> ring_of(const Case& work) {
  std::vector<int> out;
  if (work.algorithm == Case::Algorithm::kCannon) {
    for (int i = 0; i < work.columns; ++i) out.push_back(i);
    return out;
  }
  for (int i = 0; i < work.columns; i += 2) out.push_back(i);
  const int last_odd = (work.columns / 2) * 2 - 1;
  for (int i = last_odd; i > 0; i -= 2) out.push_back(i);
  return out;
}

struct Ring {
  std::vector<int> order;
  int length;

  int at(int position) const { return order[static_cast<size_t>((position + length) % length)]; }
  Route route(const Line& line, int from, int to) const { return line.route(at(from), at(to)); }
};

// Row ry of the ring moves its A by ry places towards position 0, or by the rest of the ring the
// other way where that is shorter: P/2 rounds for the rows that need most.
// Reading: a row has nothing to do in rounds that it does not need.
void append_alignment(Plan& plan, const Ring& ring, int rx, int ry) {
  const Case& work = plan.work;
  const int pe = plan.pe(ring.at(rx), ring.at(ry));
  const bool forward = 2 * ry <= ring.length;
  const int rounds = forward ? ry : ring.length - ry;
  if (rounds == 0) return;
  Memory& memory = plan.memory_of(pe);
  const Route route = ring.route(row_line(work, ring.at(ry)), rx, forward ? rx - 1 : rx + 1);
  const Message out = plan.message(kAlign, memory.a, {route});
  const Message in = plan.message(kAlign, memory.next_a);
  plan.append(pe, {.kind = Kind::kExchange,
                   .times = rounds,
                   .issues = 2,
                   .tasks = 1,
                   .out = {out},
                   .in = {in},
                   .at_end = [&memory] { std::swap(memory.a, memory.next_a); }});
}

// Reading: a square of one PE issues its operations and has its tasks, but nothing is moved.
void append_steps(Plan& plan, const Ring& ring, int rx, int ry) {
  const Case& work = plan.work;
  const int column = ring.at(rx), row = ring.at(ry), pe = plan.pe(column, row);
  Memory& memory = plan.memory_of(pe);
  Operation step{.kind = Kind::kExchange,
                 .cycles = mapped_product_cycles(plan),
                 .times = ring.length,
                 .issues = 4,
                 .tasks = 4,
                 .at_end = [&plan, &memory, alone = ring.length == 1] {
                   multiply(plan, memory.a, memory.b, memory.c);
                   if (alone) return;
                   std::swap(memory.a, memory.next_a);
                   std::swap(memory.b, memory.next_b);
                 }};
  if (ring.length > 1) {
    const Route a = ring.route(row_line(work, row), rx, rx - 1);
    const Route b = ring.route(column_line(work, column), ry, ry - 1);
    step.out = {plan.message(kMoveA, memory.a, {a}), plan.message(kMoveB, memory.b, {b})};
    step.in = {plan.message(kMoveA, memory.next_a), plan.message(kMoveB, memory.next_b)};
  }
  plan.append(pe, std::move(step));
}

void clear_product(const Plan& plan, Memory& memory) {
  memory.c.assign(static_cast<size_t>(plan.work.m * plan.work.n), 0.0f);
  memory.next_a.assign(static_cast<size_t>(plan.work.m * plan.work.k), 0.0f);
  memory.next_b.assign(static_cast<size_t>(plan.work.k * plan.work.n), 0.0f);
}

// A multicast of SUMMA: the PE at |root| of |line| sends |own|, all take it into |copy|. Routers
// copy to both sides, so it is sent once. Reading: no role tests, which the README has for reduces
// only.
void append_summa_multicast(Plan& plan, const Line& line, int root, int color,
                            std::vector<float> Memory::*own, std::vector<float> Memory::*copy) {
  for (int i = 0; i < line.length; ++i) {
    Memory& memory = plan.memory_of(line.pe(i));
    if (i != root) {
      plan.append(line.pe(i), {.kind = Kind::kReceive, .in = {plan.message(color, memory.*copy)}});
      continue;
    }
    std::vector<Route> routes;
    if (root > 0) routes.push_back(line.route(root, 0, /*copies=*/true));
    if (root < line.length - 1)
      routes.push_back(line.route(root, line.length - 1, /*copies=*/true));
    Operation operation{.at_end = [&memory, own, copy] { memory.*copy = memory.*own; }};
    if (!routes.empty()) {
      operation.kind = Kind::kSend;
      operation.out = {plan.message(color, memory.*own, routes)};
    }
    plan.append(line.pe(i), std::move(operation));
  }
}

void multiply_vector(const Plan& plan, Memory& memory) {
  const size_t depth = memory.a.size(), n = memory.sum.size();
  for (size_t k = 0; k < depth; ++k)
    for (size_t j = 0; j < n; ++j)
      memory.sum[j] = plan.arithmetic.multiply_add(memory.a[k], memory.b[k * n + j], memory.sum[j]);
}

}  // namespace

void plan_shifted_product(Plan& plan) {
  const Ring ring{ring_of(plan.work), plan.work.columns};
  for (int ry = 0; ry < ring.length; ++ry)
    for (int rx = 0; rx < ring.length; ++rx) {
      const int column = ring.at(rx), row = ring.at(ry);
      Memory& memory = plan.memory_of(plan.pe(column, row));
      memory.a = load_a(plan, row, column);
      memory.b = load_b(plan, ring.at(rx + ry), column);
      clear_product(plan, memory);
      plan.append(plan.pe(column, row), {.cycles = entering_cycles(plan)});
      append_alignment(plan, ring, rx, ry);
      append_steps(plan, ring, rx, ry);
    }
}

void plan_summa(Plan& plan) {
  const Case& work = plan.work;
  for (int row = 0; row < work.rows; ++row)
    for (int column = 0; column < work.columns; ++column) {
      Memory& memory = plan.memory_of(plan.pe(column, row));
      memory.a = load_a(plan, row, column);
      memory.b = load_b(plan, row, column);
      clear_product(plan, memory);
      plan.append(plan.pe(column, row), {.cycles = entering_cycles(plan)});
    }
  for (int step = 0; step < work.columns; ++step) {
    for (int i = 0; i < work.rows; ++i)
      append_summa_multicast(plan, row_line(work, i), step, kMoveA, &Memory::a, &Memory::next_a);
    for (int i = 0; i < work.columns; ++i)
      append_summa_multicast(plan, column_line(work, i), step, kMoveB, &Memory::b, &Memory::next_b);
    for (int pe = 0; pe < work.rows * work.columns; ++pe) {
      Memory& memory = plan.memory_of(pe);
      plan.append(pe, {.cycles = 2 * plan.machine.task + looped_product_cycles(plan),
                       .at_end = [&plan, &memory] {
                         multiply(plan, memory.next_a, memory.next_b, memory.c);
                       }});
    }
  }
}

void plan_mesh_gemv(Plan& plan) {
  const Case& work = plan.work;
  const Machine& machine = plan.machine;
  const double call = machine.map_call + plan.multiply_add_cycles(work.n) + machine.dependent;
  const double clear = machine.dsd_setup + plan.copy_cycles(work.n);
  const double cycles =
      clear + machine.dsd_setup + machine.map_setup + static_cast<double>(work.k) * call;
  for (int row = 0; row < work.rows; ++row)
    for (int column = 0; column < work.columns; ++column) {
      const int pe = plan.pe(column, row);
      Memory& memory = plan.memory_of(pe);
      memory.a = plan.load(work.a, row * work.k, work.k);
      memory.b = load_b(plan, row, column);
      memory.sum.assign(static_cast<size_t>(work.n), 0.0f);
      plan.append(
          pe, {.cycles = cycles, .at_end = [&plan, &memory] { multiply_vector(plan, memory); }});
    }
  for (int column = 0; column < work.columns; ++column)
    append_tree_all_reduce(plan, column_line(work, column));
}

}  // namespace pfrt::wse::oracle
