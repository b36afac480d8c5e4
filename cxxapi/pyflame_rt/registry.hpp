// SPDX-License-Identifier: Apache-2.0
//
// Operators by name. The built-in ones of ONNX's domain can be called one at a time. Functions of
// the program can be registered, and models then use them like built-in operators. A static
// initialiser may register them too, before any other call of the API. Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <pyflame_rt/graph.hpp>
#include <pyflame_rt/op_call.hpp>
#include <pyflame_rt/session.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace pyflame_rt {

// Context of a call of an operator's function.
struct OpContext {
  // The node that is computed, with its attributes. Whoever calls a built-in operator gives its
  // attributes and the number of its outputs by a node; null means no attributes and one output.
  const Node* node = nullptr;
};

// Computes an operator. Inputs are valid during the call only, and read-only; an absent optional
// input is null. May be called from several threads at once. An exception fails the run: the caller
// gets its message after the names of node and operator.
using OpFunc = std::function<std::vector<Tensor>(const std::vector<const Tensor*>& inputs,
                                                 const OpContext& context)>;

// Operators by name: built-in ones and the program's own.
class OperatorRegistry {
 public:
  static OperatorRegistry& instance() {
    static OperatorRegistry* const registry = new OperatorRegistry;
    return *registry;
  }
  OperatorRegistry(const OperatorRegistry&) = delete;
  OperatorRegistry& operator=(const OperatorRegistry&) = delete;

  // Whether an operator of that name is built in or registered.
  bool has(const std::string& op_type) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return functions_.count(op_type) != 0 || built_in().count(op_type) != 0;
  }
  // The function of an operator, valid until the process ends; null when no operator has that name.
  // The function of a built-in operator runs a graph of one node. Its session is kept for calls
  // with the same attributes, input types and ranks. Operators with graphs among their attributes
  // (If, Loop) cannot be called this way.
  const OpFunc* get(const std::string& op_type);
  // The names of all operators, sorted.
  std::vector<std::string> list_ops() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::set<std::string> names = built_in();
    for (const auto& [name, function] : functions_) names.insert(name);
    return {names.begin(), names.end()};
  }
  // Registers |function|: from now on models may use |op_type|, in ONNX's own domain. Outputs have
  // the element type that the graph declares for them, or else that of input 0. Throws
  // InvalidArgumentError when the name is taken.
  void register_op(const std::string& op_type, OpFunc function);
  // Removes a registered operator. Models and sessions that exist keep it; later ones do not know
  // it. Returns false when it is not registered, as no built-in operator is.
  bool unregister_op(const std::string& op_type) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto it = functions_.find(op_type);
    if (it == functions_.end()) return false;
    remove(it);
    return true;
  }
  // Removes all registered operators.
  void clear() {
    const std::lock_guard<std::mutex> lock(mutex_);
    while (!functions_.empty()) remove(functions_.begin());
  }
  // The number of names in list_ops().
  size_t size() const { return list_ops().size(); }

 private:
  // Functions are never destroyed: sessions call them until the process ends.
  struct Entry {
    OpFunc* function;
    size_t registration;
  };
  OperatorRegistry() = default;

  void remove(std::map<std::string, Entry>::const_iterator it) {
    detail::Registrations::instance().remove(it->second.registration, [&](pfrt_env* env) {
      detail::check(api().env->unregister_operator(env, detail::text(""), detail::text(it->first)));
    });
    retired_.push_back(it->second.function);
    functions_.erase(it);
  }
  static const std::set<std::string>& built_in() {
    static const auto* const names = [] {
      auto* made = new std::set<std::string>;
      for (const OperatorInfo& op : Environment::operators())
        if (op.domain.empty()) made->insert(op.op);
      return made;
    }();
    return *names;
  }
  static pfrt_code compute(void* user, const pfrt_op_compute* call);
  std::vector<Tensor> evaluate(const std::string& op_type, const std::vector<const Tensor*>& inputs,
                               const OpContext& context);
  std::shared_ptr<InferenceSession> session_for(const Node& node,
                                                const std::vector<const Tensor*>& inputs);

  mutable std::mutex mutex_;
  std::map<std::string, Entry> functions_;  // registered
  std::vector<OpFunc*> retired_;            // removed; here so that leak checkers still find them
  std::map<std::string, std::unique_ptr<OpFunc>> evaluators_;
  std::map<std::string, std::shared_ptr<InferenceSession>> sessions_;
};

inline void OperatorRegistry::register_op(const std::string& op_type, OpFunc function) {
  if (op_type.empty() || !function)
    throw InvalidArgumentError("register_op: it needs a name and a function");
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const char* const by :
       {built_in().count(op_type) ? "a built-in operator" : nullptr,
        functions_.count(op_type) ? "another registered operator" : nullptr}) {
    if (by != nullptr)
      throw InvalidArgumentError("register_op: the name '" + op_type + "' is taken by " + by);
  }
  auto kept = std::make_unique<OpFunc>(std::move(function));
  const auto apply = [op_type, user = kept.get()](pfrt_env* env) {
    pfrt_custom_op c{};
    c.struct_size = sizeof(c);
    c.abi = PFRT_ABI_VERSION;
    c.name = detail::text(op_type);
    c.max_inputs = c.max_outputs = PFRT_ANY_NUMBER;
    c.compute = &compute;
    c.user = user;
    detail::check(api().env->register_operator(env, &c));
  };
  const size_t registration = detail::Registrations::instance().add(apply);
  functions_[op_type] = {kept.release(), registration};
}

