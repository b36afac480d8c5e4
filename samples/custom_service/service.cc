// SPDX-License-Identifier: Apache-2.0
//
// A service in one file: a heartbeat. Every interval it runs a model, when it was given one, and
// appends a line to a file, when it was given one: "beat 3 ok 0.412 ms". It sees plugin.h alone and
// links nothing of the runtime.
//
// Options: interval_ms (default 1000), model, file.
#include <pyflame_rt/plugin.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

std::string_view view(pfrt_string s) {
  return s.data ? std::string_view(s.data, s.size) : std::string_view();
}
pfrt_string text(std::string_view s) { return {s.data(), s.size()}; }

class Heartbeat {
 public:
  Heartbeat(const pfrt_service_request& request, const pfrt_sink* sink)
      : api_(*request.api), env_(request.env), sink_(sink) {}

  // Returns the code of what went wrong, which has been reported.
  pfrt_code start(const pfrt_service_request& request) {
    std::string model;
    for (size_t i = 0; i < request.option_count; ++i) {
      const std::string_view key = view(request.options[i].key);
      const std::string value(view(request.options[i].value));
      if (key == "interval_ms") {
        interval_ms_ = std::atol(value.c_str());
        if (interval_ms_ < 1)
          return fail(PFRT_CODE_INVALID_ARGUMENT,
                      "interval_ms is '" + value + "': give a number from 1");
      } else if (key == "model") {
        model = value;
      } else if (key == "file") {
        file_ = value;
      } else {
        return fail(PFRT_CODE_INVALID_ARGUMENT, "there is no option '" + std::string(key) +
                                                    "': give interval_ms, model or file");
      }
    }
    if (!model.empty()) {
      if (const pfrt_code code = open(model)) return code;
    }
    thread_ = std::thread([this] { beat(); });
    return PFRT_CODE_OK;
  }

  ~Heartbeat() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopped_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
    api_.session->release(session_);
    for (pfrt_value* value : inputs_) api_.value->release(value);
  }
  const std::string& file() const { return file_; }

 private:
  pfrt_code fail(pfrt_code code, const std::string& message) {
    return sink_->fail(sink_, code, PFRT_NO_INDEX, text(message));
  }

  // Releases |status| and returns its code; 0 when there is none.
  pfrt_code take(pfrt_status* status) {
    if (!status) return PFRT_CODE_OK;
    const pfrt_code code = api_.status->code(status);
    fail(code, std::string(view(api_.status->message(status))));
    api_.status->release(status);
    return code;
  }

  // Makes a session of the model, and zeros for its inputs; dynamic dimensions are 1.
  pfrt_code open(const std::string& path) {
    pfrt_model* model = nullptr;
    if (const pfrt_code code = take(api_.model->load_file(env_, text(path), nullptr, &model)))
      return code;
    pfrt_session_desc desc{};
    desc.struct_size = sizeof desc;
    desc.model = model;
    const pfrt_code code = take(api_.session->create(env_, &desc, &session_));
    api_.model->release(model);  // the session keeps it
    if (code) return code;
    for (size_t i = 0; i < api_.session->input_count(session_); ++i) {
      pfrt_value_info info{};
      info.struct_size = sizeof info;
      if (const pfrt_code fault = take(api_.session->input_at(session_, i, &info))) return fault;
      if (info.kind != PFRT_VALUE_TENSOR)
        return fail(PFRT_CODE_UNSUPPORTED, "only models of tensors can be run as a heartbeat");
      std::vector<int64_t> dims;
      for (int32_t d = 0; d < info.rank; ++d) dims.push_back(info.dims[d] < 0 ? 1 : info.dims[d]);
      pfrt_value* value = nullptr;
      if (const pfrt_code fault =
              take(api_.value->create_tensor(info.dtype, dims.data(), dims.size(), &value)))
        return fault;
      inputs_.push_back(value);
    }
    return PFRT_CODE_OK;
  }

  bool run_model() {
    std::vector<pfrt_io> in(inputs_.size()), out(api_.session->output_count(session_));
    for (size_t i = 0; i < in.size(); ++i) {
      in[i].struct_size = sizeof in[i];
      in[i].value = inputs_[i];
    }
    for (pfrt_io& io : out) io.struct_size = sizeof io;
    pfrt_status* status =
        api_.session->run(session_, in.data(), in.size(), out.data(), out.size(), nullptr);
    for (pfrt_io& io : out) api_.value->release(io.value);
    if (!status) return true;
    sink_->log(sink_, PFRT_LOG_WARNING, api_.status->message(status));
    api_.status->release(status);
    return false;
  }

  void beat() {
    using Clock = std::chrono::steady_clock;
    for (unsigned long count = 1;; ++count) {
      const Clock::time_point start = Clock::now();
      const bool good = session_ ? run_model() : true;
      const double ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
      char line[96];
      std::snprintf(line, sizeof line, "beat %lu %s %.3f ms", count, good ? "ok" : "failed", ms);
      sink_->log(sink_, PFRT_LOG_DEBUG, text(line));
      if (!file_.empty()) append(line);
      std::unique_lock<std::mutex> lock(mutex_);
      if (wake_.wait_for(lock, std::chrono::milliseconds(interval_ms_),
                         [this] { return stopped_; }))
        return;
    }
  }

  void append(const char* line) {
    std::FILE* file = std::fopen(file_.c_str(), "a");
    if (!file) return;
    std::fprintf(file, "%s\n", line);
    std::fclose(file);
  }

  const pfrt_api& api_;
  pfrt_env* env_;
  const pfrt_sink* sink_;
  std::string file_;
  long interval_ms_ = 1000;
  pfrt_session* session_ = nullptr;
  std::vector<pfrt_value*> inputs_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopped_ = false;
  std::thread thread_;
};

