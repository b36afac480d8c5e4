// SPDX-License-Identifier: Apache-2.0
//
// Contradictions between a file's declarations and the values that its nodes make: declared shapes
// that a run contradicts, sparse initializers where operators take dense tensors.
#include "test/capi/client.h"
#include "test/onnx_writer.h"

namespace pfrt_test {
namespace {

using onnx_writer::Message;

constexpr const char* kLevels[] = {"none", "basic", "extended", "all"};

pfrt_value_info info(const char* name, const std::vector<int64_t>& dims,
                     pfrt_dtype dtype = PFRT_DTYPE_FLOAT32) {
  pfrt_value_info out{};
  out.struct_size = sizeof out;
  out.kind = PFRT_VALUE_TENSOR;
  out.dtype = dtype;
  out.name = str(name);
  out.rank = static_cast<int32_t>(dims.size());
  out.dims = dims.data();
  return out;
}

void declare(const GraphBuilder& g, const char* name, const std::vector<int64_t>& dims) {
  const pfrt_value_info i = info(name, dims);
  ASSERT_TRUE(ok(api().graph->set_value_info(g.get(), &i)));
}

void declare_output(const GraphBuilder& g, const char* name, const std::vector<int64_t>& dims) {
  const pfrt_value_info i = info(name, dims);
  ASSERT_TRUE(ok(api().graph->add_output(g.get(), &i)));
}

std::vector<std::string> warnings_of(const pfrt_model* model) {
  std::vector<std::string> out;
  for (size_t i = 0; i < api().model->warning_count(model); ++i) {
    pfrt_string warning{};
    EXPECT_TRUE(ok(api().model->warning_at(model, i, &warning)));
    out.push_back(text(warning));
  }
  return out;
}

// Expects the only result to have |shape| at each level.
void expect_shape(pfrt_env* env, const GraphBuilder& g, const std::vector<Array>& inputs,
                  const std::vector<int64_t>& shape) {
  for (const char* level : kLevels) {
    const auto options = make_options(PFRT_OPTIONS_SESSION, {{"optimization_level", level}});
    const auto session = make_session(env, g, options.get());
    const std::vector<Array> out = run(session.get(), inputs);
    ASSERT_EQ(out.size(), 1u);
    EXPECT_EQ(out[0].dims, shape) << level;
  }
}

TEST(Declared, size_of_a_resize_does_not_make_it_nothing) {
  const auto env = make_env();
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {1, 1, 2, 2});
  g.input("s", PFRT_DTYPE_INT64, {4});
  g.node("Resize", {"x", "", "", "s"}, {"r"});
  declare(g, "r", {1, 1, 2, 2});
  g.node("Relu", {"r"}, {"y"});
  declare_output(g, "y", {1, 1, 2, 2});
  expect_shape(env.get(), g, {floats({1, 1, 2, 2}, {1, 2, 3, 4}), int64s({4}, {1, 1, 4, 4})},
               {1, 1, 4, 4});
}

TEST(Declared, shape_of_a_reshape_does_not_choose_the_axis_of_a_softmax) {
  const auto env = make_env();
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {3, 4});
  g.input("s", PFRT_DTYPE_INT64, {2});
  g.node("Reshape", {"x", "s"}, {"r"});
  declare(g, "r", {1, 12});
  g.node("Softmax", {"r"}, {"y"}, {Attr::of_int("axis", 1)});
  declare_output(g, "y", {1, 12});
  const std::vector<Array> inputs = {floats({3, 4}, random_floats(12, 1)), int64s({2}, {4, 3})};
  expect_shape(env.get(), g, inputs, {4, 3});
  std::vector<std::vector<float>> results;
  for (const char* level : kLevels) {
    const auto options = make_options(PFRT_OPTIONS_SESSION, {{"optimization_level", level}});
    results.push_back(run(make_session(env.get(), g, options.get()).get(), inputs)[0].as<float>());
    EXPECT_NEAR(results.back()[0] + results.back()[1] + results.back()[2], 1, 1e-5) << level;
  }
}

