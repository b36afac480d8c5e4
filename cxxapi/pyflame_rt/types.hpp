// SPDX-License-Identifier: Apache-2.0
//
// Element types and descriptions of inputs, outputs and inner values. Plain values without hidden
// state.
#pragma once

#include <pyflame_rt/pyflame_rt.h>

#include <algorithm>
#include <complex>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <pyflame_rt/api.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace pyflame_rt {
namespace detail {

// The guide's numbers of element types, from the table of the C header.
enum GuideNumber : int32_t {
#define PFRT_X(name, number, guide, bits, text, onnx) kGuide_##name = guide,
  PFRT_DTYPE_TABLE(PFRT_X)
#undef PFRT_X
};

}  // namespace detail

// An element type. Sub-byte types are packed two or four to a byte; strings are pfrt_string.
enum class DType : int32_t {
  Undefined = -1,
  Float32 = detail::kGuide_FLOAT32,
  Float16 = detail::kGuide_FLOAT16,
  BFloat16 = detail::kGuide_BFLOAT16,
  Float64 = detail::kGuide_FLOAT64,
  Int64 = detail::kGuide_INT64,
  Int32 = detail::kGuide_INT32,
  Int16 = detail::kGuide_INT16,
  Int8 = detail::kGuide_INT8,
  UInt8 = detail::kGuide_UINT8,
  Bool = detail::kGuide_BOOL,
  UInt16 = detail::kGuide_UINT16,
  String = detail::kGuide_STRING,
  UInt32 = detail::kGuide_UINT32,
  UInt64 = detail::kGuide_UINT64,
  Complex64 = detail::kGuide_COMPLEX64,
  Complex128 = detail::kGuide_COMPLEX128,
  Float8E4M3FN = detail::kGuide_FLOAT8E4M3FN,
  Float8E4M3FNUZ = detail::kGuide_FLOAT8E4M3FNUZ,
  Float8E5M2 = detail::kGuide_FLOAT8E5M2,
  Float8E5M2FNUZ = detail::kGuide_FLOAT8E5M2FNUZ,
  UInt4 = detail::kGuide_UINT4,
  Int4 = detail::kGuide_INT4,
  Float4E2M1 = detail::kGuide_FLOAT4E2M1,
  Float8E8M0 = detail::kGuide_FLOAT8E8M0,
  UInt2 = detail::kGuide_UINT2,
  Int2 = detail::kGuide_INT2,
};

// Returns PFRT_DTYPE_UNSET for a number outside the table.
inline pfrt_dtype to_c(DType dtype) noexcept {
  switch (static_cast<int32_t>(dtype)) {
#define PFRT_X(name, number, guide, bits, text, onnx) \
  case guide:                                         \
    return number;
    PFRT_DTYPE_TABLE(PFRT_X)
#undef PFRT_X
    default:
      return PFRT_DTYPE_UNSET;
  }
}

// Returns Undefined for a number outside the table.
inline DType dtype_from_c(pfrt_dtype dtype) noexcept {
  switch (dtype) {
#define PFRT_X(name, number, guide, bits, text, onnx) \
  case number:                                        \
    return static_cast<DType>(guide);
    PFRT_DTYPE_TABLE(PFRT_X)
#undef PFRT_X
    default:
      return DType::Undefined;
  }
}

// Returns a name such as "float32"; "undefined" for a number outside the table.
inline const char* dtype_name(DType dtype) noexcept {
  switch (static_cast<int32_t>(dtype)) {
#define PFRT_X(name, number, guide, bits, text, onnx) \
  case guide:                                         \
    return text;
    PFRT_DTYPE_TABLE(PFRT_X)
#undef PFRT_X
    default:
      return "undefined";
  }
}

// Bits of one packed element; 0 for strings and unknown numbers.
inline uint32_t dtype_bits(DType dtype) noexcept {
  switch (static_cast<int32_t>(dtype)) {
#define PFRT_X(name, number, guide, bits, text, onnx) \
  case guide:                                         \
    return bits;
    PFRT_DTYPE_TABLE(PFRT_X)
#undef PFRT_X
    default:
      return 0;
  }
}

// Bytes of one element: 0 for strings and unknown numbers, 1 for types that are packed several to a
// byte (dtype_bits says how many).
inline size_t dtype_size(DType dtype) noexcept { return (size_t{dtype_bits(dtype)} + 7) / 8; }

