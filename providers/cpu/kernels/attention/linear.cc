// SPDX-License-Identifier: Apache-2.0
//
// LinearAttention: for each key head a matrix S, keys by values, that every step decays, corrects,
// updates and is read from:
//   S *= exp(decay); v = beta (v - S' k) with a delta rule; S += k v'; y = scale S' q.
// The state is float32 whatever the types of the tensors.
#include <algorithm>
#include <cmath>

#include "providers/cpu/elements/load.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/attention/attention.h"

namespace pfrt::cpu {
namespace {

struct LinearForm {
  int64_t batch = 0, length = 0, q_heads = 0, kv_heads = 0, d_k = 0, d_v = 0;
  float scale = 1;
  bool gated = false, delta = false, has_past = false, keeps_state = false;
  bool decays_alike = false;  // one decay a head, not one a key column
  int64_t betas = 1;          // a step: one a head, or one
  pfrt_dtype dtype = PFRT_DTYPE_UNSET, past_dtype = PFRT_DTYPE_UNSET,
             state_dtype = PFRT_DTYPE_UNSET;

  int64_t state() const { return d_k * d_v; }
  int64_t scratch() const { return state() + 3 * d_k + 3 * d_v; }
};

// The recurrence of a head in a batch.
class Recurrence {
 public:
  Recurrence(const LinearForm& f, const Run& run, int64_t index, float* scratch)
      : f_(f),
        run_(run),
        load_(load_fn<float>(f.dtype)),
        b_(index / f.kv_heads),
        h_(index % f.kv_heads),
        s_(scratch),
        q_(s_ + f.state()),
        k_(q_ + f.d_k),
        g_(k_ + f.d_k),
        v_(g_ + f.d_k),
        y_(v_ + f.d_v),
        read_(y_ + f.d_v) {}

  void compute() {
    const int64_t at = (b_ * f_.kv_heads + h_) * f_.state();
    if (f_.has_past) {
      load_fn<float>(f_.past_dtype)(s_, run_.input(3), at, 1, f_.state());
    } else {
      std::fill_n(s_, f_.state(), 0.0f);
    }
    for (int64_t t = 0; t < f_.length; ++t) {
      if (t % 16 == 0 && run_.stopped()) return;
      step(b_ * f_.length + t);
    }
    if (f_.keeps_state) store_fn<float>(f_.state_dtype)(run_.output(1), at, s_, f_.state());
  }

 private:
  void step(int64_t t) {
    load_(k_, run_.input(1), (t * f_.kv_heads + h_) * f_.d_k, 1, f_.d_k);
    load_(v_, run_.input(2), (t * f_.kv_heads + h_) * f_.d_v, 1, f_.d_v);
    if (f_.gated) decay(t);
    if (f_.delta) correct(t);
    for (int64_t i = 0; i < f_.d_k; ++i)
      for (int64_t j = 0; j < f_.d_v; ++j) s_[i * f_.d_v + j] += k_[i] * v_[j];
    const int64_t group = f_.q_heads / f_.kv_heads;
    for (int64_t q = h_ * group; q < (h_ + 1) * group; ++q) {
      load_(q_, run_.input(0), (t * f_.q_heads + q) * f_.d_k, 1, f_.d_k);
      read(q_, y_);
      for (int64_t j = 0; j < f_.d_v; ++j) y_[j] *= f_.scale;
      store_fn<float>(f_.dtype)(run_.output(0), (t * f_.q_heads + q) * f_.d_v, y_, f_.d_v);
    }
  }

  // out = S' x
  void read(const float* x, float* out) const {
    std::fill_n(out, f_.d_v, 0.0f);
    for (int64_t i = 0; i < f_.d_k; ++i)
      for (int64_t j = 0; j < f_.d_v; ++j) out[j] += x[i] * s_[i * f_.d_v + j];
  }

  void decay(int64_t t) {
    const int64_t many = f_.decays_alike ? 1 : f_.d_k;
    load_(g_, run_.input(4), (t * f_.kv_heads + h_) * many, 1, many);
    for (int64_t i = 0; i < many; ++i) g_[i] = std::exp(g_[i]);
    for (int64_t i = 0; i < f_.d_k; ++i) {
      const float factor = g_[f_.decays_alike ? 0 : i];
      for (int64_t j = 0; j < f_.d_v; ++j) s_[i * f_.d_v + j] *= factor;
    }
  }

  void correct(int64_t t) {
    float beta = 0;
    load_(&beta, run_.input(5), t * f_.betas + (f_.betas == 1 ? 0 : h_), 1, 1);
    read(k_, read_);
    for (int64_t j = 0; j < f_.d_v; ++j) v_[j] = beta * (v_[j] - read_[j]);
  }

