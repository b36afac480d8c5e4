// SPDX-License-Identifier: Apache-2.0
//
// Operators that use indices or depend on contents: selection, scattering, filling. They are
// written from the standard's text, element by element.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/dtype.h"
#include "test/providers/cpu/cases/cases.h"

namespace pfrt::test {
namespace {

Case with(std::vector<Data> inputs, std::vector<Data> outputs, std::vector<Attr> attrs = {}) {
  Case c;
  c.inputs = std::move(inputs);
  c.outputs = std::move(outputs);
  c.attrs = std::move(attrs);
  return c;
}

Data scalar(pfrt_dtype dtype, double value) { return expected(dtype, {}, {value}); }

Data int64_list(const Values& values) {
  return expected(PFRT_DTYPE_INT64, {static_cast<int64_t>(values.size())}, values);
}

// Returns an index below |length|, now and then counted from the end.
double some_index(Random& r, int64_t length) {
  return static_cast<double>(r.once_in(3) ? r.below(length) - length : r.below(length));
}

int64_t wrapped(double index, int64_t length) {
  return static_cast<int64_t>(index) + (index < 0 ? length : 0);
}

Data sparse_data(Random& r, pfrt_dtype dtype, Dims dims) {
  Data x = r.data(dtype, std::move(dims), -2, 2);
  for (double& v : x.values)
    if (r.once_in(3)) v = 0;
  return x;
}

Case compress(Random& r, pfrt_dtype dtype, int64_t size) {
  const Data x = r.data(dtype, r.dims(static_cast<size_t>(r.from_to(1, 3)), size), -9, 9);
  const bool flat = r.once_in(3);
  const size_t axis = static_cast<size_t>(r.below(static_cast<int64_t>(x.dims.size())));
  const int64_t length = flat ? count(x.dims) : x.dims[axis];
  Data condition = r.data(PFRT_DTYPE_BOOL, {r.from_to(0, length)}, 0, 1);
  std::vector<int64_t> kept;
  for (size_t i = 0; i < condition.values.size(); ++i)
    if (condition.values[i] != 0) kept.push_back(static_cast<int64_t>(i));
  Dims dims = flat ? Dims{0} : x.dims;
  dims[flat ? 0 : axis] = static_cast<int64_t>(kept.size());
  Values y;
  for_each_index(dims, [&](Dims index) {
    int64_t& at = index[flat ? 0 : axis];
    at = kept[static_cast<size_t>(at)];
    y.push_back(x.values[flat ? static_cast<size_t>(at) : position(index, x.dims)]);
  });
  Case c = with({x, condition}, {expected(dtype, dims, y)});
  if (!flat) c.attrs = {{"axis", static_cast<int64_t>(axis)}};
  c.outputs[0].late = true;
  return c;
}

Case non_zero(Random& r, pfrt_dtype dtype, int64_t size) {
  const Data x = sparse_data(r, dtype, r.dims(static_cast<size_t>(r.from_to(1, 4)), size));
  std::vector<Dims> found;
  for_each_index(x.dims, [&](const Dims& index) {
    if (x.values[position(index, x.dims)] != 0) found.push_back(index);
  });
  Values y;
  for (size_t d = 0; d < x.dims.size(); ++d)
    for (const Dims& index : found) y.push_back(static_cast<double>(index[d]));
  const Dims dims{static_cast<int64_t>(x.dims.size()), static_cast<int64_t>(found.size())};
  Case c = with({x}, {expected(PFRT_DTYPE_INT64, dims, y)});
  c.outputs[0].late = true;
  return c;
}

// Unique, whose slices along an axis are in order of first appearance, or sorted.
Case unique(Random& r, pfrt_dtype dtype, int64_t size) {
  const bool flat = r.once_in(2), sorted = r.once_in(2);
  const Data x =
      r.data(dtype, r.dims_without_0(static_cast<size_t>(r.from_to(1, 3)), size / 4), -2, 2);
  const size_t axis = flat ? 0 : static_cast<size_t>(r.below(static_cast<int64_t>(x.dims.size())));
  const Dims dims = flat ? Dims{count(x.dims)} : x.dims;
  std::vector<Values> slices(static_cast<size_t>(dims[axis]));
  for_each_index(dims, [&](const Dims& index) {
    slices[static_cast<size_t>(index[axis])].push_back(x.values[position(index, dims)]);
  });
  std::vector<Values> kinds;
  for (const Values& slice : slices)
    if (std::find(kinds.begin(), kinds.end(), slice) == kinds.end()) kinds.push_back(slice);
  if (sorted) std::sort(kinds.begin(), kinds.end());
  Values first, inverse, counts(kinds.size(), 0);
  for (const Values& kind : kinds)
    first.push_back(
        static_cast<double>(std::find(slices.begin(), slices.end(), kind) - slices.begin()));
  for (const Values& slice : slices) {
    const auto kind = std::find(kinds.begin(), kinds.end(), slice) - kinds.begin();
    inverse.push_back(static_cast<double>(kind));
    ++counts[static_cast<size_t>(kind)];
  }
  Dims out = dims;
  out[axis] = static_cast<int64_t>(kinds.size());
  Values y;
  for_each_index(out, [&](Dims index) {
    index[axis] = static_cast<int64_t>(first[static_cast<size_t>(index[axis])]);
    y.push_back(x.values[position(index, dims)]);
  });
  Case c = with(
      {x}, {expected(dtype, out, y), int64_list(first), int64_list(inverse), int64_list(counts)},
      {{"sorted", int64_t{sorted}}});
  if (!flat) c.attrs.push_back({"axis", static_cast<int64_t>(axis)});
  for (Data& output : c.outputs) output.late = true;
  if (r.once_in(3)) c.outputs[1] = {};
  return c;
}

Case gather_nd(Random& r, pfrt_dtype dtype, int64_t size) {
  const size_t rank = static_cast<size_t>(r.from_to(1, 4));
  const Data x = r.data(dtype, r.dims_without_0(rank, size), -9, 9);
  const size_t batch = static_cast<size_t>(r.below(static_cast<int64_t>(rank)));
  const size_t depth = static_cast<size_t>(r.from_to(1, static_cast<int64_t>(rank - batch)));
  Dims dims(x.dims.begin(), x.dims.begin() + static_cast<int64_t>(batch));
  const Dims middle = r.dims(static_cast<size_t>(r.below(3)), 30);
  dims.insert(dims.end(), middle.begin(), middle.end());
  const Dims lead = dims;
  dims.push_back(static_cast<int64_t>(depth));
  Data indices = r.data(PFRT_DTYPE_INT64, dims, 0, 0);
  for (size_t i = 0; i < indices.values.size(); ++i)
    indices.values[i] = some_index(r, x.dims[batch + i % depth]);
  Dims out = lead;
  out.insert(out.end(), x.dims.begin() + static_cast<int64_t>(batch + depth), x.dims.end());
  Values y;
  for_each_index(out, [&](const Dims& index) {
    Dims tuple(index.begin(), index.begin() + static_cast<int64_t>(lead.size()));
    Dims from(index.begin(), index.begin() + static_cast<int64_t>(batch));
    tuple.push_back(0);
    for (size_t k = 0; k < depth; ++k) {
      tuple.back() = static_cast<int64_t>(k);
      size_t at = 0;
      for (size_t d = 0; d < dims.size(); ++d)
        at = at * static_cast<size_t>(dims[d]) + static_cast<size_t>(tuple[d]);
      from.push_back(wrapped(indices.values[at], x.dims[batch + k]));
    }
    from.insert(from.end(), index.begin() + static_cast<int64_t>(lead.size()), index.end());
    y.push_back(x.values[position(from, x.dims)]);
  });
  return with({x, indices}, {expected(dtype, out, y)},
              {{"batch_dims", static_cast<int64_t>(batch)}});
}

// Combines an element with its update; |mode| is the attribute's text.
double combined(const std::string& mode, double old, double update) {
  if (mode == "add") return old + update;
  if (mode == "mul") return old * update;
  if (mode == "max") return std::max(old, update);
  if (mode == "min") return std::min(old, update);
  return update;
}

std::string some_reduction(Random& r, pfrt_dtype dtype) {
  const char* const modes[] = {"none", "add", "mul", "max", "min"};
  const bool numbers = dtype != PFRT_DTYPE_BOOL && dtype != PFRT_DTYPE_COMPLEX64 &&
                       dtype != PFRT_DTYPE_COMPLEX128 && dtype != PFRT_DTYPE_FLOAT8E5M2;
  return modes[numbers ? r.below(5) : 0];
}

// Returns small values: sums and products of a few of them are exact in every type.
Data small_data(Random& r, pfrt_dtype dtype, Dims dims) {
  Data x = r.data(dtype, std::move(dims), 0, 2);
  for (double& v : x.values) v = std::round(v);
  return x;
}

// There are duplicates only with a reduction: without one, any of the writes may win.
Case scatter_elements(Random& r, pfrt_dtype dtype, int64_t size) {
  const Data x = small_data(r, dtype, r.dims_without_0(static_cast<size_t>(r.from_to(1, 3)), size));
  const size_t axis = static_cast<size_t>(r.below(static_cast<int64_t>(x.dims.size())));
  const std::string mode = some_reduction(r, dtype);
  Dims dims = x.dims;
  for (size_t d = 0; d < dims.size(); ++d)
    if (r.once_in(2)) dims[d] = r.from_to(1, dims[d]);
  const int64_t length = x.dims[axis];
  if (mode == "none") {
    dims[axis] = std::min(dims[axis], length);
  } else {
    dims[axis] = std::min<int64_t>(dims[axis], 4);  // few enough to stay exact
  }
  Data indices = r.data(r.once_in(2) ? PFRT_DTYPE_INT32 : PFRT_DTYPE_INT64, dims, 0, 0);
  const int64_t shift = r.below(length);
  Dims at(dims.size());
  size_t i = 0;
  for_each_index(dims, [&](const Dims& index) {
    const int64_t to = mode == "none" ? (index[axis] + shift) % length : r.below(length);
    indices.values[i++] = static_cast<double>(r.once_in(3) ? to - length : to);
  });
  const Data updates = small_data(r, dtype, dims);
  Values y = x.values;
  i = 0;
  for_each_index(dims, [&](Dims index) {
    index[axis] = wrapped(indices.values[i], length);
    double& target = y[position(index, x.dims)];
    target = combined(mode, target, updates.values[i++]);
  });
  return with({x, indices, updates}, {expected(dtype, x.dims, y)},
              {{"axis", static_cast<int64_t>(axis)}, {"reduction", mode}});
}

Case scatter_nd(Random& r, pfrt_dtype dtype, int64_t size) {
  const Data x = small_data(r, dtype, r.dims_without_0(static_cast<size_t>(r.from_to(1, 3)), size));
  const size_t depth = static_cast<size_t>(r.from_to(1, static_cast<int64_t>(x.dims.size())));
  const std::string mode = some_reduction(r, dtype);
  const int64_t cells = count(Dims(x.dims.begin(), x.dims.begin() + static_cast<int64_t>(depth)));
  const int64_t tuples = mode == "none" ? r.from_to(0, std::min<int64_t>(cells, 9)) : r.below(5);
  const int64_t first = r.below(cells);
  Values at;
  std::vector<Dims> targets;
  for (int64_t t = 0; t < tuples; ++t) {
    int64_t cell = mode == "none" ? (first + t) % cells : r.below(cells);
    Dims target(depth);
    for (size_t d = depth; d-- > 0; cell /= x.dims[d]) target[d] = cell % x.dims[d];
    for (size_t d = 0; d < depth; ++d)
      at.push_back(static_cast<double>(r.once_in(3) ? target[d] - x.dims[d] : target[d]));
    targets.push_back(target);
  }
  const Data indices =
      expected(PFRT_DTYPE_INT64, {tuples, static_cast<int64_t>(depth)}, std::move(at));
  Dims dims(x.dims.begin() + static_cast<int64_t>(depth), x.dims.end());
  const Dims slice = dims;
  dims.insert(dims.begin(), tuples);
  const Data updates = small_data(r, dtype, dims);
  Values y = x.values;
  size_t i = 0;
  for (const Dims& target : targets)
    for_each_index(slice, [&](const Dims& inner) {
      Dims index = target;
      index.insert(index.end(), inner.begin(), inner.end());
      double& cell = y[position(index, x.dims)];
      cell = combined(mode, cell, updates.values[i++]);
    });
  return with({x, indices, updates}, {expected(dtype, x.dims, y)}, {{"reduction", mode}});
}

Case eye_like(Random& r, pfrt_dtype dtype, int64_t size) {
  const Dims dims = r.dims(2, size);
  const int64_t k = r.from_to(-dims[0] - 1, dims[1] + 1);
  Values y;
  for_each_index(dims, [&](const Dims& at) { y.push_back(at[1] - at[0] == k ? 1 : 0); });
  return with({r.data(dtype, dims)}, {expected(dtype, dims, y)}, {{"k", k}});
}

Case one_hot(Random& r, pfrt_dtype dtype, int64_t size) {
  const int64_t depth = r.from_to(1, 9);
  const Dims dims = r.dims(static_cast<size_t>(r.below(4)), size / depth + 1);
  Data indices = r.data(r.once_in(2) ? PFRT_DTYPE_INT64 : PFRT_DTYPE_FLOAT32, dims,
                        static_cast<double>(-depth - 2), static_cast<double>(depth + 2));
  for (double& v : indices.values) v = std::round(v);
  const Data values = r.data(dtype, {2}, 0, 9);
  const size_t axis = static_cast<size_t>(r.below(static_cast<int64_t>(dims.size()) + 1));
  Dims out = dims;
  out.insert(out.begin() + static_cast<int64_t>(axis), depth);
  Values y;
  for_each_index(out, [&](Dims index) {
    const int64_t at = index[axis];
    index.erase(index.begin() + static_cast<int64_t>(axis));
    const double hot = indices.values[position(index, dims)];
    const bool on = hot == static_cast<double>(at) ||
                    hot + static_cast<double>(depth) == static_cast<double>(at);
    y.push_back(values.values[on ? 1 : 0]);
  });
  Case c = with({indices, scalar(PFRT_DTYPE_INT64, static_cast<double>(depth)), values},
                {expected(dtype, out, y)}, {{"axis", static_cast<int64_t>(axis)}});
  c.outputs[0].late = r.once_in(2);
  return c;
}

Case trilu(Random& r, pfrt_dtype dtype, int64_t size) {
  const Data x = r.data(dtype, r.dims(static_cast<size_t>(r.from_to(2, 4)), size), -9, 9);
  const int64_t upper = r.below(2), k = r.from_to(-9, 9);
  const bool given = r.once_in(2);
  Values y;
  for_each_index(x.dims, [&](const Dims& at) {
    const int64_t offset = at[at.size() - 1] - at[at.size() - 2] - (given ? k : 0);
    const bool kept = upper != 0 ? offset >= 0 : offset <= 0;
    y.push_back(kept ? x.values[position(at, x.dims)] : 0);
  });
  Case c = with({x}, {expected(dtype, x.dims, y)}, {{"upper", upper}});
  if (given) c.inputs.push_back(scalar(PFRT_DTYPE_INT64, static_cast<double>(k)));
  return c;
}

Case range(Random& r, pfrt_dtype dtype, int64_t size) {
  const bool falling = is_float(dtype) || dtype_is_signed(dtype) ? r.once_in(2) : false;
  const double start = static_cast<double>(r.from_to(falling ? 20 : 0, 30));
  // There are so few elements that each is exact in the shortest type.
  const int64_t n = r.below(std::min<int64_t>(size, 12));
  const double step = static_cast<double>(r.from_to(1, 3)) * (falling ? -1 : 1);
  const double limit = start + step * static_cast<double>(n);
  Values y;
  for (int64_t i = 0; i < n; ++i) y.push_back(start + step * static_cast<double>(i));
  Case c = with({scalar(dtype, start), scalar(dtype, limit), scalar(dtype, step)},
                {expected(dtype, {n}, y)});
  c.outputs[0].late = r.once_in(2);
  return c;
}

Case constant_of_shape(Random& r, pfrt_dtype, int64_t size) {
  const Dims dims = r.dims(static_cast<size_t>(r.below(4)), size);
  const Data shape = integers({static_cast<int64_t>(dims.size())}, dims, r.once_in(2));
  Case c = with({shape},
                {expected(PFRT_DTYPE_FLOAT32, dims, Values(static_cast<size_t>(count(dims)), 0))});
  c.outputs[0].late = !shape.constant && !dims.empty();
  return c;
}

Case shape_of(Random& r, pfrt_dtype dtype, int64_t size) {
  const Data x = r.data(dtype, r.dims(static_cast<size_t>(r.below(5)), size));
  Values y(x.dims.begin(), x.dims.end());
  return with({x}, {expected(PFRT_DTYPE_INT64, {static_cast<int64_t>(y.size())}, y)});
}

Case size_of(Random& r, pfrt_dtype dtype, int64_t size) {
  const Data x = r.data(dtype, r.dims(static_cast<size_t>(r.below(5)), size));
  return with({x}, {scalar(PFRT_DTYPE_INT64, static_cast<double>(count(x.dims)))});
}

// Shares of a box's area, in double; coordinates are multiples of 1/8, so that float is exact.
double shared_share(const double* a, const double* b) {
  const auto overlap = [&](int i) {
    return std::max(0.0, std::min(std::max(a[i], a[i + 2]), std::max(b[i], b[i + 2])) -
                             std::max(std::min(a[i], a[i + 2]), std::min(b[i], b[i + 2])));
  };
  const auto area = [](const double* x) { return std::fabs((x[2] - x[0]) * (x[3] - x[1])); };
  const double both = overlap(0) * overlap(1), either = area(a) + area(b) - both;
  return either > 0 ? both / either : 0;
}

Case suppression(Random& r, pfrt_dtype, int64_t size) {
  const int64_t batch = r.from_to(1, 2), classes = r.from_to(1, 3);
  const int64_t n = r.from_to(1, std::min<int64_t>(size / 10, 60));
  Data boxes = r.data(PFRT_DTYPE_FLOAT32, {batch, n, 4}, 0, 8);
  for (double& v : boxes.values) v = std::round(v * 8) / 8;
  const Data scores = r.data(PFRT_DTYPE_FLOAT32, {batch, classes, n}, 0, 1);
  const int64_t most = r.from_to(0, 9);
  const double threshold = 0.3125, least = 0.25;  // shares of eighths rarely meet it
  const bool by_score = r.once_in(2);
  Values y;
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t k = 0; k < classes; ++k) {
      const double* score = &scores.values[static_cast<size_t>((b * classes + k) * n)];
      const double* box = &boxes.values[static_cast<size_t>(b * n * 4)];
      std::vector<int64_t> order(static_cast<size_t>(n)), kept;
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(),
                       [&](int64_t i, int64_t j) { return score[i] > score[j]; });
      for (const int64_t i : order) {
        if (static_cast<int64_t>(kept.size()) == most) break;
        if (by_score && score[i] <= least) continue;
        const bool hidden = std::any_of(kept.begin(), kept.end(), [&](int64_t j) {
          return shared_share(box + 4 * i, box + 4 * j) > threshold;
        });
        if (!hidden) kept.push_back(i);
      }
      for (const int64_t i : kept)
        for (const int64_t v : {b, k, i}) y.push_back(static_cast<double>(v));
    }
  Case c = with({boxes, scores, scalar(PFRT_DTYPE_INT64, static_cast<double>(most)),
                 scalar(PFRT_DTYPE_FLOAT32, threshold)},
                {expected(PFRT_DTYPE_INT64, {static_cast<int64_t>(y.size() / 3), 3}, y)},
                {{"center_point_box", int64_t{0}}});
  if (by_score) c.inputs.push_back(scalar(PFRT_DTYPE_FLOAT32, least));
  c.outputs[0].late = true;
  return c;
}

}  // namespace

const Generators& index_cases() {
  static const Generators generators = {
      {"Compress", compress},
      {"NonZero", non_zero},
      {"Unique", unique},
      {"GatherND", gather_nd},
      {"ScatterElements", scatter_elements},
      {"ScatterND", scatter_nd},
      {"EyeLike", eye_like},
      {"OneHot", one_hot},
      {"Trilu", trilu},
      {"Range", range},
      {"ConstantOfShape", constant_of_shape},
      {"Shape", shape_of},
      {"Size", size_of},
      {"NonMaxSuppression", suppression},
  };
  return generators;
}

}  // namespace pfrt::test
