// SPDX-License-Identifier: Apache-2.0
//
// Dimensions of 0 through every operator: each of nodes.tsv by turns, in several forms of model and
// at the outer optimisation levels, and again with other element types. A run ends with a status,
// never with a signal; results are ONNX Runtime's, and the same in all forms. PFRT_EMPTY_ALL=1 adds
// the inner levels and every type.
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "test/empty/exceptions.h"
#include "test/empty/isolated.h"
#include "test/empty/outcome.h"

namespace pfrt_empty {
namespace {

using pyflame_rt::OptLevel;

constexpr unsigned kSeconds = 20;  // a case takes milliseconds

bool thorough() { return std::getenv("PFRT_EMPTY_ALL") != nullptr; }

const std::vector<NodeLine>& nodes() {
  static const std::vector<NodeLine> all = read_nodes(PFRT_EMPTY_NODES);
  return all;
}

struct Case {
  const NodeLine* node;
  const Variant* variant;
  std::string text() const { return node->text + " with 0 at " + variant->name; }
};

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const NodeLine& node : nodes())
    for (const Variant& variant : node.variants) out.push_back({&node, &variant});
  return out;
}

std::vector<OptLevel> levels() {
  if (!thorough()) return {OptLevel::All};
  return {OptLevel::Basic, OptLevel::Extended, OptLevel::All};
}

bool has_tail(const Outcome& plain) {
  return plain.refused.empty() && plain.outputs[0].dtype == DType::Float32;
}

// Describes a difference between forms and levels; empty when there is none.
std::string inconsistency(const NodeLine& node, const std::vector<Operand>& inputs,
                          const Outcome& plain, bool is_random) {
  for (const OptLevel level : levels())
    for (const Form form : {Form::kFed, Form::kDynamic, Form::kWeights, Form::kTail}) {
      if (form == Form::kFed && level == OptLevel::All && !thorough()) continue;
      if (form == Form::kTail && !has_tail(plain)) continue;
      Outcome got = outcome_of(node, inputs, form, level);
      if (is_random)
        for (Output& output : got.outputs) output.values.clear();
      // With open dimensions, a contradiction is a fault of the run and not of the model.
      if (form == Form::kDynamic && !plain.refused.empty()) continue;
      const std::string wrong = difference(plain, got, form == Form::kTail);
      if (!wrong.empty())
        return "form " + std::to_string(static_cast<int>(form)) + " at level " +
               std::to_string(static_cast<int>(level)) + ": " + wrong;
    }
  return {};
}

bool is_random(const NodeLine& node) {
  return node.op.rfind("Random", 0) == 0 || node.op == "Multinomial" || node.op == "Bernoulli";
}

std::string check(const Case& c) {
  const std::vector<Operand> inputs = with_zeros(*c.node, c.variant->name);
  const Outcome plain = outcome_of(*c.node, inputs, Form::kFed, OptLevel::None);
  const std::string apart = inconsistency(*c.node, inputs, plain, is_random(*c.node));
  if (!apart.empty()) return apart;
  if (c.variant->expected == "x" || is_excepted(*c.node, c.variant->name)) return {};
  const std::string wrong = difference(expected_outcome(c.variant->expected), plain);
  return wrong.empty() ? wrong : "unlike the table's " + c.variant->expected + ", " + wrong;
}

void report(const std::vector<Fault>& faults, const std::vector<Case>& all) {
  for (const Fault& fault : faults)
    ADD_FAILURE() << all[fault.index].text() << "\n  " << fault.text << "\n  the table gives "
                  << all[fault.index].variant->expected;
}

TEST(EmptyDimensions, of_every_operator_run_as_in_the_table) {
  const std::vector<Case> all = cases();
  ASSERT_GT(all.size(), 1000u);
  report(run_isolated(all.size(), kSeconds, [&](size_t i) { return check(all[i]); }), all);
}

// True for operators on sequences, maps, optionals and bodies, and for those without inputs.
bool has_no_node(const std::string& op) {
  static const std::set<std::string> others = {"CastMap",
                                               "ConcatFromSequence",
                                               "Constant",
                                               "DictVectorizer",
                                               "If",
                                               "ImageDecoder",
                                               "Loop",
                                               "Optional",
                                               "Scan",
                                               "OptionalGetElement",
                                               "OptionalHasElement",
                                               "SparseToDenseMatMul",
                                               "ZipMap",
                                               "SplitToSequence"};
  return others.count(op) != 0 || op.rfind("Sequence", 0) == 0;
}

TEST(EmptyDimensionsTable, every_operator_has_a_node) {
  std::set<std::pair<std::string, std::string>> found;
  for (const NodeLine& node : nodes()) found.emplace(node.domain, node.op);
  for (const pyflame_rt::OperatorInfo& info : pyflame_rt::Environment::operators())
    EXPECT_TRUE(found.count({info.domain, info.op}) != 0 || has_no_node(info.op))
        << info.domain << "." << info.op << " has no line in nodes.tsv: more_nodes.txt takes one";
}

constexpr DType kTypes[] = {DType::Float32, DType::Float64, DType::Float16, DType::BFloat16,
                            DType::Int8,    DType::Int16,   DType::Int32,   DType::Int64,
                            DType::UInt8,   DType::UInt16,  DType::UInt32,  DType::UInt64,
                            DType::Bool};

// Gives |type| to each input that has the first one's type and made-up values.
std::vector<Operand> retyped(std::vector<Operand> inputs, DType type) {
  DType from = DType::Undefined;
  for (Operand& input : inputs) {
    if (!input.present) continue;
    if (from == DType::Undefined) from = input.dtype;
    if (input.dtype == from && input.values.empty()) input.dtype = type;
  }
  return inputs;
}

std::string check_type(const Case& c, DType type) {
  NodeLine node = *c.node;
  node.inputs = retyped(node.inputs, type);
  if (node.inputs.front().present && node.inputs.front().dtype != type) return {};
  const std::vector<Operand> inputs = with_zeros(node, c.variant->name);
  const Outcome plain = outcome_of(node, inputs, Form::kFed, OptLevel::None);
  if (!plain.refused.empty()) return {};
  const std::string apart = inconsistency(node, inputs, plain, is_random(node));
  // A type that the definition does not allow may be found out later, or never.
  const bool refused = apart.find("is refused") != std::string::npos;
  return apart.empty() || refused ? std::string() : "with another type: " + apart;
}

TEST(EmptyDimensions, of_every_type_run_alike_in_all_forms) {
  const std::vector<Case> all = cases();
  report(run_isolated(all.size(), kSeconds,
                      [&](size_t i) -> std::string {
                        for (size_t t = 0; t < std::size(kTypes); ++t) {
                          const bool by_turns = t == i % std::size(kTypes);
                          if (!thorough() && !by_turns && kTypes[t] != DType::Float16) continue;
                          const std::string wrong = check_type(all[i], kTypes[t]);
                          if (!wrong.empty()) return wrong;
                        }
                        return {};
                      }),
         all);
}

}  // namespace
}  // namespace pfrt_empty
