// SPDX-License-Identifier: Apache-2.0
//
// Attention. Keys and values lie along the axis that the call's pieces are of, a head's columns in
// one PE: a score is one chain of fused multiply-adds over the head, of a query that is scaled
// before; maxima and sums of exponentials are joined by the tree, and so are the weighted values
// that each piece adds up in the order of its keys.
#include <algorithm>

#include "providers/wse/number/tile.h"
#include "providers/wse/operators/families.h"
#include "providers/wse/operators/heads.h"
#include "providers/wse/operators/rounding.h"
#include "providers/wse/operators/tensor.h"
#include "providers/wse/operators/walk.h"

namespace pfrt::wse {
namespace attention {
namespace {

constexpr int64_t kQueries = 32;  // queries that are worked on at a time, at most
constexpr int32_t kOneBlock = 0;  // a tile's depth in order

// Keys or values of a head: those of the past, then the new ones.
struct Cache {
  const float* past = nullptr;
  const float* fresh = nullptr;
  Heads past_at, fresh_at;

  const float* row(int64_t b, int64_t h, int64_t r) const {
    if (r < past_at.positions) return past + past_at.at(b, h, r);
    return fresh + fresh_at.at(b, h, r - past_at.positions);
  }
};

struct Form {
  int64_t batch = 0, past = 0, total = 0;
  Heads q, y;
  Cache k, v;
  float scale = 1, softcap = 0;
  bool causal = false;
  Dims mask_strides;         // of the scores' dimensions; empty: no mask
  int64_t mask_columns = 0;  // keys from there on are hidden

