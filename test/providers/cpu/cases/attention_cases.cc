// SPDX-License-Identifier: Apache-2.0
//
// Attention and its relatives: every score, mask and weight is computed by itself, in double.
#include <algorithm>
#include <cmath>
#include <limits>

#include "test/providers/cpu/cases/cases.h"

namespace pfrt::test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// Dimensions of an attention; its tensors are [batch, head, position, column].
struct Shape {
  int64_t batch, q_heads, kv_heads, q_len, keys, head, v_head;
};

struct Rules {
  double scale = 1, softcap = 0;
  bool causal = false;
  int64_t left = -1, right = -1;
  Dims offset, limit;  // position of the first query, number of keys; by batch
  Values sinks;        // by head; empty: none
};

struct Result {
  Values y, raw, capped, biased, weights;
};

double& at(Values& v, const Dims& dims, const Dims& index) { return v[position(index, dims)]; }
double at(const Values& v, const Dims& dims, const Dims& index) { return v[position(index, dims)]; }
// The row of |v| that begins at |index|.
template <typename V>
auto row_at(V& v, const Dims& dims, const Dims& index) {
  return v.begin() + static_cast<int64_t>(position(index, dims));
}

// |q|, |k| and |v| are dense, in the order of Shape. |bias| is added to the scores and has their
// shape.
Result attend(const Shape& s, const Rules& rules, const Values& q, const Values& k, const Values& v,
              const Values& bias) {
  const Dims qd{s.batch, s.q_heads, s.q_len, s.head}, kd{s.batch, s.kv_heads, s.keys, s.head},
      vd{s.batch, s.kv_heads, s.keys, s.v_head}, yd{s.batch, s.q_heads, s.q_len, s.v_head},
      sd{s.batch, s.q_heads, s.q_len, s.keys};
  Result out;
  out.y.assign(static_cast<size_t>(count(yd)), 0);
  for (Values* scores : {&out.raw, &out.capped, &out.biased, &out.weights})
    scores->assign(static_cast<size_t>(count(sd)), 0);
  for_each_index({s.batch, s.q_heads, s.q_len}, [&](const Dims& row) {
    const int64_t b = row[0], h = row[1], i = row[2], g = h / (s.q_heads / s.kv_heads);
    const auto batch = static_cast<size_t>(b);
    double most = rules.sinks.empty() ? -kInf : rules.sinks[static_cast<size_t>(h)], sum = 0;
    bool sees = false;
    const auto query = row_at(q, qd, {b, h, i, 0}), biases = row_at(bias, sd, {b, h, i, 0});
    const auto raw = row_at(out.raw, sd, {b, h, i, 0}),
               capped = row_at(out.capped, sd, {b, h, i, 0}),
               biased = row_at(out.biased, sd, {b, h, i, 0}),
               weights = row_at(out.weights, sd, {b, h, i, 0}), y = row_at(out.y, yd, {b, h, i, 0});
    for (int64_t j = 0; j < s.keys; ++j) {
      const auto key = row_at(k, kd, {b, g, j, 0});
      double x = 0;
      for (int64_t c = 0; c < s.head; ++c) x += query[c] * key[c];
      x *= rules.scale;
      raw[j] = x;
      if (rules.softcap > 0) x = rules.softcap * std::tanh(x / rules.softcap);
      capped[j] = x;
      const int64_t p = rules.offset[batch] + i;
      const bool hidden = j >= rules.limit[batch] || (rules.causal && j > p) ||
                          (rules.left >= 0 && j < p - rules.left) ||
                          (rules.right >= 0 && j > p + rules.right);
      const double added = hidden ? -kInf : biases[j];
      sees |= added != -kInf;
      x = added == -kInf ? -kInf : x + added;
      biased[j] = x;
      most = std::max(most, x);
    }
    if (!sees) return;
    for (int64_t j = 0; j < s.keys; ++j) sum += weights[j] = std::exp(biased[j] - most);
    if (!rules.sinks.empty()) sum += std::exp(rules.sinks[static_cast<size_t>(h)] - most);
    for (int64_t j = 0; j < s.keys; ++j) {
      const double weight = weights[j] /= sum;
      const auto value = row_at(v, vd, {b, g, j, 0});
      for (int64_t c = 0; c < s.v_head; ++c) y[c] += weight * value[c];
    }
  });
  return out;
}

