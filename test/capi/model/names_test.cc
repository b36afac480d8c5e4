// SPDX-License-Identifier: Apache-2.0
//
// Inputs and outputs of a session by name, and views of tensors that claim more than their bytes
// hold.
#include "test/capi/client.h"

namespace pfrt_test {
namespace {

// d = a - b, with a default for b; p = a * b.
Handle<pfrt_session> difference(pfrt_env* env) {
  GraphBuilder g;
  g.input("a", PFRT_DTYPE_FLOAT32, {2});
  g.input("b", PFRT_DTYPE_FLOAT32, {2});
  g.constant("b", floats({2}, {1, 1}));
  g.node("Sub", {"a", "b"}, {"d"});
  g.node("Mul", {"a", "b"}, {"p"});
  g.output("d");
  g.output("p");
  return make_session(env, g);
}

pfrt_io io_of(std::vector<float>& values) {
  static const int64_t kDims[] = {2};
  pfrt_io io{};
  io.struct_size = sizeof io;
  io.tensor.struct_size = sizeof io.tensor;
  io.tensor.dtype = PFRT_DTYPE_FLOAT32;
  io.tensor.rank = 1;
  io.tensor.dims = kDims;
  io.tensor.data = values.data();
  io.tensor.bytes = 8;
  return io;
}

class Names : public testing::Test {
 protected:
  Failure run(const std::vector<std::string_view>& ins, std::vector<pfrt_io> inputs,
              const std::vector<std::string_view>& outs, std::vector<pfrt_io>& outputs) {
    std::vector<pfrt_string> in, out;
    for (std::string_view name : ins) in.push_back(str(name));
    for (std::string_view name : outs) out.push_back(str(name));
    return take(api().session->run_named(session_.get(), in.data(), inputs.data(), in.size(),
                                         out.data(), outputs.data(), out.size(), nullptr));
  }
  Handle<pfrt_env> env_ = make_env();
  Handle<pfrt_session> session_ = difference(env_.get());
  std::vector<float> a_{5, 7}, b_{2, 3}, d_{0, 0}, p_{0, 0};
};

TEST_F(Names, say_where_a_port_stands) {
  size_t at = 9;
  ASSERT_TRUE(ok(api().session->input_index(session_.get(), str("b"), &at)));
  EXPECT_EQ(at, 1u);
  ASSERT_TRUE(ok(api().session->output_index(session_.get(), str("d"), &at)));
  EXPECT_EQ(at, 0u);
  EXPECT_TRUE(fails(api().session->input_index(session_.get(), str("d"), &at), PFRT_CODE_NOT_FOUND,
                    {"'d'", "'a', 'b'"}));
  EXPECT_TRUE(fails(api().session->output_index(session_.get(), str(""), &at), PFRT_CODE_NOT_FOUND,
                    {"'d', 'p'"}));
  EXPECT_TRUE(fails(api().session->input_index(session_.get(), {nullptr, 3}, &at),
                    PFRT_CODE_INVALID_ARGUMENT, {"name"}));
}

TEST_F(Names, run_in_any_order_and_leave_out_what_may_be_left_out) {
  std::vector<pfrt_io> outputs{io_of(p_), io_of(d_)};
  ASSERT_TRUE(ok(run({"b", "a"}, {io_of(b_), io_of(a_)}, {"p", "d"}, outputs)));
  EXPECT_EQ(d_, (std::vector<float>{3, 4}));
  EXPECT_EQ(p_, (std::vector<float>{10, 21}));
  outputs = {io_of(d_)};
  ASSERT_TRUE(ok(run({"a"}, {io_of(a_)}, {"d"}, outputs)));
  EXPECT_EQ(d_, (std::vector<float>{4, 6}));
  outputs.assign(1, {});
  outputs[0].struct_size = sizeof(pfrt_io);
  ASSERT_TRUE(ok(run({"a", "b"}, {io_of(a_), io_of(b_)}, {"p"}, outputs)));
  const Handle<pfrt_value> value(outputs[0].value);
  ASSERT_TRUE(value);
  EXPECT_EQ(array_of(value.get()).as<float>(), (std::vector<float>{10, 21}));
}

TEST_F(Names, that_are_wrong_are_named_with_what_there_is) {
  std::vector<pfrt_io> outputs{io_of(d_)};
  EXPECT_TRUE(fails(run({"x"}, {io_of(a_)}, {"d"}, outputs), PFRT_CODE_INPUT,
                    {"no input 'x'", "'a', 'b'"}));
  EXPECT_TRUE(fails(run({"a"}, {io_of(a_)}, {"y"}, outputs), PFRT_CODE_INPUT,
                    {"no output 'y'", "'d', 'p'"}));
  EXPECT_TRUE(fails(run({"a", "a"}, {io_of(a_), io_of(b_)}, {"d"}, outputs), PFRT_CODE_INPUT,
                    {"'a' is given twice"}));
  EXPECT_TRUE(fails(run({"b"}, {io_of(b_)}, {"d"}, outputs), PFRT_CODE_INPUT, {"'a'"}));
  EXPECT_EQ(outputs[0].value, nullptr);
}

TEST_F(Names, of_a_view_at_an_offset_count_from_there) {
  std::vector<float> wide{9, 9, 5, 7};
  pfrt_io input = io_of(wide);
  input.tensor.offset = 8;
  std::vector<float> room{0, 0, 0, 0};
  std::vector<pfrt_io> outputs{io_of(room)};
  outputs[0].tensor.offset = 4;
  ASSERT_TRUE(ok(run({"a"}, {input}, {"d"}, outputs)));
  EXPECT_EQ(room, (std::vector<float>{0, 4, 6, 0}));
}

TEST_F(Names, of_a_view_that_says_what_nobody_knows_are_refused) {
  std::vector<pfrt_io> outputs{io_of(d_)};
  pfrt_io input = io_of(a_);
  const pfrt_quantization quantization{sizeof quantization, -1, 0, nullptr, nullptr};
  input.tensor.quantization = &quantization;
  EXPECT_TRUE(fails(run({"a"}, {input}, {"d"}, outputs), PFRT_CODE_UNSUPPORTED,
                    {"input 'a'", "quantization"}));
  input = io_of(a_);
  input.tensor.extension = &input;
  EXPECT_TRUE(fails(run({"a"}, {input}, {"d"}, outputs), PFRT_CODE_UNSUPPORTED,
                    {"input 'a'", "extension"}));
  outputs[0].tensor.extension = &input;
  EXPECT_TRUE(fails(run({"a"}, {io_of(a_)}, {"d"}, outputs), PFRT_CODE_UNSUPPORTED, {"extension"}));
}

}  // namespace
}  // namespace pfrt_test
