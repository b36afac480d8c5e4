// SPDX-License-Identifier: Apache-2.0
#include "plugins/import_onnx/host.h"

namespace pfrt::onnx {

Status take_status(const pfrt_api& api, pfrt_status* status) {
  if (!status) return {};
  std::string text(view(api.status->message(status)));
  constexpr size_t kMaxChildren = 10;
  const size_t children = api.status->child_count(status);
  for (size_t i = 0; i < children && i < kMaxChildren; ++i) {
    const pfrt_status* child = api.status->child(status, i);
    if (child) text += message("; ", api.status->message(child));
  }
  Status out(static_cast<Code>(api.status->code(status)), std::move(text));
  api.status->release(status);
  return out;
}

MessageSink::MessageSink(const pfrt_sink& outer) : outer_(outer), sink_(sized<pfrt_sink>()) {
  sink_.abi = PFRT_ABI_VERSION;
  sink_.host = this;
  sink_.fail = [](const pfrt_sink* sink, pfrt_code code, uint32_t, pfrt_string text) {
    static_cast<MessageSink*>(sink->host)->message_ = view(text);
    return code;
  };
  sink_.log = [](const pfrt_sink* sink, pfrt_log_level level, pfrt_string text) {
    const pfrt_sink& to = static_cast<MessageSink*>(sink->host)->outer_;
    to.log(&to, level, text);
  };
  sink_.stop = [](const pfrt_sink* sink) {
    const pfrt_sink& to = static_cast<MessageSink*>(sink->host)->outer_;
    return to.stop(&to);
  };
  sink_.progress = [](const pfrt_sink* sink, double fraction) {
    const pfrt_sink& to = static_cast<MessageSink*>(sink->host)->outer_;
    to.progress(&to, fraction);
  };
}

Status MessageSink::status(pfrt_code code) const {
  if (code == PFRT_CODE_OK) return {};
  const auto kind = static_cast<Code>(code);
  return Status(kind, message_.empty() ? std::string(code_text(kind)) : message_);
}

}  // namespace pfrt::onnx
