// SPDX-License-Identifier: Apache-2.0
#include "core/op/engine/operator_set.h"

#include <algorithm>

#include "core/base/dtype.h"
#include "core/op/engine/inference.h"
#include "core/op/engine/lookup.h"
#include "core/op/engine/operator_def.h"

namespace pfrt {
namespace {

std::string_view domain_or_onnx(std::string_view domain) {
  return domain == "ai.onnx" ? "" : domain;
}

std::string full_name(const OperatorDef& row) {
  return message("'", row.domain.empty() ? "ai.onnx" : row.domain, ".", row.name, "'");
}

std::string opsets_text(const OperatorDef& row) {
  if (row.until == 0) return message("opsets ", row.since, " on");
  return row.since == row.until ? message("opset ", row.since)
                                : message("opsets ", row.since, " to ", row.until);
}

bool overlap(const OperatorDef& a, const OperatorDef& b) {
  return (a.until == 0 || b.since <= a.until) && (b.until == 0 || a.since <= b.until);
}

pfrt_dtype at(const std::vector<pfrt_dtype>& list, size_t i) {
  if (list.empty()) return PFRT_DTYPE_UNSET;
  return list[std::min(i, list.size() - 1)];
}

void drop_repeated(std::vector<pfrt_dtype>& list) {
  while (list.size() > 1 && list[list.size() - 2] == list.back()) list.pop_back();
  if (list.size() == 1 && list.front() == PFRT_DTYPE_UNSET) list.clear();
}

// The types of |least| to |most| positions (-1 = any number), as far as that says something.
std::string list_text(const std::vector<pfrt_dtype>& list, int least, int most) {
  constexpr size_t kMost = 8;
  const size_t wanted = static_cast<size_t>(most < 0 ? std::max(least, 1) : most);
  const size_t count = std::min(std::max(wanted, list.size()), std::max(kMost, list.size()));
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    const pfrt_dtype type = at(list, i);
    text += message(i ? ", " : "", type ? dtype_name(type) : "any");
  }
  return most < 0 || count < wanted ? text + ", ..." : text;
}

std::string list_text(const std::vector<std::optional<pfrt_dtype>>& list) {
  std::string text;
  for (size_t i = 0; i < list.size(); ++i)
    text += message(i ? ", " : "", !list[i] ? "none" : *list[i] ? dtype_name(*list[i]) : "unknown");
  return text;
}

// How the types that an operator names are met by those of a node.
struct Match {
  bool possible = true;
  size_t met = 0;   // positions with the type that is named
  size_t open = 0;  // positions of unknown type for which one is named
};

Match match(const std::vector<pfrt_dtype>& named,
            const std::vector<std::optional<pfrt_dtype>>& types) {
  Match out;
  for (size_t i = 0; i < types.size(); ++i) {
    const pfrt_dtype name = at(named, i);
    if (name == PFRT_DTYPE_UNSET || !types[i]) continue;
    if (*types[i] == PFRT_DTYPE_UNSET) {
      ++out.open;
    } else if (*types[i] == name) {
      ++out.met;
    } else {
      out.possible = false;
    }
  }
  return out;
}

bool takes(size_t count, int least, int most) {
  return count >= static_cast<size_t>(std::max(least, 0)) &&
         (most < 0 || count <= static_cast<size_t>(most));
}

void trim(std::vector<std::optional<pfrt_dtype>>& list) {
  while (!list.empty() && !list.back()) list.pop_back();
}

Status infer_custom(Inference& inference) {
  const Node& node = inference.node();
  const Graph& graph = inference.graph();
  NodeTypes types = types_of(graph, node);
  for (size_t i = 0; i < types.inputs.size(); ++i)
    if (types.inputs[i]) types.inputs[i] = inference.input(i).dtype;
  const int64_t opset = custom_opset(graph, node);
  const OperatorChoice choice = graph.operators->choose(node.domain, node.op, opset, types);
  if (!choice.op)
    return error(Code::kDTYPE_MISMATCH, describe(graph, node), ": ",
                 graph.operators->no_choice(node.domain, node.op, opset, types));
  if (choice.sure) return choice.op->infer(inference);
  for (size_t i = 0; i < node.outputs.size(); ++i)
    if (node.outputs[i] != kNoId)
      inference.set_output_unknown_shape(i, graph.at(node.outputs[i]).type.dtype);
  return {};
}

const OperatorDef* find_custom(const Graph& graph, const Node& node, int64_t opset) {
  if (!graph.operators) return nullptr;
  const OperatorSet& set = *graph.operators;
  const auto choice = set.choose(node.domain, node.op, opset, types_of(graph, node));
  if (choice.op) return &choice.op->row();
  const auto versions = set.versions(node.domain, node.op, opset);
  return versions.empty() ? nullptr : &versions.front()->row();
}

void set_operators(Graph& graph, const OperatorSet::Ptr& set) {
  graph.operators = set;
  for (NodeId id : graph.node_ids()) {
    for (const Attribute& attr : graph.node(id)->attrs) {
      if (attr.graph) set_operators(*attr.graph, set);
      for (const auto& body : attr.graphs)
        if (body) set_operators(*body, set);
    }
  }
}

}  // namespace

