// SPDX-License-Identifier: Apache-2.0
//
// Generated loops on every element type, compared with the reference kernels, which
// PFRT_ISA=generic leaves alone. The bits are equal wherever an operator is exact. Buffers are
// between guard pages.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <set>

#include "core/base/dtype.h"
#include "core/base/half.h"
#include "providers/cpu/isa/isa.h"
#include "providers/cpu/loop/lower.h"
#include "test/providers/cpu/cases/cases.h"
#include "test/providers/cpu/graph.h"
#include "test/sanitized.h"

namespace pfrt::test {
namespace {

// A sanitizer sees nothing of generated code, which guard pages look after.
#ifdef PFRT_SANITIZE_ADDRESS
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

using cpu::ElementwiseRow, cpu::Form, cpu::Types;

constexpr pfrt_dtype kTypes[] = {PFRT_DTYPE_FLOAT32, PFRT_DTYPE_FLOAT16, PFRT_DTYPE_BFLOAT16,
                                 PFRT_DTYPE_INT64,   PFRT_DTYPE_INT32,   PFRT_DTYPE_INT16,
                                 PFRT_DTYPE_INT8,    PFRT_DTYPE_UINT64,  PFRT_DTYPE_UINT32,
                                 PFRT_DTYPE_UINT16,  PFRT_DTYPE_UINT8,   PFRT_DTYPE_BOOL};
// Operators whose results are near those of reference kernels, but not equal.
const std::set<std::string_view> kApproximate = {
    "Exp", "Sigmoid", "Tanh", "Swish", "Erf", "Gelu", "Elu", "Selu", "Celu", "Softplus", "Mish"};

// Sets PFRT_ISA for its lifetime.
class IsaScope {
 public:
  explicit IsaScope(const char* isa) {
    if (const char* set = std::getenv("PFRT_ISA")) before_ = set;
    setenv("PFRT_ISA", isa, 1);
  }
  ~IsaScope() {
    if (before_.empty())
      unsetenv("PFRT_ISA");
    else
      setenv("PFRT_ISA", before_.c_str(), 1);
  }
  IsaScope(const IsaScope&) = delete;
  IsaScope& operator=(const IsaScope&) = delete;

