// SPDX-License-Identifier: Apache-2.0
//
// Operators through the library at each level of optimisation, in the forms that exporters write:
// parameters that vary along other dimensions than usual, types of their own, ranks left out.
#include <cmath>

#include "test/capi/client.h"

namespace pfrt_test {
namespace {

constexpr const char* kOperatorLevels[] = {"none", "basic", "extended", "all"};

std::vector<std::vector<Array>> at_each_level(const GraphBuilder& g,
                                              const std::vector<Array>& inputs) {
  const auto env = make_env();
  std::vector<std::vector<Array>> out;
  for (const char* level : kOperatorLevels) {
    const auto options = make_options(PFRT_OPTIONS_SESSION, {{"optimization_level", level}});
    const auto session = make_session(env.get(), g, options.get());
    out.push_back(session ? run(session.get(), inputs) : std::vector<Array>());
  }
  return out;
}

void expect_near(const std::vector<float>& got, const std::vector<float>& want, double tolerance,
                 const char* what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], tolerance) << what << i;
}

// Element |i| of |x| broadcast to |shape|.
float broadcast_at(const Array& x, const std::vector<int64_t>& shape, int64_t i) {
  int64_t at = 0, stride = 1;
  for (size_t d = shape.size(); d-- > 0; i /= shape[d]) {
    const size_t from_right = shape.size() - d;
    if (from_right > x.dims.size()) break;
    const int64_t size = x.dims[x.dims.size() - from_right];
    if (size > 1) at += i % shape[d] * stride;
    stride *= size;
  }
  return x.as<float>()[static_cast<size_t>(at)];
}

// Normalises over the last dimension of |x|.
std::vector<float> normalised(const Array& x, bool centred, const Array& scale, const Array* bias) {
  std::vector<float> y = x.as<float>();
  const auto length = static_cast<size_t>(x.dims.back());
  for (size_t row = 0; row < y.size(); row += length) {
    double mean = 0, square = 0;
    for (size_t i = row; i < row + length; ++i) mean += centred ? y[i] : 0;
    mean /= static_cast<double>(length);
    for (size_t i = row; i < row + length; ++i) square += (y[i] - mean) * (y[i] - mean);
    const double inverse = 1 / std::sqrt(square / static_cast<double>(length) + 1e-5);
    for (size_t i = row; i < row + length; ++i) {
      const auto at = static_cast<int64_t>(i);
      y[i] = static_cast<float>((y[i] - mean) * inverse * broadcast_at(scale, x.dims, at) +
                                (bias ? broadcast_at(*bias, x.dims, at) : 0));
    }
  }
  return y;
}

TEST(Normalisation, scale_and_bias_may_vary_along_any_dimension) {
  const Array x = noise({2, 8, 8}, 1), skip = noise({2, 8, 8}, 2);
  for (const std::vector<int64_t>& dims : std::vector<std::vector<int64_t>>{
           {8}, {8, 8}, {8, 1}, {1, 8, 1}, {2, 8, 8}, {2, 1, 1}, {2, 1, 8}, {1}, {}})
    for (const bool centred : {true, false})
      for (const bool constant : {true, false}) {
        size_t count = 1;
        for (const int64_t d : dims) count *= static_cast<size_t>(d);
        const Array scale = floats(dims, random_floats(count, 3)),
                    bias = floats(dims, random_floats(count, 4));
        GraphBuilder g;
        g.input("x", PFRT_DTYPE_FLOAT32, {"B", 8, 8});
        g.input("skip", PFRT_DTYPE_FLOAT32, {"B", 8, 8});
        std::vector<Array> inputs{x, skip};
        std::vector<std::string> names{"sum", "scale"};
        if (centred) names.push_back("bias");
        for (size_t i = 1; i < names.size(); ++i) {
          const Array& value = i == 1 ? scale : bias;
          if (constant) {
            g.constant(names[i], value);
            continue;
          }
          const std::vector<DimSpec> open(value.dims.begin(), value.dims.end());
          g.input(names[i], PFRT_DTYPE_FLOAT32, open);
          inputs.push_back(value);
        }
        g.node("Add", {"x", "skip"}, {"sum"});
        g.node(centred ? "LayerNormalization" : "RMSNormalization", names, {"y"},
               {Attr::of_int("axis", -1)});
        g.output("y");
        g.output("sum");
        for (const std::vector<Array>& out : at_each_level(g, inputs)) {
          ASSERT_EQ(out.size(), 2u);
          expect_near(out[0].as<float>(),
                      normalised(out[1], centred, scale, centred ? &bias : nullptr), 1e-5,
                      "element ");
        }
      }
}