pfrt_dtype OperatorTypes::input(size_t i) const { return at(inputs, i); }
pfrt_dtype OperatorTypes::output(size_t i) const { return at(outputs, i); }

void OperatorTypes::shorten() {
  drop_repeated(inputs);
  drop_repeated(outputs);
}

CustomOperator::CustomOperator(const std::string& domain, std::string name, std::string origin,
                               OperatorDef row, OperatorTypes types)
    : domain_(domain_or_onnx(domain)),
      name_(std::move(name)),
      origin_(std::move(origin)),
      types_(std::move(types)),
      row_(row) {
  row_.domain = domain_;
  row_.name = name_;
  row_.canonicalise = nullptr;
  row_.infer = infer_custom;
  types_.shorten();
  const std::string inputs = list_text(types_.inputs, row.min_inputs, row.max_inputs);
  types_text_ = message(inputs, inputs.empty() ? "-> " : " -> ",
                        list_text(types_.outputs, row.min_outputs, row.max_outputs));
}

Result<OperatorSet::Ptr> OperatorSet::with(const Ptr& set, Operator added) {
  const OperatorDef& row = added->row();
  const auto taken = [&](std::string_view by, std::string_view fix) {
    return error(Code::kINVALID_ARGUMENT, "registering operator ", full_name(row), " of ",
                 added->origin(), ": that name is taken by ", by, "; ", fix);
  };
  if (is_built_in(row.domain, row.name))
    return taken("the built-in operator " + full_name(row),
                 "register it under another name or domain");
  auto made = std::make_shared<OperatorSet>();
  if (set) made->operators_ = set->operators_;
  for (const Operator& other : made->operators_) {
    const OperatorDef& old = other->row();
    if (old.name != row.name || old.domain != row.domain || !overlap(old, row) ||
        other->types() != added->types())
      continue;
    return taken(message("operator ", full_name(old), " of ", other->origin(), ", for ",
                         opsets_text(old), " and the types '", other->types_text(), "'"),
                 message("register it for opsets that this one does not know (since_version, "
                         "until_version), for other types, or under another name or domain"));
  }
  made->operators_.push_back(std::move(added));
  return Ptr(std::move(made));
}

OperatorSet::Ptr OperatorSet::without(const Ptr& set, std::string_view domain,
                                      std::string_view name) {
  if (!set || !set->knows(domain, name)) return nullptr;
  auto made = std::make_shared<OperatorSet>();
  for (const Operator& op : set->operators_)
    if (op->row().name != name || op->row().domain != domain_or_onnx(domain))
      made->operators_.push_back(op);
  return made;
}

bool OperatorSet::knows(std::string_view domain, std::string_view name) const {
  return newest(domain, name) > 0;
}

int64_t OperatorSet::newest(std::string_view domain, std::string_view name) const {
  int64_t out = 0;
  domain = domain_or_onnx(domain);
  for (const Operator& op : operators_)
    if (op->row().name == name && op->row().domain == domain)
      out = std::max<int64_t>(out, op->row().since);
  return out;
}

std::vector<const CustomOperator*> OperatorSet::versions(std::string_view domain,
                                                         std::string_view name,
                                                         int64_t opset) const {
  if (opset == 0) opset = newest(domain, name);
  domain = domain_or_onnx(domain);
  std::vector<const CustomOperator*> out;
  for (const Operator& op : operators_)
    if (op->row().name == name && op->row().domain == domain && op->known_at(opset))
      out.push_back(op.get());
  return out;
}

