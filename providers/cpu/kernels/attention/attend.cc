// SPDX-License-Identifier: Apache-2.0
//
// A task computes, for a block of queries of one head of keys, S = scale Q K' over the keys that
// any of them sees, the softmax of each row of S in place, and Y = S V. Sums of products are those
// of Gemm, so that a result depends on its row and on the keys alone.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "core/base/dtype.h"
#include "providers/cpu/kernels/attention/panels.h"
#include "providers/cpu/kernels/attention/rows.h"
#include "providers/cpu/kernels/matmul/gemm.h"
#include "providers/cpu/kernels/softmax/line.h"

namespace pfrt::cpu {
namespace {

// Keys and values are packed for all rows of a block; where rows see different keys, some scores
// are computed for nothing.
constexpr int64_t kMostRows = 128, kMostCausalRows = 32, kLeastRows = 4, kWantedTasks = 8;
constexpr int64_t kBlockScores = 1 << 16;  // of a block, about what the second-level cache holds

template <typename T>
constexpr pfrt_dtype kOwnType = std::is_same_v<T, double> ? PFRT_DTYPE_FLOAT64 : PFRT_DTYPE_FLOAT32;

template <typename T>
constexpr T kNothing = -std::numeric_limits<T>::infinity();

int64_t count(std::initializer_list<int64_t> dims) {
  return element_count(dims.begin(), dims.size());
}

int64_t padded(int64_t elements) { return (elements + 15) / 16 * 16; }

// c[i * n + j] = sum of a(i, k) b(j, k), for i < m, j < n.
template <typename T>
void multiply(const Run& run, const Gemm<T>& like, int64_t m, int64_t n, int64_t depth,
              const PanelSource<T>& a, const PanelSource<T>& b, T* c, T* scratch) {
  const Gemm<T> gemm(like, m, n, depth, kMostRows);  // never divided for parallelism
  for (int64_t i = 0; i < gemm.tiles(); ++i) {
    const GemmTile tile = gemm.tile(i);
    gemm.compute(run, tile, a, b, c + tile.row * n + tile.col, n, scratch);
  }
}

// Rounds to |dtype| and back.
template <typename T>
void round_to(pfrt_dtype dtype, T* x, int64_t n) {
  alignas(double) unsigned char block[64 * sizeof(double)];
  for (int64_t i = 0; i < n; i += 64) {
    const int64_t count = std::min<int64_t>(64, n - i);
    store_fn<T>(dtype)(block, 0, x + i, count);
    load_fn<T>(dtype)(x + i, block, 0, 1, count);
  }
}

// Softmax in place; NaN where every score is -infinity. |sink| is a logit without a value,
// -infinity for none.
void softmax(const LineMath& math, float* x, int64_t n, float sink) {
  const float most = math.greatest(x, n, sink);
  const double sum = static_cast<double>(std::exp(sink - most)) + math.exp(x, x, n, most);
  math.scale(x, x, n, 1 / sum);
}

void softmax(const LineMath&, double* x, int64_t n, double sink) {
  double most = sink;
  for (int64_t i = 0; i < n; ++i) most = most > x[i] || most != most ? most : x[i];
  double sum = std::exp(sink - most);
  for (int64_t i = 0; i < n; ++i) sum += x[i] = std::exp(x[i] - most);
  for (int64_t i = 0; i < n; ++i) x[i] *= 1 / sum;
}

template <typename T>
class Attend {
 public:
  explicit Attend(AttentionForm form) : f_(std::move(form)) {
    // Dimensions of empty tensors may be anything and could overflow when multiplied.
    joined_ = joins_past(f_);
    if (count({f_.batch, f_.q_heads, f_.q_len, f_.v_head}) == 0 &&
        (!f_.scores_wanted || count({f_.batch, f_.q_heads, f_.q_len, f_.total}) == 0))
      return;
    // In a decoding step, heads that share keys are one block, if enough tasks are left.
    const int64_t sharing = f_.q_heads / f_.kv_heads;
    if (sharing * f_.q_len <= kLeastRows && f_.batch * f_.kv_heads >= kWantedTasks / 2)
      group_ = sharing;
    const int64_t heads = f_.batch * f_.q_heads / group_, queries = group_ * f_.q_len;
    const int64_t most =
        f_.causal || f_.left >= 0 || heads < kWantedTasks ? kMostCausalRows : kMostRows;
    rows_ = std::clamp(kBlockScores / std::max<int64_t>(f_.total, 1), kLeastRows, most);
    rows_ = std::clamp<int64_t>(queries, 1, rows_);
    blocks_ = (queries + rows_ - 1) / rows_;
    tasks_ = heads * blocks_;
    q_at_ = 0;
    scores_at_ = q_at_ + padded(rows_ * f_.head);
    mask_at_ = scores_at_ + padded(rows_ * f_.total);
    y_at_ = mask_at_ + padded(f_.total);
    gemm_at_ = y_at_ + padded(rows_ * f_.v_head);
    bytes_ = static_cast<uint64_t>(gemm_at_) * sizeof(T) +
             std::max(Gemm<T>::most_scratch_bytes(f_.total, f_.head),
                      Gemm<T>::most_scratch_bytes(f_.v_head, f_.total));
  }

