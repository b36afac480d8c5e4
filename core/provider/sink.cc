// SPDX-License-Identifier: Apache-2.0
#include "core/provider/sink.h"

#include "core/base/foreign.h"

namespace pfrt {

const Stop& Sink::no_stop() {
  static const Stop none;
  return none;
}

Sink::Sink(Logger* logger, const Stop& stop) : logger_(logger), stop_(stop) {
  sink_.struct_size = sizeof sink_;
  sink_.abi = PFRT_ABI_VERSION;
  sink_.host = this;
  sink_.fail = [](const pfrt_sink* sink, pfrt_code code, uint32_t node, pfrt_string text) {
    of(sink).node_ = node;
    return of(sink).fail(code, view(text));
  };
  sink_.log = [](const pfrt_sink* sink, pfrt_log_level level, pfrt_string text) {
    of(sink).log(level, view(text));
  };
  sink_.stop = [](const pfrt_sink* sink) { return of(sink).stop(); };
  sink_.progress = [](const pfrt_sink* sink, double fraction) {
    if (of(sink).progress_) call_foreign([&] { of(sink).progress_(fraction); });
  };
}

pfrt_code Sink::fail(pfrt_code code, std::string_view text) {
  try {
    text_ = text;
  } catch (const std::bad_alloc&) {
    return PFRT_CODE_OUT_OF_MEMORY;
  }
  return code;
}

void Sink::log(pfrt_log_level level, std::string_view text) {
  if (warnings_ && level >= PFRT_LOG_WARNING) {
    try {
      warnings_->emplace_back(text);
      return;
    } catch (const std::bad_alloc&) {  // then the log has it
    }
  }
  if (logger_ && logger_->wants(level)) logger_->write(level, text);
}

pfrt_code Sink::stop() {
  if (stop_ && stopped_.ok()) {
    try {
      stopped_ = stop_();
    } catch (const std::bad_alloc&) {
      return PFRT_CODE_OUT_OF_MEMORY;
    }
  }
  return static_cast<pfrt_code>(stopped_.code());
}

Status Sink::failure(pfrt_code code, const std::string& doing) const {
  if (static_cast<Code>(code) == stopped_.code()) return Status(stopped_).prepend(doing);
  return error(static_cast<Code>(code), doing, ": ",
               text_.empty() ? std::string(code_text(static_cast<Code>(code))) : text_);
}

}  // namespace pfrt
