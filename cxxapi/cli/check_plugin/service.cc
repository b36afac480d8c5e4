// SPDX-License-Identifier: Apache-2.0
//
// Tests of plug-ins that are services: each is started with the real client tables, asked, stopped
// and started again; its list of options and its own check of them are compared with what start
// does.
#include <atomic>
#include <cstdlib>
#include <set>

#include "cxxapi/cli/check_plugin/counting_api.h"
#include "cxxapi/cli/check_plugin/host_sink.h"
#include "cxxapi/cli/check_plugin/kinds.h"
#include "cxxapi/cli/check_plugin/unknown_verb.h"

namespace cli::check {
namespace {

// Options by key, as texts.
using Given = std::vector<std::pair<std::string, std::string>>;

std::vector<pfrt_key_value> in_c(const Given& options) {
  std::vector<pfrt_key_value> out;
  for (const auto& [key, value] : options) out.push_back({c_text(key), c_text(value)});
  return out;
}

// Hears of a service's events. It lives until its service can have no thread any more.
class Listener {
 public:
  explicit Listener(Age age) {
    pfrt_events events{};
    events.host = this;
    events.event = [](const pfrt_events* e, pfrt_string name, pfrt_string) {
      auto& self = *static_cast<Listener*>(e->host);
      ++self.count_;
      if (!name.data || name.size == 0) self.nameless_ = true;
      if (self.ended_) self.late_ = true;
    };
    events_ = std::make_unique<Sized<pfrt_events>>(age, events, "the events");
    events_->make_read_only();
  }
  const pfrt_events* get() const { return events_->get(); }
  void end() { ended_ = true; }
  void judge(Trial& trial) const {
    if (count_ == 0) return;
    trial.expect(!nameless_, "event", "it told of an event without a name");
    trial.expect(!late_, "event", "it told of an event after stop had returned");
  }

 private:
  std::unique_ptr<Sized<pfrt_events>> events_;
  std::atomic<uint64_t> count_ = 0;
  std::atomic<bool> nameless_ = false, late_ = false, ended_ = false;
};

class Service {
 public:
  Service(Trial& trial, const PluginFile& file, CountingApi& api, pfrt_env* env, Age age,
          pfrt_code stop = PFRT_CODE_OK)
      : trial_(trial), sink_(age, stop), listener_(age) {
    table_ = static_cast<const pfrt_service_table*>(file.describe(trial).table);
    pfrt_service_request request{};
    request.api = api.table();
    request.env = env;
    request_ = std::make_unique<Sized<pfrt_service_request>>(age, request, "the request");
  }
  pfrt_code start(const Given& options, const std::string& doing) {
    const std::vector<pfrt_key_value> list = in_c(options);
    request_->get()->options = list.data();
    request_->get()->option_count = list.size();
    request_->get()->events = listener_.get();
    const pfrt_code code = call(trial_, "service", doing, [&] {
      return table_->start(request_->get(), sink_.get(), &instance_);
    });
    const std::string fault = sink_.progress_fault();
    if (!fault.empty()) trial_.fail("progress", "while " + doing + " " + fault);
    return code;
  }
  pfrt_code check(const Given& options, const std::string& doing) {
    const std::vector<pfrt_key_value> list = in_c(options);
    request_->get()->options = list.data();
    request_->get()->option_count = list.size();
    request_->get()->events = nullptr;
    return call(trial_, "check", doing,
                [&] { return table_->check(request_->get(), sink_.get()); });
  }
  void stop() {
    pfrt_service_instance* instance = std::exchange(instance_, nullptr);
    if (instance) call(trial_, "service", "it was stopped", [&] { table_->stop(instance); });
    listener_.end();
  }
  void judge_events() const { listener_.judge(trial_); }
  pfrt_service_instance* instance() const { return instance_; }
  const HostSink& sink() const { return sink_; }
  const pfrt_service_table& table() const { return *table_; }

