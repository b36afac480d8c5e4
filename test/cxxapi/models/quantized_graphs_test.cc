// SPDX-License-Identifier: Apache-2.0
//
// Random graphs of one to four quantized operators. They give the same bits with every set of
// instructions, and at most a step more or less than float32 without optimisation, nearly always
// none. A failure prints the seed of its graph; PFRT_TEST_SEED=SEED runs that alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <pyflame_rt/pyflame_rt.hpp>
#include <random>

namespace pfrt_test {
namespace {

using namespace pyflame_rt;
using Extents = std::vector<int64_t>;

constexpr uint64_t kGraphs = 500;
constexpr const char* kIsaWords[] = {"generic",     "avx2",        "avx_vnni", "avx512",
                                     "avx512_vnni", "avx512_bf16", "amx"};

// Sets PFRT_ISA for its lifetime; null leaves it as it was.
class IsaOfGraphs {
 public:
  explicit IsaOfGraphs(const char* isa) {
    const char* const set = std::getenv("PFRT_ISA");
    had_ = set != nullptr;
    if (had_) before_ = set;
    if (isa != nullptr) setenv("PFRT_ISA", isa, 1);
  }
  ~IsaOfGraphs() {
    if (had_)
      setenv("PFRT_ISA", before_.c_str(), 1);
    else
      unsetenv("PFRT_ISA");
  }
  IsaOfGraphs(const IsaOfGraphs&) = delete;
  IsaOfGraphs& operator=(const IsaOfGraphs&) = delete;

 private:
  bool had_;
  std::string before_;
};

// A value that has been quantized and dequantized; |spread| is roughly its standard deviation.
struct Real {
  std::string name;
  Extents shape;
  double scale, spread;
};

class RandomQuantizedGraph {
 public:
  explicit RandomQuantizedGraph(uint64_t seed) : random_(seed) {
    const Extents shapes[] = {{1, 16, 9, 9}, {2, 8, 7, 6}, {1, 32, 8, 8}, {1, 48, 5, 5},
                              {5, 40},       {17, 64},     {3, 7, 32}};
    const Extents shape = shapes[below(std::size(shapes))];
    Real x = quantized(input(shape), shape, 0.5);
    values_.push_back(x);
    for (uint64_t left = 1 + below(4); left > 0; --left) add_operator();
    graph_.add_output({last_steps_, sizes(values_.back().shape), last_type_});
  }

  const Graph& graph() const { return graph_; }
  const std::unordered_map<std::string, Tensor>& feed() const { return feed_; }
  // True when the float32 parts have the same bits everywhere: sums of integers have, exponentials
  // and sums of floats have not.
  bool exact() const { return exact_; }
  const std::string& ops() const { return ops_; }

 private:
  uint64_t below(uint64_t n) { return random_() % n; }
  bool chance(uint64_t percent) { return below(100) < percent; }
  double uniform(double low, double high) {
    return low + (high - low) * static_cast<double>(random_() >> 11) * 0x1p-53;
  }
  std::string fresh(const std::string& stem) { return stem + std::to_string(++names_); }
  static int64_t volume(const Extents& shape) {
    int64_t n = 1;
    for (const int64_t d : shape) n *= d;
    return n;
  }

  static Shape sizes(const Extents& shape) { return {shape.begin(), shape.end()}; }

  std::string input(const Extents& shape) {
    std::vector<float> x(static_cast<size_t>(volume(shape)));
    for (float& v : x) v = static_cast<float>(uniform(-0.9, 0.9));
    const std::string name = fresh("x");
    graph_.add_input({name, sizes(shape), DType::Float32});
    feed_.emplace(name, Tensor::from_vector(x, shape));
    return name;
  }
  std::string floats(const std::vector<float>& values, const Extents& shape) {
    const std::string name = fresh("c");
    graph_.add_initializer(name, Tensor::from_vector(values, shape));
    return name;
  }
  template <typename T>
  std::string whole(const std::vector<T>& values, const Extents& shape) {
    const std::string name = fresh("c");
    graph_.add_initializer(name, Tensor::from_vector(values, shape));
    return name;
  }
  std::string zero_point(DType type, int64_t zero) {
    return type == DType::UInt8 ? whole<uint8_t>({static_cast<uint8_t>(zero)}, {})
                                : whole<int8_t>({static_cast<int8_t>(zero)}, {});
  }
  std::string node(const std::string& op, const std::vector<std::string>& inputs,
                   std::map<std::string, AttributeValue> attrs = {}) {
    const std::string out = fresh("v");
    const auto made = make_node(fresh(op), op, inputs, {out});
    for (const auto& [name, value] : attrs)
      std::visit([&, to = name](const auto& v) { made->set_attr(to, v); }, value);
    graph_.add_node(made);
    return out;
  }

