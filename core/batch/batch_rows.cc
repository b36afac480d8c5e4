// SPDX-License-Identifier: Apache-2.0
#include "core/batch/batch_rows.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "core/op/engine/infer.h"
#include "core/op/engine/operator_set.h"

namespace pfrt {
namespace {

using Port = BatchRows::Port;

// The way an operator treats rows along an axis of its inputs.
enum class Rule : char {
  kElements = 'e',  // each element separately, broadcast
  kFixed = 'f',     // the letters that follow give the axis of the batch
  kAlong = 'a',     // works along attribute "axis"
  kFrom = 'n',      // works along attribute "axis" and all after it
  kLast = 'l',      // works along the last axis of input 0
  kReduce = 'r',
  kMatMul = 'm',        // inputs 0 and 1
  kScaledMatMul = 'q',  // inputs 0 and 3
  kGemm = 'g',
  kTranspose = 't',
  kReshape = 'o',  // elements stay in order
  kConcat = 'c',
  kSlice = 's',
  kGather = 'i',
  kGatherElements = 'j',
  kExpand = 'x',
  kPad = 'p',
  kCumulative = 'u',
  kTrilu = 'd',
  kOneHot = 'h',
  kScale = 'z',  // by channel or as one
  kShape = 'y',
};

// Operators and their rules, "ms." in front of those of com.microsoft and "ml." of ai.onnx.ml. The
// letters after kFixed give the axis of the batch in each input, then in each output: 's' = the
// same for all rows, 'z' = the same, or sizes of the output, 'm' = a mask that is broadcast to rank
// 4, '-' = absent, as is everything beyond the list. Training, and layouts of RNNs, are refused.
constexpr std::string_view kRules =
    " Abs:e Neg:e Sign:e Sqrt:e Exp:e Log:e Erf:e Reciprocal:e Floor:e Ceil:e Round:e Sin:e "
    "Cos:e Tan:e Asin:e Acos:e Atan:e Sinh:e Cosh:e Tanh:e Asinh:e Acosh:e Atanh:e Relu:e "
    "LeakyRelu:e ThresholdedRelu:e PRelu:e Elu:e Selu:e Celu:e Sigmoid:e HardSigmoid:e "
    "HardSwish:e Swish:e Mish:e Gelu:e Softplus:e Softsign:e Shrink:e Clip:e Add:e Sub:e "
    "Mul:e Div:e Mod:e Pow:e Max:e Min:e Sum:e Mean:e Not:e And:e Or:e Xor:e Equal:e Less:e "
    "Greater:e LessOrEqual:e GreaterOrEqual:e IsNaN:e IsInf:e Where:e BitShift:e BitwiseAnd:e "
    "BitwiseOr:e BitwiseXor:e BitwiseNot:e Identity:e Cast:e Dropout:e Softmax:a LogSoftmax:a "
    "Hardmax:a LpNormalization:a ArgMax:a ArgMin:a TopK:a Split:a LayerNormalization:n "
    "RMSNormalization:n MatMul:m MatMulInteger:m QLinearMatMul:q Gemm:g Transpose:t Reshape:o "
    "Flatten:o Squeeze:o Unsqueeze:o Concat:c Slice:s Gather:i GatherElements:j Expand:x "
    "Tile:x Pad:p CumSum:u CumProd:u Trilu:d OneHot:h QuantizeLinear:z DequantizeLinear:z "
    "Shape:y Size:y Conv:f0ss>0 ConvTranspose:f0ss>0 ConvInteger:f0sss>0 "
    "QLinearConv:f0ssssssss>0 DeformConv:f0s0s0>0 MaxPool:f0>0 AveragePool:f0>0 LpPool:f0>0 "
    "GlobalMaxPool:f0>0 GlobalAveragePool:f0>0 GlobalLpPool:f0>0 BatchNormalization:f0ssss>0 "
    "InstanceNormalization:f0ss>0 GroupNormalization:f0ss>0 LRN:f0>0 DepthToSpace:f0>0 "
    "SpaceToDepth:f0>0 GridSample:f00>0 Col2Im:f0ss>0 Resize:f0-sz>0 LSTM:f1sss011s>211 "
    "GRU:f1sss01>21 RNN:f1sss01>21 Attention:f000m00>0000 RotaryEmbedding:f0ss0>0 "
    "ms.BiasGelu:e ms.FastGelu:e ms.QuickGelu:e ms.MatMulNBits:l ms.MatMulBnb4:l "
    "ms.SkipLayerNormalization:f00sss>0--0 ms.SkipSimplifiedLayerNormalization:f00ss>0--0 "
    "ms.EmbedLayerNormalization:f00sssss0>00 ms.Attention:f0ss>0 "
    "ms.MultiHeadAttention:f000s>0 ms.FusedConv:f0ss0>0 ms.NhwcConv:f0ss>0 "
    "ms.NhwcFusedConv:f0ss0>0 ms.NhwcMaxPool:f0>0 ms.QLinearConv:f0ssssssss>0 "
    "ms.QLinearAveragePool:f0ssss>0 ms.QLinearGlobalAveragePool:f0ssss>0 ml.Scaler:f0>0 "
    "ml.Normalizer:f0>0 ml.LinearRegressor:f0>0 ml.LinearClassifier:f0>00 "
    "ml.SVMRegressor:f0>0 ml.SVMClassifier:f0>00 ml.TreeEnsembleRegressor:f0>0 "
    "ml.TreeEnsembleClassifier:f0>00 ";

struct Row {
  Rule rule;
  std::string_view ports;
};

std::optional<Row> row_of(const Node& node) {
  if (node.domain.empty() && node.op.starts_with("Reduce")) return Row{Rule::kReduce, {}};
  const std::string_view domain = node.domain.empty()              ? ""
                                  : node.domain == "com.microsoft" ? "ms."
                                  : node.domain == "ai.onnx.ml"    ? "ml."
                                                                   : "?";
  const std::string key = message(" ", domain, node.op, ":");
  const size_t at = kRules.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  const size_t rule = at + key.size();
  return Row{static_cast<Rule>(kRules[rule]),
             kRules.substr(rule + 1, kRules.find(' ', rule) - rule - 1)};
}

class Proof {
 public:
  explicit Proof(const Graph& graph)
      : graph_(graph), state_(initial_state(graph)), places_(graph.value_count()) {}

