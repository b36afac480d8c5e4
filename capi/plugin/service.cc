// SPDX-License-Identifier: Apache-2.0
//
// Services of plug-ins: the client's handle, and the host's side of their calls.
#include <algorithm>
#include <atomic>
#include <condition_variable>

#include "capi/handle/counted.h"
#include "capi/handle/env.h"
#include "capi/handle/guard.h"
#include "capi/handle/options.h"
#include "capi/handle/slots.h"
#include "capi/plugin/ask.h"
#include "capi/plugin/plugins.h"
#include "core/base/foreign.h"
#include "core/options/provider_options.h"

// Keeps the environment (and with it the plug-in) until the service has stopped.
struct pfrt_service {
  [[no_unique_address]] pfrt::capi::Alive alive;
  pfrt_env* env = nullptr;
  std::shared_ptr<const pfrt::Plugin> plugin;
  pfrt_service_instance* instance = nullptr;
  pfrt_sink sink{};
  pfrt_events events{};
  pfrt_event_fn event = nullptr;
  void* event_user = nullptr;

  std::mutex mutex;  // guards the members below: a service's threads may report too
  std::string text;
  std::mutex start_mutex;           // guards the two members below
  pfrt::Progress* start = nullptr;  // of the call of start; null when it is over
  pfrt::Status stopped;             // the reason that it was told to stop
  std::atomic<bool> stopping = false;
  std::mutex asks_mutex;  // guards the number of questions under way
  std::condition_variable answered;
  size_t asks = 0;

  ~pfrt_service() { pfrt::capi::release(env); }
};

