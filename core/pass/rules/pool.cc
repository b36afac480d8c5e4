// SPDX-License-Identifier: Apache-2.0
//
// Moves maxima before activations: then fewer elements are activated, and a convolution can do its
// pooling.
#include <algorithm>

#include "core/pass/rules/rule_tables.h"

namespace pfrt {
namespace {

// Whether larger elements give larger or equal results, in spite of rounding.
bool keeps_larger(const Node& node) {
  if (!node.domain.empty() || node.outputs.size() != 1) return false;
  if (node.op == "LeakyRelu") return node.attr_float("alpha", 0.01F) >= 0;
  return node.op == "Relu" || node.op == "Clip";
}

// Whether every window covers a pixel of the image.
bool windows_have_pixels(const Node& pool) {
  const std::vector<int64_t>*kernel = pool.attr_ints("kernel_shape"),
        *pads = pool.attr_ints("pads"), *dilations = pool.attr_ints("dilations");
  if (!kernel || pool.attr_int("ceil_mode", 0) != 0) return false;
  if (dilations && std::ranges::any_of(*dilations, [](int64_t d) { return d != 1; })) return false;
  for (size_t i = 0; pads && i < pads->size(); ++i)
    if ((*pads)[i] >= (*kernel)[i % kernel->size()]) return false;
  return true;
}

Result<bool> pool_first(Editor& editor, Node& node, const RuleContext&) {
  if (node.has_output(1) || !windows_have_pixels(node)) return false;
  const Node* activation = editor.producer(node.inputs[0]);
  if (!activation || !keeps_larger(*activation) || !editor.only_used_by(node.inputs[0], node))
    return false;
  for (const Node* at = activation; at->op != "Conv";) {
    const Node* before = keeps_larger(*at) ? editor.producer(at->inputs[0]) : nullptr;
    if (!before || !editor.only_used_by(at->inputs[0], *at)) return false;
    at = before;
  }
  const ValueId out = node.outputs[0];
  const std::string stem = node.name, activation_stem = activation->name;
  std::vector<ValueId> inputs = activation->inputs;
  Node pool, after;
  pool.op = node.op;
  pool.attrs = node.attrs;
  pool.inputs = {inputs[0]};
  after.op = activation->op;
  after.attrs = activation->attrs;
  PFRT_ASSIGN(const auto pooled, editor.add_node(std::move(pool), stem));
  inputs[0] = pooled[0];
  after.inputs = std::move(inputs);
  PFRT_ASSIGN(const auto made, editor.add_node(std::move(after), activation_stem));
  if (!editor.same_type(out, made[0]) || !editor.can_replace(out, made[0])) return false;
  editor.replace(out, made[0]);
  return true;
}

constexpr Rule kPoolRules[] = {
    {"PoolFirst", "MaxPool", "Conv, Relu, LeakyRelu or Clip, MaxPool -> Conv, MaxPool, the same",
     OptLevel::kExtended, false, pool_first},
};

}  // namespace

std::span<const Rule> pool_rules() { return kPoolRules; }

}  // namespace pfrt