  Status begin() {
    PFRT_ASSIGN(order_, graph_.topological_order());
    return infer(graph_, order_, state_);
  }

  // Symbols of the first dimensions of inputs.
  std::vector<Dim> batches() const {
    std::vector<Dim> out;
    for (const ValueId v : fed()) {
      const Type& type = graph_.at(v).type;
      if (type.is_tensor() && type.has_shape && !type.shape.empty() && plain(type.shape[0]) &&
          std::ranges::find(out, type.shape[0]) == out.end())
        out.push_back(type.shape[0]);
    }
    return out;
  }

  // The first node found that certainly mixes rows, and how it does.
  const std::string& mixer() const { return mixer_; }

  // Follows the rows through the graph with |batch| as the batch.
  BatchRows find(Dim batch) {
    batch_ = batch;
    mixer_.clear();
    others_.clear();
    std::ranges::fill(places_, Place());
    BatchRows out;
    for (const ValueId v : fed())
      for (const Dim& d : graph_.at(v).type.shape)
        if (plain(d) && !(d == batch_)) others_.push_back(d);
    for (const ValueId v : fed()) {
      const Type& type = graph_.at(v).type;
      if (type.is_tensor() && type.has_shape) {
        const Shape& s = type.shape;
        const bool rows = !s.empty() && s[0] == batch_;
        if (std::all_of(s.begin() + (rows ? 1 : 0), s.end(), [&](Dim d) { return independent(d); }))
          places_[v] = {rows ? Kind::kRows : Kind::kSame, 0};
      }
      out.inputs.push_back(port(v));
    }
    for (const ValueId v : graph_.initializers()) places_[v].kind = Kind::kSame;
    for (const NodeId id : order_) {
      const Node& node = *graph_.node(id);
      NodeId mixer = id;
      bool knew = true;
      for (const ValueId v : graph_.used_by(node)) {
        if (places_[v].kind != Kind::kMixed) continue;
        mixer = knew ? places_[v].mixer : mixer;
        knew = false;
      }
      if (knew && mixer_.empty()) mixer_ = mixes(node);
      if (knew) visit(node);
      for (const ValueId v : node.outputs)
        if (v != kNoId && places_[v].kind == Kind::kMixed) places_[v].mixer = mixer;
    }
    for (const ValueId v : graph_.outputs) {
      out.outputs.push_back(port(v));
      const NodeId mixer = places_[v].mixer;
      out.mixed_by.push_back(
          out.outputs.back() != Port::kMixed ? ""
          : mixer == kNoId
              ? message("output '", graph_.at(v).name, "' has the batch elsewhere")
              : describe(graph_, *graph_.node(mixer)) + " is not known to keep rows apart");
    }
    return out;
  }

