// SPDX-License-Identifier: Apache-2.0
//
// A service in one file: a heartbeat. Every interval it runs a model, when it was given one, tells
// its client of the event "beat", and appends a line to a file, when it was given one:
// "beat 3 ok 0.412 ms". It sees plugin.h alone and links nothing of the runtime.
//
// Options: interval_ms (default 1000), model, file. Questions: "stats" counts the beats, "interval"
// sets the interval to the request's milliseconds.
#include <pyflame_rt/plugin.h>

#include <atomic>
#include <charconv>
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

pfrt_code fail(const pfrt_sink* sink, pfrt_code code, const std::string& message) {
  return sink->fail(sink, code, PFRT_NO_INDEX, text(message));
}

// ---- options, which the host checks by this list before it calls start or check ----

struct Option {
  std::string_view key;
  pfrt_option_type type;
  std::string_view default_value, doc;
};
constexpr Option kOptions[] = {
    {"interval_ms", PFRT_OPTION_INT, "1000", "Milliseconds from one beat to the next, 1 at least"},
    {"model", PFRT_OPTION_STRING, "", "Path of a model that each beat runs on zeros"},
    {"file", PFRT_OPTION_STRING, "", "File that each beat appends a line to"},
};

size_t option_count() { return std::size(kOptions); }
pfrt_code option_at(size_t index, pfrt_option_info* out) {
  if (index >= std::size(kOptions)) return PFRT_CODE_INVALID_ARGUMENT;
  const Option& option = kOptions[index];
  out->type = option.type;
  out->key = text(option.key);
  out->default_value = text(option.default_value);
  out->doc = text(option.doc);
  return PFRT_CODE_OK;
}

// The number of milliseconds that |s| says; 0 where it says none.
long milliseconds(std::string_view s) {
  long ms = 0;
  const auto [end, code] = std::from_chars(s.data(), s.data() + s.size(), ms);
  return code == std::errc() && end == s.data() + s.size() && ms > 0 ? ms : 0;
}

struct Settings {
  long interval_ms = 1000;
  std::string model, file;
};

// Reads the options of start and check.
pfrt_code read(const pfrt_service_request& request, const pfrt_sink* sink, Settings* out) {
  for (size_t i = 0; i < request.option_count; ++i) {
    const std::string_view key = view(request.options[i].key);
    const std::string value(view(request.options[i].value));
    if (key == "model") out->model = value;
    if (key == "file") out->file = value;
    if (key != "interval_ms") continue;
    out->interval_ms = milliseconds(value);
    if (out->interval_ms == 0)
      return fail(sink, PFRT_CODE_INVALID_ARGUMENT,
                  "interval_ms is '" + value + "': give a number from 1");
  }
  return PFRT_CODE_OK;
}

// Releases |status|, reports what it says and returns its code; 0 when there is none.
pfrt_code take(const pfrt_api& api, const pfrt_sink* sink, pfrt_status* status) {
  if (!status) return PFRT_CODE_OK;
  const pfrt_code code = api.status->code(status);
  fail(sink, code, std::string(view(api.status->message(status))));
  api.status->release(status);
  return code;
}

// ---- the service ----

class Heartbeat {
 public:
  Heartbeat(const pfrt_service_request& request, const pfrt_sink* sink)
      : api_(*request.api), env_(request.env), events_(request.events), sink_(sink) {}