  int64_t head() const { return q.columns; }
  int64_t value_columns() const { return y.columns; }
  // Keys that a query can see, but for the mask.
  int64_t seen(int64_t query) const {
    const int64_t end = causal ? std::min(total, past + query + 1) : total;
    return mask_strides.empty() ? end : std::min(end, mask_columns);
  }
};

// ------------------------------------------------------------------------------------- reading

bool read_cache(const Call& call, uint32_t fresh, uint32_t past, int64_t heads, Cache* cache,
                std::string* why) {
  const Dims& dims = call.in[fresh].dims;
  if (!read_heads(dims, heads, &cache->fresh_at))
    return fault(call, why, "input ", fresh, " of dimensions ", text_of(dims), " for ", heads,
                 " heads");
  cache->fresh = call.in[fresh].as();
  const Heads& at = cache->fresh_at;
  cache->past_at = {at.count, 0, at.columns, 0, 0, 0};
  if (!has_input(call, past)) return true;
  const Dims& before = call.in[past].dims;
  if (before.size() != 4 || before[0] != dims[0] || before[1] != at.count ||
      before[3] != at.columns)
    return fault(call, why, "a past of dimensions ", text_of(before), " for ", text_of(dims));
  read_heads(before, 0, &cache->past_at);
  cache->past = call.in[past].as();
  return true;
}

// The mask broadcasts to the scores but for its last axis, which may be shorter.
bool read_mask(const Call& call, Form* f, std::string* why) {
  if (!has_input(call, 3)) return true;
  const Dims& dims = call.in[3].dims;
  Dims scores = {f->batch, f->q.count, f->q.positions, f->total};
  const bool shorter = !dims.empty() && dims.back() <= f->total;
  if (shorter) scores.back() = f->mask_columns = dims.back();
  if (!shorter || !broadcasts(dims, scores))
    return fault(call, why, "a mask of dimensions ", text_of(dims), " for scores of ",
                 text_of(scores));
  f->mask_strides = broadcast_strides(dims, scores);
  return true;
}

bool read_attributes(const Call& call, Form* f) {
  const auto columns = static_cast<float>(std::max<int64_t>(f->head(), 1));
  f->scale = rounded_attr(call, "scale", 1 / std::sqrt(columns));
  f->softcap = rounded_attr(call, "softcap", 0);
  f->causal = call.node.attr_int("is_causal", 0) != 0;
  return true;
}

bool read_form(const Call& call, Form* f, std::string* why) {
  if (!sound(call, 3, why)) return false;
  const Dims &q = call.in[0].dims, &k = call.in[1].dims, &v = call.in[2].dims;
  const int64_t q_heads = call.node.attr_int("q_num_heads", 0),
                kv_heads = call.node.attr_int("kv_num_heads", 0);
  if (!read_heads(q, q_heads, &f->q))
    return fault(call, why, "a query of dimensions ", text_of(q), " for ", q_heads, " heads");
  if (!read_cache(call, 1, 4, kv_heads, &f->k, why) ||
      !read_cache(call, 2, 5, kv_heads, &f->v, why))
    return false;
  f->batch = q[0];
  const Heads &key = f->k.fresh_at, &value = f->v.fresh_at;
  f->past = f->k.past_at.positions;
  f->total = f->past + key.positions;
  const bool agree = k.size() == q.size() && v.size() == q.size() && k[0] == q[0] && v[0] == q[0] &&
                     key.columns == f->q.columns && key.count == value.count &&
                     key.positions == value.positions && f->past == f->v.past_at.positions;
  if (!agree || (key.count == 0 ? f->q.count != 0 : f->q.count % key.count != 0))
    return fault(call, why, "query ", text_of(q), ", key ", text_of(k), " and value ", text_of(v),
                 " do not agree");
  const Dims y = q.size() == 4 ? Dims{q[0], f->q.count, f->q.positions, value.columns}
                               : Dims{q[0], f->q.positions, f->q.count * value.columns};
  if (!output_has_dims(call, 0, y, why) || !read_mask(call, f, why)) return false;
  read_heads(y, f->q.count, &f->y);
  return read_attributes(call, f);
}

// Past and new keys, or values, one after the other.
bool make_present(const Call& call, uint32_t output, const Form& f, const Cache& from,
                  std::string* why) {
  if (!wants(call, output)) return true;
  const Heads& at = from.fresh_at;
  if (!output_has_dims(call, output, {f.batch, at.count, f.total, at.columns}, why)) return false;
  float* to = call.out[output].as();
  for (int64_t b = 0; b < f.batch; ++b)
    for (int64_t h = 0; h < at.count; ++h)
      for (int64_t r = 0; r < f.total; ++r) to = std::copy_n(from.row(b, h, r), at.columns, to);
  round_output(call, call.out[output]);
  return true;
}

// ----------------------------------------------------------------------------------- computing

int64_t in_lanes(int64_t columns) { return (columns + kTileLanes - 1) / kTileLanes * kTileLanes; }

std::vector<float> floats(int64_t rows, int64_t columns) {
  return std::vector<float>(static_cast<size_t>(rows * columns), 0.0F);
}

// Memory for the queries of one block, and keys and values of one head.
class Worker {
 public:
  Worker(const Call& call, const Form& f)
      : call_(call),
        f_(f),
        join_(call),
        score_width_(in_lanes(f.total)),
        value_width_(in_lanes(f.value_columns())),
        most_(std::min(kQueries, f.q.positions)),
        queries_(floats(most_, f.head())),
        keys_(floats(f.head(), score_width_)),
        values_(floats(f.total, value_width_)),
        scores_(floats(most_, score_width_)),
        sums_(floats(join_.parts() * most_, value_width_)),
        column_(static_cast<size_t>(join_.parts())) {}

  // Rounds keys and values of a head, keys as columns.
  template <typename R>
  void load(R round, int64_t b, int64_t h) {
    for (int64_t r = 0; r < f_.total; ++r) {
      const float *const k = f_.k.row(b, h, r), *const v = f_.v.row(b, h, r);
      for (int64_t c = 0; c < f_.head(); ++c) at(keys_, c * score_width_ + r) = round(k[c]);
      for (int64_t c = 0; c < f_.value_columns(); ++c)
        at(values_, r * value_width_ + c) = round(v[c]);
    }
  }