 private:
  std::string before_;
};

uint32_t add(Graph& graph, std::string op, std::vector<uint32_t> inputs, pfrt_dtype type, Dims dims,
             std::vector<Attr> attrs = {}) {
  const uint32_t value = graph.add(Data{type, std::move(dims), {}});
  graph.nodes.push_back({std::move(op), std::move(inputs), {value}, std::move(attrs), 0, {}});
  return value;
}

// Returns limits of the type and of types that it may be cast to, floats of 16 bits, NaN,
// infinities, and ordinary numbers.
double number(Random& random, pfrt_dtype type) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double sign = random.once_in(2) ? 1 : -1;
  if (type == PFRT_DTYPE_BOOL) return static_cast<double>(random.below(2));
  if (!cpu::kFloats.has(type)) {
    const double most = std::ldexp(1.0, static_cast<int>(dtype_bits(type)) - 1);
    switch (random.below(8)) {
      case 0:
        return -most;  // for unsigned types the middle
      case 1:
        return dtype_bits(type) == 64 ? most - 1024 : most - 1;
      case 2:
        return sign * std::floor(random.uniform(0, most));
      case 3:
        return sign * std::floor(std::exp2(random.uniform(0, dtype_bits(type) - 1.0)));
      default:
        return sign * static_cast<double>(random.below(20));
    }
  }
  switch (random.below(16)) {
    case 0:
      return std::nan("");
    case 1:
      return sign * kInfinity;
    case 2:
      return sign * 0.0;
    case 3:
      return sign * std::ldexp(random.uniform(0, 1), static_cast<int>(random.from_to(-150, -10)));
    case 4:
      return sign * std::ldexp(random.uniform(0, 1), static_cast<int>(random.from_to(10, 128)));
    case 5:
      return sign * std::ldexp(1.0, static_cast<int>(random.from_to(6, 64)));
    case 6:
      return sign * (std::ldexp(1.0, static_cast<int>(random.from_to(6, 33))) - 0.5);
    case 7:
      return sign * (static_cast<double>(random.below(300)) + 0.5);
    default:
      return random.uniform(-4, 4);
  }
}

Data numbers(Random& random, pfrt_dtype type, Dims dims) {
  Data data{type, std::move(dims), {}};
  for (int64_t i = count(data.dims); i > 0; --i) data.values.push_back(number(random, type));
  return data;
}

uint64_t bits_at(const std::vector<char>& bytes, size_t i, pfrt_dtype type) {
  uint64_t bits = 0;
  std::memcpy(&bits, bytes.data() + i * dtype_size(type), dtype_size(type));
  return bits;
}

double value_of(uint64_t bits, pfrt_dtype type) { return load(type, &bits, 1).front(); }

// Distance of two floats of one sign, in units in the last place.
uint64_t distance(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

// Compares bits, except that all NaNs are equal. It allows |units| in the last place and, when
// these are not 0, a zero where the exponential of a reference kernel has overflowed.
std::string difference(pfrt_dtype type, const std::vector<char>& got, const std::vector<char>& want,
                       uint64_t units) {
  if (got.size() != want.size()) return message(got.size(), " bytes, not ", want.size());
  for (size_t i = 0; i < got.size() / dtype_size(type); ++i) {
    const uint64_t a = bits_at(got, i, type), b = bits_at(want, i, type);
    const double x = value_of(a, type), y = value_of(b, type);
    if (distance(a, b) <= units || (std::isnan(x) && std::isnan(y))) continue;
    if (units > 0 && std::fabs(x - y) < 0x1p-116) continue;
    return message("element ", i, " is ", x, ", not ", y);
  }
  return {};
}

struct Compared {
  std::vector<std::string> kernels;
  size_t steps = 0;
};

// Runs |graph| with generated loops and without, and compares the results.
Compared compare(const Graph& graph, const char* isa, const std::string& what, uint64_t units = 0,
                 uint32_t workers = 1) {
  GraphOutcome plain, loops;
  {
    const IsaScope scope("generic");
    plain = run(graph);
  }
  {
    const IsaScope scope(isa);
    loops = run(graph, workers);
  }
  EXPECT_EQ(plain.fault, "") << what;
  EXPECT_EQ(loops.fault, "") << what;
  if (!plain.fault.empty() || !loops.fault.empty()) return {};
  for (size_t o = 0; o < graph.outputs.size(); ++o) {
    const uint32_t value = graph.outputs[o];
    const std::string fault =
        difference(graph.values[value].dtype, loops.outputs[o], plain.outputs[o], units);
    EXPECT_EQ(fault, "") << what << " value " << value << "\n  " << graph.text();
  }
  return {loops.kernels, loops.kernels.size()};
}

bool is_loop(const std::string& kernel) { return kernel.starts_with("elementwise_jit"); }

class TypedLoops : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (cpu::isa_from_name(GetParam()).value() > cpu::machine_isa())
      GTEST_SKIP() << "this machine has no " << GetParam();
  }
};

// Tests every pair of types and every length of the last vector.
TEST_P(TypedLoops, cast_as_reference_kernels) {
  for (pfrt_dtype from : kTypes)
    for (pfrt_dtype to : kTypes)
      for (int64_t n = 0; n <= 34; ++n) {
        Random random(1000 * from + 100 * to + static_cast<uint64_t>(n));
        Graph graph;
        const Dims dims{n == 34 ? 5000 : n};
        graph.outputs = {add(graph, "Cast", {graph.add(numbers(random, from, dims))}, to, dims)};
        const std::string what = message(dtype_name(from), " to ", dtype_name(to), " ", n);
        const Compared compared = compare(graph, GetParam(), what);
        const bool known = !cpu::kLongLanes.has(from) || to != PFRT_DTYPE_BFLOAT16;
        if (n == 0 && compared.kernels.empty()) continue;
        ASSERT_EQ(compared.kernels.size(), 1u) << what;
        ASSERT_EQ(is_loop(compared.kernels[0]), known) << what << " " << compared.kernels[0];
      }
}

// The constant has one element, which is part of the code.
TEST_P(TypedLoops, cast_constants) {
  for (pfrt_dtype from : kTypes)
    for (pfrt_dtype to : kTypes)
      for (uint64_t seed = 1; seed <= 12; ++seed) {
        Random random(seed);
        Graph graph;
        Data data = numbers(random, from, {});
        data.constant = true;
        graph.outputs = {add(graph, "Cast", {graph.add(std::move(data))}, to, {})};
        compare(graph, GetParam(), message(dtype_name(from), " to ", dtype_name(to), " ", seed));
      }
}

