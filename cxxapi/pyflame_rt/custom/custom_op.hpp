// SPDX-License-Identifier: Apache-2.0
//
// Operators described step by step: typed inputs and outputs, attributes, a kernel, rules for
// shapes and types, and a gradient. Building one registers it, in static initialisers too; models
// use it by its domain and name. Several operators may have one name: those known at other opsets,
// and those for other element types. Builders are for one thread; everything else is thread-safe.
#pragma once

#include <algorithm>
#include <any>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <pyflame_rt/env.hpp>
#include <pyflame_rt/op_call.hpp>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace pyflame_rt {
namespace custom {

using pyflame_rt::DType;
using pyflame_rt::Tensor;

// The place where a kernel runs.
enum class BackendType { CPU };

// Attributes by name: int64_t, float, std::string, vectors of these, or Tensor.
using AttributeMap = std::unordered_map<std::string, std::any>;
// Computes the outputs. Inputs live during the call and are read-only. Called from several threads
// at once. An exception fails the run: its message reaches the caller, with node and operator
// before it.
using KernelFn = std::function<std::vector<Tensor>(const std::vector<Tensor>& inputs,
                                                   const AttributeMap& attrs)>;
// A node for which a kernel is made.
struct OpNode {
  // The node's name; may be empty.
  std::string name;
  // Opset of the domain in the model; 0 when the model imports none.
  int64_t opset = 0;
  // Attributes, with the defaults of those that the node leaves out.
  AttributeMap attributes;
  // Element types; Undefined for an absent input, and where they are not known.
  std::vector<DType> input_dtypes, output_dtypes;
  // Values of the inputs that are constants, invalid tensors for others. They live as long as the
  // kernel.
  std::vector<Tensor> constants;
};
// Computes the outputs of one node, as KernelFn does; its state is what it captured.
using NodeKernelFn = std::function<std::vector<Tensor>(const std::vector<Tensor>& inputs)>;
// Makes the kernel of a node, once for each node when a session is made: here a pattern is
// compiled, a table built, a vocabulary read. An exception is the error of the session.
using NodeKernelMaker = std::function<NodeKernelFn(const OpNode& node)>;
// Returns shapes of the outputs; nullopt is a dimension that is not known yet. Once all dimensions
// of the inputs are known, those of the outputs must be.
using ShapeInferenceFn = std::function<std::vector<Shape>(const std::vector<Shape>& input_shapes)>;
// Returns element types of the outputs. DType::Undefined is an unknown one, in |input_dtypes| too.
using TypeInferenceFn = std::function<std::vector<DType>(const std::vector<DType>& input_dtypes)>;
// Computes gradients of the inputs from the inputs and the gradients of the outputs: a tensor for
// each input, an invalid one where there is no gradient.
using GradientFn = std::function<std::vector<Tensor>(const std::vector<Tensor>& inputs,
                                                     const std::vector<Tensor>& grad_outputs)>;

// An input or output of an operator.
struct OpPort {
  // The port's name, for messages.
  std::string name;
  DType dtype = DType::Undefined;  // Undefined = any type; for an output, that of input 0
  bool variadic = false;           // only for the last input: one or more tensors
};
// An input of an OpSchema.
using OpInput = OpPort;
// An output of an OpSchema.
using OpOutput = OpPort;

// An attribute of an operator.
struct OpAttribute {
  // Name of the attribute in nodes.
  std::string name;
  // PFRT_ATTR_FLOAT and the like.
  pfrt_attr_type type = PFRT_ATTR_UNSET;
  // A node without it is refused.
  bool required = false;
  std::any default_value;  // empty = none; an absent attribute stays absent
};

// Description of an operator for models. Without outputs, each model chooses their number.
struct OpSchema {
  // Name without the domain.
  std::string name;
  // Domain; "custom" unless the builder set it.
  std::string domain;
  // First and last opset of the domain in which models may use the operator; |until| 0 = it is
  // still current.
  int version = 1, until = 0;
  // Text of the builder's doc(); empty without one.
  std::string doc;
  // Inputs, in the order of a node's inputs.
  std::vector<OpInput> inputs;
  // Outputs, in the order of a node's outputs.
  std::vector<OpOutput> outputs;
  // Attributes, in the order in which they were declared.
  std::vector<OpAttribute> attributes;
};

// An operator that was built. Immutable.
class CustomOp {
 public:
  // Description of the operator for models.
  const OpSchema& schema() const noexcept { return schema_; }
  // Name without the domain.
  const std::string& name() const noexcept { return schema_.name; }
  // Domain; "custom" unless the builder set it.
  const std::string& domain() const noexcept { return schema_.domain; }
  // Domain and name, "custom::MyOp".
  std::string full_name() const { return schema_.domain + "::" + schema_.name; }
  // First opset of the domain in which models may use the operator.
  int version() const noexcept { return schema_.version; }
  // Last opset of the domain in which models may use the operator; 0 = it is still current.
  int until() const noexcept { return schema_.until; }
  // Text of the builder's doc(); empty without one.
  const std::string& doc() const noexcept { return schema_.doc; }
  // Inputs, in the order of a node's inputs.
  const std::vector<OpInput>& inputs() const noexcept { return schema_.inputs; }
  // Outputs, in the order of a node's outputs.
  const std::vector<OpOutput>& outputs() const noexcept { return schema_.outputs; }
  // Attributes, in the order in which they were declared.
  const std::vector<OpAttribute>& attributes() const noexcept { return schema_.attributes; }
  // Whether the operator has a kernel for |backend|. Without one, models may use the operator, and
  // only a provider that knows it can run it.
  bool supports_backend(BackendType backend) const noexcept {
    return backend == BackendType::CPU && (kernel_ != nullptr || maker_ != nullptr);
  }

