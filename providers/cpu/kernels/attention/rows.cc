// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/attention/rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/base/dtype.h"
#include "providers/cpu/elements/load.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kColumns = 64;

template <typename T>
constexpr T kNothing = -std::numeric_limits<T>::infinity();

// Sums of products of elements below this are finite.
constexpr float kTame = 1e30f;

// The greater, NaN if either is.
float wider(float a, float b) { return a < b || b != b ? b : a; }

// The greatest distance from zero of |n| elements from |at| on; NaN where one is not finite.
float widest(const void* data, pfrt_dtype dtype, int64_t at, int64_t n) {
  float block[kColumns], most = 0, zeros = 0;
  for (int64_t j = 0; j < n; j += kColumns) {
    const int64_t count = std::min(kColumns, n - j);
    load_fn<float>(dtype)(block, data, at + j, 1, count);
    for (int64_t c = 0; c < count; ++c) {
      most = std::max(most, std::abs(block[c]));
      zeros += block[c] * 0.0f;
    }
  }
  return most + zeros;
}

bool has_elements(std::initializer_list<int64_t> dims) {
  return element_count(dims.begin(), dims.size()) != 0;
}

}  // namespace

bool joins_past(const AttentionForm& f) {
  return f.presents && (has_elements({f.batch, f.kv_heads, f.total, f.head}) ||
                        has_elements({f.batch, f.kv_heads, f.total, f.v_head}));
}

void join_past(const Run& run, const AttentionForm& f, std::span<const Reach> reach) {
  run.parallel(2 * f.batch * f.kv_heads, [&](int64_t i, uint32_t) {
    if (run.stopped()) return;
    const bool value = i % 2 != 0;
    const int64_t b = i / 2 / f.kv_heads, h = i / 2 % f.kv_heads;
    const Headed& from = value ? f.v : f.k;
    const int64_t size = static_cast<int64_t>(dtype_size(from.dtype));
    const int64_t line = (value ? f.v_head : f.head) * size;
    char* const to = run.output<char>(value ? 2 : 1) + (b * f.kv_heads + h) * f.total * line;
    const int64_t past = std::min(reach[static_cast<size_t>(b)].past, f.past_room);
    const int64_t fresh = std::clamp<int64_t>(f.total - past, 0, f.kv_len);
    if (line == 0) return;
    const char* const cache =
        f.past_room > 0 ? run.input<char>(f.past_input + (value ? 1 : 0)) : nullptr;
    const bool in_place = cache == run.output<char>(value ? 2 : 1);
    if (past > 0 && cache != nullptr && !in_place)
      std::memcpy(to, cache + (b * f.kv_heads + h) * f.past_room * line,
                  static_cast<size_t>(past * line));
    const char* const rows = run.input<char>(value ? 2 : 1);
    for (int64_t r = 0; r < fresh; ++r)
      std::memcpy(to + (past + r) * line, rows + from.at(b, h, r) * size,
                  static_cast<size_t>(line));
    if (const int64_t rest = f.total - past - fresh; rest > 0 && !in_place)
      std::memset(to + (past + fresh) * line, 0, static_cast<size_t>(rest * line));
  });
}

CachedRows cached_rows(const Run& run, const AttentionForm& f, int64_t batch, int64_t kv_head,
                       bool values) {
  const uint32_t i = values ? 2 : 1;
  const Headed& in = values ? f.v : f.k;
  const int64_t size = values ? f.v_head : f.head;
  if (!f.presents) return {run.input(i), in.dtype, in.at(batch, kv_head, 0), in.row};
  return {run.output(i), in.dtype, (batch * f.kv_heads + kv_head) * f.total * size, size};
}

std::vector<uint8_t> heads_with_specials(const Run& run, const AttentionForm& f,
                                         std::span<const Reach> reach) {
  std::vector<uint8_t> special(static_cast<size_t>(f.hides() ? f.batch * f.kv_heads : 0));
  run.parallel(static_cast<int64_t>(special.size()), [&](int64_t i, uint32_t) {
    if (run.stopped()) return;
    const int64_t keys = std::min(reach[static_cast<size_t>(i / f.kv_heads)].keys, f.total);
    const CachedRows v = cached_rows(run, f, i / f.kv_heads, i % f.kv_heads, true);
    float block[kColumns], zeros[kColumns] = {};
    for (int64_t key = 0; key < keys; ++key)
      for (int64_t j = 0; j < f.v_head; j += kColumns) {
        const int64_t n = std::min(kColumns, f.v_head - j);
        load_fn<float>(v.dtype)(block, v.data, v.offset + key * v.row + j, 1, n);
        for (int64_t c = 0; c < n; ++c) zeros[c] += block[c] * 0.0f;
      }
    special[static_cast<size_t>(i)] =
        std::any_of(std::begin(zeros), std::end(zeros), [](float z) { return z != z; });
  });
  return special;
}

