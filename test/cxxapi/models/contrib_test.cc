// SPDX-License-Identifier: Apache-2.0
//
// Operators of com.microsoft that become others, end to end, compared with plain loops on random
// shapes and attributes. A failure prints the seed of its case.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <pyflame_rt/pyflame_rt.hpp>
#include <random>

namespace pfrt_test {
namespace {

using namespace pyflame_rt;
using Dims = std::vector<int64_t>;
using Reals = std::vector<double>;

int64_t volume(const Dims& dims) {
  int64_t n = 1;
  for (const int64_t d : dims) n *= d;
  return n;
}

// Row-major position in |dims| of the last coordinates of |index|; dimensions of 1 are broadcast.
size_t at(const Dims& index, const Dims& dims) {
  int64_t position = 0;
  for (size_t i = 0; i < dims.size(); ++i)
    position = position * dims[i] + (dims[i] == 1 ? 0 : index[index.size() - dims.size() + i]);
  return static_cast<size_t>(position);
}

template <class Fn>
void each(const Dims& dims, Fn fn) {
  Dims index(dims.size(), 0);
  for (int64_t left = volume(dims); left > 0; --left) {
    fn(index);
    for (size_t i = dims.size(); i-- > 0;) {
      if (++index[i] < dims[i]) break;
      index[i] = 0;
    }
  }
}

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  int64_t from_to(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine_() % static_cast<uint64_t>(high - low + 1));
  }
  bool coin() { return from_to(0, 1) == 1; }
  double real(double low, double high) {
    return low + (high - low) * static_cast<double>(engine_()) / 4294967295.0;
  }
  Dims dims(size_t rank, int64_t most = 5) {
    Dims out(rank);
    for (int64_t& d : out) d = from_to(1, most);
    return out;
  }
  template <class T>
  std::vector<T> data(const Dims& dims) {
    std::vector<T> out(static_cast<size_t>(volume(dims)));
    for (T& v : out) {
      if constexpr (std::is_floating_point_v<T>)
        v = static_cast<T>(real(-2, 2));
      else
        v = static_cast<T>(from_to(std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
    }
    return out;
  }

 private:
  std::mt19937 engine_;
};

// A graph of a single node of com.microsoft; its inputs are fed or, now and then, constants.
class OneNode {
 public:
  OneNode(const std::string& op, Random& random) : random_(random), op_(op) {
    graph_.set_opset("com.microsoft", 1);
  }
  template <class T>
  void input(const std::vector<T>& values, const Dims& dims) {
    const std::string name = "x" + std::to_string(names_.size());
    const Tensor tensor = Tensor::from_vector(values, dims);
    if (random_.from_to(0, 2) == 0) {
      graph_.add_initializer(name, tensor);
    } else {
      TensorInfo info;
      info.name = name;
      info.shape = Shape(dims.begin(), dims.end());
      info.dtype = tensor.dtype();
      graph_.add_input(info);
      feed_[name] = tensor;
    }
    names_.push_back(name);
  }
  template <class T>
  void scalar(T value) {
    input<T>({value}, random_.coin() ? Dims{} : Dims{1});
  }
  void absent() { names_.emplace_back(); }
  template <class T>
  void attr(const std::string& name, T value) {
    attrs_.push_back([=](Node& node) { node.set_attr(name, value); });
  }
  Tensor run() {
    const auto node =
        std::make_shared<Node>("it", op_, names_, std::vector<std::string>{"y"}, "com.microsoft");
    for (const auto& set : attrs_) set(*node);
    graph_.add_node(node);
    TensorInfo out;
    out.name = "y";
    out.dtype = DType::Undefined;
    out.unranked = true;
    graph_.add_output(out);
    return InferenceSession(graph_).run({}, feed_)[0];
  }

 private:
  Random& random_;
  std::string op_;
  Graph graph_{"one"};
  std::vector<std::string> names_;
  std::unordered_map<std::string, Tensor> feed_;
  std::vector<std::function<void(Node&)>> attrs_;
};

// Expects |got| to be |real| rounded to levels of T. Within a thousandth of a tie either level is
// right.
template <class T>
void expect_quantized(const Tensor& got, const Dims& dims, const Reals& real, double zero) {
  ASSERT_EQ(got.shape(), dims);
  const auto level = [&](double v) {
    return std::clamp(std::nearbyint(v) + zero, static_cast<double>(std::numeric_limits<T>::min()),
                      static_cast<double>(std::numeric_limits<T>::max()));
  };
  for (size_t i = 0; i < real.size(); ++i) {
    const double value = static_cast<double>(got.data_ptr<T>()[i]);
    ASSERT_TRUE(value == level(real[i] - 1e-3) || value == level(real[i] + 1e-3))
        << "element " << i << " is " << value << ", not " << level(real[i]) << " from " << real[i];
  }
}

void expect_close(const Tensor& got, const Dims& dims, const Reals& real, double most) {
  ASSERT_EQ(got.shape(), dims);
  for (size_t i = 0; i < real.size(); ++i)
    ASSERT_NEAR(got.data_ptr<float>()[i], real[i], most) << "element " << i;
}

template <class Fn>
void repeat(int count, Fn fn) {
  for (int seed = 1; seed <= count && !testing::Test::HasFatalFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(static_cast<uint32_t>(seed));
    fn(random);
  }
}

template <class T>
void quantized_binary(Random& random) {
  const bool sum = random.coin();
  OneNode node(sum ? "QLinearAdd" : "QLinearMul", random);
  const Dims out = random.dims(static_cast<size_t>(random.from_to(0, 4)));
  Dims dims[2] = {
      out, Dims(out.begin() + random.from_to(0, static_cast<int64_t>(out.size())), out.end())};
  for (int64_t& d : dims[1])
    if (random.from_to(0, 3) == 0) d = 1;
  if (random.coin()) std::swap(dims[0], dims[1]);
  std::vector<T> x[2];
  float scale[3];
  T zero[3];
  for (size_t i = 0; i < 3; ++i) {
    scale[i] = static_cast<float>(random.real(0.01, 0.05));
    zero[i] = static_cast<T>(random.from_to(0, 20));
    if (i < 2) node.input(x[i] = random.data<T>(dims[i]), dims[i]);
    node.scalar(scale[i]);
    node.scalar(zero[i]);
  }
  Reals real;
  each(out, [&](const Dims& index) {
    double v[2];
    for (size_t i = 0; i < 2; ++i)
      v[i] =
          (static_cast<double>(x[i][at(index, dims[i])]) - zero[i]) * static_cast<double>(scale[i]);
    real.push_back((sum ? v[0] + v[1] : v[0] * v[1]) / static_cast<double>(scale[2]));
  });
  expect_quantized<T>(node.run(), out, real, zero[2]);
}

TEST(ContribOperators, quantized_sums_and_products) {
  repeat(60, quantized_binary<uint8_t>);
  repeat(60, quantized_binary<int8_t>);
}

TEST(ContribOperators, fused_products) {
  repeat(100, [](Random& random) {
    OneNode node("FusedMatMul", random);
    const Dims batch = random.dims(static_cast<size_t>(random.from_to(0, 2)), 3);
    const int64_t m = random.from_to(1, 6), k = random.from_to(1, 6), n = random.from_to(1, 6);
    const bool swap[2] = {random.coin(), random.coin()}, first[2] = {random.coin(), random.coin()};
    const float alpha = random.coin() ? 1.0f : static_cast<float>(random.real(-2, 2));
    std::vector<float> x[2];
    Dims dims[2];
    for (size_t i = 0; i < 2; ++i) {
      Dims matrix = i == 0 ? Dims{m, k} : Dims{k, n};
      if (swap[i]) std::swap(matrix[0], matrix[1]);
      dims[i] = batch;
      dims[i].insert(first[i] ? dims[i].begin() : dims[i].end(), matrix[0]);
      dims[i].push_back(matrix[1]);
      node.input(x[i] = random.data<float>(dims[i]), dims[i]);
      node.attr(i == 0 ? "transA" : "transB", static_cast<int64_t>(swap[i]));
      node.attr(i == 0 ? "transBatchA" : "transBatchB", static_cast<int64_t>(first[i]));
    }
    node.attr("alpha", alpha);
    Dims out = batch;
    out.insert(out.end(), {m, n});
    Reals real;
    each(out, [&](const Dims& index) {
      double sum = 0;
      for (int64_t p = 0; p < k; ++p) {
        double product = 1;
        for (size_t i = 0; i < 2; ++i) {
          int64_t row = i == 0 ? index[batch.size()] : p, column = i == 0 ? p : index.back();
          if (swap[i]) std::swap(row, column);
          Dims place(index.begin(), index.end() - 2);
          place.insert(first[i] ? place.begin() : place.end(), row);
          place.push_back(column);
          product *= static_cast<double>(x[i][at(place, dims[i])]);
        }
        sum += product;
      }
      real.push_back(sum * static_cast<double>(alpha));
    });
    expect_close(node.run(), out, real, 1e-4);
  });
}

template <class B>
void quantized_gemm(Random& random) {
  OneNode node("QGemm", random);
  const int64_t m = random.from_to(1, 6), k = random.from_to(1, 9), n = random.from_to(1, 6);
  const bool swap_a = random.coin(), swap_b = random.coin(), columns = random.coin(),
             quantizes = random.coin(), bias = random.coin();
  const float a_scale = 0.013f, y_scale = static_cast<float>(random.real(0.2, 0.5)),
              alpha = static_cast<float>(random.real(0.5, 2));
  const Dims a_dims = swap_a ? Dims{k, m} : Dims{m, k}, b_dims = swap_b ? Dims{n, k} : Dims{k, n},
             parameters = columns ? Dims{n} : Dims{}, c_dims = random.coin() ? Dims{m, n} : Dims{n};
  const auto a = random.data<uint8_t>(a_dims);
  const auto b = random.data<B>(b_dims), b_zero = random.data<B>(parameters);
  std::vector<float> b_scale(b_zero.size());
  for (float& s : b_scale) s = static_cast<float>(random.real(0.01, 0.03));
  std::vector<int32_t> c(static_cast<size_t>(volume(c_dims)));
  for (int32_t& v : c) v = static_cast<int32_t>(random.from_to(-5000, 5000));
  node.input(a, a_dims);
  node.scalar(a_scale);
  node.scalar<uint8_t>(99);
  node.input(b, b_dims);
  node.input(b_scale, parameters);
  node.input(b_zero, parameters);
  if (bias)
    node.input(c, c_dims);
  else
    node.absent();
  if (quantizes) node.scalar(y_scale);
  if (quantizes) node.scalar<uint8_t>(100);
  node.attr("transA", static_cast<int64_t>(swap_a));
  node.attr("transB", static_cast<int64_t>(swap_b));
  node.attr("alpha", alpha);
  Reals real;
  each({m, n}, [&](const Dims& index) {
    const size_t column = columns ? static_cast<size_t>(index[1]) : 0;
    double sum = bias ? c[at(index, c_dims)] : 0;
    for (int64_t p = 0; p < k; ++p)
      sum += (a[at(swap_a ? Dims{p, index[0]} : Dims{index[0], p}, a_dims)] - 99.0) *
             (static_cast<double>(b[at(swap_b ? Dims{index[1], p} : Dims{p, index[1]}, b_dims)]) -
              static_cast<double>(b_zero[column]));
    real.push_back(sum * static_cast<double>(a_scale) * static_cast<double>(b_scale[column]) *
                   static_cast<double>(alpha) / (quantizes ? static_cast<double>(y_scale) : 1));
  });
  const Tensor got = node.run();
  if (quantizes)
    expect_quantized<uint8_t>(got, {m, n}, real, 100);
  else
    expect_close(got, {m, n}, real, 1e-2);
}

TEST(ContribOperators, quantized_gemm) {
  repeat(60, quantized_gemm<uint8_t>);
  repeat(60, quantized_gemm<int8_t>);
}

TEST(ContribOperators, dynamically_quantized_products) {
  repeat(60, [](Random& random) {
    OneNode node("DynamicQuantizeMatMul", random);
    const int64_t m = random.from_to(1, 6), k = random.from_to(1, 9), n = random.from_to(1, 6);
    const auto a = random.data<float>({m, k});
    const auto b = random.data<int8_t>({k, n}), zero = random.data<int8_t>({n});
    const auto bias = random.data<float>({n});
    std::vector<float> scale(static_cast<size_t>(n));
    for (float& s : scale) s = static_cast<float>(random.real(0.01, 0.03));
    node.input(a, {m, k});
    node.input(b, {k, n});
    node.input(scale, {n});
    node.input(zero, {n});
    node.input(bias, {n});
    const double low = std::min(0.0f, *std::min_element(a.begin(), a.end())),
                 high = std::max(0.0f, *std::max_element(a.begin(), a.end())),
                 step = (high - low) / 255, middle = std::nearbyint(-low / step);
    Reals real;
    double most = 0;  // largest change by a level of an element
    each({m, n}, [&](const Dims& index) {
      const size_t column = static_cast<size_t>(index[1]);
      double sum = 0;
      for (int64_t p = 0; p < k; ++p) {
        const double level = std::clamp(
            std::nearbyint(static_cast<double>(a[at({index[0], p}, {m, k})]) / step) + middle, 0.0,
            255.0);
        const double weight = static_cast<double>(b[at({p, index[1]}, {k, n})] - zero[column]) *
                              static_cast<double>(scale[column]);
        sum += (level - middle) * step * weight;
        most = std::max(most, std::fabs(step * weight));
      }
      real.push_back(sum + static_cast<double>(bias[column]));
    });
    expect_close(node.run(), {m, n}, real, most * 1e-3 + 1e-4);
  });
}

TEST(ContribOperators, channels_last_pools) {
  repeat(80, [](Random& random) {
    OneNode node("NhwcMaxPool", random);
    const Dims dims = {random.from_to(1, 2), random.from_to(4, 8), random.from_to(4, 8),
                       random.from_to(1, 4)};
    const Dims kernel = random.dims(2, 3), strides = random.dims(2, 3);
    Dims pads(4);
    for (size_t i = 0; i < 4; ++i) pads[i] = random.from_to(0, kernel[i % 2] - 1);
    const auto x = random.data<uint8_t>(dims);
    node.input(x, dims);
    node.attr("kernel_shape", kernel);
    node.attr("strides", strides);
    node.attr("pads", pads);
    Dims out = dims;
    for (size_t i = 0; i < 2; ++i)
      out[i + 1] = (dims[i + 1] + pads[i] + pads[i + 2] - kernel[i]) / strides[i] + 1;
    Reals real;
    each(out, [&](const Dims& index) {
      int best = 0;
      for (int64_t i = 0; i < kernel[0]; ++i)
        for (int64_t j = 0; j < kernel[1]; ++j) {
          const int64_t y = index[1] * strides[0] - pads[0] + i,
                        z = index[2] * strides[1] - pads[1] + j;
          if (y < 0 || z < 0 || y >= dims[1] || z >= dims[2]) continue;
          best = std::max<int>(best, x[at({index[0], y, z, index[3]}, dims)]);
        }
      real.push_back(best);
    });
    expect_quantized<uint8_t>(node.run(), out, real, 0);
  });
}

TEST(ContribOperators, quantized_means_over_windows_of_channels_last) {
  repeat(60, [](Random& random) {
    OneNode node("QLinearAveragePool", random);
    const bool last = random.coin(), counts = random.coin();
    const Dims first = {random.from_to(1, 2), random.from_to(1, 4), random.from_to(4, 8),
                        random.from_to(4, 8)};
    const Dims dims = last ? Dims{first[0], first[2], first[3], first[1]} : first;
    const auto x = random.data<int8_t>(dims);
    const float sx = 0.0137f, sy = static_cast<float>(random.real(0.005, 0.02));
    node.input(x, dims);
    node.scalar(sx);
    node.scalar<int8_t>(-9);
    node.scalar(sy);
    node.scalar<int8_t>(4);
    node.attr("kernel_shape", Dims{3, 2});
    node.attr("pads", Dims{1, 1, 1, 0});
    node.attr("channels_last", static_cast<int64_t>(last));
    node.attr("count_include_pad", static_cast<int64_t>(counts));
    Dims out = first;
    Reals real;
    if (last) out = {first[0], first[2], first[3], first[1]};
    each(out, [&](const Dims& index) {
      const size_t h = last ? 1 : 2;
      double sum = 0;
      int64_t count = 0;
      for (int64_t i = 0; i < 3; ++i)
        for (int64_t j = 0; j < 2; ++j) {
          Dims from = index;
          from[h] += i - 1;
          from[h + 1] += j - 1;
          const bool inside =
              from[h] >= 0 && from[h + 1] >= 0 && from[h] < dims[h] && from[h + 1] < dims[h + 1];
          count += inside || counts;
          if (inside) sum += (x[at(from, dims)] + 9.0) * static_cast<double>(sx);
        }
      real.push_back(sum / static_cast<double>(count) / static_cast<double>(sy));
    });
    expect_quantized<int8_t>(node.run(), out, real, 4);
  });
}

// Sums rows of three tables of bytes, and normalises them with parameters of bytes.
TEST(ContribOperators, quantized_embeddings) {
  repeat(60, [](Random& random) {
    OneNode node("QEmbedLayerNormalization", random);
    const int64_t batch = random.from_to(1, 3), length = random.from_to(1, 6),
                  width = random.from_to(2, 70), words = 30, positions = 8, segments = 2;
    const bool has_segments = random.coin(), has_zeros = random.coin();
    const Dims ids_dims = {batch, length};
    std::vector<int32_t> ids, kinds;
    for (int64_t i = 0; i < batch * length; ++i) {
      ids.push_back(static_cast<int32_t>(random.from_to(0, words - 1)));
      kinds.push_back(static_cast<int32_t>(random.from_to(0, segments - 1)));
    }
    node.input(ids, ids_dims);
    has_segments ? node.input(kinds, ids_dims) : node.absent();
    const Dims dims[] = {{words, width}, {positions, width}, {segments, width}, {width}, {width}};
    std::vector<uint8_t> tables[5];
    std::vector<float> scales;
    std::vector<uint8_t> zeros;
    for (size_t t = 0; t < 5; ++t) {
      tables[t] = random.data<uint8_t>(dims[t]);
      scales.push_back(static_cast<float>(random.real(0.002, 0.02)));
      zeros.push_back(has_zeros ? static_cast<uint8_t>(random.from_to(0, 255)) : uint8_t{0});
    }
    const auto given = [&](size_t t) { return t != 2 || has_segments; };
    for (size_t t = 0; t < 5; ++t) given(t) ? node.input(tables[t], dims[t]) : node.absent();
    node.absent();
    for (size_t t = 0; t < 5; ++t) given(t) ? node.scalar(scales[t]) : node.absent();
    if (has_zeros)
      for (size_t t = 0; t < 5; ++t) given(t) ? node.scalar(zeros[t]) : node.absent();
    node.attr("epsilon", 1e-5f);
    const auto number = [&](size_t t, int64_t row, int64_t c) {
      const double step = tables[t][static_cast<size_t>(row * width + c)];
      return (step - zeros[t]) * static_cast<double>(scales[t]);
    };
    Reals real;
    for (int64_t i = 0; i < batch * length; ++i) {
      const auto at = static_cast<size_t>(i);
      Reals sum;
      double mean = 0, variance = 0;
      for (int64_t c = 0; c < width; ++c) {
        sum.push_back(number(0, ids[at], c) + number(1, i % length, c) +
                      (has_segments ? number(2, kinds[at], c) : 0));
        mean += sum.back() / static_cast<double>(width);
      }
      for (const double v : sum) variance += (v - mean) * (v - mean) / static_cast<double>(width);
      for (int64_t c = 0; c < width; ++c)
        real.push_back((sum[static_cast<size_t>(c)] - mean) / std::sqrt(variance + 1e-5) *
                           number(3, 0, c) +
                       number(4, 0, c));
    }
    expect_close(node.run(), {batch, length, width}, real, 1e-3);
  });
}

TEST(ContribOperators, unfolded_windows) {
  repeat(60, [](Random& random) {
    OneNode node("UnfoldTensor", random);
    const Dims dims = random.dims(static_cast<size_t>(random.from_to(1, 3)), 9);
    const int64_t rank = static_cast<int64_t>(dims.size()), dim = random.from_to(-rank, rank - 1);
    const size_t axis = static_cast<size_t>(dim < 0 ? dim + rank : dim);
    const int64_t size = random.from_to(1, dims[axis]), step = random.from_to(1, 3);
    const auto x = random.data<float>(dims);
    node.input(x, dims);
    node.attr("dim", dim);
    node.attr("size", size);
    node.attr("step", step);
    Dims out = dims;
    out[axis] = (dims[axis] - size) / step + 1;
    out.push_back(size);
    Reals real;
    each(out, [&](const Dims& index) {
      Dims from(index.begin(), index.end() - 1);
      from[axis] = from[axis] * step + index.back();
      real.push_back(static_cast<double>(x[at(from, dims)]));
    });
    expect_close(node.run(), out, real, 0);
  });
}

}  // namespace
}  // namespace pfrt_test
