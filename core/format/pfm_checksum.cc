// SPDX-License-Identifier: Apache-2.0
#include "core/format/pfm_checksum.h"

#include <cstddef>

#include "core/base/digest.h"

namespace pfrt::pfm {

uint64_t checksum_of(const Header& header, const void* buffer, uint64_t bytes) {
  Checksum sum;
  sum.add(&header, offsetof(Header, checksum));
  sum.add(buffer, bytes);
  return sum.value();
}

}  // namespace pfrt::pfm
