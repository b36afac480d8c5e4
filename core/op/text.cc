// SPDX-License-Identifier: Apache-2.0
#include "core/op/families.h"
#include "core/op/rules.h"

namespace pfrt {
namespace {

Status canonical_string_normalizer(Rewriter& rewriter) {
  Node& node = rewriter.node();
  const std::string action(node.attr_string("case_change_action", "NONE"));
  if (action != "NONE" && action != "LOWER" && action != "UPPER")
    return rewriter.fail("attribute 'case_change_action' is '", action,
                         "', expected NONE, LOWER or UPPER");
  node.set_attr(Attribute::of_string("case_change_action", action));
  node.set_attr(Attribute::of_int("is_case_sensitive", node.attr_int("is_case_sensitive", 0)));
  return {};
}

// [C] or [1, C]; stop words leave fewer.
Status infer_string_normalizer(Inference& in) {
  const Type& input = in.input(0);
  if (input.dtype != PFRT_DTYPE_UNSET && input.dtype != PFRT_DTYPE_STRING)
    return wrong_dtype(in, 0, PFRT_DTYPE_STRING);
  if (!input.has_shape) {
    in.set_output_unknown_shape(0, PFRT_DTYPE_STRING);
    return {};
  }
  Shape shape = input.shape;
  if (shape.empty() || shape.size() > 2 ||
      (shape.size() == 2 && shape[0].known() && !shape[0].is(1)))
    return in.fail("the input has shape ", in.symbols().text(shape), ", expected [C] or [1,C]");
  const Attribute* stopwords = in.node().attr("stopwords");
  if (stopwords && !stopwords->strings.empty()) shape.back() = Dim();
  in.set_output(0, PFRT_DTYPE_STRING, std::move(shape));
  return {};
}

constexpr OperatorDef kRows[] = {
    // domain, name, opsets, inputs, outputs, flags, shape inputs, canonicalise, infer, flops
    {"", "StringNormalizer", 10, 0, 1, 1, 1, 1, kOpHost | kOpDataDependent, 0,
     canonical_string_normalizer, infer_string_normalizer, nullptr},
};

}  // namespace

std::span<const OperatorDef> text_operators() { return kRows; }

}  // namespace pfrt
