// SPDX-License-Identifier: Apache-2.0
//
// The guide's C++ snippets on batches and asynchronous sessions, as it writes them.
#include <gtest/gtest.h>

#include <iostream>
#include <sstream>

#include "pyflame_rt/batching/dynamic_batcher.hpp"
#include "pyflame_rt/streaming/async_session.hpp"
#include "test/cxxapi/temporary_folder.h"

namespace pfrt_test {
namespace {

using namespace pyflame_rt;
using namespace pyflame_rt::batching;
using namespace pyflame_rt::streaming;

// "model.pfm" is y = relu(x), of rows of four.
class GuideRequests : public InTemporaryFolder {
 protected:
  GuideRequests() {
    Graph graph("g");
    graph.add_input({"input", {{-1, 4}}, DType::Float32});
    graph.add_output({"output", {{-1, 4}}, DType::Float32});
    graph.add_node(std::make_shared<Node>("n", "Relu", std::vector<std::string>{"input"},
                                          std::vector<std::string>{"output"}));
    save_model(graph, "model.pfm");
  }
  static Tensor row(float value) {
    Tensor out({1, 4}, DType::Float32);
    out.fill(value);
    return out;
  }
  static float first(const std::unordered_map<std::string, Tensor>& outputs) {
    return outputs.at("output").data_ptr<float>()[0];
  }
};

TEST_F(GuideRequests, using_the_batcher) {
  const Tensor tensor1 = row(1), tensor2 = row(2), tensor3 = row(3), tensor4 = row(-4);
  BatchConfig config;
  config.max_batch_size = 32;
  config.max_latency = std::chrono::microseconds(1000);  // 1ms
  config.min_batch_size = 1;
  config.preferred_sizes = {1, 2, 4, 8, 16, 32};
  config.enable_padding = true;
  config.num_workers = 4;
  config.queue_capacity = 1000;

  auto session = std::make_shared<InferenceSession>("model.pfm");
  DynamicBatcher batcher(session, config);

  // Start the batcher
  batcher.start();
  EXPECT_TRUE(batcher.is_running());

  // Submit requests asynchronously
  InferenceRequest req1;
  req1.inputs["input"] = tensor1;
  auto future1 = batcher.submit(std::move(req1));

  InferenceRequest req2;
  req2.inputs["input"] = tensor2;
  auto future2 = batcher.submit(std::move(req2));

  // Get results
  auto response1 = future1.get();
  auto response2 = future2.get();
  ASSERT_TRUE(response1.success && response2.success);
  EXPECT_EQ(first(response1.outputs), 1);
  EXPECT_EQ(first(response2.outputs), 2);
  EXPECT_NE(response1.request_id, response2.request_id);
  EXPECT_GE(response1.latency, response1.queue_time);
  EXPECT_GE(response1.batch_size, 1);

  // Or use callback
  InferenceRequest req;
  req.inputs["input"] = tensor3;
  std::atomic<int> right{0};
  batcher.submit(std::move(req), [&](InferenceResponse response) {
    if (response.success) {
      right += first(response.outputs) == 3;
    }
  });

  // Blocking inference
  InferenceRequest request;
  request.inputs["input"] = tensor4;
  auto response = batcher.infer(std::move(request));
  EXPECT_TRUE(response.success);
  EXPECT_EQ(first(response.outputs), 0);
  batcher.flush();
  EXPECT_EQ(right, 1);

  // Check statistics
  std::ostringstream out;
  auto stats = batcher.get_stats();
  out << "Avg batch size: " << stats.avg_batch_size << std::endl;
  out << "Throughput: " << stats.throughput_rps << " req/s" << std::endl;
  EXPECT_EQ(stats.completed_requests, 4u);
  EXPECT_GE(stats.avg_batch_size, 1);
  EXPECT_GT(stats.throughput_rps, 0);
  EXPECT_FALSE(batcher.batch_times().empty());

  // Stop batcher
  batcher.stop();
  EXPECT_FALSE(batcher.is_running());
  InferenceRequest refused;
  refused.inputs["input"] = tensor1;
  EXPECT_THROW(batcher.submit(refused), CancelledError);
  EXPECT_THROW(batcher.infer(refused), CancelledError);
}

TEST_F(GuideRequests, priority_batching) {
  const Tensor tensor = row(7);
  const BatchConfig config;
  auto session = std::make_shared<InferenceSession>("model.pfm");
  PriorityBatcher batcher(session, config);
  batcher.start();

  // Submit with priority (higher = sooner)
  InferenceRequest urgent;
  urgent.inputs["input"] = tensor;
  auto future = batcher.submit_priority(std::move(urgent), 10);

  InferenceRequest normal;
  normal.inputs["input"] = tensor;
  auto future2 = batcher.submit_priority(std::move(normal), 1);
  EXPECT_EQ(first(future.get().outputs), 7);
  EXPECT_EQ(first(future2.get().outputs), 7);
}

TEST_F(GuideRequests, using_async_session) {
  const Tensor tensor = row(5);
  streaming::AsyncOptions options;
  options.num_streams = 4;
  options.enable_pipelining = true;
  options.callback_threads = 2;
  options.max_pending = 100;
  options.enable_profiling = true;

  auto session = std::make_shared<InferenceSession>("model.pfm");
  AsyncSession async_session(session, options);

  // Start async processing
  async_session.start();

  // Submit async request
  std::unordered_map<std::string, Tensor> inputs;
  inputs["input"] = tensor;
  auto future = async_session.run_async({}, inputs);

  // Or with callback
  std::atomic<int64_t> latency{-1};
  async_session.run_async({}, inputs, [&](AsyncResult result) {
    if (result.success) {
      latency = result.latency.count();
    }
  });

  // Submit to specific stream
  auto future2 = async_session.run_on_stream(0, {}, inputs);

  // Get result
  auto result = future.get();
  ASSERT_TRUE(result.success);
  if (result.success) {
    auto& outputs = result.outputs;
    // Process outputs...
    EXPECT_EQ(first(outputs), 5);
  }
  EXPECT_EQ(future2.get().stream_id, 0u);

  // Stream management
  EXPECT_EQ(async_session.num_streams(), 4u);
  size_t best_stream = async_session.select_stream();
  EXPECT_LT(best_stream, 4u);

  // Synchronize
  async_session.synchronize(0);     // Specific stream
  async_session.synchronize_all();  // All streams
  EXPECT_GE(latency, 0);

  // Cancel requests
  const uint64_t request_id = result.request_id;
  EXPECT_THROW(async_session.cancel(request_id), NotFoundError);  // it is answered
  async_session.cancel_all();

  // Statistics
  auto stats = async_session.get_stats();
  EXPECT_EQ(stats.completed_requests, 3u);
  EXPECT_GE(stats.avg_latency_us, stats.avg_compute_time_us);
  EXPECT_GT(stats.avg_compute_time_us, 0);
  EXPECT_EQ(stats.stream_utilization.size(), 4u);

  // Stop
  async_session.stop();
  EXPECT_THROW(async_session.run_async({}, inputs), CancelledError);
}

TEST_F(GuideRequests, failures_are_in_the_response) {
  auto session = std::make_shared<InferenceSession>("model.pfm");
  auto batcher = create_batcher(session);
  AsyncSession async_session(session);
  async_session.start();
  Tensor wrong({1, 5}, DType::Float32);
  wrong.fill(0);
  InferenceRequest request;
  request.inputs["input"] = wrong;
  for (const InferenceResponse& response :
       {batcher->submit(request).get(), batcher->infer(request)}) {
    EXPECT_FALSE(response.success);
    EXPECT_EQ(response.code, PFRT_CODE_SHAPE_MISMATCH);
    EXPECT_NE(response.error_message.find("'input'"), std::string::npos);
    EXPECT_TRUE(response.outputs.empty());
  }
  const AsyncResult result = async_session.run_async({}, {{"input", wrong}}).get();
  EXPECT_FALSE(result.success);
  EXPECT_EQ(result.code, PFRT_CODE_SHAPE_MISMATCH);

  request.inputs.clear();
  request.inputs["inpt"] = wrong;
  EXPECT_THROW(batcher->submit(request), InputError);
  EXPECT_THROW(async_session.run_async({"outpt"}, {{"input", wrong}}), InputError);
  EXPECT_THROW(DynamicBatcher(nullptr), InvalidArgumentError);
  BatchConfig none;
  none.num_workers = -1;
  EXPECT_THROW(DynamicBatcher(session, none), InvalidArgumentError);
  EXPECT_THROW(async_session.synchronize(4), InvalidArgumentError);
}

}  // namespace
}  // namespace pfrt_test
