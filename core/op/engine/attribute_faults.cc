// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include "core/op/engine/check_operators.h"
#include "core/op/engine/operator_set.h"

namespace pfrt {
namespace {

struct NamedType {
  std::string_view name;
  pfrt_attr_type type;
};

// Attributes whose names have one type in every operator of ai.onnx that has them, at every opset.
constexpr NamedType kTypes[] = {
    {"activation_alpha", PFRT_ATTR_FLOATS},
    {"activation_beta", PFRT_ATTR_FLOATS},
    {"activations", PFRT_ATTR_STRINGS},
    {"align_corners", PFRT_ATTR_INT},
    {"allowzero", PFRT_ATTR_INT},
    {"alpha", PFRT_ATTR_FLOAT},
    {"antialias", PFRT_ATTR_INT},
    {"auto_pad", PFRT_ATTR_STRING},
    {"axes", PFRT_ATTR_INTS},
    {"axis", PFRT_ATTR_INT},
    {"batch_dims", PFRT_ATTR_INT},
    {"beta", PFRT_ATTR_FLOAT},
    {"block_size", PFRT_ATTR_INT},
    {"blocksize", PFRT_ATTR_INT},
    {"body", PFRT_ATTR_GRAPH},
    {"ceil_mode", PFRT_ATTR_INT},
    {"clip", PFRT_ATTR_FLOAT},
    {"coordinate_transformation_mode", PFRT_ATTR_STRING},
    {"count_include_pad", PFRT_ATTR_INT},
    {"cubic_coeff_a", PFRT_ATTR_FLOAT},
    {"dilations", PFRT_ATTR_INTS},
    {"direction", PFRT_ATTR_STRING},
    {"else_branch", PFRT_ATTR_GRAPH},
    {"epsilon", PFRT_ATTR_FLOAT},
    {"equation", PFRT_ATTR_STRING},
    {"exclusive", PFRT_ATTR_INT},
    {"extrapolation_value", PFRT_ATTR_FLOAT},
    {"fmod", PFRT_ATTR_INT},
    {"group", PFRT_ATTR_INT},
    {"hidden_size", PFRT_ATTR_INT},
    {"keepdims", PFRT_ATTR_INT},
    {"kernel_shape", PFRT_ATTR_INTS},
    {"largest", PFRT_ATTR_INT},
    {"linear_before_reset", PFRT_ATTR_INT},
    {"mode", PFRT_ATTR_STRING},
    {"momentum", PFRT_ATTR_FLOAT},
    {"nearest_mode", PFRT_ATTR_STRING},
    {"noop_with_empty_axes", PFRT_ATTR_INT},
    {"num_outputs", PFRT_ATTR_INT},
    {"num_scan_inputs", PFRT_ATTR_INT},
    {"output_dtype", PFRT_ATTR_INT},
    {"output_padding", PFRT_ATTR_INTS},
    {"pads", PFRT_ATTR_INTS},
    {"padding_mode", PFRT_ATTR_STRING},
    {"perm", PFRT_ATTR_INTS},
    {"precision", PFRT_ATTR_INT},
    {"reduction", PFRT_ATTR_STRING},
    {"reverse", PFRT_ATTR_INT},
    {"round_mode", PFRT_ATTR_STRING},
    {"saturate", PFRT_ATTR_INT},
    {"select_last_index", PFRT_ATTR_INT},
    {"sorted", PFRT_ATTR_INT},
    {"storage_order", PFRT_ATTR_INT},
    {"strides", PFRT_ATTR_INTS},
    {"then_branch", PFRT_ATTR_GRAPH},
    {"training_mode", PFRT_ATTR_INT},
    {"transA", PFRT_ATTR_INT},
    {"transB", PFRT_ATTR_INT},
    {"upper", PFRT_ATTR_INT},
};

std::string_view type_name(pfrt_attr_type type) {
  constexpr std::string_view kNames[] = {
      "?",    "a float", "an int",  "a string", "a tensor",        "a graph",        "floats",
      "ints", "strings", "tensors", "graphs",   "a sparse tensor", "sparse tensors", "a type"};
  return type < std::size(kNames) ? kNames[type] : kNames[0];
}

void check(const Graph& graph, std::vector<Status>& faults) {
  for (NodeId id : graph.node_ids()) {
    const Node& node = *graph.node(id);
    for (const Attribute& a : node.attrs) {
      if (a.graph) check(*a.graph, faults);
      for (const auto& body : a.graphs) check(*body, faults);
      if (!node.domain.empty() && node.domain != "ai.onnx") continue;
      if (!find_canonical(graph, node)) continue;
      const auto* row = std::find_if(std::begin(kTypes), std::end(kTypes),
                                     [&](const NamedType& t) { return t.name == a.name; });
      if (row == std::end(kTypes) || row->type == a.type) continue;
      faults.push_back(error(Code::kVALIDATION, describe(graph, node), ": attribute '", a.name,
                             "' is ", type_name(a.type), ", must be ", type_name(row->type)));
    }
  }
}

}  // namespace

std::vector<Status> attribute_faults(const Graph& graph) {
  std::vector<Status> faults;
  check(graph, faults);
  return faults;
}

}  // namespace pfrt