  const LinearForm& f_;
  const Run& run_;
  LoadFn<float> load_;
  int64_t b_, h_;
  float *s_, *q_, *k_, *g_, *v_, *y_, *read_;
};

Status read_gates(const SnapshotNode& node, LinearForm& f) {
  const std::string_view rule = node.attr_string("update_rule", "gated_delta");
  f.gated = rule == "gated" || rule == "gated_delta";
  f.delta = rule == "delta" || rule == "gated_delta";
  if (node.has_input(4) != f.gated || node.has_input(5) != f.delta)
    return kernel_error("update_rule '", rule, "' does not go with the inputs decay and beta");
  const int64_t a_head[] = {f.batch, f.length, f.kv_heads},
                a_column[] = {f.batch, f.length, f.kv_heads * f.d_k},
                one[] = {f.batch, f.length, 1};
  f.decays_alike = f.gated && same_dims(node.input_dims(4), a_head);
  if (f.gated && !f.decays_alike && !same_dims(node.input_dims(4), a_column))
    return kernel_error("decay is ", dims_text(node.input_dims(4)), ", expected ",
                        dims_text(a_head), " or ", dims_text(a_column));
  f.betas = f.delta && same_dims(node.input_dims(5), a_head) ? f.kv_heads : 1;
  if (f.delta && f.betas == 1 && !same_dims(node.input_dims(5), one) &&
      !same_dims(node.input_dims(5), a_head))
    return kernel_error("beta is ", dims_text(node.input_dims(5)), ", expected ", dims_text(a_head),
                        " or ", dims_text(one));
  return {};
}

Status read_heads(const SnapshotNode& node, LinearForm& f) {
  const auto q = node.input_dims(0), k = node.input_dims(1), v = node.input_dims(2);
  f.q_heads = node.attr_int("q_num_heads", 0), f.kv_heads = node.attr_int("kv_num_heads", 0);
  if (f.kv_heads < 1 || f.q_heads < 1 || f.q_heads % f.kv_heads != 0)
    return kernel_error(f.q_heads, " query heads are not a multiple of ", f.kv_heads, " key heads");
  if (q.size() != 3 || k.size() != 3 || v.size() != 3)
    return kernel_error("query, key and value must have rank 3");
  f.batch = q[0], f.length = q[1], f.d_k = q[2] / f.q_heads, f.d_v = v[2] / f.kv_heads;
  if (q[2] % f.q_heads != 0 || v[2] % f.kv_heads != 0 || k[2] % f.kv_heads != 0 ||
      k[2] / f.kv_heads != f.d_k || !same_dims(k.first(2), q.first(2)) ||
      !same_dims(v.first(2), q.first(2)))
    return kernel_error("query ", dims_text(q), ", key ", dims_text(k), " and value ", dims_text(v),
                        " do not agree");
  return {};
}

}  // namespace

Result<Kernel> make_linear_attention(const KernelRequest& node) {
  PFRT_TRY(need(node, 3, 1));
  PFRT_TRY(need_types(node, {1, 2, 4, 5}, Types{node.input_dtype(0)}));
  PFRT_TRY(need_types(node, {3}, kFloats));
  LinearForm f;
  f.dtype = node.input_dtype(0);
  if (node.output_dtype(0) != f.dtype)
    return error(Code::kDTYPE_MISMATCH, "the output has another type than the query");
  PFRT_TRY(read_heads(node, f));
  PFRT_TRY(read_gates(node, f));
  const int64_t state[] = {f.batch, f.kv_heads, f.d_k, f.d_v};
  const int64_t y[] = {f.batch, f.length, f.q_heads * f.d_v};
  PFRT_TRY(need_output_dims(node, 0, y));
  f.has_past = node.has_input(3), f.keeps_state = node.has_output(1);
  f.past_dtype = node.input_dtype(3), f.state_dtype = node.output_dtype(1);
  if (f.has_past && !same_dims(node.input_dims(3), state))
    return kernel_error("the state ", dims_text(node.input_dims(3)), " must be ", dims_text(state));
  if (f.keeps_state) {
    PFRT_TRY(need_output_dims(node, 1, state));
    if (!kFloats.has(f.state_dtype))
      return error(Code::kDTYPE_MISMATCH, "the state must be floating-point");
  }
  const float given = node.attr_float("scale", 0);
  f.scale = given != 0 ? given : 1 / std::sqrt(static_cast<float>(std::max<int64_t>(f.d_k, 1)));
  Kernel kernel;
  if (SnapshotNode::elements(y) == 0 && (!f.keeps_state || SnapshotNode::elements(state) == 0)) {
    kernel.run = [](const Run&) { return pfrt_code{PFRT_CODE_OK}; };
    return kernel;
  }
  kernel.flops = 8.0 * static_cast<double>(f.batch * f.kv_heads) * static_cast<double>(f.length) *
                 static_cast<double>(f.state());
  kernel.scratch_bytes = static_cast<uint64_t>(f.scratch()) * sizeof(float);
  kernel.run = [f](const Run& run) -> pfrt_code {
    run.parallel(f.batch * f.kv_heads, [&](int64_t i, uint32_t worker) {
      Recurrence(f, run, i, run.scratch<float>(worker)).compute();
    });
    return run.stop();
  };
  return kernel;
}

}  // namespace pfrt::cpu
