// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>

#include "test/core/pass/graphs.h"

namespace pfrt::test {
namespace {

const std::vector<std::map<std::string, int64_t>> kBatches{{{"N", 1}}, {{"N", 3}}, {{"N", 0}}};

TEST(Movement, nodes_that_move_nothing_go) {
  PassGraph g;
  std::string x = g.node("Exp", {g.input("x", {"N", "3", "4"})});
  x = g.node("Transpose", {x}, {perm({0, 1, 2})});
  x = g.node("Reshape", {x, g.ints({0, 3, 4})});
  x = g.node("Reshape", {x, g.ints({-1, 3, 4})});
  x = g.node("Expand", {x, g.ints({3, 4})});
  x = g.node("Expand", {x, g.ints({1, 1})});
  x = g.node("Tile", {x, g.ints({1, 1, 1})});
  x = g.node("Slice", {x, g.ints({0}), g.ints({INT64_MAX}), g.ints({0})});
  x = g.node("Slice", {x, g.ints({0, -9}), g.ints({3, 9}), g.ints({1, 2})});
  x = g.node("Pad", {x, g.ints({0, 0, 0, 0, 0, 0})});
  x = g.node("Concat", {x}, {axis(1)});
  x = g.node("Split", {x}, {axis(1)});
  x = g.node("Gather", {x, g.ints({0, 1, 2})}, {axis(1)});
  x = g.node("Cast", {x}, {Attribute::of_int("to", PFRT_DTYPE_FLOAT32)});
  x = g.node("ReduceMax", {x}, {Attribute::of_int("noop_with_empty_axes", 1)});
  g.output(g.node("Sqrt", {x}));
  EXPECT_EQ(g.optimised(kBatches), "Exp, Sqrt");
}

// Only a run can tell whether the dimension has the size, and Split refuses any other.
TEST(Movement, a_piece_of_a_size_that_may_not_fit_stays) {
  PassGraph g;
  const std::string x = g.node("Exp", {g.input("x", {"N"})});
  g.output(g.node("Sqrt", {g.node("Split", {x, g.ints({4})}, {axis(0)})}));
  EXPECT_EQ(g.optimised({{{"N", 4}}}), "Exp, Split, Sqrt");
}

// Joining pieces may remove the last user of a size that was seen before.
TEST(Movement, sizes_that_nobody_makes_any_more_are_not_joined_with) {
  PassGraph g;
  const std::string x = g.input("x", {"N", "C"}), y = g.input("y", {"C", "N"});
  const std::string n = g.node("Slice", {g.node("Shape", {y}), g.ints({1}), g.ints({2})});
  const std::string again = g.node("Slice", {g.node("Shape", {x}), g.ints({0}), g.ints({1})});
  const std::string shape = g.node("Shape", {g.node("Abs", {x})});
  const std::string c = g.node("Slice", {shape, g.ints({1}), g.ints({2})});
  g.output(g.node("Concat", {n, again, c}, {axis(0)}));
  g.optimised({{{"N", 3}, {"C", 4}}, {{"N", 1}, {"C", 0}}});
  EXPECT_FALSE(HasFailure());
}

TEST(Movement, nodes_that_move_something_stay) {
  const auto left = [](const std::string& op, std::vector<std::string> (*more)(PassGraph&),
                       std::vector<Attribute> attrs) {
    PassGraph g;
    std::vector<std::string> inputs{g.node("Exp", {g.input("x", {"N", "3", "3"})})};
    for (const std::string& in : more(g)) inputs.push_back(in);
    g.output(g.node("Sqrt", {g.node(op, inputs, std::move(attrs))}));
    return g.optimised(kBatches);
  };
  const auto none = [](PassGraph&) { return std::vector<std::string>(); };
  EXPECT_EQ(left("Transpose", none, {perm({0, 2, 1})}), "Exp, Transpose, Sqrt");
  EXPECT_EQ(left("Slice",
                 [](PassGraph& g) -> std::vector<std::string> {
                   return {g.ints({-1}), g.ints({INT64_MIN}), g.ints({1}), g.ints({-1})};
                 },
                 {}),
            "Exp, Slice, Sqrt");
  EXPECT_EQ(left("Pad",
                 [](PassGraph& g) -> std::vector<std::string> {
                   return {g.ints({0, 1, 0, 0, -1, 0})};
                 },
                 {}),
            "Exp, Pad, Sqrt");
  EXPECT_EQ(left("Gather",
                 [](PassGraph& g) -> std::vector<std::string> {
                   return {g.ints({0, 2, 1})};
                 },
                 {axis(1)}),
            "Exp, Gather, Sqrt");
  EXPECT_EQ(left("Expand",
                 [](PassGraph& g) -> std::vector<std::string> {
                   return {g.ints({2, 1, 1, 1})};
                 },
                 {}),
            "Exp, Expand, Sqrt");
}

TEST(Movement, dimensions_of_one_are_taken_away_without_work) {
  PassGraph g(18);
  std::string x = g.node("Exp", {g.input("x", {"N", "1", "4"})});
  const std::string one = g.constant({0});
  g.output(g.node("Gather", {x, g.node("Cast", {one}, {Attribute::of_int("to", PFRT_DTYPE_INT64)})},
                  {axis(1)}));
  g.output(
      g.node("ReduceMean", {g.node("Neg", {x}), g.ints({1})}, {Attribute::of_int("keepdims", 0)}));
  const std::string table = g.node("Unsqueeze", {g.ints({0}), g.ints({0})});
  g.output(g.node("Gather", {g.node("Abs", {x}), table}, {axis(1)}));  // N 1 1 4
  EXPECT_EQ(g.optimised(kBatches), "Exp, Neg, Abs, Squeeze, Squeeze, Reshape");
}

TEST(Reshape, chains_become_one) {
  PassGraph g;
  std::string x = g.node("Exp", {g.input("x", {"N", "3", "4"})});
  x = g.node("Flatten", {x}, {axis(1)});
  x = g.node("Unsqueeze", {x, g.ints({1})});
  x = g.node("Reshape", {x, g.ints({0, 2, 6})});
  g.output(g.node("Sqrt", {x}));
  EXPECT_EQ(g.optimised(kBatches), "Exp, Reshape, Sqrt");
}

TEST(Reshape, what_was_put_in_is_taken_out_whatever_the_dimensions) {
  PassGraph g(11);
  const std::string x = g.input("x", {"N", "M"});
  std::string y =
      g.node("Compress",
             {x, g.node("Cast", {g.ints({1, 0, 1})}, {Attribute::of_int("to", PFRT_DTYPE_BOOL)})},
             {axis(0)});
  y = g.node("Unsqueeze", {y}, {Attribute::of_ints("axes", {0, 3})});
  y = g.node("Squeeze", {y}, {Attribute::of_ints("axes", {-1, 0})});
  g.output(g.node("Exp", {y}));
  EXPECT_EQ(g.optimised({{{"N", 3}, {"M", 2}}}), "Compress, Exp");
}

// PyTorch exports x.view(x.size(0), -1) and x.view(x.size(0), x.size(1), 2, 6) so.
TEST(Reshape, shapes_computed_in_the_graph_become_constants) {
  PassGraph g;
  const std::string x = g.node("Exp", {g.input("x", {"N", "C", "12"})});
  const auto dim = [&](int64_t at) {
    return g.node("Slice", {g.node("Shape", {x}), g.ints({at}), g.ints({at + 1}), g.ints({0})});
  };
  const std::string flat = g.node("Concat", {dim(0), g.ints({-1})}, {axis(0)});
  g.output(g.node("Reshape", {x, flat}));
  const std::string heads = g.node("Concat", {dim(0), dim(1), g.ints({2}), g.ints({6})}, {axis(0)});
  g.output(g.node("Sqrt", {g.node("Reshape", {x, heads})}));
  EXPECT_EQ(g.optimised({{{"N", 2}, {"C", 5}}, {{"N", 1}, {"C", 1}}}),
            "Exp, Reshape, Reshape, Sqrt");
}

// With N = 0 the number of elements would not determine M.
TEST(Reshape, a_dimension_of_another_input_stays_computed) {
  PassGraph g;
  const std::string x = g.input("x", {"N", "5", "8"}), y = g.input("y", {"M"});
  const std::string rows = g.node("Slice", {g.node("Shape", {x}), g.ints({0}), g.ints({1})});
  const std::string shape = g.node("Concat", {rows, g.node("Shape", {y}), g.ints({8})}, {axis(0)});
  g.output(g.node("Reshape", {x, shape}));
  EXPECT_EQ(g.optimised({{{"N", 2}, {"M", 5}}, {{"N", 0}, {"M", 7}}}),
            "Shape, Shape, Concat, Reshape");
}

TEST(Reshape, two_new_dimensions_nobody_knows_stay_computed) {
  PassGraph g;
  const std::string x = g.input("x", {"N", "M"});
  const std::string shape = g.node("Shape", {x});
  const std::string turned = g.node("Gather", {shape, g.ints({1, 0})}, {axis(0)});
  g.output(g.node("Reshape", {x, turned}));
  EXPECT_EQ(g.optimised({{{"N", 2}, {"M", 5}}}), "Shape, Gather, Reshape");
}

TEST(Pieces, two_slices_are_one) {
  PassGraph g;
  std::string x = g.node("Exp", {g.input("x", {"N", "8", "9"})});
  x = g.node("Slice", {x, g.ints({1}), g.ints({7}), g.ints({1})});
  x = g.node("Slice", {x, g.ints({-3, 2}), g.ints({-1, INT64_MAX}), g.ints({1, 2})});
  g.output(g.node("Slice", {x, g.ints({1}), g.ints({4}), g.ints({2})}));
  EXPECT_EQ(g.optimised(kBatches), "Exp, Slice");
}

TEST(Pieces, slices_from_the_end_of_a_dimension_nobody_knows_stay_two) {
  PassGraph g;
  std::string x = g.node("Exp", {g.input("x", {"N"})});
  x = g.node("Slice", {x, g.ints({1}), g.ints({INT64_MAX}), g.ints({0})});
  g.output(g.node("Slice", {x, g.ints({-2}), g.ints({-1}), g.ints({0})}));
  EXPECT_EQ(g.optimised({{{"N", 3}}, {{"N", 2}}, {{"N", 9}}}), "Exp, Slice, Slice");
}

TEST(Pieces, a_slice_that_others_need_stays) {
  PassGraph g;
  const std::string x = g.node("Exp", {g.input("x", {"8"})});
  const std::string part = g.node("Slice", {x, g.ints({1}), g.ints({7})});
  g.output(part);
  g.output(g.node("Slice", {part, g.ints({1}), g.ints({3})}));
  EXPECT_EQ(g.optimised(), "Exp, Slice, Slice");
}

TEST(Pieces, joins_of_joins_and_what_is_cut_and_joined_again) {
  PassGraph g;
  const std::string a = g.node("Exp", {g.input("a", {"N", "2"})});
  const std::string b = g.node("Abs", {g.input("b", {"N", "3"})});
  const std::string ab = g.node("Concat", {a, b}, {axis(1)});
  g.output(g.node("Concat", {b, ab}, {axis(-1)}));
  const std::string c = g.node("Neg", {g.input("c", {"6", "N"})});
  const std::string cut = g.node("Split", {c, g.ints({1, 2, 3})}, {axis(0)}, 3);
  g.output(g.node("Sqrt", {g.node("Concat", {cut, cut + "_1", cut + "_2"}, {axis(0)})}));
  EXPECT_EQ(g.optimised(kBatches), "Exp, Abs, Concat, Neg, Sqrt");
}

TEST(Pieces, joined_in_another_order_is_not_the_same) {
  PassGraph g;
  const std::string cut = g.node("Split", {g.input("x", {"4"}), g.ints({2, 2})}, {axis(0)}, 2);
  g.output(g.node("Concat", {cut + "_1", cut}, {axis(0)}));
  EXPECT_EQ(g.optimised(), "Split, Concat");
}

TEST(Pieces, what_is_joined_and_cut_again_stays_in_pieces) {
  PassGraph g;
  const std::string a = g.node("Exp", {g.input("a", {"N", "2"})});
  const std::string b = g.node("Abs", {g.input("b", {"N", "3"})});
  const std::string ab = g.node("Concat", {a, b}, {axis(1)});
  g.output(g.node("Neg", {g.node("Slice", {ab, g.ints({2}), g.ints({INT64_MAX}), g.ints({1})})}));
  const std::string cut = g.node("Split", {ab, g.ints({2, 3})}, {axis(1)}, 2);
  g.output(g.node("Sqrt", {cut}));
  g.output(g.node("Floor", {cut + "_1"}));
  EXPECT_EQ(g.optimised(kBatches), "Exp, Abs, Neg, Sqrt, Floor");
}

// PyTorch exports x.chunk(2, 1) as slices and x.unbind(1) as Gathers.
TEST(Pieces, slices_that_take_everything_are_one_split) {
  PassGraph g;
  const std::string x = g.node("Exp", {g.input("x", {"N", "4", "3"})});
  const auto slice = [&](int64_t begin, int64_t end) {
    return g.node("Slice", {x, g.ints({begin}), g.ints({end}), g.ints({1})});
  };
  const std::string last = slice(-2, INT64_MAX);
  g.output(g.node("Concat", {last, slice(0, 2)}, {axis(1)}));
  const std::string y = g.node("Abs", {g.input("y", {"N", "2", "3"})});
  const auto pick = [&](int64_t at) {
    return g.node("Gather", {y, g.node("Squeeze", {g.ints({at}), g.ints({0})})}, {axis(1)});
  };
  const std::string second = pick(-1);
  g.output(g.node("MatMul", {second, g.node("Transpose", {pick(0)}, {perm({1, 0})})}));
  EXPECT_EQ(g.optimised({{{"N", 2}}}, 1e-4),
            "Exp, Abs, Split, Concat, Split, Squeeze, Squeeze, Gemm");
}

TEST(Pieces, slices_that_leave_something_out_or_overlap_stay) {
  for (const int64_t from : {1, 3}) {
    PassGraph g;
    const std::string x = g.node("Exp", {g.input("x", {"N", "4"})});
    const std::string a = g.node("Slice", {x, g.ints({0}), g.ints({2}), g.ints({1})});
    const std::string b = g.node("Slice", {x, g.ints({from}), g.ints({4}), g.ints({1})});
    g.output(g.node("Concat", {b, a}, {axis(1)}));
    EXPECT_EQ(g.optimised(kBatches), "Exp, Slice, Slice, Concat");
  }
}

TEST(Pieces, a_slice_within_one_piece_is_cut_from_that) {
  PassGraph g;
  const std::string a = g.node("Exp", {g.input("a", {"N", "2"})});
  const std::string b = g.node("Abs", {g.input("b", {"N", "5"})});
  const std::string ab = g.node("Concat", {a, b}, {axis(1)});
  const auto cut = [&](int64_t begin, int64_t end) {
    return g.node("Slice", {ab, g.ints({begin}), g.ints({end}), g.ints({1})});
  };
  g.output(g.node("Neg", {cut(3, 6)}));
  EXPECT_EQ(g.optimised(kBatches), "Abs, Slice, Neg");
}

TEST(Pieces, a_slice_across_pieces_stays) {
  PassGraph g;
  const std::string a = g.node("Exp", {g.input("a", {"N", "2"})});
  const std::string b = g.node("Abs", {g.input("b", {"N", "5"})});
  const std::string ab = g.node("Concat", {a, b}, {axis(1)});
  g.output(g.node("Neg", {g.node("Slice", {ab, g.ints({1}), g.ints({4}), g.ints({1})})}));
  EXPECT_EQ(g.optimised(kBatches), "Exp, Abs, Concat, Slice, Neg");
}

// Indices of data[:, begin:end] of a tensor of [rows, columns, 3]: an index for each element, as
// PyTorch exports it, or for each row of three.
Tensor slab_indices(int64_t rows, int64_t begin, int64_t end, bool each) {
  std::vector<int64_t> dims{rows, end - begin};
  if (each) dims.push_back(3);
  dims.push_back(each ? 3 : 2);
  Tensor made = Tensor::allocate(PFRT_DTYPE_INT64, dims).take();
  int64_t* to = made.as<int64_t>();
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = begin; c < end; ++c)
      for (int64_t e = 0; e < (each ? 3 : 1); ++e) {
        *to++ = r;
        *to++ = c;
        if (each) *to++ = e - 3;
      }
  return made;
}

TEST(Scatter, assignments_that_fill_a_tensor_are_one_concat) {
  for (const bool each : {true, false}) {
    PassGraph g;
    std::string x = g.input("x", {"2", "6", "3"});
    std::string read;
    const int64_t ends[] = {1, 4, 6};
    int64_t begin = 0;
    for (const int64_t end : ends) {
      const std::string part = g.node(
          "Exp", {g.input("u" + std::to_string(end), {"2", std::to_string(end - begin), "3"})});
      x = g.node("ScatterND", {x, g.constant_of(slab_indices(2, begin, end, each)), part});
      if (end == 4) read = g.node("Slice", {x, g.ints({1}), g.ints({4}), g.ints({1})});
      begin = end;
    }
    g.output(g.node("Neg", {read}));
    g.output(g.node("Sqrt", {x}));
    EXPECT_EQ(g.optimised(), "Exp, Exp, Exp, Neg, Concat, Sqrt") << each;
    EXPECT_EQ(g.applied("AssignedSlice"), 3u);
  }
}

TEST(Scatter, what_is_not_assigned_stays) {
  PassGraph g;
  const std::string x = g.node("Exp", {g.input("x", {"2", "6", "3"})});
  const std::string u = g.node("Abs", {g.input("u", {"2", "2", "3"})});
  g.output(
      g.node("Neg", {g.node("ScatterND", {x, g.constant_of(slab_indices(2, 3, 5, true)), u})}));
  EXPECT_EQ(g.optimised(), "Exp, Abs, Slice, Slice, Concat, Neg");
}

TEST(Scatter, other_indices_and_reductions_stay) {
  struct {
    const char* what;
    void (*spoil)(Tensor& indices);
    const char* reduction;
  } const kCases[] = {
      {"in another order", [](Tensor& t) { std::swap(t.as<int64_t>()[1], t.as<int64_t>()[3]); },
       "none"},
      {"one named twice", [](Tensor& t) { t.as<int64_t>()[3] = t.as<int64_t>()[1]; }, "none"},
      {"added", [](Tensor&) {}, "add"},
  };
  for (const auto& c : kCases) {
    PassGraph g;
    Tensor indices = slab_indices(2, 3, 5, false);
    c.spoil(indices);
    const std::string x = g.node("Exp", {g.input("x", {"2", "6", "3"})});
    const std::string u = g.node("Abs", {g.input("u", {"2", "2", "3"})});
    g.output(g.node("Neg", {g.node("ScatterND", {x, g.constant_of(std::move(indices)), u},
                                   {Attribute::of_string("reduction", c.reduction)})}));
    EXPECT_EQ(g.optimised(), "Exp, Abs, ScatterND, Neg") << c.what;
  }
}

// A network with a ConvTranspose of 4 channels to 6, in two groups, with 3 x 2 taps.
std::string transposed_network(std::vector<Attribute> attrs) {
  PassGraph g;
  attrs.push_back(Attribute::of_int("group", 2));
  g.output(g.node(
      "Neg", {g.node("ConvTranspose",
                     {g.input("x", {"N", "4", "5", "W"}), g.weights({4, 3, 3, 2}), g.weights({6})},
                     std::move(attrs))}));
  return g.optimised({{{"N", 1}, {"W", 6}}, {{"N", 2}, {"W", 3}}});
}

TEST(Conv, a_transposed_one_of_stride_1_is_a_plain_one) {
  const auto ints = [](const char* name, std::vector<int64_t> values) {
    return Attribute::of_ints(name, std::move(values));
  };
  EXPECT_EQ(transposed_network({}), "Conv, Neg");
  EXPECT_EQ(transposed_network({ints("pads", {2, 0, 1, 1})}), "Conv, Neg");
  EXPECT_EQ(transposed_network({ints("pads", {3, 1, 4, 0}), ints("dilations", {2, 1})}),
            "Conv, Neg");
  EXPECT_EQ(transposed_network({ints("strides", {2, 1})}), "ConvTranspose, Neg");
  // These pads cut off more than zeros.
  EXPECT_EQ(transposed_network({ints("pads", {3, 0, 0, 0})}), "ConvTranspose, Neg");
  EXPECT_EQ(transposed_network({ints("output_shape", {5, 6})}), "ConvTranspose, Neg");
}

// The window of the plain convolution would be larger than its input.
TEST(Conv, a_transposed_one_without_elements_ends) {
  PassGraph g;
  const std::string x = g.input("x", {"1", "1", "3", "1"});
  g.output(g.node("Neg", {g.node("ConvTranspose", {x, g.weights({1, 1, 3, 2})},
                                 {Attribute::of_ints("pads", {1, 1, 1, 1})})}));
  EXPECT_EQ(g.optimised({}), "ConvTranspose, Neg");
}

// A Conv multiplies the padding's zeros by weights, and a ConvTranspose does not.
TEST(Conv, infinite_weights_stay_with_their_padding) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  for (const double last : {2.0, kInf, std::numeric_limits<double>::quiet_NaN()}) {
    PassGraph transposed, padded;
    transposed.output(
        transposed.node("ConvTranspose", {transposed.input("x", {"1", "1", "5", "5"}),
                                          transposed.constant({1, 3, -1, last}, {1, 1, 2, 2})}));
    EXPECT_EQ(transposed.optimised({}), std::isfinite(last) ? "Conv" : "ConvTranspose");
    const std::string x = padded.node(
        "Pad", {padded.input("x", {"1", "1", "5", "5"}), padded.ints({0, 0, 1, 1, 0, 0, 1, 1})});
    padded.output(padded.node("Conv", {x, padded.constant({1, 3, -1, last}, {1, 1, 2, 2})}));
    EXPECT_EQ(padded.optimised({}), std::isfinite(last) ? "Conv" : "Pad, Conv");
  }
}

