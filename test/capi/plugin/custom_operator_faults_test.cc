// SPDX-License-Identifier: Apache-2.0
//
// Faults in the callbacks of registered operators.
#include <limits>
#include <stdexcept>

#include "test/capi/plugin/custom_operator.h"

namespace pfrt_test {
namespace {

TEST(CustomOperatorFaults, failing_callbacks_name_node_and_operator) {
  const auto env = make_env();
  TestOperator op("Failing");
  std::function<pfrt_code(const pfrt_op_compute*)> compute;
  op.infer = infer_like_input;
  op.compute = [&](const pfrt_op_compute* call) { return compute(call); };
  ASSERT_TRUE(ok(op.add_to(env.get())));
  const auto session = make_session(env.get(), one_node(op));
  ASSERT_TRUE(session);
  compute = [](const pfrt_op_compute* call) {
    return call->fail(call, PFRT_CODE_SHAPE_MISMATCH, str("three is too many"));
  };
  EXPECT_TRUE(fails(try_run(session.get(), {kRow}), PFRT_CODE_SHAPE_MISMATCH,
                    {"Failing 'n1': three is too many"}));
  compute = [](const pfrt_op_compute*) -> pfrt_code { return PFRT_CODE_UNSUPPORTED; };
  EXPECT_TRUE(fails(try_run(session.get(), {kRow}), PFRT_CODE_UNSUPPORTED,
                    {"Failing 'n1': its compute callback failed"}));
  // An unknown code, and a stop that nobody asked for.
  for (pfrt_code code : {pfrt_code{999}, pfrt_code{PFRT_CODE_CANCELLED}}) {
    compute = [code](const pfrt_op_compute*) { return code; };
    EXPECT_TRUE(fails(try_run(session.get(), {kRow}), PFRT_CODE_PROVIDER, {"Failing 'n1'"}));
  }
  compute = [](const pfrt_op_compute*) -> pfrt_code { throw std::runtime_error("no"); };
  EXPECT_TRUE(fails(try_run(session.get(), {kRow}), PFRT_CODE_PROVIDER,
                    {"Failing 'n1'", "threw an exception"}));
  compute = [](const pfrt_op_compute*) -> pfrt_code { throw std::bad_alloc(); };
  EXPECT_EQ(try_run(session.get(), {kRow}).code, PFRT_CODE_OUT_OF_MEMORY);
  compute = compute_scaled;  // the session still works
  EXPECT_EQ(run(session.get(), {kRow})[0].as<float>(), (std::vector<float>{-6, 0, 2}));
}

TEST(CustomOperatorFaults, shape_callbacks_that_fail_or_talk_nonsense) {
  const auto env = make_env();
  TestOperator op("Liar");
  op.compute = compute_scaled;
  op.infer = [](const pfrt_op_infer*) -> pfrt_code { return PFRT_CODE_OK; };
  ASSERT_TRUE(ok(op.add_to(env.get())));
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {2, 3});
  g.node("Liar", {"x"}, {"y"}, {}, "n1", "acme");
  g.output("y");
  const auto refused = [&](pfrt_code code, std::function<pfrt_code(const pfrt_op_infer*)> infer,
                           std::initializer_list<std::string_view> parts) {
    op.infer = std::move(infer);
    const Failure failure = try_session(env.get(), g);
    EXPECT_TRUE(fails(failure, code, {"Liar 'n1'"}));
    EXPECT_TRUE(fails(failure, code, parts));
  };
  const auto says = [](uint32_t index, pfrt_dtype dtype, int32_t rank, std::vector<int64_t> dims) {
    return [=](const pfrt_op_infer* call) {
      // This callback ignores the error of set_output.
      (void)call->set_output(call, index, dtype, rank, dims.empty() ? nullptr : dims.data());
      return pfrt_code{PFRT_CODE_OK};
    };
  };
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  refused(PFRT_CODE_SHAPE_MISMATCH,
          [](const pfrt_op_infer* call) {
            return call->fail(call, PFRT_CODE_SHAPE_MISMATCH, str("x must be square"));
          },
          {"x must be square"});
  refused(PFRT_CODE_PROVIDER, [](const pfrt_op_infer*) -> pfrt_code { return 12345; },
          {"shape callback failed"});
  refused(PFRT_CODE_PROVIDER, [](const pfrt_op_infer*) -> pfrt_code { throw 7; },
          {"threw an exception"});
  refused(PFRT_CODE_PROVIDER, says(1, PFRT_DTYPE_FLOAT32, 0, {}), {"output 1", "has 1"});
  refused(PFRT_CODE_UNSUPPORTED, says(0, 77, 0, {}), {"dtype 77"});
  refused(PFRT_CODE_PROVIDER, says(0, PFRT_DTYPE_FLOAT32, 1 << 20, {1}), {"rank 1048576"});
  refused(PFRT_CODE_PROVIDER, says(0, PFRT_DTYPE_FLOAT32, -9, {}), {"rank -9"});
  refused(PFRT_CODE_PROVIDER, says(0, PFRT_DTYPE_FLOAT32, 2, {}), {"no dimensions"});
  refused(PFRT_CODE_PROVIDER, says(0, PFRT_DTYPE_FLOAT32, 2, {kMost, kMost}), {"address space"});
  refused(PFRT_CODE_PROVIDER, says(0, PFRT_DTYPE_FLOAT32, 2, {-1, 3}), {"open"});
  refused(PFRT_CODE_PROVIDER, says(0, PFRT_DTYPE_FLOAT32, -1, {}), {"PFRT_OP_DATA_DEPENDENT"});
  refused(PFRT_CODE_PROVIDER, [](const pfrt_op_infer*) -> pfrt_code { return PFRT_CODE_OK; },
          {"open"});

