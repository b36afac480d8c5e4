// SPDX-License-Identifier: Apache-2.0
//
// Rows of a state's batch are chosen, states go from session to session, and what states that have
// the same values take in memory.
#include <limits>

#include "test/capi/run/states.h"

namespace pfrt_test {
namespace {

using Rows = std::vector<int64_t>;

Failure select(pfrt_state* state, const Rows& rows) {
  return take(api().state->select_rows(state, rows.data(), rows.size()));
}

Failure try_clone_for(const pfrt_state* state, pfrt_session* session, StateHandle* out = nullptr,
                      const std::vector<pfrt_state_pair>& pairs = {}) {
  pfrt_state* made = nullptr;
  Failure failure = take(api().state->clone_for(state, session, pairs.data(), pairs.size(), &made));
  StateHandle handle(made);
  EXPECT_EQ(failure.ok(), made != nullptr);
  if (out) *out = std::move(handle);
  return failure;
}

// Copies rows |rows| of |from| along |axis|.
Array rows_of(const Array& from, size_t axis, const Rows& rows) {
  size_t outer = 1;
  for (size_t i = 0; i < axis; ++i) outer *= static_cast<size_t>(from.dims[i]);
  const auto count = static_cast<size_t>(from.dims[axis]);
  const size_t row = outer * count == 0 ? 0 : from.bytes.size() / outer / count;
  Array out{from.dtype, from.dims, {}};
  out.dims[axis] = static_cast<int64_t>(rows.size());
  for (size_t i = 0; i < outer; ++i)
    for (const int64_t r : rows) {
      const auto at = from.bytes.begin() +
                      static_cast<std::ptrdiff_t>((i * count + static_cast<size_t>(r)) * row);
      out.bytes.insert(out.bytes.end(), at, at + static_cast<std::ptrdiff_t>(row));
    }
  return out;
}

// A model of one input |x| and pairs that the test gives values for.
class StateRows : public CacheStates {
 protected:
  static void put(pfrt_state* state, std::string_view input, const Array& array) {
    const auto value = value_of(array);
    ASSERT_TRUE(ok(api().state->set(state, str(input), value.get())));
  }
};

TEST_F(StateRows, are_chosen_in_any_order_and_number) {
  const auto session = make_session(env_.get(), cache());
  for (const Rows& rows :
       {Rows{2, 0, 1}, Rows{1, 1, 1}, Rows{0}, Rows{2, 2, 0, 1, 2, 0, 1, 2}, Rows{1, 2}, Rows{}}) {
    const StateHandle state = make_state(session.get()), other = make_state(session.get());
    const auto options = options_with(state.get()), with_other = options_with(other.get());
    const auto x = [](size_t n, int64_t t, uint32_t seed) {
      return floats({static_cast<int64_t>(n), 2, t, 3},
                    random_floats(n * static_cast<size_t>(6 * t), seed));
    };
    for (uint32_t i = 0; i < 4; ++i)
      ASSERT_TRUE(ok(step(session.get(), options.get(), x(3, i == 0 ? 5 : 1, i))));
    const Array chosen = rows_of(value_in(state.get(), "past_0"), 0, rows);
    const StateHandle before = clone(state.get());
    ASSERT_TRUE(ok(select(state.get(), rows)));
    EXPECT_EQ(value_in(state.get(), "past_0").dims, chosen.dims);
    EXPECT_EQ(value_in(state.get(), "past_0").bytes, chosen.bytes);
    EXPECT_EQ(value_in(before.get(), "past_0").dims[0], 3) << "a clone keeps its rows";
    EXPECT_EQ(api().state->length(state.get()), 8);
    // Runs go on as from a state that was set.
    put(other.get(), "past_0", chosen);
    for (uint32_t i = 0; i < 3; ++i) {
      Array a, b;
      ASSERT_TRUE(ok(step(session.get(), options.get(), x(rows.size(), 1, 10 + i), &a)));
      ASSERT_TRUE(ok(step(session.get(), with_other.get(), x(rows.size(), 1, 10 + i), &b)));
      EXPECT_EQ(a.dims, b.dims);
      EXPECT_EQ(a.bytes, b.bytes);
    }
  }
}

// A beam search chooses rows after each step, in the same memory.
TEST_F(StateRows, of_a_beam_search_take_two_buffers) {
  const auto session = make_session(env_.get(), cache(4, 64));
  const StateHandle state = make_state(session.get());
  const auto options = options_with(state.get());
  for (uint32_t i = 0; i < 60; ++i) {
    const Array x = floats({3, 4, 1, 64}, random_floats(768, i));
    ASSERT_TRUE(ok(step(session.get(), options.get(), x)));
    const Rows rows = {i % 3, (i + 1) % 2, 1};
    const Array whole = value_in(state.get(), "past_0");
    ASSERT_TRUE(ok(select(state.get(), rows)));
    ASSERT_EQ(value_in(state.get(), "past_0").bytes, rows_of(whole, 0, rows).bytes) << i;
  }
  // 60 steps of 3,072 bytes, with room for growth, twice.
  EXPECT_LE(report_of(session.get()).states, 6u * 60 * 3072);
}

TEST_F(StateRows, that_all_stay_in_order_cost_nothing) {
  const auto session = make_session(env_.get(), accumulator());
  const StateHandle state = make_state(session.get());
  put(state.get(), "h", floats({3, 2}, {1, 2, 3, 4, 5, 6}));
  const StateHandle other = clone(state.get());
  const uint64_t bytes = report_of(session.get()).states;
  ASSERT_TRUE(ok(select(state.get(), {0, 1, 2})));
  EXPECT_EQ(report_of(session.get()).states, bytes) << "the clones still share the value";
  ASSERT_TRUE(ok(select(state.get(), {0, 2, 1})));
  EXPECT_EQ(report_of(session.get()).states, 2 * bytes);
  EXPECT_EQ(value_in(other.get(), "h").as<float>(), (Values{1, 2, 3, 4, 5, 6}));
}

TEST_F(StateRows, lie_along_the_axis_that_has_the_name_of_the_batch) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"T", "B", 2});
  g.input("h", PFRT_DTYPE_FLOAT32, {2, "B", 2});  // layers come first
  g.input("count", PFRT_DTYPE_FLOAT32, {});       // no rows
  g.input("table", PFRT_DTYPE_FLOAT32, {3, 2});   // one for all rows
  g.input("plain", PFRT_DTYPE_FLOAT32, {"", 2});  // no name
  for (const std::string name : {"h", "count", "table", "plain"}) {
    g.node("Identity", {name}, {name + "_out"});
    g.output(name + "_out");
  }
  g.node("Neg", {"x"}, {"y"});
  g.output("y");
  const auto session = make_session(env_.get(), g);
  const StateHandle state = make_state(session.get());
  const Array h = floats({2, 3, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}),
              table = floats({3, 2}, {1, 2, 3, 4, 5, 6}), count = floats({}, {7});
  put(state.get(), "h", h);
  put(state.get(), "count", count);
  put(state.get(), "table", table);
  put(state.get(), "plain", table);
  const Rows rows = {2, 0, 2, 1};
  ASSERT_TRUE(ok(select(state.get(), rows)));
  EXPECT_EQ(value_in(state.get(), "h").dims, (Rows{2, 4, 2}));
  EXPECT_EQ(value_in(state.get(), "h").as<float>(),
            (Values{4, 5, 0, 1, 4, 5, 2, 3, 10, 11, 6, 7, 10, 11, 8, 9}));
  EXPECT_EQ(value_in(state.get(), "count").bytes, count.bytes);
  EXPECT_EQ(value_in(state.get(), "table").bytes, table.bytes);
  EXPECT_EQ(value_in(state.get(), "plain").bytes, rows_of(table, 0, rows).bytes);
}

