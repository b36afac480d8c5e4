// SPDX-License-Identifier: Apache-2.0
//
// NonMaxSuppression: for each batch entry and class, boxes are taken by falling score (ties by
// index) unless they overlap one already taken by more than the threshold.
#include <algorithm>
#include <vector>

#include "providers/cpu/elements/convert.h"
#include "providers/cpu/elements/sorting.h"
#include "providers/cpu/kernel/data_dependent_output.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/index/index.h"

namespace pfrt::cpu {
namespace {

struct Box {
  float y0, x0, y1, x1;  // y0 <= y1, x0 <= x1
};

Box box_at(const float* b, bool centered) {
  if (centered) {
    const float half_width = b[2] / 2, half_height = b[3] / 2;
    return {b[1] - half_height, b[0] - half_width, b[1] + half_height, b[0] + half_width};
  }
  return {std::min(b[0], b[2]), std::min(b[1], b[3]), std::max(b[0], b[2]), std::max(b[1], b[3])};
}

float area(const Box& b) { return (b.y1 - b.y0) * (b.x1 - b.x0); }

bool overlap(const Box& a, const Box& b, float threshold) {
  const float height = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
  const float width = std::min(a.x1, b.x1) - std::max(a.x0, b.x0);
  if (!(height > 0) || !(width > 0)) return false;
  const float shared = height * width;
  const float joined = area(a) + area(b) - shared;
  return joined > 0 && shared / joined > threshold;
}

struct Limits {
  int64_t boxes_per_class = 0;
  float iou = 0;
  bool has_score = false;
  float score = 0;
};

std::vector<int64_t> kept_boxes(const Run& run, const float* boxes, const float* scores, int64_t n,
                                bool centered, const Limits& limits) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < n; ++i)
    if (limits.has_score ? scores[i] > limits.score : scores[i] == scores[i]) order.push_back(i);
  const auto before = [&](int64_t i, int64_t j) {
    return scores[i] != scores[j] ? scores[j] < scores[i] : i < j;
  };
  std::vector<int64_t> kept;
  if (!sort_unless_stopped(run, before, [&](const auto& compare) {
        std::sort(order.begin(), order.end(), compare);
      }))
    return kept;
  std::vector<Box> taken;
  for (const int64_t i : order) {
    if (static_cast<int64_t>(kept.size()) >= limits.boxes_per_class || run.stopped()) break;
    const Box box = box_at(boxes + 4 * i, centered);
    if (std::ranges::any_of(taken,
                            [&](const Box& other) { return overlap(box, other, limits.iou); }))
      continue;
    kept.push_back(i);
    taken.push_back(box);
  }
  return kept;
}

// The limits that are given: a run may only ask for inputs that are there.
struct Given {
  bool count, iou, score;
};

Limits limits_of(const Run& run, Given given, pfrt_dtype count_type) {
  Limits limits;
  if (given.count) limits.boxes_per_class = load_scalar<int64_t>(count_type, run.input(2));
  if (given.iou) limits.iou = load_scalar<float>(PFRT_DTYPE_FLOAT32, run.input(3));
  limits.has_score = given.score;
  if (given.score) limits.score = load_scalar<float>(PFRT_DTYPE_FLOAT32, run.input(4));
  return limits;
}

Status check_inputs(const SnapshotNode& node) {
  PFRT_TRY(need(node, 2, 0));
  const auto boxes = node.input_dims(0), scores = node.input_dims(1);
  if (boxes.size() != 3 || boxes[2] != 4 || scores.size() != 3 || scores[0] != boxes[0] ||
      scores[2] != boxes[1])
    return kernel_error("boxes have to be [batch, boxes, 4] and scores [batch, classes, boxes]");
  for (uint32_t i = 2; i <= 4; ++i) {
    if (!node.has_input(i)) continue;
    PFRT_TRY(need_scalar(node, i));
    if (i == 2 ? !kIndices.has(node.input_dtype(i)) : node.input_dtype(i) != PFRT_DTYPE_FLOAT32)
      return error(Code::kDTYPE_MISMATCH, "input ", i, " is ", dtype_name(node.input_dtype(i)),
                   ": ", i == 2 ? "int64" : "float32");
  }
  if (node.input_dtype(1) != PFRT_DTYPE_FLOAT32)
    return error(Code::kDTYPE_MISMATCH, "scores are ", dtype_name(node.input_dtype(1)),
                 ": float32");
  if (node.output_dtype(0) != PFRT_DTYPE_INT64)
    return error(Code::kDTYPE_MISMATCH, "the output is ", dtype_name(node.output_dtype(0)),
                 ": int64");
  return {};
}

Result<Kernel> make_suppression(const KernelRequest& node) {
  PFRT_TRY(check_inputs(node));
  const int64_t center = node.attr_int("center_point_box", 0);
  if (center != 0 && center != 1)
    return kernel_error("attribute center_point_box is ", center, ": 0 or 1");
  const int64_t batch = node.input_dims(0)[0], boxes = node.input_dims(0)[1],
                classes = node.input_dims(1)[1];
  const Given given{node.has_input(2), node.has_input(3), node.has_input(4)};
  Kernel kernel;
  kernel.run = [=, count_type = node.input_dtype(2), outlet = Outlet(node, 0)](const Run& run) {
    const Limits limits = limits_of(run, given, count_type);
    std::vector<std::vector<int64_t>> kept(static_cast<size_t>(batch * classes));
    run.parallel(batch * classes, [&](int64_t i, uint32_t) {
      kept[static_cast<size_t>(i)] =
          kept_boxes(run, run.input<float>(0) + i / classes * boxes * 4,
                     run.input<float>(1) + i * boxes, boxes, center == 1, limits);
    });
    if (const pfrt_code code = run.stop()) return code;
    int64_t total = 0;
    for (const auto& list : kept) total += static_cast<int64_t>(list.size());
    const int64_t dims[] = {total, 3};
    void* out = nullptr;
    if (const pfrt_code code = outlet.open(run, dims, &out)) return code;
    int64_t* y = static_cast<int64_t*>(out);
    for (int64_t i = 0; i < batch * classes; ++i)
      for (const int64_t box : kept[static_cast<size_t>(i)]) {
        *y++ = i / classes;
        *y++ = i % classes;
        *y++ = box;
      }
    return pfrt_code{PFRT_CODE_OK};
  };
  kernel.flops = 20.0 * static_cast<double>(node.input_elements(1));
  return kernel;
}

constexpr KernelRow kRows[] = {
    {"", "NonMaxSuppression", kFloat32, "non_max_suppression_ref", "generic", nullptr,
     make_suppression},
};

}  // namespace

std::span<const KernelRow> suppression_rows() { return kRows; }

}  // namespace pfrt::cpu
