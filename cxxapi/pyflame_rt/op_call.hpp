// SPDX-License-Identifier: Apache-2.0
//
// Code shared by registry.hpp, custom/custom_op.hpp and backend.hpp: arguments of the C callbacks
// (custom.h) as tensors and nodes, results handed back, exceptions as codes. For these headers
// alone.
#pragma once

#include <pyflame_rt/custom.h>

#include <exception>
#include <new>
#include <pyflame_rt/node.hpp>
#include <pyflame_rt/tensor.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace pyflame_rt {
namespace detail {

// Runs |body|, which returns a code. An exception that it throws goes to |fail|(code, message).
template <class Body, class Fail>
pfrt_code no_exceptions(const Body& body, const Fail& fail) noexcept {
  try {
    try {
      return body();
    } catch (const PyFlameRTError& e) {
      return fail(e.code(), e.what());
    } catch (const std::bad_alloc&) {
      return PFRT_CODE_OUT_OF_MEMORY;
    } catch (const std::invalid_argument& e) {
      return fail(PFRT_CODE_INVALID_ARGUMENT, e.what());
    } catch (const std::exception& e) {
      return fail(PFRT_CODE_PROVIDER, e.what());
    } catch (...) {
      return fail(PFRT_CODE_PROVIDER, "an exception that is no std::exception");
    }
  } catch (...) {
    return PFRT_CODE_OUT_OF_MEMORY;  // the message did not fit in memory
  }
}

// Returns a view for the time of a call; texts are copied.
inline Tensor tensor_from_c(const pfrt_tensor& c) {
  std::vector<int64_t> shape;
  if (c.rank != 0) shape.assign(c.dims, c.dims + c.rank);
  const DType dtype = dtype_from_c(c.dtype);
  if (dtype == DType::String) {
    Tensor out(std::move(shape), dtype);
    const auto* elements = static_cast<const pfrt_string*>(c.data);
    for (int64_t i = 0; i < out.num_elements(); ++i)
      out.set_string(i, std::string_view(elements[i].data, elements[i].size));
    return out;
  }
  if (c.data == nullptr) return Tensor(std::move(shape), dtype);  // without elements
  return Tensor::wrap(c.data, shape, dtype);
}

inline const pfrt_snapshot_attr& attr_at(const pfrt_snapshot_node& node, uint32_t attr_size,
                                         uint64_t index) {
  return *reinterpret_cast<const pfrt_snapshot_attr*>(reinterpret_cast<const char*>(node.attrs) +
                                                      index * attr_size);
}

// Returns nullopt for kinds that this version does not know.
inline std::optional<AttributeValue> attr_from_snapshot(const pfrt_snapshot_attr& c) {
  return c.type == PFRT_ATTR_TENSOR ? tensor_from_c(c.tensor) : plain_attr(c);
}

inline void set_attr(Node& node, const std::string& name, const AttributeValue& value) {
  std::visit([&](const auto& v) { node.set_attr(name, v); }, value);
}

inline Node node_from_snapshot(const pfrt_snapshot_node& c, uint32_t attr_size,
                               std::vector<std::string> inputs, std::vector<std::string> outputs) {
  Node node(str(c.name), str(c.op), std::move(inputs), std::move(outputs), str(c.domain));
  for (uint64_t i = 0; i < c.attr_count; ++i) {
    const pfrt_snapshot_attr& attr = attr_at(c, attr_size, i);
    if (const auto value = attr_from_snapshot(attr)) set_attr(node, str(attr.name), *value);
  }
  return node;
}

inline std::vector<std::string> strings_from_c(const pfrt_string* list, size_t count) {
  std::vector<std::string> out;
  for (size_t i = 0; i < count; ++i) out.push_back(str(list[i]));
  return out;
}

inline const pfrt_snapshot_value& value_at(const pfrt_snapshot_value* values, uint32_t value_size,
                                           uint32_t index) {
  return *static_cast<const pfrt_snapshot_value*>(pfrt_at(values, value_size, index));
}

// Returns a view of a constant, valid while it is; texts are copied.
inline Tensor constant_from_c(const pfrt_snapshot_value& c) {
  pfrt_tensor tensor{};
  tensor.struct_size = sizeof(tensor);
  tensor.dtype = c.dtype;
  tensor.rank = static_cast<uint32_t>(c.rank);
  tensor.data = const_cast<void*>(c.data);
  tensor.bytes = c.bytes;
  tensor.dims = c.dims;
  return tensor_from_c(tensor);
}

// Returns the inputs of a compute callback; absent ones are invalid tensors.
inline std::vector<Tensor> inputs_of(const pfrt_op_compute& call) {
  std::vector<Tensor> out(call.input_count);
  for (uint32_t i = 0; i < call.input_count; ++i)
    if (call.inputs[i].dtype != PFRT_DTYPE_UNSET) out[i] = tensor_from_c(call.inputs[i]);
  return out;
}

// Copies |results| into the outputs of the call.
inline pfrt_code give_outputs(const pfrt_op_compute& call, const std::vector<Tensor>& results) {
  for (uint32_t i = 0; i < call.output_count; ++i) {
    if (call.outputs[i].dtype == PFRT_DTYPE_UNSET) continue;  // nobody wants it
    if (i >= results.size() || !results[i].is_valid()) {
      throw PyFlameRTError("it returned " + std::to_string(results.size()) + " tensors, output " +
                               std::to_string(i) + " is not among them",
                           PFRT_CODE_PROVIDER);
    }
    const Tensor& result = results[i];
    void* to = nullptr;
    const pfrt_code code = call.alloc_output(&call, i, to_c(result.dtype()), result.shape().data(),
                                             static_cast<uint32_t>(result.ndim()), &to);
    if (code != PFRT_CODE_OK) return code;
    if (result.dtype() == DType::String) {
      pfrt_tensor view{};
      view.struct_size = sizeof(view);
      check(api().value->tensor(result.handle(), &view));
      const pfrt_code set =
          call.set_strings(&call, i, 0, static_cast<const pfrt_string*>(view.data),
                           static_cast<uint64_t>(result.num_elements()));
      if (set != PFRT_CODE_OK) return set;
    } else if (result.size_bytes() != 0) {
      std::memcpy(to, result.data(), result.size_bytes());
    }
  }
  return PFRT_CODE_OK;
}

template <class Call>
pfrt_code fail_call(const Call* call, pfrt_code code, std::string_view message) {
  return call->fail(call, code, text(message));
}

}  // namespace detail
}  // namespace pyflame_rt