 private:
  Trial& trial_;
  HostSink sink_;
  Listener listener_;
  const pfrt_service_table* table_;
  std::unique_ptr<Sized<pfrt_service_request>> request_;
  pfrt_service_instance* instance_ = nullptr;
};

bool in_words(const std::string& words, const std::string& word) {
  return (" " + words + " ").find(" " + word + " ") != std::string::npos;
}

// What is wrong with |text| as a value of an option of |type|; empty when nothing is.
std::string fault_of(pfrt_option_type type, const std::string& text) {
  char* end = nullptr;
  if (type == PFRT_OPTION_BOOL) return in_words("true false", text) ? "" : "true or false";
  if (type == PFRT_OPTION_INT)
    return std::strtoll(text.c_str(), &end, 10), *end ? "an integer" : "";
  if (type == PFRT_OPTION_FLOAT) return std::strtod(text.c_str(), &end), *end ? "a number" : "";
  return "";
}

// What is wrong with an option; empty when nothing is.
std::string fault_of(const pfrt_option_info& info) {
  const std::string key = text_of(info.key), name = "option '" + key + "'";
  const std::string standard = text_of(info.default_value), choices = text_of(info.choices);
  if (key.empty()) return "an option has no key";
  if (info.type == PFRT_OPTION_UNSET || info.type > PFRT_OPTION_STRINGS)
    return name + " has type " + std::to_string(info.type);
  if (text_of(info.doc).empty()) return name + " has no sentence that says what it is";
  const std::string needed = standard.empty() ? "" : fault_of(info.type, standard);
  if (!needed.empty()) return name + " has the default '" + standard + "', which is not " + needed;
  if (!choices.empty() && !standard.empty() && !in_words(choices, standard))
    return name + " has the default '" + standard + "', which is none of its choices";
  return "";
}

// Checks the list of options, and returns the defaults.
Given defaults_of(Trial& trial, const pfrt_service_table& table) {
  Given out;
  std::set<std::string> keys;
  const size_t count =
      call(trial, "options", "its options were counted", [&] { return table.option_count(); });
  for (size_t i = 0; i < count; ++i) {
    pfrt_option_info info{};
    info.struct_size = sizeof info;
    const pfrt_code code = call(trial, "options", "option " + std::to_string(i) + " was read",
                                [&] { return table.option_at(i, &info); });
    if (!trial.expect(code == PFRT_CODE_OK, "options",
                      "it counts " + std::to_string(count) + " options, and option " +
                          std::to_string(i) + " cannot be read: " + code_text(code)))
      break;
    const std::string fault = fault_of(info);
    trial.expect(fault.empty(), "options", fault);
    const std::string key = text_of(info.key);
    trial.expect(keys.insert(key).second, "options", "option '" + key + "' is listed twice");
    const std::string standard = text_of(info.default_value);
    if (!standard.empty()) out.emplace_back(key, standard);
  }
  pfrt_option_info beyond{};
  beyond.struct_size = sizeof beyond;
  const pfrt_code code = call(trial, "options", "an option beyond the last was read",
                              [&] { return table.option_at(count, &beyond); });
  trial.expect(code != PFRT_CODE_OK, "options", "it has an option beyond the last");
  return out;
}

class ServiceTrial {
 public:
  ServiceTrial(Trial& trial, const std::string& path, uint64_t features)
      : trial_(trial),
        features_(features),
        env_(make_env(api_)),
        threads_(thread_count()),
        file_(trial, path) {}

  void run() {
    // Starts twice by this host, since a service has to start again; then by a newer one.
    bool restarts = true;
    for (Age age : {Age::kNow, Age::kNow, Age::kNewer}) restarts = restarts && start_and_stop(age);
    if (features_ & PFRT_SERVICE_CHECK) check_alone();
    if (features_ & PFRT_SERVICE_OPTIONS)
      options(restarts);
    else
      unknown_option();
    if (restarts) stopped_start();
    api_.expect_nothing_left(trial_);
    const std::string changed = before_.changed();
    trial_.expect(changed.empty(), "process-state", changed + " is not what it was");
    file_.close(trial_);
    trial_.at("unload-with-values", "the environment was released after it was unloaded");
    api_.table()->env->release(env_);
    trial_.keep("unload");
    trial_.keep("throws");
  }

