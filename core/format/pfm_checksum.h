// SPDX-License-Identifier: Apache-2.0
//
// The checksum in the header of a .pfm file.
#pragma once

#include <cstdint>

#include "core/format/pfm_layout.h"

namespace pfrt::pfm {

// The checksum for |header| and a buffer of |bytes| bytes with its size at |buffer|.
uint64_t checksum_of(const Header& header, const void* buffer, uint64_t bytes);

}  // namespace pfrt::pfm
