// SPDX-License-Identifier: Apache-2.0
//
// The client tables, with a count of every reference to a value, graph, model and session that a
// plug-in takes and gives back. Only one may exist in a process at a time.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <string>

#include "cxxapi/cli/check_plugin/trial.h"
#include "pyflame_rt/plugin.h"

namespace cli::check {

class CountingApi {
 public:
  CountingApi();
  ~CountingApi();
  CountingApi(const CountingApi&) = delete;
  CountingApi& operator=(const CountingApi&) = delete;

  const pfrt_api* table() const { return &api_; }
  // Reports references that were given back too often, or not at all.
  void expect_nothing_left(Trial& trial);

 private:
  friend struct Account;
  void take(const void* handle, const char* kind);
  bool give(const void* handle, const char* kind);  // false: it was not the plug-in's

  struct Entry {
    long count = 0;
    const char* kind = "";
  };
  pfrt_api api_;
  pfrt_value_api value_;
  pfrt_graph_api graph_;
  pfrt_model_api model_;
  pfrt_session_api session_;
  std::mutex mutex_;
  std::map<const void*, Entry> held_;
  std::string excess_;  // the first reference given back that was not held
};

}  // namespace cli::check