// Casts each number of the 16-bit float types to each type.
TEST_P(TypedLoops, cast_every_16bit_float) {
  for (pfrt_dtype from : {PFRT_DTYPE_FLOAT16, PFRT_DTYPE_BFLOAT16})
    for (pfrt_dtype to : kTypes) {
      Graph graph;
      Data data{from, {65536}, {}};
      for (uint32_t i = 0; i < 65536; ++i) data.values.push_back(value_of(i, from));
      const uint32_t x = graph.add(std::move(data));
      const uint32_t y = add(graph, "Cast", {x}, to, {65536});
      const uint32_t doubled = add(graph, "Add", {x, x}, from, {65536});
      graph.outputs = {y, doubled};
      compare(graph, GetParam(), message(dtype_name(from), " to ", dtype_name(to)));
    }
}

// Rounds float32 numbers near every boundary of the 16-bit float types.
TEST_P(TypedLoops, round_to_16_bits) {
  for (pfrt_dtype to : {PFRT_DTYPE_FLOAT16, PFRT_DTYPE_BFLOAT16}) {
    Graph graph;
    Data data{PFRT_DTYPE_FLOAT32, {}, {}};
    for (uint32_t bits = 0; bits < 0xffffffffu - 65521; bits += 65521)
      for (uint32_t off : {0u, 0x0fffu, 0x1000u, 0x1001u, 0x7fffu, 0x8000u, 0x8001u}) {
        const uint32_t near = (bits & 0xffff0000u) + off;
        float value;
        std::memcpy(&value, &near, sizeof value);
        data.values.push_back(static_cast<double>(value));
      }
    data.dims = {static_cast<int64_t>(data.values.size())};
    const Dims dims = data.dims;
    graph.outputs = {add(graph, "Cast", {graph.add(std::move(data))}, to, dims)};
    compare(graph, GetParam(), std::string(dtype_name(to)));
  }
}

// Returns the type of input |i| of a row's node.
pfrt_dtype input_type(const ElementwiseRow& row, pfrt_dtype type, size_t i) {
  return row.form == Form::kSelect && i == 0 ? pfrt_dtype{PFRT_DTYPE_BOOL} : type;
}

bool quantizes(const ElementwiseRow& row) {
  return row.form == Form::kQuantize || row.form == Form::kDequantize;
}

// Tests every operator and type and every length of the last vector, with operands of full size and
// scalars.
TEST_P(TypedLoops, compute_as_reference_kernels) {
  for (const std::span<const ElementwiseRow> rows : cpu::elementwise_rows())
    for (const ElementwiseRow& row : rows)
      for (pfrt_dtype type : kTypes) {
        if (!row.types.has(type) || row.form == Form::kCast || quantizes(row)) continue;
        const bool approximate = kApproximate.contains(row.op);
        if (approximate && type == PFRT_DTYPE_FLOAT32) continue;  // approximation_test.cc
        for (int64_t n = 0; n <= 36; n += kSanitized ? 5 : 1) {
          Random random(1000 * type + static_cast<uint64_t>(n));
          Graph graph;
          const Dims dims{n < 34 ? n : 3000};
          std::vector<uint32_t> inputs;
          size_t most = std::max<size_t>(row.min_inputs, row.op == "Clip" ? 3 : 1);
          for (size_t i = 0; i < most; ++i) {
            const bool bound = row.op == "Clip" && i > 0;
            const bool scalar = bound || (n % 3 == 1 && i + 1 == most && most > 1);
            Data data = numbers(random, input_type(row, type, i), scalar ? Dims{} : dims);
            data.constant = scalar && n % 2 == 0;
            if (row.form == Form::kPower && i == 1)
              data = Data{n % 2 == 0 ? type : pfrt_dtype{PFRT_DTYPE_INT64}, {}, {2}, true};
            inputs.push_back(graph.add(std::move(data)));
          }
          const pfrt_dtype out = row.form == Form::kTest ? pfrt_dtype{PFRT_DTYPE_BOOL} : type;
          graph.outputs = {add(graph, std::string(row.op), inputs, out, dims)};
          const std::string what = message(row.op, " ", dtype_name(type), " ", n);
          const Compared compared = compare(graph, GetParam(), what, approximate ? 1 : 0);
          if (n == 0 && compared.kernels.empty()) continue;
          ASSERT_EQ(compared.kernels.size(), 1u) << what;
          const bool moves_nothing = row.op == "Identity";
          ASSERT_NE(is_loop(compared.kernels[0]), moves_nothing) << what << compared.kernels[0];
        }
      }
}

