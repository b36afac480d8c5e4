// SPDX-License-Identifier: Apache-2.0
//
// Attention as its kernel computes it, whichever operator asks for it: its dimensions, the layouts
// of its operands, and the keys that a query sees. Plain data.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "providers/cpu/kernel/kernel.h"

namespace pfrt::cpu {

// The layout of a tensor [batch, head, position, column]: columns are contiguous, strides count
// elements.
struct Headed {
  pfrt_dtype dtype = PFRT_DTYPE_UNSET;
  int64_t batch = 0, head = 0, row = 0;

  int64_t at(int64_t b, int64_t h, int64_t r) const { return b * batch + h * head + r * row; }
};
// The layout of a tensor of rank 4, or of rank 3 as [batch, position, head x column] with |heads|.
Headed headed(pfrt_dtype dtype, std::span<const int64_t> dims, int64_t heads);

// The keys that one batch has: positions before its first query, and keys, those of the queries
// included.
struct Reach {
  int64_t past = 0, keys = 0;
};

// Keys [begin, end).
struct KeyRange {
  int64_t begin = 0, end = 0;
};

// A mask, added to the scores; if it is bool it tells the keys to keep. It is broadcast by strides
// of 0. Keys from |columns| on are not seen. With |replaces|, a masked score becomes the large
// negative number itself, even if it was NaN or infinite.
struct AttentionMask {
  uint32_t input = PFRT_NO_INDEX;
  pfrt_dtype dtype = PFRT_DTYPE_UNSET;
  bool replaces = false;
  int64_t columns = 0, batch = 0, head = 0, row = 0, column = 1;

  int64_t at(int64_t b, int64_t h, int64_t r) const { return b * batch + h * head + r * row; }
};

// The stage of the computation that the output of scores shows.
enum class Scores : uint8_t { kProduct, kCapped, kBiased, kSoftmax };

struct AttentionForm {
  int64_t batch = 0, q_heads = 0, kv_heads = 0, q_len = 0, kv_len = 0, total = 0;
  int64_t head = 0, v_head = 0;
  double scale = 1, softcap = 0;  // softcap 0: none
  bool causal = false;            // a query sees no position after its own
  int64_t left = -1, right = -1;  // nor any farther away than so; -1: no bound
  // Values that a query does not see have the weight zero, so that NaN and infinity among them make
  // NaN; otherwise they are as if they were not there.
  bool hidden_count = false;
  // Scores of keys that a query does not see get minus infinity added, so that NaN and infinity
  // among them make NaN; otherwise they are as if they were not there.
  bool hidden_scores_count = false;
  bool nan_is_zero = false;                 // a query whose weights are NaN has weights of zero
  pfrt_dtype precision = PFRT_DTYPE_UNSET;  // of the softmax; UNSET: as computed
  Headed q, k, v, y;                        // inputs 0 to 2, output 0
  AttentionMask mask;
  // Past and new keys and values are concatenated in outputs 1 and 2 and read from there: |total|
  // positions, of which the past's come from inputs |past_input| and |past_input| + 1 with
  // |past_room| positions each.
  bool presents = false;
  uint32_t past_input = PFRT_NO_INDEX;
  int64_t past_room = 0;
  bool scores_wanted = false;  // output 3
  pfrt_dtype scores_dtype = PFRT_DTYPE_UNSET;
  Scores scores = Scores::kProduct;
  // A further logit for each head, which takes its share of the softmax but has no value: input
  // |sink_input| has one a head, or |sink_of_zero|.
  uint32_t sink_input = PFRT_NO_INDEX;
  pfrt_dtype sink_dtype = PFRT_DTYPE_UNSET;
  bool sink_of_zero = false;
  // Fills in |reach|, one a batch. Returns what Run::fail returned where the data makes no sense.
  std::function<pfrt_code(const Run& run, std::span<Reach> reach)> reach;

  KeyRange visible(const Reach& reach, int64_t query) const;
  // Whether some query does not see all keys, and hidden values or scores count.
  bool hides() const {
    return hidden_count && (left >= 0 || right >= 0 || (causal && (q_len > 1 || kv_len > 1)));
  }
  KeyRange all(const Reach& at) const { return {0, std::min(at.keys, total)}; }
};

// Operations of |form|, as if every query saw every key.
double attention_flops(const AttentionForm& form);
// The kernel computes scores block by block; only a block of one head is in memory.
Kernel attention_kernel(AttentionForm form);

}  // namespace pfrt::cpu