std::vector<uint8_t> heads_with_wild_scores(const Run& run, const AttentionForm& f,
                                            std::span<const Reach> reach) {
  const bool counts = f.hidden_scores_count && f.hides();
  std::vector<uint8_t> wild(static_cast<size_t>(counts ? f.batch * f.kv_heads : 0));
  const int64_t sharing = f.q_heads / std::max<int64_t>(f.kv_heads, 1);
  run.parallel(static_cast<int64_t>(wild.size()), [&](int64_t i, uint32_t) {
    if (run.stopped()) return;
    const int64_t b = i / f.kv_heads, head = i % f.kv_heads;
    const CachedRows k = cached_rows(run, f, b, head, false);
    float keys = 0, queries = 0;
    for (int64_t key = 0; key < f.all(reach[static_cast<size_t>(b)]).end; ++key)
      keys = wider(keys, widest(k.data, k.dtype, k.offset + key * k.row, f.head));
    for (int64_t h = head * sharing; h < (head + 1) * sharing; ++h)
      for (int64_t q = 0; q < f.q_len; ++q)
        queries = wider(queries, widest(run.input(0), f.q.dtype, f.q.at(b, h, q), f.head));
    const float scale = std::max(1.0f, std::abs(static_cast<float>(f.scale)));
    const float bound = queries * scale * keys * static_cast<float>(f.head);
    wild[static_cast<size_t>(i)] = !(bound < kTame && queries * scale < kTame);
  });
  return wild;
}

template <typename T>
void add_hiding(KeyRange seen, int64_t first_key, T* x, int64_t n) {
  const int64_t begin = std::clamp<int64_t>(seen.begin - first_key, 0, n);
  const int64_t end = std::clamp<int64_t>(seen.end - first_key, begin, n);
  for (int64_t i = 0; i < begin; ++i) x[i] += kNothing<T>;
  for (int64_t i = end; i < n; ++i) x[i] += kNothing<T>;
}

template <typename T>
void add_hidden(const Run& run, const AttentionForm& f, int64_t batch, int64_t kv_head,
                KeyRange keys, T* sums, int64_t row, int64_t rows) {
  const CachedRows v = cached_rows(run, f, batch, kv_head, true);
  T block[kColumns];
  for (int64_t key = keys.begin; key < keys.end; ++key)
    for (int64_t j = 0; j < f.v_head; j += kColumns) {
      const int64_t n = std::min(kColumns, f.v_head - j);
      load_fn<T>(v.dtype)(block, v.data, v.offset + key * v.row + j, 1, n);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < n; ++c) sums[r * row + j + c] += block[c] * T{0};
    }
}

template <typename T>
bool add_mask(const Run& run, const AttentionMask& m, const LineMath& math, const ScoreRow& row,
              T* x, int64_t n, T* scratch) {
  const int64_t start = m.at(row.batch, row.head, row.query) + row.first_key * m.column;
  if constexpr (std::is_same_v<T, float>)
    if (m.dtype == PFRT_DTYPE_FLOAT32 && m.column == 1)
      return math.add_mask(run.input<float>(m.input) + start, x, n,
                           m.replaces ? kVanishes<float> : __builtin_nanf(""));
  load_fn<T>(m.dtype)(scratch, run.input(m.input), start, m.column, n);
  const T nothing = m.dtype == PFRT_DTYPE_BOOL ? T{0} : kNothing<T>;
  bool sees = false;
  for (int64_t i = 0; i < n; ++i) sees |= scratch[i] != nothing;
  if (m.dtype == PFRT_DTYPE_BOOL) {
    for (int64_t i = 0; i < n; ++i) x[i] = scratch[i] == nothing ? kNothing<T> : x[i];
  } else if (m.replaces) {
    for (int64_t i = 0; i < n; ++i)
      x[i] = scratch[i] <= kVanishes<T> ? scratch[i] : x[i] + scratch[i];
  } else {
    for (int64_t i = 0; i < n; ++i) x[i] += scratch[i];
  }
  return sees;
}

template <typename T>
std::vector<T> read_sinks(const Run& run, const AttentionForm& f) {
  std::vector<T> sinks(static_cast<size_t>(f.q_heads), f.sink_of_zero ? T{0} : kNothing<T>);
  if (f.sink_input != PFRT_NO_INDEX)
    load_fn<T>(f.sink_dtype)(sinks.data(), run.input(f.sink_input), 0, 1, f.q_heads);
  return sinks;
}

template void add_hidden(const Run&, const AttentionForm&, int64_t, int64_t, KeyRange, float*,
                         int64_t, int64_t);
template void add_hidden(const Run&, const AttentionForm&, int64_t, int64_t, KeyRange, double*,
                         int64_t, int64_t);
template void add_hiding(KeyRange, int64_t, float*, int64_t);
template void add_hiding(KeyRange, int64_t, double*, int64_t);
template bool add_mask(const Run&, const AttentionMask&, const LineMath&, const ScoreRow&, float*,
                       int64_t, float*);
template bool add_mask(const Run&, const AttentionMask&, const LineMath&, const ScoreRow&, double*,
                       int64_t, double*);
template std::vector<float> read_sinks(const Run&, const AttentionForm&);
template std::vector<double> read_sinks(const Run&, const AttentionForm&);

}  // namespace pfrt::cpu