// Returns the element type that dtype_name names. Throws InputError with the names there are.
inline DType dtype_from_name(const std::string& name) {
  std::string known;
#define PFRT_X(constant, number, guide, bits, text, onnx) \
  if (name == text) return static_cast<DType>(guide);     \
  known += std::string(known.empty() ? "" : ", ") + text;
  PFRT_DTYPE_TABLE(PFRT_X)
#undef PFRT_X
  throw InvalidArgumentError("no element type is called '" + name + "'; there are " + known);
}

// The element type that a C++ type stands for: DTypeOf<float>::value. Half types are in
// half_types.hpp.
template <class T>
struct DTypeOf;

#define PFRT_CXX_DTYPE_OF(type, name)           \
  template <>                                   \
  struct DTypeOf<type> {                        \
    static constexpr DType value = DType::name; \
  };
PFRT_CXX_DTYPE_OF(float, Float32)
PFRT_CXX_DTYPE_OF(double, Float64)
PFRT_CXX_DTYPE_OF(int8_t, Int8)
PFRT_CXX_DTYPE_OF(int16_t, Int16)
PFRT_CXX_DTYPE_OF(int32_t, Int32)
PFRT_CXX_DTYPE_OF(int64_t, Int64)
PFRT_CXX_DTYPE_OF(uint8_t, UInt8)
PFRT_CXX_DTYPE_OF(uint16_t, UInt16)
PFRT_CXX_DTYPE_OF(uint32_t, UInt32)
PFRT_CXX_DTYPE_OF(uint64_t, UInt64)
PFRT_CXX_DTYPE_OF(bool, Bool)
PFRT_CXX_DTYPE_OF(std::complex<float>, Complex64)
PFRT_CXX_DTYPE_OF(std::complex<double>, Complex128)
#undef PFRT_CXX_DTYPE_OF

// Kind of a value.
enum class ValueKind : uint32_t {
  Unset = PFRT_VALUE_UNSET,
  Tensor = PFRT_VALUE_TENSOR,
  Sequence = PFRT_VALUE_SEQUENCE,
  Map = PFRT_VALUE_MAP,
  Optional = PFRT_VALUE_OPTIONAL,
  Sparse = PFRT_VALUE_SPARSE,
};

// Dimensions; nullopt where a dimension is dynamic.
using Shape = std::vector<std::optional<int64_t>>;

// Writes a shape as "[1, 3, ?, 224]".
inline std::string shape_to_string(const Shape& shape) {
  std::string out;
  for (const auto& dim : shape)
    out += (out.empty() ? "" : ", ") + (dim ? std::to_string(*dim) : std::string("?"));
  return "[" + out + "]";
}

// Whether a dimension may vary.
inline bool is_dynamic_shape(const Shape& shape) noexcept {
  return std::any_of(shape.begin(), shape.end(), [](const auto& dim) { return !dim; });
}

// Returns nullopt when a dimension is dynamic or negative, or the product does not fit.
inline std::optional<int64_t> shape_num_elements(const Shape& shape) noexcept {
  int64_t count = 1;
  bool fits = true;
  for (const auto& dim : shape) {
    if (!dim || *dim < 0) return std::nullopt;
    if (*dim == 0) return is_dynamic_shape(shape) ? std::nullopt : std::optional<int64_t>(0);
    fits = fits && count <= std::numeric_limits<int64_t>::max() / *dim;
    if (fits) count *= *dim;
  }
  return fits ? std::optional<int64_t>(count) : std::nullopt;
}

// An input, output or inner value without its data. |dtype| is the element type of a tensor, or of
// the tensors in a sequence, optional or map.
struct TensorInfo {
  TensorInfo() = default;
  // Describes a dense tensor.
  TensorInfo(std::string of_name, Shape of_shape, DType of_dtype)
      : name(std::move(of_name)), shape(std::move(of_shape)), dtype(of_dtype) {}

  // Whether the rank is not known, or a dimension may vary.
  bool is_dynamic() const noexcept { return unranked || is_dynamic_shape(shape); }
  // Number of elements of a tensor whose dimensions are all known; nullopt otherwise.
  std::optional<int64_t> num_elements() const noexcept {
    return unranked || kind != ValueKind::Tensor ? std::nullopt : shape_num_elements(shape);
  }
  // Bytes of its packed elements; nullopt where their number is not known, and for strings.
  std::optional<size_t> size_bytes() const noexcept {
    const std::optional<int64_t> count = num_elements();
    const size_t bits = dtype_bits(dtype);
    if (!count || bits == 0) return std::nullopt;
    const auto elements = static_cast<uint64_t>(*count);
    if (elements > (std::numeric_limits<size_t>::max() - 7) / bits) return std::nullopt;
    return (elements * bits + 7) / 8;
  }

