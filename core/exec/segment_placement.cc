// SPDX-License-Identifier: Apache-2.0
//
// Places a segment's buffers in memory, decides which share it, and so which steps may run at once.
#include <algorithm>
#include <numeric>

#include "core/exec/segment_plan.h"
#include "core/plan/blocks.h"

namespace pfrt {

// Places the sub-buffers of the last program, after its other buffers.
Status SegmentPlan::place_sub_buffers(const StageExecutable& stage, const InferState& state) {
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

std::vector<bool> SegmentPlan::have_sub_buffers(const std::vector<size_t>& root) const {
  std::vector<bool> out(entries_.size());
  for (const Program& p : programs_)
    for (uint32_t i = 0; i < p.program.buffer_count; ++i)
      if (buffer_at(p.program, i).kind == PFRT_BUFFER_PART) out[root[p.first_entry + i]] = true;
  return out;
}

// The memory that steps use, by which they wait for each other. Memory with sub-buffers is claimed
// piece by piece, between the places where one begins or ends.
std::vector<StepUse> SegmentPlan::claims(const std::vector<size_t>& root) const {
  struct Pieces {
    std::vector<uint64_t> bounds;
    uint32_t first_id = 0;
  };
  const std::vector<bool> parted = have_sub_buffers(root);
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

// First and last time at which each root entry is in use, on the clock of |time| (by step), and the
// step that uses it then, or kSeveral.
struct SegmentPlan::Liveness {
  static constexpr uint32_t kNever = UINT32_MAX, kSeveral = kNever - 1;
  std::vector<uint32_t> first, last, first_step, last_step;
};

SegmentPlan::Liveness SegmentPlan::liveness(const std::vector<size_t>& root,
                                            const std::vector<uint32_t>& time) {
  constexpr uint32_t kNever = Liveness::kNever;
  const size_t count = entries_.size();
  Liveness live{std::vector<uint32_t>(count, kNever), std::vector<uint32_t>(count, 0),
                std::vector<uint32_t>(count, kNever), std::vector<uint32_t>(count, kNever)};
  const auto each_use = [&](auto&& fn) {
    for (uint32_t s = 0; s < steps_.size(); ++s) {
      const pfrt_step& step = *steps_[s].step;
      const size_t base = programs_[steps_[s].program].first_entry;
      for (uint32_t i = 0; i < step.read_count; ++i) fn(s, root[base + step.reads[i]]);
      for (uint32_t i = 0; i < step.write_count; ++i) fn(s, root[base + step.writes[i]]);
    }
  };
  const auto use = [&](size_t s, size_t r) {
    live.first[r] = std::min(live.first[r], time[s]);
    live.last[r] = std::max(live.last[r], time[s]);
  };
  each_use(use);
  for (Program& program : programs_) {
    const size_t next = &program == &programs_.back() ? steps_.size() : (&program + 1)->first_step;
    if (next == program.first_step) program.transfers.clear();  // it reads nothing
    for (const DeviceTransfer& transfer : program.transfers)
      for (size_t i : {transfer.from, transfer.to})
        if (i != kNone) use(program.first_step, root[i]);
  }
  each_use([&](uint32_t s, size_t r) {
    const auto note = [s](uint32_t& step) {
      step = step == kNever || step == s ? s : Liveness::kSeveral;
    };
    if (time[s] == live.first[r]) note(live.first_step[r]);
    if (time[s] == live.last[r]) note(live.last_step[r]);
  });
  return live;
}

// Lets outputs take the memory of an input: the source dies in the step that first writes the
// output, and no other step reads it then. Memory with sub-buffers is excluded, because it is used
// beyond the buffers that a step names.
void SegmentPlan::share_in_place(std::vector<size_t>& root, Liveness& live) const {
  const std::vector<bool> parted = have_sub_buffers(root);
  for (const Program& program : programs_) {
    for (uint32_t i = 0; i < program.program.buffer_count; ++i) {
      const pfrt_buffer& b = buffer_at(program.program, i);
      if (b.may_alias == 0 || b.may_alias > program.program.buffer_count) continue;
      const size_t to = root[program.first_entry + i],
                   from = root[program.first_entry + b.may_alias - 1];
      const Entry &target = entries_[to], &source = entries_[from];
      if (to == from || target.place != Place::kBlock || source.place != Place::kBlock) continue;
      if (target.space != source.space || parted[to] || parted[from]) continue;
      if (target.bytes > source.bytes || target.alignment > source.alignment ||
          live.first[to] == Liveness::kNever || live.last[from] != live.first[to])
        continue;
      if (live.first[from] == live.first[to] || live.last_step[from] != live.first_step[to])
        continue;
      for (size_t& r : root)
        if (r == to) r = from;
      live.last[from] = live.last[to];
      live.last_step[from] = live.last_step[to];
    }
  }
}

// Whether the step that first writes entry |output| is the last to read |slot|, by entry |input|.
bool SegmentPlan::dies_before_written(uint32_t slot, size_t input, size_t output,
                                      const std::vector<uint32_t>& time) const {
  uint32_t writer = kNoId;
  for (uint32_t s = 0; s < steps_.size() && writer == kNoId; ++s) {
    const size_t base = programs_[steps_[s].program].first_entry;
    for (uint32_t i = 0; i < steps_[s].step->write_count; ++i)
      if (base + steps_[s].step->writes[i] == output) writer = s;
  }
  if (writer == kNoId) return false;
  for (const Program& program : programs_)
    for (const DeviceTransfer& transfer : program.transfers)
      if (transfer.from == kNone && transfer.slot == slot) return false;
  for (uint32_t s = 0; s < steps_.size(); ++s) {
    const size_t base = programs_[steps_[s].program].first_entry;
    for (uint32_t i = 0; i < steps_[s].step->read_count; ++i) {
      const size_t read = base + steps_[s].step->reads[i];
      if (entries_[read].place != Place::kLiveIn || entries_[read].slot != slot) continue;
      if (s == writer ? read != input : time[s] >= time[writer]) return false;
    }
  }
  return true;
}

void SegmentPlan::find_replacements(const Segment& segment, const std::vector<uint32_t>& slot_of,
                                    const std::vector<uint32_t>& time) {
  std::vector<size_t> root(entries_.size());
  for (size_t i = 0; i < root.size(); ++i)
    root[i] = entries_[i].source == kNone ? i : entries_[i].source;
  const std::vector<bool> parted = have_sub_buffers(root);
  const auto last_here = [&](uint32_t slot) {
    for (size_t i = 0; i < segment.live_in.size(); ++i)
      if (slot_of[segment.live_in[i]] == slot) return bool{segment.last_here[i]};
    return false;
  };
  for (const Program& program : programs_)
    for (uint32_t i = 0; i < program.program.buffer_count; ++i) {
      const uint32_t from = buffer_at(program.program, i).may_alias;
      if (from == 0 || from > program.program.buffer_count) continue;
      const size_t output = program.first_entry + i, input = program.first_entry + from - 1;
      const Entry &to = entries_[output], &of = entries_[input];
      if (to.place != Place::kOutput || of.place != Place::kLiveIn || to.space != of.space ||
          parted[output] || parted[input] || !last_here(of.slot) ||
          !dies_before_written(of.slot, input, output, time))
        continue;
      for (OutputValue& o : outputs_)
        if (o.value == to.value) o.replaces = of.slot;
    }
}

Status SegmentPlan::place_buffers(const Segment& segment, const std::vector<uint32_t>& slot_of,
                                  bool concurrent, bool reuse) {
  // The root entry of each block buffer: readers and sub-buffers have their source's root, and
  // outputs in place the root of the input they replace.
  std::vector<size_t> root(entries_.size());
  for (size_t i = 0; i < root.size(); ++i)
    root[i] = entries_[i].source == kNone ? i : entries_[i].source;
  // Time passes from step to step, or from level to level.
  std::vector<uint32_t> time(steps_.size());
  std::iota(time.begin(), time.end(), 0u);
  if (concurrent) time = levels(claims(root));
  for (uint32_t s = 0; s < steps_.size(); ++s) {
    if (levels_.size() <= time[s]) levels_.resize(time[s] + 1);
    levels_[time[s]].push_back(s);
  }
  Liveness live = liveness(root, time);
  find_replacements(segment, slot_of, time);
  if (reuse) {
    share_in_place(root, live);
  } else {  // all are alive all the time
    for (uint32_t& first : live.first)
      if (first != Liveness::kNever) first = 0;
    std::ranges::fill(live.last, static_cast<uint32_t>(steps_.size()));
  }
  const auto& planner = MemoryScope::current().planner;
  for (uint32_t space = 0; space < spaces_.size(); ++space) {
    std::vector<BlockItem> items;
    std::vector<size_t> owner;
    for (size_t i = 0; i < entries_.size(); ++i) {
      const Entry& e = entries_[i];
      if (e.place != Place::kBlock || e.space != space || root[i] != i ||
          live.first[i] == Liveness::kNever)
        continue;
      items.push_back({e.bytes, e.alignment, live.first[i], live.last[i], 0});
      spaces_[space].alignment = std::max(spaces_[space].alignment, e.alignment);
      owner.push_back(i);
    }
    uint64_t& bytes = spaces_[space].bytes;
    if (planner) {
      PFRT_ASSIGN(bytes, ask_planner(*planner, spaces_[space].name, root, owner, items));
    } else {
      bytes = place(items);
    }
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
