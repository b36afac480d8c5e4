// SPDX-License-Identifier: Apache-2.0
#include "core/pass/rules/layout/transpose_propagation.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include "core/op/defs/common/helpers.h"
#include "core/pass/rules/moves.h"

namespace pfrt {
namespace {

// Larger constants are not copied.
constexpr uint64_t kLargestConstant = uint64_t{16} << 20;

enum class Kind {
  kNone,
  kUnary,
  kBroadcast,
  kAxis,
  kSlice,
  kPad,
  kTile,
  kReduce,
  kArg,
  kSqueeze,
  kUnsqueeze,
  kGather
};

struct KindRow {
  std::string_view op;
  Kind kind;
};
constexpr KindRow kKinds[] = {{"Clip", Kind::kUnary},
                              {"PRelu", Kind::kBroadcast},
                              {"Softmax", Kind::kAxis},
                              {"LogSoftmax", Kind::kAxis},
                              {"Hardmax", Kind::kAxis},
                              {"LpNormalization", Kind::kAxis},
                              {"Concat", Kind::kAxis},
                              {"Split", Kind::kAxis},
                              {"QuantizeLinear", Kind::kAxis},
                              {"DequantizeLinear", Kind::kAxis},
                              {"TopK", Kind::kAxis},
                              {"Slice", Kind::kSlice},
                              {"Pad", Kind::kPad},
                              {"Tile", Kind::kTile},
                              {"ReduceSum", Kind::kReduce},
                              {"ReduceMean", Kind::kReduce},
                              {"ReduceMax", Kind::kReduce},
                              {"ReduceMin", Kind::kReduce},
                              {"ReduceProd", Kind::kReduce},
                              {"ReduceL1", Kind::kReduce},
                              {"ReduceL2", Kind::kReduce},
                              {"ReduceLogSum", Kind::kReduce},
                              {"ReduceLogSumExp", Kind::kReduce},
                              {"ReduceSumSquare", Kind::kReduce},
                              {"ArgMax", Kind::kArg},
                              {"ArgMin", Kind::kArg},
                              {"Squeeze", Kind::kSqueeze},
                              {"Unsqueeze", Kind::kUnsqueeze},
                              {"Gather", Kind::kGather}};
constexpr std::array<std::string_view, 49> kUnary{
    "Abs",       "Acos",     "Acosh",   "Asin",       "Asinh",
    "Atan",      "Atanh",    "BitCast", "BitwiseNot", "Cast",
    "Ceil",      "Celu",     "Cos",     "Cosh",       "Elu",
    "Erf",       "Exp",      "Floor",   "Gelu",       "HardSigmoid",
    "HardSwish", "Identity", "IsInf",   "IsNaN",      "LeakyRelu",
    "Log",       "Mish",     "Neg",     "Not",        "Reciprocal",
    "Relu",      "Round",    "Selu",    "Shrink",     "Sigmoid",
    "Sign",      "Sin",      "Sinh",    "Softplus",   "Softsign",
    "Sqrt",      "Swish",    "Tan",     "Tanh",       "ThresholdedRelu"};

Kind kind_of(const Node& node) {
  if (!node.domain.empty() || node.op.empty()) return Kind::kNone;
  if (std::ranges::find(kUnary, node.op) != kUnary.end()) return Kind::kUnary;
  if (broadcasts(node)) return Kind::kBroadcast;
  for (const KindRow& row : kKinds)
    if (row.op == node.op) return row.kind;
  return Kind::kNone;
}

bool listed(const std::vector<int64_t>& axes, size_t axis) {
  return std::ranges::find(axes, static_cast<int64_t>(axis)) != axes.end();
}

// |perm| without the dimensions |axes| of its result.
Perm without(const Perm& perm, const std::vector<int64_t>& axes) {
  std::vector<int64_t> place(perm.size());  // by source dimension, among those left
  int64_t left = 0;
  const Perm made = inverse(perm);
  for (size_t i = 0; i < perm.size(); ++i)
    if (!listed(axes, static_cast<size_t>(made[i]))) place[i] = left++;
  Perm out;
  for (size_t i = 0; i < perm.size(); ++i)
    if (!listed(axes, i)) out.push_back(place[static_cast<size_t>(perm[i])]);
  return out;
}

// |perm| with added dimensions of one element, at |axes| of both source and result.
Perm with(const Perm& perm, const std::vector<int64_t>& axes) {
  Perm out(perm.size() + axes.size());
  std::vector<int64_t> rest;
  for (size_t i = 0; i < out.size(); ++i)
    if (!listed(axes, i)) rest.push_back(static_cast<int64_t>(i));
  for (int64_t axis : axes) out[static_cast<size_t>(axis)] = axis;
  for (size_t i = 0; i < perm.size(); ++i)
    out[static_cast<size_t>(rest[i])] = rest[static_cast<size_t>(perm[i])];
  return out;
}

std::vector<int64_t> mapped(const Perm& perm, std::vector<int64_t> axes) {
  for (int64_t& axis : axes) axis = perm[static_cast<size_t>(axis)];
  return axes;
}

std::optional<int64_t> axis_of(const Node& node, size_t rank) {
  const Attribute* attr = node.attr("axis");
  if (!attr || attr->type != PFRT_ATTR_INT || attr->i < 0 || attr->i >= static_cast<int64_t>(rank))
    return std::nullopt;
  return attr->i;
}

// The axes that a Reduce, Squeeze, Unsqueeze or ArgMax removes or inserts; |rank| counts them.
std::optional<std::vector<int64_t>> axes_of(const Editor& editor, const Node& node, Kind kind,
                                            size_t rank) {
  if (kind == Kind::kArg || kind == Kind::kGather) {
    const auto axis = axis_of(node, rank);
    return axis ? std::optional(std::vector<int64_t>{*axis}) : std::nullopt;
  }
  if (!node.has_input(1)) {
    if (kind != Kind::kReduce) return std::nullopt;
    std::vector<int64_t> all;
    if (node.attr_int("noop_with_empty_axes", 0) != 0) return all;
    for (size_t i = 0; i < rank; ++i) all.push_back(static_cast<int64_t>(i));
    return all;
  }
  auto axes = constant_axes(editor, node, 1, rank);
  if (axes && axes->empty() && kind == Kind::kReduce) return std::nullopt;
  return axes;
}

bool one_element(const Type& type) {
  return type.is_tensor() && type.has_shape &&
         std::ranges::all_of(type.shape, [](const Dim& d) { return d.is(1); });
}

bool movable(const Tensor* constant) {
  return constant && constant->dtype != PFRT_DTYPE_STRING && !constant->device() &&
         constant->bytes() <= kLargestConstant && dtype_bits(constant->dtype) % 8 == 0;
}

std::optional<Permutations> broadcast(const Editor& editor, const Node& node, const Perm& perm) {
  Permutations out;
  const size_t rank = perm.size();
  if (editor.rank(node.outputs[0]) != rank) return std::nullopt;
  for (ValueId in : node.inputs) {
    if (in == kNoId) return std::nullopt;
    const Type& type = editor.type(in);
    if (!type.is_tensor() || !type.has_shape || type.shape.size() > rank) return std::nullopt;
    if (one_element(type) || movable(editor.constant(in))) {
      out.inputs.emplace_back();
    } else if (!editor.constant(in) && type.shape.size() == rank) {
      out.inputs.emplace_back(perm);
    } else {
      return std::nullopt;
    }
  }
  out.outputs.emplace_back(perm);
  return out;
}

bool known_arguments(const Editor& editor, const Node& node, Kind kind, size_t rank) {
  switch (kind) {
    case Kind::kUnary:
      for (size_t i = 1; i < node.inputs.size(); ++i)
        if (node.has_input(i) && !one_element(editor.type(node.inputs[i]))) return false;
      return true;
    case Kind::kAxis:
      if (!axis_of(node, rank)) return false;
      if (node.op != "QuantizeLinear" && node.op != "DequantizeLinear") return true;
      return node.attr_int("block_size", 0) == 0 && editor.rank(node.inputs[1]).value_or(2) < 2;
    case Kind::kSlice:
      return slicing(editor, node).has_value();
    case Kind::kPad: {
      if (!node.has_input(1)) return false;
      if (node.has_input(3)) return constant_axes(editor, node, 3, rank).has_value();
      const auto pads = editor.numbers(node.inputs[1]);
      return pads && pads->size() == 2 * rank;
    }
    case Kind::kTile: {
      const auto repeats = editor.numbers(node.inputs[1]);
      return node.inputs.size() == 2 && repeats && repeats->size() == rank;
    }
    default:
      return true;
  }
}

bool all_data(const Node& node) { return node.op == "Concat"; }

}  // namespace

std::optional<Permutations> permutations_of(const Editor& editor, const Node& node, bool is_output,
                                            size_t slot, const Perm& perm) {
  const Kind kind = kind_of(node);
  if (kind == Kind::kNone || node.inputs.empty() || node.outputs.empty()) return std::nullopt;
  if (kind == Kind::kBroadcast) return broadcast(editor, node, perm);
  if (!is_output && slot > 0 && !all_data(node)) return std::nullopt;
  Permutations out;
  out.inputs.resize(node.inputs.size());
  out.outputs.resize(node.outputs.size());
  Perm before = perm, after = perm;
  const bool drops = kind == Kind::kReduce || kind == Kind::kArg ? node.attr_int("keepdims", 1) == 0
                     : kind == Kind::kGather                     ? editor.rank(node.inputs[1]) == 0u
                                                                 : kind == Kind::kSqueeze;
  if (kind == Kind::kGather && !drops && editor.rank(node.inputs[1]) != 1u) return std::nullopt;
  if (kind == Kind::kReduce || kind == Kind::kArg || kind == Kind::kSqueeze ||
      kind == Kind::kGather || kind == Kind::kUnsqueeze) {
    const bool grows = kind == Kind::kUnsqueeze;
    const std::optional<size_t> wide = editor.rank(grows ? node.outputs[0] : node.inputs[0]);
    if (!wide) return std::nullopt;
    const auto axes = axes_of(editor, node, kind, *wide);
    if (!axes) return std::nullopt;
    if (drops || grows) {
      const bool is_wide = is_output == grows;
      const Perm other = is_wide ? without(perm, *axes) : with(perm, *axes);
      (is_output ? before : after) = other;
    }
  }
  if (editor.rank(node.inputs[0]) != before.size() ||
      !known_arguments(editor, node, kind, before.size()))
    return std::nullopt;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (i > 0 && !all_data(node)) break;
    if (node.inputs[i] == kNoId) return std::nullopt;
    const Tensor* constant = editor.constant(node.inputs[i]);
    if (constant && !(all_data(node) && movable(constant))) return std::nullopt;
    if (!constant) out.inputs[i] = before;
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == kNoId) continue;
    if (editor.rank(node.outputs[i]) != after.size()) return std::nullopt;
    out.outputs[i] = after;
  }
  return out;
}