TEST_F(StateRows, that_are_not_there_change_nothing) {
  const auto session = make_session(env_.get(), cache());
  const StateHandle state = make_state(session.get());
  // A new state has no rows yet, and any that the next run has are all the same.
  EXPECT_TRUE(ok(select(state.get(), {5, 0})));
  EXPECT_TRUE(fails(select(state.get(), {0, -1}), PFRT_CODE_INVALID_ARGUMENT,
                    {"row -1", "place 1", "counted from 0"}));
  put(state.get(), "past_0", floats({2, 2, 1, 3}, random_floats(12, 1)));
  const Array before = value_in(state.get(), "past_0");
  EXPECT_TRUE(fails(
      select(state.get(), {1, 2}), PFRT_CODE_INVALID_ARGUMENT,
      {"selecting 2 rows of a state", "'past_0' has 2 rows along axis 0", "row 2", "place 1"}));
  EXPECT_TRUE(fails(select(state.get(), {0, std::numeric_limits<int64_t>::max()}),
                    PFRT_CODE_INVALID_ARGUMENT, {"'past_0' has 2 rows"}));
  EXPECT_TRUE(fails(select(state.get(), {std::numeric_limits<int64_t>::min()}),
                    PFRT_CODE_INVALID_ARGUMENT, {"counted from 0"}));
  EXPECT_TRUE(fails(api().state->select_rows(state.get(), nullptr, 1), PFRT_CODE_INVALID_ARGUMENT,
                    {"'rows'"}));
  EXPECT_TRUE(fails(api().state->select_rows(nullptr, nullptr, 0), PFRT_CODE_INVALID_ARGUMENT,
                    {"'state'"}));
  EXPECT_EQ(value_in(state.get(), "past_0").bytes, before.bytes);

  // One value does not fit, and the one before it stays as it was.
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", 2});
  g.input("h", PFRT_DTYPE_FLOAT32, {"", 2});
  g.input("one", PFRT_DTYPE_FLOAT32, {1, 2});
  for (const std::string name : {"h", "one"}) {
    g.node("Identity", {name}, {name + "_out"});
    g.output(name + "_out");
  }
  const auto fixed = make_session(env_.get(), g);
  const StateHandle two = make_state(fixed.get());
  put(two.get(), "h", floats({1, 2}, {1, 2}));
  put(two.get(), "one", floats({1, 2}, {3, 4}));
  EXPECT_TRUE(fails(select(two.get(), {0, 0}), PFRT_CODE_SHAPE_MISMATCH,
                    {"'one'", "dimension 0 of the input is 1"}));
  EXPECT_EQ(value_in(two.get(), "h").as<float>(), (Values{1, 2}));
  EXPECT_TRUE(ok(select(two.get(), {0})));

  GraphBuilder flat;
  flat.input("x", PFRT_DTYPE_FLOAT32, {"T", 2});
  flat.input("past", PFRT_DTYPE_FLOAT32, {"P", 2});
  flat.node("Concat", {"past", "x"}, {"present"}, {Attr::of_int("axis", 0)});
  flat.output("present");
  const auto steps = make_session(env_.get(), flat);
  const StateHandle grows = make_state(steps.get());
  put(grows.get(), "past", floats({2, 2}, {1, 2, 3, 4}));
  EXPECT_TRUE(fails(select(grows.get(), {0}), PFRT_CODE_UNSUPPORTED,
                    {"'past' grows along axis 0", "name"}));
}

