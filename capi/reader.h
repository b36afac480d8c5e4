// SPDX-License-Identifier: Apache-2.0
//
// The bytes of a client's pfrt_reader. Used by the thread that loads.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/base/os/progress.h"
#include "core/memory/tensor.h"
#include "pyflame_rt/pyflame_rt.h"

namespace pfrt::capi {

class ReaderSource {
 public:
  // Takes over |reader| (may be NULL); calls its release at the end.
  explicit ReaderSource(const pfrt_reader* reader) noexcept;
  ~ReaderSource();
  ReaderSource(const ReaderSource&) = delete;
  ReaderSource& operator=(const ReaderSource&) = delete;

  std::string name() const;
  // Reads all bytes; |progress| hears how far it is.
  Result<std::shared_ptr<Buffer>> read_bytes(Progress& progress) const;
  // Reads all bytes of the file that the model calls |location|.
  Result<std::shared_ptr<Buffer>> read_beside(std::string_view location, Progress& progress) const;

 private:
  Result<std::shared_ptr<Buffer>> read_all(Progress& progress, bool tell) const;
  pfrt_reader reader_{};
};

}  // namespace pfrt::capi