// Callers may allocate an output by the dimensions that the session gives, so these must be right.
TEST(Declared, sizes_are_no_sizes_of_the_session_but_names_and_ranks_are) {
  const auto env = make_env();
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", 4});
  g.node("NonZero", {"x"}, {"y"});
  pfrt_value_info out = info("y", {}, PFRT_DTYPE_INT64);
  const int64_t dims[] = {2, 5};
  out.rank = 2;
  out.dims = dims;
  ASSERT_TRUE(ok(api().graph->add_output(g.get(), &out)));
  const auto session = make_session(env.get(), g);
  pfrt_value_info said{};
  said.struct_size = sizeof said;
  ASSERT_TRUE(ok(api().session->output_at(session.get(), 0, &said)));
  ASSERT_EQ(said.rank, 2);
  EXPECT_EQ(said.dims[0], 2);  // NonZero's rank of x
  EXPECT_EQ(said.dims[1], -1);
}

TEST(Declared, types_that_nodes_contradict_give_one_warning) {
  const auto env = make_env();
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {2, 3});
  g.node("Relu", {"x"}, {"a"}, {}, "first");
  g.node("Neg", {"a"}, {"b"});
  declare(g, "a", {2, 4});
  declare(g, "b", {3});
  g.node("Abs", {"b"}, {"y"});
  declare_output(g, "y", {2, 3});
  const auto model = make_model(env.get(), g);
  const std::vector<std::string> warnings = warnings_of(model.get());
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("2 declared types are not what the graph makes"), std::string::npos)
      << warnings[0];
  EXPECT_NE(warnings[0].find("Relu 'first': output 'a' is declared as float32[2,4], but the node "
                             "makes float32[2,3]"),
            std::string::npos)
      << warnings[0];
  EXPECT_TRUE(warnings_of(make_model(env.get(), add_graph()).get()).empty());
}

TEST(Declared, element_type_of_an_output_that_its_node_contradicts_is_an_error_naming_both) {
  const auto env = make_env();
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {2});
  g.node("Relu", {"x"}, {"a"}, {}, "first");
  const std::vector<int64_t> dims = {2};  // must outlive |wrong|
  const pfrt_value_info wrong = info("a", dims, PFRT_DTYPE_FLOAT16);
  ASSERT_TRUE(ok(api().graph->set_value_info(g.get(), &wrong)));
  g.node("Cast", {"a"}, {"y"}, {Attr::of_int("to", PFRT_DTYPE_INT64)}, "second");
  g.output("y");
  EXPECT_EQ(warnings_of(make_model(env.get(), g).get()).size(), 1u) << "of an inner value";
  EXPECT_TRUE(ok(try_session(env.get(), g)));
  const pfrt_value_info declared = info("y", dims, PFRT_DTYPE_FLOAT32);
  ASSERT_TRUE(ok(api().graph->set_value_info(g.get(), &declared)));
  for (const char* level : kLevels) {
    const auto options = make_options(PFRT_OPTIONS_SESSION, {{"optimization_level", level}});
    EXPECT_TRUE(fails(try_session(env.get(), g, options.get()), PFRT_CODE_INVALID_MODEL,
                      {"Cast 'second'", "output 'y'", "declared as float32", "makes int64"}))
        << level;
  }
}

// An expression in the name of an input's dimension is not computed: the caller may give any
// length.
TEST(Declared, names_that_read_as_expressions_tie_nothing) {
  const auto env = make_env();
  GraphBuilder g;
  g.input("a", PFRT_DTYPE_FLOAT32, {"N"});
  g.input("b", PFRT_DTYPE_FLOAT32, {"(N+1)"});
  g.constant("one", floats({1}, {1}));
  g.node("Concat", {"a", "one"}, {"c"}, {Attr::of_int("axis", 0)});
  g.node("Shape", {"b"}, {"s"});
  g.node("Expand", {"c", "s"}, {"y"});
  g.output("y");
  expect_shape(env.get(), g, {floats({0}, {}), floats({5}, {0, 0, 0, 0, 0})}, {5});
}