  // Queries [begin, begin + count) of a head.
  template <typename R>
  void attend(R round, int64_t b, int64_t h, int64_t begin, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const float* const q = call_.in[0].as() + f_.q.at(b, h, begin + i);
      for (int64_t c = 0; c < f_.head(); ++c)
        at(queries_, i * f_.head() + c) = round(round(q[c]) * f_.scale);
    }
    std::fill_n(scores_.begin(), count * score_width_, 0.0F);
    multiply(call_.arithmetic, {.a = queries_.data(),
                                .a_stride = f_.head(),
                                .b = keys_.data(),
                                .c = scores_.data(),
                                .rows = count,
                                .width = score_width_,
                                .depth = f_.head(),
                                .order = &kOneBlock,
                                .blocks = 1,
                                .block = f_.head()});
    for (int64_t i = 0; i < count; ++i)
      weigh(round, b, h, begin + i, scores_.data() + i * score_width_);
    add_values(count);
    for (int64_t i = 0; i < count; ++i) store(b, h, begin + i, i);
  }

 private:
  static float& at(std::vector<float>& in, int64_t i) { return in[static_cast<size_t>(i)]; }

  // Scores of a query become the weights of its values.
  template <typename R>
  void weigh(R round, int64_t b, int64_t h, int64_t query, float* scores) {
    const int64_t seen = f_.seen(query);
    if (f_.softcap != 0)
      for (int64_t r = 0; r < seen; ++r) {
        const float part = round.divide(scores[r], f_.softcap);
        scores[r] = round(round.wide(std::tanh(static_cast<double>(part))) * f_.softcap);
      }
    if (!f_.mask_strides.empty()) add_mask(round, b, h, query, seen, scores);
    std::fill(scores + seen, scores + f_.total, -INFINITY);
    // A query that sees nothing takes nothing, as the operator is defined.
    if (std::all_of(scores, scores + f_.total, [](float x) { return x == -INFINITY; }))
      return std::fill(scores, scores + f_.total, 0.0F);
    const std::span<float> row(scores, static_cast<size_t>(f_.total));
    const float most = join_(row, Join::kMax);
    for (float& x : row) x = round.exp(round(x - most));
    const float share = round.divide(1, join_(row, Join::kAdd));
    for (float& x : row) x = round(x * share);
  }

  template <typename R>
  void add_mask(R round, int64_t b, int64_t h, int64_t query, int64_t seen, float* scores) const {
    const Dims& s = f_.mask_strides;
    const Tensor& mask = call_.in[3];
    const int64_t first = b * s[0] + h * s[1] + query * s[2];
    if (mask.dtype == PFRT_DTYPE_BOOL) {
      for (int64_t r = 0; r < seen; ++r)
        if (mask.as<uint8_t>()[first + r * s[3]] == 0) scores[r] = -INFINITY;
    } else {
      for (int64_t r = 0; r < seen; ++r)
        scores[r] = round(scores[r] + round(mask.as()[first + r * s[3]]));
    }
  }

  // Each piece's weighted values, then the tree over pieces; what comes out is piece 0's.
  void add_values(int64_t count) {
    const int64_t parts = join_.parts(), piece = (f_.total + parts - 1) / parts;
    const int64_t block = count * value_width_;
    std::fill_n(sums_.begin(), parts * block, 0.0F);
    for (int64_t p = 0; p < parts && p * piece < f_.total; ++p) {
      const int64_t begin = p * piece, depth = std::min(piece, f_.total - begin);
      multiply(call_.arithmetic, {.a = scores_.data() + begin,
                                  .a_stride = score_width_,
                                  .b = values_.data() + begin * value_width_,
                                  .c = sums_.data() + p * block,
                                  .rows = count,
                                  .width = value_width_,
                                  .depth = depth,
                                  .order = &kOneBlock,
                                  .blocks = 1,
                                  .block = depth});
    }
    if (parts == 1) return;
    for (int64_t i = 0; i < block; ++i) {
      for (int64_t p = 0; p < parts; ++p) at(column_, p) = at(sums_, p * block + i);
      at(sums_, i) = join_.tree(column_, Join::kAdd);
    }
  }