// Padding beyond the kernel's reach cuts off the ends, and a short input is cut off whole.
TEST(Conv, of_transposed_with_an_unknown_size_that_may_be_cut_stays) {
  for (const int64_t pad : {1, 2}) {
    PassGraph g;
    g.output(g.node("ConvTranspose", {g.input("x", {"1", "1", "L"}), g.weights({1, 1, 3})},
                    {Attribute::of_ints("pads", {pad, pad})}));
    EXPECT_EQ(g.optimised({{{"L", pad + 1}}, {{"L", 9}}}), pad == 1 ? "Conv" : "ConvTranspose");
  }
}

TEST(Conv, scales_that_overflow_weights_stay) {
  for (const double scale : {1e3, 1e15}) {
    PassGraph g;
    const std::string y =
        g.node("MatMul", {g.input("x", {"2", "2"}), g.constant({1e25, 1, 1, 1e25}, {2, 2})});
    g.output(g.node("Mul", {y, g.constant({scale})}));
    EXPECT_EQ(g.optimised({}), scale < 1e9 ? "MatMul" : "MatMul, Mul");
  }
}

std::string pooled_network(PassGraph& g, const std::string& between, std::vector<Attribute> attrs,
                           std::vector<int64_t> pads) {
  const std::string c =
      g.node("Conv", {g.input("x", {"N", "2", "9", "9"}), g.weights({8, 2, 3, 3})});
  const std::string a = g.node(between, {c}, std::move(attrs));
  g.output(g.node("Neg", {g.node("MaxPool", {a},
                                 {Attribute::of_ints("kernel_shape", {2, 2}),
                                  Attribute::of_ints("strides", {2, 2}),
                                  Attribute::of_ints("pads", std::move(pads))})}));
  return g.optimised({{{"N", 1}}, {{"N", 2}}});
}

