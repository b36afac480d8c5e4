// SPDX-License-Identifier: Apache-2.0
#include "providers/wse/place/layer.h"

#include <algorithm>
#include <cmath>

namespace pfrt::wse {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 40;  // sizes are cut off here, not wrapped

constexpr int64_t kLongest = int64_t{1} << 28;  // a side of a product counts as so much at most

// Dimension |i|. The first, which mostly is a batch, counts one where it is not known.
int64_t known(std::span<const int64_t> dims, size_t i, int64_t typical) {
  return dims[i] >= 0 ? dims[i] : i == 0 ? 1 : typical;
}

// The product of dimensions [begin, end).
int64_t product_of(std::span<const int64_t> dims, int64_t typical, size_t begin = 0,
                   size_t end = SIZE_MAX) {
  int64_t out = 1;
  for (size_t i = begin; i < std::min(end, dims.size()); ++i) {
    const int64_t size = known(dims, i, typical);
    if (size == 0) return 0;
    out = out > kMostElements / size ? kMostElements : out * size;
  }
  return out;
}

std::string type_refusal(const SnapshotNode& node) {
  for (uint32_t i = 0; i < node.input_count(); ++i)
    if (node.has_input(i) && node.input_dtype(i) != PFRT_DTYPE_FLOAT32)
      return message("input ", i, " is ", dtype_name(node.input_dtype(i)),
                     ": products on the wafer take float32");
  return {};
}

std::string matmul_refusal(const SnapshotNode& node) {
  if (node.input_rank(0) < 2 || node.input_rank(1) < 2)
    return "MatMul of a vector or of a value without a known rank: matrices are taken";
  return {};
}

std::string gemm_refusal(const SnapshotNode& node) {
  return node.input_rank(0) == 2 && node.input_rank(1) == 2
             ? std::string()
             : "Gemm of a value without a known rank: matrices are taken";
}

std::string conv_refusal(const SnapshotNode& node) {
  const int32_t rank = node.input_rank(0);
  if (rank != 3 && rank != 4)
    return message("Conv of rank ", rank, ": images (rank 4) and signals (rank 3) are taken");
  if (node.input_rank(1) != rank) return "Conv whose weights have no known rank";
  for (const int64_t d : node.input_dims(1))
    if (d < 0) return "Conv whose weights have a symbolic dimension";
  const auto axes = static_cast<size_t>(rank - 2);
  for (const char* list : {"strides", "dilations", "pads"}) {
    const size_t size = node.attr_ints(list).size();
    const size_t wanted = std::string_view(list) == "pads" ? 2 * axes : axes;
    if (size != 0 && size != wanted)
      return message("Conv with ", size, " numbers in ", list, ": ", wanted, " are taken");
  }
  return {};
}

struct ProductRow {
  std::string_view op;
  std::string (*refuse)(const SnapshotNode&);
  void (*fill)(const SnapshotNode&, int64_t, Layer&);
};

void fill_matmul(const SnapshotNode& node, int64_t typical, Layer& out) {
  const auto a = node.input_dims(0), b = node.input_dims(1);
  out.m = known(a, a.size() - 2, typical);
  out.k = known(a, a.size() - 1, typical);
  out.n = known(b, b.size() - 1, typical);
  const int64_t batch_a = product_of(a, typical, 0, a.size() - 2);
  const int64_t batch_b = product_of(b, typical, 0, b.size() - 2);
  if (batch_b <= 1) {
    out.m = std::min(kMostElements, out.m * batch_a);  // one product of all rows
  } else {
    out.batch = std::max(batch_a, batch_b);
  }
}

void fill_gemm(const SnapshotNode& node, int64_t typical, Layer& out) {
  const auto a = node.input_dims(0), b = node.input_dims(1);
  const bool across = node.attr_int("transA", 0) != 0, turned = node.attr_int("transB", 0) != 0;
  out.m = known(a, across ? 1 : 0, typical);
  out.k = known(a, across ? 0 : 1, typical);
  out.n = known(b, turned ? 0 : 1, typical);
}

void fill_conv(const SnapshotNode& node, int64_t typical, Layer& out) {
  const auto image = node.output_dims(0), weights = node.input_dims(1);
  const int64_t group = std::max<int64_t>(1, node.attr_int("group", 1));
  out.batch = group;
  out.m = image.size() < 2
              ? typical
              : std::min(kMostElements, known(image, 0, typical) * product_of(image, typical, 2));
  out.window = product_of(weights, 1, 2);
  out.k = weights[1] * out.window;
  out.n = weights[0] / group;
}

constexpr ProductRow kProducts[] = {{"MatMul", matmul_refusal, fill_matmul},
                                    {"Gemm", gemm_refusal, fill_gemm},
                                    {"Conv", conv_refusal, fill_conv}};

const ProductRow* find_product(const SnapshotNode& node) {
  if (!node.domain().empty()) return nullptr;
  for (const ProductRow& row : kProducts)
    if (row.op == node.op()) return &row;
  return nullptr;
}

// The axis that is summed over, as long as the rows of the largest input.
int64_t line_of(const SnapshotNode& node, const Operator& row, int64_t typical) {
  if (row.family != Family::kRows && row.family != Family::kAttention) return 1;
  if (node.input_rank(0) <= 0) return typical;
  const auto dims = node.input_dims(0);
  const int64_t rank = static_cast<int64_t>(dims.size());
  int64_t axis = node.attr_int("axis", -1);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return known(dims, dims.size() - 1, typical);
  return row.op == "LayerNormalization" ? product_of(dims, typical, static_cast<size_t>(axis))
                                        : known(dims, static_cast<size_t>(axis), typical);
}

// Elements that a Concat adds to the longer of its two inputs; a decoder adds a token's keys to
// those it has in this way.
int64_t added(const SnapshotNode& node, int64_t typical) {
  if (node.op() != "Concat" || node.input_count() != 2 || node.input_rank(0) < 3) return 0;
  const int64_t first = product_of(node.input_dims(0), typical);
  const int64_t second = product_of(node.input_dims(1), typical);
  return second <= first ? second : 0;
}

}  // namespace

