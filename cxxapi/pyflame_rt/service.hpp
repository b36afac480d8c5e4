// SPDX-License-Identifier: Apache-2.0
//
// A running service of a plug-in (a model server, a watcher): started by the constructor, ended by
// stop() or the destructor, after which none of its threads runs. Not shared between threads.
#pragma once

#include <map>
#include <pyflame_rt/env.hpp>
#include <string>
#include <utility>
#include <vector>

namespace pyflame_rt {

// A running service. Move-only.
class Service {
 public:
  // Starts a service. |name| is the plug-in's own ("Heartbeat") or that of its file ("heartbeat").
  // Throws where there is no such service or it does not know an option.
  explicit Service(const std::string& name, const std::map<std::string, std::string>& options = {},
                   const Environment& environment = Environment::instance()) {
    std::vector<pfrt_key_value> list;
    list.reserve(options.size());
    for (const auto& [key, value] : options)
      list.push_back({detail::text(key), detail::text(value)});
    detail::check(api().env->service_start(environment.handle(), detail::text(name), list.data(),
                                           list.size(), &service_));
  }
  ~Service() { stop(); }
  Service(Service&& other) noexcept : service_(std::exchange(other.service_, nullptr)) {}
  Service& operator=(Service&& other) noexcept {
    if (this != &other) {
      stop();
      service_ = std::exchange(other.service_, nullptr);
    }
    return *this;
  }

  // Address of the service; empty when it has none or was stopped.
  std::string address() const {
    return service_ == nullptr ? std::string() : detail::str(api().env->service_address(service_));
  }
  // False once the service was stopped or moved from.
  bool running() const noexcept { return service_ != nullptr; }
  // Ends the service; returns when none of its threads runs any more. A second call does nothing.
  void stop() noexcept { api().env->service_stop(std::exchange(service_, nullptr)); }

 private:
  pfrt_service* service_ = nullptr;
};

}  // namespace pyflame_rt
