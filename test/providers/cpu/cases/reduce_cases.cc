// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>

#include "test/providers/cpu/cases/cases.h"

namespace pfrt::test {
namespace {

using ReduceFn = double (*)(const Values&);

double sum(const Values& v) { return std::accumulate(v.begin(), v.end(), 0.0); }
double sum_of(const Values& v, double (*fn)(double)) {
  long double s = 0;  // more exact than kernels of float64
  for (double x : v) s += static_cast<long double>(fn(x));
  return static_cast<double>(s);
}
double magnitude(double x) { return std::fabs(x); }
double square(double x) { return x * x; }

// Calls |fn| with the positions of each line of |dims| along |axis|.
void for_each_line(const Dims& dims, size_t axis,
                   const std::function<void(const std::vector<size_t>&)>& fn) {
  Dims outer = dims;
  outer[axis] = 1;
  for_each_index(outer, [&](Dims index) {
    std::vector<size_t> at;
    for (index[axis] = 0; index[axis] < dims[axis]; ++index[axis])
      at.push_back(position(index, dims));
    fn(at);
  });
}

Values gathered(const Values& values, const std::vector<size_t>& at) {
  Values out;
  for (size_t i : at) out.push_back(values[i]);
  return out;
}

struct ReduceForm {
  double low = -3, high = 3;
  bool of_nothing = true;  // defined without elements
};

Generator reduce(ReduceFn fn, ReduceForm form = {}) {
  return [=](Random& r, pfrt_dtype dtype, int64_t size) {
    const auto rank = static_cast<size_t>(r.below(7));
    const Dims dims = form.of_nothing ? r.dims(rank, size) : r.dims_without_0(rank, size);
    const Data x = r.data(dtype, dims, form.low, form.high);
    Dims axes;
    for (size_t i = 0; i < rank; ++i)
      if (r.once_in(2))
        axes.push_back(static_cast<int64_t>(i) - (r.once_in(2) ? static_cast<int64_t>(rank) : 0));
    const bool keep = r.once_in(2), nothing = axes.empty() && r.once_in(2);
    std::vector<bool> reduced(rank, axes.empty() && !nothing);
    for (int64_t a : axes)
      reduced[static_cast<size_t>(a < 0 ? a + static_cast<int64_t>(rank) : a)] = true;
    Dims kept = dims, out;
    for (size_t i = 0; i < rank; ++i) {
      if (reduced[i]) kept[i] = 1;
      if (keep || !reduced[i]) out.push_back(kept[i]);
    }
    std::vector<Values> parts(static_cast<size_t>(count(kept)));
    for_each_index(dims, [&](const Dims& index) {
      parts[position(index, kept)].push_back(x.values[position(index, dims)]);
    });
    Case c;
    Values y;
    size_t most = 1;
    for (const Values& part : parts) {
      const double value = fn(part);
      y.push_back(nothing && form.of_nothing && part.size() == 1 ? part[0]
                  : is_float(dtype)                              ? value
                                                                 : std::trunc(value));
      most = std::max(most, part.size());
    }
    c.inputs = {
        x, axes.empty() && !nothing ? Data{} : integers({static_cast<int64_t>(axes.size())}, axes)};
    c.outputs = {expected(dtype, out, y)};
    c.attrs = {{"keepdims", int64_t{keep}}, {"noop_with_empty_axes", int64_t{nothing}}};
    c.relative = 8;
    c.absolute = is_float(dtype) ? 9 * step_error(dtype) * static_cast<double>(most) : 0;
    return c;
  };
}

// Cases whose axes reduce something, so that the operator is never the identity.
Generator reduce_some(ReduceFn fn, ReduceForm form, double whole_error = 0) {
  return [=](Random& r, pfrt_dtype dtype, int64_t size) {
    Case c;
    do c = reduce(fn, form)(r, dtype, size);
    while (std::get<int64_t>(c.attrs[1].value) != 0);
    if (!is_float(dtype)) c.absolute = whole_error;
    return c;
  };
}

Generator arg(bool greatest) {
  return [=](Random& r, pfrt_dtype dtype, int64_t size) {
    const Dims dims = r.dims_without_0(static_cast<size_t>(r.from_to(1, 4)), size);
    const auto axis = static_cast<size_t>(r.below(static_cast<int64_t>(dims.size())));
    Data x = r.data(dtype, dims);
    for (double& v : x.values) v = std::round(v);  // makes equal values
    const bool last = r.once_in(2), keep = r.once_in(2);
    Values y;
    for_each_line(dims, axis, [&](const std::vector<size_t>& at) {
      size_t best = 0;
      for (size_t k = 1; k < at.size(); ++k) {
        const double a = x.values[at[k]], b = x.values[at[best]];
        if (std::isnan(b)) break;  // the first NaN is the result
        if ((greatest ? a > b : a < b) || std::isnan(a) || (last && a == b)) best = k;
      }
      y.push_back(static_cast<double>(best));
    });
    Dims out = dims;
    out[axis] = 1;
    if (!keep) out.erase(out.begin() + static_cast<int64_t>(axis));
    Case c;
    c.inputs = {x};
    c.outputs = {expected(PFRT_DTYPE_INT64, out, y)};
    c.attrs = {{"axis", static_cast<int64_t>(axis)},
               {"keepdims", int64_t{keep}},
               {"select_last_index", int64_t{last}}};
    return c;
  };
}

Generator cumulative(bool product) {
  return [=](Random& r, pfrt_dtype dtype, int64_t size) {
    const Dims dims = r.dims(static_cast<size_t>(r.from_to(1, 3)), size);
    const auto axis = static_cast<size_t>(r.below(static_cast<int64_t>(dims.size())));
    const Data x = product ? r.data(dtype, dims, 0.99, 1.01) : r.data(dtype, dims);
    const bool exclusive = r.once_in(2), reverse = r.once_in(2);
    Values y = x.values;
    for_each_line(dims, axis, [&](std::vector<size_t> at) {
      if (reverse) std::reverse(at.begin(), at.end());
      double total = product ? 1 : 0;
      for (size_t i : at) {
        const double next = product ? total * x.values[i] : total + x.values[i];
        y[i] = exclusive ? total : next;
        total = next;
      }
    });
    Case c;
    c.inputs = {x, integers({}, {static_cast<int64_t>(axis)}, r.once_in(2))};
    c.outputs = {expected(dtype, dims, y)};
    c.attrs = {{"exclusive", int64_t{exclusive}}, {"reverse", int64_t{reverse}}};
    const auto length = static_cast<double>(dims[axis]);
    c.relative = 2 + (product ? length : 0);
    c.absolute = is_float(dtype) ? 3 * length * length * step_error(dtype) : 0;
    return c;
  };
}

// Orders numbers, with NaN after all of them.
bool before(double a, double b) { return !std::isnan(a) && (std::isnan(b) || a < b); }

Case top_k(Random& r, pfrt_dtype dtype, int64_t size) {
  const Dims dims = r.dims_without_0(static_cast<size_t>(r.from_to(1, 3)), size);
  const auto axis = static_cast<size_t>(r.below(static_cast<int64_t>(dims.size())));
  Data x = r.data(dtype, dims);
  for (double& v : x.values) v = std::round(v);
  const int64_t k = r.below(dims[axis] + 1);
  const bool largest = r.once_in(2);
  Dims out = dims;
  out[axis] = k;
  Values best(static_cast<size_t>(count(out))), where(best.size());
  size_t line = 0;
  const auto inner = static_cast<size_t>(std::accumulate(
      dims.begin() + static_cast<int64_t>(axis) + 1, dims.end(), int64_t{1}, std::multiplies<>()));
  for_each_line(dims, axis, [&](const std::vector<size_t>& at) {
    const Values v = gathered(x.values, at);
    std::vector<size_t> order(v.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return largest ? before(v[b], v[a]) : before(v[a], v[b]);
    });
    for (size_t i = 0; i < static_cast<size_t>(k); ++i) {
      const size_t to = (line / inner * static_cast<size_t>(k) + i) * inner + line % inner;
      best[to] = v[order[i]];
      where[to] = static_cast<double>(order[i]);
    }
    ++line;
  });
  Case c;
  c.inputs = {x, integers({1}, {k})};
  c.outputs = {expected(dtype, out, best), expected(PFRT_DTYPE_INT64, out, where)};
  c.attrs = {{"axis", static_cast<int64_t>(axis)}, {"largest", int64_t{largest}}};
  return c;
}

enum class Soft { kMax, kLog, kHard };

Generator soft(Soft form) {
  return [=](Random& r, pfrt_dtype dtype, int64_t size) {
    const Dims dims = r.dims(static_cast<size_t>(r.from_to(1, 4)), size);
    const auto axis = static_cast<size_t>(r.below(static_cast<int64_t>(dims.size())));
    const Data x = r.data(dtype, dims, -9, 9);
    Values y = x.values;
    for_each_line(dims, axis, [&](const std::vector<size_t>& at) {
      if (at.empty()) return;
      const Values v = gathered(x.values, at);
      const double most = greatest(v);
      const auto first = std::ranges::find_if(
          v, [&](double e) { return e == most || (std::isnan(e) && std::isnan(most)); });
      double total = 0;
      for (double e : v) total += std::exp(e - most);
      for (size_t k = 0; k < at.size(); ++k)
        y[at[k]] = form == Soft::kHard
                       ? static_cast<double>(first - v.begin() == static_cast<int64_t>(k))
                   : form == Soft::kLog ? v[k] - most - std::log(total)
                                        : std::exp(v[k] - most) / total;
    });
    Case c;
    c.inputs = {x};
    c.outputs = {expected(dtype, dims, y)};
    c.attrs = {{"axis", static_cast<int64_t>(axis)}};
    c.relative = form == Soft::kHard ? 0 : 40;
    c.absolute = form == Soft::kHard ? 0 : 40 * step_error(dtype);
    return c;
  };
}

Generators make() {
  const ReduceForm some{-3, 3, false}, ones{0.99, 1.01, true}, positive{1, 5, false};
  return {
      {"ReduceSum", reduce(sum)},
      {"ReduceMean",
       reduce([](const Values& v) { return sum(v) / static_cast<double>(v.size()); }, some)},
      {"ReduceMax", reduce(greatest, some)},
      {"ReduceMin", reduce(least, some)},
      {"ReduceProd", reduce(
                         [](const Values& v) {
                           return std::accumulate(v.begin(), v.end(), 1.0, std::multiplies<>());
                         },
                         ones)},
      {"ReduceL1", reduce_some([](const Values& v) { return sum_of(v, magnitude); }, some)},
      {"ReduceL2", reduce_some([](const Values& v) { return std::sqrt(sum_of(v, square)); }, some)},
      {"ReduceLogSum", reduce_some([](const Values& v) { return std::log(sum(v)); }, positive)},
      {"ReduceLogSumExp",
       reduce_some([](const Values& v) { return std::log(sum_of(v, std::exp)); }, some, 1)},
      {"ReduceSumSquare", reduce_some([](const Values& v) { return sum_of(v, square); }, some)},
      {"ArgMax", arg(true)},
      {"ArgMin", arg(false)},
      {"CumSum", cumulative(false)},
      {"CumProd", cumulative(true)},
      {"TopK", top_k},
      {"Softmax", soft(Soft::kMax)},
      {"LogSoftmax", soft(Soft::kLog)},
      {"Hardmax", soft(Soft::kHard)},
  };
}

}  // namespace

const Generators& reduce_cases() {
  static const Generators generators = make();
  return generators;
}

}  // namespace pfrt::test