TEST(Normalisation, a_scale_that_does_not_broadcast_is_a_fault_of_the_model) {
  const auto env = make_env();
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"B", 4, 8});
  g.constant("scale", noise({4, 4}, 1));
  g.node("LayerNormalization", {"x", "scale"}, {"y"}, {Attr::of_int("axis", -1)}, "norm");
  g.output("y");
  EXPECT_TRUE(fails(try_session(env.get(), g), PFRT_CODE_SHAPE_MISMATCH,
                    {"LayerNormalization 'norm'", "input 1 of shape [4,4]", "[B,4,8]"}));
}

Array halves(const std::vector<int64_t>& dims, const std::vector<uint16_t>& values) {
  Array out{PFRT_DTYPE_FLOAT16, dims, std::vector<char>(values.size() * 2)};
  std::memcpy(out.bytes.data(), values.data(), out.bytes.size());
  return out;
}

// The input is float16 and the scale float32, so Y is float32 and is not rounded in between.
TEST(Normalisation, has_the_type_of_its_scale_where_the_operator_lets_it) {
  const struct {
    const char* op;
    int64_t opset;
  } kCases[] = {
      {"LayerNormalization", 12}, {"SimplifiedLayerNormalization", 12}, {"RMSNormalization", 23}};
  const Array x = halves({1, 4}, {0x3C00, 0x4000, 0x4200, 0x4400}),
              wide = floats({1, 4}, {1, 2, 3, 4});
  const Array scale = floats({4}, {1.001F, 0.3333F, 3, 0.1F});
  for (const auto& c : kCases) {
    GraphBuilder g;
    g.opset(c.opset);
    g.input("x", PFRT_DTYPE_FLOAT16, {1, 4});
    g.constant("scale", scale);
    g.node(c.op, {"x", "scale"}, {"y"}, {Attr::of_int("axis", -1)});
    g.output("y");
    const bool centred = std::string_view(c.op) == "LayerNormalization";
    for (const std::vector<Array>& out : at_each_level(g, {x})) {
      ASSERT_EQ(out.size(), 1u);
      ASSERT_EQ(out[0].dtype, PFRT_DTYPE_FLOAT32) << c.op;
      expect_near(out[0].as<float>(), normalised(wide, centred, scale, nullptr), 1e-6, c.op);
    }
  }
  const auto env = make_env();
  GraphBuilder g;
  g.opset(17);
  g.input("x", PFRT_DTYPE_FLOAT16, {1, 4});
  g.constant("scale", scale);
  g.node("LayerNormalization", {"x", "scale"}, {"y"}, {}, "norm");
  g.output("y");
  EXPECT_TRUE(fails(try_session(env.get(), g), PFRT_CODE_DTYPE_MISMATCH,
                    {"LayerNormalization 'norm'", "float32", "float16"}));
}

Array int8s(const std::vector<int8_t>& values) {
  Array out{
      PFRT_DTYPE_INT8, {static_cast<int64_t>(values.size())}, std::vector<char>(values.size())};
  std::memcpy(out.bytes.data(), values.data(), values.size());
  return out;
}

