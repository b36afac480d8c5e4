// SPDX-License-Identifier: Apache-2.0
//
// Runs as those above core/session see them: a batcher that knows core/session/run.h alone.
#include "core/session/run.h"

#include <gtest/gtest.h>

#include <future>
#include <mutex>

#include "core/environment/environment.h"
#include "core/environment/import.h"

extern "C" pfrt_code pfrt_plugin_query(const pfrt_host_info* host, pfrt_plugin_desc* out);

namespace pfrt {
namespace {

using Floats = std::vector<float>;

ValuePtr value_of(const Floats& rows) {
  auto tensor =
      Tensor::copy_of(PFRT_DTYPE_FLOAT32, {static_cast<int64_t>(rows.size())}, rows.data());
  return Value::of(tensor.take());
}

Floats floats_of(const ValuePtr& value) {
  const float* const data = value->tensor.as<const float>();
  return {data, data + value->tensor.count()};
}

// Joins requests of one row until a batch is full, runs it once, and gives everyone their rows.
class Batcher {
 public:
  using Answer = std::function<void(const Status&, const ValuePtr& row)>;
  Batcher(std::shared_ptr<Session> session, size_t size)
      : session_(std::move(session)), size_(size) {}

  Status add(float row, Answer answer) {
    const std::lock_guard lock(mutex_);
    rows_.push_back(row);
    answers_.push_back(std::move(answer));
    if (rows_.size() < size_) return {};
    auto run = std::make_unique<pfrt::Run>(*session_, RunSettings());
    std::vector<ValuePtr> inputs;
    {
      const MemoryScope scope(&run->memory());
      inputs.push_back(value_of(std::exchange(rows_, {})));
    }
    PFRT_TRY(run->take(std::move(inputs), std::vector<OutputRequest>(1)));
    return start(std::move(run), [answers = std::exchange(answers_, {})](
                                     Status status, std::vector<ValuePtr> results) {
      for (size_t i = 0; i < answers.size(); ++i)
        answers[i](status, status.ok() ? row_of(results[0], i) : ValuePtr());
    });
  }

 private:
  static ValuePtr row_of(const ValuePtr& batch, size_t index) {
    Tensor row = batch->tensor;
    row.dims[0] = 1;
    row.offset += index * sizeof(float);
    return Value::of(std::move(row));
  }
  const std::shared_ptr<Session> session_;
  const size_t size_;
  std::mutex mutex_;
  Floats rows_;
  std::vector<Answer> answers_;
};

// The provider of test/plugins/verbs, which runs Neg and Abs.
class Plugins final : public PluginSource {
 public:
  Result<ProviderSource> provider(std::string_view) override {
    pfrt_host_info host{};
    host.abi_major = PFRT_ABI_MAJOR;
    pfrt_plugin_desc desc{};
    EXPECT_EQ(pfrt_plugin_query(&host, &desc), PFRT_CODE_OK);
    ProviderSource source;
    source.name = "VerbsExecutionProvider";
    source.device = "verbs";
    source.table = static_cast<const pfrt_provider_table*>(desc.table);
    source.features = desc.features;
    return source;
  }
  std::vector<ProviderSource> providers() override { return {provider("").take()}; }
  std::vector<std::string> provider_names() override { return {"VerbsExecutionProvider"}; }
  Result<std::shared_ptr<const Importer>> importer_named(std::string_view, std::string*) override {
    return std::shared_ptr<const Importer>();
  }
  std::vector<std::shared_ptr<const Importer>> importers() override { return {}; }
  std::vector<OperatorTable> operators() override { return {}; }
  Result<std::vector<PassTable>> passes(const std::set<std::string>&) override {
    return std::vector<PassTable>();
  }
  std::string searched() const override { return "nowhere"; }
};

// A session of y = |-x|, for |rows| rows.
std::shared_ptr<Session> session_for(int64_t rows) {
  Graph graph("rows");
  graph.opsets[""] = 21;
  const ValueId x = graph.value("x"), n = graph.value("n"), y = graph.value("y");
  Type type;
  type.kind = PFRT_VALUE_TENSOR;
  type.dtype = PFRT_DTYPE_FLOAT32;
  type.has_shape = true;
  type.shape.emplace_back(rows);
  graph.at(x).type = graph.at(y).type = type;
  graph.inputs = {x};
  graph.outputs = {y};
  Node neg, abs;
  neg.op = "Neg";
  neg.inputs = {x};
  neg.outputs = {n};
  abs.op = "Abs";
  abs.inputs = {n};
  abs.outputs = {y};
  EXPECT_TRUE(graph.add_node(std::move(neg)).ok());
  EXPECT_TRUE(graph.add_node(std::move(abs)).ok());
  const Options of_env(PFRT_OPTIONS_ENV), of_load(PFRT_OPTIONS_LOAD);
  const auto env = Environment::create(of_env, [](Logger&) { return std::make_unique<Plugins>(); });
  auto model = model_of_graph(*env, graph, of_load);
  EXPECT_TRUE(model.ok()) << model.status().message();
  Options options(PFRT_OPTIONS_SESSION);
  EXPECT_TRUE(options.set_text("providers", "VerbsExecutionProvider").ok());
  auto session = env->create_session(model.take(), options, {});
  EXPECT_TRUE(session.ok()) << session.status().message();
  return session.take();
}

TEST(RunRequests, are_run_at_once) {
  const auto session = session_for(2);
  RunRequest request;
  request.inputs = {value_of({-1, 2})};
  request.outputs.resize(1);
  auto results = session->run(std::move(request));
  ASSERT_TRUE(results.ok()) << results.status().message();
  EXPECT_EQ(floats_of(results->at(0)), (Floats{1, 2}));

  const auto none = session->run({});
  EXPECT_EQ(none.status().code(), Code::kINPUT);
  const uint32_t cancelled = 1;
  RunRequest stopped;
  stopped.inputs = {value_of({-1, 2})};
  stopped.outputs.resize(1);
  stopped.settings.cancel = &cancelled;
  EXPECT_EQ(session->run(std::move(stopped)).status().code(), Code::kCANCELLED);
}

TEST(RunRequests, of_two_clients_are_run_as_one_batch) {
  Batcher batcher(session_for(2), 2);
  std::promise<Floats> answers[2];
  for (size_t i = 0; i < 2; ++i)
    ASSERT_TRUE(batcher
                    .add(i == 0 ? -3.0f : -4.0f,
                         [&answers, i](const Status& status, const ValuePtr& row) {
                           EXPECT_TRUE(status.ok()) << status.message();
                           answers[i].set_value(row ? floats_of(row) : Floats());
                         })
                    .ok());
  EXPECT_EQ(answers[0].get_future().get(), (Floats{3}));
  EXPECT_EQ(answers[1].get_future().get(), (Floats{4}));
}

TEST(RunRequests, keep_the_session_until_they_are_answered) {
  auto session = session_for(2);
  auto run = std::make_unique<pfrt::Run>(*session, RunSettings());
  ASSERT_TRUE(run->take({value_of({-5, 6})}, std::vector<OutputRequest>(1)).ok());
  std::promise<Floats> answer;
  ASSERT_TRUE(start(std::move(run), [&](const Status& status, std::vector<ValuePtr> results) {
                EXPECT_TRUE(status.ok()) << status.message();
                answer.set_value(status.ok() ? floats_of(results[0]) : Floats());
              }).ok());
  session = nullptr;
  EXPECT_EQ(answer.get_future().get(), (Floats{5, 6}));
}

}  // namespace
}  // namespace pfrt