// A name that reads as a number, or as a sum of other names, ties nothing either.
TEST(Declared, names_that_are_no_words_are_no_sizes) {
  const auto env = make_env();
  const std::vector<std::vector<const char*>> names = {
      {"a", "b+c", "a+b", "c"}, {"N", "4", "N", "M"}, {"(N+4)", "M", "N", "4"}};
  for (const auto& dims : names) {
    GraphBuilder g;
    std::vector<Array> in;
    for (size_t i = 0; i < 4; ++i) {
      const std::string port(1, static_cast<char>('w' + i));
      g.input(port, PFRT_DTYPE_FLOAT32, {dims[i]});
      const int64_t size = dims[i] == dims[0] ? 2 : static_cast<int64_t>(i) + 3;
      in.push_back(floats({size}, std::vector<float>(static_cast<size_t>(size), 1)));
    }
    g.node("Concat", {"w", "x"}, {"u"}, {Attr::of_int("axis", 0)});
    g.node("Concat", {"y", "z"}, {"v"}, {Attr::of_int("axis", 0)});
    g.node("Shape", {"u"}, {"p"});
    g.node("Shape", {"v"}, {"q"});
    g.output("p");
    g.output("q");
    for (const char* level : kLevels) {
      const auto options = make_options(PFRT_OPTIONS_SESSION, {{"optimization_level", level}});
      const auto session = make_session(env.get(), g, options.get());
      const std::vector<Array> out = run(session.get(), in);
      ASSERT_EQ(out.size(), 2u);
      EXPECT_EQ(out[0].as<int64_t>()[0], in[0].dims[0] + in[1].dims[0]) << level << dims[1];
      EXPECT_EQ(out[1].as<int64_t>()[0], in[2].dims[0] + in[3].dims[0]) << level << dims[1];
    }
  }
}

Message sparse_tensor(std::string_view name, const std::vector<int64_t>& dims,
                      const std::vector<float>& values, const std::vector<int64_t>& indices) {
  const auto count = static_cast<int64_t>(values.size());
  Message out;
  out.message(
      1, onnx_writer::tensor(name, onnx_writer::kFloat, {count}, onnx_writer::raw_bytes(values)));
  out.message(
      2, onnx_writer::tensor("", onnx_writer::kInt64, {count}, onnx_writer::raw_bytes(indices)));
  for (int64_t d : dims) out.number(3, d);
  return out;
}

// y = x w with w a sparse initializer, GraphProto's field 15.
std::string sparse_model(const std::vector<int64_t>& dims) {
  Message node;
  node.text(1, "x").text(1, "w").text(2, "y").text(4, "MatMul");
  Message graph;
  graph.message(1, node);
  graph.text(2, "g");
  graph.message(11, onnx_writer::value_info("x", onnx_writer::kFloat, {1, dims[0]}));
  graph.message(12, onnx_writer::value_info("y", onnx_writer::kFloat, {1, dims[1]}));
  graph.message(15, sparse_tensor("w", dims, {5, 7}, {1, 3}));
  Message model;
  model.number(1, 8).message(7, graph).message(8, Message().text(1, "").number(2, 21));
  return model.bytes();
}

Handle<pfrt_model> load(pfrt_env* env, const std::string& bytes) {
  pfrt_model* model = nullptr;
  EXPECT_TRUE(ok(api().model->load_memory(env, bytes.data(), bytes.size(), PFRT_COPY, nullptr,
                                          nullptr, nullptr, &model)));
  return Handle<pfrt_model>(model);
}

TEST(SparseInitializer, is_dense_for_operators_that_take_dense_tensors) {
  const auto env = make_env();
  const auto model = load(env.get(), sparse_model({2, 2}));
  ASSERT_TRUE(model);
  for (const char* level : kLevels) {
    const auto options = make_options(PFRT_OPTIONS_SESSION, {{"optimization_level", level}});
    const auto session = make_session(env.get(), model.get(), options.get());
    const std::vector<Array> out = run(session.get(), {floats({1, 2}, {10, 1})});
    EXPECT_EQ(out[0].as<float>(), (std::vector<float>{0, 57})) << level;
  }
}

TEST(SparseInitializer, of_few_bytes_makes_no_huge_tensor) {
  const auto env = make_env();
  const auto model = load(env.get(), sparse_model({int64_t{1} << 20, int64_t{1} << 20}));
  ASSERT_TRUE(model);
  EXPECT_TRUE(fails(try_session(env.get(), model.get()), PFRT_CODE_UNSUPPORTED,
                    {"sparse initializer 'w'", "[1048576,1048576]", "store it as a dense"}));
}

}  // namespace
}  // namespace pfrt_test