TEST(BitShift, of_signed_integers_keeps_the_sign_alone) {
  const std::vector<int8_t> x = {-128, -3, 127, 1, -1, -1, 5, -5, 64},
                            by = {1, 1, 1, 7, -1, 8, -1, 100, 1},
                            right = {-64, -2, 63, 0, -1, -1, 0, -1, 32},
                            left = {0, -6, -2, -128, 0, 0, 0, 0, -128};
  for (const char* direction : {"RIGHT", "LEFT"}) {
    GraphBuilder g;
    g.opset(28);
    g.input("x", PFRT_DTYPE_INT8, {"N"});
    g.input("by", PFRT_DTYPE_INT8, {"N"});
    g.node("BitShift", {"x", "by"}, {"y"}, {Attr::of_string("direction", direction)});
    g.output("y");
    const Array want = int8s(std::string_view(direction) == "RIGHT" ? right : left);
    for (const std::vector<Array>& out : at_each_level(g, {int8s(x), int8s(by)})) {
      ASSERT_EQ(out.size(), 1u);
      EXPECT_EQ(out[0].bytes, want.bytes) << direction;
    }
  }
}

TEST(Mod, of_floats_has_the_sign_of_the_divisor) {
  const float inf = INFINITY, nan = NAN;
  const std::vector<float> x = {5.5F, -5.5F, 5.5F, -5.5F, 0, -0.0F, 0, inf, 1, 1, -1, 2, -2, nan},
                           y = {2, 2, -2, -2, 3, 3, -3, 2, 0, inf, inf, -inf, -inf, 1},
                           want = {1.5F, 0.5F, -0.5F, -1.5F, 0,    0,  -0.0F,
                                   nan,  nan,  1,     inf,   -inf, -2, nan};
  GraphBuilder g;
  g.opset(28);
  g.input("x", PFRT_DTYPE_FLOAT32, {"N"});
  g.input("y", PFRT_DTYPE_FLOAT32, {"N"});
  g.node("Mod", {"x", "y"}, {"z"});
  g.output("z");
  const auto count = static_cast<int64_t>(x.size());
  for (const std::vector<Array>& out : at_each_level(g, {floats({count}, x), floats({count}, y)})) {
    ASSERT_EQ(out.size(), 1u);
    const std::vector<float> got = out[0].as<float>();
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_TRUE(std::isnan(want[i]) ? std::isnan(got[i]) : got[i] == want[i])
          << i << " " << got[i];
      EXPECT_TRUE(std::isnan(want[i]) || std::signbit(got[i]) == std::signbit(want[i])) << i;
    }
  }
}

// Weights are (stored - 8) * scale for any instructions. With an infinite scale, weights of 0 give
// NaN, and others give infinities of both signs, whose sum is NaN too.
TEST(MatMulNBits, scales_that_are_not_finite_are_those_of_single_weights) {
  constexpr int64_t kN = 20, kK = 32;
  const std::vector<uint8_t> fields = {0x99, 0x11, 0x91, 0x89};  // columns: 1, -7, both, 1 and 0
  std::vector<uint8_t> stored;
  for (int64_t n = 0; n < kN; ++n)
    stored.insert(stored.end(), kK / 2, fields[static_cast<size_t>(n % 4)]);
  std::vector<float> scales(kN, 1);
  for (size_t n = 4; n < 12; ++n) scales[n] = n < 8 ? INFINITY : NAN;
  Array weights{PFRT_DTYPE_UINT8, {kN, 1, kK / 2}, std::vector<char>(stored.size())};
  std::memcpy(weights.bytes.data(), stored.data(), stored.size());
  for (const int64_t accuracy : {0, 4})
    for (const int64_t rows : {1, 3, 40}) {
      GraphBuilder g;
      g.input("a", PFRT_DTYPE_FLOAT32, {"M", kK});
      g.constant("b", weights);
      g.constant("s", floats({kN}, scales));
      g.node("MatMulNBits", {"a", "b", "s"}, {"y"},
             {Attr::of_int("K", kK), Attr::of_int("N", kN), Attr::of_int("bits", 4),
              Attr::of_int("block_size", kK), Attr::of_int("accuracy_level", accuracy)},
             "", "com.microsoft");
      g.output("y");
      const Array a = floats({rows, kK}, std::vector<float>(static_cast<size_t>(rows * kK), 1));
      for (const std::vector<Array>& out : at_each_level(g, {a})) {
        ASSERT_EQ(out.size(), 1u);
        const std::vector<float> y = out[0].as<float>();
        for (size_t i = 0; i < y.size(); ++i) {
          const size_t n = i % kN;
          const float want[] = {kK, -7 * kK, -3 * kK, kK / 2};
          const bool is_nan = n >= 6 && n < 12;
          if (is_nan) {
            EXPECT_TRUE(std::isnan(y[i])) << n << " " << y[i];
          } else if (n == 4 || n == 5) {
            EXPECT_EQ(y[i], n == 4 ? INFINITY : -INFINITY);
          } else {
            EXPECT_NEAR(y[i], want[n % 4], 1e-3) << n;
          }
        }
      }
    }
}

