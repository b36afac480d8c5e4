// SPDX-License-Identifier: Apache-2.0
//
// Moves a BatchNormalization into a product of constant weights and its bias, also where operators
// that only move elements are between them: x W is [batch, rows, channels], and is reshaped to
// [batch * rows, channels] for the normalisation. New weights are computed as in conv.cc.
#include <algorithm>
#include <numeric>

#include "core/pass/rules/linear.h"
#include "core/pass/rules/moves.h"
#include "core/pass/rules/numbers.h"
#include "core/pass/rules/rule_tables.h"

namespace pfrt {
namespace {

// More channels than any model has would only take memory here.
constexpr int64_t kMostChannels = 1 << 20;

// The dimension of a value along which a normalisation has its channels, and the channel at each of
// its indices.
struct Channels {
  size_t axis;
  std::vector<size_t> at;
};

// The channels in the input of a Reshape, given those in its output: index i of dimension |axis| is
// where it was, or channels repeat along it. Elements are numbered in order, so that the channel of
// an element is (number / elements behind the dimension) % channels in both.
std::optional<Channels> through_reshape(SymbolTable& symbols, const Shape& from, const Shape& to,
                                        const Channels& channels) {
  const auto count = static_cast<int64_t>(channels.at.size());
  const Dim behind = symbols.product(to, channels.axis + 1);
  for (size_t axis = from.size(); axis-- > 0;) {
    const Dim own = symbols.product(from, axis + 1);
    int64_t repeats = 1;  // indices in a row that belong to one channel
    if (!(own == behind)) {
      if (!own.known() || !behind.known() || own.value() < 1 || behind.value() % own.value() != 0)
        continue;
      repeats = behind.value() / own.value();
    }
    if (!from[axis].known() || from[axis].value() > kMostChannels || repeats > kMostChannels ||
        repeats < 1 || from[axis].value() < 1 || from[axis].value() % (repeats * count) != 0)
      continue;
    Channels out{axis, std::vector<size_t>(static_cast<size_t>(from[axis].value()))};
    for (size_t i = 0; i < out.at.size(); ++i)
      out.at[i] = channels.at[i / static_cast<size_t>(repeats) % channels.at.size()];
    return out;
  }
  return std::nullopt;
}

// The channels in input 0 of |node|, given those in its output; nullopt where the node does more
// than move elements, or channels are not one dimension there.
std::optional<Channels> channels_before(Editor& editor, const Node& node,
                                        const Channels& channels) {
  const Type &from = editor.type(node.inputs[0]), &to = editor.type(node.outputs[0]);
  if (!from.is_tensor() || !from.has_shape || !to.is_tensor() || !to.has_shape ||
      channels.axis >= to.shape.size() ||
      !to.shape[channels.axis].is(static_cast<int64_t>(channels.at.size())))
    return std::nullopt;
  if (keeps_order(node))
    return through_reshape(*editor.graph().symbols, from.shape, to.shape, channels);
  const std::vector<int64_t>* const order = permutation(node);
  if (!order || order->size() != from.shape.size()) return std::nullopt;
  return Channels{static_cast<size_t>((*order)[channels.axis]), channels.at};
}

// The node that makes |value| as its first output, where |user| alone uses it.
Node* sole_maker(Editor& editor, ValueId value, const Node& user) {
  Node* const made = editor.producer(value);
  return made && made->outputs[0] == value && editor.only_used_by(value, user) ? made : nullptr;
}

// Where a product and perhaps a constant that is added to it begin what a normalisation reads.
struct Source {
  Linear linear;
  Node* sum = nullptr;  // null: nothing is added
  size_t side = 0;      // of the constant
  Node* user;           // of the result, by its input 0
  ChannelAffine affine;
};

std::optional<Source> source_of(Editor& editor, Node& normalization, const ChannelAffine& affine) {
  Channels channels{1, std::vector<size_t>(affine.scale.size())};
  std::iota(channels.at.begin(), channels.at.end(), size_t{0});
  Node* user = &normalization;
  Node* made = sole_maker(editor, user->inputs[0], *user);
  while (made && (keeps_order(*made) || permutation(*made))) {
    const std::optional<Channels> earlier = channels_before(editor, *made, channels);
    if (!earlier) return std::nullopt;
    channels = *earlier;
    user = made;
    made = sole_maker(editor, user->inputs[0], *user);
  }
  if (!made) return std::nullopt;
  Source out{{}, nullptr, 0, user, {}};
  if (made->op == "Add" && made->domain.empty() && made->inputs.size() == 2) {
    out.sum = made;
    out.side = editor.constant(made->inputs[0]) ? 0 : 1;
    made = sole_maker(editor, out.sum->inputs[1 - out.side], *out.sum);
    if (!made || editor.rank(out.sum->outputs[0]) != editor.rank(made->outputs[0]))
      return std::nullopt;
  }
  const std::optional<Linear> linear = as_linear(editor, *made);
  if (!linear || linear->channel_axis != channels.axis || linear->channels != channels.at.size())
    return std::nullopt;
  out.linear = *linear;
  for (const size_t channel : channels.at) {
    out.affine.scale.push_back(affine.scale[channel]);
    out.affine.shift.push_back(affine.shift[channel]);
  }
  return out;
}

// Scales the product and adds what remains by a node of its own: MatMul has no bias.
Result<bool> absorb_beside(Editor& editor, const Source& source) {
  const Linear& linear = source.linear;
  const ValueId product = linear.node->outputs[0];
  const size_t count = linear.channels;
  std::vector<double> shift(count);
  if (source.sum) {
    const auto added = per_channel(editor, source.sum->inputs[source.side], linear.rank,
                                   linear.channel_axis, count);
    if (!added) return false;
    shift = *added;
  }
  for (size_t i = 0; i < count; ++i)
    shift[i] = shift[i] * source.affine.scale[i] + source.affine.shift[i];
  Dims dims(linear.rank - linear.channel_axis, 1);
  dims[0] = static_cast<int64_t>(count);
  PFRT_ASSIGN(Tensor made, from_doubles(editor.type(product).dtype, std::move(dims), shift));
  if (!all_finite(&made)) return false;
  // A name of its own: the node is named once it is certain to stay.
  const std::string stem = linear.node->name;
  const ValueId bias = editor.add_constant(stem + "/bias", std::move(made));
  ValueId sum = kNoId;
  if (!source.sum) {
    PFRT_ASSIGN(sum, editor.add("Add", stem, {product, bias}));
  }
  Result<bool> scaled =
      scale_output(editor, linear, {source.affine.scale, std::vector<double>(count)});
  if (!scaled.ok() || !*scaled) {
    if (sum != kNoId) editor.remove_unused(editor.producer(sum)->id);
    editor.drop_constant(bias);
    return scaled;
  }
  if (source.sum)
    editor.set_input(*source.sum, source.side, bias);
  else
    editor.set_input(*source.user, 0, sum);
  return true;
}

Result<bool> fold_batch_norm(Editor& editor, Node& node, const RuleContext&) {
  const std::optional<ChannelAffine> affine = as_affine(editor, node);
  if (!affine || editor.rank(node.inputs[0]).value_or(0) < 2) return false;
  const ValueId out = node.outputs[0];
  if (editor.type(out).dtype != editor.type(node.inputs[0]).dtype) return false;
  const std::optional<Source> source = source_of(editor, node, *affine);
  if (!source || editor.type(source->linear.node->outputs[0]).dtype != editor.type(out).dtype ||
      !editor.can_replace(out, node.inputs[0]))
    return false;
  const bool shifts = std::ranges::any_of(affine->shift, [](double s) { return s != 0; });
  const bool beside = source->sum || (shifts && source->linear.node->op == "MatMul");
  PFRT_ASSIGN(const bool done, beside ? absorb_beside(editor, *source)
                                      : scale_output(editor, source->linear, source->affine));
  if (done) editor.replace(out, node.inputs[0]);
  return done;
}

constexpr Rule kBatchNormRules[] = {
    {"FoldBatchNorm", "BatchNormalization",
     "product, perhaps Add, Reshape or Transpose, BatchNormalization -> without it", kExtended,
     true, fold_batch_norm},
};

}  // namespace

std::span<const Rule> batch_norm_rules() { return kBatchNormRules; }

}  // namespace pfrt
