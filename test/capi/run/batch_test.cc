// SPDX-License-Identifier: Apache-2.0
//
// deterministic=batch: each row of a batch has the bits that it has by itself.
#include <functional>

#include "test/capi/client.h"

namespace pfrt_test {
namespace {

struct Rows {
  const char* name;
  std::vector<int64_t> row;  // dimensions of x after the batch
  std::function<void(GraphBuilder& g)> add;
};
void PrintTo(const Rows& rows, std::ostream* out) { *out << rows.name; }

// Adds y = x W, with the factors in another type.
void add_product(GraphBuilder& g, int64_t k, int64_t n, int64_t type) {
  g.constant("w32", noise({k, n}, 1));
  g.node("Cast", {"w32"}, {"w"}, {Attr::of_int("to", type)});
  g.node("Cast", {"x"}, {"xt"}, {Attr::of_int("to", type)});
  g.node("MatMul", {"xt", "w"}, {"y"});
}

std::vector<Rows> all_rows() {
  std::vector<Rows> out;
  for (const auto& [k, n] : {std::pair<int64_t, int64_t>{7, 5}, {65, 100}, {300, 1000}, {513, 64}})
    for (const int64_t type : {PFRT_DTYPE_FLOAT32, PFRT_DTYPE_FLOAT16, PFRT_DTYPE_BFLOAT16}) {
      const int64_t depth = k, columns = n;
      out.push_back({"product", {k}, [depth, columns, type](GraphBuilder& g) {
                       add_product(g, depth, columns, type);
                     }});
    }
  for (const auto& [k, n] : {std::pair<int64_t, int64_t>{7, 5}, {300, 33}, {64, 1000}}) {
    const int64_t depth = k, columns = n;
    out.push_back({"gemm", {k}, [depth, columns](GraphBuilder& g) {
                     g.constant("w", noise({columns, depth}, 2));
                     g.constant("b", noise({columns}, 3));
                     g.node("Gemm", {"x", "w", "b"}, {"y"}, {Attr::of_int("transB", 1)});
                   }});
  }
  for (const auto& [in, channels] : {std::pair<int64_t, int64_t>{3, 16}, {64, 64}}) {
    const int64_t from = in, to = channels;
    out.push_back({"conv", {in, 14, 14}, [from, to](GraphBuilder& g) {
                     g.constant("w", noise({to, from, 3, 3}, 4));
                     g.node("Conv", {"x", "w"}, {"y"}, {Attr::of_ints("pads", {1, 1, 1, 1})});
                   }});
  }
  out.push_back({"reductions", {300, 20}, [](GraphBuilder& g) {
                   g.constant("tokens", int64s({1}, {1}));
                   g.constant("features", int64s({1}, {2}));
                   g.node("ReduceMean", {"x", "tokens"}, {"mean"});
                   g.node("Sub", {"x", "mean"}, {"centred"});
                   g.node("ReduceL2", {"centred", "features"}, {"length"});
                   g.node("Div", {"centred", "length"}, {"unit"});
                   g.node("LogSoftmax", {"unit"}, {"y"});
                 }});
  out.push_back({"network", {11, 64}, [](GraphBuilder& g) {
                   g.constant("w", noise({64, 256}, 5));
                   g.constant("b", noise({256}, 6));
                   g.constant("v", noise({256, 64}, 7));
                   g.constant("scale", noise({64}, 8));
                   g.node("MatMul", {"x", "w"}, {"wide"});
                   g.node("Add", {"wide", "b"}, {"moved"});
                   g.node("Relu", {"moved"}, {"positive"});
                   g.node("MatMul", {"positive", "v"}, {"narrow"});
                   g.node("Add", {"narrow", "x"}, {"sum"});
                   g.node("LayerNormalization", {"sum", "scale"}, {"normal"});
                   g.node("Softmax", {"normal"}, {"y"});
                 }});
  return out;
}

class Batch : public testing::TestWithParam<Rows> {
 protected:
  static Handle<pfrt_options> batch() {
    return make_options(PFRT_OPTIONS_SESSION, {{"deterministic", "batch"}});
  }
  Handle<pfrt_env> env_ = make_env();
};

TEST_P(Batch, has_the_bits_of_its_rows_alone) {
  GraphBuilder g;
  std::vector<DimSpec> dims = {"N"};
  int64_t of_row = 1;
  for (const int64_t d : GetParam().row) {
    dims.emplace_back(d);
    of_row *= d;
  }
  g.input("x", PFRT_DTYPE_FLOAT32, dims);
  GetParam().add(g);
  g.output("y");
  const auto options = batch();
  const auto session = make_session(env_.get(), g, options.get());
  ASSERT_TRUE(session);
  const auto rows_of = [&](const std::vector<float>& x, int64_t first, int64_t count) {
    std::vector<int64_t> shape = GetParam().row;
    shape.insert(shape.begin(), count);
    const auto begin = x.begin() + first * of_row;
    return run(session.get(), {floats(shape, {begin, begin + count * of_row})})[0].bytes;
  };
  for (const int64_t n : {2, 13, 40}) {
    const std::vector<float> x =
        random_floats(static_cast<size_t>(n * of_row), static_cast<uint32_t>(n));
    const std::vector<char> whole = rows_of(x, 0, n);
    const auto bytes = static_cast<ptrdiff_t>(whole.size()) / n;
    for (const int64_t count : {1, 2})
      for (const int64_t first : {int64_t{0}, (n - count) / 2, n - count}) {
        const std::vector<char> part = rows_of(x, first, count);
        const auto begin = whole.begin() + first * bytes;
        EXPECT_EQ(part, std::vector<char>(begin, begin + count * bytes))
            << count << " rows of " << n << " from " << first;
      }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Batch, testing::ValuesIn(all_rows()));

TEST(BatchOption, goes_with_no_search_for_precisions) {
  const auto env = make_env();
  const auto options =
      make_options(PFRT_OPTIONS_SESSION, {{"deterministic", "batch"}, {"precision", "auto"}});
  EXPECT_TRUE(fails(try_session(env.get(), add_graph(), options.get()), PFRT_CODE_INVALID_ARGUMENT,
                    {"deterministic 'batch'", "precision 'auto'"}));
}

TEST(BatchOption, takes_no_provider_that_does_not_promise_it) {
  const auto env = make_env({{"plugin_path", PFRT_DEVICE_PLUGINS}});
  const auto options =
      make_options(PFRT_OPTIONS_SESSION,
                   {{"deterministic", "batch"}, {"providers", "DeviceExecutionProvider,cpu"}});
  EXPECT_TRUE(fails(try_session(env.get(), add_graph(), options.get()), PFRT_CODE_UNSUPPORTED,
                    {"deterministic is 'batch'", "DeviceExecutionProvider", "leave it out"}));
}

}  // namespace
}  // namespace pfrt_test