  void store(int64_t b, int64_t h, int64_t query, int64_t i) const {
    std::copy_n(sums_.data() + i * value_width_, f_.value_columns(),
                call_.out[0].as() + f_.y.at(b, h, query));
  }

  const Call& call_;
  const Form& f_;
  AxisJoin join_;
  int64_t score_width_, value_width_, most_;
  std::vector<float> queries_, keys_, values_, scores_, sums_, column_;
};

bool run(const Call& call, std::string* why) {
  Form f;
  if (!read_form(call, &f, why) || !make_present(call, 1, f, f.k, why) ||
      !make_present(call, 2, f, f.v, why))
    return false;
  if (call.out[0].count() == 0) return true;
  Worker worker(call, f);
  const int64_t kv_heads = f.k.fresh_at.count, group = f.q.count / kv_heads;
  with_rounding(call.arithmetic, [&](auto round) {
    for (int64_t b = 0; b < f.batch; ++b)
      for (int64_t h = 0; h < kv_heads; ++h) {
        worker.load(round, b, h);
        for (int64_t q = h * group; q < (h + 1) * group; ++q)
          for (int64_t i = 0; i < f.q.positions; i += kQueries)
            worker.attend(round, b, q, i, std::min(kQueries, f.q.positions - i));
      }
  });
  return true;
}

// ------------------------------------------------------------------------------------ refusals

std::string refuse_attributes(const SnapshotNode& node) {
  for (const std::string_view name : {"left_window_size", "right_window_size"})
    if (node.attr_int(name, -1) != -1)
      return message("Attention with ", name, " ", node.attr_int(name, -1),
                     ": queries that see all keys, or those before, are taken here");
  for (const std::string_view name : {"zero_nan_weights", "masking"})
    if (node.attr_int(name, 0) != 0 || !node.attr_string(name, "").empty())
      return message("Attention with ", name, ": plain masks are taken here");
  const int64_t precision = node.attr_int("softmax_precision", PFRT_DTYPE_UNSET);
  if (precision != PFRT_DTYPE_UNSET && precision != PFRT_DTYPE_FLOAT32)
    return message("Attention with softmax_precision ", precision,
                   ": the softmax has the precision of all arithmetic here");
  return {};
}

std::string refuse(const SnapshotNode& node) {
  if (node.has_output(3))
    return "Attention with an output of scores: the result and present keys and values are made "
           "here";
  if (node.has_input(6))
    return "Attention with nonpad_kv_seqlen: all keys are in use here, or a mask hides some";
  for (uint32_t i = 0; i < 3; ++i)
    if (node.input_rank(i) != node.input_rank(0) || node.input_rank(i) < 3 ||
        node.input_rank(i) > 4)
      return message("Attention of an input of rank ", node.input_rank(i),
                     ": query, key and value all of rank 3 or all of rank 4 are taken here");
  const bool flat = node.input_rank(0) == 3;
  if (flat && (node.attr_int("q_num_heads", 0) < 1 || node.attr_int("kv_num_heads", 0) < 1))
    return "Attention of rank 3 without q_num_heads and kv_num_heads: 1 or more are taken here";
  for (const uint32_t i : {0u, 1u, 2u, 4u, 5u})
    if (std::string why = refuse_unlike_output(node, i, kFloat); !why.empty()) return why;
  for (const uint32_t i : {1u, 2u})
    if (std::string why = refuse_output(node, i, kFloat); !why.empty()) return why;
  return first_of({refuse_input(node, 3, kFloat | kBool), refuse_attributes(node)});
}

// Work of each score; the products are of another kind.
constexpr Work kWork{.vector_operations = 3, .exponentials = 1, .sums = 3, .all_reduces = 3};

constexpr Operator kOperators[] = {
    {"", "Attention", Family::kAttention, kWork, refuse, run},
};

}  // namespace
}  // namespace attention

std::span<const Operator> attention_operators() { return attention::kOperators; }

}  // namespace pfrt::wse
