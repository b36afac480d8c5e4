// SPDX-License-Identifier: Apache-2.0
//
// A step of an optimizer over any number of tensors, element by element and in double precision.
#include <algorithm>
#include <cmath>
#include <vector>

#include "providers/cpu/elements/convert.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/training/training.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kTask = 4 * kBlock;
constexpr uint32_t kMostLists = 4;  // X, G, V, H

// The parameters of one node and run. |rate| is already adjusted to the step count.
struct Step {
  double rate, alpha, beta, epsilon, norm, post;
  bool nesterov;
};

// x, g and the state (v, h) of one block; results replace x, v and h.
using StepFn = void (*)(const Step& s, double* const* lists, int64_t n);

void adagrad(const Step& s, double* const* lists, int64_t n) {
  double *x = lists[0], *g = lists[1], *h = lists[2];
  for (int64_t i = 0; i < n; ++i) {
    const double slope = s.norm * x[i] + g[i];
    h[i] += slope * slope;
    x[i] -= s.rate * slope / (std::sqrt(h[i]) + s.epsilon);
  }
}

void adam(const Step& s, double* const* lists, int64_t n) {
  double *x = lists[0], *g = lists[1], *v = lists[2], *h = lists[3];
  for (int64_t i = 0; i < n; ++i) {
    const double slope = s.norm * x[i] + g[i];
    v[i] = s.alpha * v[i] + (1 - s.alpha) * slope;
    h[i] = s.beta * h[i] + (1 - s.beta) * slope * slope;
    x[i] = (1 - s.post) * (x[i] - s.rate * v[i] / (std::sqrt(h[i]) + s.epsilon));
  }
}

void momentum(const Step& s, double* const* lists, int64_t n) {
  double *x = lists[0], *g = lists[1], *v = lists[2];
  for (int64_t i = 0; i < n; ++i) {
    const double slope = s.norm * x[i] + g[i];
    v[i] = s.alpha * v[i] + s.beta * slope;
    x[i] -= s.rate * (s.nesterov ? slope + s.alpha * v[i] : v[i]);
  }
}

Step adagrad_step(const SnapshotNode& node) {
  Step s{};
  s.alpha = static_cast<double>(node.attr_float("decay_factor", 0));
  return s;
}

// The following make the parameters depend on the step count.
void adjust_adagrad(Step& s, double t) { s.rate /= 1 + t * s.alpha; }
void adjust_adam(Step& s, double t) {
  if (t > 0) s.rate *= std::sqrt(1 - std::pow(s.beta, t)) / (1 - std::pow(s.alpha, t));
}
void adjust_momentum(Step& s, double t) {
  if (!(t > 0)) s.beta = 1;
}

Step adam_step(const SnapshotNode& node) {
  Step s{};
  s.alpha = static_cast<double>(node.attr_float("alpha", 0.9f));
  s.beta = static_cast<double>(node.attr_float("beta", 0.999f));
  s.post = static_cast<double>(node.attr_float("norm_coefficient_post", 0));
  return s;
}

Step momentum_step(const SnapshotNode& node) {
  Step s{};
  s.alpha = static_cast<double>(node.attr_float("alpha", 0));
  s.beta = static_cast<double>(node.attr_float("beta", 0));
  s.nesterov = node.attr_string("mode", "") == "nesterov";
  return s;
}

struct Optimizer {
  StepFn step;
  void (*adjust)(Step& s, double t);
  uint32_t lists;
};

// The inputs of one tensor; outputs are these without the gradient.
struct Update {
  uint32_t index;
  int64_t elements;
  pfrt_dtype types[kMostLists];
};

void update(const Run& run, const Optimizer& optimizer, const Step& step, const Update& u,
            uint32_t each, int64_t begin, int64_t end) {
  double blocks[kMostLists][kBlock];
  double* lists[kMostLists] = {blocks[0], blocks[1], blocks[2], blocks[3]};
  for (int64_t i = begin; i < end; i += kBlock) {
    const int64_t n = std::min(kBlock, end - i);
    for (uint32_t l = 0; l < optimizer.lists; ++l)
      load_block(u.types[l], element(u.types[l], run.input(2 + u.index + l * each), i), n,
                 lists[l]);
    optimizer.step(step, lists, n);
    for (uint32_t l = 0; l < optimizer.lists; ++l) {
      if (l == 1) continue;
      void* const to = run.output(u.index + (l == 0 ? 0 : l - 1) * each);
      if (to != nullptr) store_block(u.types[l], lists[l], n, element(u.types[l], to, i));
    }
  }
}

