// SPDX-License-Identifier: Apache-2.0
//
// Operators of ai.onnx.ml on strings and maps.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <unordered_map>

#include "core/exec/host/call.h"

namespace pfrt::host {
namespace {

constexpr std::string_view kMl = "ai.onnx.ml";

// Bytes of element |i| of a tensor of strings, or of numbers of whole bytes.
std::string_view bytes_at(const Tensor& t, int64_t i) {
  if (t.dtype == PFRT_DTYPE_STRING) return view(t.as<const pfrt_string>()[i]);
  const size_t size = dtype_size(t.dtype);
  return {t.as<const char>() + static_cast<size_t>(i) * size, size};
}

Status set_at(Tensor& to, int64_t i, std::string_view bytes) {
  if (to.dtype == PFRT_DTYPE_STRING) return to.buffer->set_string(static_cast<uint64_t>(i), bytes);
  std::memcpy(to.as<char>() + static_cast<size_t>(i) * dtype_size(to.dtype), bytes.data(),
              bytes.size());
  return {};
}

Result<Tensor> tensor_attribute(const Call& call, std::string_view name) {
  const Attribute* attr = call.node.attr(name);
  if (!attr || !attr->tensor) return error(Code::kINVALID_MODEL, "has no attribute '", name, "'");
  return attr->tensor->tensor;
}

// Elements that are equal have equal keys: zeros of both signs and all NaNs become one.
std::string key_of(pfrt_dtype dtype, std::string_view bytes) {
  std::string key(bytes);
  const auto settle = [&](auto number) {
    std::memcpy(&number, bytes.data(), sizeof number);
    if (number == 0) number = 0;
    if (std::isnan(number)) number = std::numeric_limits<decltype(number)>::quiet_NaN();
    std::memcpy(key.data(), &number, sizeof number);
  };
  if (dtype == PFRT_DTYPE_FLOAT32) settle(float{});
  if (dtype == PFRT_DTYPE_FLOAT64) settle(double{});
  return key;
}

// Positions of keys; a longer text is no key, and is not hashed.
template <typename Key>
struct Positions {
  std::unordered_map<Key, int64_t> of;
  size_t longest = 0;
};

Result<std::shared_ptr<const Positions<std::string>>> read_keys(const Call& call,
                                                                const Tensor& keys) {
  auto made = std::make_shared<Positions<std::string>>();
  for (int64_t i = 0; i < keys.count(); ++i) {
    const std::string_view key = bytes_at(keys, i);
    PFRT_TRY(call.walked(key.size()));
    made->longest = std::max(made->longest, key.size());
    made->of[key_of(keys.dtype, key)] = i;
  }
  return std::shared_ptr<const Positions<std::string>>(std::move(made));
}

Status label_encoder(const Call& call) {
  PFRT_ASSIGN(const Tensor keys, tensor_attribute(call, "keys_tensor"));
  PFRT_ASSIGN(const Tensor values, tensor_attribute(call, "values_tensor"));
  PFRT_ASSIGN(const Tensor fallback, tensor_attribute(call, "default_tensor"));
  PFRT_ASSIGN(const Tensor* x, need_tensor(call, 0, keys.dtype));
  PFRT_ASSIGN(const auto positions, call.prepared.get<Positions<std::string>>(
                                        call.control, [&] { return read_keys(call, keys); }));
  PFRT_ASSIGN(Tensor y, Tensor::allocate(values.dtype, x->dims));
  const size_t longest = positions->longest;
  for (int64_t i = 0; i < x->count(); ++i) {
    const std::string_view text = bytes_at(*x, i);
    const auto found =
        text.size() > longest ? positions->of.end() : positions->of.find(key_of(x->dtype, text));
    const std::string_view label =
        found == positions->of.end() ? bytes_at(fallback, 0) : bytes_at(values, found->second);
    PFRT_TRY(call.walked(std::min(text.size(), longest) + label.size()));
    PFRT_TRY(set_at(y, i, label));
  }
  call.out[0] = Value::of(std::move(y));
  return {};
}

// |cats| outlives the result.
Result<std::shared_ptr<const Positions<std::string_view>>> read_categories(
    const Call& call, const std::vector<std::string>& cats) {
  auto made = std::make_shared<Positions<std::string_view>>();
  for (size_t i = 0; i < cats.size(); ++i) {
    PFRT_TRY(call.walked(cats[i].size()));
    made->longest = std::max(made->longest, cats[i].size());
    made->of[cats[i]] = static_cast<int64_t>(i);
  }
  return std::shared_ptr<const Positions<std::string_view>>(std::move(made));
}

Status one_hot_encoder(const Call& call) {
  PFRT_ASSIGN(const Tensor* x, need_tensor(call, 0, PFRT_DTYPE_STRING));
  const Attribute* cats = call.node.attr("cats_strings");
  if (!cats || cats->strings.empty())
    return error(Code::kINVALID_MODEL, "attribute 'cats_strings' is empty or absent");
  PFRT_ASSIGN(const auto positions,
              call.prepared.get<Positions<std::string_view>>(
                  call.control, [&] { return read_categories(call, cats->strings); }));
  const size_t longest = positions->longest;
  const auto width = static_cast<int64_t>(cats->strings.size());
  Dims dims = x->dims;
  dims.push_back(width);
  PFRT_ASSIGN(Tensor y, Tensor::allocate(PFRT_DTYPE_FLOAT32, std::move(dims)));
  for (int64_t i = 0; i < x->count(); ++i) {
    const std::string_view text = view(x->as<const pfrt_string>()[i]);
    PFRT_TRY(call.walked(std::min(text.size(), longest)));
    const auto found = text.size() > longest ? positions->of.end() : positions->of.find(text);
    if (found != positions->of.end())
      y.as<float>()[i * width + found->second] = 1;
    else if (call.node.attr_int("zeros", 1) == 0)
      return error(Code::kINVALID_ARGUMENT, "'", text.substr(0, 40),
                   "' is in no category of 'cats_strings', and 'zeros' is 0");
  }
  call.out[0] = Value::of(std::move(y));
  return {};
}

Status array_feature_extractor(const Call& call) {
  PFRT_ASSIGN(const Value* value, need(call, 0, PFRT_VALUE_TENSOR, "a tensor"));
  PFRT_ASSIGN(const Tensor* indices, need_tensor(call, 1, PFRT_DTYPE_INT64));
  const Tensor& x = value->tensor;
  if (x.dims.empty() || dtype_size(x.dtype) == 0)
    return error(Code::kSHAPE_MISMATCH, "input 0 must have features in its last dimension");
  Dims dims = x.dims;
  if (dims.size() == 1) dims.insert(dims.begin(), 1);
  const int64_t columns = x.dims.back(), count = indices->count();
  dims.back() = count;
  const int64_t rows = element_count(x.dims.data(), x.dims.size() - 1);
  PFRT_ASSIGN(Tensor y, Tensor::allocate(x.dtype, std::move(dims)));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t given = indices->as<const int64_t>()[i];
    const int64_t at = given < 0 ? given + columns : given;
    if (at < 0 || at >= columns)
      return error(Code::kINVALID_ARGUMENT, "index ", given, " is outside ", columns, " features");
    for (int64_t r = 0; r < rows; ++r) {
      const std::string_view element = bytes_at(x, r * columns + at);
      PFRT_TRY(call.walked(element.size()));
      PFRT_TRY(set_at(y, r * count + i, element));
    }
  }
  call.out[0] = Value::of(std::move(y));
  return {};
}

// ------------------------------------------------------------------ maps
// Positions of the last of equal keys: the entries of a map.
std::vector<int64_t> last_of_each(const Tensor& keys) {
  std::unordered_map<std::string_view, int64_t> last;
  for (int64_t i = 0; i < keys.count(); ++i) last[bytes_at(keys, i)] = i;
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < keys.count(); ++i)
    if (last[bytes_at(keys, i)] == i) kept.push_back(i);
  return kept;
}