namespace {

// Transposes a matrix in squares, whose lines stay in the first-level cache.
void transpose_matrix(const char* from, int64_t rows, int64_t columns, size_t size, char* to) {
  constexpr int64_t kSide = 64;
  for (int64_t r = 0; r < rows; r += kSide)
    for (int64_t c = 0; c < columns; c += kSide)
      for (int64_t j = c; j < std::min(c + kSide, columns); ++j)
        for (int64_t i = r; i < std::min(r + kSide, rows); ++i)
          std::memcpy(to + static_cast<size_t>(j * rows + i) * size,
                      from + static_cast<size_t>(i * columns + j) * size, size);
}

}  // namespace

Result<Tensor> transposed(const Tensor& tensor, const Perm& perm) {
  const size_t rank = perm.size();
  Dims dims(rank), strides(rank, 1);
  for (size_t i = rank; i-- > 1;) strides[i - 1] = strides[i] * tensor.dims[i];
  for (size_t i = 0; i < rank; ++i) dims[i] = tensor.dims[static_cast<size_t>(perm[i])];
  const auto fill = [tensor, perm, dims, strides, rank](void* out) {
    auto readable = tensor.readable();
    if (!readable.ok()) throw std::bad_alloc();
    const size_t size = dtype_bits(tensor.dtype) / 8;
    const char* from = readable->as<const char>();
    char* to = static_cast<char*>(out);
    if (perm == Perm{1, 0}) return transpose_matrix(from, dims[1], dims[0], size, to);
    Dims at(rank, 0);
    int64_t source = 0;
    for (int64_t left = tensor.count(); left > 0; --left, to += size) {
      std::memcpy(to, from + static_cast<size_t>(source) * size, size);
      for (size_t i = rank; i-- > 0;) {
        const int64_t stride = strides[static_cast<size_t>(perm[i])];
        source += stride;
        if (++at[i] < dims[i]) break;
        source -= stride * dims[i];
        at[i] = 0;
      }
    }
  };
  return Tensor::made_by(fill, tensor.dtype, dims, tensor.origin());
}

