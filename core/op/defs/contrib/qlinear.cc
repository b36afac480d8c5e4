// SPDX-License-Identifier: Apache-2.0
//
// Operators on quantized tensors that are defined by dequantizing, computing and quantizing again.
// They become those three: the elementwise loop keeps the values between them short, and the
// rounding is that of QuantizeLinear. Rewrites restore averages of bytes where a provider has them.
#include <cstring>
#include <string>

#include "core/op/defs/common/families.h"
#include "core/op/defs/common/helpers.h"
#include "core/op/defs/common/shapes.h"
#include "core/op/defs/contrib/forms.h"
#include "core/op/defs/pool.h"
#include "core/op/engine/lookup.h"
#include "core/op/engine/operator_def.h"
#include "core/op/engine/rewriter.h"

namespace pfrt {
namespace {

using contrib::dequantized;
using contrib::drop;
using contrib::Parameters;
using contrib::parameters;
using contrib::quantize_after;
using contrib::replace_with;

// Makes the node |op| of inputs (x, scale, zero point) at 0 and 3, quantized by inputs 6 and 7.
Status canonical_binary(Rewriter& rewriter, std::string_view op) {
  PFRT_ASSIGN(const pfrt_dtype dtype, contrib::dtype_of(rewriter, 0));
  PFRT_ASSIGN(const ValueId a, dequantized(rewriter, 0, 1, 2));
  PFRT_ASSIGN(const ValueId b, dequantized(rewriter, 3, 4, 5));
  PFRT_ASSIGN(const Parameters out, parameters(rewriter, 6, 7, dtype));
  rewriter.node().inputs = {a, b};
  PFRT_TRY(replace_with(rewriter, op));
  return quantize_after(rewriter, out);
}
Status canonical_add(Rewriter& rewriter) { return canonical_binary(rewriter, "Add"); }
Status canonical_mul(Rewriter& rewriter) { return canonical_binary(rewriter, "Mul"); }

// The dequantized input 0, with scale and zero point at 1 and 2, and the output's parameters at 3
// and 4.
struct Unary {
  ValueId x = kNoId;
  Parameters out;
};
Result<Unary> read_unary(Rewriter& rewriter) {
  PFRT_ASSIGN(const pfrt_dtype dtype, contrib::dtype_of(rewriter, 0));
  Unary unary;
  PFRT_ASSIGN(unary.x, dequantized(rewriter, 0, 1, 2));
  PFRT_ASSIGN(unary.out, parameters(rewriter, 3, 4, dtype));
  return unary;
}

Status canonical_unary(Rewriter& rewriter, std::string_view op, int64_t opset = 0) {
  PFRT_ASSIGN(const Unary unary, read_unary(rewriter));
  rewriter.node().inputs = {unary.x};
  PFRT_TRY(replace_with(rewriter, op, opset));
  return quantize_after(rewriter, unary.out);
}
Status canonical_sigmoid(Rewriter& rewriter) { return canonical_unary(rewriter, "Sigmoid"); }
Status canonical_leaky_relu(Rewriter& rewriter) { return canonical_unary(rewriter, "LeakyRelu"); }
Status canonical_reduce_mean(Rewriter& rewriter) { return canonical_unary(rewriter, "ReduceMean"); }

// Attribute "opset" tells the version of Softmax: before 13 the sum goes over all dimensions from
// the axis.
Status canonical_softmax(Rewriter& rewriter) {
  PFRT_TRY(fill_int(rewriter, "opset", 13));
  const int64_t opset = rewriter.node().attr_int("opset", 13);
  if (opset < 1 || opset > newest_opset(""))
    return rewriter.fail("attribute 'opset' is ", opset, ", needs 1 to ", newest_opset(""));
  drop(rewriter, {"opset"});
  return canonical_unary(rewriter, "Softmax", opset);
}

// Makes the node a pool, with channels in the last dimension where attribute "channels_last" says
// so.
Status canonical_pool(Rewriter& rewriter, std::string_view op) {
  PFRT_TRY(fill_int(rewriter, "channels_last", 0));
  const bool last = rewriter.node().attr_int("channels_last", 0) != 0;
  drop(rewriter, {"channels_last"});
  PFRT_ASSIGN(Unary unary, read_unary(rewriter));
  const std::vector<int64_t>* kernel = rewriter.node().attr_ints("kernel_shape");
  PFRT_ASSIGN(const size_t rank, contrib::known_rank(rewriter, 0,
                                                     kernel ? kernel->size() + 2
                                                     : last ? 0
                                                            : 3));
  if (rank < 3) return rewriter.fail("the input has rank ", rank, ", needs 3 or more");
  if (last) {
    PFRT_ASSIGN(unary.x, contrib::permuted(rewriter, unary.x, contrib::to_channels_first(rank)));
  }
  rewriter.node().inputs = {unary.x};
  PFRT_TRY(replace_with(rewriter, op));
  if (last)
    PFRT_TRY(rewriter.after("Transpose", {},
                            {Attribute::of_ints("perm", contrib::to_channels_last(rank))}));
  return quantize_after(rewriter, unary.out);
}
Status canonical_average_pool(Rewriter& rewriter) {
  return canonical_pool(rewriter, "AveragePool");
}
Status canonical_global_average_pool(Rewriter& rewriter) {
  return canonical_pool(rewriter, "GlobalAveragePool");
}

// The output has the type of its zero point.
Status with_type_of_zero(Inference& inference) {
  if (inference.has_input(4)) {
    Type type = inference.output(0);
    type.dtype = inference.input(4).dtype;
    inference.set_output(0, std::move(type));
  }
  return {};
}
Status infer_quantized_pool(Inference& inference) {
  PFRT_TRY(infer_pool(inference));
  return with_type_of_zero(inference);
}
Status infer_quantized_global_pool(Inference& inference) {
  PFRT_TRY(infer_global_pool(inference));
  return with_type_of_zero(inference);
}

bool same_constant(const Tensor* a, const Tensor* b) {
  return a && b && a->dtype == b->dtype && a->count() == 1 && b->count() == 1 &&
         std::memcmp(a->as<const uint8_t>(), b->as<const uint8_t>(), a->bytes()) == 0;
}

// Input |x|, with scale and zero point after it, brought to the parameters |out| of inputs |scale|
// and |zero|: unchanged where its own are equal, else dequantized and quantized.
Result<ValueId> requantized(Rewriter& rewriter, size_t x, const Parameters& out, size_t scale,
                            size_t zero) {
  if (!rewriter.has_input(x)) return rewriter.fail("input ", x, " is absent");
  const ValueId value = rewriter.node().inputs[x];
  if (same_constant(rewriter.constant(x + 1), rewriter.constant(scale)) &&
      same_constant(rewriter.constant(x + 2), rewriter.constant(zero)))
    return value;
  PFRT_ASSIGN(const ValueId real, dequantized(rewriter, x, x + 1, x + 2));
  return contrib::quantized(rewriter, real, out);
}

Status canonical_concat(Rewriter& rewriter) {
  const size_t count = rewriter.node().inputs.size();
  if (count < 5 || (count - 2) % 3 != 0)
    return rewriter.fail("has ", count,
                         " inputs, needs a scale and a zero point and then three a tensor");
  PFRT_ASSIGN(const pfrt_dtype dtype, contrib::dtype_of(rewriter, 2));
  PFRT_ASSIGN(const Parameters out, parameters(rewriter, 0, 1, dtype));
  std::vector<ValueId> joined;
  for (size_t i = 2; i < count; i += 3) {
    PFRT_ASSIGN(const ValueId part, requantized(rewriter, i, out, 0, 1));
    joined.push_back(part);
  }
  rewriter.node().inputs = std::move(joined);
  return replace_with(rewriter, "Concat");
}

Status canonical_where(Rewriter& rewriter) {
  PFRT_ASSIGN(const pfrt_dtype dtype, contrib::dtype_of(rewriter, 1));
  PFRT_ASSIGN(const Parameters out, parameters(rewriter, 7, 8, dtype));
  PFRT_ASSIGN(const ValueId yes, requantized(rewriter, 1, out, 7, 8));
  PFRT_ASSIGN(const ValueId no, requantized(rewriter, 4, out, 7, 8));
  rewriter.node().inputs = {rewriter.node().inputs[0], yes, no};
  return replace_with(rewriter, "Where");
}

// The zero point's type is the output's, as in ai.onnx.
Status canonical_quantize(Rewriter& rewriter) { return replace_with(rewriter, "QuantizeLinear"); }
Status canonical_dequantize(Rewriter& rewriter) {
  return replace_with(rewriter, "DequantizeLinear");
}

constexpr std::string_view kDomain = "com.microsoft";

constexpr OperatorDef row(std::string_view name, int least, int most,
                          Status (*canonicalise)(Rewriter&)) {
  return {kDomain, name, 1, 0, least, most, 1, 1, kOpPlain, 0, canonicalise, nullptr, nullptr};
}

// Zero points may be absent between required inputs; the forms above check these.
constexpr OperatorDef kRows[] = {
    row("QLinearAdd", 2, 8, canonical_add),
    row("QLinearMul", 2, 8, canonical_mul),
    row("QLinearSigmoid", 2, 5, canonical_sigmoid),
    row("QLinearLeakyRelu", 2, 5, canonical_leaky_relu),
    row("QLinearReduceMean", 2, 5, canonical_reduce_mean),
    row("QLinearSoftmax", 2, 5, canonical_softmax),
    {kDomain, "QLinearAveragePool", 1, 0, 2, 5, 1, 1, kOpPlain, 0, canonical_average_pool,
     infer_quantized_pool, pool_flops},
    {kDomain, "QLinearGlobalAveragePool", 1, 0, 5, 5, 1, 1, kOpPlain, 0,
     canonical_global_average_pool, infer_quantized_global_pool, flops_of_input},
    row("QLinearConcat", 3, -1, canonical_concat),
    row("QLinearWhere", 9, 9, canonical_where),
    row("QuantizeLinear", 2, 3, canonical_quantize),
    row("DequantizeLinear", 2, 3, canonical_dequantize),
};

}  // namespace

std::span<const OperatorDef> contrib_qlinear_operators() { return kRows; }

}  // namespace pfrt
