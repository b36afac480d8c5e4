// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>

#include "test/optimise/families.h"

namespace pfrt_optimise {
namespace {

// Returns an image of one, or mostly two, dimensions.
Value want_image(Builder& b) {
  const int64_t rank = b.random.chance(75) ? 4 : 3;
  const DType type = b.random.chance(95) ? DType::Float32 : DType::Float16;
  if (b.random.chance(60)) {
    const auto found = b.pick([&](const Value& value) {
      if (value.type != type || value.rank() != rank || value.count() > kMaxElements) return false;
      for (int64_t i = 1; i < rank; ++i)
        if (value.dim(i).symbol != 0 || value.dim(i).n < (i == 1 ? 1 : 2)) return false;
      return value.count() > 0;
    });
    if (found) return *found;
  }
  Dims dims = b.random_dims(1, !b.is_body());
  dims[0].n = std::min<int64_t>(dims[0].n, 4);
  dims.push_back({b.random.of<int64_t>({1, 2, 3, 4, 6, 8}), 0});
  for (int64_t i = 2; i < rank; ++i) dims.push_back({b.random.of<int64_t>({4, 5, 6, 7}), 0});
  if (!b.is_body() && b.graph().inputs.size() < 5) return b.input(type, dims, -2, 2);
  return b.constant(type, sizes(dims), -2, 2);
}

Builder::Window some_window(Builder& b, const Value& x, bool keeps_size) {
  Builder::Window w;
  const size_t rank = x.dims.size() - 2;
  for (size_t i = 0; i < rank; ++i) {
    const int64_t n = x.dims[i + 2].n;
    w.kernel.push_back(n >= 3 ? b.random.of<int64_t>({1, 3, 3, keeps_size ? 3 : 2}) : 1);
    w.strides.push_back(keeps_size ? 1 : b.random.of<int64_t>({1, 1, 2}));
    w.dilations.push_back(!keeps_size && n >= 5 && b.random.chance(15) ? 2 : 1);
  }
  w.pads.assign(2 * rank, 0);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t most = w.kernel[i] / 2;
    w.pads[i] = keeps_size ? most : b.random.range(0, most);
    w.pads[i + rank] = keeps_size ? most : b.random.range(0, most);
  }
  return w;
}

Value per_channel(Builder& b, const Value& x) {
  Axes dims(static_cast<size_t>(x.rank() - 1), 1);
  dims[0] = x.dim(1).n;
  return b.constant(x.type, dims, 0.5, 1.5);
}

// A convolution with its surroundings: padding before; scale, normalisation, activation and
// residual after, in the orders of well-known networks.
void conv_block(Builder& b) {
  const Value start = want_image(b);
  Value x = start;
  if (b.random.chance(15)) x = b.batch_norm(x);
  if (b.random.chance(20)) {
    Axes amounts(2 * x.dims.size(), 0);
    for (size_t i = 2; i < x.dims.size(); ++i)
      for (size_t side : {i, i + x.dims.size()}) amounts[side] = b.random.range(0, 1);
    x = b.pad(x, amounts, "constant", b.random.chance(85) ? 0 : 1);
  }
  const bool residual = b.random.chance(40);
  for (int64_t i = b.random.range(1, 2); i > 0; --i) {
    const Builder::Window plain = some_window(b, x, residual);
    Builder::Window w = plain;
    const int64_t channels = x.dim(1).n;
    if (channels > 1 && b.random.chance(25))
      w.group = b.random.chance(60) || channels % 2 != 0 ? channels : 2;
    int64_t out = residual ? start.dim(1).n : b.random.of<int64_t>({2, 4, 6, 8});
    if (out % w.group != 0) out = channels;
    x = b.conv(x, out, w, b.random.chance(50));
    if (b.random.chance(50)) x = b.batch_norm(x);
    if (b.random.chance(20)) x = b.binary(b.random.of({"Mul", "Add"}), x, per_channel(b, x));
    if (b.random.chance(50)) x = activation(b, x);
  }
  if (residual && x.dims == start.dims) {
    x = b.random.chance(50) ? b.binary("Add", x, start) : b.binary("Add", start, x);
    if (b.random.chance(60)) activation(b, x);
  } else if (b.random.chance(30)) {
    Builder::Window w = some_window(b, x, false);
    std::fill(w.dilations.begin(), w.dilations.end(), 1);
    b.pool("MaxPool", x, w);
  }
}

void pools(Builder& b) {
  Value x = want_image(b);
  const int64_t kind = b.random.range(0, 3);
  if (kind == 0) {
    Value out = x;
    for (size_t i = 2; i < out.dims.size(); ++i) out.dims[i] = {1, 0};
    x = b.add(b.random.of({"GlobalAveragePool", "GlobalMaxPool"}), {x}, out);
    if (b.random.chance(60)) b.flatten(x, 1);
    return;
  }
  if (b.random.chance(25)) {
    Axes amounts(2 * x.dims.size(), 0);
    for (size_t i = 2; i < x.dims.size(); ++i) amounts[i] = amounts[i + x.dims.size()] = 1;
    x = b.pad(x, amounts, "constant", 0);
  }
  Builder::Window w = some_window(b, x, false);
  std::fill(w.dilations.begin(), w.dilations.end(), 1);
  x = b.pool(kind == 1 ? "AveragePool" : "MaxPool", x, w);
  if (b.random.chance(30)) b.batch_norm(x);
}

// A matrix product with constant weights, its bias and an activation, as a MatMul or a Gemm.
void dense(Builder& b) {
  Value x = b.want_float(2, 4);
  for (int64_t i = b.random.range(1, 2); i > 0; --i) {
    const Dim depth = x.dim(x.rank() - 1);
    if (depth.symbol != 0) return;
    const int64_t width = b.random.of<int64_t>({1, 2, 3, 4, 8, 12});
    if (x.count() / depth.n * width > kMaxElements) return;
    const double size = 1.7 / std::sqrt(static_cast<double>(depth.n));
    if (x.rank() == 2 && x.type == DType::Float32 && b.random.chance(50)) {
      const bool turned = b.random.chance(50);
      const Value w =
          b.constant(x.type, turned ? Axes{width, depth.n} : Axes{depth.n, width}, -size, size);
      std::optional<Value> c;
      if (b.opset() < 11 || b.random.chance(70))
        c = b.constant(x.type, b.random.of<Axes>({{width}, {1, width}, {1}}), -1, 1);
      Attributes attributes;
      if (turned) attributes["transB"] = int64_t{1};
      if (b.random.chance(20)) attributes["alpha"] = 0.5f;
      if (b.random.chance(20)) attributes["beta"] = 2.0f;
      x = b.gemm(x, w, c, attributes);
    } else {
      x = b.matmul(x, b.constant(x.type, {depth.n, width}, -size, size));
      if (b.random.chance(25)) x = b.binary("Mul", x, b.like(x, 0.5));
      const Value bias = b.constant(x.type, {width}, -1, 1);
      if (b.random.chance(75))
        x = b.random.chance(50) ? b.binary("Add", x, bias) : b.binary("Add", bias, x);
    }
    if (b.random.chance(60)) x = activation(b, x);
    if (b.opset() >= 17 && b.random.chance(20)) {
      if (b.random.chance(50)) x = b.binary("Add", x, b.partner(x));
      const Value y = normalised_rows(b, x);
      if (b.random.chance(50)) x = y;
    }
  }
}

// A product with constant weights, normalised as a matrix of rows or with its channels moved.
void normalised_product(Builder& b) {
  const Value x = b.want_float(3, 3);
  const Dim depth = x.dim(2), rows = x.dim(1);
  const int64_t width = b.random.of<int64_t>({2, 4, 6});
  if (depth.symbol != 0 || rows.symbol != 0 || x.count() / depth.n * width > kMaxElements) return;
  const double size = 1.7 / std::sqrt(static_cast<double>(depth.n));
  Value y = b.matmul(x, b.constant(x.type, {depth.n, width}, -size, size));
  if (b.random.chance(40)) y = b.binary("Add", y, b.constant(x.type, {width}, -1, 1));
  if (b.random.chance(15)) b.publish(y);
  const bool as_rows = x.dim(0).symbol == 0 && b.random.chance(60);
  if (as_rows)
    y = b.reshape(y, {-1, width}, {{x.dim(0).n * rows.n, 0}, {width, 0}});
  else
    y = b.transpose(y, {0, 2, 1});
  y = b.batch_norm(y);
  if (b.random.chance(50)) y = activation(b, y);
  if (as_rows && b.random.chance(70))
    b.reshape(y, {x.dim(0).n, rows.n, width}, {x.dim(0), rows, {width, 0}});
}

// Channels that are weighted by what the whole image says of them.
void weighted_channels(Builder& b) {
  const Value x = want_image(b);
  Value y = x;
  for (size_t i = 2; i < y.dims.size(); ++i) y.dims[i] = {1, 0};
  y = b.add("GlobalAveragePool", {x}, y);
  const int64_t taps = b.random.of<int64_t>({1, 1, 3});
  const size_t rank = x.dims.size() - 2;
  const Builder::Window w{Axes(rank, taps), Axes(rank, 1), Axes(rank, 1), Axes(2 * rank, taps / 2)};
  y = activation(b, b.conv(y, b.random.of<int64_t>({2, 3, 8}), w, true));
  y = b.conv(y, x.dim(1).n, w, b.random.chance(50));
  b.binary("Mul", x, b.unary("Sigmoid", y));
}

// A convolution whose taps are so far apart that some see padding alone.
void dilated(Builder& b) {
  const Value x = want_image(b);
  Builder::Window w;
  for (size_t i = 2; i < x.dims.size(); ++i) {
    w.kernel.push_back(b.random.of<int64_t>({1, 3, 3}));
    w.strides.push_back(b.random.of<int64_t>({1, 1, 2}));
    w.dilations.push_back(std::max<int64_t>(1, x.dims[i].n + b.random.range(-2, 2)));
  }
  for (int64_t side = 0; side < 2; ++side)
    for (size_t i = 0; i < w.kernel.size(); ++i) w.pads.push_back(w.kernel[i] / 2 * w.dilations[i]);
  b.conv(x, b.random.of<int64_t>({2, 4}), w, b.random.chance(50));
}

// Products, sums and transposes by letters.
void letters(Builder& b) {
  if (b.opset() < 12) return;
  const std::string equation =
      b.random.of({"ij,jk->ik", "bij,bjk->bik", "bhid,bhjd->bhij", "bhwc,hkc->bhwk",
                   "bnd,dhk->bhnk", "bhnk,hkd->bnd", "bi,bi->b", "i,j->ji", "nchw,nc->nchw",
                   "ijk->kj", "ij->j", "oi,bi->bo", "bn,bnd->bd", "bij,bjk,bkl->bil", "ii->i"});
  std::map<char, Dim> dims;
  const size_t arrow = equation.find("->");
  Values in;
  double high = 1, depth = 1;
  std::string term;
  for (size_t i = 0; i <= arrow; ++i) {
    if (i < arrow && equation[i] != ',') {
      term += equation[i];
      continue;
    }
    Dims own;
    for (const char letter : term) {
      const bool sums = equation.find(letter, arrow) == std::string::npos;
      const auto [at, is_new] = dims.try_emplace(letter, Dim{b.random.range(1, 4), 0});
      if (is_new && !sums && !b.is_body() && in.empty() && b.random.chance(20))
        at->second = b.varying_size();
      if (is_new && sums) depth *= static_cast<double>(at->second.n);
      own.push_back(at->second);
    }
    term.clear();
    const bool fed = !b.is_body() && b.graph().inputs.size() < 5;
    const bool varies = std::any_of(own.begin(), own.end(), [](const Dim& d) { return d.symbol; });
    if (varies && !fed) return;
    in.push_back(varies || (fed && b.random.chance(60))
                     ? b.input(DType::Float32, own, -2, 2)
                     : b.constant(DType::Float32, sizes(own), -2, 2));
    high *= 2;
  }
  Dims out;
  for (size_t i = arrow + 2; i < equation.size(); ++i) out.push_back(dims.at(equation[i]));
  b.add("Einsum", in, {"", DType::Float32, out, -high * depth, high * depth},
        {{"equation", equation}});
}

void products(Builder& b) {
  const Value x = b.want_float(2, 4);
  Value y = b.random.chance(50) ? b.unary("Identity", x) : elementwise_chain(b, x, 1);
  Axes perm;
  for (int64_t i = 0; i < x.rank(); ++i) perm.push_back(i);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  y = b.transpose(y, perm);
  const int64_t rows = x.dim(x.rank() - 2).n;
  if (x.count() / x.dim(x.rank() - 1).n * rows > kMaxElements) return;
  Value z = b.matmul(x, y);
  if (b.random.chance(50)) z = b.binary(b.random.of({"Mul", "Div"}), z, b.like(z, 2.0));
  if (b.random.chance(30)) activation(b, z);
}

Axes some_axes(Builder& b, const Value& x) {
  Axes axes;
  for (int64_t i = 0; i < x.rank(); ++i)
    if (b.random.chance(50)) axes.push_back(i);
  if (axes.empty()) axes.push_back(x.rank() - 1);
  return axes;
}

void reductions(Builder& b) {
  const Value x = b.random.chance(85) ? b.want_float(1, 4) : b.want(DType::Int64, 1, 3);
  std::vector<std::string> ops = {"ReduceSum", "ReduceMax", "ReduceMin"};
  if (is_float(x.type))
    ops.insert(ops.end(), {"ReduceMean", "ReduceMean", "ReduceL2", "ReduceL1", "ReduceLogSumExp",
                           "ReduceProd", "ReduceSumSquare"});
  Value y = b.reduce(b.random.of(ops), x, some_axes(b, x), b.random.chance(60));
  if (b.random.chance(20) && y.rank() > 0)
    b.reduce(b.random.of({"ReduceSum", "ReduceMax"}), y, some_axes(b, y), b.random.chance(60));
}

void softmaxes(Builder& b) {
  Value x = b.want_float(1, 4);
  if (b.random.chance(30)) x = b.binary("Add", x, b.partner(x));
  b.softmax(x, b.random.chance(60) ? x.rank() - 1 : b.random.range(0, x.rank() - 1),
            b.random.chance(20));
}

void searches(Builder& b) {
  const Value x = b.want(DType::Float32, 1, 3);
  const int64_t axis = b.random.range(0, x.rank() - 1);
  if (x.dim(axis).symbol != 0) return;
  if (b.random.chance(50)) {
    const bool keep = b.random.chance(50);
    Value out{"", DType::Int64, x.dims, 0, static_cast<double>(x.dim(axis).n)};
    out.dims.erase(out.dims.begin() + axis);
    if (keep) out.dims.insert(out.dims.begin() + axis, Dim{1, 0});
    b.add(b.random.of({"ArgMax", "ArgMin"}), {x}, out,
          {{"axis", b.spell(axis, x.rank())}, {"keepdims", int64_t{keep}}});
    return;
  }
  const int64_t k = b.random.range(1, x.dim(axis).n);
  Value values = x;
  values.dims[static_cast<size_t>(axis)] = {k, 0};
  Value indices{"", DType::Int64, values.dims, 0, static_cast<double>(x.dim(axis).n)};
  Attributes attributes = {{"axis", b.spell(axis, x.rank())}};
  if (b.opset() < 10) {
    attributes["k"] = k;
    b.add_all("TopK", {x}, {values, indices}, attributes);
  } else {
    b.add_all("TopK", {x, b.ints({k})}, {values, indices}, attributes);
  }
}

constexpr Family kLayerFamilies[] = {
    {"conv_block", 12, conv_block},
    {"pools", 4, pools},
    {"dense", 10, dense},
    {"products", 3, products},
    {"reductions", 5, reductions},
    {"softmaxes", 3, softmaxes},
    {"searches", 3, searches},
    {"normalised_product", 3, normalised_product},
    {"weighted_channels", 3, weighted_channels},
    {"dilated", 3, dilated},
    {"letters", 4, letters},
};

}  // namespace

std::span<const Family> layer_families() { return kLayerFamilies; }

}  // namespace pfrt_optimise
