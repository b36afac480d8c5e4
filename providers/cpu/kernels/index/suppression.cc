// SPDX-License-Identifier: Apache-2.0
//
// NonMaxSuppression: for each batch entry and class, boxes are taken by falling score (ties by
// index) unless they overlap one already taken by more than the threshold.
#include <immintrin.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "providers/cpu/elements/convert.h"
#include "providers/cpu/elements/ranked.h"
#include "providers/cpu/elements/sorting.h"
#include "providers/cpu/isa/isa.h"
#include "providers/cpu/isa/target.h"
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

// Boxes, eight to a block.
class Boxes {
 public:
  void add(const Box& box) {
    const size_t lane = count_++ % kLanes;
    if (lane == 0) blocks_.push_back(kNone);
    Block& block = blocks_.back();
    block.y0[lane] = box.y0;
    block.x0[lane] = box.x0;
    block.y1[lane] = box.y1;
    block.x1[lane] = box.x1;
    block.area[lane] = area(box);
  }
  // Whether one of them overlaps |box| by more than |threshold|.
  bool overlap(const Box& box, float threshold) const {
    for (size_t i = 0; i < count_; ++i) {
      const Block& b = blocks_[i / kLanes];
      const size_t lane = i % kLanes;
      if (cpu::overlap({b.y0[lane], b.x0[lane], b.y1[lane], b.x1[lane]}, box, threshold))
        return true;
    }
    return false;
  }
  // Computes the same by vectors, without fused multiply-adds, so that bits are the same.
  PFRT_AVX2 bool overlap_vectors(const Box& box, float threshold) const {
    const __m256 y0 = _mm256_set1_ps(box.y0), x0 = _mm256_set1_ps(box.x0),
                 y1 = _mm256_set1_ps(box.y1), x1 = _mm256_set1_ps(box.x1),
                 zero = _mm256_setzero_ps(), own = _mm256_set1_ps(area(box)),
                 most = _mm256_set1_ps(threshold);
    for (const Block& block : blocks_) {
      const __m256 height = _mm256_sub_ps(_mm256_min_ps(y1, _mm256_loadu_ps(block.y1)),
                                          _mm256_max_ps(y0, _mm256_loadu_ps(block.y0)));
      const __m256 width = _mm256_sub_ps(_mm256_min_ps(x1, _mm256_loadu_ps(block.x1)),
                                         _mm256_max_ps(x0, _mm256_loadu_ps(block.x0)));
      const __m256 meet = _mm256_and_ps(_mm256_cmp_ps(height, zero, _CMP_GT_OQ),
                                        _mm256_cmp_ps(width, zero, _CMP_GT_OQ));
      if (_mm256_movemask_ps(meet) == 0) continue;
      const __m256 shared = _mm256_mul_ps(height, width);
      const __m256 joined = _mm256_sub_ps(_mm256_add_ps(_mm256_loadu_ps(block.area), own), shared);
      const __m256 over =
          _mm256_and_ps(_mm256_cmp_ps(joined, zero, _CMP_GT_OQ),
                        _mm256_cmp_ps(_mm256_div_ps(shared, joined), most, _CMP_GT_OQ));
      if (_mm256_movemask_ps(_mm256_and_ps(meet, over)) != 0) return true;
    }
    return false;
  }

 private:
  static constexpr size_t kLanes = 8;
  struct Block {
    float y0[kLanes], x0[kLanes], y1[kLanes], x1[kLanes], area[kLanes];
  };
  static constexpr Block kNone = [] {  // overlaps nothing
    Block block{};
    for (float& y1 : block.y1) y1 = -std::numeric_limits<float>::infinity();
    return block;
  }();

  size_t count_ = 0;
  std::vector<Block> blocks_;
};

// Boxes that were taken, by the strips of x that they reach into: two that overlap are in one.
class Taken {
 public:
  // Strips are about as wide as |all| boxes are, some of which will be taken.
  Taken(const std::vector<Box>& all, bool vectors) : vectors_(vectors) {
    constexpr float kFar = 1e30f;
    double widths = 0, count = 0;
    float high = -kFar;
    for (const Box& box : all) {
      if (!(box.x0 > -kFar && box.x1 < kFar)) continue;
      low_ = count == 0 ? box.x0 : std::min(low_, box.x0);
      high = std::max(high, box.x1);
      widths += static_cast<double>(box.x1) - static_cast<double>(box.x0);
      count += 1;
    }
    const double range = static_cast<double>(high) - static_cast<double>(low_);
    double strips = 1;
    if (count > kLanes && widths > 0) strips = range * count / widths;
    strips_.resize(static_cast<size_t>(std::clamp(strips, 1.0, std::min(kMostStrips, count + 1))));
    if (range > 0) scale_ = static_cast<float>(static_cast<double>(strips_.size()) / range);
  }

