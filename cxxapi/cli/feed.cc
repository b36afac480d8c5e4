// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/feed.h"

#include <charconv>
#include <random>

#include "cxxapi/cli/commands.h"
#include "cxxapi/cli/npy.h"
#include "cxxapi/cli/pb.h"

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
                   ": give FILE.npy, FILE.pb, random or zeros");
}

Value generated(const NodeArg& arg, const Dims& dims, bool random, uint64_t seed) {
  if (arg.kind != ValueKind::Tensor) {
    throw UsageError("input '" + arg.name + "' is " + arg.type() + ": give it as --input " +
                     arg.name + "=FILE.pb");
  }
  std::vector<int64_t> shape = fixed_shape(arg, dims);
  if (random) return random_tensor(arg.dtype, std::move(shape), seed);
  return Tensor(std::move(shape), arg.dtype);
}

}  // namespace

std::pair<std::string, std::string> split_assignment(const std::string& text, const char* option) {
  const size_t sign = text.rfind('=');
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

std::vector<int64_t> fixed_shape(const pyflame_rt::TensorInfo& info, const Dims& dims) {
  std::vector<int64_t> shape;
  for (size_t i = 0; i < info.shape.size(); ++i) {
    int64_t size = info.shape[i].value_or(1);
    if (!info.shape[i] && i < info.dim_names.size()) {
      const auto found = dims.find(info.dim_names[i]);
      if (found != dims.end()) size = found->second;
    }
    shape.push_back(size);
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
    bool found = false;
    std::string known;
    for (const NodeArg& input : inputs) {
      for (const std::string& dim : input.dim_names) {
        found = found || dim == name;
        if (!dim.empty()) known += " " + dim;
      }
    }
    if (found) continue;
    throw UsageError("--dim " + name + "=" + std::to_string(size) +
                     ": no input has this dimension; known:" + (known.empty() ? " none" : known));
  }
}

Feed make_feed(const pyflame_rt::InferenceSession& session, const std::vector<std::string>& texts,
               const Dims& dims, std::map<std::string, std::string>* origins) {
  std::map<std::string, std::string> sources;
  for (const std::string& text : texts) {
    const auto [name, source] = split_assignment(text, "--input");
    sources[name] = source;
  }
  check_dims(session.get_inputs(), dims);
  Feed feed;
  uint64_t seed = 1;
  for (const NodeArg& arg : session.get_inputs()) {
    const auto found = sources.find(arg.name);
    const bool given = found != sources.end();
    ++seed;
    if (!given && arg.has_initializer) continue;
    const std::string source = given ? found->second : "random";
    if (given) sources.erase(found);
    feed[arg.name] = source == "random" || source == "zeros"
                         ? generated(arg, dims, source == "random", seed)
                         : from_file(source, arg);
    if (origins != nullptr) (*origins)[arg.name] = source;
  }
  if (!sources.empty()) {
    std::string known;
    for (const NodeArg& arg : session.get_inputs()) known += " " + arg.name;
    throw UsageError("--input " + sources.begin()->first + ": the model has no such input; it has" +
                     known);
  }
  return feed;
}

}  // namespace cli
