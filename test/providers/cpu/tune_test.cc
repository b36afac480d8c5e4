// SPDX-License-Identifier: Apache-2.0
//
// Divisions of work that a kernel offers for measurement. Each gives the default's bits. A program
// with measured steps gives the bits of one without, and names the choice.
#include "providers/cpu/program/tune.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "providers/cpu/isa/isa.h"
#include "providers/cpu/kernels/matmul/split_matmul.h"
#include "providers/cpu/program/surrogate.h"
#include "providers/cpu/registry/registry.h"
#include "test/providers/cpu/cases/cases.h"
#include "test/providers/cpu/graph.h"

namespace pfrt::test {
namespace {

// A host that remembers the results it is given.
struct Memory {
  std::map<std::string, std::string> values;
  std::string recalled;
  uint64_t left = uint64_t{1} << 40, spent = 0;
  pfrt_code stop = PFRT_CODE_OK;
  pfrt_tuning tuning{};
  pfrt_sink sink{};

  explicit Memory(pfrt_tune_search search = PFRT_TUNE_RACE, uint32_t iterations = 0) {
    tuning.struct_size = sizeof tuning;
    tuning.host = this;
    tuning.search = search;
    tuning.iterations = iterations;
    tuning.recall = [](const pfrt_tuning* t, pfrt_string key, pfrt_string* out) {
      Memory& self = *static_cast<Memory*>(t->host);
      const auto at = self.values.find(std::string(view(key)));
      *out = to_c("");
      if (at == self.values.end()) return pfrt_code{PFRT_CODE_NOT_FOUND};
      self.recalled = at->second;
      *out = to_c(self.recalled);
      return pfrt_code{PFRT_CODE_OK};
    };
    tuning.remember = [](const pfrt_tuning* t, pfrt_string key, pfrt_string value) {
      static_cast<Memory*>(t->host)->values[std::string(view(key))] = view(value);
      return pfrt_code{PFRT_CODE_OK};
    };
    tuning.left_ns = [](const pfrt_tuning* t, uint64_t ns) {
      Memory& self = *static_cast<Memory*>(t->host);
      self.spent += ns;
      return self.left -= std::min(self.left, ns);
    };
    sink.struct_size = sizeof sink;
    sink.host = this;
    sink.stop = [](const pfrt_sink* from) { return static_cast<Memory*>(from->host)->stop; };
    sink.tuning = &tuning;
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
};

class Tune : public testing::Test {
 protected:
  void SetUp() override {
    if (cpu::isa() < cpu::Isa::kAvx2) GTEST_SKIP() << "the machine, or PFRT_ISA, has no AVX2";
  }

  Data constant(Dims dims) {
    Data data = random_.data(PFRT_DTYPE_FLOAT32, std::move(dims));
    data.constant = true;
    return data;
  }

  Case conv(Dims x, Dims weights, Dims out, int64_t pad, int64_t groups = 1) {
    Case c;
    c.inputs = {random_.data(PFRT_DTYPE_FLOAT32, std::move(x)), constant(weights),
                constant({weights[0]})};
    c.outputs = {{PFRT_DTYPE_FLOAT32, out, Values(static_cast<size_t>(count(out))), false}};
    c.attrs = {{"pads", Dims{pad, pad, pad, pad}},
               {"kernel_shape", Dims{weights[2], weights[3]}},
               {"group", groups}};
    return c;
  }

  Case product(Dims x, Dims columns, Dims out) {
    Case c;
    c.inputs = {random_.data(PFRT_DTYPE_FLOAT32, std::move(x)), constant(std::move(columns))};
    c.outputs = {{PFRT_DTYPE_FLOAT32, out, Values(static_cast<size_t>(count(out))), false}};
    return c;
  }

  // Compares the row's own division of |c| with the others: those of a race, and all that a search
  // has. Returns the number of the former.
  size_t compare(std::string_view op, std::string_view name, const Case& c,
                 Precision precision = Precision::kFloat32) {
    const size_t offered = compare(op, name, c, precision, false);
    EXPECT_GE(compare(op, name, c, precision, true), offered);
    return offered;
  }
  size_t compare(std::string_view op, std::string_view name, const Case& c, Precision precision,
                 bool all) {
    size_t offered = 0;
    for (std::span<const cpu::KernelRow> family : cpu::kernels())
      for (const cpu::KernelRow& row : family) {
        if (row.name != name || row.op != op) continue;
        const Outcome own = run(row, c, {.all = all, .precision = precision});
        EXPECT_EQ(own.refused + own.fault, "") << c.text();
        for (size_t i = 0; i < own.alternatives.size(); ++i) {
          const Outcome other =
              run(row, c, {.workers = 2, .alternative = i + 1, .all = all, .precision = precision});
          EXPECT_EQ(other.fault, "") << own.alternatives[i] << ", " << c.text();
          EXPECT_EQ(
              std::memcmp(own.outputs[0].data(), other.outputs[0].data(), own.outputs[0].size()), 0)
              << own.alternatives[i] << ", " << c.text();
        }
        offered += own.alternatives.size();
      }
    return offered;
  }

