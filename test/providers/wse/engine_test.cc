// SPDX-License-Identifier: Apache-2.0
//
// Compares the phase engine with the event simulator of providers/wse/oracle, which shares only the
// machine's numbers with it, over random small cases; and with closed forms.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "providers/wse/oracle/oracle.h"
#include "providers/wse/schedule/products.h"
#include "test/providers/wse/values.h"

namespace pfrt::wse::test {
namespace {

using oracle::Case;
using Algorithm = Case::Algorithm;

Arithmetic arithmetic_of(const Case& work) {
  return work.fp16 ? Arithmetic::kFp16 : Arithmetic::kFp32;
}

std::string text_of(const Case& work) {
  return message("algorithm ", static_cast<int>(work.algorithm), ", ", work.columns, "x", work.rows,
                 " PEs, group ", work.group, ", m k n ", work.m, " ", work.k, " ", work.n,
                 work.fp16 ? ", fp16" : ", fp32");
}

// ---- values by the engine's side ----

// Sums from the last of |parts| to the first, adding each to the sum that arrives.
float chain_sum(Arithmetic type, const std::vector<float>& parts) {
  float out = parts.back();
  for (size_t i = parts.size() - 1; i-- > 0;) out = round_to(type, out + parts[i]);
  return out;
}

float reduce_sum(const Case& work, const std::vector<float>& parts) {
  const Arithmetic type = arithmetic_of(work);
  if (work.algorithm == Algorithm::kChainReduce) return chain_sum(type, parts);
  if (work.algorithm == Algorithm::kTreeAllReduce)
    return tree_join(type, parts, work.group, Join::kAdd);
  std::vector<float> roots;
  for (size_t first = 0; first < parts.size(); first += static_cast<size_t>(work.group)) {
    const size_t last = std::min(parts.size(), first + static_cast<size_t>(work.group));
    roots.push_back(chain_sum(type, {parts.begin() + static_cast<ptrdiff_t>(first),
                                     parts.begin() + static_cast<ptrdiff_t>(last)}));
  }
  return chain_sum(type, roots);
}

std::vector<float> line_result(const Case& work) {
  std::vector<float> out;
  if (work.algorithm == Algorithm::kMulticast) {
    for (int pe = 0; pe < work.columns; ++pe)
      out.insert(out.end(), work.a.begin(), work.a.begin() + work.n);
    return out;
  }
  for (int64_t j = 0; j < work.n; ++j) {
    std::vector<float> parts;
    for (int64_t pe = 0; pe < work.columns; ++pe)
      parts.push_back(work.a[static_cast<size_t>(pe * work.n + j)]);
    out.push_back(reduce_sum(work, parts));
  }
  return out;
}

ProductAlgorithm product_algorithm(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kCannon:
      return ProductAlgorithm::kCannon;
    case Algorithm::kSumma:
      return ProductAlgorithm::kSumma;
    case Algorithm::kMeshGemv:
      return ProductAlgorithm::kMeshGemv;
    default:
      return ProductAlgorithm::kMeshGemm;
  }
}

std::vector<float> product_result(const Case& work) {
  const bool vector = work.algorithm == Algorithm::kMeshGemv;
  const int64_t side = work.rows, n = work.n * work.columns, k = work.k * side;
  const int64_t m = vector ? 1 : work.m * side;
  std::vector<float> out(static_cast<size_t>(m * n), 0.0F);
  EXPECT_TRUE(gemm_values({product_algorithm(work.algorithm), arithmetic_of(work), m, k, n, side,
                           work.group, work.a.data(), k, work.b.data(), n, out.data(), n},
                          on_this_thread));
  return out;
}

std::vector<float> exchange_result(const Case& work) {
  const bool halo = work.algorithm == Algorithm::kHalo;
  const int64_t sides = halo ? 4 : 1;
  std::vector<float> out;
  for (int64_t y = 0; y < work.rows; ++y)
    for (int64_t x = 0; x < work.columns; ++x)
      for (int64_t side = 0; side < sides; ++side) {
        // The sides are N, E, S, W; a cache's entries come from the south.
        const int64_t way = halo ? side : 2;
        const int64_t from_x = x + (way == 1) - (way == 3), from_y = y + (way == 2) - (way == 0);
        const bool rim = from_x < 0 || from_x >= work.columns || from_y < 0 || from_y >= work.rows;
        const int64_t edge = halo ? (side + 2) % 4 : 0;
        const int64_t first = ((from_y * work.columns + from_x) * sides + edge) * work.n;
        for (int64_t j = 0; j < work.n; ++j)
          out.push_back(rim ? 0.0F : work.a[static_cast<size_t>(first + j)]);
      }
  return out;
}

// ---- cycles by the engine ----

double engine_cycles(const Machine& m, const Case& work) {
  Schedule s(m, arithmetic_of(work), work.columns, work.rows);
  const int64_t wavelets = s.wavelets(work.n);
  const auto run = [&](const std::function<void(Grid&)>& fn) {
    s.phase(PhaseKind::kCollective, "phase", 0, fn);
  };
  GemmOptions options;
  options.algorithm = product_algorithm(work.algorithm);
  switch (work.algorithm) {
    case Algorithm::kChainReduce:
      run([&](Grid& grid) { chain_reduce(grid, m, Axis::kX, wavelets); });
      break;
    case Algorithm::kTwoPhaseReduce:
      run([&](Grid& grid) { two_phase_reduce(grid, m, Axis::kX, work.group, wavelets); });
      break;
    case Algorithm::kMulticast:
      run([&](Grid& grid) { multicast(grid, m, Axis::kX, 0, wavelets); });
      break;
    case Algorithm::kTreeAllReduce:
      run([&](Grid& grid) { tree_all_reduce(grid, m, Axis::kX, work.group, wavelets); });
      break;
    case Algorithm::kMeshGemm:
    case Algorithm::kCannon:
    case Algorithm::kSumma:
      gemm(s, {work.m, work.k, work.n}, options);
      break;
    case Algorithm::kMeshGemv:
      gemv(s, {1, work.k, work.n}, Axis::kY, work.group);
      break;
    case Algorithm::kHalo:
      run([&](Grid& grid) { exchange_halo(grid, m, wavelets); });
      break;
    case Algorithm::kKvShift:
      run([&](Grid& grid) { shift_up(grid, m, wavelets); });
      break;
  }
  return s.finish();
}

// ---- random cases ----

class RandomCases {
 public:
  explicit RandomCases(uint64_t seed) : random_(seed) {}

