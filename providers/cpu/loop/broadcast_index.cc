// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/loop/broadcast_index.h"

#include <algorithm>
#include <cstring>

namespace pfrt::cpu {

std::optional<BroadcastIndex> BroadcastIndex::make(Dims own, Dims whole) {
  own = without_leading_ones(own);
  whole = without_leading_ones(whole);
  if (own.size() > whole.size()) return {};
  BroadcastIndex index;
  size_t count = 0;
  int64_t stride = 1;  // of the current dimension of the operand
  for (size_t left = whole.size(); left-- > 0;) {
    const size_t lead = whole.size() - own.size();
    const int64_t mine = left < lead ? 1 : own[left - lead], all = whole[left];
    if (mine != 1 && mine != all) return {};
    if (all == 1) continue;
    const int64_t here = mine == 1 ? 0 : stride;
    stride *= mine;
    if (count > 0 && (here == 0) == (index.strides_[count - 1] == 0)) {
      index.extents_[count - 1] *= all;
      continue;
    }
    if (count == kMost) return {};
    index.extents_[count] = all;
    index.strides_[count++] = here;
  }
  index.count_ = std::max<size_t>(count, 1);
  return index;
}

BroadcastIndex::Place BroadcastIndex::at(int64_t i) const {
  Place place{0, extents_[0]};
  for (size_t d = 0; d < count_; ++d) {
    const int64_t row = d + 1 < count_ ? i / extents_[d] : 0;
    const int64_t here = i - row * extents_[d];
    place.index += here * strides_[d];
    if (d == 0) place.left -= here;
    i = row;
  }
  return place;
}

namespace {

// Whole registers at a time: the last may write up to 15 bytes more.
template <typename T>
void fill(T value, int64_t n, T* out) {
  constexpr int64_t kStep = 16 / sizeof(T);
  for (int64_t i = 0; i < n; i += kStep)
    for (int64_t k = 0; k < kStep; ++k) out[i + k] = value;
}

// Repeats |period| elements, beginning with element |first| of them.
template <typename T>
void repeat(const T* source, int64_t period, int64_t first, int64_t n, T* out) {
  int64_t done = std::min(period, n);
  for (int64_t i = 0; i < done; ++i) {
    out[i] = source[first];
    if (++first == period) first = 0;
  }
  for (; done < n; done *= 2)
    std::memcpy(out + done, out, static_cast<size_t>(std::min(done, n - done)) * sizeof(T));
}

}  // namespace

template <typename T>
void BroadcastIndex::gather_as(const T* base, int64_t from, int64_t n, T* out) const {
  if (count_ == 2 && strides_[1] == 0) return repeat(base, extents_[0], from % extents_[0], n, out);
  std::array<int64_t, kMost> index{};
  int64_t column = from % extents_[0], row = from / extents_[0], offset = 0;
  for (size_t d = 1; d < count_; ++d) {
    index[d] = row % extents_[d];
    offset += index[d] * strides_[d];
    row /= extents_[d];
  }
  while (n > 0) {
    const int64_t length = std::min(extents_[0] - column, n);
    const T* const source = base + offset + column * strides_[0];
    if (stays())
      fill(*source, length, out);
    else
      for (int64_t i = 0; i < length; ++i) out[i] = source[i];
    out += length;
    n -= length;
    column = 0;
    for (size_t d = 1; d < count_; ++d) {
      offset += strides_[d];
      if (++index[d] < extents_[d]) break;
      offset -= strides_[d] * extents_[d];
      index[d] = 0;
    }
  }
}

void BroadcastIndex::gather(const void* base, int64_t size, int64_t from, int64_t n,
                            void* out) const {
  const auto as = [&]<typename T>(T) {
    gather_as(static_cast<const T*>(base), from, n, static_cast<T*>(out));
  };
  switch (size) {
    case 1:
      return as(uint8_t{});
    case 2:
      return as(uint16_t{});
    case 4:
      return as(uint32_t{});
    default:
      return as(uint64_t{});
  }
}

}  // namespace pfrt::cpu
