// SPDX-License-Identifier: Apache-2.0
//
// Tests of plug-ins that are services: each is started with the real client tables, stopped and
// started again.
#include "cxxapi/cli/check_plugin/counting_api.h"
#include "cxxapi/cli/check_plugin/host_sink.h"
#include "cxxapi/cli/check_plugin/kinds.h"

namespace cli::check {
namespace {

class Service {
 public:
  Service(Trial& trial, const PluginFile& file, CountingApi& api, pfrt_env* env, Age age)
      : trial_(trial), sink_(age) {
    table_ = static_cast<const pfrt_service_table*>(file.describe(trial).table);
    pfrt_service_request request{};
    request.api = api.table();
    request.env = env;
    request_ = std::make_unique<Sized<pfrt_service_request>>(age, request, "the request");
  }
  pfrt_code start(const std::vector<pfrt_key_value>& options, const std::string& doing) {
    request_->get()->options = options.data();
    request_->get()->option_count = options.size();
    return call(trial_, "service", doing,
                [&] { return table_->start(request_->get(), sink_.get(), &instance_); });
  }
  void stop() {
    pfrt_service_instance* instance = std::exchange(instance_, nullptr);
    if (instance) call(trial_, "service", "it was stopped", [&] { table_->stop(instance); });
  }
  pfrt_service_instance* instance() const { return instance_; }
  const HostSink& sink() const { return sink_; }
  const pfrt_service_table& table() const { return *table_; }

 private:
  Trial& trial_;
  HostSink sink_;
  const pfrt_service_table* table_;
  std::unique_ptr<Sized<pfrt_service_request>> request_;
  pfrt_service_instance* instance_ = nullptr;
};

void check_service(Trial& trial, const std::string& path, uint64_t features) {
  CountingApi api;
  pfrt_env* env = nullptr;
  if (pfrt_status* status = api.table()->env->create(nullptr, &env)) {
    api.table()->status->release(status);
    throw std::runtime_error("no environment for the service");
  }
  const ProcessState before;
  const size_t threads = thread_count();
  PluginFile file(trial, path);
  bool started = false;
  // Starts twice by this host, since a service has to start again; then by a newer one.
  for (Age age : {Age::kNow, Age::kNow, Age::kNewer}) {
    Service service(trial, file, api, env, age);
    const pfrt_code code = service.start({}, "it was started without options");
    if (code != PFRT_CODE_OK) {  // it may refuse, but has to say why
      trial.expect(!service.instance() && !service.sink().text().empty(), "refusal",
                   "start refused with " + service.sink().reason(code));
      if (started)
        trial.fail("service", "started again it returned " + service.sink().reason(code));
      if (!started)
        trial.skip("it does not start without options (" + service.sink().reason(code) + ")");
      break;
    }
    if (!trial.expect(service.instance() != nullptr, "service", "start gave ok and no handle"))
      break;
    started = true;
    if (features & PFRT_SERVICE_ADDRESS) {
      const pfrt_string address = call(trial, "feature-function", "its address was asked for",
                                       [&] { return service.table().address(service.instance()); });
      trial.expect(address.data || address.size == 0, "feature-function",
                   "its address has a length and no text");
    }
    service.stop();
    trial.expect(threads_are(threads), "service", "its threads still run after stop");
  }
  Service service(trial, file, api, env, Age::kNow);
  const pfrt_string key = {"no_such_option", 14}, value = {"1", 1};
  const pfrt_code code = service.start({{key, value}}, "it was started with an unknown option");
  trial.expect(code != PFRT_CODE_OK && !service.instance() && !service.sink().text().empty(),
               "refusal", "start accepted an unknown option, or refused it without a reason");
  service.stop();
  api.expect_nothing_left(trial);
  const std::string changed = before.changed();
  trial.expect(changed.empty(), "process-state", changed + " is not what it was");
  file.close(trial);
  trial.at("unload-with-values", "the environment was released after it was unloaded");
  api.table()->env->release(env);
  trial.keep("unload");
  trial.keep("throws");
}

}  // namespace

std::vector<NamedTrial> service_trials(const PluginFacts& facts) {
  const std::string path = facts.path;
  const uint64_t features = facts.features;
  return {{"start and stop", [path, features](Trial& t) { check_service(t, path, features); }}};
}

}  // namespace cli::check
