// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/tensors/pb.h"

#include <cstring>

#include "cxxapi/cli/tensors/npy.h"
#include "cxxapi/cli/tensors/wire.h"

namespace cli {
namespace {

using pyflame_rt::DType;
using pyflame_rt::NodeArg;
using pyflame_rt::Tensor;
using pyflame_rt::Value;
using pyflame_rt::ValueKind;

constexpr int kMaxDepth = 32;

// Fields of TensorProto.
struct TensorFields {
  std::vector<int64_t> dims;
  pfrt_dtype dtype = 0;
  std::string name;
  bool has_raw = false;
  std::string_view raw;
  std::vector<uint64_t> integers;  // of int32_data, int64_data or uint64_data
  std::string floats;              // of float_data or double_data: little-endian elements
  std::vector<std::string> strings;
};

void read_varints(WireReader* wire, std::vector<uint64_t>* out) {
  if (wire->type() == WireReader::kVarint) {
    out->push_back(wire->varint());
    return;
  }
  WireReader packed(wire->bytes());
  while (!packed.done()) out->push_back(packed.raw_varint());
}

void read_fixed(WireReader* wire, size_t size, std::string* out) {
  const bool packed = wire->type() == WireReader::kBytes;
  const uint32_t single = size == 4 ? WireReader::kFixed32 : WireReader::kFixed64;
  if (!packed && wire->type() != single) throw UsageError("a field has the wrong wire type");
  const std::string_view data = packed ? wire->bytes() : wire->take(size);
  if (data.size() % size != 0) throw UsageError("a packed field is truncated");
  out->append(data);
}

TensorFields read_fields(std::string_view bytes) {
  TensorFields t;
  std::vector<uint64_t> dims;
  WireReader wire(bytes);
  while (wire.next()) {
    switch (wire.field()) {
      case 1:
        read_varints(&wire, &dims);
        break;
      case 2:
        t.dtype = static_cast<pfrt_dtype>(wire.varint());
        break;
      case 4:
        read_fixed(&wire, 4, &t.floats);
        break;
      case 5:
      case 7:
      case 11:
        read_varints(&wire, &t.integers);
        break;
      case 6:
        t.strings.emplace_back(wire.bytes());
        break;
      case 8:
        t.name = wire.bytes();
        break;
      case 9:
        t.raw = wire.bytes();
        t.has_raw = true;
        break;
      case 10:
        read_fixed(&wire, 8, &t.floats);
        break;
      case 13:
        throw UsageError("tensor '" + t.name + "' keeps its data in another file");
      default:
        wire.skip();
    }
  }
  for (const uint64_t dim : dims) t.dims.push_back(static_cast<int64_t>(dim));
  return t;
}

// Returns the bytes of |t| as the tensor stores them.
std::string element_bytes(const TensorFields& t, DType dtype) {
  if (t.has_raw) return std::string(t.raw);
  if (!t.floats.empty()) return t.floats;
  std::string out;
  // Sub-byte types are stored a packed byte an integer, 16-bit floats as their bits.
  const size_t size = pyflame_rt::dtype_bits(dtype) < 8 ? 1 : pyflame_rt::dtype_bits(dtype) / 8;
  for (const uint64_t value : t.integers) {
    out.append(reinterpret_cast<const char*>(&value), std::min(size, sizeof(value)));
  }
  return out;
}

NamedValue read_tensor(std::string_view bytes) {
  TensorFields t = read_fields(bytes);
  const DType dtype = pyflame_rt::dtype_from_c(t.dtype);
  const int64_t count = pyflame_rt::detail::count_of(t.dims);
  const std::string where =
      "tensor '" + t.name + "' of shape " + pyflame_rt::detail::shape_text(t.dims);
  if (dtype == DType::Undefined)
    throw UsageError(where + " has the unknown type " + std::to_string(t.dtype));
  if (count < 0) throw UsageError(where + " is not possible");
  if (dtype == DType::String) {
    if (static_cast<uint64_t>(count) != t.strings.size()) {
      throw UsageError(where + " has " + std::to_string(t.strings.size()) + " strings");
    }
    return {t.name, Tensor::from_vector(t.strings, t.dims)};
  }
  const std::string data = element_bytes(t, dtype);
  const uint64_t bits = pyflame_rt::dtype_bits(dtype);
  const auto elements = static_cast<uint64_t>(count);
  const bool fits = elements <= data.size() * 8 / bits && (elements * bits + 7) / 8 == data.size();
  if (!fits) throw UsageError(where + " has " + std::to_string(data.size()) + " bytes of data");
  Tensor tensor(t.dims, dtype);
  if (!data.empty()) std::memcpy(tensor.data(), data.data(), data.size());
  return {t.name, tensor};
}

// Reads a sequence; |empty| types one without elements.
NamedValue read_sequence(std::string_view bytes, DType empty, int depth);
NamedValue read_optional(std::string_view bytes, DType empty, int depth);

// Stacks tensors of equal shape along a new first dimension; one that has dimensions and is alone
// stays as it is.
Tensor stacked(const std::vector<Value>& rows) {
  if (rows.empty()) return Tensor({0}, DType::Float32);
  Tensor first = rows[0].tensor();
  if (rows.size() == 1 && first.ndim() > 0) return first;
  std::vector<int64_t> shape = first.shape();
  shape.insert(shape.begin(), static_cast<int64_t>(rows.size()));
  Tensor out(shape, first.dtype());
  for (size_t i = 0; i < rows.size(); ++i) {
    const Tensor row = rows[i].tensor();
    if (row.shape() != first.shape() || row.dtype() != first.dtype()) {
      throw UsageError("a map has values of different shapes or types");
    }
    const int64_t width = row.num_elements();
    if (row.dtype() == DType::String) {
      for (int64_t k = 0; k < width; ++k)
        out.set_string(static_cast<int64_t>(i) * width + k, row.string_at(k));
    } else if (row.size_bytes() != 0) {
      std::memcpy(static_cast<char*>(out.data()) + i * row.size_bytes(), row.data(),
                  row.size_bytes());
    }
  }
  return out;
}

NamedValue read_map(std::string_view bytes, DType empty, int depth) {
  std::string name;
  std::vector<uint64_t> integers;
  std::vector<std::string> strings;
  std::vector<Value> rows;
  pfrt_dtype key_type = 0;
  WireReader wire(bytes);
  while (wire.next()) {
    switch (wire.field()) {
      case 1:
        name = wire.bytes();
        break;
      case 2:
        key_type = static_cast<pfrt_dtype>(wire.varint());
        break;
      case 3:
        read_varints(&wire, &integers);
        break;
      case 4:
        strings.emplace_back(wire.bytes());
        break;
      case 5: {
        const Value values = read_sequence(wire.bytes(), empty, depth).value;
        for (size_t i = 0; i < values.size(); ++i) rows.push_back(values.at(i));
        break;
      }
      default:
        wire.skip();
    }
  }
  if (key_type == PFRT_DTYPE_STRING || !strings.empty()) {
    const auto count = static_cast<int64_t>(strings.size());
    return {name, Value::map(Tensor::from_vector(strings, {count}), stacked(rows))};
  }
  const std::vector<int64_t> keys(integers.begin(), integers.end());
  const auto count = static_cast<int64_t>(keys.size());
  return {name, Value::map(Tensor::from_vector(keys, {count}), stacked(rows))};
}

// Name and contents of a SequenceProto or an OptionalProto, whose fields have the same numbers;
// |what| is the plural of either, for errors.
struct ProtoElements {
  std::string name;
  std::vector<Value> values;
};
ProtoElements read_elements(std::string_view bytes, DType empty, int depth, const char* what) {
  if (depth > kMaxDepth) throw UsageError("values are nested too deep");
  ProtoElements out;
  WireReader wire(bytes);
  while (wire.next()) {
    switch (wire.field()) {
      case 1:
        out.name = wire.bytes();
        break;
      case 2:
        (void)wire.varint();
        break;
      case 3:
        out.values.push_back(read_tensor(wire.bytes()).value);
        break;
      case 4:
        throw UsageError(std::string("sparse tensors in ") + what + " are not read");
      case 5:
        out.values.push_back(read_sequence(wire.bytes(), empty, depth + 1).value);
        break;
      case 6:
        out.values.push_back(read_map(wire.bytes(), empty, depth + 1).value);
        break;
      case 7:
        out.values.push_back(read_optional(wire.bytes(), empty, depth + 1).value);
        break;
      default:
        wire.skip();
    }
  }
  return out;
}

NamedValue read_sequence(std::string_view bytes, DType empty, int depth) {
  const ProtoElements read = read_elements(bytes, empty, depth, "sequences");
  return {read.name, Value::sequence(read.values, read.values.empty() ? empty : DType::Undefined)};
}

NamedValue read_optional(std::string_view bytes, DType empty, int depth) {
  const ProtoElements read = read_elements(bytes, empty, depth, "optionals");
  return {read.name, Value::optional(read.values.empty() ? Value() : read.values.back())};
}

// Returns a view of 16-bit integers as the 16-bit floats that |arg| describes.
Value as_described(const Value& value, const NodeArg& arg) {
  const bool half = arg.dtype == DType::BFloat16 || arg.dtype == DType::Float16;
  if (!half || !value.is_tensor() || value.dtype() != DType::UInt16) return value;
  const Tensor bits = value.tensor();
  Tensor out(bits.shape(), arg.dtype);
  if (bits.size_bytes() != 0) std::memcpy(out.data(), bits.data(), bits.size_bytes());
  return out;
}

NamedValue read_as(const NodeArg& arg, std::string_view bytes) {
  switch (arg.kind) {
    case ValueKind::Sequence:
      return read_sequence(bytes, arg.dtype, 0);
    case ValueKind::Optional:
      return read_optional(bytes, arg.dtype, 0);
    case ValueKind::Map:
      return read_map(bytes, arg.dtype, 0);
    default:
      return read_tensor(bytes);
  }
}

}  // namespace

NamedValue read_pb(const std::string& path, const NodeArg& arg) {
  const std::string bytes = read_file(path);
  try {
    NamedValue read;
    try {
      read = read_as(arg, bytes);
    } catch (const UsageError&) {
      if (arg.kind == ValueKind::Tensor || arg.kind == ValueKind::Optional) throw;
      read = read_tensor(bytes);
    }
    read.value = as_described(read.value, arg);
    return read;
  } catch (const UsageError& error) {
    throw UsageError("'" + path + "': " + error.what());
  }
}

}  // namespace cli