  // Adds QuantizeLinear and DequantizeLinear for values of about that deviation.
  Real quantized(const std::string& x, const Extents& shape, double spread) {
    const DType type = chance(60) ? DType::UInt8 : DType::Int8;
    const bool cut_at_zero = chance(20);
    const int64_t middle = type == DType::UInt8 ? 128 : 0;
    const int64_t zero = cut_at_zero ? (type == DType::UInt8 ? 0 : -128)
                                     : middle + static_cast<int64_t>(below(40)) - 20;
    const double scale = spread * uniform(4, 7) / 255;
    const std::string by = floats({static_cast<float>(scale)}, {}), at = zero_point(type, zero);
    last_steps_ = node("QuantizeLinear", {x, by, at});
    last_type_ = type;
    return {node("DequantizeLinear", {last_steps_, by, at}), shape, scale, spread};
  }

  // int8 weights that keep the deviation of numbers of |spread|, with a scale for each index of
  // |axis| or a single one.
  struct Weights {
    std::string name;
    std::vector<float> scales;
  };
  Weights weights(const Extents& shape, int64_t axis, int64_t depth) {
    std::vector<int8_t> steps(static_cast<size_t>(volume(shape)));
    for (int8_t& v : steps) v = static_cast<int8_t>(static_cast<int64_t>(below(255)) - 127);
    const double scale = 1 / (73 * std::sqrt(static_cast<double>(depth)));
    const bool each = chance(60);
    const int64_t many = each ? shape[static_cast<size_t>(axis)] : 1;
    Weights w;
    for (int64_t i = 0; i < many; ++i)
      w.scales.push_back(static_cast<float>(scale * uniform(0.5, 1.5)));
    std::vector<int8_t> zeros(static_cast<size_t>(many), 0);
    if (chance(15))
      for (int8_t& z : zeros) z = static_cast<int8_t>(static_cast<int64_t>(below(7)) - 3);
    const Extents own = each ? Extents{many} : Extents{};
    w.name =
        node("DequantizeLinear", {whole(steps, shape), floats(w.scales, own), whole(zeros, own)},
             {{"axis", AttributeValue(axis)}});
    return w;
  }

  // A bias of float32 numbers, or of int32 in steps of the product.
  std::string bias(const Real& x, const Weights& w, int64_t count) {
    if (chance(50)) {
      std::vector<float> numbers(static_cast<size_t>(count));
      for (float& v : numbers) v = static_cast<float>(uniform(-0.5, 0.5) * x.spread);
      return floats(numbers, {count});
    }
    std::vector<int32_t> steps(static_cast<size_t>(count));
    for (int32_t& v : steps) v = static_cast<int32_t>(below(4000)) - 2000;
    std::vector<float> scales;
    for (const float s : w.scales) scales.push_back(s * static_cast<float>(x.scale));
    const Extents own = scales.size() > 1 ? Extents{count} : Extents{};
    return node("DequantizeLinear", {whole(steps, {count}), floats(scales, own)},
                {{"axis", AttributeValue(int64_t{0})}});
  }

  std::string maybe_cut(const std::string& x, double spread) {
    switch (below(4)) {
      case 0:
        return node("Relu", {x});
      case 1:
        return node("Clip", {x, floats({static_cast<float>(-0.3 * spread)}, {}),
                             floats({static_cast<float>(0.9 * spread)}, {})});
      default:
        return x;
    }
  }

