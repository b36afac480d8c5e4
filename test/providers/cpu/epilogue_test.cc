// SPDX-License-Identifier: Apache-2.0
//
// Kernels with epilogues: a step gives the bits of its separate nodes, for every row that takes
// epilogues, and supports() agrees. PFRT_TEST_CASE="ROW TYPE SEED", as a failure prints it, runs
// that case alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <set>
#include <tuple>

#include "core/base/dtype.h"
#include "providers/cpu/isa/isa.h"
#include "providers/cpu/registry/registry.h"
#include "test/providers/cpu/cases/cases.h"
#include "test/providers/cpu/graph.h"
#include "test/sanitized.h"

namespace pfrt::test {
namespace {

using cpu::KernelRow;

constexpr const char* kUnary[] = {
    "Relu", "Sigmoid", "Tanh", "HardSwish", "HardSigmoid", "Swish",    "LeakyRelu", "Exp",
    "Abs",  "Neg",     "Sqrt", "Floor",     "Reciprocal",  "Softsign", "Identity",  "Sign",
    "Ceil", "Round",   "Erf",  "Gelu",      "Elu",         "Softplus", "Mish"};
constexpr const char* kBinary[] = {"Add", "Sub", "Mul", "Div", "Max", "Min", "Sum"};

// Adds a second operand for a node of an epilogue, or returns |value| itself.
uint32_t operand(Graph& graph, Random& random, const Dims& dims, uint32_t value) {
  Dims own = dims;
  switch (random.below(6)) {
    case 0:  // a scalar
      own = Dims(static_cast<size_t>(random.below(static_cast<int64_t>(own.size()) + 1)), 1);
      break;
    case 1:  // one for each channel
      for (size_t d = 0; d < own.size(); ++d)
        if (d != 1) own[d] = 1;
      break;
    case 2:  // the last axes
      own.erase(own.begin(), own.begin() + random.below(static_cast<int64_t>(own.size()) + 1));
      break;
    case 3: {  // anything that broadcasts
      for (int64_t& d : own)
        if (random.once_in(3)) d = 1;
      break;
    }
    case 4:
      return value;
    default:
      break;
  }
  Data data = random.data(graph.values[value].dtype, own);
  data.constant = random.once_in(2);
  if (!data.values.empty() && dtype_is_float(data.dtype) && random.once_in(4))
    data.values.front() = NAN;
  return graph.add(std::move(data));
}

constexpr const char* kUnaryOfInts[] = {"Abs", "Sign", "Identity"};
constexpr const char* kBinaryOfInts[] = {"Add", "Sub", "Mul", "Max", "Min"};
constexpr pfrt_dtype kConverted[] = {PFRT_DTYPE_FLOAT32, PFRT_DTYPE_FLOAT16, PFRT_DTYPE_BFLOAT16,
                                     PFRT_DTYPE_INT32,   PFRT_DTYPE_INT8,    PFRT_DTYPE_UINT8};

// An elementwise node of the epilogue of |head|.
uint32_t follow(Graph& graph, uint32_t head, std::string op, std::vector<uint32_t> inputs,
                const Dims& dims, pfrt_dtype dtype, std::vector<Attr> attrs = {}) {
  const uint32_t value =
      graph.add(std::move(op), std::move(inputs), dims, std::move(attrs), head + 1);
  graph.values[value].dtype = dtype;
  return value;
}

// Adds a node that quantizes, dequantizes or casts.
uint32_t convert(Graph& graph, Random& random, uint32_t head, uint32_t value) {
  const Dims dims = graph.values[value].dims;
  const pfrt_dtype from = graph.values[value].dtype;
  const pfrt_dtype to = kConverted[random.below(std::size(kConverted))];
  const bool quantizes = cpu::kFloatsTo32.has(from) && dtype_size(to) == 1;
  const bool dequantizes = dtype_is_integer(from) && cpu::kFloatsTo32.has(to);
  if (random.once_in(3) || (!quantizes && !dequantizes))
    return follow(graph, head, "Cast", {value}, dims, to, {{"to", static_cast<int64_t>(to)}});
  const int64_t axis = dims.empty() ? 0 : random.below(static_cast<int64_t>(dims.size()));
  const bool each = !dims.empty() && random.once_in(2);
  Dims own;
  if (each) own.push_back(dims[static_cast<size_t>(axis)]);
  Data scale = random.data(PFRT_DTYPE_FLOAT32, own, 0.01, 0.5);
  scale.constant = random.once_in(2);
  std::vector<uint32_t> inputs{value, graph.add(std::move(scale))};
  if (random.once_in(2) && from != PFRT_DTYPE_INT32) {
    Data zero = random.data(quantizes ? to : from, own, 0, 100);
    zero.constant = random.once_in(2);
    inputs.push_back(graph.add(std::move(zero)));
  }
  return follow(graph, head, quantizes ? "QuantizeLinear" : "DequantizeLinear", inputs, dims, to,
                {{"axis", axis}, {"block_size", int64_t{0}}});
}

// Adds |count| nodes behind node |head|, whose output is |value|.
void add_epilogue(Graph& graph, Random& random, uint32_t head, uint32_t value, int64_t count) {
  const Dims dims = graph.values[value].dims;
  const uint32_t first = value;
  for (int64_t i = 0; i < count; ++i) {
    const pfrt_dtype dtype = graph.values[value].dtype;
    const bool real = dtype_is_float(dtype);
    if (random.once_in(4)) {
      value = convert(graph, random, head, value);
    } else if (random.once_in(2)) {
      const char* op = real ? kUnary[random.below(std::size(kUnary))]
                            : kUnaryOfInts[random.below(std::size(kUnaryOfInts))];
      value = follow(graph, head, op, {value}, dims, dtype);
    } else if (random.once_in(6)) {
      const uint32_t low = graph.add(Data{dtype, {}, {real ? -0.5 : 2}, true});
      const uint32_t high = graph.add(Data{dtype, {}, {real ? 0.5 : 90}, true});
      value = follow(graph, head, "Clip", {value, low, high}, dims, dtype);
    } else {
      const char* op = real ? kBinary[random.below(std::size(kBinary))]
                            : kBinaryOfInts[random.below(std::size(kBinaryOfInts))];
      const bool again = random.once_in(3) && graph.values[first].dtype == dtype;
      uint32_t other = operand(graph, random, dims, again ? first : value);
      uint32_t one = value;
      if (random.once_in(2)) std::swap(one, other);
      value = follow(graph, head, op, {one, other}, dims, dtype);
    }
  }
  graph.outputs = {value};
}

// Builds a graph with the case as a node that has an epilogue, now and then behind another node.
// Returns false when a provider would see it otherwise.
bool build(Graph& graph, Random& random, const KernelRow& row, const Case& c) {
  const Data& out = c.outputs.front();
  if (!cpu::kEpilogueTypes.has(out.dtype)) return false;
  EXPECT_FALSE(out.late) << row.name
                         << " takes epilogues, but its output is not known before the run";
  std::vector<uint32_t> inputs, outputs;
  for (const Data& data : c.inputs) {
    if (cpu::kSubByte.has(data.dtype)) return false;
    inputs.push_back(data.dtype == 0 ? PFRT_NO_INDEX : graph.add(data));
  }
  if (!c.inputs.empty() && c.inputs[0].dtype == out.dtype && dtype_is_float(out.dtype) &&
      !c.inputs[0].constant && random.once_in(3)) {
    inputs[0] = graph.add("Neg", {inputs[0]}, c.inputs[0].dims);
    graph.values[inputs[0]].dtype = out.dtype;
  }
  const uint32_t head = static_cast<uint32_t>(graph.nodes.size());
  const uint32_t value = graph.add(Data{out.dtype, out.dims, {}});
  graph.nodes.push_back(
      {std::string(row.op), inputs, {value}, c.attrs, 0, std::string(row.domain)});
  add_epilogue(graph, random, head, value, random.from_to(1, 4));
  // This residual dies here, and its memory suits the output.
  if (!inputs.empty() && inputs[0] != PFRT_NO_INDEX && random.once_in(2) &&
      c.inputs[0].dtype == graph.values[graph.outputs[0]].dtype && c.inputs[0].dims == out.dims) {
    graph.outputs = {
        follow(graph, head, "Add", {graph.outputs[0], inputs[0]}, out.dims, c.inputs[0].dtype)};
  }
  return true;
}

// Replaces dimensions above 1 by symbols, and equal ones by equal symbols.
void hide_dimensions(Graph& graph) {
  for (uint32_t v = 0; v < graph.values.size(); ++v) {
    if (graph.values[v].constant) continue;
    Dims& told = graph.told[v] = graph.values[v].dims;
    for (int64_t& d : told)
      if (d != 1) d = -2 - d;
  }
}

Graph apart(Graph graph) {
  for (GraphNode& node : graph.nodes) node.tail_of = 0;
  return graph;
}

// Compares bits, except that all NaNs are equal.
std::string difference(const std::vector<char>& got, const std::vector<char>& want,
                       pfrt_dtype dtype = PFRT_DTYPE_FLOAT32) {
  if (got.size() != want.size()) return message(got.size(), " bytes, not ", want.size());
  const size_t size = dtype_size(dtype), count = got.size() / size;
  const Values a = load(dtype, got.data(), count), b = load(dtype, want.data(), count);
  for (size_t i = 0; i < count; ++i)
    if (std::memcmp(got.data() + i * size, want.data() + i * size, size) != 0 &&
        !(std::isnan(a[i]) && std::isnan(b[i])))
      return message("element ", i, " is ", a[i], ", not ", b[i]);
  return {};
}

// True when one step does all nodes from |first| on; a head that only moves addresses needs no
// step.
bool has_joined(const GraphOutcome& outcome, size_t first, size_t nodes) {
  if (outcome.nodes.size() <= first + 1) return true;
  for (const std::vector<uint32_t>& list : outcome.nodes) {
    size_t found = 0;
    for (uint32_t n : list) found += n >= first;
    if (found == nodes - first) return true;
  }
  return false;
}

struct Tally {
  int ran = 0, supported = 0;
};

// A node without elements has a step of its own, or none.
bool has_empty_value(const Graph& graph) {
  return std::ranges::any_of(graph.values, [](const Data& value) {
    return std::ranges::find(value.dims, 0) != value.dims.end();
  });
}

void check(const Graph& graph, const std::string& name, bool may_join, uint32_t most_workers,
           Tally& tally) {
  const auto what = [&] { return message(name, ": ", graph.text(), "\n  "); };
  const size_t before = graph.nodes.front().op == "Neg" && graph.nodes.front().tail_of == 0 &&
                                graph.nodes[1].tail_of == 0
                            ? 1
                            : 0;
  const GraphOutcome want = run(apart(graph));
  if (!want.fault.empty()) {
    ADD_FAILURE() << what() << "apart: " << want.fault;
    return;
  }
  ++tally.ran;
  may_join = may_join && !has_empty_value(graph);
  const std::string refused = refused_epilogue(graph, static_cast<uint32_t>(before));
  tally.supported += refused.empty();
  for (uint32_t workers = 1; workers <= most_workers; workers += 2) {
    const GraphOutcome got = run(graph, workers);
    EXPECT_EQ(got.fault, "") << what() << workers << " workers";
    if (!got.fault.empty()) return;
    const pfrt_dtype dtype = graph.values[graph.outputs[0]].dtype;
    EXPECT_EQ(difference(got.outputs[0], want.outputs[0], dtype), "")
        << what() << workers << " workers";
    const bool joins = !may_join || !refused.empty() || has_joined(got, before, graph.nodes.size());
    EXPECT_TRUE(joins) << what() << "is supported, but does not run as one step";
  }
}

template <typename Fn>
void for_each_row_with_epilogue(Fn&& fn) {
  for (const Generators* generators :
       {&elementwise_cases(), &reduce_cases(), &matmul_cases(), &window_cases(), &move_cases(),
        &index_cases(), &image_cases(), &quantize_cases(), &contrib_cases()})
    for (const auto family : cpu::kernels())
      for (const KernelRow& row : family)
        if (const auto found = generators->find(row.op);
            row.has(cpu::kEpilogue) && found != generators->end() &&
            (row.domain == "com.microsoft") == (generators == &contrib_cases()))
          fn(row, found->second);
}

// Checks |count| seeds from |first| on; every eighth case is large.
void check_rows(uint64_t first, uint64_t count, uint32_t most_workers) {
  const bool loops = cpu::isa() >= cpu::Isa::kAvx2;
  const char* wanted = std::getenv("PFRT_TEST_CASE");
  int operators = 0;
  std::set<std::tuple<std::string_view, std::string_view, pfrt_dtype>> ran;  // rows share theirs
  for_each_row_with_epilogue([&](const KernelRow& row, const Generator& generator) {
    Tally tally;
    for (pfrt_dtype dtype :
         {PFRT_DTYPE_FLOAT32, PFRT_DTYPE_INT8, PFRT_DTYPE_INT64, PFRT_DTYPE_FLOAT16,
          PFRT_DTYPE_BFLOAT16, PFRT_DTYPE_INT32, PFRT_DTYPE_UINT8}) {
      if (!row.types.has(dtype) || !ran.emplace(row.domain, row.op, dtype).second) continue;
      for (uint64_t seed = first; seed < first + count; ++seed) {
        const std::string name =
            message("PFRT_TEST_CASE=\"", row.name, " ", dtype_name(dtype), " ", seed, "\"");
        if (wanted != nullptr && name != message("PFRT_TEST_CASE=\"", wanted, "\"")) continue;
        Random random(seed * 7919 + dtype);
        Graph graph;
        const Case c = generator(random, dtype, seed % 8 == 7 ? kLarge : 900);
        if (!build(graph, random, row, c)) continue;
        if (seed % 4 == 3) hide_dimensions(graph);
        check(graph, name, loops && graph.told.empty(), most_workers, tally);
        if (testing::Test::HasFailure()) return;
      }
    }
    operators += tally.ran > 0;
    EXPECT_TRUE(wanted != nullptr || count < 8 || !loops || tally.supported * 4 >= tally.ran)
        << row.name << " supports " << tally.supported << " of " << tally.ran << " epilogues";
  });
  EXPECT_GT(operators, wanted != nullptr ? 0 : 80) << operators;
}

TEST(Epilogues, random) { check_rows(1, kSanitized ? 1 : 16, 1); }
TEST(EpilogueThreads, random) { check_rows(101, kSanitized ? 1 : 3, 3); }

// ------------------------------------------------------------------ by hand

class Epilogue : public testing::Test {
 protected:
  void SetUp() override {
    if (cpu::isa() < cpu::Isa::kAvx2) GTEST_SKIP() << "generated loops need avx2";
  }
};

Data floats(Dims dims, bool constant = false) {
  Random random(static_cast<uint64_t>(count(dims)) + dims.size());
  Data data = random.data(PFRT_DTYPE_FLOAT32, std::move(dims));
  data.constant = constant;
  return data;
}

// A pointwise convolution of [2, 5, 6, 7] to 4 channels.
struct Convolution : Graph {
  Convolution() {
    const uint32_t x = add(floats({2, 5, 6, 7})), w = add(floats({4, 5, 1, 1}, true));
    y = add("Conv", {x, w}, dims);
  }
  Dims dims{2, 4, 6, 7};
  uint32_t y;
};

TEST_F(Epilogue, runs_in_the_step_of_its_head) {
  Convolution g;
  const uint32_t scale = g.add(floats({4, 1, 1}, true)), rest = g.add(floats(g.dims));
  uint32_t v = g.add("Mul", {g.y, scale}, g.dims, {}, 1);
  v = g.add("Add", {rest, v}, g.dims, {}, 1);
  v = g.add("HardSwish", {v}, g.dims, {}, 1);
  g.outputs = {v};
  EXPECT_EQ(refused_epilogue(g, 0), "");
  const GraphOutcome got = run(g), want = run(apart(g));
  ASSERT_EQ(got.fault + want.fault, "");
  EXPECT_EQ(got.kernels, std::vector<std::string>{"conv_pointwise+mul+add+hard_swish"});
  EXPECT_EQ(got.nodes, (std::vector<std::vector<uint32_t>>{{0, 1, 2, 3}}));
  EXPECT_EQ(difference(got.outputs[0], want.outputs[0]), "");
  // The step reads x, w, scale and rest, and writes the output; inner values are neither.
  EXPECT_EQ(got.bytes, 4u * (2 * 5 * 42 + 4 * 5 + 4 + 2 * (2 * 4 * 42)));
}

// A residual of bytes is not turned into a float32 tensor unless another node wants that.
TEST_F(Epilogue, dequantizes_its_operands) {
  for (const bool wanted : {false, true}) {
    Convolution g;
    Data bytes{PFRT_DTYPE_UINT8, g.dims, {}};
    for (int64_t i = 0; i < count(g.dims); ++i)
      bytes.values.push_back(static_cast<double>(i % 256));
    const uint32_t scale = g.add(Data{PFRT_DTYPE_FLOAT32, {}, {0.03}, true});
    const uint32_t zero = g.add(Data{PFRT_DTYPE_UINT8, {}, {7}, true});
    const std::vector<Attr> attrs{{"axis", int64_t{0}}, {"block_size", int64_t{0}}};
    const uint32_t rest =
        g.add("DequantizeLinear", {g.add(std::move(bytes)), scale, zero}, g.dims, attrs);
    uint32_t v = g.add("Add", {g.y, rest}, g.dims, {}, 1);
    v = g.add("Relu", {v}, g.dims, {}, 1);
    v = g.add("QuantizeLinear", {v, scale, zero}, g.dims, attrs, 1);
    g.values[v].dtype = PFRT_DTYPE_UINT8;
    g.outputs = {v};
    if (wanted) g.outputs.push_back(rest);
    const GraphOutcome got = run(g, 3), want = run(apart(g));
    ASSERT_EQ(got.fault + want.fault, "");
    EXPECT_EQ(got.nodes.size(), wanted ? 2u : 1u);
    for (size_t i = 0; i < g.outputs.size(); ++i)
      EXPECT_EQ(difference(got.outputs[i], want.outputs[i], g.values[g.outputs[i]].dtype), "");
    if (wanted) continue;
    // The step reads x, w and the residual's bytes, and writes sums and steps.
    EXPECT_EQ(got.bytes, 4u * (2 * 5 * 42 + 4 * 5) + (1 + 4 + 1) * (2 * 4 * 42));
  }
}

// The epilogue needs a value that is computed after its head.
TEST_F(Epilogue, waits_for_its_operands) {
  Convolution g;
  const uint32_t late = g.add("Cos", {g.add(floats(g.dims))}, g.dims);
  g.outputs = {g.add("Add", {g.y, late}, g.dims, {}, 1)};
  const GraphOutcome got = run(g), want = run(apart(g));
  ASSERT_EQ(got.fault + want.fault, "");
  ASSERT_EQ(got.nodes, (std::vector<std::vector<uint32_t>>{{1}, {0, 2}}));
  EXPECT_EQ(difference(got.outputs[0], want.outputs[0]), "");
}

// A residual that dies in the step is read after the head has written, so they share no memory.
TEST_F(Epilogue, takes_no_memory_of_its_operands) {
  Graph g;
  const Dims dims{3, 32};
  const uint32_t x = g.add("Neg", {g.add(floats(dims))}, dims);
  const uint32_t y = g.add("Softmax", {x}, dims, {{"axis", int64_t{1}}});
  const uint32_t z = g.add("Add", {y, x}, dims, {}, 2);
  g.outputs = {g.add("Cos", {z}, dims)};
  const GraphOutcome got = run(g), want = run(apart(g));
  ASSERT_EQ(got.fault + want.fault, "");
  EXPECT_EQ(difference(got.outputs[0], want.outputs[0]), "");
}

TEST_F(Epilogue, ends_where_something_else_is_wanted) {
  Convolution g;
  const uint32_t a = g.add("Relu", {g.y}, g.dims, {}, 1);
  const uint32_t b = g.add("Neg", {a}, g.dims, {}, 1);
  g.outputs = {a, b};
  const GraphOutcome got = run(g), want = run(apart(g));
  ASSERT_EQ(got.fault + want.fault, "");
  EXPECT_EQ(got.nodes, (std::vector<std::vector<uint32_t>>{{0, 1}, {2}}));
  for (size_t i : {0u, 1u}) EXPECT_EQ(difference(got.outputs[i], want.outputs[i]), "");
  g.outputs = {g.y, b};
  EXPECT_EQ(run(g).nodes, (std::vector<std::vector<uint32_t>>{{0}, {1, 2}}));
}

// The dimensions at compilation fit the loop, but those of the run do not: one pixel for each
// channel.
TEST_F(Epilogue, falls_back_where_dimensions_do_not_fit) {
  for (int64_t pixels : {5, 1}) {
    Graph g;
    const Dims dims{2, 40, pixels, pixels}, told{2, 40, -2, -3};
    const uint32_t x = g.add(floats({2, 3, pixels, pixels}));
    const uint32_t w = g.add(floats({40, 3, 1, 1}, true));
    const uint32_t scale = g.add(floats({40, 1, 1}, true));
    const uint32_t y = g.add("Conv", {x, w}, dims);
    const uint32_t z = g.add("Mul", {y, scale}, dims, {}, 1);
    g.outputs = {g.add("Relu", {z}, dims, {}, 1)};
    g.told = {{x, {2, 3, -2, -3}}, {y, told}, {z, told}, {g.outputs[0], told}};
    EXPECT_EQ(refused_epilogue(g, 0), "");
    const GraphOutcome got = run(g), want = run(apart(g));
    ASSERT_EQ(got.fault + want.fault, "");
    EXPECT_EQ(got.kernels.size(), pixels == 5 ? 1u : 3u);
    EXPECT_EQ(difference(got.outputs[0], want.outputs[0]), "");
  }
}

TEST_F(Epilogue, is_refused_with_a_reason) {
  struct {
    const char* reason;
    void (*add)(Convolution& g);
  } const kCases[] = {
      {"generated loops do not know Cos",
       [](Convolution& g) { g.add("Cos", {g.y}, g.dims, {}, 1); }},
      {"does not take the output before it",
       [](Convolution& g) { g.add("Relu", {g.add(floats(g.dims))}, g.dims, {}, 1); }},
      {"has other dimensions",
       [](Convolution& g) {
         g.add("Add", {g.y, g.add(floats({3, 2, 4, 6, 7}))}, {3, 2, 4, 6, 7}, {}, 1);
       }},
  };
  for (const auto& each : kCases) {
    Convolution g;
    each.add(g);
    EXPECT_NE(refused_epilogue(g, 0).find(each.reason), std::string::npos)
        << refused_epilogue(g, 0);
  }
  Graph g;
  const uint32_t x = g.add(floats({4, 9}));
  const uint32_t y = g.add("CumSum", {x, g.add(integers({}, {1}))}, {4, 9});
  g.add("Relu", {y}, {4, 9}, {}, 1);
  EXPECT_NE(refused_epilogue(g, 0).find("takes no epilogue"), std::string::npos)
      << refused_epilogue(g, 0);
}

// Separate loops take the same operands, and are compared with a loop over indices.
TEST_F(Epilogue, broadcast_operands_lie_where_they_should) {
  const Dims dims{3, 4, 2, 5};
  const Dims kOwn[] = {{3, 4, 2, 5}, {5},          {2, 5},       {4, 1, 1}, {3, 4, 1, 1},
                       {1, 4, 2, 5}, {3, 1, 1, 1}, {1, 1, 1, 1}, {},        {4, 2, 5}};
  for (const Dims& own : kOwn) {
    Graph g;
    const Data a = floats(dims), b = floats(own);
    g.outputs = {g.add("Sub", {g.add(a), g.add(b)}, dims)};
    const GraphOutcome got = run(g);
    ASSERT_EQ(got.fault, "");
    size_t at = 0;
    for_each_index(dims, [&](const Dims& index) {
      float y;
      std::memcpy(&y, got.outputs[0].data() + 4 * at, sizeof y);
      EXPECT_EQ(
          y, static_cast<float>(a.values[at]) - static_cast<float>(b.values[position(index, own)]))
          << g.text() << " element " << at;
      ++at;
    });
  }
}

}  // namespace
}  // namespace pfrt::test
