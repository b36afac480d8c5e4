// SPDX-License-Identifier: Apache-2.0
//
// Questions to the devices of providers, which need no model: Environment::ask. Thread-safe.
#pragma once

#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <pyflame_rt/env.hpp>
#include <pyflame_rt/tensor.hpp>
#include <string>
#include <utility>
#include <vector>

namespace pyflame_rt {

// A question to a device or, without a provider, device and options, to a service (service.hpp).
struct Question {
  // Provider, by a name that sessions use: "CPUExecutionProvider" or "cpu".
  std::string provider;
  std::string verb;             // what to do, in the provider's own word
  std::string request;          // how, in the form that the verb wants
  std::vector<Tensor> tensors;  // arguments of the verb, in host memory
  std::string device;           // word of one of the provider's devices; empty = the first
  // Options of the provider, by their keys without "provider.<word>.".
  std::map<std::string, std::string> options;
  int64_t timeout_ms = 0;  // TimeoutError after so many; 0 = never
  // Hears the device's progress, from 0 to 1. Returning false, or throwing, stops it:
  // CancelledError, or what was thrown.
  std::function<bool(double fraction)> progress;
};

// The answer of a device.
struct Answer {
  // Text of the answer; may be empty.
  std::string text;
  // Tensors with their names, which differ.
  std::vector<std::pair<std::string, Tensor>> tensors;
};

namespace detail {

// Holds the options of one question, and the exception of its callback.
struct AskCall {
  explicit AskCall(const Question& from) : question(from) {
    check(api().options->create(PFRT_OPTIONS_ASK, c.out()));
    if (!from.device.empty()) set("device", from.device);
    for (const auto& [key, value] : from.options)
      set("provider." + from.provider + "." + key, value);
    if (from.timeout_ms != 0)
      check(api().options->set_int(c.get(), text("timeout_ms"), from.timeout_ms));
    if (from.progress) check(api().options->set_progress(c.get(), &hear, this));
  }
  AskCall(const AskCall&) = delete;
  AskCall& operator=(const AskCall&) = delete;

  // Takes over |status|.
  void finish(PFRT_OWN pfrt_status* status) const {
    if (thrown) {
      api().status->release(status);
      std::rethrow_exception(thrown);
    }
    check(status);
  }
  static void hear(void* user, double fraction, pfrt_string) {
    auto* const self = static_cast<AskCall*>(user);
    bool go_on = false;
    try {
      go_on = !self->thrown && self->question.progress(fraction);
    } catch (...) {
      self->thrown = std::current_exception();
    }
    if (!go_on) api().options->cancel(self->c.get());
  }

  const Question& question;
  Handle<pfrt_options> c;
  std::exception_ptr thrown;

 private:
  void set(const std::string& key, const std::string& value) {
    check(api().options->set_string(c.get(), text(key), text(value)));
  }
};

inline Answer answer_from_c(const pfrt_reply* reply) {
  Answer answer;
  answer.text = str(api().env->reply_text(reply));
  const size_t count = api().env->reply_count(reply);
  for (size_t i = 0; i < count; ++i) {
    pfrt_string name{};
    pfrt_value* value = nullptr;
    check(api().env->reply_at(reply, i, &name, &value));
    answer.tensors.emplace_back(str(name), Tensor::from_handle(Handle<pfrt_value>::share(value)));
  }
  return answer;
}

// Asks by |ask|, a call of the library's.
template <class Ask>
Answer ask(const Question& question, Ask&& ask) {
  AskCall call(question);
  std::vector<pfrt_value*> values;
  values.reserve(question.tensors.size());
  for (const Tensor& tensor : question.tensors) values.push_back(tensor.handle());
  pfrt_ask_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.provider = text(question.provider);
  desc.verb = text(question.verb);
  desc.request = text(question.request);
  desc.values = values.data();
  desc.value_count = values.size();
  desc.options = call.c.get();
  struct Release {
    void operator()(pfrt_reply* reply) const { api().env->reply_release(reply); }
  };
  pfrt_reply* raw = nullptr;
  pfrt_status* const status = ask(&desc, &raw);
  const std::unique_ptr<pfrt_reply, Release> reply(raw);
  call.finish(status);
  return answer_from_c(raw);
}

}  // namespace detail

inline Answer Environment::ask(const Question& question) const {
  return detail::ask(question, [this](const pfrt_ask_desc* desc, pfrt_reply** out) {
    return api().env->ask(env_.get(), desc, out);
  });
}

}  // namespace pyflame_rt