  Case line(Algorithm algorithm) {
    Case out = start(algorithm);
    out.columns = between(2, 40);
    // A test below has a single group.
    const bool groups = algorithm == Algorithm::kTwoPhaseReduce;
    out.group = groups ? between(1, out.columns - 1) : between(1, out.columns + 2);
    out.n = between(1, 60);
    const auto type = arithmetic_of(out);
    out.a = random_values(out.columns * out.n, type, random_());
    return out;
  }
  Case square(Algorithm algorithm) {
    Case out = start(algorithm);
    out.columns = out.rows = between(2, 9);  // a test below has one PE
    out.m = between(1, 9);
    out.k = between(1, 9);
    out.n = between(1, 9);
    const int64_t pes = int64_t{out.columns} * out.rows;
    out.a = random_values(out.m * out.k * pes, arithmetic_of(out), random_());
    out.b = random_values(out.k * out.n * pes, arithmetic_of(out), random_());
    return out;
  }
  Case vector() {
    Case out = start(Algorithm::kMeshGemv);
    out.columns = out.rows = between(2, 12);
    out.k = between(1, 12);
    out.n = between(1, 12);
    out.group = between(1, out.rows + 1);
    out.a = random_values(out.k * out.rows, arithmetic_of(out), random_());
    out.b = random_values(out.k * out.n * out.columns * out.rows, arithmetic_of(out), random_());
    return out;
  }
  // The grid is so large that neighbouring PEs exist that have all their neighbours. PEs at the rim
  // have less to send and begin earlier.
  Case exchange(Algorithm algorithm) {
    Case out = start(algorithm);
    out.columns = between(4, 9);
    out.rows = between(4, 9);
    out.n = between(1, 100);
    out.a = random_values(out.n * out.columns * out.rows * (algorithm == Algorithm::kHalo ? 4 : 1),
                          arithmetic_of(out), random_());
    return out;
  }

