// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "test/optimise/builder.h"

namespace pfrt_optimise {

Value Builder::transpose(const Value& x, const Axes& perm) {
  Value out = x;
  for (size_t i = 0; i < perm.size(); ++i) out.dims[i] = x.dim(perm[i]);
  const bool reversed = std::is_sorted(perm.rbegin(), perm.rend());
  if (perm.empty() || (reversed && random.chance(50))) return add("Transpose", {x}, out);
  return add("Transpose", {x}, out, {{"perm", perm}});
}

Value Builder::reshape(const Value& x, const Axes& shape, const Dims& dims) {
  Value out = x;
  out.dims = dims;
  return add("Reshape", {x, ints(shape)}, out);
}

Value Builder::squeeze(const Value& x, Axes axes) {
  Value out = x;
  std::sort(axes.begin(), axes.end());
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis)
    out.dims.erase(out.dims.begin() + *axis);
  const bool all = std::none_of(out.dims.begin(), out.dims.end(),
                                [](const Dim& dim) { return dim.n == 1 || dim.symbol != 0; });
  if (all && !axes.empty() && random.chance(40)) return add("Squeeze", {x}, out);
  axes = spell_all(std::move(axes), x.rank());
  if (opset() >= 13) return add("Squeeze", {x, ints(axes)}, out);
  return add("Squeeze", {x}, out, {{"axes", axes}});
}

Value Builder::unsqueeze(const Value& x, Axes axes) {
  Value out = x;
  std::sort(axes.begin(), axes.end());
  for (int64_t axis : axes) out.dims.insert(out.dims.begin() + axis, Dim{1, 0});
  axes = spell_all(std::move(axes), out.rank());
  if (opset() >= 13) return add("Unsqueeze", {x, ints(axes)}, out);
  return add("Unsqueeze", {x}, out, {{"axes", axes}});
}

Value Builder::flatten(const Value& x, int64_t axis) {
  Dim rows{1, 0}, columns{1, 0};
  bool vary[2] = {false, false};
  for (int64_t i = 0; i < x.rank(); ++i) {
    Dim& part = i < axis ? rows : columns;
    part.n *= x.dim(i).n;
    vary[i < axis ? 0 : 1] |= x.dim(i).symbol != 0;
  }
  if (vary[0]) rows.symbol = axis == 1 ? x.dim(0).symbol : new_symbol();
  if (vary[1]) columns.symbol = new_symbol();
  Value out = x;
  out.dims = {rows, columns};
  if (axis == 1 && random.chance(50)) return add("Flatten", {x}, out);
  const int64_t spelt = axis < x.rank() ? spell(axis, x.rank()) : axis;
  return add("Flatten", {x}, out, {{"axis", spelt}});
}

Value Builder::slice(const Value& x, int64_t axis, int64_t start, int64_t end, int64_t step) {
  Value out = x;
  Dim& dim = out.dims[static_cast<size_t>(axis)];
  const int64_t last = std::min(end, dim.n);
  if (step > 0) {
    const int64_t length = std::max<int64_t>(0, last - start);
    dim.n = (length + step - 1) / step;
  } else {  // from |start| down to the first
    dim.n = start / -step + 1;
    end = INT64_MIN + 1;
  }
  if (dim.symbol != 0 && !(start == 0 && end > dim.n && step == 1)) dim.symbol = new_symbol();
  const int64_t spelt = spell(axis, x.rank(), 10);
  if (opset() < 10) {
    return add("Slice", {x}, out,
               {{"axes", Axes{spelt}}, {"starts", Axes{start}}, {"ends", Axes{end}}});
  }
  const Value starts = ints({start}), ends = ints({end});
  if (axis == 0 && step == 1 && random.chance(20)) return add("Slice", {x, starts, ends}, out);
  const Value axes = ints({spelt});
  if (step == 1 && random.chance(50)) return add("Slice", {x, starts, ends, axes}, out);
  return add("Slice", {x, starts, ends, axes, ints({step})}, out);
}

