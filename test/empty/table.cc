// SPDX-License-Identifier: Apache-2.0
#include "test/empty/table.h"

#include <cmath>
#include <cstring>
#include <fstream>

namespace pfrt_empty {
namespace {

using namespace pyflame_rt;

DType dtype_named(const std::string& name) {
  static const std::map<std::string, DType> types = {
      {"float32", DType::Float32},     {"float64", DType::Float64},
      {"float16", DType::Float16},     {"bfloat16", DType::BFloat16},
      {"int8", DType::Int8},           {"int16", DType::Int16},
      {"int32", DType::Int32},         {"int64", DType::Int64},
      {"uint8", DType::UInt8},         {"uint16", DType::UInt16},
      {"uint32", DType::UInt32},       {"uint64", DType::UInt64},
      {"bool", DType::Bool},           {"string", DType::String},
      {"complex64", DType::Complex64}, {"complex128", DType::Complex128},
  };
  return types.at(name);
}

template <class T>
std::vector<T> list(const std::string& text, T (*parse)(const std::string&)) {
  std::vector<T> out;
  if (text.empty()) return out;
  for (const std::string& part : split(text, ',')) out.push_back(parse(part));
  return out;
}
int64_t whole(const std::string& text) { return std::stoll(text); }
float real(const std::string& text) { return std::stof(text); }
std::string same(const std::string& text) { return text; }

AttributeValue attribute(char kind, const std::string& text) {
  switch (kind) {
    case 'i':
      return whole(text);
    case 'f':
      return real(text);
    case 'I':
      return list(text, whole);
    case 'F':
      return list(text, real);
    case 'S':
      return list(text, same);
    case 't':
      return tensor_of(operand(text));
    default:
      return text;
  }
}

// Element |i| of the values that record.py makes up.
double made_up(DType dtype, int64_t i) {
  if (dtype == DType::Bool) return static_cast<double>(i % 2);
  const bool real = dtype == DType::Float32 || dtype == DType::Float64 || dtype == DType::Float16 ||
                    dtype == DType::BFloat16 || dtype == DType::Complex64 ||
                    dtype == DType::Complex128;
  return real ? static_cast<double>((i * 37 + 11) % 23 - 11) / 8
              : static_cast<double>((i * 5 + 1) % 7);
}

uint16_t bits_of_half(double value) {  // exact or nearly so for the tables' numbers
  const auto half = quantization::Float16::from_float(static_cast<float>(value));
  uint16_t bits;
  std::memcpy(&bits, &half, sizeof bits);
  return bits;
}

template <class T>
void put(void* data, int64_t i, T value) {
  std::memcpy(static_cast<char*>(data) + static_cast<size_t>(i) * sizeof(T), &value, sizeof(T));
}
template <class T>
T take(const void* data, int64_t i) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + static_cast<size_t>(i) * sizeof(T),
              sizeof(T));
  return value;
}

void put_real(const Tensor& tensor, void* data, int64_t i, double value) {
  const auto narrow = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &narrow, sizeof bits);
  switch (tensor.dtype()) {
    case DType::Float32:
      return put(data, i, narrow);
    case DType::Float64:
      return put(data, i, value);
    case DType::Float16:
      return put(data, i, bits_of_half(value));
    case DType::BFloat16:
      return put(data, i, static_cast<uint16_t>(bits >> 16));
    case DType::Complex64:
      return put(data, 2 * i, narrow), put(data, 2 * i + 1, 0.0f);
    default:
      return put(data, 2 * i, value), put(data, 2 * i + 1, 0.0);
  }
}

void put_whole(const Tensor& tensor, void* data, int64_t i, int64_t value) {
  switch (dtype_bits(tensor.dtype())) {
    case 8:
      return put(data, i, static_cast<uint8_t>(value));
    case 16:
      return put(data, i, static_cast<uint16_t>(value));
    case 32:
      return put(data, i, static_cast<uint32_t>(value));
    default:
      return put(data, i, value);
  }
}

bool is_real(DType dtype) {
  return dtype == DType::Float32 || dtype == DType::Float64 || dtype == DType::Float16 ||
         dtype == DType::BFloat16 || dtype == DType::Complex64 || dtype == DType::Complex128;
}

}  // namespace

std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> out;
  size_t begin = 0;
  for (size_t end; (end = text.find(by, begin)) != std::string::npos; begin = end + 1)
    out.push_back(text.substr(begin, end - begin));
  out.push_back(text.substr(begin));
  return out;
}