 private:
  int between(int low, int high) {
    return low + static_cast<int>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  Case start(Algorithm algorithm) {
    Case out;
    out.algorithm = algorithm;
    out.fp16 = between(0, 1) != 0;
    return out;
  }
  std::mt19937_64 random_;
};

struct EngineMachine {
  const char* name;
  bool silicon;
};
constexpr EngineMachine kEngineMachines[] = {{"wse2", false}, {"wse3", false}, {"wse3", true}};
constexpr uint64_t kSeeds = 25;

// Expects the engine's values and cycles to match the oracle's. The engine has neither queues nor
// turns at a ramp. Where messages of two phases, or from two sides, come to a PE at once, and the
// whole takes a hundred cycles, |tolerance| covers their cost.
template <typename MakeCase>
void expect_engine_is_oracle(MakeCase make_case, std::vector<float> (*values)(const Case&),
                             double tolerance = 0.01) {
  for (const auto& [name, silicon] : kEngineMachines) {
    const Machine m = machine_of(name, silicon);
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      RandomCases random(seed);
      const Case work = make_case(random);
      SCOPED_TRACE(message(m.identity(), ", seed ", seed, ": ", text_of(work)));
      const Result<oracle::Outcome> outcome = oracle::simulate(m, work);
      ASSERT_TRUE(outcome.ok()) << outcome.status().message();
      const double cycles = engine_cycles(m, work);
      EXPECT_NEAR(cycles, outcome.value().cycles, tolerance * outcome.value().cycles);
      EXPECT_EQ(values(work), outcome.value().values);
    }
  }
}

TEST(Engine, chains_are_those_of_the_oracle) {
  expect_engine_is_oracle([](RandomCases& r) { return r.line(Algorithm::kChainReduce); },
                          line_result);
}

TEST(Engine, two_phase_reduces_are_those_of_the_oracle) {
  expect_engine_is_oracle([](RandomCases& r) { return r.line(Algorithm::kTwoPhaseReduce); },
                          line_result, 0.1);
}

TEST(Engine, multicasts_are_those_of_the_oracle) {
  expect_engine_is_oracle([](RandomCases& r) { return r.line(Algorithm::kMulticast); },
                          line_result);
}

TEST(Engine, trees_are_those_of_the_oracle) {
  expect_engine_is_oracle([](RandomCases& r) { return r.line(Algorithm::kTreeAllReduce); },
                          line_result, 0.1);
}

TEST(Engine, mesh_gemm_is_that_of_the_oracle) {
  expect_engine_is_oracle([](RandomCases& r) { return r.square(Algorithm::kMeshGemm); },
                          product_result);
}

TEST(Engine, cannon_is_that_of_the_oracle) {
  expect_engine_is_oracle([](RandomCases& r) { return r.square(Algorithm::kCannon); },
                          product_result);
}

TEST(Engine, summa_is_that_of_the_oracle) {
  expect_engine_is_oracle([](RandomCases& r) { return r.square(Algorithm::kSumma); },
                          product_result);
}

TEST(Engine, mesh_gemv_is_that_of_the_oracle) {
  expect_engine_is_oracle([](RandomCases& r) { return r.vector(); }, product_result, 0.03);
}

TEST(Engine, halos_are_those_of_the_oracle) {
  expect_engine_is_oracle([](RandomCases& r) { return r.exchange(Algorithm::kHalo); },
                          exchange_result, 0.35);
}

TEST(Engine, cache_shifts_are_those_of_the_oracle) {
  expect_engine_is_oracle([](RandomCases& r) { return r.exchange(Algorithm::kKvShift); },
                          exchange_result);
}

// A square of one PE has nobody to send to, so its datapath loses nothing to wavelets.
TEST(Engine, products_on_one_pe_move_nothing) {
  for (const Algorithm algorithm : {Algorithm::kMeshGemm, Algorithm::kCannon, Algorithm::kSumma}) {
    Case work;
    work.algorithm = algorithm;
    work.m = 4;
    work.k = 9;
    work.n = 4;
    work.a = random_values(36, Arithmetic::kFp32, 1);
    work.b = random_values(36, Arithmetic::kFp32, 2);
    const Machine m = machine_of("wse2");
    const Result<oracle::Outcome> outcome = oracle::simulate(m, work);
    ASSERT_TRUE(outcome.ok()) << outcome.status().message();
    const double cycles = outcome.value().cycles;
    EXPECT_NEAR(engine_cycles(m, work), cycles, 0.01 * cycles) << text_of(work);
    EXPECT_EQ(product_result(work), outcome.value().values);
  }
}

// "One role_test a phase": a chain has one phase.
TEST(Engine, a_two_phase_reduce_of_one_group_is_a_chain) {
  for (const char* name : {"wse2", "wse3"})
    for (const int more : {0, 1, 100}) {
      const Machine m = machine_of(name);
      Case work;
      work.algorithm = Algorithm::kTwoPhaseReduce;
      work.columns = 9;
      work.group = work.columns + more;
      work.n = 5;
      work.a = random_values(work.columns * work.n, Arithmetic::kFp32, 1);
      Case chain = work;
      chain.algorithm = Algorithm::kChainReduce;
      EXPECT_EQ(engine_cycles(m, work), engine_cycles(m, chain));
      EXPECT_EQ(line_result(work), line_result(chain));
      const auto two_phase = oracle::simulate(m, work), one_phase = oracle::simulate(m, chain);
      ASSERT_TRUE(two_phase.ok() && one_phase.ok());
      EXPECT_EQ(two_phase.value().values, one_phase.value().values);
      EXPECT_EQ(two_phase.value().cycles, one_phase.value().cycles) << "by the oracle";
    }
}

// ---- closed forms ----

// Near-Optimal Wafer-Scale Reduce: a chain takes B + (2 T_R + 2) (P - 1), with a hop of one cycle.
// Here the role test and the start of the first send come before that, the first receiver may not
// be ready in time, and the root adds nothing to a wavelet.
double first_stage(const Machine& m, double hops) {
  return std::max(m.send_setup + 2 * m.ramp + hops * m.hop, m.dsd_setup);
}

TEST(ClosedForms, a_chain_takes_what_was_published_of_it) {
  const Machine m = machine_of("wse2");
  for (const int64_t pes : {2, 3, 16, 512})
    for (const int64_t wavelets : {1, 64, 4096}) {
      Grid grid(pes, 1);
      chain_reduce(grid, m, Axis::kX, wavelets);
      const auto p = static_cast<double>(pes), b = static_cast<double>(wavelets);
      EXPECT_DOUBLE_EQ(grid.finish(),
                       m.role_test + first_stage(m, 1) + b + (2 * m.ramp + 2) * (p - 2))
          << pes << " " << wavelets;
    }
}

// The published time is 2 B + (2 T_R + 2) (S - 1) + (2 T_R + S + 1) (P / S - 1); here both phases
// have a role test and a first stage.
TEST(ClosedForms, a_two_phase_reduce_takes_what_was_published_of_it) {
  const Machine m = machine_of("wse2");
  for (const int64_t group : {2, 4, 16, 64})
    for (const int64_t groups : {2, 3, 8})
      for (const int64_t wavelets : {1, 64, 4096}) {
        Grid grid(group * groups, 1);
        two_phase_reduce(grid, m, Axis::kX, group, wavelets);
        const auto s = static_cast<double>(group), g = static_cast<double>(groups),
                   b = static_cast<double>(wavelets);
        EXPECT_DOUBLE_EQ(grid.finish(), 2 * (m.role_test + b) + first_stage(m, 1) +
                                            (2 * m.ramp + 2) * (s - 2) + first_stage(m, s) +
                                            (2 * m.ramp + s + 1) * (g - 2))
            << group << " " << groups << " " << wavelets;
      }
}

TEST(ClosedForms, a_multicast_takes_its_length_and_the_way) {
  const Machine m = machine_of("wse3", true);
  for (const int64_t pes : {2, 7, 100})
    for (const int64_t wavelets : {1, 50}) {
      Grid grid(pes, 1);
      multicast(grid, m, Axis::kX, 0, wavelets);
      const auto length = static_cast<double>(wavelets) * m.wavelet;
      EXPECT_DOUBLE_EQ(grid.finish(), first_stage(m, static_cast<double>(pes - 1)) + length);
      EXPECT_DOUBLE_EQ(grid.at(0, 0), m.send_setup + length);
    }
}

TEST(ClosedForms, every_line_of_a_grid_takes_what_one_does) {
  const Machine m = machine_of("wse2");
  Grid line(1, 12), grid(7, 12);
  tree_all_reduce(line, m, Axis::kY, 3, 9);
  tree_all_reduce(grid, m, Axis::kY, 3, 9);
  for (int64_t y = 0; y < 12; ++y)
    for (int64_t x = 0; x < 7; ++x) EXPECT_EQ(grid.at(x, y), line.at(0, y));
}

TEST(Schedule, phases_add_up_to_the_end) {
  const Machine m = machine_of("wse2");
  for (const ProductAlgorithm algorithm :
       {ProductAlgorithm::kMeshGemm, ProductAlgorithm::kCannon, ProductAlgorithm::kSumma}) {
    Schedule s(m, Arithmetic::kFp16, 6, 6);
    GemmOptions options;
    options.algorithm = algorithm;
    gemm(s, {5, 6, 7}, options);
    const Spent spent = s.spent();
    EXPECT_NEAR(spent.cycles, s.finish(), 1e-6 * s.finish());
    EXPECT_NEAR(spent.compute + spent.fabric + spent.host, s.finish(), 1e-6 * s.finish());
    for (const Phase& phase : s.phases()) {
      EXPECT_GE(phase.busy, 0) << phase.name;
      EXPECT_LE(phase.busy, phase.cycles) << phase.name;
    }
  }
}

TEST(Oracle, cases_out_of_range_are_refused_by_name) {
  const Machine m = machine_of("wse2");
  Case good = RandomCases(1).line(Algorithm::kTwoPhaseReduce);
  const auto refused = [&](const Case& work, std::string_view word) {
    const auto outcome = oracle::simulate(m, work);
    ASSERT_FALSE(outcome.ok()) << word;
    EXPECT_EQ(outcome.status().code(), Code::kINVALID_ARGUMENT);
    EXPECT_TRUE(contains(outcome.status().message(), word)) << outcome.status().message();
  };
  Case bad = good;
  bad.rows = 2;
  refused(bad, "rows is 1");
  bad = good;
  bad.columns = 97;
  refused(bad, "97");
  bad = good;
  bad.group = 0;
  refused(bad, "group");
  bad = good;
  bad.a.pop_back();
  refused(bad, "input a");
  bad = good;
  bad.n = 0;
  refused(bad, "size n");
  bad = RandomCases(1).square(Algorithm::kSumma);
  bad.rows = bad.columns + 1;
  refused(bad, "square");
}

}  // namespace
}  // namespace pfrt::wse::test
