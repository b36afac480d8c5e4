// SPDX-License-Identifier: Apache-2.0
//
// com.microsoft operators without a counterpart in ai.onnx; providers have kernels for them.
#include <algorithm>
#include <string>

#include "core/op/defs/common/families.h"
#include "core/op/defs/common/helpers.h"
#include "core/op/defs/common/shapes.h"
#include "core/op/defs/contrib/forms.h"
#include "core/op/engine/canonicalise.h"
#include "core/op/engine/inference.h"
#include "core/op/engine/lookup.h"
#include "core/op/engine/operator_def.h"
#include "core/op/engine/rewriter.h"

namespace pfrt {
namespace {

constexpr std::string_view kDomain = "com.microsoft";

// Requires an integer attribute of at least |least|.
Status need_int(Rewriter& rewriter, std::string_view name, int64_t least) {
  const Attribute* given = rewriter.node().attr(name);
  if (!given || given->type != PFRT_ATTR_INT)
    return rewriter.fail("attribute '", name, "' is missing or not an integer");
  if (given->i < least)
    return rewriter.fail("attribute '", name, "' is ", given->i, ", needs ", least, " or more");
  return {};
}

// ------------------------------------------------------------------ distances and inverses

Status canonical_cdist(Rewriter& rewriter) {
  PFRT_TRY(fill_string(rewriter, "metric", "sqeuclidean"));
  const std::string_view metric = rewriter.node().attr_string("metric", "");
  if (metric == "euclidean" || metric == "sqeuclidean") return {};
  return rewriter.unsupported("metric is '", metric, "'; euclidean and sqeuclidean are available");
}

Status infer_cdist(Inference& inference) {
  PFRT_TRY(same_dtypes(inference, 0, 2));
  for (const size_t i : {0u, 1u}) PFRT_TRY(expect_rank(inference, i, 2));
  Shape out(2);
  for (const size_t i : {0u, 1u})
    if (inference.has_shape(i)) out[i] = inference.shape(i)[0];
  if (inference.has_shape(0) && inference.has_shape(1))
    PFRT_TRY(same_dim(inference, inference.shape(0)[1], inference.shape(1)[1],
                      "the lengths of the points")
                 .take_status());
  inference.set_output(0, inference.input(0).dtype, std::move(out));
  return {};
}

Status infer_inverse(Inference& inference) {
  PFRT_TRY(expect_rank_at_least(inference, 0, 2));
  if (inference.has_shape(0)) {
    const Shape& in = inference.shape(0);
    const Dim rows = in[in.size() - 2], columns = in.back();
    if (rows.known() && columns.known() && !(rows == columns))
      return inference.fail("the matrices are ", rows.value(), " by ", columns.value(),
                            ", need to be square");
  }
  return infer_same(inference);
}

// ------------------------------------------------------------------ sequences of tokens

Status canonical_repeat_block(Rewriter& rewriter) { return need_int(rewriter, "ngram_size", 1); }

Status infer_repeat_block(Inference& inference) {
  for (const size_t i : {0u, 1u}) PFRT_TRY(expect_rank(inference, i, 2));
  if (inference.has_shape(0) && inference.has_shape(1))
    PFRT_TRY(same_dim(inference, inference.shape(0)[0], inference.shape(1)[0],
                      "the batches of tokens and scores")
                 .take_status());
  inference.set_output(0, inference.input(1));
  return {};
}

Status canonical_bifurcation(Rewriter& rewriter) {
  PFRT_TRY(need_int(rewriter, "min_ngram_size", 1));
  return need_int(rewriter, "max_ngram_size", rewriter.node().attr_int("min_ngram_size", 1));
}

Status infer_bifurcation(Inference& inference) {
  for (const size_t i : {0u, 1u, 3u}) PFRT_TRY(expect_rank(inference, i, 1));
  const bool unchanged = !inference.has_input(3) && inference.has_shape(1);
  inference.set_output(0, PFRT_DTYPE_INT64, {unchanged ? inference.shape(1)[0] : Dim()});
  inference.set_output(1, PFRT_DTYPE_INT64, inference.has_shape(2) ? inference.shape(2) : Shape{1});
  return {};
}

Status infer_time_warping(Inference& inference) {
  PFRT_TRY(expect_rank_at_least(inference, 0, 2));
  if (inference.has_shape(0) && inference.rank(0) > 2)
    PFRT_TRY(expect_shape(inference, 0, {1, Dim(), Dim()}));
  inference.set_output(0, PFRT_DTYPE_INT32, {2, Dim()});
  return {};
}

Status canonical_hash(Rewriter& rewriter) {
  PFRT_TRY(fill_int(rewriter, "positive", 1));
  PFRT_TRY(fill_int(rewriter, "seed", 0));
  const int64_t seed = rewriter.node().attr_int("seed", 0);
  if (seed < 0 || seed > UINT32_MAX)
    return rewriter.fail("attribute 'seed' is ", seed, ", needs 32 bits without a sign");
  return {};
}

Status infer_hash(Inference& inference) {
  Type out = inference.input(0);
  out.kind = PFRT_VALUE_TENSOR;
  out.dtype = inference.node().attr_int("positive", 1) != 0 ? pfrt_dtype{PFRT_DTYPE_UINT32}
                                                            : pfrt_dtype{PFRT_DTYPE_INT32};
  inference.set_output(0, std::move(out));
  return {};
}

// ------------------------------------------------------------------ images

Status canonical_crop(Rewriter& rewriter) {
  PFRT_TRY(fill_float(rewriter, "extrapolation_value", 0));
  PFRT_TRY(fill_string(rewriter, "mode", "bilinear"));
  const std::string_view mode = rewriter.node().attr_string("mode", "");
  if (mode == "bilinear" || mode == "nearest") return {};
  return rewriter.fail("mode is '", mode, "', needs bilinear or nearest");
}

// The inputs are X [N, C, H, W], boxes [R, 4], the image of each box [R], and the size of the crops
// [2].
Status infer_crop(Inference& inference) {
  PFRT_TRY(expect_rank(inference, 0, 4));
  PFRT_TRY(expect_shape(inference, 1, {Dim(), 4}));
  PFRT_TRY(expect_rank(inference, 2, 1));
  PFRT_TRY(expect_shape(inference, 3, {2}));
  Shape out(4);
  if (inference.has_shape(2)) out[0] = inference.shape(2)[0];
  if (inference.has_shape(1)) {
    PFRT_ASSIGN(out[0], same_dim(inference, out[0], inference.shape(1)[0],
                                 "the numbers of boxes and of their images"));
  }
  if (inference.has_shape(0)) out[1] = inference.shape(0)[1];
  if (const std::optional<Shape> size = inference.data(3); size && size->size() == 2) {
    for (const Dim& d : *size)
      if (d.known() && d.value() < 1)
        return inference.fail("the crops' size is ", inference.symbols().text(*size),
                              ", needs 1 or more in both dimensions");
    out[2] = (*size)[0];
    out[3] = (*size)[1];
  }
  inference.set_output(0, inference.input(0).dtype, std::move(out));
  return {};
}

// ------------------------------------------------------------------ DynamicQuantizeLSTM

// LSTM's attributes; W is [directions, features, 4 * hidden], R [directions, hidden, 4 * hidden].
Status canonical_lstm(Rewriter& rewriter) {
  Node& node = rewriter.node();
  for (const size_t i : {8u, 9u, 10u, 11u})
    if (!rewriter.has_input(i)) return rewriter.fail("input ", i, " is required but absent");
  if (node.attr("layout")) return rewriter.fail("attribute 'layout' is not one of this operator");
  if (rewriter.has_shape(2) && rewriter.rank(2) == 3 && rewriter.input(2).shape[1].known())
    PFRT_TRY(fill_int(rewriter, "hidden_size", rewriter.input(2).shape[1].value()));
  const std::string own = node.op;
  node.op = "LSTM";
  PFRT_TRY(find_operator("", "LSTM", newest_opset(""))->canonicalise(rewriter));
  node.op = own;
  node.drop_attr("layout");
  return {};
}

Status infer_lstm(Inference& inference) {
  for (const size_t i : {0u, 1u, 2u}) PFRT_TRY(expect_rank(inference, i, 3));
  const Node& node = inference.node();
  const int64_t directions = node.attr_string("direction", "") == "bidirectional" ? 2 : 1;
  Dim time, batch, features, hidden;
  if (inference.has_shape(0)) {
    time = inference.shape(0)[0];
    batch = inference.shape(0)[1];
    features = inference.shape(0)[2];
  }
  if (const Attribute* given = node.attr("hidden_size")) hidden = Dim(given->i);
  if (hidden.known() && (hidden.value() < 0 || hidden.value() > INT32_MAX))
    return inference.fail("hidden_size is ", hidden.value(), ", needs 0 to ", INT32_MAX);
  const Dim units = inference.symbols().mul(hidden, 4);
  PFRT_TRY(expect_shape(inference, 1, {directions, features, units}));
  PFRT_TRY(expect_shape(inference, 2, {directions, hidden, units}));
  PFRT_TRY(expect_shape(inference, 3, {directions, inference.symbols().mul(units, 2)}));
  PFRT_TRY(expect_shape(inference, 4, {batch}));
  for (const size_t i : {5u, 6u}) PFRT_TRY(expect_shape(inference, i, {directions, batch, hidden}));
  PFRT_TRY(expect_shape(inference, 7, {directions, inference.symbols().mul(hidden, 3)}));
  const pfrt_dtype dtype = inference.input(0).dtype;
  inference.set_output(0, dtype, {time, directions, batch, hidden});
  for (const size_t i : {1u, 2u}) inference.set_output(i, dtype, {directions, batch, hidden});
  return {};
}

double lstm_flops(const Inference& inference) {
  if (!inference.has_shape(0) || !inference.has_shape(1) || !inference.has_shape(2)) return 0;
  return 2 * elements(inference.shape(0), 0, 2) *
         (elements(inference.shape(1)) + elements(inference.shape(2)));
}

// ------------------------------------------------------------------ weights of few bits

Status canonical_bnb4(Rewriter& rewriter) {
  for (const std::string_view name : {"K", "N"}) PFRT_TRY(need_int(rewriter, name, 1));
  PFRT_TRY(need_int(rewriter, "block_size", 16));
  PFRT_TRY(need_int(rewriter, "quant_type", 0));
  PFRT_TRY(fill_int(rewriter, "training_mode", 0));
  PFRT_TRY(fill_int(rewriter, "transB", 1));
  const Node& node = rewriter.node();
  const int64_t block = node.attr_int("block_size", 0);
  if (block > (1 << 24) || (block & (block - 1)) != 0)
    return rewriter.fail("attribute 'block_size' is ", block,
                         ", needs a power of 2 from 16 to 16777216");
  if (node.attr_int("quant_type", 0) > 1)
    return rewriter.fail("attribute 'quant_type' is ", node.attr_int("quant_type", 0),
                         ", needs 0 (FP4) or 1 (NF4)");
  if (node.attr_int("training_mode", 0) != 0)
    return rewriter.unsupported("training_mode is set; export the model for inference");
  if (node.attr_int("transB", 1) != 1)
    return rewriter.unsupported(
        "transB is 0; weights are [N, K] here, and others are not available");
  for (const std::string_view name : {"K", "N"})
    if (node.attr_int(name, 0) > (int64_t{1} << 30))
      return rewriter.fail("attribute '", name, "' is ", node.attr_int(name, 0),
                           ", needs 2^30 or less");
  return {};
}

Status infer_bnb4(Inference& inference) {
  const Node& node = inference.node();
  const int64_t k = node.attr_int("K", 0), n = node.attr_int("N", 0);
  const int64_t block = std::max<int64_t>(1, node.attr_int("block_size", 1));
  PFRT_TRY(expect_rank_at_least(inference, 0, 1));
  PFRT_TRY(expect_shape(inference, 1, {(n * k + 1) / 2}));
  PFRT_TRY(expect_shape(inference, 2, {(n * k + block - 1) / block}));
  Type out = inference.input(0);
  if (out.has_shape) {
    PFRT_TRY(
        same_dim(inference, out.shape.back(), Dim(k), "A's last dimension and K").take_status());
    out.shape.back() = Dim(n);
  }
  inference.set_output(0, std::move(out));
  return {};
}

double bnb4_flops(const Inference& inference) {
  if (!inference.output(0).has_shape) return 0;
  return 2 * elements(inference.output(0).shape) *
         static_cast<double>(inference.node().attr_int("K", 0));
}

bool packs(const Inference& inference) { return inference.input(0).dtype == PFRT_DTYPE_UINT8; }

Status canonical_gather_block(Rewriter& rewriter) {
  PFRT_TRY(fill_int(rewriter, "bits", 4));
  PFRT_TRY(fill_int(rewriter, "block_size", 128));
  PFRT_TRY(canonical_axis(rewriter, "gather_axis", 0));
  PFRT_TRY(canonical_axis(rewriter, "quantize_axis", 1));
  const Node& node = rewriter.node();
  const int64_t block = node.attr_int("block_size", 0), bits = node.attr_int("bits", 0);
  if (block < 16 || block > (1 << 24) || (block & (block - 1)) != 0)
    return rewriter.fail("block_size is ", block, ", needs a power of 2 from 16 to 16777216");
  PFRT_ASSIGN(const pfrt_dtype dtype, contrib::dtype_of(rewriter, 0));
  const bool bytes = dtype == PFRT_DTYPE_UINT8;
  if (!bytes && dtype != PFRT_DTYPE_INT4 && dtype != PFRT_DTYPE_UINT4)
    return rewriter.fail("the data is ", dtype_name(dtype), ", needs int4, uint4 or uint8");
  if (bits != 4 && !(bytes && (bits == 2 || bits == 8)))
    return rewriter.fail("bits is ", bits, ", needs ", bytes ? "2, 4 or 8" : "4");
  if (!bytes || !rewriter.has_shape(0)) return {};
  const int64_t rank = static_cast<int64_t>(rewriter.rank(0));
  if (node.attr_int("gather_axis", 0) != 0 || node.attr_int("quantize_axis", 1) != rank - 1)
    return rewriter.fail(
        "data of uint8 needs gather_axis 0 and the last dimension as quantize_axis");
  return {};
}

Status infer_gather_block(Inference& inference) {
  const pfrt_dtype dtype = inference.input(2).dtype;
  if (!inference.has_shape(0) || !inference.has_shape(1)) {
    inference.set_output_unknown_shape(0, dtype);
    return {};
  }
  const Node& node = inference.node();
  Shape data = inference.shape(0);
  PFRT_ASSIGN(const int64_t axis, inference.axis(node.attr_int("gather_axis", 0), data.size()));
  PFRT_ASSIGN(const int64_t along, inference.axis(node.attr_int("quantize_axis", 1), data.size()));
  const int64_t bits = std::max<int64_t>(1, node.attr_int("bits", 4));
  SymbolTable& symbols = inference.symbols();
  if (packs(inference) && bits < 8)
    data[static_cast<size_t>(along)] = symbols.mul(data[static_cast<size_t>(along)], 8 / bits);
  Shape blocks = data;
  Dim& count = blocks[static_cast<size_t>(along)];
  count = symbols.ceil_div(count, std::max<int64_t>(1, node.attr_int("block_size", 128)));
  PFRT_TRY(expect_shape(inference, 2, blocks));
  if (packs(inference) && bits < 8) count = symbols.ceil_div(count, 8 / bits);
  PFRT_TRY(expect_shape(inference, 3, blocks));
  const Shape& indices = inference.shape(1);
  Shape out(data.begin(), data.begin() + axis);
  out.insert(out.end(), indices.begin(), indices.end());
  out.insert(out.end(), data.begin() + axis + 1, data.end());
  inference.set_output(0, dtype, std::move(out));
  return {};
}

constexpr OperatorDef kRows[] = {
    {kDomain, "CDist", 1, 0, 2, 2, 1, 1, kOpPlain, 0, canonical_cdist, infer_cdist, nullptr},
    {kDomain, "Inverse", 1, 0, 1, 1, 1, 1, kOpPlain, 0, nullptr, infer_inverse, nullptr},
    {kDomain, "NGramRepeatBlock", 1, 0, 2, 2, 1, 1, kOpPlain, 0, canonical_repeat_block,
     infer_repeat_block, nullptr},
    {kDomain, "BifurcationDetector", 1, 0, 3, 4, 2, 2, kOpDataDependent, 0, canonical_bifurcation,
     infer_bifurcation, nullptr},
    {kDomain, "DynamicTimeWarping", 1, 0, 1, 1, 1, 1, kOpDataDependent, 0, nullptr,
     infer_time_warping, flops_of_input},
    {kDomain, "MurmurHash3", 1, 0, 1, 1, 1, 1, kOpHostStrings, 0, canonical_hash, infer_hash,
     nullptr},
    {kDomain, "CropAndResize", 1, 0, 4, 4, 1, 1, kOpPlain, 1u << 3, canonical_crop, infer_crop,
     nullptr},
    {kDomain, "DynamicQuantizeLSTM", 1, 0, 3, 12, 0, 3, kOpPlain, 0, canonical_lstm, infer_lstm,
     lstm_flops},
    {kDomain, "MatMulBnb4", 1, 0, 3, 3, 1, 1, kOpPlain, 0, canonical_bnb4, infer_bnb4, bnb4_flops},
    {kDomain, "GatherBlockQuantized", 1, 0, 3, 4, 1, 1, kOpPlain, 0, canonical_gather_block,
     infer_gather_block, nullptr},
};

}  // namespace

std::span<const OperatorDef> contrib_native_operators() { return kRows; }

}  // namespace pfrt
