// SPDX-License-Identifier: Apache-2.0
//
// Operators described step by step: typed inputs and outputs, attributes, a kernel, and a shape
// rule. Building one registers it, in static initialisers too; models use it by its domain and
// name. Builders are for one thread; everything else is thread-safe.
#pragma once

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

// Where a kernel runs.
enum class BackendType { CPU };

// By name: int64_t, float, std::string, vectors of these, or Tensor.
using AttributeMap = std::unordered_map<std::string, std::any>;
// Inputs live during the call and are read-only. Called from several threads at once. An exception
// fails the run: its message reaches the caller, with node and operator before it.
using KernelFn = std::function<std::vector<Tensor>(const std::vector<Tensor>& inputs,
                                                   const AttributeMap& attrs)>;
// Shapes of the outputs; nullopt is a dimension that is not known yet. Once those of the inputs are
// known, those of the outputs must be.
using ShapeInferenceFn = std::function<std::vector<Shape>(const std::vector<Shape>& input_shapes)>;

// An input or output of an operator.
struct OpPort {
  // For messages.
  std::string name;
  DType dtype = DType::Undefined;  // any; an output then has the type of input 0
};

// An attribute of an operator.
struct OpAttribute {
  // As nodes have it.
  std::string name;
  // PFRT_ATTR_FLOAT and the like.
  pfrt_attr_type type = PFRT_ATTR_UNSET;
  // A node without it is refused.
  bool required = false;
  std::any default_value;  // empty: absent stays absent
};

// An operator that was built. Immutable.
class CustomOp {
 public:
  // Without the domain.
  const std::string& name() const noexcept { return name_; }
  // "custom" unless the builder set it.
  const std::string& domain() const noexcept { return domain_; }
  // "custom::MyOp".
  std::string full_name() const { return domain_ + "::" + name_; }
  // The first opset of the domain in which models may use it.
  int version() const noexcept { return version_; }
  // What it does; empty unless the builder said.
  const std::string& doc() const noexcept { return doc_; }
  // In the order of a node's inputs.
  const std::vector<OpPort>& inputs() const noexcept { return inputs_; }
  // In the order of a node's outputs.
  const std::vector<OpPort>& outputs() const noexcept { return outputs_; }
  // In the order in which they were declared.
  const std::vector<OpAttribute>& attributes() const noexcept { return attributes_; }

  // Checks the arguments and calls the kernel, without a session.
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs, AttributeMap attrs = {}) const {
    if (inputs.size() != inputs_.size()) {
      throw InputError(full_name() + " takes " + std::to_string(inputs_.size()) + " inputs, got " +
                       std::to_string(inputs.size()));
    }
    for (size_t i = 0; i < inputs.size(); ++i) check_dtype(i, inputs[i].dtype());
    complete(attrs);
    return kernel_(inputs, attrs);
  }

 private:
  friend class CustomOpBuilder;
  friend class CustomOpRegistry;

  void check_dtype(size_t i, DType got) const {
    const DType want = inputs_[i].dtype;
    if (want == DType::Undefined || got == DType::Undefined || got == want) return;
    throw DTypeMismatchError("input '" + inputs_[i].name + "' is " + dtype_name(got) +
                             ", expected " + dtype_name(want));
  }
  // Fills in defaults; what is required must be there.
  void complete(AttributeMap& attrs) const {
    for (const OpAttribute& a : attributes_) {
      if (attrs.count(a.name) != 0) continue;
      if (a.required) throw InputError("attribute '" + a.name + "' is required, and absent");
      if (a.default_value.has_value()) attrs[a.name] = a.default_value;
    }
  }
  AttributeMap read_attributes(const pfrt_snapshot_node& node, uint32_t attr_size) const;
  pfrt_code infer(const pfrt_op_infer& call) const;
  pfrt_code compute(const pfrt_op_compute& call) const;
  void add_to(pfrt_env* env) const;

  std::string name_, domain_ = "custom", doc_;
  int version_ = 1;
  std::vector<OpPort> inputs_, outputs_;
  std::vector<OpAttribute> attributes_;
  KernelFn kernel_;
  ShapeInferenceFn shape_inference_;
};

// The operators that were built, by name ("MyOp") or full name ("custom::MyOp").
class CustomOpRegistry {
 public:
  static CustomOpRegistry& instance() {
    static CustomOpRegistry* const registry = new CustomOpRegistry;
    return *registry;
  }
  CustomOpRegistry(const CustomOpRegistry&) = delete;
  CustomOpRegistry& operator=(const CustomOpRegistry&) = delete;

