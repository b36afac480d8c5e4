// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/tensors/compare.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "cxxapi/cli/print/text.h"
#include "cxxapi/cli/tensors/elements.h"

namespace cli {
namespace {

using pyflame_rt::DType;
using pyflame_rt::Tensor;
using pyflame_rt::Value;
using pyflame_rt::ValueKind;

const char* kind_name(ValueKind kind) {
  switch (kind) {
    case ValueKind::Tensor:
      return "a tensor";
    case ValueKind::Sequence:
      return "a sequence";
    case ValueKind::Map:
      return "a map";
    case ValueKind::Optional:
      return "an optional";
    case ValueKind::Sparse:
      return "a sparse tensor";
    default:
      return "nothing";
  }
}

bool close(double got, double want, const Tolerance& t) {
  if (std::isnan(got) || std::isnan(want)) return std::isnan(got) && std::isnan(want);
  if (got == want) return true;
  if (std::isinf(got) || std::isinf(want)) return false;
  return std::fabs(got - want) <= t.atol + t.rtol * std::fabs(want);
}

bool same_element(const Tensor& got, int64_t i, const Tensor& want, int64_t j, const Tolerance& t) {
  const DType dtype = want.dtype();
  if (dtype == DType::String) return got.string_at(i) == want.string_at(j);
  if (is_complex(dtype)) {
    return close(number_at(got, i), number_at(want, j), t) &&
           close(imaginary_at(got, i), imaginary_at(want, j), t);
  }
  if (is_float(dtype)) return close(number_at(got, i), number_at(want, j), t);
  return integer_at(got, i) == integer_at(want, j);
}

double largest_of(const Tensor& tensor) {
  double largest = 0;
  if (!is_float(tensor.dtype())) return largest;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const double size = std::fabs(number_at(tensor, i));
    if (std::isfinite(size)) largest = std::max(largest, size);
  }
  return largest;
}

// Says by how much, and which of the limits that is beyond.
std::string excess(double got, double want, double largest, double atol, double rtol) {
  if (!std::isfinite(got) || !std::isfinite(want)) return ", which no tolerance allows";
  std::string out = ", off by " + number_text(std::fabs(got - want)) + ", allowed are " +
                    number_text(atol * std::max(1.0, largest) + rtol * std::fabs(want)) + ": " +
                    number_text(rtol) + " (--rtol) of what is expected and " + number_text(atol) +
                    " (--atol)";
  if (largest > 1) out += " of the largest element, " + number_text(largest);
  return out;
}

std::string tensor_difference(const Tensor& got, const Tensor& want, Tolerance t) {
  if (got.dtype() != want.dtype()) {
    return std::string("dtype is ") + dtype_name(got.dtype()) + ", expected " +
           dtype_name(want.dtype());
  }
  if (got.shape() != want.shape()) {
    return "shape is " + shape_text(got.shape()) + ", expected " + shape_text(want.shape());
  }
  if (want.dtype() == DType::Float16 || want.dtype() == DType::BFloat16)
    t.rtol = std::max(t.rtol, 1e-2);
  // What is lost in a sum of large terms is lost wherever the sum ends near 0.
  const double largest = largest_of(want), atol = t.atol;
  t.atol *= std::max(1.0, largest);
  int64_t wrong = 0;
  int64_t first = 0;
  for (int64_t i = 0; i < want.num_elements(); ++i) {
    if (same_element(got, i, want, i, t)) continue;
    if (wrong++ == 0) first = i;
  }
  if (wrong == 0) return {};
  std::string found = std::to_string(wrong) + " of " + std::to_string(want.num_elements()) +
                      " elements differ; first at " + std::to_string(first) + ": " +
                      text_at(got, first) + ", expected " + text_at(want, first);
  if (is_float(want.dtype()))
    found += excess(number_at(got, first), number_at(want, first), largest, atol, t.rtol);
  return found;
}

// Returns the row of each key.
std::map<std::string, int64_t> rows_of(const Tensor& keys) {
  std::map<std::string, int64_t> rows;
  for (int64_t i = 0; i < keys.num_elements(); ++i) rows[text_at(keys, i)] = i;
  return rows;
}

std::string map_difference(const Value& got, const Value& want, const Tolerance& t) {
  const auto [got_keys, got_values] = got.map_parts();
  const auto [want_keys, want_values] = want.map_parts();
  if (got_values.dtype() != want_values.dtype() || got_keys.dtype() != want_keys.dtype()) {
    return "the types of the map differ";
  }
  const auto got_rows = rows_of(got_keys);
  const auto want_rows = rows_of(want_keys);
  const int64_t count = want_keys.num_elements();
  if (got_rows.size() != want_rows.size() ||
      got_values.num_elements() != want_values.num_elements()) {
    return "the map has " + std::to_string(got_rows.size()) + " entries, expected " +
           std::to_string(want_rows.size());
  }
  const int64_t width = count == 0 ? 0 : want_values.num_elements() / count;
  for (const auto& [key, row] : want_rows) {
    const auto found = got_rows.find(key);
    if (found == got_rows.end()) return "the map lacks the key " + key;
    for (int64_t i = 0; i < width; ++i) {
      const int64_t at = found->second * width + i;
      if (!same_element(got_values, at, want_values, row * width + i, t)) {
        return "the map's value of " + key + " is " + text_at(got_values, at) + ", expected " +
               text_at(want_values, row * width + i);
      }
    }
  }
  return {};
}

// Returns the entries of a map by ascending key.
std::vector<int64_t> key_order(const Tensor& keys) {
  std::vector<int64_t> order(static_cast<size_t>(keys.num_elements()));
  std::iota(order.begin(), order.end(), 0);
  const bool text = keys.dtype() == DType::String;
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return text ? keys.string_at(a) < keys.string_at(b) : integer_at(keys, a) < integer_at(keys, b);
  });
  return order;
}