OperatorChoice OperatorSet::choose(std::string_view domain, std::string_view name, int64_t opset,
                                   const NodeTypes& types) const {
  struct Candidate {
    const CustomOperator* op;
    Match inputs, outputs;
  };
  std::vector<Candidate> possible;
  for (const CustomOperator* op : versions(domain, name, opset)) {
    const OperatorDef& row = op->row();
    if (!takes(types.inputs.size(), row.min_inputs, row.max_inputs) ||
        !takes(types.outputs.size(), row.min_outputs, row.max_outputs))
      continue;
    const Candidate one{op, match(op->types().inputs, types.inputs),
                        match(op->types().outputs, types.outputs)};
    if (one.inputs.possible && one.outputs.possible) possible.push_back(one);
  }
  if (possible.empty()) return {};
  const bool open = possible.size() > 1 && std::ranges::any_of(possible, [](const Candidate& c) {
                      return c.inputs.open > 0;
                    });
  // Types of outputs that nobody knows yet are for the operator to say.
  const auto best = std::ranges::max_element(possible, [](const Candidate& a, const Candidate& b) {
    if (a.inputs.met != b.inputs.met) return a.inputs.met < b.inputs.met;
    if (a.outputs.met != b.outputs.met) return a.outputs.met < b.outputs.met;
    return a.outputs.open > b.outputs.open;
  });
  // Only an output that is not known tells two operators on the same inputs apart.
  const auto alike = std::ranges::count_if(possible, [&](const Candidate& c) {
    return c.inputs.met == best->inputs.met && c.outputs.met == best->outputs.met &&
           c.outputs.open == best->outputs.open;
  });
  return {best->op, !open && (alike == 1 || best->outputs.open == 0)};
}

std::string OperatorSet::no_choice(std::string_view domain, std::string_view name, int64_t opset,
                                   const NodeTypes& types) const {
  const auto known = versions(domain, name, opset);
  std::string there = known.size() == 1 ? "there is " : "there are ";
  for (const CustomOperator* op : known)
    there += message(op == known.front() ? "'" : ", '", op->types_text(), "'");
  return message("no operator of that name takes the types '", list_text(types.inputs),
                 types.inputs.empty() ? "-> " : " -> ", list_text(types.outputs), "'; ", there);
}

NodeTypes types_of(const Graph& graph, const Node& node) {
  NodeTypes out;
  const auto list = [&](const std::vector<ValueId>& values, auto& to) {
    for (const ValueId v : values)
      to.push_back(v == kNoId ? std::nullopt : std::optional(graph.at(v).type.dtype));
    trim(to);
  };
  list(node.inputs, out.inputs);
  list(node.outputs, out.outputs);
  return out;
}

int64_t custom_opset(const Graph& graph, const Node& node) {
  return node.opset ? node.opset : graph.opset(node.domain);
}

const OperatorDef* find_operator(const Graph& graph, const Node& node, int64_t opset) {
  if (const OperatorDef* row = find_operator(node.domain, node.op, opset)) return row;
  return find_custom(graph, node, opset);
}

const OperatorDef* find_canonical(const Graph& graph, const Node& node) {
  const int64_t newest = std::max(newest_opset(node.domain), graph.opset(node.domain));
  if (const OperatorDef* row = find_operator(node.domain, node.op, newest)) return row;
  return find_custom(graph, node, custom_opset(graph, node));
}

bool any_node(const Graph& graph, const std::function<bool(const Graph&, const Node&)>& test) {
  for (NodeId id : graph.node_ids()) {
    const Node& node = *graph.node(id);
    if (test(graph, node)) return true;
    for (const Attribute& attr : node.attrs) {
      if (attr.graph && any_node(*attr.graph, test)) return true;
      for (const auto& body : attr.graphs)
        if (body && any_node(*body, test)) return true;
    }
  }
  return false;
}

void use_operators(Graph& graph, const OperatorSet::Ptr& set) {
  const bool needed = any_node(
      graph, [](const Graph&, const Node& node) { return !is_built_in(node.domain, node.op); });
  set_operators(graph, needed ? set : nullptr);
}

}  // namespace pfrt