constexpr pfrt_dtype kReals[] = {PFRT_DTYPE_FLOAT32, PFRT_DTYPE_FLOAT16, PFRT_DTYPE_BFLOAT16};
constexpr pfrt_dtype kSteps[] = {PFRT_DTYPE_INT8, PFRT_DTYPE_UINT8, PFRT_DTYPE_INT16,
                                 PFRT_DTYPE_UINT16};

Data scales(Random& random, pfrt_dtype type, Dims dims) {
  Data data{type, std::move(dims), {}};
  for (int64_t i = count(data.dims); i > 0; --i)
    data.values.push_back(random.once_in(8) ? number(random, type)
                                            : std::exp2(random.uniform(-6, 3)));
  return data;
}

// Adds a node with parameters for the tensor or, where |axis| is 0 or more, for each index of it;
// constant or not, and with or without a zero point.
uint32_t quantize(Graph& graph, Random& random, std::string op, uint32_t x, pfrt_dtype steps,
                  pfrt_dtype scale, pfrt_dtype to, int64_t axis) {
  const Dims dims = graph.values[x].dims;
  const auto rank = static_cast<int64_t>(dims.size());
  const Dims own = axis >= 0           ? Dims{dims[static_cast<size_t>(axis)]}
                   : random.once_in(2) ? Dims{}
                                       : Dims{1};
  Data parameters = scales(random, scale, own);
  const bool constant = parameters.constant = random.once_in(2);
  std::vector<uint32_t> inputs{x, graph.add(std::move(parameters))};
  if (!random.once_in(3) && steps != PFRT_DTYPE_INT32) {
    Data zeros = numbers(random, steps, own);
    zeros.constant = constant && random.once_in(2);
    inputs.push_back(graph.add(std::move(zeros)));
  }
  std::vector<Attr> attrs{{"block_size", int64_t{0}}};
  attrs.push_back(
      {"axis", axis >= 0 && random.once_in(2) ? axis - rank : std::max(axis, int64_t{0})});
  if (op == "QuantizeLinear") attrs.push_back({"saturate", int64_t{1}});
  if (op == "QuantizeLinear" && random.once_in(6))
    attrs.push_back({"precision", static_cast<int64_t>(kReals[random.below(3)])});
  return add(graph, std::move(op), inputs, to, dims, std::move(attrs));
}

// Tests every type of numbers, steps and scales and every length of the last vector, for the tensor
// and for each axis.
TEST_P(TypedLoops, quantize_as_reference_kernels) {
  for (pfrt_dtype real :
       {PFRT_DTYPE_FLOAT32, PFRT_DTYPE_FLOAT16, PFRT_DTYPE_BFLOAT16, PFRT_DTYPE_INT32})
    for (pfrt_dtype scale : kReals)
      for (pfrt_dtype steps : kSteps)
        for (int64_t n = 0; n <= 36; ++n) {
          Random random(100 * real + 10 * scale + steps + 1000 * static_cast<uint64_t>(n));
          const Dims dims = n < 34 ? Dims{n} : Dims{random.from_to(1, 4), random.from_to(1, 70), n};
          const int64_t axis = random.from_to(-1, static_cast<int64_t>(dims.size()) - 1);
          Graph graph;
          const uint32_t x = graph.add(numbers(random, real, dims));
          graph.outputs = {quantize(graph, random, "QuantizeLinear", x, steps, scale, steps, axis)};
          const std::string what = message(dtype_name(real), "/", dtype_name(scale), " to ",
                                           dtype_name(steps), " ", n, " axis ", axis);
          const Compared compared = compare(graph, GetParam(), what);
          if (n == 0 && compared.kernels.empty()) continue;
          ASSERT_EQ(compared.kernels.size(), 1u) << what;
          ASSERT_TRUE(is_loop(compared.kernels[0])) << what << " " << compared.kernels[0];
        }
}

