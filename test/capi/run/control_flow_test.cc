// SPDX-License-Identifier: Apache-2.0
//
// Loop, Scan, SequenceMap and strings through the library, against plain loops: random shapes,
// axes, directions, trip counts and lengths.
#include <algorithm>
#include <functional>
#include <numeric>
#include <random>

#include "test/capi/client.h"

namespace pfrt_test {
namespace {

constexpr int kCases = 1000;  // for each operator

using Dims = std::vector<int64_t>;

class Dice {
 public:
  explicit Dice(uint32_t seed) : engine_(seed) {}
  int64_t roll(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(engine_);
  }
  bool coin() { return roll(0, 1) == 1; }
  Dims dims(int64_t rank, int64_t least, int64_t most) {
    Dims out;
    for (int64_t i = 0; i < rank; ++i) out.push_back(roll(least, most));
    return out;
  }
  std::vector<float> floats(int64_t count) {
    std::vector<float> out;
    for (int64_t i = 0; i < count; ++i) out.push_back(static_cast<float>(roll(-4, 4)));
    return out;
  }

 private:
  std::mt19937 engine_;
};

int64_t volume(const Dims& dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

Dims with(Dims dims, int64_t axis, int64_t extent) {
  dims.insert(dims.begin() + axis, extent);
  return dims;
}

std::vector<DimSpec> specs(const Dims& dims) { return {dims.begin(), dims.end()}; }

// Index of element |e| of slice |t| along |axis|, in a tensor of |length| slices of |dims|.
size_t place(const Dims& dims, int64_t axis, int64_t length, int64_t t, int64_t e) {
  const int64_t inner = volume(Dims(dims.begin() + axis, dims.end()));
  return static_cast<size_t>((e / inner * length + t) * inner + e % inner);
}

struct Axis {
  int64_t at, written;
  bool back;
};

Axis roll_axis(Dice& dice, int64_t rank) {
  Axis axis{dice.roll(0, rank), 0, dice.coin()};
  axis.written = dice.coin() ? axis.at : axis.at - rank - 1;
  return axis;
}

class ControlFlow : public testing::Test {
 protected:
  Handle<pfrt_env> env = make_env();
};

// Body with s' = s + x, and with scan outputs s' * y and x.
GraphBuilder scan_body(GraphBuilder& outer, const Dims& dims, bool declared) {
  GraphBuilder body(outer, "body");
  for (const char* name : {"s", "x", "y"})
    body.input(name, PFRT_DTYPE_FLOAT32,
               declared ? specs(dims) : std::vector<DimSpec>(dims.size(), ""));
  body.node("Add", {"s", "x"}, {"next"});
  body.node("Mul", {"next", "y"}, {"made"});
  body.node("Identity", {"x"}, {"same"});
  for (const char* name : {"next", "made", "same"}) body.output(name);
  return body;
}

TEST_F(ControlFlow, scan_is_a_loop_over_slices) {
  for (uint32_t seed = 0; seed < kCases; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Dice dice(seed);
    const int64_t rank = dice.roll(0, 3), length = dice.roll(0, 5);
    const Dims dims = dice.dims(rank, dice.roll(0, 3) ? 1 : 0, 3);
    const Axis x_axis = roll_axis(dice, rank), y_axis = roll_axis(dice, rank);
    const Axis made_axis = roll_axis(dice, rank), same_axis = roll_axis(dice, rank);
    const int64_t count = volume(dims);
    const Array s = floats(dims, dice.floats(count));
    const Array x = floats(with(dims, x_axis.at, length), dice.floats(count * length));
    const Array y = floats(with(dims, y_axis.at, length), dice.floats(count * length));
    const auto xs = x.as<float>(), ys = y.as<float>();
    std::vector<float> state = s.as<float>(), made(xs.size()), same(xs.size());
    for (int64_t t = 0; t < length; ++t) {
      const auto turned = [&](const Axis& axis) { return axis.back ? length - 1 - t : t; };
      for (int64_t e = 0; e < count; ++e) {
        const float xe = xs[place(dims, x_axis.at, length, turned(x_axis), e)];
        const float ye = ys[place(dims, y_axis.at, length, turned(y_axis), e)];
        float& se = state[static_cast<size_t>(e)];
        se += xe;
        made[place(dims, made_axis.at, length, turned(made_axis), e)] = se * ye;
        same[place(dims, same_axis.at, length, turned(same_axis), e)] = xe;
      }
    }
    GraphBuilder g;
    g.opset(dice.roll(9, 21));
    for (const auto& [name, array] : {std::pair("s", &s), {"x", &x}, {"y", &y}})
      g.input(name, PFRT_DTYPE_FLOAT32, specs(array->dims));
    const GraphBuilder body = scan_body(g, dims, dice.coin());
    g.node("Scan", {"s", "x", "y"}, {"state", "made", "same"},
           {Attr::of_int("num_scan_inputs", 2), Attr::of_graph("body", body.get()),
            Attr::of_ints("scan_input_axes", {x_axis.written, y_axis.written}),
            Attr::of_ints("scan_input_directions", {x_axis.back, y_axis.back}),
            Attr::of_ints("scan_output_axes", {made_axis.written, same_axis.written}),
            Attr::of_ints("scan_output_directions", {made_axis.back, same_axis.back})});
    for (const char* name : {"state", "made", "same"}) g.output(name);
    const auto session = make_session(env.get(), g);
    ASSERT_TRUE(session);
    const auto out = run(session.get(), {s, x, y});
    ASSERT_EQ(out.size(), 3u);
    EXPECT_EQ(out[0].as<float>(), state);
    EXPECT_EQ(out[1].dims, with(dims, made_axis.at, length));
    EXPECT_EQ(out[1].as<float>(), made);
    EXPECT_EQ(out[2].dims, with(dims, same_axis.at, length));
    EXPECT_EQ(out[2].as<float>(), same);
    if (HasFailure()) return;
  }
}

TEST_F(ControlFlow, scan_of_opset_8_is_a_loop_over_a_batch) {
  for (uint32_t seed = 0; seed < kCases; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Dice dice(seed);
    const int64_t batches = dice.roll(1, 3), room = dice.roll(1, 4);
    const Dims dims = dice.dims(dice.roll(0, 2), 1, 3);
    const int64_t count = volume(dims);
    const bool x_back = dice.coin(), y_back = dice.coin(), counted = dice.coin();
    const Array s = floats(with(dims, 0, batches), dice.floats(count * batches));
    const Dims all = with(with(dims, 0, room), 0, batches);
    const Array x = floats(all, dice.floats(volume(all))),
                y = floats(all, dice.floats(volume(all)));
    std::vector<int64_t> lengths(static_cast<size_t>(batches), room);
    if (counted)
      for (int64_t& n : lengths) n = dice.roll(0, room);
    std::vector<float> state = s.as<float>(), made(static_cast<size_t>(volume(all)), 0.0f),
                       same = made;
    for (int64_t b = 0; b < batches; ++b) {
      const int64_t length = lengths[static_cast<size_t>(b)];
      for (int64_t t = 0; t < length; ++t)
        for (int64_t e = 0; e < count; ++e) {
          const auto at = [&](bool back) {
            return static_cast<size_t>((b * room + (back ? length - 1 - t : t)) * count + e);
          };
          float& se = state[static_cast<size_t>(b * count + e)];
          se += x.as<float>()[at(x_back)];
          made[at(false)] = se * y.as<float>()[at(y_back)];
          same[at(false)] = x.as<float>()[at(x_back)];
        }
    }
    GraphBuilder g;
    g.opset(8);
    if (counted) g.constant("lengths", int64s({batches}, lengths));
    for (const auto& [name, array] : {std::pair("s", &s), {"x", &x}, {"y", &y}})
      g.input(name, PFRT_DTYPE_FLOAT32, specs(array->dims));
    const GraphBuilder body = scan_body(g, dims, true);
    g.node("Scan", {counted ? "lengths" : "", "s", "x", "y"}, {"state", "made", "same"},
           {Attr::of_int("num_scan_inputs", 2), Attr::of_graph("body", body.get()),
            Attr::of_ints("directions", {x_back, y_back})});
    for (const char* name : {"state", "made", "same"}) g.output(name);
    const auto session = make_session(env.get(), g);
    ASSERT_TRUE(session);
    const auto out = run(session.get(), {s, x, y});
    ASSERT_EQ(out.size(), 3u);
    EXPECT_EQ(out[0].as<float>(), state);
    EXPECT_EQ(out[1].dims, all);
    EXPECT_EQ(out[1].as<float>(), made);
    EXPECT_EQ(out[2].as<float>(), same);
    if (HasFailure()) return;
  }
}

// Body that carries four values: a, which goes up by the captured step; b and c, which change
// places; grown, which gets each iteration's number appended. Its scan output is the new a.
GraphBuilder loop_body(GraphBuilder& outer, bool declared) {
  GraphBuilder body(outer, "body");
  body.input("i", PFRT_DTYPE_INT64, {});
  body.input("on", PFRT_DTYPE_BOOL, {});
  for (const char* name : {"a", "b", "c"})
    body.input(name, PFRT_DTYPE_FLOAT32, {declared ? DimSpec(2) : DimSpec("")});
  body.input("grown", PFRT_DTYPE_INT64, {""});
  body.constant("one", int64s({1}, {1}));
  body.node("Add", {"a", "step"}, {"more"});
  body.node("Identity", {"c"}, {"b_next"});
  body.node("Identity", {"b"}, {"c_next"});
  body.node("Reshape", {"i", "one"}, {"number"});
  body.node("Concat", {"grown", "number"}, {"longer"}, {Attr::of_int("axis", 0)});
  body.node("Less", {"i", "limit"}, {"goes_on"});
  for (const char* name : {"goes_on", "more", "b_next", "c_next", "longer", "more"})
    body.output(name);
  return body;
}

TEST_F(ControlFlow, loop_carries_captures_and_stops) {
  for (uint32_t seed = 0; seed < kCases; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Dice dice(seed);
    const bool counted = dice.coin(), conditional = !counted || dice.coin();
    const int64_t most = dice.roll(-1, 6), limit = dice.roll(-1, 6);
    const bool starts = dice.roll(0, 4) != 0;
    int64_t trips = 0;
    for (bool on = !conditional || starts; on && (!counted || trips < most); ++trips)
      if (conditional) on = trips < limit;
    std::vector<float> a = dice.floats(2), b = dice.floats(2), c = dice.floats(2), each;
    const std::vector<float> step = dice.floats(2);
    std::vector<int64_t> grown{7};
    GraphBuilder g;
    g.opset(dice.roll(11, 21));
    g.constant("limit", int64s({}, {limit}));
    const bool lists = dice.coin();
    if (counted) g.constant("most", int64s(lists ? Dims{1} : Dims{}, {most}));
    if (conditional) {
      Array on = array<uint8_t>(lists ? Dims{1} : Dims{}, {static_cast<uint8_t>(starts)});
      on.dtype = PFRT_DTYPE_BOOL;
      g.constant("starts", on);
    }
    for (const char* name : {"step", "a", "b", "c"}) g.input(name, PFRT_DTYPE_FLOAT32, {2});
    g.input("grown", PFRT_DTYPE_INT64, {1});
    const GraphBuilder body = loop_body(g, dice.coin());
    g.node("Loop", {counted ? "most" : "", conditional ? "starts" : "", "a", "b", "c", "grown"},
           {"a_last", "b_last", "c_last", "longest", "each"}, {Attr::of_graph("body", body.get())});
    for (const char* name : {"a_last", "b_last", "c_last", "longest", "each"}) g.output(name);
    const auto session = make_session(env.get(), g);
    ASSERT_TRUE(session);
    const auto out = run(session.get(), {floats({2}, step), floats({2}, a), floats({2}, b),
                                         floats({2}, c), int64s({1}, grown)});
    for (int64_t i = 0; i < trips; ++i) {
      for (size_t e = 0; e < 2; ++e) each.push_back(a[e] += step[e]);
      std::swap(b, c);
      grown.push_back(i);
    }
    ASSERT_EQ(out.size(), 5u);
    EXPECT_EQ(out[0].as<float>(), a);
    EXPECT_EQ(out[1].as<float>(), b);
    EXPECT_EQ(out[2].as<float>(), c);
    EXPECT_EQ(out[3].as<int64_t>(), grown);
    EXPECT_EQ(out[4].dims, (Dims{trips, 2}));
    EXPECT_EQ(out[4].as<float>(), each);
    if (HasFailure()) return;
  }
}

TEST_F(ControlFlow, sequence_map_maps_pieces) {
  for (uint32_t seed = 0; seed < kCases; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Dice dice(seed);
    const Dims dims = dice.dims(dice.roll(1, 3), 1, 4);
    const int64_t axis = dice.roll(0, static_cast<int64_t>(dims.size()) - 1);
    const int64_t piece = dice.roll(1, 4);
    const std::vector<float> x = dice.floats(volume(dims));
    GraphBuilder g;
    g.opset(17);
    g.input("x", PFRT_DTYPE_FLOAT32, specs(dims));
    g.input("bias", PFRT_DTYPE_FLOAT32, {});
    g.constant("piece", int64s({}, {piece}));
    g.node("SplitToSequence", {"x", "piece"}, {"pieces"}, {Attr::of_int("axis", axis)});
    GraphBuilder body(g, "body");
    body.input("p", PFRT_DTYPE_FLOAT32, std::vector<DimSpec>(dims.size(), ""));
    body.input("q", PFRT_DTYPE_FLOAT32, std::vector<DimSpec>(dims.size(), ""));
    body.node("Add", {"p", "q"}, {"twice"});
    body.node("Add", {"twice", "bias"}, {"moved"});
    body.output("moved");
    g.node("SequenceMap", {"pieces", "pieces"}, {"mapped"}, {Attr::of_graph("body", body.get())});
    g.node("ConcatFromSequence", {"mapped"}, {"y"},
           {Attr::of_int("axis", axis - (dice.coin() ? static_cast<int64_t>(dims.size()) : 0))});
    g.output("y");
    const auto session = make_session(env.get(), g);
    ASSERT_TRUE(session);
    const auto out = run(session.get(), {floats(dims, x), floats({}, {3})});
    std::vector<float> expected = x;
    for (float& v : expected) v = v + v + 3;
    ASSERT_EQ(out.size(), 1u);
    EXPECT_EQ(out[0].dims, dims);
    EXPECT_EQ(out[0].as<float>(), expected);
    if (HasFailure()) return;
  }
}

// A sequence grows in place where it may; sequences that are read later keep their elements.
TEST_F(ControlFlow, sequences_that_are_read_later_keep_their_elements) {
  GraphBuilder g;
  g.opset(17);
  g.input("x", PFRT_DTYPE_FLOAT32, {1});
  g.input("y", PFRT_DTYPE_FLOAT32, {1});
  g.constant("three", int64s({}, {3}));
  g.node("SequenceConstruct", {"x"}, {"s"});
  g.node("SequenceInsert", {"s", "y"}, {"t"});
  g.node("SequenceInsert", {"s", "x"}, {"u"});
  GraphBuilder body(g, "body");
  body.input("i", PFRT_DTYPE_INT64, {});
  body.input("on", PFRT_DTYPE_BOOL, {});
  pfrt_value_info carried{};
  carried.struct_size = sizeof carried;
  carried.kind = PFRT_VALUE_SEQUENCE;
  carried.dtype = PFRT_DTYPE_FLOAT32;
  carried.rank = -1;
  carried.name = str("v");
  EXPECT_TRUE(ok(api().graph->add_input(body.get(), &carried)));
  body.node("SequenceInsert", {"v", "y"}, {"w"});
  body.node("SequenceLength", {"v"}, {"before"});
  body.node("SequenceErase", {"w"}, {"erased"});
  body.node("SequenceLength", {"w"}, {"after"});
  body.node("SequenceLength", {"erased"}, {"again"});
  for (const char* name : {"on", "w", "before", "after", "again"}) body.output(name);
  g.node("Loop", {"three", "", "t"}, {"grown", "before", "after", "again"},
         {Attr::of_graph("body", body.get())});
  for (const char* name : {"t", "u", "grown"})
    g.node("ConcatFromSequence", {name}, {std::string("all_") + name}, {Attr::of_int("axis", 0)});
  for (const char* name : {"all_t", "all_u", "all_grown", "before", "after", "again"})
    g.output(name);
  const auto session = make_session(env.get(), g);
  ASSERT_TRUE(session);
  for (int n = 0; n < 2; ++n) {
    const auto out = run(session.get(), {floats({1}, {1}), floats({1}, {2})});
    ASSERT_EQ(out.size(), 6u);
    EXPECT_EQ(out[0].as<float>(), (std::vector<float>{1, 2}));
    EXPECT_EQ(out[1].as<float>(), (std::vector<float>{1, 1}));
    EXPECT_EQ(out[2].as<float>(), (std::vector<float>{1, 2, 2, 2, 2}));
    EXPECT_EQ(out[3].as<int64_t>(), (std::vector<int64_t>{2, 3, 4}));
    EXPECT_EQ(out[4].as<int64_t>(), (std::vector<int64_t>{3, 4, 5}));
    EXPECT_EQ(out[5].as<int64_t>(), (std::vector<int64_t>{2, 3, 4}));
  }
}

// An operator that moves elements, which gives equal results for numbers and for their texts. All
// numbers have three digits, so that their texts are in the same order.
struct Move {
  const char* op;
  int64_t opset;
  size_t texts;  // number of inputs, from the first, that are text
  std::function<std::vector<Array>(Dice&, const Dims&)> more;  // makes the inputs after these
  std::vector<Attr> attrs;
  size_t outputs = 1;
  bool text_result = true;
};

std::vector<Array> nothing(Dice&, const Dims&) { return {}; }

Array picks(Dice& dice, const Dims& dims, int64_t limit) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < volume(dims); ++i) values.push_back(dice.roll(-limit, limit - 1));
  return int64s(dims, values);
}

Array flags(Dice& dice, const Dims& dims) {
  std::vector<uint8_t> values;
  for (int64_t i = 0; i < volume(dims); ++i) values.push_back(dice.coin());
  Array out = array(dims, values);
  out.dtype = PFRT_DTYPE_BOOL;
  return out;
}

std::vector<Move> moves() {
  const auto list = [](std::vector<int64_t> values) {
    return [values](Dice&, const Dims&) {
      return std::vector<Array>{int64s({static_cast<int64_t>(values.size())}, values)};
    };
  };
  return {
      {"Concat", 13, 3, nothing, {Attr::of_int("axis", -1)}},
      {"Transpose", 13, 1, nothing, {}},
      {"Flatten", 13, 1, nothing, {}},
      {"Reshape", 14, 1, list({-1, 2}), {}},
      {"Unsqueeze", 13, 1, list({1}), {}},
      {"Tile", 13, 1, list({2, 1}), {}},
      {"Expand", 13, 1, list({2, 1, 1}), {}},
      {"Split", 13, 1, nothing, {Attr::of_int("axis", 1)}, 2},
      {"Pad", 18, 1, list({1, 0, 0, 1}), {Attr::of_string("mode", "reflect")}},
      {"Slice",
       13,
       1,
       [](Dice&, const Dims&) {
         return std::vector<Array>{int64s({2}, {-1, 0}), int64s({2}, {-9, 9}), int64s({2}, {0, 1}),
                                   int64s({2}, {-1, 2})};
       },
       {}},
      {"Gather",
       13,
       1,
       [](Dice& dice, const Dims& dims) {
         return std::vector<Array>{picks(dice, {2, 3}, dims[0])};
       },
       {}},
      {"GatherElements",
       13,
       1,
       [](Dice& dice, const Dims& dims) {
         return std::vector<Array>{picks(dice, {dims[0], 3}, dims[1])};
       },
       {Attr::of_int("axis", 1)}},
      {"GatherND",
       13,
       1,
       [](Dice& dice, const Dims& dims) {
         return std::vector<Array>{picks(dice, {3, 1}, dims[0])};
       },
       {}},
      {"Compress",
       11,
       1,
       [](Dice& dice, const Dims& dims) { return std::vector<Array>{flags(dice, {dims[0]})}; },
       {Attr::of_int("axis", 0)}},
      {"ReverseSequence",
       10,
       1,
       [](Dice& dice, const Dims& dims) {
         std::vector<int64_t> lengths;
         for (int64_t i = 0; i < dims[1]; ++i) lengths.push_back(dice.roll(1, dims[0]));
         return std::vector<Array>{int64s({dims[1]}, lengths)};
       },
       {}},
      {"Unique", 11, 1, nothing, {Attr::of_int("sorted", 1)}},
      {"Equal", 19, 2, nothing, {}, 1, false},
      {"Shape", 15, 1, nothing, {}, 1, false},
      {"Size", 13, 1, nothing, {}, 1, false},
  };
}

TEST_F(ControlFlow, strings_move_as_numbers_do) {
  uint32_t seed = 0;
  for (const Move& move : moves()) {
    for (int n = 0; n < kCases / 15; ++n, ++seed) {
      SCOPED_TRACE(std::string(move.op) + ", seed " + std::to_string(seed));
      Dice dice(seed);
      const Dims dims{dice.roll(2, 4), dice.roll(1, 2) * 2};
      GraphBuilder g;
      g.opset(move.opset);
      std::vector<std::string> numbers, texts;
      std::vector<Array> inputs;
      for (size_t i = 0; i < move.texts; ++i) {
        const std::string name = "x" + std::to_string(i);
        std::vector<int64_t> values;
        for (int64_t e = 0; e < volume(dims); ++e) values.push_back(dice.roll(100, 109));
        inputs.push_back(int64s(dims, values));
        g.input(name, PFRT_DTYPE_INT64, specs(dims));
        g.node("Cast", {name}, {name + "_text"}, {Attr::of_int("to", PFRT_DTYPE_STRING)});
        numbers.push_back(name);
        texts.push_back(name + "_text");
      }
      const std::vector<Array> more = move.more(dice, dims);
      for (size_t i = 0; i < more.size(); ++i) {
        const std::string name = "more" + std::to_string(i);
        g.constant(name, more[i]);
        numbers.push_back(name);
        texts.push_back(name);
      }
      std::vector<std::string> plain, text;
      for (size_t i = 0; i < move.outputs; ++i) {
        plain.push_back("plain" + std::to_string(i));
        text.push_back("text" + std::to_string(i));
      }
      g.node(move.op, numbers, plain, move.attrs);
      g.node(move.op, texts, text, move.attrs);
      for (size_t i = 0; i < move.outputs; ++i) {
        const std::string back = move.text_result ? "back" + std::to_string(i) : text[i];
        if (move.text_result)
          g.node("Cast", {text[i]}, {back}, {Attr::of_int("to", PFRT_DTYPE_INT64)});
        g.output(plain[i]);
        g.output(back);
      }
      const auto session = make_session(env.get(), g);
      ASSERT_TRUE(session);
      const auto out = run(session.get(), inputs);
      ASSERT_EQ(out.size(), 2 * move.outputs);
      for (size_t i = 0; i < out.size(); i += 2) {
        EXPECT_EQ(out[i].dims, out[i + 1].dims);
        EXPECT_EQ(out[i].bytes, out[i + 1].bytes);
      }
      if (HasFailure()) return;
    }
  }
}

TEST_F(ControlFlow, a_loop_without_end_obeys_the_deadline) {
  GraphBuilder g;
  g.opset(17);
  g.input("x", PFRT_DTYPE_FLOAT32, {1});
  GraphBuilder body(g, "forever");
  body.input("i", PFRT_DTYPE_INT64, {});
  body.input("on", PFRT_DTYPE_BOOL, {});
  body.input("a", PFRT_DTYPE_FLOAT32, {1});
  body.node("Neg", {"a"}, {"b"});
  body.output("on");
  body.output("b");
  g.node("Loop", {"", "", "x"}, {"y"}, {Attr::of_graph("body", body.get())});
  g.output("y");
  const auto session = make_session(env.get(), g);
  ASSERT_TRUE(session);
  const RunDesc options({.timeout_ms = 50});
  EXPECT_TRUE(fails(try_run(session.get(), {floats({1}, {1})}, nullptr, options.get()),
                    PFRT_CODE_DEADLINE, {"deadline"}));
}

TEST_F(ControlFlow, faults_name_node_body_and_iteration) {
  GraphBuilder g;
  g.opset(17);
  g.input("x", PFRT_DTYPE_FLOAT32, {"N"});
  g.constant("three", int64s({}, {3}));
  GraphBuilder body(g, "inside");
  body.input("i", PFRT_DTYPE_INT64, {});
  body.input("on", PFRT_DTYPE_BOOL, {});
  body.input("a", PFRT_DTYPE_FLOAT32, {""});
  body.constant("rows", int64s({2}, {2, -1}));
  body.node("Concat", {"a", "a"}, {"b"}, {Attr::of_int("axis", 0)});
  body.node("Reshape", {"a", "rows"}, {"r"}, {}, "halve");
  body.output("on");
  body.output("b");
  body.output("r");
  g.node("Loop", {"three", "", "x"}, {"y", "rows"}, {Attr::of_graph("body", body.get())}, "again");
  g.output("y");
  g.output("rows");
  const auto session = make_session(env.get(), g);
  ASSERT_TRUE(session);
  // Three rows cannot be halved. Two can, but four give other rows than two.
  EXPECT_TRUE(fails(try_run(session.get(), {floats({3}, {1, 2, 3})}), PFRT_CODE_SHAPE_MISMATCH,
                    {"Loop 'again'", "iteration 0", "'inside'", "'halve'"}));
  EXPECT_TRUE(fails(try_run(session.get(), {floats({2}, {1, 2})}), PFRT_CODE_SHAPE_MISMATCH,
                    {"Loop 'again'", "iteration 1", "'inside'", "[2,1]", "[2,2]"}));
}

TEST_F(ControlFlow, bodies_that_do_not_fit_are_refused) {
  const auto refused = [&](const std::vector<std::string>& inputs, const Attr& more,
                           std::initializer_list<std::string_view> parts) {
    GraphBuilder g;
    g.opset(17);
    g.input("x", PFRT_DTYPE_FLOAT32, {4});
    const GraphBuilder body = scan_body(g, {}, true);
    g.node("Scan", inputs, {"y"}, {Attr::of_graph("body", body.get()), more}, "scan");
    g.output("y");
    return fails(try_session(env.get(), g), PFRT_CODE_INVALID_MODEL, parts);
  };
  EXPECT_TRUE(refused({"x", "x"}, Attr::of_int("num_scan_inputs", 1),
                      {"Scan 'scan'", "'body'", "3 inputs", "2"}));
  EXPECT_TRUE(refused({"x", "x", "x"}, Attr::of_int("num_scan_inputs", 4),
                      {"Scan 'scan'", "'num_scan_inputs'", "4", "3"}));
  EXPECT_TRUE(refused({"x", "x", "x"}, Attr::of_int("num_scan_inputs", -1),
                      {"Scan 'scan'", "'num_scan_inputs'", "-1"}));
  EXPECT_TRUE(refused({"x", "x", "x"}, Attr::of_int("other", 1), {"'num_scan_inputs'", "absent"}));
}

}  // namespace
}  // namespace pfrt_test
