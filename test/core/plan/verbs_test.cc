// SPDX-License-Identifier: Apache-2.0
//
// Answers of providers about themselves, and how the host takes them, with the provider of
// test/plugins/verbs.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "core/provider/provider.h"

extern "C" pfrt_code pfrt_plugin_query(const pfrt_host_info* host, pfrt_plugin_desc* out);

namespace pfrt {
namespace {

using Executables = std::vector<std::shared_ptr<Executable>>;
using Options = std::vector<std::pair<std::string, std::string>>;

Result<std::shared_ptr<Provider>> try_open(const Options& options = {}) {
  pfrt_host_info host{};
  host.abi_major = PFRT_ABI_MAJOR;
  pfrt_plugin_desc desc{};
  EXPECT_EQ(pfrt_plugin_query(&host, &desc), PFRT_CODE_OK);
  ProviderSource source;
  source.name = "Verbs";
  source.device = "verbs";
  source.options = options;
  source.table = static_cast<const pfrt_provider_table*>(desc.table);
  source.features = desc.features;
  return Provider::open(source, nullptr);
}
std::shared_ptr<Provider> opened(const Options& options = {}) {
  auto provider = try_open(options);
  EXPECT_TRUE(provider.ok()) << provider.status().message();
  return provider.take();
}

// Regions of y = |-x|, one for each node.
struct Regions {
  Regions() {
    const char* const ops[] = {"Neg", "Abs"};
    for (uint32_t i = 0; i < 3; ++i) {
      values[i].dtype = PFRT_DTYPE_FLOAT32;
      values[i].rank = 1;
      values[i].dims = &kDim;
      index[i] = i;
    }
    snapshot.values = values;
    snapshot.nodes = nodes;
    snapshot.node_count = 2;
    snapshot.value_count = 3;
    for (uint32_t i = 0; i < 2; ++i) {
      nodes[i].op = to_c(ops[i]);
      nodes[i].inputs = &index[i];
      nodes[i].outputs = &index[i + 1];
      nodes[i].input_count = nodes[i].output_count = 1;
      pfrt_region region{};
      region.snapshot = &snapshot;
      region.nodes = region.inputs = &index[i];
      region.outputs = &index[i + 1];
      region.node_count = region.input_count = region.output_count = 1;
      list.push_back(region);
    }
  }
  static constexpr int64_t kDim = 2;
  uint32_t index[3] = {};
  pfrt_snapshot_value values[3] = {};
  pfrt_snapshot_node nodes[2] = {};
  pfrt_snapshot snapshot{};
  std::vector<pfrt_region> list;
};

Executables compiled(Provider& provider, const Regions& regions) {
  CompileFault fault;
  auto made = provider.compile(regions.list, {}, &fault);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return made.take();
}

// A program of |executable| for two elements; run() computes {1, -2}.
struct Prepared {
  explicit Prepared(Executable& e) : executable(e) {
    const int32_t ranks[] = {1, 1, 1};
    const int64_t* const dims[] = {&Regions::kDim, &Regions::kDim, &Regions::kDim};
    pfrt_shapes shapes{};
    shapes.ranks = ranks;
    shapes.dims = dims;
    shapes.value_count = 3;
    uint32_t node = 0;
    auto made = executable.specialise(shapes, {}, &node);
    EXPECT_TRUE(made.ok()) << made.status().message();
    program = made.take();
  }
  ~Prepared() { executable.release_program(program); }
  std::vector<float> run() {
    std::vector<float> in = {1, -2}, out = {0, 0};
    void* buffers[] = {in.data(), out.data()};
    pfrt_step_context context{};
    context.buffers = buffers;
    EXPECT_EQ(program.steps[0].run(program.steps[0].state, &context), PFRT_CODE_OK);
    return out;
  }
  Executable& executable;
  ProgramTable program;
};

testing::AssertionResult refused(const Status& status, Code code, std::string_view part) {
  if (status.code() == code && status.message().find(part) != std::string::npos)
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << code_text(status.code()) << ": " << status.message();
}

// ---- fingerprints ----

TEST(Fingerprint, is_the_identity) {
  const auto plain = opened(), built = opened({{"build", "7"}});
  EXPECT_EQ(plain->identity(), "Verbs/verbs of verbs, build ");
  EXPECT_EQ(built->identity(), "Verbs/verbs of verbs, build 7");
  EXPECT_EQ(opened({{"report", "odd"}})->identity(), plain->identity())
      << "what answers do not depend on";
}

TEST(Fingerprint, a_bad_one_fails_open) {
  EXPECT_TRUE(
      refused(try_open({{"fingerprint", "throws"}}).status(), Code::kPROVIDER, "threw this"));
  EXPECT_TRUE(refused(try_open({{"fingerprint", "fails"}}).status(), Code::kPROVIDER,
                      "Verbs giving its fingerprint: nobody knows it"));
  for (const char* how : {"empty", "null", "long"})
    EXPECT_TRUE(refused(try_open({{"fingerprint", how}}).status(), Code::kPROVIDER,
                        "1 to 65536 are needed"))
        << how;
}

// ---- questions ----

Result<Answer> asked(std::string_view verb, std::string_view request = {},
                     std::vector<Tensor> tensors = {}) {
  return opened()->ask({"Verbs", verb, request, std::move(tensors)}, {}, {});
}

TEST(Ask, gives_text_and_tensors) {
  Tensor tensor = Tensor::of_float({3, 4, 5}).take(), words;
  words = Tensor::allocate(PFRT_DTYPE_STRING, {2}).take();
  ASSERT_TRUE(words.buffer->set_string(1, "word").ok());
  auto answer = asked("echo", "hello", {tensor, words, Tensor::allocate(1, {0, 4}).take()});
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  EXPECT_EQ(answer->text, "hello.");
  ASSERT_EQ(answer->tensors.size(), 3u);
  EXPECT_EQ(answer->tensors[0].first, "t0");
  EXPECT_EQ(answer->tensors[0].second.dims, Dims{3});
  EXPECT_EQ(answer->tensors[0].second.as<float>()[2], 5);
  EXPECT_NE(answer->tensors[0].second.data(), tensor.data()) << "a copy";
  EXPECT_EQ(view(answer->tensors[1].second.strings()[1]), "word");
  EXPECT_EQ(answer->tensors[2].second.dims, (Dims{0, 4}));
}

TEST(Ask, what_it_throws_and_refuses_is_an_error) {
  EXPECT_TRUE(refused(asked("dance").status(), Code::kUNSUPPORTED,
                      "asking Verbs to 'dance': it knows echo, who"));
  EXPECT_TRUE(refused(asked("refuse").status(), Code::kINVALID_ARGUMENT, "not like this"));
  EXPECT_TRUE(refused(asked("silent").status(), Code::kPROVIDER, "asking Verbs to 'silent'"));
  EXPECT_TRUE(refused(asked("throw").status(), Code::kPROVIDER, "ask threw this"));
  EXPECT_TRUE(refused(asked("throw a number").status(), Code::kPROVIDER, "an exception escaped"));
  EXPECT_EQ(static_cast<int>(asked("new code").status().code()), 4711);
}

TEST(Ask, takes_no_tensor_that_it_cannot_read) {
  const std::pair<const char*, const char*> bad[] = {{"null", "is NULL"},
                                                     {"nameless", "has no name"},
                                                     {"size", "its struct_size is 8, fewer"},
                                                     {"rank", "has rank 1000000"},
                                                     {"dims", "no dims"},
                                                     {"negative", "negative"},
                                                     {"huge", "overflowing"},
                                                     {"bytes", "has 4 bytes"},
                                                     {"data", "has no data"},
                                                     {"device", "host memory"},
                                                     {"strides", "row-major"},
                                                     {"quantized", "plain"},
                                                     {"twice", "was given before"}};
  for (const auto& [how, why] : bad)
    EXPECT_TRUE(refused(asked("answer", how).status(), Code::kPROVIDER, why)) << how;
  EXPECT_TRUE(refused(asked("answer", "dtype").status(), Code::kUNSUPPORTED, "dtype 250"));
  auto texts = asked("answer", "texts");
  ASSERT_TRUE(texts.ok()) << texts.status().message();
  EXPECT_EQ(view(texts->tensors[0].second.strings()[0]), "");
  EXPECT_EQ(view(texts->tensors[0].second.strings()[1]), "\xff");
  EXPECT_EQ(asked("bytes")->text, "\xff\xfe\x80");
}

TEST(Ask, tells_progress_and_stops) {
  int told = 0, asked_to_stop = 0;
  const Stop stop = [&] {
    return ++asked_to_stop < 5 ? Status() : error(Code::kDEADLINE, "the deadline has passed");
  };
  const auto answer = opened()->ask({"Verbs", "wait", {}, {}}, stop, [&](double) { ++told; });
  EXPECT_TRUE(refused(answer.status(), Code::kDEADLINE, "asking Verbs to 'wait'"));
  EXPECT_GE(told, 3);
}

// ---- counters ----

TEST(Report, has_counters_after_a_run) {
  const auto provider = opened();
  const Regions regions;
  const Executables all = compiled(*provider, regions);
  Prepared prepared(*all[0]);
  EXPECT_TRUE(all[0]->report(prepared.program)->empty());
  prepared.run();
  const auto counters = all[0]->report(prepared.program);
  ASSERT_TRUE(counters.ok()) << counters.status().message();
  ASSERT_EQ(counters.value().size(), 2u);
  const Counter &cycles = counters.value()[0], &steps = counters.value()[1];
  EXPECT_EQ(cycles.name, "cycles");
  EXPECT_EQ(cycles.unit, "cycles");
  EXPECT_EQ(cycles.value, 40);
  EXPECT_EQ(cycles.step, 0u);
  EXPECT_EQ(steps.name, "steps run");
  EXPECT_EQ(steps.unit, "");
  EXPECT_EQ(steps.step, PFRT_NO_INDEX);
}

TEST(Report, bad_counters_are_an_error_and_odd_ones_are_kept) {
  const Regions regions;
  const auto report = [&](const char* how) {
    const auto provider = opened({{"report", how}});
    const Executables all = compiled(*provider, regions);
    Prepared prepared(*all[0]);
    return all[0]->report(prepared.program);
  };
  EXPECT_TRUE(refused(report("throws").status(), Code::kPROVIDER, "report threw this"));
  EXPECT_TRUE(refused(report("fails").status(), Code::kDEVICE_LOST, "the counters are gone"));
  EXPECT_TRUE(refused(report("nameless").status(), Code::kPROVIDER, "has no name"));
  EXPECT_TRUE(refused(report("step").status(), Code::kPROVIDER, "is of step 1"));
  auto odd = report("odd");
  ASSERT_TRUE(odd.ok()) << odd.status().message();
  EXPECT_TRUE(std::isnan(odd.value()[0].value));
  EXPECT_EQ(odd.value()[0].name, "\xff\xfe odd");
  EXPECT_TRUE(std::isinf(odd.value()[1].value));
}

}  // namespace
}  // namespace pfrt
