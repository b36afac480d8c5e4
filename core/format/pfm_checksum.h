// SPDX-License-Identifier: Apache-2.0
//
// What the checksum of a .pfm file's header is of.
#pragma once

#include <cstdint>

#include "core/format/pfm_layout.h"

namespace pfrt::pfm {

// What |header| should have for a buffer of |bytes| bytes with its size at |buffer|.
uint64_t checksum_of(const Header& header, const void* buffer, uint64_t bytes);

}  // namespace pfrt::pfm
