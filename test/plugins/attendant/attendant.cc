// SPDX-License-Identifier: Apache-2.0
//
// A service that the verb of a question, and its options, tell what to do: to start in many steps,
// to wait until it is stopped, to answer badly.
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

#include "pyflame_rt/plugin.h"

namespace {

std::string_view view(pfrt_string s) {
  return s.data ? std::string_view(s.data, s.size) : std::string_view();
}
pfrt_string text(std::string_view s) { return {s.data(), s.size()}; }

struct Instance {
  const pfrt_sink* sink;  // of start
  std::atomic<int> waiting = 0;
};

size_t option_count() { return 2; }
pfrt_code option_at(size_t index, pfrt_option_info* out) {
  if (index > 1) return PFRT_CODE_INVALID_ARGUMENT;
  out->type = index ? PFRT_OPTION_STRING : PFRT_OPTION_INT;
  out->key = text(index ? "fault" : "steps");
  out->default_value = text(index ? "none" : "0");
  if (index) out->choices = text("none throw nothing");
  out->doc = text(index ? "What start does badly" : "Steps of starting");
  return PFRT_CODE_OK;
}

std::string_view option(const pfrt_service_request& request, std::string_view key) {
  for (size_t i = 0; i < request.option_count; ++i)
    if (view(request.options[i].key) == key) return view(request.options[i].value);
  return {};
}

pfrt_code check(const pfrt_service_request* request, const pfrt_sink*) {
  if (request->events) return PFRT_CODE_INTERNAL;
  if (option(*request, "fault") == "throw") throw std::runtime_error("thrown");
  return PFRT_CODE_OK;
}

pfrt_code start(const pfrt_service_request* request, const pfrt_sink* sink,
                pfrt_service_instance** out) {
  *out = nullptr;
  const std::string_view fault = option(*request, "fault");
  if (fault == "throw") throw 1;
  if (fault == "nothing") return PFRT_CODE_OK;
  const std::string steps(option(*request, "steps"));
  const long count = steps.empty() ? 0 : std::stol(steps);
  for (long i = 0; i < count; ++i) {
    sink->progress(sink, static_cast<double>(i) / static_cast<double>(count));
    if (const pfrt_code code = sink->stop(sink)) return code;
    if (count > 100) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    // So that the first step of many counts for something.
    if (count > 100) sink->progress(sink, 0.5);
  }
  *out = reinterpret_cast<pfrt_service_instance*>(new Instance{sink});
  return PFRT_CODE_OK;
}

void stop(pfrt_service_instance* service) { delete reinterpret_cast<Instance*>(service); }

pfrt_tensor tensor_of(const float* data, const int64_t* dims, uint64_t bytes) {
  pfrt_tensor t{};
  t.struct_size = sizeof t;
  t.dtype = PFRT_DTYPE_FLOAT32;
  t.rank = 1;
  t.dims = dims;
  t.data = const_cast<float*>(data);
  t.bytes = bytes;
  return t;
}

pfrt_code ask(pfrt_service_instance* service, const pfrt_question* question,
              const pfrt_answer* answer, const pfrt_sink* sink) {
  auto& self = *reinterpret_cast<Instance*>(service);
  const std::string_view verb = view(question->verb);
  static const float kData[] = {1, 2};
  static const int64_t kDims[] = {2};
  const pfrt_tensor good = tensor_of(kData, kDims, sizeof kData);
  if (verb == "stop?") {
    const std::string code = std::to_string(self.sink->stop(self.sink));
    self.sink->progress(self.sink, 0.5);  // tells nobody any more
    answer->text(answer, text(code));
  } else if (verb == "wait") {
    ++self.waiting;
    pfrt_code code = PFRT_CODE_OK;
    while (!(code = sink->stop(sink))) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    --self.waiting;
    return code;
  } else if (verb == "waiting") {
    answer->text(answer, text(std::to_string(self.waiting)));
  } else if (verb == "half") {
    sink->progress(sink, 0.5);
  } else if (verb == "nameless") {
    answer->tensor(answer, text(""), &good);
  } else if (verb == "twice") {
    answer->tensor(answer, text("a"), &good);
    answer->tensor(answer, text("a"), &good);
  } else if (verb == "short") {
    const pfrt_tensor bad = tensor_of(kData, kDims, 4);
    answer->tensor(answer, text("a"), &bad);
  } else if (verb == "throw") {
    throw std::runtime_error("thrown");
  } else if (verb == "echo") {
    for (size_t i = 0; i < question->tensor_count; ++i)
      answer->tensor(
          answer, text("t" + std::to_string(i)),
          static_cast<const pfrt_tensor*>(pfrt_at(question->tensors, question->tensor_size, i)));
  } else {
    return sink->fail(sink, PFRT_CODE_UNSUPPORTED, PFRT_NO_INDEX, text("it knows other verbs"));
  }
  return PFRT_CODE_OK;
}

}  // namespace

extern "C" PFRT_EXPORT pfrt_code pfrt_plugin_query(const pfrt_host_info* host,
                                                   pfrt_plugin_desc* out) {
  static const pfrt_service_table table = [] {
    pfrt_service_table t{};
    t.struct_size = sizeof t;
    t.abi = PFRT_ABI_VERSION;
    t.start = start;
    t.stop = stop;
    t.option_count = option_count;
    t.option_at = option_at;
    t.check = check;
    t.ask = ask;
    return t;
  }();
  out->abi = PFRT_ABI_VERSION;
  out->abi_major = PFRT_ABI_MAJOR;
  out->max_minor = PFRT_ABI_MINOR;
  out->kind = PFRT_PLUGIN_SERVICE;
#if defined(PFRT_SANITIZE_ADDRESS)
  out->sanitizer = PFRT_SANITIZER_ADDRESS;
#elif defined(PFRT_SANITIZE_THREAD)
  out->sanitizer = PFRT_SANITIZER_THREAD;
#endif
  out->features = PFRT_SERVICE_OPTIONS | PFRT_SERVICE_CHECK | PFRT_SERVICE_ASK;
  out->name = text("Attendant");
  out->version = text("1");
  out->table = &table;
  return host->abi_major == PFRT_ABI_MAJOR ? PFRT_CODE_OK : PFRT_CODE_PLUGIN;
}