TEST_F(StateRows, may_be_empty_or_texts) {
  const auto session = make_session(env_.get(), cache());
  const StateHandle state = make_state(session.get());
  put(state.get(), "past_0", floats({3, 2, 0, 3}, {}));
  ASSERT_TRUE(ok(select(state.get(), {2, 1, 1, 0})));
  EXPECT_EQ(value_in(state.get(), "past_0").dims, (Rows{4, 2, 0, 3}));

  GraphBuilder g;
  g.opset(20);
  g.input("x", PFRT_DTYPE_STRING, {"N", 2});
  g.input("h", PFRT_DTYPE_STRING, {"N", 2});
  g.node("StringConcat", {"h", "x"}, {"h_out"});
  g.output("h_out");
  const auto texts = make_session(env_.get(), g);
  ASSERT_TRUE(texts);
  const StateHandle words = make_state(texts.get());
  const auto options = options_with(words.get());
  const auto make = [&](const std::vector<std::string>& parts) {
    const int64_t dims[2] = {static_cast<int64_t>(parts.size() / 2), 2};
    pfrt_value* raw = nullptr;
    EXPECT_TRUE(ok(api().value->create_tensor(PFRT_DTYPE_STRING, dims, 2, &raw)));
    for (size_t i = 0; i < parts.size(); ++i)
      EXPECT_TRUE(ok(api().value->set_string(raw, i, str(parts[i]))));
    return Handle<pfrt_value>(raw);
  };
  const auto read = [&] {
    pfrt_value* raw = nullptr;
    EXPECT_TRUE(ok(api().state->get(words.get(), str("h"), &raw)));
    const Handle<pfrt_value> value(raw);
    pfrt_tensor t{};
    t.struct_size = sizeof t;
    EXPECT_TRUE(ok(api().value->tensor(raw, &t)));
    std::vector<std::string> out;
    for (int64_t i = 0; i < t.dims[0] * t.dims[1]; ++i)
      out.push_back(text(static_cast<const pfrt_string*>(t.data)[i]));
    return out;
  };
  ASSERT_TRUE(ok(api().state->set(words.get(), str("h"), make({"a", "b", "c", "d"}).get())));
  ASSERT_TRUE(ok(select(words.get(), {1, 0, 1})));
  EXPECT_EQ(read(), (std::vector<std::string>{"c", "d", "a", "b", "c", "d"}));
  const pfrt_string in = str("x");
  const auto x = make({"1", "2", "3", "4", "5", "6"});
  pfrt_io fed{};
  fed.struct_size = sizeof fed;
  fed.value = x.get();
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(ok(
        api().session->run_named(texts.get(), &in, &fed, 1, nullptr, nullptr, 0, options.get())));
  }
  EXPECT_EQ(read(),
            (std::vector<std::string>{"c1111", "d2222", "a3333", "b4444", "c5555", "d6666"}));
  EXPECT_EQ(report_of(texts.get()).states, 6 * sizeof(pfrt_string) + 6 * 5) << "and the texts";
}

