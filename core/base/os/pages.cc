// SPDX-License-Identifier: Apache-2.0
#include "core/base/os/pages.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace pfrt::os {
namespace {

constexpr uintptr_t kLargePage = uintptr_t{2} << 20;

uintptr_t rounded_up(uintptr_t n, uintptr_t page) { return (n + page - 1) / page * page; }

uintptr_t page_size() { return static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE)); }

// The remainder after the last large page gets one too if it fills at least half: as many small
// pages take longer.
uintptr_t mapped_size(uint64_t bytes) {
  const uintptr_t size = rounded_up(static_cast<uintptr_t>(bytes), page_size());
  return size % kLargePage >= kLargePage / 2 ? rounded_up(size, kLargePage) : size;
}

void advise_pages_inside(const void* data, uint64_t bytes, uintptr_t page, int advice) {
  const auto start = reinterpret_cast<uintptr_t>(data);
  const uintptr_t first = rounded_up(start, page);
  const uintptr_t last = (start + static_cast<uintptr_t>(bytes)) / page * page;
  if (first >= last) return;
  char* const begin = static_cast<char*>(const_cast<void*>(data)) + (first - start);
  ::madvise(begin, last - first, advice);
}

}  // namespace

void* map_memory(uint64_t bytes) {
  if (bytes > (uint64_t{1} << 62)) return nullptr;
  const uintptr_t size = mapped_size(bytes);
  void* const mapped = ::mmap(nullptr, size + kLargePage, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  const auto start = reinterpret_cast<uintptr_t>(mapped);
  const uintptr_t first = rounded_up(start, kLargePage);
  if (first > start) ::munmap(mapped, first - start);
  char* const data = static_cast<char*>(mapped) + (first - start);
  if (const uintptr_t rest = start + kLargePage - first; rest > 0) ::munmap(data + size, rest);
  advise_pages_inside(data, size, kLargePage, MADV_HUGEPAGE);
  return data;
}

void unmap_memory(void* data, uint64_t bytes) { ::munmap(data, mapped_size(bytes)); }

void drop_pages(const void* data, uint64_t bytes) {
  advise_pages_inside(data, bytes, page_size(), MADV_DONTNEED);
}

void return_freed_memory() {
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
}

void prefer_large_pages(void* data, uint64_t bytes) {
  if (bytes >= 2 * kLargePage) advise_pages_inside(data, bytes, kLargePage, MADV_HUGEPAGE);
}

uint64_t peak_resident_bytes() {
  std::ifstream status("/proc/self/status");
  uint64_t kilobytes = 0;
  for (std::string word; status >> word;)
    if (word == "VmHWM:" && status >> kilobytes) return kilobytes * 1024;
  return 0;
}

}  // namespace pfrt::os
