// SPDX-License-Identifier: Apache-2.0
#include "core/op/engine/check_operators.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "core/op/engine/lookup.h"
#include "core/op/engine/operator_def.h"
#include "core/op/engine/operator_set.h"

namespace pfrt {
namespace {

// Number of insertions, deletions and replacements that turn |a| into |b|.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, replaced});
    }
  }
  return row.back();
}

std::string domain_name(std::string_view domain) {
  return domain.empty() ? "ai.onnx" : std::string(domain);
}

// A hint about a name that has no row at an opset.
std::string what_is_known(const Graph& graph, std::string_view domain, std::string_view name) {
  constexpr size_t kLongestName = 64;
  if (domain == "ai.onnx") domain = "";
  if (domain == "com.microsoft.nchwc")
    return "a blocked layout that ONNX Runtime makes for one machine; save the optimised model "
           "before layout optimisation (level 'extended' or below), or use the original one";
  std::vector<std::string> ranges;
  std::string elsewhere, nearest;
  size_t best = 4;
  bool known_domain = newest_opset(domain) > 0;
  const auto consider = [&](const OperatorDef& row) {
    known_domain |= row.domain == domain;
    if (row.name == name && row.domain == domain) {
      const std::string range = message(row.since, row.until ? " to " : " on",
                                        row.until ? std::to_string(row.until) : std::string());
      if (std::ranges::find(ranges, range) == ranges.end()) ranges.push_back(range);
    } else if (row.name == name) {
      elsewhere = domain_name(row.domain);
    } else if (row.domain == domain && name.size() <= kLongestName) {
      const size_t distance = edit_distance(name, row.name);
      if (distance < std::min(best, name.size())) {
        best = distance;
        nearest = row.name;
      }
    }
  };
  for (const std::span<const OperatorDef>& family : operators())
    for (const OperatorDef& row : family) consider(row);
  if (graph.operators)
    for (const auto& op : graph.operators->all()) consider(op->row());
  for (std::string& range : ranges)
    if (&range != &ranges.front()) ranges.front() += ", " + range;
  if (!ranges.empty()) return "known only for opsets " + ranges.front();
  if (!elsewhere.empty()) return "known only in domain '" + elsewhere + "'";
  if (!nearest.empty()) return "unknown; the nearest known name is '" + nearest + "'";
  return known_domain ? "unknown" : "unknown domain";
}

std::string range_text(int least, int most) {
  if (most < 0) return message("at least ", least);
  return least == most ? std::to_string(least) : message(least, " to ", most);
}

class Checker {
 public:
  explicit Checker(const Graph& root) : root_(root) {}

  void check(const Graph& graph) {
    for (NodeId id : graph.node_ids()) {
      const Node& node = *graph.node(id);
      check(graph, node);
      for (const Attribute& attr : node.attrs) {
        if (attr.graph) check(*attr.graph);
        for (const auto& body : attr.graphs)
          if (body) check(*body);
      }
    }
  }

  Status finish() && {
    if (faults_.empty()) return {};
    const bool model_only = std::ranges::all_of(
        faults_, [](const Status& fault) { return fault.code() == Code::kINVALID_MODEL; });
    Status all =
        error(model_only ? Code::kINVALID_MODEL : Code::kUNSUPPORTED_OPERATOR,
              "checking the operators of graph '", root_.name, "': ", faults_.size(),
              faults_.size() == 1 ? " fault: " : " faults, the first: ", faults_.front().message());
    for (Status& fault : faults_) all.add_child(std::move(fault));
    return all;
  }

 private:
  void check(const Graph& graph, const Node& node) {
    const int64_t newest = newest_opset(node.domain);
    int64_t opset = node.opset                     ? node.opset
                    : node.canonical && newest > 0 ? newest
                                                   : root_.opset(node.domain);
    if (newest && opset > newest) {
      if (too_new_.insert(node.domain).second)
        fault(Code::kUNSUPPORTED_OPERATOR, "opset ", opset, " of domain '",
              domain_name(node.domain), "' is newer than ", newest,
              ", the newest known; export the model at opset ", newest, " or below");
      opset = newest;
    }
    // A graph built by hand may import nothing; its nodes then have the newest meaning.
    if (opset == 0) opset = newest;
    const OperatorDef* row = find_operator(graph, node, opset);
    if (!row) {
      auto [known, fresh] = known_.try_emplace({node.domain, node.op});
      if (fresh) known->second = what_is_known(graph, node.domain, node.op);
      fault(Code::kUNSUPPORTED_OPERATOR, describe(graph, node), " (", domain_name(node.domain),
            " opset ", opset, "): ", known->second);
      return;
    }
    // Every element of a list of any length is required; Loop, which may go without its first two
    // inputs, has a minimum of none.
    const bool list = row->max_inputs < 0 && row->min_inputs > 0;
    check_arity(graph, node, node.inputs, "input", row->min_inputs, row->max_inputs, list);
    check_arity(graph, node, node.outputs, "output", row->min_outputs, row->max_outputs, false);
  }

  void check_arity(const Graph& graph, const Node& node, const std::vector<ValueId>& values,
                   const char* what, int least, int most, bool all_required) {
    size_t count = values.size();
    while (count && values[count - 1] == kNoId) --count;
    const bool few = count < static_cast<size_t>(least);
    const bool many = most >= 0 && count > static_cast<size_t>(most);
    if (few || many)
      return fault(Code::kINVALID_MODEL, describe(graph, node), ": has ", count, " ", what,
                   "s, takes ", range_text(least, most));
    const size_t required = all_required ? values.size() : static_cast<size_t>(least);
    for (size_t i = 0; i < required; ++i)
      if (values[i] == kNoId)
        fault(Code::kINVALID_MODEL, describe(graph, node), ": ", what, " ", i,
              " is required but absent");
  }

  template <typename... Parts>
  void fault(Code code, const Parts&... parts) {
    faults_.push_back(error(code, parts...));
  }

  const Graph& root_;
  std::vector<Status> faults_;
  std::set<std::string> too_new_;
  std::map<std::pair<std::string, std::string>, std::string> known_;
};

}  // namespace

Status check_operators(const Graph& graph) {
  Checker checker(graph);
  checker.check(graph);
  return std::move(checker).finish();
}

}  // namespace pfrt