  // Checks the arguments and calls the kernel, without a session. A kernel for one node is made for
  // the call, and all inputs count as constants.
  std::vector<Tensor> execute(const std::vector<Tensor>& inputs, AttributeMap attrs = {}) const {
    check_inputs(inputs);
    complete(attrs);
    if (!maker_) return compute(inputs, attrs);
    OpNode node;
    node.name = name();
    node.attributes = std::move(attrs);
    for (const Tensor& input : inputs) node.input_dtypes.push_back(input.dtype());
    node.output_dtypes = output_dtypes(node.input_dtypes, outputs().size());
    node.constants = inputs;
    return make_kernel(node)(inputs);
  }
  // Calls execute.
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs, AttributeMap attrs = {}) const {
    return execute(inputs, std::move(attrs));
  }

  // Whether the builder gave the operator a gradient.
  bool has_gradient() const noexcept { return gradient_ != nullptr; }
  // Computes the gradients of the inputs. Throws UnsupportedError when the operator has none, and
  // InputError when the numbers of tensors do not fit.
  std::vector<Tensor> gradient(const std::vector<Tensor>& inputs,
                               const std::vector<Tensor>& grad_outputs) const;

  // Returns the shapes that its shape inference gives. Throws UnsupportedError when it has none,
  // since a Shape cannot say that only the kernel knows it.
  std::vector<Shape> infer_output_shapes(const std::vector<Shape>& input_shapes) const;
  // Returns the types that its type inference gives; without one, those of the outputs' ports, or
  // of input 0.
  std::vector<DType> infer_output_dtypes(const std::vector<DType>& input_dtypes) const {
    return output_dtypes(input_dtypes, outputs().size());
  }

 private:
  friend class CustomOpBuilder;
  friend class CustomOpRegistry;

