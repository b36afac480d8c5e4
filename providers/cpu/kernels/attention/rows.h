// SPDX-License-Identifier: Apache-2.0
//
// Shared by the kernels of attention, besides its form: keys and values of the past concatenated
// with new ones, the rows of a head, the mask of a row of scores, and the sinks. Pure functions;
// thread-safe.
#pragma once

#include <span>
#include <vector>

#include "providers/cpu/kernels/attention/form.h"
#include "providers/cpu/kernels/softmax/line.h"

namespace pfrt::cpu {

// Adding a score of any sensible size to this number does not change it.
template <typename T>
constexpr T kVanishes = static_cast<T>(-1e30);

// Whether join_past has something to write.
bool joins_past(const AttentionForm& form);
// Writes outputs 1 and 2: the past, then new positions, then zeros.
void join_past(const Run& run, const AttentionForm& form, std::span<const Reach> reach);

// Keys, or values, of a head: position i from element offset + i * row on.
struct CachedRows {
  const void* data;
  pfrt_dtype dtype;
  int64_t offset, row;
};
CachedRows cached_rows(const Run& run, const AttentionForm& form, int64_t batch, int64_t kv_head,
                       bool values);

// Tells, by batch and head of keys, whether values that some query does not see hold NaN or
// infinity.
std::vector<uint8_t> heads_with_specials(const Run& run, const AttentionForm& form,
                                         std::span<const Reach> reach);
// Tells, by batch and head of keys, whether the score of a key that some query does not see may be
// NaN or infinite: adding minus infinity does not hide that.
std::vector<uint8_t> heads_with_wild_scores(const Run& run, const AttentionForm& form,
                                            std::span<const Reach> reach);
// Adds minus infinity to the scores of keys [first_key, first_key + n) that |seen| leaves out.
template <typename T>
void add_hiding(KeyRange seen, int64_t first_key, T* x, int64_t n);
// Adds the values of |keys|, times zero, to |rows| rows of sums.
template <typename T>
void add_hidden(const Run& run, const AttentionForm& form, int64_t batch, int64_t kv_head,
                KeyRange keys, T* sums, int64_t row, int64_t rows);

// Some scores of a query.
struct ScoreRow {
  int64_t batch, head, query, first_key;
};
// Adds the mask to x[i], i < n; returns false when it hides all of them. Scores that a bool mask
// hides become -infinity whatever they were. |scratch| has room for n.
template <typename T>
bool add_mask(const Run& run, const AttentionMask& mask, const LineMath& math, const ScoreRow& row,
              T* x, int64_t n, T* scratch);

// The logit of each head, -infinity for none.
template <typename T>
std::vector<T> read_sinks(const Run& run, const AttentionForm& form);

}  // namespace pfrt::cpu