  // A size that exceeds the memory is an error of the run.
  op.infer = says(0, PFRT_DTYPE_FLOAT32, 2, {int64_t{1} << 30, int64_t{1} << 24});
  const auto session = make_session(env.get(), g);
  ASSERT_TRUE(session);
  EXPECT_EQ(try_run(session.get(), {floats({2, 3}, random_floats(6, 1))}).code,
            PFRT_CODE_OUT_OF_MEMORY);
}

TEST(CustomOperatorFaults, a_shape_callback_that_contradicts_the_graph) {
  const auto env = make_env();
  TestOperator op("Ints");
  op.infer = [](const pfrt_op_infer* call) {
    return call->set_output(call, 0, PFRT_DTYPE_INT64, 0, nullptr);
  };
  op.compute = compute_scaled;
  ASSERT_TRUE(ok(op.add_to(env.get())));
  GraphBuilder g = one_node(op);
  pfrt_value_info info{};
  info.struct_size = sizeof info;
  info.kind = PFRT_VALUE_TENSOR;
  info.dtype = PFRT_DTYPE_FLOAT32;
  info.rank = -1;
  info.name = str("y");
  ASSERT_TRUE(ok(api().graph->set_value_info(g.get(), &info)));
  EXPECT_TRUE(fails(try_session(env.get(), g), PFRT_CODE_DTYPE_MISMATCH,
                    {"Ints 'n1'", "int64", "float32"}));
}

TEST(CustomOperatorFaults, a_compute_callback_that_contradicts_its_shapes) {
  const auto env = make_env();
  TestOperator known("Known"), late("Late");
  std::function<pfrt_code(const pfrt_op_compute*)> compute;
  known.infer = infer_like_input;
  known.compute = late.compute = [&](const pfrt_op_compute* call) { return compute(call); };
  ASSERT_TRUE(ok(known.add_to(env.get())));
  ASSERT_TRUE(ok(late.add_to(env.get())));
  const auto asks = [](uint32_t index, pfrt_dtype dtype, std::vector<int64_t> dims, int times = 1) {
    return [=](const pfrt_op_compute* call) {
      void* out = nullptr;
      for (int i = 0; i < times; ++i)
        (void)call->alloc_output(call, index, dtype, dims.data(),
                                 static_cast<uint32_t>(dims.size()), &out);
      return call->alloc_output(call, index, dtype, dims.data(), static_cast<uint32_t>(dims.size()),
                                &out);
    };
  };
  auto session = make_session(env.get(), one_node(known));
  ASSERT_TRUE(session);
  compute = asks(0, PFRT_DTYPE_FLOAT32, {3, 1});
  EXPECT_TRUE(fails(try_run(session.get(), {kRow}), PFRT_CODE_SHAPE_MISMATCH,
                    {"Known 'n1'", "[3,1]", "[1,3]"}));
  compute = asks(0, PFRT_DTYPE_INT8, {1, 3});
  EXPECT_TRUE(fails(try_run(session.get(), {kRow}), PFRT_CODE_DTYPE_MISMATCH, {"int8", "float32"}));
  compute = asks(5, PFRT_DTYPE_FLOAT32, {1, 3});
  EXPECT_TRUE(fails(try_run(session.get(), {kRow}), PFRT_CODE_INVALID_ARGUMENT, {"output 5 of 1"}));

  session = make_session(env.get(), one_node(late));
  ASSERT_TRUE(session);
  compute = [](const pfrt_op_compute*) -> pfrt_code { return PFRT_CODE_OK; };
  EXPECT_TRUE(fails(try_run(session.get(), {kRow}), PFRT_CODE_PROVIDER,
                    {"Late 'n1'", "did not allocate output 0 ('y')"}));
  compute = asks(0, PFRT_DTYPE_FLOAT32, {1, 3}, 1);
  EXPECT_TRUE(fails(try_run(session.get(), {kRow}), PFRT_CODE_INVALID_ARGUMENT, {"twice"}));
  compute = asks(0, PFRT_DTYPE_FLOAT32, {-1, 3}, 0);
  EXPECT_TRUE(fails(try_run(session.get(), {kRow}), PFRT_CODE_SHAPE_MISMATCH, {"[-1,3]"}));
  compute = asks(0, PFRT_DTYPE_FLOAT32, {int64_t{1} << 30, int64_t{1} << 24}, 0);
  EXPECT_TRUE(fails(try_run(session.get(), {kRow}), PFRT_CODE_OUT_OF_MEMORY, {"Late 'n1'"}));
}

}  // namespace
}  // namespace pfrt_test
