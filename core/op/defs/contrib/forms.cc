// SPDX-License-Identifier: Apache-2.0
#include "core/op/defs/contrib/forms.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "core/op/engine/canonicalise.h"
#include "core/op/engine/lookup.h"
#include "core/op/engine/operator_def.h"
#include "core/op/engine/rewriter.h"

namespace pfrt::contrib {
namespace {

std::vector<Attribute> dequantize_attributes() {
  return {Attribute::of_int("axis", 1), Attribute::of_int("block_size", 0),
          Attribute::of_int("output_dtype", 0)};
}

std::vector<Attribute> quantize_attributes(pfrt_dtype dtype) {
  return {Attribute::of_int("axis", 1), Attribute::of_int("block_size", 0),
          Attribute::of_int("output_dtype", dtype), Attribute::of_int("precision", 0),
          Attribute::of_int("saturate", 1)};
}

// Inputs of a quantization or dequantization; a zero point of 0 is left out.
std::vector<ValueId> with_parameters(ValueId x, const Parameters& p) {
  if (p.zero == kNoId) return {x, p.scale};
  return {x, p.scale, p.zero};
}

// Activations that are one operator of ai.onnx, with defaults of their parameters.
struct Form {
  std::string_view name;
  std::optional<float> alpha, beta, gamma;
};
constexpr Form kForms[] = {
    {"Relu", {}, {}, {}},
    {"Sigmoid", {}, {}, {}},
    {"Tanh", {}, {}, {}},
    {"Softplus", {}, {}, {}},
    {"Softsign", {}, {}, {}},
    {"LeakyRelu", 0.01f, {}, {}},
    {"ThresholdedRelu", 1.0f, {}, {}},
    {"Elu", 1.0f, {}, {}},
    {"Celu", 1.0f, {}, {}},
    {"HardSigmoid", 0.2f, 0.5f, {}},
    {"Selu", 1.67326319217681884765625f, {}, 1.05070102214813232421875f},
};

}  // namespace

Status replace_with(Rewriter& rewriter, std::string_view op, int64_t opset) {
  Node& node = rewriter.node();
  node.domain.clear();
  node.op = op;
  while (!node.inputs.empty() && node.inputs.back() == kNoId) node.inputs.pop_back();
  const OperatorDef* row = find_operator("", op, opset ? opset : newest_opset(""));
  return row->canonicalise ? row->canonicalise(rewriter) : Status();
}

void drop(Rewriter& rewriter, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) rewriter.node().drop_attr(name);
}

ValueId input(Rewriter& rewriter, size_t i) {
  return rewriter.has_input(i) ? rewriter.node().inputs[i] : kNoId;
}

Result<pfrt_dtype> dtype_of(Rewriter& rewriter, size_t i) {
  const pfrt_dtype dtype = rewriter.input(i).dtype;
  if (dtype == PFRT_DTYPE_UNSET)
    return rewriter.unsupported("the type of input ", i, " is not known");
  return dtype;
}

Result<ValueId> scalar_input(Rewriter& rewriter, size_t i) {
  const ValueId value = input(rewriter, i);
  if (value == kNoId || (rewriter.has_shape(i) && rewriter.rank(i) == 0)) return value;
  PFRT_ASSIGN(const ValueId shape, rewriter.int64s("scalar", {}));
  return rewriter.before("Reshape", {value, shape}, {Attribute::of_int("allowzero", 0)});
}

Result<ValueId> permuted(Rewriter& rewriter, ValueId value, std::vector<int64_t> perm) {
  return rewriter.before("Transpose", {value}, {Attribute::of_ints("perm", std::move(perm))});
}

Result<ValueId> cast(Rewriter& rewriter, ValueId value, pfrt_dtype to) {
  return rewriter.before("Cast", {value},
                         {Attribute::of_int("to", to), Attribute::of_int("saturate", 1)});
}

Result<size_t> known_rank(Rewriter& rewriter, size_t i, size_t fallback) {
  if (rewriter.has_shape(i)) return rewriter.rank(i);
  if (fallback > 0) return fallback;
  return rewriter.unsupported("the rank of input ", i,
                              " is not known; run shape inference on the model first");
}

