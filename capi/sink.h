// SPDX-License-Identifier: Apache-2.0
//
// A sink that keeps the message of a failing callback and passes log lines on. One a call; not
// shared between threads.
#pragma once

#include <new>
#include <string>
#include <string_view>

#include "core/base/log.h"
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
