// SPDX-License-Identifier: Apache-2.0
#include "capi/reader.h"

#include <algorithm>

#include "capi/handle/counted.h"
#include "capi/handle/guard.h"
#include "capi/handle/plugin_scope.h"
#include "core/base/foreign.h"

namespace pfrt::capi {
namespace {

constexpr uint64_t kPiece = uint64_t{4} << 20;

}  // namespace

ReaderSource::ReaderSource(const pfrt_reader* reader) noexcept : reader_(abi::known(reader)) {}

ReaderSource::~ReaderSource() {
  if (reader_.release) call_foreign([&] { reader_.release(reader_.user); });
}

std::string ReaderSource::name() const { return std::string(view(reader_.name)); }

// |tell| is false for bytes that are part of another stage, whose progress is not told; cancelling
// stops them too.
Result<std::shared_ptr<Buffer>> ReaderSource::read_all(Progress& progress, bool tell) const {
  if (!reader_.read_at) return error(Code::kINVALID_ARGUMENT, "the reader has no read_at function");
  PFRT_ASSIGN(auto buffer, Buffer::allocate(reader_.size, false));
  for (uint64_t at = 0; at < reader_.size;) {
    const uint64_t wanted = std::min(kPiece, reader_.size - at);
    uint64_t got = 0;
    const pfrt_code code =
        reader_.read_at(reader_.user, at, wanted, static_cast<char*>(buffer->data()) + at, &got);
    if (code != PFRT_CODE_OK)
      return error(static_cast<Code>(code), "the reader failed to read ", wanted,
                   " bytes from byte ", at, " of ", reader_.size, ": ",
                   code_text(static_cast<Code>(code)));
    if (got > wanted)
      return error(Code::kINVALID_ARGUMENT, "the reader says that it read ", got,
                   " bytes where it was asked for ", wanted);
    if (got == 0)
      return error(Code::kDATA_LOSS, "the reader ended at byte ", at, " of ", reader_.size);
    at += got;
    const double done = static_cast<double>(at) / static_cast<double>(reader_.size);
    PFRT_TRY(tell ? progress.at(done) : progress.stop());
  }
  return buffer;
}

Result<std::shared_ptr<Buffer>> ReaderSource::read_bytes(Progress& progress) const {
  return read_all(progress, true);
}

Result<std::shared_ptr<Buffer>> ReaderSource::read_beside(std::string_view location,
                                                          Progress& progress) const {
  if (!reader_.open_beside)
    return error(Code::kUNSUPPORTED, "opening external data '", location,
                 "': the reader of the model has no open_beside function");
  pfrt_reader beside{};
  beside.struct_size = sizeof beside;
  const pfrt_code code = reader_.open_beside(reader_.user, to_c(location), &beside);
  if (code != PFRT_CODE_OK)
    return error(static_cast<Code>(code), "opening external data '", location,
                 "': the reader of the model refused: ", code_text(static_cast<Code>(code)));
  beside.struct_size = sizeof beside;
  const ReaderSource source(&beside);
  PFRT_TRY(abi::check(beside));
  auto bytes = source.read_all(progress, false);
  if (!bytes.ok())
    return bytes.take_status().prepend(message("reading external data '", location, "'"));
  return bytes;
}

}  // namespace pfrt::capi