std::vector<int64_t> to_channels_first(size_t rank) {
  std::vector<int64_t> perm(rank);
  std::iota(perm.begin(), perm.end(), -1);
  perm[0] = 0;
  if (rank > 1) perm[1] = static_cast<int64_t>(rank) - 1;
  return perm;
}

std::vector<int64_t> to_channels_last(size_t rank) {
  std::vector<int64_t> perm(rank);
  std::iota(perm.begin(), perm.end(), 1);
  perm[0] = 0;
  if (rank > 1) perm[rank - 1] = 1;
  return perm;
}

Status activate_after(Rewriter& rewriter, const Activation& activation, pfrt_dtype dtype) {
  const auto& [name, alpha, beta, gamma] = activation;
  if (name.empty()) return {};
  const auto scaled = [&](float by) -> Status {
    PFRT_ASSIGN(const ValueId factor,
                rewriter.scalar("activation", dtype, static_cast<double>(by)));
    return rewriter.after("Mul", {factor});
  };
  if (name == "ScaledTanh" || name == "ParametricSoftplus") {
    PFRT_TRY(scaled(beta.value_or(1)));
    PFRT_TRY(rewriter.after(name == "ScaledTanh" ? "Tanh" : "Softplus", {}));
    return scaled(alpha.value_or(1));
  }
  if (name == "Clip") {
    if (!alpha || !beta) return rewriter.fail("activation Clip needs 2 parameters, min and max");
    PFRT_ASSIGN(const ValueId low, rewriter.scalar("min", dtype, static_cast<double>(*alpha)));
    PFRT_ASSIGN(const ValueId high, rewriter.scalar("max", dtype, static_cast<double>(*beta)));
    return rewriter.after("Clip", {low, high});
  }
  for (const Form& form : kForms) {
    if (form.name != name) continue;
    std::vector<Attribute> attrs;
    if (form.alpha) attrs.push_back(Attribute::of_float("alpha", alpha.value_or(*form.alpha)));
    if (form.beta) attrs.push_back(Attribute::of_float("beta", beta.value_or(*form.beta)));
    if (form.gamma) attrs.push_back(Attribute::of_float("gamma", gamma.value_or(*form.gamma)));
    return rewriter.after(form.name, {}, std::move(attrs));
  }
  std::string known = "Clip, ScaledTanh, ParametricSoftplus";
  for (const Form& form : kForms) known += ", " + std::string(form.name);
  return rewriter.fail("activation '", name, "' is not known; these are: ", known);
}

Result<Parameters> parameters(Rewriter& rewriter, size_t scale, size_t zero, pfrt_dtype dtype) {
  Parameters p;
  PFRT_ASSIGN(p.scale, scalar_input(rewriter, scale));
  PFRT_ASSIGN(p.zero, scalar_input(rewriter, zero));
  if (p.scale == kNoId) return rewriter.fail("input ", scale, ", a scale, is absent");
  p.dtype = p.zero != kNoId && rewriter.input(zero).dtype ? rewriter.input(zero).dtype : dtype;
  return p;
}

Result<ValueId> dequantized(Rewriter& rewriter, ValueId x, const Parameters& p) {
  return rewriter.before("DequantizeLinear", with_parameters(x, p), dequantize_attributes());
}

Result<ValueId> dequantized(Rewriter& rewriter, size_t x, size_t scale, size_t zero) {
  PFRT_ASSIGN(const Parameters p, parameters(rewriter, scale, zero, rewriter.input(x).dtype));
  if (!rewriter.has_input(x)) return rewriter.fail("input ", x, " is absent");
  return dequantized(rewriter, rewriter.node().inputs[x], p);
}

Result<ValueId> quantized(Rewriter& rewriter, ValueId x, const Parameters& p) {
  return rewriter.before("QuantizeLinear", with_parameters(x, p), quantize_attributes(p.dtype));
}

Status quantize_after(Rewriter& rewriter, const Parameters& p) {
  std::vector<ValueId> more = with_parameters(kNoId, p);
  more.erase(more.begin());
  return rewriter.after("QuantizeLinear", more, quantize_attributes(p.dtype));
}

}  // namespace pfrt::contrib