Values Builder::split(const Value& x, int64_t axis, const Axes& parts) {
  Values outs(parts.size(), x);
  for (size_t i = 0; i < parts.size(); ++i)
    outs[i].dims[static_cast<size_t>(axis)] = Dim{parts[i], 0};
  const int64_t spelt = spell(axis, x.rank());
  const bool equal =
      std::adjacent_find(parts.begin(), parts.end(), std::not_equal_to<>()) == parts.end();
  if (equal && random.chance(50)) {
    Attributes attributes = {{"axis", spelt}};
    if (opset() >= 18) attributes["num_outputs"] = static_cast<int64_t>(parts.size());
    return add_all("Split", {x}, outs, attributes);
  }
  if (opset() >= 13) return add_all("Split", {x, ints(parts)}, outs, {{"axis", spelt}});
  return add_all("Split", {x}, outs, {{"axis", spelt}, {"split", parts}});
}

Value Builder::concat(const Values& parts, int64_t axis) {
  Value out = parts[0];
  Dim& dim = out.dims[static_cast<size_t>(axis)];
  for (size_t i = 1; i < parts.size(); ++i) {
    const Dim& more = parts[i].dim(axis);
    dim.n += more.n;
    if (dim.symbol != 0 || more.symbol != 0) dim.symbol = new_symbol();
    out.low = std::min(out.low, parts[i].low);
    out.high = std::max(out.high, parts[i].high);
  }
  return add("Concat", parts, out, {{"axis", spell(axis, out.rank())}});
}

Value Builder::pad(const Value& x, const Axes& pads, const std::string& mode, double value) {
  Value out = x;
  for (size_t i = 0; i < out.dims.size(); ++i) {
    const int64_t more = pads[i] + pads[i + out.dims.size()];
    if (out.dims[i].symbol != 0 && more != 0) out.dims[i].symbol = new_symbol();
    out.dims[i].n += more;
  }
  out.low = std::min(out.low, value);
  out.high = std::max(out.high, value);
  const bool plain = mode == "constant" && random.chance(50);
  Attributes attributes;
  if (!plain) attributes["mode"] = mode;
  if (opset() < 11) {
    attributes["pads"] = pads;
    if (value != 0 || random.chance(30)) attributes["value"] = static_cast<float>(value);
    return add("Pad", {x}, out, attributes);
  }
  Values in = {x, ints(pads)};
  if (mode == "constant" && (value != 0 || random.chance(40)))
    in.push_back(constant_of(make_tensor(x.type, {}, {value}), value, value));
  return add("Pad", in, out, attributes);
}

Value Builder::gather(const Value& x, const Axes& indices, const Axes& index_dims, int64_t axis) {
  Value out = x;
  out.dims.erase(out.dims.begin() + axis);
  Dims inserted;
  for (int64_t n : index_dims) inserted.push_back({n, 0});
  out.dims.insert(out.dims.begin() + axis, inserted.begin(), inserted.end());
  const Tensor tensor = make_tensor(random.chance(80) ? DType::Int64 : DType::Int32, index_dims,
                                    {indices.begin(), indices.end()});
  Attributes attributes;
  if (axis != 0 || random.chance(50)) attributes["axis"] = spell(axis, x.rank());
  return add("Gather", {x, constant_of(tensor, 0, 0)}, out, attributes);
}

Value Builder::expand(const Value& x, const Axes& shape, const Dims& dims) {
  Value out = x;
  out.dims = dims;
  return add("Expand", {x, ints(shape)}, out);
}

Value Builder::tile(const Value& x, const Axes& repeats) {
  Value out = x;
  for (size_t i = 0; i < repeats.size(); ++i) {
    if (out.dims[i].symbol != 0 && repeats[i] != 1) out.dims[i].symbol = new_symbol();
    out.dims[i].n *= repeats[i];
  }
  return add("Tile", {x, ints(repeats)}, out);
}

Value Builder::shape(const Value& x) {
  return add("Shape", {x}, {"", DType::Int64, {{x.rank(), 0}}, 0, 16});
}

}  // namespace pfrt_optimise