// Whether each element is greater than the one before it, so that none is repeated.
template <typename T>
bool ascending(const std::vector<T>& list) {
  return std::ranges::adjacent_find(list, std::ranges::greater_equal()) == list.end();
}

// The keys of a map, and the places of their values in a row; empty = at their own places.
struct MapKeys {
  Tensor keys;
  std::vector<int64_t> places;
};

Result<MapKeys> map_keys(const Node& node) {
  const Attribute* ints = node.attr("classlabels_int64s");
  const Attribute* strings = node.attr("classlabels_strings");
  MapKeys out;
  bool distinct = true;
  if (strings && !strings->strings.empty()) {
    const auto count = static_cast<int64_t>(strings->strings.size());
    PFRT_ASSIGN(out.keys, Tensor::allocate(PFRT_DTYPE_STRING, {count}));
    for (size_t i = 0; i < strings->strings.size(); ++i)
      PFRT_TRY(out.keys.buffer->set_string(i, strings->strings[i]));
    distinct = ascending(strings->strings);
  } else if (ints) {
    PFRT_ASSIGN(out.keys, Tensor::of_int64(ints->ints));
    distinct = ascending(ints->ints);
  } else {
    PFRT_ASSIGN(out.keys, Tensor::of_int64({}));
  }
  if (distinct) return out;
  out.places = last_of_each(out.keys);
  const auto entries = static_cast<int64_t>(out.places.size());
  PFRT_ASSIGN(Tensor own, Tensor::allocate(out.keys.dtype, {entries}));
  for (int64_t i = 0; i < entries; ++i)
    PFRT_TRY(set_at(own, i, bytes_at(out.keys, out.places[static_cast<size_t>(i)])));
  out.keys = std::move(own);
  return out;
}