// Turns [batch, head, position, column] into [batch, position, head x column].
Values flat(const Values& in, const Dims& dims) {
  Values out;
  for_each_index({dims[0], dims[2], dims[1], dims[3]}, [&](const Dims& i) {
    out.push_back(at(in, dims, {i[0], i[2], i[1], i[3]}));
  });
  return out;
}

Data data_of(pfrt_dtype dtype, const Dims& dims, const Values& values, bool is_flat) {
  if (!is_flat) return {dtype, dims, values, false};
  return {dtype, {dims[0], dims[2], dims[1] * dims[3]}, flat(values, dims), false};
}

// Joins the rows of |past| and |fresh|, for each head.
Values joined(const Data& past, const Data& fresh) {
  Values out;
  const auto take = [&](const Data& from, int64_t head) {
    const int64_t n = from.dims[2] * from.dims[3];
    out.insert(out.end(), from.values.begin() + head * n, from.values.begin() + (head + 1) * n);
  };
  for (int64_t head = 0; head < fresh.dims[0] * fresh.dims[1]; ++head)
    take(past, head), take(fresh, head);
  return out;
}

// Makes a mask that broadcasts to |scores|, and the numbers that it adds.
Data random_mask(Random& r, pfrt_dtype dtype, const Dims& scores, Values* bias) {
  const size_t rank = static_cast<size_t>(r.from_to(1, 4));
  Dims dims(scores.end() - static_cast<int64_t>(rank), scores.end());
  for (size_t i = 0; i + 1 < rank; ++i)
    if (r.once_in(2)) dims[i] = 1;
  if (dims.back() > 1 && r.once_in(3)) dims.back() = r.from_to(1, dims.back());
  const pfrt_dtype types[] = {dtype, dtype, PFRT_DTYPE_BOOL, PFRT_DTYPE_BOOL, PFRT_DTYPE_INT8};
  Data mask = r.data(types[r.below(5)], dims, -2, 2);
  if (mask.dtype == dtype)
    for (double& v : mask.values)
      if (r.once_in(6)) v = -kInf;
  const size_t skipped = 4 - rank;
  bias->clear();
  for_each_index(scores, [&](const Dims& index) {
    if (index[3] >= dims.back()) return bias->push_back(-kInf);
    const Dims own(index.begin() + static_cast<int64_t>(skipped), index.end());
    // position() would broadcast a last dimension of 1 to any key.
    const double v = mask.values[position(own, dims)];
    bias->push_back(mask.dtype != PFRT_DTYPE_BOOL ? v : v != 0 ? 0 : -kInf);
  });
  return mask;
}

void set_tolerance(Case& c, pfrt_dtype dtype, const Shape& s) {
  c.relative = 4;
  c.absolute = 60 * step_error(dtype) * static_cast<double>(s.head + s.keys + 8);
}

Shape random_shape(Random& r, int64_t size) {
  Shape s{};
  const bool large = size >= kLarge;
  s.batch = r.from_to(1, 2), s.kv_heads = r.from_to(1, 3);
  s.q_heads = s.kv_heads * r.from_to(1, 3);
  const bool long_one = size >= kVeryLarge;
  s.q_len = long_one      ? r.from_to(30, 150)
            : large       ? 70
            : size > 1000 ? r.from_to(30, 40)
                          : r.from_to(r.once_in(12) ? 0 : 1, 9);
  s.keys = long_one ? r.from_to(100, 600) : large ? 80 : r.from_to(r.once_in(12) ? 0 : 1, 14);
  s.head = r.from_to(r.once_in(12) ? 0 : 1, 9), s.v_head = r.from_to(r.once_in(12) ? 0 : 1, 9);
  if (!large && r.once_in(6)) {  // windows of an image
    s.q_len = r.from_to(5, 70), s.keys = r.from_to(8, 64);
    s.head = r.from_to(1, 40), s.v_head = 8 * r.from_to(1, 5);
  }
  return s;
}