// Compares a sequence of N maps of C entries with [N,C], whose columns are the keys in ascending
// order.
std::string rows_difference(const Value& got, const Tensor& want, const Tolerance& t) {
  if (want.ndim() != 2 || static_cast<int64_t>(got.size()) != want.shape()[0]) {
    return "a sequence of " + std::to_string(got.size()) + " maps, expected shape " +
           shape_text(want.shape());
  }
  const int64_t width = want.shape()[1];
  for (int64_t row = 0; row < want.shape()[0]; ++row) {
    const Value map = got.at(static_cast<size_t>(row));
    if (map.kind() != ValueKind::Map) return "the sequence does not hold maps";
    const auto [keys, values] = map.map_parts();
    if (values.num_elements() != width || keys.num_elements() != width ||
        values.dtype() != want.dtype()) {
      return "map " + std::to_string(row) + " does not match the expected row";
    }
    int64_t column = row * width;
    for (const int64_t i : key_order(keys)) {
      if (!same_element(values, i, want, column, t)) {
        return "map " + std::to_string(row) + ": the value of " + text_at(keys, i) + " is " +
               text_at(values, i) + ", expected " + text_at(want, column);
      }
      ++column;
    }
  }
  return {};
}

// Returns the content of an optional; an invalid value when it holds nothing.
Value unwrapped(const Value& value) {
  if (value.kind() != ValueKind::Optional) return value;
  return value.size() == 0 ? Value() : unwrapped(value.at(0));
}

}  // namespace

std::string difference(const Value& got_value, const Value& want_value,
                       const Tolerance& tolerance) {
  const Value got = unwrapped(got_value);
  const Value want = unwrapped(want_value);
  if (got.kind() == ValueKind::Sequence && want.is_tensor()) {
    return rows_difference(got, want.tensor(), tolerance);
  }
  if (got.kind() != want.kind()) {
    return std::string("the result is ") + kind_name(got.kind()) + ", expected " +
           kind_name(want.kind());
  }
  switch (want.kind()) {
    case ValueKind::Tensor:
      return tensor_difference(got.tensor(), want.tensor(), tolerance);
    case ValueKind::Map:
      return map_difference(got, want, tolerance);
    case ValueKind::Sequence:
      break;
    case ValueKind::Unset:
      return {};
    default:
      return "sparse tensors are not compared";
  }
  if (got.size() != want.size()) {
    return "the sequence has " + std::to_string(got.size()) + " elements, expected " +
           std::to_string(want.size());
  }
  for (size_t i = 0; i < want.size(); ++i) {
    const std::string found = difference(got.at(i), want.at(i), tolerance);
    if (!found.empty()) return "element " + std::to_string(i) + ": " + found;
  }
  return {};
}

}  // namespace cli
