// SPDX-License-Identifier: Apache-2.0
//
// Who needs a device with memory of its own gets the handle that is open: listings, questions,
// optimizers and sessions.
#include "pyflame_rt/custom.h"
#include "test/capi/client.h"

namespace pfrt_test {
namespace {

struct Counts {
  int opens = 0, closes = 0;
};

// A client's device that runs nothing.
const pfrt_provider_table kTable = [] {
  pfrt_provider_table t{};
  t.struct_size = sizeof t;
  t.abi = PFRT_ABI_VERSION;
  t.devices = str("shelf");
  t.close = [](pfrt_provider* p) { ++reinterpret_cast<Counts*>(p)->closes; };
  t.claim = [](pfrt_provider*, const pfrt_snapshot*, const pfrt_claims*,
               const pfrt_sink*) -> pfrt_code { return PFRT_CODE_OK; };
  t.compile = [](pfrt_provider*, const pfrt_region*, size_t, size_t, const pfrt_sink*,
                 pfrt_executable**, size_t*) -> pfrt_code { return PFRT_CODE_UNSUPPORTED; };
  t.release_executable = [](pfrt_executable*) {};
  t.specialise = [](pfrt_executable*, const pfrt_shapes*, const pfrt_sink*,
                    pfrt_program*) -> pfrt_code { return PFRT_CODE_UNSUPPORTED; };
  t.release_program = [](pfrt_executable*, pfrt_program*) {};
  t.kernel_count = [](pfrt_provider*) -> size_t { return 0; };
  t.kernel_at = [](pfrt_provider*, size_t, pfrt_kernel_info*) -> pfrt_code {
    return PFRT_CODE_INVALID_ARGUMENT;
  };
  t.allocate = [](pfrt_provider*, uint64_t, uint64_t, uint32_t, const pfrt_sink*,
                  void**) -> pfrt_code { return PFRT_CODE_OUT_OF_MEMORY; };
  t.release_memory = [](pfrt_provider*, void*) {};
  t.copy = [](pfrt_provider*, uint64_t, const pfrt_device_copy*, size_t, size_t,
              const pfrt_sink*) -> pfrt_code { return PFRT_CODE_UNSUPPORTED; };
  t.ask = [](pfrt_provider*, const pfrt_question*, const pfrt_answer*,
             const pfrt_sink*) -> pfrt_code { return PFRT_CODE_OK; };
  return t;
}();

class OpenDevice : public testing::Test {
 protected:
  void SetUp() override {
    pfrt_client_provider c{};
    c.struct_size = sizeof c;
    c.abi = PFRT_ABI_VERSION;
    c.name = str("ShelfExecutionProvider");
    c.features = PFRT_PROVIDER_KERNELS | PFRT_PROVIDER_MEMORY | PFRT_PROVIDER_ASK;
    c.table = &kTable;
    c.open = [](void* user, pfrt_string, const pfrt_key_value*, size_t, const pfrt_sink*,
                pfrt_provider** out) -> pfrt_code {
      ++static_cast<Counts*>(user)->opens;
      *out = static_cast<pfrt_provider*>(user);
      return PFRT_CODE_OK;
    };
    c.user = &counts_;
    ASSERT_TRUE(ok(api().env->register_provider(env_.get(), &c)));
  }
  void ask() {
    pfrt_ask_desc desc{};
    desc.struct_size = sizeof desc;
    desc.provider = str("shelf");
    desc.verb = str("anything");
    pfrt_reply* reply = nullptr;
    ASSERT_TRUE(ok(api().env->ask(env_.get(), &desc, &reply)));
    api().env->reply_release(reply);
  }
  void optimise() {
    const auto options = make_options(PFRT_OPTIONS_OPTIMIZER, {{"providers", "shelf,cpu"}});
    pfrt_optimizer* optimizer = nullptr;
    ASSERT_TRUE(ok(api().optimizer->create(env_.get(), options.get(), &optimizer)));
    GraphBuilder graph = add_graph();
    pfrt_optimization* result = nullptr;
    EXPECT_TRUE(ok(api().optimizer->add_default_passes(optimizer)));
    EXPECT_TRUE(ok(api().optimizer->run(optimizer, graph.get(), str(""), 0, &result)));
    api().optimizer->release_result(result);
    api().optimizer->release(optimizer);
  }

  Counts counts_;
  Handle<pfrt_env> env_ = make_env();
};

TEST_F(OpenDevice, is_shared_by_all_who_need_it) {
  const auto options = make_options(PFRT_OPTIONS_SESSION, {{"providers", "shelf,cpu"}});
  auto session = make_session(env_.get(), add_graph(), options.get());
  ASSERT_TRUE(session);
  ask();
  optimise();
  size_t count = 1;
  ASSERT_TRUE(ok(api().env->kernel_count(env_.get(), str("shelf"), &count)));
  EXPECT_EQ(count, 0u);
  EXPECT_EQ(counts_.opens, 1);
  session.reset();
  EXPECT_EQ(counts_.closes, 0) << "the listing has it";
  ask();
  EXPECT_EQ(counts_.opens, 1);
  env_.reset();
  EXPECT_EQ(counts_.closes, 1);
}

TEST_F(OpenDevice, is_closed_by_the_last_who_needs_it) {
  optimise();
  EXPECT_EQ(counts_.opens, 1);
  EXPECT_EQ(counts_.closes, 1);
  ask();
  EXPECT_EQ(counts_.opens, 2);
  EXPECT_EQ(counts_.closes, 2);
}

}  // namespace
}  // namespace pfrt_test