  bool variadic() const noexcept { return !inputs().empty() && inputs().back().variadic; }
  void check_inputs(const std::vector<Tensor>& given) const {
    const size_t least = inputs().size();
    if (given.size() < least || (given.size() > least && !variadic())) {
      throw InputError(full_name() + " takes " + std::to_string(least) +
                       (variadic() ? " or more inputs, got " : " inputs, got ") +
                       std::to_string(given.size()));
    }
    for (size_t i = 0; i < given.size(); ++i) check_dtype(i, given[i].dtype());
  }
  void check_dtype(size_t i, DType got) const {
    const OpInput& input = inputs()[std::min(i, inputs().size() - 1)];
    if (input.dtype == DType::Undefined || got == DType::Undefined || got == input.dtype) return;
    throw DTypeMismatchError("input '" + input.name + "' is " + dtype_name(got) + ", expected " +
                             dtype_name(input.dtype));
  }
  // Fills in defaults; required attributes must be there.
  void complete(AttributeMap& attrs) const {
    for (const OpAttribute& a : attributes()) {
      if (attrs.count(a.name) != 0) continue;
      if (a.required) throw InputError("attribute '" + a.name + "' is required, and absent");
      if (a.default_value.has_value()) attrs[a.name] = a.default_value;
    }
  }
  std::vector<Tensor> compute(const std::vector<Tensor>& inputs, const AttributeMap& attrs) const {
    if (!kernel_)
      throw UnsupportedOperatorError("custom operator '" + full_name() +
                                     "' has no kernel; give it one with CustomOpBuilder::kernel, "
                                     "or use a provider that has one");
    return kernel_(inputs, attrs);
  }
  NodeKernelFn make_kernel(const OpNode& node) const {
    NodeKernelFn made = maker_(node);
    if (!made) throw PyFlameRTError("it made no kernel for the node", PFRT_CODE_PROVIDER);
    return made;
  }
  // Whether some opset and types of a node fit both operators equally well.
  bool same_key(const CustomOp& other) const {
    const auto at = [](const std::vector<OpPort>& ports, size_t i) {
      return ports.empty() ? DType::Undefined : ports[std::min(i, ports.size() - 1)].dtype;
    };
    const auto same = [&](const std::vector<OpPort>& a, const std::vector<OpPort>& b) {
      for (size_t i = 0; i < std::max(a.size(), b.size()); ++i)
        if (at(a, i) != at(b, i)) return false;
      return true;
    };
    return full_name() == other.full_name() && (until() == 0 || other.version() <= until()) &&
           (other.until() == 0 || version() <= other.until()) && same(inputs(), other.inputs()) &&
           same(outputs(), other.outputs());
  }
  std::vector<DType> output_dtypes(const std::vector<DType>& input_dtypes, size_t count) const;
  OpNode node_of(const pfrt_op_create& call) const;
  AttributeMap read_attributes(const pfrt_snapshot_node& node, uint32_t attr_size) const;
  pfrt_code infer(const pfrt_op_infer& call) const;
  void add_to(pfrt_env* env) const;

  OpSchema schema_;
  KernelFn kernel_;
  NodeKernelMaker maker_;
  ShapeInferenceFn shape_inference_;
  TypeInferenceFn type_inference_;
  GradientFn gradient_;
};

// The operators that were built, by name ("MyOp") or full name ("custom::MyOp"). Where several have
// the name, it stands for the one with the newest version, and the first built of those.
class CustomOpRegistry {
 public:
  static CustomOpRegistry& instance() {
    static CustomOpRegistry* const registry = new CustomOpRegistry;
    return *registry;
  }
  CustomOpRegistry(const CustomOpRegistry&) = delete;
  CustomOpRegistry& operator=(const CustomOpRegistry&) = delete;