  // Full names, sorted.
  std::vector<std::string> list() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<std::string> names;
    for (const auto& [name, entry] : entries_) names.push_back(name);
    return names;
  }
  // Whether there is one of that name or full name.
  bool has(const std::string& name) const { return find_copy(name) != nullptr; }
  // Null when there is none. Valid for good, also when it is unregistered.
  const CustomOp* get(const std::string& name) const { return find_copy(name); }
  // Models loaded and sessions made later do not know it; those that exist keep it. InputError when
  // there is none.
  void unregister(const std::string& name) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto it = find(name);
    if (it == entries_.end()) throw InputError("unregister: no custom operator '" + name + "'");
    detail::Registrations::instance().remove(it->second.registration, [&](pfrt_env* env) {
      const CustomOp& op = *it->second.op;
      detail::check(
          api().env->unregister_operator(env, detail::text(op.domain_), detail::text(op.name_)));
    });
    retired_.push_back(it->second.op);
    entries_.erase(it);
  }

 private:
  friend class CustomOpBuilder;
  // Operators are never destroyed: sessions call them until the process ends.
  struct Entry {
    CustomOp* op;
    size_t registration;
  };
  CustomOpRegistry() = default;

  std::map<std::string, Entry>::const_iterator find(const std::string& name) const {
    const auto full = entries_.find(name);
    if (full != entries_.end()) return full;
    for (auto it = entries_.begin(); it != entries_.end(); ++it)
      if (it->second.op->name_ == name) return it;
    return entries_.end();
  }
  const CustomOp* find_copy(const std::string& name) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto it = find(name);
    return it == entries_.end() ? nullptr : it->second.op;
  }
  CustomOp& add(CustomOp op) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const std::string full = op.full_name();
    if (entries_.count(full) != 0)
      throw InputError("custom operator '" + full + "' is registered already",
                       PFRT_CODE_INVALID_ARGUMENT);
    auto kept = std::make_unique<CustomOp>(std::move(op));
    const size_t registration = detail::Registrations::instance().add(
        [raw = kept.get()](pfrt_env* env) { raw->add_to(env); });
    entries_[full] = {kept.get(), registration};
    return *kept.release();
  }

  mutable std::mutex mutex_;
  std::map<std::string, Entry> entries_;
  std::vector<CustomOp*> retired_;
};

// Describes an operator; build() registers it.
class CustomOpBuilder {
 public:
  // |name| is that of the operator, without its domain.
  explicit CustomOpBuilder(std::string name) { op_.name_ = std::move(name); }

  // "custom" unless it is set.
  CustomOpBuilder& domain(std::string value) { return op_.domain_ = std::move(value), *this; }
  // The first opset of the domain in which models may use it.
  CustomOpBuilder& version(int value) { return op_.version_ = value, *this; }
  // What it does.
  CustomOpBuilder& doc(std::string value) { return op_.doc_ = std::move(value), *this; }
  // The next input; Undefined takes any element type.
  CustomOpBuilder& input(std::string name, DType dtype = DType::Undefined) {
    return op_.inputs_.push_back({std::move(name), dtype}), *this;
  }
  // The next output; Undefined: of the type of input 0.
  CustomOpBuilder& output(std::string name, DType dtype = DType::Undefined) {
    return op_.outputs_.push_back({std::move(name), dtype}), *this;
  }
  // A float attribute. Absent and without a default value it is not in the kernel's map.
  CustomOpBuilder& attr_float(const std::string& name, bool required = false,
                              std::optional<float> default_value = std::nullopt) {
    return attr(name, PFRT_ATTR_FLOAT, required, default_value);
  }
  // An int64_t attribute, as attr_float.
  CustomOpBuilder& attr_int(const std::string& name, bool required = false,
                            std::optional<int64_t> default_value = std::nullopt) {
    return attr(name, PFRT_ATTR_INT, required, default_value);
  }
  // A std::string attribute, as attr_float.
  CustomOpBuilder& attr_string(const std::string& name, bool required = false,
                               std::optional<std::string> default_value = std::nullopt) {
    return attr(name, PFRT_ATTR_STRING, required, std::move(default_value));
  }
  // A std::vector<float> attribute, as attr_float.
  CustomOpBuilder& attr_floats(const std::string& name, bool required = false) {
    return attr<float>(name, PFRT_ATTR_FLOATS, required, std::nullopt);
  }
  // A std::vector<int64_t> attribute, as attr_float.
  CustomOpBuilder& attr_ints(const std::string& name, bool required = false) {
    return attr<int64_t>(name, PFRT_ATTR_INTS, required, std::nullopt);
  }
  // What computes the outputs. InputError for a backend other than the CPU.
  CustomOpBuilder& kernel(KernelFn function, BackendType backend = BackendType::CPU) {
    if (backend != BackendType::CPU)
      throw InputError("custom operator '" + op_.name_ + "': kernels run on the CPU only");
    return op_.kernel_ = std::move(function), *this;
  }
  // What tells the outputs' shapes; without it they are known only when the kernel has run.
  CustomOpBuilder& shape_inference(ShapeInferenceFn function) {
    return op_.shape_inference_ = std::move(function), *this;
  }

