// SPDX-License-Identifier: Apache-2.0
//
// A sink that keeps the message of a failing callback and passes log lines on. One a call; not
// shared between threads.
#pragma once

#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/os/log.h"
#include "core/base/status.h"
#include "pyflame_rt/plugin.h"

namespace pfrt::capi {

struct TextSink {
  pfrt_sink sink{};
  std::string text;
  Logger& logger;

  explicit TextSink(Logger& log) : logger(log) {
    sink.struct_size = sizeof sink;
    sink.abi = PFRT_ABI_VERSION;
    sink.host = this;
    sink.fail = [](const pfrt_sink* s, pfrt_code code, uint32_t, pfrt_string t) -> pfrt_code {
      try {
        static_cast<TextSink*>(s->host)->text = view(t);
      } catch (const std::bad_alloc&) {
        return PFRT_CODE_OUT_OF_MEMORY;
      }
      return code;
    };
    sink.log = [](const pfrt_sink* s, pfrt_log_level level, pfrt_string t) {
      Logger& l = static_cast<TextSink*>(s->host)->logger;
      if (l.wants(level)) l.write(level, view(t));
    };
  }

  Status status(pfrt_code code, std::string_view doing) const {
    if (code == PFRT_CODE_OK) return {};
    return error(static_cast<Code>(code), doing, ": ",
                 text.empty() ? std::string(code_text(static_cast<Code>(code))) : text);
  }
};

// Keeps warnings for who called, instead of writing them to the log.
class WarningSink {
 public:
  WarningSink(Logger& logger, std::vector<std::string>& warnings)
      : text_(logger), warnings_(warnings), sink_(text_.sink) {
    sink_.host = this;
    sink_.fail = [](const pfrt_sink* s, pfrt_code code, uint32_t node, pfrt_string t) -> pfrt_code {
      const pfrt_sink& inner = static_cast<WarningSink*>(s->host)->text_.sink;
      return inner.fail(&inner, code, node, t);
    };
    sink_.log = [](const pfrt_sink* s, pfrt_log_level level, pfrt_string t) {
      WarningSink& self = *static_cast<WarningSink*>(s->host);
      if (level < PFRT_LOG_WARNING) return self.text_.sink.log(&self.text_.sink, level, t);
      try {
        self.warnings_.emplace_back(view(t));
      } catch (const std::bad_alloc&) {
        self.text_.sink.log(&self.text_.sink, level, t);
      }
    };
  }
  WarningSink(const WarningSink&) = delete;
  WarningSink& operator=(const WarningSink&) = delete;

  const pfrt_sink* get() const { return &sink_; }
  Status status(pfrt_code code, std::string_view doing) const { return text_.status(code, doing); }

 private:
  TextSink text_;
  std::vector<std::string>& warnings_;
  pfrt_sink sink_;
};

// What a callback throws ends here.
template <typename Fn>
pfrt_code call_plugin(const TextSink& sink, Fn&& fn) {
  try {
    return fn();
  } catch (const std::bad_alloc&) {
    return PFRT_CODE_OUT_OF_MEMORY;
  } catch (...) {
    return sink.sink.fail(&sink.sink, PFRT_CODE_PLUGIN, PFRT_NO_INDEX,
                          to_c("an exception escaped the plug-in"));
  }
}

}  // namespace pfrt::capi
