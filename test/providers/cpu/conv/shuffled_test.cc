// SPDX-License-Identifier: Apache-2.0
//
// A depthwise convolution that reads channels in shuffled order has the bits of the graph whose
// inner values are outputs, and so have to be made.
#include <gtest/gtest.h>

#include <algorithm>

#include "test/providers/cpu/cases/cases.h"
#include "test/providers/cpu/graph.h"

namespace pfrt::test {
namespace {

struct Shuffled : Graph {
  // The convolution has |groups| times |channels| input channels, and |each| output channels for
  // each of these.
  Shuffled(Random& random, int64_t groups, int64_t channels, int64_t each, Dims perm,
           bool used_twice = false) {
    const int64_t batch = random.from_to(1, 3), all = groups * channels;
    const int64_t height = random.from_to(3, 9), width = random.from_to(3, 20);
    const Dims image{batch, all, height, width};
    const uint32_t x = add(random.data(PFRT_DTYPE_FLOAT32, image));
    const uint32_t y = add("Relu", {x}, image);
    const Dims apart{batch, groups, channels, height, width};
    Dims swapped;
    for (int64_t d : perm) swapped.push_back(apart[static_cast<size_t>(d)]);
    const auto reshape = [&](uint32_t from, const Dims& to) {
      return add("Reshape", {from, add(integers({static_cast<int64_t>(to.size())}, to, true))}, to);
    };
    between = {y, reshape(y, apart)};
    between.push_back(add("Transpose", {between.back()}, swapped, {{"perm", perm}}));
    between.push_back(reshape(between.back(), image));
    Data weights = random.data(PFRT_DTYPE_FLOAT32, {all * each, 1, 3, 3});
    weights.constant = true;
    const Dims out{batch, all * each, height, width};
    outputs = {add("Conv", {between.back(), add(std::move(weights))}, out,
                   {{"kernel_shape", Dims{3, 3}}, {"pads", Dims{1, 1, 1, 1}}, {"group", all}})};
    if (used_twice) outputs.push_back(add("Relu", {between.back()}, image));
  }
  // Returns the graph with all inner values as outputs.
  Graph apart() const {
    Graph all = *this;
    all.outputs.insert(all.outputs.end(), between.begin(), between.end());
    return all;
  }
  std::vector<uint32_t> between;
};

bool transposes(const GraphOutcome& outcome) {
  return std::ranges::any_of(outcome.kernels, [](const std::string& kernel) {
    return kernel.find("transpose") != kernel.npos || kernel.find("copy") != kernel.npos;
  });
}

TEST(Shuffled, the_bits_of_transposed_channels) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Random random(seed);
    const Shuffled graph(random, random.from_to(2, 5), random.from_to(2, 12), random.from_to(1, 2),
                         {0, 2, 1, 3, 4});
    const GraphOutcome once = run(graph, 1), apart = run(graph.apart(), 2);
    ASSERT_EQ(once.fault + apart.fault, "") << "seed " << seed << ": " << graph.text();
    EXPECT_EQ(once.outputs[0], apart.outputs[0]) << "seed " << seed << ": " << graph.text();
    EXPECT_FALSE(transposes(once)) << "seed " << seed;
    EXPECT_TRUE(transposes(apart)) << "seed " << seed;
  }
}

TEST(Shuffled, other_orders_are_transposed) {
  Random random(7);
  const Shuffled graph(random, 3, 4, 1, {0, 2, 1, 4, 3});
  const GraphOutcome once = run(graph), apart = run(graph.apart());
  ASSERT_EQ(once.fault + apart.fault, "");
  EXPECT_EQ(once.outputs[0], apart.outputs[0]);
  EXPECT_TRUE(transposes(once));
}

TEST(Shuffled, what_something_else_reads_is_transposed) {
  Random random(8);
  const Shuffled graph(random, 3, 4, 1, {0, 2, 1, 3, 4}, true);
  const GraphOutcome once = run(graph), apart = run(graph.apart());
  ASSERT_EQ(once.fault + apart.fault, "");
  EXPECT_EQ(once.outputs, std::vector(apart.outputs.begin(), apart.outputs.begin() + 2));
  EXPECT_TRUE(transposes(once));
}

}  // namespace
}  // namespace pfrt::test
