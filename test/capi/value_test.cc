// SPDX-License-Identifier: Apache-2.0
#include "test/capi/client.h"

namespace pfrt_test {
namespace {

void count_release(void* user, void*) { ++*static_cast<int*>(user); }

pfrt_tensor view_of(const pfrt_value* value) {
  pfrt_tensor t{};
  t.struct_size = sizeof t;
  EXPECT_TRUE(ok(api().value->tensor(value, &t)));
  return t;
}

struct TypeRow {
  pfrt_dtype dtype;
  size_t bits;
  const char* name;
};
constexpr TypeRow kTypes[] = {
#define PFRT_X(name, number, guide, bits, phrase, onnx) {PFRT_DTYPE_##name, bits, phrase},
    PFRT_DTYPE_TABLE(PFRT_X)
#undef PFRT_X
};

TEST(Value, tensor_of_every_element_type_is_zeroed_and_aligned) {
  const int64_t dims[] = {3, 5};
  for (const TypeRow& row : kTypes) {
    SCOPED_TRACE(row.name);
    pfrt_value* raw = nullptr;
    ASSERT_TRUE(ok(api().value->create_tensor(row.dtype, dims, 2, &raw)));
    const Handle<pfrt_value> value(raw);
    EXPECT_EQ(api().value->dtype(raw), row.dtype);
    const pfrt_tensor t = view_of(raw);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(t.data) % 64, 0u);
    if (row.dtype == PFRT_DTYPE_STRING) {
      EXPECT_EQ(t.bytes, 15 * sizeof(pfrt_string));
      for (int i = 0; i < 15; ++i) EXPECT_EQ(static_cast<pfrt_string*>(t.data)[i].size, 0u);
    } else {
      EXPECT_EQ(t.bytes, (15 * row.bits + 7) / 8);
      const std::vector<char> zeros(t.bytes, 0);
      EXPECT_EQ(std::memcmp(t.data, zeros.data(), t.bytes), 0);
    }
  }
}

TEST(Value, tensor_of_odd_shapes) {
  const int64_t empty[] = {4, 0, 2};
  pfrt_value* raw = nullptr;
  ASSERT_TRUE(ok(api().value->create_tensor(PFRT_DTYPE_FLOAT32, empty, 3, &raw)));
  EXPECT_EQ(view_of(raw).bytes, 0u);
  api().value->release(raw);
  ASSERT_TRUE(ok(api().value->create_tensor(PFRT_DTYPE_FLOAT32, nullptr, 0, &raw)));
  EXPECT_EQ(view_of(raw).bytes, 4u);
  EXPECT_EQ(view_of(raw).rank, 0u);
  api().value->release(raw);
}

TEST(Value, impossible_tensors_are_refused) {
  pfrt_value* raw = nullptr;
  const int64_t negative[] = {2, -1};
  EXPECT_FALSE(ok(api().value->create_tensor(PFRT_DTYPE_FLOAT32, negative, 2, &raw)));
  EXPECT_EQ(raw, nullptr);
  const int64_t overflow[] = {int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_FALSE(ok(api().value->create_tensor(PFRT_DTYPE_FLOAT32, overflow, 2, &raw)));
  const int64_t two[] = {2};
  EXPECT_FALSE(ok(api().value->create_tensor(77, two, 1, &raw)));
  EXPECT_FALSE(ok(api().value->create_tensor(PFRT_DTYPE_UNSET, two, 1, &raw)));
  EXPECT_TRUE(fails(api().value->create_tensor(PFRT_DTYPE_FLOAT32, nullptr, 1, &raw),
                    PFRT_CODE_INVALID_ARGUMENT, {"dims"}));
  EXPECT_EQ(raw, nullptr);
}

TEST(Value, tensor_larger_than_memory_is_a_status) {
  pfrt_value* raw = nullptr;
  const int64_t huge[] = {int64_t{1} << 55};
  EXPECT_TRUE(fails(api().value->create_tensor(PFRT_DTYPE_FLOAT32, huge, 1, &raw),
                    PFRT_CODE_OUT_OF_MEMORY, {}));
  EXPECT_EQ(raw, nullptr);
}

TEST(Value, wrapped_memory_is_released_once) {
  int released = 0;
  const Array x = floats({2}, {1, 2});
  const pfrt_tensor t = x.view();
  pfrt_value* raw = nullptr;
  ASSERT_TRUE(ok(api().value->wrap_tensor(&t, count_release, &released, &raw)));
  EXPECT_EQ(view_of(raw).data, t.data);
  api().value->retain(raw);
  api().value->release(raw);
  EXPECT_EQ(released, 0);
  api().value->release(raw);
  EXPECT_EQ(released, 1);
}

TEST(Value, wrapping_checks_the_view) {
  const Array x = floats({2, 2}, {1, 2, 3, 4});
  pfrt_value* raw = nullptr;
  const auto refuse = [&](auto change, std::string_view part) {
    pfrt_tensor t = x.view();
    change(t);
    const Failure failure = take(api().value->wrap_tensor(&t, nullptr, nullptr, &raw));
    EXPECT_FALSE(failure.ok()) << part;
    EXPECT_NE(failure.message.find(part), std::string::npos) << failure.message;
    EXPECT_EQ(raw, nullptr);
  };
  refuse([](pfrt_tensor& t) { t.bytes = 15; }, "15");
  refuse([](pfrt_tensor& t) { t.dtype = 99; }, "99");
  refuse([](pfrt_tensor& t) { t.dtype = 0; }, "dtype");
  refuse([](pfrt_tensor& t) { t.data = nullptr; }, "no data");
  refuse([](pfrt_tensor& t) { t.dims = nullptr; }, "dims");
  refuse([](pfrt_tensor& t) { t.rank = 65; }, "65");
  refuse([](pfrt_tensor& t) { t.memory = PFRT_MEMORY_DEVICE; }, "memory");
  const int64_t negative[] = {2, -2};
  refuse([&](pfrt_tensor& t) { t.dims = negative; }, "negative");
  const int64_t strides[] = {2, 1};
  refuse([&](pfrt_tensor& t) { t.strides = strides; }, "strides");
  EXPECT_TRUE(fails(api().value->wrap_tensor(nullptr, nullptr, nullptr, &raw),
                    PFRT_CODE_INVALID_ARGUMENT, {"tensor"}));
}

TEST(Value, memory_at_any_address_is_copied_when_it_is_viewed) {
  int released = 0;
  alignas(8) char bytes[1 + 2 * sizeof(float)] = {};
  const float numbers[] = {1.5f, -2};
  std::memcpy(bytes + 1, numbers, sizeof numbers);
  const Array x = floats({2}, {0, 0});
  pfrt_tensor t = x.view();
  t.data = bytes + 1;
  pfrt_value* raw = nullptr;
  EXPECT_TRUE(fails(api().value->wrap_tensor(&t, nullptr, nullptr, &raw),
                    PFRT_CODE_INVALID_ARGUMENT, {"aligned"}));
  ASSERT_TRUE(ok(api().value->wrap_unaligned(&t, count_release, &released, &raw)));
  const pfrt_tensor seen = view_of(raw);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(seen.data) % 64, 0u);
  EXPECT_EQ(std::memcmp(seen.data, numbers, sizeof numbers), 0);
  EXPECT_EQ(released, 0);
  api().value->release(raw);
  EXPECT_EQ(released, 1);

  // Aligned data is not copied.
  t.data = bytes;
  ASSERT_TRUE(ok(api().value->wrap_unaligned(&t, count_release, &released, &raw)));
  EXPECT_EQ(view_of(raw).data, bytes);
  api().value->release(raw);
  EXPECT_EQ(released, 2);

  t.bytes = 7;
  EXPECT_TRUE(fails(api().value->wrap_unaligned(&t, count_release, &released, &raw),
                    PFRT_CODE_SHAPE_MISMATCH, {"7"}));
  EXPECT_EQ(released, 3);
  t = x.view();
  const int64_t strides[] = {1};
  t.strides = strides;
  EXPECT_TRUE(fails(api().value->wrap_unaligned(&t, nullptr, nullptr, &raw), PFRT_CODE_UNSUPPORTED,
                    {"strides"}));
  t.strides = nullptr;
  t.dtype = PFRT_DTYPE_STRING;
  EXPECT_TRUE(fails(api().value->wrap_unaligned(&t, nullptr, nullptr, &raw), PFRT_CODE_UNSUPPORTED,
                    {"strings"}));
}

TEST(Value, strings_are_owned_by_the_tensor) {
  const int64_t dims[] = {2};
  pfrt_value* raw = nullptr;
  ASSERT_TRUE(ok(api().value->create_tensor(PFRT_DTYPE_STRING, dims, 1, &raw)));
  const Handle<pfrt_value> value(raw);
  {
    std::string temporary = "a text that is longer than a small string's room";
    ASSERT_TRUE(ok(api().value->set_string(raw, 0, str(temporary))));
    temporary.assign(temporary.size(), '!');
  }
  ASSERT_TRUE(ok(api().value->set_string(raw, 1, str("first"))));
  ASSERT_TRUE(ok(api().value->set_string(raw, 1, str(std::string_view("se\0cond", 7)))));
  const auto* strings = static_cast<const pfrt_string*>(view_of(raw).data);
  EXPECT_EQ(text(strings[0]), "a text that is longer than a small string's room");
  EXPECT_EQ(text(strings[1]), std::string("se\0cond", 7));
  EXPECT_TRUE(fails(api().value->set_string(raw, 2, str("x")), PFRT_CODE_INVALID_ARGUMENT, {"2"}));
  const auto number = value_of(floats({1}, {1}));
  EXPECT_TRUE(
      fails(api().value->set_string(number.get(), 0, str("x")), PFRT_CODE_INVALID_ARGUMENT, {}));
}

// The texts of a tensor of strings as the library writes them, with |ends| or with bytes of 0.
std::pair<std::string, std::vector<uint64_t>> strings_of(const pfrt_value* value, uint64_t count,
                                                         bool with_ends) {
  size_t size = 0;
  std::vector<uint64_t> ends(count);
  uint64_t* const at = with_ends ? ends.data() : nullptr;
  EXPECT_TRUE(ok(api().value->strings(value, nullptr, 0, &size, at)));
  std::string out(size, '?');
  size_t again = 0;
  EXPECT_TRUE(ok(api().value->strings(value, out.data(), size, &again, at)));
  EXPECT_EQ(again, size);
  return {out, ends};
}

TEST(Value, strings_cross_over_in_one_call) {
  const int64_t dims[] = {2, 2};
  const std::string_view words("one\0\0three\0vier", 15);
  pfrt_value* raw = nullptr;
  ASSERT_TRUE(ok(api().value->create_strings(dims, 2, words.data(), words.size(), nullptr, &raw)));
  const Handle<pfrt_value> value(raw);
  const auto* strings = static_cast<const pfrt_string*>(view_of(raw).data);
  EXPECT_EQ(text(strings[0]), "one");
  EXPECT_EQ(text(strings[1]), "");
  EXPECT_EQ(text(strings[3]), "vier");
  EXPECT_EQ(strings_of(raw, 4, false).first, words);
  const auto [joined, ends] = strings_of(raw, 4, true);
  EXPECT_EQ(joined, "onethreevier");
  EXPECT_EQ(ends, (std::vector<uint64_t>{3, 3, 8, 12}));

  const std::string_view zeros("a\0b\0", 4);
  const uint64_t bounds[] = {3, 3, 4, 4};
  ASSERT_TRUE(ok(api().value->create_strings(dims, 2, zeros.data(), 4, bounds, &raw)));
  const Handle<pfrt_value> other(raw);
  strings = static_cast<const pfrt_string*>(view_of(raw).data);
  EXPECT_EQ(text(strings[0]), std::string("a\0b", 3));
  EXPECT_EQ(strings_of(raw, 4, true).first, zeros);
  ASSERT_TRUE(ok(api().value->set_string(raw, 0, str("longer than it was"))));
  EXPECT_EQ(strings_of(raw, 4, true).second.front(), 18u);
}

TEST(Value, strings_that_are_not_as_many_are_refused) {
  const int64_t three[] = {3}, none[] = {0};
  pfrt_value* raw = nullptr;
  for (const std::string_view text : {std::string_view("a\0b", 3), std::string_view("\0\0\0", 3)})
    EXPECT_TRUE(
        fails(api().value->create_strings(three, 1, text.data(), text.size(), nullptr, &raw),
              PFRT_CODE_INVALID_ARGUMENT, {"3 strings", "bytes of 0"}));
  EXPECT_TRUE(fails(api().value->create_strings(none, 1, "x", 1, nullptr, &raw),
                    PFRT_CODE_INVALID_ARGUMENT, {"0 strings"}));
  for (const std::vector<uint64_t>& ends :
       std::vector<std::vector<uint64_t>>{{1, 0, 2}, {1, 2, 4}, {UINT64_MAX, 2, 3}})
    EXPECT_TRUE(fails(api().value->create_strings(three, 1, "abc", 3, ends.data(), &raw),
                      PFRT_CODE_INVALID_ARGUMENT, {"of 3"}));
  EXPECT_EQ(raw, nullptr);
  ASSERT_TRUE(ok(api().value->create_strings(none, 1, nullptr, 0, nullptr, &raw)));
  EXPECT_EQ(strings_of(raw, 0, false).first, "");
  api().value->release(raw);
  const auto number = value_of(floats({1}, {1}));
  size_t size = 0;
  EXPECT_TRUE(fails(api().value->strings(number.get(), nullptr, 0, &size, nullptr),
                    PFRT_CODE_INVALID_ARGUMENT, {"no tensor of strings"}));
}

TEST(Value, parts_are_described_in_one_call) {
  const auto keys = value_of(int64s({2}, {1, 2}));
  const auto values = value_of(floats({2}, {0.5f, 1.5f}));
  pfrt_value *map = nullptr, *sparse = nullptr, *sequence = nullptr;
  ASSERT_TRUE(ok(api().value->create_map(keys.get(), values.get(), &map)));
  const Handle<pfrt_value> map_handle(map);
  const int64_t dims[] = {9};
  ASSERT_TRUE(ok(api().value->create_sparse(values.get(), keys.get(), dims, 1, &sparse)));
  const Handle<pfrt_value> sparse_handle(sparse);
  pfrt_value* elements[] = {map, map};
  ASSERT_TRUE(ok(api().value->create_sequence(PFRT_DTYPE_FLOAT32, elements, 2, &sequence)));
  const Handle<pfrt_value> sequence_handle(sequence);

  const pfrt_value* described[] = {sequence, sparse, values.get()};
  size_t count = 0;
  ASSERT_TRUE(ok(api().value->parts(described, 3, nullptr, 0, &count)));
  ASSERT_EQ(count, 11u);
  pfrt_value_part parts[11] = {};
  parts[0].struct_size = sizeof parts[0];
  ASSERT_TRUE(ok(api().value->parts(described, 3, parts, 11, &count)));
  const std::vector<std::pair<uint32_t, uint64_t>> wanted = {
      {PFRT_VALUE_SEQUENCE, 2}, {PFRT_VALUE_MAP, 2},    {PFRT_VALUE_TENSOR, 0},
      {PFRT_VALUE_TENSOR, 0},   {PFRT_VALUE_MAP, 2},    {PFRT_VALUE_TENSOR, 0},
      {PFRT_VALUE_TENSOR, 0},   {PFRT_VALUE_SPARSE, 2}, {PFRT_VALUE_TENSOR, 0},
      {PFRT_VALUE_TENSOR, 0},   {PFRT_VALUE_TENSOR, 0}};
  for (size_t i = 0; i < count; ++i) {
    EXPECT_EQ(parts[i].struct_size, sizeof parts[i]) << i;
    EXPECT_EQ(parts[i].kind, wanted[i].first) << i;
    EXPECT_EQ(parts[i].count, wanted[i].second) << i;
  }
  EXPECT_EQ(parts[3].tensor.data, view_of(values.get()).data);
  EXPECT_EQ(parts[3].tensor.dims[0], 2);
  EXPECT_EQ(parts[7].tensor.dims[0], 9);
  EXPECT_EQ(parts[9].tensor.dtype, uint32_t{PFRT_DTYPE_INT64});

  // Only what there is room for is written.
  pfrt_value_part two[3] = {};
  two[0].struct_size = sizeof two[0];
  ASSERT_TRUE(ok(api().value->parts(described, 3, two, 2, &count)));
  EXPECT_EQ(count, 11u);
  EXPECT_EQ(two[1].kind, uint32_t{PFRT_VALUE_MAP});
  EXPECT_EQ(two[2].struct_size, 0u);
  described[1] = nullptr;
  EXPECT_TRUE(fails(api().value->parts(described, 3, two, 2, &count), PFRT_CODE_INVALID_ARGUMENT,
                    {"number 1"}));
  two[0].struct_size = 8;
  EXPECT_TRUE(fails(api().value->parts(described, 1, two, 2, &count), PFRT_CODE_INVALID_ARGUMENT,
                    {"pfrt_value_part"}));
}

TEST(Value, sequence_keeps_its_elements) {
  auto one = value_of(floats({1}, {1}));
  auto two = value_of(floats({2}, {2, 3}));
  pfrt_value* elements[] = {one.get(), two.get(), one.get()};
  pfrt_value* raw = nullptr;
  ASSERT_TRUE(ok(api().value->create_sequence(PFRT_DTYPE_FLOAT32, elements, 3, &raw)));
  const Handle<pfrt_value> sequence(raw);
  one.reset();
  two.reset();
  EXPECT_EQ(api().value->kind(raw), uint32_t{PFRT_VALUE_SEQUENCE});
  EXPECT_EQ(api().value->dtype(raw), uint32_t{PFRT_DTYPE_FLOAT32});
  size_t count = 0;
  ASSERT_TRUE(ok(api().value->count(raw, &count)));
  EXPECT_EQ(count, 3u);
  pfrt_value* element = nullptr;
  ASSERT_TRUE(ok(api().value->element(raw, 1, &element)));
  EXPECT_EQ(array_of(element).as<float>(), (std::vector<float>{2, 3}));
  EXPECT_TRUE(fails(api().value->element(raw, 3, &element), PFRT_CODE_INVALID_ARGUMENT, {"3"}));
  EXPECT_EQ(element, nullptr);
  pfrt_tensor t{};
  t.struct_size = sizeof t;
  EXPECT_TRUE(fails(api().value->tensor(raw, &t), PFRT_CODE_INVALID_ARGUMENT, {}));
}

TEST(Value, element_may_outlive_its_sequence) {
  auto one = value_of(floats({1}, {1}));
  pfrt_value* elements[] = {one.get()};
  pfrt_value* raw = nullptr;
  ASSERT_TRUE(ok(api().value->create_sequence(PFRT_DTYPE_FLOAT32, elements, 1, &raw)));
  pfrt_value* element = nullptr;
  ASSERT_TRUE(ok(api().value->element(raw, 0, &element)));
  api().value->retain(element);
  api().value->release(raw);
  one.reset();
  EXPECT_EQ(array_of(element).as<float>(), std::vector<float>{1});
  api().value->release(element);
}

TEST(Value, empty_sequence_keeps_its_element_type) {
  pfrt_value* raw = nullptr;
  ASSERT_TRUE(ok(api().value->create_sequence(PFRT_DTYPE_INT64, nullptr, 0, &raw)));
  EXPECT_EQ(api().value->dtype(raw), uint32_t{PFRT_DTYPE_INT64});
  size_t count = 9;
  ASSERT_TRUE(ok(api().value->count(raw, &count)));
  EXPECT_EQ(count, 0u);
  api().value->release(raw);
  EXPECT_FALSE(ok(api().value->create_sequence(PFRT_DTYPE_INT64, nullptr, 2, &raw)));
}

TEST(Value, sequences_and_optionals_nest_only_so_deep) {
  Handle<pfrt_value> value = value_of(floats({1}, {1}));
  int levels = 0;
  for (pfrt_status* status = nullptr; status == nullptr && levels < 100; ++levels) {
    pfrt_value *raw = nullptr, *inner = value.get();
    status = levels % 2 == 0 ? api().value->create_optional(inner, &raw)
                             : api().value->create_sequence(PFRT_DTYPE_UNSET, &inner, 1, &raw);
    if (status != nullptr)
      EXPECT_TRUE(fails(status, PFRT_CODE_INVALID_ARGUMENT, {"64 levels"}));
    else
      value = Handle<pfrt_value>(raw);
    if (status != nullptr) break;
  }
  EXPECT_EQ(levels, 65);
  const pfrt_value* described = value.get();
  size_t count = 0;
  ASSERT_TRUE(ok(api().value->parts(&described, 1, nullptr, 0, &count)));
  EXPECT_EQ(count, 66u);
  // Each level has the one below twice.
  value = value_of(floats({1}, {1}));
  for (int i = 0; i < 40; ++i) {
    pfrt_value *raw = nullptr, *twice[] = {value.get(), value.get()};
    ASSERT_TRUE(ok(api().value->create_sequence(PFRT_DTYPE_UNSET, twice, 2, &raw)));
    value = Handle<pfrt_value>(raw);
  }
  described = value.get();
  EXPECT_TRUE(fails(api().value->parts(&described, 1, nullptr, 0, &count),
                    PFRT_CODE_INVALID_ARGUMENT, {"more than 16777216"}));
}

TEST(Value, optional_holds_one_or_none) {
  pfrt_value* raw = nullptr;
  ASSERT_TRUE(ok(api().value->create_optional(nullptr, &raw)));
  size_t count = 9;
  ASSERT_TRUE(ok(api().value->count(raw, &count)));
  EXPECT_EQ(count, 0u);
  EXPECT_EQ(api().value->kind(raw), uint32_t{PFRT_VALUE_OPTIONAL});
  api().value->release(raw);
  const auto inner = value_of(int64s({1}, {5}));
  ASSERT_TRUE(ok(api().value->create_optional(inner.get(), &raw)));
  EXPECT_EQ(api().value->dtype(raw), uint32_t{PFRT_DTYPE_INT64});
  pfrt_value* element = nullptr;
  ASSERT_TRUE(ok(api().value->element(raw, 0, &element)));
  EXPECT_EQ(array_of(element).as<int64_t>(), std::vector<int64_t>{5});
  api().value->release(raw);
}

TEST(Value, map_has_keys_and_as_many_rows) {
  const auto keys = value_of(int64s({2}, {1, 2}));
  const auto values = value_of(floats({2}, {0.5f, 1.5f}));
  pfrt_value* raw = nullptr;
  ASSERT_TRUE(ok(api().value->create_map(keys.get(), values.get(), &raw)));
  const Handle<pfrt_value> map(raw);
  EXPECT_EQ(api().value->dtype(raw), uint32_t{PFRT_DTYPE_FLOAT32});
  size_t count = 0;
  ASSERT_TRUE(ok(api().value->count(raw, &count)));
  EXPECT_EQ(count, 2u);
  pfrt_value *k = nullptr, *v = nullptr;
  ASSERT_TRUE(ok(api().value->map_parts(raw, &k, &v)));
  EXPECT_EQ(array_of(k).as<int64_t>(), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(array_of(v).as<float>(), (std::vector<float>{0.5f, 1.5f}));

  const auto three = value_of(floats({3}, {1, 2, 3}));
  pfrt_value* none = nullptr;
  EXPECT_TRUE(fails(api().value->create_map(keys.get(), three.get(), &none),
                    PFRT_CODE_INVALID_ARGUMENT, {}));
  EXPECT_TRUE(fails(api().value->create_map(values.get(), values.get(), &none),
                    PFRT_CODE_INVALID_ARGUMENT, {}))
      << "keys are strings or integers";
  EXPECT_EQ(none, nullptr);
}

TEST(Value, sparse_tensor_has_values_and_indices) {
  const auto values = value_of(floats({2}, {5, 6}));
  const auto indices = value_of(int64s({2, 2}, {0, 1, 2, 0}));
  const int64_t dims[] = {3, 4};
  pfrt_value* raw = nullptr;
  ASSERT_TRUE(ok(api().value->create_sparse(values.get(), indices.get(), dims, 2, &raw)));
  const Handle<pfrt_value> sparse(raw);
  EXPECT_EQ(api().value->kind(raw), uint32_t{PFRT_VALUE_SPARSE});
  pfrt_value *v = nullptr, *i = nullptr;
  const int64_t* d = nullptr;
  size_t rank = 0;
  ASSERT_TRUE(ok(api().value->sparse_parts(raw, &v, &i, &d, &rank)));
  EXPECT_EQ(array_of(v).as<float>(), (std::vector<float>{5, 6}));
  EXPECT_EQ(array_of(i).as<int64_t>(), (std::vector<int64_t>{0, 1, 2, 0}));
  ASSERT_EQ(rank, 2u);
  EXPECT_EQ(d[1], 4);

  pfrt_value* none = nullptr;
  EXPECT_TRUE(fails(api().value->create_sparse(values.get(), indices.get(), dims, 1, &none),
                    PFRT_CODE_INVALID_ARGUMENT, {}));
  EXPECT_TRUE(fails(api().value->create_sparse(indices.get(), values.get(), dims, 2, &none),
                    PFRT_CODE_INVALID_ARGUMENT, {}));
  EXPECT_EQ(none, nullptr);
  EXPECT_TRUE(fails(api().value->sparse_parts(values.get(), &v, &i, &d, &rank),
                    PFRT_CODE_INVALID_ARGUMENT, {}));
}

}  // namespace
}  // namespace pfrt_test
