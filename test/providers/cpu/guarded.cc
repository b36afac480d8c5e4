// SPDX-License-Identifier: Apache-2.0
#include "test/providers/cpu/guarded.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <utility>

namespace pfrt::test {
namespace {

constexpr size_t kPage = 4096;

}  // namespace

Guarded::Guarded(size_t bytes, Placed placed, size_t alignment) : bytes_(bytes) {
  const size_t body = (bytes + kPage) / kPage * kPage;
  mapped_ = body + 2 * kPage;
  void* map = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED || mprotect(static_cast<char*>(map) + kPage, body, PROT_READ | PROT_WRITE))
    std::abort();
  map_ = static_cast<char*>(map);
  const size_t before = placed == Placed::kAtStart ? 0 : (body - bytes) / alignment * alignment;
  data_ = map_ + kPage + before;
  std::memset(map_ + kPage, 0xcd, body);
}

Guarded::Guarded(Guarded&& other) noexcept
    : map_(std::exchange(other.map_, nullptr)),
      mapped_(other.mapped_),
      bytes_(other.bytes_),
      data_(other.data_) {}

Guarded& Guarded::operator=(Guarded&& other) noexcept {
  std::swap(map_, other.map_);
  std::swap(mapped_, other.mapped_);
  std::swap(bytes_, other.bytes_);
  std::swap(data_, other.data_);
  return *this;
}

Guarded::~Guarded() {
  if (map_ != nullptr) munmap(map_, mapped_);
}

void Guarded::make_read_only() {
  if (mprotect(map_ + kPage, mapped_ - 2 * kPage, PROT_READ)) std::abort();
}

}  // namespace pfrt::test