TEST(Pool, maxima_are_taken_before_activations) {
  PassGraph a, b, c, d;
  EXPECT_EQ(pooled_network(a, "Relu", {}, {0, 1, 0, 1}), "Conv, MaxPool, Relu, Neg");
  EXPECT_EQ(pooled_network(b, "LeakyRelu", {Attribute::of_float("alpha", 0.2f)}, {0, 0, 0, 0}),
            "Conv, MaxPool, LeakyRelu, Neg");
  // A decreasing activation turns maxima into minima. Sigmoid is not moved either, as its rounding
  // could differ.
  EXPECT_EQ(pooled_network(c, "LeakyRelu", {Attribute::of_float("alpha", -0.2f)}, {0, 0, 0, 0}),
            "Conv, LeakyRelu, MaxPool, Neg");
  EXPECT_EQ(pooled_network(d, "Sigmoid", {}, {0, 0, 0, 0}), "Conv, Sigmoid, MaxPool, Neg");
}

// The nodes that take others as epilogues here are computed in vectors.
bool has_vectors() {
  const char* const isa = std::getenv("PFRT_ISA");
  return __builtin_cpu_supports("avx2") && (isa == nullptr || std::string_view(isa) != "generic");
}

TEST(Epilogues, a_convolution_takes_its_pooling_and_what_follows) {
  if (!has_vectors()) GTEST_SKIP() << "the machine, or PFRT_ISA, has no AVX2";
  PassGraph g;
  pooled_network(g, "Relu", {}, {0, 0, 0, 0});
  const NodeId conv = g.find("Conv")->id;
  for (const char* op : {"MaxPool", "Relu"}) EXPECT_EQ(g.find(op)->epilogue_of, conv) << op;
  EXPECT_EQ(g.applied("FusedConvMaxPool"), 1u);
}

