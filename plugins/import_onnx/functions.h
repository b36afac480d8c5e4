// SPDX-License-Identifier: Apache-2.0
//
// Model-local functions, as far as inlining them needs: which node calls which function, names that
// no value of the model has, and the scope in which a function's body is read. They point into the
// parsed model, which outlives them. They belong to one thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "core/base/status.h"
#include "pfrt_onnx.pb.h"

namespace pfrt::onnx {

namespace wire = ::pfrt_onnx_wire;

// "ai.onnx" is "".
std::string_view domain_of(const std::string& domain);

class FunctionTable {
 public:
  // INVALID_MODEL when two functions have the same domain, name and overload.
  static Result<FunctionTable> of(const wire::ModelProto& model);

  // The function that |node| calls, or nullptr when it applies an operator.
  const wire::FunctionProto* called_by(const wire::NodeProto& node) const;
  bool empty() const { return functions_.empty(); }

 private:
  std::map<std::string, const wire::FunctionProto*, std::less<>> functions_;
};

// Names for messages: "domain.name", and "Conv 'conv1'" or "Conv producing 'x'".
std::string describe(const wire::FunctionProto& function);
std::string describe(const wire::NodeProto& node);

// Opset versions by domain.
using Opsets = std::map<std::string, int64_t, std::less<>>;

// Adds what operators of |function| need and |model| does not import.
void add_missing_opsets(const wire::FunctionProto& function, const FunctionTable& table,
                        Opsets* model);

// UNSUPPORTED when a node of |function|, bodies included, uses an operator of a domain that the
// function imports at another version than the model: one graph has one version a domain.
Status check_opsets(const wire::FunctionProto& function, const FunctionTable& table,
                    const Opsets& model);

// Gives names that no value of a graph taken in has, each once.
class NameSource {
 public:
  // Bodies included.
  void take(const wire::GraphProto& graph);
  std::string fresh(std::string_view stem);

 private:
  std::unordered_set<std::string> taken_;
  uint64_t counter_ = 0;
};

// Gives names and attribute references of a function's body their meaning where one call is
// inlined.
class Scope {
 public:
  struct Binding {
    const wire::AttributeProto* attribute;
    Scope* scope;  // the attribute's graphs are read in it; nullptr: in the model's own graph
  };

  // The call stands in the graph of |caller|; nullptr: in the model's own. |prefix| starts every
  // name made here.
  Scope(const wire::FunctionProto& function, Scope* caller, std::string prefix, NameSource& names);
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  const wire::FunctionProto& function() const { return function_; }
  Scope* caller() const { return caller_; }
  const std::string& prefix() const { return prefix_; }

  // The graph's name for the body's |name|, made when there is none; lives as long as the scope.
  // Empty stays empty.
  const std::string& value(const std::string& name);
  // Makes |name| stand for |target|; false when it stands for something already.
  bool bind_value(const std::string& name, std::string target);
  void bind_attribute(const std::string& name, Binding binding) { attributes_[name] = binding; }
  // The attribute that |name| was given in the call or by default; nullptr when it was left out.
  const Binding* attribute(const std::string& name) const;

 private:
  const wire::FunctionProto& function_;
  Scope* caller_;
  std::string prefix_;
  NameSource& names_;
  std::unordered_map<std::string, std::string> values_;
  std::unordered_map<std::string, Binding> attributes_;
};

}  // namespace pfrt::onnx
