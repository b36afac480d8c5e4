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

}  // namespace pfrt_test
