// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string_view>

#include "core/base/dtype.h"
#include "core/op/defs/common/families.h"
#include "core/op/defs/common/helpers.h"
#include "core/op/engine/body.h"
#include "core/op/engine/inference.h"
#include "core/op/engine/operator_def.h"
#include "core/op/engine/rewriter.h"

namespace pfrt {
namespace {

Type with_kind(Type type, pfrt_value_kind kind) {
  type.kind = kind;
  return type;
}

Status require_kind(const Inference& in, size_t i, pfrt_value_kind kind, const char* name) {
  const pfrt_value_kind found = in.input(i).kind;
  if (found == kind || found == PFRT_VALUE_UNSET) return {};
  return error(Code::kVALIDATION, describe(in.graph(), in.node()), ": input ", i, " is not ", name,
               " (kind ", found, ")");
}

Status canonical_sequence_empty(Rewriter& rewriter) {
  Node& node = rewriter.node();
  const int64_t dtype = node.attr_int("dtype", PFRT_DTYPE_FLOAT32);
  if (dtype <= 0 || dtype > UINT32_MAX || !dtype_known(static_cast<pfrt_dtype>(dtype)))
    return rewriter.fail("attribute 'dtype' is ", dtype, ", which is no element type");
  node.set_attr(Attribute::of_int("dtype", dtype));
  return {};
}

Status canonical_split_to_sequence(Rewriter& rewriter) {
  Node& node = rewriter.node();
  node.set_attr(Attribute::of_int("keepdims", node.attr_int("keepdims", 1)));
  return canonical_axis(rewriter, "axis", 0);
}

Status canonical_concat_from_sequence(Rewriter& rewriter) {
  Node& node = rewriter.node();
  if (!node.attr("axis")) return rewriter.fail("attribute 'axis' is absent");
  node.set_attr(Attribute::of_int("new_axis", node.attr_int("new_axis", 0)));
  return {};
}

Status infer_sequence_empty(Inference& in) {
  Type type;
  type.kind = PFRT_VALUE_SEQUENCE;
  type.dtype = static_cast<pfrt_dtype>(in.node().attr_int("dtype", PFRT_DTYPE_FLOAT32));
  in.set_output(0, std::move(type));
  return {};
}

Status infer_sequence_construct(Inference& in) {
  PFRT_TRY(same_dtypes(in, 0, in.input_count()));
  Type type = in.input(0);
  for (size_t i = 0; i < in.input_count(); ++i) {
    PFRT_TRY(require_kind(in, i, PFRT_VALUE_TENSOR, "a tensor"));
    type = common_type(type, in.input(i));
  }
  in.set_output(0, with_kind(std::move(type), PFRT_VALUE_SEQUENCE));
  return {};
}

Status infer_sequence_insert(Inference& in) {
  PFRT_TRY(require_kind(in, 0, PFRT_VALUE_SEQUENCE, "a sequence"));
  PFRT_TRY(require_kind(in, 1, PFRT_VALUE_TENSOR, "a tensor"));
  PFRT_TRY(same_dtypes(in, 0, 2));
  Type type = common_type(in.input(0), with_kind(in.input(1), PFRT_VALUE_SEQUENCE));
  type.kind = PFRT_VALUE_SEQUENCE;
  in.set_output(0, std::move(type));
  return {};
}

Status infer_sequence_erase(Inference& in) {
  PFRT_TRY(require_kind(in, 0, PFRT_VALUE_SEQUENCE, "a sequence"));
  return infer_same(in);
}

Status infer_sequence_at(Inference& in) {
  PFRT_TRY(require_kind(in, 0, PFRT_VALUE_SEQUENCE, "a sequence"));
  const bool maps = in.input(0).key_dtype != PFRT_DTYPE_UNSET;
  in.set_output(0, with_kind(in.input(0), maps ? PFRT_VALUE_MAP : PFRT_VALUE_TENSOR));
  return {};
}

Status infer_sequence_length(Inference& in) {
  PFRT_TRY(require_kind(in, 0, PFRT_VALUE_SEQUENCE, "a sequence"));
  in.set_output(0, PFRT_DTYPE_INT64, Shape());
  return {};
}

// The extent along the axis that all pieces share.
Result<Dim> piece_extent(const Inference& in, Dim along) {
  const auto split = in.numbers(1);
  if (!split || !in.has_shape(1)) return Dim();
  if (in.rank(1) == 0) {
    const int64_t size = split->front();
    if (size <= 0) return in.fail("pieces of ", size, " elements");
    return along.known() && along.value() % size == 0 ? Dim(size) : Dim();
  }
  const bool even =
      std::adjacent_find(split->begin(), split->end(), std::not_equal_to<>()) == split->end();
  return even && !split->empty() ? Dim(split->front()) : Dim();
}

Status infer_split_to_sequence(Inference& in) {
  PFRT_TRY(require_kind(in, 0, PFRT_VALUE_TENSOR, "a tensor"));
  Type type = with_kind(in.input(0), PFRT_VALUE_SEQUENCE);
  if (type.has_shape) {
    PFRT_ASSIGN(const int64_t axis, in.axis(in.node().attr_int("axis", 0), in.rank(0)));
    const size_t at = static_cast<size_t>(axis);
    if (in.has_input(1)) {
      PFRT_ASSIGN(type.shape[at], piece_extent(in, type.shape[at]));
    } else if (in.node().attr_int("keepdims", 1) != 0) {
      type.shape[at] = 1;
    } else {
      type.shape.erase(type.shape.begin() + axis);
    }
  }
  in.set_output(0, std::move(type));
  return {};
}

Status infer_concat_from_sequence(Inference& in) {
  PFRT_TRY(require_kind(in, 0, PFRT_VALUE_SEQUENCE, "a sequence"));
  Type type = with_kind(in.input(0), PFRT_VALUE_TENSOR);
  if (type.has_shape) {
    const bool new_axis = in.node().attr_int("new_axis", 0) != 0;
    PFRT_ASSIGN(const int64_t axis,
                in.axis(in.node().attr_int("axis", 0), type.shape.size() + (new_axis ? 1 : 0)));
    if (new_axis)
      type.shape.insert(type.shape.begin() + axis, Dim());
    else
      type.shape[static_cast<size_t>(axis)] = Dim();
  }
  in.set_output(0, std::move(type));
  return {};
}

// The element type in attribute |type| of Optional, such as "seq(tensor(float,[2,N]))".
pfrt_dtype dtype_in(const Attribute* type) {
  constexpr std::string_view kTensor = "tensor(";
  const std::string_view text = type ? std::string_view(type->s) : std::string_view();
  const size_t at = text.find(kTensor);
  if (at == text.npos) return PFRT_DTYPE_UNSET;
  const std::string_view rest = text.substr(at + kTensor.size());
  return dtype_from_name(rest.substr(0, rest.find_first_of(",)")));
}

Status infer_optional(Inference& in) {
  Type type = with_kind(in.input(0), PFRT_VALUE_OPTIONAL);
  if (!in.node().has_input(0)) type.dtype = dtype_in(in.node().attr("type"));
  in.set_output(0, std::move(type));
  return {};
}

Status infer_optional_has_element(Inference& in) {
  in.set_output(0, PFRT_DTYPE_BOOL, Shape());
  return {};
}

Status infer_optional_get_element(Inference& in) {
  // A tensor or sequence given directly is passed on. The Type of an optional does not tell its
  // contents.
  if (in.input(0).kind == PFRT_VALUE_TENSOR || in.input(0).kind == PFRT_VALUE_SEQUENCE)
    return infer_same(in);
  in.set_output(0, Type());
  return {};
}

constexpr OperatorDef kSequenceOperators[] = {
    // domain, name, opsets, inputs, outputs, flags, shape inputs, canonicalise, infer, flops
    {"", "SequenceEmpty", 11, 0, 0, 0, 1, 1, kOpHost, 0, canonical_sequence_empty,
     infer_sequence_empty, nullptr},
    {"", "SequenceConstruct", 11, 0, 1, -1, 1, 1, kOpHost, 0, nullptr, infer_sequence_construct,
     nullptr},
    {"", "SequenceInsert", 11, 0, 2, 3, 1, 1, kOpHost, 0, nullptr, infer_sequence_insert, nullptr},
    {"", "SequenceErase", 11, 0, 1, 2, 1, 1, kOpHost, 0, nullptr, infer_sequence_erase, nullptr},
    {"", "SequenceAt", 11, 0, 2, 2, 1, 1, kOpHost, 0, nullptr, infer_sequence_at, nullptr},
    {"", "SequenceLength", 11, 0, 1, 1, 1, 1, kOpHost, 0, nullptr, infer_sequence_length, nullptr},
    {"", "SplitToSequence", 11, 0, 1, 2, 1, 1, kOpHost, 0, canonical_split_to_sequence,
     infer_split_to_sequence, nullptr},
    {"", "ConcatFromSequence", 11, 0, 1, 1, 1, 1, kOpHost, 0, canonical_concat_from_sequence,
     infer_concat_from_sequence, nullptr},
    {"", "Optional", 15, 0, 0, 1, 1, 1, kOpHost, 0, nullptr, infer_optional, nullptr},
    {"", "OptionalHasElement", 15, 0, 0, 1, 1, 1, kOpHost, 0, nullptr, infer_optional_has_element,
     nullptr},
    {"", "OptionalGetElement", 15, 0, 1, 1, 1, 1, kOpHost, 0, nullptr, infer_optional_get_element,
     nullptr},
};

}  // namespace

std::span<const OperatorDef> sequence_operators() { return kSequenceOperators; }

}  // namespace pfrt