  uint64_t scratch_bytes() const { return bytes_; }

  pfrt_code operator()(const Run& run) const {
    if (tasks_ == 0 && !joined_) return PFRT_CODE_OK;
    std::array<Reach, 4> near{};
    const auto batch = static_cast<size_t>(f_.batch);
    std::vector<Reach> far(batch > near.size() ? batch : 0);
    const std::span<Reach> reach(far.empty() ? near.data() : far.data(), batch);
    if (const pfrt_code code = f_.reach(run, reach)) return code;
    if (joined_) join_past(run, f_, reach);
    if (tasks_ == 0) return run.stop();
    const std::vector<uint8_t> special = heads_with_specials(run, f_, reach);
    const std::vector<uint8_t> wild = heads_with_wild_scores(run, f_, reach);
    std::vector<T> sinks;
    if (f_.sink_input != PFRT_NO_INDEX) sinks = read_sinks<T>(run, f_);
    run.parallel(tasks_, [&](int64_t task, uint32_t worker) {
      if (run.stopped()) return;
      Block block{};
      block.batch = task / blocks_ * group_ / f_.q_heads;
      block.head = task / blocks_ * group_ % f_.q_heads;
      block.first = task % blocks_ * rows_;
      block.count = std::min(rows_, group_ * f_.q_len - block.first);
      block.sinks = sinks.empty() ? nullptr : sinks.data();
      block.reach = reach[static_cast<size_t>(block.batch)];
      const auto kv = static_cast<size_t>(block.batch * f_.kv_heads + kv_head_of(block));
      block.special = !special.empty() && special[kv] != 0;
      block.wild = !wild.empty() && wild[kv] != 0;
      compute(run, block, run.scratch<T>(worker));
    });
    return run.stop();
  }

 private:
  struct Block {
    int64_t batch, head, first, count;  // rows, from query |first| of |head| on
    const T* sinks;                     // null: -infinity for all
    Reach reach;
    KeyRange keys;  // seen by any row
    bool special;   // values that some row does not see hold NaN or infinity
    bool wild;      // a score that some row does not see may be NaN or infinite: all are computed
  };

  KeyRange seen_by(const Block& b, int64_t r) const {
    return b.wild ? f_.all(b.reach) : f_.visible(b.reach, query_of(b, r));
  }

  int64_t kv_head_of(const Block& b) const { return b.head / (f_.q_heads / f_.kv_heads); }

  // Rows are the queries of a head, then those of the next.
  int64_t head_of(const Block& b, int64_t r) const { return b.head + (b.first + r) / f_.q_len; }
  int64_t query_of(const Block& b, int64_t r) const { return (b.first + r) % f_.q_len; }

  // Keys (or values) of a head, from the first position that is computed on.
  StridedSource<T> cached(const Run& run, const Block& block, bool value) const {
    const CachedRows rows = cached_rows(run, f_, block.batch, kv_head_of(block), value);
    const int64_t offset = rows.offset + block.keys.begin * rows.row;
    return value ? StridedSource<T>(rows.data, rows.dtype, offset, 1, rows.row)
                 : StridedSource<T>(rows.data, rows.dtype, offset, rows.row, 1);
  }

