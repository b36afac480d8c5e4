// SPDX-License-Identifier: Apache-2.0
//
// A file descriptor that is closed with its owner. Belongs to one thread.
#pragma once

namespace pfrt::os {

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();

  int get() const { return fd_; }
  // Releases the descriptor, which the caller then closes.
  int release();

 private:
  int fd_;
};

}  // namespace pfrt::os
