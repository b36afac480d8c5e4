// SPDX-License-Identifier: Apache-2.0
#include "core/op/operator.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/half.h"
#include "core/base/immortal.h"
#include "core/op/families.h"
#include "core/op/infer.h"
#include "core/op/operator_set.h"
#include "core/op/rules.h"
#include "core/op/strings.h"

namespace pfrt {
namespace {

std::string_view canonical_domain(std::string_view domain) {
  return domain == "ai.onnx" ? "" : domain;
}

// Every row, by domain and name, else as the families have them, and a hash table of where the rows
// of each name begin. Without heap memory or a destructor: exit() may come while another thread
// still looks up.
class RowIndex {
 public:
  RowIndex() {
    for (const std::span<const OperatorDef>& family : operators())
      for (const OperatorDef& row : family) rows_.at(count_++) = &row;
    std::stable_sort(rows_.begin(), end(),
                     [](const OperatorDef* a, const OperatorDef* b) { return key(*a) < key(*b); });
    for (size_t i = 0; i < count_; ++i) {
      if (i > 0 && key(*rows_[i]) == key(*rows_[i - 1])) continue;
      size_t slot = slot_of(rows_[i]->domain, rows_[i]->name);
      while (first_.at(slot) != kNone) slot = (slot + 1) % kSlots;
      first_.at(slot) = static_cast<uint16_t>(i);
    }
  }
  std::span<const OperatorDef* const> find(std::string_view domain, std::string_view name) const {
    for (size_t slot = slot_of(domain, name); first_[slot] != kNone; slot = (slot + 1) % kSlots) {
      const size_t first = first_[slot];
      if (rows_[first]->name != name || rows_[first]->domain != domain) continue;
      size_t last = first + 1;
      while (last < count_ && rows_[last]->name == name && rows_[last]->domain == domain) ++last;
      return {rows_.data() + first, last - first};
    }
    return {};
  }

 private:
  static constexpr size_t kMost = 1024, kSlots = 4 * kMost;
  static constexpr uint16_t kNone = UINT16_MAX;
  using Rows = std::array<const OperatorDef*, kMost>;
  static size_t slot_of(std::string_view domain, std::string_view name) {
    uint32_t hash = 0x811c9dc5u;  // FNV-1a
    for (const std::string_view part : {domain, name})
      for (const char c : part) hash = (hash ^ static_cast<unsigned char>(c)) * 0x01000193u;
    return (hash ^ hash >> 16) % kSlots;
  }
  static std::pair<std::string_view, std::string_view> key(const OperatorDef& row) {
    return {row.domain, row.name};
  }
  static constexpr std::array<uint16_t, kSlots> filled() {
    std::array<uint16_t, kSlots> none{};
    none.fill(kNone);
    return none;
  }
  Rows::iterator end() { return rows_.begin() + static_cast<std::ptrdiff_t>(count_); }

