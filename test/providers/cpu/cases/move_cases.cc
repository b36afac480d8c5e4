// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "test/providers/cpu/cases/cases.h"

namespace pfrt::test {
namespace {

// Returns an output of |dims| whose element at an index is the input's at source(index), or |other|
// where that is outside.
using Source = std::function<Dims(const Dims&)>;
Data moved(const Data& x, Dims dims, const Source& source, double other = 0) {
  Values y;
  for_each_index(dims, [&](const Dims& index) {
    const Dims from = source(index);
    bool inside = true;
    for (size_t i = 0; i < from.size(); ++i) inside = inside && from[i] >= 0 && from[i] < x.dims[i];
    y.push_back(inside ? x.values[position(from, x.dims)] : other);
  });
  return expected(x.dtype, std::move(dims), std::move(y));
}

Case one(Data x, Data y, std::vector<Attr> attrs = {}) {
  Case c;
  c.inputs = {std::move(x)};
  c.outputs = {std::move(y)};
  c.attrs = std::move(attrs);
  return c;
}

Data some_data(Random& r, pfrt_dtype dtype, int64_t size, int64_t least_rank = 1) {
  return r.data(dtype, r.dims(static_cast<size_t>(r.from_to(least_rank, 4)), size), -9, 9);
}

size_t some_axis(Random& r, const Data& x) {
  return static_cast<size_t>(r.below(static_cast<int64_t>(x.dims.size())));
}

Data list(const Dims& values) { return integers({static_cast<int64_t>(values.size())}, values); }

// Keeps the elements and changes the shape; the second input is a constant that only this node
// needs.
Case reshape(Random& r, pfrt_dtype dtype, int64_t size) {
  const Data x = some_data(r, dtype, size, 0);
  Data y = x;
  y.dims = {1, count(x.dims), 1};
  Case c = one(x, y);
  c.inputs.push_back(list(y.dims));
  return c;
}

Case flatten(Random& r, pfrt_dtype dtype, int64_t size) {
  const Data x = some_data(r, dtype, size);
  const size_t axis = some_axis(r, x);
  Data y = x;
  const auto middle = x.dims.begin() + static_cast<int64_t>(axis);
  y.dims = {count(Dims(x.dims.begin(), middle)), count(Dims(middle, x.dims.end()))};
  return one(x, y, {{"axis", static_cast<int64_t>(axis)}});
}

Case squeeze(Random& r, pfrt_dtype dtype, int64_t size, bool un) {
  Data x = some_data(r, dtype, size), y = x;
  const auto axis = static_cast<int64_t>(some_axis(r, x));
  (un ? y : x).dims.insert((un ? y : x).dims.begin() + axis, 1);
  Case c = one(x, y);
  c.inputs.push_back(list({axis}));
  return c;
}

Case transpose(Random& r, pfrt_dtype dtype, int64_t size) {
  const Data x = some_data(r, dtype, size, 0);
  const size_t rank = x.dims.size();
  Dims perm(rank), dims(rank);
  std::iota(perm.begin(), perm.end(), 0);
  const bool given = r.once_in(2);
  if (given)
    for (size_t i = rank; i > 1; --i)
      std::swap(perm[i - 1], perm[static_cast<size_t>(r.below(static_cast<int64_t>(i)))]);
  else
    std::reverse(perm.begin(), perm.end());
  for (size_t i = 0; i < rank; ++i) dims[i] = x.dims[static_cast<size_t>(perm[i])];
  const Data y = moved(x, dims, [&](const Dims& index) {
    Dims from(rank);
    for (size_t i = 0; i < rank; ++i) from[static_cast<size_t>(perm[i])] = index[i];
    return from;
  });
  return one(x, y, given ? std::vector<Attr>{{"perm", perm}} : std::vector<Attr>{});
}

Case expand(Random& r, pfrt_dtype dtype, int64_t size) {
  const Dims dims = r.dims(static_cast<size_t>(r.below(5)), size);
  const Data x = r.data(dtype, r.broadcast_to(dims), -9, 9);
  Values y;
  for_each_index(dims, [&](const Dims& index) { y.push_back(x.values[position(index, x.dims)]); });
  Case c = one(x, expected(dtype, dims, y));
  c.inputs.push_back(list(dims));
  return c;
}

Case tile(Random& r, pfrt_dtype dtype, int64_t size) {
  const Data x = some_data(r, dtype, size / 4);
  Dims repeats, dims = x.dims;
  for (int64_t& d : dims) {
    repeats.push_back(r.from_to(r.once_in(9) ? 0 : 1, 2));
    d *= repeats.back();
  }
  Case c = one(x, moved(x, dims, [&](Dims index) {
                 for (size_t i = 0; i < index.size(); ++i) index[i] %= x.dims[i];
                 return index;
               }));
  c.inputs.push_back(list(repeats));
  return c;
}

Case depth_to_space(Random& r, pfrt_dtype dtype, int64_t size, bool back) {
  const int64_t b = r.from_to(1, 3);
  const bool crd = r.once_in(2);
  Dims dims = r.dims(4, size / 9);  // dimensions of the deep side
  const int64_t channels = dims[1];
  dims[1] *= b * b;
  const Dims wide{dims[0], channels, dims[2] * b, dims[3] * b};
  // Returns the index on the deep side of the element at |index| of the wide side.
  const auto deep = [&](const Dims& index) {
    const int64_t block = index[2] % b * b + index[3] % b;
    const int64_t at = crd ? index[1] * b * b + block : block * channels + index[1];
    return Dims{index[0], at, index[2] / b, index[3] / b};
  };
  const std::vector<Attr> attrs = {{"blocksize", b}, {"mode", std::string(crd ? "CRD" : "DCR")}};
  if (!back) {
    const Data x = r.data(dtype, dims, -9, 9);
    return one(x, moved(x, wide, deep), attrs);
  }
  const Data x = r.data(dtype, wide, -9, 9);
  Values y(x.values.size());
  for_each_index(wide, [&](const Dims& index) {
    y[position(deep(index), dims)] = x.values[position(index, wide)];
  });
  return one(x, expected(dtype, dims, y), attrs);
}

// Cuts |whole| along |axis| into pieces of random lengths.
std::vector<Data> pieces(Random& r, const Data& whole, size_t axis, Dims& lengths) {
  std::vector<Data> out;
  int64_t begin = 0;
  for (int64_t left = whole.dims[axis], n = r.from_to(1, 4); n > 0; --n) {
    const int64_t length = n == 1 ? left : r.below(left + 1);
    Dims dims = whole.dims;
    dims[axis] = length;
    out.push_back(moved(whole, dims, [&](Dims index) {
      index[axis] += begin;
      return index;
    }));
    lengths.push_back(length);
    begin += length;
    left -= length;
  }
  return out;
}

Case concat(Random& r, pfrt_dtype dtype, int64_t size) {
  const Data y = some_data(r, dtype, size);
  const size_t axis = some_axis(r, y);
  Dims lengths;
  Case c;
  c.inputs = pieces(r, y, axis, lengths);
  c.outputs = {y};
  c.attrs = {{"axis", static_cast<int64_t>(axis)}};
  return c;
}

Case split(Random& r, pfrt_dtype dtype, int64_t size) {
  const Data x = some_data(r, dtype, size);
  const size_t axis = some_axis(r, x);
  Dims lengths;
  Case c;
  c.outputs = pieces(r, x, axis, lengths);
  c.inputs = {x, list(lengths)};
  c.attrs = {{"axis", static_cast<int64_t>(axis)}};
  return c;
}

Case slice(Random& r, pfrt_dtype dtype, int64_t size) {
  const Data x = some_data(r, dtype, size);
  Dims starts, ends, axes, steps, dims = x.dims, first(dims.size(), 0), step(dims.size(), 1);
  for (size_t i = 0; i < dims.size(); ++i) {
    if (r.once_in(3)) continue;
    const int64_t d = dims[i];
    const int64_t s = r.from_to(1, 3) * (r.once_in(3) ? -1 : 1);
    const int64_t start = r.from_to(-d - 1, d + 1), end = r.from_to(-d - 2, d + 1);
    const auto bound = [&](int64_t v, int64_t low, int64_t high) {
      return std::clamp(v < 0 ? v + d : v, low, high);
    };
    const int64_t from = s > 0 ? bound(start, 0, d) : std::min(bound(start, 0, d - 1), d - 1);
    const int64_t to = s > 0 ? bound(end, 0, d) : bound(end, -1, d - 1);
    if (d == 0) continue;
    const int64_t span = s > 0 ? to - from : from - to;
    dims[i] = span <= 0 ? 0 : (span + std::abs(s) - 1) / std::abs(s);
    starts.push_back(start), ends.push_back(end), steps.push_back(s);
    axes.push_back(static_cast<int64_t>(i));
    first[i] = from, step[i] = s;
  }
  Case c = one(x, moved(x, dims, [&](Dims index) {
                 for (size_t i = 0; i < index.size(); ++i) index[i] = first[i] + index[i] * step[i];
                 return index;
               }));
  for (const Dims& each : {starts, ends, axes, steps}) c.inputs.push_back(list(each));
  return c;
}

Case pad(Random& r, pfrt_dtype dtype, int64_t size) {
  const char* const modes[] = {"constant", "edge", "reflect", "wrap"};
  const int64_t mode = r.below(4);
  const Data x = r.data(dtype, r.dims_without_0(static_cast<size_t>(r.from_to(1, 4)), size), -9, 9);
  const size_t rank = x.dims.size();
  Dims pads(2 * rank), dims = x.dims;
  for (size_t i = 0; i < rank; ++i)
    for (size_t side : {i, i + rank}) {
      const int64_t most = mode == 2   ? std::min<int64_t>(2, x.dims[i] - 1)
                           : mode == 3 ? std::min<int64_t>(2, x.dims[i])
                                       : 2;
      pads[side] = r.below(most + 1);
      dims[i] += pads[side];
    }
  const Data value = r.data(dtype, {}, 0, 5);
  const Data y = moved(
      x, dims,
      [&](Dims index) {
        for (size_t i = 0; i < rank; ++i) {
          const int64_t d = x.dims[i];
          int64_t& at = index[i];
          at -= pads[i];
          if (mode == 1) at = std::clamp<int64_t>(at, 0, d - 1);
          if (mode == 2) at = at < 0 ? -at : at >= d ? 2 * d - 2 - at : at;
          if (mode == 3) at = (at + d) % d;
        }
        return index;
      },
      value.values[0]);
  Case c = one(x, y, {{"mode", std::string(modes[mode])}});
  c.inputs.push_back(list(pads));
  c.inputs.push_back(value);
  return c;
}

Data some_indices(Random& r, Dims dims, int64_t length) {
  Data out = r.data(r.once_in(2) ? PFRT_DTYPE_INT32 : PFRT_DTYPE_INT64, std::move(dims), 0, 0);
  for (double& v : out.values) v = static_cast<double>(r.from_to(-length, length - 1));
  return out;
}

int64_t index_at(const Data& indices, size_t i, int64_t length) {
  const auto v = static_cast<int64_t>(indices.values[i]);
  return v < 0 ? v + length : v;
}

Case gather(Random& r, pfrt_dtype dtype, int64_t size) {
  const Data x = r.data(dtype, r.dims_without_0(static_cast<size_t>(r.from_to(1, 3)), size), -9, 9);
  const size_t axis = some_axis(r, x);
  const Data indices = some_indices(r, r.dims(static_cast<size_t>(r.below(3)), 20), x.dims[axis]);
  Dims dims(x.dims.begin(), x.dims.begin() + static_cast<int64_t>(axis));
  dims.insert(dims.end(), indices.dims.begin(), indices.dims.end());
  dims.insert(dims.end(), x.dims.begin() + static_cast<int64_t>(axis) + 1, x.dims.end());
  Case c = one(x,
               moved(x, dims,
                     [&](const Dims& index) {
                       const auto first = index.begin() + static_cast<int64_t>(axis);
                       const auto last = first + static_cast<int64_t>(indices.dims.size());
                       Dims from(index.begin(), first);
                       from.push_back(index_at(indices, position(Dims(first, last), indices.dims),
                                               x.dims[axis]));
                       from.insert(from.end(), last, index.end());
                       return from;
                     }),
               {{"axis", static_cast<int64_t>(axis)}});
  c.inputs.push_back(indices);
  return c;
}

Case gather_elements(Random& r, pfrt_dtype dtype, int64_t size) {
  const Data x = r.data(dtype, r.dims_without_0(static_cast<size_t>(r.from_to(1, 3)), size), -9, 9);
  const size_t axis = some_axis(r, x);
  Dims dims = x.dims;
  dims[axis] = r.below(9);
  const Data indices = some_indices(r, dims, x.dims[axis]);
  Case c = one(x,
               moved(x, dims,
                     [&](Dims index) {
                       index[axis] = index_at(indices, position(index, dims), x.dims[axis]);
                       return index;
                     }),
               {{"axis", static_cast<int64_t>(axis)}});
  c.inputs.push_back(indices);
  return c;
}

Case reverse_sequence(Random& r, pfrt_dtype dtype, int64_t size) {
  const Data x = r.data(dtype, r.dims_without_0(static_cast<size_t>(r.from_to(2, 4)), size), -9, 9);
  const size_t time = r.once_in(2) ? 1 : 0, batch = 1 - time;
  Data lengths = r.data(PFRT_DTYPE_INT64, {x.dims[batch]}, 1, static_cast<double>(x.dims[time]));
  Case c =
      one(x,
          moved(x, x.dims,
                [&](Dims index) {
                  const auto n =
                      static_cast<int64_t>(lengths.values[static_cast<size_t>(index[batch])]);
                  if (index[time] < n) index[time] = n - 1 - index[time];
                  return index;
                }),
          {{"time_axis", static_cast<int64_t>(time)}, {"batch_axis", static_cast<int64_t>(batch)}});
  c.inputs.push_back(lengths);
  return c;
}

}  // namespace

const Generators& move_cases() {
  static const Generators generators = {
      {"Reshape", reshape},
      {"Flatten", flatten},
      {"Squeeze", [](Random& r, pfrt_dtype d, int64_t s) { return squeeze(r, d, s, false); }},
      {"Unsqueeze", [](Random& r, pfrt_dtype d, int64_t s) { return squeeze(r, d, s, true); }},
      {"Transpose", transpose},
      {"Expand", expand},
      {"Tile", tile},
      {"DepthToSpace",
       [](Random& r, pfrt_dtype d, int64_t s) { return depth_to_space(r, d, s, false); }},
      {"SpaceToDepth",
       [](Random& r, pfrt_dtype d, int64_t s) { return depth_to_space(r, d, s, true); }},
      {"Concat", concat},
      {"Split", split},
      {"Slice", slice},
      {"Pad", pad},
      {"Gather", gather},
      {"GatherElements", gather_elements},
      {"ReverseSequence", reverse_sequence},
  };
  return generators;
}

}  // namespace pfrt::test
