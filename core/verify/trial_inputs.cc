// SPDX-License-Identifier: Apache-2.0
#include "core/verify/trial_inputs.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/verify/elements.h"

namespace pfrt {
namespace {

constexpr int64_t kSizes[] = {1, 3, 2, 5, 8, 7, 16, 4, 33, 64};
constexpr size_t kRanks[] = {2, 1, 3, 4, 0};  // where the rank is unknown too
constexpr int64_t kMostElements = int64_t{1} << 24;
constexpr double kBounds[] = {2, 10, 1, 4, 100};  // of integers, exclusive
struct Range {
  double low, high;
};
constexpr Range kRanges[] = {{-1, 1}, {0, 1}, {-8, 8}, {0.5, 2}, {-0.05, 0.05}, {0, 200}};
constexpr std::string_view kWords[] = {"a", "the", "word", "", "Zed", "x y"};
constexpr std::string_view kNumerals[] = {"1", "0", "2.5", "-3", "10"};

uint64_t mixed(uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

uint64_t hash_of(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '(')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == ')')) text.remove_suffix(1);
  return text;
}

// Even variants give all dimensions one size; odd ones give each its own.
int64_t size_of_one(std::string_view name, uint32_t variant) {
  if (variant % 2 == 0) return kSizes[variant / 2 % std::size(kSizes)];
  const size_t choices = std::min<size_t>(std::size(kSizes), 4 + variant / 4);
  return kSizes[mixed(hash_of(name) ^ variant) % choices];
}

// Understands names of sums that exporters write: "past_length + length", "length + 1".
int64_t size_of(std::string_view name, uint32_t variant) {
  int64_t sum = 0;
  for (std::string_view rest = name;;) {
    const size_t plus = rest.find('+');
    const std::string_view part = trimmed(rest.substr(0, plus));
    int64_t number = 0;
    const auto [end, code] = std::from_chars(part.data(), part.data() + part.size(), number);
    const bool is_number = !part.empty() && code == std::errc() &&
                           end == part.data() + part.size() && number < 1024 && number > -1024;
    sum += is_number ? number : size_of_one(part, variant);
    if (plus == std::string_view::npos) return sum;
    rest = rest.substr(plus + 1);
  }
}

class Maker {
 public:
  Maker(const Graph& graph, ValueId input, size_t index, uint32_t variant, uint32_t draw)
      : graph_(graph),
        name_(graph.at(input).name),
        index_(static_cast<uint32_t>(index)),
        variant_(variant),
        state_(mixed(hash_of(name_) + (uint64_t{variant} << 32) + draw)) {}

  Result<ValuePtr> make(const Type& type) {
    switch (type.kind) {
      case PFRT_VALUE_UNSET:
      case PFRT_VALUE_TENSOR:
        return tensor(type);
      case PFRT_VALUE_SEQUENCE: {
        std::vector<ValuePtr> items;
        for (uint32_t i = 0; i < 1 + variant_ % 3; ++i) {
          PFRT_ASSIGN(ValuePtr item, tensor(type));
          items.push_back(std::move(item));
        }
        return Value::sequence(std::move(items), type.dtype);
      }
      case PFRT_VALUE_OPTIONAL: {
        if (variant_ % 4 == 3) return Value::optional(nullptr);
        PFRT_ASSIGN(ValuePtr item, tensor(type));
        return Value::optional(std::move(item));
      }
      case PFRT_VALUE_MAP:
        return map(type);
      default:
        return error(Code::kUNSUPPORTED, "input '", name_, "' (", type_name(type),
                     ") is of a kind whose values are not made up");
    }
  }

 private:
  std::string type_name(const Type& type) const { return std::string(dtype_name(type.dtype)); }

  uint64_t random() { return mixed(state_++); }
  double uniform() { return static_cast<double>(random() >> 11) * 0x1p-53; }

  Result<ValuePtr> tensor(const Type& type) {
    Dims dims;
    const size_t rank = type.has_shape ? type.shape.size() : kRanks[variant_ % std::size(kRanks)];
    for (size_t axis = 0; axis < rank; ++axis) {
      const Dim dim = type.has_shape ? type.shape[axis] : Dim();
      dims.push_back(dim.known()      ? dim.value()
                     : dim.symbolic() ? size_of(name_of(dim), variant_)
                                      : size_of_one(message(name_, ' ', axis), variant_));
    }
    const int64_t count = element_count(dims.data(), dims.size());
    if (count < 0 || count > kMostElements)
      return error(Code::kINVALID_ARGUMENT, "input '", name_, "' would be too large to try");
    const bool known = type.dtype != PFRT_DTYPE_UNSET;
    return filled(known ? type.dtype : pfrt_dtype{PFRT_DTYPE_FLOAT32}, std::move(dims));
  }

  std::string name_of(const Dim& dim) const {
    const std::string given = graph_.symbols->given_name(dim);
    return given.empty() ? graph_.symbols->name(dim.symbol()) : given;
  }