 private:
  // The elements' dependence on the batch.
  enum class Kind : uint8_t {
    kMixed,  // anything
    kSame,   // nothing of the batch
    kSized,  // the size of the batch
    kRows,   // along |axis|, one row of the batch; equally many for each, in order
  };
  struct Place {
    Kind kind = Kind::kMixed;
    size_t axis = 0;
    NodeId mixer = kNoId;  // the first node that mixed the rows; kNoId: an input
  };

  std::vector<ValueId> fed() const {
    std::vector<ValueId> out;
    for (const ValueId v : graph_.inputs)
      if (!graph_.at(v).constant) out.push_back(v);
    return out;
  }
  Port port(ValueId v) const {
    const Place& place = places_[v];
    if (place.kind == Kind::kSame) return Port::kSame;
    return place.kind == Kind::kRows && place.axis == 0 ? Port::kRows : Port::kMixed;
  }
  bool plain(const Dim& d) const {
    return d.symbolic() && graph_.symbols->expression(d).op == DimOp::kNone;
  }
  // Whether |d| is the same for any size of the batch.
  bool independent(const Dim& d) const {
    if (!d.symbolic()) return d.known();
    const DimExpression e = graph_.symbols->expression(d);
    if (e.op == DimOp::kNone) return std::ranges::find(others_, d) != others_.end();
    return independent(e.a) && independent(e.b);
  }
  // The factor by which |d| is a multiple of the batch's size; 0 = it is not known to be one.
  int64_t factor(const Dim& d) const {
    if (d == batch_) return 1;
    const DimExpression e = graph_.symbols->expression(d);
    const int64_t a = e.op == DimOp::kMul || e.op == DimOp::kDiv ? factor(e.a) : 0;
    if (e.op == DimOp::kDiv && e.b.known() && e.b.value() > 0 && a % e.b.value() == 0)
      return a / e.b.value();
    const bool whole = e.op == DimOp::kMul && std::max(a, factor(e.b)) < kLargestDim;
    if (whole && e.b.known() && e.b.value() < kLargestDim / std::max<int64_t>(a, 1))
      return a * e.b.value();
    if (whole && e.a.known() && e.a.value() < kLargestDim / std::max<int64_t>(factor(e.b), 1))
      return e.a.value() * factor(e.b);
    return 0;
  }
  // Whether |d| is a multiple of the batch's size, by a factor that does not depend on it.
  bool scaled(const Dim& d) const {
    if (factor(d) > 0) return true;
    const DimExpression e = graph_.symbols->expression(d);
    return e.op == DimOp::kMul &&
           ((scaled(e.a) && independent(e.b)) || (independent(e.a) && scaled(e.b)));
  }
  bool equal(const Dim& a, const Dim& b) const {
    return a == b || (factor(a) > 0 && factor(a) == factor(b));
  }

  const Shape* shape(const Node& n, size_t i) const {
    const Type& type = state_.type_of(graph_, n.inputs[i]);
    return type.is_tensor() && type.has_shape ? &type.shape : nullptr;
  }
  const Place& place(const Node& n, size_t i) const { return places_[n.inputs[i]]; }
  bool rows(const Node& n, size_t i) const {
    return n.has_input(i) && place(n, i).kind == Kind::kRows;
  }
  bool same(const Node& n, size_t i) const {
    return !n.has_input(i) || place(n, i).kind == Kind::kSame;
  }
  bool same_from(const Node& n, size_t first) const {
    for (size_t i = first; i < n.inputs.size(); ++i)
      if (!same(n, i)) return false;
    return true;
  }
  std::optional<std::vector<int64_t>> numbers(const Node& n, size_t i) {
    return Inference(graph_, n, state_).numbers(i);
  }
  // The index of |axis|, which may be negative, among |rank| dimensions.
  static size_t axis_of(int64_t axis, size_t rank) {
    return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
  }