// A sequence has no rows, and goes through states otherwise.
TEST_F(StateRows, of_a_sequence_there_are_none) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", 2});
  pfrt_value_info info{};
  info.struct_size = sizeof info;
  info.kind = PFRT_VALUE_SEQUENCE;
  info.dtype = PFRT_DTYPE_FLOAT32;
  info.rank = -1;
  info.name = str("s");
  ASSERT_TRUE(ok(api().graph->add_input(g.get(), &info)));
  g.node("SequenceInsert", {"s", "x"}, {"s_out"});
  g.node("SequenceLength", {"s_out"}, {"y"});
  g.output("y");
  g.output("s_out");
  const auto session = make_session(env_.get(), g);
  ASSERT_TRUE(session);
  const StateHandle state = make_state(session.get());
  const auto options = options_with(state.get()), keeps = keeping(state.get());
  const Array x = floats({1, 2}, {1, 2});
  const auto first = value_of(x);
  pfrt_value* elements[1] = {first.get()};
  pfrt_value* raw = nullptr;
  ASSERT_TRUE(ok(api().value->create_sequence(PFRT_DTYPE_FLOAT32, elements, 1, &raw)));
  ASSERT_TRUE(ok(api().state->set(state.get(), str("s"), Handle<pfrt_value>(raw).get())));
  Array y;
  for (int64_t i = 2; i < 6; ++i) {
    ASSERT_TRUE(ok(step(session.get(), keeps.get(), x, &y)));
    EXPECT_EQ(y.as<int64_t>(), std::vector<int64_t>{i});
    ASSERT_TRUE(ok(step(session.get(), options.get(), x, &y)));
    EXPECT_EQ(y.as<int64_t>(), std::vector<int64_t>{i});
  }
  EXPECT_GE(report_of(session.get()).states, 4u * 8);
  EXPECT_TRUE(fails(select(state.get(), {0}), PFRT_CODE_UNSUPPORTED, {"'s' is no tensor"}));
  StateHandle other;
  ASSERT_TRUE(ok(try_clone_for(state.get(), session.get(), &other)));
  const auto with_other = options_with(other.get());
  ASSERT_TRUE(ok(step(session.get(), with_other.get(), x, &y)));
  EXPECT_EQ(y.as<int64_t>(), std::vector<int64_t>{6});
}

