// SPDX-License-Identifier: Apache-2.0
//
// A task has some queries of one or several heads that share a head of keys. It packs a block of
// keys and values to panels once; then it computes, for a few queries at a time: S = scale Q K', M'
// = max(M, S), P = exp(S - M'), Y = exp(M - M') Y + P V, L = exp(M - M') L + sum P. The result is Y
// / L. Blocks begin at multiples of kKeys and chains of Y's sums at multiples of kChain, so that a
// query's result does not depend on when the first key is seen. With precision bf16, Q, K, P and V
// become pairs of bfloat16 where they lie, before they are multiplied (matmul/bf16_pairs.h).
#include "providers/cpu/kernels/attention/panels.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/base/dtype.h"
#include "providers/cpu/elements/ceil_div.h"
#include "providers/cpu/jit/panel_microkernel.h"
#include "providers/cpu/kernels/attention/rows.h"
#include "providers/cpu/kernels/matmul/bf16_pairs.h"
#include "providers/cpu/kernels/matmul/gemm.h"
#include "providers/cpu/kernels/matmul/split_matmul.h"
#include "providers/cpu/kernels/softmax/line.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kPanel = PanelMicrokernel::kPanel;
constexpr int64_t kKeys = 256;  // a block
constexpr int64_t kChain = 64;  // k of a sum before it is added to others, which keeps errors small
constexpr int64_t kMostHead = 512;
constexpr int64_t kLeastRows = 5;  // fewer rows read keys and values unpacked
constexpr int64_t kMostRows = 128, kLeastRowsOfFewHeads = 8;
constexpr int64_t kWantedTasks = 8;  // of several workers
// Rows that are computed together read the keys that any of them sees; weights hide the others.
constexpr int64_t kTogether = 24, kTogetherCausal = 12;
constexpr int64_t kMostTogether = 64;  // of a few keys, so that their scores stay in the cache

constexpr float kNothing = -std::numeric_limits<float>::infinity();

int64_t padded(int64_t n) { return ceil_div(n, kPanel) * kPanel; }

// Chunks of the depth of a matmul.
struct Chunks {
  explicit Chunks(int64_t chain) : size(chain) {
    for (size_t i = 0; i < offsets.size(); ++i) offsets[i] = static_cast<int64_t>(i) * chain;
  }
  // Chunks of about equal size; the last may be shorter.
  static Chunks equal(int64_t depth) {
    const int64_t count = ceil_div(depth, kChain);
    return Chunks(depth % count == 0 ? depth / count : kChain);
  }

  int64_t size;
  std::array<int64_t, kMostHead / kChain> offsets{};
};
static_assert(kKeys <= kMostHead);

// Numbers to pairs in their own memory, where |pairs| are wanted.
void pair_row(bool pairs, float* row, int64_t n) {
  if (pairs) to_bf16_pairs(row, n, reinterpret_cast<uint32_t*>(row));
}

class PanelAttend {
 public:
  explicit PanelAttend(AttentionForm form) : f_(std::move(form)), q_chunks_(1) {
    group_ = f_.q_heads / std::max<int64_t>(f_.kv_heads, 1);
    all_rows_ = group_ * f_.q_len;
    joined_ = joins_past(f_);
    rows_ = division(1).rows;
    q_chunks_ = Chunks::equal(f_.head);
    s_row_ = std::min(kKeys, padded(f_.total));
    const bool all = !f_.causal && f_.left < 0 && f_.right < 0;
    together_ = all ? kTogether : kTogetherCausal;
    brief_ = all && microkernel_->takes_plain() && f_.total <= kChain && f_.head <= kChain &&
             f_.v_head % (kPanel / 2) == 0;
    if (brief_) together_ = ceil_div(rows_, ceil_div(rows_, kMostTogether));
    v_width_ = padded(f_.v_head);
    k_at_ = padded(rows_ * f_.head);
    v_at_ = k_at_ + kKeys * f_.head;
    scores_at_ = v_at_ + kKeys * v_width_;
    y_at_ = scores_at_ + together_ * s_row_;
    mask_at_ = y_at_ + rows_ * v_width_;
    bytes_ = static_cast<uint64_t>(mask_at_ + kKeys) * sizeof(float);
  }