Operand operand(const std::string& text) {
  Operand out;
  if (text == "-") return out;
  const size_t open = text.find('['), close = text.find(']');
  out.present = true;
  out.dtype = dtype_named(text.substr(0, open));
  out.dims = list(text.substr(open + 1, close - open - 1), whole);
  if (close + 1 == text.size()) return out;
  for (const std::string& run : split(text.substr(close + 2), ',')) {
    const size_t star = run.find('*');
    const size_t times = star == std::string::npos ? 1 : std::stoul(run.substr(star + 1));
    out.values.insert(out.values.end(), times, run.substr(0, star));
  }
  return out;
}

std::vector<NodeLine> read_nodes(const std::string& path) {
  std::vector<NodeLine> out;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> fields = split(line, '\t');
    NodeLine node;
    node.op = fields.at(0);
    node.domain = fields.at(1);
    node.opset = whole(fields.at(2));
    node.text = node.op + " (" + fields.at(3) + ") " + fields.at(4);
    if (!fields.at(3).empty())
      for (const std::string& a : split(fields[3], ';')) {
        const size_t equal = a.find('=');
        node.attributes[a.substr(0, equal)] = attribute(a.at(equal + 1), a.substr(equal + 3));
      }
    for (const std::string& i : split(fields.at(4), ' ')) node.inputs.push_back(operand(i));
    for (const std::string& o : split(fields.at(5), ',')) node.outputs.push_back(o == "1");
    for (const std::string& v : split(fields.at(6), '|')) {
      const size_t to = v.find('>');
      node.variants.push_back({v.substr(0, to), v.substr(to + 1)});
    }
    out.push_back(std::move(node));
  }
  return out;
}

std::vector<Operand> with_zeros(const NodeLine& node, const std::string& variant) {
  std::vector<Operand> out = node.inputs;
  if (variant.empty()) return out;
  for (const std::string& part : split(variant, '+')) {
    const size_t at = part.find_first_of(".@");
    Operand& operand = out.at(std::stoul(part.substr(0, at)));
    const std::string what = part.substr(at + 1);
    if (part[at] == '.') {
      operand.dims.at(std::stoul(what)) = 0;
      operand.values.clear();
      continue;
    }
    for (std::string& value : operand.values)
      if (value == what) value = "0";
  }
  return out;
}

Tensor tensor_of(const Operand& operand) {
  Tensor tensor(operand.dims, operand.dtype);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    if (operand.dtype == DType::String) {
      tensor.set_string(i, "s" + std::to_string(i % 3));
      continue;
    }
    void* const data = tensor.data();
    const bool given = !operand.values.empty();
    const std::string text = given ? operand.values.at(static_cast<size_t>(i)) : std::string();
    if (is_real(operand.dtype))
      put_real(tensor, data, i, given ? std::stod(text) : made_up(operand.dtype, i));
    else if (!given)
      put_whole(tensor, data, i, static_cast<int64_t>(made_up(operand.dtype, i)));
    else  // beyond int64's range: uint64
      put_whole(tensor, data, i,
                text[0] == '-' ? std::stoll(text) : static_cast<int64_t>(std::stoull(text)));
  }
  return tensor;
}

std::vector<double> numbers(const Tensor& tensor) {
  std::vector<double> out;
  const void* const data = tensor.data();
  for (int64_t i = 0; i < tensor.num_elements(); ++i) switch (tensor.dtype()) {
      case DType::Float32:
        out.push_back(static_cast<double>(take<float>(data, i)));
        break;
      case DType::Float64:
        out.push_back(take<double>(data, i));
        break;
      case DType::Int8:
        out.push_back(take<int8_t>(data, i));
        break;
      case DType::Int16:
        out.push_back(take<int16_t>(data, i));
        break;
      case DType::Int32:
        out.push_back(take<int32_t>(data, i));
        break;
      case DType::Int64:
        out.push_back(static_cast<double>(take<int64_t>(data, i)));
        break;
      case DType::Bool:
      case DType::UInt8:
        out.push_back(take<uint8_t>(data, i));
        break;
      case DType::UInt16:
        out.push_back(take<uint16_t>(data, i));
        break;
      case DType::UInt32:
        out.push_back(take<uint32_t>(data, i));
        break;
      case DType::UInt64:
        out.push_back(static_cast<double>(take<uint64_t>(data, i)));
        break;
      case DType::Float16: {
        quantization::Float16 half;
        std::memcpy(static_cast<void*>(&half), static_cast<const uint16_t*>(data) + i, sizeof half);
        out.push_back(static_cast<double>(half.to_float()));
        break;
      }
      case DType::BFloat16: {
        const uint32_t bits = uint32_t{take<uint16_t>(data, i)} << 16;
        float value;
        std::memcpy(&value, &bits, sizeof value);
        out.push_back(static_cast<double>(value));
        break;
      }
      default:  // texts and complex numbers: their dimensions are enough
        return {};
    }
  return out;
}

}  // namespace pfrt_empty
