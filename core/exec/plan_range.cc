// SPDX-License-Identifier: Apache-2.0
#include "core/exec/plan_range.h"

#include <algorithm>

#include "core/op/engine/infer.h"

namespace pfrt {
namespace {

// An unknown dimension has a new name in each inference.
bool same(const Shape& a, const Shape& b) {
  return std::ranges::equal(
      a, b, [](const Dim& x, const Dim& y) { return x.known() || y.known() ? x == y : true; });
}

bool same_but_dimensions(const Type& a, const Type& b) {
  return a.kind == b.kind && a.dtype == b.dtype && a.key_dtype == b.key_dtype &&
         a.has_shape == b.has_shape && a.shape.size() == b.shape.size();
}

bool same(const Type& a, const Type& b) {
  return same_but_dimensions(a, b) && same(a.shape, b.shape);
}

bool same(const std::optional<Shape>& a, const std::optional<Shape>& b) {
  return a.has_value() == b.has_value() && (!a || same(*a, *b));
}

// Whether each dimension of |small| is at most that of |large|.
bool fits(const Type& small, const Type& large) {
  if (!small.fixed() || !large.fixed() || !same_but_dimensions(small, large)) return false;
  return std::ranges::equal(small.shape, large.shape,
                            [](const Dim& x, const Dim& y) { return x.value() <= y.value(); });
}

// Points into |dimensions.dims|, which has the dimensions of |values| in their order.
void point(RunDimensions& dimensions, const std::vector<ValueId>& values, size_t value_count) {
  dimensions.by_value.assign(value_count, nullptr);
  for (size_t i = 0; i < values.size(); ++i)
    dimensions.by_value[values[i]] = dimensions.dims[i].data();
}

}  // namespace

std::optional<Variation> Variation::between(std::span<const int64_t> before,
                                            std::span<const int64_t> now,
                                            const std::vector<SignaturePart>& parts) {
  if (before.size() != now.size()) return {};
  Variation out;
  for (uint32_t i = 0; i < now.size(); ++i) {
    if (before[i] == now[i] || parts[i] == SignaturePart::kDevice) continue;
    const bool first = out.at.empty();
    const uint32_t at = first ? i : out.at[0];
    if (parts[i] != SignaturePart::kDimension || now[i] < before[i] ||
        now[i] - before[i] != now[at] - before[at])
      return {};
    if (first) out.from = now[i];
    out.at.push_back(i);
  }
  return out.at.empty() ? std::nullopt : std::optional(std::move(out));
}

std::shared_ptr<PlanRange> PlanRange::make(const Graph& graph, const std::vector<NodeId>& order,
                                           std::span<const int64_t> key, Variation variation,
                                           int64_t least, int64_t most, const Bounds& bounds) {
  auto range =
      std::shared_ptr<PlanRange>(new PlanRange(graph, key, std::move(variation), least, most));
  if (!range->see(order, bounds)) return nullptr;
  range->most_ = bounds.most;
  range->state_ = bounds.now;
  range->state_.contents.clear();  // the caller's memory
  return range;
}

bool PlanRange::see(const std::vector<NodeId>& order, const Bounds& bounds) {
  std::vector<ValueId> values;
  std::vector<bool> known(graph_.value_count());
  const auto differs = [&](ValueId v) {
    return v != kNoId && (!same(bounds.now.types[v], bounds.most.types[v]) ||
                          !same(bounds.now.data[v], bounds.most.data[v]));
  };
  const auto look = [&](ValueId v) {
    if (v == kNoId || known[v]) return true;
    known[v] = true;
    if (!see_value(v, bounds, least_)) return false;
    if (seen_.back().varies) values.push_back(v);
    return true;
  };
  for (const NodeId id : order) {
    const Node& node = *graph_.node(id);
    if (!std::ranges::any_of(node.inputs, differs) && !std::ranges::any_of(node.outputs, differs))
      continue;
    nodes_.push_back(id);
    for (const ValueId v : node.inputs)
      if (differs(v) && !look(v)) return false;
    for (const ValueId v : node.outputs)
      if (!look(v)) return false;
  }
  point(least_, values, graph_.value_count());
  return !values.empty();
}

bool PlanRange::see_value(ValueId value, const Bounds& bounds, RunDimensions& least) {
  const Type& now = bounds.now.types[value];
  const Type& most = bounds.most.types[value];
  Seen seen{value, !same(now, most), !same(bounds.now.data[value], bounds.most.data[value]), most,
            bounds.now.data[value]};
  if (seen.varies) {
    if (!fits(now, most) || !fits(bounds.least.types[value], most)) return false;
    // A dimension that begins to grow beyond |now| is the room of a cache. The range ends where it
    // does, so that the cache can be written in place.
    if (least_number_ < variation_.from && same(bounds.least.types[value], now)) return false;
    least.dims.push_back(dims_of(bounds.least.types[value]));
  }
  seen_.push_back(std::move(seen));
  return true;
}

bool PlanRange::holds(std::span<const int64_t> key) const {
  if (key.size() != key_.size()) return false;
  const uint32_t first = variation_.at[0];
  const int64_t number = key[first], grown = number - key_[first];
  if (number < least_number_ || number > most_number_) return false;
  auto next = variation_.at.begin();
  for (uint32_t i = 0; i < key.size(); ++i) {
    const bool varies = next != variation_.at.end() && *next == i;
    if (varies) ++next;
    if (key[i] - key_[i] != (varies ? grown : 0)) return false;
  }
  return true;
}

Result<std::shared_ptr<const RunDimensions>> PlanRange::dimensions(std::span<const int64_t> key,
                                                                   const Enter& enter,
                                                                   const Stop& stop) {
  const int64_t number = key[variation_.at[0]];
  if (auto known = numbers_.find(number)) return known;
  return numbers_.get(number, stop, [&]() -> Result<std::shared_ptr<const RunDimensions>> {
    if (auto known = by_formulas(number)) return known;
    return infer_at(enter);
  });
}

void PlanRange::set_formulas(const Symbolic& symbolic, const Bounds& bounds) {
  std::vector<Shape> shapes;
  for (const Seen& seen : seen_) {
    if (!seen.varies) continue;
    const Type& type = symbolic.state.types[seen.value];
    if (!same_but_dimensions(type, seen.most)) return;
    shapes.push_back(type.shape);
  }
  auto formulas = DimFormulas::of(*graph_.symbols, symbolic.number, shapes);
  if (!formulas) return;
  const auto agrees = [&](int64_t number, const InferState& inferred) {
    std::vector<int64_t> want;
    for (const Seen& seen : seen_)
      if (seen.varies)
        for (const Dim& d : inferred.types[seen.value].shape) want.push_back(d.value());
    const auto dims = formulas->at(number);
    return dims && *dims == want;
  };
  if (agrees(least_number_, bounds.least) && agrees(variation_.from, bounds.now) &&
      agrees(most_number_, most_))
    formulas_ = std::move(formulas);
}

std::shared_ptr<const RunDimensions> PlanRange::by_formulas(int64_t number) const {
  const auto dims = formulas_ ? formulas_->at(number) : std::nullopt;
  if (!dims) return nullptr;
  auto out = std::make_shared<RunDimensions>();
  std::vector<ValueId> values;
  auto next = dims->begin();
  for (const Seen& seen : seen_) {
    if (!seen.varies) continue;
    const auto end = next + static_cast<std::ptrdiff_t>(seen.most.shape.size());
    const bool fits =
        std::ranges::equal(std::ranges::subrange(next, end), seen.most.shape,
                           [](int64_t d, const Dim& most) { return d >= 0 && d <= most.value(); });
    if (!fits) return nullptr;
    out->dims.emplace_back(next, end);
    values.push_back(seen.value);
    next = end;
  }
  point(*out, values, graph_.value_count());
  return out;
}

// Values outside of |seen_| are as they were when the range was made, since everything they follow
// from is.
Result<std::shared_ptr<const RunDimensions>> PlanRange::infer_at(const Enter& enter) {
  const std::lock_guard lock(mutex_);
  enter(state_);
  Status status = infer(graph_, nodes_, state_);
  state_.contents.clear();
  PFRT_TRY(std::move(status));
  auto out = std::make_shared<RunDimensions>();
  std::vector<ValueId> values;
  for (const Seen& seen : seen_) {
    const Type& type = state_.types[seen.value];
    const bool fine = (seen.varies ? fits(type, seen.most) : same(type, seen.most)) &&
                      (seen.contents_vary || same(state_.data[seen.value], seen.contents));
    if (!fine)
      return error(Code::kUNSUPPORTED, "'", graph_.at(seen.value).name,
                   "' has other dimensions than were planned for");
    if (!seen.varies) continue;
    out->dims.push_back(dims_of(type));
    values.push_back(seen.value);
  }
  point(*out, values, graph_.value_count());
  return std::shared_ptr<const RunDimensions>(std::move(out));
}

}  // namespace pfrt