  // Registers the operator, which lives as long as the process. InputError when its name is taken,
  // or it has no kernel or no output.
  CustomOp& build() {
    if (op_.name_.empty() || !op_.kernel_ || op_.outputs_.empty() || op_.version_ < 1)
      throw InputError("custom operator '" + op_.name_ +
                       "' needs a name, a kernel, an output, and a version above 0");
    return CustomOpRegistry::instance().add(op_);
  }

 private:
  template <class T>
  CustomOpBuilder& attr(const std::string& name, pfrt_attr_type type, bool required,
                        std::optional<T> default_value) {
    OpAttribute made{name, type, required, {}};
    if (default_value) made.default_value = std::move(*default_value);
    op_.attributes_.push_back(std::move(made));
    return *this;
  }
  CustomOp op_;
};

inline AttributeMap CustomOp::read_attributes(const pfrt_snapshot_node& node,
                                              uint32_t attr_size) const {
  AttributeMap attrs;
  for (uint64_t i = 0; i < node.attr_count; ++i) {
    const pfrt_snapshot_attr& c = detail::attr_at(node, attr_size, i);
    const std::string name = detail::str(c.name);
    for (const OpAttribute& declared : attributes_) {
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
  bool ranked = true;
  for (uint32_t i = 0; i < call.input_count; ++i) {
    const auto& value = *reinterpret_cast<const pfrt_snapshot_value*>(
        reinterpret_cast<const char*>(call.inputs) + size_t{i} * call.value_size);
    check_dtype(i, dtype_from_c(value.dtype));
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
  for (uint32_t i = 0; i < call.output_count; ++i) {
    pfrt_dtype dtype = to_c(outputs_[i].dtype);
    if (dtype == PFRT_DTYPE_UNSET && call.input_count != 0) dtype = call.inputs[0].dtype;
    if (dtype == PFRT_DTYPE_UNSET) continue;  // the graph may say
    std::vector<int64_t> dims;
    if (inferred)
      for (const auto& dim : results[i]) dims.push_back(dim.value_or(INT64_MIN));
    const pfrt_code code = call.set_output(
        &call, i, dtype, inferred ? static_cast<int32_t>(dims.size()) : -1, dims.data());
    if (code != PFRT_CODE_OK) return code;
  }
  return PFRT_CODE_OK;
}

inline pfrt_code CustomOp::compute(const pfrt_op_compute& call) const {
  const std::vector<Tensor> results =
      kernel_(detail::inputs_of(call), read_attributes(*call.node, call.attr_size));
  return detail::give_outputs(call, results);
}

inline void CustomOp::add_to(pfrt_env* env) const {
  pfrt_custom_op c{};
  c.struct_size = sizeof(c);
  c.abi = PFRT_ABI_VERSION;
  c.name = detail::text(name_);
  c.domain = detail::text(domain_);
  c.since_version = static_cast<uint32_t>(version_);
  c.min_inputs = static_cast<uint32_t>(inputs_.size());
  c.min_outputs = 1;
  c.max_outputs = static_cast<uint32_t>(outputs_.size());
  c.flags = shape_inference_ ? 0 : PFRT_OP_DATA_DEPENDENT;
  c.infer = [](void* user, const pfrt_op_infer* call) {
    return detail::no_exceptions([&] { return static_cast<const CustomOp*>(user)->infer(*call); },
                                 [&](pfrt_code code, std::string_view message) {
                                   return detail::fail_call(call, code, message);
                                 });
  };
  c.compute = [](void* user, const pfrt_op_compute* call) {
    return detail::no_exceptions([&] { return static_cast<const CustomOp*>(user)->compute(*call); },
                                 [&](pfrt_code code, std::string_view message) {
                                   return detail::fail_call(call, code, message);
                                 });
  };
  c.user = const_cast<CustomOp*>(this);
  detail::check(api().env->register_operator(env, &c));
}

}  // namespace custom
}  // namespace pyflame_rt
