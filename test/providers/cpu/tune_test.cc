// SPDX-License-Identifier: Apache-2.0
//
// Divisions of work that a kernel offers for measurement: each gives the default's bits, and a
// program whose steps were measured gives those of one whose were not, and says what was chosen.
#include "providers/cpu/program/tune.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "providers/cpu/isa/isa.h"
#include "providers/cpu/kernels/matmul/split_matmul.h"
#include "providers/cpu/registry/registry.h"
#include "test/providers/cpu/cases.h"
#include "test/providers/cpu/graph.h"

namespace pfrt::test {
namespace {

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

  // How many other divisions of |c| the row has; all are compared with its own.
  size_t compare(std::string_view op, std::string_view name, const Case& c,
                 Precision precision = Precision::kFloat32) {
    size_t offered = 0;
    for (std::span<const cpu::KernelRow> family : cpu::kernels())
      for (const cpu::KernelRow& row : family) {
        if (row.name != name || row.op != op) continue;
        const Outcome own = run(row, c, {.precision = precision});
        EXPECT_EQ(own.refused + own.fault, "") << c.text();
        for (size_t i = 0; i < own.alternatives.size(); ++i) {
          const Outcome other =
              run(row, c, {.workers = 2, .alternative = i + 1, .precision = precision});
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
  // What is computed again by the reference is a matter of each tile.
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
        // In 31 tasks the last has two rows, which are multiplied in another way.
        offered += compare(row.op, row.name, product({962, 75}, {75, 200}, {962, 200}));
      }
      if (row.op == "Gemm") {
        Case c = product({300, 130}, {130, 520}, {300, 520});
        c.inputs.push_back(constant({520}));
        offered += compare(row.op, row.name, c);
      }
    }
  // The divisions that tiles could have would move what they compute again by the reference.
  if (cpu::isa() < cpu::Isa::kAmx) {
    EXPECT_GE(offered, 6u);
  }
}

// Convolutions of both kinds with epilogues, in nChw16c and not, and a product that is normalised.
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

TEST_F(Tune, what_runs_once_is_not_measured) {
  Graph graph;
  const uint32_t x = graph.add(random_.data(PFRT_DTYPE_FLOAT32, {300, 130}));
  graph.outputs = {graph.add("MatMul", {x, graph.add(constant({130, 520}))}, {300, 520})};
  graph.hints = PFRT_COMPILE_TUNE | PFRT_COMPILE_RUN_ONCE;
  const GraphOutcome outcome = run(graph);
  ASSERT_EQ(outcome.fault, "");
  for (const std::string& detail : outcome.details) EXPECT_EQ(detail, "");
}

// A step of one buffer of |bytes| that takes its time, and another that does not.
struct Slow {
  int runs = 0;
  cpu::Step step;
  std::vector<pfrt_buffer> buffers;

  explicit Slow(uint64_t bytes) {
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
    step.kernel.alternatives = [this] {
      std::vector<cpu::Alternative> out(2);
      out[0].change = "worse";
      out[0].kernel.run = step.kernel.run;
      out[1].change = "quick";
      out[1].kernel.shared_bytes = 7;
      out[1].kernel.run = [](const cpu::Run&) { return pfrt_code{PFRT_CODE_OK}; };
      return out;
    };
  }
  std::string tune(std::string_view key) {
    cpu::Tuner tuner;
    tuner.tune(step, buffers, key);
    return step.detail;
  }
};

TEST(Tuner, takes_what_is_faster_and_remembers_it) {
  Slow slow(100);
  EXPECT_EQ(slow.tune("a").find("tuned: quick, "), 0u) << slow.step.detail;
  EXPECT_EQ(slow.step.kernel.shared_bytes, 7u);
  EXPECT_GE(slow.runs, 4);
  Slow again(100);
  EXPECT_EQ(again.tune("a"), slow.step.detail + " (measured before)");
  EXPECT_EQ(again.step.kernel.shared_bytes, 7u);
  EXPECT_EQ(again.runs, 0);
  Slow other(100);
  EXPECT_EQ(other.tune("b").find("tuned: quick, "), 0u) << other.step.detail;
  EXPECT_GE(other.runs, 4);
}

TEST(Tuner, keeps_the_default_where_it_cannot_measure) {
  Slow large(uint64_t{1} << 50);
  EXPECT_EQ(large.tune("large"), "not tuned: no memory");
  Slow refused(100);
  refused.step.kernel.alternatives = []() -> std::vector<cpu::Alternative> {
    throw std::bad_alloc();
  };
  EXPECT_EQ(refused.tune("refused"), "not tuned: no memory");
  Slow failing(100);
  failing.step.kernel.run = [](const cpu::Run&) { return pfrt_code{PFRT_CODE_INTERNAL}; };
  EXPECT_EQ(failing.tune("failing"), "not tuned: a trial run failed");
  Slow only(100);
  only.step.kernel.alternatives = [] { return std::vector<cpu::Alternative>(); };
  EXPECT_EQ(only.tune("only"), "tuned: no other blocking");
  for (const Slow* slow : {&large, &refused, &failing, &only}) {
    EXPECT_EQ(slow->runs, 0);
    EXPECT_EQ(slow->step.kernel.shared_bytes, 0u);
  }
}

}  // namespace
}  // namespace pfrt::test