Status zip_map(const Call& call) {
  PFRT_ASSIGN(const Tensor* x, need_tensor(call, 0, PFRT_DTYPE_FLOAT32));
  const Attribute* ints = call.node.attr("classlabels_int64s");
  const Attribute* strings = call.node.attr("classlabels_strings");
  const size_t labels = strings && !strings->strings.empty() ? strings->strings.size()
                        : ints                               ? ints->ints.size()
                                                             : 0;
  const auto width = static_cast<int64_t>(labels);
  const bool fits = (x->dims.size() == 1 || x->dims.size() == 2) && x->dims.back() == width;
  if (!fits)
    return error(Code::kSHAPE_MISMATCH, "input 0 must have ", width, " columns, one a key");
  PFRT_ASSIGN(MapKeys keys, map_keys(call.node));
  const int64_t entries = keys.keys.count();
  const ValuePtr shared_keys = Value::of(std::move(keys.keys));
  const int64_t rows = x->dims.size() == 1 ? 1 : x->dims[0];
  // Rows lie one behind another: callers may take all at once.
  PFRT_ASSIGN(const Tensor all, Tensor::allocate(PFRT_DTYPE_FLOAT32, {rows, entries}, false));
  std::vector<ValuePtr> maps;
  maps.reserve(static_cast<size_t>(rows));
  for (int64_t r = 0; r < rows; ++r) {
    PFRT_TRY(call.look(r));
    auto map = std::make_shared<Value>();
    map->kind = PFRT_VALUE_MAP;
    map->keys = shared_keys;
    Tensor row = all;
    row.dims = {entries};
    row.offset = static_cast<uint64_t>(r * entries) * sizeof(float);
    const float* const from = x->as<const float>() + r * width;
    float* const to = row.as<float>();
    for (int64_t i = 0; i < entries; ++i)
      to[i] = from[keys.places.empty() ? i : keys.places[static_cast<size_t>(i)]];
    map->values = Value::of(std::move(row));
    maps.push_back(std::move(map));
  }
  call.out[0] = Value::sequence(std::move(maps), PFRT_DTYPE_FLOAT32);
  return {};
}

Result<const Value*> need_map(const Call& call) {
  PFRT_ASSIGN(const Value* map, need(call, 0, PFRT_VALUE_MAP, "a map"));
  const bool whole = map->keys && map->values && map->keys->kind == PFRT_VALUE_TENSOR &&
                     map->values->kind == PFRT_VALUE_TENSOR &&
                     map->keys->tensor.count() == map->values->tensor.count();
  if (!whole) return error(Code::kINVALID_ARGUMENT, "input 0 must be a map of single values");
  return map;
}

// Texts are read as the C library reads them: anything after a number is ignored.
template <typename T>
Result<T> number_of(std::string_view text) {
  size_t begin = text.find_first_not_of(" \t\n\r\f\v");
  if (begin != std::string_view::npos && text[begin] == '+') ++begin;
  T number{};
  const std::string_view rest =
      begin == std::string_view::npos ? std::string_view() : text.substr(begin);
  if (std::from_chars(rest.data(), rest.data() + rest.size(), number).ec != std::errc())
    return error(Code::kINVALID_ARGUMENT, "'", text, "' is no number of the type wanted");
  return number;
}

int64_t whole(float x) {
  if (!(x >= -0x1p63f)) return x < 0 ? INT64_MIN : 0;
  return x >= 0x1p63f ? INT64_MAX : static_cast<int64_t>(x);
}

std::string six_digits(float x) {
  char text[64];
  const auto end =
      std::to_chars(text, text + sizeof text, static_cast<double>(x), std::chars_format::fixed, 6);
  return {text, end.ptr};
}

Status cast_entry(const Tensor& from, int64_t i, Tensor& to, int64_t at) {
  const bool text = from.dtype == PFRT_DTYPE_STRING;
  const std::string_view s = text ? bytes_at(from, i) : std::string_view();
  const float x = text ? 0 : from.as<const float>()[i];
  switch (to.dtype) {
    case PFRT_DTYPE_STRING:
      return to.buffer->set_string(static_cast<uint64_t>(at),
                                   text ? std::string(s) : six_digits(x));
    case PFRT_DTYPE_INT64: {
      Result<int64_t> number = text ? number_of<int64_t>(s) : Result<int64_t>(whole(x));
      if (!number.ok()) return number.take_status();
      to.as<int64_t>()[at] = *number;
      return {};
    }
    default: {
      Result<float> number = text ? number_of<float>(s) : Result<float>(x);
      if (!number.ok()) return number.take_status();
      to.as<float>()[at] = *number;
      return {};
    }
  }
}

