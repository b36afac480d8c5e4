// SPDX-License-Identifier: Apache-2.0
//
// A dense tensor. Copies and moves are shallow: copies share one reference-counted memory; clone()
// makes another. Two threads may read one tensor; writing elements is for one thread at a time and
// not while a run uses the tensor.
#pragma once

#include <algorithm>
#include <cstring>
#include <pyflame_rt/api.hpp>
#include <pyflame_rt/quantization/half_types.hpp>
#include <pyflame_rt/types.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace pyflame_rt {
namespace detail {

inline std::string shape_text(const std::vector<int64_t>& shape) {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i != 0) out += ",";
    out += std::to_string(shape[i]);
  }
  return out + "]";
}

// Returns the number of elements; -1 when a dimension is negative or the product does not fit.
inline int64_t count_of(const std::vector<int64_t>& shape) noexcept {
  int64_t count = 1;
  for (int64_t dim : shape) {
    if (dim < 0) return -1;
    if (dim == 0) return 0;
  }
  for (int64_t dim : shape) {
    if (count > INT64_MAX / dim) return -1;
    count *= dim;
  }
  return count;
}

}  // namespace detail

// A dense tensor: element type, dimensions, row-major elements.
class Tensor {
 public:
  // No tensor: is_valid() is false and only assignment makes sense.
  Tensor() noexcept = default;

  // Allocates memory of its own, zeroed (strings: empty), 64-byte aligned.
  Tensor(std::vector<int64_t> shape, DType dtype) {
    detail::Handle<pfrt_value> value;
    detail::check(api().value->create_tensor(to_c(dtype), shape.data(), shape.size(), value.out()));
    attach(std::move(value));
  }

  // Shares a tensor of the C API.
  static Tensor from_handle(detail::Handle<pfrt_value> value) {
    Tensor tensor;
    tensor.attach(std::move(value));
    return tensor;
  }

  // Returns a view of row-major memory that must outlive every copy of the tensor. Not for strings.
  static Tensor wrap(void* data, const std::vector<int64_t>& shape, DType dtype) {
    return make_view(data, shape, dtype, nullptr);
  }

  // Returns a copy of |values|, for numbers, half types and std::string.
  template <class T>
  static Tensor from_vector(const std::vector<T>& values, std::vector<int64_t> shape) {
    constexpr bool kText = std::is_same_v<T, std::string>;
    const int64_t count = detail::count_of(shape);
    if (count != static_cast<int64_t>(values.size())) {
      throw ShapeMismatchError("from_vector: shape " + detail::shape_text(shape) +
                               " does not hold " + std::to_string(values.size()) + " values");
    }
    if constexpr (kText) {
      Tensor tensor(std::move(shape), DType::String);
      for (int64_t i = 0; i < count; ++i) tensor.set_string(i, values[static_cast<size_t>(i)]);
      return tensor;
    } else {
      Tensor tensor(std::move(shape), DTypeOf<T>::value);
      std::copy(values.begin(), values.end(), tensor.template data_ptr<T>());
      return tensor;
    }
  }

  // Dimensions; empty for a scalar.
  const std::vector<int64_t>& shape() const noexcept { return shape_; }
  // Element type; Undefined when there is no tensor.
  DType dtype() const noexcept { return dtype_; }
  // Number of dimensions; 0 for a scalar.
  size_t ndim() const noexcept { return shape_.size(); }
  // Product of the dimensions; 1 for a scalar.
  int64_t num_elements() const noexcept { return count_; }
  // Bytes of the packed elements; for strings, of an array of pfrt_string.
  size_t size_bytes() const noexcept { return bytes_; }
  // False when there is no tensor.
  bool is_valid() const noexcept { return static_cast<bool>(value_); }
  // Whether the elements are in the memory of a device (InferenceSession::create_tensor,
  // IOBinding). Functions that need elements in host memory then throw InputError; to_host() copies
  // them there.
  bool on_device() const noexcept { return on_device_; }
  // False for a view of another tensor's or the caller's memory. (A view keeps the other tensor's
  // memory alive.)
  bool owns_data() const noexcept { return owns_; }

  // Pointer to the elements. Throws DTypeMismatchError unless T is the tensor's type; 8-bit floats
  // and packed sub-byte types are read as uint8_t.
  template <class T>
  T* data_ptr() {
    check_host("data_ptr");
    check_type<T>();
    return static_cast<T*>(data_);
  }
  // Pointer to the elements, read-only; otherwise as above.
  template <class T>
  const T* data_ptr() const {
    check_host("data_ptr");
    check_type<T>();
    return static_cast<const T*>(data_);
  }
  // Pointer to the elements; null when they are on a device.
  void* data() noexcept { return on_device_ ? nullptr : data_; }
  const void* data() const noexcept { return on_device_ ? nullptr : data_; }