bool moves_only_ones(const Shape& from, const Perm& perm) {
  int64_t last = -1;
  for (int64_t p : perm) {
    if (from[static_cast<size_t>(p)].is(1)) continue;
    if (p < last) return false;
    last = p;
  }
  return true;
}

namespace {

// The constant at input |i| in the form that the permuted node takes.
Result<ValueId> permuted_constant(Editor& editor, const Node& node, size_t i, const Perm& perm) {
  Tensor tensor = *editor.constant(node.inputs[i]);
  if (tensor.count() == 1 && tensor.dims.size() < perm.size()) return node.inputs[i];
  tensor.dims.insert(tensor.dims.begin(), perm.size() - tensor.dims.size(), 1);
  PFRT_ASSIGN(Tensor moved, transposed(tensor, inverse(perm)));
  return editor.add_constant(editor.graph().at(node.inputs[i]).name, std::move(moved));
}

// The entries of |list|, one for each dimension, in the order of the permuted tensor's dimensions.
std::vector<int64_t> reordered(const std::vector<int64_t>& list, const Perm& perm) {
  std::vector<int64_t> out(list.size());
  for (size_t i = 0; i < perm.size(); ++i) out[static_cast<size_t>(perm[i])] = list[i];
  return out;
}

Status set_list(Editor& editor, Node& node, size_t i, const std::vector<int64_t>& list) {
  node.inputs.resize(std::max(node.inputs.size(), i + 1), kNoId);
  PFRT_ASSIGN(node.inputs[i], editor.int64s(message(node.name, "/permuted"), list));
  return {};
}

}  // namespace