  void add(const Box& box) {
    for (size_t i = strip(box.x0, 0); i <= strip(box.x1, strips_.size() - 1); ++i)
      strips_[i].add(box);
  }
  bool overlap(const Box& box, float threshold) const {
    for (size_t i = strip(box.x0, 0); i <= strip(box.x1, strips_.size() - 1); ++i)
      if (vectors_ ? strips_[i].overlap_vectors(box, threshold)
                   : strips_[i].overlap(box, threshold))
        return true;
    return false;
  }

 private:
  static constexpr double kLanes = 8, kMostStrips = 512;

  // It rises with x; |otherwise| is where NaN belongs.
  size_t strip(float x, size_t otherwise) const {
    if (x != x) return otherwise;
    const float at = (x - low_) * scale_;
    if (!(at > 0)) return 0;
    return std::min(
        at < static_cast<float>(kMostStrips) ? static_cast<size_t>(at) : strips_.size() - 1,
        strips_.size() - 1);
  }

  bool vectors_;
  float low_ = 0, scale_ = 0;
  std::vector<Boxes> strips_;
};

struct Limits {
  int64_t boxes_per_class = 0;
  float iou = 0;
  bool has_score = false;
  float score = 0;
};

// The boxes that may be taken, by falling score, as ranked numbers.
std::vector<uint64_t> candidates(const float* scores, int64_t n, const Limits& limits) {
  std::vector<uint64_t> order;
  for (int64_t i = 0; i < n; ++i)
    if (limits.has_score ? scores[i] > limits.score : scores[i] == scores[i])
      order.push_back(ranked(scores[i], true, i));
  return order;
}

// Sorts more of |order| than its first |sorted|: often few are looked at. False when the run is to
// stop.
bool sort_more(const Run& run, std::vector<uint64_t>& order, int64_t wanted, size_t& sorted) {
  const size_t left = order.size() - sorted,
               more = sorted == 0 ? static_cast<size_t>(std::min<int64_t>(wanted, 1 << 20)) * 2 + 64
                                  : left;
  const auto begin = order.begin() + static_cast<int64_t>(sorted),
             end = begin + static_cast<int64_t>(std::min(more, left));
  sorted += std::min(more, left);
  return sort_unless_stopped(run, std::less<uint64_t>(), [&](const auto& compare) {
    if (end != order.end()) std::nth_element(begin, end, order.end(), compare);
    std::sort(begin, end, compare);
  });
}

std::vector<int64_t> kept_boxes(const Run& run, const float* boxes, const float* scores, int64_t n,
                                bool centered, bool vectors, const Limits& limits) {
  std::vector<uint64_t> order = candidates(scores, n, limits);
  std::vector<int64_t> kept;
  std::vector<Box> all;
  all.reserve(order.size());
  for (const uint64_t next : order) all.push_back(box_at(boxes + 4 * index_of(next), centered));
  Taken taken(all, vectors);
  size_t sorted = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    if (static_cast<int64_t>(kept.size()) >= limits.boxes_per_class || run.stopped()) break;
    if (i == sorted && !sort_more(run, order, limits.boxes_per_class, sorted)) break;
    const Box box = box_at(boxes + 4 * index_of(order[i]), centered);
    if (taken.overlap(box, limits.iou)) continue;
    kept.push_back(index_of(order[i]));
    taken.add(box);
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
  if (boxes > kMostRanked)
    return kernel_error("there are ", boxes, " boxes: at most ", kMostRanked, " are compared");
  const bool vectors = isa() >= Isa::kAvx2;
  const Given given{node.has_input(2), node.has_input(3), node.has_input(4)};
  Kernel kernel;
  kernel.run = [=, count_type = node.input_dtype(2),
                outlet = DataDependentOutput(node, 0)](const Run& run) {
    const Limits limits = limits_of(run, given, count_type);
    std::vector<std::vector<int64_t>> kept(static_cast<size_t>(batch * classes));
    run.parallel(batch * classes, [&](int64_t i, uint32_t) {
      kept[static_cast<size_t>(i)] =
          kept_boxes(run, run.input<float>(0) + i / classes * boxes * 4,
                     run.input<float>(1) + i * boxes, boxes, center == 1, vectors, limits);
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
