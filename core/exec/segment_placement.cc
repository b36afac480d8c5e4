// SPDX-License-Identifier: Apache-2.0
//
// Where a segment's buffers lie in memory, which of them share it, and which steps may therefore
// run at once.
#include <algorithm>
#include <numeric>

#include "core/exec/segment_plan.h"
#include "core/plan/blocks.h"

namespace pfrt {

// The last program's parts, once its other buffers have their places.
Status SegmentPlan::place_parts(const StageExecutable& stage, const InferState& state) {
  const Program& p = programs_.back();
  const std::string& who = stage.executable->provider().name();
  for (uint32_t i = 0; i < p.program.buffer_count; ++i) {
    const pfrt_buffer& part = buffer_at(p.program, i);
    if (part.kind != PFRT_BUFFER_PART) continue;
    if (part.index >= p.program.buffer_count ||
        buffer_at(p.program, part.index).kind == PFRT_BUFFER_PART)
      return error(Code::kPROVIDER, who, " returned a program whose buffer ", i,
                   " is part of buffer ", part.index, ", which is ",
                   part.index < p.program.buffer_count ? "itself a part" : "not there");
    const Entry& whole = entries_[p.first_entry + part.index];
    const pfrt_buffer& of = buffer_at(p.program, part.index);
    uint64_t bytes = whole.bytes;
    if (of.kind == PFRT_BUFFER_IN) {
      const Type& type = state.types[stage.stage->inputs[of.index]];
      const Dims dims = type.fixed() ? dims_of(type) : Dims();
      bytes = type.fixed() ? tensor_bytes(type.dtype, element_count(dims.data(), dims.size()))
                           : PFRT_BYTES_UNKNOWN;
    }
    if (whole.place == Place::kAllocated || bytes == PFRT_BYTES_UNKNOWN || part.offset > bytes ||
        part.bytes > bytes - part.offset)
      return error(Code::kPROVIDER, who, " returned a program whose buffer ", i, " is ", part.bytes,
                   " bytes from byte ", part.offset, " on of buffer ", part.index, ", which has ",
                   bytes == PFRT_BYTES_UNKNOWN ? "as many as the run finds" : message(bytes));
    Entry& e = entries_[p.first_entry + i];
    e = whole;
    e.source = whole.source == kNone ? p.first_entry + part.index : whole.source;
    e.bytes = part.bytes;
    e.within = part.offset;
    e.value = kNoId;
    if (e.place == Place::kConstant)
      e.constant = static_cast<const char*>(e.constant) + part.offset;
  }
  return {};
}

std::vector<bool> SegmentPlan::have_parts(const std::vector<size_t>& root) const {
  std::vector<bool> out(entries_.size());
  for (const Program& p : programs_)
    for (uint32_t i = 0; i < p.program.buffer_count; ++i)
      if (buffer_at(p.program, i).kind == PFRT_BUFFER_PART) out[root[p.first_entry + i]] = true;
  return out;
}

// What steps have to wait for: memory that has parts is claimed piece by piece, between the places
// where a part begins or ends.
std::vector<StepUse> SegmentPlan::claims(const std::vector<size_t>& root) const {
  struct Pieces {
    std::vector<uint64_t> bounds;
    uint32_t first_id = 0;
  };
  const std::vector<bool> parted = have_parts(root);
  const auto end_of = [](const Entry& e) { return e.within + e.bytes; };
  std::vector<Pieces> pieces(entries_.size());  // by root
  for (size_t i = 0; i < entries_.size(); ++i) {
    std::vector<uint64_t>& bounds = pieces[root[i]].bounds;
    if (parted[root[i]]) bounds.insert(bounds.end(), {entries_[i].within, end_of(entries_[i])});
  }
  auto next = static_cast<uint32_t>(entries_.size());
  for (Pieces& p : pieces) {
    std::ranges::sort(p.bounds);
    const auto again = std::ranges::unique(p.bounds);
    p.bounds.erase(again.begin(), again.end());
    p.first_id = next;
    next += static_cast<uint32_t>(p.bounds.size());
  }
  std::vector<StepUse> out;
  for (const StepRef& ref : steps_) {
    const auto claim = [&](const uint32_t* list, uint32_t count, std::vector<uint32_t>& ids) {
      for (uint32_t i = 0; i < count; ++i) {
        const size_t at = programs_[ref.program].first_entry + list[i];
        const Entry& e = entries_[at];
        if (!parted[root[at]]) {
          ids.push_back(static_cast<uint32_t>(root[at]));
          continue;
        }
        const Pieces& p = pieces[root[at]];
        const auto begin = std::ranges::lower_bound(p.bounds, e.within),
                   end = std::ranges::lower_bound(p.bounds, end_of(e));
        for (auto b = begin; b != end; ++b)
          ids.push_back(p.first_id + static_cast<uint32_t>(b - p.bounds.begin()));
      }
    };
    StepUse& use = out.emplace_back();
    claim(ref.step->reads, ref.step->read_count, use.reads);
    claim(ref.step->writes, ref.step->write_count, use.writes);
  }
  return out;
}

Status SegmentPlan::place_buffers(bool concurrent) {
  // Root entry of every block buffer: readers and parts share their source's, aliases what they are
  // in place of.
  std::vector<size_t> root(entries_.size());
  for (size_t i = 0; i < root.size(); ++i)
    root[i] = entries_[i].source == kNone ? i : entries_[i].source;

  std::vector<StepUse> uses;
  for (const StepRef& ref : steps_) {
    const size_t base = programs_[ref.program].first_entry;
    StepUse use;
    for (uint32_t i = 0; i < ref.step->read_count; ++i)
      use.reads.push_back(static_cast<uint32_t>(root[base + ref.step->reads[i]]));
    for (uint32_t i = 0; i < ref.step->write_count; ++i)
      use.writes.push_back(static_cast<uint32_t>(root[base + ref.step->writes[i]]));
    uses.push_back(std::move(use));
  }
  // Time passes from step to step, or from level to level.
  std::vector<uint32_t> time(steps_.size());
  std::iota(time.begin(), time.end(), 0u);
  if (concurrent) time = levels(claims(root));
  for (uint32_t s = 0; s < steps_.size(); ++s) {
    if (moments_.size() <= time[s]) moments_.resize(time[s] + 1);
    moments_[time[s]].push_back(s);
  }
  constexpr uint32_t kNever = UINT32_MAX, kSeveral = kNever - 1;
  std::vector<uint32_t> first(entries_.size(), kNever), last(entries_.size(), 0);
  const auto each_use = [&](auto&& fn) {
    for (uint32_t s = 0; s < steps_.size(); ++s)
      for (const auto* list : {&uses[s].reads, &uses[s].writes})
        for (const uint32_t r : *list) fn(s, r);
  };
  each_use([&](uint32_t s, uint32_t r) {
    first[r] = std::min(first[r], time[s]);
    last[r] = std::max(last[r], time[s]);
  });
  const auto at_step = [&](size_t i, size_t s) {
    first[root[i]] = std::min(first[root[i]], time[s]);
    last[root[i]] = std::max(last[root[i]], time[s]);
  };
  for (Program& program : programs_) {
    const size_t next = &program == &programs_.back() ? steps_.size() : (&program + 1)->first_step;
    if (next == program.first_step) program.borders.clear();  // it reads nothing
    for (const Border& border : program.borders)
      for (size_t i : {border.from, border.to})
        if (i != kNone) at_step(i, program.first_step);
  }
  // The one step that uses it at the first, at the last time.
  std::vector<uint32_t> first_step(entries_.size(), kNever), last_step(entries_.size(), kNever);
  each_use([&](uint32_t s, uint32_t r) {
    const auto note = [s](uint32_t& step) { step = step == kNever || step == s ? s : kSeveral; };
    if (time[s] == first[r]) note(first_step[r]);
    if (time[s] == last[r]) note(last_step[r]);
  });
  // In-place: the source dies in the step that first writes the alias, and nobody else reads it
  // there. What has parts is in use beyond what a step names.
  const std::vector<bool> parted = have_parts(root);
  for (const Program& program : programs_) {
    for (uint32_t i = 0; i < program.program.buffer_count; ++i) {
      const pfrt_buffer& b = buffer_at(program.program, i);
      if (b.may_alias == 0 || b.may_alias > program.program.buffer_count) continue;
      const size_t to = root[program.first_entry + i],
                   from = root[program.first_entry + b.may_alias - 1];
      const Entry &target = entries_[to], &source = entries_[from];
      if (to == from || target.place != Place::kBlock || source.place != Place::kBlock) continue;
      if (target.space != source.space || parted[to] || parted[from]) continue;
      if (target.bytes > source.bytes || first[to] == kNever || last[from] != first[to]) continue;
      if (first[from] == first[to] || last_step[from] != first_step[to]) continue;
      for (size_t k = 0; k < root.size(); ++k)
        if (root[k] == to) root[k] = from;
      last[from] = last[to];
      last_step[from] = last_step[to];
    }
  }
  for (uint32_t space = 0; space < spaces_.size(); ++space) {
    std::vector<BlockItem> items;
    std::vector<size_t> owner;
    for (size_t i = 0; i < entries_.size(); ++i) {
      const Entry& e = entries_[i];
      if (e.place != Place::kBlock || e.space != space || root[i] != i || first[i] == kNever)
        continue;
      items.push_back({e.bytes, 64, first[i], last[i], 0});
      owner.push_back(i);
    }
    uint64_t& bytes = spaces_[space].bytes;
    bytes = place(items);
    if (bytes == UINT64_MAX)
      return error(Code::kOUT_OF_MEMORY,
                   "planning a run: its buffers do not fit the address space");
    bytes = (bytes + 63) / 64 * 64;
    for (size_t k = 0; k < items.size(); ++k) entries_[owner[k]].offset = items[k].offset;
  }
  block_bytes_ = spaces_[0].bytes;
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].place == Place::kBlock)
      entries_[i].offset = entries_[root[i]].offset + entries_[i].within;
  }
  return {};
}

}  // namespace pfrt