TEST_P(TypedLoops, dequantize_as_reference_kernels) {
  for (pfrt_dtype real : kReals)
    for (pfrt_dtype scale : kReals)
      for (pfrt_dtype steps : {PFRT_DTYPE_INT8, PFRT_DTYPE_UINT8, PFRT_DTYPE_INT16,
                               PFRT_DTYPE_UINT16, PFRT_DTYPE_INT32})
        for (int64_t n = 0; n <= 36; ++n) {
          Random random(100 * real + 10 * scale + steps + 1000 * static_cast<uint64_t>(n));
          const Dims dims = n < 34 ? Dims{n} : Dims{random.from_to(1, 4), random.from_to(1, 70), n};
          const int64_t axis = random.from_to(-1, static_cast<int64_t>(dims.size()) - 1);
          Graph graph;
          const uint32_t x = graph.add(numbers(random, steps, dims));
          graph.outputs = {
              quantize(graph, random, "DequantizeLinear", x, steps, scale, real, axis)};
          const std::string what = message(dtype_name(steps), "*", dtype_name(scale), " to ",
                                           dtype_name(real), " ", n, " axis ", axis);
          const Compared compared = compare(graph, GetParam(), what);
          if (n == 0 && compared.kernels.empty()) continue;
          ASSERT_EQ(compared.kernels.size(), 1u) << what;
          ASSERT_TRUE(is_loop(compared.kernels[0])) << what << " " << compared.kernels[0];
        }
}

// Quantizes every float16 and bfloat16, and float32 near every tie, to bytes.
TEST_P(TypedLoops, quantize_every_tie) {
  Random random(1);
  std::vector<double> all{1.0, 0.1, 3.0, 0x1p-126, 1e30, 1e-30, -0.5, 0.0};
  for (int i = 0; i < (kSanitized ? 4 : 60); ++i) all.push_back(std::exp2(random.uniform(-20, 20)));
  for (pfrt_dtype real : kReals)
    for (pfrt_dtype steps : {PFRT_DTYPE_INT8, PFRT_DTYPE_UINT8})
      for (const double scale : all) {
        Graph graph;
        Data data{real, {}, {}};
        if (real != PFRT_DTYPE_FLOAT32) {
          for (uint32_t i = 0; i < 65536; ++i) data.values.push_back(value_of(i, real));
        } else {
          for (int step = -300; step <= 300; ++step)
            for (int off = -3; off <= 3; ++off) {
              const float tie = (static_cast<float>(step) + 0.5F) * static_cast<float>(scale);
              uint32_t bits;
              std::memcpy(&bits, &tie, sizeof bits);
              bits += static_cast<uint32_t>(off);
              data.values.push_back(value_of(bits, real));
            }
        }
        const Dims dims = data.dims = {static_cast<int64_t>(data.values.size())};
        const uint32_t x = graph.add(std::move(data));
        const uint32_t by = graph.add(Data{PFRT_DTYPE_FLOAT32, {}, {scale}, true});
        const uint32_t zero = graph.add(Data{steps, {}, {17}, true});
        const std::vector<Attr> attrs{{"axis", int64_t{0}}, {"block_size", int64_t{0}}};
        graph.outputs = {add(graph, "QuantizeLinear", {x, by, zero}, steps, dims, attrs)};
        compare(graph, GetParam(), message(dtype_name(real), " to ", dtype_name(steps), scale));
      }
}

// DequantizeLinear, operators between and QuantizeLinear become one loop over steps.
TEST_P(TypedLoops, quantize_what_was_dequantized_in_one_step) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    Graph graph;
    const Dims dims{random.from_to(1, 3), random.from_to(2, 20), random.from_to(32, 60)};
    const pfrt_dtype steps = kSteps[random.below(4)];
    const int64_t axis = random.from_to(-1, 1);
    std::vector<uint32_t> reals;
    for (int i = 0; i < 2; ++i)
      reals.push_back(quantize(graph, random, "DequantizeLinear",
                               graph.add(numbers(random, steps, dims)), steps, PFRT_DTYPE_FLOAT32,
                               PFRT_DTYPE_FLOAT32, i == 0 ? axis : -1));
    const uint32_t sum = add(graph, "Add", reals, PFRT_DTYPE_FLOAT32, dims);
    const uint32_t cut = add(graph, "Relu", {sum}, PFRT_DTYPE_FLOAT32, dims);
    graph.outputs = {quantize(graph, random, "QuantizeLinear", cut, PFRT_DTYPE_UINT8,
                              PFRT_DTYPE_FLOAT32, PFRT_DTYPE_UINT8, -1)};
    const Compared compared = compare(graph, GetParam(), message("seed ", seed), 0, 2);
    EXPECT_EQ(compared.steps, 1u) << graph.text();
  }
}

