// SPDX-License-Identifier: Apache-2.0
//
// Convolutions of float16, and what follows them, in float32 where the provider says that this
// takes less time: processors without arithmetic of 16 bits would widen and round around each
// operator. Results are rounded where something else needs float16, so once and not after every
// operator. Weights are widened when they are first read, in sessions alone: files would be twice
// as large.
#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include "core/base/half.h"
#include "core/pass/rules/mark_epilogues.h"
#include "core/pass/rules/raise.h"
#include "core/pass/rules/rule_tables.h"

namespace pfrt {
namespace {

constexpr std::array<std::string_view, 24> kFollowers{"AveragePool",   "BatchNormalization",
                                                      "Concat",        "Conv",
                                                      "ConvTranspose", "DepthToSpace",
                                                      "Flatten",       "GlobalAveragePool",
                                                      "GlobalMaxPool", "InstanceNormalization",
                                                      "MaxPool",       "Pad",
                                                      "ReduceMax",     "ReduceMean",
                                                      "Reshape",       "Resize",
                                                      "Slice",         "SpaceToDepth",
                                                      "Split",         "Squeeze",
                                                      "Transpose",     "Unsqueeze",
                                                      "ReduceSum",     "LRN"};
// Of a chain that is looked along for a convolution.
constexpr int kLongestChain = 64;

bool is_convolution(const Node& node) { return node.op == "Conv" || node.op == "ConvTranspose"; }

bool may_follow(const Node& node) {
  return node.domain.empty() &&
         (is_elementwise(node) || std::ranges::find(kFollowers, node.op) != kFollowers.end());
}

bool is_float16(const Editor& editor, ValueId value) {
  const Type& type = editor.type(value);
  return type.is_tensor() && type.dtype == PFRT_DTYPE_FLOAT16;
}

// The float32 value that |value|, of float16, is rounded from.
ValueId rounded_from(Editor& editor, ValueId value) {
  const Node* const cast = editor.maker(value, "Cast");
  return cast && is_float16(editor, value) &&
                 editor.type(cast->inputs[0]).dtype == PFRT_DTYPE_FLOAT32
             ? cast->inputs[0]
             : kNoId;
}

// The float32 value that |value|, of float16, has been cast to.
ValueId cast_from(Editor& editor, ValueId value) {
  for (const NodeId user : editor.users(value)) {
    const Node* const node = editor.node(user);
    if (node->op == "Cast" && node->domain.empty() &&
        editor.type(node->outputs[0]).dtype == PFRT_DTYPE_FLOAT32)
      return node->outputs[0];
  }
  return kNoId;
}

// Whether |value|, of float32, follows a convolution; its other sources may be anything.
bool follows_convolution(Editor& editor, ValueId value) {
  for (int i = 0; i < kLongestChain; ++i) {
    const Node* const node = editor.producer(value);
    if (!node || !may_follow(*node)) return false;
    if (is_convolution(*node)) return true;
    const auto next = std::ranges::find_if(node->inputs, [&](ValueId input) {
      return input != kNoId && !editor.constant(input) &&
             editor.type(input).dtype == PFRT_DTYPE_FLOAT32;
    });
    if (next == node->inputs.end()) return false;
    value = *next;
  }
  return false;
}

Result<Tensor> widened(const Tensor& tensor) {
  const auto fill = [tensor, count = static_cast<size_t>(tensor.count())](void* out) {
    const Status read = tensor.read([&](const void* bytes) {
      for (size_t i = 0; i < count; ++i) {
        uint16_t half;
        std::memcpy(&half, static_cast<const char*>(bytes) + i * sizeof half, sizeof half);
        static_cast<float*>(out)[i] = float16_to_float(half);
      }
    });
    if (!read.ok()) throw std::bad_alloc();
  };
  return Tensor::made_by(fill, PFRT_DTYPE_FLOAT32, tensor.dims, tensor.origin());
}

Result<ValueId> cast(Editor& editor, ValueId value, pfrt_dtype to, std::string_view stem) {
  return editor.add("Cast", stem, {value}, {Attribute::of_int("to", to)});
}

// Puts |node| in float32 in its place, whose inputs of float16 are |wide| where that has one, and
// else constants.
Result<bool> put_widened(Editor& editor, Node& node, const RuleContext& context,
                         const std::vector<ValueId>& wide) {
  Node made = node_of(node.op, node.inputs, node.attrs);
  std::vector<ValueId> constants;
  const auto take_back = [&] {
    for (const ValueId value : constants) editor.drop_constant(value);
    return false;
  };
  for (size_t i = 0; i < made.inputs.size(); ++i) {
    const ValueId input = made.inputs[i];
    if (input == kNoId || !is_float16(editor, input)) continue;
    if (wide[i] != kNoId) {
      made.inputs[i] = wide[i];
      continue;
    }
    PFRT_ASSIGN(Tensor tensor, widened(*editor.constant(input)));
    made.inputs[i] =
        editor.add_constant(editor.graph().at(input).name + "/float32", std::move(tensor));
    constants.push_back(made.inputs[i]);
  }
  Node asked = made;
  for (const ValueId out : node.outputs) {
    Type type = editor.type(out);
    type.dtype = PFRT_DTYPE_FLOAT32;
    asked.outputs.push_back(placeholder(editor, std::move(type)));
  }
  if (!agreed(editor, context, asked, asked.outputs)) return take_back();
  // One that follows another is not worth two casts between them.
  if (is_convolution(node) && !follows_convolution(editor, wide[0])) {
    if (!context.pass.cost) return take_back();
    asked.canonical = true;
    const Node *const before[] = {&node}, *const after[] = {&asked};
    PFRT_ASSIGN(const std::optional<double> narrow,
                context.pass.cost(editor.graph(), before, context.target));
    PFRT_ASSIGN(const std::optional<double> broad,
                context.pass.cost(editor.graph(), after, context.target));
    if (!narrow || !broad || *broad >= *narrow) return take_back();
  }
  const std::string stem = node.name;
  const std::vector<ValueId> outs = node.outputs;
  PFRT_ASSIGN(const std::vector<ValueId> broad,
              editor.add_node(std::move(made), stem, outs.size()));
  for (size_t i = 0; i < outs.size(); ++i) {
    PFRT_ASSIGN(const ValueId rounded,
                cast(editor, broad[i], PFRT_DTYPE_FLOAT16, editor.graph().at(outs[i]).name));
    editor.replace(outs[i], rounded);
  }
  return true;
}

bool gives_float16_alone(const Editor& editor, const Node& node) {
  return !node.outputs.empty() && std::ranges::all_of(node.outputs, [&](ValueId out) {
    return out != kNoId && is_float16(editor, out);
  });
}

Result<bool> widen_convolution(Editor& editor, Node& node, const RuleContext& context) {
  if (!context.pass.in_session || node.inputs.size() < 2 || !is_float16(editor, node.inputs[0]) ||
      !gives_float16_alone(editor, node))
    return false;
  for (size_t i = 1; i < node.inputs.size(); ++i)
    if (node.has_input(i) && !editor.constant(node.inputs[i])) return false;
  std::vector<ValueId> wide(node.inputs.size(), kNoId);
  wide[0] = rounded_from(editor, node.inputs[0]);
  if (wide[0] == kNoId) wide[0] = cast_from(editor, node.inputs[0]);
  if (wide[0] != kNoId) return put_widened(editor, node, context, wide);
  PFRT_ASSIGN(wide[0], cast(editor, node.inputs[0], PFRT_DTYPE_FLOAT32,
                            editor.graph().at(node.inputs[0]).name + "/float32"));
  Result<bool> done = put_widened(editor, node, context, wide);
  if (!done.ok() || !*done) editor.remove_unused(editor.producer(wide[0])->id);
  return done;
}

Result<bool> widen_follower(Editor& editor, Node& node, const RuleContext& context) {
  if (!context.pass.in_session || !may_follow(node) || is_convolution(node) ||
      !gives_float16_alone(editor, node))
    return false;
  std::vector<ValueId> wide(node.inputs.size(), kNoId);
  bool follows = false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId input = node.inputs[i];
    if (input == kNoId || editor.constant(input) || !is_float16(editor, input)) continue;
    wide[i] = rounded_from(editor, input);
    if (wide[i] != kNoId)
      follows = follows || follows_convolution(editor, wide[i]);
    else
      wide[i] = cast_from(editor, input);
    if (wide[i] == kNoId) return false;
  }
  return follows ? put_widened(editor, node, context, wide) : Result<bool>(false);
}

constexpr Rule kWidenRules[] = {
    {"WidenConv", "Conv",
     "Conv of float16 -> Cast, Conv of float32, Cast, where that takes less time",
     OptLevel::kExtended, false, widen_convolution},
    {"WidenConv", "ConvTranspose",
     "ConvTranspose of float16 -> Cast, ConvTranspose of float32, Cast, where that takes less time",
     OptLevel::kExtended, false, widen_convolution},
    {"WidenAfterConv", "",
     "Cast to float16 behind a convolution, an operator -> the operator in float32, Cast",
     OptLevel::kExtended, false, widen_follower},
};

}  // namespace

std::span<const Rule> widen_rules() { return kWidenRules; }

}  // namespace pfrt
