// SPDX-License-Identifier: Apache-2.0
#include "plugins/import_onnx/pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace pfrt::onnx {

void drop_mapped_pages(const void* data, size_t size) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto start = reinterpret_cast<uintptr_t>(data);
  const uintptr_t first = (start + page - 1) / page * page;
  const uintptr_t last = (start + size) / page * page;
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

}  // namespace pfrt::onnx