inline pfrt_code OperatorRegistry::compute(void* user, const pfrt_op_compute* call) {
  return detail::no_exceptions(
      [&] {
        const std::vector<Tensor> tensors = detail::inputs_of(*call);
        std::vector<const Tensor*> inputs;
        inputs.reserve(tensors.size());
        for (const Tensor& t : tensors) inputs.push_back(t.is_valid() ? &t : nullptr);
        const Node node = detail::node_from_snapshot(
            *call->node, call->attr_size,
            detail::strings_from_c(call->input_names, call->input_count),
            detail::strings_from_c(call->output_names, call->output_count));
        OpContext context;
        context.node = &node;
        return detail::give_outputs(*call, (*static_cast<const OpFunc*>(user))(inputs, context));
      },
      [&](pfrt_code code, std::string_view message) {
        return detail::fail_call(call, code, message);
      });
}

inline const OpFunc* OperatorRegistry::get(const std::string& op_type) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const auto it = functions_.find(op_type); it != functions_.end()) return it->second.function;
  if (built_in().count(op_type) == 0) return nullptr;
  std::unique_ptr<OpFunc>& evaluator = evaluators_[op_type];
  if (!evaluator) {
    evaluator = std::make_unique<OpFunc>(
        [this, op_type](const std::vector<const Tensor*>& inputs, const OpContext& context) {
          return evaluate(op_type, inputs, context);
        });
  }
  return evaluator.get();
}

inline std::vector<Tensor> OperatorRegistry::evaluate(const std::string& op_type,
                                                      const std::vector<const Tensor*>& inputs,
                                                      const OpContext& context) {
  Node node = context.node != nullptr ? *context.node : Node({}, op_type, {}, {"y0"});
  std::vector<std::string> names, outputs;
  std::unordered_map<std::string, Tensor> feed;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool given = inputs[i] != nullptr && inputs[i]->is_valid();
    names.push_back(given ? "x" + std::to_string(i) : std::string());
    if (given) feed[names.back()] = *inputs[i];
  }
  for (size_t i = 0; i < std::max<size_t>(node.outputs().size(), 1); ++i)
    outputs.push_back("y" + std::to_string(i));
  Node alone(op_type, op_type, names, outputs);
  for (const auto& [name, value] : node.attributes()) detail::set_attr(alone, name, value);
  return session_for(alone, inputs)->run({}, feed);
}

inline std::shared_ptr<InferenceSession> OperatorRegistry::session_for(
    const Node& node, const std::vector<const Tensor*>& inputs) {
  // The key holds everything that the graph of one node depends on.
  std::string key = node.op_type() + "/" + std::to_string(node.outputs().size());
  const auto add = [&key](const void* data, size_t size) {
    key += "/" + std::to_string(size) + ":";
    key.append(static_cast<const char*>(data), size);
  };
  for (const Tensor* t : inputs)
    key += t == nullptr || !t->is_valid()
               ? "/-"
               : std::string("/") + dtype_name(t->dtype()) + std::to_string(t->ndim());
  for (const auto& [name, value] : node.attributes()) {
    add(name.data(), name.size());
    key += std::to_string(value.index());
    std::visit(
        [&, &attribute = name](const auto& v) {  // clang 14 captures no structured binding
          using V = std::decay_t<decltype(v)>;
          if constexpr (std::is_arithmetic_v<V>) {
            add(&v, sizeof v);
          } else if constexpr (std::is_same_v<V, Tensor>) {
            key += dtype_name(v.dtype()) + detail::shape_text(v.shape());
            if (v.dtype() == DType::String) {
              for (const std::string& s : v.strings()) add(s.data(), s.size());
            } else {
              add(v.data(), v.size_bytes());
            }
          } else if constexpr (std::is_same_v<V, GraphHandle>) {
            throw InputError("operator " + node.op_type() + ": attribute '" + attribute +
                             "' is a graph; such operators run in a session only");
          } else if constexpr (std::is_same_v<V, std::vector<std::string>>) {
            for (const std::string& s : v) add(s.data(), s.size());
          } else {
            add(v.data(), v.size() * sizeof(typename V::value_type));
          }
        },
        value);
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const auto it = sessions_.find(key); it != sessions_.end()) return it->second;
  }
  Graph graph(node.op_type());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (node.inputs()[i].empty()) continue;
    graph.add_input(TensorInfo(node.inputs()[i], Shape(inputs[i]->ndim()), inputs[i]->dtype()));
  }
  for (const std::string& name : node.outputs()) {
    TensorInfo info(name, {}, DType::Undefined);
    info.unranked = true;
    info.kind = ValueKind::Unset;
    graph.add_output(info);
  }
  graph.add_node(std::make_shared<Node>(node));
  auto made = std::make_shared<InferenceSession>(std::move(graph));
  constexpr size_t kMost = 64;  // most sessions that are kept
  const std::lock_guard<std::mutex> lock(mutex_);
  if (sessions_.size() >= kMost) sessions_.clear();
  sessions_[key] = made;
  return made;
}

}  // namespace pyflame_rt
