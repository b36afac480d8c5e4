// SPDX-License-Identifier: Apache-2.0
//
// Values of a model besides dense tensors: sequences, maps, optionals and sparse tensors, nested at
// will. Copies are shallow. Immutable, hence safe to share between threads.
#pragma once

#include <pyflame_rt/tensor.hpp>

namespace pyflame_rt {

// A tensor, or a container of tensors.
class Value {
 public:
  // No value: kind() is Unset.
  Value() noexcept = default;
  Value(const Tensor& tensor) : value_(tensor.shared()) {}  // NOLINT: a tensor is a value
  // Takes over a value of the C API.
  static Value from_handle(detail::Handle<pfrt_value> value) {
    Value out;
    out.value_ = std::move(value);
    return out;
  }

  // Returns a sequence; |element_dtype| types an empty sequence of tensors.
  static Value sequence(const std::vector<Value>& elements,
                        DType element_dtype = DType::Undefined) {
    std::vector<pfrt_value*> handles;
    handles.reserve(elements.size());
    for (const Value& element : elements) handles.push_back(element.handle());
    if (element_dtype == DType::Undefined && !elements.empty()) element_dtype = elements[0].dtype();
    Value out;
    detail::check(api().value->create_sequence(to_c(element_dtype), handles.data(), handles.size(),
                                               out.value_.out()));
    return out;
  }
  // Returns an optional that holds |element|, or nothing where that is invalid.
  static Value optional(const Value& element) {
    Value out;
    detail::check(api().value->create_optional(element.handle(), out.value_.out()));
    return out;
  }
  // Returns an optional that holds nothing.
  static Value none() { return optional(Value()); }
  // Returns a map. |keys| has rank 1 and holds strings or integers; |values| has as many rows.
  static Value map(const Tensor& keys, const Tensor& values) {
    Value out;
    detail::check(api().value->create_map(keys.handle(), values.handle(), out.value_.out()));
    return out;
  }

  // False when there is no value.
  bool is_valid() const noexcept { return static_cast<bool>(value_); }
  // Unset when there is no value.
  ValueKind kind() const {
    return value_ ? static_cast<ValueKind>(api().value->kind(value_.get())) : ValueKind::Unset;
  }
  // Whether the value is a dense tensor.
  bool is_tensor() const { return kind() == ValueKind::Tensor; }
  // Element type of the tensor, of a sequence's, optional's or sparse tensor's elements, or of a
  // map's values.
  DType dtype() const {
    return value_ ? dtype_from_c(api().value->dtype(value_.get())) : DType::Undefined;
  }

  // Throws InputError when the value is not a tensor.
  Tensor tensor() const {
    if (!is_tensor()) throw InputError("the value is not a tensor");
    return Tensor::from_handle(value_);
  }
  // Number of elements of a sequence or entries of a map; 0 or 1 for an optional.
  size_t size() const {
    size_t count = 0;
    detail::check(api().value->count(value_.get(), &count));
    return count;
  }
  // The element of a sequence or optional.
  Value at(size_t index) const {
    pfrt_value* element = nullptr;
    detail::check(api().value->element(value_.get(), index, &element));
    return from_handle(detail::Handle<pfrt_value>::share(element));
  }
  // Keys and values of a map.
  std::pair<Tensor, Tensor> map_parts() const {
    pfrt_value* keys = nullptr;
    pfrt_value* values = nullptr;
    detail::check(api().value->map_parts(value_.get(), &keys, &values));
    return {Tensor::from_handle(detail::Handle<pfrt_value>::share(keys)),
            Tensor::from_handle(detail::Handle<pfrt_value>::share(values))};
  }

  pfrt_value* handle() const noexcept { return value_.get(); }

 private:
  detail::Handle<pfrt_value> value_;
};

}  // namespace pyflame_rt