  // Gives output |i| its rows along |axis| if its extent is that of input |source|'s rows, or with
  // |any_multiple| any multiple of the batch's size.
  void set(const Node& n, size_t i, size_t axis, size_t source, bool any_multiple = false) {
    if (!n.has_output(i)) return;
    const Type& type = state_.type_of(graph_, n.outputs[i]);
    if (!type.is_tensor() || !type.has_shape || axis >= type.shape.size()) return;
    for (size_t d = 0; d < type.shape.size(); ++d)
      if (d != axis && !independent(type.shape[d])) return;
    const Dim extent = type.shape[axis];
    if (any_multiple ? !scaled(extent) : !equal(extent, (*shape(n, source))[place(n, source).axis]))
      return;
    places_[n.outputs[i]] = {Kind::kRows, axis};
  }

  // Whether the result has no letter for the dimension of the batch, which is then summed.
  bool einsum_adds_up(const Node& n) const {
    std::string equation(n.attr_string("equation", ""));
    std::erase(equation, ' ');
    if (equation.find('.') != std::string::npos) return false;  // it names unknown dimensions
    const size_t arrow = equation.find("->");
    const std::string terms = equation.substr(0, arrow);
    std::string result;
    if (arrow != std::string::npos) {
      result = equation.substr(arrow + 2);
    } else {
      std::ranges::copy_if(terms, std::back_inserter(result),
                           [&](char c) { return c != ',' && std::ranges::count(terms, c) == 1; });
    }
    size_t begin = 0;
    for (size_t i = 0; i < n.inputs.size() && begin <= terms.size(); ++i) {
      const size_t end = std::min(terms.find(',', begin), terms.size());
      if (rows(n, i) && place(n, i).axis < end - begin &&
          result.find(terms[begin + place(n, i).axis]) == std::string::npos)
        return true;
      begin = end + 1;
    }
    return false;
  }

  // Describes how the node certainly mixes rows; empty where it is not known to.
  std::string mixes(const Node& n) {
    if (n.domain.empty() && n.op == "Einsum")
      return einsum_adds_up(n) ? describe(graph_, n) + " adds up over the batch" : "";
    if (!n.domain.empty() || n.inputs.empty() || !rows(n, 0) || !shape(n, 0)) return {};
    const size_t axis = place(n, 0).axis, rank = shape(n, 0)->size();
    const auto told = [&](const char* how) { return describe(graph_, n) + how; };
    const OperatorDef* const def = find_canonical(graph_, n);
    const bool drops_nothing = n.op == "Dropout" && n.inputs.size() == 1;
    if (def && (def->flags & kOpRandom) && !drops_nothing)
      return told(" draws numbers by the place of an element");
    if (n.op == "Unique" && (!n.attr("axis") || axis_of(n.attr_int("axis", 0), rank) == axis))
      return told(" compares the rows with each other");
    if (n.op == "BatchNormalization" && n.attr_int("training_mode", 0) != 0)
      return told(" takes statistics of the batch");
    if (n.op == "MeanVarianceNormalization") {
      const std::vector<int64_t>* axes = n.attr_ints("axes");
      for (size_t i = 0; axes && i < axes->size(); ++i)
        if (axis_of((*axes)[i], rank) == axis) return told(" takes statistics of the batch");
    }
    const auto row = row_of(n);
    if (!row) return {};
    switch (row->rule) {
      case Rule::kAlong:
        if (n.op != "Split" &&
            axis_of(n.attr_int("axis", n.op.starts_with("Arg") ? 0 : -1), rank) == axis)
          return told(" works along the batch");
        return {};
      case Rule::kFrom:
        return axis >= axis_of(n.attr_int("axis", -1), rank) ? told(" works along the batch") : "";
      case Rule::kReduce: {
        const bool all = !n.has_input(1);
        const auto axes = all ? std::nullopt : numbers(n, 1);
        if (!all && !axes) return {};
        if (all || axes->empty())
          return n.attr_int("noop_with_empty_axes", 0) ? "" : told(" reduces over the batch");
        for (const int64_t a : *axes)
          if (axis_of(a, rank) == axis) return told(" reduces over the batch");
        return {};
      }
      case Rule::kCumulative:
        if (const auto along = numbers(n, 1);
            along && along->size() == 1 && axis_of(along->front(), rank) == axis)
          return told(" adds up along the batch");
        return {};
      case Rule::kMatMul:
        return axis + 1 == rank ? told(" multiplies and adds up over the batch") : "";
      case Rule::kGemm:
        return axis == (n.attr_int("transA", 0) ? 0u : 1u)
                   ? told(" multiplies and adds up over the batch")
                   : "";
      default:
        return {};
    }
  }