Case attention_case(Random& r, pfrt_dtype dtype, int64_t size) {
  Shape s = random_shape(r, size);
  const bool is_flat = r.once_in(2);
  const int64_t fresh = s.keys, past = r.once_in(3) ? r.from_to(0, 6) : -1;
  s.keys += std::max<int64_t>(past, 0);
  const Dims kd{s.batch, s.kv_heads, fresh, s.head}, vd{s.batch, s.kv_heads, fresh, s.v_head},
      qd{s.batch, s.q_heads, s.q_len, s.head}, yd{s.batch, s.q_heads, s.q_len, s.v_head},
      sd{s.batch, s.q_heads, s.q_len, s.keys};
  const Data q = r.data(dtype, qd, -1, 1);
  Data k = r.data(dtype, kd, -1, 1), v = r.data(dtype, vd, -1, 1);
  Case c;
  c.inputs = {data_of(dtype, qd, q.values, is_flat), data_of(dtype, kd, k.values, is_flat),
              data_of(dtype, vd, v.values, is_flat)};
  c.inputs.resize(7);
  Rules rules;
  rules.scale = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(s.head, 1)));
  if (r.once_in(3)) {
    c.attrs.push_back({"scale", 0.75f});
    rules.scale = 0.75;
  }
  if (r.once_in(3)) {
    c.attrs.push_back({"softcap", 0.5f});
    rules.softcap = 0.5;
  }
  const int64_t window = size >= kVeryLarge ? 500 : 5;
  if (r.once_in(3)) c.attrs.push_back({"is_causal", int64_t{rules.causal = true}});
  if (r.once_in(4)) c.attrs.push_back({"left_window_size", rules.left = r.below(window)});
  if (r.once_in(4)) c.attrs.push_back({"right_window_size", rules.right = r.below(window)});
  const bool rounds = r.once_in(5);
  if (rounds) {
    const int64_t types[] = {PFRT_DTYPE_FLOAT32, PFRT_DTYPE_FLOAT64, PFRT_DTYPE_FLOAT16};
    c.attrs.push_back({"softmax_precision", types[r.below(3)]});
  }
  if (is_flat) {
    c.attrs.push_back({"q_num_heads", s.q_heads});
    c.attrs.push_back({"kv_num_heads", s.kv_heads});
  }
  rules.offset.assign(static_cast<size_t>(s.batch), std::max<int64_t>(past, 0));
  rules.limit.assign(static_cast<size_t>(s.batch), s.keys);
  c.outputs.resize(4);
  if (past >= 0) {
    c.inputs[4] = r.data(dtype, {s.batch, s.kv_heads, past, s.head}, -1, 1);
    c.inputs[5] = r.data(dtype, {s.batch, s.kv_heads, past, s.v_head}, -1, 1);
    k.values = joined(c.inputs[4], k), v.values = joined(c.inputs[5], v);
  } else if (r.once_in(3)) {
    c.inputs[6] = {PFRT_DTYPE_INT64, {s.batch}, {}, false};
    for (size_t b = 0; b < rules.limit.size(); ++b) {
      rules.limit[b] = r.from_to(0, s.keys);
      rules.offset[b] = rules.limit[b] - s.q_len;
      c.inputs[6].values.push_back(static_cast<double>(rules.limit[b]));
    }
  }
  if (past >= 0 || (c.inputs[6].dtype == 0 && r.once_in(3))) {
    c.outputs[1] = expected(dtype, {s.batch, s.kv_heads, s.keys, s.head}, k.values);
    c.outputs[2] = expected(dtype, {s.batch, s.kv_heads, s.keys, s.v_head}, v.values);
  }
  Values bias(static_cast<size_t>(count(sd)), 0);
  if (r.once_in(2) && s.keys > 0) c.inputs[3] = random_mask(r, dtype, sd, &bias);
  const Result out = attend(s, rules, q.values, k.values, v.values, bias);
  c.outputs[0] = data_of(dtype, yd, out.y, is_flat);
  if (r.once_in(3)) {
    const int64_t mode = r.below(4);
    const Values* const shown[] = {&out.raw, &out.capped, &out.biased, &out.weights};
    c.attrs.push_back({"qk_matmul_output_mode", mode});
    c.outputs[3] = expected(dtype, sd, *shown[mode]);
  }
  set_tolerance(c, dtype, s);
  if (rounds) c.absolute = std::max(c.absolute, 0.02);
  return c;
}

