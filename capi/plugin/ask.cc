// SPDX-License-Identifier: Apache-2.0
//
// Questions to devices, and their answers.
#include "capi/plugin/ask.h"

#include "capi/handle/counted.h"
#include "capi/handle/env.h"
#include "capi/handle/guard.h"
#include "capi/handle/options.h"
#include "capi/handle/slots.h"
#include "capi/handle/tensor.h"
#include "capi/handle/value.h"

struct pfrt_reply {
  [[no_unique_address]] pfrt::capi::Alive alive;
  std::shared_ptr<pfrt::Environment> env;
  std::string text;
  std::vector<std::string> names;
  std::vector<pfrt_value*> values;  // one for each name
  ~pfrt_reply() {
    for (pfrt_value* value : values) pfrt::capi::release(value);
  }
};

namespace pfrt::capi {
namespace {

Status ask_device(pfrt_env* env, const pfrt_ask_desc& desc, pfrt_reply** out) {
  const std::string_view provider = view(desc.provider);
  if (provider.empty()) return error(Code::kINVALID_ARGUMENT, "asking: desc.provider is empty");
  const std::string doing = message("asking ", provider);
  PFRT_ASSIGN(Question question, question_of(desc, doing));
  question.provider = provider;
  const Options defaults(PFRT_OPTIONS_ASK);
  PFRT_ASSIGN(const Options* const options, ask_options(desc.options, defaults, doing));
  const EnvironmentScope scope(*env->state);
  PFRT_ASSIGN(Answer answer, env->state->ask(std::move(question), *options));
  *out = reply_of(env->state, std::move(answer)).release();
  return {};
}

}  // namespace

Result<Question> question_of(const pfrt_ask_desc& desc, std::string_view doing) {
  Question question{{}, view(desc.verb), view(desc.request), {}};
  if (question.verb.empty()) return error(Code::kINVALID_ARGUMENT, doing, ": desc.verb is empty");
  if (desc.value_count && !desc.values) return null_argument("desc.values");
  for (size_t i = 0; i < desc.value_count; ++i) {
    if (!desc.values[i]) return null_argument("desc.values[]");
    const Value& value = *desc.values[i]->value;
    if (value.kind != PFRT_VALUE_TENSOR)
      return error(Code::kINVALID_ARGUMENT, doing, ": value ", i, " is not a tensor");
    PFRT_TRY(need_host(value, doing));
    question.tensors.push_back(value.tensor);
  }
  return question;
}

Result<const Options*> ask_options(const pfrt_options* options, const Options& defaults,
                                   std::string_view doing) {
  const Options& given = options ? options->options : defaults;
  if (given.kind() != PFRT_OPTIONS_ASK)
    return error(Code::kINVALID_ARGUMENT, doing, ": the options are of kind ",
                 options_kind_name(given.kind()), ", not ask");
  return &given;
}

std::unique_ptr<pfrt_reply, void (*)(pfrt_reply*)> reply_of(std::shared_ptr<Environment> env,
                                                            Answer answer) {
  std::unique_ptr<pfrt_reply, void (*)(pfrt_reply*)> reply(new pfrt_reply,
                                                           [](pfrt_reply* r) { delete r; });
  reply->env = std::move(env);
  reply->text = std::move(answer.text);
  reply->names.reserve(answer.tensors.size());
  reply->values.reserve(answer.tensors.size());
  for (auto& [name, tensor] : answer.tensors) {
    reply->names.push_back(std::move(name));
    reply->values.push_back(new pfrt_value(Value::of(std::move(tensor))));
  }
  return reply;
}

pfrt_status* ask(pfrt_env* env, const pfrt_ask_desc* desc_in, pfrt_reply** out) {
  return guard([&]() -> Status {
    if (!env || !desc_in || !out)
      return null_argument(!env ? "env" : !desc_in ? "desc" : "out_reply");
    *out = nullptr;
    PFRT_ASSIGN(const pfrt_ask_desc desc, read(desc_in));
    return ask_device(env, desc, out);
  });
}

void release_reply(pfrt_reply* reply) {
  const Inside library;
  const os::ForkScope scope;
  delete reply;
}

pfrt_string reply_text(const pfrt_reply* reply) { return reply ? to_c(reply->text) : to_c(""); }

size_t reply_count(const pfrt_reply* reply) { return reply ? reply->values.size() : 0; }

pfrt_status* reply_at(const pfrt_reply* reply, size_t index, pfrt_string* out_name,
                      pfrt_value** out_value) {
  return guard([&]() -> Status {
    if (!reply || !out_name || !out_value)
      return null_argument(!reply ? "reply" : !out_name ? "out_name" : "out_value");
    *out_name = {};
    *out_value = nullptr;
    if (index >= reply->values.size())
      return error(Code::kINVALID_ARGUMENT, "reading tensor ", index, " of ", reply->values.size(),
                   " of an answer");
    *out_name = to_c(reply->names[index]);
    *out_value = reply->values[index];
    return {};
  });
}

}  // namespace pfrt::capi