// The reference has blocks, quotients of float64, and zero points of int32.
TEST_P(TypedLoops, leave_other_quantizations_to_the_reference) {
  Random random(1);
  const auto expect_reference = [&](Graph& graph) {
    const Compared compared = compare(graph, GetParam(), graph.text());
    ASSERT_EQ(compared.kernels.size(), 1u);
    EXPECT_FALSE(is_loop(compared.kernels[0])) << graph.text();
  };
  Graph blocks;
  const uint32_t x = blocks.add(numbers(random, PFRT_DTYPE_FLOAT32, {4, 64}));
  const uint32_t by = blocks.add(scales(random, PFRT_DTYPE_FLOAT32, {4, 2}));
  blocks.outputs = {add(blocks, "QuantizeLinear", {x, by}, PFRT_DTYPE_UINT8, {4, 64},
                        {{"axis", int64_t{1}}, {"block_size", int64_t{32}}})};
  expect_reference(blocks);
  Graph wide;
  const uint32_t steps = wide.add(numbers(random, PFRT_DTYPE_INT32, {64}));
  const uint32_t scale = wide.add(scales(random, PFRT_DTYPE_FLOAT32, {}));
  const uint32_t zero = wide.add(numbers(random, PFRT_DTYPE_INT32, {}));
  wide.outputs = {add(wide, "DequantizeLinear", {steps, scale, zero}, PFRT_DTYPE_FLOAT32, {64},
                      {{"axis", int64_t{0}}, {"block_size", int64_t{0}}})};
  expect_reference(wide);
  // A number of scales that differs from the axis is an error, even if the scales are equal.
  Graph wrong;
  const uint32_t y = wrong.add(numbers(random, PFRT_DTYPE_FLOAT32, {4, 64}));
  const uint32_t three = wrong.add(Data{PFRT_DTYPE_FLOAT32, {3}, {0.5, 0.5, 0.5}, true});
  wrong.outputs = {add(wrong, "QuantizeLinear", {y, three}, PFRT_DTYPE_UINT8, {4, 64},
                       {{"axis", int64_t{0}}, {"block_size", int64_t{0}}})};
  for (const bool told : {true, false}) {
    if (!told) wrong.told = {{y, {-2, 64}}, {wrong.outputs[0], {-2, 64}}};
    const IsaScope scope(GetParam());
    EXPECT_NE(run(wrong).fault.find("the axis is 4 long"), std::string::npos) << run(wrong).fault;
  }
}

TEST_P(TypedLoops, find_infinities_of_a_sign) {
  for (pfrt_dtype type : {PFRT_DTYPE_FLOAT32, PFRT_DTYPE_FLOAT16, PFRT_DTYPE_BFLOAT16})
    for (int64_t signs = 0; signs < 4; ++signs) {
      Random random(type);
      Graph graph;
      const uint32_t x = graph.add(numbers(random, type, {1001}));
      graph.outputs = {add(graph, "IsInf", {x}, PFRT_DTYPE_BOOL, {1001},
                           {{"detect_negative", signs & 1}, {"detect_positive", signs >> 1}})};
      const Compared compared = compare(graph, GetParam(), message(dtype_name(type), signs));
      EXPECT_TRUE(is_loop(compared.kernels.at(0)));
    }
}

