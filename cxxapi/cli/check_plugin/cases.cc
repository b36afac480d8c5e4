// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/check_plugin/cases.h"

#include <cmath>
#include <utility>

namespace cli::check {
namespace {

constexpr pfrt_dtype kF32 = PFRT_DTYPE_FLOAT32, kF64 = PFRT_DTYPE_FLOAT64, kI32 = PFRT_DTYPE_INT32,
                     kI64 = PFRT_DTYPE_INT64;

CaseAttr ints(std::string name, std::vector<int64_t> values) {
  CaseAttr a;
  a.name = std::move(name);
  a.type = PFRT_ATTR_INTS;
  a.ints = std::move(values);
  return a;
}
CaseAttr integer(std::string name, int64_t value) {
  CaseAttr a;
  a.name = std::move(name);
  a.i = value;
  return a;
}
CaseAttr number(std::string name, float value) {
  CaseAttr a;
  a.name = std::move(name);
  a.type = PFRT_ATTR_FLOAT;
  a.f = value;
  return a;
}

class Builder {
 public:
  explicit Builder(std::string name) { case_.name = std::move(name); }

  uint32_t input(pfrt_dtype dtype, std::vector<int64_t> dims) {
    const uint32_t v = value("x", dtype, std::move(dims));
    case_.inputs.push_back(v);
    return v;
  }
  uint32_t constant(pfrt_dtype dtype, std::vector<int64_t> dims) {
    const uint32_t v = value("w", dtype, std::move(dims));
    case_.values[v].constant = true;
    return v;
  }
  uint32_t int64s(const std::vector<double>& data) {
    const uint32_t v = constant(kI64, {static_cast<int64_t>(data.size())});
    case_.values[v].data = data;
    return v;
  }
  uint32_t node(const char* op, std::vector<uint32_t> inputs, std::vector<CaseAttr> attrs = {}) {
    CaseNode made{op, "", std::move(inputs), {}, std::move(attrs)};
    std::vector<const CaseValue*> operands;
    operands.reserve(made.inputs.size());
    for (uint32_t v : made.inputs)
      operands.push_back(v == PFRT_NO_INDEX ? nullptr : &case_.values[v]);
    CaseValue out;
    out.name = "y" + std::to_string(case_.values.size());
    out.dtype = operands[0]->dtype;
    out.producer = static_cast<uint32_t>(case_.nodes.size());
    evaluate(made, operands, &out);
    case_.values.push_back(std::move(out));
    made.outputs = {static_cast<uint32_t>(case_.values.size() - 1)};
    case_.nodes.push_back(std::move(made));
    return case_.nodes.back().outputs[0];
  }
  Case finish(std::vector<uint32_t> outputs) {
    case_.outputs = std::move(outputs);
    return std::move(case_);
  }

 private:
  // Adds a value of numbers that are exact in every type and look random; they are small, so that
  // products are exact too.
  uint32_t value(const char* stem, pfrt_dtype dtype, std::vector<int64_t> dims) {
    CaseValue v;
    v.name = stem + std::to_string(case_.values.size());
    v.dtype = dtype;
    int64_t count = 1;
    for (int64_t d : dims) count *= d;
    const bool whole = dtype == kI32 || dtype == kI64;
    uint64_t state = case_.values.size();  // a constant is the same for every batch
    for (int64_t i = 0; i < count; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      const auto step = static_cast<double>(static_cast<int64_t>(state >> 33) % 257 - 128);
      v.data.push_back(whole ? step : step / 128);
    }
    v.dims = std::move(dims);
    case_.values.push_back(std::move(v));
    return static_cast<uint32_t>(case_.values.size() - 1);
  }