Result<Update> read_update(const SnapshotNode& node, uint32_t i, uint32_t each, uint32_t lists) {
  Update u{};
  u.index = i;
  u.elements = node.input_elements(2 + i);
  for (uint32_t l = 0; l < lists; ++l) {
    const uint32_t in = 2 + i + l * each;
    u.types[l] = node.input_dtype(in);
    if (!kFloats.has(u.types[l]))
      return error(Code::kDTYPE_MISMATCH, "input ", in, " is ", dtype_name(u.types[l]), ": ",
                   kFloats.text());
    if (!same_dims(node.input_dims(in), node.input_dims(2 + i)))
      return kernel_error("input ", in, " has dimensions ", dims_text(node.input_dims(in)),
                          ", the tensor it belongs to ", dims_text(node.input_dims(2 + i)));
    if (l == 1) continue;
    const uint32_t out = i + (l == 0 ? 0 : l - 1) * each;
    if (!node.has_output(out)) continue;
    PFRT_TRY(need_output_dims(node, out, node.input_dims(in)));
    if (node.output_dtype(out) != u.types[l])
      return error(Code::kDTYPE_MISMATCH, "output ", out, " is ",
                   dtype_name(node.output_dtype(out)), ", input ", in, " ", dtype_name(u.types[l]));
  }
  return u;
}

Result<Kernel> make_optimizer(const SnapshotNode& node, const Optimizer& optimizer, Step step) {
  const uint32_t tensors = node.input_count() - std::min(node.input_count(), 2u),
                 each = tensors / optimizer.lists;
  if (each == 0 || each * optimizer.lists != tensors)
    return kernel_error(tensors, " tensors do not divide into ", optimizer.lists, " lists");
  PFRT_TRY(need(node, node.input_count(), 0));
  PFRT_TRY(need_scalar(node, 0));
  PFRT_TRY(need_scalar(node, 1));
  if (node.input_dtype(1) != PFRT_DTYPE_INT64)
    return error(Code::kDTYPE_MISMATCH, "the step count is ", dtype_name(node.input_dtype(1)),
                 ": int64");
  std::vector<Update> updates;
  Kernel kernel;
  for (uint32_t i = 0; i < each; ++i) {
    PFRT_ASSIGN(const Update u, read_update(node, i, each, optimizer.lists));
    kernel.flops += 12.0 * static_cast<double>(u.elements);
    updates.push_back(u);
  }
  step.norm = static_cast<double>(node.attr_float("norm_coefficient", 0));
  step.epsilon = static_cast<double>(node.attr_float("epsilon", 0));
  kernel.run = [=, updates = std::move(updates),
                rate_type = node.input_dtype(0)](const Run& run) -> pfrt_code {
    Step now = step;
    now.rate = load_scalar<double>(rate_type, run.input(0));
    optimizer.adjust(now,
                     static_cast<double>(load_scalar<int64_t>(PFRT_DTYPE_INT64, run.input(1))));
    for (const Update& u : updates) {
      if (run.stopped()) break;
      run.blocks(u.elements, kTask, [&](int64_t begin, int64_t end) {
        update(run, optimizer, now, u, each, begin, end);
      });
    }
    return run.stop();
  };
  return kernel;
}

Result<Kernel> make_adagrad(const KernelRequest& node) {
  return make_optimizer(node, {adagrad, adjust_adagrad, 3}, adagrad_step(node));
}
Result<Kernel> make_adam(const KernelRequest& node) {
  return make_optimizer(node, {adam, adjust_adam, 4}, adam_step(node));
}
Result<Kernel> make_momentum(const KernelRequest& node) {
  return make_optimizer(node, {momentum, adjust_momentum, 3}, momentum_step(node));
}

constexpr std::string_view kTraining = "ai.onnx.preview.training";

constexpr KernelRow kRows[] = {
    {kTraining, "Adagrad", kFloats, "adagrad_ref", "generic", nullptr, make_adagrad},
    {kTraining, "Adam", kFloats, "adam_ref", "generic", nullptr, make_adam},
    {kTraining, "Momentum", kFloats, "momentum_ref", "generic", nullptr, make_momentum},
};

}  // namespace

std::span<const KernelRow> optimizer_rows() { return kRows; }

}  // namespace pfrt::cpu