  // Returns an element of a string tensor, by its row-major index.
  std::string string_at(int64_t index) const {
    check_string(index);
    return detail::str(view_c().data == nullptr
                           ? pfrt_string{}
                           : static_cast<const pfrt_string*>(view_c().data)[index]);
  }
  // Replaces an element of a string tensor, by its row-major index.
  void set_string(int64_t index, std::string_view value) {
    check_string(index);
    detail::check(
        api().value->set_string(value_.get(), static_cast<uint64_t>(index), detail::text(value)));
  }
  // Returns all elements of a string tensor, row-major. Throws DTypeMismatchError for other types.
  std::vector<std::string> strings() const {
    if (dtype_ != DType::String) check_string(0);
    std::vector<std::string> out;
    const auto* elements = static_cast<const pfrt_string*>(view_c().data);
    for (int64_t i = 0; i < count_; ++i) out.push_back(detail::str(elements[i]));
    return out;
  }

  // Sets every element to |value|, converted to the tensor's type.
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  void fill(T value);
  // Sets every element to 0, or to the empty string.
  void zero() {
    check_host("zero");
    if (dtype_ == DType::String) {
      for (int64_t i = 0; i < count_; ++i) set_string(i, {});
    } else if (bytes_ != 0) {
      std::memset(data_, 0, bytes_);
    }
  }

  // Returns a deep copy with host memory of its own.
  Tensor clone() const { return copy_as(shape_); }
  // Returns the tensor itself, or a copy in host memory of one on a device.
  Tensor to_host() const { return on_device_ ? clone() : *this; }
  // Copies the elements of |from|, of the same type and number, wherever either tensor lives.
  void copy_from(const Tensor& from) {
    detail::check(api().value->copy(from.handle(), value_.get()));
  }

  // Returns a tensor of another shape that shares the elements (strings are copied). One dimension
  // may be -1 and is then computed from the others.
  Tensor reshape(std::vector<int64_t> shape) const;

  // Returns a view of the same memory without a copy; its owns_data() is false.
  Tensor view() const {
    if (!is_valid()) return {};
    check_host("view");
    Tensor out = *this;
    if (dtype_ != DType::String && count_ != 0)
      out = make_view(data_, shape_, dtype_, value_.get());
    out.owns_ = false;
    return out;
  }

  // Handle for calls of the C API; lives as long as the tensor.
  pfrt_value* handle() const noexcept { return value_.get(); }
  // Shared handle for Value and for calls of the C API that keep a reference.
  const detail::Handle<pfrt_value>& shared() const noexcept { return value_; }

 private:
  pfrt_tensor view_c() const {
    pfrt_tensor c{};
    c.struct_size = sizeof(c);
    detail::check(api().value->tensor(value_.get(), &c));
    return c;
  }
  void attach(detail::Handle<pfrt_value> value) {
    value_ = std::move(value);
    const pfrt_tensor c = view_c();
    if (c.strides != nullptr) {
      throw PyFlameRTError("a strided value is not a Tensor: copy it first", PFRT_CODE_UNSUPPORTED);
    }
    shape_.assign(c.dims, c.dims + c.rank);
    dtype_ = dtype_from_c(c.dtype);
    count_ = detail::count_of(shape_);
    data_ = c.data;
    bytes_ = static_cast<size_t>(c.bytes);
    on_device_ = c.memory != PFRT_MEMORY_HOST;
    owns_ = true;
  }
  // Returns a view, which keeps |owner|, if there is one.
  static Tensor make_view(void* data, const std::vector<int64_t>& shape, DType dtype,
                          pfrt_value* owner) {
    const int64_t count = detail::count_of(shape);
    const uint64_t bits = dtype_bits(dtype);
    if (count < 0 || bits == 0 || static_cast<uint64_t>(count) > (UINT64_MAX - 7) / bits) {
      throw InputError("cannot wrap memory as " + std::string(dtype_name(dtype)) + " of shape " +
                       detail::shape_text(shape));
    }
    pfrt_tensor c{};
    c.struct_size = sizeof(c);
    c.dtype = to_c(dtype);
    c.rank = static_cast<uint32_t>(shape.size());
    c.data = data;
    c.bytes = (static_cast<uint64_t>(count) * bits + 7) / 8;
    c.dims = shape.data();
    const auto drop = [](void* user, void*) {
      if (user != nullptr) api().value->release(static_cast<pfrt_value*>(user));
    };
    detail::Handle<pfrt_value> value;
    detail::Handle<pfrt_value>::share(owner).detach();  // the call takes over the reference
    detail::check(
        api().value->wrap_tensor(&c, owner == nullptr ? nullptr : +drop, owner, value.out()));
    Tensor out = from_handle(std::move(value));
    out.owns_ = false;
    return out;
  }
  Tensor copy_as(std::vector<int64_t> shape) const {
    if (!is_valid()) return {};
    Tensor out(std::move(shape), dtype_);
    if (dtype_ == DType::String) {
      for (int64_t i = 0; i < count_; ++i) out.set_string(i, string_at(i));
    } else if (on_device_) {
      out.copy_from(*this);
    } else if (bytes_ != 0) {
      std::memcpy(out.data_, data_, std::min(bytes_, out.bytes_));
    }
    return out;
  }
  void check_host(const char* doing) const {
    if (!on_device_) return;
    throw InvalidArgumentError(
        std::string(doing) +
        ": the tensor lives on a device; to_host() gives a copy in host memory");
  }
  template <class T>
  void check_type() const {
    if (DTypeOf<T>::value == dtype_) return;
    const bool opaque = dtype_bits(dtype_) != 0 && dtype_bits(dtype_) <= 8 &&
                        dtype_ != DType::Int8 && dtype_ != DType::Bool;
    if (std::is_same_v<T, uint8_t> && opaque) return;
    throw DTypeMismatchError(std::string("data_ptr<") + dtype_name(DTypeOf<T>::value) +
                             ">: the tensor holds " + dtype_name(dtype_));
  }
  void check_string(int64_t index) const {
    if (dtype_ != DType::String) {
      throw DTypeMismatchError(std::string("the tensor holds ") + dtype_name(dtype_) +
                               ", not strings");
    }
    if (index < 0 || index >= count_) {
      throw InputError("string " + std::to_string(index) + " of a tensor of " +
                       std::to_string(count_) + " elements");
    }
  }

