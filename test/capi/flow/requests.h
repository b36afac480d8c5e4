// SPDX-License-Identifier: Apache-2.0
//
// Tools for tests of batchers and streams: requests that keep their inputs, and their answers.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "test/capi/client.h"

namespace pfrt_test {

struct FlowReleaser {
  void operator()(pfrt_batcher* p) const { api().batcher->release(p); }
  void operator()(pfrt_streams* p) const { api().streams->release(p); }
};
using BatcherHandle = std::unique_ptr<pfrt_batcher, FlowReleaser>;
using StreamsHandle = std::unique_ptr<pfrt_streams, FlowReleaser>;

inline BatcherHandle make_batcher(pfrt_session* session, const Settings& settings = {}) {
  const auto options = make_options(PFRT_OPTIONS_BATCHER, settings);
  pfrt_batcher* out = nullptr;
  EXPECT_TRUE(ok(api().batcher->create(session, options.get(), &out)));
  return BatcherHandle(out);
}
inline StreamsHandle make_streams(pfrt_session* session, const Settings& settings = {}) {
  const auto options = make_options(PFRT_OPTIONS_STREAMS, settings);
  pfrt_streams* out = nullptr;
  EXPECT_TRUE(ok(api().streams->create(session, options.get(), &out)));
  return StreamsHandle(out);
}

// A request with its inputs, and the answer to it.
struct Asked {
  explicit Asked(std::vector<Array> given) : inputs(std::move(given)) {}

  std::vector<Array> inputs;
  uint64_t id = 0;
  std::function<void()> inside;  // called by the callback
  std::mutex mutex;
  std::condition_variable came;
  int calls = 0;
  Failure failure;
  std::vector<Array> outputs;  // empty arrays where none is wanted
  pfrt_response facts{};
  std::thread::id thread;

  static void done(void* user, pfrt_response* response) {
    auto& self = *static_cast<Asked*>(user);
    Failure failure = take(response->status);
    std::vector<Array> arrays;
    for (size_t i = 0; i < response->output_count; ++i) {
      arrays.push_back(response->outputs[i] ? array_of(response->outputs[i]) : Array());
      api().value->release(response->outputs[i]);
    }
    if (self.inside) self.inside();
    const std::lock_guard<std::mutex> lock(self.mutex);
    ++self.calls;
    self.failure = std::move(failure);
    self.outputs = std::move(arrays);
    self.facts = *response;
    self.thread = std::this_thread::get_id();
    self.came.notify_all();
  }
  void wait() {
    std::unique_lock<std::mutex> lock(mutex);
    came.wait(lock, [&] { return calls > 0; });
  }
  bool answered() {
    const std::lock_guard<std::mutex> lock(mutex);
    return calls > 0;
  }
};

inline std::vector<pfrt_io> ios_of(const std::vector<Array>& inputs) {
  std::vector<pfrt_io> out;
  for (const Array& input : inputs) out.push_back(input.io());
  return out;
}

struct RequestDesc : pfrt_request_desc {
  RequestDesc() : pfrt_request_desc() { struct_size = sizeof(pfrt_request_desc); }
  RequestDesc& in_stream(uint32_t index) {
    stream = index + 1;
    return *this;
  }
  RequestDesc& within_ms(int64_t ms) {
    timeout_ms = ms;
    return *this;
  }
  RequestDesc& with_priority(int64_t number) {
    priority = number;
    return *this;
  }
  RequestDesc& cancelled_by(const uint32_t* flag) {
    cancel = flag;
    return *this;
  }
};

inline Failure submit(pfrt_batcher* batcher, Asked& asked,
                      const pfrt_request_desc* desc = nullptr) {
  const std::vector<pfrt_io> inputs = ios_of(asked.inputs);
  return take(api().batcher->submit(batcher, inputs.data(), inputs.size(), desc, &Asked::done,
                                    &asked, &asked.id));
}
inline Failure submit(pfrt_streams* streams, Asked& asked,
                      const pfrt_request_desc* desc = nullptr) {
  const std::vector<pfrt_io> inputs = ios_of(asked.inputs);
  return take(api().streams->submit(streams, inputs.data(), inputs.size(), desc, &Asked::done,
                                    &asked, &asked.id));
}

inline pfrt_batcher_statistics statistics_of(const pfrt_batcher* batcher) {
  pfrt_batcher_statistics out{};
  out.struct_size = sizeof out;
  EXPECT_TRUE(ok(api().batcher->statistics(batcher, &out)));
  return out;
}
inline pfrt_streams_statistics statistics_of(const pfrt_streams* streams) {
  pfrt_streams_statistics out{};
  out.struct_size = sizeof out;
  EXPECT_TRUE(ok(api().streams->statistics(streams, &out)));
  return out;
}

// Expects that the request got what the session gives for it alone.
inline void expect_own(pfrt_session* session, Asked& asked) {
  asked.wait();
  EXPECT_EQ(asked.calls, 1);
  ASSERT_TRUE(ok(asked.failure));
  const std::vector<Array> alone = run(session, asked.inputs);
  ASSERT_EQ(asked.outputs.size(), alone.size());
  for (size_t i = 0; i < alone.size(); ++i) {
    EXPECT_EQ(asked.outputs[i].dims, alone[i].dims);
    EXPECT_EQ(asked.outputs[i].bytes, alone[i].bytes);
  }
}

// y = relu(x W) with x float32[N,16] and W [16,8]: rows are computed by themselves.
inline GraphBuilder rows_graph() {
  GraphBuilder g;
  g.input("x", PFRT_DTYPE_FLOAT32, {"N", 16});
  g.constant("w", noise({16, 8}, 5));
  g.node("MatMul", {"x", "w"}, {"h"});
  g.node("Relu", {"h"}, {"y"});
  g.output("y");
  return g;
}

// A session whose rows have the same bits in every batch.
inline Handle<pfrt_session> rows_session(pfrt_env* env, const GraphBuilder& graph) {
  const auto options = make_options(PFRT_OPTIONS_SESSION, {{"deterministic", "batch"}});
  return make_session(env, graph, options.get());
}

}  // namespace pfrt_test
