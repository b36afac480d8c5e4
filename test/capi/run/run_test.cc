// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <thread>

#include "test/capi/client.h"

namespace pfrt_test {
namespace {

// Holds add_graph in a session; every test ends with a run that works.
class Run : public testing::Test {
 protected:
  void TearDown() override {
    if (!session) return;
    EXPECT_EQ(run(session.get(), {floats({1, 3}, {1, 1, 1})})[0].as<float>(),
              (std::vector<float>{2, 3, 4}))
        << "the session is usable afterwards";
  }

  Failure raw_run(pfrt_io in, pfrt_io& out) {
    return take(api().session->run(session.get(), &in, 1, &out, 1, nullptr));
  }

  Handle<pfrt_env> env = make_env();
  Handle<pfrt_session> session = make_session(env.get(), add_graph());
};

pfrt_io output_memory(std::vector<float>& memory) {
  pfrt_io io{};
  io.struct_size = sizeof io;
  io.tensor.struct_size = sizeof io.tensor;
  io.tensor.data = memory.data();
  io.tensor.bytes = memory.size() * sizeof(float);
  return io;
}

pfrt_io allocated() {
  pfrt_io io{};
  io.struct_size = sizeof io;
  return io;
}

TEST_F(Run, allocates_outputs) {
  const auto outputs = run(session.get(), {floats({2, 3}, {0, 0, 0, 1, 1, 1})});
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(outputs[0].dims, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(outputs[0].as<float>(), (std::vector<float>{1, 2, 3, 2, 3, 4}));
}

TEST_F(Run, output_outlives_session_and_environment) {
  const Array x = floats({1, 3}, {0, 0, 0});
  pfrt_io in = x.io(), out = allocated();
  ASSERT_TRUE(ok(raw_run(in, out)));
  const Handle<pfrt_value> y(out.value);
  session.reset();
  env.reset();
  EXPECT_EQ(array_of(y.get()).as<float>(), (std::vector<float>{1, 2, 3}));
}

TEST_F(Run, writes_into_memory_given_for_outputs) {
  const Array x = floats({2, 3}, {0, 0, 0, 1, 1, 1});
  std::vector<float> y(6, -1);
  pfrt_io out = output_memory(y);
  ASSERT_TRUE(ok(raw_run(x.io(), out)));
  EXPECT_EQ(out.value, nullptr);
  EXPECT_EQ(y, (std::vector<float>{1, 2, 3, 2, 3, 4}));

  out = output_memory(y);
  out.tensor.dtype = PFRT_DTYPE_FLOAT32;
  EXPECT_TRUE(ok(raw_run(x.io(), out)));
  out.tensor.dtype = PFRT_DTYPE_INT32;
  EXPECT_TRUE(fails(raw_run(x.io(), out), PFRT_CODE_DTYPE_MISMATCH, {"'y'", "int32", "float32"}));
}

TEST_F(Run, writes_into_a_value_given_for_an_output) {
  const Array x = floats({1, 3}, {0, 0, 0});
  const auto y = value_of(floats({1, 3}, {9, 9, 9}));
  pfrt_io out = allocated();
  out.value = y.get();
  ASSERT_TRUE(ok(raw_run(x.io(), out)));
  EXPECT_EQ(out.value, y.get());
  EXPECT_EQ(array_of(y.get()).as<float>(), (std::vector<float>{1, 2, 3}));
}

TEST_F(Run, refuses_output_memory_of_another_size) {
  const Array x = floats({1, 3}, {0, 0, 0});
  for (const size_t count : {1u, 2u, 4u, 100u}) {
    std::vector<float> y(count, -1);
    pfrt_io out = output_memory(y);
    EXPECT_TRUE(fails(raw_run(x.io(), out), PFRT_CODE_SHAPE_MISMATCH,
                      {"'y'", std::to_string(count * 4), "12"}));
    EXPECT_EQ(out.value, nullptr);
  }
}

TEST_F(Run, names_the_input_of_the_wrong_type) {
  EXPECT_TRUE(fails(try_run(session.get(), {int64s({1, 3}, {1, 2, 3})}), PFRT_CODE_DTYPE_MISMATCH,
                    {"'x'", "float32", "int64"}));
}

TEST_F(Run, names_the_input_of_the_wrong_rank) {
  EXPECT_TRUE(fails(try_run(session.get(), {floats({3}, {1, 2, 3})}), PFRT_CODE_SHAPE_MISMATCH,
                    {"'x'", "[N,3]", "[3]", "rank 1"}));
}

TEST_F(Run, names_the_input_and_the_dimension_that_is_wrong) {
  EXPECT_TRUE(fails(try_run(session.get(), {floats({1, 4}, {1, 2, 3, 4})}),
                    PFRT_CODE_SHAPE_MISMATCH, {"'x'", "[N,3]", "[1,4]", "dimension 1"}));
}

TEST_F(Run, names_the_input_that_is_missing) {
  pfrt_io in = allocated(), out = allocated();
  EXPECT_TRUE(fails(raw_run(in, out), PFRT_CODE_INPUT, {"'x'", "float32[N,3]"}));
  EXPECT_TRUE(fails(take(api().session->run(session.get(), nullptr, 0, &out, 1, nullptr)),
                    PFRT_CODE_INPUT, {"0 inputs", "1"}));
}

TEST_F(Run, refuses_a_value_that_is_no_tensor) {
  const auto x = value_of(floats({1, 3}, {1, 2, 3}));
  pfrt_value* elements[] = {x.get()};
  pfrt_value* raw = nullptr;
  ASSERT_TRUE(ok(api().value->create_sequence(PFRT_DTYPE_FLOAT32, elements, 1, &raw)));
  const Handle<pfrt_value> sequence(raw);
  pfrt_io in = allocated(), out = allocated();
  in.value = raw;
  EXPECT_TRUE(fails(raw_run(in, out), PFRT_CODE_INPUT, {"'x'"}));
}

TEST_F(Run, refuses_views_that_cannot_be) {
  const Array x = floats({1, 3}, {1, 2, 3});
  pfrt_io out = allocated();
  pfrt_io in = x.io();
  in.tensor.bytes = 8;
  EXPECT_TRUE(fails(raw_run(in, out), PFRT_CODE_SHAPE_MISMATCH, {"'x'", "12", "8"}));
  in = x.io();
  in.tensor.data = nullptr;
  EXPECT_TRUE(fails(raw_run(in, out), PFRT_CODE_INVALID_ARGUMENT, {"'x'"}));
  in = x.io();
  in.tensor.dtype = 200;
  EXPECT_TRUE(fails(raw_run(in, out), PFRT_CODE_UNSUPPORTED, {"'x'", "dtype 200"}));
  in = x.io();
  in.struct_size = 0;
  EXPECT_TRUE(fails(raw_run(in, out), PFRT_CODE_INVALID_ARGUMENT, {"struct_size"}));
  in = x.io();
  out.struct_size = 4;
  EXPECT_TRUE(fails(raw_run(in, out), PFRT_CODE_INVALID_ARGUMENT, {"struct_size"}));
}

TEST_F(Run, accepts_inputs_aligned_for_their_element_only) {
  std::vector<char> room(1024 * 12 + 64);
  std::vector<char> result(1024 * 12 + 64);
  const int64_t dims[] = {1024, 3};
  const std::vector<float> numbers = random_floats(3072, 1);
  for (const size_t shift : {4u, 12u, 60u}) {
    std::memcpy(room.data() + shift, numbers.data(), 3072 * 4);
    pfrt_io in = allocated(), out = allocated();
    in.tensor.struct_size = sizeof in.tensor;
    in.tensor.dtype = PFRT_DTYPE_FLOAT32;
    in.tensor.rank = 2;
    in.tensor.dims = dims;
    in.tensor.data = room.data() + shift;
    in.tensor.bytes = 3072 * 4;
    out.tensor.struct_size = sizeof out.tensor;
    out.tensor.data = result.data() + shift;
    out.tensor.bytes = 3072 * 4;
    ASSERT_TRUE(ok(raw_run(in, out)));
    std::vector<float> y(3072);
    std::memcpy(y.data(), result.data() + shift, 3072 * 4);
    for (size_t i = 0; i < y.size(); ++i)
      ASSERT_EQ(y[i], numbers[i] + static_cast<float>(i % 3 + 1)) << i << " at " << shift;
  }
}

TEST_F(Run, reads_strided_inputs) {
  // Columns 0, 2, 4 of a 2 x 6 matrix, and its transpose.
  const std::vector<float> memory = {0, -1, 10, -1, 20, -1, 30, -1, 40, -1, 50, -1};
  const int64_t dims[] = {2, 3}, strides[] = {6, 2};
  pfrt_io in = allocated(), out = allocated();
  in.tensor.struct_size = sizeof in.tensor;
  in.tensor.dtype = PFRT_DTYPE_FLOAT32;
  in.tensor.rank = 2;
  in.tensor.dims = dims;
  in.tensor.strides = strides;
  in.tensor.data = const_cast<float*>(memory.data());
  in.tensor.bytes = 11 * sizeof(float);
  ASSERT_TRUE(ok(raw_run(in, out)));
  EXPECT_EQ(array_of(out.value).as<float>(), (std::vector<float>{1, 12, 23, 31, 42, 53}));
  api().value->release(out.value);

  const int64_t broadcast[] = {0, 2};
  in.tensor.strides = broadcast;
  out = allocated();
  ASSERT_TRUE(ok(raw_run(in, out)));
  EXPECT_EQ(array_of(out.value).as<float>(), (std::vector<float>{1, 12, 23, 1, 12, 23}));
  api().value->release(out.value);

  in.tensor.strides = strides;
  in.tensor.bytes = 10 * sizeof(float);
  out = allocated();
  EXPECT_TRUE(fails(raw_run(in, out), PFRT_CODE_SHAPE_MISMATCH, {"'x'", "44", "40"}));
  const int64_t backwards[] = {6, -2};
  in.tensor.strides = backwards;
  in.tensor.bytes = 11 * sizeof(float);
  EXPECT_TRUE(fails(raw_run(in, out), PFRT_CODE_INVALID_ARGUMENT, {"'x'", "-2"}));
  const int64_t wild[] = {INT64_MAX, INT64_MAX};
  in.tensor.strides = wild;
  EXPECT_FALSE(ok(raw_run(in, out)));
  EXPECT_EQ(out.value, nullptr);
}

TEST_F(Run, refuses_output_memory_with_strides) {
  const Array x = floats({1, 3}, {1, 2, 3});
  std::vector<float> y(3);
  const int64_t strides[] = {3, 1};
  pfrt_io out = output_memory(y);
  out.tensor.strides = strides;
  EXPECT_TRUE(fails(raw_run(x.io(), out), PFRT_CODE_UNSUPPORTED, {"'y'", "strides"}));
}

TEST_F(Run, refuses_output_memory_that_overlaps_an_input) {
  std::vector<float> room(8, 1.0f);
  const int64_t dims[] = {1, 3};
  for (const size_t shift : {0u, 1u, 2u}) {
    pfrt_io in = allocated();
    in.tensor.struct_size = sizeof in.tensor;
    in.tensor.dtype = PFRT_DTYPE_FLOAT32;
    in.tensor.rank = 2;
    in.tensor.dims = dims;
    in.tensor.data = room.data();
    in.tensor.bytes = 12;
    pfrt_io out = output_memory(room);
    out.tensor.data = room.data() + shift;
    out.tensor.bytes = 12;
    EXPECT_TRUE(fails(raw_run(in, out), PFRT_CODE_INVALID_ARGUMENT, {"'y'", "overlaps"}));
    out.tensor.data = room.data() + 3;
    EXPECT_TRUE(ok(raw_run(in, out)));
    room.assign(8, 1.0f);
  }
}

TEST_F(Run, takes_any_size_of_a_named_dimension) {
  for (const int64_t n : {0, 1, 2, 17, 1, 300, 0, 64}) {
    const auto outputs =
        run(session.get(), {floats({n, 3}, std::vector<float>(static_cast<size_t>(3 * n), 1))});
    EXPECT_EQ(outputs[0].dims, (std::vector<int64_t>{n, 3}));
    const auto y = outputs[0].as<float>();
    for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], static_cast<float>(i % 3 + 2));
  }
}

TEST_F(Run, is_cancelled_while_the_number_is_not_0) {
  const Array x = floats({1, 3}, {0, 0, 0});
  uint32_t cancel = 0;
  const RunDesc options({.cancel = &cancel});
  EXPECT_TRUE(ok(try_run(session.get(), {x}, nullptr, options.get())));
  for (const uint32_t other : {1u, 2u, UINT32_MAX}) {
    cancel = other;
    EXPECT_TRUE(fails(try_run(session.get(), {x}, nullptr, options.get()), PFRT_CODE_CANCELLED,
                      {"cancelled"}));
  }
  cancel = 0;
  EXPECT_TRUE(ok(try_run(session.get(), {x}, nullptr, options.get())));
}

TEST_F(Run, names_the_setting_that_is_out_of_range) {
  const std::vector<Array> x = {floats({1, 3}, {0, 0, 0})};
  constexpr int64_t kMost = int64_t{1} << 40;
  const std::pair<const char*, int64_t pfrt_run_desc::*> numbers[] = {
      {"timeout_ms", &pfrt_run_desc::timeout_ms},
      {"num_threads", &pfrt_run_desc::num_threads},
      {"priority", &pfrt_run_desc::priority},
      {"memory_limit", &pfrt_run_desc::memory_limit}};
  for (const auto& [name, number] : numbers) {
    RunDesc desc;
    for (const int64_t wrong : {int64_t{-1}, kMost + 1, INT64_MIN, INT64_MAX}) {
      desc.*number = wrong;
      EXPECT_TRUE(fails(try_run(session.get(), x, nullptr, &desc), PFRT_CODE_INVALID_ARGUMENT,
                        {name, std::to_string(wrong), "0 (not set) to 1099511627776"}));
    }
    desc.*number = kMost;
    EXPECT_TRUE(ok(try_run(session.get(), x, nullptr, &desc))) << name;
  }
  RunDesc desc({.log_level = PFRT_LOG_OFF + 1});
  EXPECT_TRUE(
      fails(try_run(session.get(), x, nullptr, &desc), PFRT_CODE_UNSUPPORTED, {"log_level is 6"}));
  desc.log_level = PFRT_LOG_OFF;
  EXPECT_TRUE(ok(try_run(session.get(), x, nullptr, &desc)));
  desc.tag = {nullptr, 3};
  EXPECT_TRUE(
      fails(try_run(session.get(), x, nullptr, &desc), PFRT_CODE_INVALID_ARGUMENT, {"'desc.tag'"}));
  desc = RunDesc();
  desc.struct_size = 0;
  EXPECT_TRUE(fails(try_run(session.get(), x, nullptr, &desc), PFRT_CODE_INVALID_ARGUMENT,
                    {"pfrt_run_desc", "struct_size"}));
}

// A client with newer headers has a larger desc.
TEST_F(Run, reads_no_more_of_its_settings_than_it_knows) {
  struct {
    RunDesc known;
    uint64_t later = 0;
  } desc;
  desc.known.struct_size = sizeof desc;
  const std::vector<Array> x = {floats({1, 3}, {0, 0, 0})};
  EXPECT_TRUE(ok(try_run(session.get(), x, nullptr, &desc.known)));
  desc.later = 1;
  EXPECT_TRUE(
      fails(try_run(session.get(), x, nullptr, &desc.known), PFRT_CODE_UNSUPPORTED, {"newer"}));
}

TEST(LongRun, is_cancelled_from_another_thread) {
  const auto env = make_env();
  const auto session = make_session(env.get(), slow_graph());
  ASSERT_TRUE(session);
  const Array x = floats({512, 512}, random_floats(512 * 512, 3));
  uint32_t cancel = 0;
  const RunDesc options({.cancel = &cancel});
  std::thread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::atomic_ref(cancel).store(1);
  });
  EXPECT_TRUE(fails(try_run(session.get(), {x}, nullptr, options.get()), PFRT_CODE_CANCELLED,
                    {"cancelled"}));
  stopper.join();
}

TEST(LongRun, ends_at_its_deadline) {
  const auto env = make_env();
  const auto session = make_session(env.get(), slow_graph());
  ASSERT_TRUE(session);
  const Array x = floats({512, 512}, random_floats(512 * 512, 3));
  const RunDesc options({.timeout_ms = 1});
  EXPECT_TRUE(
      fails(try_run(session.get(), {x}, nullptr, options.get()), PFRT_CODE_DEADLINE, {"deadline"}));
}

}  // namespace
}  // namespace pfrt_test