TEST_F(StateRows, of_a_cache_in_place_are_chosen_too) {
  GraphBuilder g;
  g.opset(24);
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", 2, "T", 3});
  g.input("at", PFRT_DTYPE_INT64, {"N"});
  g.input("past", PFRT_DTYPE_FLOAT32, {"N", 2, 8, 3});
  g.constant("axis", int64s({1}, {2}));
  g.node("TensorScatter", {"past", "x", "at"}, {"present"}, {Attr::of_int("axis", -2)});
  g.node("ReduceSum", {"present", "axis"}, {"y"}, {Attr::of_int("keepdims", 0)});
  g.output("y");
  g.output("present");
  const auto session = make_session(env_.get(), g);
  const StateHandle state = make_state(session.get());
  const auto options = options_with(state.get());
  const auto write_rows = [&](const Rows& at, const Values& x) {
    const auto n = static_cast<int64_t>(at.size());
    Values all;
    for (const float v : x) all.insert(all.end(), 6, v);
    const pfrt_string names[2] = {str("x"), str("at")}, out = str("y");
    const Array row = floats({n, 2, 1, 3}, all), place = int64s({n}, at);
    const pfrt_io fed[2] = {row.io(), place.io()};
    pfrt_io result{};
    result.struct_size = sizeof result;
    EXPECT_TRUE(ok(
        api().session->run_named(session.get(), names, fed, 2, &out, &result, 1, options.get())));
    const Handle<pfrt_value> value(result.value);
    Values sums;
    const Values y = value ? array_of(value.get()).as<float>() : Values();
    for (size_t i = 0; i < y.size(); i += 6) sums.push_back(y[i]);
    return sums;
  };
  put(state.get(), "past", floats({3, 2, 8, 3}, Values(144, 0)));
  EXPECT_EQ(write_rows({0, 0, 0}, {1, 2, 3}), (Values{1, 2, 3}));
  EXPECT_EQ(write_rows({1, 1, 1}, {1, 1, 1}), (Values{2, 3, 4}));
  const StateHandle before = clone(state.get());
  ASSERT_TRUE(ok(select(state.get(), {2, 0})));
  EXPECT_EQ(write_rows({2, 2}, {10, 20}), (Values{14, 22}));
  ASSERT_TRUE(ok(select(state.get(), {1, 1, 0, 1})));
  EXPECT_EQ(write_rows({3, 3, 3, 3}, {1, 2, 3, 4}), (Values{23, 24, 17, 26}));
  EXPECT_EQ(value_in(before.get(), "past").dims[0], 3);
}

// ---- from session to session ----

TEST_F(StateRows, go_to_another_session_by_the_names_of_inputs) {
  const auto session = make_session(env_.get(), cache()), other = make_session(env_.get(), cache());
  const StateHandle state = make_state(session.get());
  const auto options = options_with(state.get());
  const auto x = [](uint32_t seed) { return floats({1, 2, 1, 3}, random_floats(6, seed)); };
  for (uint32_t i = 0; i < 3; ++i) ASSERT_TRUE(ok(step(session.get(), options.get(), x(i))));
  StateHandle moved;
  ASSERT_TRUE(ok(try_clone_for(state.get(), other.get(), &moved)));
  EXPECT_EQ(value_in(moved.get(), "past_0").bytes, value_in(state.get(), "past_0").bytes);
  EXPECT_GT(report_of(other.get()).states, 0u);
  EXPECT_LT(report_of(other.get()).states, report_of(session.get()).states)
      << "the value is shared, and the spare memory is not";
  const auto with_moved = options_with(moved.get());
  for (uint32_t i = 3; i < 9; ++i) {
    Array a, b;
    ASSERT_TRUE(ok(step(session.get(), options.get(), x(i), &a)));
    ASSERT_TRUE(ok(step(other.get(), with_moved.get(), x(i), &b)));
    EXPECT_EQ(a.bytes, b.bytes);
  }
  EXPECT_TRUE(fails(step(session.get(), with_moved.get(), x(1)), PFRT_CODE_INVALID_ARGUMENT,
                    {"another session"}));
  // A new state makes a new state, and the first one may go.
  ASSERT_TRUE(ok(try_clone_for(make_state(session.get()).get(), other.get(), &moved)));
  EXPECT_EQ(value_in(moved.get(), "past_0").dtype, uint32_t{PFRT_DTYPE_UNSET});
}

// Models of two layers each.
GraphBuilder layers(const DimSpec& size, pfrt_dtype dtype, const std::vector<std::string>& names) {
  GraphBuilder g;
  g.input("x", dtype, {"N", size});
  for (const std::string& name : names) {
    g.input("past_" + name, dtype, {"N", size});
    g.node("Add", {"past_" + name, "x"}, {"present_" + name});
    g.output("present_" + name);
  }
  return g;
}