double Layer::macs() const {
  return static_cast<double>(batch) * static_cast<double>(m) * static_cast<double>(k) *
         static_cast<double>(n);
}

std::string refusal(const SnapshotNode& node) {
  if (const ProductRow* const product = find_product(node)) {
    std::string why = type_refusal(node);
    return why.empty() ? product->refuse(node) : why;
  }
  const Operator* const row = find_operator(node.domain(), node.op());
  if (row == nullptr)
    return message("the wafer has no operator ", node.domain(),
                   node.domain().empty() ? "" : "::", node.op());
  return row->refuse(node);
}

Layer layer_of(const SnapshotNode& node, int64_t typical) {
  Layer out;
  out.op = node.op();
  out.name = node.name().empty() ? message(node.op(), " ", node.index()) : std::string(node.name());
  out.node = node.index();
  for (uint32_t i = 0; i < node.input_count(); ++i) {
    if (!node.has_input(i)) continue;
    const int64_t count = product_of(node.input_dims(i), typical);
    (node.is_constant(i) ? out.weights : out.inputs) += count;
  }
  for (uint32_t i = 0; i < node.output_count(); ++i)
    if (node.has_output(i)) out.outputs += product_of(node.output_dims(i), typical);
  if (const ProductRow* const product = find_product(node)) {
    out.constant_b = node.is_constant(1);
    product->fill(node, typical, out);
    for (int64_t* const size : {&out.batch, &out.m, &out.k, &out.n})
      *size = std::min(*size, kLongest);
    return out;
  }
  out.row = find_operator(node.domain(), node.op());
  out.line = line_of(node, *out.row, typical);
  out.fresh = added(node, typical);
  if (out.row->family == Family::kWindows)
    out.window = std::max<int64_t>(1, out.outputs > 0 ? out.inputs / out.outputs : 1);
  return out;
}

}  // namespace pfrt::wse