// The sum is normalised, and is also an input of the next layer.
TEST(Epilogues, a_product_takes_the_normalisation_of_its_rows) {
  if (!has_vectors()) GTEST_SKIP() << "the machine, or PFRT_ISA, has no AVX2";
  PassGraph g;
  const std::string x = g.input("x", {"N", "6"});
  const std::string sum = g.node("Add", {g.node("MatMul", {x, g.weights({6, 6})}), x});
  g.output(g.node("LayerNormalization", {sum, g.weights({6}), g.weights({6})}));
  g.output(g.node("Neg", {sum}));
  EXPECT_EQ(g.optimised(kBatches), "MatMul, Add, LayerNormalization, Neg");
  EXPECT_EQ(g.find("LayerNormalization")->epilogue_of, g.find("MatMul")->id);
  EXPECT_EQ(g.applied("FusedNormalization"), 1u);
}

TEST(Pool, an_activation_that_others_use_stays) {
  PassGraph g;
  const std::string c =
      g.node("Conv", {g.input("x", {"N", "2", "9", "9"}), g.weights({3, 2, 3, 3})});
  const std::string a = g.node("Relu", {c});
  g.output(g.node("MaxPool", {a}, {Attribute::of_ints("kernel_shape", {2, 2})}));
  g.output(g.node("Neg", {a}));
  EXPECT_EQ(g.optimised({{{"N", 1}}}), "Conv, Relu, MaxPool, Neg");
}