  uint64_t scratch_bytes() const { return bytes_; }

  pfrt_code operator()(const Run& run) const {
    std::vector<Reach> reach(static_cast<size_t>(f_.batch));
    if (const pfrt_code code = f_.reach(run, reach)) return code;
    if (joined_) join_past(run, f_, reach);
    const std::vector<float> sinks = read_sinks<float>(run, f_);
    const std::vector<uint8_t> special = heads_with_specials(run, f_, reach);
    const std::vector<uint8_t> wild = heads_with_wild_scores(run, f_, reach);
    const Division by = division(run.workers());
    run.parallel(f_.batch * f_.kv_heads * by.blocks, [&](int64_t i, uint32_t worker) {
      Task task;
      const int64_t head = i / by.blocks;
      task.batch = head / f_.kv_heads;
      task.kv_head = head % f_.kv_heads;
      task.first = i % by.blocks * by.rows;
      task.count = std::min(by.rows, all_rows_ - task.first);
      task.special = !special.empty() && special[static_cast<size_t>(head)] != 0;
      task.wild = !wild.empty() && wild[static_cast<size_t>(head)] != 0;
      task.pairs = run.precision() == Precision::kBfloat16 && pair_microkernel_ != nullptr;
      const Reach& reached = reach[static_cast<size_t>(task.batch)];
      task.brief = brief_ && !task.pairs && f_.all(reached).end >= kPanel / 2;
      compute(run, reached, sinks, task, run.scratch<float>(worker));
    });
    return run.stop();
  }

 private:
  struct Row {
    int64_t head, query;
    KeyRange seen;
    float most;
    double sum;
    bool sees;  // a key that no mask hides
  };
  struct Task {
    int64_t batch, kv_head, first, count;
    bool special;  // values that some row does not see hold NaN or infinity
    bool wild;     // a score that some row does not see may be NaN or infinite: all are computed
    bool pairs;    // products are those of pairs
    bool brief;    // see multiply_brief
    std::array<Row, kMostRows> rows;
  };
  // A few rows, and of a block of keys those that some of the rows see.
  struct RowBlock {
    int64_t row, rows;
    int64_t block, begin, end;
  };

  // The rows of a head of keys, in blocks; each packs the keys and values that it sees.
  struct Division {
    int64_t blocks, rows;
  };
  Division division(uint32_t workers) const {
    const int64_t heads = f_.batch * f_.kv_heads, wanted = workers == 1 ? 1 : kWantedTasks;
    const int64_t most = heads < wanted ? std::clamp(ceil_div(all_rows_, ceil_div(wanted, heads)),
                                                     kLeastRowsOfFewHeads, kMostRows)
                                        : kMostRows;
    const int64_t blocks = ceil_div(all_rows_, most);
    return {blocks, ceil_div(all_rows_, blocks)};
  }

  [[gnu::noinline]] KeyRange seen_by(const Task& t, int64_t first, int64_t count) const {
    KeyRange keys{f_.total, 0};
    for (int64_t r = first; r < first + count; ++r) {
      const KeyRange& seen = t.rows[static_cast<size_t>(r)].seen;
      if (seen.begin == seen.end) continue;
      keys.begin = std::min(keys.begin, seen.begin);
      keys.end = std::max(keys.end, seen.end);
    }
    return keys.begin < keys.end ? keys : KeyRange{};
  }

