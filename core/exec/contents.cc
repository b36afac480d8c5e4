// SPDX-License-Identifier: Apache-2.0
#include "core/exec/contents.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "core/base/digest.h"
#include "core/base/os/mapping_guard.h"

namespace pfrt {
namespace {

// Different bytes with one checksum are made on purpose. Comparing with all of them would take as
// long as their maker wants.
constexpr size_t kMostCompared = 4;

// Whether the file that |data| may be mapped from has been written to or cut short.
bool changed(const os::MappedPlace& place) { return place.file && place.file->check(); }

bool equal(const void* a, const void* b, uint64_t bytes) {
  if (a == b || bytes == 0) return true;
  const os::MappedPlace in_a = os::mapped_place(a), in_b = os::mapped_place(b);
  const bool one_file =
      in_a.file && in_b.file && in_a.offset == in_b.offset && in_a.file->same_file(*in_b.file);
  return (one_file || std::memcmp(a, b, static_cast<size_t>(bytes)) == 0) && !changed(in_a) &&
         !changed(in_b);
}

}  // namespace

std::string Contents::key_of(const Tensor& tensor) {
  std::string key(dtype_name(tensor.dtype));
  for (const int64_t d : tensor.dims) key += message(",", d);
  const uint64_t bytes = tensor.bytes();
  const bool there =
      tensor.buffer && (!tensor.buffer->deferred() || tensor.buffer->lies_at_origin());
  if (there && tensor.dtype != PFRT_DTYPE_STRING)
    return key + message("#", number_of_bytes(tensor.buffer, {tensor.at_any_address(), bytes}));
  return key +
         message("@", tensor.buffer ? number_of_buffer(tensor.buffer) : 0, "+", tensor.offset);
}

uint64_t Contents::number_of_buffer(const std::shared_ptr<Buffer>& buffer) {
  const std::lock_guard lock(mutex_);
  forget_expired();
  Known& known = buffers_[buffer->identity()];
  if (known.buffer.lock() != buffer) known = {buffer, ++numbers_, 0};
  return known.number;
}

uint64_t Contents::number_of_bytes(const std::shared_ptr<Buffer>& buffer, const Place& place) {
  const auto known = [&]() -> const Known* {
    const auto at = known_.find(place);
    return at != known_.end() && at->second.buffer.lock() == buffer ? &at->second : nullptr;
  };
  {
    const std::lock_guard lock(mutex_);
    forget_expired();
    if (const Known* there = known()) return there->number;
  }
  const uint64_t sum = checksum(place.first, place.second);
  std::vector<uint64_t> others;  // numbers of other bytes with this checksum
  for (;;) {
    std::shared_ptr<Buffer> like;
    const void* data = nullptr;
    uint64_t number = 0;
    {
      const std::lock_guard lock(mutex_);
      if (const Known* there = known()) return there->number;
      auto [next, end] = by_sum_.equal_range(sum);
      for (; next != end && !like && others.size() < kMostCompared; ++next) {
        const Known& candidate = known_.at(next->second);
        data = next->second.first;
        number = candidate.number;
        if (next->second.second == place.second &&
            std::ranges::find(others, number) == others.end())
          like = candidate.buffer.lock();
      }
      if (!like) {
        remember(place, {buffer, ++numbers_, sum});
        return numbers_;
      }
    }
    if (equal(place.first, data, place.second)) {
      const std::lock_guard lock(mutex_);
      remember(place, {buffer, number, sum});
      return number;
    }
    others.push_back(number);
  }
}

void Contents::remember(const Place& place, Known known) {
  forget(place);
  const uint64_t sum = known.sum;
  known_.emplace(place, std::move(known));
  by_sum_.emplace(sum, place);
}

void Contents::forget(const Place& place) {
  const auto at = known_.find(place);
  if (at == known_.end()) return;
  auto [next, end] = by_sum_.equal_range(at->second.sum);
  by_sum_.erase(std::find_if(next, end, [&](const auto& e) { return e.second == place; }));
  known_.erase(at);
}

// Expired entries are not looked for each time, since constants may be many.
void Contents::forget_expired() {
  if (std::has_single_bit(buffers_.size()))
    std::erase_if(buffers_, [](const auto& e) { return e.second.buffer.expired(); });
  if (!std::has_single_bit(known_.size())) return;
  for (auto at = known_.begin(); at != known_.end();) {
    const auto& [place, known] = *at++;
    if (known.buffer.expired()) forget(Place(place));
  }
}

}  // namespace pfrt