TEST(Pieces, neighbouring_dimensions_are_one_question) {
  PassGraph g;
  const std::string x = g.input("x", {"N", "M", "3"});
  const std::string shape = g.node("Shape", {g.node("NonZero", {x})});
  const std::string one = g.node("Gather", {shape, g.ints({-1})}, {axis(0)});
  g.output(one);
  EXPECT_EQ(g.optimised({{{"N", 2}, {"M", 2}}}), "NonZero, Shape");
}

TEST(Expand, copies_that_broadcasting_makes_anyway_are_not_made) {
  PassGraph g;
  const std::string x = g.input("x", {"N", "3", "4"});
  const std::string row = g.node("Exp", {g.input("row", {"1", "4"})});
  const std::string all = g.node("Expand", {row, g.node("Shape", {x})});
  g.output(g.node("Add", {x, all}));
  const std::string zeros = g.node("ConstantOfShape", {g.node("Shape", {x})});
  g.output(g.node("Where", {g.node("Greater", {x, zeros}), x, zeros}));
  const std::string w = g.node(
      "Expand",
      {g.weights({4, 5}),
       g.node("Concat", {g.node("Shape", {x}, {Attribute::of_int("end", 1)}), g.ints({4, 5})},
              {axis(0)})});
  g.output(g.node("MatMul", {x, w}));
  EXPECT_EQ(g.optimised({{{"N", 2}}, {{"N", 1}}}), "Exp, Add, Greater, Where, MatMul");
}

