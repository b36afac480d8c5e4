// SPDX-License-Identifier: Apache-2.0
#include "plugins/import_onnx/functions.h"

namespace pfrt::onnx {
namespace {

std::string key_of(const std::string& domain, const std::string& name,
                   const std::string& overload) {
  std::string key(domain_of(domain));
  key.append(1, '\0').append(name).append(1, '\0').append(overload);
  return key;
}

template <typename Fn>
void for_each_body(const wire::NodeProto& node, Fn fn) {
  for (const auto& attribute : node.attribute()) {
    if (attribute.has_g()) fn(attribute.g());
    for (const auto& graph : attribute.graphs()) fn(graph);
  }
}

template <typename Nodes>
void collect_domains(const Nodes& nodes, const FunctionTable& table, Opsets* out) {
  for (const wire::NodeProto& node : nodes) {
    if (!table.called_by(node)) out->emplace(domain_of(node.domain()), 0);
    for_each_body(node,
                  [&](const wire::GraphProto& body) { collect_domains(body.node(), table, out); });
  }
}

}  // namespace

std::string_view domain_of(const std::string& domain) {
  return domain == "ai.onnx" ? std::string_view() : std::string_view(domain);
}

Result<FunctionTable> FunctionTable::of(const wire::ModelProto& model) {
  FunctionTable table;
  for (const auto& function : model.functions()) {
    if (!table.functions_
             .emplace(key_of(function.domain(), function.name(), function.overload()), &function)
             .second)
      return error(Code::kINVALID_MODEL, "function ", describe(function), " is defined twice");
  }
  return table;
}

const wire::FunctionProto* FunctionTable::called_by(const wire::NodeProto& node) const {
  if (functions_.empty()) return nullptr;
  const auto found = functions_.find(key_of(node.domain(), node.op_type(), node.overload()));
  return found == functions_.end() ? nullptr : found->second;
}

std::string describe(const wire::FunctionProto& function) {
  std::string text = function.domain().empty() ? function.name()
                                               : message(function.domain(), ".", function.name());
  if (!function.overload().empty()) text += message(":", function.overload());
  return text;
}

std::string describe(const wire::NodeProto& node) {
  if (!node.name().empty()) return message(node.op_type(), " '", node.name(), "'");
  return message(node.op_type(),
                 node.output_size() ? message(" producing '", node.output(0), "'") : "");
}

void add_missing_opsets(const wire::FunctionProto& function, const FunctionTable& table,
                        Opsets* model) {
  Opsets used;
  collect_domains(function.node(), table, &used);
  for (const auto& import : function.opset_import())
    if (used.contains(domain_of(import.domain())))
      model->emplace(domain_of(import.domain()), import.version());
}

Status check_opsets(const wire::FunctionProto& function, const FunctionTable& table,
                    const Opsets& model) {
  Opsets used;
  collect_domains(function.node(), table, &used);
  for (const auto& import : function.opset_import()) {
    const auto domain = domain_of(import.domain());
    const auto own = model.find(domain);
    if (!used.contains(domain) || own == model.end() || own->second == import.version()) continue;
    return error(Code::kUNSUPPORTED, "inlining function ", describe(function), ": it uses opset ",
                 import.version(), " of domain '", domain.empty() ? "ai.onnx" : domain,
                 "', the model uses ", own->second,
                 "; convert the model so that both use one version");
  }
  return {};
}

void NameSource::take(const wire::GraphProto& graph) {
  for (const auto& input : graph.input()) taken_.insert(input.name());
  for (const auto& tensor : graph.initializer()) taken_.insert(tensor.name());
  for (const auto& tensor : graph.sparse_initializer()) taken_.insert(tensor.values().name());
  for (const auto& node : graph.node()) {
    for (const auto& output : node.output()) taken_.insert(output);
    for_each_body(node, [this](const wire::GraphProto& body) { take(body); });
  }
}

std::string NameSource::fresh(std::string_view stem) {
  std::string name(stem);
  while (!taken_.insert(name).second) name = message(stem, "_", ++counter_);
  return name;
}

Scope::Scope(const wire::FunctionProto& function, Scope* caller, std::string prefix,
             NameSource& names)
    : function_(function), caller_(caller), prefix_(std::move(prefix)), names_(names) {}

const std::string& Scope::value(const std::string& name) {
  if (name.empty()) return name;
  auto [at, made] = values_.try_emplace(name);
  if (made) at->second = names_.fresh(prefix_ + name);
  return at->second;
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): try_emplace moves it
bool Scope::bind_value(const std::string& name, std::string target) {
  return values_.try_emplace(name, std::move(target)).second;
}

const Scope::Binding* Scope::attribute(const std::string& name) const {
  const auto found = attributes_.find(name);
  return found == attributes_.end() ? nullptr : &found->second;
}

}  // namespace pfrt::onnx