TEST_F(StateRows, that_do_not_fit_another_session_are_all_listed) {
  const auto session = make_session(env_.get(), layers(2, PFRT_DTYPE_FLOAT32, {"a", "b", "c"}));
  const StateHandle state = make_state(session.get());
  for (const char* name : {"past_a", "past_b", "past_c"})
    put(state.get(), name, floats({1, 2}, {1, 2}));
  const auto refused = [&](const GraphBuilder& g, pfrt_code code,
                           std::initializer_list<std::string_view> parts) {
    const auto other = make_session(env_.get(), g);
    EXPECT_TRUE(fails(try_clone_for(state.get(), other.get()), code, parts));
  };
  refused(layers(2, PFRT_DTYPE_FLOAT32, {"b"}), PFRT_CODE_NOT_FOUND,
          {"cloning a state for another session", "has no 'past_a', 'past_c'", "it has 'past_b'"});
  refused(layers(3, PFRT_DTYPE_FLOAT32, {"a", "b", "c"}), PFRT_CODE_SHAPE_MISMATCH,
          {"'past_a': dimension 1", "'past_b': dimension 1", "'past_c': dimension 1"});
  refused(layers(2, PFRT_DTYPE_INT64, {"a", "b", "c"}), PFRT_CODE_DTYPE_MISMATCH,
          {"'past_a': the input is of int64", "'past_c'"});
  // An input that only the other session has is as in a new state.
  const auto more = make_session(env_.get(), layers(2, PFRT_DTYPE_FLOAT32, {"a", "b", "c", "d"}));
  StateHandle with_more;
  ASSERT_TRUE(ok(try_clone_for(state.get(), more.get(), &with_more)));
  EXPECT_EQ(value_in(with_more.get(), "past_c").as<float>(), (Values{1, 2}));
  EXPECT_EQ(value_in(with_more.get(), "past_d").dtype, uint32_t{PFRT_DTYPE_UNSET});
  // Pairs are the other session's.
  EXPECT_TRUE(fails(try_clone_for(state.get(), more.get(), nullptr, {pair_of("past", "present")}),
                    PFRT_CODE_NOT_FOUND, {"'past'"}));
  pfrt_state* out = nullptr;
  EXPECT_TRUE(fails(api().state->clone_for(state.get(), nullptr, nullptr, 0, &out),
                    PFRT_CODE_INVALID_ARGUMENT, {"'session'"}));
  EXPECT_TRUE(fails(api().state->clone_for(nullptr, more.get(), nullptr, 0, &out),
                    PFRT_CODE_INVALID_ARGUMENT, {"'state'"}));

  const auto growing = make_session(env_.get(), cache());
  const StateHandle grows = make_state(growing.get());
  EXPECT_TRUE(fails(try_clone_for(grows.get(), growing.get(), nullptr,
                                  {pair_of("past_0", "present_0", PFRT_STATE_IN_PLACE)}),
                    PFRT_CODE_INVALID_ARGUMENT, {"'past_0'", "grows along axis 2", "in place"}));
  EXPECT_TRUE(fails(try_clone_for(grows.get(), growing.get(), nullptr,
                                  {pair_of("past_0", "present_0", PFRT_STATE_GROWS, 3)}),
                    PFRT_CODE_INVALID_ARGUMENT, {"axis 2", "axis 3"}));
  EXPECT_TRUE(ok(try_clone_for(grows.get(), growing.get(), nullptr,
                               {pair_of("past_0", "present_0", PFRT_STATE_REPLACED)})));
}

TEST_F(StateRows, in_place_are_not_shared_when_another_session_writes) {
  const auto session = make_session(env_.get(), scattered_cache(8)),
             other = make_session(env_.get(), scattered_cache("ROOM"));
  const StateHandle state = make_state(session.get());
  const auto options = options_with(state.get());
  Array y;
  for (int64_t i = 0; i < 3; ++i) ASSERT_TRUE(ok(write(session.get(), options.get(), i, 1, &y)));
  StateHandle moved;
  ASSERT_TRUE(ok(try_clone_for(state.get(), other.get(), &moved)));
  const auto with_moved = options_with(moved.get());
  ASSERT_TRUE(ok(write(other.get(), with_moved.get(), 3, 10, &y)));
  EXPECT_EQ(y.as<float>(), Values(6, 13));
  ASSERT_TRUE(ok(write(session.get(), options.get(), 3, 5, &y)));
  EXPECT_EQ(y.as<float>(), Values(6, 8));
  ASSERT_TRUE(ok(write(other.get(), with_moved.get(), 4, 1, &y)));
  EXPECT_EQ(y.as<float>(), Values(6, 14));
}