// A random graph of nodes with mixed types.
class Mixed {
 public:
  explicit Mixed(uint64_t seed) : random_(seed) {
    constexpr int64_t kSizes[] = {0, 1, 3, 7, 8, 9, 15, 16, 17, 31, 33, 100, 5000};
    const int64_t n = kSizes[random_.below(std::size(kSizes))];
    switch (random_.below(4)) {
      case 0:
        dims_ = {n};
        break;
      case 1:
        dims_ = {2, n, 8};
        break;
      case 2:
        dims_ = {n, random_.from_to(1, 7)};
        break;
      default:
        dims_ = {random_.from_to(1, 3), random_.from_to(1, 20), random_.from_to(1, 20)};
    }
    for (int64_t i = random_.from_to(1, 4); i > 0; --i) whole(any_type());
    for (int64_t i = random_.from_to(1, random_.once_in(4) ? 40 : 12); i > 0; --i) add_node();
    for (const GraphNode& node : graph_.nodes)
      if (&node == &graph_.nodes.back() || random_.once_in(5))
        graph_.outputs.push_back(node.outputs[0]);
  }
  Graph take() { return std::move(graph_); }

 private:
  pfrt_dtype any_type() { return kTypes[random_.below(std::size(kTypes))]; }

  uint32_t whole(pfrt_dtype type) { return graph_.add(numbers(random_, type, dims_)); }

  // Returns a value of the type: an earlier one, a cast to it, or a new one, perhaps of fewer
  // elements.
  uint32_t operand(pfrt_dtype type) {
    std::vector<uint32_t> fitting;
    for (uint32_t v = 0; v < graph_.values.size(); ++v)
      if (graph_.values[v].dtype == type && graph_.values[v].dims == dims_) fitting.push_back(v);
    if (!fitting.empty() && !random_.once_in(4))
      return fitting[fitting.size() - 1 -
                     static_cast<size_t>(random_.below(
                         std::min<int64_t>(4, static_cast<int64_t>(fitting.size()))))];
    if (random_.once_in(3)) {
      Data data = numbers(random_, type, random_.broadcast_to(dims_));
      data.constant = random_.once_in(2);
      return graph_.add(std::move(data));
    }
    if (random_.once_in(3)) return whole(type);
    const uint32_t from = any_whole();
    const pfrt_dtype from_type = graph_.values[from].dtype;
    if (cpu::kLongLanes.has(from_type) && type == PFRT_DTYPE_BFLOAT16) return whole(type);
    return add(graph_, "Cast", {from}, type, dims_);
  }

  uint32_t any_whole() {
    for (;;) {
      const auto v =
          static_cast<uint32_t>(random_.below(static_cast<int64_t>(graph_.values.size())));
      if (graph_.values[v].dims == dims_) return v;
    }
  }

  void add_node() {
    const auto tables = cpu::elementwise_rows();
    const auto rows = tables[static_cast<size_t>(random_.below(tables.size()))];
    const ElementwiseRow& row =
        rows[static_cast<size_t>(random_.below(static_cast<int64_t>(rows.size())))];
    const pfrt_dtype type = any_type();
    const bool plain = row.form == Form::kPower || row.op == "Clip";
    if (!row.types.has(type) || kApproximate.contains(row.op) || plain) return;
    if (row.form == Form::kCast) {
      const uint32_t from = any_whole();
      add(graph_, "Cast", {from}, type, dims_);
      return;
    }
    if (quantizes(row)) return add_quantization(row);
    std::vector<uint32_t> inputs;
    for (size_t i = 0; i < row.min_inputs; ++i)
      inputs.push_back(i == 0 && row.form != Form::kSelect && row.min_inputs == 1
                           ? whole_of(type)
                           : operand(input_type(row, type, i)));
    // At least one input must have the output's dimensions.
    if (std::ranges::none_of(inputs, [&](uint32_t v) { return graph_.values[v].dims == dims_; }))
      inputs.back() = whole_of(input_type(row, type, inputs.size() - 1));
    add(graph_, std::string(row.op), inputs,
        row.form == Form::kTest ? pfrt_dtype{PFRT_DTYPE_BOOL} : type, dims_);
  }

  void add_quantization(const ElementwiseRow& row) {
    const bool back = row.form == Form::kDequantize;
    const pfrt_dtype steps = kSteps[random_.below(4)], real = kReals[random_.below(3)];
    const uint32_t x = whole_of(back ? steps : real);
    const int64_t axis = random_.from_to(-1, static_cast<int64_t>(dims_.size()) - 1);
    quantize(graph_, random_, std::string(row.op), x, steps, kReals[random_.below(3)],
             back ? real : steps, axis);
  }

  uint32_t whole_of(pfrt_dtype type) {
    const uint32_t v = operand(type);
    return graph_.values[v].dims == dims_ ? v : whole(type);
  }