  void compute(const Run& run, const Reach& reach, std::span<const float> sinks, Task& t,
               float* scratch) const {
    begin_rows(run, reach, sinks, t, scratch);
    const KeyRange keys = seen_by(t, 0, t.count);
    for (int64_t block = keys.begin / kKeys * kKeys; block < keys.end; block += kKeys) {
      if (run.stopped()) return;
      const int64_t begin = std::max(block, keys.begin / kChain * kChain);
      const int64_t end = std::min(block + kKeys, keys.end);
      pack(run, t, block, begin, end, scratch);
      for (int64_t row = 0; row < t.count; row += together_) {
        RowBlock p{row, std::min(together_, t.count - row), block, 0, 0};
        const KeyRange seen = seen_by(t, row, p.rows);
        p.begin = std::max(begin, seen.begin / kChain * kChain);
        p.end = std::min(end, seen.end);
        if (p.begin < p.end) attend(run, reach, t, p, scratch);
      }
    }
    if (t.special) count_hidden(run, reach, t, scratch + y_at_);
    const bool in_place = f_.y.dtype == PFRT_DTYPE_FLOAT32;
    for (int64_t r = 0; r < t.count; ++r) {
      float* const y = scratch + y_at_ + r * v_width_;
      const Row& row = t.rows[static_cast<size_t>(r)];
      const int64_t at = f_.y.at(t.batch, row.head, row.query);
      float* const to = in_place ? run.output<float>(0) + at : y;
      // The sum is still 0 and the result NaN if every score that the query sees is -infinity.
      if (f_.nan_is_zero ? row.sum > 0 : row.sum != 0 || row.sees) {
        math_.scale(y, to, f_.v_head, 1 / row.sum);
      } else {
        if (f_.nan_is_zero && std::isnan(row.sum)) {
          if (run.stopped()) return;
          std::fill_n(y, f_.v_head, 0.0f);
          add_hidden(run, f_, t.batch, t.kv_head, f_.all(reach), y, v_width_, 1);
        }
        if (in_place) std::copy_n(y, f_.v_head, to);
      }
      if (!in_place) store_fn<float>(f_.y.dtype)(run.output(0), at, y, f_.v_head);
    }
  }

  void count_hidden(const Run& run, const Reach& reach, const Task& t, float* y) const {
    for (int64_t row = 0; row < t.count; row += together_) {
      const int64_t rows = std::min(together_, t.count - row);
      const KeyRange seen = seen_by(t, row, rows);
      for (const KeyRange keys :
           {KeyRange{0, seen.begin / kChain * kChain}, KeyRange{seen.end, f_.all(reach).end}})
        add_hidden(run, f_, t.batch, t.kv_head, keys, y + row * v_width_, v_width_, rows);
    }
  }

  void begin_rows(const Run& run, const Reach& reach, std::span<const float> sinks, Task& t,
                  float* scratch) const {
    // Rows of a task are the queries of one head, then those of the next.
    int64_t head = t.kv_head * group_ + t.first / f_.q_len, query = t.first % f_.q_len;
    for (int64_t r = 0; r < t.count; ++r) {
      if (!reads_queries(t))
        load_query(run, t, f_.q.at(t.batch, head, query), scratch + r * f_.head);
      const float sink = sinks[static_cast<size_t>(head)];
      t.rows[static_cast<size_t>(r)] = {
          head,
          query,
          t.wild ? f_.all(reach) : f_.visible(reach, query),
          sink,
          sink == kNothing ? 0.0 : static_cast<double>(std::exp(sink - sink)),
          false};
      if (++query == f_.q_len) query = 0, ++head;
    }
    if (!t.brief) std::fill_n(scratch + y_at_, t.count * v_width_, 0.0f);
  }

  [[gnu::noinline]] void load_query(const Run& run, const Task& t, int64_t at, float* q) const {
    const float* from = q;
    if (f_.q.dtype == PFRT_DTYPE_FLOAT32)
      from = run.input<float>(0) + at;
    else
      load_fn<float>(f_.q.dtype)(q, run.input(0), at, 1, f_.head);
    math_.scale(from, q, f_.head, f_.scale);
    pair_row(t.pairs, q, f_.head);
  }