// A model for prompts has the outputs and not the inputs.
TEST_F(StateRows, begin_with_what_a_model_for_prompts_has_made) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", 2, "T", 3});
  g.constant("axis", int64s({1}, {2}));
  g.node("Identity", {"x"}, {"present_0"});
  g.node("ReduceSum", {"present_0", "axis"}, {"y"}, {Attr::of_int("keepdims", 0)});
  g.output("y");
  g.output("present_0");
  const auto prompts = make_session(env_.get(), g), steps = make_session(env_.get(), cache());
  const Array prompt = floats({1, 2, 4, 3}, random_floats(24, 1)),
              x = floats({1, 2, 1, 3}, random_floats(6, 2));
  const StateHandle state = make_state(steps.get()), alone = make_state(steps.get());
  pfrt_io in = prompt.io(), out[2] = {};
  out[0].struct_size = out[1].struct_size = sizeof(pfrt_io);
  ASSERT_TRUE(ok(api().session->run(prompts.get(), &in, 1, out, 2, nullptr)));
  const Handle<pfrt_value> y(out[0].value), present(out[1].value);
  const pfrt_string names[3] = {str("present_0"), str("present_0"), str("logits")};
  pfrt_value* const values[3] = {present.get(), present.get(), y.get()};
  ASSERT_TRUE(ok(api().state->set_outputs(state.get(), names, values, 1)));
  EXPECT_EQ(api().state->length(state.get()), 4);
  const auto options = options_with(state.get()), with_alone = options_with(alone.get());
  ASSERT_TRUE(ok(step(steps.get(), with_alone.get(), prompt)));
  Array a, b;
  ASSERT_TRUE(ok(step(steps.get(), options.get(), x, &a)));
  ASSERT_TRUE(ok(step(steps.get(), with_alone.get(), x, &b)));
  EXPECT_EQ(a.bytes, b.bytes);

  const Array before = value_in(state.get(), "past_0");
  EXPECT_TRUE(fails(api().state->set_outputs(state.get(), names, values, 3),
                    PFRT_CODE_INVALID_ARGUMENT, {"'present_0'", "twice"}));
  EXPECT_TRUE(fails(api().state->set_outputs(state.get(), names + 1, values + 1, 2),
                    PFRT_CODE_NOT_FOUND, {"'logits'", "it has 'present_0'"}));
  EXPECT_TRUE(fails(api().state->set_outputs(state.get(), names, values + 2, 1),
                    PFRT_CODE_SHAPE_MISMATCH, {"'past_0'"}));
  pfrt_value* const none = nullptr;
  EXPECT_TRUE(fails(api().state->set_outputs(state.get(), names, &none, 1),
                    PFRT_CODE_INVALID_ARGUMENT, {"'values'"}));
  EXPECT_TRUE(ok(api().state->set_outputs(state.get(), nullptr, nullptr, 0)));
  EXPECT_EQ(value_in(state.get(), "past_0").bytes, before.bytes);
}

// ---- memory ----

TEST_F(StateRows, that_are_shared_are_counted_once) {
  const auto session = make_session(env_.get(), cache(4, 64));
  EXPECT_EQ(report_of(session.get()).states, 0u);
  StateHandle state = make_state(session.get());
  EXPECT_EQ(report_of(session.get()).states, 0u);
  const auto x = [](int64_t t) {
    return floats({1, 4, t, 64}, random_floats(static_cast<size_t>(256 * t), 1));
  };
  {
    const auto options = options_with(state.get());
    ASSERT_TRUE(ok(step(session.get(), options.get(), x(100))));
  }
  const uint64_t one = report_of(session.get()).states, value = 4 * 100 * 64 * 4;
  EXPECT_EQ(one, value);
  std::vector<StateHandle> clones;
  for (int i = 0; i < 8; ++i) clones.push_back(clone(state.get()));
  EXPECT_EQ(report_of(session.get()).states, one) << "nine states have one value";
  EXPECT_EQ(report_of(session.get()).device_states, 0u);
  // Runs that keep them make none their own.
  for (const StateHandle& each : clones) {
    const auto keeps = keeping(each.get());
    ASSERT_TRUE(ok(step(session.get(), keeps.get(), x(1))));
  }
  EXPECT_EQ(report_of(session.get()).states, one);
  uint64_t last = one;
  for (const StateHandle& each : clones) {
    const auto options = options_with(each.get());
    ASSERT_TRUE(ok(step(session.get(), options.get(), x(1))));
    const uint64_t now = report_of(session.get()).states;
    EXPECT_GE(now - last, value) << "each that goes on has a value of its own";
    last = now;
  }
  clones.clear();
  EXPECT_EQ(report_of(session.get()).states, one);
  state = nullptr;
  EXPECT_EQ(report_of(session.get()).states, 0u);
}