  Random random_{23};
};

TEST_F(Tune, other_divisions_of_direct_convolutions_have_the_same_bits) {
  const size_t offered =
      compare("Conv", "conv_direct", conv({1, 48, 41, 50}, {40, 48, 3, 3}, {1, 40, 41, 50}, 1)) +
      compare("Conv", "conv_direct", conv({2, 64, 24, 25}, {72, 32, 1, 1}, {2, 72, 24, 25}, 0, 2)) +
      compare("Conv", "conv_direct", conv({1, 3, 90, 91}, {20, 3, 7, 7}, {1, 20, 84, 85}, 0));
  EXPECT_GE(offered, 6u);
}

TEST_F(Tune, other_divisions_of_convolutions_of_pairs_have_the_same_bits) {
  if (cpu::isa() < cpu::Isa::kAvx512Bf16 || cpu::split_matmul_usable())
    GTEST_SKIP() << "needs avx512_bf16, without tiles";
  Case odd = conv({1, 48, 41, 50}, {40, 48, 3, 3}, {1, 40, 41, 50}, 1);
  odd.inputs[0].values[1000] = 3.4e38;
  odd.inputs[0].values[20000] = static_cast<double>(NAN);
  const auto offered = [&](const char* name, const Case& c) {
    return compare("Conv", name, c, Precision::kBfloat16);
  };
  EXPECT_GE(offered("conv_direct_bf16", odd), 1u);
  EXPECT_GE(
      offered("conv_direct_bf16", conv({2, 64, 24, 25}, {72, 32, 1, 1}, {2, 72, 24, 25}, 0, 2)),
      1u);
  EXPECT_GE(offered("conv_winograd_bf16", odd), 1u);
}

TEST_F(Tune, other_divisions_of_winograd_convolutions_have_the_same_bits) {
  EXPECT_GE(
      compare("Conv", "conv_winograd", conv({2, 70, 37, 44}, {130, 70, 3, 3}, {2, 130, 37, 44}, 1)),
      2u);
  // The reference computes some results again; these depend on the tile alone.
  Case odd = conv({1, 64, 30, 33}, {64, 64, 3, 3}, {1, 64, 30, 33}, 1);
  odd.inputs[0].values[1000] = 3e38;
  odd.inputs[0].values[20000] = static_cast<double>(NAN);
  EXPECT_GE(compare("Conv", "conv_winograd", odd), 1u);
  EXPECT_GE(compare("Conv", "conv_winograd_4x4", odd, Precision::kFast), 1u);
  EXPECT_GE(compare("Conv", "conv_winograd_5x5",
                    conv({1, 64, 30, 33}, {64, 64, 5, 5}, {1, 64, 30, 33}, 2), Precision::kFast),
            1u);
}

TEST_F(Tune, other_divisions_of_products_have_the_same_bits) {
  size_t offered = 0;
  for (std::span<const cpu::KernelRow> family : cpu::kernels())
    for (const cpu::KernelRow& row : family) {
      if (!row.has(cpu::kPackOptional)) continue;
      if (row.op == "MatMul") {
        offered += compare(row.op, row.name, product({2, 170, 75}, {75, 777}, {2, 170, 777}));
        // With 31 tasks the last has two rows, which are multiplied in another way.
        offered += compare(row.op, row.name, product({962, 75}, {75, 200}, {962, 200}));
      }
      if (row.op == "Gemm") {
        Case c = product({300, 130}, {130, 520}, {300, 520});
        c.inputs.push_back(constant({520}));
        offered += compare(row.op, row.name, c);
      }
    }
  // With tiles, divisions would change which results the reference computes again.
  if (cpu::isa() < cpu::Isa::kAmx) {
    EXPECT_GE(offered, 6u);
  }
}

// Convolutions of both kinds with epilogues, in nChw16c and row-major, and a product that is
// normalised.
Graph network(Random& random) {
  Graph g;
  const auto constant = [&](Dims dims) {
    Data data = random.data(PFRT_DTYPE_FLOAT32, std::move(dims), -0.1, 0.1);
    data.constant = true;
    return g.add(std::move(data));
  };
  const Attr pads{"pads", Dims{1, 1, 1, 1}}, taps{"kernel_shape", Dims{3, 3}};
  const uint32_t x = g.add(random.data(PFRT_DTYPE_FLOAT32, {1, 20, 28, 30}));
  const auto conv = [&](uint32_t from, int64_t in, int64_t out) {
    return g.add("Conv", {from, constant({out, in, 3, 3}), constant({out})}, {1, out, 28, 30},
                 {pads, taps});
  };
  uint32_t y = conv(x, 20, 64);
  y = g.add("Relu", {y}, {1, 64, 28, 30}, {}, static_cast<uint32_t>(g.nodes.size()));
  y = conv(y, 64, 64);
  y = g.add("Sigmoid", {y}, {1, 64, 28, 30}, {}, static_cast<uint32_t>(g.nodes.size()));
  y = conv(y, 64, 40);
  const uint32_t flat = g.add("Reshape", {y, g.add(integers({2}, {280, 120}))}, {280, 120}, {});
  uint32_t z = g.add("MatMul", {flat, constant({120, 300})}, {280, 300});
  z = g.add("LayerNormalization", {z, constant({300}), constant({300})}, {280, 300},
            {{"axis", int64_t{-1}}}, static_cast<uint32_t>(g.nodes.size()));
  g.outputs = {z};
  return g;
}

TEST_F(Tune, measured_programs_have_the_same_bits_and_say_what_was_chosen) {
  Random random(3);
  Graph graph = network(random);
  const GraphOutcome plain = run(graph);
  ASSERT_EQ(plain.fault, "");
  for (const std::string& detail : plain.details) EXPECT_EQ(detail, "");
  graph.hints = PFRT_COMPILE_TUNE;
  const GraphOutcome first = run(graph, 2), second = run(graph);
  ASSERT_EQ(first.fault + second.fault, "");
  EXPECT_EQ(first.kernels, plain.kernels);
  EXPECT_EQ(first.outputs, plain.outputs);
  EXPECT_EQ(second.outputs, plain.outputs);
  if (cpu::isa() == cpu::Isa::kAmx) return;
  size_t told = 0;
  for (size_t s = 0; s < first.kernels.size(); ++s) {
    const std::string& kernel = first.kernels[s];
    if (kernel.find("direct") == kernel.npos && kernel.find("winograd") == kernel.npos &&
        kernel.find("panels") == kernel.npos) {
      EXPECT_EQ(first.details[s], "") << kernel;
      continue;
    }
    ++told;
    const std::string &now = first.details[s], &again = second.details[s];
    EXPECT_EQ(now.find("tuned: "), 0u) << kernel << ": " << now;
    if (now.find("no other") != now.npos) continue;
    EXPECT_EQ(again, now + " (measured before)") << kernel;
  }
  EXPECT_EQ(told, 4u);
}

TEST_F(Tune, a_program_takes_what_the_host_remembers) {
  if (cpu::isa() == cpu::Isa::kAmx) GTEST_SKIP() << "products on tiles have no other blockings";
  Graph graph;
  const uint32_t x = graph.add(random_.data(PFRT_DTYPE_FLOAT32, {300, 130}));
  graph.outputs = {graph.add("MatMul", {x, graph.add(constant({130, 520}))}, {300, 520})};
  const GraphOutcome plain = run(graph);
  Memory memory(PFRT_TUNE_MODEL, 5);
  graph.tuning = &memory.tuning;
  const GraphOutcome unknown = run(graph);
  EXPECT_EQ(unknown.details, std::vector<std::string>{"not tuned: nothing is remembered"});
  EXPECT_EQ(unknown.tunings, std::vector<std::string>{""});
  graph.hints = PFRT_COMPILE_TUNE;
  const GraphOutcome found = run(graph);
  ASSERT_EQ(found.details.size(), 1u);
  EXPECT_EQ(found.details[0].find("tuned: "), 0u) << found.details[0];
  ASSERT_EQ(memory.values.size(), 1u);
  graph.hints = 0;
  const GraphOutcome recalled = run(graph);
  ASSERT_EQ(recalled.details.size(), 1u);
  EXPECT_NE(recalled.details[0].find(" (remembered)"), std::string::npos) << recalled.details[0];
  for (const GraphOutcome* outcome : {&unknown, &found, &recalled})
    EXPECT_EQ(outcome->outputs, plain.outputs) << outcome->fault;
}

TEST_F(Tune, what_runs_once_is_not_measured) {
  Graph graph;
  const uint32_t x = graph.add(random_.data(PFRT_DTYPE_FLOAT32, {300, 130}));
  graph.outputs = {graph.add("MatMul", {x, graph.add(constant({130, 520}))}, {300, 520})};
  graph.hints = PFRT_COMPILE_TUNE | PFRT_COMPILE_RUN_ONCE;
  const GraphOutcome outcome = run(graph);
  ASSERT_EQ(outcome.fault, "");
  for (const std::string& detail : outcome.details) EXPECT_EQ(detail, "");
}

// A step on a buffer of |bytes|, with |count| divisions for a search, of which a race has the first
// three. All are slow except the one of size 3.
struct Slow {
  int runs = 0;
  cpu::Step step;
  std::vector<pfrt_buffer> buffers;

