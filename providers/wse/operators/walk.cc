// SPDX-License-Identifier: Apache-2.0
#include "providers/wse/operators/walk.h"

namespace pfrt::wse {

int64_t axis_of(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) return -1;
  return axis < 0 ? axis + rank : axis;
}

int64_t elements_of(const Dims& dims, int64_t begin, int64_t end) {
  return element_count(dims.data() + begin, static_cast<size_t>(end - begin));
}

Dims strides_of(const Dims& dims) {
  Dims strides(dims.size());
  int64_t step = 1;
  for (size_t d = dims.size(); d-- > 0;) {
    strides[d] = step;
    step *= dims[d] > 0 ? dims[d] : 1;
  }
  return strides;
}

bool broadcasts(const Dims& from, const Dims& to) {
  if (from.size() > to.size()) return false;
  const size_t ahead = to.size() - from.size();
  for (size_t d = 0; d < from.size(); ++d)
    if (from[d] != 1 && from[d] != to[ahead + d]) return false;
  return true;
}

Dims broadcast_strides(const Dims& from, const Dims& to) {
  const Dims own = strides_of(from);
  const size_t ahead = to.size() - from.size();
  Dims strides(to.size(), 0);
  for (size_t d = 0; d < from.size(); ++d)
    if (from[d] != 1) strides[ahead + d] = own[d];
  return strides;
}

void collapse(Dims* dims, std::span<Dims> strides) {
  size_t kept = 0;
  for (size_t d = 0; d < dims->size(); ++d) {
    const int64_t size = (*dims)[d];
    if (size == 1) continue;
    bool joins = kept > 0;
    for (const Dims& s : strides) joins = joins && s[kept - 1] == s[d] * size;
    if (!joins) ++kept;
    (*dims)[kept - 1] = joins ? (*dims)[kept - 1] * size : size;
    for (Dims& s : strides) s[kept - 1] = s[d];
  }
  if (kept == 0) {
    dims->assign(1, 1);
    for (Dims& s : strides) s.assign(1, 0);
    return;
  }
  dims->resize(kept);
  for (Dims& s : strides) s.resize(kept);
}

namespace {

std::vector<int64_t> walk_offsets(const Dims& dims, const Dims& strides) {
  std::vector<int64_t> offsets;
  const int64_t count = element_count(dims.data(), dims.size());
  if (count <= 0) return offsets;
  offsets.reserve(static_cast<size_t>(count));
  Walk<1> walk(dims, {strides});
  do {
    offsets.push_back(walk.at()[0]);
  } while (walk.next());
  return offsets;
}

}  // namespace

Groups groups_of(const Dims& dims, const std::vector<bool>& reduced) {
  const Dims strides = strides_of(dims);
  Dims sizes[2], steps[2];
  for (size_t d = 0; d < dims.size(); ++d) {
    sizes[reduced[d]].push_back(dims[d]);
    steps[reduced[d]].push_back(strides[d]);
  }
  return {walk_offsets(sizes[0], steps[0]), walk_offsets(sizes[1], steps[1])};
}

}  // namespace pfrt::wse
