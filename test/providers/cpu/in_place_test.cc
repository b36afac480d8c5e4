// SPDX-License-Identifier: Apache-2.0
//
// Concat, Split, Slice and Gather that only compute addresses. Values in another value's memory
// equal copies, and no step makes them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "core/base/status.h"
#include "test/providers/cpu/cases/cases.h"
#include "test/providers/cpu/graph.h"

namespace pfrt::test {
namespace {

// A graph, with the expected elements of each value.
class Expected {
 public:
  Graph graph;

  uint32_t input(Random& random, Dims dims) {
    Data data = random.data(PFRT_DTYPE_FLOAT32, std::move(dims));
    data.constant = random.once_in(4);
    return keep(graph.add(data), data.dims, data.values);
  }
  uint32_t neg(uint32_t x) {
    Values values = values_[x];
    for (double& v : values) v = -v;
    return keep(graph.add("Neg", {x}, dims_[x]), dims_[x], std::move(values));
  }
  uint32_t concat(const std::vector<uint32_t>& parts, int64_t axis) {
    Dims dims = dims_[parts[0]];
    dims[static_cast<size_t>(axis)] = 0;
    for (uint32_t p : parts) dims[static_cast<size_t>(axis)] += dims_[p][static_cast<size_t>(axis)];
    Values values;
    for (int64_t o = 0; o < outer(dims, axis); ++o)
      for (uint32_t p : parts) {
        const Values piece = lines(p, axis, o, 0, dims_[p][static_cast<size_t>(axis)]);
        values.insert(values.end(), piece.begin(), piece.end());
      }
    const uint32_t y = graph.add("Concat", parts, dims, {{"axis", axis}});
    return keep(y, dims, std::move(values));
  }
  std::vector<uint32_t> split(uint32_t x, int64_t axis, const Dims& sizes) {
    std::vector<uint32_t> outs;
    int64_t at = 0;
    for (int64_t size : sizes) {
      Dims dims = dims_[x];
      dims[static_cast<size_t>(axis)] = size;
      Values values;
      for (int64_t o = 0; o < outer(dims, axis); ++o) {
        const Values piece = lines(x, axis, o, at, at + size);
        values.insert(values.end(), piece.begin(), piece.end());
      }
      outs.push_back(keep(graph.add(Data{PFRT_DTYPE_FLOAT32, dims, {}}), dims, std::move(values)));
      at += size;
    }
    const uint32_t list = graph.add(integers({static_cast<int64_t>(sizes.size())}, sizes));
    graph.nodes.push_back({"Split", {x, list}, outs, {{"axis", axis}}, 0, ""});
    return outs;
  }
  uint32_t slice(uint32_t x, int64_t axis, int64_t begin, int64_t end) {
    Dims dims = dims_[x];
    dims[static_cast<size_t>(axis)] = end - begin;
    Values values;
    for (int64_t o = 0; o < outer(dims, axis); ++o) {
      const Values piece = lines(x, axis, o, begin, end);
      values.insert(values.end(), piece.begin(), piece.end());
    }
    const uint32_t y =
        graph.add("Slice",
                  {x, graph.add(integers({1}, {begin})), graph.add(integers({1}, {end})),
                   graph.add(integers({1}, {axis}))},
                  dims);
    return keep(y, dims, std::move(values));
  }
  const Dims& dims(uint32_t v) const { return dims_.at(v); }
  const Values& values(uint32_t v) const { return values_.at(v); }

