// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/measure/answer.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "providers/cpu/measure/measure.h"
#include "providers/kit/answer.h"

namespace pfrt::cpu {
namespace {

template <typename Number>
bool read(std::string_view text, Number& out) {
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), out);
  return fault == std::errc() && end == text.data() + text.size();
}

// Reads "threads=2 seconds=5 only=read L2". Names have blanks, so |only| is the last.
Result<MeasureRequest> read_request(std::string_view text, uint32_t threads) {
  constexpr std::string_view kBlanks = " \t\n",
                             kThreads = "threads=", kSeconds = "seconds=", kOnly = "only=";
  MeasureRequest out;
  out.threads = std::max(threads, 1u);
  for (;;) {
    text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
    if (text.empty()) return out;
    if (text.starts_with(kOnly)) {
      out.only = text.substr(kOnly.size());
      return out;
    }
    const std::string_view word = text.substr(0, text.find_first_of(kBlanks));
    const bool known =
        (word.starts_with(kThreads) && read(word.substr(kThreads.size()), out.threads)) ||
        (word.starts_with(kSeconds) && read(word.substr(kSeconds.size()), out.seconds));
    if (!known)
      return error(Code::kINVALID_ARGUMENT, "'", word,
                   "' is none of the words that measure takes: threads=NUMBER, seconds=NUMBER and, "
                   "after these, only=NAME");
    text.remove_prefix(word.size());
  }
}

void say_rate(const Rate& rate, const pfrt_answer& out) {
  char line[128];
  if (rate.threads == 0)
    std::snprintf(line, sizeof line, "%-28.*s not measured: ", static_cast<int>(rate.name.size()),
                  rate.name.data());
  else
    std::snprintf(line, sizeof line, "%-28.*s %8.4g %-7.*s (best %.4g) on %u thread%s, ",
                  static_cast<int>(rate.name.size()), rate.name.data(), rate.median,
                  static_cast<int>(rate.unit.size()), rate.unit.data(), rate.best, rate.threads,
                  rate.threads == 1 ? "" : "s");
  say(out, line + rate.note + "\n");
}

Status answer_measure(const pfrt_question& question, const pfrt_answer& out,
                      const pfrt_sink& sink) {
  PFRT_ASSIGN(const MeasureRequest request, read_request(view(question.request), question.threads));
  PFRT_ASSIGN(const std::vector<Rate> rates, measure(request, [&](double done) -> Status {
                sink.progress(&sink, done);
                const pfrt_code code = sink.stop(&sink);
                if (code == PFRT_CODE_OK) return {};
                return error(static_cast<Code>(code), "measuring was stopped");
              }));
  std::vector<pfrt_string> name, unit, note;
  std::vector<int64_t> threads;
  std::vector<double> median, best;
  for (const Rate& rate : rates) {
    name.push_back(to_c(rate.name));
    unit.push_back(to_c(rate.unit));
    note.push_back(to_c(rate.note));
    threads.push_back(rate.threads);
    median.push_back(rate.median);
    best.push_back(rate.best);
    say_rate(rate, out);
  }
  give(out, "name", name);
  give(out, "unit", unit);
  give(out, "note", note);
  give(out, "threads", threads);
  give(out, "median", median);
  give(out, "best", best);
  return {};
}

}  // namespace

Status answer(const pfrt_question& question, const pfrt_answer& out, const pfrt_sink& sink) {
  if (view(question.verb) == "measure") return answer_measure(question, out, sink);
  return error(Code::kUNSUPPORTED, "the CPU provider has no verb '", view(question.verb),
               "'; it has measure");
}

}  // namespace pfrt::cpu