  // Full names of all operators, sorted, each once.
  std::vector<std::string> list() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<std::string> names;
    for (const auto& [name, entry] : entries_)
      if (names.empty() || names.back() != name) names.push_back(name);
    return names;
  }
  // Number of operators; each version and each list of types counts.
  size_t size() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return entries_.size();
  }
  // Registers an operator without a kernel: models may use it, and a provider that knows it runs
  // it. Throws InputError when its name is taken, for the same types and some of the same opsets,
  // or the description makes no sense.
  CustomOp& register_op(OpSchema schema) {
    CustomOp op;
    op.schema_ = std::move(schema);
    return add(std::move(op));
  }
  // Whether an operator of that name or full name is registered.
  bool has(const std::string& name) const { return find_copy(name) != nullptr; }
  // Returns the operator of that name or full name, null when there is none. The pointer stays
  // valid for good, also when the operator is unregistered.
  CustomOp* get(const std::string& name) const { return find_copy(name); }
  // Unregisters the operators of a name, of all versions and types. Models loaded and sessions made
  // later do not know them; existing ones keep them. Throws InputError when there is none.
  void unregister(const std::string& name) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto it = find(name);
    if (it == entries_.end()) throw NotFoundError("unregister: no custom operator '" + name + "'");
    remove_all(it->first);
  }
  // Unregisters all operators.
  void clear() {
    const std::lock_guard<std::mutex> lock(mutex_);
    while (!entries_.empty()) remove_all(entries_.begin()->first);
  }

 private:
  friend class CustomOpBuilder;
  // Operators are never destroyed: sessions call them until the process ends.
  struct Entry {
    CustomOp* op;
    size_t registration;
  };
  CustomOpRegistry() = default;

  using Entries = std::multimap<std::string, Entry>;  // by full name

  void remove_all(const std::string& name) {
    const auto range =
        entries_.equal_range(name);  // |name| may be a key, which goes with its entry
    bool first = true;               // the library unregisters all of the name at once
    for (auto it = range.first; it != range.second;) {
      detail::Registrations::instance().remove(it->second.registration, [&](pfrt_env* env) {
        const CustomOp& op = *it->second.op;
        if (first)
          detail::check(api().env->unregister_operator(env, detail::text(op.domain()),
                                                       detail::text(op.name())));
      });
      first = false;
      retired_.push_back(it->second.op);
      it = entries_.erase(it);
    }
  }
  Entries::const_iterator find(const std::string& name) const {
    auto best = entries_.end();
    for (auto it = entries_.begin(); it != entries_.end(); ++it) {
      if (it->first != name && it->second.op->name() != name) continue;
      const bool full = best != entries_.end() && best->first == name;
      const bool better =
          best == entries_.end() || (it->first == name && !full) ||
          (it->first == best->first && it->second.op->version() > best->second.op->version());
      if (better) best = it;
    }
    return best;
  }
  CustomOp* find_copy(const std::string& name) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto it = find(name);
    return it == entries_.end() ? nullptr : it->second.op;
  }
  CustomOp& add(CustomOp op) {
    if (op.name().empty() || op.version() < 1)
      throw InvalidArgumentError("custom operator '" + op.name() +
                                 "' needs a name and a version above 0");
    if (op.until() != 0 && op.until() < op.version())
      throw InvalidArgumentError("custom operator '" + op.name() + "' is known from version " +
                                 std::to_string(op.version()) + " to " +
                                 std::to_string(op.until()));
    for (size_t i = 0; i < op.inputs().size(); ++i) {
      if (op.inputs()[i].variadic && i + 1 != op.inputs().size())
        throw InvalidArgumentError("custom operator '" + op.name() + "': input '" +
                                   op.inputs()[i].name + "' is variadic, and not the last");
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    const std::string full = op.full_name();
    for (const auto& [name, entry] : entries_)
      if (op.same_key(*entry.op))
        throw InvalidArgumentError(
            "custom operator '" + full +
            "' is registered already, for the same types and some of the same versions");
    auto kept = std::make_unique<CustomOp>(std::move(op));
    const size_t registration = detail::Registrations::instance().add(
        [raw = kept.get()](pfrt_env* env) { raw->add_to(env); });
    entries_.insert({full, {kept.get(), registration}});
    return *kept.release();
  }

  mutable std::mutex mutex_;
  Entries entries_;
  std::vector<CustomOp*> retired_;
};

// Describes an operator; build() registers it.
class CustomOpBuilder {
 public:
  // |name| is the operator's name, without its domain.
  explicit CustomOpBuilder(std::string name) {
    op_.schema_.name = std::move(name);
    op_.schema_.domain = "custom";
  }