// A GroupQueryAttention with a cache that has room; each batch has a past of its own.
Case group_query_case(Random& r, pfrt_dtype dtype, int64_t size) {
  Shape s = random_shape(r, size);
  s.q_len = std::max<int64_t>(s.q_len, 1), s.head = s.v_head = std::max<int64_t>(s.head, 1);
  const int64_t room = r.from_to(0, size >= kVeryLarge ? 600 : 12);
  const bool prompt = room == 0 || r.once_in(3);
  Rules rules;
  int64_t total = s.q_len;
  for (int64_t b = 0; b < s.batch; ++b) {
    rules.offset.push_back(prompt ? 0 : r.from_to(b == 0 ? 1 : 0, room));
    rules.limit.push_back(rules.offset.back() + s.q_len);
    total = std::max(total, rules.limit.back());
  }
  s.keys = std::max(room, total);
  const Dims kd{s.batch, s.kv_heads, s.q_len, s.head}, qd{s.batch, s.q_heads, s.q_len, s.head},
      pd{s.batch, s.kv_heads, room, s.head}, cd{s.batch, s.kv_heads, s.keys, s.head};
  const Data q = r.data(dtype, qd, -1, 1), k = r.data(dtype, kd, -1, 1),
             v = r.data(dtype, kd, -1, 1);
  Data past[] = {r.data(dtype, pd, -1, 1), r.data(dtype, pd, -1, 1)};
  Case c;
  c.inputs = {data_of(dtype, qd, q.values, true), data_of(dtype, kd, k.values, true),
              data_of(dtype, kd, v.values, true)};
  c.inputs.resize(12);
  if (room > 0) c.inputs[3] = past[0], c.inputs[4] = past[1];
  c.inputs[5] = {PFRT_DTYPE_INT32, {s.batch}, {}, false};
  for (int64_t keys : rules.limit) c.inputs[5].values.push_back(static_cast<double>(keys - 1));
  c.inputs[6] = {PFRT_DTYPE_INT32, {}, {static_cast<double>(total)}, false};
  Values cache[2];
  for (int which : {0, 1}) {
    cache[which].assign(static_cast<size_t>(count(cd)), 0);
    for_each_index(cd, [&](const Dims& i) {
      const int64_t offset = rules.offset[static_cast<size_t>(i[0])], row = i[2] - offset;
      if (row < 0)
        at(cache[which], cd, i) = at(past[which].values, pd, i);
      else if (row < s.q_len)
        at(cache[which], cd, i) = at(which == 0 ? k.values : v.values, kd, {i[0], i[1], row, i[3]});
    });
    c.outputs.push_back(expected(dtype, cd, cache[which]));
  }
  rules.causal = true;
  rules.scale = 1 / std::sqrt(static_cast<double>(s.head));
  c.attrs = {{"num_heads", s.q_heads}, {"kv_num_heads", s.kv_heads}};
  if (r.once_in(3)) {
    c.attrs.push_back({"softcap", 0.5f});
    rules.softcap = 0.5;
  }
  if (r.once_in(3)) {
    rules.left = r.below(size >= kVeryLarge ? 500 : 4);
    c.attrs.push_back({"local_window_size", rules.left + 1});
  }
  if (r.once_in(4)) {
    c.attrs.push_back({"smooth_softmax", int64_t{1}});
    rules.sinks.assign(static_cast<size_t>(s.q_heads), 0);
  } else if (r.once_in(3)) {
    c.inputs[11] = r.data(dtype, {s.q_heads}, -1, 1);
    rules.sinks = c.inputs[11].values;
  }
  const Dims sd{s.batch, s.q_heads, s.q_len, s.keys};
  Values bias(static_cast<size_t>(count(sd)), 0);
  if (r.once_in(3)) {
    c.inputs[10] = r.data(dtype, {1, s.q_heads, s.q_len, total}, -1, 1);
    for_each_index(sd, [&](const Dims& i) {
      at(bias, sd, i) = i[3] < total ? at(c.inputs[10].values, c.inputs[10].dims, i) : -kInf;
    });
  }
  const Result out = attend(s, rules, q.values, cache[0], cache[1], bias);
  c.outputs.insert(c.outputs.begin(), data_of(dtype, qd, out.y, true));
  set_tolerance(c, dtype, s);
  return c;
}

