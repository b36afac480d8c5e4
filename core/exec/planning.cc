// SPDX-License-Identifier: Apache-2.0
//
// Finds the plan for the dimensions that a segment is about to read: one made for just these, one
// of a range that holds them, or a new one.
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <memory_resource>

#include "core/base/os/pages.h"
#include "core/exec/compiled_graph.h"
#include "core/exec/plan_table.h"
#include "core/op/engine/infer.h"

namespace pfrt {
namespace {

constexpr uint64_t kPlansATrim = 8;  // making one takes about as long as a trim
constexpr int64_t kMaxContents = 1024;

// A range ends here or at four times the present number, whichever is more, if its buffers allow.
constexpr int64_t kFarEnd = 4096;
// Memory that a range may take beyond twice that of the plan before it.
constexpr uint64_t kMoreBytes = uint64_t{1} << 20;

// Words of the signature for the value's contents.
size_t contents_words(const Tensor& t) {
  if (t.count() > kMaxContents || t.dtype == PFRT_DTYPE_STRING) return 0;
  return (static_cast<size_t>(t.bytes()) + 7) / 8;
}

// Appends the bytes of a small tensor, so that plans made for other contents are not taken.
void append_contents(const Tensor& t, std::pmr::vector<int64_t>& key) {
  const size_t at = key.size(), words = contents_words(t);
  key.resize(at + words, 0);
  if (words) std::memcpy(key.data() + at, t.data(), static_cast<size_t>(t.bytes()));
}

}  // namespace

// The values and the signature that a segment is about to read.
struct CompiledGraph::Reading {
  const std::vector<ValuePtr>& slots;
  std::span<const int64_t> key;          // the signature
  const std::vector<Device*>& resident;  // by slot; empty unless a value lives on a device
  const RunControl& control;
};

Result<std::shared_ptr<SegmentPlan>> CompiledGraph::make_plan(const Segment& segment,
                                                              InferState state,
                                                              const std::vector<Device*>& resident,
                                                              const RunDimensions* least,
                                                              const RunControl* control) const {
  if (!least) PFRT_TRY(infer(*graph_, segment.order, state));
  return SegmentPlan::build(*graph_, *snapshot_, segment, slot_of_, std::move(state), resident,
                            rules_, least, control);
}

void CompiledGraph::enter(const Segment& segment, const std::vector<ValuePtr>& slots,
                          InferState& state) const {
  for (size_t i = 0; i < segment.live_in.size(); ++i) {
    const ValueId v = segment.live_in[i];
    const Tensor& t = slots[slot_of_[v]]->tensor;
    state.types[v] = Type::tensor(t.dtype, Shape(t.dims.begin(), t.dims.end()));
    state.data[v].reset();
    // Texts are not in the signature, so that no plan may follow from them.
    if (!segment.contents_key[i] || t.count() > kMaxContents || t.dtype == PFRT_DTYPE_STRING)
      continue;
    state.contents[v] = t;
    const std::vector<int64_t> contents = to_int64s(t);
    if (static_cast<int64_t>(contents.size()) == t.count())
      state.data[v] = Shape(contents.begin(), contents.end());
  }
}

Result<CompiledGraph::RunPlan> CompiledGraph::plan_for(Segment& segment,
                                                       const std::vector<ValuePtr>& slots,
                                                       const RunControl& control) {
  std::array<std::byte, 1024> near;
  std::pmr::monotonic_buffer_resource memory(near.data(), near.size());
  std::pmr::vector<int64_t> key(&memory);
  key.reserve(std::min(near.size() / sizeof(int64_t), segment.live_in.size() * 6));
  std::vector<Device*> resident;
  for (size_t i = 0; i < segment.live_in.size(); ++i) {
    const Tensor& t = slots[slot_of_[segment.live_in[i]]]->tensor;
    key.push_back(static_cast<int64_t>(t.dims.size()));
    key.insert(key.end(), t.dims.begin(), t.dims.end());
    if (t.device()) {
      resident.resize(slot_count_);
      resident[slot_of_[segment.live_in[i]]] = t.device();
    }
    key.push_back(static_cast<int64_t>(reinterpret_cast<intptr_t>(t.device())));
    if (segment.contents_key[i]) append_contents(t, key);
  }
  RunPlan out{segment.plans->find(key), nullptr};
  if (!out.plan) return plan_of_others(segment, {slots, key, resident, control});
  return out;
}

Result<CompiledGraph::RunPlan> CompiledGraph::plan_of_others(Segment& segment,
                                                             const Reading& reading) const {
  PFRT_ASSIGN(RunPlan out, plan_in_range(segment, reading));
  if (out.plan) return out;
  const auto timed = [&](auto&& make) {
    const ProfileSpan span(reading.control.profile, Profile::Kind::kPlan, 0,
                           reading.control.number);
    const uint64_t start = os::monotonic_ns();
    auto made = make();
    if (statistics_) statistics_->planning_ns += os::monotonic_ns() - start;
    return made;
  };
  PFRT_TRY(timed([&] { return add_range(segment, reading); }));
  PFRT_ASSIGN(out, plan_in_range(segment, reading));
  if (out.plan) return out;
  const auto make = [&] {
    if (statistics_) ++statistics_->plans;
    return timed([&] {
      return make_plan(segment, entered(segment, reading), reading.resident, nullptr,
                       &reading.control);
    });
  };
  PFRT_ASSIGN(out.plan, segment.plans->get(
                            reading.key, [&] { return reading.control.stopped(); }, make));
  const uint64_t dropped = segment.plans->dropped();
  if (dropped && dropped % kPlansATrim == 0) os::return_freed_memory();
  return out;
}

InferState CompiledGraph::entered(const Segment& segment, const Reading& reading) const {
  InferState state = base_state_;
  enter(segment, reading.slots, state);
  return state;
}

Result<CompiledGraph::RunPlan> CompiledGraph::plan_in_range(Segment& segment,
                                                            const Reading& reading) const {
  const std::shared_ptr<PlanRange> range = segment.plans->find_range(reading.key);
  if (!range) return RunPlan{};
  uint64_t start = 0;  // of inference, where the run has new dimensions
  const auto enter_timed = [&](InferState& state) {
    start = os::monotonic_ns();
    enter(segment, reading.slots, state);
  };
  auto dimensions =
      range->dimensions(reading.key, enter_timed, [&] { return reading.control.stopped(); });
  if (start && statistics_) statistics_->planning_ns += os::monotonic_ns() - start;
  if (dimensions.ok()) return RunPlan{range->plan(), dimensions.take()};
  PFRT_TRY(reading.control.stopped());
  return RunPlan{};  // the range has no plan for these dimensions, or the model is at fault
}

// The meaning of each number of the signature.
std::vector<SignaturePart> CompiledGraph::parts_of(const Segment& segment,
                                                   const Reading& reading) const {
  std::vector<SignaturePart> out(reading.key.size(), SignaturePart::kOther);
  size_t at = 0;
  for (size_t i = 0; i < segment.live_in.size(); ++i) {
    const Tensor& t = reading.slots[slot_of_[segment.live_in[i]]]->tensor;
    ++at;  // the rank
    for (size_t d = 0; d < t.dims.size(); ++d, ++at)
      if (!segment.contents_key[i]) out[at] = SignaturePart::kDimension;
    out[at++] = SignaturePart::kDevice;
    if (segment.contents_key[i]) at += contents_words(t);
  }
  return out;
}

// Changes the types of live inputs in |state| by |change|, in the dimensions of |variation|.
void CompiledGraph::grow(const Segment& segment, const Variation& variation,
                         const std::function<Dim(const Dim&)>& change, InferState& state) const {
  size_t at = 0;
  for (size_t i = 0; i < segment.live_in.size(); ++i) {
    Shape& shape = state.types[segment.live_in[i]].shape;
    for (size_t d = 0; d < shape.size(); ++d)
      if (std::ranges::binary_search(variation.at, at + 1 + d)) shape[d] = change(shape[d]);
    at += shape.size() + 2;
    if (!segment.contents_key[i]) continue;
    const auto known = state.contents.find(segment.live_in[i]);
    if (known != state.contents.end()) at += contents_words(known->second);
  }
}

Status CompiledGraph::add_range(Segment& segment, const Reading& reading) const {
  const auto growth = segment.plans->growth(reading.key, parts_of(segment, reading));
  if (!growth) return {};
  PFRT_ASSIGN(std::shared_ptr<PlanRange> range, make_range(segment, reading, growth->variation));
  if (range && statistics_) ++statistics_->plans;
  segment.plans->add(*growth, std::move(range));
  return {};
}

Result<std::shared_ptr<PlanRange>> CompiledGraph::make_range(const Segment& segment,
                                                             const Reading& reading,
                                                             const Variation& variation) const {
  const std::shared_ptr<PlanRange> none;
  const int64_t entered_at = variation.from;
  if (entered_at > kLargestDim / 4) return none;
  const auto state_at = [&](int64_t number, InferState& state) {
    state = entered(segment, reading);
    const auto by = [&](const Dim& d) { return Dim(d.value() + number - entered_at); };
    grow(segment, variation, by, state);
    return infer(*graph_, segment.order, state).ok();
  };
  PlanRange::Bounds bounds;
  if (!state_at(entered_at, bounds.now)) return none;
  // None of the dimensions falls below 1.
  int64_t least = entered_at;
  for (const uint32_t at : variation.at) least = std::min(least, reading.key[at]);
  least = std::max<int64_t>(1, entered_at - least + 1);
  if (!state_at(least, bounds.least)) {
    bounds.least = bounds.now;
    least = entered_at;
  }
  // The end is the far end or, if the model changes before it, the last number without a change
  // after |base|, whose state is |bounds.now|.
  Variation base = variation;
  PlanTable::Signature key(reading.key.begin(), reading.key.end());
  const auto outline = [&](int64_t most) {
    return state_at(most, bounds.most)
               ? PlanRange::make(*graph_, segment.order, key, base, least, most, bounds)
               : nullptr;
  };
  int64_t good = 0;
  std::shared_ptr<PlanRange> range;
  const auto widen = [&]() -> Status {
    good = base.from;
    int64_t bad = std::max(kFarEnd, 4 * base.from);
    range = outline(bad);
    if (range) good = bad;
    while (bad - good > 1) {
      PFRT_TRY(reading.control.stopped());
      const int64_t middle = good + (bad - good) / 2;
      auto nearer = outline(middle);
      (nearer ? good : bad) = middle;
      if (nearer) range = std::move(nearer);
    }
    return {};
  };
  PFRT_TRY(widen());
  if (!range && least < entered_at) {  // this run's number may be the range's end
    --base.from;
    for (const uint32_t at : base.at) --key[at];
    if (!state_at(base.from, bounds.now)) return none;
    PFRT_TRY(widen());
  }
  const auto before = segment.plans->recent_exact();
  const uint64_t most_bytes = kMoreBytes + 2 * (before ? before->block_bytes() : 0);
  for (; range; range = outline(good)) {
    InferState state = range->most();
    auto plan =
        make_plan(segment, std::move(state), reading.resident, &range->least(), &reading.control);
    PFRT_TRY(reading.control.stopped());
    if (!plan.ok()) return none;
    if ((*plan)->block_bytes() <= most_bytes) {
      PlanRange::Symbolic symbolic{graph_->symbols->quoted("the number of a range"),
                                   entered(segment, reading)};
      const auto in_symbols = [&](const Dim& d) {
        return graph_->symbols->add(symbolic.number, d.value() - entered_at);
      };
      grow(segment, variation, in_symbols, symbolic.state);
      if (infer(*graph_, segment.order, symbolic.state).ok()) range->set_formulas(symbolic, bounds);
      range->set_plan(plan.take());
      return range;
    }
    good = base.from + (good - base.from) / 4;
    if (good == base.from) return none;
  }
  return none;
}

}  // namespace pfrt