  void visit(const Node& n) {
    const OperatorDef* const def = find_canonical(graph_, n);
    const bool drops_nothing = n.op == "Dropout" && n.inputs.size() == 1;
    if (!def || ((def->flags & kOpRandom) && !drops_nothing) ||
        (graph_.operators && graph_.operators->knows(n.domain, n.op)))
      return;
    for (const Attribute& attr : n.attrs)
      if (attr.graph || !attr.graphs.empty()) return;
    size_t source = n.inputs.size();  // the first input with rows
    bool sized = false;
    for (size_t i = 0; i < n.inputs.size(); ++i) {
      if (!n.has_input(i)) continue;
      if (!shape(n, i) && place(n, i).kind == Kind::kRows) return;
      if (rows(n, i)) source = std::min(source, i);
      sized = sized || place(n, i).kind == Kind::kSized;
    }
    if (source == n.inputs.size()) return without_rows(n, sized);
    if (const auto row = row_of(n)) with_rows(n, *row, source);
  }

  void without_rows(const Node& n, bool sized) {
    for (size_t i = 0; i < n.outputs.size(); ++i) {
      if (n.outputs[i] == kNoId) continue;
      places_[n.outputs[i]].kind = sized ? Kind::kSized : Kind::kSame;
      if (sized) settle_sized(n, i);
    }
  }

  // Recognises an output that only seems to depend on the size of the batch, or has equal contents
  // in each row of it.
  void settle_sized(const Node& n, size_t i) {
    const ValueId v = n.outputs[i];
    if (const std::optional<Shape>& data = state_.data[v];
        data && std::ranges::all_of(*data, [&](Dim d) { return independent(d); })) {
      places_[v].kind = Kind::kSame;
      return;
    }
    const bool expand = n.op == "Expand" && same(n, 0) && shape(n, 0);
    if (!n.domain.empty() || !(n.op == "ConstantOfShape" || expand)) return;
    const Type& type = state_.type_of(graph_, v);
    if (!type.has_shape) return;
    for (size_t axis = 0; axis < type.shape.size(); ++axis) {
      if (independent(type.shape[axis])) continue;
      const size_t from_right = type.shape.size() - axis;
      if (!scaled(type.shape[axis]) || (expand && !broadcast_at(n, 0, from_right))) return;
      for (size_t d = axis + 1; d < type.shape.size(); ++d)
        if (!independent(type.shape[d])) return;
      places_[v] = {Kind::kRows, axis};
      return;
    }
  }

  // Whether input |i| has one element along the dimension that is |from_right| from the end.
  bool broadcast_at(const Node& n, size_t i, size_t from_right) const {
    const Shape* const s = shape(n, i);
    return s && (s->size() < from_right || (*s)[s->size() - from_right].is(1));
  }
  size_t from_right(const Node& n, size_t i) const {
    return shape(n, i)->size() - place(n, i).axis;
  }
  Dim extent(const Node& n, size_t i) const { return (*shape(n, i))[place(n, i).axis]; }
  size_t out_rank(const Node& n) const {
    return n.has_output(0) ? state_.type_of(graph_, n.outputs[0]).shape.size() : 0;
  }
  // Sets output 0, whose rows are |right| from the end.
  void set_from_right(const Node& n, size_t right, size_t source) {
    if (out_rank(n) >= right) set(n, 0, out_rank(n) - right, source);
  }

