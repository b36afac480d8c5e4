// SPDX-License-Identifier: Apache-2.0
//
// Running services of plug-ins: the client's handle, and the host's side of start.
#include <algorithm>

#include "capi/handle/counted.h"
#include "capi/handle/env.h"
#include "capi/handle/guard.h"
#include "capi/handle/slots.h"
#include "capi/plugin/plugins.h"

// Keeps the environment (and with it the plug-in) until the service has stopped.
struct pfrt_service {
  [[no_unique_address]] pfrt::capi::Alive alive;
  pfrt_env* env = nullptr;
  std::shared_ptr<const pfrt::Plugin> plugin;
  pfrt_service_instance* instance = nullptr;
  pfrt_sink sink{};
  std::mutex mutex;  // guards text: a service's threads may report too
  std::string text;

  ~pfrt_service() { pfrt::capi::release(env); }
};

namespace pfrt::capi {
namespace {

pfrt_code sink_fail(const pfrt_sink* sink, pfrt_code code, uint32_t, pfrt_string text) {
  auto& service = *static_cast<pfrt_service*>(sink->host);
  std::lock_guard lock(service.mutex);
  try {
    service.text = view(text);
  } catch (const std::exception&) {  // the code says enough
  }
  return code;
}

void sink_log(const pfrt_sink* sink, pfrt_log_level level, pfrt_string text) {
  Logger& logger = static_cast<pfrt_service*>(sink->host)->env->state->logger();
  if (logger.wants(level)) logger.write(level, view(text));
}

// By the name in the file name first, so that others need not be opened.
Result<std::shared_ptr<const Plugin>> find_service(PluginLoader& loader, std::string_view name) {
  PFRT_ASSIGN(auto named, loader.open_short("service", name));
  if (!named) return loader.find("service", name);
  if (named->table) return named;
  return error(Code::kPLUGIN, "starting service '", name, "': '", named->path,
               "' is not usable: ", named->reason);
}

pfrt_code start(const pfrt_service_table& table, const pfrt_service_request& request,
                pfrt_service& service) {
  try {
    return table.start(&request, &service.sink, &service.instance);
  } catch (const std::bad_alloc&) {
    return PFRT_CODE_OUT_OF_MEMORY;
  } catch (...) {
    return sink_fail(&service.sink, PFRT_CODE_PLUGIN, PFRT_NO_INDEX,
                     to_c("an exception escaped the plug-in"));
  }
}

}  // namespace

pfrt_status* service_start(pfrt_env* env, pfrt_string name, const pfrt_key_value* options,
                           size_t option_count, pfrt_service** out) {
  return guard([&]() -> Status {
    if (!env || !out) return null_argument(env ? "out_service" : "env");
    *out = nullptr;
    if (option_count && !options) return null_argument("options");
    auto service = std::make_unique<pfrt_service>();
    PFRT_ASSIGN(service->plugin, find_service(env->loaded->loader(), view(name)));
    retain(env);
    service->env = env;
    service->sink.struct_size = sizeof service->sink;
    service->sink.abi = PFRT_ABI_VERSION;
    service->sink.host = service.get();
    service->sink.fail = sink_fail;
    service->sink.log = sink_log;
    // A service is started at once or not, and goes on until it is stopped.
    service->sink.stop = [](const pfrt_sink*) -> pfrt_code { return PFRT_CODE_OK; };
    service->sink.progress = [](const pfrt_sink*, double) {};
    pfrt_service_request request{};
    request.struct_size = sizeof request;
    request.abi = PFRT_ABI_VERSION;
    request.api = &kApi;
    request.env = env;
    request.options = options;
    request.option_count = option_count;
    const pfrt_code code = start(*service->plugin->service(), request, *service);
    if (code != PFRT_CODE_OK || !service->instance) {
      const Code kind = code == PFRT_CODE_OK ? Code::kPLUGIN : static_cast<Code>(code);
      std::lock_guard lock(service->mutex);
      return error(kind, "starting service '", service->plugin->name, "': ",
                   !service->text.empty() ? service->text
                   : code == PFRT_CODE_OK ? std::string("it gave no handle")
                                          : std::string(code_text(kind)));
    }
    *out = service.release();
    return {};
  });
}

void service_stop(pfrt_service* service) {
  if (!service) return;
  const Inside library;
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

}  // namespace pfrt::capi
