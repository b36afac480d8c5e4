// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/check_plugin/unknown_verb.h"

namespace cli::check {

void expect_unknown_verb(Trial& trial, Age age,
                         const std::function<pfrt_code(const pfrt_question*, const pfrt_answer*,
                                                       const pfrt_sink*)>& ask) {
  pfrt_question asked{};
  const std::string verb = "no such verb";
  asked.verb = c_text(verb);
  asked.tensor_size = size_at<pfrt_tensor>(age);
  asked.threads = 1;
  Sized<pfrt_question> question(age, asked, "the question");
  question.make_read_only();
  pfrt_answer nobody{};
  nobody.text = [](const pfrt_answer*, pfrt_string) {};
  nobody.tensor = [](const pfrt_answer*, pfrt_string, const pfrt_tensor*) {};
  Sized<pfrt_answer> answer(age, nobody, "the answer");
  answer.make_read_only();
  HostSink sink(age);
  const pfrt_code code = call(trial, "ask-unknown-verb", "it was asked to do 'no such verb'",
                              [&] { return ask(question.get(), answer.get(), sink.get()); });
  trial.expect(code == PFRT_CODE_UNSUPPORTED && !sink.text().empty(), "ask-unknown-verb",
               "asked to do 'no such verb' it returned " + sink.reason(code) +
                   (sink.text().empty() ? ", without a message" : ""));
}

}  // namespace cli::check
