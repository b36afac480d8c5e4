// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "providers/cpu/compile/executable.h"
#include "providers/cpu/program/program.h"

namespace pfrt::cpu {

// A program of |executable| at the signature |shapes|. On an error |node| is the snapshot's node at
// fault, or PFRT_NO_INDEX. |sink| is that of the call.
Result<std::unique_ptr<Program>> build_program(const Executable& executable,
                                               const pfrt_shapes& shapes, const pfrt_sink& sink,
                                               uint32_t& node);

}  // namespace pfrt::cpu