  // Packs keys and values [begin, end) to their places in the block that starts at |block|.
  void pack(const Run& run, const Task& t, int64_t block, int64_t begin, int64_t end,
            float* scratch) const {
    const CachedRows k = cached_rows(run, f_, t.batch, t.kv_head, false);
    const CachedRows v = cached_rows(run, f_, t.batch, t.kv_head, true);
    const StridedSource<float> keys(k.data, k.dtype, k.offset, k.row, 1);
    for (int64_t i = begin; i < end; i += kPanel) {
      float* const panel = scratch + k_at_ + (i - block) * f_.head;
      const int64_t first = t.brief ? brief_panel(i, end) : i;
      keys.pack(panel, kPanel, first, std::min(kPanel, end - first), 0, f_.head);
      if (t.pairs) pair_lines(panel, f_.head, reinterpret_cast<uint32_t*>(panel));
      if (reads_queries(t)) math_.scale(panel, panel, kPanel * f_.head, f_.scale);
    }
    if (t.brief && reads_values(v, end)) return;
    const StridedSource<float> values(v.data, v.dtype, v.offset, 1, v.row);
    for (int64_t j = 0; j < f_.v_head; j += kPanel) {
      float* const panel = scratch + v_at_ + j * kKeys;
      float* const lines = panel + (begin - block) * kPanel;
      values.pack(lines, kPanel, j, std::min(kPanel, f_.v_head - j), begin, end - begin);
      if (t.pairs)
        pair_lines(lines, end - begin,
                   reinterpret_cast<uint32_t*>(panel + (begin - block) / 2 * kPanel));
    }
  }

  void attend(const Run& run, const Reach& reach, Task& t, const RowBlock& p,
              float* scratch) const {
    float* const scores = scratch + scores_at_;
    const int64_t begin = p.begin - p.block, count = p.end - p.begin;
    PanelMicrokernel::Blocks s{};
    s.a = scratch + p.row * f_.head, s.a_row = f_.head;
    if (reads_queries(t)) {
      const Row& first = t.rows[static_cast<size_t>(p.row)];
      s.a = run.input<float>(0) + f_.q.at(t.batch, first.head, first.query), s.a_row = f_.q.row;
    }
    s.b = scratch + k_at_ + begin * f_.head, s.b_panel = kPanel * f_.head;
    s.c = scores, s.c_row = s_row_;
    if (t.brief)
      multiply_brief(p.rows, count, f_.head, true, s);
    else
      multiply(p.rows, count, t.pairs ? bf16_pairs(f_.head) : f_.head,
               t.pairs ? v_chunks_ : q_chunks_, true, s, t.pairs);
    std::array<Weighed, kMostTogether> seen;
    std::array<LineMath::Scores, kMostTogether> lines;
    for (size_t r = 0; r < static_cast<size_t>(p.rows); ++r) {
      lines[r].x = scores + static_cast<int64_t>(r) * s_row_;
      seen[r] = add_mask_to(run, reach, t, p, static_cast<int64_t>(r), lines[r], scratch);
    }
    if (math_.weigh != nullptr)
      math_.weigh(lines.data(), p.rows, f_.mask.replaces ? kVanishes<float> : std::nanf(""));
    for (size_t r = 0; r < static_cast<size_t>(p.rows); ++r)
      weigh(t, p, static_cast<int64_t>(r), lines[r], seen[r], scratch);
    PanelMicrokernel::Blocks y{};
    y.a = scores, y.a_row = s_row_;
    y.b = scratch + v_at_ + (t.pairs ? begin / 2 : begin) * kPanel, y.b_panel = kPanel * kKeys;
    y.c = scratch + y_at_ + p.row * v_width_, y.c_row = v_width_;
    if (t.brief) {
      const CachedRows v = cached_rows(run, f_, t.batch, t.kv_head, true);
      if (reads_values(v, count)) {
        y.b = static_cast<const float*>(v.data) + v.offset, y.b_panel = kPanel;
        y.b_row = v.row;
      }
      return multiply_brief(p.rows, f_.v_head, count, false, y);
    }
    multiply(p.rows, f_.v_head, t.pairs ? bf16_pairs(count) : count,
             t.pairs ? pair_chunks_ : v_chunks_, false, y, t.pairs);
  }

