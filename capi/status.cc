// SPDX-License-Identifier: Apache-2.0
#include "capi/handle/status.h"

#include "capi/handle/counted.h"
#include "capi/handle/guard.h"
#include "capi/handle/slots.h"
#include "capi/handle/value.h"

namespace pfrt::capi {
namespace {

pfrt_status make_immortal() {
  pfrt_status status;
  status.immortal = true;
  return status;
}

// Never destroyed and never allocated: it is what is returned when there is no memory for anything
// else.
pfrt_status& immortal() {
  alignas(pfrt_status) static unsigned char room[sizeof(pfrt_status)];
  static pfrt_status* status = new (room) pfrt_status(make_immortal());
  return *status;
}

constexpr std::string_view kNoMemory = "out of memory";

void fill(pfrt_status& handle, Status status) {
  for (const Status& child : status.children()) {
    handle.children.push_back(std::make_unique<pfrt_status>());
    fill(*handle.children.back(), child);
  }
  handle.status = std::move(status);
}

pfrt_code code(const pfrt_status* status) {
  if (!status) return PFRT_CODE_OK;
  return static_cast<pfrt_code>(status->immortal ? Code::kOUT_OF_MEMORY : status->status.code());
}

pfrt_string text(const pfrt_status* status) {
  if (!status) return to_c("");
  return status->immortal ? to_c(kNoMemory) : to_c(status->status.message());
}

size_t child_count(const pfrt_status* status) { return status ? status->children.size() : 0; }

const pfrt_status* child(const pfrt_status* status, size_t index) {
  return status && index < status->children.size() ? status->children[index].get() : nullptr;
}

void release_status(pfrt_status* status) {
  if (status && !status->immortal) delete status;
}

pfrt_string text_of(pfrt_code c) { return to_c(code_text(static_cast<Code>(c))); }

}  // namespace

pfrt_status* out_of_memory() noexcept { return &immortal(); }

pfrt_status* unexpected(const char* what) noexcept try {
  return to_status(error(Code::kINTERNAL, "unexpected exception: ", what));
} catch (...) {
  return out_of_memory();
}

pfrt_status* to_status(Status status) noexcept {
  if (status.ok()) return nullptr;
  try {
    auto handle = std::make_unique<pfrt_status>();
    fill(*handle, std::move(status));
    return handle.release();
  } catch (...) {
    return out_of_memory();
  }
}

Status from_status(pfrt_status* status) {
  if (!status) return {};
  Status out =
      status->immortal ? Status(Code::kOUT_OF_MEMORY, std::string(kNoMemory)) : status->status;
  release_status(status);
  return out;
}

const pfrt_status_api kStatusApi = {
    sizeof(pfrt_status_api),
    PFRT_ABI_VERSION,
    code,
    text,
    child_count,
    child,
    last_call<release_status, pfrt_status>,
    text_of,
};

}  // namespace pfrt::capi
