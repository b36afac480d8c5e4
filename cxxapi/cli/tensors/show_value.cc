// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/tensors/show_value.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "cxxapi/cli/print/text.h"
#include "cxxapi/cli/tensors/elements.h"

namespace cli {
namespace {

using pyflame_rt::Tensor;
using pyflame_rt::Value;
using pyflame_rt::ValueKind;

constexpr int64_t kShown = 8;          // elements of a tensor
constexpr size_t kShownElements = 16;  // of a sequence
constexpr int64_t kTop = 5;
constexpr int64_t kTopRows = 3;

// Counts the NaN among |count| elements from |first| on; none in types that have no NaN.
int64_t count_nans(const Tensor& tensor, int64_t first, int64_t count) {
  int64_t nans = 0;
  if (!is_float(tensor.dtype())) return nans;
  for (int64_t i = first; i < first + count; ++i) nans += std::isnan(number_at(tensor, i));
  return nans;
}

// Returns the columns of the highest scores in |row|. It has no NaN, since those have no order.
std::vector<int64_t> top_columns(const Tensor& scores, int64_t row) {
  const int64_t columns = scores.shape()[1];
  std::vector<int64_t> order(static_cast<size_t>(columns));
  std::iota(order.begin(), order.end(), 0);
  std::partial_sort(order.begin(), order.begin() + kTop, order.end(), [&](int64_t a, int64_t b) {
    const double x = number_at(scores, row * columns + a);
    const double y = number_at(scores, row * columns + b);
    return x > y || (x == y && a < b);
  });
  order.resize(kTop);
  return order;
}

// Returns the number of rows of class scores to show; 0 when the tensor does not look like scores.
int64_t score_rows(const Tensor& tensor) {
  const bool scores = tensor.ndim() == 2 && tensor.shape()[1] >= kTop && is_float(tensor.dtype());
  return scores ? std::min(tensor.shape()[0], kTopRows) : 0;
}

void print_tensor(const std::string& indent, const Tensor& tensor) {
  std::string line = std::string(dtype_name(tensor.dtype())) + shape_text(tensor.shape());
  for (int64_t i = 0; i < std::min(tensor.num_elements(), kShown); ++i)
    line.append(" ").append(text_at(tensor, i));
  if (tensor.num_elements() > kShown) line += " ...";
  std::printf("%s%s\n", indent.c_str(), line.c_str());
  const int64_t nans = count_nans(tensor, 0, tensor.num_elements());
  if (nans != 0)
    std::printf("%s  NaN: %lld of %lld elements\n", indent.c_str(), static_cast<long long>(nans),
                static_cast<long long>(tensor.num_elements()));
  for (int64_t row = 0; row < score_rows(tensor); ++row) {
    std::printf("%s  top-5 of row %lld:", indent.c_str(), static_cast<long long>(row));
    const int64_t columns = tensor.shape()[1];
    const int64_t unordered = nans == 0 ? 0 : count_nans(tensor, row * columns, columns);
    if (unordered != 0) {
      std::printf(" none, as %lld of its %lld scores are NaN\n", static_cast<long long>(unordered),
                  static_cast<long long>(columns));
      continue;
    }
    for (const int64_t column : top_columns(tensor, row)) {
      std::printf(" %lld (%s)", static_cast<long long>(column),
                  text_at(tensor, row * columns + column).c_str());
    }
    std::printf("\n");
  }
}

// Prints "map of string to float32, 3 entries: setosa 0.97, versicolor 0.03, virginica 0".
void print_map(const std::string& indent, const Tensor& keys, const Tensor& values) {
  const int64_t count = keys.num_elements();
  std::string line = std::string("map of ") + dtype_name(keys.dtype()) + " to " +
                     dtype_name(values.dtype()) + ", " + std::to_string(count) +
                     (count == 1 ? " entry:" : " entries:");
  for (int64_t i = 0; i < std::min(count, kShown); ++i)
    line += (i ? ", " : " ") + text_at(keys, i) + " " + text_at(values, i);
  if (count > kShown) line += ", ...";
  std::printf("%s%s\n", indent.c_str(), line.c_str());
}

void write_tensor_json(const Tensor& tensor, Json* json) {
  json->object().field("dtype", dtype_name(tensor.dtype())).key("shape").list();
  for (const int64_t dim : tensor.shape()) json->value(dim);
  json->end().key("first").list();
  for (int64_t i = 0; i < std::min(tensor.num_elements(), kShown); ++i) {
    if (tensor.dtype() == pyflame_rt::DType::String) {
      json->value(tensor.string_at(i));
    } else if (is_float(tensor.dtype())) {
      json->value(number_at(tensor, i));
    } else {
      json->value(text_at(tensor, i));
    }
  }
  json->end();
  const int64_t nans = count_nans(tensor, 0, tensor.num_elements());
  if (nans != 0) json->field("nan", nans);
  if (score_rows(tensor) > 0) {
    json->key("top5").list();
    for (int64_t row = 0; row < score_rows(tensor); ++row) {
      const int64_t columns = tensor.shape()[1];
      json->list();
      if (nans != 0 && count_nans(tensor, row * columns, columns) != 0) {
        json->end();
        continue;
      }
      for (const int64_t column : top_columns(tensor, row)) json->value(column);
      json->end();
    }
    json->end();
  }
  json->end();
}

}  // namespace

void print_value(const std::string& indent, const Value& value) {
  switch (value.kind()) {
    case ValueKind::Tensor:
      return print_tensor(indent, value.tensor());
    case ValueKind::Map: {
      const auto [keys, values] = value.map_parts();
      if (values.num_elements() == keys.num_elements()) return print_map(indent, keys, values);
      std::printf("%smap\n", indent.c_str());
      print_tensor(indent + "  keys   ", keys);
      return print_tensor(indent + "  values ", values);
    }
    case ValueKind::Sequence:
    case ValueKind::Optional: {
      const bool sequence = value.kind() == ValueKind::Sequence;
      std::printf("%s%s of %zu\n", indent.c_str(), sequence ? "sequence" : "optional",
                  value.size());
      for (size_t i = 0; i < std::min(value.size(), kShownElements); ++i)
        print_value(indent + "  ", value.at(i));
      if (value.size() > kShownElements) std::printf("%s  ...\n", indent.c_str());
      return;
    }
    default:
      std::printf("%ssparse tensor of %s\n", indent.c_str(), dtype_name(value.dtype()));
  }
}

void write_value_json(const Value& value, Json* json) {
  if (value.is_tensor()) return write_tensor_json(value.tensor(), json);
  json->object();
  if (value.kind() == ValueKind::Map) {
    const auto [keys, values] = value.map_parts();
    write_tensor_json(keys, &json->field("kind", "map").key("keys"));
    write_tensor_json(values, &json->key("values"));
  } else if (value.kind() == ValueKind::Sparse) {
    json->field("kind", "sparse");
  } else {
    json->field("kind", value.kind() == ValueKind::Sequence ? "sequence" : "optional")
        .key("elements")
        .list();
    for (size_t i = 0; i < value.size(); ++i) write_value_json(value.at(i), json);
    json->end();
  }
  json->end();
}

}  // namespace cli