  void add_operator() {
    const Real& x = values_.back();
    if (x.shape.size() == 4) {
      constexpr void (RandomQuantizedGraph::*kOfImages[])() = {
          &RandomQuantizedGraph::conv,      &RandomQuantizedGraph::conv,
          &RandomQuantizedGraph::depthwise, &RandomQuantizedGraph::transposed,
          &RandomQuantizedGraph::sum,       &RandomQuantizedGraph::concat,
          &RandomQuantizedGraph::pool,      &RandomQuantizedGraph::larger,
          &RandomQuantizedGraph::activation};
      (this->*kOfImages[below(std::size(kOfImages))])();
    } else {
      constexpr void (RandomQuantizedGraph::*kOfMatrices[])() = {
          &RandomQuantizedGraph::matmul, &RandomQuantizedGraph::matmul,
          &RandomQuantizedGraph::sum,    &RandomQuantizedGraph::scores,
          &RandomQuantizedGraph::concat, &RandomQuantizedGraph::activation};
      (this->*kOfMatrices[below(std::size(kOfMatrices))])();
    }
  }
  void push(const std::string& op, const std::string& made, const Extents& shape, double spread) {
    ops_ += (ops_.empty() ? "" : ", ") + op;
    values_.push_back(quantized(made, shape, spread));
  }

  void conv() {
    const Real x = values_.back();
    const int64_t k = chance(50) ? 1 : 3,
                  channels = int64_t{8} * (1 + static_cast<int64_t>(below(5)));
    const int64_t stride = k == 3 && chance(30) ? 2 : 1;
    const Weights w = weights({channels, x.shape[1], k, k}, 0, x.shape[1] * k * k);
    std::vector<std::string> inputs{x.name, w.name};
    if (chance(70)) inputs.push_back(bias(x, w, channels));
    const std::string made =
        node("Conv", inputs,
             {{"pads", Extents{k / 2, k / 2, k / 2, k / 2}}, {"strides", Extents{stride, stride}}});
    const auto size = [&](int64_t n) { return (n + 2 * (k / 2) - k) / stride + 1; };
    push("Conv", maybe_cut(made, x.spread),
         {x.shape[0], channels, size(x.shape[2]), size(x.shape[3])}, x.spread);
  }

  void depthwise() {
    const Real x = values_.back();
    const int64_t channels = x.shape[1];
    const Weights w = weights({channels, 1, 3, 3}, 0, 9);
    std::vector<std::string> inputs{x.name, w.name};
    if (chance(70)) inputs.push_back(bias(x, w, channels));
    const std::string made =
        node("Conv", inputs, {{"pads", Extents{1, 1, 1, 1}}, {"group", AttributeValue(channels)}});
    push("depthwise Conv", maybe_cut(made, x.spread), x.shape, x.spread);
  }

  void transposed() {
    const Real x = values_.back();
    const auto k = static_cast<int64_t>(2 + below(3));
    const int64_t channels = int64_t{4} * (1 + static_cast<int64_t>(below(5)));
    const int64_t pad = k == 2 ? 0 : 1;
    const Weights w = weights({x.shape[1], channels, k, k}, 1, x.shape[1] * k * k / 4);
    std::vector<std::string> inputs{x.name, w.name};
    if (chance(70)) inputs.push_back(bias(x, w, channels));
    const std::string made =
        node("ConvTranspose", inputs,
             {{"pads", Extents{pad, pad, pad, pad}}, {"strides", Extents{2, 2}}});
    const auto size = [&](int64_t n) { return 2 * (n - 1) + k - 2 * pad; };
    push("ConvTranspose", maybe_cut(made, x.spread),
         {x.shape[0], channels, size(x.shape[2]), size(x.shape[3])}, x.spread);
  }

  void matmul() {
    const Real x = values_.back();
    const int64_t depth = x.shape.back(),
                  columns = int64_t{8} * (1 + static_cast<int64_t>(below(8)));
    const bool gemm = x.shape.size() == 2 && chance(50), swapped = gemm && chance(50);
    const Weights w =
        swapped ? weights({columns, depth}, 0, depth) : weights({depth, columns}, 1, depth);
    const bool has_bias = chance(60);
    std::string made;
    if (gemm) {
      std::vector<std::string> inputs{x.name, w.name};
      if (has_bias) inputs.push_back(bias(x, w, columns));
      made = node("Gemm", inputs, {{"transB", AttributeValue(int64_t{swapped})}});
    } else {
      made = node("MatMul", {x.name, w.name});
      if (has_bias) made = node("Add", {made, bias(x, w, columns)});
    }
    Extents shape = x.shape;
    shape.back() = columns;
    push(gemm ? "Gemm" : "MatMul", maybe_cut(made, x.spread), shape, x.spread);
  }

