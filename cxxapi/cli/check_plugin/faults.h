// SPDX-License-Identifier: Apache-2.0
//
// Memory between two pages that nobody may touch, and a handler that turns a fault there into the
// rule that was broken. Regions are known to the handler while they live. Not thread-safe but for
// the accesses themselves.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cli::check {

enum class Placed { kAtEnd, kAtStart };  // which guard page the bytes touch

// Rules that accesses outside of the bytes, or to protected bytes, break.
struct Guards {
  const char* write_outside;
  const char* read_outside;
  const char* access_inside;  // when the bytes themselves are protected
};
inline constexpr Guards kBuffer = {"writes-past-buffer", "reads-past-buffer", "writes-undeclared"};

class Guarded {
 public:
  // Allocates |bytes| of 0xcd, as near to the guard page as |alignment| allows. |label| names them
  // in messages.
  Guarded(size_t bytes, std::string_view label, const Guards& guards, size_t alignment = 1,
          Placed placed = Placed::kAtEnd);
  ~Guarded();
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  char* data() const { return data_; }
  size_t size() const { return bytes_; }
  enum class Access { kNone, kRead, kWrite };
  void allow(Access access);
  // Returns false when a byte beside the bytes, on their own pages, has changed.
  bool margins_intact() const;
  const std::string& label() const { return label_; }
  const Guards& guards() const { return guards_; }
  const char* map() const { return map_; }
  size_t mapped() const { return mapped_; }

 private:
  std::string label_;
  Guards guards_;
  size_t bytes_;
  char* map_ = nullptr;
  size_t mapped_ = 0;
  char* data_ = nullptr;
};

// Handles the signals of crashes from here on.
void catch_faults();

}  // namespace cli::check
