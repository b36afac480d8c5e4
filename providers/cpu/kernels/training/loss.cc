// SPDX-License-Identifier: Apache-2.0
//
// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss over scores [batch, classes, pixels]. The
// second is the first after LogSoftmax, without the tensor between them unless it is an output.
#include <algorithm>
#include <cmath>
#include <vector>

#include "providers/cpu/elements/convert.h"
#include "providers/cpu/elements/load.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernel/stop_poll.h"
#include "providers/cpu/kernels/training/training.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kWide = 256;  // pixels of a block
constexpr int64_t kTaskScores = 1 << 14;

enum class Reduce { kNone, kSum, kMean };

struct Loss {
  pfrt_dtype dtype, label_type;
  int64_t batch, classes, pixels;
  bool softmax, weighted, ignores, has_log;
  int64_t ignored;
  Reduce reduce;
};

// A block of |n| pixels of one image, and its losses.
struct Block {
  int64_t image, first, n;
  double losses[kWide], weights[kWide], shift[kWide];
  int64_t labels[kWide];
};

// shift = log of the sum of exponentials, by classes in order.
void log_sum_exp(const Run& run, const Loss& loss, Block& b) {
  double scores[kWide], top[kWide];
  Pace pace(run);
  const auto goes_on = [&](int64_t c) { return c < loss.classes && !pace.stopped(8 * b.n); };
  std::fill(top, top + b.n, -INFINITY);
  std::fill(b.shift, b.shift + b.n, 0.0);
  const auto row = [&](int64_t c) {
    const int64_t at = (b.image * loss.classes + c) * loss.pixels + b.first;
    load_block(loss.dtype, element(loss.dtype, run.input(0), at), b.n, scores);
  };
  for (int64_t c = 0; goes_on(c); ++c) {
    row(c);
    for (int64_t i = 0; i < b.n; ++i) top[i] = std::max(top[i], scores[i]);
  }
  for (int64_t c = 0; goes_on(c); ++c) {
    row(c);
    for (int64_t i = 0; i < b.n; ++i) b.shift[i] += std::exp(scores[i] - top[i]);
  }
  for (int64_t i = 0; i < b.n; ++i) b.shift[i] = top[i] + std::log(b.shift[i]);
  if (!loss.has_log) return;
  for (int64_t c = 0; goes_on(c); ++c) {
    row(c);
    for (int64_t i = 0; i < b.n; ++i) scores[i] -= b.shift[i];
    const int64_t at = (b.image * loss.classes + c) * loss.pixels + b.first;
    store_block(loss.dtype, scores, b.n, element(loss.dtype, run.output(1), at));
  }
}

// Computes log_sum_exp where an image is one pixel: its scores are contiguous.
void log_sum_exp_of_row(const Run& run, const Loss& loss, Block& b) {
  double scores[kWide], top = -INFINITY, sum = 0;
  Pace pace(run);
  const auto each_run = [&](auto&& fn) {
    for (int64_t c = 0; c < loss.classes && !pace.stopped(8 * kWide); c += kWide) {
      const int64_t n = std::min(kWide, loss.classes - c), at = b.image * loss.classes + c;
      load_block(loss.dtype, element(loss.dtype, run.input(0), at), n, scores);
      fn(at, n);
    }
  };
  each_run([&](int64_t, int64_t n) { top = std::max(top, *std::max_element(scores, scores + n)); });
  each_run([&](int64_t, int64_t n) {
    for (int64_t i = 0; i < n; ++i) sum += std::exp(scores[i] - top);
  });
  b.shift[0] = top + std::log(sum);
  if (!loss.has_log) return;
  each_run([&](int64_t at, int64_t n) {
    for (int64_t i = 0; i < n; ++i) scores[i] -= b.shift[0];
    store_block(loss.dtype, scores, n, element(loss.dtype, run.output(1), at));
  });
}

void compute(const Run& run, const Loss& loss, const std::vector<double>& class_weights, Block& b) {
  const int64_t pixel = b.image * loss.pixels + b.first;
  load_block(loss.label_type, element(loss.label_type, run.input(1), pixel), b.n, b.labels);
  if (loss.softmax) loss.pixels == 1 ? log_sum_exp_of_row(run, loss, b) : log_sum_exp(run, loss, b);
  for (int64_t i = 0; i < b.n; ++i) {
    const int64_t label = b.labels[i];
    if (loss.ignores && label == loss.ignored) {
      b.losses[i] = b.weights[i] = 0;
      continue;
    }
    const int64_t at = (b.image * loss.classes + label) * loss.pixels + b.first + i;
    double score = 0;
    load_block(loss.dtype, element(loss.dtype, run.input(0), at), 1, &score);
    b.weights[i] = loss.weighted ? class_weights[static_cast<size_t>(label)] : 1;
    b.losses[i] = ((loss.softmax ? b.shift[i] : 0) - score) * b.weights[i];
  }
}

// Returns 0, or a fault for a label that is no class.
pfrt_code check_labels(const Run& run, const Loss& loss, std::string_view op) {
  const int64_t count = loss.batch * loss.pixels;
  int64_t block[kBlock];
  for (int64_t i = 0; i < count; i += kBlock) {
    const int64_t n = std::min(kBlock, count - i);
    load_block(loss.label_type, element(loss.label_type, run.input(1), i), n, block);
    for (int64_t j = 0; j < n; ++j) {
      if (loss.ignores && block[j] == loss.ignored) continue;
      if (block[j] < 0 || block[j] >= loss.classes)
        return run.fail(Code::kINVALID_ARGUMENT, op, ": label ", block[j], " (element ", i + j,
                        ") is outside [0, ", loss.classes, ")");
    }
  }
  return 0;
}