// A node that contradicts itself is a fault of the model, not a missing operator.
TEST(InvalidModel, is_what_a_node_that_contradicts_itself_makes) {
  const auto env = make_env();
  const auto refused = [&](GraphBuilder& g) {
    g.output("y");
    return try_session(env.get(), g);
  };
  GraphBuilder linear;
  linear.opset(1, "ai.onnx.ml");
  linear.input("x", PFRT_DTYPE_FLOAT32, {"N", 3});
  Attr coefficients;
  coefficients.name = "coefficients", coefficients.type = PFRT_ATTR_FLOATS;
  coefficients.floats = {1, 2};
  linear.node("LinearRegressor", {"x"}, {"y"}, {coefficients}, "", "ai.onnx.ml");
  EXPECT_TRUE(
      fails(refused(linear), PFRT_CODE_INVALID_MODEL, {"LinearRegressor", "2", "3 features"}));
  GraphBuilder axis;
  axis.input("x", PFRT_DTYPE_FLOAT32, {2, 3});
  axis.node("Softmax", {"x"}, {"y"}, {Attr::of_int("axis", 5)});
  EXPECT_TRUE(fails(refused(axis), PFRT_CODE_INVALID_MODEL, {"Softmax", "axis 5", "rank 2"}));
  GraphBuilder word;
  word.input("x", PFRT_DTYPE_FLOAT32, {1, 4, 2, 2});
  word.node("DepthToSpace", {"x"}, {"y"},
            {Attr::of_int("blocksize", 2), Attr::of_string("mode", "XYZ")});
  EXPECT_TRUE(fails(refused(word), PFRT_CODE_INVALID_MODEL, {"'mode' is 'XYZ'", "'CRD'"}));
  GraphBuilder arity;
  arity.input("x", PFRT_DTYPE_FLOAT32, {2});
  arity.node("Add", {"x"}, {"y"});
  EXPECT_TRUE(fails(refused(arity), PFRT_CODE_INVALID_MODEL, {"Add", "has 1 inputs, takes 2"}));
  GraphBuilder logical;
  logical.input("x", PFRT_DTYPE_FLOAT32, {2});
  logical.node("And", {"x", "x"}, {"y"});
  EXPECT_TRUE(fails(refused(logical), PFRT_CODE_DTYPE_MISMATCH, {"And", "float32", "bool"}));
  GraphBuilder unknown;
  unknown.input("x", PFRT_DTYPE_FLOAT32, {2});
  unknown.node("Nothing", {"x"}, {"y"});
  EXPECT_TRUE(fails(refused(unknown), PFRT_CODE_UNSUPPORTED_OPERATOR, {"Nothing"}));
}

TEST(Deterministic, batch_is_refused_where_rows_are_quantized_together) {
  const auto env = make_env();
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", 4});
  g.node("DynamicQuantizeLinear", {"x"}, {"q", "s", "z"}, {}, "together");
  g.node("DequantizeLinear", {"q", "s", "z"}, {"y"});
  g.output("y");
  EXPECT_TRUE(ok(try_session(env.get(), g)));
  const auto options = make_options(PFRT_OPTIONS_SESSION, {{"deterministic", "batch"}});
  EXPECT_TRUE(fails(try_session(env.get(), g, options.get()), PFRT_CODE_UNSUPPORTED,
                    {"'batch'", "DynamicQuantizeLinear 'together'"}));
}