Case rotary_case(Random& r, pfrt_dtype dtype, int64_t size) {
  const int64_t b = r.from_to(1, 3), n = r.from_to(1, 4), rest = r.once_in(2) ? r.below(5) : 0;
  const int64_t s = size >= kLarge ? 300 : r.from_to(r.once_in(10) ? 0 : 1, 7);
  const int64_t half = r.from_to(1, 6), d = 2 * half + rest;
  const bool is_flat = r.once_in(2), twisted = r.once_in(2), placed = r.once_in(2);
  const Dims dims{b, n, s, d};
  const Data x = r.data(dtype, dims);
  const int64_t room = r.from_to(1, 12);
  // With no positions both tables are broadcast.
  const auto table = [&] {
    if (placed) return Dims{room, half};
    return Dims{r.once_in(3) ? 1 : b, r.once_in(5) ? 1 : s, half};
  };
  Case c;
  c.inputs = {data_of(dtype, dims, x.values, is_flat), r.data(dtype, table(), -1, 1),
              r.data(dtype, table(), -1, 1)};
  if (placed) {
    c.inputs.push_back({PFRT_DTYPE_INT64, {b, s}, {}, false});
    for (int64_t i = 0; i < b * s; ++i)
      c.inputs[3].values.push_back(static_cast<double>(r.from_to(-room, room - 1)));
  }
  Values y = x.values;
  for_each_index({b, n, s, half}, [&](const Dims& i) {
    Dims angle{i[0], i[2], i[3]};
    if (placed) {
      auto row = static_cast<int64_t>(c.inputs[3].values[static_cast<size_t>(i[0] * s + i[2])]);
      angle = {row < 0 ? row + room : row, i[3]};
    }
    const double cosine = c.inputs[1].values[position(angle, c.inputs[1].dims)],
                 sine = c.inputs[2].values[position(angle, c.inputs[2].dims)];
    const Dims first{i[0], i[1], i[2], twisted ? 2 * i[3] : i[3]};
    const Dims second{i[0], i[1], i[2], twisted ? 2 * i[3] + 1 : i[3] + half};
    const double p = at(x.values, dims, first), q = at(x.values, dims, second);
    at(y, dims, first) = cosine * p - sine * q;
    at(y, dims, second) = sine * p + cosine * q;
  });
  c.outputs = {data_of(dtype, dims, y, is_flat)};
  c.attrs = {{"interleaved", int64_t{twisted}}};
  if (rest > 0) c.attrs.push_back({"rotary_embedding_dim", 2 * half});
  if (is_flat) c.attrs.push_back({"num_heads", n});
  c.relative = 4;
  c.absolute = 10 * step_error(dtype);
  return c;
}

Case tensor_scatter_case(Random& r, pfrt_dtype dtype, int64_t size) {
  Dims dims = r.dims(static_cast<size_t>(r.from_to(2, 4)), size);
  const auto rank = static_cast<int64_t>(dims.size());
  const auto axis = static_cast<size_t>(r.from_to(1, rank - 1));
  const bool circular = r.once_in(2), starts = r.once_in(2);
  const int64_t room = dims[axis], rows = r.from_to(0, room);
  Dims update = dims;
  update[axis] = rows;
  Case c;
  c.inputs = {r.data(dtype, dims), r.data(dtype, update)};
  if (starts) {
    c.inputs.push_back({PFRT_DTYPE_INT64, {dims[0]}, {}, false});
    for (int64_t b = 0; b < dims[0]; ++b)
      c.inputs[2].values.push_back(
          static_cast<double>(circular ? r.from_to(-20, 20) : r.from_to(0, room - rows)));
  }
  Values y = c.inputs[0].values;
  for_each_index(update, [&](const Dims& i) {
    Dims to = i;
    if (starts) to[axis] += static_cast<int64_t>(c.inputs[2].values[static_cast<size_t>(i[0])]);
    to[axis] = ((to[axis] % room) + room) % room;
    at(y, dims, to) = at(c.inputs[1].values, update, i);
  });
  c.outputs = {expected(dtype, dims, y)};
  c.attrs = {{"axis", static_cast<int64_t>(axis) - (r.once_in(2) ? rank : 0)},
             {"mode", std::string(circular ? "circular" : "linear")}};
  return c;
}