pfrt_code start(const pfrt_service_request* request, const pfrt_sink* sink,
                pfrt_service_instance** out) {
  *out = nullptr;
  try {
    auto service = std::make_unique<Heartbeat>(*request, sink);
    if (const pfrt_code code = service->start(*request)) return code;
    *out = reinterpret_cast<pfrt_service_instance*>(service.release());
    return PFRT_CODE_OK;
  } catch (...) {  // memory or a thread
    return sink->fail(sink, PFRT_CODE_OUT_OF_MEMORY, PFRT_NO_INDEX, text("no memory or thread"));
  }
}

void stop(pfrt_service_instance* service) { delete reinterpret_cast<Heartbeat*>(service); }

pfrt_string address(const pfrt_service_instance* service) {
  return text(reinterpret_cast<const Heartbeat*>(service)->file());
}

pfrt_service_table make_table() {
  pfrt_service_table t{};
  t.struct_size = sizeof t;
  t.abi = PFRT_ABI_VERSION;
  t.start = start;
  t.stop = stop;
  t.address = address;
  return t;
}

}  // namespace

extern "C" PFRT_EXPORT pfrt_code pfrt_plugin_query(const pfrt_host_info* host,
                                                   pfrt_plugin_desc* out_desc) {
  static const pfrt_service_table table = make_table();
  out_desc->abi = PFRT_ABI_VERSION;
  out_desc->abi_major = PFRT_ABI_MAJOR;
  out_desc->min_minor = 0;
  out_desc->max_minor = PFRT_ABI_MINOR;
  out_desc->kind = PFRT_PLUGIN_SERVICE;
#if defined(__SANITIZE_ADDRESS__)
  out_desc->sanitizer = PFRT_SANITIZER_ADDRESS;
#elif defined(__SANITIZE_THREAD__)
  out_desc->sanitizer = PFRT_SANITIZER_THREAD;
#endif
  out_desc->features = PFRT_SERVICE_ADDRESS;
  out_desc->name = text("Heartbeat");
  out_desc->version = text("1.0");
  out_desc->table = &table;
  return host->abi_major == PFRT_ABI_MAJOR ? PFRT_CODE_OK : PFRT_CODE_PLUGIN;
}