  // Returns the code of what went wrong, which has been reported.
  pfrt_code start(const pfrt_service_request& request) {
    Settings settings;
    if (const pfrt_code code = read(request, sink_, &settings)) return code;
    interval_ms_ = settings.interval_ms;
    file_ = settings.file;
    if (!settings.model.empty()) {
      if (const pfrt_code code = open(settings.model)) return code;
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

  // May be called from several threads at once, while the service's own thread beats.
  pfrt_code ask(const pfrt_question& question, const pfrt_answer* answer, const pfrt_sink* sink) {
    const std::string_view verb = view(question.verb);
    if (verb == "stats") {
      answer->text(
          answer, text("beats " + std::to_string(beats_) + " failed " + std::to_string(failures_)));
      return PFRT_CODE_OK;
    }
    if (verb != "interval")
      return fail(sink, PFRT_CODE_UNSUPPORTED, "it knows the verbs stats and interval");
    const long ms = milliseconds(view(question.request));
    if (ms == 0)
      return fail(sink, PFRT_CODE_INVALID_ARGUMENT,
                  "the request is '" + std::string(view(question.request)) +
                      "': give a number of milliseconds, 1 at least");
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      interval_ms_ = ms;
      ++changes_;
    }
    wake_.notify_all();
    return PFRT_CODE_OK;
  }

 private:
  pfrt_code take(pfrt_status* status) { return ::take(api_, sink_, status); }

  // Makes a session of the model, and zeros for its inputs; dynamic dimensions are 1. Between its
  // parts it tells the client how far it is, and asks whether the service is still wanted.
  pfrt_code open(const std::string& path) {
    pfrt_model* model = nullptr;
    if (const pfrt_code code = take(api_.model->load_file(env_, text(path), nullptr, &model)))
      return code;
    sink_->progress(sink_, 0.3);
    pfrt_session_desc desc{};
    desc.struct_size = sizeof desc;
    desc.model = model;
    pfrt_code code = sink_->stop(sink_);
    if (!code) code = take(api_.session->create(env_, &desc, &session_));
    api_.model->release(model);  // the session keeps it
    if (code) return code;
    sink_->progress(sink_, 0.9);
    if (const pfrt_code stopped = sink_->stop(sink_)) return stopped;
    for (size_t i = 0; i < api_.session->input_count(session_); ++i) {
      pfrt_value_info info{};
      info.struct_size = sizeof info;
      if (const pfrt_code fault = take(api_.session->input_at(session_, i, &info))) return fault;
      if (info.kind != PFRT_VALUE_TENSOR)
        return fail(sink_, PFRT_CODE_UNSUPPORTED,
                    "only models of tensors can be run as a heartbeat");
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
      ++beats_;
      if (!good) ++failures_;
      events_->event(events_, text("beat"), text(line));  // no lock is held: the client may ask
      std::unique_lock<std::mutex> lock(mutex_);
      const long change = changes_;
      wake_.wait_for(lock, std::chrono::milliseconds(interval_ms_),
                     [&] { return stopped_ || changes_ != change; });
      if (stopped_) return;
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
  const pfrt_events* events_;
  const pfrt_sink* sink_;
  std::string file_;
  pfrt_session* session_ = nullptr;
  std::vector<pfrt_value*> inputs_;
  std::atomic<unsigned long> beats_{0}, failures_{0};
  std::mutex mutex_;  // guards the members below
  std::condition_variable wake_;
  long interval_ms_ = 1000, changes_ = 0;
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

// Reads the options and the model, and starts nothing.
pfrt_code check(const pfrt_service_request* request, const pfrt_sink* sink) {
  try {
    Settings settings;
    if (const pfrt_code code = read(*request, sink, &settings)) return code;
    if (settings.model.empty()) return PFRT_CODE_OK;
    pfrt_model* model = nullptr;
    const pfrt_code code =
        take(*request->api, sink,
             request->api->model->load_file(request->env, text(settings.model), nullptr, &model));
    request->api->model->release(model);
    return code;
  } catch (...) {
    return sink->fail(sink, PFRT_CODE_OUT_OF_MEMORY, PFRT_NO_INDEX, text("no memory"));
  }
}

pfrt_code ask(pfrt_service_instance* service, const pfrt_question* question,
              const pfrt_answer* answer, const pfrt_sink* sink) {
  try {
    return reinterpret_cast<Heartbeat*>(service)->ask(*question, answer, sink);
  } catch (...) {
    return sink->fail(sink, PFRT_CODE_OUT_OF_MEMORY, PFRT_NO_INDEX, text("no memory"));
  }
}

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
  t.option_count = option_count;
  t.option_at = option_at;
  t.check = check;
  t.ask = ask;
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
  out_desc->features =
      PFRT_SERVICE_ADDRESS | PFRT_SERVICE_OPTIONS | PFRT_SERVICE_CHECK | PFRT_SERVICE_ASK;
  out_desc->name = text("Heartbeat");
  out_desc->version = text("1.0");
  out_desc->table = &table;
  return host->abi_major == PFRT_ABI_MAJOR ? PFRT_CODE_OK : PFRT_CODE_PLUGIN;
}
