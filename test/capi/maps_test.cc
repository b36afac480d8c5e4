// SPDX-License-Identifier: Apache-2.0
//
// Maps as inputs and results of a run, read through the C ABI alone.
#include "test/capi/client.h"

namespace pfrt_test {
namespace {

constexpr std::string_view kMl = "ai.onnx.ml";

// One value in, one out.
Handle<pfrt_value> run_one(pfrt_session* session, pfrt_io in) {
  pfrt_io out{};
  out.struct_size = sizeof out;
  EXPECT_TRUE(ok(api().session->run(session, &in, 1, &out, 1, nullptr)));
  return Handle<pfrt_value>(out.value);
}

TEST(Maps, a_sequence_of_maps_is_read) {
  GraphBuilder g;
  g.opset(1, kMl);
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", 2});
  g.node("ZipMap", {"x"}, {"y"}, {Attr::of_ints("classlabels_int64s", {7, -7})}, "zip", kMl);
  g.output("y");
  const Handle<pfrt_env> env = make_env();
  const Handle<pfrt_session> session = make_session(env.get(), g);
  const Array x = floats({3, 2}, {1, 2, 3, 4, 5, 6});
  const Handle<pfrt_value> y = run_one(session.get(), x.io());
  ASSERT_TRUE(y);
  ASSERT_EQ(api().value->kind(y.get()), PFRT_VALUE_SEQUENCE);
  size_t count = 0;
  ASSERT_TRUE(ok(api().value->count(y.get(), &count)));
  ASSERT_EQ(count, 3u);
  for (size_t i = 0; i < count; ++i) {
    pfrt_value *map = nullptr, *keys = nullptr, *values = nullptr;
    ASSERT_TRUE(ok(api().value->element(y.get(), i, &map)));
    ASSERT_EQ(api().value->kind(map), PFRT_VALUE_MAP);
    ASSERT_TRUE(ok(api().value->map_parts(map, &keys, &values)));
    EXPECT_EQ(array_of(keys).as<int64_t>(), (std::vector<int64_t>{7, -7}));
    const auto first = static_cast<float>(2 * i + 1);
    EXPECT_EQ(array_of(values).as<float>(), (std::vector<float>{first, first + 1}));
  }
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
