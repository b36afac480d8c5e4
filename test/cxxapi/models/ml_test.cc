// SPDX-License-Identifier: Apache-2.0
//
// ai.onnx.ml through the C++ API: maps as results, and ensembles that are malformed.
#include <gtest/gtest.h>

#include <limits>
#include <pyflame_rt/pyflame_rt.hpp>

namespace pfrt_test {
namespace {

using namespace pyflame_rt;
using Attrs = std::map<std::string, AttributeValue>;
using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;
using Texts = std::vector<std::string>;

Graph ml_graph(const std::string& op, const Attrs& attrs, const Shape& input,
               const std::vector<std::string>& outputs) {
  Graph graph("ml");
  graph.add_input({"x", input, DType::Float32});
  auto node =
      std::make_shared<Node>("the_node", op, std::vector<std::string>{"x"}, outputs, "ai.onnx.ml");
  for (const auto& [name, value] : attrs)
    std::visit([&n = name, &node](const auto& v) { node->set_attr(n, v); }, value);
  graph.add_node(node);
  for (const std::string& output : outputs) graph.add_output({output, {}, DType::Undefined});
  return graph;
}

// x0 <= 0.5 ? (x1 <= 1 ? 1 : 2) : 3
Attrs stump() {
  return {{"nodes_treeids", Ints(5, 4)},
          {"nodes_nodeids", Ints{0, 1, 2, 3, 4}},
          {"nodes_featureids", Ints{0, 1, 0, 0, 0}},
          {"nodes_modes", Texts{"BRANCH_LEQ", "BRANCH_LEQ", "LEAF", "LEAF", "LEAF"}},
          {"nodes_values", Floats{0.5f, 1, 0, 0, 0}},
          {"nodes_truenodeids", Ints{1, 3, 0, 0, 0}},
          {"nodes_falsenodeids", Ints{2, 4, 0, 0, 0}},
          {"target_treeids", Ints(3, 4)},
          {"target_nodeids", Ints{2, 3, 4}},
          {"target_ids", Ints(3, 0)},
          {"target_weights", Floats{3, 1, 2}},
          {"n_targets", int64_t{1}}};
}

TEST(Ml, a_sequence_of_maps_is_read) {
  const Graph graph =
      ml_graph("ZipMap", {{"classlabels_strings", Texts{"setosa", "iris"}}}, {3, 2}, {"y"});
  const InferenceSession session(graph);
  const Tensor x = Tensor::from_vector(Floats{1, 2, 3, 4, 5, 6}, {3, 2});
  const std::vector<Value> results = session.run_values({}, {{"x", x}});
  ASSERT_EQ(results.size(), 1u);
  ASSERT_EQ(results[0].kind(), ValueKind::Sequence);
  ASSERT_EQ(results[0].size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const Value map = results[0].at(i);
    ASSERT_EQ(map.kind(), ValueKind::Map);
    EXPECT_EQ(map.size(), 2u);
    const auto [keys, values] = map.map_parts();
    EXPECT_EQ(keys.string_at(0), "setosa");
    EXPECT_EQ(keys.string_at(1), "iris");
    EXPECT_EQ(values.data_ptr<float>()[0], static_cast<float>(2 * i + 1));
    EXPECT_EQ(values.data_ptr<float>()[1], static_cast<float>(2 * i + 2));
  }
}

TEST(Ml, a_tree_takes_its_branches) {
  const InferenceSession session(ml_graph("TreeEnsembleRegressor", stump(), {4, 2}, {"y"}));
  const Tensor x = Tensor::from_vector(Floats{0, 0, 0, 2, 1, 0, 0.5f, 1}, {4, 2});
  const Tensor y = session.run({}, {{"x", x}})[0];
  EXPECT_EQ(y.shape(), (std::vector<int64_t>{4, 1}));
  const Floats expected{1, 2, 3, 1};
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(y.data_ptr<float>()[i], expected[i]) << i;
}

struct Malformed {
  const char* op;
  Attrs attrs;
  const char* attribute;
  const char* what;
};

Malformed changed(const char* name, AttributeValue value, const char* what) {
  Attrs attrs = stump();
  attrs.insert_or_assign(name, std::move(value));
  return {"TreeEnsembleRegressor", std::move(attrs), name, what};
}

std::vector<Malformed> malformed() {
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  std::vector<Malformed> all = {
      changed("nodes_truenodeids", Ints{1, 0, 0, 0, 0}, "cycle"),
      changed("nodes_truenodeids", Ints{0, 3, 0, 0, 0}, "cycle"),
      changed("nodes_truenodeids", Ints{77, 3, 0, 0, 0}, "node 77 of tree 4"),
      changed("nodes_falsenodeids", Ints{kHuge, 4, 0, 0, 0}, "9223372036854775807"),
      changed("nodes_falsenodeids", Ints{2, 4, 0, 0}, "4 elements, expected 5"),
      changed("nodes_nodeids", Ints{0, 1, 2, 3, 3}, "node 3 of tree 4 twice"),
      changed("nodes_featureids", Ints{-1, 1, 0, 0, 0}, "feature -1"),
      changed("nodes_featureids", Ints{kHuge, 1, 0, 0, 0}, "9223372036854775807"),
      changed("nodes_featureids", Ints{9, 1, 0, 0, 0}, "feature 9, input 0 has 2 columns"),
      changed("nodes_modes", Texts{"BRANCH_LEQ", "SIDEWAYS", "LEAF", "LEAF", "LEAF"}, "SIDEWAYS"),
      changed("nodes_modes", Texts{}, "no tree"),
      changed("nodes_values", Floats{1}, "1 elements, expected 5"),
      changed("target_nodeids", Ints{2, 3, 9}, "node 9 of tree 4"),
      changed("target_ids", Ints{0, 1, 0}, "has 1, expected 0 to 0"),
      changed("target_ids", Ints{0, -1, 0}, "has -1"),
      changed("target_weights", Floats{1, 2}, "2 elements, expected 3"),
      changed("base_values", Floats{1, 2}, "2 elements"),
      changed("n_targets", int64_t{0}, "is 0"),
      changed("n_targets", kHuge, "9223372036854775807"),
      changed("aggregate_function", std::string("MEDIAN"), "MEDIAN"),
      changed("post_transform", std::string("ARCTAN"), "ARCTAN"),
      changed("nodes_missing_value_tracks_true", Ints{1}, "1 elements, expected 5"),
  };
  all.push_back({"SVMRegressor",
                 {{"coefficients", Floats{1, 2}}, {"rho", Floats{}}},
                 "rho",
                 "0 elements, needs 1"});
  all.push_back({"SVMRegressor",
                 {{"coefficients", Floats{1, 2}}, {"rho", Floats{1}}, {"n_supports", kHuge}},
                 "coefficients",
                 "needs 9223372036854775807"});
  all.push_back({"SVMClassifier",
                 {{"coefficients", Floats{1, 2}},
                  {"rho", Floats{1}},
                  {"classlabels_ints", Ints{0, 1}},
                  {"vectors_per_class", Ints{-4, 9}}},
                 "vectors_per_class",
                 "has -4"});
  all.push_back({"LinearRegressor",
                 {{"coefficients", Floats{1, 2, 3}}, {"targets", kHuge}},
                 "coefficients",
                 "9223372036854775807 rows"});
  all.push_back({"Scaler",
                 {{"offset", Floats{1, 2, 3}}, {"scale", Floats{1, 2, 3}}},
                 "offset",
                 "expected 1 or 2"});
  all.push_back({"FeatureVectorizer", {{"inputdimensions", Ints{-3}}}, "inputdimensions", "-3"});
  all.push_back({"Normalizer", {{"norm", std::string("L3")}}, "norm", "L3"});
  all.push_back({"LabelEncoder",
                 {{"keys_floats", Floats{1, 2}}, {"values_int64s", Ints{1}}},
                 "",
                 "2 keys and 1"});
  all.push_back({"LabelEncoder", {{"keys_floats", Floats{1, 2}}}, "values_", "needs one of"});
  all.push_back({"OneHotEncoder", {}, "cats_int64s", "empty or absent"});
  all.push_back({"ZipMap", {{"classlabels_int64s", Ints{1, 2, 3}}}, "", "3 keys for 2 columns"});
  return all;
}

TEST(Ml, malformed_models_are_refused_by_node_and_attribute) {
  for (const Malformed& c : malformed()) {
    std::string error;
    try {
      const InferenceSession session(ml_graph(c.op, c.attrs, {4, 2}, {"y"}));
      Tensor x({4, 2}, DType::Float32);
      x.zero();
      (void)session.run_values({}, {{"x", x}});
    } catch (const PyFlameRTError& e) {
      error = e.what();
    }
    EXPECT_NE(error.find("the_node"), std::string::npos) << c.op << ": '" << error << "'";
    EXPECT_NE(error.find(c.attribute), std::string::npos) << c.op << ": '" << error << "'";
    EXPECT_NE(error.find(c.what), std::string::npos)
        << c.op << " " << c.attribute << ": '" << error << "' lacks '" << c.what << "'";
  }
}

}  // namespace
}  // namespace pfrt_test