TEST(Stft, takes_a_real_signal_without_a_last_dimension) {
  const auto model = [](bool flat) {
    GraphBuilder g;
    g.opset(17);
    g.input("x", PFRT_DTYPE_FLOAT32,
            flat ? std::vector<DimSpec>{"B", "T"} : std::vector<DimSpec>{"B", "T", 1});
    g.constant("step", int64s({}, {8}));
    g.constant("window", noise({16}, 2));
    g.constant("length", int64s({}, {16}));
    g.node("STFT", {"x", "step", "window", "length"}, {"y"});
    g.output("y");
    return g;
  };
  Array x = noise({2, 64, 1}, 1);
  const std::vector<Array> want = at_each_level(model(false), {x})[0];
  x.dims.pop_back();
  for (const std::vector<Array>& out : at_each_level(model(true), {x})) {
    ASSERT_EQ(out.size(), 1u);
    EXPECT_EQ(out[0].dims, (std::vector<int64_t>{2, 7, 9, 2}));
    EXPECT_EQ(out[0].bytes, want[0].bytes);
  }
}

// A decoder as exporters write it: a table for the whole batch, with heads made and joined around
// it.
GraphBuilder decoder() {
  GraphBuilder g;
  g.opset(23);
  g.input("x", PFRT_DTYPE_FLOAT32, {"b", "s", 16});
  g.input("c", PFRT_DTYPE_FLOAT32, {"c", "s", 4});
  g.input("n", PFRT_DTYPE_FLOAT32, {"c", "s", 4});
  g.constant("heads", int64s({4}, {0, 0, 2, 8}));
  g.constant("joined", int64s({3}, {0, 0, 16}));
  g.node("Reshape", {"x", "heads"}, {"r"});
  g.node("Transpose", {"r"}, {"t"}, {Attr::of_ints("perm", {0, 2, 1, 3})});
  g.node("RotaryEmbedding", {"t", "c", "n"}, {"q"}, {}, "turn");
  g.node("Attention", {"q", "q", "t"}, {"a"}, {}, "attend");
  g.node("Transpose", {"a"}, {"u"}, {Attr::of_ints("perm", {0, 2, 1, 3})});
  g.node("Reshape", {"u", "joined"}, {"y"});
  g.output("y");
  return g;
}

TEST(RotaryEmbedding, takes_caches_of_one_batch_beside_many) {
  const Array x = noise({3, 5, 16}, 1), c = noise({1, 5, 4}, 2), n = noise({1, 5, 4}, 3);
  Array wide_c{c.dtype, {3, 5, 4}, {}}, wide_n = wide_c;
  for (int b = 0; b < 3; ++b) {
    wide_c.bytes.insert(wide_c.bytes.end(), c.bytes.begin(), c.bytes.end());
    wide_n.bytes.insert(wide_n.bytes.end(), n.bytes.begin(), n.bytes.end());
  }
  const GraphBuilder g = decoder();
  const auto want = at_each_level(g, {x, wide_c, wide_n}), got = at_each_level(g, {x, c, n});
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_EQ(got[i][0].bytes, want[i][0].bytes) << kOperatorLevels[i];
}

TEST(RotaryEmbedding, is_named_where_its_caches_do_not_fit) {
  const auto env = make_env();
  const GraphBuilder g = decoder();
  for (const char* level : kOperatorLevels) {
    const auto options = make_options(PFRT_OPTIONS_SESSION, {{"optimization_level", level}});
    const auto session = make_session(env.get(), g, options.get());
    EXPECT_TRUE(fails(
        try_run(session.get(), {noise({3, 5, 16}, 1), noise({2, 5, 4}, 2), noise({2, 5, 4}, 3)}),
        PFRT_CODE_SHAPE_MISMATCH, {"RotaryEmbedding 'turn'"}))
        << level;
  }
}

