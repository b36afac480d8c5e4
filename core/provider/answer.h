// SPDX-License-Identifier: Apache-2.0
//
// Questions to a provider's device or a service: the question in the plug-in's form, and a copy of
// its answer. Thread-safe.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/memory/tensor.h"
#include "core/provider/sink.h"
#include "pyflame_rt/plugin.h"

namespace pfrt {

// A request to a device outside of any program, or to a service, which has no |provider|. Tensors
// are in host memory.
struct Question {
  std::string_view provider, verb, request;
  std::vector<Tensor> tensors;
  uint32_t threads = 1;  // as many as a run may have
};

struct Answer {
  std::string text;
  std::vector<std::pair<std::string, Tensor>> tensors;  // by name, each once
};

// The plug-in to be asked: its kind, which faults are blamed on, and a call of its function.
struct AskedPlugin {
  pfrt_plugin_kind kind;
  std::function<pfrt_code(const pfrt_question*, const pfrt_answer*, const pfrt_sink*)> ask;
};

// Asks on this thread; |doing| begins the message of a failure.
Result<Answer> ask_plugin(const Question& question, const AskedPlugin& asked, Sink& sink,
                          std::string_view doing);

}  // namespace pfrt