  // Sets the domain, which is "custom" otherwise.
  CustomOpBuilder& domain(std::string value) {
    return op_.schema_.domain = std::move(value), *this;
  }
  // Sets the first and the last opset of the domain in which models may use the operator; |until| 0
  // means that it is still current. So an operator changes its meaning: the old one ends where the
  // new one, of the same name, begins.
  CustomOpBuilder& version(int since, int until = 0) {
    op_.schema_.version = since;
    op_.schema_.until = until;
    return *this;
  }
  // Describes the operator for people.
  CustomOpBuilder& doc(std::string value) { return op_.schema_.doc = std::move(value), *this; }
  // Adds the next input; Undefined takes any element type. Operators of one name for other types
  // stand beside each other, and each node gets the one for its types.
  CustomOpBuilder& input(std::string name, DType dtype = DType::Undefined) {
    return op_.schema_.inputs.push_back({std::move(name), dtype, false}), *this;
  }
  // Adds the last input, of one or more tensors.
  CustomOpBuilder& variadic_input(std::string name, DType dtype = DType::Undefined) {
    return op_.schema_.inputs.push_back({std::move(name), dtype, true}), *this;
  }
  // Adds the next output; Undefined gives it the type of input 0.
  CustomOpBuilder& output(std::string name, DType dtype = DType::Undefined) {
    return op_.schema_.outputs.push_back({std::move(name), dtype, false}), *this;
  }
  // Adds a float attribute. Absent and without a default value it is not in the kernel's map.
  CustomOpBuilder& attr_float(const std::string& name, bool required = false,
                              std::optional<float> default_value = std::nullopt) {
    return attr(name, PFRT_ATTR_FLOAT, required, default_value);
  }
  // Adds an int64_t attribute, as attr_float does.
  CustomOpBuilder& attr_int(const std::string& name, bool required = false,
                            std::optional<int64_t> default_value = std::nullopt) {
    return attr(name, PFRT_ATTR_INT, required, default_value);
  }
  // Adds a std::string attribute, as attr_float does.
  CustomOpBuilder& attr_string(const std::string& name, bool required = false,
                               std::optional<std::string> default_value = std::nullopt) {
    return attr(name, PFRT_ATTR_STRING, required, std::move(default_value));
  }
  // Adds a std::vector<float> attribute, as attr_float does.
  CustomOpBuilder& attr_floats(const std::string& name, bool required = false) {
    return attr<float>(name, PFRT_ATTR_FLOATS, required, std::nullopt);
  }
  // Adds a std::vector<int64_t> attribute, as attr_float does.
  CustomOpBuilder& attr_ints(const std::string& name, bool required = false) {
    return attr<int64_t>(name, PFRT_ATTR_INTS, required, std::nullopt);
  }
  // Sets the function that computes the outputs. Throws InputError for a backend other than the
  // CPU.
  CustomOpBuilder& kernel(KernelFn function, BackendType backend = BackendType::CPU) {
    if (backend != BackendType::CPU)
      throw InvalidArgumentError("custom operator '" + op_.name() +
                                 "': kernels run on the CPU only");
    op_.maker_ = nullptr;
    return op_.kernel_ = std::move(function), *this;
  }
  // Sets the function that makes a kernel for each node of a model, in place of kernel().
  CustomOpBuilder& node_kernel(NodeKernelMaker maker) {
    op_.kernel_ = nullptr;
    return op_.maker_ = std::move(maker), *this;
  }
  // Makes a |Kernel| for each node, from the OpNode. It is called as NodeKernelFn is, as a const
  // object from several threads at once, and destroyed after the last run.
  template <class Kernel>
  CustomOpBuilder& kernel_class() {
    return node_kernel([](const OpNode& node) {
      return [kernel = std::make_shared<const Kernel>(node)](const std::vector<Tensor>& inputs) {
        return (*kernel)(inputs);
      };
    });
  }
  // Sets the function that infers output shapes; without it they are known only when the kernel has
  // run.
  CustomOpBuilder& shape_inference(ShapeInferenceFn function) {
    return op_.shape_inference_ = std::move(function), *this;
  }
  // Sets the function that infers output types; without it they are those of the ports, or of input
  // 0.
  CustomOpBuilder& type_inference(TypeInferenceFn function) {
    return op_.type_inference_ = std::move(function), *this;
  }
  // Sets the gradient, for training: inference never calls it.
  CustomOpBuilder& gradient(GradientFn function) {
    return op_.gradient_ = std::move(function), *this;
  }

  // Registers the operator, which lives as long as the process. Throws InputError when its name is
  // taken, for the same types and some of the same opsets, or the description makes no sense.
  CustomOp& build() { return CustomOpRegistry::instance().add(op_); }

 private:
  template <class T>
  CustomOpBuilder& attr(const std::string& name, pfrt_attr_type type, bool required,
                        std::optional<T> default_value) {
    OpAttribute made{name, type, required, {}};
    if (default_value) made.default_value = std::move(*default_value);
    op_.schema_.attributes.push_back(std::move(made));
    return *this;
  }
  CustomOp op_;
};

