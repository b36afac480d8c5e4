// SPDX-License-Identifier: Apache-2.0
//
// Maps as inputs and results of a run, read through the C ABI alone.
#include "test/capi/client.h"

namespace pfrt_test {
namespace {

constexpr std::string_view kMl = "ai.onnx.ml";

// Runs with a single input and a single output.
Handle<pfrt_value> run_one(pfrt_session* session, pfrt_io in) {
  pfrt_io out{};
  out.struct_size = sizeof out;
  EXPECT_TRUE(ok(api().session->run(session, &in, 1, &out, 1, nullptr)));
  return Handle<pfrt_value>(out.value);
}

// Expects ZipMap with |labels|, on three rows with the numbers 1 to 9, to give maps from |keys| to
// those |columns| of each row.
void expect_maps(const std::vector<int64_t>& labels, const std::vector<int64_t>& keys,
                 const std::vector<size_t>& columns) {
  GraphBuilder g;
  g.opset(1, kMl);
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", 3});
  g.node("ZipMap", {"x"}, {"y"}, {Attr::of_ints("classlabels_int64s", labels)}, "zip", kMl);
  g.output("y");
  const Handle<pfrt_env> env = make_env();
  const Handle<pfrt_session> session = make_session(env.get(), g);
  const Array x = floats({3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  const Handle<pfrt_value> y = run_one(session.get(), x.io());
  ASSERT_TRUE(y);
  ASSERT_EQ(api().value->kind(y.get()), PFRT_VALUE_SEQUENCE);
  size_t count = 0;
  ASSERT_TRUE(ok(api().value->count(y.get(), &count)));
  ASSERT_EQ(count, 3u);
  for (size_t i = 0; i < count; ++i) {
    pfrt_value *map = nullptr, *names = nullptr, *values = nullptr;
    ASSERT_TRUE(ok(api().value->element(y.get(), i, &map)));
    ASSERT_EQ(api().value->kind(map), PFRT_VALUE_MAP);
    ASSERT_TRUE(ok(api().value->map_parts(map, &names, &values)));
    EXPECT_EQ(array_of(names).as<int64_t>(), keys);
    std::vector<float> row;
    for (const size_t column : columns) row.push_back(static_cast<float>(3 * i + column + 1));
    EXPECT_EQ(array_of(values).as<float>(), row);
  }
}

TEST(Maps, a_sequence_of_maps_is_read) {
  expect_maps({7, -7, 0}, {7, -7, 0}, {0, 1, 2});
  expect_maps({-7, 0, 7}, {-7, 0, 7}, {0, 1, 2});
}

TEST(Maps, of_labels_that_repeat_the_last_counts) {
  expect_maps({7, 8, 7}, {8, 7}, {1, 2});
  expect_maps({1, 1, 2}, {1, 2}, {1, 2});
}

TEST(Maps, keys_and_columns_must_agree) {
  GraphBuilder g;
  g.opset(1, kMl);
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", "C"});
  g.node("ZipMap", {"x"}, {"y"}, {Attr::of_ints("classlabels_int64s", {7, -7})}, "zip", kMl);
  g.output("y");
  const Handle<pfrt_env> env = make_env();
  const Handle<pfrt_session> session = make_session(env.get(), g);
  EXPECT_TRUE(fails(try_run(session.get(), {floats({1, 3}, {1, 2, 3})}), PFRT_CODE_SHAPE_MISMATCH,
                    {"zip", "2 columns"}));
}

}  // namespace
}  // namespace pfrt_test