  Result<ValuePtr> filled(pfrt_dtype dtype, Dims dims) {
    const auto count = static_cast<size_t>(element_count(dims.data(), dims.size()));
    if (dtype == PFRT_DTYPE_STRING) return words(std::move(dims), count);
    PFRT_ASSIGN(Tensor made, Tensor::allocate(dtype, std::move(dims)));
    const bool pairs = dtype == PFRT_DTYPE_COMPLEX64 || dtype == PFRT_DTYPE_COMPLEX128;
    std::vector<double> values(pairs ? 2 * count : count);
    const Range range = range_of(dtype);
    const bool whole = !dtype_is_float(dtype) && !pairs;
    for (double& v : values) {
      v = range.low + uniform() * (range.high - range.low);
      if (whole) v = std::min(std::floor(v), range.high - 1);
    }
    set_elements(made, values);
    return Value::of(std::move(made));
  }

  // Integers are in [low, high).
  Range range_of(pfrt_dtype dtype) const {
    if (dtype == PFRT_DTYPE_BOOL) return {0, 2};
    if (!dtype_is_integer(dtype))
      return kRanges[variant_ == 0 ? 0 : (variant_ + index_) % std::size(kRanges)];
    const double span = std::min(256.0, std::ldexp(1.0, static_cast<int>(dtype_bits(dtype))));
    // Bytes are more often quantized numbers than indices.
    if (dtype_bits(dtype) <= 8 && variant_ % 3 != 2)
      return dtype_is_signed(dtype) ? Range{-span / 2, span / 2} : Range{0, span};
    const double bound =
        variant_ < 2 ? 2 : kBounds[mixed(variant_ * 64 + index_) % std::size(kBounds)];
    return {0, std::min(bound, dtype_is_signed(dtype) ? span / 2 : span)};
  }

  Result<ValuePtr> words(Dims dims, size_t count) {
    Tensor made;
    PFRT_ASSIGN(made.buffer, Buffer::strings(count));
    made.dtype = PFRT_DTYPE_STRING;
    made.dims = std::move(dims);
    for (size_t i = 0; i < count; ++i)
      PFRT_TRY(made.buffer->set_string(i, variant_ % 2 == 0
                                              ? kWords[random() % std::size(kWords)]
                                              : kNumerals[random() % std::size(kNumerals)]));
    return Value::of(std::move(made));
  }

  Result<ValuePtr> map(const Type& type) {
    const int64_t count = 1 + variant_ % 4;
    auto made = std::make_shared<Value>();
    made->kind = PFRT_VALUE_MAP;
    if (type.key_dtype == PFRT_DTYPE_STRING) {
      PFRT_ASSIGN(made->keys, words({count}, static_cast<size_t>(count)));
      for (size_t i = 0; i < static_cast<size_t>(count); ++i)  // each once
        PFRT_TRY(made->keys->tensor.buffer->set_string(i, kWords[i]));
    } else {
      PFRT_ASSIGN(Tensor keys, Tensor::allocate(type.key_dtype, {count}));
      std::vector<double> numbers;
      for (int64_t i = 0; i < count; ++i) numbers.push_back(static_cast<double>(i));
      set_elements(keys, numbers);
      made->keys = Value::of(std::move(keys));
    }
    PFRT_ASSIGN(made->values, filled(type.dtype, {count}));
    return ValuePtr(std::move(made));
  }

  const Graph& graph_;
  const std::string name_;
  const uint32_t index_, variant_;
  uint64_t state_;
};

std::string describe(const Value& value) {
  if (value.kind != PFRT_VALUE_TENSOR)
    return value.kind == PFRT_VALUE_MAP ? " map" : message(" of ", value.elements.size());
  std::string text = message(" ", dtype_name(value.tensor.dtype), "[");
  for (size_t i = 0; i < value.tensor.dims.size(); ++i)
    text += message(i ? "," : "", value.tensor.dims[i]);
  return text + "]";
}

}  // namespace

bool TrialInputs::dynamic() const {
  return std::ranges::any_of(inputs_, [&](ValueId id) { return !graph_.at(id).type.fixed(); });
}

Result<std::vector<ValuePtr>> TrialInputs::make(uint32_t variant, uint32_t draw) const {
  std::vector<ValuePtr> out;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    PFRT_ASSIGN(ValuePtr value,
                Maker(graph_, inputs_[i], i, variant, draw).make(graph_.at(inputs_[i]).type));
    out.push_back(std::move(value));
  }
  return out;
}

std::string describe_inputs(const Graph& graph, const std::vector<ValueId>& inputs,
                            const std::vector<ValuePtr>& values) {
  std::string text;
  for (size_t i = 0; i < inputs.size(); ++i)
    text += (i ? ", " : "") + graph.at(inputs[i]).name + describe(*values[i]);
  return text;
}

}  // namespace pfrt