  void compute(const Run& run, Block& block, T* scratch) const {
    block.keys = {f_.total, 0};
    for (int64_t r = 0; r < block.count; ++r) {
      const KeyRange seen = seen_by(block, r);
      if (seen.begin == seen.end) continue;
      block.keys.begin = std::min(block.keys.begin, seen.begin);
      block.keys.end = std::max(block.keys.end, seen.end);
    }
    if (f_.scores_wanted && f_.scores <= Scores::kCapped) block.keys = {0, f_.total};
    if (block.keys.end < block.keys.begin) block.keys = {0, 0};
    const int64_t width = block.keys.end - block.keys.begin;
    T *const q = scratch + q_at_, *const scores = scratch + scores_at_, *const y = scratch + y_at_;
    for (int64_t r = 0; r < block.count; ++r) {
      T* const row = q + r * f_.head;
      load_fn<T>(f_.q.dtype)(row, run.input(0),
                             f_.q.at(block.batch, head_of(block, r), query_of(block, r)), 1,
                             f_.head);
      for (int64_t i = 0; i < f_.head; ++i) row[i] *= static_cast<T>(f_.scale);
    }
    const StridedSource<T> rows(q, kOwnType<T>, 0, f_.head, 1);
    multiply<T>(run, gemm_, block.count, width, f_.head, rows, cached(run, block, false), scores,
                scratch + gemm_at_);
    std::array<bool, kMostRows> sees;  // as many are used as there are rows
    for (int64_t r = 0; r < block.count; ++r)
      sees[static_cast<size_t>(r)] = finish(run, block, r, scores + r * width, scratch + mask_at_);
    const StridedSource<T> weights(scores, kOwnType<T>, 0, width, 1);
    multiply<T>(run, gemm_, block.count, f_.v_head, width, weights, cached(run, block, true), y,
                scratch + gemm_at_);
    if (width == 0) std::fill_n(y, block.count * f_.v_head, T{0});
    if (block.special)
      for (const KeyRange keys :
           {KeyRange{0, block.keys.begin}, KeyRange{block.keys.end, f_.all(block.reach).end}})
        add_hidden(run, f_, block.batch, kv_head_of(block), keys, y, f_.v_head, block.count);
    for (int64_t r = 0; r < block.count; ++r) {
      T* const row = y + r * f_.v_head;
      if (!sees[static_cast<size_t>(r)] && !f_.hidden_count) std::fill_n(row, f_.v_head, T{0});
      store_fn<T>(f_.y.dtype)(run.output(0),
                              f_.y.at(block.batch, head_of(block, r), query_of(block, r)), row,
                              f_.v_head);
    }
  }

  // Turns the scores of row |r| of a block into weights. False when the query sees no key at all.
  bool finish(const Run& run, const Block& block, int64_t r, T* x, T* scratch) const {
    const int64_t width = block.keys.end - block.keys.begin;
    const KeyRange seen = seen_by(block, r);
    int64_t begin = std::clamp<int64_t>(seen.begin - block.keys.begin, 0, width);
    int64_t end = std::clamp<int64_t>(seen.end - block.keys.begin, begin, width);
    show(run, block, r, Scores::kProduct, x, T{0});
    if (f_.softcap > 0) {
      const T cap = static_cast<T>(f_.softcap);
      for (int64_t i = 0; i < width; ++i) x[i] = cap * std::tanh(x[i] / cap);
    }
    show(run, block, r, Scores::kCapped, x, T{0});
    bool sees = begin < end;
    if (f_.mask.input != PFRT_NO_INDEX) {
      end = std::clamp(f_.mask.columns - block.keys.begin, begin, end);
      const ScoreRow row{block.batch, head_of(block, r), query_of(block, r),
                         block.keys.begin + begin};
      sees = add_mask(run, f_.mask, math_, row, x + begin, end - begin, scratch);
    }
    std::fill(x, x + begin, kNothing<T>);
    std::fill(x + end, x + width, kNothing<T>);
    if (block.wild)
      add_hiding(f_.visible(block.reach, query_of(block, r)), block.keys.begin, x, width);
    show(run, block, r, Scores::kBiased, x, kNothing<T>);
    const bool rounds = f_.precision != PFRT_DTYPE_UNSET;
    if (rounds) round_to(f_.precision, x + begin, end - begin);
    if (sees) {
      const T sink = block.sinks != nullptr ? block.sinks[head_of(block, r)]
                     : f_.sink_of_zero      ? T{0}
                                            : kNothing<T>;
      softmax(math_, x + begin, end - begin, sink);
    }
    if (!sees || (f_.nan_is_zero && begin < end && std::isnan(x[begin])))
      std::fill(x + begin, x + end, T{0});
    if (rounds) round_to(f_.precision, x + begin, end - begin);
    std::fill(x, x + begin, T{0});
    std::fill(x + end, x + width, T{0});
    show(run, block, r, Scores::kSoftmax, x, T{0});
    return sees;
  }