  void with_rows(const Node& n, const Row& row, size_t source) {
    const size_t axis = place(n, source).axis, rank = shape(n, source)->size();
    switch (row.rule) {
      case Rule::kElements:
        return elements(n, source);
      case Rule::kFixed:
        return fixed(n, row.ports, source);
      case Rule::kAlong: {
        if (source != 0 || !same_from(n, 1)) return;
        const bool arg = n.op.starts_with("Arg");
        const size_t along = axis_of(n.attr_int("axis", arg || n.op == "Split" ? 0 : -1), rank);
        const bool gone = arg && n.attr_int("keepdims", 1) == 0;
        if (along == axis) return;
        for (size_t i = 0; i < n.outputs.size(); ++i)
          set(n, i, axis - (gone && along < axis ? 1 : 0), 0);
        return;
      }
      case Rule::kFrom:
        if (source != 0 || !same_from(n, 1) || axis >= axis_of(n.attr_int("axis", -1), rank))
          return;
        for (size_t i = 1; i < n.inputs.size(); ++i)
          if (n.has_input(i) && !broadcast_at(n, i, rank - axis)) return;
        for (size_t i = 0; i < n.outputs.size(); ++i) set(n, i, axis, 0);
        return;
      case Rule::kLast:
        if (source == 0 && same_from(n, 1) && axis + 1 < rank) set(n, 0, axis, 0);
        return;
      case Rule::kReduce:
        return reduce(n, axis, rank, source);
      case Rule::kMatMul:
        if (same_from(n, 2)) product(n, 0, 1);
        return;
      case Rule::kScaledMatMul:
        for (const size_t i : {1u, 2u, 4u, 5u, 6u, 7u})
          if (!same(n, i)) return;
        return product(n, 0, 3);
      case Rule::kGemm: {
        const size_t m = n.attr_int("transA", 0) ? 1 : 0;
        if (source != 0 || axis != m || !same(n, 1)) return;
        if (rows(n, 2) ? from_right(n, 2) == 2 && equal(extent(n, 2), extent(n, 0))
                       : !n.has_input(2) || (same(n, 2) && broadcast_at(n, 2, 2)))
          set(n, 0, 0, 0);
        return;
      }
      case Rule::kTranspose:
        if (const auto* perm = n.attr_ints("perm"))
          for (size_t i = 0; i < perm->size(); ++i)
            if ((*perm)[i] == static_cast<int64_t>(axis)) set(n, 0, i, 0);
        return;
      case Rule::kReshape:
        if (source == 0 && !rows(n, 1)) reshape(n, axis);
        return;
      case Rule::kConcat:
        for (size_t i = 0; i < n.inputs.size(); ++i)
          if (!rows(n, i) || place(n, i).axis != axis || !equal(extent(n, i), extent(n, source)))
            return;
        if (axis_of(n.attr_int("axis", 0), rank) != axis) set(n, 0, axis, 0);
        return;
      case Rule::kSlice: {
        if (source != 0 || !same_from(n, 1) || !n.has_input(1)) return;
        std::optional<std::vector<int64_t>> axes;
        if (n.has_input(3)) axes = numbers(n, 3);
        if (!axes) return;  // canonical nodes have them
        for (const int64_t a : *axes)
          if (axis_of(a, rank) == axis) return;
        return set(n, 0, axis, 0);
      }
      case Rule::kGather: {
        const size_t along = axis_of(n.attr_int("axis", 0), shape(n, 0) ? shape(n, 0)->size() : 0);
        if (source == 1 && same(n, 0) && shape(n, 0)) return set(n, 0, along + axis, 1);
        if (source != 0 || !same(n, 1) || !shape(n, 1) || along == axis) return;
        return set(n, 0, axis < along ? axis : axis + shape(n, 1)->size() - 1, 0);
      }
      case Rule::kGatherElements:
        if (rows(n, 0) && rows(n, 1) && place(n, 1).axis == axis &&
            equal(extent(n, 0), extent(n, 1)) && axis_of(n.attr_int("axis", 0), rank) != axis)
          set(n, 0, axis, 0);
        return;
      case Rule::kExpand:
        if (source == 0 && !rows(n, 1)) set_from_right(n, rank - axis, 0);
        return;
      case Rule::kPad:
        return pad(n, axis, rank, source);
      case Rule::kCumulative:
        if (const auto along = numbers(n, 1);
            source == 0 && along && along->size() == 1 && axis_of(along->front(), rank) != axis)
          set(n, 0, axis, 0);
        return;
      case Rule::kTrilu:
        if (source == 0 && same_from(n, 1) && axis + 2 < rank) set(n, 0, axis, 0);
        return;
      case Rule::kOneHot: {
        if (source != 0 || !same_from(n, 1)) return;
        const size_t added = axis_of(n.attr_int("axis", -1), rank + 1);
        return set(n, 0, axis < added ? axis : axis + 1, 0);
      }
      case Rule::kScale: {
        const Shape* const scale = shape(n, 1);
        if (source != 0 || !same_from(n, 1) || !scale || scale->size() > 1) return;
        if (scale->empty() || (*scale)[0].is(1) || axis_of(n.attr_int("axis", 1), rank) != axis)
          set(n, 0, axis, 0);
        return;
      }
      case Rule::kShape:
        if (n.has_output(0)) {
          places_[n.outputs[0]].kind = Kind::kSized;
          settle_sized(n, 0);
        }
        return;
    }
  }

