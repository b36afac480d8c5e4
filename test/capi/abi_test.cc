// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <set>
#include <string>

#include "test/capi/client.h"

namespace pfrt_test {
namespace {

TEST(Abi, hands_out_a_table_of_its_own_version) {
  pfrt_abi_info info{};
  info.struct_size = sizeof info;
  const pfrt_api* table = pfrt_get_api(PFRT_ABI_VERSION, &info);
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(table, pfrt_get_api(PFRT_ABI_VERSION, nullptr));
  EXPECT_GE(table->struct_size, sizeof(pfrt_api));
  EXPECT_EQ(table->abi, PFRT_ABI_VERSION);
  EXPECT_EQ(info.abi, PFRT_ABI_VERSION);
  EXPECT_FALSE(text(info.version).empty());
  EXPECT_EQ(text(info.message), "");
}

TEST(Abi, refuses_another_major_and_a_newer_minor_with_a_reason) {
  for (const uint32_t version :
       {PFRT_MAKE_ABI(PFRT_ABI_MAJOR + 1, 0), PFRT_MAKE_ABI(PFRT_ABI_MAJOR - 1, 0),
        PFRT_MAKE_ABI(PFRT_ABI_MAJOR, PFRT_ABI_MINOR + 1), 0u, UINT32_MAX}) {
    pfrt_abi_info info{};
    info.struct_size = sizeof info;
    EXPECT_EQ(pfrt_get_api(version, &info), nullptr) << version;
    EXPECT_EQ(info.abi, PFRT_ABI_VERSION);
    EXPECT_FALSE(text(info.message).empty());
    EXPECT_EQ(pfrt_get_api(version, nullptr), nullptr);
  }
}

// Expects every slot of a table, read as an array of pointers, to be filled.
template <typename Table>
void expect_filled(const Table* table, const char* name) {
  ASSERT_NE(table, nullptr) << name;
  EXPECT_GE(table->struct_size, sizeof(Table)) << name;
  EXPECT_EQ(table->abi, PFRT_ABI_VERSION) << name;
  std::array<void*, (sizeof(Table) - 8) / sizeof(void*)> slots;
  std::memcpy(slots.data(), reinterpret_cast<const char*>(table) + 8, sizeof slots);
  for (size_t i = 0; i < slots.size(); ++i) EXPECT_NE(slots[i], nullptr) << name << " slot " << i;
}

TEST(Abi, has_every_slot_of_every_area) {
  expect_filled(&api(), "api");
  expect_filled(api().status, "status");
  expect_filled(api().options, "options");
  expect_filled(api().env, "env");
  expect_filled(api().value, "value");
  expect_filled(api().graph, "graph");
  expect_filled(api().model, "model");
  expect_filled(api().session, "session");
  expect_filled(api().report, "report");
}

TEST(Abi, answers_missing_handles_with_a_status) {
  const auto env = make_env();
  pfrt_session* session = nullptr;
  EXPECT_TRUE(fails(api().session->create(nullptr, nullptr, &session), PFRT_CODE_INVALID_ARGUMENT,
                    {"env"}));
  EXPECT_TRUE(fails(api().session->create(env.get(), nullptr, &session), PFRT_CODE_INVALID_ARGUMENT,
                    {"desc"}));
  EXPECT_TRUE(fails(api().session->run(nullptr, nullptr, 0, nullptr, 0, nullptr),
                    PFRT_CODE_INVALID_ARGUMENT, {"session"}));
  EXPECT_TRUE(fails(api().env->create(nullptr, nullptr), PFRT_CODE_INVALID_ARGUMENT, {"out_env"}));
  EXPECT_TRUE(fails(api().model->load_file(nullptr, str("m.onnx"), nullptr, nullptr),
                    PFRT_CODE_INVALID_ARGUMENT, {"env"}));
  EXPECT_TRUE(fails(api().graph->validate(nullptr), PFRT_CODE_INVALID_ARGUMENT, {"graph"}));
  EXPECT_TRUE(fails(api().graph->add_input(nullptr, nullptr), PFRT_CODE_INVALID_ARGUMENT, {}));
  EXPECT_TRUE(fails(api().value->create_tensor(PFRT_DTYPE_FLOAT32, nullptr, 0, nullptr),
                    PFRT_CODE_INVALID_ARGUMENT, {}));
  pfrt_options* none = nullptr;
  EXPECT_TRUE(
      fails(api().options->set_int(none, str("threads"), 1), PFRT_CODE_INVALID_ARGUMENT, {}));
  EXPECT_EQ(api().session->input_count(nullptr), 0u);
  EXPECT_EQ(api().session->model(nullptr), nullptr);
  EXPECT_EQ(api().value->kind(nullptr), uint32_t{PFRT_VALUE_UNSET});
  EXPECT_EQ(api().graph->node_count(nullptr), 0u);
  EXPECT_EQ(api().env->plugin_count(nullptr), 0u);
  api().options->cancel(nullptr);
}

TEST(Abi, releases_nothing_without_complaint) {
  api().status->release(nullptr);
  api().options->release(nullptr);
  api().env->release(nullptr);
  api().value->release(nullptr);
  api().graph->release(nullptr);
  api().model->release(nullptr);
  api().session->release(nullptr);
  api().report->release(nullptr);
  api().env->retain(nullptr);
}

TEST(Abi, lists_the_operators_it_knows) {
  const size_t count = api().env->operator_count();
  EXPECT_GT(count, 100u);
  bool conv = false;
  std::set<std::string> noted;
  for (size_t i = 0; i < count; ++i) {
    pfrt_operator_info info{};
    info.struct_size = sizeof info;
    ASSERT_TRUE(ok(api().env->operator_at(i, &info)));
    EXPECT_FALSE(text(info.op).empty());
    EXPECT_GE(info.since, 1u);
    conv |= text(info.op) == "Conv";
    if (!text(info.note).empty()) noted.insert(text(info.op));
  }
  EXPECT_TRUE(conv);
  for (const char* op : {"Cast", "Conv", "GridSample", "MaxPool", "Shrink", "ThresholdedRelu"})
    EXPECT_EQ(noted.count(op), 1u) << op;
  EXPECT_EQ(noted.count("Relu"), 0u);
  pfrt_operator_info info{};
  info.struct_size = sizeof info;
  EXPECT_TRUE(fails(api().env->operator_at(count, &info), PFRT_CODE_INVALID_ARGUMENT, {}));
}

TEST(Status, has_a_fixed_text_for_every_code) {
#define PFRT_X(name, number, phrase) \
  EXPECT_EQ(text(api().status->code_text(PFRT_CODE_##name)), phrase);
  PFRT_CODE_TABLE(PFRT_X)
#undef PFRT_X
  EXPECT_EQ(text(api().status->code_text(12345)), "unknown code");
}

TEST(Status, of_success_is_empty) {
  EXPECT_EQ(api().status->code(nullptr), uint32_t{PFRT_CODE_OK});
  EXPECT_EQ(text(api().status->message(nullptr)), "");
  EXPECT_EQ(api().status->child_count(nullptr), 0u);
  EXPECT_EQ(api().status->child(nullptr, 0), nullptr);
}

TEST(Status, has_one_child_a_fault) {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {2});
  g.node("Add", {"x", "missing1"}, {"y"}, {}, "first");
  g.node("Mul", {"y", "missing2"}, {"z"}, {}, "second");
  g.output("z");
  g.output("nobody");
  pfrt_status* status = api().graph->validate(g.get());
  ASSERT_NE(status, nullptr);
  EXPECT_EQ(api().status->code(status), uint32_t{PFRT_CODE_VALIDATION});
  ASSERT_EQ(api().status->child_count(status), 3u);
  EXPECT_EQ(api().status->child(status, 3), nullptr);
  EXPECT_EQ(api().status->child_count(api().status->child(status, 0)), 0u);
  api().status->release(status);
}

}  // namespace
}  // namespace pfrt_test