inline std::vector<Tensor> CustomOp::gradient(const std::vector<Tensor>& inputs,
                                              const std::vector<Tensor>& grad_outputs) const {
  if (!gradient_)
    throw UnsupportedError("custom operator '" + full_name() +
                           "' has no gradient; give it one with CustomOpBuilder::gradient");
  check_inputs(inputs);
  if (!outputs().empty() && grad_outputs.size() != outputs().size())
    throw InputError("the gradient of " + full_name() + " takes those of " +
                     std::to_string(outputs().size()) + " outputs, got " +
                     std::to_string(grad_outputs.size()));
  std::vector<Tensor> results = gradient_(inputs, grad_outputs);
  if (results.size() != inputs.size())
    throw PyFlameRTError("the gradient of " + full_name() + " returned " +
                             std::to_string(results.size()) + " tensors for " +
                             std::to_string(inputs.size()) + " inputs",
                         PFRT_CODE_PROVIDER);
  return results;
}

inline std::vector<Shape> CustomOp::infer_output_shapes(
    const std::vector<Shape>& input_shapes) const {
  if (!shape_inference_)
    throw UnsupportedError(
        "custom operator '" + full_name() +
        "' has no shape inference; give it one with CustomOpBuilder::shape_inference");
  return shape_inference_(input_shapes);
}

inline std::vector<DType> CustomOp::output_dtypes(const std::vector<DType>& input_dtypes,
                                                  size_t count) const {
  if (type_inference_) {
    std::vector<DType> results = type_inference_(input_dtypes);
    if (results.size() < count)
      throw PyFlameRTError("its type inference gave " + std::to_string(results.size()) +
                               " types for " + std::to_string(count) + " outputs",
                           PFRT_CODE_PROVIDER);
    return results;
  }
  std::vector<DType> results;
  for (size_t i = 0; i < count; ++i) {
    results.push_back(i < outputs().size() ? outputs()[i].dtype : DType::Undefined);
    if (results.back() == DType::Undefined && !input_dtypes.empty())
      results.back() = input_dtypes[0];
  }
  return results;
}

inline AttributeMap CustomOp::read_attributes(const pfrt_snapshot_node& node,
                                              uint32_t attr_size) const {
  AttributeMap attrs;
  for (uint64_t i = 0; i < node.attr_count; ++i) {
    const pfrt_snapshot_attr& c = detail::attr_at(node, attr_size, i);
    const std::string name = detail::str(c.name);
    for (const OpAttribute& declared : attributes()) {
      if (declared.name == name && declared.type != c.type)
        throw InputError("attribute '" + name + "' has type " + std::to_string(c.type) +
                         ", expected " + std::to_string(declared.type) + " (pfrt_attr_type)");
    }
    if (auto value = detail::attr_from_snapshot(c))
      std::visit([&](auto& v) { attrs[name] = std::move(v); }, *value);
  }
  complete(attrs);
  return attrs;
}

inline pfrt_code CustomOp::infer(const pfrt_op_infer& call) const {
  (void)read_attributes(*call.node, call.attr_size);
  std::vector<Shape> shapes;
  std::vector<DType> dtypes;
  bool ranked = true;
  for (uint32_t i = 0; i < call.input_count; ++i) {
    const pfrt_snapshot_value& value = detail::value_at(call.inputs, call.value_size, i);
    dtypes.push_back(dtype_from_c(value.dtype));
    check_dtype(i, dtypes.back());
    ranked = ranked && value.rank >= 0;
    Shape& shape = shapes.emplace_back();
    for (int32_t d = 0; d < value.rank; ++d)
      shape.push_back(value.dims[d] < 0 ? std::nullopt : std::optional<int64_t>(value.dims[d]));
  }
  std::vector<Shape> results;
  const bool inferred = shape_inference_ && ranked;
  if (inferred) {
    results = shape_inference_(shapes);
    if (results.size() < call.output_count)
      throw PyFlameRTError("its shape inference gave " + std::to_string(results.size()) +
                               " shapes for " + std::to_string(call.output_count) + " outputs",
                           PFRT_CODE_PROVIDER);
  }
  const std::vector<DType> types = output_dtypes(dtypes, call.output_count);
  for (uint32_t i = 0; i < call.output_count; ++i) {
    const pfrt_dtype dtype = to_c(types[i]);
    if (dtype == PFRT_DTYPE_UNSET) continue;  // the graph may declare the type
    std::vector<int64_t> dims;
    if (inferred)
      for (const auto& dim : results[i]) dims.push_back(dim.value_or(INT64_MIN));
    const pfrt_code code = call.set_output(
        &call, i, dtype, inferred ? static_cast<int32_t>(dims.size()) : -1, dims.data());
    if (code != PFRT_CODE_OK) return code;
  }
  return PFRT_CODE_OK;
}

