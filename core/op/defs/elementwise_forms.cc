// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <numeric>
#include <string>

#include "core/op/defs/common/helpers.h"
#include "core/op/defs/elementwise.h"
#include "core/op/engine/rewriter.h"
#include "core/op/engine/string_numbers.h"

namespace pfrt {
namespace {

constexpr AttrDefault kElementwiseFormsDefaults[] = {
    {"LeakyRelu", "alpha", PFRT_ATTR_FLOAT, 0.01},
    {"ThresholdedRelu", "alpha", PFRT_ATTR_FLOAT, 1},
    {"Elu", "alpha", PFRT_ATTR_FLOAT, 1},
    {"Celu", "alpha", PFRT_ATTR_FLOAT, 1},
    {"Swish", "alpha", PFRT_ATTR_FLOAT, 1},
    {"Selu", "alpha", PFRT_ATTR_FLOAT, 1.67326319217681884765625},
    {"Selu", "gamma", PFRT_ATTR_FLOAT, 1.05070102214813232421875},
    {"HardSigmoid", "alpha", PFRT_ATTR_FLOAT, 0.2},
    {"HardSigmoid", "beta", PFRT_ATTR_FLOAT, 0.5},
    {"Shrink", "bias", PFRT_ATTR_FLOAT, 0},
    {"Shrink", "lambd", PFRT_ATTR_FLOAT, 0.5},
    {"Mod", "fmod", PFRT_ATTR_INT, 0},
    {"IsInf", "detect_negative", PFRT_ATTR_INT, 1},
    {"IsInf", "detect_positive", PFRT_ATTR_INT, 1},
    {"Cast", "saturate", PFRT_ATTR_INT, 1},
};

// Puts ones after the dimensions of input 1.
Status unsqueeze_after(Rewriter& rewriter, size_t ones) {
  std::vector<int64_t> axes(ones);
  std::iota(axes.begin(), axes.end(), static_cast<int64_t>(rewriter.rank(1)));
  PFRT_ASSIGN(const ValueId list, rewriter.int64s("axes", axes));
  PFRT_ASSIGN(const ValueId value, rewriter.before("Unsqueeze", {rewriter.node().inputs[1], list}));
  rewriter.set_input(1, value);
  return {};
}

// The element type of an ONNX name in capitals, such as "FLOAT16"; 0 for none.
pfrt_dtype dtype_of_capitals(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  for (pfrt_dtype dtype = 1; dtype_known(dtype); ++dtype)
    if (dtype_onnx_name(dtype) == text) return dtype;
  return PFRT_DTYPE_UNSET;
}

// Whether a constant floating-point scalar is zero: no bit is set except perhaps the sign.
bool is_zero(const Tensor& tensor) {
  const uint64_t bytes = tensor.bytes();
  if (tensor.count() != 1 || !dtype_is_float(tensor.dtype) || bytes == 0) return false;
  const auto* data = tensor.as<const uint8_t>();
  return std::all_of(data, data + bytes - 1, [](uint8_t b) { return b == 0; }) &&
         (data[bytes - 1] & 0x7fu) == 0;
}

// Checks the attribute that tells how Cast rounds to float8e8m0.
Status check_round_mode(Rewriter& rewriter) {
  const std::string_view mode = rewriter.node().attr_string("round_mode", "up");
  if (mode == "up" || mode == "down" || mode == "nearest") return {};
  return rewriter.fail("attribute 'round_mode' is '", mode,
                       "', expected 'up', 'down' or 'nearest'");
}

}  // namespace

Status canonical_elementwise(Rewriter& rewriter) {
  return fill_defaults(rewriter, kElementwiseFormsDefaults);
}

Status canonical_legacy_broadcast(Rewriter& rewriter) {
  Node& node = rewriter.node();
  const bool aligned = node.attr_int("broadcast", 0) != 0 && node.attr("axis") != nullptr;
  int64_t axis = node.attr_int("axis", 0);
  for (const char* name : {"broadcast", "axis", "consumed_inputs"}) node.drop_attr(name);
  if (!aligned) return {};
  if (!rewriter.has_shape(0) || !rewriter.has_shape(1))
    return rewriter.unsupported(
        "attribute 'axis' needs inputs of known rank; run shape inference on the model first");
  const int64_t rank = static_cast<int64_t>(rewriter.rank(0));
  if (axis < 0) axis += rank;
  const bool inside = axis >= 0 && axis <= rank;
  const int64_t ones = inside ? rank - axis - static_cast<int64_t>(rewriter.rank(1)) : -1;
  if (ones < 0)
    return rewriter.fail("input 1 of rank ", rewriter.rank(1),
                         " does not fit into input 0 of rank ", rank, " from axis ", axis);
  return ones ? unsqueeze_after(rewriter, static_cast<size_t>(ones)) : Status();
}

Status canonical_legacy_prelu(Rewriter& rewriter) {
  rewriter.node().drop_attr("consumed_inputs");
  if (!rewriter.has_shape(1) || rewriter.rank(1) != 1 || rewriter.input(1).shape[0].is(1))
    return {};
  if (!rewriter.has_shape(0))
    return rewriter.unsupported("a slope for each channel needs an input of known rank");
  return rewriter.rank(0) > 2 ? unsqueeze_after(rewriter, rewriter.rank(0) - 2) : Status();
}

Status canonical_legacy_selu(Rewriter& rewriter) {
  constexpr AttrDefault kOld[] = {{"Selu", "alpha", PFRT_ATTR_FLOAT, 1.6732},
                                  {"Selu", "gamma", PFRT_ATTR_FLOAT, 1.0507}};
  return fill_defaults(rewriter, kOld);
}

Status canonical_legacy_clip(Rewriter& rewriter) {
  Node& node = rewriter.node();
  node.drop_attr("consumed_inputs");
  size_t input = 0;
  for (const char* name : {"min", "max"}) {
    ++input;
    // Since opset 6 a missing bound is the largest finite float32 number.
    if (!node.attr(name) && rewriter.opset() >= 6 && rewriter.input(0).dtype != PFRT_DTYPE_UNSET) {
      constexpr float kLargest = std::numeric_limits<float>::max();
      node.set_attr(Attribute::of_float(name, input == 1 ? -kLargest : kLargest));
    }
    const Attribute* bound = node.attr(name);
    if (!bound) continue;
    if (bound->type != PFRT_ATTR_FLOAT)
      return rewriter.fail("attribute '", name, "' has type ", bound->type, ", expected a float");
    if (rewriter.input(0).dtype == PFRT_DTYPE_UNSET)
      return rewriter.unsupported("the type of the input is not known, and a bound must have it");
    PFRT_ASSIGN(const ValueId value, rewriter.scalar(name, rewriter.input(0).dtype, bound->f));
    rewriter.set_input(input, value);
    node.drop_attr(name);
  }
  return {};
}

Status canonical_cast(Rewriter& rewriter) {
  Node& node = rewriter.node();
  const Attribute* to = node.attr("to");
  if (!to) return rewriter.fail("attribute 'to' is absent; it names the type to convert to");
  if (to->type == PFRT_ATTR_STRING) {
    const pfrt_dtype dtype = dtype_of_capitals(to->s);
    if (!dtype) return rewriter.fail("attribute 'to' is '", to->s, "', which is no element type");
    node.set_attr(Attribute::of_int("to", dtype));
  } else if (to->type != PFRT_ATTR_INT || to->i <= 0 || to->i > UINT32_MAX ||
             !dtype_known(static_cast<pfrt_dtype>(to->i))) {
    return rewriter.fail("attribute 'to' is ", to->i, ", which is no element type");
  }
  PFRT_TRY(check_round_mode(rewriter));
  PFRT_TRY(widen_string_cast(rewriter));
  return canonical_elementwise(rewriter);
}

Status canonical_cast_like(Rewriter& rewriter) {
  Node& node = rewriter.node();
  const pfrt_dtype to = rewriter.input(1).dtype;
  if (to == PFRT_DTYPE_UNSET) return rewriter.unsupported("the type of input 1 is not known");
  node.op = "Cast";
  node.inputs.resize(1);
  node.set_attr(Attribute::of_int("to", to));
  PFRT_TRY(check_round_mode(rewriter));
  PFRT_TRY(widen_string_cast(rewriter));
  return canonical_elementwise(rewriter);
}

Status canonical_integer_erf(Rewriter& rewriter) {
  const pfrt_dtype dtype = rewriter.input(0).dtype;
  if (!dtype_is_integer(dtype)) return {};
  const auto cast = [](pfrt_dtype to) {
    return std::vector<Attribute>{Attribute::of_int("to", to), Attribute::of_int("saturate", 1)};
  };
  PFRT_ASSIGN(const ValueId real,
              rewriter.before("Cast", {rewriter.node().inputs[0]}, cast(PFRT_DTYPE_FLOAT64)));
  rewriter.set_input(0, real);
  return rewriter.after("Cast", {}, cast(dtype));
}

Status canonical_gelu(Rewriter& rewriter) {
  const std::string how(rewriter.node().attr_string("approximate", "none"));
  if (how != "none" && how != "tanh")
    return rewriter.fail("attribute 'approximate' is '", how, "', expected 'none' or 'tanh'");
  rewriter.node().set_attr(Attribute::of_string("approximate", how));
  return {};
}

Status canonical_bit_shift(Rewriter& rewriter) {
  const std::string_view direction = rewriter.node().attr_string("direction", "");
  if (direction == "LEFT" || direction == "RIGHT") return {};
  return rewriter.fail("attribute 'direction' is '", direction, "', expected 'LEFT' or 'RIGHT'");
}

// The form with three inputs is for training and drops where a run says so; with one input it drops
// nothing. Before opset 12 it is always the latter: nothing in a file told training from inference,
// or is_test did and exporters left it out.
Status canonical_dropout(Rewriter& rewriter) {
  Node& node = rewriter.node();
  if (rewriter.has_input(2)) {
    const Tensor* training = rewriter.constant(2);
    const std::vector<int64_t> on = training ? to_int64s(*training) : std::vector<int64_t>();
    const Tensor* ratio = rewriter.constant(1);
    const bool never = (on.size() == 1 && on[0] == 0) || (ratio && is_zero(*ratio));
    if (!never) return {};
  }
  for (const char* name : {"ratio", "seed", "is_test", "consumed_inputs"}) node.drop_attr(name);
  node.inputs.resize(1);
  if (rewriter.opset() < 10 && node.has_output(1)) {
    if (rewriter.is_used(node.outputs[1]))
      return rewriter.unsupported(
          "the mask of that opset, which inference leaves undefined, is used");
    const ValueId mask = node.outputs[1];
    rewriter.graph().at(mask).producer = kNoId;
    node.outputs.resize(1);
  }
  return {};
}

}  // namespace pfrt