 private:
  static int64_t outer(const Dims& dims, int64_t axis) {
    return count(Dims(dims.begin(), dims.begin() + axis));
  }
  // Returns elements [begin, end) along |axis| at outer index |o|.
  Values lines(uint32_t v, int64_t axis, int64_t o, int64_t begin, int64_t end) const {
    const Dims& dims = dims_.at(v);
    const int64_t inner = count(Dims(dims.begin() + axis + 1, dims.end()));
    const auto from = values_.at(v).begin() + o * dims[static_cast<size_t>(axis)] * inner;
    return {from + begin * inner, from + end * inner};
  }
  uint32_t keep(uint32_t v, Dims dims, Values values) {
    dims_[v] = std::move(dims);
    values_[v] = std::move(values);
    return v;
  }
  std::map<uint32_t, Dims> dims_;
  std::map<uint32_t, Values> values_;
};

void check(Expected& e, const std::string& what) {
  for (uint32_t workers : {1u, 3u}) {
    const GraphOutcome got = run(e.graph, workers);
    ASSERT_EQ(got.fault, "") << what << e.graph.text();
    for (size_t i = 0; i < e.graph.outputs.size(); ++i) {
      const Values& want = e.values(e.graph.outputs[i]);
      EXPECT_EQ(load(PFRT_DTYPE_FLOAT32, got.outputs[i].data(), want.size()), want)
          << what << e.graph.text() << "\n  output " << i;
    }
  }
}

TEST(InPlace, random_slices_and_concats) {
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    Random random(seed);
    Expected e;
    const bool flat = random.once_in(2);  // along the outermost dimension, or inside it
    const int64_t axis = random.from_to(flat ? 0 : 1, 1);
    const int64_t inner = random.from_to(1, 4), lead = axis == 0 || flat ? 1 : 2;
    const auto dims = [&](int64_t size) {
      return axis == 0 ? Dims{size, inner} : Dims{lead, size, inner};
    };
    std::vector<uint32_t> values;
    for (int i = 0; i < 3; ++i) values.push_back(e.input(random, dims(random.from_to(0, 4))));
    const auto any = [&] { return values[static_cast<size_t>(random.below(std::ssize(values)))]; };
    for (int64_t n = random.from_to(3, 12); n-- > 0;) {
      const uint32_t x = any();
      const int64_t size = e.dims(x)[static_cast<size_t>(axis)];
      switch (random.below(4)) {
        case 0: {
          std::vector<uint32_t> parts{x};
          for (int64_t more = random.from_to(1, 3); more-- > 0;) parts.push_back(any());
          if (e.dims(parts[0]).size() > 0) values.push_back(e.concat(parts, axis));
          break;
        }
        case 1: {
          const int64_t cut = random.from_to(0, size);
          for (uint32_t part : e.split(x, axis, {cut, size - cut})) values.push_back(part);
          break;
        }
        case 2: {
          const int64_t begin = random.from_to(0, size), end = random.from_to(begin, size);
          values.push_back(e.slice(x, axis, begin, end));
          break;
        }
        default:
          values.push_back(e.neg(x));
      }
    }
    // Some results of nodes are outputs; the others are used inside, or not at all.
    for (const GraphNode& node : e.graph.nodes)
      for (uint32_t v : node.outputs)
        if (random.once_in(3)) e.graph.outputs.push_back(v);
    if (e.graph.outputs.empty()) e.graph.outputs = {e.graph.nodes.back().outputs[0]};
    check(e, message("seed ", seed, ": "));
    if (HasFailure()) return;
  }
}

// Joining a network's branches copies nothing.
TEST(InPlace, branches_are_written_where_they_are_concatenated) {
  Expected e;
  Random random(3);
  const uint32_t x = e.graph.add(random.data(PFRT_DTYPE_FLOAT32, {1, 2, 5}));
  std::vector<uint32_t> parts;
  const auto softmax = [&] {
    return e.graph.add("Softmax", {x}, {1, 2, 5}, {{"axis", int64_t{-1}}});
  };
  for (int i = 0; i < 3; ++i) parts.push_back(softmax());
  const uint32_t joined = e.graph.add("Concat", parts, {1, 6, 5}, {{"axis", int64_t{1}}});
  e.graph.outputs = {e.graph.add("Concat", {joined, softmax()}, {1, 8, 5}, {{"axis", int64_t{1}}})};
  const GraphOutcome got = run(e.graph);
  ASSERT_EQ(got.fault, "");
  EXPECT_EQ(got.kernels.size(), 4u);
  for (const std::string& kernel : got.kernels) EXPECT_NE(kernel, "concat_copy");
}

// Only the part from outside is copied.
TEST(InPlace, only_what_comes_from_outside_is_copied) {
  Expected e;
  Random random(4);
  const uint32_t x = e.graph.add(random.data(PFRT_DTYPE_FLOAT32, {2, 5}));
  const uint32_t made = e.graph.add("Softmax", {x}, {2, 5}, {{"axis", int64_t{-1}}});
  e.graph.outputs = {e.graph.add("Concat", {x, made}, {4, 5}, {{"axis", int64_t{0}}})};
  const GraphOutcome got = run(e.graph);
  ASSERT_EQ(got.fault, "");
  ASSERT_EQ(got.kernels.size(), 2u);
  EXPECT_EQ(std::ranges::count(got.kernels, "concat_copy"), 1);
  EXPECT_EQ(got.bytes, 2u * 10 * sizeof(float) * 2);
}

TEST(InPlace, pieces_that_nobody_wants_are_left_out) {
  for (int64_t axis : {0, 1}) {
    Expected e;
    Random random(5);
    const uint32_t x = e.input(random, {3, 6});
    const std::vector<uint32_t> parts = e.split(x, axis, axis == 0 ? Dims{1, 2} : Dims{1, 5});
    e.graph.nodes.back().outputs[0] = PFRT_NO_INDEX;
    e.graph.outputs = {parts[1]};
    check(e, message("axis ", axis, ": "));
  }
}

}  // namespace
}  // namespace pfrt::test
