// SPDX-License-Identifier: Apache-2.0
//
// A running service of a plug-in (a model server, a watcher): started by the constructor, ended by
// stop() or the destructor, after which none of its threads runs. Several threads may ask it at
// once; what else is done with it is for one thread.
#pragma once

#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <pyflame_rt/ask.hpp>
#include <pyflame_rt/env.hpp>
#include <string>
#include <utility>
#include <vector>

namespace pyflame_rt {

// How a service is started.
struct ServiceSettings {
  std::map<std::string, std::string> options;  // the service's own (Service::options lists them)
  // Hears that something happened in the service, in its own words. Called from any thread, several
  // at once, until stop() returns. An exception that it throws is lost. It may ask the service, and
  // must not stop it.
  std::function<void(const std::string& name, const std::string& text)> on_event;
  int64_t timeout_ms = 0;  // TimeoutError when it does not serve after so many; 0 = never
  // Hears the progress of the start, from 0 to 1. Returning false, or throwing, stops it:
  // CancelledError, or what was thrown.
  std::function<bool(double fraction)> progress;
};

// A running service. Move-only.
class Service {
 public:
  // Starts a service. |name| is the plug-in's own ("Heartbeat") or that of its file ("heartbeat").
  // Throws where there is no such service or it does not know an option.
  explicit Service(const std::string& name, const std::map<std::string, std::string>& options = {},
                   const Environment& environment = Environment::instance())
      : Service(name, settings_of(options), environment) {}
  // Starts a service with more settings.
  Service(const std::string& name, const ServiceSettings& settings,
          const Environment& environment = Environment::instance())
      : on_event_(settings.on_event ? std::make_unique<Listener>(settings.on_event) : nullptr) {
    const Description desc(name, settings);
    pfrt_service_desc c = desc.get();
    if (on_event_) {
      c.event = &forward_event;
      c.event_user = on_event_.get();
    }
    desc.finish(api().env->service_start(environment.handle(), &c, &service_));
  }
  ~Service() { stop(); }
  Service(Service&& other) noexcept
      : on_event_(std::move(other.on_event_)), service_(std::exchange(other.service_, nullptr)) {}
  Service& operator=(Service&& other) noexcept {
    if (this != &other) {
      stop();
      on_event_ = std::move(other.on_event_);
      service_ = std::exchange(other.service_, nullptr);
    }
    return *this;
  }

  // The options that a service lists; it is opened and not started.
  static std::vector<ProviderOption> options(
      const std::string& name, const Environment& environment = Environment::instance());
  // Throws what the constructor would throw for these settings, as far as the service can tell
  // without starting anything; UnsupportedError where it cannot tell.
  static void check(const std::string& name, const ServiceSettings& settings,
                    const Environment& environment = Environment::instance()) {
    const Description desc(name, settings);
    const pfrt_service_desc c = desc.get();
    desc.finish(api().env->service_check(environment.handle(), &c));
  }
  // Asks the service; |question| has no provider, device or options. Throws UnsupportedError when
  // it takes no questions or does not know the verb, InvalidArgumentError once it is stopped.
  Answer ask(const Question& question) const {
    if (service_ == nullptr) throw InvalidArgumentError("the service was stopped");
    return detail::ask(question, [this](const pfrt_ask_desc* desc, pfrt_reply** out) {
      return api().env->service_ask(service_, desc, out);
    });
  }
  // Asks with text alone.
  Answer ask(const std::string& verb, const std::string& request = {}) const {
    Question question;
    question.verb = verb;
    question.request = request;
    return ask(question);
  }

  // Address of the service; empty when it has none or was stopped.
  std::string address() const {
    return service_ == nullptr ? std::string() : detail::str(api().env->service_address(service_));
  }
  // False once the service was stopped or moved from.
  bool running() const noexcept { return service_ != nullptr; }
  // Ends the service; returns when none of its threads runs any more. Questions under way end with
  // CancelledError. A second call does nothing.
  void stop() noexcept { api().env->service_stop(std::exchange(service_, nullptr)); }

 private:
  // The description of a service in the library's form.
  class Description {
   public:
    Description(const std::string& name, const ServiceSettings& settings)
        : name_(name), call_(question_of(settings, question_)) {
      for (const auto& [key, value] : settings.options)
        list_.push_back({detail::text(key), detail::text(value)});
    }
    pfrt_service_desc get() const {
      pfrt_service_desc c{};
      c.struct_size = sizeof(c);
      c.name = detail::text(name_);
      c.options = list_.data();
      c.option_count = list_.size();
      c.call = call_.c.get();
      return c;
    }
    void finish(PFRT_OWN pfrt_status* status) const { call_.finish(status); }

   private:
    static const Question& question_of(const ServiceSettings& settings, Question& out) {
      out.timeout_ms = settings.timeout_ms;
      out.progress = settings.progress;
      return out;
    }
    const std::string& name_;
    Question question_;
    detail::AskCall call_;
    std::vector<pfrt_key_value> list_;
  };

  static ServiceSettings settings_of(const std::map<std::string, std::string>& options) {
    ServiceSettings settings;
    settings.options = options;
    return settings;
  }
  static void forward_event(void* user, pfrt_string name, pfrt_string text) {
    try {
      (*static_cast<const Listener*>(user))(detail::str(name), detail::str(text));
    } catch (...) {
      // Nothing may unwind through the service; a listener that throws loses its event.
    }
  }

  using Listener = std::function<void(const std::string&, const std::string&)>;
  std::unique_ptr<Listener> on_event_;  // the service has its address
  pfrt_service* service_ = nullptr;
};

inline std::vector<ProviderOption> Service::options(const std::string& name,
                                                    const Environment& environment) {
  size_t count = 0;
  detail::check(api().env->service_option_count(environment.handle(), detail::text(name), &count));
  std::vector<ProviderOption> out;
  for (size_t i = 0; i < count; ++i) {
    pfrt_option_info c{};
    c.struct_size = sizeof(c);
    detail::check(api().env->service_option_at(environment.handle(), detail::text(name), i, &c));
    out.push_back(detail::option_from_c(c));
  }
  return out;
}

}  // namespace pyflame_rt