  // With a few keys that all queries see, one call multiplies all rows by a panel. Its columns are
  // whole: the last keys are packed together with some before them, |end| keys in all.
  static int64_t brief_panel(int64_t i, int64_t end) {
    return end < kPanel ? 0 : std::min(i, end - kPanel);
  }
  // Queries are multiplied where they lie, and keys by the scale instead.
  bool reads_queries(const Task& t) const {
    return t.brief && group_ == 1 && f_.q.dtype == PFRT_DTYPE_FLOAT32;
  }
  // Values are multiplied where they lie.
  static bool reads_values(const CachedRows& v, int64_t keys) {
    return v.dtype == PFRT_DTYPE_FLOAT32 && PanelMicrokernel::stays_near(v.row, keys);
  }
  // |columns| are 8 or more, a multiple of 8 unless they are |keys|.
  [[gnu::noinline]] void multiply_brief(int64_t rows, int64_t columns, int64_t depth, bool keys,
                                        const PanelMicrokernel::Blocks& p) const {
    constexpr float kZeros[kPanel] = {};
    for (int64_t j = 0; j < columns;) {
      const bool half = columns - j <= kPanel / 2 || columns < kPanel;
      const int64_t width = half ? kPanel / 2 : kPanel, first = std::min(j, columns - width);
      PanelMicrokernel::Blocks part = p;
      part.depth = depth;
      if (part.b_row == 0) part.b_row = kPanel;
      part.b += j / kPanel * p.b_panel + (keys ? first - brief_panel(j, columns) : 0);
      part.c += first;
      part.start = kZeros;
      microkernel_->run_plain(rows, half, part);
      j = first + width;
    }
  }

  // Multiplies by the panels of |columns|; the result is added to C unless |from_zero|. Of what is
  // behind the last column some may be written.
  [[gnu::noinline]] void multiply(int64_t rows, int64_t columns, int64_t depth,
                                  const Chunks& chunks, bool from_zero, PanelMicrokernel::Blocks p,
                                  bool pairs) const {
    const PanelMicrokernel& microkernel = pairs ? *pair_microkernel_ : *microkernel_;
    constexpr float kZeros[PanelMicrokernel::kMostPanels * kPanel] = {};
    p.offsets = chunks.offsets.data();
    p.chain = 1;
    p.c_panel = kPanel;
    const PanelMicrokernel::RowBlocks row_blocks = microkernel.row_blocks(rows);
    const int64_t together = microkernel.panels(row_blocks.first());
    for (; columns > 0;
         columns -= together * kPanel, p.b += together * p.b_panel, p.c += together * kPanel) {
      const bool half = columns <= kPanel / 2 && microkernel.half_rows() > 0;
      const int64_t panels = std::min(ceil_div(columns, kPanel), together);
      PanelMicrokernel::Blocks part = p;
      for (int64_t k = 0; k < depth;) {
        part.depth = std::min(chunks.size, depth - k);
        part.chunks = (depth - k) / part.depth;
        part.start = from_zero && k == 0 ? kZeros : nullptr;
        PanelMicrokernel::Blocks chunk = part;
        if (half)
          microkernel.run_half(PanelMicrokernel::row_blocks(rows, microkernel.half_rows()), chunk);
        else
          microkernel.run(row_blocks, panels, chunk);
        part.a += part.depth * part.chunks;
        part.b += part.depth * part.chunks * kPanel;
        k += part.depth * part.chunks;
      }
    }
  }

  // Scores [begin, end) of a row are of keys that it sees.
  struct Weighed {
    int64_t begin, end;
    bool at_once;  // by LineMath::weigh
  };
  // Prepares a row's scores, which begin with the first key of |p|, for LineMath::weigh, or does as
  // much itself where that cannot.
  Weighed add_mask_to(const Run& run, const Reach& reach, const Task& t, const RowBlock& p,
                      int64_t r, LineMath::Scores& line, float* scratch) const {
    const Row& row = t.rows[static_cast<size_t>(p.row + r)];
    const int64_t count = p.end - p.begin;
    float* const x = line.x;
    int64_t begin = std::clamp<int64_t>(row.seen.begin - p.begin, 0, count);
    int64_t end = std::clamp<int64_t>(row.seen.end - p.begin, begin, count);
    if (f_.softcap > 0) {
      const float cap = static_cast<float>(f_.softcap);
      for (int64_t i = begin; i < end; ++i) x[i] = cap * std::tanh(x[i] / cap);
    }
    const bool at_once = math_.weigh != nullptr && begin == 0;
    line.mask = nullptr;
    if (f_.mask.input != PFRT_NO_INDEX) {
      const AttentionMask& m = f_.mask;
      end = std::clamp(m.columns - p.begin, begin, end);
      if (at_once && !t.wild && m.dtype == PFRT_DTYPE_FLOAT32 && m.column == 1) {
        line.mask = run.input<float>(m.input) + m.at(t.batch, row.head, row.query) + p.begin;
      } else {
        const ScoreRow at{t.batch, row.head, row.query, p.begin + begin};
        if (!add_mask(run, m, math_, at, x + begin, end - begin, scratch + mask_at_)) end = begin;
      }
    }
    if (t.wild) add_hiding(f_.visible(reach, row.query), p.begin, x, end);
    line.n = at_once ? end : 0;
    line.most = row.most, line.sum = 0;
    return {begin, end, at_once && end > 0};
  }

