// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/tensors/literal.h"

#include <cctype>
#include <charconv>
#include <cmath>
#include <vector>

#include "cxxapi/cli/line/usage_error.h"

namespace cli {
namespace {

using pyflame_rt::DType;
using pyflame_rt::NodeArg;
using pyflame_rt::Tensor;

constexpr size_t kMostDims = 16;

bool is_word(const std::string& text) {
  for (const char* word : {"true", "false", "nan", "inf", "-inf"})
    if (text == word) return true;
  return false;
}

// What stands between commas and brackets; words without their quotes.
struct Item {
  std::string text;
  bool quoted = false;
};

class Parser {
 public:
  Parser(const std::string& text, const NodeArg& arg) : text_(text), arg_(arg) {}

  void parse() {
    value(0);
    skip_space();
    if (at_ != text_.size()) fault("'" + text_.substr(at_) + "' follows the value");
  }
  std::vector<Item> items;
  const std::vector<int64_t>& dims() const { return dims_; }

  [[noreturn]] void fault(const std::string& what) const {
    throw UsageError("--input " + arg_.name + "=" + text_ + ": " + what);
  }

 private:
  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  bool take(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void value(size_t depth) {
    if (!take('[')) return item(depth);
    if (depth == kMostDims) fault("lists are nested more than 16 deep");
    if (depth_known_ && depth >= dims_.size()) fault("a list stands where a number should");
    if (!depth_known_ && depth == dims_.size()) dims_.push_back(-1);
    int64_t count = 0;
    if (!take(']')) {
      do {
        value(depth + 1);
        ++count;
      } while (take(','));
      if (!take(']')) fault("a ']' is missing");
    } else {
      set_depth(depth + 1);
    }
    int64_t& known = dims_[depth];
    if (known >= 0 && known != count)
      fault("lists have " + std::to_string(known) + " and " + std::to_string(count) + " elements");
    known = count;
  }

  void set_depth(size_t depth) {
    if (depth_known_ && depth != dims_.size()) fault("lists are not all nested alike");
    depth_known_ = true;
  }

  void item(size_t depth) {
    set_depth(depth);
    skip_space();
    Item one;
    if (at_ < text_.size() && text_[at_] == '"') {
      one.quoted = true;
      for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
        if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
        one.text += text_[at_];
      }
      if (at_ == text_.size()) fault("a '\"' is missing");
      ++at_;
    } else {
      const size_t end = std::min(text_.find_first_of(",[] \t\n", at_), text_.size());
      one.text = text_.substr(at_, end - at_);
      at_ = end;
      if (one.text.empty()) fault("a number is missing");
    }
    items.push_back(std::move(one));
  }

  const std::string& text_;
  const NodeArg& arg_;
  size_t at_ = 0;
  std::vector<int64_t> dims_;
  bool depth_known_ = false;
};

template <class T>
T number_of(const Parser& parser, const NodeArg& arg, const std::string& text) {
  const auto misfit = [&]() {
    parser.fault("'" + text + "' is no " + std::string(pyflame_rt::dtype_name(arg.dtype)));
  };
  T number{};
  std::string digits = text == "true" ? "1" : text == "false" ? "0" : text;
  if (digits.starts_with("+")) digits.erase(0, 1);
  const char* const end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end) misfit();
  return number;
}

// Numbers that round to infinity in 16 bits are not held.
template <class T>
void fill_halves(const Parser& parser, const NodeArg& arg, Tensor* tensor) {
  T* const data = static_cast<T*>(tensor->data());
  for (size_t i = 0; i < parser.items.size(); ++i) {
    const std::string& text = parser.items[i].text;
    const auto number = number_of<float>(parser, arg, text);
    data[i] = static_cast<T>(number);
    if (std::isfinite(number) && !std::isfinite(static_cast<float>(data[i])))
      parser.fault("'" + text + "' is no " + std::string(pyflame_rt::dtype_name(arg.dtype)));
  }
}

template <class T>
void fill(const Parser& parser, const NodeArg& arg, Tensor* tensor) {
  T* const data = static_cast<T*>(tensor->data());
  for (size_t i = 0; i < parser.items.size(); ++i)
    data[i] = number_of<T>(parser, arg, parser.items[i].text);
}

void fill(const Parser& parser, const NodeArg& arg, Tensor* tensor) {
  using pyflame_rt::quantization::BFloat16;
  using pyflame_rt::quantization::Float16;
  switch (arg.dtype) {
    case DType::Float32:
      return fill<float>(parser, arg, tensor);
    case DType::Float64:
      return fill<double>(parser, arg, tensor);
    case DType::Float16:
      return fill_halves<Float16>(parser, arg, tensor);
    case DType::BFloat16:
      return fill_halves<BFloat16>(parser, arg, tensor);
    case DType::Int8:
      return fill<int8_t>(parser, arg, tensor);
    case DType::UInt8:
      return fill<uint8_t>(parser, arg, tensor);
    case DType::Int16:
      return fill<int16_t>(parser, arg, tensor);
    case DType::UInt16:
      return fill<uint16_t>(parser, arg, tensor);
    case DType::Int32:
      return fill<int32_t>(parser, arg, tensor);
    case DType::UInt32:
      return fill<uint32_t>(parser, arg, tensor);
    case DType::Int64:
      return fill<int64_t>(parser, arg, tensor);
    case DType::UInt64:
      return fill<uint64_t>(parser, arg, tensor);
    case DType::Bool:
      for (const Item& item : parser.items)
        if (number_of<uint8_t>(parser, arg, item.text) > 1)
          parser.fault("'" + item.text + "' is no bool");
      return fill<uint8_t>(parser, arg, tensor);
    case DType::String:
      for (size_t i = 0; i < parser.items.size(); ++i)
        tensor->set_string(static_cast<int64_t>(i), parser.items[i].text);
      return;
    default:
      parser.fault("elements of " + std::string(pyflame_rt::dtype_name(arg.dtype)) +
                   " are not typed: give FILE.npy or FILE.pb");
  }
}

}  // namespace

bool is_literal(const std::string& text) {
  const size_t digit = text.find_first_not_of("+-.");
  const bool number = digit != std::string::npos && digit <= 2 &&
                      std::isdigit(static_cast<unsigned char>(text[digit])) != 0 &&
                      text.find_first_not_of("0123456789+-.eE") == std::string::npos;
  return number || text.starts_with("[") || text.starts_with("\"") || is_word(text);
}

Tensor parse_literal(const std::string& text, const NodeArg& arg) {
  Parser parser(text, arg);
  parser.parse();
  for (const Item& item : parser.items)
    if (item.quoted != (arg.dtype == DType::String))
      parser.fault(item.quoted ? "a word, but the input is " + arg.type()
                               : "words stand in quotes, as in '[\"" + item.text + "\"]'");
  std::vector<int64_t> shape = parser.dims();
  if (shape.size() < arg.shape.size())
    shape.insert(shape.begin(), arg.shape.size() - shape.size(), 1);
  Tensor tensor(std::move(shape), arg.dtype);
  fill(parser, arg, &tensor);
  return tensor;
}

}  // namespace cli