// A fed value may have any declared shape; the default's shape restricts nothing.
TEST(Defaults, shape_of_a_default_binds_nobody) {
  const auto env = make_env();
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {12});
  g.input("shape", PFRT_DTYPE_INT64, {4});
  pfrt_value_info open{};
  open.struct_size = sizeof open;
  open.kind = PFRT_VALUE_TENSOR;
  open.dtype = PFRT_DTYPE_FLOAT32;
  open.name = str("w");
  open.rank = -1;
  ASSERT_TRUE(ok(api().graph->add_input(g.get(), &open)));
  g.input("b", PFRT_DTYPE_FLOAT32, {"N", 1});
  g.constant("shape", int64s({4}, {1, 1, 3, 4}));
  g.constant("w", floats({1, 1, 1, 1}, {2}));
  g.constant("b", floats({1, 1}, {0}));
  g.node("Reshape", {"x", "shape"}, {"r"});
  g.node("Conv", {"r", "w"}, {"c"});
  g.node("Add", {"c", "b"}, {"y"});
  g.output("y");
  const Array x = floats({12}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  for (const char* level : kOperatorLevels) {
    const auto options = make_options(PFRT_OPTIONS_SESSION, {{"optimization_level", level}});
    const auto session = make_session(env.get(), g, options.get());
    EXPECT_EQ(run(session.get(), {x, Array(), Array(), Array()})[0].as<float>()[11], 22) << level;
    const Array w = floats({1, 1, 2, 2}, {1, 1, 1, 1}), b = floats({2, 1}, {100, 200});
    const std::vector<Array> out = run(session.get(), {x, int64s({4}, {1, 1, 3, 4}), w, b});
    EXPECT_EQ(out[0].dims, (std::vector<int64_t>{1, 1, 2, 3})) << level;
    EXPECT_EQ(out[0].as<float>(), (std::vector<float>{110, 114, 118, 226, 230, 234})) << level;
    EXPECT_TRUE(fails(
        try_run(session.get(), {x, int64s({4}, {1, 1, 3, 4}), w, floats({2, 2}, {1, 2, 3, 4})}),
        PFRT_CODE_SHAPE_MISMATCH, {"input 'b' expects [N,1], got [2,2]"}));
  }
}

TEST(Resize, explain_tells_once_of_lengths_that_are_not_whole) {
  const auto env = make_env();
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {1, 1, 5, 5});
  g.constant("whole", floats({4}, {1, 1, 2, 2}));
  g.constant("broken", floats({4}, {1, 1, 1.5F, 1.5F}));
  const std::vector<Attr> corners{
      Attr::of_string("mode", "linear"),
      Attr::of_string("coordinate_transformation_mode", "align_corners")};
  g.node("Resize", {"x", "", "whole"}, {"a"}, corners, "first");
  g.node("Resize", {"x", "", "broken"}, {"b"}, corners, "second");
  g.node("Resize", {"b", "", "broken"}, {"c"}, corners, "third");
  g.node("Resize", {"x", "", "broken"}, {"d"}, {Attr::of_string("mode", "linear")}, "fourth");
  for (const char* name : {"a", "c", "d"}) g.output(name);
  const auto session = make_session(env.get(), g);
  pfrt_report* made = nullptr;
  ASSERT_TRUE(ok(api().session->explain(session.get(), &made)));
  const Handle<pfrt_report> report(made);
  size_t told = 0;
  for (size_t i = 0; i < api().report->note_count(report.get()); ++i) {
    const std::string note = text(api().report->note_at(report.get(), i));
    if (note.find("no whole length") == std::string::npos) continue;
    ++told;
    EXPECT_NE(note.find("Resize 'second': 5 times 1.5"), std::string::npos) << note;
    EXPECT_NE(note.find("(2 nodes)"), std::string::npos) << note;
  }
  EXPECT_EQ(told, 1u);
}

}  // namespace
}  // namespace pfrt_test