  // Turns scores to weights. Earlier sums, |y| among them, are scaled down to the largest score so
  // far.
  void weigh(Task& t, const RowBlock& p, int64_t r, const LineMath::Scores& line,
             const Weighed& seen, float* scratch) const {
    Row& row = t.rows[static_cast<size_t>(p.row + r)];
    const int64_t count = p.end - p.begin, begin = seen.begin;
    int64_t end = seen.end;
    float* const x = line.x;
    float most = line.most;
    double sum = line.sum;
    if (seen.at_once && most != kNothing) {
      row.sees = true;
    } else {
      if (line.mask != nullptr && math_.greatest(line.mask, end, kNothing) == kNothing) end = begin;
      row.sees |= begin < end;
      most = math_.greatest(x + begin, end - begin, row.most);
      if (most == kNothing) end = begin;
      sum = math_.exp(x + begin, x + begin, end - begin, most);
    }
    std::fill(x, x + begin, 0.0f);
    std::fill(x + end, x + count, 0.0f);
    if (begin == end) return;
    if (most != row.most && row.sum != 0) {
      const float factor = std::exp(row.most - most);
      float* const y = scratch + y_at_ + (p.row + r) * v_width_;
      row.sum *= static_cast<double>(factor);
      if (!t.brief) math_.scale(y, y, v_width_, static_cast<double>(factor));
    }
    row.most = most;
    row.sum += sum;
    pair_row(t.pairs, x, count);
  }

  AttentionForm f_;
  LineMath math_ = LineMath::here();
  const PanelMicrokernel* microkernel_ = PanelMicrokernel::get();
  const PanelMicrokernel* pair_microkernel_ = PanelMicrokernel::get_bf16_dot();  // or null
  int64_t group_ = 1, all_rows_ = 0, together_ = 1;
  int64_t rows_ = 1;  // of a task, at most
  bool joined_ = false, brief_ = false;
  Chunks q_chunks_, v_chunks_{kChain}, pair_chunks_{kChain / 2};
  int64_t v_width_ = 0, s_row_ = 0;
  int64_t k_at_ = 0, v_at_ = 0, scores_at_ = 0, y_at_ = 0, mask_at_ = 0;  // in the scratch
  uint64_t bytes_ = 0;
};

}  // namespace

bool attention_on_panels(const AttentionForm& f) {
  const auto fits = [](int64_t head) { return head >= 1 && head <= kMostHead; };
  if (f.scores_wanted || f.precision != PFRT_DTYPE_UNSET || PanelMicrokernel::get() == nullptr ||
      split_matmul_usable() || !fits(f.head) || !fits(f.v_head))
    return false;
  // Dimensions of empty tensors may be anything.
  if (f.batch < 1 || f.kv_heads < 1 || f.q_heads < f.kv_heads || f.q_len < 1 || f.total < 1)
    return false;
  return f.q_heads / f.kv_heads * f.q_len >= kLeastRows;
}

Kernel panel_attention_kernel(AttentionForm form) {
  Kernel kernel;
  kernel.name = "attention_panels";
  kernel.flops = attention_flops(form);
  PanelAttend attend(std::move(form));
  kernel.scratch_bytes = attend.scratch_bytes();
  kernel.run = std::move(attend);
  return kernel;
}

}  // namespace pfrt::cpu
