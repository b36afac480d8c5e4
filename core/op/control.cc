// SPDX-License-Identifier: Apache-2.0
#include "core/op/body.h"
#include "core/op/families.h"
#include "core/op/rules.h"

namespace pfrt {
namespace {

Result<const Graph*> branch_of(const Inference& in, const char* name) {
  const Attribute* branch = in.node().attr(name);
  if (!branch || !branch->graph) return in.fail("attribute '", name, "' holds no graph");
  if (!branch->graph->inputs.empty())
    return in.fail("branch '", name, "' has ", branch->graph->inputs.size(),
                   " inputs; it takes what it needs from outside by name");
  if (branch->graph->outputs.size() != in.output_count())
    return in.fail("branch '", name, "' has ", branch->graph->outputs.size(), " outputs, the node ",
                   in.output_count());
  return branch->graph.get();
}

Status infer_if(Inference& in) {
  if (in.input(0).dtype != PFRT_DTYPE_UNSET && in.input(0).dtype != PFRT_DTYPE_BOOL)
    return wrong_dtype(in, 0, PFRT_DTYPE_BOOL);
  PFRT_ASSIGN(const Graph* then_branch, branch_of(in, "then_branch"));
  PFRT_ASSIGN(const Graph* else_branch, branch_of(in, "else_branch"));
  const auto condition = in.numbers(0);
  std::vector<Type> types;
  if (condition && condition->size() == 1) {
    PFRT_ASSIGN(types, infer_body(in, condition->front() ? *then_branch : *else_branch, {}));
  } else {
    auto yes = infer_body(in, *then_branch, {});
    auto no = infer_body(in, *else_branch, {});
    for (const auto* result : {&yes, &no})
      if (!result->ok() && result->status().code() != Code::kSHAPE_MISMATCH)
        return result->status();
    // A branch that does not fit the shapes at hand is not the one that runs.
    if (!yes.ok() && !no.ok()) return {};
    types = yes.ok() ? yes.take() : no.value();
    if (yes.ok() && no.ok())
      for (size_t i = 0; i < types.size(); ++i) types[i] = common_type(types[i], (*no)[i]);
  }
  for (size_t i = 0; i < in.output_count(); ++i) in.set_output(i, std::move(types[i]));
  return {};
}

constexpr OperatorDef kRows[] = {
    // domain, name, opsets, inputs, outputs, flags, shape inputs, canonicalise, infer, flops
    {"", "If", 1, 0, 1, 1, 1, -1, kOpHost, 0, nullptr, infer_if, nullptr},
};

}  // namespace

std::span<const OperatorDef> control_operators() { return kRows; }

}  // namespace pfrt