Case causal_conv_case(Random& r, pfrt_dtype dtype, int64_t size) {
  const Dims dims = r.dims(3, size);
  const int64_t taps = r.from_to(1, 6), kept = taps - 1, length = dims[2];
  const Dims state{dims[0], dims[1], kept}, all{dims[0], dims[1], kept + length};
  const bool bias = r.once_in(2), past = r.once_in(2), silu = r.once_in(2);
  Case c;
  c.inputs = {r.data(dtype, dims), r.data(dtype, {dims[1], 1, taps}),
              bias ? r.data(dtype, {dims[1]}) : Data{}, past ? r.data(dtype, state) : Data{}};
  Values x, y, next;
  for_each_index(all, [&](const Dims& i) {
    const bool before = i[2] < kept;
    x.push_back(before ? past ? at(c.inputs[3].values, state, i) : 0
                       : at(c.inputs[0].values, dims, {i[0], i[1], i[2] - kept}));
    if (i[2] >= length) next.push_back(x.back());
  });
  for_each_index(dims, [&](const Dims& i) {
    double v = bias ? c.inputs[2].values[static_cast<size_t>(i[1])] : 0;
    for (int64_t j = 0; j < taps; ++j)
      v += c.inputs[1].values[static_cast<size_t>(i[1] * taps + j)] *
           at(x, all, {i[0], i[1], i[2] + j});
    y.push_back(silu ? v / (1 + std::exp(-v)) : v);
  });
  c.outputs = {expected(dtype, dims, y), r.once_in(4) ? Data{} : expected(dtype, state, next)};
  c.attrs = {{"activation", std::string(silu ? "silu" : "none")}};
  c.relative = 4;
  c.absolute = 200 * step_error(dtype);
  return c;
}

Case linear_attention_case(Random& r, pfrt_dtype dtype, int64_t size) {
  const int64_t b = r.from_to(1, 3), h = r.from_to(1, 3), group = r.from_to(1, 3), q = h * group;
  const int64_t t = size >= kLarge ? 40 : r.from_to(r.once_in(10) ? 0 : 1, 7);
  const int64_t dk = r.from_to(1, 6), dv = r.from_to(1, 6);
  const bool gated = r.once_in(2), delta = r.once_in(2), past = r.once_in(2), alike = r.once_in(2),
             own_beta = r.once_in(2);
  const pfrt_dtype state_type = past && r.once_in(2) ? pfrt_dtype{PFRT_DTYPE_FLOAT32} : dtype;
  Case c;
  c.inputs = {r.data(dtype, {b, t, q * dk}, -1, 1),
              r.data(dtype, {b, t, h * dk}, -0.5, 0.5),
              r.data(dtype, {b, t, h * dv}, -1, 1),
              past ? r.data(state_type, {b, h, dk, dv}, -1, 1) : Data{},
              gated ? r.data(dtype, {b, t, alike ? h : h * dk}, -1, 0) : Data{},
              delta ? r.data(dtype, {b, t, own_beta ? h : 1}, 0, 1) : Data{}};
  const auto in = [&](size_t i, int64_t batch, int64_t step, int64_t column) {
    const Data& d = c.inputs[i];
    return d.values[static_cast<size_t>((batch * t + step) * d.dims[2] + column)];
  };
  const Dims sd{b, h, dk, dv};
  Values s = past ? c.inputs[3].values : Values(static_cast<size_t>(count(sd)), 0);
  Values y(static_cast<size_t>(b * t * q * dv));
  const double scale = 1 / std::sqrt(static_cast<double>(dk));
  for_each_index({b, h, t}, [&](const Dims& i) {
    const int64_t n = i[0], g = i[1], step = i[2];
    Values v(static_cast<size_t>(dv));
    for (int64_t m = 0; m < dv; ++m) {
      double& value = v[static_cast<size_t>(m)];
      double read = 0;
      for (int64_t d = 0; d < dk; ++d) {
        double& element = at(s, sd, {n, g, d, m});
        if (gated) element *= std::exp(in(4, n, step, alike ? g : g * dk + d));
        read += element * in(1, n, step, g * dk + d);
      }
      value = in(2, n, step, g * dv + m);
      if (delta) value = in(5, n, step, own_beta ? g : 0) * (value - read);
      for (int64_t d = 0; d < dk; ++d)
        at(s, sd, {n, g, d, m}) += in(1, n, step, g * dk + d) * value;
    }
    for_each_index({group, dv}, [&](const Dims& o) {
      const int64_t head = g * group + o[0];
      double sum = 0;
      for (int64_t d = 0; d < dk; ++d)
        sum += in(0, n, step, head * dk + d) * at(s, sd, {n, g, d, o[1]});
      y[static_cast<size_t>(((n * t + step) * q + head) * dv + o[1])] = scale * sum;
    });
  });
  c.outputs = {expected(dtype, {b, t, q * dv}, y), expected(state_type, sd, s)};
  const char* const rules[] = {"linear", "gated", "delta", "gated_delta"};
  c.attrs = {{"update_rule", std::string(rules[(delta ? 2 : 0) + (gated ? 1 : 0)])},
             {"q_num_heads", q},
             {"kv_num_heads", h}};
  c.relative = 8;
  c.absolute = 300 * step_error(dtype) * static_cast<double>(t + 1);
  return c;
}

