// SPDX-License-Identifier: Apache-2.0
#include "core/op/engine/inference.h"

#include "core/base/immortal.h"
#include "core/op/engine/contents.h"

namespace pfrt {
namespace {

const Type& unset_type() {
  static Immortal<Type> unset;
  return unset.get();
}

}  // namespace

const Type& InferState::type_of(const Graph& graph, ValueId id) const {
  if (id == kNoId) return unset_type();
  return id < types.size() ? types[id] : graph.at(id).type;
}

const Type& Inference::input(size_t i) const {
  return state_.type_of(graph_, has_input(i) ? node_.inputs[i] : kNoId);
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
  return state_.type_of(graph_, node_.has_output(i) ? node_.outputs[i] : kNoId);
}

Result<int64_t> Inference::axis(int64_t axis, size_t rank) const {
  const int64_t r = static_cast<int64_t>(rank);
  if (axis < -r || axis >= r)
    return fail("axis ", axis, " is not one of a tensor of rank ", r,
                r ? message("; it must lie in [", -r, ", ", r - 1, "]") : std::string());
  return axis < 0 ? axis + r : axis;
}

// Whether |part| is the smaller of |whole| and a number above 1, as in a table that is cut to a
// length: the two broadcast only if they are equal.
static bool is_cut_of(const SymbolTable& symbols, const Dim& part, const Dim& whole) {
  const DimExpression cut = symbols.expression(part);
  if (cut.op != DimOp::kMin || !whole.symbolic()) return false;
  const Dim& length = cut.a == whole ? cut.b : cut.a;
  return (cut.a == whole || cut.b == whole) && length.known() && length.value() > 1;
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
      // Only a run can tell which of the two is 1; equal pairs still give equal dimensions.
      l = symbols().broadcast(l, s);
    }
  }
  return out;
}

}  // namespace pfrt