  // Name of the value.
  std::string name;
  // Dimensions; empty when |unranked|.
  Shape shape;
  // Element type; Undefined where it is not known.
  DType dtype = DType::Float32;
  std::vector<std::string>
      dim_names;                 // empty, or one a dimension: "batch", or "" where it has no name
  bool unranked = false;         // not even the number of dimensions is known
  bool has_initializer = false;  // an input with a default value
  // Kind of the value.
  ValueKind kind = ValueKind::Tensor;
  DType key_dtype = DType::Undefined;  // of a map, or of the maps in a sequence
};

// Description of an input or output of a session.
struct NodeArg : TensorInfo {
  NodeArg() = default;
  // Describes the value of |info|.
  explicit NodeArg(TensorInfo info) : TensorInfo(std::move(info)) { type_str = type(); }
  // Does what the constructor does, under the guide's name for it.
  static NodeArg from_tensor_info(TensorInfo info) { return NodeArg(std::move(info)); }

  // Writes the type: "tensor(float32)", "seq(tensor(float32))", "map(int64,tensor(float32))",
  // "seq(map(int64,tensor(float32)))", "optional(tensor(float32))".
  std::string type() const {
    std::string tensor = std::string("tensor(") + dtype_name(dtype) + ")";
    std::string map = std::string("map(") + dtype_name(key_dtype) + "," + tensor + ")";
    const std::string& element = key_dtype == DType::Undefined ? tensor : map;
    switch (kind) {
      case ValueKind::Sequence:
        return "seq(" + element + ")";
      case ValueKind::Map:
        return map;
      case ValueKind::Optional:
        return "optional(" + element + ")";
      case ValueKind::Sparse:
        return "sparse_" + tensor;
      default:
        return tensor;
    }
  }

  std::string type_str = type();  // as of the construction
};

namespace detail {

inline TensorInfo info_from_c(const pfrt_value_info& c) {
  TensorInfo info;
  info.name = str(c.name);
  info.dtype = dtype_from_c(c.dtype);
  info.kind = static_cast<ValueKind>(c.kind);
  info.key_dtype = dtype_from_c(c.key_dtype);
  info.has_initializer = c.has_initializer != 0;
  info.unranked = c.rank < 0;
  bool named = false;
  for (int32_t i = 0; i < c.rank; ++i) {
    info.shape.push_back(c.dims[i] < 0 ? std::nullopt : std::optional<int64_t>(c.dims[i]));
    info.dim_names.push_back(c.dim_names == nullptr ? std::string() : str(c.dim_names[i]));
    named = named || !info.dim_names.back().empty();
  }
  if (!named) info.dim_names.clear();
  return info;
}

// Calls a `*_at(object, index, &info)` entry of the table.
template <class Fn, class Object>
TensorInfo info_at(Fn fn, Object* object, size_t index) {
  pfrt_value_info c{};
  c.struct_size = sizeof(c);
  check(fn(object, index, &c));
  return info_from_c(c);
}

// A TensorInfo as a C argument; borrows from |info|.
class InfoArg {
 public:
  explicit InfoArg(const TensorInfo& info) {
    if (!info.dim_names.empty() && info.dim_names.size() != info.shape.size()) {
      throw InputError("value '" + info.name + "' has " + std::to_string(info.shape.size()) +
                       " dimensions and " + std::to_string(info.dim_names.size()) +
                       " dimension names");
    }
    for (const auto& dim : info.shape) dims_.push_back(dim.value_or(-1));
    for (const auto& name : info.dim_names) names_.push_back(text(name));
    c_.struct_size = sizeof(c_);
    c_.kind = static_cast<pfrt_value_kind>(info.kind);
    c_.dtype = to_c(info.dtype);
    c_.rank = info.unranked ? -1 : static_cast<int32_t>(dims_.size());
    c_.name = text(info.name);
    c_.dims = dims_.data();
    c_.dim_names = names_.empty() ? nullptr : names_.data();
    c_.key_dtype = to_c(info.key_dtype);
  }
  InfoArg(const InfoArg&) = delete;
  InfoArg& operator=(const InfoArg&) = delete;
  const pfrt_value_info* get() const noexcept { return &c_; }

 private:
  pfrt_value_info c_{};
  std::vector<int64_t> dims_;
  std::vector<pfrt_string> names_;
};

}  // namespace detail
}  // namespace pyflame_rt