// Puts entries in the order of their keys, side by side or each at its key.
Status cast_map(const Call& call) {
  PFRT_ASSIGN(const Value* map, need_map(call));
  const Tensor &keys = map->keys->tensor, &values = map->values->tensor;
  if (keys.dtype != PFRT_DTYPE_INT64 ||
      (values.dtype != PFRT_DTYPE_STRING && values.dtype != PFRT_DTYPE_FLOAT32))
    return error(Code::kDTYPE_MISMATCH, "input 0 must map int64 to float or string");
  const std::string_view cast = call.node.attr_string("cast_to", "TO_FLOAT");
  const pfrt_dtype to = cast == "TO_STRING"  ? PFRT_DTYPE_STRING
                        : cast == "TO_INT64" ? PFRT_DTYPE_INT64
                                             : PFRT_DTYPE_FLOAT32;
  const bool sparse = call.node.attr_string("map_form", "DENSE") == "SPARSE";
  std::map<int64_t, int64_t> order;
  for (int64_t i = 0; i < keys.count(); ++i) order[keys.as<const int64_t>()[i]] = i;
  const int64_t length =
      sparse ? call.node.attr_int("max_map", 1) : static_cast<int64_t>(order.size());
  PFRT_ASSIGN(Tensor y, Tensor::allocate(to, {1, length}));
  // This is ONNX Runtime's text for a position without an entry.
  for (int64_t i = 0; sparse && to == PFRT_DTYPE_STRING && i < length; ++i)
    PFRT_TRY(y.buffer->set_string(static_cast<uint64_t>(i), "0.f"));
  int64_t next = 0;
  for (const auto& [key, i] : order) {
    const int64_t at = sparse ? key : next++;
    if (at < 0 || at >= length)
      return error(Code::kINVALID_ARGUMENT, "key ", key, " of input 0 is outside [0, ", length,
                   "), which 'max_map' allows");
    PFRT_TRY(call.walked(values.dtype == PFRT_DTYPE_STRING ? bytes_at(values, i).size() : 0));
    PFRT_TRY(cast_entry(values, i, y, at));
  }
  call.out[0] = Value::of(std::move(y));
  return {};
}

// Puts entries at the positions of their keys in the vocabulary; other keys are left out.
Status dict_vectorizer(const Call& call) {
  PFRT_ASSIGN(const Value* map, need_map(call));
  const Tensor &keys = map->keys->tensor, &values = map->values->tensor;
  const Attribute* ints = call.node.attr("int64_vocabulary");
  const Attribute* strings = call.node.attr("string_vocabulary");
  const bool text = !ints || ints->ints.empty();
  if (keys.dtype != (text ? PFRT_DTYPE_STRING : PFRT_DTYPE_INT64))
    return error(Code::kDTYPE_MISMATCH, "input 0 has keys of ", dtype_name(keys.dtype),
                 ", the vocabulary is of ", text ? "strings" : "integers");
  if (dtype_size(values.dtype) == 0)
    return error(Code::kDTYPE_MISMATCH, "input 0 maps to ", dtype_name(values.dtype));
  std::unordered_map<std::string_view, int64_t> entries;
  for (int64_t i = 0; i < keys.count(); ++i) {
    PFRT_TRY(call.walked(bytes_at(keys, i).size()));
    entries[bytes_at(keys, i)] = i;
  }
  const size_t length = text ? (strings ? strings->strings.size() : 0) : ints->ints.size();
  PFRT_ASSIGN(Tensor y, Tensor::allocate(values.dtype, {1, static_cast<int64_t>(length)}));
  for (size_t i = 0; i < length; ++i) {
    const std::string_view key =
        text ? std::string_view(strings->strings[i])
             : std::string_view(reinterpret_cast<const char*>(&ints->ints[i]), sizeof(int64_t));
    const auto found = entries.find(key);
    PFRT_TRY(call.walked(key.size() +
                         (found == entries.end() ? 0 : bytes_at(values, found->second).size())));
    if (found != entries.end())
      PFRT_TRY(set_at(y, static_cast<int64_t>(i), bytes_at(values, found->second)));
  }
  call.out[0] = Value::of(std::move(y));
  return {};
}

constexpr HostOp kMlOps[] = {
    {kMl, "ArrayFeatureExtractor", array_feature_extractor},
    {kMl, "CastMap", cast_map},
    {kMl, "DictVectorizer", dict_vectorizer},
    {kMl, "LabelEncoder", label_encoder},
    {kMl, "OneHotEncoder", one_hot_encoder},
    {kMl, "ZipMap", zip_map},
};

}  // namespace

std::span<const HostOp> ml_ops() { return kMlOps; }

}  // namespace pfrt::host