namespace pfrt::capi {
namespace {

pfrt_service& of(const pfrt_sink* sink) { return *static_cast<pfrt_service*>(sink->host); }

pfrt_code sink_fail(const pfrt_sink* sink, pfrt_code code, uint32_t, pfrt_string text) {
  std::lock_guard lock(of(sink).mutex);
  try {
    of(sink).text = view(text);
  } catch (const std::exception&) {  // the code says enough
  }
  return code;
}

void sink_log(const pfrt_sink* sink, pfrt_log_level level, pfrt_string text) {
  Logger& logger = of(sink).env->state->logger();
  if (logger.wants(level)) logger.write(level, view(text));
}

pfrt_code sink_stop(const pfrt_sink* sink) {
  pfrt_service& service = of(sink);
  std::lock_guard lock(service.start_mutex);
  if (!service.start) return PFRT_CODE_OK;  // it serves until it is stopped
  try {
    if (service.stopped.ok()) service.stopped = service.start->stop();
  } catch (const std::bad_alloc&) {
    return PFRT_CODE_OUT_OF_MEMORY;
  }
  return static_cast<pfrt_code>(service.stopped.code());
}

void sink_progress(const pfrt_sink* sink, double fraction) {
  pfrt_service& service = of(sink);
  std::lock_guard lock(service.start_mutex);
  if (service.start) call_foreign([&] { (void)service.start->at(fraction).ok(); });
}

void tell_event(const pfrt_events* events, pfrt_string name, pfrt_string text) {
  const auto& service = *static_cast<const pfrt_service*>(events->host);
  if (name.size == 0) {
    call_foreign([&] {
      service.env->state->logger().log(PFRT_LOG_WARNING, "service '", service.plugin->name,
                                       "': an event without a name was left out");
    });
    return;
  }
  if (service.event) call_foreign([&] { service.event(service.event_user, name, text); });
}

// Tries the plug-in whose file has that name first, so that others need not be opened.
Result<std::shared_ptr<const Plugin>> find_service(pfrt_env* env, std::string_view name,
                                                   std::string_view doing) {
  PluginLoader& loader = env->loaded->loader();
  PFRT_ASSIGN(auto named, loader.open_short("service", name));
  if (!named) return loader.find("service", name);
  if (named->table) return named;
  return error(Code::kPLUGIN, doing, " '", name, "': '", named->path,
               "' is not usable: ", named->reason);
}

Result<std::vector<pfrt_option_info>> schema_of(const Plugin& plugin) {
  if (!(plugin.features & PFRT_SERVICE_OPTIONS)) return std::vector<pfrt_option_info>();
  return declared_options(plugin.service()->option_count, plugin.service()->option_at, plugin.name);
}

Status check_given(const Plugin& plugin, const pfrt_service_desc& desc, std::string_view doing) {
  if (desc.option_count && !desc.options) return null_argument("desc.options");
  PFRT_ASSIGN(const auto schema, schema_of(plugin));
  for (size_t i = 0; i < desc.option_count; ++i) {
    const std::string_view key = view(desc.options[i].key);
    for (size_t before = 0; before < i; ++before)
      if (view(desc.options[before].key) == key)
        return error(Code::kINVALID_ARGUMENT, doing, ": option '", key, "' is given twice");
    if (!(plugin.features & PFRT_SERVICE_OPTIONS)) continue;
    PFRT_TRY(check_option(schema, doing, key, key, view(desc.options[i].value)));
  }
  return {};
}

Result<Progress> progress_of(const pfrt_options* options, std::string_view doing) {
  const Options defaults(PFRT_OPTIONS_ASK);
  PFRT_ASSIGN(const Options* const given, ask_options(options, defaults, doing));
  if (given->is_set(ask_option::kDevice) || !given->for_plugins().empty())
    return error(Code::kINVALID_ARGUMENT, doing,
                 ": its options are for a provider's device; a service takes its own as keys and "
                 "values, and of these the timeout alone");
  // Without options nothing can cancel, and the defaults' flag is gone when this returns.
  return options ? given->progress() : Progress();
}

pfrt_service_request request_of(pfrt_env* env, const pfrt_service_desc& desc) {
  pfrt_service_request request{};
  request.struct_size = sizeof request;
  request.abi = PFRT_ABI_VERSION;
  request.api = &kApi;
  request.env = env;
  request.options = desc.options;
  request.option_count = desc.option_count;
  return request;
}

pfrt_code call_start(const pfrt_service_request& request, pfrt_service& service) {
  try {
    return service.plugin->service()->start(&request, &service.sink, &service.instance);
  } catch (const std::bad_alloc&) {
    return PFRT_CODE_OUT_OF_MEMORY;
  } catch (...) {
    return sink_fail(&service.sink, PFRT_CODE_PLUGIN, PFRT_NO_INDEX,
                     to_c("an exception escaped the plug-in"));
  }
}

Status start(pfrt_service& service, const pfrt_service_desc& desc, std::string_view doing) {
  PFRT_ASSIGN(Progress progress, progress_of(desc.call, doing));
  PFRT_TRY(check_given(*service.plugin, desc, doing));
  PFRT_TRY(progress.stage("start", 1.0).prepend(doing));
  service.sink.struct_size = sizeof service.sink;
  service.sink.abi = PFRT_ABI_VERSION;
  service.sink.host = &service;
  service.sink.fail = sink_fail;
  service.sink.log = sink_log;
  service.sink.stop = sink_stop;
  service.sink.progress = sink_progress;
  service.events = {sizeof service.events, PFRT_ABI_VERSION, &service, tell_event};
  service.event = desc.event;
  service.event_user = desc.event_user;
  pfrt_service_request request = request_of(service.env, desc);
  request.events = &service.events;
  service.start = &progress;
  const pfrt_code code = call_start(request, service);
  {
    std::lock_guard lock(service.start_mutex);
    service.start = nullptr;
  }
  if (code == PFRT_CODE_OK && service.instance) {
    (void)progress.at(1).ok();  // a service that is not told in time has started
    return {};
  }
  if (code != PFRT_CODE_OK && static_cast<Code>(code) == service.stopped.code())
    return std::move(service.stopped.prepend(doing));
  const Code kind = code == PFRT_CODE_OK ? Code::kPLUGIN : static_cast<Code>(code);
  std::lock_guard lock(service.mutex);
  return error(kind, doing, ": ",
               !service.text.empty()  ? service.text
               : code == PFRT_CODE_OK ? std::string("it gave no handle")
                                      : std::string(code_text(kind)));
}

Status check(pfrt_env* env, const Plugin& plugin, const pfrt_service_desc& desc,
             std::string_view doing) {
  PFRT_ASSIGN(Progress progress, progress_of(desc.call, doing));
  if (!(plugin.features & (PFRT_SERVICE_OPTIONS | PFRT_SERVICE_CHECK)))
    return error(Code::kUNSUPPORTED, doing,
                 ": it neither lists its options nor checks them; start says what is wrong");
  PFRT_TRY(check_given(plugin, desc, doing));
  PFRT_TRY(progress.stage("check", 1.0).prepend(doing));
  if (plugin.features & PFRT_SERVICE_CHECK) {
    const Stop stop = [&progress] { return progress.stop(); };
    Sink sink(&env->state->logger(), stop);
    sink.set_progress([&progress](double done) { (void)progress.at(done).ok(); });
    const pfrt_service_request request = request_of(env, desc);
    const pfrt_code code = sink.call([&] { return plugin.service()->check(&request, sink.get()); },
                                     PFRT_CODE_PLUGIN, "plug-in");
    PFRT_TRY(sink.status(code, doing));
  }
  (void)progress.at(1).ok();
  return {};
}

// A question under way, which stop waits for.
class Asking {
 public:
  explicit Asking(pfrt_service& service) : service_(service) {
    std::lock_guard lock(service_.asks_mutex);
    ++service_.asks;
  }
  ~Asking() {
    std::lock_guard lock(service_.asks_mutex);
    if (--service_.asks == 0) service_.answered.notify_all();
  }
  Asking(const Asking&) = delete;
  Asking& operator=(const Asking&) = delete;
  Status stop(const Progress& progress) const {
    if (service_.stopping) return error(Code::kCANCELLED, "the service is being stopped");
    return progress.stop();
  }

