// SPDX-License-Identifier: Apache-2.0
#include "test/capi/plugin/custom_operator.h"

namespace pfrt_test {

GraphBuilder scale_graph(const std::vector<Attr>& attrs) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", 3});
  g.constant("one", floats({1}, {1}));
  g.node("Add", {"x", "one"}, {"a"});
  g.node("Scale", {"a"}, {"s"}, attrs, "scaling", "acme");
  g.node("Relu", {"s"}, {"y"});
  g.output("y");
  return g;
}

GraphBuilder one_node(const TestOperator& op, const std::vector<Attr>& attrs) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", 3});
  g.node(op.name, {"x"}, {"y"}, attrs, "n1", op.domain);
  g.output("y");
  return g;
}

Failure try_run_values(pfrt_session* session, const std::vector<pfrt_value*>& inputs,
                       Handle<pfrt_value>* output) {
  std::vector<pfrt_io> in(inputs.size()), out(api().session->output_count(session));
  for (size_t i = 0; i < in.size(); ++i) {
    in[i].struct_size = sizeof in[i];
    in[i].value = inputs[i];
  }
  for (pfrt_io& io : out) io.struct_size = sizeof io;
  Failure failure =
      take(api().session->run(session, in.data(), in.size(), out.data(), out.size(), nullptr));
  for (size_t i = 0; i < out.size(); ++i) {
    Handle<pfrt_value> value(out[i].value);
    if (i == 0 && output) *output = std::move(value);
  }
  return failure;
}

Handle<pfrt_value> texts_value(const std::vector<int64_t>& dims,
                               const std::vector<std::string>& texts) {
  pfrt_value* raw = nullptr;
  EXPECT_TRUE(ok(api().value->create_tensor(PFRT_DTYPE_STRING, dims.data(), dims.size(), &raw)));
  for (size_t i = 0; i < texts.size(); ++i)
    EXPECT_TRUE(ok(api().value->set_string(raw, i, str(texts[i]))));
  return Handle<pfrt_value>(raw);
}

std::vector<std::string> texts_of(const pfrt_value* value) {
  pfrt_tensor tensor{};
  tensor.struct_size = sizeof tensor;
  EXPECT_TRUE(ok(api().value->tensor(value, &tensor)));
  EXPECT_EQ(tensor.dtype, PFRT_DTYPE_STRING);
  std::vector<std::string> out;
  if (tensor.dtype != PFRT_DTYPE_STRING) return out;
  for (uint64_t i = 0; i < count_of(tensor); ++i)
    out.push_back(text(static_cast<const pfrt_string*>(tensor.data)[i]));
  return out;
}

}  // namespace pfrt_test
