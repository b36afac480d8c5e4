// SPDX-License-Identifier: Apache-2.0
//
// The attributes of one node on their way into the graph: ABI views, and whatever they point to
// that the parsed message does not hold itself. Lives while its node is added; belongs to one
// thread.
#pragma once

#include <list>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "pfrt_onnx.pb.h"
#include "plugins/import_onnx/host.h"
#include "pyflame_rt/pyflame_rt.h"

namespace pfrt::onnx {

namespace wire = ::pfrt_onnx_wire;

// The type that |attribute| says it has or, for old models that do not say, that of the field it
// has; UNSET when it has none.
pfrt_attr_type attribute_type(const wire::AttributeProto& attribute);

class AttributeList {
 public:
  const pfrt_attr* data() const { return attrs_.data(); }
  size_t size() const { return attrs_.size(); }

  // A number, a text, a type or a list of numbers or texts, under |name|. The message must outlive
  // this object.
  Status add_plain(const std::string& name, pfrt_attr_type type,
                   const wire::AttributeProto& attribute);
  // TENSOR, SPARSE: one value; TENSORS: any number. GRAPH: one graph; GRAPHS: any number.
  void add_values(const std::string& name, pfrt_attr_type type, std::vector<pfrt_value*> values);
  void add_graphs(const std::string& name, pfrt_attr_type type, std::vector<pfrt_graph*> graphs);
  // Keeps a reference until this object goes.
  pfrt_value* keep(ValueRef value);
  pfrt_graph* keep(GraphRef graph);

 private:
  pfrt_attr& add(const std::string& name, pfrt_attr_type type);

  std::vector<pfrt_attr> attrs_;
  std::list<std::string> texts_;
  std::list<std::vector<pfrt_string>> string_lists_;
  std::list<std::vector<pfrt_value*>> value_lists_;
  std::list<std::vector<pfrt_graph*>> graph_lists_;
  std::vector<ValueRef> values_;
  std::vector<GraphRef> graphs_;
};

}  // namespace pfrt::onnx