  Random random_;
  Dims dims_;
  Graph graph_;
};

Graph mixed(uint64_t seed) {
  for (;; seed += 1000000) {
    Graph graph = Mixed(seed).take();
    if (!graph.nodes.empty()) return graph;
  }
}

TEST_P(TypedLoops, mix_types) {
  size_t nodes = 0, steps = 0;
  for (uint64_t seed = 1; seed <= 400 && !HasFailure(); ++seed) {
    const Graph graph = mixed(seed);
    steps += compare(graph, GetParam(), message("seed ", seed)).steps;
    nodes += graph.nodes.size();
  }
  EXPECT_LT(steps, nodes * 2 / 3) << "of " << nodes << " nodes";
}

TEST_P(TypedLoops, mix_types_on_threads) {
  for (uint64_t seed = 1001; seed <= 1040 && !HasFailure(); ++seed)
    compare(mixed(seed), GetParam(), message("seed ", seed), 0, 3);
}

// Operands that change often, or between dimensions, share the loop.
TEST_P(TypedLoops, broadcast_in_one_step) {
  const struct {
    Dims whole;
    std::vector<Dims> operands;
  } kCases[] = {
      {{1000, 4}, {{1000, 1}, {4}}},
      {{700, 3}, {{700, 1}, {3}, {1, 3}, {}}},
      {{77, 12}, {{77, 1}, {12}, {77, 12}}},
      {{2, 5, 40}, {{2, 1, 40}, {2, 5, 1}, {5, 1}, {1, 1, 40}}},
      {{3, 7, 5, 2}, {{3, 1, 5, 1}, {7, 1, 2}, {1, 7, 1, 1}, {3, 1, 1, 2}}},
      {{300, 8}, {{300, 1}, {8}}},
      {{1, 4}, {{1, 1}, {4}}},
      {{0, 4}, {{0, 1}, {4}}},
  };
  for (const auto& each : kCases)
    for (pfrt_dtype type :
         {PFRT_DTYPE_FLOAT32, PFRT_DTYPE_FLOAT16, PFRT_DTYPE_INT8, PFRT_DTYPE_INT64}) {
      Random random(type);
      Graph graph;
      uint32_t x = graph.add(numbers(random, type, each.whole));
      for (const Dims& dims : each.operands)
        x = add(graph, "Add", {graph.add(numbers(random, type, dims)), x}, type, each.whole);
      graph.outputs = {x};
      const Compared compared = compare(graph, GetParam(), std::string(dtype_name(type)), 0, 2);
      EXPECT_EQ(compared.steps, 1u) << graph.text();
    }
}

// There are more operands to copy than one loop takes.
TEST_P(TypedLoops, leave_many_broadcasts_to_several_steps) {
  Random random(1);
  Graph graph;
  uint32_t x = graph.add(numbers(random, PFRT_DTYPE_INT32, {50, 3}));
  for (int i = 0; i < 20; ++i) {
    const Dims dims = i % 2 == 0 ? Dims{50, 1} : Dims{3};
    x = add(graph, "Add", {x, graph.add(numbers(random, PFRT_DTYPE_INT32, dims))}, PFRT_DTYPE_INT32,
            {50, 3});
  }
  graph.outputs = {x};
  const Compared compared = compare(graph, GetParam(), "20 operands");
  EXPECT_LE(compared.steps, 5u);
  EXPECT_GE(compared.steps, 2u);
  for (const std::string& kernel : compared.kernels) EXPECT_TRUE(is_loop(kernel)) << kernel;
}

// The dimensions are unknown to compile.
TEST_P(TypedLoops, mix_types_of_symbolic_dimensions) {
  for (uint64_t seed = 2001; seed <= 2150 && !HasFailure(); ++seed) {
    Graph graph = mixed(seed);
    for (uint32_t v = 0; v < graph.values.size(); ++v) {
      if (graph.values[v].constant) continue;
      Dims& told = graph.told[v] = graph.values[v].dims;
      for (int64_t& d : told)
        if (d != 1) d = -2 - d;
    }
    compare(graph, GetParam(), message("seed ", seed));
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, TypedLoops,
                         kSanitized ? testing::ValuesIn(std::vector{"avx2"})
                                    : testing::ValuesIn(std::vector{"avx2", "avx512"}),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace pfrt::test