  // Writes a row of the output of scores if it shows |stage|; keys that were not computed are
  // |other|.
  void show(const Run& run, const Block& block, int64_t r, Scores stage, const T* x,
            T other) const {
    if (!f_.scores_wanted || f_.scores != stage) return;
    const StoreFn<T> store = store_fn<T>(f_.scores_dtype);
    const int64_t row =
        ((block.batch * f_.q_heads + head_of(block, r)) * f_.q_len + query_of(block, r)) * f_.total;
    T filled[64];
    std::fill(std::begin(filled), std::end(filled), other);
    const auto fill = [&](int64_t from, int64_t to) {
      for (int64_t i = from; i < to; i += 64)
        store(run.output(3), row + i, filled, std::min<int64_t>(64, to - i));
    };
    fill(0, block.keys.begin);
    store(run.output(3), row + block.keys.begin, x, block.keys.end - block.keys.begin);
    fill(block.keys.end, f_.total);
  }

  AttentionForm f_;
  LineMath math_ = LineMath::here();
  Gemm<T> gemm_;
  int64_t group_ = 1;  // heads
  int64_t rows_ = 1, blocks_ = 0, tasks_ = 0;
  bool joined_ = false;
  int64_t q_at_ = 0, scores_at_ = 0, mask_at_ = 0, y_at_ = 0, gemm_at_ = 0;  // in the scratch
  uint64_t bytes_ = 0;
};

template <typename T>
Kernel typed_kernel(AttentionForm form) {
  Kernel kernel;
  kernel.flops = attention_flops(form);
  Attend<T> attend(std::move(form));
  kernel.scratch_bytes = attend.scratch_bytes();
  kernel.run = std::move(attend);
  return kernel;
}

}  // namespace

Headed headed(pfrt_dtype dtype, std::span<const int64_t> dims, int64_t heads) {
  if (element_count(dims.data(), dims.size()) == 0) return {dtype, 0, 0, 0};
  if (dims.size() == 4) return {dtype, dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3]};
  return {dtype, dims[1] * dims[2], dims[2] / std::max<int64_t>(heads, 1), dims[2]};
}

double attention_flops(const AttentionForm& form) {
  const double scores = static_cast<double>(form.batch) * static_cast<double>(form.q_heads) *
                        static_cast<double>(form.q_len) * static_cast<double>(form.total);
  return scores * (2.0 * static_cast<double>(form.head + form.v_head) + 20);
}

KeyRange AttentionForm::visible(const Reach& at, int64_t query) const {
  const int64_t position = at.past + query;
  int64_t begin = 0, end = std::min(at.keys, total);
  if (causal) end = std::min(end, position + 1);
  if (right >= 0 && right < end - position) end = position + right + 1;
  if (left >= 0 && left < position) begin = position - left;
  return begin < end ? KeyRange{begin, end} : KeyRange{};
}

Kernel attention_kernel(AttentionForm form) {
  const auto wide = [](pfrt_dtype dtype) { return dtype == PFRT_DTYPE_FLOAT64; };
  const bool twice = wide(form.q.dtype) || wide(form.v.dtype) || wide(form.precision);
  // Rounding to the type that is computed in changes nothing.
  if (form.precision == (twice ? PFRT_DTYPE_FLOAT64 : PFRT_DTYPE_FLOAT32))
    form.precision = PFRT_DTYPE_UNSET;
  if (twice) return typed_kernel<double>(std::move(form));
  if (attention_on_panels(form)) return panel_attention_kernel(std::move(form));
  return typed_kernel<float>(std::move(form));
}

}  // namespace pfrt::cpu
