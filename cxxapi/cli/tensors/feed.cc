// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/tensors/feed.h"

#include <algorithm>
#include <charconv>
#include <random>
#include <set>

#include "cxxapi/cli/line/usage_error.h"
#include "cxxapi/cli/tensors/literal.h"
#include "cxxapi/cli/tensors/npy.h"
#include "cxxapi/cli/tensors/pb.h"

namespace cli {
namespace {

using pyflame_rt::DType;
using pyflame_rt::NodeArg;
using pyflame_rt::Tensor;
using pyflame_rt::Value;
using pyflame_rt::ValueKind;

bool ends_with(const std::string& text, const std::string& tail) {
  return text.size() >= tail.size() &&
         text.compare(text.size() - tail.size(), tail.size(), tail) == 0;
}

template <class T, class Draw>
void draw_all(Tensor* tensor, Draw draw) {
  T* data = static_cast<T*>(tensor->data());
  for (int64_t i = 0; i < tensor->num_elements(); ++i) data[i] = static_cast<T>(draw());
}

void draw_strings(Tensor* tensor, std::mt19937_64* random) {
  for (int64_t i = 0; i < tensor->num_elements(); ++i) {
    std::string word;
    for (int k = 0; k < 4; ++k) word += static_cast<char>('a' + (*random)() % 26);
    tensor->set_string(i, word);
  }
}

Value from_file(const std::string& path, const NodeArg& arg) {
  if (ends_with(path, ".pb")) return read_pb(path, arg).value;
  if (ends_with(path, ".npy")) return read_npy(path);
  throw UsageError("--input " + arg.name + "=" + path +
                   ": give FILE.npy, FILE.pb, random, zeros, a number or a list such as [1,2]");
}

}  // namespace

std::pair<std::string, std::string> split_assignment(const std::string& text, const char* option) {
  // Names may have an '=', and so may words in quotes.
  const size_t word = text.find('"');
  const size_t sign = text.rfind('=', word == std::string::npos ? word : word - (word > 0));
  if (sign == std::string::npos || sign == 0 || sign + 1 == text.size()) {
    throw UsageError(std::string(option) + " '" + text + "' is not of the form NAME=VALUE");
  }
  return {text.substr(0, sign), text.substr(sign + 1)};
}

Dims parse_dims(const std::vector<std::string>& texts) {
  Dims dims;
  for (const std::string& text : texts) {
    const auto [name, number] = split_assignment(text, "--dim");
    int64_t value = 0;
    const char* end = number.data() + number.size();
    const auto parsed = std::from_chars(number.data(), end, value);
    if (parsed.ec != std::errc() || parsed.ptr != end || value < 0) {
      throw UsageError("--dim '" + text + "': the size must be a number, 0 or more");
    }
    dims[name] = value;
  }
  return dims;
}

std::string dim_name(const pyflame_rt::TensorInfo& info, size_t axis) {
  const bool named = axis < info.dim_names.size() && !info.dim_names[axis].empty();
  return named ? info.dim_names[axis] : info.name + ":" + std::to_string(axis);
}

std::vector<int64_t> fixed_shape(const pyflame_rt::TensorInfo& info, const Dims& dims) {
  std::vector<int64_t> shape;
  for (size_t axis = 0; axis < info.shape.size(); ++axis) {
    const auto found = info.shape[axis] ? dims.end() : dims.find(dim_name(info, axis));
    shape.push_back(found != dims.end() ? found->second : info.shape[axis].value_or(1));
  }
  return shape;
}

Tensor random_tensor(DType dtype, std::vector<int64_t> shape, uint64_t seed) {
  using pyflame_rt::quantization::BFloat16;
  using pyflame_rt::quantization::Float16;
  Tensor tensor(std::move(shape), dtype);
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  const auto real = [&] { return normal(random); };
  const auto bit = [&] { return random() & 1u; };
  const auto byte = [&] { return random() & 0xffu; };
  switch (dtype) {
    case DType::Float32:
      draw_all<float>(&tensor, real);
      break;
    case DType::Float64:
      draw_all<double>(&tensor, real);
      break;
    case DType::Float16:
      draw_all<Float16>(&tensor, real);
      break;
    case DType::BFloat16:
      draw_all<BFloat16>(&tensor, real);
      break;
    case DType::Complex64:
    case DType::Complex128:
      throw UsageError("complex inputs cannot be random: give a file");
    case DType::Int16:
    case DType::UInt16:
      draw_all<uint16_t>(&tensor, bit);
      break;
    case DType::Int32:
    case DType::UInt32:
      draw_all<uint32_t>(&tensor, bit);
      break;
    case DType::Int64:
    case DType::UInt64:
      draw_all<uint64_t>(&tensor, bit);
      break;
    case DType::Bool:
      draw_all<uint8_t>(&tensor, bit);
      break;
    case DType::String:
      draw_strings(&tensor, &random);
      break;
    default: {  // bytes of 8-bit types and packed smaller ones; 8-bit floats get small finite
                // numbers
      const bool integer = tensor.dtype() == DType::Int8 || tensor.dtype() == DType::UInt8 ||
                           pyflame_rt::dtype_bits(tensor.dtype()) < 8;
      auto* data = static_cast<uint8_t*>(tensor.data());
      for (size_t i = 0; i < tensor.size_bytes(); ++i) {
        data[i] = static_cast<uint8_t>(integer ? byte() : byte() & 0x3fu);
      }
    }
  }
  return tensor;
}

void check_dims(const std::vector<NodeArg>& inputs, const Dims& dims) {
  for (const auto& [name, size] : dims) {
    std::set<std::string> known;
    for (const NodeArg& input : inputs)
      for (size_t axis = 0; axis < input.shape.size(); ++axis)
        if (!input.shape[axis]) known.insert(dim_name(input, axis));
    if (known.count(name) != 0) continue;
    std::string list;
    for (const std::string& one : known) list += " " + one;
    throw UsageError("--dim " + name + "=" + std::to_string(size) +
                     ": no input has this dimension; known:" + (list.empty() ? " none" : list));
  }
}

Feeder::Feeder(const std::vector<NodeArg>& inputs, const std::vector<std::string>& texts, Dims dims)
    : dims_(std::move(dims)) {
  check_dims(inputs, dims_);
  std::map<std::string, std::string> sources;
  for (const std::string& text : texts) {
    const auto [name, source] = split_assignment(text, "--input");
    sources[name] = source;
  }
  uint64_t seed = 1;
  for (const NodeArg& input : inputs) {
    const auto found = sources.find(input.name);
    const bool given = found != sources.end();
    ++seed;
    if (!given && input.has_initializer) continue;
    const std::string source = given ? found->second : "random";
    if (given) sources.erase(found);
    origins_[input.name] = source;
    if (source == "random" || source == "zeros") {
      if (input.kind != ValueKind::Tensor)
        throw UsageError("input '" + input.name + "' is " + input.type() + ": give it as --input " +
                         input.name + "=FILE.pb");
      made_up_.push_back(input);
      seeds_[input.name] = seed;
      continue;
    }
    const bool typed = input.kind == ValueKind::Tensor && is_literal(source);
    const Value value = typed ? Value(parse_literal(source, input)) : from_file(source, input);
    if (value.is_tensor()) {
      const std::vector<int64_t> shape = value.tensor().shape();
      for (size_t axis = 0; axis < std::min(shape.size(), input.shape.size()); ++axis)
        if (!input.shape[axis]) dims_.emplace(dim_name(input, axis), shape[axis]);
    }
    files_[input.name] = value;
  }
  if (sources.empty()) return;
  std::string known;
  for (const NodeArg& input : inputs) known += " " + input.name;
  throw UsageError("--input " + sources.begin()->first + ": the model has no such input; it has" +
                   known);
}

Feed Feeder::feed(const Dims& sizes) const {
  Dims all = dims_;
  all.insert(sizes.begin(), sizes.end());
  Feed feed = files_;
  for (const NodeArg& input : made_up_) {
    std::vector<int64_t> shape = fixed_shape(input, all);
    feed[input.name] = origins_.at(input.name) == "random"
                           ? random_tensor(input.dtype, std::move(shape), seeds_.at(input.name))
                           : Tensor(std::move(shape), input.dtype);
  }
  return feed;
}

}  // namespace cli