  void elements(const Node& n, size_t source) {
    const size_t right = from_right(n, source);
    for (size_t i = 0; i < n.inputs.size(); ++i) {
      if (!n.has_input(i)) continue;
      if (rows(n, i) ? from_right(n, i) != right || !equal(extent(n, i), extent(n, source))
                     : !same(n, i) || !broadcast_at(n, i, right))
        return;
    }
    if (n.outputs.size() == 1) set_from_right(n, right, source);
  }

  void fixed(const Node& n, std::string_view ports, size_t source) {
    if (n.attr_int("layout", 0) != 0 || n.attr_int("training_mode", 0) != 0 || !shape(n, 0) ||
        shape(n, 0)->size() < 2 ||
        n.attr_string("coordinate_transformation_mode", "") == "tf_crop_and_resize")
      return;
    const size_t end = ports.find('>');
    for (size_t i = 0; i < n.inputs.size(); ++i) {
      if (!n.has_input(i)) continue;
      const char want = i < end ? ports[i] : '-';
      if ((want == 's' || want == 'z') && same(n, i)) continue;
      if (want == 'z' && place(n, i).kind == Kind::kSized) continue;
      if (want == 'm' && same(n, i) && broadcast_at(n, i, 4)) continue;
      const size_t axis =
          want == 'm' && shape(n, i)->size() == 4 ? 0 : static_cast<size_t>(want - '0');
      if (!rows(n, i) || place(n, i).axis != axis || !equal(extent(n, i), extent(n, source)))
        return;
    }
    const std::string_view out = ports.substr(end + 1);
    for (size_t i = 0; i < n.outputs.size() && i < out.size(); ++i)
      if (out[i] != '-') set(n, i, static_cast<size_t>(out[i] - '0'), source);
  }

  void reduce(const Node& n, size_t axis, size_t rank, size_t source) {
    if (source != 0) return;
    std::vector<int64_t> axes;
    if (n.has_input(1)) {
      const auto given = numbers(n, 1);
      if (!given) return;
      axes = *given;
    }
    if (axes.empty()) {
      if (n.attr_int("noop_with_empty_axes", 0) != 0) set(n, 0, axis, 0);
      return;
    }
    size_t before = 0;
    for (const int64_t given : axes) {
      const size_t a = axis_of(given, rank);
      if (a == axis) return;
      before += a < axis;
    }
    set(n, 0, axis - (n.attr_int("keepdims", 1) ? 0 : before), 0);
  }

  // Sets the rows of the product of inputs |a| and |b|.
  void product(const Node& n, size_t a, size_t b) {
    if (!shape(n, a) || !shape(n, b) || shape(n, a)->size() < 2 || shape(n, b)->size() < 2) return;
    if (rows(n, a) && rows(n, b)) {
      if (from_right(n, a) > 2 && from_right(n, a) == from_right(n, b) &&
          equal(extent(n, a), extent(n, b)))
        set_from_right(n, from_right(n, a), a);
      return;
    }
    const bool left = rows(n, a);
    const size_t with = left ? a : b, other = left ? b : a, right = from_right(n, with);
    if (!same(n, other) || right == (left ? 1u : 2u)) return;
    if (right <= 2 || broadcast_at(n, other, right)) set_from_right(n, right, with);
  }

  // Rows stay apart if the dimension they land in has as many elements before it as the batch had.
  void reshape(const Node& n, size_t axis) {
    if (!n.has_output(0)) return;
    const Type& to = state_.type_of(graph_, n.outputs[0]);
    if (!to.has_shape) return;
    const Dim before = graph_.symbols->product(*shape(n, 0), 0, axis);
    for (size_t i = 0; i < to.shape.size(); ++i)
      if (scaled(to.shape[i]) && graph_.symbols->product(to.shape, 0, i) == before)
        return set(n, 0, i, 0, true);
  }