  Rows rows_{};
  size_t count_ = 0;
  std::array<uint16_t, kSlots> first_ = filled();
};

std::span<const OperatorDef* const> rows_of(std::string_view domain, std::string_view name) {
  static const RowIndex index;
  return index.find(canonical_domain(domain), name);
}

const Type& unset_type() {
  static Immortal<Type> unset;
  return unset.get();
}

// Values made since |state| was brought up to date are constants: the graph itself knows their
// types.
const Type& type_of_value(const Graph& graph, const InferState& state, ValueId id) {
  return id < state.types.size() ? state.types[id] : graph.at(id).type;
}

std::string local_name(const Graph& graph, const Node& node, std::string_view stem) {
  std::string prefix = node.name;
  for (size_t i = 0; prefix.empty() && i < node.outputs.size(); ++i)
    if (node.outputs[i] != kNoId) prefix = graph.at(node.outputs[i]).name;
  return prefix.empty() ? std::string(stem) : prefix + "/" + std::string(stem);
}

template <typename T>
Result<Tensor> scalar_of(pfrt_dtype dtype, T value) {
  return Tensor::copy_of(dtype, {}, &value);
}

Result<Tensor> make_scalar(pfrt_dtype dtype, double value) {
  switch (dtype) {
    case PFRT_DTYPE_FLOAT32:
      return scalar_of(dtype, static_cast<float>(value));
    case PFRT_DTYPE_FLOAT64:
      return scalar_of(dtype, value);
    case PFRT_DTYPE_FLOAT16:
      return scalar_of(dtype, float_to_float16(static_cast<float>(value)));
    case PFRT_DTYPE_BFLOAT16:
      return scalar_of(dtype, float_to_bfloat16(static_cast<float>(value)));
    case PFRT_DTYPE_INT8:
      return scalar_of(dtype, static_cast<int8_t>(value));
    case PFRT_DTYPE_INT16:
      return scalar_of(dtype, static_cast<int16_t>(value));
    case PFRT_DTYPE_INT32:
      return scalar_of(dtype, static_cast<int32_t>(value));
    case PFRT_DTYPE_INT64:
      return scalar_of(dtype, static_cast<int64_t>(value));
    case PFRT_DTYPE_UINT8:
      return scalar_of(dtype, static_cast<uint8_t>(value));
    case PFRT_DTYPE_BOOL:
      return scalar_of(dtype, static_cast<uint8_t>(value != 0));
    case PFRT_DTYPE_UINT16:
      return scalar_of(dtype, static_cast<uint16_t>(value));
    case PFRT_DTYPE_UINT32:
      return scalar_of(dtype, static_cast<uint32_t>(value));
    case PFRT_DTYPE_UINT64:
      return scalar_of(dtype, static_cast<uint64_t>(value));
    default:
      return error(Code::kUNSUPPORTED, "making a scalar constant of type ", dtype_name(dtype),
                   ": numbers and bool are supported");
  }
}

}  // namespace

std::span<const std::span<const OperatorDef>> operators() {
  static const std::array families = {elementwise_operators(),
                                      reduce_operators(),
                                      movement_operators(),
                                      index_operators(),
                                      constant_operators(),
                                      shape_operators(),
                                      nn_operators(),
                                      pool_operators(),
                                      norm_operators(),
                                      matmul_operators(),
                                      resize_operators(),
                                      quantize_operators(),
                                      recurrent_operators(),
                                      sequence_operators(),
                                      control_operators(),
                                      text_operators(),
                                      string_operators(),
                                      flex_attention_operators(),
                                      contrib_fused_operators(),
                                      contrib_qlinear_operators(),
                                      contrib_product_operators(),
                                      contrib_move_operators(),
                                      contrib_native_operators(),
                                      removed_operators(),
                                      ml_operators(),
                                      signal_operators(),
                                      random_operators(),
                                      training_operators(),
                                      attention_operators(),
                                      transformer_attention_operators(),
                                      transformer_group_operators(),
                                      transformer_norm_operators()};
  return families;
}

const OperatorDef* find_operator(std::string_view domain, std::string_view name, int64_t opset) {
  for (const OperatorDef* row : rows_of(domain, name))
    if (row->since <= opset && (row->until == 0 || opset <= row->until)) return row;
  return nullptr;
}

const OperatorDef* find_operator(const Graph& graph, const Node& node, int64_t opset) {
  if (const OperatorDef* row = find_operator(node.domain, node.op, opset)) return row;
  const CustomOperator* own =
      graph.operators ? graph.operators->find(node.domain, node.op) : nullptr;
  // A domain that nobody imports is at its newest.
  return own && (opset == 0 || opset >= own->row().since) ? &own->row() : nullptr;
}

const OperatorDef* find_canonical(const Graph& graph, const Node& node) {
  return find_operator(graph, node, std::max(newest_opset(node.domain), graph.opset(node.domain)));
}

bool is_built_in(std::string_view domain, std::string_view name) {
  return !rows_of(domain, name).empty();
}

int64_t newest_opset(std::string_view domain) {
  domain = canonical_domain(domain);
  if (domain.empty()) return 28;
  if (domain == "ai.onnx.ml") return 5;
  if (domain == "com.microsoft") return 1;
  if (domain == "ai.onnx.preview") return 1;
  if (domain == kStringDomain) return 1;
  if (domain == "ai.onnx.preview.training") return 1;
  return 0;
}

const Type& Inference::input(size_t i) const {
  return has_input(i) ? type_of_value(graph_, state_, node_.inputs[i]) : unset_type();
}

const Tensor* Inference::constant(size_t i) const {
  if (!has_input(i)) return nullptr;
  const auto it = state_.contents.find(node_.inputs[i]);
  return it != state_.contents.end() ? &it->second : graph_.constant(node_.inputs[i]);
}

std::optional<Shape> Inference::data(size_t i) const {
  if (!has_input(i)) return std::nullopt;
  const ValueId id = node_.inputs[i];
  if (id < state_.data.size()) return state_.data[id];
  return std::nullopt;
}

std::optional<std::vector<int64_t>> Inference::numbers(size_t i) const {
  const std::optional<Shape> elements = data(i);
  if (!elements) return std::nullopt;
  std::vector<int64_t> out;
  out.reserve(elements->size());
  for (const Dim& d : *elements) {
    if (!d.known()) return std::nullopt;
    out.push_back(d.value());
  }
  return out;
}

void Inference::set_output(size_t i, Type type) {
  if (!node_.has_output(i)) return;
  const ValueId id = node_.outputs[i];
  if (id >= state_.types.size()) state_.types.resize(graph_.value_count());
  state_.types[id] = std::move(type);
}

void Inference::set_data(size_t i, Shape elements) {
  if (!node_.has_output(i) || elements.size() > kMaxData) return;
  const pfrt_dtype dtype = output(i).dtype;
  if (dtype != PFRT_DTYPE_UNSET && !holds_data(dtype)) return;
  const ValueId id = node_.outputs[i];
  if (id >= state_.data.size()) state_.data.resize(graph_.value_count());
  state_.data[id] = std::move(elements);
}

const Type& Inference::output(size_t i) const {
  return node_.has_output(i) ? type_of_value(graph_, state_, node_.outputs[i]) : unset_type();
}

Result<int64_t> Inference::axis(int64_t axis, size_t rank) const {
  const int64_t r = static_cast<int64_t>(rank);
  if (axis < -r || axis >= r)
    return fail("axis ", axis, " is not one of a tensor of rank ", r,
                r ? message("; it must lie in [", -r, ", ", r - 1, "]") : std::string());
  return axis < 0 ? axis + r : axis;
}

// Whether |part| is the smaller of |whole| and a number above 1, as of a table that is cut to a
// length: the two only broadcast where they are equal.
static bool is_cut_of(const SymbolTable& symbols, const Dim& part, const Dim& whole) {
  if (!part.symbolic() || !whole.symbolic()) return false;
  std::string_view number;
  const std::string text = symbols.text(part), name = symbols.text(whole);
  const std::string before = "(" + name + " min ", behind = " min " + name + ")";
  if (text.starts_with(before) && text.ends_with(')'))
    number = std::string_view(text).substr(before.size(), text.size() - before.size() - 1);
  else if (text.starts_with('(') && text.ends_with(behind))
    number = std::string_view(text).substr(1, text.size() - behind.size() - 1);
  return !number.empty() && number != "0" && number != "1" &&
         number.find_first_not_of("0123456789") == std::string_view::npos;
}

Result<Shape> Inference::broadcast(const Shape& a, const Shape& b) const {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  const size_t lead = longer.size() - shorter.size();
  Shape out = longer;
  for (size_t i = 0; i < shorter.size(); ++i) {
    Dim& l = out[lead + i];
    const Dim& s = shorter[i];
    if (l == s || s.is(1)) continue;
    if (l.is(1)) {
      l = s;
    } else if (l.known() && s.known()) {
      return fail("shapes ", symbols().text(a), " and ", symbols().text(b),
                  " do not broadcast: ", l.value(), " against ", s.value(),
                  "; dimensions must be equal or 1");
    } else if (s.known()) {
      l = s;
    } else if (is_cut_of(symbols(), l, s)) {
      l = s;
    } else if (!l.known() && !is_cut_of(symbols(), s, l)) {
      // Which of the two is 1, only a run can tell; equal pairs still give equal dimensions.
      std::string left = symbols().text(l), right = symbols().text(s);
      if (right < left) std::swap(left, right);
      const bool nameable = l.symbolic() && s.symbolic() && left.size() + right.size() <= 120;
      l = nameable ? symbols().symbol("(" + left + "~" + right + ")") : Dim();
    }
  }
  return out;
}

const Type& Rewriter::input(size_t i) const {
  return has_input(i) ? type_of_value(graph_, state_, graph_.node(id_)->inputs[i]) : unset_type();
}

const Tensor* Rewriter::constant(size_t i) const {
  return has_input(i) ? graph_.constant(graph_.node(id_)->inputs[i]) : nullptr;
}

Result<ValueId> Rewriter::int64s(std::string_view stem, const std::vector<int64_t>& values) {
  PFRT_ASSIGN(Tensor tensor, Tensor::of_int64(values));
  return constant_value(local_name(graph_, node(), stem), std::move(tensor));
}

Result<ValueId> Rewriter::scalar(std::string_view stem, pfrt_dtype dtype, double value) {
  PFRT_ASSIGN(Tensor tensor, make_scalar(dtype, value));
  return constant_value(local_name(graph_, node(), stem), std::move(tensor));
}

void Rewriter::set_input(size_t i, ValueId value) {
  std::vector<ValueId>& inputs = node().inputs;
  if (i >= inputs.size()) inputs.resize(i + 1, kNoId);
  inputs[i] = value;
}

Status Rewriter::attr_to_input(std::string_view name, size_t i) {
  const Attribute* attr = node().attr(name);
  if (!attr) return {};
  if (attr->type != PFRT_ATTR_INTS && attr->type != PFRT_ATTR_INT)
    return fail("attribute '", name, "' has type ", attr->type, ", expected integers");
  const std::vector<int64_t> values =
      attr->type == PFRT_ATTR_INT ? std::vector<int64_t>{attr->i} : attr->ints;
  PFRT_ASSIGN(const ValueId value, int64s(name, values));
  set_input(i, value);
  node().drop_attr(name);
  return {};
}

Result<ValueId> Rewriter::before(std::string_view op, std::vector<ValueId> inputs,
                                 std::vector<Attribute> attrs, size_t outputs) {
  Node made;
  made.op = op;
  made.inputs = std::move(inputs);
  made.attrs = std::move(attrs);
  PFRT_ASSIGN(const std::vector<ValueId> values, put_before(std::move(made), outputs));
  return values.empty() ? kNoId : values.front();
}

Result<std::vector<ValueId>> Rewriter::put_before(Node made, size_t outputs) {
  made.name = local_name(graph_, node(), made.name.empty() ? made.op : made.name);
  made.canonical = true;
  made.outputs.clear();
  for (size_t i = 0; i < outputs; ++i) made.outputs.push_back(graph_.fresh(made.name));
  std::vector<ValueId> values = made.outputs;
  PFRT_ASSIGN(const NodeId id, graph_.add_node(std::move(made)));
  PFRT_TRY(infer_node(graph_, *graph_.node(id), state_));
  return values;
}

Status Rewriter::put_after(size_t i, Node made) {
  if (!node().has_output(i)) return {};
  made.name = local_name(graph_, node(), made.op);
  made.canonical = true;
  const ValueId out = node().outputs[i];
  const ValueId between = graph_.fresh(local_name(graph_, node(), node().op));
  graph_.at(out).producer = kNoId;
  graph_.at(between).producer = id_;
  node().outputs[i] = between;
  made.inputs.insert(made.inputs.begin(), between);
  made.outputs = {out};
  PFRT_ASSIGN(const NodeId id, graph_.add_node(std::move(made)));
  after_.push_back(id);
  return {};
}

Result<std::vector<ValueId>> Rewriter::inline_body(const Graph& body,
                                                   std::span<const ValueId> inputs) {
  std::vector<ValueId> stand_in(body.value_count(), kNoId);
  const auto outer = [&](ValueId inner) {
    if (inner == kNoId) return kNoId;
    if (stand_in[inner] == kNoId && body.at(inner).constant) {
      stand_in[inner] = graph_.fresh(local_name(graph_, node(), body.at(inner).name));
      graph_.set_constant(stand_in[inner], body.at(inner).constant);
    }
    return stand_in[inner];
  };
  for (size_t i = 0; i < inputs.size() && i < body.inputs.size(); ++i)
    stand_in[body.inputs[i]] = inputs[i];
  for (const Capture& capture : body.captures) stand_in[capture.inner] = capture.outer;
  PFRT_ASSIGN(const std::vector<NodeId> order, body.topological_order());
  for (const NodeId id : order) {
    Node copy = *body.node(id);
    for (ValueId& in : copy.inputs) in = outer(in);
    for (Attribute& attr : copy.attrs) {
      if (attr.graph) attr.graph = attr.graph->clone();
      for (auto& graph : attr.graphs) graph = graph->clone();
      if (attr.graph)
        for (Capture& capture : attr.graph->captures) capture.outer = outer(capture.outer);
      for (auto& graph : attr.graphs)
        for (Capture& capture : graph->captures) capture.outer = outer(capture.outer);
    }
    const std::vector<ValueId> made = copy.outputs;
    PFRT_ASSIGN(const std::vector<ValueId> values, put_before(std::move(copy), made.size()));
    for (size_t i = 0; i < made.size(); ++i)
      if (made[i] != kNoId) stand_in[made[i]] = values[i];
  }
  std::vector<ValueId> outputs;
  for (const ValueId out : body.outputs) {
    outputs.push_back(outer(out));
    if (outputs.back() == kNoId)
      return fail("body '", body.name, "' does not make its output '", body.at(out).name, "'");
  }
  return outputs;
}

void Rewriter::stand_in(ValueId from, ValueId to) {
  if (state_.instead && !graph_.is_output(from))
    (*state_.instead)[from] = to;
  else
    graph_.replace_uses(from, to);
}

bool Rewriter::is_used(ValueId value) const {
  if (graph_.is_output(value)) return true;
  if (state_.used && value < state_.used->size()) return (*state_.used)[value];
  for (NodeId id : graph_.node_ids()) {
    const std::vector<ValueId> taken = graph_.used_by(*graph_.node(id));
    if (std::ranges::find(taken, value) != taken.end()) return true;
  }
  return false;
}

void Rewriter::become(const std::vector<ValueId>& values) {
  const std::vector<ValueId> outputs = node().outputs;
  for (size_t i = 0; i < outputs.size() && i < values.size(); ++i)
    if (outputs[i] != kNoId) stand_in(outputs[i], values[i]);
  graph_.remove_node(id_);
}

Status Rewriter::after(std::string_view op, std::vector<ValueId> more,
                       std::vector<Attribute> attrs) {
  Node& tail = *graph_.node(after_.empty() ? id_ : after_.back());
  if (!tail.has_output(0)) return {};
  Node made;
  made.name = local_name(graph_, node(), op);
  made.op = op;
  made.attrs = std::move(attrs);
  made.canonical = true;
  made.outputs = {tail.outputs[0]};
  const ValueId between = graph_.fresh(local_name(graph_, node(), node().op));
  graph_.at(tail.outputs[0]).producer = kNoId;
  graph_.at(between).producer = tail.id;
  tail.outputs[0] = between;
  made.inputs = {between};
  made.inputs.insert(made.inputs.end(), more.begin(), more.end());
  PFRT_ASSIGN(const NodeId id, graph_.add_node(std::move(made)));
  after_.push_back(id);
  return {};
}

Status Rewriter::become_constant(Tensor tensor) {
  if (!node().has_output(0)) return fail("the constant has no output to stand for");
  const ValueId out = node().outputs[0];
  graph_.remove_node(id_);
  graph_.set_constant(out, Value::of(std::move(tensor)));
  if (out < state_.types.size()) state_.types[out] = graph_.at(out).type;
  if (out < state_.data.size()) state_.data[out] = contents_of(graph_.constant(out));
  return {};
}

}  // namespace pfrt