 private:
  static pfrt_env* make_env(const CountingApi& api) {
    pfrt_env* env = nullptr;
    if (pfrt_status* status = api.table()->env->create(nullptr, &env)) {
      api.table()->status->release(status);
      throw std::runtime_error("no environment for the service");
    }
    return env;
  }
  void refused(const Service& service, pfrt_code code) {  // it may refuse, but has to say why
    trial_.expect(!service.instance() && !service.sink().text().empty(), "refusal",
                  "start refused with " + service.sink().reason(code));
  }
  void ended(Service& service, const std::string& after) {
    service.stop();
    trial_.expect(threads_are(threads_), "service", "its threads still run after " + after);
    service.judge_events();
  }

  bool start_and_stop(Age age) {
    Service one(trial_, file_, api_, env_, age);
    const pfrt_code code = one.start({}, "it was started without options");
    if (code != PFRT_CODE_OK) {
      refused(one, code);
      if (starts_)
        trial_.fail("service", "started again it returned " + one.sink().reason(code));
      else
        trial_.skip("it does not start without options (" + one.sink().reason(code) + ")");
      return false;
    }
    if (!trial_.expect(one.instance() != nullptr, "service", "start gave ok and no handle"))
      return false;
    starts_ = true;
    if (features_ & PFRT_SERVICE_ADDRESS) {
      const pfrt_string address = call(trial_, "feature-function", "its address was asked for",
                                       [&] { return one.table().address(one.instance()); });
      trial_.expect(address.data || address.size == 0, "feature-function",
                    "its address has a length and no text");
    }
    if (features_ & PFRT_SERVICE_ASK)
      expect_unknown_verb(
          trial_, age,
          [&](const pfrt_question* question, const pfrt_answer* answer, const pfrt_sink* sink) {
            return one.table().ask(one.instance(), question, answer, sink);
          });
    ended(one, "stop");
    return true;
  }

  void check_alone() {
    for (Age age : {Age::kNow, Age::kNewer}) {
      Service one(trial_, file_, api_, env_, age);
      const pfrt_code code = one.check({}, "no options were checked");
      trial_.expect(code == PFRT_CODE_OK || !one.sink().text().empty(), "refusal",
                    "check refused with " + one.sink().reason(code));
      trial_.expect(code == PFRT_CODE_OK || !starts_, "check",
                    "it starts without options, and its check says " + one.sink().reason(code));
      trial_.expect(threads_are(threads_), "check", "threads of it run after check");
    }
  }

  void options(bool restarts) {
    const auto* table = static_cast<const pfrt_service_table*>(file_.describe(trial_).table);
    const Given defaults = defaults_of(trial_, *table);
    if (!restarts) return;
    Service one(trial_, file_, api_, env_, Age::kNow);
    const pfrt_code code = one.start(defaults, "it was started with its own defaults");
    trial_.expect(code == PFRT_CODE_OK, "options",
                  "given its own defaults it returned " + one.sink().reason(code));
    ended(one, "stop");
  }

  void unknown_option() {
    Service one(trial_, file_, api_, env_, Age::kNow);
    const pfrt_code code =
        one.start({{"no_such_option", "1"}}, "it was started with an unknown option");
    trial_.expect(code != PFRT_CODE_OK && !one.instance() && !one.sink().text().empty(), "refusal",
                  "start accepted an unknown option, or refused it without a reason");
    one.stop();
  }

  void stopped_start() {
    Service one(trial_, file_, api_, env_, Age::kNow, PFRT_CODE_CANCELLED);
    const pfrt_code code = one.start({}, "it was told to stop while it started");
    trial_.expect(
        code == PFRT_CODE_OK || (code == PFRT_CODE_CANCELLED && !one.instance()), "start-stop",
        "told to stop it returned " + code_text(code) + (one.instance() ? ", and a handle" : ""));
    trial_.expect(code == PFRT_CODE_OK || threads_are(threads_), "start-stop",
                  "its threads still run after a start that was stopped");
    ended(one, "a start that was stopped");
  }

  Trial& trial_;
  const uint64_t features_;
  CountingApi api_;
  pfrt_env* const env_;
  // Before the file is opened.
  const ProcessState before_;
  const size_t threads_;
  PluginFile file_;
  bool starts_ = false;
};

}  // namespace

std::vector<NamedTrial> service_trials(const PluginFacts& facts) {
  const std::string path = facts.path;
  const uint64_t features = facts.features;
  return {
      {"start and stop", [path, features](Trial& t) { ServiceTrial(t, path, features).run(); }}};
}

}  // namespace cli::check