TEST(Expand, a_copy_that_decides_the_shape_stays) {
  PassGraph g;
  const std::string row = g.node("Exp", {g.input("row", {"1", "4"})});
  g.output(g.node("Add", {g.node("Expand", {row, g.ints({3, 4})}), g.constant({1})}));
  EXPECT_EQ(g.optimised(), "Exp, Expand, Add");
}

TEST(Cast, a_chain_that_loses_nothing_is_one) {
  const auto left = [](pfrt_dtype from, pfrt_dtype between, pfrt_dtype to) {
    PassGraph g;
    const std::string x = g.node("Abs", {g.input("x", {"4"}, from)});
    const std::string y = g.node("Cast", {x}, {Attribute::of_int("to", between)});
    g.output(g.node("Neg", {g.node("Cast", {y}, {Attribute::of_int("to", to)})}));
    return g.optimised();
  };
  EXPECT_EQ(left(PFRT_DTYPE_INT32, PFRT_DTYPE_INT64, PFRT_DTYPE_FLOAT32), "Abs, Cast, Neg");
  EXPECT_EQ(left(PFRT_DTYPE_FLOAT32, PFRT_DTYPE_FLOAT64, PFRT_DTYPE_FLOAT32), "Abs, Neg");
  EXPECT_EQ(left(PFRT_DTYPE_FLOAT32, PFRT_DTYPE_INT32, PFRT_DTYPE_FLOAT32), "Abs, Cast, Cast, Neg");
  EXPECT_EQ(left(PFRT_DTYPE_INT64, PFRT_DTYPE_INT32, PFRT_DTYPE_INT64), "Abs, Cast, Cast, Neg");
  EXPECT_EQ(left(PFRT_DTYPE_INT64, PFRT_DTYPE_FLOAT32, PFRT_DTYPE_INT64), "Abs, Cast, Cast, Neg");
  // 200 becomes 127 of int8 through a float, and -56 directly.
  EXPECT_EQ(left(PFRT_DTYPE_INT16, PFRT_DTYPE_FLOAT32, PFRT_DTYPE_INT8), "Abs, Cast, Cast, Neg");
  EXPECT_EQ(left(PFRT_DTYPE_INT8, PFRT_DTYPE_FLOAT32, PFRT_DTYPE_INT16), "Abs, Cast, Neg");
}

}  // namespace
}  // namespace pfrt::test
