// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/matmul/einsum/equation.h"

#include <algorithm>
#include <map>

namespace pfrt::cpu {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

Result<EinsumTerm> parse_term(std::string_view text) {
  EinsumTerm term;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ') continue;
    if (is_letter(text[i])) {
      term.labels.push_back(text[i]);
    } else if (text.substr(i, 3) == "...") {
      if (std::count(term.labels.begin(), term.labels.end(), EinsumEquation::kEllipsis) != 0)
        return error(Code::kUNSUPPORTED, "two ellipses in one term of the equation");
      term.labels.push_back(EinsumEquation::kEllipsis);
      i += 2;
    } else {
      return error(Code::kUNSUPPORTED, "character '", text.substr(i, 1),
                   "' in the equation; letters, commas, '...' and '->' are known");
    }
  }
  return term;
}

// Labels of one operand with the ellipsis spelt out, from the right: its dimension r from the right
// is kEllipsis + 1 + r.
Result<std::vector<int>> spell(const EinsumTerm& term, size_t ellipsis_rank) {
  std::vector<int> labels;
  for (int label : term.labels) {
    if (label != EinsumEquation::kEllipsis) {
      labels.push_back(label);
      continue;
    }
    for (size_t r = ellipsis_rank; r-- > 0;)
      labels.push_back(EinsumEquation::kEllipsis + 1 + static_cast<int>(r));
  }
  return labels;
}

}  // namespace

Result<EinsumEquation> parse_einsum(std::string_view text) {
  EinsumEquation equation;
  const size_t arrow = text.find("->");
  std::string_view left = text.substr(0, arrow);
  for (;;) {
    const size_t comma = left.find(',');
    PFRT_ASSIGN(EinsumTerm term, parse_term(left.substr(0, comma)));
    equation.inputs.push_back(std::move(term));
    if (comma == std::string_view::npos) break;
    left.remove_prefix(comma + 1);
  }
  if (arrow != std::string_view::npos) {
    PFRT_ASSIGN(equation.output, parse_term(text.substr(arrow + 2)));
    return equation;
  }
  std::map<int, int> uses;
  for (const EinsumTerm& term : equation.inputs)
    for (int label : term.labels) ++uses[label];
  if (uses.count(EinsumEquation::kEllipsis) != 0)
    equation.output.labels.push_back(EinsumEquation::kEllipsis);
  for (const auto& [label, count] : uses)
    if (count == 1 && label != EinsumEquation::kEllipsis) equation.output.labels.push_back(label);
  return equation;
}

Result<EinsumShape> bind_einsum(const EinsumEquation& equation,
                                const std::vector<std::vector<int64_t>>& dims) {
  if (equation.inputs.size() != dims.size())
    return error(Code::kSHAPE_MISMATCH, "the equation has ", equation.inputs.size(), " terms for ",
                 dims.size(), " inputs");
  std::vector<std::vector<int>> labels;
  std::map<int, int64_t> size;
  size_t widest = 0;
  for (size_t t = 0; t < dims.size(); ++t) {
    const auto& term = equation.inputs[t].labels;
    const bool ellipsis = std::count(term.begin(), term.end(), EinsumEquation::kEllipsis) != 0;
    const size_t letters = term.size() - (ellipsis ? 1 : 0);
    if (ellipsis ? dims[t].size() < letters : dims[t].size() != letters)
      return error(Code::kSHAPE_MISMATCH, "term ", t, " of the equation has ", letters,
                   " letters for rank ", dims[t].size());
    const size_t extra = dims[t].size() - letters;
    widest = std::max(widest, extra);
    PFRT_ASSIGN(std::vector<int> spelt, spell(equation.inputs[t], extra));
    for (size_t i = 0; i < spelt.size(); ++i) {
      const auto [at, fresh] = size.emplace(spelt[i], dims[t][i]);
      if (fresh || at->second == dims[t][i] || dims[t][i] == 1) continue;
      if (at->second != 1)
        return error(Code::kSHAPE_MISMATCH, "dimensions ", at->second, " and ", dims[t][i],
                     " have the same label");
      at->second = dims[t][i];
    }
    labels.push_back(std::move(spelt));
  }
  EinsumShape shape;
  std::map<int, size_t> order;
  PFRT_ASSIGN(const std::vector<int> out, spell(equation.output, widest));
  for (int label : out) {
    if (size.count(label) == 0 || !order.emplace(label, shape.sizes.size()).second)
      return error(Code::kSHAPE_MISMATCH,
                   "a label of the output is repeated or stands in no input");
    shape.sizes.push_back(size[label]);
  }
  shape.output_labels = shape.sizes.size();
  for (const auto& [label, n] : size)
    if (order.emplace(label, shape.sizes.size()).second) shape.sizes.push_back(n);
  for (size_t t = 0; t < dims.size(); ++t) {
    std::vector<int64_t> strides(shape.sizes.size(), 0);
    int64_t step = 1;
    for (size_t i = labels[t].size(); i-- > 0; step *= dims[t][i])
      if (dims[t][i] != 1) strides[order[labels[t][i]]] += step;
    shape.strides.push_back(std::move(strides));
  }
  return shape;
}

}  // namespace pfrt::cpu
