// SPDX-License-Identifier: Apache-2.0
#include "core/verify/expectation.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/verify/elements.h"

namespace pfrt {
namespace {

// Factors on the drift that the perturbed runs showed, since a rewrite may round more often.
constexpr double kRmsMargin = 8, kPeakMargin = 4, kLargestMargin = 4;
constexpr uint64_t kManyMargin = 4;

// The tensors in |value|, depth first.
void collect(const Value& value, std::vector<const Tensor*>& out) {
  if (value.kind == PFRT_VALUE_TENSOR || value.kind == PFRT_VALUE_SPARSE)
    out.push_back(&value.tensor);
  if (value.kind == PFRT_VALUE_SPARSE) out.push_back(&value.indices);
  for (const ValuePtr& element : value.elements)
    if (element) collect(*element, out);
  if (value.keys) collect(*value.keys, out);
  if (value.values) collect(*value.values, out);
}

std::vector<const Tensor*> tensors_of(const ValuePtr& value) {
  std::vector<const Tensor*> out;
  if (value) collect(*value, out);
  return out;
}

std::string shape_text(const Dims& dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) text += message(i ? "," : "", dims[i]);
  return text + "]";
}

// The difference in kind, type or shape, or empty.
std::string structure(const ValuePtr& want, const ValuePtr& got) {
  if (!want || !got) return want || got ? "is there on one side alone" : "";
  if (want->kind != got->kind) return "is a value of another kind";
  const std::vector<const Tensor*> w = tensors_of(want), g = tensors_of(got);
  if (w.size() != g.size())
    return message("has ", g.size(), " tensors in it instead of ", w.size());
  for (size_t i = 0; i < w.size(); ++i) {
    if (w[i]->dtype != g[i]->dtype)
      return message("is ", dtype_name(g[i]->dtype), " instead of ", dtype_name(w[i]->dtype));
    if (w[i]->dims != g[i]->dims)
      return message("has shape ", shape_text(g[i]->dims), " instead of ", shape_text(w[i]->dims));
  }
  return {};
}

bool same_bytes(const Tensor& a, const Tensor& b) {
  if (a.dtype == PFRT_DTYPE_STRING)
    return std::ranges::equal(a.strings(), b.strings(), [](pfrt_string x, pfrt_string y) {
      return std::string_view(x.data, x.size) == std::string_view(y.data, y.size);
    });
  return a.bytes() == 0 || std::memcmp(a.data(), b.data(), static_cast<size_t>(a.bytes())) == 0;
}

double distance(double want, double got) {
  if (want == got || (std::isnan(want) && std::isnan(got))) return 0;
  const bool finite = std::isfinite(want) && std::isfinite(got);
  return finite ? std::fabs(want - got) : std::numeric_limits<double>::infinity();
}

}  // namespace

struct Expectation::Distance {
  double rms = 0, peak = 0, largest = 0;
  uint64_t many = 0;
  size_t at = 0;  // the element that is furthest away
  double want = 0, got = 0, scale = 0;
};

Expectation::Expectation(std::vector<ValuePtr> outputs, std::vector<OutputTraits> traits)
    : outputs_(std::move(outputs)), traits_(std::move(traits)) {
  for (const ValuePtr& output : outputs_) drifts_.emplace_back(tensors_of(output).size());
}

Expectation::Distance Expectation::measure(const Tensor& want, const Tensor& got, double tolerance,
                                           const Drift& drift) const {
  Distance out;
  if (same_bytes(want, got)) return out;
  const std::vector<double> w = elements(want), g = elements(got);
  for (double x : w)
    if (std::isfinite(x)) out.scale = std::max(out.scale, std::fabs(x));
  const bool rounds = rounding_of(want.dtype) != 0;
  double squares = 0, count = 0, limit = 0;
  if (rounds) {
    for (size_t i = 0; i < w.size(); ++i) {
      const double d = distance(w[i], g[i]);
      if (!std::isfinite(d)) continue;
      squares += d * d;
      out.peak = std::max(out.peak, d);
      count += 1;
    }
    out.rms = count > 0 ? std::sqrt(squares / count) : 0;
    // A peak far beyond the others comes from a step that was tipped over, and there are few such.
    limit = tolerance * out.scale + kRmsMargin * drift.rms +
            kPeakMargin * std::min(drift.peak, tolerance * out.scale);
  }
  bool equal = true;
  for (size_t i = 0; i < w.size(); ++i) {
    const double d = distance(w[i], g[i]);
    equal &= d == 0;
    if (d <= limit) continue;
    ++out.many;
    if (d <= out.largest) continue;
    out.largest = d;
    out.at = i;
    out.want = w[i];
    out.got = g[i];
  }
  // These are texts, and integers too long for a double.
  if (equal && !rounds) {
    out.many = 1;
    out.largest = 1;
  }
  return out;
}

void Expectation::allow(const std::vector<ValuePtr>& outputs) {
  for (size_t i = 0; i < outputs_.size() && i < outputs.size(); ++i) {
    if (!structure(outputs_[i], outputs[i]).empty()) continue;
    const std::vector<const Tensor*> w = tensors_of(outputs_[i]), g = tensors_of(outputs[i]);
    for (size_t t = 0; t < w.size(); ++t) {
      Drift& drift = drifts_[i][t];
      const Distance all = measure(*w[t], *g[t], traits_[i].tolerance, {});
      drift.rms = std::max(drift.rms, all.rms);
      drift.peak = std::max(drift.peak, all.peak);
      const Distance d = measure(*w[t], *g[t], traits_[i].tolerance, drift);
      drift.largest = std::max(drift.largest, d.largest);
      drift.many = std::max(drift.many, d.many);
    }
  }
}

std::string Expectation::difference(const Graph& graph,
                                    const std::vector<ValuePtr>& outputs) const {
  if (outputs.size() != outputs_.size())
    return message(outputs.size(), " outputs instead of ", outputs_.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (traits_[i].random) continue;
    const std::string name = message("output '", graph.at(graph.outputs[i]).name, "' ");
    if (const std::string wrong = structure(outputs_[i], outputs[i]); !wrong.empty())
      return name + wrong;
    const std::vector<const Tensor*> w = tensors_of(outputs_[i]), g = tensors_of(outputs[i]);
    for (size_t t = 0; t < w.size(); ++t) {
      const Drift& drift = drifts_[i][t];
      const Distance d = measure(*w[t], *g[t], traits_[i].tolerance, drift);
      if (d.many <= kManyMargin * drift.many && d.largest <= kLargestMargin * drift.largest)
        continue;
      std::string text = message(name, "has ", d.many, " of ", w[t]->count(), " elements wrong");
      if (w[t]->dtype == PFRT_DTYPE_STRING) return text;
      return text + message(", the worst ", d.got, " instead of ", d.want, " at ", d.at,
                            ", where the largest is ", d.scale);
    }
  }
  return {};
}

}  // namespace pfrt
