// SPDX-License-Identifier: Apache-2.0
//
// Quantized graphs as exporters write them, with DequantizeLinear and QuantizeLinear around
// operators on float32. They become operators on integers where the result stays the same.
#include <gtest/gtest.h>

#include "core/pass/engine/pipeline.h"
#include "core/pass/rules/numbers.h"
#include "core/pass/rules/quantized/report.h"
#include "core/session/optimise.h"
#include "core/verify/verify.h"
#include "test/core/pass/writer.h"

namespace pfrt::test {
namespace {

template <typename T>
Tensor whole(pfrt_dtype dtype, const Dims& dims, const std::vector<int64_t>& values) {
  Tensor made = *Tensor::allocate(dtype, dims);
  for (size_t i = 0; i < values.size(); ++i) made.as<T>()[i] = static_cast<T>(values[i]);
  return made;
}

// A graph with quantized values, whose scale and zero point are chosen by name.
class Quantized : public Writer {
 public:
  // Adds the parameters |name|_s and |name|_z.
  void parameters(const std::string& name, double scale, int64_t zero,
                  pfrt_dtype dtype = PFRT_DTYPE_UINT8) {
    floats(name + "_s", {}, {scale});
    constant(name + "_z", dtype == PFRT_DTYPE_UINT8 ? whole<uint8_t>(dtype, {}, {zero})
                                                    : whole<int8_t>(dtype, {}, {zero}));
  }
  void quantize(const std::string& in, const std::string& out, const std::string& by) {
    node("QuantizeLinear", {in, by + "_s", by + "_z"}, {out});
  }
  void dequantize(const std::string& in, const std::string& out, const std::string& by) {
    node("DequantizeLinear", {in, by + "_s", by + "_z"}, {out});
  }
  // Adds int8 weights |name|, with a scale for each index of |axis|, or one for all (-1).
  void weights8(const std::string& name, const Dims& dims, int64_t axis = -1) {
    std::vector<int64_t> values;
    const int64_t count = element_count(dims.data(), dims.size());
    for (int64_t i = 0; i < count; ++i) values.push_back((i * 37 + 11) % 255 - 127);
    constant(name + "_q", whole<int8_t>(PFRT_DTYPE_INT8, dims, values));
    std::vector<double> scales;
    const int64_t many = axis < 0 ? 1 : dims[static_cast<size_t>(axis)];
    for (int64_t i = 0; i < many; ++i)
      scales.push_back(0.0031 * (1 + 0.1 * static_cast<double>(i)));
    floats(name + "_s", axis < 0 ? Dims{} : Dims{many}, scales);
    std::vector<Attribute> attrs;
    if (axis >= 0) attrs.push_back(Attribute::of_int("axis", axis));
    std::vector<std::string> inputs{name + "_q", name + "_s"};
    node("DequantizeLinear", inputs, {name}, attrs);
  }
  // Adds an int32 bias |name| in steps of the product of the scales of |x| and |w|.
  void bias32(const std::string& name, const std::string& x, const std::string& w, int64_t count) {
    std::vector<int64_t> values;
    for (int64_t i = 0; i < count; ++i) values.push_back(400 * i - 700);
    constant(name + "_q", whole<int32_t>(PFRT_DTYPE_INT32, {count}, values));
    const auto one = [&](const std::string& n) {
      return *to_doubles(graph().constant(graph().find(n + "_s")));
    };
    std::vector<double> scales;
    for (double s : one(w)) scales.push_back(s * one(x)[0]);
    floats(name + "_s", scales.size() == 1 ? Dims{} : Dims{count}, scales);
    node("DequantizeLinear", {name + "_q", name + "_s"}, {name}, {Attribute::of_int("axis", 0)});
  }
};

// Returns the operators left in order, or the error or the difference of results. |lines| gets the
// report about quantized groups.
std::string optimised(Writer& w, std::vector<std::string>* lines = nullptr,
                      std::vector<std::string> skip_passes = {}) {
  const std::shared_ptr<Graph> before = w.canonical();
  std::shared_ptr<Graph> after = before->clone();
  PassServices services({cpu_alone(), packed(), &silent_logger(), Progress()});
  PassContext context = services.context();
  PipelineConfig config;
  config.level = OptLevel::kAll;
  config.validate_after_pass = true;
  config.skip_passes = std::move(skip_passes);
  Pipeline pipeline = Pipeline::standard(config, &silent_logger());
  PassResult all;
  const Status status = pipeline.run_until_fixed_point(after, context, all);
  if (!status.ok()) return status.message();
  Verifier verifier(Verifier::Context{{cpu_alone(), packed(), &silent_logger(), Progress()}, {}});
  auto difference = verifier.difference(before, after);
  if (!difference.ok()) return difference.status().message();
  if (!difference->empty()) return *difference;
  if (verifier.notes().size() != 1) return verifier.notes().back();
  if (lines) {
    auto groups = quantized_groups(*after);
    if (!groups.ok()) return groups.status().message();
    *lines = quantized_lines(*groups);
  }
  std::string ops;
  auto order = after->topological_order();
  if (!order.ok()) return order.status().message();
  for (NodeId id : *order) {
    const Node& node = *after->node(id);
    ops += (ops.empty() ? "" : ", ") + node.op;
    // The schema of com.microsoft has no dilations.
    EXPECT_TRUE(node.domain.empty() || !node.attr("dilations")) << node.op;
  }
  return ops;
}

Attribute pads(std::vector<int64_t> values) {
  return Attribute::of_ints("pads", std::move(values));
}

struct ConvForm {
  int64_t axis = -1;  // axis of the weights' scales
  bool bias = true, relu = true;
  int64_t zero = 0;  // zero point of the result
  pfrt_dtype dtype = PFRT_DTYPE_UINT8;
  bool bias_of_numbers = false, used_twice = false;
};

Quantized conv(const ConvForm& form) {
  Quantized w;
  w.input("image", {"N", "3", "8", "8"});
  w.parameters("x", 0.017, 121);
  w.parameters("y", 0.031, form.zero, form.dtype);
  w.quantize("image", "xq", "x");
  w.dequantize("xq", "xr", "x");
  w.weights8("w", {4, 3, 3, 3}, form.axis);
  std::vector<std::string> inputs{"xr", "w"};
  if (form.bias_of_numbers) w.floats("b", {4}, {0.11, 0.07, -0.3, 0.0123});
  if (form.bias && !form.bias_of_numbers) w.bias32("b", "x", "w", 4);
  if (form.bias) inputs.push_back("b");
  w.node("Conv", inputs, {"c"}, {pads({1, 1, 1, 1})});
  if (form.relu) w.node("Relu", {"c"}, {"r"});
  w.quantize(form.relu ? "r" : "c", "yq", "y");
  w.dequantize("yq", "out", "y");
  w.output("out");
  if (form.used_twice) w.output("c");
  return w;
}

constexpr const char* kIntegerConv = "QuantizeLinear, QLinearConv, DequantizeLinear";

TEST(QuantizedRules, convolutions) {
  for (const ConvForm& form :
       {ConvForm{}, ConvForm{.axis = 0}, ConvForm{.bias = false}, ConvForm{.relu = false},
        ConvForm{.axis = 0, .zero = -128, .dtype = PFRT_DTYPE_INT8},
        ConvForm{.relu = false, .zero = 100}}) {
    Quantized w = conv(form);
    EXPECT_EQ(optimised(w), kIntegerConv) << form.axis << form.bias << form.relu << form.zero;
  }
}

TEST(QuantizedRules, convolutions_whose_steps_are_cut_within_the_range) {
  Quantized w = conv({.zero = 100});
  EXPECT_EQ(optimised(w), "QuantizeLinear, QLinearConv, Clip, DequantizeLinear");
}

struct TransposedForm {
  int64_t taps, stride, pad, group = 1;
  bool each = false, relu = false, bias_of_numbers = false;  // each: a scale a channel
  int64_t more = 0;                                          // output_padding
};

Quantized transposed_conv(const TransposedForm& form) {
  Quantized w;
  w.input("image", {"N", "4", "5", "7"});
  w.parameters("x", 0.017, 121);
  w.parameters("y", 0.031, form.relu ? 0 : 100);
  w.quantize("image", "xq", "x");
  w.dequantize("xq", "xr", "x");
  w.weights8("w", {4, 3, form.taps, form.taps}, form.each ? 1 : -1);
  if (form.bias_of_numbers)
    w.floats("b", {3}, {0.11, 0.07, -0.3});
  else
    w.bias32("b", "x", "w", 3 * form.group);
  w.node("ConvTranspose", {"xr", "w", "b"}, {"c"},
         {pads({form.pad, form.pad, form.pad, form.pad}),
          Attribute::of_ints("strides", {form.stride, form.stride}),
          Attribute::of_ints("output_padding", {form.more, form.more}),
          Attribute::of_int("group", form.group)});
  if (form.relu) w.node("Relu", {"c"}, {"r"});
  w.quantize(form.relu ? "r" : "c", "yq", "y");
  w.dequantize("yq", "out", "y");
  w.output("out");
  return w;
}

TEST(QuantizedRules, transposed_convolutions) {
  const std::string whole = "QuantizeLinear, QLinearConv, DepthToSpace, DequantizeLinear",
                    with_edges =
                        "QuantizeLinear, QLinearConv, DepthToSpace, Slice, DequantizeLinear";
  for (const TransposedForm& form :
       {TransposedForm{.taps = 2, .stride = 2, .pad = 0},
        TransposedForm{.taps = 2, .stride = 2, .pad = 0, .group = 2},
        TransposedForm{.taps = 2, .stride = 2, .pad = 0, .each = true, .relu = true},
        TransposedForm{.taps = 3, .stride = 3, .pad = 0}}) {
    Quantized w = transposed_conv(form);
    EXPECT_EQ(optimised(w), whole) << form.taps << form.group << form.each;
  }
  for (const TransposedForm& form :
       {TransposedForm{.taps = 4, .stride = 2, .pad = 1},
        TransposedForm{.taps = 4, .stride = 2, .pad = 1, .group = 2},
        TransposedForm{.taps = 3, .stride = 2, .pad = 1, .more = 1},
        TransposedForm{.taps = 5, .stride = 2, .pad = 2, .each = true},
        TransposedForm{.taps = 4, .stride = 2, .pad = 3},
        TransposedForm{.taps = 6, .stride = 4, .pad = 1, .relu = true, .more = 2}}) {
    Quantized w = transposed_conv(form);
    EXPECT_EQ(optimised(w), with_edges) << form.taps << form.pad << form.group;
  }
  Quantized dense = transposed_conv({.taps = 3, .stride = 1, .pad = 1});
  EXPECT_EQ(optimised(dense), "QuantizeLinear, QLinearConv, DequantizeLinear");
}

// Most taps would be zeros, or the bias is not a multiple of the step.
TEST(QuantizedRules, transposed_convolutions_that_stay) {
  for (const TransposedForm& form :
       {TransposedForm{.taps = 1, .stride = 2, .pad = 0},
        TransposedForm{.taps = 2, .stride = 2, .pad = 0, .bias_of_numbers = true}}) {
    Quantized w = transposed_conv(form);
    std::vector<std::string> lines;
    EXPECT_NE(optimised(w, &lines).find(", ConvTranspose,"), std::string::npos);
    EXPECT_NE(lines.back().find(form.taps == 1 ? "would be zeros" : "of whole steps"),
              std::string::npos)
        << lines.back();
  }
}

// With a bias that is not a multiple of the step, or with another user of the result, integers are
// summed and the rest stays float32.
TEST(QuantizedRules, convolutions_in_sums_of_integers) {
  Quantized numbers = conv({.axis = 0, .bias_of_numbers = true});
  EXPECT_EQ(optimised(numbers),
            "QuantizeLinear, ConvInteger, Cast, Mul, Add, QuantizeLinear, DequantizeLinear");
  Quantized cut = conv({.zero = 100, .bias_of_numbers = true});
  EXPECT_EQ(optimised(cut),
            "QuantizeLinear, ConvInteger, Cast, Mul, Add, Relu, QuantizeLinear, DequantizeLinear");
  Quantized twice = conv({.relu = false, .used_twice = true});
  EXPECT_EQ(optimised(twice),
            "QuantizeLinear, ConvInteger, Cast, Mul, Add, QuantizeLinear, DequantizeLinear");
}

// The weights' scales do not belong to output channels.
TEST(QuantizedRules, convolutions_that_stay) {
  Quantized axis = conv({.axis = 1});
  EXPECT_NE(optimised(axis).find(", Conv,"), std::string::npos);
}

TEST(QuantizedRules, clip_within_the_range_stays) {
  for (const double high : {31.0, 2.0}) {
    Quantized w;
    w.input("x", {"N", "6"});
    w.parameters("q", 0.05, 0);
    w.floats("low", {}, {0}).floats("high", {}, {high});
    w.node("Clip", {"x", "low", "high"}, {"c"});
    w.quantize("c", "y", "q");
    w.output("y");
    EXPECT_EQ(optimised(w), high > 12.75 ? "QuantizeLinear" : "Clip, QuantizeLinear");
  }
}

Quantized product(bool gemm, bool swapped, bool bias, int64_t axis, bool three = false) {
  Quantized w;
  w.input("m",
          three ? std::vector<std::string>{"B", "N", "5"} : std::vector<std::string>{"N", "5"});
  w.parameters("x", 0.017, 121);
  w.parameters("y", 0.029, 90);
  w.quantize("m", "xq", "x");
  w.dequantize("xq", "xr", "x");
  w.weights8("w", swapped ? Dims{7, 5} : Dims{5, 7}, axis);
  if (bias) w.bias32("b", "x", "w", 7);
  if (gemm) {
    std::vector<std::string> inputs{"xr", "w"};
    if (bias) inputs.push_back("b");
    w.node("Gemm", inputs, {"p"}, {Attribute::of_int("transB", swapped)});
  } else {
    w.node("MatMul", {"xr", "w"}, {bias ? "s" : "p"});
    if (bias) w.node("Add", {"b", "s"}, {"p"});
  }
  w.quantize("p", "yq", "y");
  w.dequantize("yq", "out", "y");
  w.output("out");
  return w;
}

TEST(QuantizedRules, products_of_matrices) {
  const std::string plain = "QuantizeLinear, QLinearMatMul, DequantizeLinear";
  for (Quantized w : {product(false, false, false, -1), product(false, false, false, 1),
                      product(true, false, false, -1), product(true, true, false, 0),
                      product(false, false, false, -1, true)})
    EXPECT_EQ(optimised(w), plain);
  const std::string sums =
      "QuantizeLinear, MatMulInteger, Cast, Mul, Add, QuantizeLinear, DequantizeLinear";
  for (Quantized w : {product(true, true, true, 0), product(true, false, true, -1),
                      product(false, false, true, 1), product(false, false, true, -1, true)})
    EXPECT_EQ(optimised(w), sums);
}

// Weights that are too large to be folded are transposed too, when they are packed.
TEST(QuantizedRules, swapped_constants_are_transposed_without_folding) {
  Quantized w = product(true, true, false, 0), sums = product(true, true, true, 0);
  EXPECT_EQ(optimised(w, nullptr, {"ConstantFoldingPass"}),
            "QuantizeLinear, QLinearMatMul, DequantizeLinear");
  EXPECT_EQ(optimised(sums, nullptr, {"ConstantFoldingPass"}).find("Transpose"), std::string::npos);
}

TEST(QuantizedRules, scales_along_the_wrong_axis_stay) {
  Quantized w = product(false, false, false, 0);
  EXPECT_NE(optimised(w).find(", MatMul,"), std::string::npos);
}

TEST(QuantizedRules, what_moves_elements_moves_integers) {
  Quantized w;
  w.input("x", {"N", "4", "6", "6"}, PFRT_DTYPE_UINT8);
  w.parameters("q", 0.02, 7);
  w.parameters("other", 0.03, 7);
  w.dequantize("x", "r", "q");
  w.node("MaxPool", {"r"}, {"pooled"},
         {Attribute::of_ints("kernel_shape", {2, 2}), Attribute::of_ints("strides", {2, 2})});
  w.node("Flatten", {"pooled"}, {"flat"});
  w.quantize("flat", "y", "q");
  w.output("y");
  EXPECT_EQ(optimised(w), "MaxPool, Flatten");

  // With other parameters the numbers change, so the integers are moved before that.
  Quantized v;
  v.input("x", {"N", "4"}, PFRT_DTYPE_UINT8).input("z", {"N", "4"}, PFRT_DTYPE_UINT8);
  v.parameters("q", 0.02, 7);
  v.parameters("other", 0.03, 7);
  v.dequantize("x", "r", "q");
  v.dequantize("z", "s", "q");
  v.node("Concat", {"r", "s"}, {"j"}, {Attribute::of_int("axis", 1)});
  v.quantize("j", "y", "other");
  v.output("y");
  EXPECT_EQ(optimised(v), "Concat, DequantizeLinear, QuantizeLinear");
}

TEST(QuantizedRules, pieces_of_other_scales_are_quantized_before_they_are_joined) {
  Quantized v;
  v.input("x", {"N", "4"}, PFRT_DTYPE_UINT8).input("z", {"N", "4"}, PFRT_DTYPE_UINT8);
  v.parameters("q", 0.02, 7);
  v.parameters("other", 0.03, 7);
  v.dequantize("x", "r", "q");
  v.dequantize("z", "s", "other");
  v.node("Concat", {"r", "s"}, {"j"}, {Attribute::of_int("axis", 1)});
  v.quantize("j", "y", "other");
  v.output("y");
  // The second piece already has the parameters of the result.
  EXPECT_EQ(optimised(v), "DequantizeLinear, QuantizeLinear, Concat");
}

TEST(QuantizedRules, splits_resizes_and_pads_move_integers) {
  Quantized w;
  w.input("x", {"N", "4", "6", "6"}, PFRT_DTYPE_UINT8);
  w.parameters("q", 0.02, 7);
  w.dequantize("x", "r", "q");
  w.node("Split", {"r"}, {"a", "b"},
         {Attribute::of_int("axis", 1), Attribute::of_int("num_outputs", 2)});
  w.floats("scales", {4}, {1, 1, 2, 2});
  w.node("Resize", {"a", "", "scales"}, {"larger"}, {Attribute::of_string("mode", "nearest")});
  w.ints("pads", {0, 0, 1, 1, 0, 0, 1, 1});
  w.node("Pad", {"b", "pads"}, {"around"});
  w.quantize("larger", "y", "q");
  w.quantize("around", "z", "q");
  w.output("y").output("z");
  EXPECT_EQ(optimised(w), "Split, Resize, Pad");

  // The padding's value may not be a step.
  Quantized v;
  v.input("x", {"N", "4"}, PFRT_DTYPE_UINT8);
  v.parameters("q", 0.02, 7);
  v.dequantize("x", "r", "q");
  v.ints("pads", {0, 1, 0, 1});
  v.floats("one", {}, {0.5});
  v.node("Pad", {"r", "pads", "one"}, {"around"});
  v.quantize("around", "y", "q");
  v.output("y");
  EXPECT_EQ(optimised(v), "DequantizeLinear, Pad, QuantizeLinear");

  Quantized lines;
  lines.input("x", {"N", "4", "6", "6"}, PFRT_DTYPE_UINT8);
  lines.parameters("q", 0.02, 7);
  lines.dequantize("x", "r", "q");
  lines.floats("scales", {4}, {1, 1, 2, 2});
  lines.node("Resize", {"r", "", "scales"}, {"larger"}, {Attribute::of_string("mode", "linear")});
  lines.quantize("larger", "y", "q");
  lines.output("y");
  EXPECT_EQ(optimised(lines), "DequantizeLinear, Resize, QuantizeLinear");
}

TEST(QuantizedRules, what_others_use_too_is_dequantized_twice) {
  Quantized w;
  w.input("x", {"N", "4", "6", "6"}, PFRT_DTYPE_UINT8);
  w.parameters("q", 0.02, 7);
  w.dequantize("x", "r", "q");
  w.node("MaxPool", {"r"}, {"pooled"},
         {Attribute::of_ints("kernel_shape", {2, 2}), Attribute::of_ints("strides", {2, 2})});
  w.node("GlobalAveragePool", {"r"}, {"mean"});
  w.quantize("pooled", "y", "q");
  w.output("y").output("mean");
  EXPECT_EQ(optimised(w), "DequantizeLinear, GlobalAveragePool, MaxPool");
}

using Lines = std::vector<std::string>;

TEST(QuantizedReport, counts_groups) {
  Lines lines;
  Quantized w = conv({});
  optimised(w, &lines);
  EXPECT_EQ(lines, Lines{"quantized groups: 1 in integers, 0 in float"});
  Quantized numbers = conv({.bias_of_numbers = true});
  optimised(numbers, &lines);
  EXPECT_EQ(lines, Lines{"quantized groups: 1 in integers, 0 in float"});

  // Both are one loop: the first goes from bytes to bytes, the second ends in float32.
  for (const bool quantized : {true, false}) {
    Quantized v;
    v.input("x", {"N", "4"}, PFRT_DTYPE_UINT8).input("z", {"N", "4"}, PFRT_DTYPE_UINT8);
    v.parameters("q", 0.02, 7);
    v.dequantize("x", "r", "q");
    v.dequantize("z", "s", "q");
    v.node("Add", {"r", "s"}, {"t"});
    if (quantized) v.quantize("t", "y", "q");
    v.output(quantized ? "y" : "t");
    optimised(v, &lines);
    if (quantized) {
      EXPECT_EQ(lines, Lines{"quantized groups: 1 in integers, 0 in float"});
    } else {
      ASSERT_EQ(lines.size(), 2u);
      EXPECT_EQ(lines[0], "quantized groups: 0 in integers, 1 in float");
      EXPECT_NE(lines[1].find("the result 't' is an output of the graph"), std::string::npos)
          << lines[1];
    }
  }
  Writer plain;
  plain.input("x", {"N"}).node("Relu", {"x"}, {"y"}).output("y");
  optimised(plain, &lines);
  EXPECT_TRUE(lines.empty());
}

// A mean of bytes of |from|, |global| or over a window. A Relu may follow, or another node may use
// the result.
Quantized averaged(bool global, pfrt_dtype from, bool relu = false, bool used_twice = false,
                   int64_t dilation = 1) {
  Quantized w;
  w.input("x", {"N", "4", "6", "6"}, from);
  w.parameters("q", 0.02, 7, from);
  w.parameters("y", 0.013, 9);
  w.dequantize("x", "r", "q");
  if (global)
    w.node("GlobalAveragePool", {"r"}, {"a"});
  else
    w.node("AveragePool", {"r"}, {"a"},
           {Attribute::of_ints("kernel_shape", {2, 2}),
            Attribute::of_ints("dilations", {dilation, dilation})});
  if (relu) w.node("Relu", {"a"}, {"b"});
  w.quantize(relu ? "b" : "a", "s", "y");
  w.output("s");
  if (used_twice) w.output("a");
  return w;
}

TEST(QuantizedRules, averages_of_bytes) {
  for (const pfrt_dtype from : {PFRT_DTYPE_UINT8, PFRT_DTYPE_INT8}) {
    Quantized window = averaged(false, from), whole = averaged(true, from);
    EXPECT_EQ(optimised(window), "QLinearAveragePool");
    EXPECT_EQ(optimised(whole), "QLinearGlobalAveragePool");
  }
}

TEST(QuantizedRules, averages_that_stay) {
  Quantized cut = averaged(false, PFRT_DTYPE_UINT8, true);
  EXPECT_EQ(optimised(cut), "DequantizeLinear, AveragePool, Relu, QuantizeLinear");
  Quantized twice = averaged(true, PFRT_DTYPE_UINT8, false, true);
  EXPECT_EQ(optimised(twice), "DequantizeLinear, GlobalAveragePool, QuantizeLinear");
  Quantized wide = averaged(true, PFRT_DTYPE_INT16);
  EXPECT_EQ(optimised(wide), "DequantizeLinear, GlobalAveragePool, QuantizeLinear");
  Quantized dilated = averaged(false, PFRT_DTYPE_UINT8, false, false, 2);
  EXPECT_EQ(optimised(dilated), "DequantizeLinear, AveragePool, QuantizeLinear");
}

TEST(QuantizedReport, says_why_a_group_is_in_float) {
  const auto reason = [](Quantized w) {
    Lines lines;
    optimised(w, &lines);
    return lines.size() == 2 ? lines[1] : "no line";
  };
  EXPECT_NE(reason(conv({.axis = 1})).find("along axis 1, which is not that of the output's"),
            std::string::npos)
      << reason(conv({.axis = 1}));
  EXPECT_NE(reason(product(false, false, false, 0)).find("along axis 0"), std::string::npos);

  Quantized weights_alone;
  weights_alone.input("m", {"N", "5"});
  weights_alone.weights8("w", {5, 7});
  weights_alone.node("MatMul", {"m", "w"}, {"out"});
  weights_alone.output("out");
  EXPECT_NE(reason(weights_alone).find("MatMul 'out_node': the first factor is not quantized"),
            std::string::npos)
      << reason(weights_alone);

  Quantized fed;
  fed.input("m", {"N", "5"}, PFRT_DTYPE_UINT8).input("x_s", {});
  fed.node("DequantizeLinear", {"m", "x_s"}, {"xr"});
  fed.weights8("w", {5, 7});
  fed.node("MatMul", {"xr", "w"}, {"out"});
  fed.output("out");
  EXPECT_NE(reason(fed).find("a scale is not constant"), std::string::npos) << reason(fed);

  Quantized mean;
  mean.input("x", {"N", "4", "6", "6"}, PFRT_DTYPE_UINT8);
  mean.parameters("q", 0.02, 7);
  mean.dequantize("x", "r", "q");
  mean.node("GlobalLpPool", {"r"}, {"m"});
  mean.quantize("m", "y", "q");
  mean.output("y");
  EXPECT_NE(reason(mean).find("there is no GlobalLpPool of integers"), std::string::npos);
  EXPECT_NE(
      reason(averaged(false, PFRT_DTYPE_UINT8, true)).find("the result is not quantized next"),
      std::string::npos);
}

TEST(QuantizedRules, only_the_exact_pair_cancels) {
  const auto pair = [](double second, bool numbers_first) {
    Quantized w;
    w.parameters("p", 0.02, 3);
    w.parameters("q", second, 3);
    if (numbers_first) {
      w.input("x", {"N"});
      w.quantize("x", "a", "p");
      w.dequantize("a", "y", "q");
    } else {
      w.input("x", {"N"}, PFRT_DTYPE_UINT8);
      w.dequantize("x", "a", "p");
      w.quantize("a", "b", "q");
      w.node("Cast", {"b"}, {"y"}, {Attribute::of_int("to", PFRT_DTYPE_INT32)});
    }
    w.output("y");
    return optimised(w);
  };
  EXPECT_EQ(pair(0.02, false), "Cast");
  EXPECT_EQ(pair(0.021, false), "DequantizeLinear, QuantizeLinear, Cast");
  EXPECT_EQ(pair(0.02, true), "QuantizeLinear, DequantizeLinear");
}

}  // namespace
}  // namespace pfrt::test