  Case case_;
};

template <pfrt_dtype kType>
Case add(int64_t n) {
  Builder b("Add");
  return b.finish({b.node("Add", {b.input(kType, {n, 3}), b.input(kType, {n, 3})})});
}
template <pfrt_dtype kType>
Case mul_broadcast(int64_t n) {
  Builder b("Mul with broadcasting");
  const uint32_t x = b.input(kType, {n, 4, 3});
  return b.finish({b.node("Mul", {x, b.constant(kType, {4, 1})})});
}
Case scalars(int64_t) {
  Builder b("Sub of scalars");
  return b.finish({b.node("Sub", {b.input(kF32, {}), b.input(kF32, {})})});
}
Case long_add(int64_t n) {
  Builder b("Add of many elements");
  return b.finish({b.node("Add", {b.input(kF32, {n, 16411}), b.constant(kF32, {16411})})});
}
template <pfrt_dtype kType>
Case relu(int64_t n) {
  Builder b("Relu");
  return b.finish({b.node("Relu", {b.input(kType, {n, 17})})});
}
Case sigmoid(int64_t n) {
  Builder b("Sigmoid");
  return b.finish({b.node("Sigmoid", {b.input(kF32, {n, 5})})});
}
Case tanh_of_neg(int64_t n) {
  Builder b("Tanh of Neg");
  return b.finish({b.node("Tanh", {b.node("Neg", {b.input(kF32, {n, 33})})})});
}
template <pfrt_dtype kType>
Case mat_mul(int64_t n) {
  Builder b("MatMul");
  const uint32_t x = b.input(kType, {n, 19});
  return b.finish({b.node("MatMul", {x, b.constant(kType, {19, 21})})});
}
Case mat_mul_batched(int64_t n) {
  Builder b("MatMul in batches");
  const uint32_t x = b.input(kF32, {n, 3, 8});
  return b.finish({b.node("MatMul", {x, b.input(kF32, {n, 8, 5})})});
}
Case large_mat_mul(int64_t n) {
  Builder b("large MatMul");
  const uint32_t x = b.input(kF32, {16 * n, 96});
  return b.finish({b.node("MatMul", {x, b.constant(kF32, {96, 128})})});
}
Case gemm(int64_t n) {
  Builder b("Gemm");
  const uint32_t x = b.input(kF32, {n, 6}), w = b.constant(kF32, {7, 6});
  return b.finish({b.node(
      "Gemm", {x, w, b.constant(kF32, {7})},
      {number("alpha", 0.5f), number("beta", 2.0f), integer("transA", 0), integer("transB", 1)})});
}
std::vector<CaseAttr> window(int64_t kernel, int64_t stride, int64_t pad, int64_t group) {
  return {ints("kernel_shape", {kernel, kernel}), ints("strides", {stride, stride}),
          ints("pads", {pad, pad, pad, pad}), ints("dilations", {1, 1}), integer("group", group)};
}
Case conv(int64_t n) {
  Builder b("Conv");
  const uint32_t x = b.input(kF32, {n, 3, 9, 8}), w = b.constant(kF32, {5, 3, 3, 3});
  return b.finish({b.node("Conv", {x, w, b.constant(kF32, {5})}, window(3, 2, 1, 1))});
}
Case conv_groups(int64_t n) {
  Builder b("Conv in groups, Relu");
  const uint32_t x = b.input(kF32, {n, 4, 6, 6}), w = b.constant(kF32, {4, 1, 3, 3});
  return b.finish({b.node("Relu", {b.node("Conv", {x, w}, window(3, 1, 0, 4))})});
}
Case softmax(int64_t n) {
  Builder b("Softmax");
  return b.finish({b.node("Softmax", {b.input(kF32, {n, 4, 9})}, {integer("axis", 2)})});
}
Case softmax_middle(int64_t n) {
  Builder b("Softmax over a middle axis");
  return b.finish({b.node("Softmax", {b.input(kF32, {n, 4, 9})}, {integer("axis", 1)})});
}
Case reshape(int64_t n) {
  Builder b("Reshape");
  const uint32_t x = b.input(kF32, {n, 4, 6});
  return b.finish({b.node("Reshape", {x, b.int64s({0, -1})}, {integer("allowzero", 0)})});
}
template <pfrt_dtype kType>
Case concat(int64_t n) {
  Builder b("Concat");
  const uint32_t x = b.input(kType, {n, 2, 3}), y = b.input(kType, {n, 4, 3});
  return b.finish({b.node("Concat", {x, y}, {integer("axis", 1)})});
}
Case transpose(int64_t n) {
  Builder b("Transpose");
  return b.finish({b.node("Transpose", {b.input(kF32, {n, 5, 7})}, {ints("perm", {2, 0, 1})})});
}
Case identity(int64_t n) {
  Builder b("Identity");
  return b.finish({b.node("Identity", {b.input(kF32, {n, 3})})});
}
Case chain(int64_t n) {
  Builder b("Gemm, Relu, Gemm, Softmax");
  const uint32_t x = b.input(kF32, {n, 12});
  const std::vector<CaseAttr> plain = {number("alpha", 1), number("beta", 1), integer("transA", 0),
                                       integer("transB", 0)};
  const uint32_t h = b.node(
      "Relu", {b.node("Gemm", {x, b.constant(kF32, {12, 8}), b.constant(kF32, {8})}, plain)});
  const uint32_t y = b.node("Gemm", {h, b.constant(kF32, {8, 4}), b.constant(kF32, {4})}, plain);
  return b.finish({b.node("Softmax", {y}, {integer("axis", 1)})});
}
Case two_outputs(int64_t n) {
  Builder b("Add and Mul of one sum");
  const uint32_t x = b.input(kF32, {n, 10}), y = b.input(kF32, {n, 10});
  const uint32_t sum = b.node("Add", {x, y});
  const uint32_t product = b.node("Mul", {sum, y});
  return b.finish({sum, product, b.node("Sub", {product, x})});
}

Case unknown_operator(int64_t n) {
  Builder b("an operator that does not exist");
  Case c = b.finish({b.node("Relu", {b.input(kF32, {n, 3})})});
  c.nodes[0].op = "NoSuchOperator";
  c.nodes[0].domain = "check.invalid";
  c.known_operators = false;
  return c;
}
Case unknown_in_standard(int64_t n) {
  Case c = unknown_operator(n);
  c.nodes[0].domain = "";
  return c;
}

}  // namespace

const std::vector<CaseMaker>& case_makers() {
  static const std::vector<CaseMaker> all = {
      {add<kF32>, true},
      {add<kF64>, false},
      {add<kI32>, false},
      {add<kI64>, false},
      {mul_broadcast<kF32>, true},
      {mul_broadcast<kI64>, false},
      {scalars, false},
      {long_add, false},
      {relu<kF32>, true},
      {relu<kF64>, false},
      {sigmoid, false},
      {tanh_of_neg, true},
      {mat_mul<kF32>, true},
      {mat_mul<kF64>, false},
      {mat_mul_batched, true},
      {large_mat_mul, false},
      {gemm, true},
      {conv, true},
      {conv_groups, false},
      {softmax, true},
      {softmax_middle, false},
      {reshape, true},
      {concat<kF32>, true},
      {concat<kI64>, false},
      {transpose, true},
      {identity, true},
      {chain, true},
      {two_outputs, true},
      {unknown_operator, false},
      {unknown_in_standard, false},
  };
  return all;
}

std::string type_text(const CaseValue& value) {
  const char* name = value.dtype == kF32   ? "float32"
                     : value.dtype == kF64 ? "float64"
                     : value.dtype == kI32 ? "int32"
                     : value.dtype == kI64 ? "int64"
                                           : "uint8";
  std::string out = std::string(name) + " [";
  for (size_t i = 0; i < value.dims.size(); ++i)
    out += (i ? "," : "") + std::to_string(value.dims[i]);
  return out + "]";
}

}  // namespace cli::check