Result<Node> permuted(Editor& editor, const Node& node, const Permutations& permutations) {
  Node out = node;
  out.epilogue_of = kNoId;
  const Kind kind = kind_of(node);
  // This is the permutation of the side that has the axes in question.
  const auto present =
      std::ranges::find_if(permutations.outputs, [](const auto& p) { return !!p; });
  if (present == permutations.outputs.end())
    return error(Code::kINTERNAL, "permutations of no outputs");
  const Perm& narrow = **present;
  std::optional<Perm> wide = permutations.inputs[0];
  if (kind == Kind::kUnsqueeze) wide = narrow;
  const Perm& perm = wide ? *wide : narrow;
  if (kind == Kind::kBroadcast || all_data(node)) {
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (!permutations.inputs[i] && editor.constant(node.inputs[i])) {
        PFRT_ASSIGN(out.inputs[i], permuted_constant(editor, node, i, narrow));
      }
  }
  switch (kind) {
    case Kind::kAxis:
    case Kind::kArg:
    case Kind::kGather:
      out.set_attr(Attribute::of_int("axis", perm[static_cast<size_t>(node.attr_int("axis", 0))]));
      break;
    case Kind::kReduce:
    case Kind::kSqueeze:
    case Kind::kUnsqueeze:
      if (const auto axes = axes_of(editor, node, kind, perm.size()); axes && node.has_input(1))
        PFRT_TRY(set_list(editor, out, 1, mapped(perm, *axes)));
      break;
    case Kind::kSlice: {
      const std::optional<Slicing> all = slicing(editor, node);
      if (all) PFRT_TRY(set_list(editor, out, 3, mapped(perm, all->axes)));
      break;
    }
    case Kind::kPad:
      if (node.has_input(3)) {
        PFRT_TRY(
            set_list(editor, out, 3, mapped(perm, *constant_axes(editor, node, 3, perm.size()))));
      } else {
        const std::vector<int64_t> pads = *editor.numbers(node.inputs[1]);
        const auto middle = pads.begin() + static_cast<int64_t>(perm.size());
        std::vector<int64_t> moved = reordered({pads.begin(), middle}, perm);
        const std::vector<int64_t> after = reordered({middle, pads.end()}, perm);
        moved.insert(moved.end(), after.begin(), after.end());
        PFRT_TRY(set_list(editor, out, 1, moved));
      }
      break;
    case Kind::kTile:
      PFRT_TRY(set_list(editor, out, 1, reordered(*editor.numbers(node.inputs[1]), perm)));
      break;
    default:
      break;
  }
  return out;
}

}  // namespace pfrt
