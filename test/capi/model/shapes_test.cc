// SPDX-License-Identifier: Apache-2.0
//
// The memory that a session keeps for ever new shapes is bounded.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <random>

#include "test/capi/client.h"

namespace pfrt_test {
namespace {

int64_t resident_bytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (!file) return 0;
  long size = 0, resident = 0;
  const int read = std::fscanf(file, "%ld %ld", &size, &resident);
  std::fclose(file);
  return read == 2 ? int64_t{resident} * sysconf(_SC_PAGESIZE) : 0;
}

// Two convolutions, a pool, attention over the pixels, a product: float32[N,3,H,W].
GraphBuilder network() {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", 3, "H", "W"});
  g.constant("w1", floats({32, 3, 3, 3}, random_floats(32 * 27, 1)));
  g.constant("w2", floats({64, 32, 3, 3}, random_floats(64 * 32 * 9, 2)));
  g.constant("w3", floats({64, 48}, random_floats(64 * 48, 3)));
  g.constant("pixels", int64s({3}, {0, 64, -1}));
  g.node("Conv", {"x", "w1"}, {"a"}, {Attr::of_ints("pads", {1, 1, 1, 1})});
  g.node("Relu", {"a"}, {"b"});
  g.node("Conv", {"b", "w2"}, {"c"},
         {Attr::of_ints("pads", {1, 1, 1, 1}), Attr::of_ints("strides", {2, 2})});
  g.node("Sigmoid", {"c"}, {"d"});
  g.node("Reshape", {"d", "pixels"}, {"e"});
  g.node("Transpose", {"e"}, {"f"}, {Attr::of_ints("perm", {0, 2, 1})});
  g.node("MatMul", {"f", "e"}, {"scores"});
  g.node("Softmax", {"scores"}, {"shares"}, {Attr::of_int("axis", -1)});
  g.node("MatMul", {"shares", "f"}, {"mixed"});
  g.node("MatMul", {"mixed", "w3"}, {"y"});
  g.output("y");
  return g;
}

TEST(Shapes, a_thousand_leave_no_more_memory_than_the_first) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers keep freed memory";
#endif
  const auto env = make_env();
  const auto session = make_session(env.get(), network());
  ASSERT_TRUE(session);
  std::mt19937 random(5);
  const auto run_one = [&](int64_t n, int64_t h, int64_t w) {
    const auto count = static_cast<size_t>(n * 3 * h * w);
    run(session.get(), {floats({n, 3, h, w}, random_floats(count, 9))});
  };
  run_one(2, 40, 40);
  const int64_t after_first = resident_bytes();
  ASSERT_GT(after_first, 0);
  for (int i = 0; i < 1000; ++i) run_one(1 + random() % 4, 4 + random() % 60, 4 + random() % 60);
  run_one(2, 40, 40);
  const int64_t grown = resident_bytes() - after_first;
  EXPECT_LE(grown, std::max<int64_t>(after_first / 20, 2 << 20));
}

}  // namespace
}  // namespace pfrt_test