TEST_F(StateRows, in_place_are_copied_by_the_first_run_that_writes) {
  constexpr int64_t kRoom = 1000;
  constexpr uint64_t kBytes = 2 * kRoom * 3 * 4;
  const auto session = make_session(env_.get(), scattered_cache(kRoom));
  const StateHandle state = make_state(session.get());
  const auto options = options_with(state.get());
  Array y;
  ASSERT_TRUE(ok(write(session.get(), options.get(), 0, 1)));
  ASSERT_TRUE(ok(write(session.get(), options.get(), 1, 1)));
  EXPECT_EQ(report_of(session.get()).states, kBytes);
  std::vector<StateHandle> clones;
  for (int i = 0; i < 8; ++i) clones.push_back(clone(state.get()));
  EXPECT_EQ(report_of(session.get()).states, kBytes);
  for (size_t i = 0; i < clones.size(); ++i) {
    const auto own = options_with(clones[i].get());
    const auto x = static_cast<float>(i);
    ASSERT_TRUE(ok(write(session.get(), own.get(), 2, x, &y)));
    EXPECT_EQ(y.as<float>(), Values(6, 2 + x));
    EXPECT_EQ(report_of(session.get()).states, (i + 2) * kBytes);
    ASSERT_TRUE(ok(write(session.get(), own.get(), 3, 1, &y)));
    EXPECT_EQ(report_of(session.get()).states, (i + 2) * kBytes) << "it has a copy already";
  }
  ASSERT_TRUE(ok(write(session.get(), options.get(), 2, 0, &y)));
  EXPECT_EQ(y.as<float>(), Values(6, 2));
  EXPECT_EQ(report_of(session.get()).states, 9 * kBytes) << "it was alone with its own";
}

TEST_F(StateRows, in_the_clients_memory_are_not_counted) {
  const auto session = make_session(env_.get(), accumulator());
  const StateHandle state = make_state(session.get());
  Array mine = floats({1, 2}, {1, 2});
  const pfrt_tensor view = mine.view();
  pfrt_value* raw = nullptr;
  ASSERT_TRUE(ok(api().value->wrap_tensor(&view, nullptr, nullptr, &raw)));
  ASSERT_TRUE(ok(api().state->set(state.get(), str("h"), Handle<pfrt_value>(raw).get())));
  EXPECT_EQ(report_of(session.get()).states, 0u);
  put(state.get(), "h", mine);
  EXPECT_EQ(report_of(session.get()).states, 8u);
  pfrt_report* report = nullptr;
  ASSERT_TRUE(ok(api().session->explain(session.get(), &report)));
  const Handle<pfrt_report> held(report);
  bool said = false;
  for (size_t i = 0; i < api().report->note_count(report); ++i)
    said = said || text(api().report->note_at(report, i)).find("states 8 ") != std::string::npos;
  EXPECT_TRUE(said);
}

// A client's release function may use the state that lets go of its memory.
TEST_F(StateRows, let_go_of_the_clients_memory_where_it_may_call_back) {
  struct Mine {
    Array array = floats({1, 2}, {1, 2});
    pfrt_state* state = nullptr;
    int released = 0;
    static void release(void* user, void*) {
      auto& self = *static_cast<Mine*>(user);
      ++self.released;
      EXPECT_GE(api().state->length(self.state), 0);
    }
  } mine;
  const auto session = make_session(env_.get(), accumulator());
  const StateHandle state = make_state(session.get());
  mine.state = state.get();
  const auto lend = [&] {
    const pfrt_tensor view = mine.array.view();
    pfrt_value* raw = nullptr;
    EXPECT_TRUE(ok(api().value->wrap_tensor(&view, &Mine::release, &mine, &raw)));
    EXPECT_TRUE(ok(api().state->set(state.get(), str("h"), Handle<pfrt_value>(raw).get())));
  };
  const auto options = options_with(state.get());
  lend();
  lend();
  EXPECT_EQ(mine.released, 1);
  ASSERT_TRUE(ok(select(state.get(), {0, 0})));
  EXPECT_EQ(mine.released, 2);
  lend();
  ASSERT_TRUE(ok(api().state->truncate(state.get(), 0)));
  EXPECT_EQ(mine.released, 3);
  lend();
  ASSERT_TRUE(ok(step(session.get(), options.get(), mine.array)));
  EXPECT_EQ(mine.released, 4);
}

}  // namespace
}  // namespace pfrt_test