  // Multiplies a result by its own transpose.
  void scores() {
    const Real x = values_.back();
    Extents perm(x.shape.size()), shape = x.shape;
    for (size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<int64_t>(i);
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    shape.back() = x.shape[x.shape.size() - 2];
    const std::string turned = node("Transpose", {x.name}, {{"perm", perm}});
    push("MatMul of results", node("MatMul", {x.name, turned}), shape,
         x.spread * x.spread * static_cast<double>(x.shape.back()));
  }

  // Returns another value of these dimensions: an earlier one, or an input.
  Real partner(const Extents& shape) {
    for (size_t i = 0; i + 1 < values_.size(); ++i)
      if (values_[i].shape == shape) return values_[i];
    return quantized(input(shape), shape, 0.5);
  }

  void sum() {
    const Real x = values_.back(), y = partner(x.shape);
    const bool adds = chance(60);
    const double spread =
        adds ? std::max(x.spread, y.spread) * 1.4 : std::max(1e-3, x.spread * y.spread);
    push(adds ? "Add" : "Mul", maybe_cut(node(adds ? "Add" : "Mul", {x.name, y.name}), spread),
         x.shape, spread);
  }

  void concat() {
    const Real x = values_.back(), y = partner(x.shape);
    Extents shape = x.shape;
    shape[1] *= 2;
    push("Concat", node("Concat", {x.name, y.name}, {{"axis", AttributeValue(int64_t{1})}}), shape,
         std::max(x.spread, y.spread));
  }

  void pool() {
    const Real x = values_.back();
    if (x.shape[2] < 2 || x.shape[3] < 2) return activation();
    const std::string op = chance(50) ? "MaxPool" : "AveragePool";
    if (chance(20))
      return push("GlobalAveragePool", node("GlobalAveragePool", {x.name}),
                  {x.shape[0], x.shape[1], 1, 1}, x.spread);
    if (chance(30)) {
      std::map<std::string, AttributeValue> attrs{{"kernel_shape", Extents{3, 3}},
                                                  {"pads", Extents{1, 1, 1, 1}}};
      if (op == "AveragePool")
        attrs.emplace("count_include_pad", AttributeValue(static_cast<int64_t>(below(2))));
      return push(op, node(op, {x.name}, std::move(attrs)), x.shape, x.spread);
    }
    push(op, node(op, {x.name}, {{"kernel_shape", Extents{2, 2}}, {"strides", Extents{2, 2}}}),
         {x.shape[0], x.shape[1], x.shape[2] / 2, x.shape[3] / 2}, x.spread);
  }

  void larger() {
    const Real x = values_.back();
    const std::string made = node("Resize", {x.name, "", floats({1, 1, 2, 2}, {4})},
                                  {{"mode", std::string("nearest")},
                                   {"coordinate_transformation_mode", std::string("asymmetric")},
                                   {"nearest_mode", std::string("floor")}});
    push("Resize", made, {x.shape[0], x.shape[1], 2 * x.shape[2], 2 * x.shape[3]}, x.spread);
  }

  void activation() {
    const Real x = values_.back();
    constexpr const char* kOps[] = {"Relu", "LeakyRelu", "HardSwish", "Sigmoid", "Tanh", "Softmax"};
    const size_t which = below(std::size(kOps));
    exact_ &= which < 3;
    push(kOps[which], node(kOps[which], {x.name}), x.shape,
         which == 3 ? 0.3 : std::min(x.spread, which > 3 ? 0.4 : 1e9));
  }

  std::mt19937_64 random_;
  Graph graph_{"quantized"};
  std::unordered_map<std::string, Tensor> feed_;
  std::vector<Real> values_;
  std::string last_steps_, ops_;
  DType last_type_ = DType::UInt8;
  int names_ = 0;
  bool exact_ = true;
};

// Returns the quantized elements of an output.
std::vector<int> steps_of(const Tensor& y) {
  std::vector<int> out(static_cast<size_t>(y.num_elements()));
  for (size_t i = 0; i < out.size(); ++i)
    out[i] =
        y.dtype() == DType::UInt8 ? int{y.data_ptr<uint8_t>()[i]} : int{y.data_ptr<int8_t>()[i]};
  return out;
}

struct RanGraph {
  std::vector<int> steps;
  std::string groups;  // explain's notes about quantized groups
};

RanGraph run_graph(const RandomQuantizedGraph& random, OptLevel level, const char* isa) {
  const IsaOfGraphs scope(isa);
  SessionOptions options;
  options.optimization_level = level;
  options.num_threads = 1;
  const InferenceSession session(random.graph(), options);
  RanGraph out{steps_of(session.run({}, random.feed())[0]), {}};
  if (isa == nullptr && level != OptLevel::None)
    for (const std::string& note : session.explain().notes)
      if (note.rfind("quantized groups: ", 0) == 0 || note.rfind("in float: ", 0) == 0)
        out.groups += note + "\n";
  return out;
}

int in_integers(const std::string& groups) {
  int n = 0;
  std::sscanf(groups.c_str(), "quantized groups: %d", &n);
  return n;
}

uint64_t only_seed() {
  const char* const set = std::getenv("PFRT_TEST_SEED");
  return set == nullptr ? 0 : std::strtoull(set, nullptr, 10);
}

TEST(QuantizedGraphs, give_the_steps_of_float32) {
  int64_t elements = 0, others = 0;
  int integers = 0, floats = 0;
  for (uint64_t seed = 1; seed <= kGraphs; ++seed) {
    if (only_seed() != 0 && seed != only_seed()) continue;
    const RandomQuantizedGraph random(seed);
    const std::string what = "PFRT_TEST_SEED=" + std::to_string(seed) + ": " + random.ops();
    const RanGraph plain = run_graph(random, OptLevel::None, nullptr);
    const RanGraph fast = run_graph(random, OptLevel::All, nullptr);
    ASSERT_EQ(plain.steps.size(), fast.steps.size()) << what;
    int largest = 0;
    for (size_t i = 0; i < plain.steps.size(); ++i) {
      const int off = std::abs(plain.steps[i] - fast.steps[i]);
      largest = std::max(largest, off);
      others += off != 0;
    }
    EXPECT_LE(largest, 1) << what;
    elements += static_cast<int64_t>(plain.steps.size());
    integers += in_integers(fast.groups);
    floats += static_cast<int>(std::count(fast.groups.begin(), fast.groups.end(), '\n')) - 1;
  }
  EXPECT_LE(static_cast<double>(others), 1e-3 * static_cast<double>(elements))
      << others << " of " << elements;
  if (only_seed() != 0) return;
  // Only averages and Softmax stay in float32.
  EXPECT_GT(integers, 15 * floats) << integers << " and " << floats;
}

// Returns the words that this library knows; a machine without the instructions uses those below.
std::vector<const char*> known_words() {
  std::vector<const char*> known;
  for (const char* const word : kIsaWords) try {
      (void)run_graph(RandomQuantizedGraph(1), OptLevel::All, word);
      known.push_back(word);
    } catch (const PyFlameRTError&) {
    }
  return known;
}

TEST(QuantizedGraphs, have_the_same_bits_with_all_instructions) {
  const std::vector<const char*> words = known_words();
  ASSERT_GE(words.size(), 5u);
  int exact = 0;
  for (uint64_t seed = 1; seed <= kGraphs; ++seed) {
    if (only_seed() != 0 && seed != only_seed()) continue;
    const RandomQuantizedGraph random(seed);
    if (!random.exact()) continue;
    ++exact;
    const RanGraph first = run_graph(random, OptLevel::All, words[0]);
    for (const char* const isa : words) {
      const RanGraph other = run_graph(random, OptLevel::All, isa);
      EXPECT_EQ(first.steps, other.steps)
          << "PFRT_TEST_SEED=" << seed << ": " << random.ops() << ", " << isa;
    }
    if (HasFailure()) return;
  }
  if (only_seed() != 0) return;
  EXPECT_GT(exact, 250);
}

}  // namespace
}  // namespace pfrt_test
