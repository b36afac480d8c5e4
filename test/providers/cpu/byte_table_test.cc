// SPDX-License-Identifier: Apache-2.0
//
// Functions of bytes by tables: alone, between guard pages, and in place of loops from bytes to
// bytes, whose bits do not change.
#include "providers/cpu/epilogue/byte_table.h"

#include <gtest/gtest.h>

#include <numeric>

#include "test/providers/cpu/cases/cases.h"
#include "test/providers/cpu/graph.h"
#include "test/providers/cpu/guarded.h"

namespace pfrt::test {
namespace {

using cpu::ByteTable, cpu::Isa;

class ByteTables : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (GetParam() > cpu::isa()) GTEST_SKIP() << "no " << cpu::isa_name(GetParam()) << " here";
  }
};

TEST_P(ByteTables, look_up_each_byte) {
  Random random(1);
  ByteTable::Results results;
  for (uint8_t& y : results) y = static_cast<uint8_t>(random.below(256));
  const ByteTable table(results, GetParam());
  for (int64_t n = 0; n <= 700; n += n < 200 ? 1 : 37) {
    Guarded x(static_cast<size_t>(n)), y(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i)
      x.data()[i] = static_cast<char>(n > 256 ? i : random.below(256));
    auto* const from = reinterpret_cast<uint8_t*>(x.data());
    auto* const to = reinterpret_cast<uint8_t*>(y.data());
    table.run(from, n, to);
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(to[i], results[from[i]]) << n << " element " << i;
    table.run(from, n, from);
    EXPECT_EQ(std::memcmp(from, to, static_cast<size_t>(n)), 0) << n;
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, ByteTables,
                         testing::Values(Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Vnni),
                         [](const auto& each) { return std::string(cpu::isa_name(each.param)); });

// Compares a graph of many elements with a graph of the first ones, which are too few for a table.
TEST(ByteTableLoops, have_the_bits_of_loops) {
  for (const pfrt_dtype from : {PFRT_DTYPE_UINT8, PFRT_DTYPE_INT8})
    for (const pfrt_dtype to : {PFRT_DTYPE_UINT8, PFRT_DTYPE_INT8})
      for (const char* const op : {"Sigmoid", "HardSwish", "Tanh", "Relu"}) {
        std::vector<Graph> graphs;
        for (const int64_t n : {int64_t{256}, int64_t{4096 + 77}}) {
          Graph g;
          Data x{from, {n}, {}};
          const int64_t low = from == PFRT_DTYPE_INT8 ? -128 : 0;
          for (int64_t i = 0; i < n; ++i) x.values.push_back(static_cast<double>(i % 256 + low));
          const std::vector<Attr> attrs{{"axis", int64_t{0}}, {"block_size", int64_t{0}}};
          const auto one = [&](pfrt_dtype type, double v) {
            return g.add(Data{type, {}, {v}, true});
          };
          const auto typed = [&](uint32_t v, pfrt_dtype type) {
            g.values[v].dtype = type;
            return v;
          };
          uint32_t v = g.add("DequantizeLinear",
                             {g.add(std::move(x)), one(PFRT_DTYPE_FLOAT32, 0.037), one(from, 9)},
                             {n}, attrs);
          v = g.add(op, {v}, {n});
          v = typed(
              g.add("QuantizeLinear", {v, one(PFRT_DTYPE_FLOAT32, 0.011), one(to, 5)}, {n}, attrs),
              to);
          g.outputs = {v};
          graphs.push_back(std::move(g));
        }
        const GraphOutcome few = run(graphs[0]), many = run(graphs[1], 3);
        ASSERT_EQ(few.fault + many.fault, "");
        for (size_t i = 0; i < many.outputs[0].size(); ++i)
          ASSERT_EQ(many.outputs[0][i], few.outputs[0][i % 256]) << op << " of " << i % 256;
      }
}

// Adds a row to bytes, and applies |op| to the sum in bytes. Where the sum is an output too, the
// loop is not divided.
Graph sum_and_function(const char* op, bool gives_sum) {
  constexpr int64_t kRows = 40, kColumns = 52;
  Graph g;
  const std::vector<Attr> attrs{{"axis", int64_t{0}}, {"block_size", int64_t{0}}};
  const Dims dims{kRows, kColumns};
  const auto one = [&](pfrt_dtype type, double v) { return g.add(Data{type, {}, {v}, true}); };
  const auto widen = [&](uint32_t v, double scale, double zero) {
    return g.add("DequantizeLinear",
                 {v, one(PFRT_DTYPE_FLOAT32, scale), one(PFRT_DTYPE_UINT8, zero)}, dims, attrs);
  };
  const auto narrow = [&](uint32_t v, double scale, double zero) {
    v = g.add("QuantizeLinear", {v, one(PFRT_DTYPE_FLOAT32, scale), one(PFRT_DTYPE_UINT8, zero)},
              dims, attrs);
    g.values[v].dtype = PFRT_DTYPE_UINT8;
    return v;
  };
  Data x{PFRT_DTYPE_UINT8, dims, {}}, row{PFRT_DTYPE_FLOAT32, {kColumns}, {}};
  for (int64_t i = 0; i < kRows * kColumns; ++i) x.values.push_back(static_cast<double>(i % 256));
  for (int64_t i = 0; i < kColumns; ++i) row.values.push_back(static_cast<double>(i) / 9 - 2.5);
  const uint32_t bytes = g.add(std::move(x)), addend = g.add(std::move(row));
  const uint32_t sum = narrow(g.add("Add", {widen(bytes, 0.03, 120), addend}, dims), 0.041, 131);
  g.outputs = {narrow(g.add(op, {widen(sum, 0.041, 131)}, dims), 0.03, 17)};
  if (gives_sum) g.outputs.push_back(sum);
  return g;
}

TEST(ByteTableLoops, go_on_from_bytes_within_a_loop) {
  for (const char* const op : {"Gelu", "Tanh", "Mish"}) {
    const GraphOutcome divided = run(sum_and_function(op, false), 2),
                       whole = run(sum_and_function(op, true), 2);
    ASSERT_EQ(divided.fault + whole.fault, "") << op;
    if (cpu::isa() >= Isa::kAvx2) {
      EXPECT_EQ(divided.kernels.size(), 2U) << op;
      EXPECT_EQ(whole.kernels.size(), 1U) << op;
    }
    EXPECT_EQ(divided.outputs[0], whole.outputs[0]) << op;
  }
  // A loop of few operations gets no table.
  EXPECT_EQ(run(sum_and_function("Relu", false)).kernels.size(),
            cpu::isa() >= Isa::kAvx2 ? 1U : 6U);
}

}  // namespace
}  // namespace pfrt::test