 private:
  pfrt_service& service_;
};

Result<Answer> ask(pfrt_service& service, const pfrt_ask_desc& desc) {
  const std::string who = message("asking service '", service.plugin->name, "'");
  if (desc.provider.size)
    return error(Code::kINVALID_ARGUMENT, who,
                 ": desc.provider is set; it names a provider for env->ask");
  PFRT_ASSIGN(Question question, question_of(desc, who));
  const std::string doing = message(who, " to '", question.verb, "'");
  PFRT_ASSIGN(Progress progress, progress_of(desc.options, doing));
  if (!(service.plugin->features & PFRT_SERVICE_ASK))
    return error(Code::kUNSUPPORTED, doing, ": this service takes no questions");
  question.threads = service.env->state->width(nullptr);
  const Asking asking(service);
  const Stop stop = [&] { return asking.stop(progress); };
  PFRT_TRY(stop().prepend(doing));
  PFRT_TRY(progress.stage("asking", 1.0).prepend(doing));
  Sink sink(&service.env->state->logger(), stop);
  sink.set_progress([&progress](double done) { (void)progress.at(done).ok(); });
  const AskedPlugin asked{
      PFRT_PLUGIN_SERVICE,
      [&service](const pfrt_question* in_c, const pfrt_answer* answer, const pfrt_sink* to) {
        return service.plugin->service()->ask(service.instance, in_c, answer, to);
      }};
  const EnvironmentScope scope(*service.env->state);
  PFRT_ASSIGN(Answer answer, ask_plugin(question, asked, sink, doing));
  (void)progress.at(1).ok();
  return answer;
}

}  // namespace

pfrt_status* service_option_count(pfrt_env* env, pfrt_string name, size_t* out) {
  return guard([&]() -> Status {
    if (!env || !out) return null_argument(env ? "out_count" : "env");
    *out = 0;
    PFRT_ASSIGN(const auto plugin, find_service(env, view(name), "listing options of service"));
    PFRT_ASSIGN(const auto schema, schema_of(*plugin));
    *out = schema.size();
    return {};
  });
}

pfrt_status* service_option_at(pfrt_env* env, pfrt_string name, size_t index,
                               pfrt_option_info* out) {
  return guard([&]() -> Status {
    if (!env || !out) return null_argument(env ? "out_info" : "env");
    PFRT_ASSIGN(const auto plugin, find_service(env, view(name), "listing options of service"));
    PFRT_ASSIGN(const auto schema, schema_of(*plugin));
    if (index >= schema.size())
      return error(Code::kINVALID_ARGUMENT, "reading option ", index, " of ", schema.size(),
                   " of service '", plugin->name, "'");
    return write(out, schema[index]);
  });
}

pfrt_status* service_check(pfrt_env* env, const pfrt_service_desc* desc_in) {
  return guard([&]() -> Status {
    if (!env || !desc_in) return null_argument(env ? "desc" : "env");
    PFRT_ASSIGN(const pfrt_service_desc desc, read(desc_in));
    PFRT_ASSIGN(const auto plugin, find_service(env, view(desc.name), "checking service"));
    return check(env, *plugin, desc, message("checking service '", plugin->name, "'"));
  });
}

pfrt_status* service_start(pfrt_env* env, const pfrt_service_desc* desc_in, pfrt_service** out) {
  return guard([&]() -> Status {
    if (!env || !desc_in || !out)
      return null_argument(!env ? "env" : !desc_in ? "desc" : "out_service");
    *out = nullptr;
    PFRT_ASSIGN(const pfrt_service_desc desc, read(desc_in));
    auto service = std::make_unique<pfrt_service>();
    PFRT_ASSIGN(service->plugin, find_service(env, view(desc.name), "starting service"));
    retain(env);
    service->env = env;
    PFRT_TRY(start(*service, desc, message("starting service '", service->plugin->name, "'")));
    *out = service.release();
    return {};
  });
}

void service_stop(pfrt_service* service) {
  if (!service) return;
  const Inside library;
  service->stopping = true;
  {
    std::unique_lock lock(service->asks_mutex);
    service->answered.wait(lock, [&] { return service->asks == 0; });
  }
  try {
    service->plugin->service()->stop(service->instance);
  } catch (...) {
    service->env->state->logger().log(PFRT_LOG_ERROR, "stopping service '", service->plugin->name,
                                      "': an exception escaped the plug-in");
  }
  delete service;
}

pfrt_string service_address(const pfrt_service* service) {
  if (!service || !(service->plugin->features & PFRT_SERVICE_ADDRESS)) return {};
  return service->plugin->service()->address(service->instance);
}

pfrt_status* service_ask(pfrt_service* service, const pfrt_ask_desc* desc_in, pfrt_reply** out) {
  return guard([&]() -> Status {
    if (!service || !desc_in || !out)
      return null_argument(!service ? "service" : !desc_in ? "desc" : "out_reply");
    *out = nullptr;
    PFRT_ASSIGN(const pfrt_ask_desc desc, read(desc_in));
    std::shared_ptr<Environment> env = service->env->state;  // the service may go once it answered
    PFRT_ASSIGN(Answer answer, ask(*service, desc));
    *out = reply_of(std::move(env), std::move(answer)).release();
    return {};
  });
}

}  // namespace pfrt::capi
