// SPDX-License-Identifier: Apache-2.0
//
// `pfrt ask`: a question to a provider's device, and its answer.
#include <cstdio>
#include <pyflame_rt/ask.hpp>

#include "cxxapi/cli/commands.h"
#include "cxxapi/cli/print/json.h"
#include "cxxapi/cli/tensors/show_value.h"

namespace cli {

int ask_command(const AskArgs& args) {
  pyflame_rt::Question question;
  question.provider = args.provider;
  question.verb = args.verb;
  question.request = args.request;
  question.device = args.device;
  const pyflame_rt::Answer answer = pyflame_rt::Environment::instance().ask(question);
  if (args.json) {
    Json json;
    json.object().field("text", answer.text).key("tensors").list();
    for (const auto& [name, tensor] : answer.tensors) {
      json.object().field("name", name);
      write_value_json(tensor, &json.key("value"));
      json.end();
    }
    json.end().end().print();
    return 0;
  }
  if (!answer.text.empty()) {
    std::fwrite(answer.text.data(), 1, answer.text.size(), stdout);
    if (answer.text.back() != '\n') std::printf("\n");
  }
  for (const auto& [name, tensor] : answer.tensors) {
    std::printf("%s:\n", name.c_str());
    print_value("  ", tensor);
  }
  return 0;
}

}  // namespace cli