  detail::Handle<pfrt_value> value_;
  std::vector<int64_t> shape_;
  DType dtype_ = DType::Undefined;
  int64_t count_ = 0;
  void* data_ = nullptr;
  size_t bytes_ = 0;
  bool owns_ = false;
  bool on_device_ = false;
};

inline Tensor Tensor::reshape(std::vector<int64_t> shape) const {
  check_host("reshape");
  const std::string wanted = detail::shape_text(shape);
  const auto open = std::find(shape.begin(), shape.end(), int64_t{-1});
  if (open != shape.end()) {
    *open = 1;
    const int64_t rest = detail::count_of(shape);
    *open = rest > 0 ? count_ / rest : -1;
  }
  if (!is_valid() || detail::count_of(shape) != count_) {
    throw ShapeMismatchError("reshape of " + detail::shape_text(shape_) + " to " + wanted +
                             ": the number of elements differs");
  }
  if (dtype_ == DType::String || count_ == 0) return copy_as(std::move(shape));
  return make_view(data_, shape, dtype_, value_.get());
}

namespace detail {

template <class E, class T>
void fill_with(void* data, int64_t count, T value) {
  E element;
  if constexpr (std::is_same_v<E, quantization::Float16> ||
                std::is_same_v<E, quantization::BFloat16>) {
    element = E::from_float(static_cast<float>(value));
  } else if constexpr (std::is_same_v<E, bool>) {
    element = value != T{};
  } else {
    element = static_cast<E>(value);
  }
  std::fill_n(static_cast<E*>(data), count, element);
}

}  // namespace detail

template <class T, class>
void Tensor::fill(T value) {
  check_host("fill");
  switch (dtype_) {
    case DType::Float32:
      return detail::fill_with<float>(data_, count_, value);
    case DType::Float64:
      return detail::fill_with<double>(data_, count_, value);
    case DType::Float16:
      return detail::fill_with<quantization::Float16>(data_, count_, value);
    case DType::BFloat16:
      return detail::fill_with<quantization::BFloat16>(data_, count_, value);
    case DType::Int8:
      return detail::fill_with<int8_t>(data_, count_, value);
    case DType::Int16:
      return detail::fill_with<int16_t>(data_, count_, value);
    case DType::Int32:
      return detail::fill_with<int32_t>(data_, count_, value);
    case DType::Int64:
      return detail::fill_with<int64_t>(data_, count_, value);
    case DType::UInt8:
      return detail::fill_with<uint8_t>(data_, count_, value);
    case DType::UInt16:
      return detail::fill_with<uint16_t>(data_, count_, value);
    case DType::UInt32:
      return detail::fill_with<uint32_t>(data_, count_, value);
    case DType::UInt64:
      return detail::fill_with<uint64_t>(data_, count_, value);
    case DType::Bool:
      return detail::fill_with<bool>(data_, count_, value);
    case DType::Complex64:
      return detail::fill_with<std::complex<float>>(data_, count_, static_cast<float>(value));
    case DType::Complex128:
      return detail::fill_with<std::complex<double>>(data_, count_, static_cast<double>(value));
    default:
      throw DTypeMismatchError(std::string("fill with a number: the tensor holds ") +
                               dtype_name(dtype_));
  }
}

}  // namespace pyflame_rt
