// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/epilogue/broadcast_loop.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <numeric>

#include "core/base/dtype.h"
#include "providers/cpu/epilogue/in_float32.h"
#include "providers/cpu/epilogue/row_norm.h"
#include "providers/cpu/loop/by_channel.h"

namespace pfrt::cpu {

namespace {

constexpr int64_t kBlockElements = 256;
constexpr size_t kCopyBytes = kBlockElements * sizeof(int64_t) + 4 * BroadcastIndex::kSlack;
// Elements of operands by channel, which are repeated: a multiple of a block's channels.
constexpr int64_t kRepeated = 512;
constexpr size_t kRepeatedBytes = (kRepeated + kChannelBlock) * sizeof(float);

// Repeats |bytes| bytes until there are |wanted|.
void repeat(const void* from, size_t bytes, size_t wanted, char* to) {
  std::memcpy(to, from, bytes);
  for (size_t done = bytes; done < wanted;) {
    const size_t more = std::min(done, wanted - done);
    std::memcpy(to + done, to, more);
    done += more;
  }
}

// |whole| becomes |part| where that is |beyond| it; others may do the same meanwhile.
template <typename Beyond>
void replace_where(float& whole, float part, Beyond beyond) {
  const std::atomic_ref<float> shared(whole);
  float known = shared.load(std::memory_order_relaxed);
  while (beyond(part, known) &&
         !shared.compare_exchange_weak(known, part, std::memory_order_relaxed)) {
  }
}

}  // namespace

std::optional<BroadcastLoop> BroadcastLoop::make(const LoopPlan& plan, LoopCode code,
                                                 std::span<const BroadcastIndex> operands,
                                                 int64_t elements, const Image* image) {
  BroadcastLoop loop;
  loop.code_ = std::move(code);
  loop.inputs_ = static_cast<uint32_t>(plan.inputs.size());
  loop.outputs_ = static_cast<uint32_t>(plan.outputs.size());
  loop.elements_ = elements;
  for (pfrt_dtype type : plan.types) loop.sizes_.push_back(static_cast<int64_t>(dtype_size(type)));
  for (uint32_t slot = 0; slot < loop.inputs_; ++slot) {
    const BroadcastIndex& index = operands[slot];
    const int64_t run = std::min(index.run(), elements);
    if (image != nullptr && image->blocks[slot] > 0) {
      loop.by_channel_.push_back({slot, image->blocks[slot]});
    } else if (plan.scalar[slot]) {
      const bool serves = index.stays() && (run >= kShortestScalarRun || run == elements);
      if (!serves && elements > 1) return {};
      loop.in_runs_.push_back({slot, index});
    } else if (index.whole() || elements == 0) {
      loop.whole_.push_back(slot);
    } else {
      const bool in_place = !index.stays() && (run >= kShortestRun || run == elements);
      (in_place ? loop.in_runs_ : loop.copied_).push_back({slot, index});
    }
  }
  for (uint32_t o = 0; o < loop.outputs_; ++o) loop.whole_.push_back(loop.inputs_ + o);
  if (loop.copied_.size() > kMostCopied || loop.by_channel_.size() > kMostCopied) return {};
  if (!loop.by_channel_.empty()) {
    if (!loop.copied_.empty() || loop.code_.by_channel == nullptr) return {};
    loop.code_.loop = loop.code_.by_channel;
    loop.block_ = image->block;
  }
  double operations = 0;
  for (const Operation& op : plan.expression.operations()) operations += operand_count(op.prim) > 0;
  loop.flops_ = operations * static_cast<double>(elements);
  loop.make_table(operations);
  return loop;
}

void BroadcastLoop::make_table(double operations) {
  constexpr double kLeastOperations = 4;
  constexpr int64_t kLeastElements = 1024;
  const bool bytes = inputs_ == 1 && outputs_ == 1 && sizes_[0] == 1 && sizes_[1] == 1;
  const bool whole = in_runs_.empty() && copied_.empty() && by_channel_.empty();
  if (!bytes || !whole || operations < kLeastOperations || elements_ < kLeastElements) return;
  ByteTable::Results x, y;
  std::iota(x.begin(), x.end(), uint8_t{0});
  const std::array<const void*, 2> bases{x.data(), y.data()};
  code_.loop->run(bases.data(), code_.constants->data(), 0, x.size());
  table_ = std::make_shared<const ByteTable>(y, isa());
}

void BroadcastLoop::run(const void* const* bases, int64_t begin, int64_t end) const {
  if (table_ != nullptr) {
    auto* const y = static_cast<uint8_t*>(const_cast<void*>(bases[1]));
    return table_->run(static_cast<const uint8_t*>(bases[0]) + begin, end - begin, y + begin);
  }
  if (!by_channel_.empty()) return run_by_channel(bases, begin, end);
  if (!copied_.empty()) return run_copied(bases, begin, end);
  if (!in_runs_.empty()) return run_pieces(bases, begin, end, copied_, {});
  code_.loop->run(bases, code_.constants->data(), begin, end);
}

void BroadcastLoop::run_by_channel(const void* const* bases, int64_t begin, int64_t end) const {
  alignas(64) char copies[kMostCopied][kRepeatedBytes];
  std::array<const void*, kMostCopied> starts;
  for (int64_t from = begin; from < end;) {
    const int64_t number = from / block_, phase = from % kChannelBlock;
    const int64_t to = std::min(end, (number + 1) * block_);
    const int64_t most = std::min(to - from, kRepeated) + phase;
    for (size_t i = 0; i < by_channel_.size(); ++i) {
      const auto& [slot, blocks] = by_channel_[i];
      const auto size = static_cast<size_t>(sizes_[slot]);
      repeat(element(bases[slot], slot, number % blocks * kChannelBlock),
             size * static_cast<size_t>(kChannelBlock), size * static_cast<size_t>(most),
             copies[i]);
      starts[i] = copies[i] + static_cast<size_t>(phase) * size;
    }
    for (; from < to; from += std::min(to - from, kRepeated))
      run_pieces(bases, from, std::min(to, from + kRepeated), by_channel_, starts);
  }
}

void BroadcastLoop::run_copied(const void* const* bases, int64_t begin, int64_t end) const {
  alignas(64) char copies[kMostCopied][kCopyBytes];
  std::array<const void*, kMostCopied> starts;
  for (size_t i = 0; i < copied_.size(); ++i) starts[i] = copies[i];
  for (int64_t from = begin; from < end; from += kBlockElements) {
    const int64_t to = std::min(end, from + kBlockElements);
    for (size_t i = 0; i < copied_.size(); ++i) {
      const auto& [slot, index] = copied_[i];
      index.gather(bases[slot], sizes_[slot], from, to - from, copies[i]);
    }
    run_pieces(bases, from, to, copied_, starts);
  }
}

template <typename Copied>
void BroadcastLoop::run_pieces(const void* const* bases, int64_t begin, int64_t end,
                               const Copied& copied, std::span<const void* const> copies) const {
  std::array<const void*, LoopPlan::kMostPointers> at;
  for (int64_t from = begin; from < end;) {
    int64_t to = end;
    for (uint32_t slot : whole_) at[slot] = element(bases[slot], slot, from);
    for (const auto& [slot, index] : in_runs_) {
      const BroadcastIndex::Place place = index.at(from);
      at[slot] = element(bases[slot], slot, place.index);
      to = std::min(to, from + place.left);
    }
    for (size_t i = 0; i < copies.size() && i < copied.size(); ++i)
      at[copied[i].slot] = element(copies[i], copied[i].slot, from - begin);
    code_.loop->run(at.data(), code_.constants->data(), 0, to - from);
    from = to;
  }
}

void Epilogue::run(void* const* buffers, int64_t begin, int64_t end) const {
  std::array<const void*, LoopPlan::kMostPointers> bases;
  for (size_t i = 0; i < buffers_.size(); ++i) bases[i] = buffers[buffers_[i]];
  loop_.run(bases.data(), begin, end);
  if (range_of_ == nullptr) return;
  auto& whole = *static_cast<FloatRange*>(buffers[range_]);
  const FloatRange part =
      range_of_(static_cast<const float*>(buffers[buffers_.back()]) + begin, end - begin);
  replace_where(whole.low, part.low, std::less<>());
  replace_where(whole.high, part.high, std::greater<>());
}

void Epilogue::start(void* const* buffers) const {
  if (range_of_ != nullptr) *static_cast<FloatRange*>(buffers[range_]) = {};
}

void Run::run_epilogue(int64_t begin, int64_t end) const {
  if (widened_ != nullptr && widened_->take != nullptr) return (*widened_->take)(begin, end);
  if (widened_ != nullptr && widened_->narrow != nullptr)
    widened_->narrow(static_cast<const float*>(widened_->output) + begin,
                     static_cast<uint16_t*>(context_->buffers[outputs_[0]]) + begin, end - begin);
  if (extras_.epilogue != nullptr) extras_.epilogue->run(context_->buffers, begin, end);
  if (extras_.norm != nullptr) extras_.norm->apply(context_->buffers, begin, end);
}

}  // namespace pfrt::cpu
