// SPDX-License-Identifier: Apache-2.0
#include "core/base/os/descriptor.h"

#include <unistd.h>

#include <utility>

namespace pfrt::os {

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

int Descriptor::release() { return std::exchange(fd_, -1); }

}  // namespace pfrt::os