inline OpNode CustomOp::node_of(const pfrt_op_create& call) const {
  OpNode node;
  node.name = detail::str(call.node->name);
  node.opset = call.node->opset;
  node.attributes = read_attributes(*call.node, call.attr_size);
  for (uint32_t i = 0; i < call.input_count; ++i) {
    const pfrt_snapshot_value& value = detail::value_at(call.inputs, call.value_size, i);
    node.input_dtypes.push_back(dtype_from_c(value.dtype));
    const bool constant = (value.flags & PFRT_SNAPSHOT_CONSTANT) != 0;
    node.constants.push_back(constant ? detail::constant_from_c(value) : Tensor());
  }
  for (uint32_t i = 0; i < call.output_count; ++i)
    node.output_dtypes.push_back(
        dtype_from_c(detail::value_at(call.outputs, call.value_size, i).dtype));
  return node;
}

inline void CustomOp::add_to(pfrt_env* env) const {
  const auto types_of = [](const std::vector<OpPort>& ports) {
    std::vector<pfrt_dtype> types;
    types.reserve(ports.size());
    for (const OpPort& port : ports) types.push_back(to_c(port.dtype));
    return types;
  };
  const std::vector<pfrt_dtype> input_types = types_of(inputs()),
                                output_types = types_of(outputs());
  pfrt_custom_op c{};
  c.struct_size = sizeof(c);
  c.abi = PFRT_ABI_VERSION;
  c.name = detail::text(name());
  c.domain = detail::text(domain());
  c.since_version = static_cast<uint32_t>(version());
  c.until_version = static_cast<uint32_t>(until());
  c.input_types = input_types.data();
  c.input_type_count = static_cast<uint32_t>(input_types.size());
  c.output_types = output_types.data();
  c.output_type_count = static_cast<uint32_t>(output_types.size());
  c.min_inputs = static_cast<uint32_t>(inputs().size());
  c.max_inputs = variadic() ? PFRT_ANY_NUMBER : c.min_inputs;
  c.min_outputs = 1;
  c.max_outputs = outputs().empty() ? PFRT_ANY_NUMBER : static_cast<uint32_t>(outputs().size());
  c.flags = shape_inference_ ? 0 : PFRT_OP_DATA_DEPENDENT;
  c.infer = [](void* user, const pfrt_op_infer* call) {
    return detail::no_exceptions([&] { return static_cast<const CustomOp*>(user)->infer(*call); },
                                 [&](pfrt_code code, std::string_view message) {
                                   return detail::fail_call(call, code, message);
                                 });
  };
  c.compute = [](void* user, const pfrt_op_compute* call) {
    return detail::no_exceptions(
        [&] {
          const CustomOp& op = *static_cast<const CustomOp*>(user);
          if (call->state != nullptr)
            return detail::give_outputs(
                *call, (*static_cast<const NodeKernelFn*>(call->state))(detail::inputs_of(*call)));
          return detail::give_outputs(*call,
                                      op.compute(detail::inputs_of(*call),
                                                 op.read_attributes(*call->node, call->attr_size)));
        },
        [&](pfrt_code code, std::string_view message) {
          return detail::fail_call(call, code, message);
        });
  };
  if (maker_) {
    c.create_state = [](void* user, const pfrt_op_create* call, void** out_state) {
      return detail::no_exceptions(
          [&]() -> pfrt_code {
            const CustomOp& op = *static_cast<const CustomOp*>(user);
            *out_state = new NodeKernelFn(op.make_kernel(op.node_of(*call)));
            return PFRT_CODE_OK;
          },
          [&](pfrt_code code, std::string_view message) {
            return detail::fail_call(call, code, message);
          });
    };
    c.release_state = [](void*, void* state) { delete static_cast<NodeKernelFn*>(state); };
  }
  c.user = const_cast<CustomOp*>(this);
  detail::check(api().env->register_operator(env, &c));
}

}  // namespace custom
}  // namespace pyflame_rt
