// SPDX-License-Identifier: Apache-2.0
#include "core/op/defs/elementwise.h"

#include <algorithm>

#include "core/op/defs/common/families.h"
#include "core/op/defs/common/helpers.h"
#include "core/op/defs/common/shapes.h"
#include "core/op/engine/contents.h"
#include "core/op/engine/inference.h"
#include "core/op/engine/operator_def.h"

namespace pfrt {
namespace {

// Computes an element of an integer result from elements of the inputs.
using Fold = Dim (*)(const Inference& in, Dim a, Dim b);

Dim add(const Inference& in, Dim a, Dim b) { return in.symbols().add(a, b); }
Dim sub(const Inference& in, Dim a, Dim b) { return in.symbols().sub(a, b); }
Dim mul(const Inference& in, Dim a, Dim b) { return in.symbols().mul(a, b); }
Dim least(const Inference& in, Dim a, Dim b) { return in.symbols().min(a, b); }
Dim most(const Inference& in, Dim a, Dim b) { return in.symbols().max(a, b); }

Dim quotient(const Inference& in, Dim a, Dim b) {
  if (!a.known() || !b.known()) return in.symbols().floor_div(a, b);
  if (b.is(0) || b.is(-1)) return b.is(0) ? Dim() : in.symbols().sub(0, a);
  return a.value() / b.value();  // integer division rounds toward zero
}

Dim remainder(const Inference& in, Dim a, Dim b) {
  if (!a.known() || !b.known() || b.is(0)) return {};
  if (b.is(-1)) return 0;
  const int64_t r = a.value() % b.value();
  const bool sign_of_dividend = in.node().attr_int("fmod", 0) != 0;
  return r != 0 && !sign_of_dividend && (r < 0) != (b.value() < 0) ? r + b.value() : r;
}

// A dimension never equals the -1 that stands for "as it was" in exported shapes.
Dim equal(const Inference& in, Dim a, Dim b) {
  if (a == b) return 1;
  const auto differs = [&](Dim number, Dim other) {
    return number.known() && number.value() < 0 && in.symbols().certainly_natural(other);
  };
  return (a.known() && b.known()) || differs(a, b) || differs(b, a) ? Dim(0) : Dim();
}

// The contents of input |i| broadcast to |shape|, of |count| elements.
std::optional<Shape> spread(const Inference& in, size_t i, const Shape& shape, size_t count) {
  std::optional<Shape> data = in.data(i);
  if (!data) return std::nullopt;
  if (data->size() == 1) return Shape(count, data->front());
  if (data->size() == count && in.shape(i) == shape) return data;
  return std::nullopt;
}

// Number of elements of |shape|, when few enough to be tracked.
std::optional<size_t> tracked_count(const Shape& shape) {
  int64_t count = 1;
  for (const Dim& d : shape) {
    if (!d.known() || d.value() < 0 || d.value() > static_cast<int64_t>(kMaxData))
      return std::nullopt;
    count *= d.value();
    if (count > static_cast<int64_t>(kMaxData)) return std::nullopt;
  }
  return static_cast<size_t>(count);
}

void fold_data(Inference& in, pfrt_dtype dtype, const Shape& shape, Fold fold) {
  const std::optional<size_t> count = tracked_count(shape);
  if (!fold || !holds_data(dtype) || !count) return;
  Shape out;
  for (size_t i = 0; i < in.input_count(); ++i) {
    std::optional<Shape> next = spread(in, i, shape, *count);
    if (!next) return;
    if (i == 0) {
      out = std::move(*next);
      continue;
    }
    for (size_t k = 0; k < *count; ++k) out[k] = narrow(dtype, fold(in, out[k], (*next)[k]));
  }
  in.set_data(0, std::move(out));
}

Status infer_broadcast(Inference& in, pfrt_dtype dtype, Fold fold) {
  Shape shape;
  for (size_t i = 0; i < in.input_count(); ++i) {
    if (!in.has_shape(i)) {
      in.set_output_unknown_shape(0, dtype);
      return {};
    }
    PFRT_ASSIGN(shape, in.broadcast(shape, in.shape(i)));
  }
  in.set_output(0, dtype, shape);
  fold_data(in, dtype, shape, fold);
  return {};
}

// Takes any number of inputs of one type, broadcast together.
template <Fold fold = nullptr>
Status infer_arithmetic(Inference& in) {
  PFRT_TRY(same_dtypes(in, 0, in.input_count()));
  pfrt_dtype dtype = PFRT_DTYPE_UNSET;
  for (size_t i = 0; i < in.input_count() && dtype == PFRT_DTYPE_UNSET; ++i)
    dtype = in.input(i).dtype;
  return infer_broadcast(in, dtype, fold);
}

template <Fold fold = nullptr>
Status infer_comparison(Inference& in) {
  PFRT_TRY(same_dtypes(in, 0, 2));
  return infer_broadcast(in, PFRT_DTYPE_BOOL, fold);
}

Status infer_logical(Inference& in) {
  for (const size_t i : {0u, 1u}) PFRT_TRY(expect_dtype(in, i, PFRT_DTYPE_BOOL));
  return infer_comparison<>(in);
}

Status infer_not(Inference& in) {
  PFRT_TRY(expect_dtype(in, 0, PFRT_DTYPE_BOOL));
  return infer_same(in);
}

// The exponent may have a type of its own.
Status infer_pow(Inference& in) { return infer_broadcast(in, in.input(0).dtype, nullptr); }

Status infer_prelu(Inference& in) {
  PFRT_TRY(same_dtypes(in, 0, 2));
  if (in.has_shape(0) && in.has_shape(1)) {
    if (in.rank(1) > in.rank(0))
      return in.fail("the slope has rank ", in.rank(1), ", the input ", in.rank(0),
                     "; the slope must broadcast to the input");
    PFRT_ASSIGN(const Shape both, in.broadcast(in.shape(0), in.shape(1)));
    for (size_t i = 0; i < both.size(); ++i)
      if (both[i].known() && in.shape(0)[i].known() && !(both[i] == in.shape(0)[i]))
        return in.fail("slope ", in.symbols().text(in.shape(1)), " does not broadcast to input ",
                       in.symbols().text(in.shape(0)));
  }
  return infer_same(in);
}

Status infer_neg(Inference& in) {
  in.set_output(0, in.input(0));
  if (std::optional<Shape> data = in.data(0)) {
    for (Dim& d : *data) d = narrow(in.input(0).dtype, in.symbols().sub(0, d));
    in.set_data(0, std::move(*data));
  }
  return {};
}

Status infer_identity(Inference& in) {
  in.set_output(0, in.input(0));
  if (std::optional<Shape> data = in.data(0)) in.set_data(0, std::move(*data));
  return {};
}

// Gives |output| the shape of input 0.
Status set_same_shape(Inference& in, size_t output, pfrt_dtype dtype) {
  if (in.has_shape(0))
    in.set_output(output, dtype, in.shape(0));
  else
    in.set_output_unknown_shape(output, dtype);
  return {};
}

Status infer_predicate(Inference& in) { return set_same_shape(in, 0, PFRT_DTYPE_BOOL); }

Status infer_cast(Inference& in) {
  const pfrt_dtype to = static_cast<pfrt_dtype>(in.node().attr_int("to", 0));
  PFRT_TRY(set_same_shape(in, 0, to));
  std::optional<Shape> data = in.data(0);
  if (!data || !holds_data(to)) return {};
  // A symbol is a dimension, or arithmetic on some: as a bool it is not certain.
  for (Dim& d : *data) d = to == PFRT_DTYPE_BOOL && !d.known() ? Dim() : narrow(to, d);
  in.set_data(0, std::move(*data));
  return {};
}

Status infer_bit_cast(Inference& in) {
  const pfrt_dtype to = static_cast<pfrt_dtype>(in.node().attr_int("to", 0));
  const pfrt_dtype from = in.input(0).dtype;
  if (from != PFRT_DTYPE_UNSET && dtype_bits(from) != dtype_bits(to))
    return in.fail("elements of ", dtype_name(from), " and ", dtype_name(to), " differ in size");
  return set_same_shape(in, 0, to);
}

Status infer_dropout(Inference& in) {
  PFRT_TRY(set_same_shape(in, 1, PFRT_DTYPE_BOOL));
  return infer_same(in);
}

Status infer_clip(Inference& in) {
  PFRT_TRY(same_dtypes(in, 0, 3));
  return infer_same(in);
}

Status infer_where(Inference& in) {
  PFRT_TRY(expect_dtype(in, 0, PFRT_DTYPE_BOOL));
  PFRT_TRY(same_dtypes(in, 1, 3));
  const pfrt_dtype dtype = in.input(1).dtype ? in.input(1).dtype : in.input(2).dtype;
  PFRT_TRY(infer_broadcast(in, dtype, nullptr));
  const Type type = in.output(0);
  const std::optional<size_t> count = type.has_shape ? tracked_count(type.shape) : std::nullopt;
  if (!count) return {};
  const auto condition_data = spread(in, 0, type.shape, *count);
  auto yes = spread(in, 1, type.shape, *count);
  const auto no = spread(in, 2, type.shape, *count);
  if (!condition_data || !yes || !no) return {};
  for (size_t k = 0; k < *count; ++k) {
    const Dim& chosen = (*condition_data)[k];
    if (chosen.is(0))
      (*yes)[k] = (*no)[k];
    else if (!chosen.known() && !((*yes)[k] == (*no)[k]))
      (*yes)[k] = Dim();
  }
  in.set_data(0, std::move(*yes));
  return {};
}

constexpr auto kPlain = canonical_elementwise;
constexpr auto kLegacy = canonical_legacy_broadcast;

constexpr OperatorDef kElementwiseOperators[] = {
    // domain, name, opsets, inputs, outputs, flags, shape inputs, canonicalise, infer, flops
    {"", "Abs", 1, 0, 1, 1, 1, 1, kOpPlain, 0, kPlain, infer_same, nullptr},
    {"", "Neg", 1, 0, 1, 1, 1, 1, kOpPlain, 0, kPlain, infer_neg, nullptr},
    {"", "Sign", 9, 0, 1, 1, 1, 1, kOpPlain, 0, nullptr, infer_same, nullptr},
    {"", "Sqrt", 1, 0, 1, 1, 1, 1, kOpPlain, 0, kPlain, infer_same, nullptr},
    {"", "Exp", 1, 0, 1, 1, 1, 1, kOpPlain, 0, kPlain, infer_same, nullptr},
    {"", "Log", 1, 0, 1, 1, 1, 1, kOpPlain, 0, kPlain, infer_same, nullptr},
    {"", "Erf", 9, 12, 1, 1, 1, 1, kOpPlain, 0, canonical_integer_erf, infer_same, nullptr},
    {"", "Erf", 13, 0, 1, 1, 1, 1, kOpPlain, 0, nullptr, infer_same, nullptr},
    {"", "Reciprocal", 1, 0, 1, 1, 1, 1, kOpPlain, 0, kPlain, infer_same, nullptr},
    {"", "Floor", 1, 0, 1, 1, 1, 1, kOpPlain, 0, kPlain, infer_same, nullptr},
    {"", "Ceil", 1, 0, 1, 1, 1, 1, kOpPlain, 0, kPlain, infer_same, nullptr},
    {"", "Round", 11, 0, 1, 1, 1, 1, kOpPlain, 0, nullptr, infer_same, nullptr},
    {"", "Sin", 7, 0, 1, 1, 1, 1, kOpPlain, 0, nullptr, infer_same, nullptr},
    {"", "Cos", 7, 0, 1, 1, 1, 1, kOpPlain, 0, nullptr, infer_same, nullptr},
    {"", "Tan", 7, 0, 1, 1, 1, 1, kOpPlain, 0, nullptr, infer_same, nullptr},
    {"", "Asin", 7, 0, 1, 1, 1, 1, kOpPlain, 0, nullptr, infer_same, nullptr},
    {"", "Acos", 7, 0, 1, 1, 1, 1, kOpPlain, 0, nullptr, infer_same, nullptr},
    {"", "Atan", 7, 0, 1, 1, 1, 1, kOpPlain, 0, nullptr, infer_same, nullptr},
    {"", "Sinh", 9, 0, 1, 1, 1, 1, kOpPlain, 0, nullptr, infer_same, nullptr},
    {"", "Cosh", 9, 0, 1, 1, 1, 1, kOpPlain, 0, nullptr, infer_same, nullptr},
    {"", "Tanh", 1, 0, 1, 1, 1, 1, kOpPlain, 0, kPlain, infer_same, nullptr},
    {"", "Asinh", 9, 0, 1, 1, 1, 1, kOpPlain, 0, nullptr, infer_same, nullptr},
    {"", "Acosh", 9, 0, 1, 1, 1, 1, kOpPlain, 0, nullptr, infer_same, nullptr},
    {"", "Atanh", 9, 0, 1, 1, 1, 1, kOpPlain, 0, nullptr, infer_same, nullptr},

    {"", "Relu", 1, 0, 1, 1, 1, 1, kOpPlain, 0, kPlain, infer_same, nullptr},
    {"", "LeakyRelu", 1, 0, 1, 1, 1, 1, kOpPlain, 0, kPlain, infer_same, nullptr},
    {"", "ThresholdedRelu", 1, 0, 1, 1, 1, 1, kOpPlain, 0, kPlain, infer_same, nullptr},
    {"", "PRelu", 1, 6, 2, 2, 1, 1, kOpPlain, 0, canonical_legacy_prelu, infer_prelu, nullptr},
    {"", "PRelu", 7, 0, 2, 2, 1, 1, kOpPlain, 0, nullptr, infer_prelu, nullptr},
    {"", "Elu", 1, 0, 1, 1, 1, 1, kOpPlain, 0, kPlain, infer_same, nullptr},
    {"", "Selu", 1, 5, 1, 1, 1, 1, kOpPlain, 0, canonical_legacy_selu, infer_same, nullptr},
    {"", "Selu", 6, 0, 1, 1, 1, 1, kOpPlain, 0, kPlain, infer_same, nullptr},
    {"", "Celu", 12, 0, 1, 1, 1, 1, kOpPlain, 0, kPlain, infer_same, nullptr},
    {"", "Sigmoid", 1, 0, 1, 1, 1, 1, kOpPlain, 0, kPlain, infer_same, nullptr},
    {"", "HardSigmoid", 1, 0, 1, 1, 1, 1, kOpPlain, 0, kPlain, infer_same, nullptr},
    {"", "HardSwish", 14, 0, 1, 1, 1, 1, kOpPlain, 0, nullptr, infer_same, nullptr},
    {"", "Swish", 24, 0, 1, 1, 1, 1, kOpPlain, 0, kPlain, infer_same, nullptr},
    {"", "Mish", 18, 0, 1, 1, 1, 1, kOpPlain, 0, nullptr, infer_same, nullptr},
    {"", "Gelu", 20, 0, 1, 1, 1, 1, kOpPlain, 0, canonical_gelu, infer_same, nullptr},
    {"", "Softplus", 1, 0, 1, 1, 1, 1, kOpPlain, 0, nullptr, infer_same, nullptr},
    {"", "Softsign", 1, 0, 1, 1, 1, 1, kOpPlain, 0, nullptr, infer_same, nullptr},
    {"", "Shrink", 9, 0, 1, 1, 1, 1, kOpPlain, 0, kPlain, infer_same, nullptr},
    {"", "Clip", 1, 10, 1, 1, 1, 1, kOpPlain, 0, canonical_legacy_clip, infer_clip, nullptr},
    {"", "Clip", 11, 0, 1, 3, 1, 1, kOpPlain, 0, nullptr, infer_clip, nullptr},

    {"", "Add", 1, 6, 2, 2, 1, 1, kOpPlain, 0, kLegacy, infer_arithmetic<add>, nullptr},
    {"", "Add", 7, 0, 2, 2, 1, 1, kOpPlain, 0, nullptr, infer_arithmetic<add>, nullptr},
    {"", "Sub", 1, 6, 2, 2, 1, 1, kOpPlain, 0, kLegacy, infer_arithmetic<sub>, nullptr},
    {"", "Sub", 7, 0, 2, 2, 1, 1, kOpPlain, 0, nullptr, infer_arithmetic<sub>, nullptr},
    {"", "Mul", 1, 6, 2, 2, 1, 1, kOpPlain, 0, kLegacy, infer_arithmetic<mul>, nullptr},
    {"", "Mul", 7, 0, 2, 2, 1, 1, kOpPlain, 0, nullptr, infer_arithmetic<mul>, nullptr},
    {"", "Div", 1, 6, 2, 2, 1, 1, kOpPlain, 0, kLegacy, infer_arithmetic<quotient>, nullptr},
    {"", "Div", 7, 0, 2, 2, 1, 1, kOpPlain, 0, nullptr, infer_arithmetic<quotient>, nullptr},
    {"", "Mod", 10, 0, 2, 2, 1, 1, kOpPlain, 0, kPlain, infer_arithmetic<remainder>, nullptr},
    {"", "Pow", 1, 6, 2, 2, 1, 1, kOpPlain, 0, kLegacy, infer_pow, nullptr},
    {"", "Pow", 7, 0, 2, 2, 1, 1, kOpPlain, 0, nullptr, infer_pow, nullptr},
    {"", "Max", 1, 0, 1, -1, 1, 1, kOpPlain, 0, kPlain, infer_arithmetic<most>, nullptr},
    {"", "Min", 1, 0, 1, -1, 1, 1, kOpPlain, 0, kPlain, infer_arithmetic<least>, nullptr},
    {"", "Sum", 1, 0, 1, -1, 1, 1, kOpPlain, 0, kPlain, infer_arithmetic<>, nullptr},
    {"", "Mean", 1, 0, 1, -1, 1, 1, kOpPlain, 0, kPlain, infer_arithmetic<>, nullptr},

    {"", "Not", 1, 0, 1, 1, 1, 1, kOpPlain, 0, nullptr, infer_not, nullptr},
    {"", "And", 1, 6, 2, 2, 1, 1, kOpPlain, 0, kLegacy, infer_logical, nullptr},
    {"", "And", 7, 0, 2, 2, 1, 1, kOpPlain, 0, nullptr, infer_logical, nullptr},
    {"", "Or", 1, 6, 2, 2, 1, 1, kOpPlain, 0, kLegacy, infer_logical, nullptr},
    {"", "Or", 7, 0, 2, 2, 1, 1, kOpPlain, 0, nullptr, infer_logical, nullptr},
    {"", "Xor", 1, 6, 2, 2, 1, 1, kOpPlain, 0, kLegacy, infer_logical, nullptr},
    {"", "Xor", 7, 0, 2, 2, 1, 1, kOpPlain, 0, nullptr, infer_logical, nullptr},
    {"", "Equal", 1, 6, 2, 2, 1, 1, kOpPlain, 0, kLegacy, infer_comparison<equal>, nullptr},
    {"", "Equal", 7, 0, 2, 2, 1, 1, kOpPlain, 0, nullptr, infer_comparison<equal>, nullptr},
    {"", "Less", 1, 6, 2, 2, 1, 1, kOpPlain, 0, kLegacy, infer_comparison<>, nullptr},
    {"", "Less", 7, 0, 2, 2, 1, 1, kOpPlain, 0, nullptr, infer_comparison<>, nullptr},
    {"", "Greater", 1, 6, 2, 2, 1, 1, kOpPlain, 0, kLegacy, infer_comparison<>, nullptr},
    {"", "Greater", 7, 0, 2, 2, 1, 1, kOpPlain, 0, nullptr, infer_comparison<>, nullptr},
    {"", "LessOrEqual", 12, 0, 2, 2, 1, 1, kOpPlain, 0, nullptr, infer_comparison<>, nullptr},
    {"", "GreaterOrEqual", 12, 0, 2, 2, 1, 1, kOpPlain, 0, nullptr, infer_comparison<>, nullptr},
    {"", "IsNaN", 9, 0, 1, 1, 1, 1, kOpPlain, 0, nullptr, infer_predicate, nullptr},
    {"", "IsInf", 10, 0, 1, 1, 1, 1, kOpPlain, 0, kPlain, infer_predicate, nullptr},
    {"", "Where", 9, 0, 3, 3, 1, 1, kOpPlain, 0, nullptr, infer_where, nullptr},
    {"", "BitShift", 11, 0, 2, 2, 1, 1, kOpPlain, 0, canonical_bit_shift, infer_arithmetic<>,
     nullptr},
    {"", "BitwiseAnd", 18, 0, 2, 2, 1, 1, kOpPlain, 0, nullptr, infer_arithmetic<>, nullptr},
    {"", "BitwiseOr", 18, 0, 2, 2, 1, 1, kOpPlain, 0, nullptr, infer_arithmetic<>, nullptr},
    {"", "BitwiseXor", 18, 0, 2, 2, 1, 1, kOpPlain, 0, nullptr, infer_arithmetic<>, nullptr},
    {"", "BitwiseNot", 18, 0, 1, 1, 1, 1, kOpPlain, 0, nullptr, infer_same, nullptr},

    {"", "Identity", 1, 0, 1, 1, 1, 1, kOpHostStrings, 0, nullptr, infer_identity, nullptr},
    {"", "Cast", 1, 0, 1, 1, 1, 1, kOpHostStrings, 0, canonical_cast, infer_cast, nullptr},
    {"", "CastLike", 15, 0, 2, 2, 1, 1, kOpPlain, 0, canonical_cast_like, nullptr, nullptr},
    {"", "BitCast", 26, 0, 1, 1, 1, 1, kOpPlain, 0, canonical_cast, infer_bit_cast, nullptr},
    {"", "Dropout", 1, 11, 1, 1, 1, 2, kOpPlain, 0, canonical_dropout, infer_dropout, nullptr},
    {"", "Dropout", 12, 0, 1, 3, 1, 2, kOpRandom, 0, canonical_dropout, infer_dropout, nullptr},
};

}  // namespace

std::span<const OperatorDef> elementwise_operators() { return kElementwiseOperators; }

}  // namespace pfrt