Case matmul_nbits_case(Random& r, pfrt_dtype dtype, int64_t size) {
  const int64_t all_bits[] = {2, 4, 8}, bits = all_bits[r.below(3)], block = 16 << r.below(2);
  const bool large = size >= kLarge;
  const int64_t m = large ? 70 : r.from_to(r.once_in(10) ? 0 : 1, 9);
  const int64_t n = large ? 90 : r.from_to(1, 40), k = large ? 300 : r.from_to(1, 90);
  const int64_t blocks = (k + block - 1) / block, zero_bytes = (blocks * bits + 7) / 8;
  const int64_t zeros = r.below(3);  // none, packed, floats
  const bool grouped = r.once_in(3), bias = r.once_in(2);
  Case c;
  c.inputs = {r.data(dtype, {m, k}, -1, 1),
              r.data(PFRT_DTYPE_UINT8, {n, blocks, block * bits / 8}, 0, 255),
              r.data(dtype, {n, blocks}, -1, 1),
              zeros == 0   ? Data{}
              : zeros == 1 ? r.data(PFRT_DTYPE_UINT8, {n, zero_bytes}, 0, 255)
                           : r.data(dtype, {n, blocks}, 0, 8),
              grouped ? r.data(PFRT_DTYPE_INT32, {k}, 0, static_cast<double>(blocks - 1)) : Data{},
              bias ? r.data(dtype, {n}) : Data{}};
  // Returns element |i| of a list of bit fields.
  const auto field = [&](const Values& bytes, int64_t first_byte, int64_t i) {
    const int64_t per = 8 / bits;
    const auto byte = static_cast<int64_t>(bytes[static_cast<size_t>(first_byte + i / per)]);
    int64_t divisor = 1;
    for (int64_t skip = 0; skip < (i % per) * bits; ++skip) divisor *= 2;
    return static_cast<double>(byte / divisor % (int64_t{1} << bits));
  };
  Values y;
  for_each_index({m, n}, [&](const Dims& i) {
    double sum = bias ? c.inputs[5].values[static_cast<size_t>(i[1])] : 0;
    for (int64_t j = 0; j < k; ++j) {
      const int64_t group =
          grouped ? static_cast<int64_t>(c.inputs[4].values[static_cast<size_t>(j)]) : j / block;
      const auto which = static_cast<size_t>(i[1] * blocks + group);
      const double zero = zeros == 0   ? static_cast<double>(int64_t{1} << (bits - 1))
                          : zeros == 1 ? field(c.inputs[3].values, i[1] * zero_bytes, group)
                                       : c.inputs[3].values[which];
      const double stored = field(c.inputs[1].values, i[1] * blocks * block * bits / 8, j);
      sum +=
          at(c.inputs[0].values, {m, k}, {i[0], j}) * (stored - zero) * c.inputs[2].values[which];
    }
    y.push_back(sum);
  });
  c.outputs = {expected(dtype, {m, n}, y)};
  c.attrs = {{"K", k}, {"N", n}, {"bits", bits}, {"block_size", block}};
  c.relative = 4;
  c.absolute = 300 * step_error(dtype) * static_cast<double>(k);
  return c;
}

}  // namespace

const Generators& attention_cases() {
  static const Generators all = {
      {"Attention", attention_case},
      {"CausalConvWithState", causal_conv_case},
      {"LinearAttention", linear_attention_case},
      {"RotaryEmbedding", rotary_case},
      {"TensorScatter", tensor_scatter_case},
  };
  return all;
}

const Generators& contrib_attention_cases() {
  static const Generators all = {
      {"GroupQueryAttention", group_query_case},
      {"MatMulNBits", matmul_nbits_case},
  };
  return all;
}

}  // namespace pfrt::test