Result<Loss> read_loss(const SnapshotNode& node, bool softmax) {
  PFRT_TRY(need(node, 2, 1));
  PFRT_TRY(need_types(node, {1}, kIndices));
  PFRT_TRY(need_types(node, {2}, kFloats));
  const auto scores = node.input_dims(0), labels = node.input_dims(1);
  if (scores.size() < 2 || labels.size() + 1 != scores.size() || labels[0] != scores[0] ||
      !same_dims(labels.subspan(1), scores.subspan(2)))
    return kernel_error("labels ", dims_text(labels), " do not go with scores ", dims_text(scores));
  Loss loss{};
  loss.dtype = node.input_dtype(0);
  loss.label_type = node.input_dtype(1);
  loss.batch = scores[0];
  loss.classes = scores[1];
  loss.pixels = SnapshotNode::elements(scores.subspan(2));
  loss.softmax = softmax;
  loss.weighted = node.has_input(2);
  loss.ignores = node.attr("ignore_index") != nullptr;
  loss.ignored = node.attr_int("ignore_index", 0);
  loss.has_log = softmax && node.has_output(1);
  const std::string_view how = node.attr_string("reduction", "mean");
  loss.reduce = how == "none" ? Reduce::kNone : how == "sum" ? Reduce::kSum : Reduce::kMean;
  if (loss.weighted && node.input_elements(2) != loss.classes)
    return kernel_error("there are ", node.input_elements(2), " weights for ", loss.classes,
                        " classes");
  if (loss.has_log) PFRT_TRY(need_output_dims(node, 1, scores));
  if (loss.reduce == Reduce::kNone) {
    PFRT_TRY(need_output_dims(node, 0, labels));
  } else if (node.output_elements(0) != 1) {
    return kernel_error("a reduced loss has one element, the output ", node.output_elements(0));
  }
  return loss;
}

Result<Kernel> make_loss(const SnapshotNode& node, bool softmax) {
  PFRT_ASSIGN(const Loss loss, read_loss(node, softmax));
  // A task is a few images of few pixels, or a range of the pixels of one.
  const int64_t ranges = (loss.pixels + kWide - 1) / kWide;
  const int64_t blocks = loss.batch * ranges;
  const int64_t per_block = std::min(kWide, std::max<int64_t>(loss.pixels, 1)) * loss.classes;
  const int64_t group = std::max<int64_t>(1, kTaskScores / std::max<int64_t>(per_block, 1));
  const int64_t tasks = (blocks + group - 1) / group;
  Kernel kernel;
  kernel.flops = (softmax ? 20.0 : 0.0) * static_cast<double>(node.input_elements(0));
  kernel.run = [=, weight_type = node.input_dtype(2),
                op = std::string(node.op())](const Run& run) -> pfrt_code {
    if (const pfrt_code code = check_labels(run, loss, op)) return code;
    std::vector<double> class_weights(static_cast<size_t>(loss.weighted ? loss.classes : 0));
    if (loss.weighted) load_block(weight_type, run.input(2), loss.classes, class_weights.data());
    std::vector<double> sums(static_cast<size_t>(tasks)), weights(sums.size());
    run.parallel(tasks, [&](int64_t task, uint32_t) {
      double sum = 0, weight = 0;
      Block b;
      for (int64_t i = task * group; i < std::min(blocks, (task + 1) * group); ++i) {
        b.image = i / ranges;
        b.first = i % ranges * kWide;
        b.n = std::min(kWide, loss.pixels - b.first);
        compute(run, loss, class_weights, b);
        for (int64_t j = 0; j < b.n; ++j) {
          sum += b.losses[j];
          weight += b.weights[j];
        }
        if (loss.reduce == Reduce::kNone)
          store_block(loss.dtype, b.losses, b.n,
                      element(loss.dtype, run.output(0), b.image * loss.pixels + b.first));
      }
      sums[static_cast<size_t>(task)] = sum;
      weights[static_cast<size_t>(task)] = weight;
    });
    if (loss.reduce == Reduce::kNone) return run.stop();
    double sum = 0, weight = 0;
    for (size_t t = 0; t < sums.size(); ++t) {
      sum += sums[t];
      weight += weights[t];
    }
    if (loss.reduce == Reduce::kMean) sum /= weight;
    store_block(loss.dtype, &sum, 1, run.output(0));
    return run.stop();
  };
  return kernel;
}

Result<Kernel> make_nll(const KernelRequest& node) { return make_loss(node, false); }
Result<Kernel> make_cross_entropy(const KernelRequest& node) { return make_loss(node, true); }

constexpr KernelRow kRows[] = {
    checks_inputs(
        {"", "NegativeLogLikelihoodLoss", kFloats, "nll_loss", "generic", nullptr, make_nll}),
    checks_inputs(optional_outputs({"", "SoftmaxCrossEntropyLoss", kFloats, "cross_entropy_loss",
                                    "generic", nullptr, make_cross_entropy})),
};

}  // namespace

std::span<const KernelRow> loss_rows() { return kRows; }

}  // namespace pfrt::cpu