  explicit Slow(uint64_t bytes, int64_t count = 3) {
    pfrt_buffer buffer{};
    buffer.bytes = bytes;
    buffers.push_back(buffer);
    step.name = "slow";
    step.reads = {0};
    step.kernel.run = [this](const cpu::Run&) {
      ++runs;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return pfrt_code{PFRT_CODE_OK};
    };
    step.kernel.alternatives = [this, count](bool all) {
      cpu::Alternatives out;
      out.own = {{"size", 1}};
      for (int64_t size = 2; size <= (all ? count : 3); ++size)
        out.others.push_back({{{"size", size}}, {}});
      for (cpu::Alternative& other : out.others) other.kernel.run = step.kernel.run;
      out.others[1].kernel.shared_bytes = 7;
      out.others[1].kernel.run = [](const cpu::Run&) { return pfrt_code{PFRT_CODE_OK}; };
      return out;
    };
  }
  std::string tune(std::string_view key, const pfrt_sink* sink = nullptr, bool measure = true) {
    cpu::Tuner tuner(measure, sink);
    tuner.tune(step, buffers, key);
    return step.detail;
  }
};

TEST(Tuner, takes_what_is_faster_and_remembers_it) {
  Slow slow(100);
  EXPECT_EQ(slow.tune("a").find("tuned: size 1 -> 3, "), 0u) << slow.step.detail;
  EXPECT_EQ(slow.step.tuning.find("size=3 gain="), 0u) << slow.step.tuning;
  EXPECT_NE(slow.step.tuning.find(" measured=3"), std::string::npos) << slow.step.tuning;
  EXPECT_EQ(slow.step.kernel.shared_bytes, 7u);
  EXPECT_GE(slow.runs, 4);
  Slow again(100);
  EXPECT_EQ(again.tune("a"), slow.step.detail + " (measured before)");
  EXPECT_NE(again.step.tuning.find(" measured=0"), std::string::npos) << again.step.tuning;
  EXPECT_EQ(again.step.kernel.shared_bytes, 7u);
  EXPECT_EQ(again.runs, 0);
  Slow other(100);
  EXPECT_EQ(other.tune("b").find("tuned: size 1 -> 3, "), 0u) << other.step.detail;
  EXPECT_GE(other.runs, 4);
}

TEST(Tuner, does_not_measure_what_the_host_remembers) {
  Memory memory;
  Slow slow(100);
  EXPECT_EQ(slow.tune("host", &memory.sink).find("tuned: size 1 -> 3, "), 0u) << slow.step.detail;
  ASSERT_EQ(memory.values.size(), 1u);
  EXPECT_GT(memory.spent, 0u);
  const auto& [key, value] = *memory.values.begin();
  EXPECT_NE(key.find("/host"), std::string::npos);
  EXPECT_NE(value.find(" size=3"), std::string::npos) << value;
  for (const bool measure : {true, false}) {
    Memory later;
    later.values = {{key, "1 2 size=2"}};
    Slow known(100);
    EXPECT_EQ(known.tune("host", &later.sink, measure),
              "tuned: size 1 -> 2, 100 % faster (remembered)");
    EXPECT_EQ(known.step.tuning, "size=2 gain=2 measured=0");
    EXPECT_EQ(known.runs, 0);
    later.values = {{key, "3 1.5 size=1"}};
    Slow same(100);
    EXPECT_EQ(same.tune("host", &later.sink, measure), "tuned: default kept (remembered)");
    EXPECT_EQ(same.runs, 0);
    EXPECT_EQ(later.spent, 0u);
  }
}

TEST(Tuner, measures_again_what_the_host_remembers_and_it_does_not_know) {
  Slow first(100);
  Memory memory;
  (void)first.tune("forms", &memory.sink);
  const std::string key = memory.values.begin()->first;
  int n = 0;
  for (const char* value : {"", "1", "1 ", "1 2", "1 2 ", "1 2 size=99", "1 2 size=2 more=1",
                            "x 2 size=2", "1 nan size=2", "1 -1 size=2", "1 x size=2", "size=2"}) {
    Memory other;
    const std::string name = "forms" + std::to_string(++n);
    const std::string where = key.substr(0, key.rfind("forms")) + name;
    other.values[where] = value;
    Slow kept(100);
    EXPECT_EQ(kept.tune(name, &other.sink, false), "not tuned: nothing is remembered") << value;
    EXPECT_EQ(kept.runs, 0);
    Slow slow(100);
    EXPECT_EQ(slow.tune(name, &other.sink).find("tuned: size 1 -> 3, "), 0u)
        << value << ": " << slow.step.detail;
    EXPECT_GT(slow.runs, 0);
    EXPECT_NE(other.values[where].find(" size=3"), std::string::npos);
  }
}

// A session without a folder found the result; it is written to the first folder that comes.
TEST(Tuner, tells_the_host_what_the_process_knows) {
  Slow slow(100), again(100);
  (void)slow.tune("process");
  Memory memory;
  EXPECT_EQ(again.tune("process", &memory.sink), slow.step.detail + " (measured before)");
  EXPECT_EQ(again.runs, 0);
  EXPECT_EQ(memory.values.size(), 1u);
}

TEST(Tuner, ends_with_the_budget_or_when_it_is_stopped) {
  Memory poor;
  poor.left = 0;
  Slow slow(100);
  EXPECT_EQ(slow.tune("poor", &poor.sink), "not tuned: no time");
  EXPECT_EQ(slow.runs, 0);
  poor.left = 1000;  // shorter than a run
  EXPECT_EQ(slow.tune("poor", &poor.sink), "not tuned: no time");
  EXPECT_LE(slow.runs, 2);
  EXPECT_EQ(poor.left, 0u);
  EXPECT_TRUE(poor.values.empty());
  Memory stopped;
  stopped.stop = PFRT_CODE_CANCELLED;
  Slow other(100);
  EXPECT_EQ(other.tune("stopped", &stopped.sink), "not tuned: stopped");
  EXPECT_LE(other.runs, 2);
  EXPECT_TRUE(stopped.values.empty());
}

TEST(Tuner, takes_a_search_that_it_does_not_know_for_a_race) {
  for (const pfrt_tune_search search : {uint32_t{PFRT_TUNE_UNSET}, 99u}) {
    Memory memory(search, 4);
    Slow some(100, 60);
    EXPECT_EQ(some.tune("unknown" + std::to_string(search), &memory.sink).find("tuned: "), 0u);
    ASSERT_EQ(memory.values.size(), 1u);
    EXPECT_EQ(memory.values.begin()->second.find(std::to_string(PFRT_TUNE_RACE) + " "), 0u)
        << memory.values.begin()->second;
  }
}

TEST(Tuner, searches_as_many_forms_as_it_may) {
  for (const pfrt_tune_search search : {PFRT_TUNE_RANDOM, PFRT_TUNE_MODEL}) {
    const std::string key = "search" + std::to_string(search);
    Memory memory(search, 4);
    Slow some(100, 60);
    EXPECT_EQ(some.tune(key, &memory.sink).find("tuned: "), 0u) << some.step.detail;
    // It measures the default, ten others, and four of the search.
    EXPECT_NE(some.step.tuning.find(" measured=15"), std::string::npos) << some.step.tuning;
    Memory all(search, 100);
    Slow every(100, 12);
    EXPECT_EQ(every.tune(key, &all.sink).find("tuned: size 1 -> 3, "), 0u) << every.step.detail;
    EXPECT_NE(every.step.tuning.find(" measured=12"), std::string::npos) << every.step.tuning;
    // A result of a race counts for a race, but not for a search.
    all.values.begin()->second = "1 2 size=2";
    Slow raced(100, 12), searched(100, 12);
    all.tuning.search = PFRT_TUNE_RACE;
    EXPECT_EQ(raced.tune(key, &all.sink), "tuned: size 1 -> 2, 100 % faster (remembered)");
    all.tuning.search = search;
    EXPECT_EQ(searched.tune(key, &all.sink).find("tuned: size 1 -> 3, "), 0u)
        << searched.step.detail;
    // This division is in a search, but not in a race.
    all.values.begin()->second = "3 2 size=11";
    all.tuning.search = PFRT_TUNE_RACE;
    EXPECT_EQ(raced.tune(key, &all.sink), "tuned: size 1 -> 11, 100 % faster (remembered)");
  }
}

TEST(Tuner, runs_each_form_as_often_as_it_is_told) {
  Memory memory;
  memory.tuning.repeats = 2;
  Slow slow(100);
  (void)slow.tune("repeats", &memory.sink);
  // The default runs once at first, twice in the race and twice at last; the other slow division
  // runs twice in the race.
  EXPECT_LE(slow.runs, 1 + 2 + 2 + 2);
  EXPECT_GE(slow.runs, 1 + 2 + 1 + 2);
}

// In 256 points the search finds the minimum of a smooth function with 10 random points and 14 that
// it chooses.
TEST(Surrogate, finds_the_least_value_in_few_evaluations) {
  for (int place = 0; place < 16; ++place) {
    const double x0 = 0.1 + 0.05 * place, y0 = 0.85 - 0.04 * place;
    const auto value = [&](const std::vector<double>& p) {
      return std::log(1 + 4 * (p[0] - x0) * (p[0] - x0) + 9 * (p[1] - y0) * (p[1] - y0));
    };
    std::vector<std::vector<double>> left;
    for (int i = 0; i < 256; ++i) left.push_back({i % 16 / 15.0, i / 16 / 15.0});
    double least = 1e9, reached = 1e9;
    for (const auto& p : left) least = std::min(least, value(p));
    cpu::Surrogate model(0.001);
    Random random(static_cast<uint64_t>(place));
    for (int n = 0; n < 24; ++n) {
      size_t next = static_cast<size_t>(random.below(static_cast<int64_t>(left.size())));
      for (size_t i = 0; n >= 10 && i < left.size(); ++i)
        if (model.expected_improvement(left[i]) > model.expected_improvement(left[next])) next = i;
      reached = std::min(reached, value(left[next]));
      model.observe(left[next], value(left[next]));
      left.erase(left.begin() + static_cast<ptrdiff_t>(next));
    }
    EXPECT_LE(reached, least + 0.01) << x0 << ", " << y0;
  }
}

TEST(Surrogate, takes_equal_points_and_equal_values) {
  cpu::Surrogate model(0.01);
  for (int i = 0; i < 5; ++i) model.observe({0.5, 0.5}, 3);
  const double there = model.expected_improvement(std::vector{0.5, 0.5});
  const double far = model.expected_improvement(std::vector{0.0, 1.0});
  EXPECT_TRUE(std::isfinite(there) && std::isfinite(far)) << there << ", " << far;
  EXPECT_GE(there, 0);
  EXPECT_LE(there, far);
}

TEST(Tuner, keeps_the_default_where_it_cannot_measure) {
  Slow large(uint64_t{1} << 50);
  EXPECT_EQ(large.tune("large"), "not tuned: no memory");
  Slow refused(100);
  refused.step.kernel.alternatives = [](bool) -> cpu::Alternatives { throw std::bad_alloc(); };
  EXPECT_EQ(refused.tune("refused"), "not tuned: no memory");
  Slow failing(100);
  failing.step.kernel.run = [](const cpu::Run&) { return pfrt_code{PFRT_CODE_INTERNAL}; };
  EXPECT_EQ(failing.tune("failing"), "not tuned: a trial run failed");
  Slow only(100);
  only.step.kernel.alternatives = [](bool) { return cpu::Alternatives(); };
  EXPECT_EQ(only.tune("only"), "tuned: no other blocking");
  for (const Slow* slow : {&large, &refused, &failing, &only}) {
    EXPECT_EQ(slow->runs, 0);
    EXPECT_EQ(slow->step.kernel.shared_bytes, 0u);
  }
}

}  // namespace
}  // namespace pfrt::test
