// SPDX-License-Identifier: Apache-2.0
//
// Memory between two pages that nobody may touch, so that code faults, generated code too, when it
// reads or writes past its buffer. Movable, owns its pages; not thread-safe.
#pragma once

#include <cstddef>

namespace pfrt::test {

enum class Placed { kAtEnd, kAtStart };  // which guard page the bytes touch

class Guarded {
 public:
  // |bytes| are filled with 0xcd, and start at a multiple of |alignment| (as near to the end page
  // as that allows).
  explicit Guarded(size_t bytes, Placed placed = Placed::kAtEnd, size_t alignment = 1);
  Guarded(Guarded&& other) noexcept;
  Guarded& operator=(Guarded&& other) noexcept;
  ~Guarded();

  char* data() { return data_; }
  const char* data() const { return data_; }
  size_t size() const { return bytes_; }
  void make_read_only();

 private:
  char* map_;
  size_t mapped_, bytes_;
  char* data_;
};

}  // namespace pfrt::test