  void pad(const Node& n, size_t axis, size_t rank, size_t source) {
    if (source != 0 || !same_from(n, 1)) return;
    const auto pads = numbers(n, 1);
    std::vector<int64_t> axes;
    if (n.has_input(3)) {
      const auto given = numbers(n, 3);
      if (!given) return;
      axes = *given;
    } else {
      for (size_t i = 0; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
    }
    if (!pads || pads->size() != 2 * axes.size()) return;
    for (size_t i = 0; i < axes.size(); ++i)
      if (axis_of(axes[i], rank) == axis && ((*pads)[i] || (*pads)[i + axes.size()])) return;
    set(n, 0, axis, 0);
  }

  const Graph& graph_;
  InferState state_;
  std::vector<Place> places_;  // by value
  std::vector<NodeId> order_;
  std::vector<Dim> others_;  // symbols of inputs other than the batch
  Dim batch_;
  std::string mixer_;
};

// Whether each value of |graph| is an input with rows. Where first dimensions are symbolic, those
// inputs have rows; else those whose first dimension is not 1.
std::vector<bool> inputs_with_rows(const Graph& graph) {
  const auto in_front = [&](ValueId v) {
    const Type& type = graph.at(v).type;
    if (graph.at(v).constant || !type.is_tensor()) return Dim(1);
    return !type.has_shape ? Dim() : type.shape.empty() ? Dim(1) : type.shape[0];
  };
  const bool open =
      std::ranges::any_of(graph.inputs, [&](ValueId v) { return !in_front(v).known(); });
  std::vector<bool> out(graph.value_count());
  for (const ValueId v : graph.inputs) out[v] = open ? !in_front(v).known() : !in_front(v).is(1);
  return out;
}

// Whether the node quantizes input 0 by the range of the whole tensor.
bool quantizes_by_range(const Node& node) {
  return (node.domain.empty() && node.op == "DynamicQuantizeLinear") ||
         (node.domain == "com.microsoft" && node.op == "DynamicQuantizeLSTM");
}

// The first node that quantizes a value that depends on an input with rows. |depends| has an entry
// for each value of the graph.
Result<std::string> quantized_by_range(const Graph& graph, std::vector<bool> depends) {
  PFRT_ASSIGN(const std::vector<NodeId> order, graph.topological_order());
  for (const NodeId id : order) {
    const Node& node = *graph.node(id);
    if (quantizes_by_range(node) && node.has_input(0) && depends[node.inputs[0]])
      return describe(graph, node) + " quantizes by the range of all rows together";
    if (node.domain.empty() && (node.op == "Shape" || node.op == "Size")) continue;
    const std::vector<ValueId> used = graph.used_by(node);
    const bool any = std::ranges::any_of(used, [&](ValueId v) { return depends[v]; });
    for (const ValueId out : node.outputs)
      if (out != kNoId && any) depends[out] = true;
    const auto look = [&](const Graph& body) -> Result<std::string> {
      std::vector<bool> inner(body.value_count());
      for (const ValueId v : body.inputs) inner[v] = any;
      for (const Capture& capture : body.captures) inner[capture.inner] = depends[capture.outer];
      return quantized_by_range(body, std::move(inner));
    };
    for (const Attribute& attr : node.attrs) {
      std::string found;
      if (attr.graph) {
        PFRT_ASSIGN(found, look(*attr.graph));
      }
      for (size_t i = 0; found.empty() && i < attr.graphs.size(); ++i) {
        PFRT_ASSIGN(found, look(*attr.graphs[i]));
      }
      if (!found.empty()) return found;
    }
  }
  return std::string();
}

}  // namespace

namespace {

// The result for the first dimension that is the batch of most outputs; |out_mixer| may be null.
std::optional<BatchRows> by_best_batch(Proof& proof, std::string* out_mixer) {
  std::optional<BatchRows> best;
  for (const Dim batch : proof.batches()) {
    BatchRows found = proof.find(batch);
    const auto known = [](const BatchRows& rows) {
      return std::ranges::count(rows.outputs, Port::kRows);
    };
    if (best && known(found) <= known(*best)) continue;
    best = std::move(found);
    if (out_mixer) *out_mixer = proof.mixer();
  }
  return best;
}

}  // namespace

Result<std::string> mixes_rows(const Graph& graph) {
  PFRT_ASSIGN(std::string mixer, quantized_by_range(graph, inputs_with_rows(graph)));
  if (!mixer.empty()) return mixer;
  Proof proof(graph);
  PFRT_TRY(proof.begin());
  (void)by_best_batch(proof, &mixer);
  return mixer;
}

Result<BatchRows> batch_rows(const Graph& graph) {
  Proof proof(graph);
  PFRT_TRY(proof.begin());
  std::optional<BatchRows> best = by_best_batch(proof, nullptr);
  if (!best)
    return error(Code::kNOT_FOUND, "looking for the batch of graph '", graph.name,
                 "': no input has a dimension without a number in front");
  return std::move(*best);
}

}  // namespace pfrt
