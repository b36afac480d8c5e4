// SPDX-License-Identifier: Apache-2.0
//
// A pass of a client or plug-in as sessions and optimizers run it.
#pragma once

#include <memory>
#include <string_view>

#include "core/base/os/log.h"
#include "core/session/client_pass.h"
#include "pyflame_rt/custom.h"

namespace pfrt::capi {

// It holds |keep|, and uses |logger|, which outlives it. |doing| begins an error.
Result<std::shared_ptr<const ClientPass>> client_pass(const pfrt_custom_pass& given,
                                                      std::shared_ptr<void> keep, Logger& logger,
                                                      std::string_view doing);

}  // namespace pfrt::capi
