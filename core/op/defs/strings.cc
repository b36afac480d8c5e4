// SPDX-License-Identifier: Apache-2.0
#include "core/op/defs/common/families.h"
#include "core/op/defs/common/helpers.h"
#include "core/op/engine/inference.h"
#include "core/op/engine/lookup.h"

namespace pfrt {
namespace {

Status numbers_like_inputs(Inference& in) {
  for (size_t i = 0; i < in.input_count(); ++i) {
    Type type = in.input(i);
    if (type.dtype && type.dtype != PFRT_DTYPE_STRING) return wrong_dtype(in, i, PFRT_DTYPE_STRING);
    type.kind = PFRT_VALUE_TENSOR;
    type.dtype = PFRT_DTYPE_INT64;
    in.set_output(i, std::move(type));
  }
  return {};
}

Status infer_codes(Inference& in) {
  PFRT_TRY(numbers_like_inputs(in));
  in.set_output(in.input_count(), PFRT_DTYPE_STRING, Shape{Dim()});
  return {};
}

Status infer_take(Inference& in) {
  Type type = in.input(0);
  type.kind = PFRT_VALUE_TENSOR;
  type.dtype = PFRT_DTYPE_STRING;
  in.set_output(0, std::move(type));
  return {};
}

constexpr OperatorDef kStringsOperators[] = {
    // domain, name, opsets, inputs, outputs, flags, shape inputs, canonicalise, infer, flops
    {kStringDomain, "StringPositions", 1, 0, 1, -1, 1, -1, kOpHost, 0, nullptr, numbers_like_inputs,
     nullptr},
    {kStringDomain, "StringCodes", 1, 0, 1, -1, 2, -1, kOpHost, 0, nullptr, infer_codes, nullptr},
    {kStringDomain, "StringTake", 1, 0, 2, -1, 1, 1, kOpHost, 0, nullptr, infer_take, nullptr},
};

}  // namespace

std::span<const OperatorDef> string_operators() { return kStringsOperators; }

}  // namespace pfrt
